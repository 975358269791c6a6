/*
 * Calls that go on to the node that owns a destination: that node is slow, dies in the middle of an answer, floods, lies, is
 * somebody else, thinks that this one owns it. Who asked hears what is wrong, and nobody else notices.
 */
#include "daemon/forward.h"
#include "support/api_fixture.h"
#include "support/check.h"
#include "support/http_rig.h"
#include "support/line_server.h"
#include "support/receiver.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SESSION = 7, CROWD = 100, CALLS = 128, WORKERS = 100, WORKERS_OUT = 96, LONG_BYTES = 300000, LONG_CALLS = 6, NACK_BYTES = 200000,
       ANSWER_BYTES_MAX = 4 << 20, SOON_MS = 1000 };

#define JSON_TYPE "Content-Type: application/json\r\n"
#define DESTINATIONS                                                                                                        \
    "listen: 127.0.0.1:0\n"                                                                                                 \
    "store: 'memory:'\n"                                                                                                    \
    "destinations:\n"                                                                                                       \
    "  web: { transport: http, url: 'http://127.0.0.1:1/', allow_private: true }\n"                                         \
    "  mine: { transport: http, url: 'http://127.0.0.1:1/', allow_private: true }\n"                                        \
    "  yard: { transport: pull }\n"

/* A sanitizer keeps what was freed. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { SANITIZED = true };
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
enum { SANITIZED = true };
#else
enum { SANITIZED = false };
#endif
#else
enum { SANITIZED = false };
#endif

/* All but `mine` is owned by whoever listens there. */
static char owner_url[64];
static atomic_bool gone;
static struct forwarder *forwarder;
static int64_t begin_ms_max = HOUR_MS, stall_ms_max = HOUR_MS; /* where it is not about time, a slow machine has all of it */

static enum owner owner_of(void *ignored, struct slice destination, struct owner_place *ret_place)
{
    (void)ignored;
    *ret_place = (struct owner_place){ .node = "b", .session = SESSION };
    snprintf(ret_place->url, sizeof ret_place->url, "%s", owner_url);
    return slice_equal(destination, SLICE("mine")) ? OWNER_HERE : OWNER_ELSEWHERE;
}

static void forward_on(void *ignored, struct forward *forward)
{
    (void)ignored;
    forwarder_send(forwarder, forward);
}

static void abandon(void *ignored, struct forward *forward)
{
    (void)ignored;
    forwarder_abandon(forwarder, forward);
}

static bool lives(void *ignored, int64_t session)
{
    (void)ignored;
    check(session == SESSION, "session %lld", (long long)session);
    return !gone;
}

static void forwarder_begin(size_t answers_bytes_max)
{
    struct error error;
    gone = false;
    const struct forwarder_settings settings = { .calls_max = CALLS, .answers_bytes_max = answers_bytes_max,
                                                 .answer_bytes_max = ANSWER_BYTES_MAX, .begin_ms_max = begin_ms_max,
                                                 .stall_ms_max = stall_ms_max, .lives = lives };
    assert_int_equal(forwarder_new(&settings, &forwarder, &error), STATUS_OK);
}

static struct api_fixture *node_new(const char *config, const char *tokens)
{
    return api_fixture_new(&(struct api_fixture_settings){ .config = config, .tokens = tokens, .owner = owner_of,
                                                           .forward = forward_on, .abandon = abandon });
}

/* This node, and whoever owns the rest. */
static struct api_fixture *begin(const struct receiver *owner, size_t answers_bytes_max)
{
    snprintf(owner_url, sizeof owner_url, "http://127.0.0.1:%d/", receiver_port(owner));
    forwarder_begin(answers_bytes_max);
    return node_new(DESTINATIONS, NULL);
}

static void end(struct api_fixture *fixture)
{
    forwarder_stop(forwarder);
    api_fixture_free(fixture);
    forwarder_free(forwarder);
}

static int ask_and_wait(const struct api_fixture *fixture, const char *method, const char *path, const char *body)
{
    char request[512];
    int fd = raw_connect(fixture), len = snprintf(request, sizeof request,
        "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s", method, path, strlen(body), body);
    raw_send(fd, request, (size_t)len);
    return fd;
}

static void expect_answer(int fd, const char *wanted, const char *about)
{
    char *answer = raw_read(fd, NULL);
    check(strstr(answer, wanted), "%s: %.500s", about, answer);
    free(answer);
    close(fd);
}

static void expect_well(const struct api_fixture *fixture)
{
    static const char *const paths[] = { "/livez", "/v1/destinations/mine", "/v1/jobs", "/v1/destinations", "/metrics" };
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        struct reply reply = http_do(fixture, "GET", paths[i], NULL);
        check(reply.status == 200, "%s: %d %s", paths[i], reply.status, reply.body);
        reply_release(&reply);
    }
    struct reply taken = http_do(fixture, "POST", "/v1/jobs", "{\"destination\":\"web\",\"payload\":\"x\"}");
    check(taken.status == 201, "%d %s", taken.status, taken.body);
    reply_release(&taken);
}

/* ---- one call ---- */

static void it_goes_as_it_came_and_comes_as_it_is(void **state)
{
    static const struct receiver_reply replies[] = {
        { .status = 429, .headers = "Content-Type: application/problem+json\r\nRetry-After: 17\r\n", .body = "{\"type\":\"crowded\"}" },
        { .headers = JSON_TYPE, .body = "{\"mode\":\"normal\"}" },
    };
    struct receiver *owner = receiver_new(NULL);
    struct receiver_request seen;
    (void)state;
    receiver_script(owner, replies, COUNT_OF(replies));
    struct api_fixture *fixture = begin(owner, 1 << 20);
    struct reply reply = http_do(fixture, "POST", "/v1/destinations/web/pause", "{\"reason\":\"rain\"}");
    char *wait = reply_header(&reply, "Retry-After"), *type = reply_header(&reply, "Content-Type");
    check(reply.status == 429 && strcmp(reply_text(&reply, "type"), "crowded") == 0, "%d %s", reply.status, reply.body);
    check(wait && strcmp(wait, "17") == 0 && type && strcmp(type, "application/problem+json") == 0, "%s", reply.headers);
    free(wait);
    free(type);
    reply_release(&reply);
    assert_true(receiver_last(owner, 0, &seen));
    assert_string_equal(seen.method.data, "POST");
    assert_string_equal(seen.path.data, "/v1/destinations/web/pause");
    assert_string_equal(seen.body.data, "{\"reason\":\"rain\"}");
    check(strstr(seen.headers.data, "Insist-Relayed: 1"), "%s", seen.headers.data);
    receiver_request_release(&seen);
    reply = http_do(fixture, "GET", "/v1/errors?destination=web&limit=3", NULL);
    check(reply.status == 200 && strcmp(reply_text(&reply, "mode"), "normal") == 0, "%s", reply.body);
    reply_release(&reply);
    assert_true(receiver_last(owner, 0, &seen));
    assert_string_equal(seen.path.data, "/v1/errors?destination=web&limit=3");
    receiver_request_release(&seen);
    end(fixture);
    receiver_free(owner);
}

static const struct { const char *about; struct receiver_reply reply; int status; const char *type, *detail; } bad[] = {
    { "it closes", { .fate = FATE_CLOSE }, 503, "owner_unreachable", "may have been taken" },
    { "it resets", { .fate = FATE_RESET }, 503, "owner_unreachable", "may have been taken" },
    { "it dies in the middle", { .headers = JSON_TYPE, .body = "{\"a\":1}", .form = FORM_HALF }, 503, "owner_unreachable", "may have" },
    { "with a reset", { .headers = JSON_TYPE, .body = "{\"a\":1}", .form = FORM_HALF_RESET }, 503, "owner_unreachable", "may have" },
    { "bytes that are no HTTP", { .body = "SSH-2.0-OpenSSH_9.2\r\n", .form = FORM_RAW }, 503, "owner_unreachable", "may have" },
    { "a head without an end", { .body = "HTTP/1.1 200 OK\r\nContent-Type: app", .form = FORM_RAW }, 503, "owner_", "node \"b\"" },
    { "another program's page", { .headers = "Content-Type: text/html\r\n", .body = "<h1>It works!</h1>" }, 503, "owner_strange",
      "node.url" },
    { "nothing that says what it is", { .body = "{}" }, 503, "owner_strange", "node.url" },
    { "a redirect", { .status = 302, .headers = "Location: http://127.0.0.1:1/\r\n" }, 503, "owner_strange", "HTTP 302" },
    { "another token", { .status = 401, .headers = JSON_TYPE, .body = "{}" }, 503, "owner_refuses", "must be the same on all nodes" },
    { "another host", { .status = 421, .headers = JSON_TYPE, .body = "{}" }, 503, "owner_refuses", "HTTP 421" },
    { "not found is an answer", { .status = 404, .headers = "Content-Type: application/problem+json; charset=utf-8\r\n",
      .body = "{\"type\":\"gone\"}" }, 404, "gone", "" },
};

static void what_is_no_answer_is_told(void **state)
{
    struct receiver *owner = receiver_new(NULL);
    struct api_fixture *fixture = begin(owner, 1 << 20);
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        receiver_script(owner, &bad[i].reply, 1);
        struct reply reply = http_do(fixture, "GET", "/v1/destinations/web", NULL);
        check(reply.status == bad[i].status && strstr(reply_text(&reply, "type"), bad[i].type), "%s: %d %s", bad[i].about,
              reply.status, reply.body);
        check(strstr(reply_text(&reply, "detail"), bad[i].detail), "%s: %s", bad[i].about, reply.body);
        char *wait = reply_header(&reply, "Retry-After");
        check(reply.status != 503 || (wait && strcmp(wait, "2") == 0), "%s: %s", bad[i].about, reply.headers);
        free(wait);
        reply_release(&reply);
    }
    end(fixture);
    receiver_free(owner);
}

/* A kept connection ends without an answer: an order may have been carried out, and is not sent again unseen. */
static void an_order_is_sent_once(void **state)
{
    static const struct { const char *method, *path, *body; int status; size_t requests; } rows[] = {
        { "POST", "/v1/destinations/web/pause", "{}", 503, 2 },
        { "POST", "/v1/leases", "{\"destination\":\"yard\"}", 503, 2 },
        { "GET", "/v1/destinations/web", NULL, 200, 3 },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        static const struct receiver_reply replies[] = {
            { .headers = JSON_TYPE, .body = "{}" }, { .fate = FATE_CLOSE }, { .headers = JSON_TYPE, .body = "{\"again\":true}" },
        };
        struct receiver *owner = receiver_new(NULL);
        struct api_fixture *fixture = begin(owner, 1 << 20);
        receiver_script(owner, replies, COUNT_OF(replies));
        struct reply reply = http_do(fixture, "GET", "/v1/destinations/web", NULL);
        assert_int_equal(reply.status, 200);
        reply_release(&reply);
        reply = http_do(fixture, rows[i].method, rows[i].path, rows[i].body);
        check(reply.status == rows[i].status && receiver_requests(owner) == rows[i].requests, "%s %s: %d %s, %zu requests",
              rows[i].method, rows[i].path, reply.status, reply.body, receiver_requests(owner));
        check(reply.status == 200 || strstr(reply_text(&reply, "detail"), "may have been taken"), "%s", reply.body);
        reply_release(&reply);
        end(fixture);
        receiver_free(owner);
    }
}

static void a_node_that_nobody_reaches_has_changed_nothing(void **state)
{
    struct receiver *owner = receiver_new(NULL), *deaf = receiver_new(&(struct receiver_settings){ .deaf = true });
    struct api_fixture *fixture = begin(owner, 1 << 20);
    (void)state;
    receiver_free(owner); /* its port is closed now */
    for (int i = 0; i < 2; i++) {
        struct reply reply = http_do(fixture, "POST", "/v1/destinations/web/pause", "{}");
        check(reply.status == 503 && strstr(reply_text(&reply, "type"), "owner_unreachable"), "%s", reply.body);
        check(strstr(reply_text(&reply, "detail"), "nothing was changed"), "%s", reply.body);
        reply_release(&reply);
        snprintf(owner_url, sizeof owner_url, "http://127.0.0.1:%d", receiver_port(deaf));
    }
    end(fixture);
    receiver_free(deaf);
}

/* ---- many ---- */

static void a_crowd_that_waits_for_a_dead_owner_stops_nobody(void **state)
{
    static const struct receiver_reply hangs = { .fate = FATE_HANG };
    struct receiver *owner = receiver_new(NULL);
    struct api_fixture *fixture = begin(owner, 1 << 20);
    int fds[CROWD];
    (void)state;
    receiver_script(owner, &hangs, 1);
    for (size_t i = 0; i < CROWD; i++)
        fds[i] = ask_and_wait(fixture, "GET", "/v1/destinations/web", "");
    assert_true(receiver_await_requests(owner, CROWD));
    expect_well(fixture);
    gone = true; /* it was taken for dead: its calls end, though its machine says nothing */
    for (size_t i = 0; i < CROWD; i++)
        expect_answer(fds[i], "the node is gone", "of the crowd");
    expect_well(fixture);
    end(fixture);
    receiver_free(owner);
}

static void workers_that_wait_leave_room_for_an_order(void **state)
{
    static struct receiver_reply replies[WORKERS_OUT + 1];
    struct receiver *owner = receiver_new(NULL);
    struct api_fixture *fixture = begin(owner, 1 << 20);
    int fds[WORKERS];
    size_t refused = 0;
    (void)state;
    for (size_t i = 0; i < WORKERS_OUT; i++)
        replies[i].fate = FATE_HANG;
    replies[WORKERS_OUT] = (struct receiver_reply){ .headers = JSON_TYPE, .body = "{\"mode\":\"paused\"}" };
    receiver_script(owner, replies, COUNT_OF(replies));
    for (size_t i = 0; i < WORKERS; i++)
        fds[i] = ask_and_wait(fixture, "POST", "/v1/leases", "{\"destination\":\"yard\",\"wait_s\":60}");
    assert_true(receiver_await_requests(owner, WORKERS_OUT));
    struct reply reply = http_do(fixture, "POST", "/v1/destinations/web/pause", "{}");
    check(reply.status == 200 && strcmp(reply_text(&reply, "mode"), "paused") == 0, "%d %s", reply.status, reply.body);
    reply_release(&reply);
    assert_int_equal(receiver_requests(owner), WORKERS_OUT + 1);
    gone = true;
    for (size_t i = 0; i < WORKERS; i++) {
        char *answer = raw_read(fds[i], NULL);
        refused += strstr(answer, "too many calls are on their way") != NULL;
        check(strstr(answer, "HTTP/1.1 503"), "%s", answer);
        free(answer);
        close(fds[i]);
    }
    assert_int_equal(refused, WORKERS - WORKERS_OUT);
    end(fixture);
    receiver_free(owner);
}

/* The owner would lease jobs to nobody. */
static void a_worker_that_leaves_is_waited_for_no_more(void **state)
{
    static const struct receiver_reply hangs = { .fate = FATE_HANG };
    struct receiver *owner = receiver_new(NULL);
    struct api_fixture *fixture = begin(owner, 1 << 20);
    (void)state;
    receiver_script(owner, &hangs, 1);
    int fd = ask_and_wait(fixture, "POST", "/v1/leases", "{\"destination\":\"yard\",\"wait_s\":60}");
    assert_true(receiver_await_requests(owner, 1));
    close(fd);
    assert_true(receiver_await_ended(owner, 1));
    expect_well(fixture);
    end(fixture);
    receiver_free(owner);
}

static void long_answers_share_the_memory_and_come_whole(void **state)
{
    char *text = malloc(LONG_BYTES + 1);
    struct receiver *owner = receiver_new(NULL);
    struct api_fixture *fixture = begin(owner, LONG_BYTES / 4);
    int fds[LONG_CALLS];
    (void)state;
    memset(text, ' ', LONG_BYTES);
    strcpy(text + LONG_BYTES - 14, "\"the very end\"");
    const struct receiver_reply reply = { .headers = JSON_TYPE, .body = text };
    receiver_script(owner, &reply, 1);
    for (size_t i = 0; i < LONG_CALLS; i++)
        fds[i] = ask_and_wait(fixture, "GET", "/v1/destinations/web", "");
    for (size_t i = 0; i < LONG_CALLS; i++)
        expect_answer(fds[i], "the very end", "a long one");
    end(fixture);
    receiver_free(owner);
    free(text);
}

/* An owner that is cut off in a long answer holds up the others for as long as it is taken for alive. */
static void a_long_answer_that_stalls_ends_with_its_node(void **state)
{
    static char text[LONG_BYTES + 1];
    struct receiver *owner = receiver_new(NULL);
    struct api_fixture *fixture = begin(owner, LONG_BYTES / 4);
    (void)state;
    memset(text, ' ', LONG_BYTES);
    const struct receiver_reply slow = { .headers = JSON_TYPE, .body = text, .form = FORM_SLOW };
    receiver_script(owner, &slow, 1);
    int fd = ask_and_wait(fixture, "GET", "/v1/destinations/web", "");
    assert_true(receiver_await_requests(owner, 1));
    expect_well(fixture);
    gone = true;
    expect_answer(fd, "the node is gone", "of a slow one");
    end(fixture);
    receiver_free(owner);
}

/* ---- a node that beats, and does not answer ---- */

/* The last connections end in threads of their own. */
static void await_descriptors(size_t most)
{
    size_t count = rig_descriptors();
    for (int i = 0; i < 3000 && count > most; i++, count = rig_descriptors())
        sleep_ms(20);
    check(count <= most, "%zu descriptors, there were %zu", count, most);
}

static void expect_late(const char *answer, const char *failure)
{
    check(strstr(answer, "HTTP/1.1 503"), "%.300s", answer);
    check(strstr(answer, "Retry-After: 2\r\n"), "%.300s", answer);
    check(strstr(answer, "owner_unreachable"), "%.500s", answer);
    check(strstr(answer, failure), "not \"%s\": %.500s", failure, answer);
}

/*
 * A black hole: it takes connections and bytes, its machine acknowledges them, its session goes on, and nothing comes back.
 * Who asks hears so in bounded time, others at once, and nothing is left of it; not even by those who send it much.
 */
static void a_black_hole_is_given_up_in_time(void **state)
{
    static const struct receiver_reply hangs = { .fate = FATE_HANG };
    struct receiver *owner = receiver_new(NULL);
    int fds[CROWD];
    (void)state;
    begin_ms_max = SOON_MS;
    struct api_fixture *fixture = begin(owner, 1 << 20);
    receiver_script(owner, &hangs, 1);
    expect_well(fixture);
    size_t before = rig_descriptors();
    for (size_t i = 0; i < CROWD; i++)
        fds[i] = i % 2 ? ask_and_wait(fixture, "POST", "/v1/destinations/web/pause", "{}") :
                         ask_and_wait(fixture, "GET", "/v1/destinations/web", "");
    assert_true(receiver_await_requests(owner, CROWD));
    expect_well(fixture);
    for (size_t i = 0; i < CROWD; i++) {
        char *answer = raw_read(fds[i], NULL);
        expect_late(answer, "no answer in time");
        check(strstr(answer, "an order may have been taken"), "%.500s", answer);
        free(answer);
        close(fds[i]);
    }
    assert_true(receiver_await_ended(owner, CROWD));
    await_descriptors(before + 2); /* the fixture's client may keep one, and so may the server */
    end(fixture);
    receiver_free(owner);
    begin_ms_max = HOUR_MS;
}

/* What a worker waits for work is not counted as silence, and no more than that is. */
static void a_worker_is_waited_for_as_long_as_it_waits(void **state)
{
    static const struct receiver_reply slow[] = {
        { .delay_ms = 2 * SOON_MS, .headers = JSON_TYPE, .body = "{\"leases\":[]}" }, { .fate = FATE_HANG },
    };
    struct receiver *owner = receiver_new(NULL);
    (void)state;
    begin_ms_max = SOON_MS;
    struct api_fixture *fixture = begin(owner, 1 << 20);
    receiver_script(owner, slow, COUNT_OF(slow));
    struct reply reply = http_do(fixture, "POST", "/v1/leases", "{\"destination\":\"yard\",\"wait_s\":60}");
    check(reply.status == 200, "%d %s", reply.status, reply.body);
    reply_release(&reply);
    char *answer = raw_read(ask_and_wait(fixture, "POST", "/v1/leases", "{\"destination\":\"yard\",\"wait_s\":1}"), NULL);
    expect_late(answer, "no answer in time");
    free(answer);
    end(fixture);
    receiver_free(owner);
    begin_ms_max = HOUR_MS;
}

/* An answer that drips has all the memory for answers; who asks for little does not wait for it. */
static void an_answer_that_drips_holds_up_no_small_one(void **state)
{
    static char text[LONG_BYTES + 1], little[1001];
    struct receiver *owner = receiver_new(NULL);
    (void)state;
    struct api_fixture *fixture = begin(owner, 0); /* so whose byte comes first is favoured */
    memset(text, ' ', LONG_BYTES);
    memset(little, ' ', sizeof little - 1);
    const struct receiver_reply replies[] = { { .headers = JSON_TYPE, .body = text, .form = FORM_SLOW },
                                              { .headers = JSON_TYPE, .body = little } };
    receiver_script(owner, replies, COUNT_OF(replies));
    int fd = ask_and_wait(fixture, "GET", "/v1/destinations/web", "");
    assert_true(receiver_await_requests(owner, 1));
    for (int i = 0; i < 300; i++) { /* the slow one has begun long before the last */
        struct reply reply = http_do(fixture, "GET", "/v1/destinations/web", NULL);
        check(reply.status == 200, "%d %s", reply.status, reply.body);
        reply_release(&reply);
    }
    gone = true;
    expect_answer(fd, "the node is gone", "it went on all the while");
    end(fixture);
    receiver_free(owner);
}

static void an_answer_that_drips_is_not_heard_to_the_end(void **state)
{
    static char text[LONG_BYTES + 1];
    struct receiver *owner = receiver_new(NULL);
    (void)state;
    stall_ms_max = SOON_MS;
    struct api_fixture *fixture = begin(owner, 1 << 20);
    memset(text, ' ', LONG_BYTES);
    const struct receiver_reply slow = { .headers = JSON_TYPE, .body = text, .form = FORM_SLOW };
    receiver_script(owner, &slow, 1);
    char *answer = raw_read(ask_and_wait(fixture, "GET", "/v1/destinations/web", ""), NULL);
    expect_late(answer, "its answer came to a halt");
    free(answer);
    end(fixture);
    receiver_free(owner);
    stall_ms_max = HOUR_MS;
}

static long resident_kb(void)
{
    char line[200];
    long kb = 0;
    FILE *file = fopen("/proc/self/status", "r");
    assert_non_null(file);
    while (kb == 0 && fgets(line, sizeof line, file))
        (void)sscanf(line, "VmRSS: %ld", &kb);
    fclose(file);
    assert_true(kb > 0);
    return kb;
}

/* It would take all the memory there is. */
static void an_endless_answer_is_cut_off(void **state)
{
    static char text[65537];
    struct receiver *owner = receiver_new(NULL);
    struct api_fixture *fixture = begin(owner, 1 << 20);
    int fds[CROWD];
    (void)state;
    memset(text, ' ', sizeof text - 1);
    const struct receiver_reply endless = { .headers = JSON_TYPE, .body = text, .form = FORM_ENDLESS };
    receiver_script(owner, &endless, 1);
    expect_well(fixture);
    long before = resident_kb();
    for (size_t i = 0; i < CROWD; i++)
        fds[i] = ask_and_wait(fixture, "GET", "/v1/destinations/web", "");
    assert_true(receiver_await_requests(owner, CROWD));
    expect_well(fixture);
    for (size_t i = 0; i < CROWD; i++) {
        char *answer = raw_read(fds[i], NULL);
        expect_late(answer, "its answer is too long");
        free(answer);
        close(fds[i]);
    }
    /* The budget, one answer, as much again of what grows by halves, a small part each; threads have their stacks. */
    check(SANITIZED || resident_kb() - before < 64 << 10, "%ld KB more", resident_kb() - before);
    end(fixture);
    receiver_free(owner);
}

/* ---- two nodes ---- */

static int ports[2];
static struct api_fixture *pair[2];

/* Each thinks that the other owns it. */
static enum owner owner_is_the_other(void *context, struct slice destination, struct owner_place *ret_place)
{
    *ret_place = (struct owner_place){ .node = "b", .session = SESSION };
    snprintf(ret_place->url, sizeof ret_place->url, "http://127.0.0.1:%d", ports[context == pair[0]]);
    return slice_equal(destination, SLICE("mine")) ? OWNER_HERE : OWNER_ELSEWHERE;
}

static void two_that_think_of_each_other_do_not_play_ball(void **state)
{
    (void)state;
    forwarder_begin(1 << 20);
    for (size_t i = 0; i < 2; i++) {
        pair[i] = api_fixture_new(&(struct api_fixture_settings){ .config = DESTINATIONS, .owner = owner_is_the_other,
                                                                  .forward = forward_on, .abandon = abandon });
        ports[i] = api_fixture_port(pair[i]);
    }
    for (size_t i = 0; i < 2; i++) {
        struct reply reply = http_do(pair[i], "POST", "/v1/destinations/web/pause", "{}");
        char *wait = reply_header(&reply, "Retry-After");
        check(reply.status == 503 && strstr(reply_text(&reply, "type"), "owner_unknown"), "%d %s", reply.status, reply.body);
        check(wait && strcmp(wait, "2") == 0, "%s", reply.headers);
        check(strstr(reply_text(&reply, "detail"), "node.url of node \"b\" leads to another node"), "%s", reply.body);
        free(wait);
        reply_release(&reply);
        expect_well(pair[i]);
    }
    forwarder_stop(forwarder);
    for (size_t i = 0; i < 2; i++)
        api_fixture_free(pair[i]);
    forwarder_free(forwarder);
}

#define SHA_OF_ONE "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed" /* of "one" */

static enum owner owner_is_the_second(void *context, struct slice destination, struct owner_place *ret_place)
{
    *ret_place = (struct owner_place){ .node = "b", .session = SESSION };
    snprintf(ret_place->url, sizeof ret_place->url, "http://localhost:%d", ports[1]);
    (void)destination;
    return context == pair[0] ? OWNER_ELSEWHERE : OWNER_HERE;
}

static void nodes_begin(const char *first_token, const char *second_token)
{
    char config[1024];
    static const char tokens[] = "tokens:\n  - { name: one, sha256: " SHA_OF_ONE ", scopes: [read, work, enqueue] }\n";
    const char *const secrets[] = { first_token, second_token };
    forwarder_begin(1 << 20);
    ports[1] = 0;
    pair[0] = pair[1] = NULL;
    for (size_t i = 0; i < 2; i++) {
        snprintf(config, sizeof config, "%snode: { token: %s }\n", DESTINATIONS, secrets[i]);
        pair[i] = api_fixture_new(&(struct api_fixture_settings){ .config = config, .tokens = tokens, .owner = owner_is_the_second,
                                                                  .forward = forward_on, .abandon = abandon });
        ports[i] = api_fixture_port(pair[i]);
    }
}

static void nodes_end(void)
{
    forwarder_stop(forwarder);
    for (size_t i = 0; i < 2; i++)
        api_fixture_free(pair[i]);
    forwarder_free(forwarder);
}

static struct reply ask_as_one(const char *method, const char *path, const char *body)
{
    return http_ask(pair[0], &(struct request){ .method = method, .path = path, .body = body, .token = "one" });
}

/* The caller's name and scopes go along, and a body that is not small, too. */
static void the_owner_knows_for_whom_a_node_asks(void **state)
{
    char *body = malloc(NACK_BYTES + 200);
    (void)state;
    nodes_begin("secret-of-nodes-1", "secret-of-nodes-1");
    struct reply reply = ask_as_one("POST", "/v1/destinations/web/pause", "{}");
    check(reply.status == 403, "one may not: %d %s", reply.status, reply.body);
    reply_release(&reply);
    reply = ask_as_one("GET", "/v1/destinations/web", NULL);
    check(reply.status == 200, "%d %s", reply.status, reply.body);
    reply_release(&reply);
    snprintf(body, 200, "{\"destination\":\"yard\",\"id\":\"j\",\"tenant\":\"acme\",\"payload\":\"x\"}");
    reply = http_ask(pair[1], &(struct request){ .method = "POST", .path = "/v1/jobs", .body = body, .token = "one" });
    check(reply.status == 201, "%d %s", reply.status, reply.body);
    reply_release(&reply);
    reply = ask_as_one("POST", "/v1/leases", "{\"destination\":\"yard\",\"wait_s\":60}");
    check(reply.status == 200 && reply_text(&reply, "leases.0.lease")[0], "%d %s", reply.status, reply.body);
    reply_release(&reply);
    int len = snprintf(body, 200, "{\"destination\":\"yard\",\"worker\":\"");
    memset(body + len, 'w', NACK_BYTES);
    snprintf(body + len + NACK_BYTES, 100, "\"}");
    char head[300];
    len = snprintf(head, sizeof head, "POST /v1/leases/nack HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret-of-nodes-1\r\n"
                   "Insist-Caller: 31 0 x6f6e65 -\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n", strlen(body));
    int fd = raw_connect(pair[1]);
    raw_send(fd, head, (size_t)len);
    raw_send(fd, body, strlen(body));
    expect_answer(fd, "HTTP/1.1 422", "a node may send what is not small"); /* and not 401 */
    free(body);
    nodes_end();
}

static void nodes_with_different_tokens_say_so(void **state)
{
    (void)state;
    nodes_begin("secret-of-nodes-1", "secret-of-nodes-2");
    struct reply reply = ask_as_one("GET", "/v1/destinations/web", NULL);
    check(reply.status == 503 && strstr(reply_text(&reply, "type"), "owner_refuses"), "%d %s", reply.status, reply.body);
    check(strstr(reply_text(&reply, "detail"), "node.token must be the same"), "%s", reply.body);
    reply_release(&reply);
    nodes_end();
}

/* The name by which others reach a node is one of its own. */
static void a_node_answers_to_the_name_in_its_url(void **state)
{
    static const struct { const char *host; int status; } hosts[] = {
        { "a.internal", 200 }, { "A.internal.", 200 }, { "a.internal:1234", 200 }, { "b.internal", 421 }, { "internal", 421 },
    };
    struct api_fixture *fixture = api_fixture_new(&(struct api_fixture_settings){
        .config = DESTINATIONS "node: { url: 'http://a.internal:7878/' }\n" });
    char request[200], wanted[32];
    (void)state;
    for (size_t i = 0; i < COUNT_OF(hosts); i++) {
        int fd = raw_connect(fixture), len = snprintf(request, sizeof request,
            "GET /livez HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", hosts[i].host);
        raw_send(fd, request, (size_t)len);
        snprintf(wanted, sizeof wanted, "HTTP/1.1 %d", hosts[i].status);
        expect_answer(fd, wanted, hosts[i].host);
    }
    api_fixture_free(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_goes_as_it_came_and_comes_as_it_is),
        cmocka_unit_test(what_is_no_answer_is_told),
        cmocka_unit_test(an_order_is_sent_once),
        cmocka_unit_test(a_node_that_nobody_reaches_has_changed_nothing),
        cmocka_unit_test(a_crowd_that_waits_for_a_dead_owner_stops_nobody),
        cmocka_unit_test(workers_that_wait_leave_room_for_an_order),
        cmocka_unit_test(a_worker_that_leaves_is_waited_for_no_more),
        cmocka_unit_test(long_answers_share_the_memory_and_come_whole),
        cmocka_unit_test(a_long_answer_that_stalls_ends_with_its_node),
        cmocka_unit_test(a_black_hole_is_given_up_in_time),
        cmocka_unit_test(a_worker_is_waited_for_as_long_as_it_waits),
        cmocka_unit_test(an_answer_that_drips_holds_up_no_small_one),
        cmocka_unit_test(an_answer_that_drips_is_not_heard_to_the_end),
        cmocka_unit_test(an_endless_answer_is_cut_off),
        cmocka_unit_test(two_that_think_of_each_other_do_not_play_ball),
        cmocka_unit_test(the_owner_knows_for_whom_a_node_asks),
        cmocka_unit_test(nodes_with_different_tokens_say_so),
        cmocka_unit_test(a_node_answers_to_the_name_in_its_url),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
