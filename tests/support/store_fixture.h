/*
 * store_fixture.h - a fresh store for each test, whatever the backend, and short words for using it.
 *
 * Time stands in `now` and moves only when a test moves it. Whatever a helper cannot do fails the test.
 */
#ifndef SUPPORT_STORE_FIXTURE_H
#define SUPPORT_STORE_FIXTURE_H

#include "store/store.h"
#include "support/folder.h"
#include "support/postgres_server.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

struct store_place {
    char folder[FOLDER_BYTES]; /* removed with all that is in it; empty: none was made */
    char address[POSTGRES_ADDRESS_BYTES];
};

struct store_under_test {
    const char *name;
    /* A new and empty store. */
    enum status (*open)(struct store_place *place, const struct store_settings *settings, struct store **ret_store,
                        struct error *err);
    int model_batches; /* of the random test; a store on disk takes its time */
    /* Another node's handle on the same store; NULL: it is for one node. */
    enum status (*join)(struct store_place *place, struct store *store, const struct store_settings *settings,
                        struct store **ret_store, struct error *err);
    bool turns; /* when more are due than a promotion may take, each destination has its turn */
    const char *(*missing)(void); /* why it cannot be tested here; NULL, or an answer of NULL: it can */
};

extern const struct store_under_test stores_under_test[];
extern const size_t stores_under_test_count;

struct store_fixture {
    const struct store_under_test *backend;
    struct store_place place;
    struct store *store;
    struct store_reader *reader;
    struct arena memory; /* results of everything below */
    instant now;
    bool shared; /* with other nodes: `store` does not own every destination, or has been fenced */
};

enum { FIXTURE_START = 1700000000000 / 1000 }; /* seconds */

/* cmocka's, with the backend as the initial state. The end audits the store: see fixture_audit. */
int fixture_setup(void **state);
int fixture_teardown(void **state);
/* Opens anew with other settings; what was in the store is lost. */
void fixture_reopen(struct store_fixture *f, const struct store_settings *settings);
/* Frees the results so far. */
void fixture_forget(struct store_fixture *f);

/* A store-level failure fails the test. */
void fixture_apply(struct store_fixture *f, struct store_op *ops, size_t count);
enum status fixture_run(struct store_fixture *f, struct store_op *op);
#define assert_run(f, op, expected) assert_string_equal(status_name(fixture_run(f, op)), status_name(expected))

/* Operations ready to be run or changed first: normal priority, due now, no deadline, payload "{}". */
struct store_op insert_op(const struct store_fixture *f, const char *destination, const char *tenant, const char *id);
struct store_op claim_op(const struct store_fixture *f, int64_t lane, size_t max);
struct store_op settle_op(const struct job *job, enum job_event event);
struct store_op job_op(enum op_kind kind, const char *tenant, const char *id);
struct store_op promote_op(void);

/* Inserts to destination "d" of tenant "t" and returns the lane. */
int64_t put(struct store_fixture *f, const char *id);
/* Claims one; there must be one. */
struct job take(struct store_fixture *f, int64_t lane);
/* How many could be claimed: claims none. */
int64_t ready_in(struct store_fixture *f, int64_t lane);
/* Claims and settles with `event`: "timeout" is the error, http:503 the code. Returns the job as it was claimed. */
struct job take_and_settle(struct store_fixture *f, int64_t lane, enum job_event event);
struct op_promote promote(struct store_fixture *f);

struct job read_job(struct store_fixture *f, const char *tenant, const char *id);
bool job_exists(struct store_fixture *f, const char *tenant, const char *id);
struct lane read_lane(struct store_fixture *f, int64_t lane);
/* All of them, page by page. */
struct job *read_jobs(struct store_fixture *f, struct job_filter filter, size_t page, size_t *ret_count);
struct event *read_events(struct store_fixture *f, int64_t after, size_t *ret_count);
struct event *read_history(struct store_fixture *f, const char *tenant, const char *id, size_t *ret_count);
/* The last event of a job, which must be of that type. */
struct event last_event(struct store_fixture *f, const char *tenant, const char *id, enum event_type type);

void assert_slice(struct slice actual, struct slice expected);
void assert_text(struct slice actual, const char *expected);
void assert_state(struct store_fixture *f, const char *id, enum job_state state);

/* True when each event follows from the one before. */
bool chain_holds(const struct event *events, size_t count);
/*
 * What must hold in every store at every time: counts equal a recount, no event is missing, the chain holds, dead
 * jobs say why, leases are where running jobs are, each job's last event tells its state.
 */
void fixture_audit(struct store_fixture *f);

#endif
