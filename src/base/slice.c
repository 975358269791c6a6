#include "base/slice.h"

#include <stdlib.h>

struct slice slice_from(const char *text)
{
    return text ? (struct slice){ text, strlen(text) } : SLICE("");
}

int slice_compare(struct slice a, struct slice b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len > 0 ? memcmp(a.data, b.data, len) : 0;
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

bool slice_equal_nocase(struct slice a, struct slice b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (ascii_lower(a.data[i]) != ascii_lower(b.data[i]))
            return false;
    return true;
}

bool slice_has_suffix(struct slice text, struct slice suffix)
{
    return text.len >= suffix.len && slice_equal(slice_from_offset(text, text.len - suffix.len), suffix);
}

struct slice slice_trim(struct slice text)
{
    size_t start = 0;
    size_t end = text.len;
    while (start < end && ascii_is_space(text.data[start]))
        start++;
    while (end > start && ascii_is_space(text.data[end - 1]))
        end--;
    return end > start ? (struct slice){ text.data + start, end - start } : SLICE("");
}

size_t slice_find(struct slice text, char byte)
{
    const char *found = text.len > 0 ? memchr(text.data, byte, text.len) : NULL;
    return found ? (size_t)(found - text.data) : text.len;
}

size_t slice_search(struct slice text, struct slice needle)
{
    for (size_t i = 0; i + needle.len <= text.len; i++)
        if (slice_has_prefix(slice_from_offset(text, i), needle))
            return i;
    return text.len;
}

size_t slice_index(struct slice text, const char *const *names, size_t count)
{
    size_t i = 0;
    while (i < count && !slice_equal(text, slice_from(names[i])))
        i++;
    return i;
}

bool slice_has_control(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.data[i] < ' ' || text.data[i] == 0x7f)
            return true;
    return false;
}

bool slice_is_blank(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.data[i] > ' ' && text.data[i] != 0x7f)
            return false;
    return true;
}

bool slice_to_int64(struct slice text, int64_t *ret_value)
{
    bool negative = text.len > 0 && text.data[0] == '-';
    uint64_t limit = negative ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX;
    uint64_t value = 0;
    if (text.len == (negative ? 1u : 0u))
        return false;
    for (size_t i = negative ? 1 : 0; i < text.len; i++) {
        if (!ascii_is_digit(text.data[i]))
            return false;
        uint64_t digit = (uint64_t)(text.data[i] - '0');
        if (value > (limit - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *ret_value = negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

bool slice_to_double(struct slice text, double *ret_value)
{
    char copy[64];
    if (text.len == 0 || text.len >= sizeof copy || (!ascii_is_digit(text.data[0]) && text.data[0] != '-'))
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (!ascii_is_digit(text.data[i]) && !memchr("+-.eE", text.data[i], 5)) /* strchr would find a NUL */
            return false;
    memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';

    char *end;
    double value = strtod(copy, &end);
    if (*end != '\0' || value - value != 0) /* the difference is NaN for an infinity */
        return false;
    *ret_value = value;
    return true;
}
