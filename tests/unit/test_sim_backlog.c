#include "sim/backlog.h"
#include "sim/report.h"

#include "base/log.h"
#include "store/memory/memory.h"
#include "support/check.h"
#include "support/configs.h"

#include <inttypes.h>
#include <stdio.h>

static const instant began = INT64_C(1750000000000);

static struct store *store_new(void)
{
    struct store_settings settings = { 0 };
    struct store *store;
    struct error error;
    assert_int_equal(store_memory_open(SLICE(""), &settings, &store, &error), STATUS_OK);
    return store;
}

static struct store_reader *reader_of(struct store *store)
{
    struct store_reader *reader;
    struct error error;
    assert_int_equal(store->ops->reader(store, &reader, &error), STATUS_OK);
    return reader;
}

static void apply(struct store *store, instant now, struct store_op *op, struct arena *memory)
{
    struct error error;
    if (store->ops->apply(store, now, op, 1, memory, &error) != STATUS_OK)
        fail_msg("%s", error.text);
    assert_int_equal(op->status, STATUS_OK);
}

struct added {
    const char *destination, *tenant;
    enum priority priority;
    instant created_at, run_at, deadline;
    int64_t rank;
};

static struct op_insert add(struct store *store, const struct added *added, int number)
{
    struct arena memory = { 0 };
    char id[32];
    snprintf(id, sizeof id, "job-%d", number);
    struct store_op op = {
        .kind = OP_INSERT,
        .insert = { .destination = slice_from(added->destination), .tenant = slice_from(added->tenant), .id = slice_from(id),
                    .priority = added->priority, .rank = added->rank, .run_at = added->run_at, .deadline = added->deadline,
                    .payload = SLICE("secret") },
    };
    apply(store, added->created_at, &op, &memory);
    struct op_insert result = op.insert;
    arena_release(&memory);
    return result;
}

/* Claims the first of a lane; with `event` it is settled so. */
static void try_first(struct store *store, int64_t lane, instant at, enum job_event event, int64_t retries, instant run_at)
{
    struct arena memory = { 0 };
    struct store_op claim = { .kind = OP_CLAIM, .claim = { .lane = lane, .max = 1, .lease_until = at + 60000 } };
    apply(store, at, &claim, &memory);
    assert_int_equal(claim.claim.ret_count, 1);
    const struct job *job = &claim.claim.ret_jobs[0];
    if (event != EVENT_CLAIM) {
        struct store_op settle = { .kind = OP_SETTLE,
                                   .settle = { .seq = job->seq, .token = job->lease_token, .event = event, .run_at = run_at,
                                               .rank = job->rank, .retry_count = retries, .outcome = OUTCOME_TRANSIENT,
                                               .code = SLICE("http:503"), .error = SLICE("away"), .dead_code = SLICE("X"),
                                               .step = STEP_VERIFY, .step_count = 2, .doubted = true,
                                               .forget_at = INSTANT_NONE } };
        apply(store, at + 100, &settle, &memory);
    }
    arena_release(&memory);
}

/* Six jobs of one destination in all states, and two of others. */
static struct store *store_filled(void)
{
    struct store *store = store_new();
    struct arena memory = { 0 };
    static const struct added jobs[] = {
        { "claims", "small", PRIORITY_CRITICAL, 1000, INSTANT_NONE, INSTANT_NONE, 5 },
        { "claims", "running", PRIORITY_NORMAL, 2000, INSTANT_NONE, INSTANT_NONE, 10 },
        { "claims", "dead", PRIORITY_NORMAL, 2000, INSTANT_NONE, INSTANT_NONE, 10 },
        { "claims", "big", PRIORITY_NORMAL, 3000, 900000, 990000, 20 },
        { "claims", "big", PRIORITY_HIGH, 4000, INSTANT_NONE, INSTANT_NONE, 15 },
        { "mail", "x", PRIORITY_NORMAL, 5000, INSTANT_NONE, INSTANT_NONE, 1 },
        { "hooks", "y", PRIORITY_NORMAL, 5000, INSTANT_NONE, INSTANT_NONE, 1 },
    };
    for (int i = 0; i < (int)COUNT_OF(jobs); i++) {
        struct added added = jobs[i];
        added.created_at += began;
        added.run_at = added.run_at == INSTANT_NONE ? INSTANT_NONE : began + added.run_at;
        added.deadline = added.deadline == INSTANT_NONE ? INSTANT_NONE : began + added.deadline;
        struct op_insert inserted = add(store, &added, i);
        if (i == 0)
            try_first(store, inserted.ret_lane, began + 6000, EVENT_RETRY, 3, began + 700000);
        if (i == 1)
            try_first(store, inserted.ret_lane, began + 7000, EVENT_CLAIM, 0, 0);
        if (i == 2)
            try_first(store, inserted.ret_lane, began + 7000, EVENT_GIVE_UP, 0, 0);
    }
    struct store_op op = { .kind = OP_DESTINATION, .save = { .name = SLICE("claims"), .value = SLICE("{\"mode\":\"normal\"}") } };
    apply(store, began, &op, &memory);
    arena_release(&memory);
    return store;
}

static void test_read(void **state)
{
    (void)state;
    struct store *store = store_filled();
    struct store_reader *reader = reader_of(store);
    struct backlog backlog;
    struct error error;
    assert_int_equal(backlog_read(reader, SLICE("claims"), 100, &backlog, &error), STATUS_OK);
    assert_string_equal(backlog.destination, "claims");
    assert_string_equal(backlog.state, "{\"mode\":\"normal\"}");
    assert_int_equal(backlog.count, 4); /* not the dead one */
    assert_int_equal(backlog.pending, 2);
    assert_int_equal(backlog.waiting, 1);
    assert_int_equal(backlog.running, 1);
    assert_int_equal(backlog.left_out, 0);
    assert_int_equal(backlog.other_jobs, 2);
    assert_int_equal(backlog.other_destinations, 2);
    assert_int_equal(backlog.tenant_count, 3);
    assert_string_equal(backlog.tenants[0], "big");
    const struct backlog_job *tried = &backlog.jobs[0], *running = &backlog.jobs[1], *later = &backlog.jobs[2];
    assert_string_equal(backlog.tenants[tried->tenant], "small");
    assert_true(tried->created_at == began + 1000 && tried->first_at == began + 6000 && tried->run_at == began + 700000);
    assert_true(tried->retry_count == 3 && tried->attempts == 1 && tried->step == STEP_VERIFY && tried->step_count == 2);
    assert_true(tried->doubted && tried->rank == 5 && tried->priority == PRIORITY_CRITICAL && backlog_tried(tried));
    assert_true(running->state == STATE_RUNNING && backlog_tried(running));
    assert_true(later->run_at == began + 900000 && later->deadline == began + 990000 && !backlog_tried(later));
    backlog_release(&backlog);

    /* Of too many the oldest are kept, since they go first. */
    static const struct { size_t max, count; int64_t left_out; int64_t first_created, last_created; } limits[] = {
        { 1, 1, 3, 1000, 1000 }, { 2, 2, 2, 1000, 2000 }, { 3, 3, 1, 1000, 3000 }, { 4, 4, 0, 1000, 4000 }, { 5, 4, 0, 1000, 4000 },
    };
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        assert_int_equal(backlog_read(reader, SLICE("claims"), limits[i].max, &backlog, &error), STATUS_OK);
        check(backlog.count == limits[i].count && backlog.left_out == limits[i].left_out, "row %zu: %zu", i, backlog.count);
        check(backlog.jobs[0].created_at == began + limits[i].first_created, "row %zu: first", i);
        check(backlog.jobs[backlog.count - 1].created_at == began + limits[i].last_created, "row %zu: last", i);
        check(strcmp(backlog.tenants[backlog.jobs[0].tenant], "small") == 0, "row %zu: tenant", i);
        backlog_release(&backlog);
    }
    reader->ops->reader_close(reader);
    store->ops->close(store);
}

static void test_choice(void **state)
{
    (void)state;
    struct store *store = store_new();
    struct store_reader *reader = reader_of(store);
    struct backlog backlog;
    struct error error;
    assert_int_equal(backlog_read(reader, SLICE("x"), 10, &backlog, &error), STATUS_NOT_FOUND);
    assert_string_equal(error.text, "the store has no unfinished jobs");
    add(store, &(struct added){ "one", "t", PRIORITY_NORMAL, began, INSTANT_NONE, INSTANT_NONE, 1 }, 1);
    assert_int_equal(backlog_read(reader, SLICE("x"), 10, &backlog, &error), STATUS_OK); /* the only one */
    assert_string_equal(backlog.destination, "one");
    assert_null(backlog.state);
    backlog_release(&backlog);
    add(store, &(struct added){ "two", "t", PRIORITY_NORMAL, began, INSTANT_NONE, INSTANT_NONE, 1 }, 2);
    assert_int_equal(backlog_read(reader, SLICE("x"), 10, &backlog, &error), STATUS_NOT_FOUND);
    assert_string_equal(error.text, "the store has no unfinished jobs of \"x\", but of one (1), two (1)");
    reader->ops->reader_close(reader);
    store->ops->close(store);
}

/* What was read, put into another store and read again, is the same but for what was running. */
static void test_restore(void **state)
{
    (void)state;
    struct store *from = store_filled(), *to = store_new();
    struct store_reader *reader = reader_of(from);
    struct backlog first, second;
    struct error error;
    int64_t seqs[4];
    assert_int_equal(backlog_read(reader, SLICE("claims"), 100, &first, &error), STATUS_OK);
    reader->ops->reader_close(reader);
    if (backlog_restore(&first, to, "other", began + 50000, seqs, &error) != STATUS_OK)
        fail_msg("%s", error.text);
    reader = reader_of(to);
    assert_int_equal(backlog_read(reader, SLICE("other"), 100, &second, &error), STATUS_OK);
    assert_string_equal(second.destination, "other");
    assert_string_equal(second.state, first.state);
    assert_int_equal(second.count, first.count);
    for (size_t i = 0; i < first.count; i++) {
        const struct backlog_job *a = &first.jobs[i], *b = &second.jobs[i];
        bool was_running = a->state == STATE_RUNNING;
        check(seqs[i] == (int64_t)i + 1, "job %zu: number", i);
        check(a->created_at == b->created_at && a->first_at == b->first_at && a->deadline == b->deadline, "job %zu: times", i);
        check(b->run_at == (was_running ? began + 50000 : a->run_at), "job %zu: due %" PRId64, i, b->run_at - began);
        check(a->rank == b->rank && a->retry_count == b->retry_count && a->attempts == b->attempts, "job %zu: counts", i);
        check(a->step == b->step && a->step_count == b->step_count && a->doubted == b->doubted, "job %zu: step", i);
        check(a->priority == b->priority && strcmp(first.tenants[a->tenant], second.tenants[b->tenant]) == 0, "job %zu", i);
        check(b->state == (was_running ? STATE_WAITING : a->state), "job %zu: state %d", i, b->state);
    }
    reader->ops->reader_close(reader);
    backlog_release(&first);
    backlog_release(&second);
    from->ops->close(from);
    to->ops->close(to);
}

/* A run that starts with it: what has spent all its retries but one has one more send, and waits are kept. */
static void test_run(void **state)
{
    (void)state;
    struct store *from = store_filled(), *store = store_new();
    struct store_reader *reader = reader_of(from);
    struct backlog backlog;
    struct config *config;
    struct buffer problems;
    struct error error;
    struct run run = { .title = "d" };
    static const char yaml[] = "destinations:\n  d: { url: \"https://d.example/\", retry: { max_retries: 3, base: 1s, floor: 1s }, in_doubt: resend }\n";
    assert_int_equal(backlog_read(reader, SLICE("claims"), 100, &backlog, &error), STATUS_OK);
    reader->ops->reader_close(reader);
    buffer_init(&problems, PROBLEMS_BYTES);
    assert_int_equal(config_parse(slice_from(yaml), "test.yaml", &config, &problems), STATUS_OK);
    buffer_release(&problems);
    backlog.jobs[0].step = STEP_SEND;
    struct sim_settings settings = {
        .config = config,
        .destination = &config->destinations[0],
        .model = { .seed = 1, .latency_ms = 100, .timeout_ms = 5000 },
        .load = { .seed = 1, .jobs = 0, .for_ms = HOUR_MS, .tenants = 1 },
        .backlog = &backlog,
        .start = began + 60000,
        .seed = 1,
        .settle_max_ms = DAY_MS,
        .attend_ms = MINUTE_MS,
    };
    settings.model.outages[0] = (struct model_outage){ 0, 20 * MINUTE_MS, MODEL_UNAVAILABLE };
    settings.model.outage_count = 1;
    run.settings = &settings;
    if (sim_run(&settings, store, &run.result, &error) != STATUS_OK)
        fail_msg("%s", error.text);
    assert_int_equal(report_make(&run, &error), STATUS_OK);
    const struct ledger *ledger = &run.result.ledger;
    assert_int_equal(ledger->job_count, 4);
    assert_int_equal(run.result.backlog_count, 4);
    assert_string_equal(run.result.mode, "normal");
    /* The first one had three retries of three: its next failure, due 640 s after the start, is its last. */
    assert_int_equal(ledger->jobs[0].end, END_EXHAUSTED);
    assert_int_equal(ledger->jobs[0].attempts, 2);
    assert_int_equal(ledger->jobs[0].ended_ms, 640100);
    assert_int_equal(ledger->jobs[0].arrived_ms, -59000);
    assert_int_equal(ledger->jobs[2].first_ms, 840000); /* not before its time */
    assert_true(run.report.backlog == 4 && run.report.jobs.all == 4);
    assert_true(run.report.backlog_ended_ms >= 640100);
    sim_result_release(&run.result);
    backlog_release(&backlog);
    config_unref(config);
    from->ops->close(from);
    store->ops->close(store);
}

static int quiet(void **state)
{
    (void)state;
    log_set_level(LOG_NONE);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_restore),
        cmocka_unit_test(test_run),
    };
    return cmocka_run_group_tests(tests, quiet, NULL);
}
