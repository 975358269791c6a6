/*
 * A connection to PostgreSQL ends at every message of a transaction, either way, in a script with every kind of operation. The
 * store knows afterwards whether the batch happened, has all of it or nothing, and goes on; in the end all was done once.
 */
#include "store/inspect.h"
#include "store/postgres/postgres.h"
#include "store/trail.h"
#include "support/check.h"
#include "support/postgres_proxy.h"
#include "support/store_fixture.h"
#include "support/store_script.h"

#include <stdlib.h>
#include <unistd.h>

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define CUTS_STEP 29
#else
#define CUTS_STEP 13 /* a part of the messages; INSIST_LONG lets each of them be the last */
#endif

enum { ASKED_MAX = 3000, ASK_PAUSE_MS = 20, MESSAGES_MAX = 400 };

static const struct store_settings settings = { .pending_max = 100000 };

struct run {
    struct postgres_proxy proxy;
    struct store *store;
    struct script script;
    int cuts, applied;
};

static void must(enum status status, const struct error *err)
{
    if (status != STATUS_OK)
        fail_msg("%s: %s", status_name(status), err->text);
}

static void run_open(struct run *run)
{
    char address[POSTGRES_ADDRESS_BYTES], through[POSTGRES_ADDRESS_BYTES];
    struct error err = { 0 };
    *run = (struct run){ 0 };
    postgres_server_schema(address);
    postgres_proxy_open(&run->proxy);
    postgres_proxy_address(&run->proxy, address, through);
    must(store_postgres_open(slice_from(through), &settings, &run->store, &err), &err);
}

static void run_close(struct run *run)
{
    run->store->ops->close(run->store);
    postgres_proxy_close(&run->proxy);
}

/* Whether the batch happened, of which the connection's end told nothing. */
static bool batch_outcome(struct run *run)
{
    struct error err = { 0 };
    bool applied = false;
    enum status status = STATUS_AWAY;
    for (int i = 0; i < ASKED_MAX && status == STATUS_AWAY; i++) {
        status = run->store->ops->outcome(run->store, &applied, &err);
        if (status == STATUS_AWAY)
            sleep_ms(ASK_PAUSE_MS); /* the server may take its time to see that the connection is gone */
    }
    must(status, &err);
    return applied;
}

/* One try of the batch with a cut behind so many messages. True: it is there now, cut or not. */
static bool batch_try(struct run *run, int batch, int client_left, int server_left)
{
    struct script before = run->script;
    struct error err = { 0 };
    postgres_proxy_pass(&run->proxy, client_left, server_left);
    enum status status = script_apply(&run->script, run->store, batch, &err);
    bool was_cut = postgres_proxy_pass(&run->proxy, -1, -1);
    if (status == STATUS_OK) {
        check(!was_cut, "batch %d, %d and %d: it was cut and all went well", batch, client_left, server_left);
        return true;
    }
    check(status == STATUS_AWAY && was_cut, "batch %d, %d and %d: %s: %s", batch, client_left, server_left,
          status_name(status), err.text);
    run->script = before;
    run->cuts++;
    bool applied = batch_outcome(run);
    if (applied)
        must(script_learn(&run->script, run->store, &err), &err);
    run->applied += applied;
    return applied;
}

/* Of the client's messages ever more are heard, until one try needs no more. */
static void batch_survives(struct run *run, int batch)
{
    int step = getenv("INSIST_LONG") ? 1 : CUTS_STEP;
    bool done = false;
    for (int left = batch % step; left < MESSAGES_MAX && !done; left += step)
        done = batch_try(run, batch, left, -1);
    check(done, "batch %d has more than %d messages", batch, MESSAGES_MAX);
}

/* Of the server's; here it may have happened, whatever was heard. */
static void batch_unheard(struct run *run, int batch)
{
    int step = getenv("INSIST_LONG") ? 1 : CUTS_STEP;
    bool done = false;
    for (int left = batch % step; left < MESSAGES_MAX && !done; left += step)
        done = batch_try(run, batch, -1, left);
    check(done, "batch %d has more than %d answers", batch, MESSAGES_MAX);
}

static int64_t head_after(struct store *store)
{
    return store->ops->head(store).number;
}

static void assert_whole(struct store *store)
{
    const struct trail_reading reading = { 0 };
    struct trail_check found;
    struct error err = { 0 };
    must(store_check(store, &err), &err);
    must(store_verify(store, &reading, &found, &err), &err);
}

static void cut_each(void (*batch_cut)(struct run *run, int batch), bool mostly_applied)
{
    static int64_t heads[SCRIPT_BATCHES];
    struct run run;
    struct error err = { 0 };
    run_open(&run);
    for (int i = 0; i < SCRIPT_BATCHES; i++) {
        must(script_apply(&run.script, run.store, i, &err), &err);
        heads[i] = head_after(run.store);
    }
    run_close(&run);
    run_open(&run);
    must(script_apply(&run.script, run.store, 0, &err), &err); /* its jobs have the numbers that the script names */
    for (int i = 1; i < SCRIPT_BATCHES; i++) {
        batch_cut(&run, i);
        check(head_after(run.store) == heads[i], "after batch %d there are %lld events, not %lld", i,
              (long long)head_after(run.store), (long long)heads[i]);
    }
    assert_whole(run.store);
    check(run.cuts >= SCRIPT_BATCHES && (run.applied >= SCRIPT_BATCHES / 2) == mostly_applied,
          "%d cuts, and %d batches happened", run.cuts, run.applied);
    run_close(&run);
}

static bool no_postgres(void)
{
    const char *why = postgres_server_missing();
    if (why)
        print_message("not with PostgreSQL: %s\n", why);
    return why != NULL;
}

static void test_what_the_server_does_not_hear(void **state)
{
    (void)state;
    if (!no_postgres())
        cut_each(batch_survives, false);
}

static void test_what_the_client_does_not_hear(void **state)
{
    (void)state;
    if (!no_postgres())
        cut_each(batch_unheard, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_the_server_does_not_hear),
        cmocka_unit_test(test_what_the_client_does_not_hear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
