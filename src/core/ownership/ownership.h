/*
 * ownership.h - what a node does about what it saw of the others.
 *
 * A shard has one owner, a session: one run of a node. Each second the node beats: it raises a number in its own row of
 * the store. It trusts itself for OWNERSHIP_TRUST_MS from before it sent the last beat that was answered; without trust it
 * begins no send and claims nothing. To the others it is dead when they have read the same number for OWNERSHIP_DEAD_MS.
 * Whoever sees that fences it: one transaction, which fails if the number has moved, ends its session and frees its
 * shards; from then on nothing that it writes is taken. So between its last send and the first of another lies the
 * difference of the two.
 *
 * Times here are milliseconds of a clock that is never set and runs on while the machine sleeps; each is compared with
 * others of the same machine only. A clock of the day that somebody sets takes nothing from the living.
 */
#ifndef CORE_OWNERSHIP_OWNERSHIP_H
#define CORE_OWNERSHIP_OWNERSHIP_H

#include "base/instant.h"
#include "core/ownership/placement.h"

enum {
    OWNERSHIP_BEAT_MS = 1000,
    OWNERSHIP_TRUST_MS = 4500,
    OWNERSHIP_DEAD_MS = 6000,
    OWNERSHIP_MARGIN_MS = 2000, /* that a send may last beyond its timeout, as far as others are concerned */
};

/* One session of another, for as long as this node has looked without a break. */
struct session_watched {
    int64_t session, beat;
    int64_t since; /* when that beat was seen first */
};

struct ownership {
    int64_t session; /* our own */
    int64_t trusted_until;
    struct session_watched watched[NODES_MAX];
    size_t watched_count;
    int64_t settled_at; /* since when the same nodes run */
    bool gives;         /* a shard is on its way to another: */
    uint64_t giving;    /* its key */
};

enum ownership_act {
    OWNERSHIP_FENCE, /* the session that has this beat */
    OWNERSHIP_TAKE,  /* the shard, which is free */
    OWNERSHIP_GIVE,  /* the shard: claim nothing more of it, let its sends end, save its state, free it */
    OWNERSHIP_ENDED, /* our own session: it was fenced; begin another, which owns nothing */
};

struct ownership_action {
    enum ownership_act act;
    struct slice shard; /* as it was seen */
    int64_t session, beat;
};

/* A session begins: it owns nothing and is not trusted before its first beat was answered. */
void ownership_init(struct ownership *ownership, int64_t session);
/* The beat that was sent then has been answered: our row still had our session. */
void ownership_beaten(struct ownership *ownership, int64_t sent_at);
/* Whether a send or a claim may begin. */
bool ownership_trusted(const struct ownership *ownership, int64_t now);
/* The store could not be reached: how long others have been silent is not known any more. */
void ownership_away(struct ownership *ownership);
/* What to do about what was seen, which is as old as `now`; each of them may fail, and is said again by the next look. */
size_t ownership_look(struct ownership *ownership, const struct cluster_seen *seen, int64_t now, int64_t *placement,
                      struct ownership_action *ret_actions, size_t max);

/*
 * When jobs that a session had claimed may be taken for in doubt: none of its sends can be under way any more. By the
 * store's clock. One that ended in order left none.
 */
instant ownership_ripe_at(instant ended_at, bool in_order, int64_t timeout_ms);

#endif
