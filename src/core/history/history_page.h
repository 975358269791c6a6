/*
 * history_page.h - what became of a destination, minute by minute or hour by hour, in text of bounded size.
 *
 * A page has the points of an hour by minutes, or of a day by hours. It is written from left to right, is text without
 * quotes and control characters, and never longer than HISTORY_PAGE_BYTES_MAX whatever happened: when it has seen so many
 * kinds of failures that those to come might not fit, a point's failures are counted together. A time in which nothing
 * happened is no point and takes no space.
 *
 * Numbers below 512 are exact, others to one in 256; times in steps of a seventh. Pure.
 */
#ifndef CORE_HISTORY_HISTORY_PAGE_H
#define CORE_HISTORY_HISTORY_PAGE_H

#include "base/buffer.h"
#include "base/instant.h"
#include "core/decision/outcome.h"

enum {
    HISTORY_SLOTS_MAX = 60,
    HISTORY_POINT_BYTES_MIN = 19, /* as many are there for each point of a page, the failures counted together */
    HISTORY_HEAD_BYTES_MAX = 12,
    HISTORY_PAGE_BYTES_MAX = HISTORY_HEAD_BYTES_MAX + HISTORY_SLOTS_MAX * HISTORY_POINT_BYTES_MIN,
};

/* How a page divides the time. */
struct history_scale {
    char mark; /* that the page begins with */
    int64_t step_ms, page_ms;
    int pages; /* that are retained besides the one being written */
};
extern const struct history_scale history_minutes, history_hours;

enum history_mode {
    HISTORY_MODE_UNKNOWN,
    HISTORY_NORMAL,
    HISTORY_PAUSED,
    HISTORY_RECOVERING,
    HISTORY_CONTINGENCY,
    HISTORY_BREAKER, /* in its normal mode, but held by that */
    HISTORY_MAINTENANCE,
    HISTORY_MODE_COUNT
}; /* Numbers are stored. */
/* As in the rest of the interface, of modes and of what holds; NULL: unknown. */
const char *history_mode_name(enum history_mode mode);
enum history_mode history_mode_from_name(const char *name);

enum { HISTORY_OTHER = 0 }; /* failures of more classes than had room: at OUTCOME_NONE's place */

struct history_point {
    int64_t delivered;
    int64_t failed[OUTCOME_COUNT]; /* by class */
    int64_t pending, oldest_s;
    int64_t p50_ms, p95_ms, p99_ms; /* negative: nothing was sent */
    int64_t in_flight, limit;
    enum history_mode mode;
};

struct history_page {
    int64_t number; /* of the page since 1970; 0: it is empty */
    int last;       /* the slot written last; -1: none */
    size_t last_at; /* where that begins */
    size_t len;
    char text[HISTORY_PAGE_BYTES_MAX];
};

void history_page_clear(struct history_page *page);
/* One that was written before; what is none is an empty one. */
void history_page_read(const struct history_scale *scale, struct slice text, struct history_page *ret_page);
struct slice history_page_text(const struct history_page *page);

/*
 * Notes a point at a time of the page that is being written. One at the time of the last takes its place. False: it belongs
 * to another page, or is earlier than what is there.
 */
bool history_page_put(const struct history_scale *scale, struct history_page *page, instant at,
                      const struct history_point *point);
/* The last point, if it is of that time. */
bool history_page_last(const struct history_scale *scale, const struct history_page *page, instant at,
                       struct history_point *ret_point);

/* Calls `visit` for each point of a page's text, in order. Text that is none has no points. */
void history_page_each(const struct history_scale *scale, struct slice text,
                       void (*visit)(void *context, instant at, const struct history_point *point), void *context);

/* Two parts of one time: counts are added; of what is a state the higher counts, of the limit and the mode the later. */
void history_point_add(struct history_point *sum, const struct history_point *more);
/* A whole page as one point: counts added, states at their highest, times by how many were sent. False: it has no points. */
bool history_page_sum(const struct history_scale *scale, struct slice text, struct history_point *ret_sum);

/* What the point has of attempts. */
int64_t history_point_sent(const struct history_point *point);

#endif
