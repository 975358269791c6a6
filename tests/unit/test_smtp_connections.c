/* How many connections e-mail opens, over real sockets, as the servers count them; and those through a proxy. */
#include "support/check.h"
#include "support/http_rig.h"
#include "support/mail_server.h"
#include "support/receiver.h"

#include "transport/smtp/smtp.h"

#include <signal.h>
#include <stdio.h>

#define MESSAGE "{\"from\":\"ops@example.org\",\"to\":\"bob@example.net\",\"text\":\"hi\"}"

static struct rig rig;
static struct mail_server *server;

static void open_rig(long connections_max)
{
    struct error err;
    signal(SIGPIPE, SIG_IGN);
    rig = (struct rig){ .loop = event_base_new() };
    assert_int_equal(smtp_transport_new(rig.loop, connections_max, &rig.transport, &err), STATUS_OK);
    server = mail_server_new(NULL);
}

static void close_rig(void)
{
    rig_close(&rig);
    mail_server_free(server);
}

static void configure(const char *more)
{
    rig_configure(&rig, "preset: email, url: 'smtp://127.0.0.1:%d', allow_private: true%s", mail_server_port(server), more);
}

static void prepare(struct rig_send *send)
{
    rig_prepare(&rig, send);
    send->job.payload = slice_from(MESSAGE);
    rig_start(&rig, send);
}

/* However sends come and fail: a server sees no more connections than are under way to it at once, those at rest counted. */
static void test_no_more_connections_than_sends(void **state)
{
    (void)state;
    enum { AT_ONCE = 5, SENDS = 120 };
    static struct rig_send sends[AT_ONCE];
    static const struct mail_rule rules[] = {
        { "RCPT", "421 4.3.2 closing\r\n", MAIL_CLOSE, 7 }, { "CONTENT", NULL, MAIL_RESET, 11 },
        { "MAIL", "451 4.0.0 later\r\n", MAIL_ANSWER, 23 }, { "EHLO", NULL, MAIL_CLOSE, 8 },
        { "DATA", NULL, MAIL_CLOSE, 31 },                    { "GREETING", "554 no\r\n", MAIL_CLOSE, 6 },
    };
    open_rig(64);
    mail_server_script(server, rules, COUNT_OF(rules));
    configure("");
    for (size_t begun = 0; begun < SENDS;) {
        size_t together = 1 + begun % AT_ONCE; /* now few, now many */
        for (size_t i = 0; i < together; i++, begun++)
            prepare(&sends[i]);
        for (size_t i = 0; i < together; i++) {
            rig_wait(&rig, &sends[i]);
            prepare(&sends[i]); /* the next at once, as the engine does */
        }
        for (size_t i = 0; i < together; i++)
            rig_wait(&rig, &sends[i]);
    }
    check(mail_server_most(server) <= AT_ONCE, "%zu connections at once", mail_server_most(server));
    assert_true(mail_server_connections(server) > AT_ONCE); /* some were lost and opened anew */
    assert_true(mail_server_messages(server) > SENDS);
    close_rig();
}

/* More sends than there may be connections: nothing is spent by those that find none, and those at rest make room. */
static void test_connections_max(void **state)
{
    (void)state;
    enum { MAX = 3, SENDS = 8, OTHERS = 4 };
    static struct rig_send sends[SENDS];
    struct mail_server *others[OTHERS];
    char more[1024];
    size_t refused = 0, open = 0, used = 0;
    open_rig(MAX);
    for (size_t i = 0; i < OTHERS; i++) {
        others[i] = mail_server_new(NULL);
        used += (size_t)snprintf(more + used, sizeof more - used, " }, o%zu: { url: 'smtp://127.0.0.1:%d', allow_private: true",
                                 i, mail_server_port(others[i]));
    }
    configure(more);
    for (size_t i = 0; i < SENDS; i++)
        prepare(&sends[i]);
    for (size_t i = 0; i < SENDS; i++) {
        rig_wait(&rig, &sends[i]);
        refused += !sends[i].answer.attempted;
        check(sends[i].answer.outcome == OUTCOME_DELIVERED || strcmp(sends[i].code, "insist:connections") == 0, "%s",
              sends[i].text);
    }
    assert_int_equal(refused, SENDS - MAX);
    assert_int_equal(mail_server_most(server), MAX);
    for (size_t i = 0; i < OTHERS; i++) { /* the one that has rested for longest goes for each */
        char name[] = { 'o', (char)('0' + i), '\0' };
        rig_prepare(&rig, &sends[i]);
        sends[i].job.payload = slice_from(MESSAGE);
        sends[i].send.destination = config_destination(rig.config, slice_from(name));
        rig_start(&rig, &sends[i]);
        rig_wait(&rig, &sends[i]);
        check(sends[i].answer.outcome == OUTCOME_DELIVERED, "%zu: %s", i, sends[i].text);
        open = mail_server_open(server);
        for (size_t k = 0; k < OTHERS; k++)
            open += mail_server_open(others[k]);
        check(open <= MAX, "%zu connections are open", open);
    }
    assert_int_equal(mail_server_open(server), 0);
    close_rig();
    for (size_t i = 0; i < OTHERS; i++)
        mail_server_free(others[i]);
}

/* What a proxy says before there is a tunnel is no reply of the server's; whom it connects to is the proxy's to judge. */
static void test_proxy(void **state)
{
    (void)state;
    static const struct { const char *name; int status; bool private, delivered; const char *code; } rows[] = {
        { "a tunnel", 0, true, true, "smtp:250" },
        { "a tunnel, nothing private allowed", 0, false, true, "smtp:250" },
        { "refused", 403, true, false, "curl:56" },
        { "refused with what would be the server's refusal", 554, true, false, "curl:56" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct receiver *proxy = receiver_new(&(struct receiver_settings){ .connect_status = rows[i].status });
        struct rig_send send;
        open_rig(4);
        rig_configure(&rig,
                      "preset: email, url: 'smtp://127.0.0.1:%d', allow_private: %s, proxy: 'http://127.0.0.1:%d', "
                      "smtp: { helo: me.test, starttls: none }",
                      mail_server_port(server), rows[i].private ? "true" : "false", receiver_port(proxy));
        prepare(&send);
        rig_wait(&rig, &send);
        check(send.answer.outcome == (rows[i].delivered ? OUTCOME_DELIVERED : OUTCOME_NONE) && strcmp(send.code, rows[i].code) == 0,
              "%s: %s %s %s", rows[i].name, outcome_name(send.answer.outcome), send.code, send.text);
        check(receiver_requests(proxy) == 1, "%s: %zu tunnels", rows[i].name, receiver_requests(proxy));
        check(mail_server_messages(server) == rows[i].delivered, "%s: %zu messages", rows[i].name, mail_server_messages(server));
        close_rig();
        receiver_free(proxy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_more_connections_than_sends),
        cmocka_unit_test(test_connections_max),
        cmocka_unit_test(test_proxy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
