/*
 * A store across a network lets its readers wait: whoever reads waits, everybody else is answered. While they wait clients
 * leave, the configuration changes, the store goes.
 */
#include "base/clock.h"
#include "support/api_fixture.h"
#include "support/check.h"
#include "support/configs.h"
#include "support/store_faulty.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CROWD = 50 };

static const char config[] = "listen: 127.0.0.1:0\n"
                             "store: 'memory:'\n"
                             "destinations:\n"
                             "  web: { transport: http, url: 'http://127.0.0.1:1/', allow_private: true }\n";

static struct api_fixture *begin(void)
{
    struct api_fixture *fixture = api_fixture_new(&(struct api_fixture_settings){ .config = config, .faulty = true });
    put_job(fixture, "web", "t", "one", "well");
    await_state(fixture, "/v1/jobs/one?tenant=t", "completed");
    return fixture;
}

static int ask_and_wait(const struct api_fixture *fixture, const char *path)
{
    char request[300];
    int fd = raw_connect(fixture);
    int len = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", path);
    raw_send(fd, request, (size_t)len);
    return fd;
}

/* Reads to the end, or to what a stream would begin with. */
static void expect_before(int fd, const char *until, const char *wanted, const char *about)
{
    char *answer = raw_read(fd, until);
    check(strstr(answer, wanted), "%s: %s", about, answer);
    free(answer);
    close(fd);
}

static void expect_answer(int fd, const char *wanted, const char *about)
{
    expect_before(fd, NULL, wanted, about);
}

/* What needs nobody to read. */
static void expect_well(const struct api_fixture *fixture, const char *id)
{
    struct reply reply = http_do(fixture, "GET", "/livez", NULL);
    check(reply.status == 200, "%s", reply.body);
    reply_release(&reply);
    put_job(fixture, "web", "t", id, "well");
}

static void who_reads_waits_and_nobody_else(void **state)
{
    static const char *const paths[] = { "/v1/jobs", "/v1/jobs/one?tenant=t", "/v1/destinations", "/metrics", "/v1/stats",
                                         "/v1/events", "/v1/tenants", "/v1/dead" };
    struct api_fixture *fixture = begin();
    struct store *store = api_fixture_store(fixture);
    int fds[COUNT_OF(paths)];
    (void)state;
    store_faulty_hold_reads(store, true);
    for (size_t i = 0; i < COUNT_OF(paths); i++)
        fds[i] = ask_and_wait(fixture, paths[i]);
    assert_true(store_faulty_await_held_read(store));
    expect_well(fixture, "two");
    store_faulty_hold_reads(store, false);
    for (size_t i = 0; i < COUNT_OF(paths); i++)
        expect_answer(fds[i], "HTTP/1.1 200", paths[i]);
    api_fixture_free(fixture);
}

/* The second of two requests that come together takes its turn behind all pieces of answers that wait for theirs. */
static void await_turns(const struct api_fixture *fixture)
{
    static const char both[] = "GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
                               "GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    int fd = raw_connect(fixture);
    raw_send(fd, both, sizeof both - 1);
    char *answers = raw_read(fd, NULL);
    const char *first = strstr(answers, "HTTP/1.1 200");
    check(first && strstr(first + 1, "HTTP/1.1 200"), "%s", answers);
    free(answers);
    close(fd);
}

/* Once reads are held and the first of a crowd waits for one: the others wait behind it when the store goes. */
static int64_t lose_the_store(struct api_fixture *fixture)
{
    struct store *store = api_fixture_store(fixture);
    assert_true(store_faulty_await_held_read(store));
    for (size_t i = 0; i < 3; i++) /* each is answered behind those that came before it */
        expect_well(fixture, i == 0 ? "a" : i == 1 ? "b" : "c");
    await_turns(fixture);
    int64_t before = store_faulty_count(store, FAULTY_READ);
    store_faulty_set(store, FAULTY_READ, 1, true, STATUS_AWAY);
    store_faulty_hold_reads(store, false);
    return before;
}

static void expect_few_reads_since(struct api_fixture *fixture, int64_t before)
{
    struct store *store = api_fixture_store(fixture);
    int64_t reads = store_faulty_count(store, FAULTY_READ) - before;
    check(reads < CROWD / 2, "%lld reads of a store that was away", (long long)reads);
    store_faulty_set(store, FAULTY_READ, 0, false, STATUS_AWAY);
    await_status(fixture, "/v1/jobs/one?tenant=t", 200);
}

/* The thread would wait for each of them, one after the other. An answer in pieces that has begun is cut off. */
static void a_crowd_hears_together_that_the_store_is_away(void **state)
{
    static const struct { const char *path, *begins; } cases[] = {
        { "/v1/jobs/one?tenant=t", NULL },
        { "/v1/subjects/somebody", "\r\n\r\n" },
        { "/v1/dead/export", "\r\n\r\n" },
    };
    (void)state;
    for (size_t k = 0; k < COUNT_OF(cases); k++) {
        struct api_fixture *fixture = begin();
        int fds[CROWD];
        store_faulty_hold_reads(api_fixture_store(fixture), true);
        for (size_t i = 0; i < CROWD; i++)
            fds[i] = ask_and_wait(fixture, cases[k].path);
        for (size_t i = 0; i < CROWD && cases[k].begins; i++)
            free(raw_read(fds[i], cases[k].begins));
        int64_t before = lose_the_store(fixture);
        for (size_t i = 0; i < CROWD; i++) {
            char *rest = raw_read(fds[i], NULL);
            check(cases[k].begins ? !*rest : strstr(rest, "store_away") != NULL, "%s: %s", cases[k].path, rest);
            free(rest);
            close(fds[i]);
        }
        expect_few_reads_since(fixture, before);
        api_fixture_free(fixture);
    }
}

/* Nor for each of those that follow the trail. */
static void followers_hear_together_that_the_store_is_away(void **state)
{
    struct api_fixture *fixture = begin();
    int fds[CROWD];
    (void)state;
    for (size_t i = 0; i < CROWD; i++) {
        fds[i] = ask_and_wait(fixture, "/v1/events/stream");
        free(raw_read(fds[i], "retry:"));
    }
    store_faulty_hold_reads(api_fixture_store(fixture), true);
    put_job(fixture, "web", "t", "new", "well"); /* they all look for it */
    int64_t before = lose_the_store(fixture);
    for (size_t i = 0; i < CROWD; i++)
        expect_answer(fds[i], "store_failed", "of the followers");
    expect_few_reads_since(fixture, before);
    api_fixture_free(fixture);
}

static void clients_leave_while_the_store_is_read(void **state)
{
    static const char *const paths[] = { "/v1/jobs", "/v1/events/stream?after=0", "/v1/dead/export", "/metrics" };
    struct api_fixture *fixture = begin();
    struct store *store = api_fixture_store(fixture);
    (void)state;
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        store_faulty_hold_reads(store, true);
        int fd = ask_and_wait(fixture, paths[i]);
        assert_true(store_faulty_await_held_read(store));
        close(fd);
        char id[8];
        snprintf(id, sizeof id, "j%zu", i);
        expect_well(fixture, id);
        store_faulty_hold_reads(store, false);
        await_state(fixture, "/v1/jobs/one?tenant=t", "completed");
    }
    api_fixture_free(fixture);
}

static void a_reload_comes_while_the_store_is_read(void **state)
{
    static const char other[] = "store: 'memory:'\ndestinations:\n"
                                "  web: { transport: http, url: 'http://127.0.0.1:1/', allow_private: true }\n  yard: { transport: pull }\n";
    struct api_fixture *fixture = begin();
    struct store *store = api_fixture_store(fixture);
    struct api_order *order;
    struct error error;
    (void)state;
    struct config *next = config_from(slice_from(other), "next.yaml");
    store_faulty_hold_reads(store, true);
    int fd = ask_and_wait(fixture, "/metrics");
    assert_true(store_faulty_await_held_read(store));
    assert_int_equal(api_prepare(api_fixture_api(fixture), next, &order, &error), STATUS_OK);
    api_reload(order);
    config_unref(next);
    expect_well(fixture, "two"); /* it has come */
    store_faulty_hold_reads(store, false);
    expect_answer(fd, "HTTP/1.1 200", "begun before");
    api_fixture_free(fixture);
}

static const char with_incidents[] = "listen: 127.0.0.1:0\nstore: 'memory:'\ndestinations:\n"
                                     "  web: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true,\n"
                                     "         contingency: { ramp: [5], stable: 1m, check: 5m } }\n"
                                     "  yard: { transport: pull, rate: { total: 1/m } }\n";

/* More than are counted one by one. */
static void crowd_yard(const struct api_fixture *fixture)
{
    struct buffer body = buffer_up_to(1 << 20);
    for (int i = 0; i <= STORE_PAGE_MAX; i++)
        buffer_printf(&body, "%s{\"destination\":\"yard\",\"payload\":1}", i ? "," : "[");
    buffer_append(&body, (struct slice){ "]", 2 }); /* and the end of the text */
    struct reply reply = http_do(fixture, "POST", "/v1/jobs/batch", body.data);
    check(reply.status == 200, "%s", reply.body);
    reply_release(&reply);
    buffer_release(&body);
}

/* With the thread sanitizer this sees whether who reads looks at what the reload changes. */
static void nobody_reads_what_a_reload_changes(void **state)
{
    static const char job[] = "{\"destination\":\"yard\",\"payload\":1,\"deadline\":\"2099-01-01T00:00:00Z\"}";
    struct api_fixture *fixture =
        api_fixture_new(&(struct api_fixture_settings){ .config = with_incidents, .faulty = true });
    struct store *store = api_fixture_store(fixture);
    char request[300];
    struct api_order *order;
    struct error error;
    (void)state;
    struct reply held = http_do(fixture, "POST", "/v1/destinations/web/contingency", "{\"enter\":true,\"reason\":\"a drill\"}");
    check(held.status == 200, "%s", held.body);
    reply_release(&held);
    await_text(fixture, "/v1/incidents", "incidents.0.state", "contingency");
    crowd_yard(fixture);
    snprintf(request, sizeof request, "POST /v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
             sizeof job - 1, job);
    for (int turn = 0; turn < 10; turn++) {
        struct config *next = config_from(slice_from(with_incidents), "next.yaml");
        assert_int_equal(api_prepare(api_fixture_api(fixture), next, &order, &error), STATUS_OK);
        config_unref(next);
        store_faulty_hold_reads(store, true);
        int fd = turn % 2 ? ask_and_wait(fixture, "/v1/incidents") : raw_connect(fixture);
        if (turn % 2 == 0)
            raw_send(fd, request, strlen(request));
        assert_true(store_faulty_await_held_read(store));
        api_reload(order); /* nobody waits for it: that would bring the two in an order */
        store_faulty_hold_reads(store, false);
        expect_answer(fd, "HTTP/1.1 20", "under way");
    }
    api_fixture_free(fixture);
}

/* It is looked for new events four times a second while anybody follows them: one who has not begun to is somebody. */
static void a_stream_that_begins_slowly_goes_on(void **state)
{
    struct api_fixture *fixture = begin();
    struct store *store = api_fixture_store(fixture);
    (void)state;
    store_faulty_hold_reads(store, true);
    int fd = ask_and_wait(fixture, "/v1/events/stream");
    assert_true(store_faulty_await_held_read(store));
    for (int64_t end = clock_ticks_ns() + INT64_C(600000000); clock_ticks_ns() < end;) {
        struct reply reply = http_do(fixture, "GET", "/livez", NULL);
        check(reply.status == 200, "%s", reply.body);
        reply_release(&reply);
    }
    store_faulty_hold_reads(store, false);
    char *begun = raw_read(fd, "id: ");
    check(strstr(begun, "retry: "), "%s", begun);
    free(begun);
    put_job(fixture, "web", "t", "later", "well");
    char *rest = raw_read(fd, "\"later\"");
    check(strstr(rest, "\"later\""), "%s", rest);
    free(rest);
    close(fd);
    api_fixture_free(fixture);
}

/* Whose token is gone by then would follow for ever. */
static void a_reload_ends_streams_that_have_not_begun(void **state)
{
    struct api_fixture *fixture = begin();
    struct store *store = api_fixture_store(fixture);
    struct api_order *order;
    struct error error;
    (void)state;
    struct config *next = config_from(slice_from(config), "next.yaml");
    store_faulty_hold_reads(store, true);
    int fd = ask_and_wait(fixture, "/v1/events/stream");
    assert_true(store_faulty_await_held_read(store));
    assert_int_equal(api_prepare(api_fixture_api(fixture), next, &order, &error), STATUS_OK);
    api_reload(order);
    config_unref(next);
    expect_well(fixture, "two"); /* it has come */
    store_faulty_hold_reads(store, false);
    expect_before(fd, "\n\n", "{\"reason\":\"reloaded\"}", "begun before");
    api_fixture_free(fixture);
}

/* Whoever comes while the others have not begun is counted when they have. */
static void streams_that_begin_together_are_counted(void **state)
{
    static const char one_stream[] = "listen: 127.0.0.1:0\nstore: 'memory:'\nlimits: { streams: 1 }\n"
                                     "destinations: { yard: { transport: pull } }\n";
    struct api_fixture *fixture = api_fixture_new(&(struct api_fixture_settings){ .config = one_stream, .faulty = true });
    struct store *store = api_fixture_store(fixture);
    (void)state;
    store_faulty_hold_reads(store, true);
    int first = ask_and_wait(fixture, "/v1/events/stream");
    assert_true(store_faulty_await_held_read(store));
    int second = ask_and_wait(fixture, "/v1/events/stream");
    await_status(fixture, "/livez", 200); /* it has come */
    store_faulty_hold_reads(store, false);
    expect_before(second, "id: ", "too_many_streams", "second");
    expect_before(first, "id: ", "retry: ", "first");
    api_fixture_free(fixture);
}

static void a_stop_waits_for_who_reads(void **state)
{
    struct api_fixture *fixture = begin();
    struct store *store = api_fixture_store(fixture);
    (void)state;
    store_faulty_hold_reads(store, true);
    int fd = ask_and_wait(fixture, "/v1/jobs");
    assert_true(store_faulty_await_held_read(store));
    api_fixture_stop_api(fixture);
    store_faulty_hold_reads(store, false);
    expect_answer(fd, "HTTP/1.1 ", "begun before");
    api_fixture_free(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_reads_waits_and_nobody_else),
        cmocka_unit_test(a_crowd_hears_together_that_the_store_is_away),
        cmocka_unit_test(followers_hear_together_that_the_store_is_away),
        cmocka_unit_test(clients_leave_while_the_store_is_read),
        cmocka_unit_test(a_reload_comes_while_the_store_is_read),
        cmocka_unit_test(nobody_reads_what_a_reload_changes),
        cmocka_unit_test(a_stream_that_begins_slowly_goes_on),
        cmocka_unit_test(a_reload_ends_streams_that_have_not_begun),
        cmocka_unit_test(streams_that_begin_together_are_counted),
        cmocka_unit_test(a_stop_waits_for_who_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
