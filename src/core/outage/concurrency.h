/*
 * concurrency.h - how many sends at once a destination gets.
 *
 * The limit starts at 5 and doubles while answers are good. It is judged by rounds of answers to what was sent while all
 * slots were in use. When failures pass 5 % or good answers take 1.7 times as long as at their best, it is tried with
 * less; it stays lower only if less load helped or delivered the same. What does not depend on the load is left alone:
 * that sign is not heeded for a while. After a fall the limit rises in steps of a sixteenth. An outage moves nothing, and
 * the way back starts at 5 again and doubles up to what was borne before.
 *
 * How it is used: concurrency_begin for what takes slots, and for each of those either concurrency_give_back or
 * concurrency_answer with the pass that concurrency_begin gave. Not adaptive, the limit is what is configured.
 */
#ifndef CORE_OUTAGE_CONCURRENCY_H
#define CORE_OUTAGE_CONCURRENCY_H

#include "core/outage/concurrency_round.h"

enum {
    CONCURRENCY_FIRST = 5,       /* where it starts */
    CONCURRENCY_STEP = 16,       /* a rise after a fall is one part in so many of the limit, and one at least */
    CONCURRENCY_WAIT_MS = 1000,  /* between such rises, */
    CONCURRENCY_WAIT_MAX_MS = 60 * 1000, /* and after rises that went wrong, in a row, at most so long */
    CONCURRENCY_IGNORE_MS = 10 * 1000,   /* a sign that less load does not change is not heeded for so long, */
    CONCURRENCY_IGNORE_MAX_MS = 5 * 60 * 1000, /* and, found again and again, at most so long */
};

/* What speaks for less. */
enum concurrency_sign {
    SIGN_NONE,
    SIGN_FAILURES,
    SIGN_SLOW,
    SIGN_COUNT
};

/* Why the limit is what it is. */
enum concurrency_reason {
    LIMIT_CONFIGURED, /* it is not to adapt, */
    LIMIT_MAX,        /* or has come to what is configured */
    LIMIT_STARTS,     /* it has just begun, or the destination has come back, and doubles */
    LIMIT_BORNE,      /* more went wrong: the next step is tried when it has waited */
    LIMIT_RISES,      /* step by step */
    LIMIT_TRIAL,      /* half for one round, to see whether the load is to blame */
    LIMIT_OUTAGE,     /* no answer was good: it is left as it is until one is */
};

/* A sign that was found to have nothing to do with the load. */
struct ignored_sign {
    instant since; /* INSTANT_NONE: it is heeded */
    int64_t ms;    /* not for so long, */
    double level;  /* unless it is much stronger than this */
};

struct concurrency {
    int64_t max; /* configured */
    bool adaptive;
    int64_t limit;
    uint32_t number; /* of the round: counts changes too */
    uint32_t full;   /* times that all slots were in use */
    int64_t first;      /* of the round's first sends so many began, */
    int64_t first_open; /* and so many of these are not answered */
    struct round round;
    struct round_figures base;  /* the last round that was borne, or with signs that are not heeded; limit 0: none */
    struct round_figures borne; /* such rounds in all, how many at once ever */
    struct round_figures seen; /* the first of the rounds in a row that show a sign which is heeded; limit 0: none does */
    instant seen_at;
    struct round_figures high; /* the one whose signs are being tried with half of it; limit 0: none is */
    enum concurrency_sign sign; /* of that one */
    int64_t doubles_to; /* up to there it has been borne, or may be: above it the limit rises in steps */
    int64_t fell_from;  /* with so many it went wrong last; 0: it never did */
    enum concurrency_sign fell_for; /* what went wrong then */
    instant judged_at;  /* when the limit last rose or fell; INSTANT_NONE: never */
    int64_t wait_ms;    /* from then on to the next rise, */
    int64_t step;       /* and by how much: twice as much as the last, while that goes well */
    double best_ms;     /* the shortest median; 0: none seen */
    struct ignored_sign ignored[SIGN_COUNT];
    bool outage;
};

/* Goes with each send. */
struct concurrency_pass {
    uint32_t number, full;
    bool first;
    instant at;
};

/* What became of one. */
struct concurrency_answer {
    bool good;  /* it does not blame the destination */
    bool asked; /* the destination asked for less, and said for how long */
    int64_t latency_ms;
};

void concurrency_init(struct concurrency *concurrency, int64_t max, bool adaptive);
/* The same of one that has been in use: all that was found is forgotten. */
void concurrency_restart(struct concurrency *concurrency, int64_t max, bool adaptive);
/* What is configured, after a reload: what was found stays, but a higher limit is tried at once. */
void concurrency_configure(struct concurrency *concurrency, int64_t max, bool adaptive);

/* `count` slots are taken; so many are in use then. */
struct concurrency_pass concurrency_begin(struct concurrency *concurrency, int64_t count, int64_t under_way, instant now);
/* Nothing was sent with them after all. */
void concurrency_give_back(struct concurrency *concurrency, struct concurrency_pass pass, int64_t count);
void concurrency_answer(struct concurrency *concurrency, struct concurrency_pass pass,
                        const struct concurrency_answer *answer, instant now);
/* The destination is held for a reason of its own: what is sent from now on is its way back. */
void concurrency_outage(struct concurrency *concurrency);

enum concurrency_reason concurrency_reason(const struct concurrency *concurrency);
/* When the next step is tried, if all slots are in use; INSTANT_NONE: not by time. */
instant concurrency_rises_at(const struct concurrency *concurrency);

#endif
