/*
 * slice.h - bytes that somebody else owns.
 *
 * A slice borrows: it is valid as long as what it points into. It may hold any bytes,
 * NUL and broken UTF-8 too, and is not terminated.
 */
#ifndef BASE_SLICE_H
#define BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct slice {
    const char *data;
    size_t len;
};

/* A slice of a string literal, usable in initialisers. */
#define SLICE(literal) ((struct slice){ "" literal, sizeof(literal) - 1 })
/* For printf's "%.*s". */
#define SLICE_ARG(slice) (int)(slice).len, (slice).data

/* The slice of a C string; NULL gives the empty slice. */
struct slice slice_from(const char *text);

static inline bool slice_equal(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}
/* As of bytes, a beginning before the whole: negative, 0 or positive. */
int slice_compare(struct slice a, struct slice b);
/* ASCII letters only: bytes over 127 must be equal. */
bool slice_equal_nocase(struct slice a, struct slice b);
static inline bool slice_has_prefix(struct slice text, struct slice prefix)
{
    return text.len >= prefix.len && slice_equal((struct slice){ text.data, prefix.len }, prefix);
}
bool slice_has_suffix(struct slice text, struct slice suffix);
/* The part from `start` (at most text.len) on. */
static inline struct slice slice_from_offset(struct slice text, size_t start)
{
    if (start > text.len)
        start = text.len;
    return text.data ? (struct slice){ text.data + start, text.len - start } : text;
}
/* Without the ASCII white space on both sides. */
struct slice slice_trim(struct slice text);
/* Index of the first `byte`, or text.len. */
size_t slice_find(struct slice text, char byte);
/* Index of the first occurrence of `needle`, or text.len. */
size_t slice_search(struct slice text, struct slice needle);
/* Index of the one of these names that it is, or `count`. */
size_t slice_index(struct slice text, const char *const *names, size_t count);
/* Whether a control byte is in it. */
bool slice_has_control(struct slice text);
/* Only white space, control bytes and NUL, or nothing at all. */
bool slice_is_blank(struct slice text);

/* The whole of `text` as a decimal number; false when it is anything else or does not fit. */
bool slice_to_int64(struct slice text, int64_t *ret_value);
bool slice_to_double(struct slice text, double *ret_value);

static inline bool ascii_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline char ascii_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static inline bool ascii_is_alnum(char c)
{
    char lower = ascii_lower(c);
    return ascii_is_digit(c) || (lower >= 'a' && lower <= 'z');
}

/* -1: it is no hexadecimal digit. */
static inline int ascii_hex_value(char c)
{
    char lower = ascii_lower(c);
    return ascii_is_digit(c) ? c - '0' : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static inline bool ascii_is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

#endif
