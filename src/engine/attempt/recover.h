/*
 * recover.h - what an earlier process and time have left to do: lost leases, jobs that are due, old events.
 */
#ifndef ENGINE_ATTEMPT_RECOVER_H
#define ENGINE_ATTEMPT_RECOVER_H

#include "base/instant.h"
#include <stdbool.h>
#include <stdint.h>

struct dest;
struct engine;

enum {
    ORPHANS_EVERY_MS = 1000,       /* how often lost leases are looked for */
};

struct recovery {
    bool recovering; /* orphans of an earlier session are still being settled */
    bool of_ended;   /* the pages that are read now have those of sessions that have ended */
    instant ripe_at; /* when those can be settled that a session which was fenced may still be sending; INSTANT_NONE: none */
    bool promoting;
    instant promote_at;
    instant orphans_at;
    instant orphans_after; /* the page to come begins after that lease, and that job; INSTANT_NONE: with the first */
    int64_t orphans_after_seq;
    bool orphans_out;
    uint64_t pass; /* of all pages, since the start */
    instant trim_at;
    instant redrive_at; /* no look for dead letters to be sent again before */
    uint64_t export_turn; /* of the last destination whose dead letters were exported */
};

void recover_orphans(struct engine *engine);

/*
 * Of a destination: what others have claimed whose sessions have ended, and may still be sending. It holds slots until it
 * cannot be on the wire any more, so that all owners together send no more at once than is allowed.
 */
struct left_behind {
    int64_t held;    /* slots */
    int64_t seen;    /* in the pass that is under way */
    uint64_t gained; /* the pass that was the last one then */
};
/* It was just gained, with so many claimed by others. */
void left_behind_gained(struct engine *engine, struct dest *dest, int64_t count);
void promote_due(struct engine *engine);
void trim_events(struct engine *engine);

#endif
