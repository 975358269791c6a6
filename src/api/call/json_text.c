#include "api/call/json_text.h"

#include "base/json.h"

#include <string.h>

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
    /* Most strings have no escape: their end is the next quote. */
    const char *quote = text.len > 1 ? memchr(text.data + 1, '"', text.len - 1) : NULL;
    if (!quote || !memchr(text.data + 1, '\\', (size_t)(quote - text.data)))
        return quote ? (size_t)(quote - text.data) + 1 : 0;
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
    while (i < text.len && text.data[i] != ',' && text.data[i] != '}' && text.data[i] != ']' &&
           !ascii_is_space(text.data[i]))
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

static bool find_member(struct slice object, struct slice name, struct slice *ret_key, struct slice *ret_value)
{
    struct slice key, value;
    if (!take(&object, '{'))
        return false;
    while (take_value(&object, &key) && take(&object, ':') && take_value(&object, &value)) {
        if (key.len == name.len + 2 && slice_equal((struct slice){ key.data + 1, name.len }, name)) {
            *ret_key = key;
            *ret_value = value;
            return true;
        }
        if (!take(&object, ','))
            break;
    }
    return false;
}

struct slice json_text_member(struct slice object, struct slice name)
{
    struct slice key, value;
    return find_member(object, name, &key, &value) ? value : SLICE("");
}

struct slice json_text_member_key(struct slice object, struct slice name)
{
    struct slice key, value;
    return find_member(object, name, &key, &value) ? key : SLICE("");
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

/* --- validity ------------------------------------------------------------------------------------ */

static bool take_word(struct slice *text, struct slice word)
{
    if (!slice_has_prefix(*text, word))
        return false;
    *text = slice_from_offset(*text, word.len);
    return true;
}

static bool take_digits(struct slice *text)
{
    size_t i = 0;
    while (i < text->len && ascii_is_digit(text->data[i]))
        i++;
    *text = slice_from_offset(*text, i);
    return i > 0;
}

static bool take_number(struct slice *text)
{
    take_word(text, SLICE("-"));
    if (!take_word(text, SLICE("0")) && !take_digits(text))
        return false;
    if (take_word(text, SLICE(".")) && !take_digits(text))
        return false;
    if (!take_word(text, SLICE("e")) && !take_word(text, SLICE("E")))
        return true;
    if (!take_word(text, SLICE("-")))
        take_word(text, SLICE("+"));
    return take_digits(text);
}

/* \uXXXX at the start of `text`; -1: it is none. */
static int unicode_escape(struct slice text)
{
    int value = 0;
    if (text.len < 6 || text.data[0] != '\\' || text.data[1] != 'u')
        return -1;
    for (size_t i = 2; i < 6; i++) {
        int digit = ascii_hex_value(text.data[i]);
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* Length of the escape at the start of `text`; 0: it is broken. Halves of a pair do not stand alone. */
static size_t escape_len(struct slice text)
{
    if (text.len >= 2 && text.data[1] != 'u') {
        char c = text.data[1];
        return c == '"' || c == '\\' || c == '/' || c == 'b' || c == 'f' || c == 'n' || c == 'r' || c == 't' ? 2 : 0;
    }
    int first = unicode_escape(text);
    if (first < 0 || (first >= 0xdc00 && first < 0xe000))
        return 0;
    if (first < 0xd800 || first >= 0xe000)
        return 6;
    int second = unicode_escape(slice_from_offset(text, 6));
    return second >= 0xdc00 && second < 0xe000 ? 12 : 0;
}

static inline bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

static bool take_string(struct slice *text)
{
    if (!take_word(text, SLICE("\"")))
        return false;
    for (size_t i = json_plain_len(*text); i < text->len;) {
        unsigned char c = (unsigned char)text->data[i];
        if (is_plain(c)) {
            i++;
            continue;
        }
        struct slice rest = slice_from_offset(*text, i);
        if (c == '"') {
            *text = slice_from_offset(*text, i + 1);
            return true;
        }
        size_t len = c == '\\' ? escape_len(rest) : c < 0x20 ? 0 : c < 0x80 ? 1 : utf8_sequence_len(rest);
        if (len == 0)
            return false;
        i += len;
        i += json_plain_len(slice_from_offset(*text, i));
    }
    return false;
}

static bool take_valid(struct slice *text, int depth);

static bool take_members(struct slice *text, int depth, char end)
{
    if (take(text, end))
        return true;
    do {
        *text = skip_space(*text);
        if (end == '}' && (!take_string(text) || !take(text, ':')))
            return false;
        if (!take_valid(text, depth + 1))
            return false;
    } while (take(text, ','));
    return take(text, end);
}

static bool take_valid(struct slice *text, int depth)
{
    *text = skip_space(*text);
    if (text->len == 0 || depth > DEPTH_MAX)
        return false;
    switch (text->data[0]) {
    case '{':
        *text = slice_from_offset(*text, 1);
        return take_members(text, depth, '}');
    case '[':
        *text = slice_from_offset(*text, 1);
        return take_members(text, depth, ']');
    case '"':
        return take_string(text);
    case 't':
        return take_word(text, SLICE("true"));
    case 'f':
        return take_word(text, SLICE("false"));
    case 'n':
        return take_word(text, SLICE("null"));
    default:
        return take_number(text);
    }
}

bool json_text_is_plain(struct slice text)
{
    return text.len >= 2 && text.data[0] == '"' && slice_find(text, '\\') == text.len;
}

bool json_text_is_valid(struct slice text)
{
    return take_valid(&text, 1) && skip_space(text).len == 0;
}
