/* Who is let in, who makes room, who is cut off: on real sockets, with the clock moved by hand. */
#include "support/api_fixture.h"
#include "support/check.h"

#include "base/log.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONFIG(limits) "listen: 127.0.0.1:0\nstore: 'memory:'\nlimits: " limits "\ndestinations: { yard: { transport: pull } }\n"

static const char ask[] = "HEAD /page/page.css HTTP/1.1\r\nHost: localhost\r\n\r\n"; /* which asks nobody else */

static const char *const for_all[] = { "\r\nX-Content-Type-Options: nosniff\r\n", "\r\nCross-Origin-Resource-Policy: same-origin\r\n",
                                       "\r\nCache-Control: no-store\r\n" };

enum { PLACES = 3, WAIT_MS = 60 * 1000 };

static struct api_fixture *fixture_with(const char *config)
{
    const struct api_fixture_settings settings = { .config = config };
    return api_fixture_new(&settings);
}

static void expect(int fd, const char *text, const char *name)
{
    char *answer = raw_read(fd, text);
    check(strstr(answer, text), "%s: no %s in %.300s", name, text, answer);
    free(answer);
}

static int connect_served(const struct api_fixture *fixture)
{
    int fd = raw_connect(fixture);
    raw_send(fd, ask, sizeof ask - 1);
    expect(fd, "\r\n\r\n", "a client");
    return fd;
}

static bool is_closed(int fd, int wait_ms)
{
    char byte;
    struct pollfd waited = { .fd = fd, .events = POLLIN };
    return poll(&waited, 1, wait_ms) == 1 && recv(fd, &byte, 1, MSG_DONTWAIT) <= 0;
}

/* --- who makes room ------------------------------------------------------------------------------------------ */

static void who_was_longest_without_a_request_makes_room(void **state)
{
    struct api_fixture *fixture = fixture_with(CONFIG("{ connections: 3 }"));
    int idle[PLACES];
    (void)state;
    for (size_t i = 0; i < PLACES; i++)
        idle[i] = connect_served(fixture);
    raw_send(idle[0], ask, sizeof ask - 1);
    expect(idle[0], "\r\n\r\n", "the first, again"); /* the second is the oldest now */
    int fourth = connect_served(fixture);
    check(is_closed(idle[1], WAIT_MS), "the second is still there");
    check(!is_closed(idle[0], 0) && !is_closed(idle[2], 0), "another was closed");
    for (size_t i = 0; i < PLACES; i++)
        close(idle[i]);
    close(fourth);
    api_fixture_free(fixture);
}

/* Connections of clients count, and no other descriptor: sends and files have theirs. */
static void connections_are_counted(void **state)
{
    enum { OTHERS = 40 };
    struct api_fixture *fixture = fixture_with(CONFIG("{ connections: 3 }"));
    int others[OTHERS], idle[PLACES];
    (void)state;
    for (size_t i = 0; i < OTHERS; i++)
        assert_true((others[i] = dup(STDERR_FILENO)) >= 0);
    for (size_t i = 0; i < PLACES; i++)
        idle[i] = connect_served(fixture);
    for (size_t i = 0; i < PLACES; i++)
        check(!is_closed(idle[i], 50), "with other descriptors %zu had no place", i);
    for (size_t i = 0; i < OTHERS; i++)
        close(others[i]);
    int fourth = connect_served(fixture); /* its number is low now */
    check(is_closed(idle[0], WAIT_MS), "a fourth was let in");
    check(!is_closed(idle[1], 0) && !is_closed(idle[2], 0), "more than one made room");
    for (size_t i = 0; i < PLACES; i++)
        close(idle[i]);
    close(fourth);
    api_fixture_free(fixture);
}

/* Each sends a byte now and then; everybody else is served, and more of them lock nobody out. */
static void slow_heads_make_room(void **state)
{
    enum { SLOW = 40 };
    struct api_fixture *fixture = fixture_with(CONFIG("{ connections: 3 }"));
    int slow[SLOW];
    (void)state;
    for (size_t i = 0; i < SLOW; i++) {
        slow[i] = raw_connect(fixture);
        raw_send(slow[i], "GET /l", 6);
        if (i % 4 == 3)
            close(connect_served(fixture));
        for (size_t k = 0; k <= i; k += 3)
            raw_send(slow[k], "i", 1);
    }
    check(is_closed(slow[0], WAIT_MS), "the first slow one has a place still");
    for (size_t i = 0; i < SLOW; i++)
        close(slow[i]);
    api_fixture_free(fixture);
}

static void a_request_under_way_is_not_cut_off(void **state)
{
    struct api_fixture *fixture = fixture_with(CONFIG("{ connections: 3 }"));
    static const char wait[] = "POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nContent-Length: 34\r\n\r\n"
                              "{\"destination\":\"yard\",\"wait_s\":60}";
    int waiting[PLACES];
    (void)state;
    for (size_t i = 0; i < PLACES; i++)
        waiting[i] = -1;
    bool refused = false;
    for (int i = 0; i < 600 && !refused; i++) { /* until all three are known to wait: before, one may have made room */
        for (size_t k = 0; k < PLACES; k++) {
            if (waiting[k] >= 0 && !is_closed(waiting[k], 0))
                continue;
            if (waiting[k] >= 0)
                close(waiting[k]);
            waiting[k] = raw_connect(fixture);
            raw_send(waiting[k], wait, sizeof wait - 1);
        }
        poll(NULL, 0, 20);
        int fd = raw_connect(fixture);
        raw_send(fd, ask, sizeof ask - 1);
        char *answer = raw_read(fd, "\r\n\r\n");
        refused = strstr(answer, "HTTP/1.1 503") != NULL;
        for (size_t k = 0; k < COUNT_OF(for_all) && refused; k++)
            check(strstr(answer, for_all[k]), "who is turned away: no %s in %s", for_all[k], answer);
        free(answer);
        close(fd);
    }
    assert_true(refused);
    for (size_t i = 0; i < PLACES; i++) {
        check(!is_closed(waiting[i], 0), "worker %zu was cut off", i);
        close(waiting[i]);
    }
    api_fixture_free(fixture);
}

/* --- deadlines ----------------------------------------------------------------------------------------------- */

/* Bytes that come one by one renew nothing. */
static const struct {
    const char *name, *first, *then;
    int64_t soon_ms, late_ms;
    const char *answer; /* NULL: it is closed without one */
} slow_ones[] = {
    { "idle", "", NULL, 50 * 1000, 15 * 1000, NULL },
    { "a head", "GET /livez HT", "T", 6 * 1000, 6 * 1000, "HTTP/1.1 408 " },
    { "a body", "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n{", " ", 20 * 1000, 12 * 1000,
      "HTTP/1.1 408 " },
    { "chunks", "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n", "x", 20 * 1000, 12 * 1000,
      "HTTP/1.1 408 " },
};

enum { SLOW_ONES = COUNT_OF(slow_ones) };

/* All at once, each at a server of its own: that nothing happens takes a while to see. */
static void who_is_slow_is_cut_off(void **state)
{
    struct api_fixture *fixtures[SLOW_ONES];
    int slow[SLOW_ONES];
    (void)state;
    for (size_t i = 0; i < SLOW_ONES; i++) {
        fixtures[i] = fixture_with(CONFIG("{ connections: 3 }"));
        slow[i] = raw_connect(fixtures[i]);
        raw_send(slow[i], slow_ones[i].first, strlen(slow_ones[i].first));
        close(connect_served(fixtures[i])); /* the server has read what was sent before */
        api_fixture_skip(fixtures[i], slow_ones[i].soon_ms);
    }
    poll(NULL, 0, 1200);
    for (size_t i = 0; i < SLOW_ONES; i++) {
        check(!is_closed(slow[i], 0), "%s: too soon", slow_ones[i].name);
        if (slow_ones[i].then)
            raw_send(slow[i], slow_ones[i].then, 1);
        close(connect_served(fixtures[i]));
        api_fixture_skip(fixtures[i], slow_ones[i].late_ms);
    }
    for (size_t i = 0; i < SLOW_ONES; i++) {
        if (slow_ones[i].answer)
            expect(slow[i], slow_ones[i].answer, slow_ones[i].name);
        check(is_closed(slow[i], WAIT_MS) || slow_ones[i].answer, "%s: it is there still", slow_ones[i].name);
        close(slow[i]);
        api_fixture_free(fixtures[i]);
    }
}

/* --- memory -------------------------------------------------------------------------------------------------- */

enum { PAYLOAD_BYTES = 1 << 20, JOBS = 8, READERS = 4 };

static void put_large_jobs(const struct api_fixture *fixture)
{
    struct buffer body;
    buffer_init(&body, 2 * PAYLOAD_BYTES);
    for (int i = 0; i < JOBS; i++) {
        buffer_clear(&body);
        buffer_printf(&body, "{\"destination\":\"yard\",\"id\":\"j%d\",\"payload\":\"%0*d\"}", i, PAYLOAD_BYTES - 100, i);
        struct reply reply = http_do(fixture, "POST", "/v1/jobs", body.data);
        check(reply.status == 201, "%s", reply.body);
        reply_release(&reply);
    }
    buffer_release(&body);
}

static int connect_narrow(const struct api_fixture *fixture)
{
    static const int small = 4096;
    int fd = raw_connect(fixture);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    return fd;
}

static bool has_bytes(int fd, int wait_ms)
{
    struct pollfd waited = { .fd = fd, .events = POLLIN };
    return poll(&waited, 1, wait_ms) == 1;
}

/* Answers of 8 MB with a budget of 4: one is made, the others when it is read or its reader is cut off. */
static void answers_that_nobody_reads_are_not_made(void **state)
{
    static const char list[] = "GET /v1/jobs?payload=true HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    struct api_fixture *fixture = fixture_with(CONFIG("{ body_budget: 4MB }"));
    int readers[READERS];
    (void)state;
    put_large_jobs(fixture);
    for (size_t i = 0; i < READERS; i++) {
        readers[i] = i + 1 < READERS ? connect_narrow(fixture) : raw_connect(fixture);
        raw_send(readers[i], list, sizeof list - 1);
        check(has_bytes(readers[i], i == 0 ? WAIT_MS : 300) == (i == 0), "reader %zu", i);
    }
    close(connect_served(fixture));
    struct reply reply = http_do(fixture, "GET", "/v1/jobs?limit=2", NULL); /* small answers do not wait for large ones */
    check(reply.status == 200, "%d %s", reply.status, reply.body);
    reply_release(&reply);
    for (size_t i = 1; i + 1 < READERS; i++) {
        api_fixture_skip(fixture, 3000); /* others want the memory that the one before has */
        check(has_bytes(readers[i], WAIT_MS), "reader %zu has no turn", i);
    }
    api_fixture_skip(fixture, 3000);
    char *answer = raw_read(readers[READERS - 1], NULL);
    check(strncmp(answer, "HTTP/1.1 200", 12) == 0 && strlen(answer) > (size_t)JOBS * (PAYLOAD_BYTES - 200), "%.300s", answer);
    free(answer);
    for (size_t i = 0; i < READERS; i++)
        close(readers[i]);
    api_fixture_free(fixture);
}

/* A worker who does not read has the memory: others are told so and their jobs go back, as if they had never been taken. */
static void leases_that_nobody_reads_are_not_made(void **state)
{
    static const char lease[] = "POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                                "Content-Length: 30\r\n\r\n{\"destination\":\"yard\",\"max\":6}";
    struct api_fixture *fixture = fixture_with(CONFIG("{ body_budget: 4MB }"));
    (void)state;
    put_large_jobs(fixture);
    int deaf = connect_narrow(fixture);
    raw_send(deaf, lease, sizeof lease - 1);
    check(has_bytes(deaf, WAIT_MS), "the first has no answer");
    struct reply reply = http_do(fixture, "POST", "/v1/leases", "{\"destination\":\"yard\",\"max\":2}");
    check(reply.status == 503 && strstr(reply.body, "\"busy\""), "%d %.300s", reply.status, reply.body);
    reply_release(&reply);
    api_fixture_skip(fixture, 3000); /* somebody wanted the memory: nobody waits for one who stands still */
    reply = http_do(fixture, "POST", "/v1/leases", "{\"destination\":\"yard\",\"max\":2,\"wait_s\":30}");
    for (int i = 0; i < 400 && reply.status == 503; i++) { /* until it is looked who is late, once a second */
        reply_release(&reply);
        usleep(20 * 1000);
        reply = http_do(fixture, "POST", "/v1/leases", "{\"destination\":\"yard\",\"max\":2,\"wait_s\":30}");
    }
    close(deaf);
    check(reply.status == 200 && strstr(reply.body, "\"j7\"") && strstr(reply.body, "\"attempt\":1,"), "%d %.300s", reply.status,
          reply.body);
    reply_release(&reply);
    api_fixture_free(fixture);
}

static void bodies_that_do_not_come_make_room(void **state)
{
    static const char begun[] = "POST /v1/jobs/batch HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2500000\r\n\r\n[";
    static const char polite[] = "POST /v1/jobs/batch HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2500000\r\n"
                                 "Expect: 100-continue\r\n\r\n";
    struct api_fixture *fixture = fixture_with(CONFIG("{ body_budget: 4MB }"));
    (void)state;
    int first = raw_connect(fixture), second = raw_connect(fixture);
    raw_send(first, begun, sizeof begun - 1);
    close(connect_served(fixture));
    raw_send(second, polite, sizeof polite - 1);
    check(!has_bytes(second, 300), "there is no room for both");
    struct reply reply = http_do(fixture, "POST", "/v1/jobs", "{\"destination\":\"yard\",\"payload\":1}");
    check(reply.status == 201, "%d %s", reply.status, reply.body);
    reply_release(&reply);
    api_fixture_skip(fixture, 3000);
    expect(second, "HTTP/1.1 100 Continue", "the second");
    expect(first, "HTTP/1.1 408 ", "the first");
    close(first);
    close(second);
    api_fixture_free(fixture);
}

/* Nothing is read of a body that its call does not take. */
static const struct {
    const char *line;
    long length;
    const char *answer;
} bodies[] = {
    { "POST /v1/decide", 60 << 20, "\"body_too_large\"" },     { "POST /v1/decide", 900000, "100 Continue" },
    { "POST /v1/jobs", 60 << 20, "\"payload_too_large\"" },    { "POST /v1/jobs", 5000000, "100 Continue" },
    { "POST /v1/jobs/batch", 60 << 20, "100 Continue" },       { "POST /v1/jobs/batch", 99999999, "\"body_too_large\"" },
    { "POST /v1/leases", 65537, "\"body_too_large\"" },        { "POST /v1/leases", 65536, "100 Continue" },
    { "POST /v1/destinations/yard/pause", 1 << 20, "413" },    { "PATCH /v1/jobs/x", 70000, "\"body_too_large\"" },
    { "POST /v1/nothing", 70000, "\"body_too_large\"" },       { "PUT /v1/jobs", 70000, "\"body_too_large\"" },
};

static void bodies_have_limits_by_route(void **state)
{
    struct api_fixture *fixture = fixture_with(CONFIG("{ connections: 100 }"));
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bodies); i++) {
        char head[256];
        int len = snprintf(head, sizeof head, "%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %ld\r\nExpect: 100-continue\r\n\r\n",
                           bodies[i].line, bodies[i].length);
        int fd = raw_connect(fixture);
        raw_send(fd, head, (size_t)len);
        expect(fd, bodies[i].answer, bodies[i].line);
        close(fd);
    }
    api_fixture_free(fixture);
}

/* --- descriptors --------------------------------------------------------------------------------------------- */

/* Clients have half of what is not kept back, whatever limits.connections says. */
static void some_descriptors_are_kept_back(void **state)
{
    enum { LIMIT = 160, CLIENTS = 60, PLACES_LEFT = 48 };
    struct rlimit before, few;
    int fds[CLIENTS];
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = LIMIT;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    struct api_fixture *fixture = fixture_with(CONFIG("{ connections: 1024 }"));
    for (size_t i = 0; i < CLIENTS; i++)
        fds[i] = connect_served(fixture);
    size_t open = 0;
    for (size_t i = 0; i < CLIENTS; i++) {
        open += !is_closed(fds[i], i < CLIENTS - PLACES_LEFT ? WAIT_MS : 0);
        close(fds[i]);
    }
    assert_int_equal(open, PLACES_LEFT);
    api_fixture_free(fixture);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* Somebody else has taken all: then idle clients go, one at a time, and the loop does not spin. */
static void idle_clients_make_room_for_descriptors(void **state)
{
    struct api_fixture *fixture = fixture_with(CONFIG("{ connections: 100 }"));
    struct rlimit before, none;
    int idle[PLACES];
    (void)state;
    for (size_t i = 0; i < PLACES; i++)
        idle[i] = connect_served(fixture);
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)api_fixture_port(fixture)),
                              .sin_addr = { htonl(INADDR_LOOPBACK) } };
    int client = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(client >= 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 1;
    log_set_level(LOG_ERROR + 1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int connected = connect(client, (struct sockaddr *)&to, sizeof to);
    bool gone = is_closed(idle[0], WAIT_MS);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(connected, 0);
    assert_true(gone);
    raw_send(client, ask, sizeof ask - 1);
    expect(client, "HTTP/1.1 200", "who waited");
    close(client);
    for (size_t i = 0; i < PLACES; i++)
        close(idle[i]);
    api_fixture_free(fixture);
}

/* --- addresses ----------------------------------------------------------------------------------------------- */

/* An address of this machine that is not loopback; false: it has none. */
static bool find_address(struct sockaddr_in *ret_address)
{
    struct ifaddrs *all;
    bool found = false;
    if (getifaddrs(&all) != 0)
        return false;
    for (const struct ifaddrs *one = all; one && !found; one = one->ifa_next)
        if (one->ifa_addr && one->ifa_addr->sa_family == AF_INET && !(one->ifa_flags & IFF_LOOPBACK)) {
            memcpy(ret_address, one->ifa_addr, sizeof *ret_address);
            found = true;
        }
    freeifaddrs(all);
    return found;
}

static void one_address_has_its_limit(void **state)
{
    static const char config[] = "listen: 0.0.0.0:0\nstore: 'memory:'\nlimits: { connections_per_address: 2 }\n";
    static const char tokens[] = "tokens:\n  - { name: a, scopes: [read], sha256: "
                                 "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b }\n";
    const struct api_fixture_settings settings = { .config = config, .tokens = tokens };
    struct sockaddr_in from;
    int near[PLACES], far[PLACES];
    (void)state;
    if (!find_address(&from))
        skip();
    struct api_fixture *fixture = api_fixture_new(&settings);
    from.sin_port = htons((uint16_t)api_fixture_port(fixture));
    for (size_t i = 0; i < PLACES; i++) { /* loopback has no limit */
        near[i] = connect_served(fixture);
        assert_true((far[i] = socket(AF_INET, SOCK_STREAM, 0)) >= 0);
        assert_int_equal(connect(far[i], (struct sockaddr *)&from, sizeof from), 0);
        raw_send(far[i], ask, sizeof ask - 1);
        expect(far[i], i < 2 ? "HTTP/1.1 200" : "HTTP/1.1 503", "from elsewhere");
    }
    for (size_t i = 0; i < PLACES; i++) {
        close(near[i]);
        close(far[i]);
    }
    api_fixture_free(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_was_longest_without_a_request_makes_room),
        cmocka_unit_test(connections_are_counted),
        cmocka_unit_test(slow_heads_make_room),
        cmocka_unit_test(a_request_under_way_is_not_cut_off),
        cmocka_unit_test(who_is_slow_is_cut_off),
        cmocka_unit_test(answers_that_nobody_reads_are_not_made),
        cmocka_unit_test(leases_that_nobody_reads_are_not_made),
        cmocka_unit_test(bodies_that_do_not_come_make_room),
        cmocka_unit_test(bodies_have_limits_by_route),
        cmocka_unit_test(some_descriptors_are_kept_back),
        cmocka_unit_test(idle_clients_make_room_for_descriptors),
        cmocka_unit_test(one_address_has_its_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
