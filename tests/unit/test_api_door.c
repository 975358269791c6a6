/* Who is let in, who makes room, who is cut off: on real sockets, with the clock moved by hand. */
#include "support/api_fixture.h"
#include "support/check.h"

#include "base/log.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONFIG(limits) "listen: 127.0.0.1:0\nstore: 'memory:'\nlimits: " limits "\ndestinations: { yard: { transport: pull } }\n"

static const char ask[] = "HEAD /page.css HTTP/1.1\r\nHost: localhost\r\n\r\n"; /* which asks nobody else */

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

static void who_is_slow_is_cut_off(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(slow_ones); i++) {
        struct api_fixture *fixture = fixture_with(CONFIG("{ connections: 3 }"));
        int fd = raw_connect(fixture);
        raw_send(fd, slow_ones[i].first, strlen(slow_ones[i].first));
        int other = connect_served(fixture); /* the server has read what was sent before */
        api_fixture_skip(fixture, slow_ones[i].soon_ms);
        check(!is_closed(fd, 1200), "%s: too soon", slow_ones[i].name);
        if (slow_ones[i].then)
            raw_send(fd, slow_ones[i].then, 1);
        close(other);
        close(connect_served(fixture));
        api_fixture_skip(fixture, slow_ones[i].late_ms);
        if (slow_ones[i].answer)
            expect(fd, slow_ones[i].answer, slow_ones[i].name);
        check(is_closed(fd, WAIT_MS) || slow_ones[i].answer, "%s: it is there still", slow_ones[i].name);
        close(fd);
        api_fixture_free(fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_was_longest_without_a_request_makes_room),
        cmocka_unit_test(slow_heads_make_room),
        cmocka_unit_test(a_request_under_way_is_not_cut_off),
        cmocka_unit_test(who_is_slow_is_cut_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
