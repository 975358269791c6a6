/*
 * instant.h - points in time and their text.
 *
 * An instant is milliseconds since 1970-01-01T00:00:00Z. This module knows the calendar
 * but no clock: whoever needs "now" is given it.
 */
#ifndef BASE_INSTANT_H
#define BASE_INSTANT_H

#include "base/slice.h"
#include "base/status.h"

typedef int64_t instant;

#define INSTANT_NONE INT64_MIN        /* no such time */
#define INSTANT_MAX 253402300799999   /* 9999-12-31T23:59:59.999Z */
#define INSTANT_MIN (-62135596800000) /* 0001-01-01T00:00:00.000Z */

enum {
    SECOND_MS = 1000,
    MINUTE_MS = 60 * SECOND_MS,
    HOUR_MS = 60 * MINUTE_MS,
    DAY_MS = 24 * HOUR_MS,
    INSTANT_TEXT_BYTES = 25 /* with its NUL */
};

/* "2025-01-12T10:51:41.234Z", always UTC with milliseconds. The instant is clipped to years 1 to 9999. */
void instant_format(instant at, char ret_text[INSTANT_TEXT_BYTES]);

/* A zone: Z, UTC, or an offset like -03:00. False: it is none. */
bool instant_zone_parse(struct slice text, int64_t *ret_offset_ms);
/* RFC 3339 with a zone: "...Z" or "...+03:00"; a time without a zone is refused, it could be any of 24 moments. */
enum status instant_parse(struct slice text, instant *ret_at, struct error *err) MUST_CHECK;
/* The same for a time that may leave its zone out, and its seconds with it: then it is in this one (zone.h). */
struct zone;
enum status instant_parse_in(struct slice text, const struct zone *zone, instant *ret_at, struct error *err) MUST_CHECK;

/* at + delay_ms, saturating at INSTANT_MAX. */
instant instant_add(instant at, int64_t delay_ms);

/* The earlier of the two; INSTANT_NONE is later than all. */
instant instant_earlier(instant a, instant b);
/* Makes *next the earlier of itself and `at`, unless `at` is not after `now`. */
void instant_hasten(instant *next, instant at, instant now);

/* Calendar fields in UTC. */
struct civil {
    int year, month, day, hour, minute, second, millisecond;
};
struct civil instant_civil(instant at);
instant instant_from_civil(const struct civil *civil);

/* "20250112T104000.123Z", for names: those of later instants are greater. */
enum { INSTANT_STAMP_BYTES = 20 };
void instant_stamp(instant at, char ret_stamp[INSTANT_STAMP_BYTES + 1]);

#endif
