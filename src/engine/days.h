/*
 * days.h - what became of each destination's jobs, day by day, for the reports.
 *
 * The day's book is counted as jobs end, and saved with the end of a minute in which some did; a day that is over is saved
 * by its date, and stays: how errors were judged stays for ever, the trail as long as `retention.audit` says. Days are
 * those of UTC. A crash loses what ended in its last minute.
 */
#ifndef ENGINE_DAYS_H
#define ENGINE_DAYS_H

#include "base/instant.h"
#include "core/history/daybook.h"

#define SPACE_DAY SLICE("day")         /* by date/destination */
#define SPACE_DAY_NOW SLICE("day_now") /* by destination: the one that is not over */

struct config;
struct dest;
struct engine;
struct saved;

struct ended_day;

/* Of a destination. */
struct dest_days {
    struct daybook today;
    char date[DAYBOOK_DATE_BYTES + 1]; /* empty: not known yet */
    bool unsaved;
    struct ended_day *ended; /* the day before, until the store has it; NULL: it does. Freed with the destination */
};

/* The date of that instant, as days are counted. */
void day_of(const struct config *config, instant at, char ret_date[DAYBOOK_DATE_BYTES + 1]);

/* The minute that began at `at` is over. */
void days_minute_over(struct engine *engine, struct dest *dest, instant at, instant now);
/* Saves what there is: the destination is lost. False: there is no room for it yet. */
bool days_close(struct engine *engine, struct dest *dest);
void days_restore(struct engine *engine, const struct saved *saved);

#endif
