/*
 * world.h - one world: the real engine and the memory store in virtual time, among receivers, operators, workers and
 * a machine that all misbehave as the world's seed says.
 *
 * Two clocks: `mono` only runs forward and is what timers and answers go by; the wall clock that the engine is shown is
 * set forward and back. Everything that happens is a timer; those of the same moment fire in an order drawn anew, so
 * that a seed is also an interleaving. Nothing is drawn from anywhere but the seed: it plays again exactly.
 */
#ifndef WORLD_WORLD_H
#define WORLD_WORLD_H

#include "base/heap.h"
#include "base/map.h"
#include "core/fairness/shares.h"
#include "engine/engine.h"
#include "engine/pull.h"
#include "engine/settlement.h"
#include "support/check.h"
#include "support/folder.h"

enum {
    CLIENT_DESTS = 4,
    DESTS = CLIENT_DESTS + 2, /* with those of two webhooks that are told of alerts */
    TENANTS_MAX = 6,
    TENANT_NOTIFY = TENANTS_MAX, /* whose jobs tell of alerts */
    LANES_MAX = 3 * DESTS * (TENANTS_MAX + 1), /* one that went with its last job and comes again has another number */
    JOBS_MAX = 512,      /* of clients, */
    JOBS_NARROW = 3000,  /* or so many, most of them for one receiver */
    NOTES_MAX = 65536,   /* that tell of alerts */
    ID_BYTES = 160,
    TENANT_BYTES = 16,
    CLAIMS_OUT_MAX = 4096,
    CONFIGS = 3,
    HOLD_GRACE_MS = 2000, /* a claim that was decided when a hold began may still leave for the store; its job is not sent */
    CLAIM_LATE_MS = 5000, /* what takes longer is asked for again, as the engine has it */
    PERIODS_KEPT = 64,
    FILLED_MAX = 512,
};

/* What goes wrong, for the figures. */
enum fault {
    FAULT_CRASH,
    FAULT_STORE,        /* a transaction that fails, and may be tried again */
    FAULT_STORE_BROKEN, /* one after which the process must end */
    FAULT_STORE_READ,
    FAULT_STORE_AWAY,   /* it cannot be reached for a while, and the last answer may be lost */
    FAULT_CLOCK_FORWARD,
    FAULT_CLOCK_BACK,
    FAULT_ERROR,     /* an answer that says so */
    FAULT_SLOW,      /* longer than the timeout, or than the lease */
    FAULT_LOST,      /* delivered, the answer lost */
    FAULT_LIE,       /* 200 with a failure inside, delivered and not, "never arrived" of one that did */
    FAULT_ABSURD,    /* a Retry-After of years, or of nothing */
    FAULT_OUTAGE,    /* a request into an outage */
    FAULT_OVERLOAD,  /* a request beyond what the receiver bears */
    FAULT_REFUSED,   /* a request with credentials that are none */
    FAULT_UNSENT,    /* it never left, for a reason of our own */
    FAULT_HEALTH,    /* a check that says something else than is */
    FAULT_WORKER,    /* a pull worker that fails, is late or vanishes */
    FAULT_RELOAD,
    FAULT_OPERATOR,
    FAULT_COUNT
};
const char *fault_name(enum fault fault);

/* The ten of the architecture, in its order, that everything ends once the faults do, and that alerts are told once. */
enum invariant {
    INVARIANT_NONE,
    INVARIANT_DURABLE,
    INVARIANT_STATE,
    INVARIANT_LEASE,
    INVARIANT_ATTEMPTS,
    INVARIANT_SILENCE,
    INVARIANT_MEMORY,
    INVARIANT_TURNS,
    INVARIANT_RAMP,
    INVARIANT_SECRETS,
    INVARIANT_LIMITS,
    INVARIANT_PROGRESS,
    INVARIANT_ALERTS,
    INVARIANT_COUNT
};

/* Something that is broken on purpose, to see that it is found. */
enum sabotage {
    SABOTAGE_NONE,
    SABOTAGE_LOST_INSERT,  /* acknowledged, but not stored */
    SABOTAGE_LOST_SETTLE,  /* said to be recorded, but is not */
    SABOTAGE_DOUBLE_SEND,
    SABOTAGE_STALE_SETTLE, /* a stale token is taken for the right one */
    SABOTAGE_SPEND_HELD,   /* a held job loses a try */
    SABOTAGE_RETRY_REFUSED, /* a permanent error is tried again */
    SABOTAGE_EARLY_RETRY,  /* sooner than the policy says */
    SABOTAGE_NAMELESS_DEAD,
    SABOTAGE_HOARD,        /* the engine's memory grows */
    SABOTAGE_UNFAIR,       /* one tenant's claims find nothing for a long time */
    SABOTAGE_NO_RAMP,      /* the engine believes in a steeper ramp than was configured */
    SABOTAGE_TALKATIVE,    /* a payload in the log */
    SABOTAGE_NO_LIMIT,     /* the engine believes in more places than were configured */
    SABOTAGE_NO_ANSWER,    /* a send whose end is never told */
    SABOTAGE_NO_WAKE,      /* a wish to be woken is forgotten */
    SABOTAGE_SECOND_ADDRESS, /* used although the first is well */
    SABOTAGE_REDRIVE_OFTEN, /* the engine believes in more redrives than were configured */
    SABOTAGE_NO_RATE,      /* and in higher rates */
    SABOTAGE_UNTOLD,       /* one entry of notify is told something else */
    SABOTAGE_LANE_LOST,    /* likewise, until the engine has forgotten it */
    SABOTAGE_NO_ADAPTING,  /* the engine believes in more at once than it tells */
    SABOTAGE_ALERT_LOST,   /* what stands is not kept over a crash */
    SABOTAGE_NO_SHARES,    /* one tenant's share is all the slots */
    SABOTAGE_ONE_HOLDS_ALL, /* a refused job is taken for a destination that nothing can be sent to */
    SABOTAGE_FREE_AGAIN,   /* it is forgotten that a job has used up its free failure */
    SABOTAGE_FAILED_FIRST, /* what has failed in an outage goes by its rank */
    SABOTAGE_EAGER_BREAKER, /* the engine believes in a lower rate of failures than was configured */
    SABOTAGE_DOUBT_FORGOTTEN, /* a transaction whose answer was lost is taken for one that never was */
    SABOTAGE_READ_LOST,    /* the answer to what the engine asked the store never comes */
    SABOTAGE_SHORT_LEASE,  /* the engine believes in a longer lease than the store has */
    SABOTAGE_COUNT
};

struct world;
struct lane_state;

struct timer {
    struct heap_node node; /* first; by mono */
    void (*fire)(struct world *world, struct timer *timer);
};

/* What the receiver and the checks know of a job. */
struct shadow {
    char id[ID_BYTES];
    int dest, tenant;
    bool acknowledged;
    bool gone; /* deleted, and it was said why */
    enum job_state state;
    int64_t seq, last_event, token;
    instant deadline;
    int64_t lease_until_mono;
    int64_t retry_count;
    /* of this generation */
    bool may_complete;
    int delivered_epoch, refused_epoch; /* of the engine that heard so; -1: none */
    /* the claim */
    int64_t claim_mono, decided_mono, decided_limit;
    int claim_epoch; /* of the engine that made it; -1: a worker did */
    bool unsent; /* and nothing came of it yet */
    /* the send */
    struct flight *flight;
    bool sent_held; /* while the destination was in contingency, recovering or half-open */
    bool sent_calm; /* and when it was nothing of the kind */
    instant look_failed_at; /* its last look that failed, as the store was told; 0: none */
    int64_t answered_mono;  /* by the first address; 0: never */
    int64_t answered_claim_mono; /* of the claim that was answered, */
    instant answered_top;   /* and where the breaker's window ended then */
    bool answered_bad;
    /* the end */
    bool exhausted; /* what it died of */
    bool was_dead;  /* before the transaction under way */
    int64_t dead_mono, redrives_auto;
    /* what its answer must lead to */
    struct {
        bool set, unspent, spent, refused, delivered;
        int64_t token, retry_count, retries_max;
        instant look_failed_at; /* of a look that fails; 0: of none */
        instant run_low, run_high, latest; /* of a retry that spends; of any other try */
    } expected;
    bool received; /* the receiver has it */
};

struct flight {
    struct timer timer; /* first */
    struct send *send;
    struct answer answer;
    struct shadow *shadow;
    struct flight *next, **link;
};

/* A job that a pull worker has. */
struct task {
    struct timer timer; /* first */
    int64_t seq, token;
    /* what it says of it, until the store has answered */
    struct job job;
    struct arena memory;
    struct lease_nack nack;
    struct settlement settlement;
    struct store_op op;
    int epoch; /* of the engine that decided it */
    struct task *next, **link;
};

struct receiver {
    bool down, slow, flapping;
    int64_t flaps_at, up_at; /* mono */
    int64_t capacity;    /* requests at once; 0: any */
    size_t badness;      /* of 100 requests so many fail somehow */
    enum outage_kind { DOWN_REFUSES, DOWN_HANGS, DOWN_SAYS_503 } how;
    enum refused_kind { REFUSED_NONE, REFUSED_JOBS, REFUSED_TENANT, REFUSED_ALL, REFUSED_KINDS } refused; /* with 401 */
    int refused_tenant;
    int64_t refused_until; /* mono */
    bool second_refuses;   /* likewise at its second address */
    int64_t at_once;
};

/* What went within a rate. */
struct bucket {
    double paid_mono; /* until when it is paid for: what the engine keeps over a reload, and nearly over a crash */
    int64_t late_ms;  /* of those that are not paid off: how much later than it was decided one of them went */
};

/* What a configuration says of a destination, looked up once: the checks ask for it at every step. */
struct dest_rules {
    const struct destination_config *config; /* NULL: it is not there */
    int64_t weights[TENANTS_MAX + 1];        /* of each tenant */
};

/* What the checks know of a destination. */
struct dest_view {
    int64_t under_way[2];   /* at the first address and the second */
    int64_t dispatched;     /* jobs asked for by all claims */
    instant returned;       /* since when its last way back */
    struct bucket claimed, sent;
    int64_t cycle_sends;    /* in the interval that began then */
    int64_t cycle_mono;
    instant recovering_since; /* of the mode's present recovery */
    instant mode_before;      /* since when the mode was that before the clock was set, a reload or a start: not judged */
    int64_t recovering_sent;
    int64_t limit, limit_mono; /* the largest limit of concurrency of late, and when it was last seen */
    int64_t full_mono;      /* since when its dead letters are seen to be full; -1: they are not */
    bool closed;            /* its breaker, when it was last looked at, */
    int64_t closed_mono;    /* since when */
    instant counted_top;    /* the latest time at which it counted an answer, */
    int64_t counted_mono;   /* and since when it counts: a clock that was put back far has it begin anew */
    int64_t probe_mono;     /* last look while in contingency; -1: none that counts */
    int64_t by_turn;        /* slots that go by turns over all classes, before what is judged */
    struct block_view {
        struct block_row {
            int job, jobs;     /* the last that was refused with nothing good of its tenant since, and how many there were */
        } rows[TENANTS_MAX + 1];
        unsigned tenants;  /* a bit for each that was refused, with nothing good of anybody since; */
        int last;          /* who was the last, */
        bool alone;        /* and whether one of them had nobody beside it */
        bool blocked;      /* was seen so */
        int64_t look_mono; /* last look while blocked; -1: none that counts */
        int looker;        /* whose it was */
        bool hastened;     /* by another tenant, since it is blocked */
    } blocks[2];           /* of the first address and the second */
};

struct lane_view {
    int dest, tenant; /* dest -1: not known yet */
    struct bucket claimed, sent;
    /* its turn */
    int64_t ready;       /* in the store */
    int64_t taken;       /* of these, by the transaction that is looked at */
    int64_t older;       /* of these, when more came last, */
    int64_t grew_mono;   /* which was then */
    int64_t asked;       /* by claims that are on their way there */
    bool waits;          /* has work that nobody asked for */
    int64_t from;        /* the destination's dispatches when that began, or when it last had a turn */
    int64_t asked_from;  /* when it last had one that is on its way; not more than `from`: none */
    int64_t came_mono;   /* when it began; -1: with its last turn */
    int64_t crossed;     /* what it had waited when a way back, or another configuration, began since; -1: none did */
    bool refused;        /* the store has, since it last had a turn, */
    int64_t refused_mono; /* and when it last did */
    /* what it has claimed */
    int64_t running;     /* in the store */
    int64_t flights;     /* being sent */
    int64_t unsent;
    int64_t overtaken;   /* by sends of others, while it had some */
    int64_t idle_mono;   /* since when it has work, and nothing holds it; -1: not so */
    int64_t unknown_mono; /* since when it has ready jobs and the engine does not know it; -1: it does */
    int64_t dead;
    int64_t full_mono;    /* since when these are as many as the tenant may have; -1: they are not */
    int64_t block_look_mono; /* as of a destination */
    /* its share of the slots */
    int64_t held[SIDE_COUNT]; /* before what is judged */
    instant active_at;        /* when it last had work that could go, or a slot; INSTANT_NONE: not since a change */
    int64_t maybe_mono;       /* when it last had any work or a slot; -1: never */
    int64_t claiming;         /* jobs of it, before what is judged */
    int64_t behind;           /* slots that it took while others had more urgent work */
    int64_t by_turn_waited;   /* what went by turns over all classes while it waited */
    int64_t passed_from;      /* the destination's dispatches when it came to hold its share, with its turn before it; -1: it does not */
};

/* A claim on its way to the store. They arrive there in the order in which they leave. */
struct claim_out {
    int64_t lane, count, from; /* from: the destination's dispatches with it */
    int64_t turn; /* as count; 0: it is a look and no turn */
    int64_t mono, lease_until_mono;
    int64_t decided_mono; /* earlier than it left */
    int64_t limit;        /* of concurrency, then */
};

/* When a claim was decided, by which limit of concurrency, and whether on the way back from an outage. */
struct decided {
    int64_t mono, limit;
    bool returned;
};

/* What a world can have, and how often it came to pass. */
enum feature {
    FEATURE_ADAPTIVE,  /* waits that follow how retries fare */
    FEATURE_FALLBACK,  /* sends to the second address */
    FEATURE_LOOK,      /* sends into contingency, to see */
    FEATURE_RAMP,      /* sends on the way back */
    FEATURE_REDRIVE,   /* dead letters that went back by themselves */
    FEATURE_CYCLE,     /* sends in cycles */
    FEATURE_RATE,      /* sends within a rate */
    FEATURE_TENANT_RATE,
    FEATURE_LEASE,     /* jobs given to workers */
    FEATURE_EXTENDED,  /* leases prolonged */
    FEATURE_RETURNED,  /* leases given back unused */
    FEATURE_UNHEARD,   /* acknowledgements that the engine does not hear of */
    FEATURE_TENANT_HOLD, /* seen at claims of others */
    FEATURE_BLOCK_LOOK,  /* sends to see whether a destination or a tenant is still refused */
    FEATURE_UNSENT,    /* claims given back, because things had changed */
    FEATURE_TURN,      /* claims that others waited for */
    FEATURE_ABOVE_SHARE, /* slots taken that others left */
    FEATURE_AHEAD,     /* claims ahead of a free slot */
    FEATURE_BY_CLASS,  /* slots taken where classes count across tenants */
    FEATURE_BY_TURN,   /* of these, before more urgent work */
    FEATURE_LIMIT,     /* sends below a limit of concurrency that adapts */
    FEATURE_OPENED,    /* breakers */
    FEATURE_RECALLED,  /* lanes that the engine had forgotten */
    FEATURE_RAISED,    /* alerts */
    FEATURE_GROWN,
    FEATURE_CLEARED,
    FEATURE_NOTE,      /* jobs that tell of them */
    FEATURE_COUNT
};
const char *feature_name(enum feature feature);

struct figures {
    int64_t worlds, jobs, sends, steps, simulated_ms;
    int64_t ended[STATE_COUNT];
    int64_t faults[FAULT_COUNT];
    int64_t features[FEATURE_COUNT];
    int64_t events;
};

/* From when on a configuration counted. */
struct period {
    int config;
    int64_t since_mono;
};

/* How many operations the engine's next batch had, after it ran. */
struct filled {
    size_t count;
    struct decided by[DESTS]; /* how it decided */
};

struct world {
    uint64_t seed;
    struct random random;
    enum sabotage sabotage;
    bool verbose;

    /* drawn */
    int64_t lasts_ms, disturb_ms, arrive_ms, late_ms, store_lag_ms;
    int tenants, jobs_max;
    bool tells; /* of alerts */
    bool narrow; /* the first receiver bears few at once and is well else, so that this is learnt */
    bool clock_jumps, listens; /* listens: the log is read too */
    int64_t pending_max;
    bool on_disk; /* the store is SQLite's; else it is in memory */
    char folder[FOLDER_BYTES];
    struct config *configs[CONFIGS];
    struct dest_rules rules[CONFIGS][DESTS];
    int64_t shares[DESTS][TENANTS_MAX + 1]; /* the largest of all configurations: one of before is still used up after a reload */
    int config;
    struct period periods[PERIODS_KEPT];
    size_t period_count;
    struct receiver receivers[DESTS];

    /* running */
    int64_t mono, offset;
    int64_t ordered_mono; /* the last order of an operator, or a tenant's first job somewhere */
    int64_t clock_jumped_mono, changed_mono; /* last jump; that, or the last start or reload */
    int64_t unread_until_mono; /* until then the store may not be read */
    struct heap timers;
    struct timer wake, commit, arrival, disturbance, heal;
    struct timer ask;              /* the store, what became of the transaction in doubt */
    bool in_doubt, leaves_with_claim; /* the next one is lost */
    struct batch *doubted;         /* NULL: it was somebody else's than the engine's, who does not wait, */
    struct task *doubted_task;     /* but for this worker; NULL: none */
    struct notice *doubted_notice; /* what it made ready, if it was applied */
    struct store *inner, *store;
    struct store_reader *reader; /* the engine's */
    struct store_reader *eye;    /* the checks' own, of the store inside */
    struct engine *engine;
    int epoch;
    bool healthy, abandoning, broken;
    bool reads_failed; /* one did, of the store */
    struct batch *batches, **batches_end;
    struct flight *flights;
    struct probe_flight *probes;
    struct read_flight *reads;
    struct random read_random; /* of their own, so that a world without delays is the same */
    int64_t read_lag_ms;  /* how long the store takes to answer what the engine asks; 0: at once */
    struct task *tasks;
    struct lease_request request; /* of the one pull worker */
    bool asking;
    void *hoard;
    int log_fd, stderr_fd;

    /* known */
    struct shadow jobs[JOBS_NARROW + NOTES_MAX];
    int job_count, arrived; /* arrived: those of clients */
    int job_of_seq[2 * JOBS_NARROW + 2 * NOTES_MAX];
    struct map notes; /* jobs that tell of alerts, by id */
    struct alert_view *alerts; /* all that ever were */
    struct lane_view lanes[LANES_MAX + 1];
    int lane_top; /* the last of them that ever was */
    const struct lane_state *known[LANES_MAX + 1]; /* as the engine has them, if it does: see shares_know */
    struct dest_view dests[DESTS];
    struct filled filled[FILLED_MAX]; /* of the batch that is being filled */
    size_t filled_count;
    struct claim_out claims[CLAIMS_OUT_MAX];
    size_t claims_first, claims_end;
    int64_t event_number;
    unsigned char event_hash[EVENT_HASH_BYTES];
    int open; /* jobs that have not ended */

    struct figures *figures;
};

static inline size_t below(struct world *world, size_t bound)
{
    return random_below(&world->random, bound);
}
/* Once in `of` times. */
static inline bool once_in(struct world *world, size_t of)
{
    return random_below(&world->random, of) == 0;
}

extern const char *const dest_names[DESTS];
int dest_number(struct slice name);
void tenant_name(int tenant, char ret_name[TENANT_BYTES]);
instant world_now(const struct world *world);
const struct destination_config *world_dest(const struct world *world, int dest); /* NULL: not configured now */
/* From now on that one counts. */
void world_configure(struct world *world, int config);
/* How it was configured then; NULL: not at all. */
const struct destination_config *world_dest_at(const struct world *world, int dest, int64_t mono);
struct shadow *world_job(struct world *world, struct slice id);

void note(struct world *world, const char *what, int64_t a, int64_t b);
void injected(struct world *world, enum fault fault);
static inline void seen(struct world *world, enum feature feature)
{
    world->figures->features[feature]++;
}
/* Prints what was violated, the last steps and how to see it again; ends the process. */
__attribute__((format(printf, 3, 4), noreturn)) void violated(const struct world *world, enum invariant invariant,
                                                              const char *format, ...);

/* draw.c: what the seed says. */
void world_draw(struct world *world);

/* run.c: time, the store, the engine's ports. */
void timer_set(struct world *world, struct timer *timer, int64_t mono);
void timer_clear(struct world *world, struct timer *timer);
void world_start(struct world *world);
void world_run_until(struct world *world, int64_t mono);
void world_stop(struct world *world);
/* The process ends as if the machine had; a new one starts on what is durable. */
void world_crash(struct world *world);
/* One transaction of somebody else's than the engine: the API. False: the store refused it. */
bool world_apply(struct world *world, struct store_op *op, struct arena *memory);
void world_lose(struct world *world);  /* the store is away until it heals */
void world_remove_folder(const struct world *world);
void world_break(struct world *world); /* the store fails for good: the process must end */

/* receivers.c: what answers. */
int64_t receive(struct world *world, struct flight *flight); /* how long it takes */
int64_t receive_check(struct world *world, const struct probe *probe, struct health_answer *answer);
void workers_begin(struct world *world);
void task_doubt_over(struct world *world, bool applied); /* of what a worker said */

/* people.c: who sends jobs, and who meddles. */
/* A tenant's lane, which the engine then knows; 0: there is none, or it cannot be read now. */
int64_t find_lane(struct world *world, struct slice destination, struct slice tenant, struct error *error);
void arrival_fire(struct world *world, struct timer *timer);
void disturbance_fire(struct world *world, struct timer *timer);
void heal_fire(struct world *world, struct timer *timer);
/* A job's place among what is known, before it is there. */
struct shadow *world_expect(struct world *world, int dest, int tenant);
void world_reload(struct world *world, int config);
void purge_dead(struct world *world, int dest);

/* checks*.c: the invariants. */
struct decided decided_now(const struct world *world, int dest);
void check_claims_submitted(struct world *world, const struct batch *batch);
void check_given_back(struct world *world, const struct batch *batch);
void check_claims_refused(struct world *world, const struct batch *batch);
void check_rates_claimed(struct world *world, const struct claim_out *out, int64_t count);
void check_before_apply(struct world *world, const struct store_op *ops, size_t count);
void check_applied(struct world *world, const struct store_op *ops, size_t count);
void check_send(struct world *world, struct flight *flight);
void check_answer(struct world *world, struct flight *flight);

/* checks_refused.c: whom a refusal holds. */
void refused_answered(struct world *world, const struct flight *flight, enum outcome outcome);
void check_refused(struct world *world, int dest); /* after whatever may have been refused there */
void refused_forget(struct world *world, int dest);
int64_t dest_tenants(const struct world *world, int dest); /* that the engine has met, as far as that can be so */

/* checks_outage.c */
bool outage_claims_only(const struct store_op *ops, size_t count);
void check_failed_last(struct world *world, const struct op_claim *claim, const struct claim_out *out);
void outage_answered(struct world *world, const struct flight *flight, enum outcome outcome);
/* After whatever may have opened one. */
void check_breakers(struct world *world);
void check_nack(struct world *world, struct shadow *shadow, const struct job *job, const struct answer *answer);
/* After a crash, a reload or a jump of the clock, by so many ms. */
enum world_change { CHANGE_START, CHANGE_RELOAD, CHANGE_CLOCK };
void check_forget(struct world *world, enum world_change change, int64_t by_ms);
void check_jobs(struct world *world);
void check_progress(struct world *world);
bool dest_rests(const struct world *world, int dest);
bool tenant_dead_full(const struct world *world, int lane); /* it has as many dead letters as it may, and waits for that */
bool dest_has_full_tenant(const struct world *world, int dest);
void check_log(struct world *world);
void check_engine_memory(struct world *world, size_t bytes);

/* checks_alerts.c: that alerts are told once. */
void alerts_submitted(struct world *world, const struct batch *batch);
void alerts_before_apply(struct world *world, const struct store_op *op);
void alerts_applied(struct world *world, const struct store_op *ops, size_t count);
void check_alerts_kept(struct world *world); /* what stands is what the store has */
void check_alerts_over(struct world *world); /* nothing is wrong any more */
void alerts_release(struct world *world);

/* checks_turns.c: 7. */
void turns_asked(struct world *world, const struct op_claim *claim, const struct decided *by); /* leaves for the store */
struct claim_out turns_answered(struct world *world, const struct op_claim *claim, bool applied); /* is back */
void turns_ready(struct world *world, int64_t lane, int64_t ready); /* in the store, now */
void turns_look(struct world *world);                        /* after whatever changed what is ready */
void turns_sent(struct world *world, struct shadow *shadow, int64_t lane); /* or will not be: see turns_unsent */
void turns_unsent(struct world *world, struct shadow *shadow, int64_t lane);
void turns_ended(struct world *world, int64_t lane); /* a send was answered */
void turns_claimed(struct world *world, struct shadow *shadow, int64_t lane);
void turns_forget(struct world *world, enum world_change change);
int64_t turns_round(const struct world *world, int dest); /* all that may go in one */
int64_t weight_of(const struct world *world, int dest, int tenant); /* by the present configuration, which has it */
void turns_draw(struct world *world); /* what the configurations say of turns, once */

/* checks_shares.c: 7, by slots. */
void shares_know(struct world *world); /* which lanes the engine knows; counts until it is called next */
void shares_before(struct world *world); /* whatever takes slots */
void shares_after(struct world *world, bool answered); /* answered: what is given back was sent */
void shares_look(struct world *world); /* before one is given back */
void shares_forget(struct world *world, enum world_change change);
int64_t shares_weight_may(const struct world *world, int dest); /* of all tenants that may be active */

#endif
