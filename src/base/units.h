/*
 * units.h - durations, sizes and rates as people write them; bytes as digits.
 *
 * Durations 250ms 30s 5m 2h 7d and sums of them (1h30m); sizes 512 64KB 1MB 2GB (1 KB is
 * 1024 bytes); rates 20/s 100/m 1000/h 5000/d.
 */
#ifndef BASE_UNITS_H
#define BASE_UNITS_H

#include "base/arena.h"
#include "base/slice.h"
#include "base/status.h"

enum { UNITS_TEXT_BYTES = 48 };

struct rate {
    int64_t count; /* 0: no limit */
    int64_t per_ms;
};

enum status duration_parse(struct slice text, int64_t *ret_ms, struct error *err) MUST_CHECK;
/* The shortest exact text: 90000 is "1m30s". */
void duration_format(int64_t ms, char ret_text[UNITS_TEXT_BYTES]);

enum status size_parse(struct slice text, int64_t *ret_bytes, struct error *err) MUST_CHECK;
void size_format(int64_t bytes, char ret_text[UNITS_TEXT_BYTES]);

enum status rate_parse(struct slice text, struct rate *ret_rate, struct error *err) MUST_CHECK;
void rate_format(struct rate rate, char ret_text[UNITS_TEXT_BYTES]);

/* Two lower-case hexadecimal digits a byte, and a NUL. */
void hex_format(const unsigned char *bytes, size_t count, char *ret_text);
/* The bytes of such digits; .data is NULL when there is no memory. */
struct slice hex_parse(struct slice digits, struct arena *memory);

#endif
