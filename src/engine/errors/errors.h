/*
 * errors.h - what is learned about errors that no rule knows.
 *
 * Each destination has a table of fingerprints with their counts. It only watches: how a job is
 * treated is decided elsewhere, by rules and the policy's `unknown`. The tables are bounded; what
 * was not seen for the longest time goes. They are saved in the store, a few seconds late: a crash
 * loses the counts of those seconds, a stop loses none.
 *
 * What counts: every attempt that ended with an unknown error (seen); a job that was delivered by a
 * later attempt when such an error was its last failure (recovered); one that died of it after at
 * least one retry (gave up). A job that died at its first attempt, or by its deadline while it
 * waited, says nothing about whether trying again helps, and is not counted.
 */
#ifndef ENGINE_ERRORS_ERRORS_H
#define ENGINE_ERRORS_ERRORS_H

#include "core/errors/fingerprint.h"
#include "core/errors/learning.h"
#include "store/store.h"

enum {
    ERRORS_DESTINATION_MAX = 1000, /* fingerprints of one destination */
    ERRORS_MAX = 16384,            /* of all: then the destination with the most gives up its oldest */
    ERRORS_BATCH_MAX = 512,        /* written at once */
    ERRORS_SAVE_EVERY_MS = 5000,
};

#define SPACE_ERRORS SLICE("errors")

/* One error of one destination. */
struct known_error {
    char *name; /* in the store: destination/fingerprint */
    struct error_table *table; /* NULL: it is gone, and to be taken out of the store */
    struct fingerprint fingerprint;
    struct learning learning;
    instant first_at, last_at;
    bool changed; /* since it was last written */
    bool stored;
    bool out;      /* being written */
    bool removing; /* being taken out of the store */
    struct known_error *next_gone;
};

struct errors;

enum status errors_new(uint64_t seed, struct errors **ret_errors) MUST_CHECK;
void errors_free(struct errors *errors);

/* Without memory for a new one nothing is counted. */
void errors_seen(struct errors *errors, struct slice destination, const struct fingerprint *fingerprint, instant now);
/* Of one that was seen; else nothing happens. */
void errors_recovered(struct errors *errors, struct slice destination, const struct fingerprint *fingerprint);
void errors_gave_up(struct errors *errors, struct slice destination, const struct fingerprint *fingerprint);

/* The number of those forgotten: the fingerprint at one destination, or at all where that is empty. */
size_t errors_forget(struct errors *errors, struct slice destination, struct slice fingerprint);

/* How many such were forgotten, but are still to be taken out of the store. */
size_t errors_forgotten(const struct errors *errors, struct slice destination, struct slice fingerprint);

/* The most often seen first; of one destination unless empty. STATUS_NO_MEMORY. */
enum status errors_list(const struct errors *errors, struct slice destination, size_t max, struct arena *memory,
                        const struct known_error ***ret_list, size_t *ret_count) MUST_CHECK;

/* How many are to be written or taken out. */
size_t errors_unwritten(const struct errors *errors);
/* How many of these are to be taken out. */
size_t errors_to_remove(const struct errors *errors);
/* Takes up to `max` of them to be written; each must come back with errors_written. */
size_t errors_take(struct errors *errors, struct known_error **ret_taken, size_t max);
/* `give_up`: what failed is not tried again. Ends those that are gone. */
void errors_written(struct errors *errors, struct known_error *error, bool written, bool give_up);

/* The value in the store; .data NULL: no memory. And back: what cannot be read is not taken. */
struct slice errors_value(const struct known_error *error, struct arena *memory);
void errors_restore(struct errors *errors, struct slice name, struct slice value);

/* Whether the store has all of a destination's. */
bool errors_all_written(const struct errors *errors, struct slice destination);
/* Another node counts them from now on: they stay in the store, which has them all. */
void errors_leave(struct errors *errors, struct slice destination);

/* ---- with the engine ---- */

struct engine;
struct op_settle;
struct settlement;

/* A try has ended so; `job` is as it was claimed. The engine calls it for its own, and pull workers' API for theirs. */
void engine_learn(struct engine *engine, const struct job *job, const struct op_settle *settle,
                  const struct settlement *settlement);

/* An error as it stands, for people. Texts are in the caller's memory. */
struct error_report {
    struct slice destination;
    struct fingerprint fingerprint;
    struct learning learning;
    instant first_at, last_at;
    enum outcome known_as; /* by a rule that was added since; OUTCOME_NONE: still unknown */
    struct slice rule;     /* which */
};

enum status engine_errors(const struct engine *engine, struct slice destination, size_t max, struct arena *memory,
                          struct error_report **ret_reports, size_t *ret_count) MUST_CHECK;
/* How many; those too that an earlier order could not take out of the store. */
size_t engine_forget_error(struct engine *engine, struct slice destination, struct slice fingerprint);
/*
 * `wait` is done when all that was forgotten is out of the store. When that fails it is tried again, but after a restart
 * before that it is known again.
 */
struct saved_wait;
void engine_await_forgotten(struct engine *engine, struct saved_wait *wait);

#endif
