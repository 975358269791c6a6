/*
 * /v1/events/stream over real sockets: what comes, in which order, from where on, and how it ends.
 */
#include "support/api_fixture.h"
#include "support/check.h"
#include "support/store_faulty.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { STREAMS_MAX = 64, BATCH_JOBS = 2000 }; /* the first is the default of limits.streams */

static const char tokens[] = /* the hashes of the tokens below */
    "tokens:\n"
    "  - { name: all, sha256: 01912f65bfa8acb7fcf2ace6f8eb896cd0920a79aa90e3bc15ce327e2c72a5df, scopes: [read, enqueue] }\n"
    "  - { name: one, sha256: 8e64ccaee5db98e89017f5205061a209be295cc49c184ee7dc8453ff9b593a4d, scopes: [read], tenant: t }\n";

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

/* `headers` are whole lines. */
static void ask_stream(int fd, const char *query, const char *headers)
{
    char text[512];
    int len = snprintf(text, sizeof text, "GET /v1/events/stream%s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n", query, headers);
    raw_send(fd, text, (size_t)len);
}

static int open_stream(const struct api_fixture *fixture, const char *query, const char *headers)
{
    int fd = raw_connect(fixture);
    ask_stream(fd, query, headers);
    return fd;
}

/* Reads until the text has been seen; what else was read is thrown away. */
static void expect_text(int fd, const char *text)
{
    char *read = raw_read(fd, text);
    check(strstr(read, text), "%s is not in %s", text, read);
    free(read);
}

/* What a stream gives up to a text. To be freed. */
static char *stream_until(const struct api_fixture *fixture, const char *query, const char *headers, const char *text)
{
    int fd = open_stream(fixture, query, headers);
    char *read = raw_read(fd, text);
    check(strstr(read, text), "%s is not in %s", text, read);
    close(fd);
    return read;
}

static int64_t newest(const struct api_fixture *fixture)
{
    struct reply reply = http_do(fixture, "GET", "/v1/events?limit=1000", NULL);
    int64_t last = strtoll(reply_text(&reply, "last"), NULL, 10);
    reply_release(&reply);
    return last;
}

static void events_come_as_they_happen(void **state)
{
    struct api_fixture *fixture = *state;
    char id[64];
    put_job(fixture, "yard", "t", "before", "x");
    int fd = open_stream(fixture, "", "");
    expect_text(fd, "text/event-stream");
    snprintf(id, sizeof id, "id: %" PRId64 "\ndata: {\"id\"", newest(fixture) + 1);
    put_job(fixture, "yard", "t", "after", "x");
    char *read = raw_read(fd, "\"hash\"");
    check(strstr(read, id), "%s is not in %s", id, read);
    check(strstr(read, "\"type\":\"accepted\",\"job\":\"after\",\"tenant\":\"t\",\"state\":\"pending\""), "%s", read);
    check(!strstr(read, "\"job\":\"before\""), "%s", read);
    free(read);
    close(fd);
}

/* S4-018: a log that consumers follow, each from where it had got to. */
static void who_comes_again_misses_nothing(void **state)
{
    static const struct { const char *query, *header; bool first, second; } cases[] = {
        { "?after=0", "", true, true },
        { "?after=%" PRId64, "", false, true },
        { "", "Last-Event-ID: %" PRId64 "\r\n", false, true },
        { "?after=0", "Last-Event-ID: %" PRId64 "\r\n", false, true }, /* a browser's own wins over its first address */
        { "?after=999999999", "", false, false },                      /* of another store */
    };
    struct api_fixture *fixture = *state;
    put_job(fixture, "yard", "t", "first", "x");
    int64_t after = newest(fixture);
    put_job(fixture, "yard", "t", "second", "x");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char query[64], header[64], job[16];
        snprintf(query, sizeof query, cases[i].query, after);
        snprintf(header, sizeof header, cases[i].header, after);
        int fd = open_stream(fixture, query, header);
        snprintf(job, sizeof job, "last-%zu", i);
        char *beginning = raw_read(fd, "id: ");
        put_job(fixture, "yard", "t", job, "x");
        char *rest = raw_read(fd, job);
        check((strstr(rest, "\"first\"") || strstr(beginning, "\"first\"")) == cases[i].first, "%zu: %s", i, rest);
        check((strstr(rest, "\"second\"") || strstr(beginning, "\"second\"")) == cases[i].second, "%zu: %s", i, rest);
        free(beginning);
        free(rest);
        close(fd);
    }
}

static void only_what_is_asked_for_comes(void **state)
{
    static const struct { const char *query; bool yard, mail, dead; } cases[] = {
        { "after=0", true, true, true },
        { "after=0&destination=mail", false, true, false },
        { "after=0&job=in-yard&tenant=t", true, false, false },
        { "after=0&type=dead", false, false, true },
        { "after=0&type=dead,accepted&destination=yard", true, false, false },
        { "after=0&tenant=u", false, true, false },
    };
    struct api_fixture *fixture = *state;
    put_job(fixture, "yard", "t", "in-yard", "x");
    put_job(fixture, "mail", "u", "in-mail", "x");
    put_job(fixture, "web", "t", "in-web", "bad");
    await_state(fixture, "/v1/jobs/in-web?tenant=t", "dead");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char query[128], path[128];
        snprintf(query, sizeof query, "?%s", cases[i].query);
        snprintf(path, sizeof path, "/v1/events?limit=1000&%s", cases[i].query);
        int fd = open_stream(fixture, query, "");
        char *begun = raw_read(fd, "id: ");
        api_fixture_skip(fixture, 16 * 1000); /* with the heartbeat all was looked at */
        char *rest = raw_read(fd, ":\nid: ");
        struct buffer all;
        buffer_init(&all, 1 << 20);
        buffer_append_text(&all, begun);
        buffer_append_text(&all, rest);
        check(!!strstr(all.data, "\"in-yard\"") == cases[i].yard, "%s: %s", query, all.data);
        check(!!strstr(all.data, "\"in-mail\"") == cases[i].mail, "%s: %s", query, all.data);
        check(!!strstr(all.data, "\"type\":\"dead\"") == cases[i].dead, "%s: %s", query, all.data);
        struct reply list = http_do(fixture, "GET", path, NULL); /* which has the same filters */
        check(!!strstr(list.body, "\"in-yard\"") == cases[i].yard, "%s: %s", path, list.body);
        check(!!strstr(list.body, "\"type\":\"dead\"") == cases[i].dead, "%s: %s", path, list.body);
        reply_release(&list);
        buffer_release(&all);
        free(begun);
        free(rest);
        close(fd);
    }
}

static void what_cannot_be_meant_is_refused(void **state)
{
    static const struct { const char *path, *type; } cases[] = {
        { "/v1/events/stream?after=x", "invalid_cursor" }, { "/v1/events/stream?after=-1", "invalid_cursor" },
        { "/v1/events/stream?type=deat", "invalid_type" }, { "/v1/events?type=dead,", "" },
        { "/v1/events?type=,", "invalid_type" },           { "/v1/events/stream?newest=0", "invalid_limit" },
        { "/v1/events/stream?newest=1001", "invalid_limit" },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct reply reply = http_do(*state, "GET", cases[i].path, NULL);
        check(reply.status == (*cases[i].type ? 422 : 200), "%s: %d", cases[i].path, reply.status);
        check(strcmp(reply_text(&reply, "type"), cases[i].type) == 0, "%s: %s", cases[i].path, reply.body);
        reply_release(&reply);
    }
}

static void who_wants_the_newest_is_told_what_it_misses(void **state)
{
    struct api_fixture *fixture = *state;
    char reported[64], first[64];
    for (int i = 0; i < 20; i++) {
        char id[16];
        snprintf(id, sizeof id, "job-%d", i);
        put_job(fixture, "yard", "t", id, "x");
    }
    int64_t last = newest(fixture);
    snprintf(reported, sizeof reported, "event: skipped\ndata: {\"events\":%" PRId64 "}", last - 5);
    snprintf(first, sizeof first, "id: %" PRId64 "\ndata: ", last - 4);
    char *read = stream_until(fixture, "?after=0&newest=5", "", "job-19");
    check(strstr(read, reported), "%s is not in %s", reported, read);
    check(strstr(read, first) && !strstr(read, "\"job-14\""), "%s", read);
    free(read);
    read = stream_until(fixture, "?after=0&newest=100", "", "job-19");
    check(strstr(read, "\"job-0\"") && !strstr(read, "skipped"), "%s", read);
    free(read);
}

static void silence_is_broken_by_a_heartbeat(void **state)
{
    struct api_fixture *fixture = *state;
    int fd = open_stream(fixture, "", "");
    expect_text(fd, "retry: 2000\n:\nid: ");
    api_fixture_skip(fixture, 16 * 1000);
    expect_text(fd, ":\nid: ");
    close(fd);
}

static void a_clock_that_is_set_back_silences_nobody(void **state)
{
    struct api_fixture *fixture = *state;
    int fd = open_stream(fixture, "", "");
    expect_text(fd, "retry: 2000\n:\nid: ");
    api_fixture_set_back(fixture, 3600 * 1000);
    api_fixture_skip(fixture, 16 * 1000);
    expect_text(fd, ":\nid: ");
    close(fd);
}

/* Its window is small and it reads nothing; more is there than the system's buffers hold. */
static void a_client_that_does_not_read_is_cut_off(void **state)
{
    static const int small = 128 * 1024;
    struct api_fixture *fixture = *state;
    struct buffer body;
    int64_t jobs = 0;
    buffer_init(&body, 4 << 20);
    for (int batch = 0; batch < 12; batch++) {
        buffer_clear(&body);
        for (int i = 0; i < BATCH_JOBS; i++)
            buffer_printf(&body, "{\"destination\":\"yard\",\"tenant\":\"%0100d\",\"id\":\"%0100" PRId64 "\",\"payload\":1}\n", 7,
                          ++jobs);
        struct reply reply = http_ask(fixture, &(struct request){ .method = "POST", .path = "/v1/jobs/batch",
                                                                  .body = body.data, .content_type = "application/x-ndjson" });
        check(reply_int(&reply, "accepted") == BATCH_JOBS, "%s", reply.body);
        reply_release(&reply);
    }
    buffer_release(&body);
    int fd = raw_connect(fixture);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    ask_stream(fd, "?after=0", "Connection: close\r\n");
    expect_text(fd, "id: ");
    int64_t calls = 2;
    for (int i = 0; i < 3000 && calls > 1; i++) { /* until it hangs, and its last piece is as old as it must be */
        if (i % 50 == 0) /* not when it was cut a moment ago: what it has still to read would be late, too */
            api_fixture_skip(fixture, 31 * 1000);
        poll(NULL, 0, 20);
        struct reply reply = http_do(fixture, "GET", "/v1/stats", NULL);
        calls = reply_int(&reply, "calls");
        reply_release(&reply);
    }
    char *read = raw_read(fd, NULL);
    size_t len = strlen(read);
    check(strstr(read, "event: end\ndata: {\"reason\":\"slow\"}\n\n"), "%s", len > 500 ? read + len - 500 : read);
    char last[256];
    snprintf(last, sizeof last, "%0100" PRId64, jobs);
    check(!strstr(read, last), "all %" PRId64 " events were kept for it: %zu bytes", jobs, len);
    free(read);
    close(fd);
}

static void a_token_for_a_tenant_shows_that_tenant(void **state)
{
    struct api_fixture *fixture = api_fixture_new(&(struct api_fixture_settings){ .tokens = tokens });
    static const char one[] = "Authorization: Bearer reader-of-one-tenant-0001\r\n";
    (void)state;
    int fd = open_stream(fixture, "", "");
    expect_text(fd, "401");
    close(fd);
    fd = open_stream(fixture, "?tenant=u", one);
    expect_text(fd, "403");
    close(fd);
    static const char *const bodies[] = { "{\"destination\":\"yard\",\"tenant\":\"u\",\"id\":\"theirs\",\"payload\":1}",
                                          "{\"destination\":\"yard\",\"tenant\":\"t\",\"id\":\"ours\",\"payload\":1}" };
    for (size_t i = 0; i < COUNT_OF(bodies); i++) {
        struct reply reply = http_ask(fixture, &(struct request){ .method = "POST", .path = "/v1/jobs", .body = bodies[i],
                                                                  .token = "reader-of-everything-0001" });
        assert_int_equal(reply.status, 201);
        reply_release(&reply);
    }
    char *read = stream_until(fixture, "?after=0", one, "\"ours\"");
    check(!strstr(read, "\"theirs\""), "%s", read);
    free(read);
    api_fixture_free(fixture);
}

/* --- turns --------------------------------------------------------------------------------------------------- */

enum { FOLLOWERS = 16, TURN_JOBS = 10 * BATCH_JOBS, LINES_AN_EVENT = 3 };

struct reading {
    int fds[FOLLOWERS];
    atomic_long lines; /* of all together */
};

/* Reads whatever comes, until each has all events. */
static void *read_all(void *context)
{
    struct reading *reading = context;
    struct pollfd polled[FOLLOWERS];
    char bytes[65536];
    for (size_t i = 0; i < FOLLOWERS; i++)
        polled[i] = (struct pollfd){ .fd = reading->fds[i], .events = POLLIN };
    while (atomic_load(&reading->lines) < (long)FOLLOWERS * TURN_JOBS * LINES_AN_EVENT && poll(polled, FOLLOWERS, 60000) > 0)
        for (size_t i = 0; i < FOLLOWERS; i++) {
            ssize_t got = polled[i].revents ? recv(polled[i].fd, bytes, sizeof bytes, MSG_DONTWAIT) : 0;
            long lines = 0;
            for (ssize_t k = 0; k < got; k++)
                lines += bytes[k] == '\n';
            atomic_fetch_add(&reading->lines, lines);
        }
    return NULL;
}

/* Many who read all events from the beginning do not keep others waiting: these are answered long before those are through. */
static void streams_take_turns_with_requests(void **state)
{
    enum { CALLS = 20 };
    struct api_fixture *fixture = *state;
    struct reading reading = { .lines = 0 };
    struct buffer body;
    pthread_t thread;
    buffer_init(&body, 4 << 20);
    for (int i = 0; i < BATCH_JOBS; i++)
        buffer_append_text(&body, "{\"destination\":\"yard\",\"payload\":1}\n");
    for (int batch = 0; batch < TURN_JOBS / BATCH_JOBS; batch++) {
        struct reply reply = http_ask(fixture, &(struct request){ .method = "POST", .path = "/v1/jobs/batch", .body = body.data,
                                                                  .content_type = "application/x-ndjson" });
        check(reply_int(&reply, "accepted") == BATCH_JOBS, "%s", reply.body);
        reply_release(&reply);
    }
    buffer_release(&body);
    for (size_t i = 0; i < FOLLOWERS; i++)
        reading.fds[i] = open_stream(fixture, "?after=0", "");
    assert_int_equal(pthread_create(&thread, NULL, read_all, &reading), 0);
    for (int i = 0; i < CALLS; i++) {
        struct reply reply = http_do(fixture, "GET", "/livez", NULL);
        check(reply.status == 200, "%d %s", reply.status, reply.body);
        reply_release(&reply);
    }
    long read = atomic_load(&reading.lines), all = (long)FOLLOWERS * TURN_JOBS * LINES_AN_EVENT;
    check(read < all / 2, "%d requests waited for %ld of %ld lines", CALLS, read, all);
    pthread_join(thread, NULL);
    check(atomic_load(&reading.lines) >= all, "%ld of %ld lines came", atomic_load(&reading.lines), all);
    for (size_t i = 0; i < FOLLOWERS; i++)
        close(reading.fds[i]);
}

static void one_token_has_only_so_many(void **state)
{
    static const char one[] = "Authorization: Bearer reader-of-one-tenant-0001\r\n";
    static const char all[] = "Authorization: Bearer reader-of-everything-0001\r\n";
    enum { PER_TOKEN = 8 };
    struct api_fixture *fixture = api_fixture_new(&(struct api_fixture_settings){ .tokens = tokens });
    int fds[PER_TOKEN];
    (void)state;
    for (size_t i = 0; i < PER_TOKEN; i++) {
        fds[i] = open_stream(fixture, "", one);
        expect_text(fds[i], "id: ");
    }
    int further = open_stream(fixture, "", one), other = open_stream(fixture, "", all);
    expect_text(further, "HTTP/1.1 429 ");
    expect_text(other, "id: ");
    close(further);
    close(other);
    for (size_t i = 0; i < PER_TOKEN; i++)
        close(fds[i]);
    api_fixture_free(fixture);
}

static void there_are_only_so_many(void **state)
{
    struct api_fixture *fixture = *state;
    int fds[STREAMS_MAX];
    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        fds[i] = open_stream(fixture, "", "");
        expect_text(fds[i], "id: ");
    }
    struct reply reply = http_do(fixture, "GET", "/v1/events/stream", NULL);
    assert_int_equal(reply.status, 503);
    assert_string_equal(reply_text(&reply, "type"), "too_many_streams");
    char *after = reply_header(&reply, "Retry-After");
    assert_non_null(after);
    free(after);
    reply_release(&reply);
    close(fds[0]); /* one leaves: another may come, once that is noticed */
    bool taken = false;
    for (int i = 0; i < 3000 && !taken; i++) {
        int fd = open_stream(fixture, "", "");
        char *read = raw_read(fd, "\r\n\r\n");
        taken = strstr(read, "HTTP/1.1 200") != NULL;
        free(read);
        close(fd);
        poll(NULL, 0, taken ? 0 : 5);
    }
    assert_true(taken);
    for (size_t i = 1; i < COUNT_OF(fds); i++)
        close(fds[i]);
}

static void it_ends_when_the_daemon_stops(void **state)
{
    struct api_fixture *fixture = *state;
    int fd = open_stream(fixture, "", "Connection: close\r\n");
    expect_text(fd, "id: ");
    api_stop_accepting(api_fixture_api(fixture));
    char *read = raw_read(fd, NULL);
    check(strstr(read, "event: end\ndata: {\"reason\":\"stopping\"}\n\n\r\n0\r\n\r\n"), "%s", read);
    free(read);
    close(fd);
    struct reply reply = http_do(fixture, "GET", "/v1/events/stream", NULL);
    assert_int_equal(reply.status, 503);
    assert_string_equal(reply_text(&reply, "type"), "stopping");
    reply_release(&reply);
}

/* Neither who waits nor who does not read keeps the daemon from its end: the teardown waits for it. */
static void open_streams_do_not_hold_up_the_end(void **state)
{
    struct api_fixture *fixture = api_fixture_new(NULL);
    int waiting = open_stream(fixture, "", "");
    int leaving = open_stream(fixture, "", "");
    (void)state;
    expect_text(waiting, "id: ");
    expect_text(leaving, "id: ");
    close(leaving);
    api_fixture_free(fixture);
    char *read = raw_read(waiting, NULL);
    check(strstr(read, "\"stopping\""), "%s", read);
    free(read);
    close(waiting);
}

/* The token may be gone: whose is not comes again. */
static void a_reload_ends_it(void **state)
{
    struct api_fixture *fixture = *state;
    struct config *config = NULL;
    struct api_order *order;
    struct buffer problems;
    struct error error;
    buffer_init(&problems, 1 << 16);
    assert_int_equal(config_parse(SLICE("listen: 127.0.0.1:0\nstore: 'memory:'\n"), "test.yaml", &config, &problems), STATUS_OK);
    int fd = open_stream(fixture, "", "Connection: close\r\n");
    expect_text(fd, "id: ");
    assert_int_equal(api_prepare(api_fixture_api(fixture), config, &order, &error), STATUS_OK);
    api_reload(order);
    expect_text(fd, "event: end\ndata: {\"reason\":\"reloaded\"}\n\n");
    close(fd);
    config_unref(config);
    buffer_release(&problems);
}

static void head_is_answered_at_once(void **state)
{
    int fd = raw_connect(*state);
    static const char ask[] = "HEAD /v1/events/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    raw_send(fd, ask, sizeof ask - 1);
    char *read = raw_read(fd, NULL);
    check(strstr(read, "HTTP/1.1 200") && strstr(read, "text/event-stream") && !strstr(read, "retry:"), "%s", read);
    free(read);
    close(fd);
}

/* The head is out when the store is read, so the failure is part of the answer, and no second head follows. */
static void what_cannot_be_read_ends_the_answer(void **state)
{
    static const char export[] = "GET /v1/dead/export HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    struct api_fixture *fixture = api_fixture_new(&(struct api_fixture_settings){ .faulty = true });
    struct store *store = api_fixture_store(fixture);
    (void)state;
    put_job(fixture, "web", "t", "bad", "bad");
    await_state(fixture, "/v1/jobs/bad?tenant=t", "dead");
    int following = open_stream(fixture, "", ""), exporting = raw_connect(fixture);
    expect_text(following, "retry:");
    store_faulty_set(store, FAULTY_READ, 1, true, STATUS_CORRUPT);
    raw_send(exporting, export, sizeof export - 1);
    char *cut = raw_read(exporting, NULL);
    check(strstr(cut, "HTTP/1.1 200") == cut && !strstr(cut + 1, "HTTP/1.1"), "one head: %s", cut);
    check(!strstr(cut, "0\r\n\r\n"), "it does not look whole: %s", cut);
    free(cut);
    struct reply added = http_do(fixture, "POST", "/v1/jobs", "{\"destination\":\"web\",\"payload\":\"hang\"}");
    reply_release(&added);
    expect_text(following, "event: end\ndata: {\"reason\":\"store_failed\"}\n\n");
    struct reply decided = http_do(fixture, "POST", "/v1/decide",
                                   "{\"claimId\":\"bad\",\"submissionError\":\"TIMEOUT\",\"policy\":\"web\"}");
    check(decided.status == 200, "retries that are not known are none: %d %s", decided.status, decided.body);
    reply_release(&decided);
    store_faulty_set(store, FAULTY_READ, 0, false, STATUS_CORRUPT);
    close(following);
    close(exporting);
    api_fixture_free(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(events_come_as_they_happen, setup, teardown),
        cmocka_unit_test_setup_teardown(who_comes_again_misses_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(only_what_is_asked_for_comes, setup, teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_meant_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(who_wants_the_newest_is_told_what_it_misses, setup, teardown),
        cmocka_unit_test_setup_teardown(silence_is_broken_by_a_heartbeat, setup, teardown),
        cmocka_unit_test_setup_teardown(a_clock_that_is_set_back_silences_nobody, setup, teardown),
        cmocka_unit_test_setup_teardown(a_client_that_does_not_read_is_cut_off, setup, teardown),
        cmocka_unit_test(a_token_for_a_tenant_shows_that_tenant),
        cmocka_unit_test_setup_teardown(streams_take_turns_with_requests, setup, teardown),
        cmocka_unit_test(one_token_has_only_so_many),
        cmocka_unit_test_setup_teardown(there_are_only_so_many, setup, teardown),
        cmocka_unit_test_setup_teardown(it_ends_when_the_daemon_stops, setup, teardown),
        cmocka_unit_test(open_streams_do_not_hold_up_the_end),
        cmocka_unit_test_setup_teardown(a_reload_ends_it, setup, teardown),
        cmocka_unit_test_setup_teardown(head_is_answered_at_once, setup, teardown),
        cmocka_unit_test(what_cannot_be_read_ends_the_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
