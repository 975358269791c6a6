/*
 * zone.h - what a wall clock shows somewhere: an offset, or the rules of a place in the tz database.
 *
 * Pure: whoever has a file of the database (TZif, RFC 9636) gives its bytes. The process's own TZ is neither asked nor
 * changed.
 */
#ifndef BASE_ZONE_H
#define BASE_ZONE_H

#include "base/arena.h"
#include "base/instant.h"

enum {
    ZONE_CHANGES_MAX = 4096,
    ZONE_FILE_BYTES_MAX = 256 * 1024,
    ZONE_NAME_BYTES_MAX = 64,
};

/* The clock is put on or back at that instant. Seconds. */
struct zone_change {
    int64_t at;
    int64_t before, after; /* offsets */
};

/* A day of every year and a time on it, by the wall clock. */
struct zone_day {
    enum { ZONE_DAY_OF_MONTH, ZONE_DAY_WITHOUT_LEAP, ZONE_DAY_OF_YEAR } kind;
    int month, week, day; /* M3.2.0: the second Sunday of March; J60; 59 */
    int64_t time;         /* seconds after midnight; may be negative, or of a later day */
};

struct zone {
    int64_t offset;              /* before the first change, in seconds */
    struct zone_change *changes; /* in order */
    size_t count;
    /* After the last change. */
    int64_t standard, summer; /* offsets; equal: there is no summer time */
    struct zone_day begins, ends;
};

/* "UTC", "Z" or an offset like "-03:00". False: it is none. */
bool zone_of_offset(struct slice text, struct zone *ret_zone);
/* Whether it may be a name of the database, and no path to anywhere else: "America/Sao_Paulo". */
bool zone_name_is_possible(struct slice name);
/* From a file's bytes; the changes are put into `memory`. STATUS_INVALID: it is no such file; STATUS_NO_MEMORY. */
enum status zone_read(struct slice file, struct arena *memory, struct zone *ret_zone, struct error *err) MUST_CHECK;

/*
 * The offset, in ms, of a time that a wall clock there shows. Of one that it shows twice the earlier is meant; one that it
 * skips is as long after the skip as it would have been after its beginning. So do Java and Python.
 */
int64_t zone_offset_ms(const struct zone *zone, int64_t local_ms);

#endif
