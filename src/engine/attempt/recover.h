/*
 * recover.h - what an earlier process and time have left to do: lost leases, jobs that are due, old events.
 */
#ifndef ENGINE_ATTEMPT_RECOVER_H
#define ENGINE_ATTEMPT_RECOVER_H

#include "base/instant.h"
#include <stdbool.h>

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
    instant trim_at;
};

void recover_orphans(struct engine *engine);
void promote_due(struct engine *engine);
void trim_events(struct engine *engine);

#endif
