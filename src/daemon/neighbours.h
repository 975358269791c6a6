/*
 * neighbours.h - what is wrong with the nodes that share the store, from what looks at it show: who was taken for dead and
 * stays away, whose configurations differ, and whether the ends of chains that were seen are still there.
 */
#ifndef DAEMON_NEIGHBOURS_H
#define DAEMON_NEIGHBOURS_H

#include "engine/engine.h"
#include "store/trail.h"

enum {
    NEIGHBOURS_GONE_MS = DAY_MS,   /* who stays away for longer was taken away */
    NEIGHBOURS_HEADS_MS = MINUTE_MS, /* from one look at the ends of chains to the next */
};

/* Times of a node's own are milliseconds of a clock that is never set. All zero: nothing was seen yet. */
struct neighbours {
    bool differ;
    int64_t differ_since;
    bool looked;
    int64_t looked_at; /* at heads */
    struct {
        struct trail_head head;
        instant at; /* when it was written */
    } seen[TRAIL_CHAINS_MAX];
    size_t seen_count;
};

/* Fills all but `missing`. Sessions are in the order of their numbers. */
void neighbours_look(struct neighbours *neighbours, const struct session *sessions, size_t count, int64_t steady,
                     instant now, struct nodes_news *ret_news);
/*
 * Once a minute: `ret_news->missing` is the end of a chain that was seen before and is there no more, or empty. What is
 * older than `retention_ms` may have been trimmed; 0: nothing is.
 */
enum status neighbours_heads(struct neighbours *neighbours, struct store_reader *reader, int64_t retention_ms,
                             int64_t steady, instant now, struct nodes_news *ret_news, struct error *err) MUST_CHECK;

#endif
