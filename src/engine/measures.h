/*
 * measures.h - what the engine counts of each destination, for GET /metrics and for the line a minute in the log.
 *
 * Counted by the engine's own thread into plain integers: no lock, no allocation, no clock of its own. Everything is since
 * the start of the process and in fixed memory: tenants, codes and numbers of attempts are counted singly up to a bound,
 * the rest together as "other".
 *
 * Tenants are those that are served most of late: one that has become twice as busy as the least of them takes its
 * place, and begins at zero. So no series ever falls but by ending, which is what counters must do.
 */
#ifndef ENGINE_MEASURES_H
#define ENGINE_MEASURES_H

#include "base/histogram.h"
#include "core/alerting/alert.h"
#include "core/decision/decide.h"
#include "engine/engine.h"
#include "engine/status.h"

enum {
    MEASURED_ATTEMPTS_MAX = 20, /* attempts distinguished by their number */
    MEASURED_POLICIES_MAX = 32, /* presets that decisions are asked of */
    MEASURED_CODES_MAX = 30,    /* codes of a destination */
    MEASURED_CODE_BYTES_MAX = 64,
    MEASURED_TENANTS_MAX = 20,  /* tenants of a destination */
};

/* The documents' three words. */
enum measured_label {
    LABEL_TRANSIENT,
    LABEL_PERMANENT,
    LABEL_UNKNOWN,
    LABEL_COUNT
};

/* The attempts of one number. */
struct attempt_measure {
    int64_t answered, delivered;
    int64_t retried; /* another one was scheduled after it */
};

struct code_measure {
    char code[MEASURED_CODE_BYTES_MAX];
    int64_t failed, dead;
    instant used_at;
};

struct lane_state;
struct tenant_measure {
    struct lane_state *lane; /* the engine's; nobody else's to look into */
    int64_t processed, dead;
};

struct time_measures {
    struct histogram duration; /* ms: of a send */
    struct histogram delivery; /* ms: from arrival to delivery */
    struct histogram queued;   /* ms: from when it could go first to its first claim */
    struct histogram wait;     /* ms: before a retry */
    struct histogram spread;   /* thousandths: where in its spread a wait was drawn */
    struct histogram analysis; /* ns: from an answer to its decision */
};

/* What is reported once a minute. */
struct minute_measure {
    instant since;
    int64_t sent, succeeded, failed;
    struct histogram duration;
};

struct measures {
    int64_t outcomes[OUTCOME_COUNT]; /* of sends */
    int64_t verdicts[VERDICT_COUNT]; /* of sends and questions */
    int64_t labels[LABEL_COUNT];     /* of those that failed */
    int64_t unsent;    /* claimed, and given back untouched */
    int64_t recovered; /* attempts that nobody ended */
    int64_t exported, export_refused; /* dead letters whose time was over */
    int64_t untried_dead[VERDICT_COUNT]; /* of these, and of jobs that were found damaged */
    int64_t retried_delivered, retried_dead; /* jobs that ended after more than one attempt */
    int64_t decided[VERDICT_COUNT]; /* questions that somebody asked, who sends by himself */
    int64_t capped; /* waits that had grown to the policy's cap */
    struct attempt_measure attempts[MEASURED_ATTEMPTS_MAX + 1]; /* the first at 0; all above the bound at the end */
    struct time_measures times;
    struct {
        struct code_measure items[MEASURED_CODES_MAX];
        size_t count;
        struct code_measure other;
    } codes;
    struct {
        struct tenant_measure items[MEASURED_TENANTS_MAX];
        size_t count;
        struct tenant_measure other;
    } tenants;
    instant head_at;  /* when the job claimed last could have gone first; 0: not known */
    instant empty_at; /* when nothing was ready, as far as that was seen; 0: never */
    instant looked_at; /* when the times were last added up; 0: never */
    bool available, contingency; /* how it stood then */
    int64_t observed_ms, available_ms, contingency_ms;
    struct minute_measure minute;
};

extern const struct histogram_bounds measured_duration, measured_delivery, measured_wait, measured_spread, measured_analysis;

/* A destination for /metrics: a copy that the caller may read in any thread. */
struct measured_tenant {
    struct slice tenant;
    int64_t lane;
    int64_t processed, dead;
};
struct destination_measures {
    struct slice name;
    struct destination_status status; /* without what an operator said */
    struct measures measures;
    struct measured_tenant *tenants; /* measures.tenants.count of them */
    bool checked, up; /* health checks are made; the last ones went well */
    bool pulled;      /* by workers */
    size_t workers;   /* that wait for jobs */
    int64_t alerts[ALERT_KIND_COUNT]; /* that stand, its tenants' too */
};
struct engine_measures {
    struct destination_measures *items;
    size_t count;
    struct destination_measures *policies; /* that decisions were asked of and that are no destinations: only `measures` */
    size_t policy_count;
    int64_t expired; /* jobs that died while they waited; the store does not say whose */
    int64_t dead_expired; /* dead letters that were deleted without an export, since their time was over; likewise */
    int64_t alerts[ALERT_KIND_COUNT]; /* that stand about the daemon */
};
/* A question was answered by that destination's or preset's policy, in so many nanoseconds. */
void engine_decided(struct engine *engine, struct slice policy, const struct decision *decision, int64_t took_ns);
/* In the engine's thread. All is put into `memory`. */
enum status engine_measures(const struct engine *engine, struct arena *memory,
                            struct engine_measures *ret_measures) MUST_CHECK;

/* ---- for the engine's own files ---- */

struct dest;
struct lane_state;
struct settlement;

/* Jobs were claimed: how long they had waited. */
void measures_claimed(struct dest *dest, const struct job *jobs, size_t count, instant now);
/* One was answered, and this is what came of it. `job` as it was claimed. */
void measures_answered(struct lane_state *lane, const struct job *job, const struct answer *answer,
                       const struct settlement *settlement, instant now);
/* An attempt that nobody ended was recorded so. */
void measures_recovered(struct lane_state *lane, const struct op_settle *settle, instant now);
/* The ticks at which a decision began, and its end. Where the engine has no ticks nothing is measured. */
int64_t measures_ticks(const struct engine *engine);
void measures_analysed(const struct engine *engine, struct dest *dest, int64_t began);
void decided_free(struct engine *engine);
/* Time has passed: adds up how it stood, and tells of a minute that is over. */
void measures_tick(struct dest *dest, instant now);

#endif
