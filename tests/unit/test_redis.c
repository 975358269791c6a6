/* Streams of Redis: what answers mean, what a lost connection means, and that order is kept. The server is a stand-in. */
#include "support/certificates.h"
#include "support/check.h"
#include "support/http_rig.h"
#include "support/line_server.h"

#include "transport/broker/redis.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { SENDS = 60, ARGUMENTS = 40, ORDER_BYTES = 4096 };

/* Answers as the payload says. */
struct server {
    struct line_server lines; /* first */
    size_t added, logins;
    char order[ORDER_BYTES]; /* ids as they came */
    char last[ORDER_BYTES];  /* arguments of the last XADD */
    char database[16];
};

static struct rig rig;
static struct server server;
static struct rig_send sends[SENDS];

/* ---- The server. ---- */

/* The next of an array of texts; false: the connection has ended. */
static bool piece(struct line *line, char mark, long *ret_number)
{
    for (;;) {
        struct slice in = buffer_slice(&line->in);
        size_t end = slice_search(in, SLICE("\r\n"));
        if (end < in.len) {
            check(in.data[0] == mark, "%c in place of %c", in.data[0], mark);
            *ret_number = atol(in.data + 1);
            line_consume(line, end + 2);
            return true;
        }
        if (!line_read(line))
            return false;
    }
}

static bool command_read(struct line *line, struct buffer arguments[ARGUMENTS], long *ret_count)
{
    long len;
    if (!piece(line, '*', ret_count))
        return false;
    assert_in_range(*ret_count, 1, ARGUMENTS);
    for (long i = 0; i < *ret_count; i++) {
        if (!piece(line, '$', &len))
            return false;
        while (line->in.len < (size_t)len + 2)
            if (!line_read(line))
                return false;
        buffer_clear(&arguments[i]);
        buffer_append(&arguments[i], (struct slice){ line->in.data, (size_t)len });
        buffer_append_byte(&arguments[i], '\0');
        line_consume(line, (size_t)len + 2);
    }
    return true;
}

/* How many there are with it. */
static size_t note_added(struct server *own, const struct buffer *arguments, long count)
{
    size_t used = 0;
    pthread_mutex_lock(&own->lines.lock);
    size_t number = ++own->added;
    own->last[0] = '\0';
    for (long i = 1; i < count && used < sizeof own->last; i++) {
        used += (size_t)snprintf(own->last + used, sizeof own->last - used, "%s ", arguments[i].data);
        if (strcmp(arguments[i].data, "id") == 0)
            snprintf(own->order + strlen(own->order), sizeof own->order - strlen(own->order), "%s ", arguments[i + 1].data);
    }
    pthread_mutex_unlock(&own->lines.lock);
    return number;
}

/* False: it ends the connection. */
static bool added_answer(struct line *line, const char *wish, size_t number)
{
    char text[128];
    snprintf(text, sizeof text, "$%d\r\n%zu-0\r\n", number < 10 ? 3 : 4, number);
    if (strncmp(wish, "close", 5) == 0)
        return false;
    if (strncmp(wish, "reset", 5) == 0) {
        line_reset_on_close(line);
        return false;
    }
    if (strncmp(wish, "hang", 4) == 0)
        return true;
    if (wish[0] == '-')
        snprintf(text, sizeof text, "%s\r\n", wish);
    if (strncmp(wish, "garbage", 7) == 0)
        snprintf(text, sizeof text, "HTTP/1.1 400 no\r\n");
    if (strncmp(wish, "nil", 3) == 0)
        snprintf(text, sizeof text, "$-1\r\n");
    if (strncmp(wish, "half", 4) == 0)
        text[4] = '\0';
    if (strncmp(wish, "slow", 4) == 0) {
        for (size_t i = 0; text[i]; i++) {
            line_write(line, (struct slice){ text + i, 1 });
            sleep_ms(1);
        }
        return true;
    }
    line_write(line, slice_from(text));
    if (strncmp(wish, "twice", 5) == 0)
        line_write(line, slice_from(text));
    return strncmp(wish, "half", 4) != 0;
}

static void serve(struct line *line)
{
    struct server *own = (struct server *)line->server;
    struct buffer arguments[ARGUMENTS];
    long count = 0;
    bool goes_on = !own->lines.settings.cert || line_begin_tls(line);
    for (size_t i = 0; i < ARGUMENTS; i++)
        buffer_init(&arguments[i], 4 << 20);
    while (goes_on && command_read(line, arguments, &count)) {
        if (strcmp(arguments[0].data, "AUTH") == 0) {
            bool right = strcmp(arguments[count - 1].data, "right@:/") == 0;
            pthread_mutex_lock(&own->lines.lock);
            own->logins += right;
            pthread_mutex_unlock(&own->lines.lock);
            goes_on = line_write(line, right ? SLICE("+OK\r\n") : SLICE("-WRONGPASS invalid username-password pair\r\n"));
        } else if (strcmp(arguments[0].data, "SELECT") == 0) {
            bool there = strcmp(arguments[1].data, "99") != 0;
            pthread_mutex_lock(&own->lines.lock);
            snprintf(own->database, sizeof own->database, "%s", arguments[1].data);
            pthread_mutex_unlock(&own->lines.lock);
            goes_on = line_write(line, there ? SLICE("+OK\r\n") : SLICE("-ERR DB index is out of range\r\n"));
        } else {
            assert_string_equal(arguments[0].data, "XADD");
            size_t number = note_added(own, arguments, count);
            goes_on = added_answer(line, arguments[count - 1].data, number);
        }
    }
    for (size_t i = 0; i < ARGUMENTS; i++)
        buffer_release(&arguments[i]);
}

/* ---- The rig. ---- */

static void open_rig(const struct line_settings *settings)
{
    struct error err;
    struct line_settings own = settings ? *settings : (struct line_settings){ .serve = serve };
    signal(SIGPIPE, SIG_IGN);
    server = (struct server){ .added = 0 };
    line_server_open(&server.lines, &own);
    rig = (struct rig){ .loop = event_base_new() };
    assert_int_equal(redis_transport_new(rig.loop, 3, &rig.transport, &err), STATUS_OK);
}

static void close_rig(void)
{
    rig_close(&rig);
    line_server_close(&server.lines);
}

static void configure(const char *login, const char *path, const char *more)
{
    rig_configure(&rig, "url: 'redis://%s127.0.0.1:%d%s', allow_private: true, redis: { stream: 's:in' }%s", login,
                  server.lines.port, path, more);
}

static void send_one(const char *payload)
{
    rig_begin(&rig, &sends[0], "j-1", payload);
    rig_wait(&rig, &sends[0]);
}

/* ---- What answers mean. ---- */

static void test_answers(void **state)
{
    (void)state;
    static const struct {
        const char *payload, *code, *text;
        enum outcome outcome;
    } cases[] = {
        { "ok", "redis:OK", "", OUTCOME_DELIVERED },
        { "slow", "redis:OK", "", OUTCOME_DELIVERED },
        { "-LOADING Redis is loading", "redis:LOADING", "Redis: LOADING Redis is loading", OUTCOME_NONE },
        { "-OOM command not allowed", "redis:OOM", "OOM", OUTCOME_NONE },
        { "-READONLY You can't write", "redis:READONLY", "READONLY", OUTCOME_NONE },
        { "-NOAUTH Authentication required.", "redis:NOAUTH", "NOAUTH", OUTCOME_NONE },
        { "-MOVED 3999 127.0.0.1:6381", "redis:MOVED", "MOVED 3999", OUTCOME_NONE },
        { "-max number of clients", "redis:ERR", "max number", OUTCOME_NONE },
        { "close", "curl:52", "the server closed", OUTCOME_IN_DOUBT },
        { "reset", "curl:56", "", OUTCOME_IN_DOUBT },
        { "half", "curl:52", "", OUTCOME_IN_DOUBT },
        { "garbage", "redis:ERR", "not its protocol", OUTCOME_IN_DOUBT },
        { "nil", "redis:ERR", "no id", OUTCOME_IN_DOUBT },
        { "hang", "curl:28", "TIMEOUT - no answer in time (the job was sent)", OUTCOME_IN_DOUBT },
        { "ok", "redis:OK", "", OUTCOME_DELIVERED }, /* and after all that */
    };
    open_rig(NULL);
    for (size_t i = 0; i < COUNT_OF(cases); i++) { /* a busy machine is not hurried where it is to answer */
        configure("", "", strcmp(cases[i].code, "curl:28") == 0 ? ", timeout: 5s" : ", timeout: 60s");
        send_one(cases[i].payload);
        check(strcmp(sends[0].code, cases[i].code) == 0, "%s: %s %s", cases[i].payload, sends[0].code, sends[0].text);
        check(strstr(sends[0].text, cases[i].text) != NULL, "%s: %s", cases[i].payload, sends[0].text);
        check(sends[0].answer.outcome == cases[i].outcome && sends[0].answer.attempted, "%s: %d", cases[i].payload,
              (int)sends[0].answer.outcome);
        if (cases[i].outcome == OUTCOME_DELIVERED)
            check(strstr(sends[0].reference, "-0") != NULL, "reference %s", sends[0].reference);
    }
    close_rig();
}

static void test_what_is_added(void **state)
{
    (void)state;
    open_rig(NULL);
    configure("", "", "");
    rig_begin(&rig, &sends[0], "a b", "ok");
    rig_wait(&rig, &sends[0]);
    assert_string_equal(server.last, "s:in * id a b tenant acme destination d idempotency_key acme/a b attempt 1 content_type "
                                     "application/json payload ok ");
    rig_configure(&rig, "url: 'redis://127.0.0.1:%d/', allow_private: true, redis: { stream: s, maxlen: 1000 }", server.lines.port);
    send_one("ok");
    check(strncmp(server.last, "s MAXLEN ~ 1000 * id ", 21) == 0, "%s", server.last);
    close_rig();
}

static void test_login(void **state)
{
    (void)state;
    open_rig(NULL);
    configure("worker:right%40%3A%2F@", "/7", "");
    send_one("ok");
    assert_int_equal(sends[0].answer.outcome, OUTCOME_DELIVERED);
    assert_int_equal(server.logins, 1);
    assert_string_equal(server.database, "7");
    configure("", "", ", username: worker, password: 'right@:/'");
    send_one("ok");
    assert_int_equal(server.logins, 2);
    /* Nothing is added before the login, and the database, are known to be good. */
    size_t before = server.added;
    configure(":wrong@", "", "");
    for (size_t i = 0; i < 3; i++)
        rig_begin(&rig, &sends[i], "j", "ok");
    for (size_t i = 0; i < 3; i++) {
        rig_wait(&rig, &sends[i]);
        assert_string_equal(sends[i].code, "redis:WRONGPASS");
        assert_int_equal(sends[i].answer.outcome, OUTCOME_NONE);
    }
    configure("", "/99", "");
    send_one("ok");
    assert_string_equal(sends[0].code, "redis:ERR");
    assert_int_equal(server.added, before);
    close_rig();
}

/* ---- Connections. ---- */

static void test_no_connection(void **state)
{
    (void)state;
    open_rig(NULL);
    rig_configure(&rig, "url: 'redis://127.0.0.1:1', allow_private: true, redis: { stream: s }");
    send_one("ok");
    assert_string_equal(sends[0].code, "curl:7");
    assert_int_equal(sends[0].answer.outcome, OUTCOME_NONE);
    rig_configure(&rig, "url: 'redis://127.0.0.1:%d', redis: { stream: s }", server.lines.port);
    send_one("ok");
    assert_string_equal(sends[0].code, "insist:private_address");
    assert_int_equal(server.added, 0);
    close_rig();
    open_rig(&(struct line_settings){ .serve = line_hang });
    configure(":right@", "", ", timeout: 100ms"); /* it greets nobody: nothing was sent */
    send_one("ok");
    assert_string_equal(sends[0].code, "curl:28");
    assert_int_equal(sends[0].answer.outcome, OUTCOME_NONE);
    close_rig();
}

/* Many under way on one connection: in the order of their starts, each with its own answer. */
static void test_order(void **state)
{
    (void)state;
    char expected[ORDER_BYTES] = "", ids[SENDS][16];
    open_rig(NULL);
    configure("", "", "");
    for (size_t i = 0; i < SENDS; i++) {
        snprintf(ids[i], sizeof ids[i], "j-%zu", i);
        snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "%s ", ids[i]);
        rig_begin(&rig, &sends[i], ids[i], i % 7 == 3 ? "-BUSY script" : "ok");
    }
    for (size_t i = 0; i < SENDS; i++) {
        rig_wait(&rig, &sends[i]);
        assert_string_equal(sends[i].code, i % 7 == 3 ? "redis:BUSY" : "redis:OK");
    }
    assert_string_equal(server.order, expected);
    assert_int_equal(line_server_count(&server.lines, &server.lines.begun), 1);
    close_rig();
}

/* An answer that is late, or missing, costs nobody else his: those behind it are answered, later ones go another way. */
static void test_a_late_one(void **state)
{
    (void)state;
    open_rig(NULL);
    configure("", "", ", timeout: 2s"); /* in which the others are answered on a busy machine, too */
    rig_begin(&rig, &sends[0], "j-0", "hang");
    rig_wait(&rig, &sends[0]);
    assert_int_equal(sends[0].answer.outcome, OUTCOME_IN_DOUBT);
    send_one("ok");
    assert_int_equal(sends[0].answer.outcome, OUTCOME_DELIVERED);
    assert_int_equal(line_server_count(&server.lines, &server.lines.begun), 2);
    /* the one that hung is closed once it has no work */
    for (int i = 0; i < 1000 && line_server_open_count(&server.lines) > 1; i++)
        rig_run(&rig, 10);
    assert_int_equal(line_server_open_count(&server.lines), 1);
    /* an answer that nobody asked for: nobody knows what the next one answers */
    send_one("twice");
    assert_int_equal(sends[0].answer.outcome, OUTCOME_DELIVERED);
    rig_run(&rig, 50);
    send_one("ok");
    assert_int_equal(sends[0].answer.outcome, OUTCOME_DELIVERED);
    close_rig();
}

static void test_a_server_that_became_a_replica_is_left(void **state)
{
    (void)state;
    open_rig(NULL);
    configure("", "", "");
    send_one("-READONLY replica");
    send_one("ok");
    assert_int_equal(line_server_count(&server.lines, &server.lines.begun), 2);
    close_rig();
}

static void test_limits_and_ends(void **state)
{
    (void)state;
    size_t before = rig_descriptors();
    open_rig(NULL);
    char more[512];
    snprintf(more, sizeof more,
             " }, a: { url: 'redis://127.0.0.1:%d', allow_private: true, redis: { stream: s } }, b: { url: 'redis://127.0.0.1:%d', "
             "allow_private: true, redis: { stream: s } }, c: { url: 'redis://127.0.0.1:%d', allow_private: true, redis: { stream: s }",
             server.lines.port, server.lines.port, server.lines.port);
    configure("", "", more);
    static const char *const names[] = { "d", "a", "b", "c" };
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        rig_prepare(&rig, &sends[i]);
        sends[i].job.payload = SLICE("hang");
        sends[i].send.destination = config_destination(rig.config, slice_from(names[i]));
        rig_start(&rig, &sends[i]);
    }
    rig_wait(&rig, &sends[3]); /* three connections are all there may be */
    assert_false(sends[3].answer.attempted);
    assert_string_equal(sends[3].code, "insist:connections");
    for (int i = 0; i < 1000 && line_server_count(&server.lines, &server.added) < 3; i++)
        rig_run(&rig, 10);
    for (size_t i = 0; i < 3; i++) {
        rig.transport->ops->abort(rig.transport, &sends[i].send);
        assert_int_equal(sends[i].times, 1);
        assert_int_equal(sends[i].answer.outcome, OUTCOME_IN_DOUBT);
    }
    rig.transport->ops->forget(rig.transport);
    rig_begin(&rig, &sends[4], "j-4", "ok");
    rig.transport->ops->forget(rig.transport); /* what is under way is answered all the same */
    rig_wait(&rig, &sends[4]);
    assert_int_equal(sends[4].answer.outcome, OUTCOME_DELIVERED);
    close_rig();
    check(rig_descriptors() <= before, "%zu descriptors were %zu", rig_descriptors(), before);
}

static void test_tls(void **state)
{
    (void)state;
    struct certificates certificates;
    certificates_make(&certificates);
    open_rig(&(struct line_settings){ .serve = serve, .cert = certificates.server, .key = certificate_key(certificates.server) });
    rig_configure(&rig, "url: 'rediss://localhost:%d', allow_private: true, redis: { stream: s }, tls: { ca: %s }",
                  server.lines.port, certificates.ca);
    send_one("ok");
    check(sends[0].answer.outcome == OUTCOME_DELIVERED, "%s", sends[0].text);
    rig_configure(&rig, "url: 'rediss://localhost:%d', allow_private: true, redis: { stream: s }", server.lines.port);
    send_one("ok"); /* by somebody whom nobody here trusts */
    assert_string_equal(sends[0].code, "curl:60");
    assert_int_equal(server.added, 1);
    close_rig();
    certificates_remove(&certificates);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_what_is_added),
        cmocka_unit_test(test_login),
        cmocka_unit_test(test_no_connection),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_a_late_one),
        cmocka_unit_test(test_a_server_that_became_a_replica_is_left),
        cmocka_unit_test(test_limits_and_ends),
        cmocka_unit_test(test_tls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
