#include "core/errors/redact.h"

#include "core/errors/shapes.h"

#include <assert.h>

enum {
    DIGITS_MASKED_FROM = 6,
    SPACED_DIGITS_MIN = 8, /* of cards and phones, written in groups */
    GROUP_DIGITS_MIN = 2,
    UTF8_BYTES_MAX = 4,
};

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

/* Of a destination, with its port: who hears that it cannot be reached must be able to read where. */
static size_t ip_len(struct slice text)
{
    size_t len = shape_ipv4_len(text);
    int64_t group = 0;
    for (size_t i = 0; i < len && text.data[i] != ':' && text.data[i] != '/'; i++) {
        group = text.data[i] == '.' ? 0 : group * 10 + (text.data[i] - '0');
        if (group > 255)
            return 0;
    }
    return len;
}

/*
 * The same in groups with single blanks between them, "4111 1111 1111 1111"; 0: it is none. Groups of one digit, and few
 * digits in all, are numbers that stand beside each other.
 */
static size_t spaced_number_len(struct slice text)
{
    size_t len = 0, all = 0, groups = 0, digits;
    for (;;) {
        size_t group = number_len(slice_from_offset(text, len), &digits);
        if (digits < GROUP_DIGITS_MIN || ip_len(slice_from_offset(text, len)) > 0)
            break;
        groups++;
        all += digits;
        len += group;
        bool more = len + 1 < text.len && text.data[len] == ' ' && ascii_is_digit(text.data[len + 1]);
        if (!more)
            break;
        len++;
    }
    while (len > 0 && text.data[len - 1] == ' ')
        len--;
    return groups > 1 && all >= SPACED_DIGITS_MIN ? len : 0;
}

static bool is_mail_byte(char c)
{
    bool beyond_ascii = (unsigned char)c >= 0x80; /* a name may have its accents */
    return ascii_is_alnum(c) || beyond_ascii || c == '.' || c == '_' || c == '-' || c == '+' || c == '%';
}

size_t mail_address_len(struct slice text)
{
    static const struct slice encoded = { "%40", 3 };
    size_t at = 0;
    while (at < text.len && is_mail_byte(text.data[at]) &&
           !(at > 0 && text.data[at] == '%' && slice_has_prefix(slice_from_offset(text, at), encoded)))
        at++;
    if (at == 0 || at == text.len || (text.data[at] != '@' && text.data[at] != '%'))
        return 0;
    at += text.data[at] == '%' ? encoded.len - 1 : 0;
    size_t end = at + 1;
    while (end < text.len && is_mail_byte(text.data[end]))
        end++;
    return end > at + 1 ? end : 0;
}

/* After a digit too: a number may have ended inside what goes on as an address. */
static bool word_starts(struct slice text, size_t index)
{
    assert(index <= text.len);
    return index == 0 || !is_mail_byte(text.data[index - 1]) || ascii_is_digit(text.data[index - 1]);
}

/* The bytes of one character, so that a cut does not fall inside it. */
static size_t character_len(struct slice text)
{
    assert(text.len > 0);
    size_t len = 1;
    while (len < text.len && len < UTF8_BYTES_MAX && (unsigned char)text.data[0] >= 0xc0 &&
           ((unsigned char)text.data[len] & 0xc0) == 0x80)
        len++;
    return len;
}

/* After a digit too: what ends with it is masked, and not there the next time. */
static bool begins_at(struct slice text, size_t index)
{
    assert(index <= text.len);
    return index == 0 || !shape_is_word_byte(text.data[index - 1]) || ascii_is_digit(text.data[index - 1]);
}

/* A document or a key that begins with a letter as often as with a digit. */
static size_t spelled_at(struct slice text, size_t index, struct slice *ret_shown)
{
    assert(index <= text.len);
    struct slice rest = slice_from_offset(text, index);
    if (!begins_at(text, index))
        return 0;
    size_t len = shape_jwt_len(rest);
    *ret_shown = len > 0 ? SLICE(SECRET_MASK) : SLICE("<number>");
    return len > 0 ? len : shape_cnpj_len(rest);
}

/* A number of a person's, or one that is shown as it is. */
static size_t digits_at(struct slice text, size_t index, struct slice *ret_shown)
{
    assert(index <= text.len);
    struct slice rest = slice_from_offset(text, index);
    bool begins = begins_at(text, index);
    size_t digits, len = begins ? ip_len(rest) : 0;
    if (len > 0) {
        *ret_shown = (struct slice){ rest.data, len };
        return len;
    }
    *ret_shown = SLICE("<number>");
    len = begins ? spaced_number_len(rest) : 0;
    if (len > 0)
        return len;
    len = number_len(rest, &digits);
    if (digits < DIGITS_MASKED_FROM)
        *ret_shown = (struct slice){ rest.data, len };
    return len;
}

/* What stands at `index`: how much of the text it is, and what is written for it. */
static size_t token_at(struct slice text, size_t index, struct slice *ret_shown)
{
    assert(index <= text.len);
    struct slice rest = slice_from_offset(text, index);
    size_t len = word_starts(text, index) ? mail_address_len(rest) : 0;
    if (len > 0) {
        *ret_shown = SLICE("<address>");
        return len;
    }
    len = spelled_at(text, index, ret_shown);
    if (len > 0)
        return len;
    len = mask_len(rest); /* masked before: not to be cut in two */
    if (len == 0 && ascii_is_digit(rest.data[0]))
        return digits_at(text, index, ret_shown);
    if (len == 0)
        len = character_len(rest);
    *ret_shown = (struct slice){ rest.data, len };
    return len;
}

static bool is_letter(char c)
{
    char lower = ascii_lower(c);
    return lower >= 'a' && lower <= 'z';
}

/* Nothing that is looked for begins with a letter behind a letter, as most of a text is. */
static bool is_inside_word(struct slice text, size_t index)
{
    assert(index < text.len);
    return index > 0 && is_letter(text.data[index]) && is_letter(text.data[index - 1]);
}

bool redact_next(struct redaction *redaction, struct slice *ret_shown)
{
    assert(redaction->at <= redaction->text.len);
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
    if (is_inside_word(text, at)) {
        *ret_shown = (struct slice){ text.data + at, 1 };
        redaction->at++;
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
