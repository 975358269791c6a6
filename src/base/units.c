#include "base/units.h"

#include "base/instant.h"

#include <inttypes.h>
#include <stdio.h>

struct unit {
    const char *name;
    int64_t value;
};

/* Largest first: the formatters take as much as they can of each. */
static const struct unit duration_units[] = {
    { "d", DAY_MS }, { "h", HOUR_MS }, { "m", MINUTE_MS }, { "s", SECOND_MS }, { "ms", 1 }, { NULL, 0 },
};
static const struct unit size_units[] = {
    { "TB", INT64_C(1) << 40 }, { "GB", 1 << 30 }, { "MB", 1 << 20 }, { "KB", 1 << 10 }, { "B", 1 },
    { "", 1 },                  { NULL, 0 },
};
static const struct unit rate_units[] = {
    { "d", DAY_MS }, { "h", HOUR_MS }, { "m", MINUTE_MS }, { "s", SECOND_MS }, { NULL, 0 },
};

enum { QUOTED_MAX = 64 };
#define QUOTED(text) (int)((text).len < QUOTED_MAX ? (text).len : QUOTED_MAX), (text).data

static const struct unit *unit_find(const struct unit *units, struct slice name)
{
    for (; units->name; units++)
        if (slice_equal_nocase(name, slice_from(units->name)))
            return units;
    return NULL;
}

/* One number with its unit, as "30s"; advances `text`. */
static bool take_quantity(struct slice *text, const struct unit *units, int64_t *ret_value)
{
    size_t digits = 0;
    while (digits < text->len && ascii_is_digit(text->data[digits]))
        digits++;
    size_t end = digits;
    while (end < text->len && !ascii_is_digit(text->data[end]))
        end++;
    int64_t number;
    const struct unit *unit = unit_find(units, (struct slice){ text->data + digits, end - digits });
    if (!unit || !slice_to_int64((struct slice){ text->data, digits }, &number))
        return false;
    *text = slice_from_offset(*text, end);
    return !__builtin_mul_overflow(number, unit->value, ret_value);
}

enum status duration_parse(struct slice text, int64_t *ret_ms, struct error *err)
{
    struct slice rest = slice_trim(text);
    int64_t total = 0;
    int64_t part;
    if (slice_equal(rest, SLICE("0"))) {
        *ret_ms = 0;
        return STATUS_OK;
    }
    do {
        if (!take_quantity(&rest, duration_units, &part) || __builtin_add_overflow(total, part, &total))
            return error_set(err, STATUS_INVALID, "\"%.*s\" is not a duration; write it like 250ms, 30s, 5m, 2h or 7d",
                             QUOTED(text));
    } while (rest.len > 0);
    *ret_ms = total;
    return STATUS_OK;
}

void duration_format(int64_t ms, char ret_text[UNITS_TEXT_BYTES])
{
    size_t len = 0;
    ret_text[0] = '\0';
    if (ms <= 0) {
        snprintf(ret_text, UNITS_TEXT_BYTES, "0s");
        return;
    }
    for (const struct unit *unit = duration_units; unit->name; unit++) {
        if (ms < unit->value)
            continue;
        len += (size_t)snprintf(ret_text + len, UNITS_TEXT_BYTES - len, "%" PRId64 "%s", ms / unit->value, unit->name);
        ms %= unit->value;
    }
}

enum status size_parse(struct slice text, int64_t *ret_bytes, struct error *err)
{
    struct slice rest = slice_trim(text);
    int64_t bytes;
    if (!take_quantity(&rest, size_units, &bytes) || rest.len > 0)
        return error_set(err, STATUS_INVALID, "\"%.*s\" is not a size; write it like 512, 64KB, 1MB or 2GB", QUOTED(text));
    *ret_bytes = bytes;
    return STATUS_OK;
}

void size_format(int64_t bytes, char ret_text[UNITS_TEXT_BYTES])
{
    const struct unit *unit = size_units;
    while (unit->value > 1 && (bytes < unit->value || bytes % unit->value != 0))
        unit++;
    snprintf(ret_text, UNITS_TEXT_BYTES, "%" PRId64 "%s", bytes, "");
    if (unit->value > 1)
        snprintf(ret_text, UNITS_TEXT_BYTES, "%" PRId64 "%s", bytes / unit->value, unit->name);
}

enum status rate_parse(struct slice text, struct rate *ret_rate, struct error *err)
{
    struct slice trimmed = slice_trim(text);
    size_t slash = slice_find(trimmed, '/');
    struct slice count = { trimmed.data, slash };
    const struct unit *unit = unit_find(rate_units, slice_from_offset(trimmed, slash + 1));
    int64_t value;
    if (slash == trimmed.len || !unit || !slice_to_int64(count, &value) || value <= 0)
        return error_set(err, STATUS_INVALID, "\"%.*s\" is not a rate; write it like 20/s, 100/m or 1000/h", QUOTED(text));
    *ret_rate = (struct rate){ .count = value, .per_ms = unit->value };
    return STATUS_OK;
}

void rate_format(struct rate rate, char ret_text[UNITS_TEXT_BYTES])
{
    const struct unit *unit = rate_units;
    while (unit[1].name && unit->value != rate.per_ms)
        unit++;
    snprintf(ret_text, UNITS_TEXT_BYTES, "%" PRId64 "/%s", rate.count, unit->name);
}

void hex_format(const unsigned char *bytes, size_t count, char *ret_text)
{
    for (size_t i = 0; i < count; i++) {
        *ret_text++ = "0123456789abcdef"[bytes[i] >> 4];
        *ret_text++ = "0123456789abcdef"[bytes[i] & 15];
    }
    *ret_text = '\0';
}

struct slice hex_parse(struct slice digits, struct arena *memory)
{
    size_t len = digits.len / 2;
    char *bytes = arena_alloc(memory, len + 1);
    for (size_t i = 0; bytes && i < len; i++)
        bytes[i] = (char)(ascii_hex_value(digits.data[2 * i]) << 4 | ascii_hex_value(digits.data[2 * i + 1]));
    return (struct slice){ bytes, bytes ? len : 0 };
}
