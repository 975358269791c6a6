#include "support/api_fixture.h"
#include "support/check.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int setup(void **state)
{
    *state = api_fixture_new(NULL);
    return 0;
}

static int teardown(void **state)
{
    api_fixture_free(*state);
    return 0;
}

static void put(struct api_fixture *fixture, const char *id)
{
    char body[128];
    snprintf(body, sizeof body, "{\"destination\":\"yard\",\"id\":\"%s\",\"payload\":{\"n\":1.0}}", id);
    struct reply reply = http_do(fixture, "POST", "/v1/jobs", body);
    check(reply.status == 201, "%s", reply.body);
    reply_release(&reply);
}

/* Leases one job, waiting for it; the lease's text. */
static void take(struct api_fixture *fixture, char lease[64])
{
    struct reply reply = http_do(fixture, "POST", "/v1/leases", "{\"destination\":\"yard\",\"wait_s\":5,\"lease_s\":30}");
    check(reply.status == 200 && reply_at(&reply, "leases.0"), "%s", reply.body);
    snprintf(lease, 64, "%s", reply_text(&reply, "leases.0.lease"));
    reply_release(&reply);
}

static struct reply with_lease(struct api_fixture *fixture, const char *path, const char *format, const char *lease)
{
    char body[512];
    snprintf(body, sizeof body, format, lease, lease);
    return http_do(fixture, "POST", path, body);
}

static void a_lease_shows_its_job(void **state)
{
    struct api_fixture *fixture = *state;
    put(fixture, "a");
    struct reply reply =
        http_do(fixture, "POST", "/v1/leases", "{\"destination\":\"yard\",\"max\":10,\"wait_s\":5,\"worker\":\"w1\"}");
    assert_int_equal(reply.status, 200);
    assert_int_equal(json_array_size(reply_at(&reply, "leases")), 1);
    assert_string_equal(reply_text(&reply, "leases.0.id"), "a");
    assert_string_equal(reply_text(&reply, "leases.0.payload"), "{\"n\":1.0}");
    assert_string_equal(reply_text(&reply, "leases.0.state"), "running");
    assert_string_equal(reply_text(&reply, "leases.0.content_type"), "application/json");
    assert_int_equal(reply_int(&reply, "leases.0.attempt"), 1);
    assert_true(*reply_text(&reply, "leases.0.lease_until"));
    reply_release(&reply);
}

static void who_does_not_wait_gets_what_is_there(void **state)
{
    struct api_fixture *fixture = *state;
    put(fixture, "a");
    take(fixture, (char[64]){ 0 }); /* the engine has heard of the lane */
    put(fixture, "b");
    put(fixture, "c");
    size_t got = 0;
    for (int i = 0; i < 1000 && got < 2; i++) { /* it hears of new jobs a moment after they are durable */
        struct reply reply = http_do(fixture, "POST", "/v1/leases", "{\"destination\":\"yard\",\"max\":5}");
        assert_int_equal(reply.status, 200);
        got += json_array_size(reply_at(&reply, "leases"));
        reply_release(&reply);
    }
    assert_int_equal(got, 2);
}

static void requests_are_checked(void **state)
{
    static const struct { const char *path, *body; int status; const char *type; } rows[] = {
        { "/v1/leases", "{\"destination\":\"nope\"}", 422, "unknown_destination" },
        { "/v1/leases", "{}", 422, "invalid_member" },
        { "/v1/leases", "{\"destination\":\"web\"}", 422, "not_pulled" },
        { "/v1/leases", "{\"destination\":\"yard\",\"max\":0}", 422, "invalid_member" },
        { "/v1/leases", "{\"destination\":\"yard\",\"max\":1001}", 422, "invalid_member" },
        { "/v1/leases", "{\"destination\":\"yard\",\"wait_s\":61}", 422, "invalid_member" },
        { "/v1/leases", "{\"destination\":\"yard\",\"lease_s\":0}", 422, "invalid_member" },
        { "/v1/leases", "{\"destination\":\"yard\",\"lease_s\":1.5}", 422, "invalid_member" },
        { "/v1/leases", "{\"destination\":\"yard\",\"worker\":\"engine\"}", 422, "invalid_member" },
        { "/v1/leases", "{\"destination\":\"yard\",\"wait\":1}", 422, "unknown_member" },
        { "/v1/leases", "[]", 422, "invalid_json" },
        { "/v1/leases/ack", "{}", 422, "invalid_member" },
        { "/v1/leases/ack", "{\"leases\":[]}", 422, "invalid_member" },
        { "/v1/leases/ack", "{\"leases\":[\"x\"]}", 422, "invalid_lease" },
        { "/v1/leases/ack", "{\"leases\":[1]}", 422, "invalid_lease" },
        { "/v1/leases/ack", "{\"leases\":[\"1-1-0x\"]}", 422, "invalid_lease" },
        { "/v1/leases/ack", "{\"leases\":[\"fffffffffffffffff-1-0\"]}", 422, "invalid_lease" },
        { "/v1/leases/ack", "{\"leases\":[\"1-1-0\"]}", 409, "lease_lost" },
        { "/v1/leases/extend", "{\"lease\":\"1-1-0\"}", 409, "lease_lost" },
        { "/v1/leases/extend", "{\"lease\":\"1-1-0\",\"lease_s\":0}", 422, "invalid_member" },
        { "/v1/leases/nack", "{\"lease\":\"1-1-0\",\"error\":\"TIMEOUT\"}", 409, "lease_lost" },
        { "/v1/leases/nack", "{\"lease\":\"1-1-0\",\"error\":\" \"}", 422, "invalid_error" },
        { "/v1/leases/nack", "{\"lease\":\"1-1-0\"}", 422, "invalid_error" },
        { "/v1/leases/nack", "{\"lease\":\"1-1-0\",\"error\":\"x\",\"retry_after\":-1}", 422, "invalid_member" },
        { "/v1/leases/nack", "{\"lease\":\"1-1-0\",\"error\":\"x\",\"class\":\"fatal\"}", 422, "invalid_member" },
        { "/v1/leases/nack", "{\"lease\":\"1-1-0\",\"error\":\"x\",\"retry_after\":\"1\"}", 422, "invalid_member" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct reply reply = http_do(*state, "POST", rows[i].path, rows[i].body);
        check(reply.status == rows[i].status, "%s: %d %s", rows[i].body, reply.status, reply.body);
        check(strcmp(reply_text(&reply, "type"), rows[i].type) == 0, "%s: %s", rows[i].body, reply.body);
        reply_release(&reply);
    }
}

static void acks_complete_and_stale_ones_do_not(void **state)
{
    struct api_fixture *fixture = *state;
    char body[256];
    put(fixture, "a");
    put(fixture, "b");
    struct reply taken = http_do(fixture, "POST", "/v1/leases", "{\"destination\":\"yard\",\"max\":10,\"wait_s\":5}");
    assert_int_equal(json_array_size(reply_at(&taken, "leases")), 2);
    snprintf(body, sizeof body, "{\"leases\":[\"%s\",\"7f-1-0\",\"%s\"]}", reply_text(&taken, "leases.0.lease"),
             reply_text(&taken, "leases.1.lease"));
    struct reply reply = http_do(fixture, "POST", "/v1/leases/ack", body);
    assert_int_equal(reply.status, 200);
    assert_int_equal(reply_int(&reply, "acked"), 2);
    assert_int_equal(reply_int(&reply, "lost"), 1);
    assert_string_equal(reply_text(&reply, "results.0.status"), "acked");
    assert_string_equal(reply_text(&reply, "results.1.status"), "lease_lost");
    assert_string_equal(reply_text(&reply, "results.1.lease"), "7f-1-0");
    assert_string_equal(reply_text(&reply, "results.2.status"), "acked");
    reply_release(&reply);
    reply = http_do(fixture, "POST", "/v1/leases/ack", body);
    assert_int_equal(reply.status, 409);
    reply_release(&reply);
    reply = http_do(fixture, "GET", "/v1/jobs/a", NULL);
    assert_string_equal(reply_text(&reply, "state"), "completed");
    assert_string_equal(reply_text(&reply, "attempts.0.class"), "delivered");
    assert_int_equal(reply_int(&reply, "attempts.0.attempt"), 1);
    reply_release(&reply);
    reply = http_do(fixture, "GET", "/v1/stats", NULL);
    assert_int_equal(reply_int(&reply, "engine.delivered"), 2);
    assert_int_equal(reply_int(&reply, "totals.completed"), 2);
    reply_release(&reply);
    reply_release(&taken);
}

static void a_nack_is_decided_upon(void **state)
{
    struct api_fixture *fixture = *state;
    char lease[64];
    put(fixture, "a");
    take(fixture, lease);
    struct reply reply =
        with_lease(fixture, "/v1/leases/nack", "{\"lease\":\"%s\",\"error\":\"TIMEOUT - no answer\"}", lease);
    assert_int_equal(reply.status, 200);
    assert_true(json_is_true(reply_at(&reply, "shouldRetry")));
    assert_int_equal(reply_int(&reply, "retryCount"), 1);
    assert_int_equal(reply_int(&reply, "maxRetries"), 1);
    assert_int_equal(reply_int(&reply, "backoffMs"), HOUR_MS);
    assert_string_equal(reply_text(&reply, "errorClassification"), "TRANSIENT");
    assert_string_equal(reply_text(&reply, "originalError"), "TIMEOUT - no answer");
    assert_true(*reply_text(&reply, "nextRetryTime"));
    reply_release(&reply);
    reply = with_lease(fixture, "/v1/leases/nack", "{\"lease\":\"%s\",\"error\":\"TIMEOUT\"}", lease);
    assert_int_equal(reply.status, 409);
    assert_string_equal(reply_text(&reply, "type"), "lease_lost");
    reply_release(&reply);
    await_state(fixture, "/v1/jobs/a", "waiting");

    api_fixture_advance(fixture, HOUR_MS + MINUTE_MS);
    take(fixture, lease);
    reply = with_lease(fixture, "/v1/leases/nack", "{\"lease\":\"%s\",\"error\":\"TIMEOUT\",\"code\":\"x:1\"}", lease);
    assert_true(json_is_false(reply_at(&reply, "shouldRetry")));
    assert_string_equal(reply_text(&reply, "errorCode"), "MAX_RETRIES_EXCEEDED");
    reply_release(&reply);
    reply = http_do(fixture, "GET", "/v1/jobs/a", NULL);
    assert_string_equal(reply_text(&reply, "state"), "dead");
    assert_string_equal(reply_text(&reply, "last_code"), "x:1");
    assert_int_equal(json_array_size(reply_at(&reply, "attempts")), 2);
    reply_release(&reply);

    put(fixture, "b");
    take(fixture, lease);
    reply = with_lease(fixture, "/v1/leases/nack", "{\"lease\":\"%s\",\"error\":\"TIMEOUT\",\"retry_after\":7200.5}", lease);
    assert_int_equal(reply_int(&reply, "backoffMs"), 7200500);
    reply_release(&reply);
}

/* The worker knows better than the words of its error. */
static void a_nack_can_say_its_class(void **state)
{
    static const struct {
        const char *body, *classification;
    } rows[] = {
        { "{\"lease\":\"%s\",\"error\":\"TIMEOUT\",\"class\":\"permanent\"}", "PERMANENT" },
        { "{\"lease\":\"%s\",\"error\":\"http:404 gone\",\"class\":\"transient\"}", "TRANSIENT" },
    };
    struct api_fixture *fixture = *state;
    char lease[64];
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        put(fixture, i == 0 ? "first" : "second");
        take(fixture, lease);
        struct reply reply = with_lease(fixture, "/v1/leases/nack", rows[i].body, lease);
        assert_int_equal(reply.status, 200);
        assert_string_equal(reply_text(&reply, "errorClassification"), rows[i].classification);
        reply_release(&reply);
    }
}

static void blocking_nacks_hold_the_destination(void **state)
{
    struct api_fixture *fixture = *state;
    static const char *const ids[] = { "a", "b" };
    char lease[64];
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        struct reply before = http_do(fixture, "GET", "/v1/destinations/yard", NULL);
        assert_string_equal(reply_text(&before, "mode"), "normal");
        reply_release(&before);
        put(fixture, ids[i]);
        take(fixture, lease);
        struct reply reply = with_lease(fixture, "/v1/leases/nack", "{\"lease\":\"%s\",\"error\":\"PASSWORD is wrong\"}", lease);
        assert_int_equal(reply.status, 200);
        assert_true(json_is_true(reply_at(&reply, "shouldRetry"))); /* it is held, and sent again: nothing is spent */
        assert_null(reply_at(&reply, "errorCode"));
        assert_string_equal(reply_text(&reply, "action"), "block");
        assert_int_equal(reply_int(&reply, "retryCount"), 0);
        assert_int_equal(reply_int(&reply, "backoffMs"), MINUTE_MS);
        assert_non_null(reply_at(&reply, "nextRetryTime"));
        const char *why = reply_text(&reply, "retryReason");
        check(strcmp(why, "Refused, held and sent again without spending a retry, 0 of 1 used") == 0, "%s", why);
        reply_release(&reply);
    }
    struct reply reply = http_do(fixture, "GET", "/v1/destinations/yard", NULL);
    assert_string_equal(reply_text(&reply, "mode"), "paused");
    assert_string_equal(reply_text(&reply, "held_by"), "blocked");
    const char *reason = reply_text(&reply, "pause_reason");
    check(strstr(reason, "job b was refused: PASSWORD is wrong"), "%s", reason);
    reply_release(&reply);
}

static void an_extended_lease_lives_longer(void **state)
{
    struct api_fixture *fixture = *state;
    char lease[64];
    put(fixture, "a");
    take(fixture, lease);
    struct reply reply = with_lease(fixture, "/v1/leases/extend", "{\"lease\":\"%s\",\"lease_s\":3600}", lease);
    assert_int_equal(reply.status, 200);
    assert_int_equal(reply_int(&reply, "extended"), 1);
    reply_release(&reply);
    api_fixture_advance(fixture, 30 * MINUTE_MS); /* beyond the 30 seconds it had */
    reply = with_lease(fixture, "/v1/leases/ack", "{\"lease\":\"%s\"}", lease);
    assert_int_equal(reply.status, 200);
    reply_release(&reply);
}

static void a_lease_that_ran_out_is_lost(void **state)
{
    struct api_fixture *fixture = *state;
    char lease[64];
    put(fixture, "a");
    take(fixture, lease);
    api_fixture_advance(fixture, 10 * MINUTE_MS);
    await_state(fixture, "/v1/jobs/a", "waiting");
    struct reply reply = with_lease(fixture, "/v1/leases/ack", "{\"lease\":\"%s\"}", lease);
    assert_int_equal(reply.status, 409);
    reply_release(&reply);
}

struct worker {
    struct api_fixture *fixture;
    const char *body;
    struct reply reply;
    pthread_t thread;
};

static void *work(void *context)
{
    struct worker *worker = context;
    worker->reply = http_do(worker->fixture, "POST", "/v1/leases", worker->body);
    return NULL;
}

/* Until the engine knows of as many waiting calls: they are under way in the API. */
static void await_calls(struct api_fixture *fixture, int64_t count)
{
    await_number(fixture, "/v1/stats", "calls", count + 1); /* and this one */
}

static void a_waiting_worker_is_woken(void **state)
{
    struct api_fixture *fixture = *state;
    struct worker worker = { .fixture = fixture, .body = "{\"destination\":\"yard\",\"wait_s\":60}" };
    assert_int_equal(pthread_create(&worker.thread, NULL, work, &worker), 0);
    await_calls(fixture, 1);
    api_fixture_advance(fixture, 59 * SECOND_MS); /* it waits for as long as it said */
    put(fixture, "a");
    pthread_join(worker.thread, NULL);
    assert_int_equal(worker.reply.status, 200);
    assert_string_equal(reply_text(&worker.reply, "leases.0.id"), "a");
    reply_release(&worker.reply);
}

static void waiting_ends_empty(void **state)
{
    struct api_fixture *fixture = *state;
    struct worker worker = { .fixture = fixture, .body = "{\"destination\":\"yard\",\"wait_s\":60}" };
    assert_int_equal(pthread_create(&worker.thread, NULL, work, &worker), 0);
    await_calls(fixture, 1);
    api_fixture_advance(fixture, MINUTE_MS);
    pthread_join(worker.thread, NULL);
    assert_int_equal(worker.reply.status, 200);
    assert_int_equal(json_array_size(reply_at(&worker.reply, "leases")), 0);
    reply_release(&worker.reply);

    struct reply reply = http_do(fixture, "POST", "/v1/leases", "{\"destination\":\"yard\"}");
    assert_int_equal(reply.status, 200);
    assert_true(json_is_array(reply_at(&reply, "leases")));
    reply_release(&reply);
}

/* S4-038 */
static void two_workers_do_not_get_the_same_job(void **state)
{
    struct api_fixture *fixture = *state;
    struct worker workers[2];
    for (int i = 0; i < 2; i++) {
        workers[i] = (struct worker){ .fixture = fixture, .body = "{\"destination\":\"yard\",\"max\":5,\"wait_s\":20}" };
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    await_calls(fixture, 2);
    put(fixture, "a");
    api_fixture_advance(fixture, 0);
    for (int i = 0; i < 1000; i++) {
        struct reply reply = http_do(fixture, "GET", "/v1/jobs/a", NULL);
        bool running = strcmp(reply_text(&reply, "state"), "running") == 0;
        reply_release(&reply);
        if (running)
            break;
    }
    api_fixture_advance(fixture, 21 * SECOND_MS); /* the other one's wait ends; leases are for a minute */
    size_t got = 0;
    for (int i = 0; i < 2; i++) {
        pthread_join(workers[i].thread, NULL);
        assert_int_equal(workers[i].reply.status, 200);
        got += json_array_size(reply_at(&workers[i].reply, "leases"));
        reply_release(&workers[i].reply);
    }
    assert_int_equal(got, 1);
}

/* One of many who say at once that the same lease failed. */
struct nacker {
    struct api_fixture *fixture;
    const char *lease;
    int status;
    bool is_lost;
    pthread_t thread;
};

static void *say_failed(void *context)
{
    struct nacker *nacker = context;
    struct reply reply = with_lease(nacker->fixture, "/v1/leases/nack", "{\"lease\":\"%s\",\"error\":\"TIMEOUT\"}", nacker->lease);
    nacker->status = reply.status;
    nacker->is_lost = strcmp(reply_text(&reply, "type"), "lease_lost") == 0;
    reply_release(&reply);
    return NULL;
}

/* One is taken, the others are told that the lease is gone, and one failure is what happened. */
static void forty_nacks_are_one_failure(void **state)
{
    enum { NACKS = 40 };
    struct api_fixture *fixture = *state;
    struct nacker nackers[NACKS];
    char lease[64];
    int taken = 0;
    put(fixture, "a");
    take(fixture, lease);
    for (int i = 0; i < NACKS; i++) {
        nackers[i] = (struct nacker){ .fixture = fixture, .lease = lease };
        assert_int_equal(pthread_create(&nackers[i].thread, NULL, say_failed, &nackers[i]), 0);
    }
    for (int i = 0; i < NACKS; i++) {
        pthread_join(nackers[i].thread, NULL);
        taken += nackers[i].status == 200;
        check(nackers[i].status == 200 || (nackers[i].status == 409 && nackers[i].is_lost), "nack %d: %d", i, nackers[i].status);
    }
    assert_int_equal(taken, 1);
    await_number(fixture, "/v1/stats", "engine.failed", 1);
    struct reply reply = http_do(fixture, "GET", "/v1/jobs/a", NULL);
    assert_string_equal(reply_text(&reply, "state"), "waiting");
    assert_int_equal(reply_int(&reply, "retry_count"), 1);
    assert_int_equal(json_array_size(reply_at(&reply, "attempts")), 1);
    reply_release(&reply);
    reply = http_do(fixture, "GET", "/v1/stats", NULL);
    check(reply_int(&reply, "engine.failed") == 1, "%s", reply.body);
    reply_release(&reply);
}

enum { CREW = 4, CREW_JOBS = 60, CREW_LOST = 3, CREW_TURNS_MAX = 2000 };

/* Several workers on one queue, and who has done what. */
struct crew {
    struct api_fixture *fixture;
    pthread_mutex_t lock;
    int done[CREW_JOBS];
    int total, wanted;
};

static void crew_note(struct crew *crew, const char *id)
{
    pthread_mutex_lock(&crew->lock);
    crew->done[atoi(id + 1)]++;
    crew->total++;
    pthread_mutex_unlock(&crew->lock);
}

static bool crew_is_done(struct crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    bool done = crew->total >= crew->wanted;
    pthread_mutex_unlock(&crew->lock);
    return done;
}

static void *crew_work(void *context)
{
    struct crew *crew = context;
    for (int turn = 0; turn < CREW_TURNS_MAX && !crew_is_done(crew); turn++) {
        struct reply leases = http_do(crew->fixture, "POST", "/v1/leases", "{\"destination\":\"yard\",\"max\":3}");
        for (size_t i = 0; i < json_array_size(reply_at(&leases, "leases")); i++) {
            const json_t *lease = json_array_get(reply_at(&leases, "leases"), i);
            struct reply reply = with_lease(crew->fixture, "/v1/leases/ack", "{\"lease\":\"%s\"}",
                                            json_string_value(json_object_get(lease, "lease")));
            if (reply.status == 200)
                crew_note(crew, json_string_value(json_object_get(lease, "id")));
            reply_release(&reply);
        }
        reply_release(&leases);
    }
    return NULL;
}

static void crew_run(struct crew *crew, int wanted)
{
    pthread_t threads[CREW];
    crew->wanted = wanted;
    for (int i = 0; i < CREW; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, crew_work, crew), 0);
    for (int i = 0; i < CREW; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(crew->total, wanted);
}

/* S4-025: a queue of their own for any number of workers. Each job is done once, those of a worker that is lost too. */
static void several_workers_share_a_queue(void **state)
{
    struct crew crew = { .fixture = *state, .lock = PTHREAD_MUTEX_INITIALIZER };
    for (int i = 0; i < CREW_JOBS; i++) {
        char id[16];
        snprintf(id, sizeof id, "j%d", i);
        put(crew.fixture, id);
    }
    for (int i = 0; i < CREW_LOST; i++) {
        char lease[64];
        take(crew.fixture, lease); /* and is never heard of again */
    }
    crew_run(&crew, CREW_JOBS - CREW_LOST);
    api_fixture_advance(crew.fixture, 10 * MINUTE_MS);
    await_number(crew.fixture, "/v1/destinations/yard", "waiting", CREW_LOST);
    api_fixture_advance(crew.fixture, 2 * HOUR_MS);
    crew_run(&crew, CREW_JOBS);
    for (int i = 0; i < CREW_JOBS; i++)
        check(crew.done[i] == 1, "job %d was done %d times", i, crew.done[i]);
}

static void jobs_of_a_worker_that_left_go_back(void **state)
{
    struct api_fixture *fixture = *state;
    static const char request[] =
        "POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nContent-Length: 37\r\n\r\n{\"destination\":\"yard\",\"wait_s\":   60}";
    int fd = raw_connect(fixture);
    raw_send(fd, request, sizeof request - 1);
    await_calls(fixture, 1);
    close(fd);
    put(fixture, "a");
    struct reply reply = http_do(fixture, "POST", "/v1/leases", "{\"destination\":\"yard\",\"wait_s\":5}");
    assert_int_equal(reply.status, 200);
    assert_string_equal(reply_text(&reply, "leases.0.id"), "a");
    assert_int_equal(reply_int(&reply, "leases.0.attempt"), 1); /* the one that nobody saw is taken back */
    reply_release(&reply);
    reply = http_do(fixture, "GET", "/v1/events?job=a", NULL);
    assert_string_equal(reply_text(&reply, "events.2.type"), "released");
    reply_release(&reply);
    reply = http_do(fixture, "GET", "/metrics", NULL);
    check(strstr(reply.body, "insist_http_requests_total{class=\"lease\",code=\"gone\"} 1\n"), "%s", reply.body);
    reply_release(&reply);
}

static void stopping_sends_waiting_workers_home(void **state)
{
    (void)state;
    struct api_fixture *fixture = api_fixture_new(NULL);
    struct worker worker = { .fixture = fixture, .body = "{\"destination\":\"yard\",\"wait_s\":60}" };
    assert_int_equal(pthread_create(&worker.thread, NULL, work, &worker), 0);
    await_calls(fixture, 1);
    api_fixture_free(fixture);
    pthread_join(worker.thread, NULL);
    assert_int_equal(worker.reply.status, 200);
    assert_int_equal(json_array_size(reply_at(&worker.reply, "leases")), 0);
    reply_release(&worker.reply);
}

/* More than an answer holds: what is left over goes back at once, and its attempt does not count. */
static void what_an_answer_does_not_hold_goes_back(void **state)
{
    enum { JOBS = 10, PAYLOAD_BYTES = 8000000 };
    const struct api_fixture_settings settings = { .config = "listen: 127.0.0.1:0\nstore: 'memory:'\nlimits: { payload: 8MB }\n"
                                                             "destinations: { yard: { transport: pull } }\n" };
    struct api_fixture *fixture = api_fixture_new(&settings);
    struct buffer body;
    size_t got = 0, turns = 0;
    (void)state;
    buffer_init(&body, PAYLOAD_BYTES + 1000);
    for (int i = 0; i < JOBS; i++) {
        buffer_clear(&body);
        buffer_printf(&body, "{\"destination\":\"yard\",\"id\":\"%d\",\"payload\":\"%*s\"}", i, PAYLOAD_BYTES, "x");
        const struct request request = { .method = "POST", .path = "/v1/jobs", .body = body.data, .body_len = body.len };
        struct reply reply = http_ask(fixture, &request);
        check(reply.status == 201, "%s", reply.body);
        reply_release(&reply);
    }
    for (; got < JOBS && turns < 20; turns++) {
        struct reply reply = http_do(fixture, "POST", "/v1/leases", "{\"destination\":\"yard\",\"max\":100,\"wait_s\":1}");
        size_t count = json_array_size(reply_at(&reply, "leases"));
        check(reply.status == 200 && reply.len < 70 << 20, "%d, %zu bytes", reply.status, reply.len);
        for (size_t i = 0; i < count; i++)
            assert_int_equal(json_integer_value(json_object_get(json_array_get(reply_at(&reply, "leases"), i), "attempt")), 1);
        got += count;
        reply_release(&reply);
    }
    check(got == JOBS && turns >= 2, "%zu jobs in %zu turns", got, turns);
    buffer_release(&body);
    api_fixture_free(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_lease_shows_its_job, setup, teardown),
        cmocka_unit_test_setup_teardown(who_does_not_wait_gets_what_is_there, setup, teardown),
        cmocka_unit_test_setup_teardown(requests_are_checked, setup, teardown),
        cmocka_unit_test_setup_teardown(acks_complete_and_stale_ones_do_not, setup, teardown),
        cmocka_unit_test_setup_teardown(a_nack_is_decided_upon, setup, teardown),
        cmocka_unit_test_setup_teardown(a_nack_can_say_its_class, setup, teardown),
        cmocka_unit_test_setup_teardown(blocking_nacks_hold_the_destination, setup, teardown),
        cmocka_unit_test_setup_teardown(an_extended_lease_lives_longer, setup, teardown),
        cmocka_unit_test_setup_teardown(a_lease_that_ran_out_is_lost, setup, teardown),
        cmocka_unit_test_setup_teardown(a_waiting_worker_is_woken, setup, teardown),
        cmocka_unit_test_setup_teardown(waiting_ends_empty, setup, teardown),
        cmocka_unit_test_setup_teardown(two_workers_do_not_get_the_same_job, setup, teardown),
        cmocka_unit_test_setup_teardown(forty_nacks_are_one_failure, setup, teardown),
        cmocka_unit_test_setup_teardown(several_workers_share_a_queue, setup, teardown),
        cmocka_unit_test_setup_teardown(jobs_of_a_worker_that_left_go_back, setup, teardown),
        cmocka_unit_test(stopping_sends_waiting_workers_home),
        cmocka_unit_test(what_an_answer_does_not_hold_goes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
