/*
 * period.h - a day or a week: every KPI of the documents with its target, and the lists that their controls ask for.
 *
 * Figures come from the days that the engine has counted (days.h), exactly. The lists are of dead letters that are there now
 * and died in that time, the newest; counts by code are of all that died.
 */
#ifndef ENGINE_REPORTS_PERIOD_H
#define ENGINE_REPORTS_PERIOD_H

#include "base/buffer.h"
#include "core/history/kpi.h"
#include "engine/days.h"
#include "store/store.h"

enum {
    PERIOD_DAYS_MAX = 7,
    PERIOD_LETTERS_MAX = 100,     /* of each list */
    PERIOD_LOOKED_AT_MAX = 20000, /* dead letters, for these */
    PERIOD_BYTES_MAX = 8 * 1024 * 1024,
};

struct period_destination {
    struct slice name;
    struct daybook book;
    unsigned days; /* bits of those that are in it */
};

struct period_letter {
    struct slice destination, tenant, id, code, error;
    instant dead_at;
    int64_t attempts;
};
struct period_list {
    struct period_letter items[PERIOD_LETTERS_MAX];
    size_t count;
    int64_t more; /* that did not fit */
};

struct period {
    bool weekly;
    instant from, to; /* whole days */
    char dates[PERIOD_DAYS_MAX][DAYBOOK_DATE_BYTES + 1];
    size_t date_count;
    struct daybook total, days[PERIOD_DAYS_MAX];
    struct period_destination *destinations; /* in order of name */
    size_t destination_count, destination_capacity;
    struct period_list permanent, exhausted;
    bool letters_cut; /* there are more dead letters than were looked at */
    bool unfinished;  /* the time is not over */
    /* Where reading stands. */
    int phase;
    struct slice before;
    int64_t before_seq;
    size_t looked_at;
};

/* Of the day that `at` is in, or of the week from Monday to Sunday. */
void period_begin(struct period *period, const struct config *config, bool weekly, instant at, instant now);
/* A piece of some milliseconds; *ret_more: call it again. Texts live in `memory`. */
enum status period_read(struct period *period, struct store_reader *reader, struct arena *memory, bool *ret_more,
                        struct error *err) MUST_CHECK;

void period_json(const struct period *period, struct json_writer *json);
void period_text(const struct period *period, struct buffer *out);
void period_html(const struct period *period, struct buffer *out);
/* "Daily report, 2025-01-12": at most PERIOD_TITLE_BYTES. */
enum { PERIOD_TITLE_BYTES = 64 };
void period_title(const struct period *period, char ret_title[PERIOD_TITLE_BYTES]);

#endif
