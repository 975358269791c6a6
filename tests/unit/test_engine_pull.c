/*
 * Pull workers go through the gate as sends do: windows, breaker, contingency and its ramp hold for them too.
 */
#include "base/log.h"
#include "engine/orders.h"
#include "engine/pull.h"
#include "engine/settlement.h"
#include "engine/status.h"
#include "support/check.h"
#include "support/engine_fixture.h"
#include "support/said.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_TAKEN = 64 };

#define PULL(more) "destinations: { d: { transport: pull, concurrency: 2" more " } }\n"
#define RETRY ", retry: { base: 10s, floor: 1s, cap: 1m, max_retries: 3 }"

/* Takes jobs, and says what came of them by what its own destination is like at the time. */
struct worker {
    struct stage *stage;
    struct lease_request request;
    bool asking;
    instant from, until; /* its destination is away */
    const struct job *jobs; /* held */
    size_t count;
    size_t taken, acked, nacked;
    size_t most; /* at one time */
};

static void on_leased(struct lease_request *request, enum status status, const struct job *jobs, size_t count)
{
    struct worker *worker = request->context;
    assert_int_equal(status, STATUS_OK);
    worker->asking = false;
    worker->jobs = jobs;
    worker->count = count;
    worker->taken += count;
    worker->most = count > worker->most ? count : worker->most;
}

static void ask(struct worker *worker, size_t max)
{
    worker->request = (struct lease_request){ .destination = SLICE("d"), .worker = SLICE("w"), .max = max,
                                              .lease_ms = 30 * 1000, .wait_until = worker->stage->now, .done = on_leased,
                                              .context = worker };
    worker->asking = true;
    engine_lease(worker->stage->engine, &worker->request);
    stage_settle(worker->stage);
    assert_false(worker->asking);
}

static void done_with_all(struct worker *worker)
{
    lease_release(&worker->request);
    worker->count = 0;
    stage_settle(worker->stage);
}

static void ack(struct worker *worker, const struct job *job)
{
    const struct store_op op = { .kind = OP_SETTLE,
                                 .settle = { .seq = job->seq, .token = job->lease_token, .event = EVENT_DELIVER,
                                             .outcome = OUTCOME_DELIVERED, .retry_count = job->retry_count,
                                             .run_at = INSTANT_NONE,
                                             .forget_at = INSTANT_NONE } };
    stage_apply(worker->stage, &op);
    engine_acked(worker->stage->engine, job->seq, job->lease_token);
    worker->acked++;
}

static struct settlement nack(struct worker *worker, const struct job *job, const char *code, const char *text,
                              int64_t retry_after_ms)
{
    struct job held = *job;
    struct lease_nack nack = { .job = &held, .answer = { .attempted = true, .code = slice_from(code), .text = slice_from(text),
                                                         .retry_after_ms = retry_after_ms } };
    struct arena memory = { 0 };
    struct store_op op;
    struct settlement settlement;
    const struct policy *policy;
    assert_int_equal(engine_nack(worker->stage->engine, &nack, &memory, &op, &settlement, &policy), STATUS_OK);
    stage_apply(worker->stage, &op);
    engine_nacked(worker->stage->engine, &nack, &op, &settlement);
    arena_release(&memory);
    worker->nacked++;
    return settlement;
}

static void see_duration(void *context, const struct event *event)
{
    json_t *data = json_loadb(event->data.data, event->data.len, 0, NULL);
    if (event->type == EVENT_TYPE_RETRY_SCHEDULED)
        *(int64_t *)context = json_integer_value(json_object_get(data, "duration_ms"));
    json_decref(data);
}

/* Of the last attempt that is to be repeated. */
static int64_t told_duration(struct stage *stage)
{
    int64_t ms = -1;
    events_each(stage, see_duration, &ms);
    return ms;
}

/* For so long: a round each second. */
static void work(struct worker *worker, int64_t ms, size_t max)
{
    struct stage *stage = worker->stage;
    for (instant until = stage->now + ms; stage->now < until; stage_run_for(stage, 1000)) {
        bool away = stage->now >= worker->from && stage->now < worker->until;
        ask(worker, max);
        for (size_t i = 0; i < worker->count; i++) {
            if (away)
                nack(worker, &worker->jobs[i], "http:503", "HTTP 503: away", -1);
            else
                ack(worker, &worker->jobs[i]);
        }
        done_with_all(worker);
    }
}

/* Forty say at once that one lease failed: the store takes one of them, and one failure is what happened. */
static void a_nack_acts_when_the_store_has_it(void **state)
{
    enum { NACKS = 40 };
    static struct store_op ops[NACKS];
    static struct settlement settlements[NACKS];
    struct stage stage = { 0 };
    struct worker worker = { .stage = &stage };
    struct arena memory = { 0 };
    struct error error;
    int taken = 0;
    (void)state;
    stage_begin(&stage, "destinations: { d: { transport: pull, retry: { max_retries: 3 }, "
                        "breaker: { window: 1m, min_calls: 5, failure_rate: 0.5, open: 1m } } }\n", began);
    stage_add(&stage, "d", "t", "a", "x");
    stage_run_for(&stage, 1000);
    ask(&worker, 1);
    assert_int_equal(worker.count, 1);
    struct job held = worker.jobs[0];
    struct lease_nack nack = { .job = &held,
                               .answer = { .attempted = true, .text = SLICE("TIMEOUT"), .retry_after_ms = -1 } };
    for (int i = 0; i < NACKS; i++) {
        const struct policy *policy;
        assert_int_equal(engine_nack(stage.engine, &nack, &memory, &ops[i], &settlements[i], &policy), STATUS_OK);
    }
    assert_int_equal(engine_figures(stage.engine).failed, 0);
    assert_int_equal(status_of(&stage).under_way, 1);
    for (int i = 0; i < NACKS; i++) {
        assert_int_equal(stage.store->ops->apply(stage.store, stage.now, &ops[i], 1, &memory, &error), STATUS_OK);
        taken += ops[i].status == STATUS_OK;
        if (ops[i].status == STATUS_OK)
            engine_nacked(stage.engine, &nack, &ops[i], &settlements[i]);
        else
            assert_int_equal(ops[i].status, STATUS_CONFLICT);
    }
    assert_int_equal(taken, 1);
    assert_int_equal(engine_figures(stage.engine).failed, 1);
    assert_int_equal(status_of(&stage).under_way, 0);
    assert_string_equal(status_of(&stage).breaker, "closed");
    assert_int_equal(stage_job(&stage, "t", "a").retry_count, 1);
    done_with_all(&worker);
    arena_release(&memory);
    stage_end(&stage);
}

/* It was asked about when a reload made its destination one for workers: what they say of it is the outcome of their try. */
static void a_job_in_doubt_is_tried_by_a_worker(void **state)
{
    static const struct { const char *code; enum job_state state; int64_t in_a_row; } cases[] = {
        { "x:gone", STATE_DEAD, 0 }, { "x:later", STATE_WAITING, 1 }, { "x:failed", STATE_WAITING, 0 },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct stage stage = { 0 };
        struct worker worker = { .stage = &stage };
        stage_begin(&stage, PULL(RETRY ", errors: { permanent: ['x:gone'], wait: ['x:later'], transient: ['x:failed'] }"), began);
        stage_add(&stage, "d", "t", "a", "x");
        stage_run_for(&stage, 1000);
        ask(&worker, 1);
        stage_apply(&stage, &(struct store_op){
            .kind = OP_SETTLE, .settle = { .seq = worker.jobs[0].seq, .token = worker.jobs[0].lease_token, .event = EVENT_RETRY,
                                           .step = STEP_VERIFY, .step_count = 2, .run_at = stage.now } });
        done_with_all(&worker);
        ask(&worker, 1);
        nack(&worker, &worker.jobs[0], cases[i].code, "it failed", -1);
        done_with_all(&worker);
        struct job job = stage_job(&stage, "t", "a");
        check(job.state == cases[i].state && job.step_count == cases[i].in_a_row, "%s: %s, %d in a row", cases[i].code,
              job_state_name(job.state), (int)job.step_count);
        stage_end(&stage);
    }
}

/* How long the worker had it, whatever became of the lease meanwhile; and a lease that ends says that. */
static void a_lease_tells_what_became_of_it(void **state)
{
    struct stage stage = { 0 };
    struct worker worker = { .stage = &stage };
    (void)state;
    stage_begin(&stage, "destinations: { d: { transport: pull, retry: { max_retries: 3 } } }\n", began);
    stage_add(&stage, "d", "t", "a", "x");
    stage_run_for(&stage, 1000);
    ask(&worker, 1);
    assert_int_equal(worker.count, 1);
    struct job job = worker.jobs[0];
    stage_run_for(&stage, 20 * 1000);
    stage_apply(&stage, &(struct store_op){ .kind = OP_EXTEND, .extend = { .seq = job.seq, .token = job.lease_token,
                                                                        .lease_until = stage.now + 60 * 1000 } });
    stage_run_for(&stage, 10 * 1000);
    job.updated_at = stage.now - 10 * 1000; /* as it is read after that */
    nack(&worker, &job, "x:1", "TIMEOUT", -1);
    done_with_all(&worker);
    assert_int_equal(told_duration(&stage), 30 * 1000);
    stage_run_for(&stage, 60 * 60 * 1000);
    ask(&worker, 1);
    assert_int_equal(worker.count, 1);
    done_with_all(&worker);
    stage_run_for(&stage, 10 * 60 * 1000);
    struct job lost = stage_job(&stage, "t", "a");
    assert_true(slice_equal(lost.last_code, SLICE("insist:lease_expired")));
    assert_true(slice_has_prefix(lost.last_error, SLICE("LEASE_EXPIRED")));
    stage_end(&stage);
}

struct line {
    const char *event, *level, *members; /* which it has, as JSON */
};

/* Exactly these lines tell of jobs, in this order. */
static void check_lines(char *rest, const struct line *lines, size_t count)
{
    size_t seen = 0;
    for (char *text; (text = strsep(&rest, "\n")) && *text;) {
        json_t *line = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        const char *event = json_string_value(json_object_get(line, "event"));
        if (event && (strcmp(event, "retry_scheduled") == 0 || strncmp(event, "job_", 4) == 0)) {
            check(seen < count, "one more: %s", text);
            check(strcmp(event, lines[seen].event) == 0, "line %zu: %s", seen, text);
            check(strcmp(json_string_value(json_object_get(line, "level")), lines[seen].level) == 0, "line %zu: %s", seen, text);
            json_t *members = json_loads(lines[seen].members, 0, NULL);
            const char *name;
            json_t *value;
            json_object_foreach (members, name, value)
                check(json_equal(json_object_get(line, name), value), "line %zu: %s in %s", seen, name, text);
            json_decref(members);
            seen++;
        }
        json_decref(line);
    }
    check(seen == count, "%zu lines", seen);
}

/* What workers say of their jobs, and what they do not say, is in the log as what sends end with. */
static void a_lease_has_its_line(void **state)
{
    static const struct line lines[] = {
        { "retry_scheduled", "info", "{\"job\":\"a\",\"tenant\":\"t\",\"destination\":\"d\",\"from\":\"pending\",\"to\":\"waiting\","
          "\"attempt\":1,\"retry_count\":1,\"code\":\"http:503\",\"error\":\"HTTP 503: user <number> waits\",\"class\":\"transient\"}" },
        { "retry_scheduled", "info", "{\"job\":\"a\",\"tenant\":\"t\",\"destination\":\"d\",\"from\":\"waiting\",\"to\":\"waiting\","
          "\"attempt\":2,\"code\":\"insist:lease_expired\"}" },
        { "job_acked", "debug", "{\"tenant\":\"t\",\"destination\":\"d\",\"attempt\":3,\"duration_ms\":7000}" },
        { "job_dead", "error", "{\"job\":\"b\",\"tenant\":\"t\",\"destination\":\"d\",\"from\":\"pending\",\"to\":\"dead\","
          "\"attempt\":1,\"code\":\"http:422\",\"class\":\"permanent\"}" },
    };
    struct stage stage = { 0 };
    struct worker worker = { .stage = &stage };
    (void)state;
    stage_begin(&stage, "destinations: { d: { transport: pull, retry: { max_retries: 3 }, in_doubt: resend, "
                        "errors: { transient: ['503'], permanent: ['422'] } } }\n", began);
    log_set_level(LOG_DEBUG);
    said_begin();
    stage_add(&stage, "d", "t", "a", "x");
    stage_run_for(&stage, 1000);
    ask(&worker, 1);
    nack(&worker, &worker.jobs[0], "http:503", "HTTP 503: user 12345678901 waits", -1);
    done_with_all(&worker);
    stage_run_for(&stage, 60 * 60 * 1000);
    ask(&worker, 1);
    done_with_all(&worker); /* nothing is heard of it */
    stage_run_for(&stage, 60 * 60 * 1000);
    ask(&worker, 1);
    stage_run_for(&stage, 7 * 1000);
    ack(&worker, &worker.jobs[0]);
    done_with_all(&worker);
    stage_add(&stage, "d", "t", "b", "x");
    stage_run_for(&stage, 1000);
    ask(&worker, 1);
    nack(&worker, &worker.jobs[0], "http:422", "HTTP 422", -1);
    done_with_all(&worker);
    stage_run_for(&stage, 1000);
    char *said = said_end();
    log_set_level(LOG_INFO);
    check_lines(said, lines, COUNT_OF(lines));
    stage_end(&stage);
}

static bool settles_orphans(const struct stage *stage)
{
    return stage->batches && stage->batches->count > 0 && stage->batches->ops[0].kind == OP_SETTLE;
}

/* A lease ran out, but nothing is said or given back before the store agrees: the worker may be quicker after all. */
static void a_lost_lease_is_told_when_it_is_kept(void **state)
{
    static const struct line acked[] = { { "job_acked", "debug", "{\"tenant\":\"t\",\"attempt\":1}" } };
    static const struct line lost[] = { { "retry_scheduled", "info", "{\"job\":\"b\",\"code\":\"insist:lease_expired\"}" } };
    struct stage stage = { 0 };
    struct worker worker = { .stage = &stage };
    (void)state;
    stage_begin(&stage, PULL(RETRY ", in_doubt: resend"), began);
    log_set_level(LOG_DEBUG);
    said_begin();
    stage_add(&stage, "d", "t", "a", "x");
    stage_run_for(&stage, 1000);
    ask(&worker, 1);
    stage.commit_ms = 100;
    for (int i = 0; i < 40 * 1000 && !settles_orphans(&stage); i++)
        stage_run_for(&stage, 1);
    assert_true(settles_orphans(&stage));
    assert_int_equal(status_of(&stage).under_way, 1);
    ack(&worker, &worker.jobs[0]); /* it is still the worker's */
    done_with_all(&worker);
    stage_run_for(&stage, 5 * 1000);
    check_lines(said_end(), acked, COUNT_OF(acked));
    assert_int_equal(stage_job(&stage, "t", "a").state, STATE_COMPLETED);
    assert_int_equal(status_of(&stage).under_way, 0);

    said_begin();
    stage_add(&stage, "d", "t", "b", "x");
    stage_run_for(&stage, 1000);
    stage.commit_ms = 0;
    ask(&worker, 1);
    done_with_all(&worker);
    stage.fail_applies = true;
    stage_run_for(&stage, 60 * 1000);
    assert_int_equal(status_of(&stage).under_way, 1);
    stage.fail_applies = false;
    stage_run_for(&stage, 5 * 1000);
    assert_int_equal(status_of(&stage).under_way, 0);
    check_lines(said_end(), lost, COUNT_OF(lost)); /* once */
    log_set_level(LOG_INFO);
    stage_end(&stage);
}

/*
 * Many large answers at once: they are counted when they are asked for, and who does not fit waits for the others, for longer
 * than it would wait for work: that is there.
 */
static void wait_for_memory(int64_t wait_ms)
{
    enum { BYTES = 200 * 1000, WORKERS = 6, EACH = 3 };
    struct stage stage = { 0 };
    struct worker workers[WORKERS];
    char *payload = malloc(BYTES + 1);
    assert_non_null(payload);
    memset(payload, 'x', BYTES);
    payload[BYTES] = '\0';
    stage_begin(&stage, "limits: { body_budget: 1MB }\n" PULL(""), began);
    for (int i = 0; i < WORKERS * EACH; i++)
        stage_add(&stage, "d", "t", NULL, payload);
    stage_run_for(&stage, 1000);
    for (size_t i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){ .stage = &stage, .asking = true };
        workers[i].request = (struct lease_request){ .destination = SLICE("d"), .worker = SLICE("w"), .max = EACH,
                                                     .lease_ms = 30 * 1000, .wait_until = stage.now + wait_ms,
                                                     .done = on_leased, .context = &workers[i] };
        engine_lease(stage.engine, &workers[i].request);
    }
    stage_run_for(&stage, 1000);
    for (size_t i = 0; i < WORKERS; i++) { /* each when the one before has gone */
        check(!workers[i].asking && workers[i].count == EACH, "%zu: %zu jobs", i, workers[i].count);
        check(i + 1 == WORKERS || workers[i + 1].asking, "%zu came too soon", i + 1);
        lease_release(&workers[i].request);
        stage_run_for(&stage, 20);
    }
    free(payload);
    stage_end(&stage);
}

static void answers_wait_for_memory(void **state)
{
    (void)state;
    wait_for_memory(60 * 1000);
    wait_for_memory(0);
}

static void how_many_is_the_workers_affair(void **state)
{
    struct stage stage = { 0 };
    struct worker worker = { .stage = &stage };
    (void)state;
    stage_begin(&stage, PULL(""), began); /* concurrency: 2 */
    add_jobs(&stage, 40);
    stage_run_for(&stage, 1000);
    ask(&worker, 30);
    assert_int_equal(worker.count, 30);
    assert_int_equal(status_of(&stage).under_way, 30);
    for (size_t i = 0; i < 20; i++)
        ack(&worker, &worker.jobs[i]);
    for (size_t i = 20; i < 25; i++)
        nack(&worker, &worker.jobs[i], "", "INVALID", -1);
    engine_lease_returned(stage.engine, worker.jobs[25].seq, worker.jobs[25].lease_token);
    engine_lease_returned(stage.engine, worker.jobs[25].seq, worker.jobs[25].lease_token); /* told twice */
    engine_acked(stage.engine, worker.jobs[26].seq, worker.jobs[26].lease_token + 1);      /* another lease */
    assert_int_equal(status_of(&stage).under_way, 4);
    done_with_all(&worker);
    stage_run_for(&stage, 40 * 1000); /* the rest is lost */
    assert_int_equal(status_of(&stage).under_way, 0);
    stage_end(&stage);
}

/* What a request may bring is bounded in bytes, and what was left is there for the next one at once. */
static void large_jobs_come_in_parts(void **state)
{
    enum { JOBS = 70, PAYLOAD_BYTES = 1 << 20 };
    struct stage stage = { 0 };
    struct worker worker = { .stage = &stage };
    char *payload = malloc(PAYLOAD_BYTES + 1);
    (void)state;
    assert_non_null(payload);
    memset(payload, 'x', PAYLOAD_BYTES);
    payload[PAYLOAD_BYTES] = '\0';
    stage_begin(&stage, PULL(""), began);
    for (int i = 0; i < JOBS; i++)
        stage_add(&stage, "d", "A", NULL, payload);
    stage_run_for(&stage, 1000);
    ask(&worker, 100);
    assert_int_equal(worker.count, 64);
    assert_int_equal(status_of(&stage).under_way, 64);
    done_with_all(&worker);
    ask(&worker, 100);
    assert_int_equal(worker.count, JOBS - 64);
    done_with_all(&worker);
    stage_end(&stage);
    free(payload);
}

static void a_window_holds_workers(void **state)
{
    struct stage stage = { 0 };
    struct worker worker = { .stage = &stage };
    (void)state;
    stage_begin(&stage, PULL(", contingency: { maintenance: ['Sun 10:30-11:00'], ramp: [5], stable: 1m, check: 1m }"), began);
    add_jobs(&stage, 20);
    work(&worker, 19 * 60 * 1000, 10);
    assert_int_equal(worker.taken, 0);
    assert_string_equal(status_of(&stage).held_by, "maintenance");
    work(&worker, 10 * 60 * 1000, 10);
    assert_int_equal(worker.acked, 20);
    assert_string_equal(status_of(&stage).mode, "normal");
    stage_end(&stage);
}

/* Invariants 4 and 8, for workers. */
static void an_outage_holds_workers_and_costs_nothing(void **state)
{
    struct stage stage = { 0 };
    struct worker worker = { .stage = &stage, .from = began, .until = began + INT64_C(3600) * 1000 };
    (void)state;
    stage_begin(&stage, PULL(RETRY ", breaker: { min_calls: 10 }, contingency: { ramp: [5, 10], stable: 5m, check: 5m }"), began);
    add_jobs(&stage, 200);
    work(&worker, 60 * 1000, MAX_TAKEN);
    assert_string_equal(status_of(&stage).mode, "contingency");
    assert_string_equal(status_of(&stage).held_by, "contingency");
    size_t before = worker.taken;
    work(&worker, worker.until - stage.now, MAX_TAKEN);
    assert_in_range(worker.taken - before, 10, 12); /* one look each five minutes */
    assert_int_equal(stage_counts(&stage, "d").dead, 0);
    worker.most = 0;
    work(&worker, 6 * 60 * 1000, MAX_TAKEN);
    assert_in_range(worker.most, 5, 10);
    work(&worker, 20 * 60 * 1000, MAX_TAKEN);
    assert_int_equal(worker.acked, 200);
    assert_string_equal(status_of(&stage).mode, "normal");
    stage_end(&stage);
}

static void a_breaker_holds_workers(void **state)
{
    struct stage stage = { 0 };
    struct worker worker = { .stage = &stage, .from = began, .until = began + 10 * 60 * 1000 };
    (void)state;
    stage_begin(&stage, PULL(RETRY ", breaker: { min_calls: 10, open: 30s, open_max: 1m, probes: 3 }"), began);
    add_jobs(&stage, 100);
    work(&worker, 5 * 1000, 10);
    assert_string_equal(status_of(&stage).breaker, "open");
    assert_string_equal(status_of(&stage).held_by, "breaker");
    work(&worker, 30 * 60 * 1000, 10);
    assert_int_equal(worker.acked, 100);
    assert_int_equal(stage_counts(&stage, "d").dead, 0);
    assert_string_equal(status_of(&stage).breaker, "closed");
    stage_end(&stage);
}

/* A worker that dies with a look in its hands: nothing is spent, and another may look. */
static void a_lost_look_is_taken_again(void **state)
{
    struct stage stage = { 0 };
    struct worker worker = { .stage = &stage };
    struct error error;
    (void)state;
    stage_begin(&stage, PULL(RETRY ", in_doubt: resend, contingency: { ramp: [5], stable: 1m, check: 1m }"), began);
    assert_int_equal(engine_enter_contingency(stage.engine, SLICE("d"), SLICE(""), &error), STATUS_OK);
    stage_add(&stage, "d", "t", "one", "x");
    stage_run_for(&stage, 1000);
    ask(&worker, 5);
    assert_int_equal(worker.count, 0);
    done_with_all(&worker);
    assert_int_equal(engine_leave_contingency(stage.engine, SLICE("d"), &error), STATUS_OK);
    ask(&worker, 5);
    assert_int_equal(worker.count, 1);
    done_with_all(&worker);
    stage_run_for(&stage, 35 * 1000); /* its lease is over */
    assert_int_equal(status_of(&stage).under_way, 0);
    assert_string_equal(status_of(&stage).mode, "recovering");
    assert_int_equal(stage_job(&stage, "t", "one").retry_count, 0);
    work(&worker, 2 * 60 * 1000, 5);
    assert_int_equal(worker.acked, 1);
    assert_int_equal(stage_job(&stage, "t", "one").state, STATE_COMPLETED);
    stage_end(&stage);
}

/* C-55 for workers: the last try fails while nothing else goes well. */
static void a_last_try_in_an_outage_is_held(void **state)
{
    struct stage stage = { 0 };
    struct worker worker = { .stage = &stage, .from = began, .until = began + INT64_C(3600) * 1000 };
    (void)state;
    stage_begin(&stage, PULL(RETRY ", contingency: { ramp: [5], stable: 1m, check: 5m }"), began);
    stage_add(&stage, "d", "t", "one", "x");
    work(&worker, 30 * 60 * 1000, 5);
    struct job job = stage_job(&stage, "t", "one");
    assert_int_equal(job.retry_count, 3);
    assert_true(job.state == STATE_WAITING || job.state == STATE_PENDING);
    assert_string_equal(status_of(&stage).mode, "contingency");
    work(&worker, INT64_C(3600) * 1000, 5);
    assert_int_equal(stage_job(&stage, "t", "one").state, STATE_COMPLETED);
    stage_end(&stage);
}

static void leases_outlive_a_restart(void **state)
{
    struct stage stage = { 0 };
    struct worker worker = { .stage = &stage };
    (void)state;
    stage_begin(&stage, PULL(RETRY ", breaker: { min_calls: 2, probes: 1 }"), began);
    add_jobs(&stage, 4);
    stage_run_for(&stage, 1000);
    ask(&worker, 4);
    stage_crash(&stage);
    worker.request.bytes = 0; /* whoever counted them is gone */
    stage_run_for(&stage, 1000);
    ack(&worker, &worker.jobs[0]);
    for (size_t i = 1; i < 4; i++)
        nack(&worker, &worker.jobs[i], "http:503", "HTTP 503: away", -1);
    done_with_all(&worker);
    assert_int_equal(status_of(&stage).under_way, 0);
    assert_string_equal(status_of(&stage).breaker, "closed"); /* they say nothing about how it is now */
    assert_int_equal(stage_counts(&stage, "d").waiting, 3);
    work(&worker, 5 * 60 * 1000, 4);
    assert_int_equal(stage_counts(&stage, "d").completed, 4);
    stage_end(&stage);
}

static void too_fast_slows_all_workers(void **state)
{
    struct stage stage = { 0 };
    struct worker worker = { .stage = &stage };
    (void)state;
    stage_begin(&stage, PULL(RETRY ", errors: { throttled: ['http:429'] }"), began);
    add_jobs(&stage, 4);
    stage_run_for(&stage, 1000);
    ask(&worker, 2); /* of both tenants: one of them alone would slow only itself */
    assert_int_equal(nack(&worker, &worker.jobs[0], "http:429", "slow down", 60 * 1000).decision.outcome, OUTCOME_THROTTLED);
    assert_null(status_of(&stage).held_by);
    assert_int_equal(nack(&worker, &worker.jobs[1], "http:429", "slow down", 60 * 1000).decision.outcome, OUTCOME_THROTTLED);
    done_with_all(&worker);
    assert_string_equal(status_of(&stage).held_by, "throttle");
    work(&worker, 55 * 1000, 4);
    assert_int_equal(worker.acked, 0);
    work(&worker, 60 * 1000, 4);
    assert_int_equal(worker.acked, 4);
    stage_end(&stage);
}

static void cycles_count_leases(void **state)
{
    struct stage stage = { 0 };
    struct worker worker = { .stage = &stage };
    (void)state;
    stage_begin(&stage, PULL(", cycle: { every: 60s, batch: 3 }"), began);
    add_jobs(&stage, 10);
    work(&worker, 30 * 1000, 10);
    assert_int_equal(worker.acked, 3);
    work(&worker, 40 * 1000, 10);
    assert_int_equal(status_of(&stage).cycle.selected, 3);
    assert_int_equal(status_of(&stage).cycle.succeeded, 3);
    stage_end(&stage);
}

/* By the old time it would wait for an hour and twenty seconds. */
static void a_clock_set_back_keeps_no_worker_waiting(void **state)
{
    struct stage stage = { 0 };
    struct worker worker = { .stage = &stage };
    (void)state;
    stage_begin(&stage, PULL(""), began);
    stage_run_for(&stage, 1000);
    worker.request = (struct lease_request){ .destination = SLICE("d"), .worker = SLICE("w"), .max = 1, .lease_ms = 30 * 1000,
                                             .wait_until = stage.now + 20 * 1000, .done = on_leased, .context = &worker };
    worker.asking = true;
    engine_lease(stage.engine, &worker.request);
    stage_run_for(&stage, 1000);
    assert_true(worker.asking);
    stage.now -= INT64_C(3600) * 1000;
    stage.wake_at = stage.now;
    stage_run_for(&stage, 20 * 1000);
    assert_false(worker.asking);
    assert_int_equal(worker.taken, 0);
    stage_end(&stage);
}

/* Paused between the claim and its answer: the worker gets nothing, and nobody's try is spent. */
static void what_was_claimed_before_a_pause_is_given_back(void **state)
{
    (void)state;
    static const struct { const char *tenant; size_t taken; } cases[] = { { NULL, 0 }, { "A", 3 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct stage stage = { 0 };
        struct worker worker = { .stage = &stage };
        struct error error;
        stage_begin(&stage, PULL(RETRY), began);
        for (int n = 0; n < 3; n++) {
            stage_add(&stage, "d", "A", NULL, "x");
            stage_add(&stage, "d", "B", NULL, "x");
        }
        stage_run_for(&stage, 1000); /* it has started */
        stage.commit_ms = 100;
        worker.request = (struct lease_request){ .destination = SLICE("d"), .worker = SLICE("w"), .max = 10, .lease_ms = 30 * 1000,
                                                 .wait_until = stage.now + 1, .done = on_leased, .context = &worker };
        worker.asking = true;
        engine_lease(stage.engine, &worker.request);
        engine_run(stage.engine);
        assert_non_null(stage.batches);
        assert_int_equal(stage.batches->ops[0].kind, OP_CLAIM); /* on its way */
        enum status status = cases[i].tenant
                                 ? stage_pause_tenant(&stage, SLICE("d"), slice_from(cases[i].tenant), SLICE("no"), &error)
                                 : engine_pause(stage.engine, SLICE("d"), SLICE("no"), &error);
        assert_int_equal(status, STATUS_OK);
        stage_run_for(&stage, 500);
        assert_false(worker.asking);
        assert_int_equal(worker.taken, cases[i].taken);
        for (size_t n = 0; n < worker.count; n++)
            assert_true(slice_equal(worker.jobs[n].tenant, SLICE("B")));
        assert_int_equal(stage_counts(&stage, "d").running, (int64_t)cases[i].taken);
        assert_int_equal(engine_destination(stage.engine, SLICE("d")).under_way, (int64_t)cases[i].taken);
        for (size_t n = 0; n < worker.count; n++)
            ack(&worker, &worker.jobs[n]);
        done_with_all(&worker);

        status = cases[i].tenant ? stage_resume_tenant(&stage, SLICE("d"), slice_from(cases[i].tenant), &error)
                                 : engine_resume(stage.engine, SLICE("d"), &error);
        assert_int_equal(status, STATUS_OK);
        stage_run_for(&stage, 3 * 1000);
        stage.commit_ms = 0;
        ask(&worker, 10);
        assert_int_equal(worker.count, 6 - cases[i].taken);
        for (size_t n = 0; n < worker.count; n++) {
            assert_int_equal(worker.jobs[n].attempts, 1);
            ack(&worker, &worker.jobs[n]);
        }
        done_with_all(&worker);
        assert_int_equal(stage_counts(&stage, "d").completed, 6);
        stage_end(&stage);
    }
}

static void damage_bad_ones(struct stage *stage, const struct store_op *ops, size_t count)
{
    (void)stage;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; ops[i].kind == OP_CLAIM && k < ops[i].claim.ret_count; k++)
            ops[i].claim.ret_jobs[k].damaged = slice_has_prefix(ops[i].claim.ret_jobs[k].id, SLICE("bad"));
}

/* As the store tells: no worker gets it, and its slot is another's. */
static void a_damaged_job_is_given_to_nobody(void **state)
{
    static const char *const ids[] = { "bad-1", "good-1", "bad-2", "good-2", "good-3" };
    struct stage stage = { 0 };
    struct worker worker = { .stage = &stage };
    (void)state;
    stage_begin(&stage, PULL(RETRY), began);
    stage.applied = damage_bad_ones;
    for (size_t i = 0; i < 3; i++)
        stage_add(&stage, "d", "t", ids[i], "x");
    stage_run_for(&stage, 1000);
    ask(&worker, 10);
    assert_int_equal(worker.count, 1);
    assert_true(slice_equal(worker.jobs[0].id, SLICE("good-1")));
    assert_int_equal(status_of(&stage).under_way, 1);
    ack(&worker, &worker.jobs[0]);
    done_with_all(&worker);
    struct job bad = stage_job(&stage, "t", "bad-2");
    assert_int_equal(bad.state, STATE_DEAD);
    assert_int_equal(bad.attempts, 0);
    assert_true(slice_equal(bad.last_code, SLICE("insist:payload_damaged")));
    assert_true(slice_equal(stage_job(&stage, "t", "bad-1").dead_code, SLICE("PERMANENT_ERROR")));
    assert_int_equal(engine_figures(stage.engine).dead, 2);
    assert_int_equal(status_of(&stage).under_way, 0);
    for (size_t i = 3; i < 5; i++)
        stage_add(&stage, "d", "t", ids[i], "x");
    stage_run_for(&stage, 1000);
    ask(&worker, 10);
    assert_int_equal(worker.count, 2);
    for (size_t i = 0; i < 2; i++)
        ack(&worker, &worker.jobs[i]);
    done_with_all(&worker);
    stage_run_for(&stage, 60 * 60 * 1000); /* nothing of them is left that could come back */
    assert_int_equal(stage_counts(&stage, "d").dead, 2);
    assert_int_equal(stage_counts(&stage, "d").completed, 3);
    stage_end(&stage);
}

/* For so many seconds a round each: what is of tenant A is refused with that code until `mended`, all else is done. */
static void rounds_refusing_a(struct worker *worker, int seconds, const char *code, instant mended)
{
    for (int i = 0; i < seconds; i++) {
        ask(worker, 4);
        for (size_t k = 0; k < worker->count; k++) {
            const struct job *job = &worker->jobs[k];
            if (slice_equal(job->tenant, SLICE("A")) && worker->stage->now < mended)
                assert_false(nack(worker, job, code, "HTTP 401: who are you", -1).dead);
            else
                ack(worker, job);
        }
        done_with_all(worker);
        stage_run_for(worker->stage, 1000);
    }
}

/* A tenant whose jobs a worker says are refused is held, whatever the worker calls it; others go on, and looks end it. */
static void a_refused_tenant_is_held(void **state)
{
    static const char *const codes[] = { "http:401", "curl:60" };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        struct stage stage = { .destination = delivers };
        struct worker worker = { .stage = &stage };
        stage_begin(&stage, PULL(RETRY ", errors: { blocked: ['http:401', 'curl:60'] }"), began);
        add_jobs(&stage, 40); /* A and B in turns */
        instant mended = began + 10 * 60 * 1000;
        rounds_refusing_a(&worker, 50, codes[i], mended);
        check(worker.acked == 20, "%s: %zu done", codes[i], worker.acked);
        check(worker.nacked >= 2 && worker.nacked <= 4, "%s: %zu refused", codes[i], worker.nacked);
        assert_string_equal(status_of(&stage).mode, "normal");
        assert_int_equal(status_of(&stage).tenants_paused, 1);
        rounds_refusing_a(&worker, 20 * 60, codes[i], mended);
        check(worker.acked == 40, "%s: %zu done", codes[i], worker.acked);
        assert_int_equal(status_of(&stage).tenants_paused, 0);
        assert_int_equal(reported(&stage, "blocked", NULL), 0);
        stage_end(&stage);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_nack_acts_when_the_store_has_it),
        cmocka_unit_test(a_job_in_doubt_is_tried_by_a_worker),
        cmocka_unit_test(a_lease_tells_what_became_of_it),
        cmocka_unit_test(a_lease_has_its_line),
        cmocka_unit_test(a_lost_lease_is_told_when_it_is_kept),
        cmocka_unit_test(answers_wait_for_memory),
        cmocka_unit_test(how_many_is_the_workers_affair),
        cmocka_unit_test(large_jobs_come_in_parts),
        cmocka_unit_test(a_window_holds_workers),
        cmocka_unit_test(an_outage_holds_workers_and_costs_nothing),
        cmocka_unit_test(a_breaker_holds_workers),
        cmocka_unit_test(a_lost_look_is_taken_again),
        cmocka_unit_test(a_last_try_in_an_outage_is_held),
        cmocka_unit_test(leases_outlive_a_restart),
        cmocka_unit_test(too_fast_slows_all_workers),
        cmocka_unit_test(cycles_count_leases),
        cmocka_unit_test(a_clock_set_back_keeps_no_worker_waiting),
        cmocka_unit_test(what_was_claimed_before_a_pause_is_given_back),
        cmocka_unit_test(a_damaged_job_is_given_to_nobody),
        cmocka_unit_test(a_refused_tenant_is_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
