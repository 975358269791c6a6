/*
 * backlog.h - the work that waits in a real store, taken out for a simulation: when, whose, how urgent, how often tried.
 *
 * Read through a store's reader, so nothing of it changes and a daemon may work on it meanwhile. Payloads are never read.
 */
#ifndef SIM_BACKLOG_H
#define SIM_BACKLOG_H

#include "store/store.h"

enum { BACKLOG_JOBS_MAX = 1000000 };

struct backlog_job {
    instant created_at, first_at, run_at, deadline, updated_at; /* as in struct job */
    int64_t rank;
    int64_t attempts, retry_count, step_count;
    int32_t tenant; /* index into the tenants */
    unsigned char state, priority, step, last_class; /* a running one is due at once */
    bool doubted;
};

struct backlog {
    struct arena memory; /* of the texts */
    char *destination; /* its name in the store */
    char *state;       /* how the destination stood, as the engine keeps it; NULL: not known */
    struct backlog_job *jobs; /* in the order in which the store took them */
    size_t count;
    char **tenants; /* the one with most jobs first */
    size_t tenant_count;
    int64_t pending, running, waiting; /* of those that were taken */
    int64_t left_out;                  /* newer ones, beyond the limit */
    int64_t other_jobs;                /* of other destinations */
    int64_t other_destinations;
};

/*
 * The unfinished jobs of the destination `wanted`, or when the store has none of it, of the only one that has
 * any; at most `max`, the oldest. STATUS_NOT_FOUND says which destinations there are.
 */
enum status backlog_read(struct store_reader *reader, struct slice wanted, size_t max, struct backlog *ret_backlog,
                         struct error *err) MUST_CHECK;
void backlog_release(struct backlog *backlog);

/*
 * Puts all of it into an empty store as jobs of `destination`. ret_seqs has room for each job: the store's number of it, 0
 * when the store was full. `now` is when jobs that were being sent are due.
 */
enum status backlog_restore(const struct backlog *backlog, struct store *store, const char *destination, instant now,
                            int64_t *ret_seqs, struct error *err) MUST_CHECK;

/* It was sent before, in this generation. */
bool backlog_tried(const struct backlog_job *job);

#endif
