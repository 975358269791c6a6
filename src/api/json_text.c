#include "api/json_text.h"

enum { DEPTH_MAX = 256 };

static struct slice skip_space(struct slice text)
{
    size_t i = 0;
    while (i < text.len && (text.data[i] == ' ' || text.data[i] == '\t' || text.data[i] == '\n' || text.data[i] == '\r'))
        i++;
    return slice_from_offset(text, i);
}

/* Length of the string at the start of `text` with its quotes, 0 when it does not end. */
static size_t string_len(struct slice text)
{
    for (size_t i = 1; i < text.len; i++) {
        if (text.data[i] == '\\')
            i++;
        else if (text.data[i] == '"')
            return i + 1;
    }
    return 0;
}

static size_t nested_len(struct slice text)
{
    int depth = 0;
    for (size_t i = 0; i < text.len;) {
        char c = text.data[i];
        if (c == '"') {
            size_t len = string_len(slice_from_offset(text, i));
            if (len == 0)
                return 0;
            i += len;
            continue;
        }
        if ((c == '{' || c == '[') && ++depth > DEPTH_MAX)
            return 0;
        if ((c == '}' || c == ']') && --depth == 0)
            return i + 1;
        i++;
    }
    return 0;
}

/* Length of the value at the start of `text`, 0 when it is broken. */
static size_t value_len(struct slice text)
{
    if (text.len == 0)
        return 0;
    if (text.data[0] == '"')
        return string_len(text);
    if (text.data[0] == '{' || text.data[0] == '[')
        return nested_len(text);
    size_t i = 0;
    while (i < text.len && text.data[i] != ',' && text.data[i] != '}' && text.data[i] != ']' && !ascii_is_space(text.data[i]))
        i++;
    return i;
}

/* Takes one byte if it is next. */
static bool take(struct slice *text, char byte)
{
    *text = skip_space(*text);
    if (text->len == 0 || text->data[0] != byte)
        return false;
    *text = slice_from_offset(*text, 1);
    return true;
}

static bool take_value(struct slice *text, struct slice *ret_value)
{
    *text = skip_space(*text);
    size_t len = value_len(*text);
    *ret_value = (struct slice){ text->data, len };
    *text = slice_from_offset(*text, len);
    return len > 0;
}

struct slice json_text_member(struct slice object, struct slice name)
{
    struct slice key, value;
    if (!take(&object, '{'))
        return SLICE("");
    while (take_value(&object, &key) && take(&object, ':') && take_value(&object, &value)) {
        if (key.len == name.len + 2 && slice_equal((struct slice){ key.data + 1, name.len }, name))
            return value;
        if (!take(&object, ','))
            break;
    }
    return SLICE("");
}

bool json_text_next(struct slice *rest, struct slice *ret_element, bool *ret_broken)
{
    *ret_broken = false;
    struct slice text = skip_space(*rest);
    bool first = text.len > 0 && text.data[0] == '[';
    if (!first && take(&text, ']')) {
        *ret_broken = skip_space(text).len > 0;
        return false;
    }
    *ret_broken = !take(&text, first ? '[' : ',');
    if (*ret_broken)
        return false;
    if (first && take(&text, ']')) {
        *ret_broken = skip_space(text).len > 0;
        return false;
    }
    *ret_broken = !take_value(&text, ret_element);
    *rest = text;
    return !*ret_broken;
}
