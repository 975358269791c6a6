/*
 * history.h - what became of each destination, minute by minute for two days and hour by hour for ninety, in the store.
 *
 * Once a minute what was counted since the last time becomes a point of the page being written (core/history), and that page
 * is saved; nothing is counted, and nothing read, besides. A page that is full takes the place of the oldest. So a
 * destination has a fixed size in the store, at most HISTORY_BYTES_MAX, and one where nothing happens is not written.
 *
 * What is noted of a minute that a crash interrupts is lost; a restart in order loses nothing.
 */
#ifndef ENGINE_HISTORY_H
#define ENGINE_HISTORY_H

#include "base/histogram.h"
#include "core/history/history_page.h"
#include "store/store.h"

enum {
    HISTORY_AT_ONCE = 64, /* destinations in one run of the loop: others have work too */
    HISTORY_BYTES_MAX = 100 * 1000,
    HISTORY_NAME_TAIL = 4, /* of a full page's name, after the destination's: "/m07" */
    HISTORY_PAGES_MAX = 140,
    HISTORY_OPS_MAX = 5, /* that a minute's end of one destination has for the store */
};

#define SPACE_HISTORY SLICE("history")         /* full pages, by destination/m07 and /h07 */
#define SPACE_HISTORY_NOW SLICE("history_now") /* the two being written, by destination: minutes, a line end, hours */

struct dest;
struct engine;

/* Of a destination. */
struct dest_history {
    struct history_page minutes, hours;
    int64_t minute; /* that is being counted, since 1970; 0: none yet */
    int64_t outcomes[OUTCOME_COUNT], delivered; /* counted before it */
    struct histogram duration;                  /* likewise */
    bool unsaved; /* the store has not all of the pages */
};

/* Time has passed: notes the minutes that are over, of some destinations at a time. */
void history_run(struct engine *engine);
/* Notes what there is of this minute: it is lost. False: there is no room for it yet. */
bool history_close(struct engine *engine, struct dest *dest);
/* As the store has it. */
void history_restore(struct engine *engine, const struct saved *saved);
/* The two pages of a value in SPACE_HISTORY_NOW. */
void history_split(struct slice value, struct slice *ret_minutes, struct slice *ret_hours);

#endif
