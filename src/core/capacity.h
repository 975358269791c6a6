/*
 * capacity.h - how many at once a destination bears, learnt from where it gave way.
 *
 * Trouble with so many under way makes the level below a suspect. It is tried again, each time after a longer wait;
 * a level that goes well for a while is no suspect any more. When several tries in a row went wrong, and what was sent
 * below the level goes well much more often, the level is learnt: the ceiling. From then on nothing goes above it,
 * until more work than it lets through has waited for long without a pause. Then one more is let through at once: when
 * that goes well the ceiling is forgotten, else the next such try comes after twice the time.
 *
 * Failures that have nothing to do with the load come below a level as often as above: nothing is learnt from them,
 * and a ceiling is forgotten that they belie. An outage is one long failure at all levels, and changes no ceiling.
 */
#ifndef CORE_CAPACITY_H
#define CORE_CAPACITY_H

#include "base/instant.h"

enum {
    CAPACITY_VAIN_MIN = 3,    /* tries in a row that brought trouble before a level is learnt */
    CAPACITY_VAIN_MAX = 6,    /* the wait before a try doubles so often */
    CAPACITY_BELOW_MIN = 32,  /* answers from below a level before it is learnt */
    CAPACITY_MEMORY = 256,    /* answers that count, about */
    CAPACITY_WINDOW_MIN = 8,  /* good answers that show that a level is borne, or one and a half times the level */
    CAPACITY_HOLD_MS = 20 * 60 * 1000,      /* work must wait for so long before more than the ceiling is tried, */
    CAPACITY_HOLD_MAX_MS = 160 * 60 * 1000, /* and at most so long after tries in vain */
};

/* What outlives a restart. */
struct capacity_kept {
    int64_t ceiling; /* 0: none is learnt */
    instant since;   /* when it was learnt or last tried */
    int64_t hold_ms; /* before the next try */
};

/* Answers to what was sent with how many at once. */
struct capacity_evidence {
    double below, below_bad; /* not more than a level */
    double above, above_bad; /* more, whichever of them was one too many, */
    double over, over_bad;   /* and those of these that were: a destination may refuse just them */
};

struct capacity {
    struct capacity_kept kept;
    struct capacity_evidence learnt; /* of the ceiling */
    int64_t suspect;                 /* above this level trouble came last; 0: none yet */
    struct capacity_evidence suspected;
    int64_t vain;          /* tries above it in a row that brought trouble */
    int64_t proven;        /* good answers above it in this try */
    bool trouble_below;    /* of the ceiling, to be counted when all has gone well again for a while */
    int64_t calm;          /* good answers in a row */
    instant waiting_since; /* more work than goes; INSTANT_NONE: no */
};

void capacity_init(struct capacity *capacity);
void capacity_restore(struct capacity *capacity, const struct capacity_kept *kept);
/* Another limit is configured: whoever changed it may know more, so that the ceiling is a suspect again. */
void capacity_configure(struct capacity *capacity, int64_t max);

/* Whether so many at once may be tried now. */
bool capacity_allows(const struct capacity *capacity, int64_t level, instant now);
/* When more than the ceiling is tried, if work waits until then; INSTANT_NONE: not foreseeable, or there is no ceiling. */
instant capacity_tries_at(const struct capacity *capacity);
/* Whether work waits that might be sent now. To be told often. */
void capacity_waiting(struct capacity *capacity, bool waiting, instant now);

/* A good answer, with `level` at once; it was the `load`th of them. */
void capacity_good(struct capacity *capacity, int64_t level, int64_t load);
/* A bad one, whatever else it means. */
void capacity_bad(struct capacity *capacity);
/* The try of `limit` at once, more than the suspect level, has gone well for long enough. */
bool capacity_is_proven(const struct capacity *capacity, int64_t limit);
void capacity_prove(struct capacity *capacity, int64_t limit);
/* The try brought trouble, to the `load`th of so many. */
void capacity_refute(struct capacity *capacity, int64_t load, instant now);
/* Trouble that no try brought, with `level` at once. `normal`: the destination was thought to be well. */
void capacity_suspect(struct capacity *capacity, int64_t level, bool normal);
/* The same where the level can hardly be the reason; in normal times it may belie the ceiling. */
void capacity_note_trouble(struct capacity *capacity, int64_t level, bool normal);

#endif
