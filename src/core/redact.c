#include "core/redact.h"

enum { DIGITS_MASKED_FROM = 6 };

/* The length of a number written with separators, and how many digits it has. */
static size_t number_len(struct slice text, size_t *ret_digits)
{
    size_t len = 0;
    *ret_digits = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (ascii_is_digit(text.data[i])) {
            (*ret_digits)++;
            len = i + 1;
        } else if (!(text.data[i] == '.' || text.data[i] == '-' || text.data[i] == '/') || len != i) {
            break;
        }
    }
    return len;
}

static bool is_mail_byte(char c)
{
    return ascii_is_alnum(c) || c == '.' || c == '_' || c == '-' || c == '+' || c == '%';
}

/* The length of an address at the start of `text`, or 0. */
static size_t address_len(struct slice text)
{
    size_t at = 0;
    while (at < text.len && is_mail_byte(text.data[at]))
        at++;
    if (at == 0 || at == text.len || text.data[at] != '@')
        return 0;
    size_t end = at + 1;
    while (end < text.len && is_mail_byte(text.data[end]))
        end++;
    return end > at + 1 ? end : 0;
}

static bool word_starts(struct slice text, size_t index)
{
    return index == 0 || !is_mail_byte(text.data[index - 1]);
}

void redact(struct buffer *out, struct slice text, size_t len_max)
{
    size_t end = text.len < len_max ? text.len : len_max;
    for (size_t i = 0; i < end;) {
        struct slice rest = slice_from_offset(text, i);
        size_t digits = 0;
        size_t len = word_starts(text, i) ? address_len(rest) : 0;
        if (len > 0) {
            buffer_append(out, SLICE("<address>"));
        } else if (ascii_is_digit(rest.data[0]) && (len = number_len(rest, &digits)) > 0) {
            if (digits >= DIGITS_MASKED_FROM)
                buffer_append(out, SLICE("<number>"));
            else
                buffer_append(out, (struct slice){ rest.data, len });
        } else {
            buffer_append_byte(out, rest.data[0]);
            len = 1;
        }
        i += len;
    }
}
