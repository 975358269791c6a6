/*
 * What an operator orders is answered when it is in the store, and not before.
 */
#include "support/api_fixture.h"
#include "support/check.h"
#include "support/store_faulty.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char config[] =
    "listen: 127.0.0.1:0\n"
    "store: 'memory:'\n"
    "destinations:\n"
    "  web: { transport: http, url: 'http://127.0.0.1:1/', allow_private: true }\n"
    "  yard: { transport: pull, retry: { max_retries: 1, base: 1h, factor: 2, cap: 5h, floor: 1h, jitter: 0 } }\n";

#define WEB "/v1/destinations/web"

/* Each is the undoing of another. */
static const struct order {
    const char *name, *before, *before_body; /* what is ordered first, and answered; NULL: nothing */
    const char *path, *body;
    const char *member, *value; /* of the destination while the order holds */
    const char *saved;           /* is in the store then */
} orders[] = {
    { "pause", NULL, NULL, WEB "/pause", "{\"reason\":\"door\"}", "mode", "paused", "\"reason\":\"door\"" },
    { "resume", WEB "/pause", "{}", WEB "/resume", "{}", "mode", "normal", "\"change\":\"resumed\"" },
    { "pause of a tenant", NULL, NULL, WEB "/pause", "{\"tenant\":\"t\"}", "paused.0.tenant", "t",
      "\"tenants_paused\":[{\"tenant\":\"t\"" },
    { "resume of a tenant", WEB "/pause", "{\"tenant\":\"t\"}", WEB "/resume", "{\"tenant\":\"t\"}", "mode", "normal",
      "\"tenants_paused\":[]" },
    { "contingency", NULL, NULL, WEB "/contingency", "{\"enter\":true,\"reason\":\"rain\"}", "mode", "contingency",
      "\"mode_reason\":\"rain\"" },
    { "the way back", WEB "/contingency", "{\"enter\":true}", WEB "/contingency", "{\"enter\":false}", "mode", "recovering",
      "\"change\":\"recovering\"" },
};

static struct api_fixture *fixture_new(void)
{
    struct api_fixture *fixture = api_fixture_new(&(struct api_fixture_settings){ .config = config, .faulty = true });
    put_job(fixture, "web", "t", "first", "well");
    await_state(fixture, "/v1/jobs/first?tenant=t", "completed");
    return fixture;
}

static void expect(struct reply reply, int status, const char *about)
{
    check(reply.status == status, "%s: %d %s", about, reply.status, reply.body);
    reply_release(&reply);
}

static void prepare(struct api_fixture *fixture, const struct order *order)
{
    if (order->before)
        expect(http_do(fixture, "POST", order->before, order->before_body), 200, order->name);
}

/* Gives an order on a connection whose answer is read later. */
static int give(const struct api_fixture *fixture, const char *method, const char *path, const char *body)
{
    char text[512];
    int fd = raw_connect(fixture);
    snprintf(text, sizeof text,
             "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
             method, path, strlen(body), body);
    raw_send(fd, text, strlen(text));
    return fd;
}

/*
 * Whether an answer has come. What goes through the API and the engine after the order, as often as the way to its answer
 * leads through them, has come back: an answer that does not wait for the store is there.
 */
static bool is_answered(const struct api_fixture *fixture, int fd)
{
    for (int i = 0; i < 4; i++)
        expect(http_do(fixture, "GET", WEB, NULL), 200, "meanwhile");
    return poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 0) > 0;
}

/* Reads the answer and closes. */
static void expect_answer(int fd, const char *status, const char *text, const char *about)
{
    char *answer = raw_read(fd, NULL);
    check(strstr(answer, status) != NULL && strstr(answer, text) != NULL, "%s: %s", about, answer);
    free(answer);
    close(fd);
}

static bool is_kept(struct api_fixture *fixture, struct slice space, const char *name, const char *text)
{
    struct store *store = api_fixture_store(fixture);
    struct store_reader *reader;
    struct error error;
    struct slice value = SLICE("");
    struct arena memory;
    arena_init(&memory, 1 << 20);
    assert_int_equal(store->ops->reader(store, &reader, &error), STATUS_OK);
    enum status status = reader->ops->reader_saved(reader, space, slice_from(name), &memory, &value, &error);
    assert_true(status == STATUS_OK || status == STATUS_NOT_FOUND);
    bool found = status == STATUS_OK && slice_search(value, slice_from(text)) < value.len;
    reader->ops->reader_close(reader);
    arena_release(&memory);
    return found;
}

static bool web_is_kept(struct api_fixture *fixture, const struct order *order)
{
    return is_kept(fixture, SPACE_DESTINATION, "web", order->saved);
}

static void no_answer_before_the_commit(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(orders); i++) {
        const struct order *order = &orders[i];
        struct api_fixture *fixture = fixture_new();
        prepare(fixture, order);
        store_faulty_hold(api_fixture_store(fixture), true);
        int fd = give(fixture, "POST", order->path, order->body);
        await_text(fixture, WEB, order->member, order->value); /* it holds at once */
        check(store_faulty_await_held(api_fixture_store(fixture)), "%s: nothing is written", order->name);
        check(!is_answered(fixture, fd), "%s: answered before it is kept", order->name);
        check(!web_is_kept(fixture, order), "%s: the store was not held", order->name);
        store_faulty_hold(api_fixture_store(fixture), false);
        expect_answer(fd, "HTTP/1.1 200", order->value, order->name);
        check(web_is_kept(fixture, order), "%s: answered, but not kept", order->name);
        api_fixture_free(fixture);
    }
}

static void a_failed_commit_is_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(orders); i++) {
        const struct order *order = &orders[i];
        struct api_fixture *fixture = fixture_new();
        prepare(fixture, order);
        store_faulty_set(api_fixture_store(fixture), FAULTY_APPLY, 1, true, STATUS_FULL);
        struct reply reply = http_do(fixture, "POST", order->path, order->body);
        char *again = reply_header(&reply, "Retry-After");
        check(reply.status == 503 && strcmp(reply_text(&reply, "type"), "not_kept") == 0 && again &&
                  strstr(reply_text(&reply, "detail"), "was told to fail"),
              "%s: %d %s", order->name, reply.status, reply.body);
        free(again);
        reply_release(&reply);
        await_text(fixture, WEB, order->member, order->value); /* as it was said */
        check(!web_is_kept(fixture, order), "%s: kept by a store that fails", order->name);

        store_faulty_set(api_fixture_store(fixture), FAULTY_APPLY, 0, false, STATUS_FULL);
        api_fixture_advance(fixture, 1000);
        expect(http_do(fixture, "POST", order->path, order->body), 200, order->name);
        check(web_is_kept(fixture, order), "%s: answered, but not kept", order->name);
        api_fixture_free(fixture);
    }
}

/* Two ask for the same: the second finds nothing to do, but what it would be told is not kept either. */
static void who_asks_for_the_same_waits_too(void **state)
{
    struct api_fixture *fixture = fixture_new();
    (void)state;
    store_faulty_hold(api_fixture_store(fixture), true);
    int first = give(fixture, "POST", WEB "/pause", "{}");
    await_text(fixture, WEB, "mode", "paused");
    int second = give(fixture, "POST", WEB "/pause", "{}");
    check(!is_answered(fixture, second) && !is_answered(fixture, first), "answered before it is kept");
    store_faulty_hold(api_fixture_store(fixture), false);
    expect_answer(first, "HTTP/1.1 200", "paused", "the first");
    expect_answer(second, "HTTP/1.1 200", "paused", "the second");
    expect(http_do(fixture, "POST", WEB "/pause", "{}"), 200, "with nothing to wait for");
    api_fixture_free(fixture);
}

static void a_caller_may_leave(void **state)
{
    struct api_fixture *fixture = fixture_new();
    (void)state;
    store_faulty_hold(api_fixture_store(fixture), true);
    int fd = give(fixture, "POST", WEB "/pause", "{\"reason\":\"door\"}");
    await_text(fixture, WEB, "mode", "paused");
    close(fd);
    expect(http_do(fixture, "GET", WEB, NULL), 200, "meanwhile");
    store_faulty_hold(api_fixture_store(fixture), false);
    expect(http_do(fixture, "POST", WEB "/pause", "{}"), 200, "somebody else");
    check(web_is_kept(fixture, &orders[0]), "it is not kept");
    api_fixture_free(fixture);
}

/* The daemon stops while an order is on its way, with a store that works and with one that never will again. */
static void a_stop_answers_who_waits(void **state)
{
    static const struct {
        bool fails;
        const char *status, *text;
    } cases[] = {
        { false, "HTTP/1.1 200", "paused" },
        { true, "HTTP/1.1 503", "not_kept" },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct api_fixture *fixture = fixture_new();
        store_faulty_hold(api_fixture_store(fixture), true);
        int fd = give(fixture, "POST", WEB "/pause", "{}");
        await_text(fixture, WEB, "mode", "paused");
        check(store_faulty_await_held(api_fixture_store(fixture)), "nothing is written");
        api_fixture_stop_engine(fixture);
        int late = give(fixture, "POST", "/v1/destinations/yard/pause", "{}");
        await_text(fixture, "/v1/destinations/yard", "mode", "paused");
        if (cases[i].fails)
            store_faulty_set(api_fixture_store(fixture), FAULTY_APPLY, 1, true, STATUS_IO);
        store_faulty_hold(api_fixture_store(fixture), false);
        expect_answer(fd, cases[i].status, cases[i].text, "before the stop");
        api_fixture_advance(fixture, 1000);
        expect_answer(late, cases[i].status, cases[i].text, "after the stop");
        expect(http_do(fixture, "POST", WEB "/pause", "{}"), cases[i].fails ? 503 : 200, "again");
        api_fixture_free(fixture);
    }
}

/* ---- an error that is to be forgotten ---- */

struct lesson {
    char fingerprint[64], path[128]; /* to forget it */
    char name[96];                   /* in the store */
};

/* A worker's answer that fails; to be given. */
static void lease(struct api_fixture *fixture, const char *job, const char *error, char nack[256])
{
    put_job(fixture, "yard", "t", job, "x");
    struct reply reply = http_do(fixture, "POST", "/v1/leases", "{\"destination\":\"yard\",\"wait_s\":30}");
    snprintf(nack, 256, "{\"lease\":\"%s\",\"error\":\"%s\"}", reply_text(&reply, "leases.0.lease"), error);
    reply_release(&reply);
}

static bool lesson_is_kept(struct api_fixture *fixture, const struct lesson *lesson)
{
    return is_kept(fixture, SLICE("errors"), lesson->name, "seen");
}

static void await_lesson(struct api_fixture *fixture, const struct lesson *lesson, bool saved)
{
    for (int i = 0; i < 30000 && lesson_is_kept(fixture, lesson) != saved; i++)
        poll(NULL, 0, 2);
    check(lesson_is_kept(fixture, lesson) == saved, saved ? "the error is not learned" : "it was not tried again");
}

/* The error whose sample begins so. */
static struct lesson lesson_of(const struct api_fixture *fixture, const char *sample)
{
    struct lesson lesson = { 0 };
    struct reply reply = http_do(fixture, "GET", "/v1/errors", NULL);
    for (int i = 0; i < 2; i++) {
        char path[64];
        snprintf(path, sizeof path, "errors.%d.sample", i);
        bool is_it = strncmp(reply_text(&reply, path), sample, strlen(sample)) == 0;
        snprintf(path, sizeof path, "errors.%d.fingerprint", i);
        if (is_it)
            snprintf(lesson.fingerprint, sizeof lesson.fingerprint, "%s", reply_text(&reply, path));
    }
    check(lesson.fingerprint[0] != '\0', "%s", reply.body);
    reply_release(&reply);
    snprintf(lesson.path, sizeof lesson.path, "/v1/errors/%s", lesson.fingerprint);
    snprintf(lesson.name, sizeof lesson.name, "yard/%s", lesson.fingerprint);
    return lesson;
}

/* One that the store knows: the first of a daemon's life is written at once. */
static struct lesson teach(struct api_fixture *fixture)
{
    char nack[256];
    lease(fixture, "lesson", "bucket is warming", nack);
    expect(http_do(fixture, "POST", "/v1/leases/nack", nack), 200, nack);
    struct lesson lesson = lesson_of(fixture, "bucket");
    await_lesson(fixture, &lesson, true);
    return lesson;
}

static void forgetting_waits_for_the_store(void **state)
{
    struct api_fixture *fixture = fixture_new();
    struct lesson lesson = teach(fixture);
    (void)state;
    store_faulty_hold(api_fixture_store(fixture), true);
    int fd = give(fixture, "DELETE", lesson.path, "");
    check(store_faulty_await_held(api_fixture_store(fixture)), "nothing is written");
    check(!is_answered(fixture, fd), "answered before it is out of the store");
    struct reply reply = http_do(fixture, "GET", "/v1/errors", NULL);
    check(json_array_size(reply_at(&reply, "errors")) == 0, "it is not forgotten at once: %s", reply.body);
    reply_release(&reply);
    store_faulty_hold(api_fixture_store(fixture), false);
    expect_answer(fd, "HTTP/1.1 200", "\"forgotten\":1", "forgetting");
    check(!lesson_is_kept(fixture, &lesson), "answered, but still in the store");
    api_fixture_free(fixture);
}

/* It is tried again, by itself or when somebody asks again. */
static void forget_and_fail(bool by_asking_again)
{
    struct api_fixture *fixture = fixture_new();
    struct lesson lesson = teach(fixture);
    store_faulty_set(api_fixture_store(fixture), FAULTY_APPLY, 1, true, STATUS_FULL);
    struct reply reply = http_do(fixture, "DELETE", lesson.path, NULL);
    check(reply.status == 503 && strcmp(reply_text(&reply, "type"), "not_kept") == 0, "%d %s", reply.status, reply.body);
    reply_release(&reply);
    check(lesson_is_kept(fixture, &lesson), "a store that fails has forgotten it");
    expect(http_do(fixture, "DELETE", lesson.path, NULL), 503, "again");
    expect(http_do(fixture, "DELETE", "/v1/errors/0000000000000000", NULL), 404, "another");
    store_faulty_set(api_fixture_store(fixture), FAULTY_APPLY, 0, false, STATUS_FULL);
    if (by_asking_again) {
        struct reply done = http_do(fixture, "DELETE", lesson.path, NULL);
        check(done.status == 200 && reply_int(&done, "forgotten") == 1, "%d %s", done.status, done.body);
        reply_release(&done);
        check(!lesson_is_kept(fixture, &lesson), "answered, but still in the store");
    } else {
        api_fixture_advance(fixture, 6000);
        await_lesson(fixture, &lesson, false);
    }
    expect(http_do(fixture, "DELETE", lesson.path, NULL), 404, "it is gone");
    api_fixture_free(fixture);
}

static void forgetting_that_fails_is_changes(void **state)
{
    (void)state;
    forget_and_fail(true);
    forget_and_fail(false);
}

/* It is on its way in when it is to go. */
static void forgetting_what_is_being_written_waits(void **state)
{
    struct api_fixture *fixture = fixture_new();
    char nack[256];
    (void)state;
    lease(fixture, "lesson", "bucket is warming", nack);
    store_faulty_hold_notes(api_fixture_store(fixture)); /* the nack itself is taken, what it teaches is on its way */
    int worker = give(fixture, "POST", "/v1/leases/nack", nack);
    await_number(fixture, "/v1/errors", "errors.0.seen", 1);
    struct lesson lesson = lesson_of(fixture, "bucket");
    int fd = give(fixture, "DELETE", lesson.path, "");
    check(!is_answered(fixture, fd), "answered while it is being written");
    store_faulty_hold(api_fixture_store(fixture), false);
    expect_answer(worker, "HTTP/1.1 200", "retry", "the worker");
    expect_answer(fd, "HTTP/1.1 200", "\"forgotten\":1", "forgetting");
    check(!lesson_is_kept(fixture, &lesson), "answered, but still in the store");
    api_fixture_free(fixture);
}

/* The store never had it: there is nothing to take out, and only the trail has to tell of it. */
static void what_was_not_kept_is_forgotten_too(void **state)
{
    struct api_fixture *fixture = fixture_new();
    char nack[256];
    (void)state;
    teach(fixture); /* and for seconds no other is written */
    lease(fixture, "another", "door is stuck", nack);
    expect(http_do(fixture, "POST", "/v1/leases/nack", nack), 200, nack);
    struct lesson lesson = lesson_of(fixture, "door");
    check(!lesson_is_kept(fixture, &lesson), "it is written already");
    expect(http_do(fixture, "DELETE", lesson.path, NULL), 200, "forgetting");
    expect(http_do(fixture, "DELETE", lesson.path, NULL), 404, "it is gone");
    api_fixture_free(fixture);
}

/* Without tokens it is somebody on this machine. */
static void the_trail_says_who_did_it(void **state)
{
    static const struct { const char *method, *path, *body, *reported; } given[] = {
        { "POST", WEB "/pause", "{\"reason\":\"door\"}", "\"change\":\"paused\"" },
        { "POST", WEB "/pause", "{\"reason\":\"window\"}", "\"change\":\"pause_reason\"" },
        { "POST", WEB "/resume", "{}", "\"change\":\"resumed\"" },
        { "POST", WEB "/pause", "{\"tenant\":\"t\"}", "\"change\":\"tenant_paused\"" },
        { "POST", WEB "/resume", "{\"tenant\":\"t\"}", "\"change\":\"tenant_resumed\"" },
        { "POST", WEB "/contingency", "{\"enter\":true,\"reason\":\"rain\"}", "\"change\":\"contingency\"" },
    };
    struct api_fixture *fixture = fixture_new();
    (void)state;
    for (size_t i = 0; i < COUNT_OF(given); i++) {
        expect(http_do(fixture, given[i].method, given[i].path, given[i].body), 200, given[i].reported);
        struct reply reply = http_do(fixture, "GET", "/v1/events?type=destination&limit=100", NULL);
        const char *event = strstr(reply.body, given[i].reported);
        check(event && strstr(event, "\"by\":\"loopback\""), "%s: %s", given[i].reported, reply.body);
        reply_release(&reply);
    }
    struct lesson lesson = teach(fixture);
    expect(http_do(fixture, "DELETE", lesson.path, NULL), 200, "forgetting");
    struct reply reply = http_do(fixture, "GET", "/v1/events?type=note&limit=100", NULL);
    const char *event = strstr(reply.body, "error_forgotten");
    check(event && strstr(event, "\"by\":\"loopback\""), "%s", reply.body);
    reply_release(&reply);
    api_fixture_free(fixture);
}

static void expect_away(struct api_fixture *fixture, const char *method, const char *path, const char *body)
{
    struct reply reply = http_do(fixture, method, path, body);
    char *retry_after = reply_header(&reply, "Retry-After");
    check(reply.status == 503 && strcmp(reply_text(&reply, "type"), "store_away") == 0 && retry_after, "%s %s: %d %s", method,
          path, reply.status, reply.body);
    free(retry_after);
    reply_release(&reply);
}

/* Who scrapes sees a daemon that lives and why it does nothing; what is in the store is not 0 because nobody can read it. */
static void expect_metrics(struct api_fixture *fixture, bool reachable)
{
    struct reply reply = http_do(fixture, "GET", "/metrics", NULL);
    check(reply.status == 200, "%d %s", reply.status, reply.body);
    check(strstr(reply.body, reachable ? "\ninsist_store_reachable 1\n" : "\ninsist_store_reachable 0\n"), "%s", reply.body);
    check((strstr(reply.body, "\ninsist_jobs{") != NULL) == reachable, "%s", reply.body);
    check(strstr(reply.body, "\ninsist_build_info{") != NULL, "%s", reply.body);
    reply_release(&reply);
}

/* A store across a network is away: nothing is accepted, and who was under way is told the truth when it is back. */
static void a_store_that_is_away_is_waited_for_or_told(void **state)
{
    static const char post[] = "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 58\r\n"
                               "Connection: close\r\n\r\n{\"destination\":\"yard\",\"tenant\":\"t\",\"id\":\"a\",\"payload\":1}  ";
    (void)state;
    for (int applied = 0; applied < 2; applied++) {
        struct api_fixture *fixture = api_fixture_new(&(struct api_fixture_settings){ .config = config, .faulty = true });
        struct store *store = api_fixture_store(fixture);
        put_job(fixture, "yard", "t", "before", "x");
        await_status(fixture, "/readyz", 200);
        store_faulty_away(store, applied ? AWAY_AFTER : AWAY_BEFORE);
        int fd = raw_connect(fixture);
        raw_send(fd, post, strlen(post));
        await_status(fixture, "/readyz", 503);
        expect_away(fixture, "GET", "/readyz", NULL);
        expect_away(fixture, "POST", "/v1/jobs", "{\"destination\":\"yard\",\"tenant\":\"t\",\"id\":\"b\",\"payload\":1}");
        expect_away(fixture, "GET", "/v1/jobs/before?tenant=t", NULL);
        expect_away(fixture, "POST", "/v1/jobs/before/cancel?tenant=t", NULL);
        expect(http_do(fixture, "GET", "/livez", NULL), 200, "livez");
        expect_metrics(fixture, false);
        store_faulty_away(store, AWAY_NOT);
        await_status(fixture, "/readyz", 200);
        expect_metrics(fixture, true);
        char *answer = raw_read(fd, NULL);
        /* The engine may have been quicker: then the job's own transaction was not tried at all. */
        struct reply reply = http_do(fixture, "GET", "/v1/jobs/a?tenant=t", NULL);
        bool accepted = strstr(answer, "HTTP/1.1 201") != NULL;
        check(accepted || strstr(answer, "HTTP/1.1 503"), "%s", answer);
        check(reply.status == (accepted ? 200 : 404), "%s: %d", answer, reply.status);
        check(applied || !accepted, "%s", answer);
        reply_release(&reply);
        free(answer);
        close(fd);
        expect(http_do(fixture, "GET", "/v1/jobs/b?tenant=t", NULL), 404, "one that was refused");
        put_job(fixture, "yard", "t", "after", "x");
        await_state(fixture, "/v1/jobs/before?tenant=t", "pending");
        api_fixture_free(fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_answer_before_the_commit),
        cmocka_unit_test(a_failed_commit_is_told),
        cmocka_unit_test(who_asks_for_the_same_waits_too),
        cmocka_unit_test(a_caller_may_leave),
        cmocka_unit_test(a_stop_answers_who_waits),
        cmocka_unit_test(forgetting_waits_for_the_store),
        cmocka_unit_test(forgetting_that_fails_is_changes),
        cmocka_unit_test(forgetting_what_is_being_written_waits),
        cmocka_unit_test(what_was_not_kept_is_forgotten_too),
        cmocka_unit_test(the_trail_says_who_did_it),
        cmocka_unit_test(a_store_that_is_away_is_waited_for_or_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
