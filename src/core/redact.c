#include "core/redact.h"

#include <assert.h>

enum { DIGITS_MASKED_FROM = 6, UTF8_BYTES_MAX = 4 };

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
    bool beyond_ascii = (unsigned char)c >= 0x80; /* a name may have its accents */
    return ascii_is_alnum(c) || beyond_ascii || c == '.' || c == '_' || c == '-' || c == '+' || c == '%';
}

size_t mail_address_len(struct slice text)
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

/* After a digit too: a number may have ended inside what goes on as an address. */
static bool word_starts(struct slice text, size_t index)
{
    return index == 0 || !is_mail_byte(text.data[index - 1]) || ascii_is_digit(text.data[index - 1]);
}

/* The bytes of one character, so that a cut does not fall inside it. */
static size_t character_len(struct slice text)
{
    size_t len = 1;
    while (len < text.len && len < UTF8_BYTES_MAX && (unsigned char)text.data[0] >= 0xc0 &&
           ((unsigned char)text.data[len] & 0xc0) == 0x80)
        len++;
    return len;
}

/* What stands at `index`: how much of the text it is, and what is written for it. */
static size_t token_at(struct slice text, size_t index, struct slice *ret_shown)
{
    struct slice rest = slice_from_offset(text, index);
    size_t digits = 0;
    size_t len = word_starts(text, index) ? mail_address_len(rest) : 0;
    if (len > 0) {
        *ret_shown = SLICE("<address>");
        return len;
    }
    len = mask_len(rest); /* masked before: not to be cut in two */
    if (len == 0)
        len = ascii_is_digit(rest.data[0]) ? number_len(rest, &digits) : character_len(rest);
    *ret_shown = digits >= DIGITS_MASKED_FROM ? SLICE("<number>") : (struct slice){ rest.data, len };
    return len;
}

bool redact_next(struct redaction *redaction, struct slice *ret_shown)
{
    struct slice text = redaction->text;
    size_t at = redaction->at;
    struct secret *secret = &redaction->secret;
    if (at >= text.len)
        return false;
    if (secret->value.data == text.data + at) {
        *ret_shown = secret->shown;
        redaction->at += secret->value.len;
        secret->value.data = NULL;
        return true;
    }
    if (!secret->value.data && !secret_behind(text, at, secret))
        secret->value.data = NULL;
    redaction->at += token_at(text, at, ret_shown);
    assert(!secret->value.data || text.data + redaction->at <= secret->value.data);
    return true;
}

void redact(struct buffer *out, struct slice text, size_t len_max)
{
    size_t room = len_max;
    struct redaction redaction = { .text = text };
    struct slice shown;
    while (redact_next(&redaction, &shown) && shown.len <= room) {
        buffer_append(out, shown);
        room -= shown.len;
    }
}
