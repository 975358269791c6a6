/*
 * engine_private.h - what the engine's files share.
 */
#ifndef ENGINE_ENGINE_PRIVATE_H
#define ENGINE_ENGINE_PRIVATE_H

#include "base/map.h"
#include "core/decision/adaptive.h"
#include "core/fairness/rate.h"
#include "core/fairness/shares.h"
#include "core/fairness/turns.h"
#include "core/outage/cycle.h"
#include "engine/alerts.h"
#include "engine/engine.h"
#include "engine/errors.h"
#include "engine/incidents.h"
#include "engine/kept_waits.h"
#include "engine/measures.h"
#include "engine/outgoing.h"
#include "engine/settlement.h"

#include <jansson.h>
#include <stdatomic.h>

enum {
    PROMOTE_MAX = 1000,            /* jobs made ready at once */
    PROMOTE_LETTERS_MAX = 4096,    /* not while so many messages about single jobs are to be written */
    PROMOTE_EVERY_MS = 50,         /* and not more often than this while more are overdue */
    PROMOTE_AT_LEAST_MS = 60 * 1000, /* what is due is looked at this often, whatever is known */
    ORPHANS_MAX = 256,             /* leases looked at together */
    ORPHANS_EVERY_MS = 1000,       /* how often lost leases are looked for */
    UNCONFIGURED_LEASE_MS = 5 * 60 * 1000, /* how often an interrupted attempt at no destination is looked at */
    LEASE_MARGIN_MS = 60 * 1000,   /* an engine's lease outlives the destination's timeout by this */
    LEASES_OUT_MAX = 100 * 1000,   /* of a destination with pull workers, at once */
    LEASE_ANSWER_MAX_MS = 13 * 3600 * 1000, /* longer than the longest lease: a lost one is noticed by its own end */
    STOP_TRIES_MAX = 3,            /* of a settlement while stopping; then the next process finds the attempt in doubt */
    AGAIN_MS = 1000,               /* after a batch that failed */
    HELD_LANES_MAX = 256,          /* tenants of one destination that are held for themselves */
    DEST_CHANGES_MAX = 8,          /* of one destination that are not on their way to the store yet */
    AUDIT_EVERY_MS = 60 * 1000,    /* how often old events are looked for */
    TRIM_MAX = 5000,
    TRIM_AGAIN_MS = 1000,          /* while there are more than that */
    LANE_FORGET_MS = 15 * 60 * 1000, /* how long a lane without work is remembered */
};

/* One event of a destination's. The texts are constants. */
enum { OPERATOR_BYTES = 128 };

struct dest_change {
    const char *change;       /* paused, resumed, a mode's name, breaker_open... */
    const char *cause, *sign; /* NULL: none */
    uint32_t cycle;           /* whose figures it tells; 0: of none */
    const struct lane_state *lane; /* that it is about; NULL: the whole destination */
    instant at;
    char by[OPERATOR_BYTES]; /* whose order it was; empty: nobody's */
};

/* Where the search for dead letters to be redriven stands. */
struct auto_redrive {
    struct rate_limiter rate;
    int64_t before_seq; /* the next page; 0: a new pass */
    instant look_at;
    instant next_due; /* of those that this pass has seen and left; INSTANT_NONE: none */
    size_t out;       /* on their way to the store */
};

/* The search for jobs that are held because they were refused, and are to go again. */
struct block_release {
    bool on;
    int64_t lane;       /* 0: of all */
    int64_t before_seq; /* the next page; 0: the first */
};

/* Which work goes first on the way back from an outage. */
enum return_class {
    RETURN_UNKNOWN, /* of a lane: not looked at; of a destination: it is not on its way back */
    RETURN_CRITICAL,
    RETURN_HIGH,
    RETURN_HELD, /* it was there before the way back began */
    RETURN_NEW,
};

/* A destination: what is configured, and how it stands. */
struct dest {
    char *name;
    const struct destination_config *config; /* NULL: jobs are there, but no configuration for them */
    struct gate_rules rules; /* of the gate; borrows from the configuration */
    struct gate gate;
    struct gate_rules fallback_rules;
    struct gate fallback; /* of the second address, where there is one: it has a breaker of its own and no mode */
    struct rate_limiter rate; /* of the whole destination */
    instant rate_kept; /* what the store has of it; INSTANT_NONE: nothing */
    struct adaptive adaptive; /* how its retries fare */
    struct cycles cycles;     /* what came of its runs, where it has some */
    struct pace pace;         /* what came of its attempts, minute by minute */
    struct auto_redrive redrive;
    struct engine *probing; /* a health check is under way; NULL: none */
    struct probe probe;
    struct config *probe_config; /* the one it began with */
    struct turns turns;
    struct shares shares; /* of its slots */
    enum return_class return_class; /* that goes now, */
    int64_t return_round;           /* of the turns */
    int64_t return_looks;           /* left for now */
    instant return_looked_at;       /* at all, where classes count across tenants, */
    bool returning;                 /* and whether it was on its way back then */
    size_t lanes; /* known, with work or without */
    int64_t ready; /* of all its lanes */
    char *pause_reason;
    char *block_reason; /* why its gate is blocked; NULL: it is not, or nobody knows */
    int64_t block_lane; /* the only tenant's that there was then; 0: there were others */
    struct block_release release;
    char *fallback_reason; /* why its second address is paused; NULL: it is not, or nobody knows */
    char *mode_reason; /* what the operator said who entered contingency; NULL: nothing */
    struct incident_state incident;
    struct dest_alerts alerts;
    bool kept_read; /* what the store has of it has been read */
    bool restored;  /* and is how it stands */
    char *kept;     /* that, until it is restored; NULL: nothing */
    struct dest_change changes[DEST_CHANGES_MAX]; /* that are not on their way to the store yet */
    size_t change_count;
    struct slice operator_name; /* whose order is being carried out; empty: nobody's */
    bool looked; /* it was looked at, which is written down without an event: a crash is not to hasten the next look */
    struct kept_waits kept_waits; /* for these, and for those on their way */
    instant held_since; /* by the operator's pause */
    enum gate_hold hold; /* that the dispatcher met last, */
    instant hold_since;  /* and since when */
    struct lane_state *held_lanes; /* tenants that are held for themselves */
    int64_t asked_lane;   /* the last that was told to wait, */
    instant asked_until;  /* and until when; */
    bool asked_alone;     /* nobody else had work then */
    size_t held_lane_count;
    int64_t tenants;   /* that ever had a job there, but for the daemon's own */
    int64_t dead;      /* of all its lanes, as the store has told, */
    int64_t dying;     /* and of jobs that end so when it has written that */
    bool dead_told;    /* that it is full */
    int64_t tenants_dead_full; /* tenants that have as many as they may and are held for it, as far as they were asked */
    struct lane_state *ahead_last;    /* the last in the ring of lanes with claimed jobs that wait for a free slot */
    int64_t ahead_count, ahead_asked; /* those jobs, and those being claimed */
    double answer_ms, payload_bytes;  /* how long answers take of late, and how large payloads are */
    double leased_bytes; /* how large payloads of leased jobs are of late; 0: nobody knows */
    struct lease_request *waiting_first; /* pull workers that wait for jobs */
    struct lease_request **waiting_last;
    struct measures measures;
    struct dest *next;
};

struct lane_state {
    int64_t id;
    struct dest *dest;
    char *tenant;
    int64_t ready; /* believed to be claimable, less those being claimed */
    int64_t claiming; /* those being claimed */
    int64_t dead;     /* letters; a lane that has some is not forgotten; */
    int64_t dying;    /* as of its destination */
    bool dead_told;   /* that they are as many as the tenant may have */
    enum return_class return_class;
    int64_t return_left; /* jobs of that class, as far as they were counted; INT64_MAX: all */
    struct turn turn;
    struct share share; /* of its destination's slots */
    instant looked_at; /* when one of its jobs was last sent to see how the destination is; INSTANT_NONE: never */
    bool all_failed;   /* what was ready then has failed in this outage */
    struct rate_limiter rate; /* of the tenant at this destination */
    instant rate_kept;        /* what the store has of it; INSTANT_NONE: nothing */
    struct attempt *ahead_first, *ahead_end; /* claimed, waiting for a free slot */
    struct lane_state *ahead_next;           /* in the ring of those that have some */
    int64_t ahead_in_turn;                   /* of its last turn that is claimed ahead */
    instant asked_until; /* the destination wants nothing of it before; INSTANT_NONE: it never said so */
    instant asked_at;    /* when it did: a clock that was set back ends it */
    instant asked_kept;  /* what the store has of it */
    bool held; /* for itself; the rest is about that */
    struct block block; /* of its refused answers: when that holds, it is held for them and not by an operator */
    char *hold_reason;
    instant held_since;
    struct lane_state *next_held; /* in dest->held_lanes */
    struct tenant_measure *measure; /* in its destination's measures; NULL: it is counted with the others */
    uint64_t activity;              /* how much was served of late, as of active_at */
    instant active_at;
    bool told;          /* an event names it, which may not be written yet */
    instant idle_since; /* as far as it was looked at; INSTANT_NONE: it has work, or something is known of it */
};

/* One claimed job on its way: claim, send, settle. */
struct attempt {
    struct send send; /* first */
    struct engine *engine;
    struct dest *dest;
    struct config *config; /* the one it began with */
    struct batch_memory *claimed; /* what its texts lie in */
    struct job job;
    struct gate *gate; /* the one that it went through; NULL: not yet through any */
    struct gate_pass pass;
    struct lane_state *lane; /* whose share it counts in until it is answered, */
    enum shares_side side;   /* and of what */
    bool by_turn;            /* its slot goes by turns over all classes */
    bool dying;              /* its end is a dead letter */
    struct store_op settle; /* kept until it is durable */
    struct arena memory;    /* of the settlement's texts */
    int stop_tries;
    bool sending;
    struct attempt *next, **link; /* in engine->attempts */
    struct attempt *next_settle;  /* in engine->unsettled */
    struct attempt *next_ahead;   /* in its lane's ahead_first */
    instant ahead_until;          /* likewise: then it is given back */
    bool ends_turn;               /* likewise: the next lane's turn comes after it */
};

/* What was asked for with a claim. */
struct claim {
    struct lane_state *lane;
    struct gate *gate;     /* the destination's own or the fallback's; NULL: ahead of a free slot */
    struct gate_pass pass; /* what that gave for all of the claim */
    bool by_turn;          /* by turns over all classes */
    bool lane_looks;       /* the lane is held, and its job is to see whether it must be */
};

/* Where the reading of all lanes for alerts stands. */
struct lanes_walk {
    instant at;      /* the next page */
    int64_t after;   /* lane */
    int64_t pending; /* of the whole store, so far */
};

struct engine {
    struct engine_ports ports;
    struct mailbox *mailbox;
    struct config *config;
    uint64_t seed;
    struct store_reader *reader;
    struct dest *dests;
    struct map dests_by_name;
    struct lane_state **lanes; /* by id: the store numbers them from 1 */
    size_t lanes_capacity;
    size_t lane_count;    /* that are there */
    size_t lanes_looked;  /* the last one that was looked at: lane_memory.c */
    instant lanes_look_at;
    int64_t lane_last;    /* the newest that was ever heard of */
    struct lane_missed {
        int64_t ready, dead;
    } *lanes_missed; /* what was told of lanes that could not be recalled, by id; NULL: none */
    size_t lanes_missed_capacity;
    struct attempt *attempts;
    struct attempt *unsettled; /* answered, to be recorded in the order in which they were */
    struct attempt *unsettled_last; /* of these, if there are any */
    instant not_before;        /* the last batch failed: no claim or settlement earlier; INSTANT_NONE: it did not */
    struct outgoing *outgoing; /* being filled */
    double commit_ms;          /* how long batches take of late */
    instant ahead_from;        /* nothing is claimed ahead before */
    int64_t ahead_count;       /* jobs that wait for a free slot, of all destinations */
    size_t batches_out;        /* with the writer: BATCHES_OUT_MAX at most of claims and settlements */
    bool started, stopping;
    bool recovering; /* orphans of an earlier process are still being settled */
    bool promoting;
    instant promote_at;
    instant orphans_at;
    instant orphans_after; /* the page to come begins after that lease, and that job; INSTANT_NONE: with the first */
    int64_t orphans_after_seq;
    bool orphans_out;
    struct map leased; /* what pull workers hold: leased.c */
    atomic_int_least64_t lease_bytes; /* payloads of answers to them that are being made, limits.body_budget at most */
    bool leases_crowded;              /* somebody waits for that */
    instant trim_at;
    struct incident_note *incident_notes; /* to be written */
    instant incident_trim_at;
    struct letter *letters, *letters_last; /* that tell of single dead letters, to be written (letters.c) */
    size_t letter_count;
    struct decided *decided; /* measures of policies that are no destinations (measures.c) */
    struct alert_book *alert_book; /* NULL: none are raised */
    instant alerts_at, alerts_trim_at;
    struct lanes_walk lanes_walk;
    int64_t expired_untold; /* jobs that expired, of which no alert has told yet */
    struct error damage; /* of the store, of which no alert has told yet; STATUS_OK: none */
    int64_t pending_max; /* of the store, which was opened with it */
    struct errors *errors;
    struct kept_waits forgets; /* for errors that somebody wants forgotten */
    bool errors_out;   /* a batch of theirs is with the writer */
    instant errors_at; /* no other earlier */
    instant redrive_at; /* no look for dead letters before */
    struct engine_figures figures;
    int64_t expired; /* jobs that died while they waited */
};

instant engine_now(const struct engine *engine);
/* The store refused just now: wait before trying again. */
bool engine_must_wait(const struct engine *engine);
/* engine_run is to be called soon. */
void engine_wake(struct engine *engine);

/* lanes.c */
struct dest *dest_find(const struct engine *engine, struct slice name);
enum status dest_get(struct engine *engine, struct slice name, struct dest **ret_dest) MUST_CHECK;
enum status lane_get(struct engine *engine, int64_t id, struct slice destination, struct slice tenant,
                     struct lane_state **ret_lane) MUST_CHECK;
struct lane_state *lane_find(const struct engine *engine, int64_t id);
void lane_free(struct lane_state *lane);
void lane_ready_add(struct engine *engine, struct lane_state *lane, int64_t count);
/* Before claims for that side: `slots` is what there is in all, and who was passed over and may go on now is back. */
void dest_share_out(struct dest *dest, enum shares_side side, int64_t slots, instant now);
/* Whoever was passed over is back: what is left goes by turns alone. */
void dest_leave_over(struct dest *dest);
/* Whether the slots of that side are shared out at all. */
bool dest_shares(const struct dest *dest, enum shares_side side);
/*
 * How many of `wanted` the lane in front may send now; 0: none yet, and it is parked or passed over. SIDE_COUNT: of what was
 * left over, whatever its share.
 */
int64_t lane_room(struct lane_state *lane, enum shares_side side, int64_t wanted, instant now);
/* `count` of its ready jobs are being claimed, in its turn or without one. */
void lane_take(struct lane_state *lane, enum shares_side side, int64_t count, bool in_turn, instant now);
void dests_configure(struct engine *engine, const struct config *config);
void lanes_release(struct engine *engine);
bool dest_dead_full(const struct dest *dest);
/* Whether the tenant has as many dead letters there as it may: it is held, and nobody else. */
bool lane_dead_full(const struct lane_state *lane);
/* So many more; negative: fewer. */
void lane_dead_add(struct lane_state *lane, int64_t count);

/* lane_memory.c */
/* Forgets lanes that have been idle for long, a few at a time, and asks again for those that were missed. */
void lanes_tick(struct engine *engine);
/* As lane_find, of one that was forgotten too; NULL: there is no such lane, or it cannot be read now, which was logged. */
struct lane_state *lane_recall(struct engine *engine, int64_t id);
/* Jobs of it are ready, and it has more dead letters, or fewer. One that cannot be recalled now is asked for again later. */
void lane_told(struct engine *engine, int64_t id, int64_t ready, int64_t dead);
/* As lane_recall, by its tenant. */
struct lane_state *lane_recall_named(struct engine *engine, const struct dest *dest, struct slice tenant);

/* kept_trim.c */
/* Takes a note away with the next batch. False: that is full. */
bool kept_forget(struct engine *engine, struct slice space, struct slice name);
/*
 * Gives `forget` the notes of a space that are older than the trail is kept, some at a time, when *trim_at has come, and
 * sets that anew. False from `forget` ends it for this time.
 */
void kept_trim(struct engine *engine, struct slice space, instant *trim_at,
               bool (*forget)(struct engine *, struct slice name));

/* return_order.c */
/* Before the destination's claims of this run. */
void return_order_begin(struct engine *engine, struct dest *dest);
/* As turns_front, but on the way back from an outage what matters more goes first. */
struct turn *dest_front(struct engine *engine, struct dest *dest, instant now, int64_t *ret_max);
/* Whether classes count across tenants. */
bool dest_by_class(const struct dest *dest);
/* As turns_front, whatever the class. */
struct turn *dest_front_of_all(struct dest *dest, int64_t *ret_max);
/* `count` jobs of the lane are being claimed. */
void return_order_took(struct lane_state *lane, int64_t count);
/* That claim is back, with jobs or without. */
void return_order_claimed(struct lane_state *lane, int64_t count);
/* The lane has more jobs. */
void return_order_added(struct engine *engine, struct lane_state *lane);

/* looks.c */
/* Whose job is sent to see how the destination is; NULL: there is none that may. */
struct lane_state *look_next(const struct engine *engine, const struct dest *dest, instant now);
/* One of its jobs is being claimed for that: fills in which. */
void look_take(struct lane_state *lane, struct op_claim *claim, instant now);
/* That claim is back. */
void look_claimed(struct lane_state *lane, const struct op_claim *claim);
/* op_claim.failed_last of what goes through that gate of its destination's. */
instant lane_failed_last(const struct lane_state *lane, const struct gate *gate);

/* modes.c */
/* How the gate of a destination is set; NULL: one that is not configured. */
struct gate_rules gate_rules_of(const struct engine *engine, const struct destination_config *config);
/* Those of its second address. */
struct gate_rules fallback_rules_of(const struct destination_config *config);
/* Whether jobs go to the second address now, because the first is in contingency. */
/* How the limit of concurrency stands, for people. */
struct limit_status limit_status(const struct concurrency *concurrency);
bool dest_uses_fallback(const struct dest *dest);
/* One of its gates' answer, and the rate's; `rate` is the destination's own, or a copy where nothing may change. */
struct gate_answer dest_ask(const struct gate *gate, struct rate_limiter *rate, instant now);
/* Time has passed: modes and breakers change by themselves. */
void dests_tick(struct engine *engine);
/* Tells what has changed, once: a line in the log and an event. */
void dest_tell(struct dest *dest, const struct gate_news *news);
/* Why it is held: as much of it as is kept. False: it is as before. The second keeps the one before where none is given. */
bool hold_reason_set(char **held, struct slice reason);
bool hold_reason_change(char **held, struct slice reason);
/* Writes it down with the state, so that a restart does not send to a destination that was held. */
void dest_changed(struct dest *dest, struct dest_change change);
void dests_keep(struct engine *engine);
/* What dests_keep wrote. */
void dest_restore(struct engine *engine, struct dest *dest, struct slice state);
/* An attempt was answered, and this is what came of it. True: its last try failed, but it is to be held. */
bool dest_note(struct attempt *attempt, const struct gate_result *result, const struct settlement *settlement);
/* Whether others were served since it was last told to wait. NULL: through no gate. */
bool job_waits_alone(const struct gate *gate, const struct job *job);
/* What its gate is told of a job whose last try failed. */
struct contingency_end job_end(const struct job *job, struct slice code, const struct settlement *settlement, instant now);
/* The outage that an attempt was to look at, in `memory` where it is not the destination's own; NULL: none. */
const struct outage *attempt_outage(const struct attempt *attempt, struct outage *memory);
/* The factor of its waits now; 0: by that configuration, which a job was sent under, they do not adapt. */
double dest_backoff_factor(const struct dest *dest, const struct destination_config *config, instant now);
/* A job was answered, as it was claimed: notes how retries fare. */
void dest_note_retry(struct dest *dest, const struct job *job, const struct settlement *settlement, instant now);
/* When something is to do for it although nothing happens; INSTANT_NONE: never. */
instant dest_next(const struct dest *dest, instant now);

/* cycles.c */
/* Jobs were claimed through one of its gates. */
void dest_cycle_selected(struct dest *dest, const struct gate *gate, struct gate_pass pass, const struct job *jobs,
                         size_t count, instant now);
/* One of them was answered; NULL: it never left. */
void dest_cycle_answered(struct dest *dest, const struct gate *gate, struct gate_pass pass,
                         const struct settlement *settlement, instant now);
/* Time has passed: tells of the runs that are over. */
void dest_cycle_tick(struct dest *dest, instant now);
/* What is kept of the last run: the member "cycle". */
void cycle_read(const json_t *root, struct cycle_figures *figures);

/* auto_redrive.c */
void auto_redrive(struct engine *engine);
instant auto_redrive_next(const struct engine *engine, instant now);

/* fallback.c */
/* The second address is held for refused answers: nothing more goes there, the first goes on. Tells it once. */
void fallback_block(struct engine *engine, struct dest *dest, struct slice reason);
void fallback_resume(struct engine *engine, struct dest *dest);
/* What is kept of that: a member of the state, and back. */
void fallback_state_write(struct json_writer *json, const struct dest *dest);
void fallback_state_read(struct dest *dest, const json_t *root);

/* lane_holds.c */
/* An answer asked for a pause: it is that tenant's, and the destination's too once a second one was told so. */
void dest_asked(struct engine *engine, struct dest *dest, struct gate *gate, struct slice tenant, int64_t asked_ms);
/* An operator knows better. */
void dest_ask_no_more(struct engine *engine, struct dest *dest);
/* That lane has work. */
void dest_not_alone(struct engine *engine, struct lane_state *newcomer);
/* Puts it among the held lanes of its destination, which has room for it, and takes it out. */
void lane_hold_begin(struct lane_state *lane, struct slice reason, instant since);
void lane_hold_end(struct lane_state *lane);
bool lane_held_by_hand(const struct lane_state *lane);
/* What is kept of held tenants: a member of the state, and back. The lanes are known already. */
void lane_holds_write(struct json_writer *json, const struct dest *dest);
void lane_holds_read(struct engine *engine, struct dest *dest, const json_t *root);

/* blocks.c */
/* An answer refused us, or nothing could be sent: holds what core/outage/block.h says, and tells it once. */
void dest_refused(struct engine *engine, struct dest *dest, const struct job *job, const struct answer *answer, bool unsent);
void fallback_refused(struct engine *engine, struct dest *dest, const struct job *job, const struct answer *answer,
                      bool unsent);
/* An answer showed that the lane's tenant is let in; NULL: nobody knows whose it was. */
void dest_let_in(struct engine *engine, struct dest *dest, struct lane_state *lane);
/* By an operator: nothing is held any more for refused answers. Whether something was. */
bool blocks_resume(struct engine *engine, struct dest *dest);
/* The same of one lane, which is not held any more. */
void lane_block_resume(struct engine *engine, struct lane_state *lane);
/* Other credentials may be there: it is looked now. */
void blocks_hasten(struct engine *engine);
/* Sends jobs again that were held. */
void blocks_release(struct engine *engine);

/* dispatch.c */
void dispatch_claims(struct engine *engine);
/* What a settlement means for the whole destination, or for the tenant: counts, holds, pauses. */
void dest_settled(struct engine *engine, struct dest *dest, const struct job *job, const struct answer *answer,
                  const struct settlement *settlement);
/* What became of an attempt, in a line: who, from which state to which, why, and when again. */
void log_outcome(const struct dest *dest, const struct job *job, const struct op_settle *settle,
                 const struct settlement *settlement);
void settle_answered(struct engine *engine);
/* What keeps a claimed job of the lane from being sent at all, or NULL; not that the lane is held. */
const char *why_unsendable(const struct engine *engine, const struct lane_state *lane);
void attempt_send(struct attempt *attempt);
/* Gives a claimed job back untouched. */
void attempt_release(struct attempt *attempt, const char *why);
/* A job that a worker's claim has leased and nobody may have ends as a dead letter. False: no memory; its lease runs out. */
bool lease_damaged(struct engine *engine, struct lane_state *lane, const struct job *job);

/* rejudge.c */
/*
 * Whether a job that was claimed through a gate may go by what counts now. False: it has no gate any more, and is to be
 * given back.
 */
bool attempt_may_go(struct attempt *attempt);

/* ahead.c */
void ahead_note_commit(struct engine *engine, int64_t ms);
void ahead_note_answer(struct dest *dest, int64_t ms, size_t payload);
/* An attempt was found that an earlier process did not survive. */
void ahead_note_death(struct engine *engine);
/* How many may be claimed for it at once although no slot is free; and how many more may now. */
int64_t ahead_worth(const struct engine *engine, const struct dest *dest);
int64_t ahead_room(const struct engine *engine, const struct dest *dest, instant now);
void ahead_add(struct lane_state *lane, struct attempt *attempt, instant now);
/* What was added for the lane so far is sent in a row. */
void ahead_end_turn(struct lane_state *lane);
/* Sends those that find a free slot now, and gives them all back when the destination is held. */
void ahead_send(struct engine *engine, struct dest *dest);

/* recover.c */
void recover_orphans(struct engine *engine);
void promote_due(struct engine *engine);
void trim_events(struct engine *engine);

/* probes.c */
void probes_start(struct engine *engine);

/* learn.c */
/* Writes what was learned, not more often than every few seconds. */
void errors_keep(struct engine *engine);
enum status errors_load(struct engine *engine, struct error *err) MUST_CHECK;

/* rates.c */
enum { RATE_NOTES_MAX = 2 }; /* with one claim */
/* Whether its destination wants nothing of it now. */
bool lane_asked(const struct lane_state *lane, instant now);
/* Writes down what the lane's destination asked of it, if that has changed by a second. */
void asked_keep(struct engine *engine, struct lane_state *lane);
/* A claim was just added to the batch being filled, which has room for RATE_NOTES_MAX more. */
void rates_claimed(struct engine *engine, struct lane_state *lane, instant now);
/* The same for a batch of a pull worker's. */
void rates_leased(struct batch *batch, struct lane_state *lane, instant now);
/* All that a crash would forget; for a stop. */
void rates_keep_all(struct engine *engine);
/* At the start, when all lanes are known. */
enum status rates_restore(struct engine *engine, struct error *err) MUST_CHECK;

/* leases.c */
void leases_serve(struct engine *engine, struct dest *dest);
void leases_expire(struct engine *engine);
void leases_end(struct engine *engine);
instant leases_next(const struct engine *engine);

/* leased.c */
/* Jobs were claimed with a pass for them and for `missing` more. */
void leases_claimed(struct engine *engine, struct dest *dest, struct gate_pass pass, const struct job *jobs, size_t count,
                    size_t missing);
/* Whether a lease was taken to see how the destination is. */
bool lease_is_look(const struct engine *engine, const struct job *job);
/* Nobody ended a lease in its time, and the store knows that. */
void lease_lost(struct engine *engine, const struct job *job);
/* At the start, when lanes and destinations are known: what workers hold from before counts in their tenants' shares. */
enum status leases_restore(struct engine *engine, struct error *err) MUST_CHECK;
void leased_release(struct engine *engine);

#endif
