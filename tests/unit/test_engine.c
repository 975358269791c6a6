/*
 * The engine from end to end, without a network and without waiting.
 */
#include "engine/orders.h"
#include "engine/pull.h"
#include "engine/status.h"
#include "store/memory/memory.h"
#include "support/configs.h"
#include "support/store_faulty.h"
#include "support/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { START = 1736678400 };

static const instant began = (instant)START * 1000; /* 2025-01-12T10:40:00Z */

static int64_t delivers(struct stage *stage, const struct send *send, struct answer *answer)
{
    (void)stage;
    (void)send;
    answer->outcome = OUTCOME_DELIVERED;
    return 10;
}

static int64_t fails_as(struct stage *stage, const struct send *send, struct answer *answer)
{
    (void)send;
    answer->text = slice_from(stage->context);
    return 10;
}

#define TO(preset, more) "destinations: { d: { preset: " preset ", url: 'http://127.0.0.1:1/', allow_private: true" more " } }\n"

static void a_job_is_delivered_once(void **state)
{
    struct stage stage = { .destination = delivers };
    (void)state;
    stage_begin(&stage, TO("http", ""), began);
    stage_add(&stage, "d", "t", "one", "hello");
    stage_run_for(&stage, 1000);
    struct job job = stage_job(&stage, "t", "one");
    assert_int_equal(job.state, STATE_COMPLETED);
    assert_int_equal(job.attempts, 1);
    assert_int_equal(stage.send_count, 1);
    assert_int_equal(stage_counts(&stage, "d").completed, 1);
    stage_end(&stage);
}

/* S1-065 S1-079 S0-110 S0-055: exact numbers of sends for each preset, and how the last one ends. */
static void a_failing_destination_gets_the_presets_sends(void **state)
{
    static const struct { const char *name, *yaml, *id, *error; size_t sends; const char *dead_code; } cases[] = {
        { "A-01 A-07 tiss: six sends", TO("tiss", ""), "CLM-2025-1", "SERVICE_UNAVAILABLE", 6, "MAX_RETRIES_EXCEEDED" },
        { "A-02 A-08 tiss: a permanent error is sent once", TO("tiss", ""), "CLM-2025-1", "INVALID_PROCEDURE_CODE", 1, "PERMANENT_ERROR" },
        { "S3 C-53 sifen: four sends", TO("sifen", ", in_doubt: resend, contingency: { enabled: false }"), "x", "TIMEOUT", 4, "MAX_RETRIES_EXCEEDED" },
        { "S4-020 provisioning: ten sends", TO("provisioning", ", contingency: { enabled: false }"), "x", "connection refused", 10, "MAX_RETRIES_EXCEEDED" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct stage stage = { .destination = fails_as, .context = (void *)(uintptr_t)cases[i].error };
        print_message("  %s\n", cases[i].name);
        stage_begin(&stage, cases[i].yaml, began);
        stage_add(&stage, "d", "t", cases[i].id, "x");
        stage_run_for(&stage, (int64_t)6 * 3600 * 1000);
        struct job job = stage_job(&stage, "t", cases[i].id);
        assert_int_equal(job.state, STATE_DEAD);
        assert_int_equal(stage.send_count, cases[i].sends);
        assert_true(slice_equal(job.dead_code, slice_from(cases[i].dead_code)));
        assert_true(slice_equal(job.last_error, slice_from(cases[i].error))); /* */
        assert_int_equal(job.attempts, cases[i].sends);
        stage_end(&stage);
    }
}

static int64_t fails_twice(struct stage *stage, const struct send *send, struct answer *answer)
{
    (void)send;
    if (stage->send_count <= 2)
        answer->text = SLICE("HTTP 503: busy");
    else
        answer->outcome = OUTCOME_DELIVERED;
    return 10;
}

/* S0-007 S1-006 S0-074 */
static void a_transient_failure_is_waited_out(void **state)
{
    struct stage stage = { .destination = fails_twice };
    (void)state;
    stage_begin(&stage, TO("tiss", ""), began);
    stage_add(&stage, "d", "t", "CLM-2025-7", "x");
    stage_run_for(&stage, 5 * 60 * 1000 - 1);
    assert_int_equal(stage.send_count, 1); /* V3: never before five minutes */
    assert_int_equal(stage_job(&stage, "t", "CLM-2025-7").state, STATE_WAITING);
    stage_run_for(&stage, 60 * 60 * 1000);
    assert_int_equal(stage.send_count, 3);
    assert_int_equal(stage_job(&stage, "t", "CLM-2025-7").state, STATE_COMPLETED);
    stage_end(&stage);
}

static int64_t hangs(struct stage *stage, const struct send *send, struct answer *answer)
{
    (void)stage;
    (void)send;
    answer->text = SLICE("TIMEOUT");
    return (int64_t)3600 * 1000;
}

/* dead.ttl of its own destination, not the longest of all; 0s keeps it until it is purged. */
static void an_expired_job_is_kept_as_its_destination_says(void **state)
{
    static const char yaml[] = "destinations:\n"
                               "  kept: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true, job_ttl: 10s, dead: { ttl: 0s } }\n"
                               "  brief: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true, job_ttl: 10s, dead: { ttl: 1h } }\n";
    struct stage stage = { .destination = delivers };
    struct error error;
    (void)state;
    stage_begin(&stage, yaml, began);
    assert_int_equal(engine_pause(stage.engine, SLICE("kept"), SLICE("x"), &error), STATUS_OK);
    assert_int_equal(engine_pause(stage.engine, SLICE("brief"), SLICE("x"), &error), STATUS_OK);
    stage_add(&stage, "kept", "t", "one", "x");
    stage_add(&stage, "brief", "t", "two", "x");
    stage_run_for(&stage, 20 * 1000);
    struct job saved = stage_job(&stage, "t", "one"), brief = stage_job(&stage, "t", "two");
    assert_int_equal(saved.state, STATE_DEAD);
    assert_true(saved.expires_at == INSTANT_NONE);
    assert_int_equal(brief.state, STATE_DEAD);
    assert_int_equal(brief.expires_at - brief.dead_at, 3600 * 1000);
    stage_end(&stage);
}

static void a_crash_leaves_the_attempt_in_doubt(void **state)
{
    struct stage stage = { .destination = hangs };
    (void)state;
    stage_begin(&stage, TO("http", ""), began);
    stage_add(&stage, "d", "t", "one", "x");
    stage_run_for(&stage, 100);
    assert_int_equal(stage_job(&stage, "t", "one").state, STATE_RUNNING);
    stage_crash(&stage);
    stage_settle(&stage);
    struct job job = stage_job(&stage, "t", "one");
    assert_int_equal(job.state, STATE_WAITING);
    assert_int_equal(job.last_class, OUTCOME_IN_DOUBT);
    assert_true(job.doubted);
    assert_int_equal(job.attempts, 1); /* counted before it was tried */
    stage.destination = delivers;
    stage_run_for(&stage, (int64_t)3600 * 1000);
    assert_int_equal(stage_job(&stage, "t", "one").state, STATE_COMPLETED);
    stage_end(&stage);
}

/* A job that kills the process each time is set aside by its limit. */
static void a_job_that_kills_the_process_ends(void **state)
{
    struct stage stage = { .destination = hangs };
    (void)state;
    stage_begin(&stage, TO("provisioning", ", retry: { max_retries: 3 }"), began);
    stage_add(&stage, "d", "t", "killer", "x");
    int crashes = 0;
    while (crashes < 20) {
        stage_run_for(&stage, (int64_t)3600 * 1000 / 4);
        if (stage_job(&stage, "t", "killer").state == STATE_DEAD)
            break;
        stage_crash(&stage);
        crashes++;
    }
    struct job job = stage_job(&stage, "t", "killer");
    assert_int_equal(job.state, STATE_DEAD);
    assert_int_equal(stage.send_count, 4);
    assert_true(slice_equal(job.dead_code, SLICE("MAX_RETRIES_EXCEEDED")));
    stage_end(&stage);
}

static void a_clock_put_back_puts_nothing_off(void **state)
{
    struct stage stage = { .destination = delivers };
    (void)state;
    stage_begin(&stage, TO("http", ""), began);
    stage_run_for(&stage, 10 * 1000);
    stage.now -= (int64_t)5 * 3600 * 1000;
    stage_add(&stage, "d", "t", "one", "x");
    stage_run_for(&stage, 2000);
    assert_int_equal(stage_job(&stage, "t", "one").state, STATE_COMPLETED);
    stage_end(&stage);
}

static void concurrency_is_kept(void **state)
{
    struct stage stage = { .destination = hangs };
    (void)state;
    stage_begin(&stage, TO("http", ", concurrency: 5"), began);
    for (int i = 0; i < 50; i++)
        stage_add(&stage, "d", "t", NULL, "x");
    stage_run_for(&stage, 1000);
    assert_int_equal(stage.send_count, 5);
    assert_int_equal(stage_counts(&stage, "d").running, 5);
    stage_end(&stage);
}

struct order {
    char tenants[64];
    size_t count;
};

static int64_t notes_tenant(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct order *order = stage->context;
    if (order->count < sizeof order->tenants - 1)
        order->tenants[order->count++] = send->job->tenant.data[0];
    answer->outcome = OUTCOME_DELIVERED;
    return 10;
}

/* S2-007 S2-010 */
static void tenants_take_turns(void **state)
{
    struct order order = { .count = 0 };
    struct stage stage = { .destination = notes_tenant, .context = &order };
    (void)state;
    stage_begin(&stage, TO("http", ", concurrency: 1, fairness: { round_robin: true, batch: 3 }"), began);
    for (int i = 0; i < 9; i++)
        stage_add(&stage, "d", "A", NULL, "x");
    stage_add(&stage, "d", "B", NULL, "x");
    stage_run_for(&stage, 10000);
    assert_int_equal(order.count, 10);
    assert_string_equal(order.tenants, "AAABAAAAAA"); /* served within three dispatches */
    stage_end(&stage);
}

static int64_t throttles_once(struct stage *stage, const struct send *send, struct answer *answer)
{
    (void)send;
    if (stage->send_count > 1) {
        answer->outcome = OUTCOME_DELIVERED;
        return 10;
    }
    answer->code = SLICE("http:429");
    answer->text = SLICE("HTTP 429: slow down");
    answer->retry_after_ms = 120 * 1000;
    answer->slow_all = true;
    return 10;
}

static void retry_after_holds_the_destination(void **state)
{
    struct stage stage = { .destination = throttles_once };
    (void)state;
    stage_begin(&stage, TO("http", ", concurrency: 1"), began);
    for (int i = 0; i < 3; i++)
        stage_add(&stage, "d", "t", NULL, "x");
    stage_run_for(&stage, 119 * 1000);
    assert_int_equal(stage.send_count, 1);
    assert_string_equal(engine_destination(stage.engine, SLICE("d")).held_by, "throttle");
    stage_run_for(&stage, 600 * 1000);
    assert_int_equal(stage_counts(&stage, "d").completed, 3);
    stage_end(&stage);
}

static int64_t refuses_login(struct stage *stage, const struct send *send, struct answer *answer)
{
    (void)stage;
    (void)send;
    answer->code = SLICE("http:401");
    answer->text = SLICE("HTTP 401: who are you?");
    return 10;
}

static void blocked_credentials_hold_and_spend_nothing(void **state)
{
    struct stage stage = { .destination = refuses_login };
    struct error error;
    (void)state;
    stage_begin(&stage, TO("http", ", concurrency: 1"), began);
    for (int i = 0; i < 3; i++)
        stage_add(&stage, "d", "t", i == 0 ? "first" : NULL, "x");
    stage_run_for(&stage, (int64_t)24 * 3600 * 1000);
    assert_in_range(stage.send_count, 2 + 6 + 22, 2 + 6 + 23); /* the second decides; then looks, hourly in the end */
    assert_int_equal(stage_counts(&stage, "d").dead, 0);
    assert_int_equal(stage_job(&stage, "t", "first").retry_count, 0);
    assert_string_equal(engine_destination(stage.engine, SLICE("d")).mode, "paused");
    stage_crash(&stage); /* the hold is kept over a restart */
    stage_run_for(&stage, 1000);
    assert_string_equal(engine_destination(stage.engine, SLICE("d")).mode, "paused");
    stage.destination = delivers;
    assert_int_equal(engine_resume(stage.engine, SLICE("d"), &error), STATUS_OK);
    stage_run_for(&stage, 3600 * 1000);
    assert_int_equal(stage_counts(&stage, "d").completed, 3);
    stage_end(&stage);
}

static void a_full_dead_letter_store_holds_the_destination(void **state)
{
    struct stage stage = { .destination = fails_as, .context = (void *)(uintptr_t) "HTTP 422: no" };
    (void)state;
    stage_begin(&stage, TO("http", ", concurrency: 1, dead: { max: 2, ttl: 1h }"), began);
    for (int i = 0; i < 5; i++)
        stage_add(&stage, "d", "t", NULL, "x");
    stage_run_for(&stage, 60 * 1000);
    assert_int_equal(stage_counts(&stage, "d").dead, 2);
    assert_int_equal(stage_counts(&stage, "d").pending, 3); /* C-38: kept, never dropped */
    assert_string_equal(engine_destination(stage.engine, SLICE("d")).held_by, "dead_full");
    stage_run_for(&stage, 2 * 3600 * 1000); /* the time to live ends and makes room */
    assert_true(stage_counts(&stage, "d").pending < 3);
    stage_end(&stage);
}

/* Those that expired while they waited fill it, too. */
static void expired_jobs_fill_the_dead_letters(void **state)
{
    struct stage stage = { .destination = delivers };
    struct error error;
    (void)state;
    stage_begin(&stage, TO("http", ", job_ttl: 1m, dead: { max: 2, ttl: 1h }"), began);
    assert_int_equal(engine_pause(stage.engine, SLICE("d"), SLICE("a while"), &error), STATUS_OK);
    for (int i = 0; i < 3; i++)
        stage_add(&stage, "d", "t", NULL, "x");
    stage_run_for(&stage, 3 * 60 * 1000);
    assert_int_equal(stage_counts(&stage, "d").dead, 3);
    assert_int_equal(engine_resume(stage.engine, SLICE("d"), &error), STATUS_OK);
    stage_add(&stage, "d", "t", NULL, "x");
    stage_run_for(&stage, 30 * 1000);
    assert_int_equal(stage.send_count, 0);
    assert_string_equal(engine_destination(stage.engine, SLICE("d")).held_by, "dead_full");
    stage_end(&stage);
}

/* And interrupted attempts that nobody may repeat. */
static void interrupted_attempts_fill_the_dead_letters(void **state)
{
    struct stage stage = { .destination = delivers };
    (void)state;
    stage_begin(&stage, TO("http", ", in_doubt: park, dead: { max: 1, ttl: 1h }"), began);
    stage_add(&stage, "d", "t", NULL, "x");
    stage_settle(&stage);
    assert_int_equal(stage.send_count, 1);
    stage_crash(&stage);
    stage_run_for(&stage, 10 * 1000);
    assert_int_equal(stage_counts(&stage, "d").dead, 1);
    stage_add(&stage, "d", "t", NULL, "x");
    stage_run_for(&stage, 30 * 1000);
    assert_int_equal(stage.send_count, 1);
    assert_string_equal(engine_destination(stage.engine, SLICE("d")).held_by, "dead_full");
    stage_end(&stage);
}

/* A store that cannot be read for a moment does not make it forget how many there are. */
static void a_failed_count_keeps_the_dead_letters(void **state)
{
    struct stage stage = { .destination = fails_as, .context = (void *)(uintptr_t) "HTTP 422: no" };
    struct store *faulty;
    struct error error;
    (void)state;
    stage_begin(&stage, TO("http", ", concurrency: 1, dead: { max: 2, ttl: 1h }"), began);
    stage.reader->ops->reader_close(stage.reader);
    assert_int_equal(store_faulty_wrap(stage.store, &faulty, &error), STATUS_OK);
    stage.store = faulty;
    assert_int_equal(faulty->ops->reader(faulty, &stage.reader, &error), STATUS_OK);
    stage_crash(&stage); /* the next process reads through it */
    for (int i = 0; i < 5; i++)
        stage_add(&stage, "d", "t", NULL, "x");
    stage_run_for(&stage, 60 * 1000);
    size_t sent = stage.send_count;
    store_faulty_set(faulty, FAULTY_READ, 1, true, STATUS_IO);
    stage_run_for(&stage, 60 * 1000);
    assert_int_equal(stage.send_count, sent);
    assert_string_equal(engine_destination(stage.engine, SLICE("d")).held_by, "dead_full");
    store_faulty_set(faulty, FAULTY_READ, 0, false, STATUS_IO);
    stage_end(&stage);
}

static int64_t loses_the_answer(struct stage *stage, const struct send *send, struct answer *answer)
{
    const char *verify = stage->context;
    if (send->job->step == STEP_SEND) {
        answer->outcome = stage->send_count == 1 ? OUTCOME_IN_DOUBT : OUTCOME_DELIVERED;
        answer->text = SLICE("TIMEOUT after the body was sent");
    } else {
        answer->text = SLICE("HTTP 200");
        answer->query = strcmp(verify, "there") == 0    ? QUERY_DELIVERED
                        : strcmp(verify, "absent") == 0 ? QUERY_ABSENT
                                                        : QUERY_UNCLEAR;
    }
    return 10;
}

static void doubt_is_verified_before_a_resend(void **state)
{
    static const struct { const char *answer; size_t requests; enum job_state state; const char *dead_code; } cases[] = {
        { "there", 2, STATE_COMPLETED, "" },
        { "absent", 3, STATE_COMPLETED, "" },
        { "unclear", 4, STATE_DEAD, "IN_DOUBT" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct stage stage = { .destination = loses_the_answer, .context = (void *)(uintptr_t)cases[i].answer };
        print_message("  C-64 %s\n", cases[i].answer);
        stage_begin(&stage, TO("http", ", in_doubt: verify, verify: { url: 'http://127.0.0.1:1/{id}', after: 10m, every: 1m, times: 3 }"), began);
        stage_add(&stage, "d", "t", "one", "x");
        stage_run_for(&stage, 9 * 60 * 1000);
        assert_int_equal(stage.send_count, 1); /* nothing before verify.after */
        stage_run_for(&stage, (int64_t)3600 * 1000);
        struct job job = stage_job(&stage, "t", "one");
        assert_int_equal(job.state, cases[i].state);
        assert_int_equal(stage.send_count, cases[i].requests);
        assert_true(slice_equal(job.dead_code, slice_from(cases[i].dead_code)));
        stage_end(&stage);
    }
}

static void a_deadline_that_passes_is_an_expiry(void **state)
{
    struct stage stage = { .destination = fails_as, .context = (void *)(uintptr_t) "TIMEOUT" };
    (void)state;
    stage_begin(&stage, TO("http", ", job_ttl: 10s, retry: { base: 1m, cap: 1h, max_retries: 50 }"), began);
    stage_add(&stage, "d", "t", "one", "x");
    stage_run_for(&stage, 60 * 1000);
    struct job job = stage_job(&stage, "t", "one");
    assert_int_equal(job.state, STATE_DEAD);
    assert_true(slice_equal(job.dead_code, SLICE("EXPIRED")));
    assert_true(job.last_error.len > 0);
    stage_end(&stage);
}

/* S1-070 */
static void a_full_disk_loses_nothing(void **state)
{
    struct stage stage = { .destination = delivers };
    (void)state;
    stage_begin(&stage, TO("http", ", concurrency: 4"), began);
    for (int i = 0; i < 20; i++)
        stage_add(&stage, "d", "t", NULL, "x");
    stage.fail_applies = true;
    stage_run_for(&stage, 10 * 1000);
    stage.fail_applies = false;
    stage_run_for(&stage, 3600 * 1000);
    assert_int_equal(stage_counts(&stage, "d").completed, 20);
    stage_end(&stage);
}

static void leases_are_taken_waited_for_and_lost(void **state);

struct lease_seen {
    enum status status;
    size_t count;
    int calls;
};

static void on_leased(struct lease_request *request, enum status status, const struct job *jobs, size_t count)
{
    struct lease_seen *seen = request->context;
    (void)jobs;
    *seen = (struct lease_seen){ .status = status, .count = count, .calls = seen->calls + 1 };
}

static void leases_are_taken_waited_for_and_lost(void **state)
{
    struct stage stage = { .destination = delivers };
    struct lease_seen seen = { 0 };
    (void)state;
    stage_begin(&stage, "destinations: { p: { preset: http, transport: pull, retry: { base: 1s, floor: 0s } } }\n", began);
    struct lease_request request = { .destination = SLICE("p"), .worker = SLICE("w"), .max = 10, .lease_ms = 5000,
                                     .wait_until = began + 20000, .done = on_leased, .context = &seen };
    engine_lease(stage.engine, &request);
    stage_run_for(&stage, 5000);
    assert_int_equal(seen.calls, 0); /* it waits */
    for (int i = 0; i < 3; i++)
        stage_add(&stage, "p", i == 1 ? "u" : "t", NULL, "x");
    stage_run_for(&stage, 10);
    assert_int_equal(seen.calls, 1);
    assert_int_equal(seen.status, STATUS_OK);
    lease_release(&request);
    assert_true(seen.count >= 1);
    size_t taken = seen.count;
    assert_int_equal(stage_counts(&stage, "p").running, (int64_t)taken);

    stage_run_for(&stage, 8000); /* the worker vanished: its leases end and the jobs come back */
    assert_int_equal(stage_counts(&stage, "p").running, 0);
    struct lease_request late = { .destination = SLICE("p"), .worker = SLICE("w"), .max = 10, .lease_ms = 5000,
                                  .wait_until = stage.now + 60000, .done = on_leased, .context = &seen };
    engine_lease(stage.engine, &late);
    stage_run_for(&stage, 59000);
    assert_int_equal(seen.calls, 2);
    lease_release(&late);

    struct lease_request empty = { .destination = SLICE("p"), .worker = SLICE("w"), .max = 10, .lease_ms = 60000,
                                   .wait_until = stage.now + 1000, .done = on_leased, .context = &seen };
    engine_lease(stage.engine, &empty);
    engine_stop(stage.engine);
    assert_int_equal(seen.calls, 3); /* a stop answers those who wait */
    lease_release(&empty);
    stage_end(&stage);
}

/* C-25 S1-069: what was delivered is not sent again because the disk was full when it was to be recorded. */
static void a_delivery_outlives_a_full_disk(void **state)
{
    struct stage stage = { .destination = delivers };
    (void)state;
    stage_begin(&stage, TO("http", ", concurrency: 4, in_doubt: resend"), began);
    for (int i = 0; i < 20; i++)
        stage_add(&stage, "d", "t", NULL, "x");
    stage_run_for(&stage, 5);
    assert_int_equal(stage.send_count, 4);
    stage.fail_applies = true;
    stage_run_for(&stage, (int64_t)3600 * 1000);
    assert_int_equal(stage.send_count, 4);
    stage.fail_applies = false;
    stage_run_for(&stage, 60 * 1000);
    assert_int_equal(stage_counts(&stage, "d").completed, 20);
    assert_int_equal(stage.send_count, 20);
    stage_end(&stage);
}

/* A store that refuses is asked about once a second, not as fast as the processor can. */
static void a_refusing_store_is_not_hammered(void **state)
{
    struct stage stage = { .destination = delivers };
    int steps = 0;
    (void)state;
    stage_begin(&stage, TO("http", ""), began);
    stage_run_for(&stage, 2000);
    stage_add(&stage, "d", "t", NULL, "x");
    stage.fail_applies = true;
    for (int i = 0; i < 60; i++) {
        while (stage_step(&stage))
            assert_true(++steps < 60 * 20);
        stage_run_for(&stage, 1000);
    }
    stage.fail_applies = false;
    stage_run_for(&stage, 2000);
    assert_int_equal(stage_counts(&stage, "d").completed, 1);
    stage_end(&stage);
}

/* A pause that the store refused at first is kept over a restart all the same. */
static void a_pause_outlives_a_full_disk(void **state)
{
    struct stage stage = { .destination = delivers };
    struct error error;
    (void)state;
    stage_begin(&stage, TO("http", ""), began);
    stage_run_for(&stage, 1000);
    stage.fail_applies = true;
    assert_int_equal(engine_pause(stage.engine, SLICE("d"), SLICE("by hand"), &error), STATUS_OK);
    stage_run_for(&stage, 10 * 1000);
    stage.fail_applies = false;
    stage_run_for(&stage, 3 * 1000);
    stage_crash(&stage);
    struct destination_status status = engine_destination(stage.engine, SLICE("d"));
    assert_string_equal(status.mode, "paused");
    assert_string_equal(status.pause_reason, "by hand");
    assert_int_equal(status.held_since, began + 1000);
    stage_add(&stage, "d", "t", NULL, "x");
    stage_run_for(&stage, 60 * 1000);
    assert_int_equal(stage.send_count, 0);
    stage_end(&stage);
}

/* More settlements than one batch holds stand before the pause. */
static void a_pause_is_kept_behind_a_full_batch(void **state)
{
    struct stage stage = { .destination = hangs };
    struct error error;
    (void)state;
    stage_begin(&stage, TO("http", ", concurrency: 1500"), began);
    stage.destination = delivers; /* until the limit that is found by trying is as high as the configured one */
    for (int i = 0; i < 20000; i++)
        stage_add(&stage, "d", "t", NULL, "x");
    stage_run_for(&stage, 60 * 1000);
    assert_int_equal(engine_destination(stage.engine, SLICE("d")).limit.now, 1500);
    stage.destination = hangs;
    for (int i = 0; i < 1500; i++)
        stage_add(&stage, "d", "t", NULL, "x");
    while (stage.send_count < 20000 + 1500)
        assert_true(stage_step(&stage));
    for (struct stage_send *send = stage.sends; send; send = send->next)
        send->at = stage.now;
    while (stage.sends) /* all answers are here before the engine runs */
        assert_true(stage_step(&stage));
    engine_run(stage.engine); /* one batch is with the store */
    engine_run(stage.engine); /* and the next is full */
    assert_int_equal(engine_pause(stage.engine, SLICE("d"), SLICE("now"), &error), STATUS_OK);
    stage_run_for(&stage, 1000);
    stage_crash(&stage);
    assert_string_equal(engine_destination(stage.engine, SLICE("d")).mode, "paused");
    stage_end(&stage);
}

static int64_t refuses_by_name(struct stage *stage, const struct send *send, struct answer *answer)
{
    (void)stage;
    (void)send;
    answer->outcome = OUTCOME_BLOCKED;
    answer->code = SLICE("http:401");
    answer->text = SLICE("HTTP 401: ana.silva@hospital.example may not");
    return 10;
}

static void the_reason_of_a_hold_names_nobody(void **state)
{
    struct stage stage = { .destination = refuses_by_name };
    (void)state;
    stage_begin(&stage, TO("http", ", concurrency: 1"), began);
    stage_add(&stage, "d", "t", "one", "x");
    stage_add(&stage, "d", "t", "two", "x");
    stage_run_for(&stage, 1000);
    assert_string_equal(engine_destination(stage.engine, SLICE("d")).pause_reason,
                        "job two of tenant t was refused: http:401, HTTP 401: <address> may not"); /* S1-078 */
    stage_end(&stage);
}

/* A stop gives back what was claimed and not sent yet; nothing is spent. */
static void a_stop_gives_back_what_was_not_sent(void **state)
{
    struct stage stage = { .destination = delivers };
    (void)state;
    stage_begin(&stage, TO("http", ""), began);
    stage_run_for(&stage, 1000);
    stage_add(&stage, "d", "t", "one", "x");
    while (!stage.batches)
        assert_true(stage_step(&stage));
    engine_stop(stage.engine);
    stage_run_for(&stage, 1000);
    assert_int_equal(engine_under_way(stage.engine), 0);
    assert_int_equal(stage.send_count, 0);
    struct job job = stage_job(&stage, "t", "one");
    assert_int_equal(job.state, STATE_WAITING);
    assert_int_equal(job.attempts, 0);
    assert_int_equal(job.retry_count, 0);
    stage_crash(&stage);
    stage_run_for(&stage, 10 * 1000);
    assert_int_equal(stage_job(&stage, "t", "one").state, STATE_COMPLETED);
    stage_end(&stage);
}

/* While stopping, a refused settlement is tried again without anybody's help, and then left to the next process. */
static void a_stop_ends_although_the_store_refuses(void **state)
{
    struct stage stage = { .destination = hangs };
    (void)state;
    stage_begin(&stage, TO("http", ""), began);
    stage_add(&stage, "d", "t", "one", "x");
    stage_run_for(&stage, 100);
    assert_int_equal(stage.send_count, 1);
    stage.fail_applies = true;
    stage_run_for(&stage, 65 * 1000); /* what is due cannot be promoted either */
    engine_stop(stage.engine);
    stage.sends->at = stage.now;
    stage_run_for(&stage, 30 * 1000);
    assert_int_equal(engine_under_way(stage.engine), 0);
    stage.fail_applies = false;
    stage_end(&stage);
}

static int64_t crashes_when_asked(struct stage *stage, const struct send *send, struct answer *answer)
{
    size_t *questions = stage->context;
    *questions += send->job->step == STEP_VERIFY;
    answer->outcome = OUTCOME_IN_DOUBT;
    answer->text = SLICE("TIMEOUT after the body was sent");
    return send->job->step == STEP_VERIFY ? (int64_t)24 * 3600 * 1000 : 10;
}

/* A question that kills the process is not asked for ever. */
static void a_question_that_kills_the_process_ends(void **state)
{
    size_t questions = 0;
    struct stage stage = { .destination = crashes_when_asked, .context = &questions };
    (void)state;
    stage_begin(&stage, TO("http", ", in_doubt: verify, verify: { url: 'http://127.0.0.1:1/{id}', after: 1m, every: 1m, times: 3 }"),
                began);
    stage_add(&stage, "d", "t", "one", "x");
    for (int crashes = 0; crashes < 10; crashes++) {
        stage_run_for(&stage, 5 * 60 * 1000);
        stage_crash(&stage);
    }
    struct job job = stage_job(&stage, "t", "one");
    assert_int_equal(questions, 3);
    assert_int_equal(job.state, STATE_DEAD);
    assert_true(slice_equal(job.dead_code, SLICE("IN_DOUBT")));
    stage_end(&stage);
}

/* An interrupted attempt at a destination that is configured no more waits for it, and is in doubt then. */
static void an_interrupted_attempt_waits_for_its_destination(void **state)
{
    struct stage stage = { .destination = hangs };
    struct error error;
    (void)state;
    stage_begin(&stage, TO("http", ", in_doubt: park"), began);
    stage_add(&stage, "d", "t", "one", "x");
    stage_run_for(&stage, 100);
    struct config *with = stage.config;
    stage.config = config_from(SLICE("destinations: { other: { url: 'https://a.example/' } }\n"), "test.yaml");
    stage_crash(&stage);
    stage_run_for(&stage, (int64_t)3600 * 1000);
    assert_int_equal(stage_job(&stage, "t", "one").state, STATE_RUNNING);
    assert_int_equal(engine_reload(stage.engine, with, &error), STATUS_OK);
    stage_run_for(&stage, 6 * 60 * 1000);
    struct job job = stage_job(&stage, "t", "one");
    assert_int_equal(job.state, STATE_DEAD);
    assert_true(slice_equal(job.dead_code, SLICE("IN_DOUBT")));
    assert_int_equal(job.attempts, 1);
    config_unref(with);
    stage_end(&stage);
}

/* Node a claims one job of d, which b then takes over from it. */
static struct store *take_over(struct stage *stage)
{
    struct error error;
    struct store *a;
    struct arena memory = { 0 };
    stage_apply(stage, &(struct store_op){ .kind = OP_GIVE, .own = { .destination = SLICE("d") } });
    assert_int_equal(store_memory_join(stage->store, &(struct store_settings){ .node = SLICE("a") }, &a, &error), STATUS_OK);
    struct store_op ops[] = {
        { .kind = OP_TAKE, .own = { .destination = SLICE("d") } },
        { .kind = OP_INSERT, .insert = { .destination = SLICE("d"), .tenant = SLICE("t"), .id = SLICE("one"), .run_at = INSTANT_NONE,
                                         .deadline = INSTANT_NONE, .priority = PRIORITY_NORMAL, .payload = SLICE("x") } },
        { .kind = OP_CLAIM, .claim = { .lane = 1, .max = 1, .lease_until = stage->now + 24 * HOUR_MS } },
    };
    assert_int_equal(a->ops->apply(a, stage->now, ops, 3, &memory, &error), STATUS_OK);
    assert_int_equal(ops[2].claim.ret_count, 1);
    arena_release(&memory);
    assert_int_equal(stage->store->ops->fence(stage->store, a->session, 0, stage->now, &error), STATUS_OK);
    return a;
}

/* Until a send of the session that was fenced must be over, nobody says that it was interrupted, nor sends it again. */
static void what_a_fenced_node_sent_is_waited_for(void **state)
{
    struct stage stage = { .destination = delivers, .node = "b" };
    (void)state;
    stage_begin(&stage, TO("http", ", timeout: 30s, in_doubt: resend"), began);
    struct store *a = take_over(&stage);
    stage_crash(&stage);
    stage_add(&stage, "d", "t", "two", "x");
    stage_run_for(&stage, 31900);
    assert_int_equal(stage_job(&stage, "t", "two").state, STATE_COMPLETED); /* others need not wait */
    assert_int_equal(stage_job(&stage, "t", "one").state, STATE_RUNNING);
    stage_run_for(&stage, 2 * 1000);
    struct job job = stage_job(&stage, "t", "one");
    assert_true(job.state != STATE_RUNNING);
    assert_true(slice_equal(job.last_code, SLICE("insist:interrupted")));
    stage_run_for(&stage, (int64_t)3600 * 1000);
    assert_int_equal(stage_job(&stage, "t", "one").state, STATE_COMPLETED);
    assert_int_equal(stage.send_count, 2);
    a->ops->close(a);
    stage_end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_fenced_node_sent_is_waited_for),
        cmocka_unit_test(a_job_is_delivered_once),
        cmocka_unit_test(a_failing_destination_gets_the_presets_sends),
        cmocka_unit_test(a_transient_failure_is_waited_out),
        cmocka_unit_test(a_crash_leaves_the_attempt_in_doubt),
        cmocka_unit_test(a_job_that_kills_the_process_ends),
        cmocka_unit_test(a_clock_put_back_puts_nothing_off),
        cmocka_unit_test(concurrency_is_kept),
        cmocka_unit_test(tenants_take_turns),
        cmocka_unit_test(retry_after_holds_the_destination),
        cmocka_unit_test(blocked_credentials_hold_and_spend_nothing),
        cmocka_unit_test(a_full_dead_letter_store_holds_the_destination),
        cmocka_unit_test(expired_jobs_fill_the_dead_letters),
        cmocka_unit_test(interrupted_attempts_fill_the_dead_letters),
        cmocka_unit_test(a_failed_count_keeps_the_dead_letters),
        cmocka_unit_test(doubt_is_verified_before_a_resend),
        cmocka_unit_test(a_deadline_that_passes_is_an_expiry),
        cmocka_unit_test(a_full_disk_loses_nothing),
        cmocka_unit_test(leases_are_taken_waited_for_and_lost),
        cmocka_unit_test(a_delivery_outlives_a_full_disk),
        cmocka_unit_test(a_refusing_store_is_not_hammered),
        cmocka_unit_test(a_pause_outlives_a_full_disk),
        cmocka_unit_test(a_pause_is_kept_behind_a_full_batch),
        cmocka_unit_test(the_reason_of_a_hold_names_nobody),
        cmocka_unit_test(a_stop_gives_back_what_was_not_sent),
        cmocka_unit_test(a_stop_ends_although_the_store_refuses),
        cmocka_unit_test(a_question_that_kills_the_process_ends),
        cmocka_unit_test(an_interrupted_attempt_waits_for_its_destination),
        cmocka_unit_test(an_expired_job_is_kept_as_its_destination_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
