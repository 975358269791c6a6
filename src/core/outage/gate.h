/*
 * gate.h - may this destination be sent to now, and if not, why and until when.
 *
 * The same answer stops the dispatcher and is printed by `why`. It is put together from the
 * operator's pause, refused answers (block.h), the mode (contingency, ramp), the breaker, the destination's own wish for
 * a pause, cycles, and the limit of concurrency that was found by trying; rates are counted
 * elsewhere and narrow the answer (gate_narrow). Outside normal mode the breaker has no say: the mode
 * lets through less than it would, and the breaker begins anew when the mode is left.
 *
 * How it is used: gate_tick when time has passed or before asking, gate_ask, gate_take for what
 * is going to be sent, and for each of those either gate_give_back or gate_note with the pass
 * that gate_take gave: a permit. What changed is in the news that each call returns, once.
 *
 * Without rules only the pause, the wish and a fixed concurrency hold.
 */
#ifndef CORE_OUTAGE_GATE_H
#define CORE_OUTAGE_GATE_H

#include "core/outage/block.h"
#include "core/outage/breaker.h"
#include "core/outage/concurrency.h"
#include "core/outage/contingency.h"
#include "core/outage/health.h"
#include "core/outage/outage.h"

enum gate_hold {
    HOLD_NONE,
    HOLD_PAUSED,      /* by an operator */
    HOLD_BLOCKED,     /* it refuses us, or nothing can be sent to it as it is set */
    HOLD_CONTINGENCY, /* it is down, or the step of the ramp is full */
    HOLD_MAINTENANCE, /* it is away, as it said it would be */
    HOLD_BREAKER,     /* too many sends failed */
    HOLD_THROTTLE,    /* the destination asked for a pause */
    HOLD_RATE,        /* as many as allowed went in this interval */
    HOLD_CYCLE,       /* as many as allowed went in this cycle */
    HOLD_CONCURRENCY, /* as many as allowed are under way */
    HOLD_COUNT
};

enum {
    LIMIT_REPORTED_EVERY_MS = 60 * 1000, /* news of falls of the limit of concurrency come no more often */
    GATE_ANSWERS = 64,               /* that the usual time of an answer is made of, about */
};

/* How a destination is set. Made from its configuration by the gate's owner, which keeps it as long as the gate has it. */
struct gate_rules {
    int64_t concurrency; /* limit */
    bool fixed_concurrency; /* else it starts lower and adapts: see concurrency.h */
    int64_t cycle_every_ms, cycle_batch; /* 0: continuous */
    int64_t closed_max_ms; /* the longest pause that a destination may ask for; 0: no bound */
    struct breaker_config breaker;
    struct contingency_rules contingency;
    int64_t health_every_ms; /* 0: no health check */
    int64_t health_failures;
};

struct gate {
    int64_t concurrency; /* configured limit */
    int64_t under_way;   /* claimed or being sent */
    bool paused;
    instant closed_until; /* by a throttle; INSTANT_NONE: open */
    instant ticked_at;    /* the last time; INSTANT_NONE: never */
    const struct gate_rules *rules; /* NULL: none */
    uint32_t rules_epoch; /* which of them */
    bool was_open; /* at the last tick: neither paused nor closed */
    instant cycle_until;
    int64_t cycle_taken;
    uint32_t cycle;
    struct concurrency adaptive;
    double answer_ms; /* how long answers take of late; nothing was seen while answers is 0 */
    int64_t answers;  /* that were seen, up to GATE_ANSWERS */
    int64_t reported_limit; /* the last fall that was news, */
    instant reported_at;    /* and when; INSTANT_NONE: none was */
    struct breaker breaker;
    struct contingency contingency;
    struct health health;
    struct outage outage; /* the present one, else the last */
    struct block block;   /* of refused answers; its owner tells it of them */
};

struct gate_answer {
    int64_t room; /* how many may go now; 0 when held */
    enum gate_hold hold;
    instant until; /* when to ask again; INSTANT_NONE: when something changes */
};

/* Goes with each send, from the taking of its place to its answer. */
struct gate_pass {
    uint32_t breaker_epoch, mode_epoch, rules_epoch, cycle;
    struct concurrency_pass slot;
    bool look;  /* sent while the destination was held, */
    bool probe; /* or on the way back: sent to see how the destination is: what a failure costs the job is in outage.h */
};

/* What a send saw. */
struct gate_result {
    bool sent; /* false: for a reason of our own it never left */
    enum outcome outcome;
    struct slice code;
    int64_t latency_ms;
    bool asked; /* the destination asked for a pause, and said how long */
    int64_t job, tenant;    /* whose, numbers from 1 */
    instant look_failed_at; /* of the job; INSTANT_NONE: never */
};

/* The limit of concurrency fell, and that helped. */
struct limit_change {
    bool fell;
    int64_t limit, from;
    enum concurrency_sign sign; /* why */
};

/* What changed, to be reported once. */
struct gate_news {
    struct breaker_change breaker;
    struct mode_change mode;
    enum health_change health;
    struct limit_change limit;
};

/* What outlives a restart. */
struct gate_saved {
    bool paused;
    instant closed_until;
    struct breaker_saved breaker;
    struct contingency_saved contingency;
    struct outage outage;
    struct block_saved block;
};

/* `first_check_at` of the health check. */
void gate_init(struct gate *gate, const struct gate_rules *rules, instant now, instant first_check_at);
/* Other rules, after a reload; what is known stays. Of a gate without rules it is gate_init that keeps pause and sends. */
void gate_configure(struct gate *gate, const struct gate_rules *rules, instant now);
struct gate_saved gate_save(const struct gate *gate);
/* After gate_init. */
void gate_restore(struct gate *gate, const struct gate_saved *saved, instant now);

struct gate_news gate_tick(struct gate *gate, instant now);
struct gate_answer gate_ask(const struct gate *gate, instant now);
/* Nothing limits it but how many are under way: it is not held, and no cycle, step or probe counts them. */
bool gate_flows(const struct gate *gate, instant now);
/* How many may be under way as things are: what was found by trying, the step on the way back, a cycle's batch. */
int64_t gate_slots(const struct gate *gate);
/* Whether what goes now is sent to see how the destination is. */
bool gate_looks(const struct gate *gate);
/* Whether nothing says that the destination is away or wants to be left alone, full or not. */
bool gate_is_well(const struct gate *gate, instant now);
/* Signs of an outage in a row, with nothing good since. */
int64_t gate_signs(const struct gate *gate);
/* Another limit allows only `room`, more again at `until`; the tighter one is named. */
void gate_narrow(struct gate_answer *answer, enum gate_hold hold, int64_t room, instant until);
/* When gate_tick has something to do, or a hold ends by time alone; after gate_tick for `now`. INSTANT_NONE: never. */
instant gate_next(const struct gate *gate, instant now);

/* Whether gate->cycle selects no more: the next that is taken begins another. */
bool gate_cycle_over(const struct gate *gate, instant now);

/* `count` at most the room that was given. */
struct gate_pass gate_take(struct gate *gate, int64_t count, instant now);
/*
 * Whether nothing has changed since that speaks against what has a pass but was not sent yet. Else it is to be given back,
 * and the gate to be asked again.
 */
bool gate_pass_stands(const struct gate *gate, struct gate_pass pass, instant now);
/* They found nothing to send after all. */
void gate_give_back(struct gate *gate, struct gate_pass pass, int64_t count);
/* One was answered. */
struct gate_news gate_note(struct gate *gate, struct gate_pass pass, const struct gate_result *result, instant now);

/* The destination wants no request before `until`; an earlier wish never shortens a later one. */
void gate_close_until(struct gate *gate, instant until);
/* A health check was answered. */
struct gate_news gate_health(struct gate *gate, bool well, instant now);
bool gate_health_due(const struct gate *gate, instant now);
void gate_health_begin(struct gate *gate, instant now);
/* A job's last try failed with an error that may pass: see contingency_exhausted. After gate_note of that try. */
struct gate_news gate_exhausted(struct gate *gate, const struct contingency_end *end, instant now, bool *ret_keep);
/* Of what goes when it looks: whether a job may that has failed in this outage already. */
bool gate_takes_used(const struct gate *gate, instant now);
/* The operator. */
struct gate_news gate_enter_contingency(struct gate *gate, instant now);
struct gate_news gate_leave_contingency(struct gate *gate, instant now);
/* The destination is not in the configuration any more. */
struct gate_news gate_remove(struct gate *gate, instant now);

/* "paused", "throttle"...: the word of `held_by`; NULL for HOLD_NONE. */
const char *gate_hold_name(enum gate_hold hold);

#endif
