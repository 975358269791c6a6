/* Whose account it is: tenants with url, headers and login of their own, and access tokens by OAuth 2.0. */
#include "support/check.h"
#include "support/http_rig.h"
#include "support/mail_server.h"
#include "support/receiver.h"

#include "transport/smtp/smtp.h"

#include <stdio.h>

enum { SENDS = 12 };

static struct rig rig;
static struct receiver *api, *issuer; /* where jobs go, where tokens come from */
static struct rig_send sends[SENDS];

static void open_all(void)
{
    rig_open(&rig);
    api = receiver_new(NULL);
    issuer = receiver_new(NULL);
}

static void close_all(void)
{
    rig_close(&rig);
    receiver_free(api);
    receiver_free(issuer);
}

static void configure(const char *more)
{
    rig_configure(&rig,
                  "url: 'http://127.0.0.1:%d/', allow_private: true, timeout: 60s, "
                  "oauth2: { token_url: 'http://127.0.0.1:%d/token', client_id: 'me:1', client_secret: 's ecret'%s }",
                  receiver_port(api), receiver_port(issuer), more);
}

#define TOKEN(word) { .body = "{\"access_token\":\"" word "\",\"token_type\":\"Bearer\",\"expires_in\":3600}" }

static void begin(struct rig_send *send, const char *tenant)
{
    rig_prepare(&rig, send);
    send->job.tenant = slice_from(tenant);
    send->send.destination = config_for_tenant(send->send.destination, send->job.tenant); /* as the daemon does */
    rig_start(&rig, send);
}

static void send_one(const char *tenant)
{
    begin(&sends[0], tenant);
    rig_wait(&rig, &sends[0]);
}

static void last_has(struct receiver *receiver, const char *text)
{
    struct receiver_request request;
    assert_true(receiver_last(receiver, 0, &request));
    struct slice headers = buffer_slice(&request.headers), body = buffer_slice(&request.body), path = buffer_slice(&request.path);
    struct slice wanted = slice_from(text);
    check(slice_search(headers, wanted) < headers.len || slice_search(body, wanted) < body.len || slice_equal(path, wanted),
          "no %s in %.*s %.*s", text, SLICE_ARG(headers), SLICE_ARG(body));
    receiver_request_release(&request);
}

/* ---- Tokens. ---- */

static void test_token_is_fetched_and_kept(void **state)
{
    (void)state;
    static const struct receiver_reply tokens[] = { TOKEN("t-1"), TOKEN("t-2") };
    open_all();
    receiver_script(issuer, tokens, COUNT_OF(tokens));
    configure(", scope: 'a b'");
    for (size_t i = 0; i < SENDS; i++) /* all at once: one fetch */
        begin(&sends[i], "acme");
    for (size_t i = 0; i < SENDS; i++) {
        rig_wait(&rig, &sends[i]);
        check(sends[i].answer.outcome == OUTCOME_DELIVERED, "%s", sends[i].text);
    }
    send_one("acme");
    assert_int_equal(receiver_requests(issuer), 1);
    last_has(api, "Authorization: Bearer t-1\r\n");
    last_has(issuer, "grant_type=client_credentials&scope=a%20b");
    last_has(issuer, "Authorization: Basic bWUlM0ExOnMlMjBlY3JldA==\r\n"); /* me%3A1:s%20ecret */
    configure(", auth: body");
    send_one("acme");
    last_has(api, "Authorization: Bearer t-2\r\n");
    last_has(issuer, "client_id=me%3A1&client_secret=s%20ecret");
    close_all();
}

static void test_token_that_expires(void **state)
{
    (void)state;
    static const struct receiver_reply tokens[] = { { .body = "{\"access_token\":\"short\",\"expires_in\":1}" } };
    open_all();
    receiver_script(issuer, tokens, COUNT_OF(tokens));
    configure("");
    for (int i = 0; i < 3; i++) {
        send_one("acme");
        check(sends[0].answer.outcome == OUTCOME_DELIVERED, "%s", sends[0].text);
        rig_run(&rig, 1100);
    }
    assert_int_equal(receiver_requests(issuer), 3);
    close_all();
}

/* Refused before its time: fetched anew once, and the job is sent again. Refused again: that is the answer. */
static void check_refused_token(const char *more)
{
    static const struct receiver_reply tokens[] = { TOKEN("old"), TOKEN("new"), TOKEN("newer"), TOKEN("newest") };
    static const struct receiver_reply once[] = { { .status = 200 }, { .status = 401, .body = "expired" }, { .status = 200 } };
    static const struct receiver_reply always[] = { { .status = 401, .body = "no" } };
    open_all();
    receiver_script(issuer, tokens, COUNT_OF(tokens));
    receiver_script(api, once, COUNT_OF(once));
    configure(more);
    send_one("acme");
    send_one("acme");
    assert_int_equal(sends[0].answer.outcome, OUTCOME_DELIVERED);
    assert_int_equal(receiver_requests(api), 3);
    assert_int_equal(receiver_requests(issuer), 2);
    last_has(api, "Authorization: Bearer new\r\n");
    receiver_script(api, always, COUNT_OF(always));
    send_one("acme");
    assert_string_equal(sends[0].code, "http:401");
    assert_int_equal(receiver_requests(api), 5);
    assert_int_equal(receiver_requests(issuer), 3);
    close_all();
}

static void test_token_that_is_refused(void **state)
{
    (void)state;
    check_refused_token("");
    check_refused_token(" }, method: PUT, headers: { X-A: b"); /* with a handle that is prepared for each send */
}

/* Who gives no token is what the destination is: away, throttled, or not to be had by us. Nothing is sent without. */
static void test_no_token(void **state)
{
    (void)state;
    static const struct {
        struct receiver_reply reply;
        const char *code;
        enum outcome outcome;
    } cases[] = {
        { { .status = 401, .body = "{\"error\":\"invalid_client\"}" }, "oauth2:invalid_client", OUTCOME_BLOCKED },
        { { .status = 400, .body = "nonsense" }, "oauth2:refused", OUTCOME_BLOCKED },
        { { .body = "{\"access_token\":\"a\\r\\nX: y\"}" }, "oauth2:no_token", OUTCOME_BLOCKED },
        { { .body = "{}" }, "oauth2:no_token", OUTCOME_BLOCKED },
        { { .status = 503 }, "http:503", OUTCOME_NONE },
        { { .status = 429 }, "http:429", OUTCOME_NONE },
        { { .fate = FATE_CLOSE }, "curl:52", OUTCOME_NONE },
    };
    open_all();
    configure("");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        receiver_script(issuer, &cases[i].reply, 1);
        begin(&sends[0], "acme");
        begin(&sends[1], "acme");
        for (size_t k = 0; k < 2; k++) {
            rig_wait(&rig, &sends[k]);
            check(strcmp(sends[k].code, cases[i].code) == 0, "%zu: %s %s", i, sends[k].code, sends[k].text);
            check(strstr(sends[k].text, "no access token") != NULL, "%s", sends[k].text);
            check(sends[k].answer.outcome == cases[i].outcome, "%zu: %d", i, (int)sends[k].answer.outcome);
        }
    }
    assert_int_equal(receiver_requests(api), 0);
    assert_int_equal(receiver_requests(issuer), COUNT_OF(cases));
    rig_configure(&rig, "url: 'http://127.0.0.1:%d/', oauth2: { token_url: 'http://127.0.0.1:%d/', client_id: a, client_secret: b }",
                  receiver_port(api), receiver_port(issuer));
    send_one("acme");
    assert_string_equal(sends[0].code, "insist:private_address");
    close_all();
}

/* One whose tokens do not come holds nobody else up; those that wait are given up in time, or when they are aborted. */
static void test_others_do_not_wait(void **state)
{
    (void)state;
    static const struct receiver_reply hangs[] = { { .fate = FATE_HANG } };
    open_all();
    receiver_script(issuer, hangs, 1);
    rig_configure(&rig,
                  "url: 'http://127.0.0.1:%d/', allow_private: true, timeout: 400ms, oauth2: { token_url: 'http://127.0.0.1:%d/', "
                  "client_id: a, client_secret: b } }, other: { url: 'http://127.0.0.1:%d/', allow_private: true",
                  receiver_port(api), receiver_port(issuer), receiver_port(api));
    begin(&sends[0], "acme");
    begin(&sends[1], "acme");
    rig_prepare(&rig, &sends[2]);
    sends[2].send.destination = config_destination(rig.config, SLICE("other"));
    rig_start(&rig, &sends[2]);
    rig_wait(&rig, &sends[2]);
    assert_int_equal(sends[2].answer.outcome, OUTCOME_DELIVERED);
    if (sends[1].times == 0) {
        rig.transport->ops->abort(rig.transport, &sends[1].send);
        assert_false(sends[1].answer.attempted);
    }
    rig_wait(&rig, &sends[0]);
    assert_string_equal(sends[0].code, "curl:28");
    begin(&sends[3], "acme");
    rig.transport->ops->forget(rig.transport); /* a reload in between */
    rig_wait(&rig, &sends[3]);
    close_all();
}

/* ---- Tenants. ---- */

static void test_tenants(void **state)
{
    (void)state;
    static const struct receiver_reply tokens[] = { TOKEN("of-c") };
    struct receiver *own = receiver_new(NULL);
    open_all();
    receiver_script(issuer, tokens, 1);
    const struct destination_config *destination = rig_configure(
        &rig,
        "url: 'http://127.0.0.1:%d/all', allow_private: true, headers: { X-Plan: all, X-Same: same }, username: u, password: all, "
        "tenants: { b: { password: of-b, headers: { x-plan: b } }, a: { url: 'http://127.0.0.1:%d/a', headers: { X-Own: '1' } }, "
        "c: { oauth2: { token_url: 'http://127.0.0.1:%d/', client_id: c, client_secret: c }, password: '' } }",
        receiver_port(api), receiver_port(own), receiver_port(issuer));
    assert_int_equal(destination->tenant_count, 3);
    assert_int_equal(destination->blocked, BLOCKED_TENANT);
    assert_ptr_equal(config_for_tenant(destination, SLICE("nobody")), destination);
    send_one("nobody");
    last_has(api, "X-Plan: all\r\n");
    last_has(api, "/all");
    last_has(api, "Authorization: Basic dTphbGw=\r\n");
    send_one("b");
    last_has(api, "x-plan: b\r\n");
    last_has(api, "X-Same: same\r\n");
    last_has(api, "Authorization: Basic dTpvZi1i\r\n");
    send_one("a");
    last_has(own, "/a");
    last_has(own, "X-Own: 1\r\n");
    last_has(own, "X-Plan: all\r\n");
    send_one("c");
    last_has(api, "Authorization: Bearer of-c\r\n");
    send_one("nobody");
    last_has(api, "Authorization: Basic dTphbGw=\r\n");
    receiver_free(own);
    close_all();
}

/* ---- Mail. ---- */

static bool said(struct mail_server *server, const char *text)
{
    struct buffer commands;
    mail_server_commands(server, &commands);
    bool found = slice_search(buffer_slice(&commands), slice_from(text)) < commands.len;
    buffer_release(&commands);
    return found;
}

/* XOAUTH2: the token is the login. One that is refused is fetched anew, once. */
static void test_mail(void **state)
{
    (void)state;
    static const struct receiver_reply tokens[] = { TOKEN("t-1"), TOKEN("t-2"), TOKEN("t-3"), TOKEN("t-4") };
    static const struct mail_rule offers[] = { { "EHLO", "250-mail.test\r\n250 AUTH XOAUTH2\r\n", MAIL_ANSWER, 0 } };
    static const struct mail_rule refuses_once[] = { { "EHLO", "250-mail.test\r\n250 AUTH XOAUTH2\r\n", MAIL_ANSWER, 0 },
                                                     { "AUTH", "535 5.7.8 expired\r\n", MAIL_ANSWER, 1 },
                                                     { "MAIL", "421 4.3.2 closing\r\n", MAIL_CLOSE, 2 } };
    static const struct mail_rule refuses[] = { { "EHLO", "250-mail.test\r\n250 AUTH XOAUTH2\r\n", MAIL_ANSWER, 0 },
                                                { "AUTH", "535 5.7.8 no\r\n", MAIL_ANSWER, 0 } };
    static const struct { const struct mail_rule *rules; size_t count; const char *code, *login; size_t fetched; } cases[] = {
        { offers, COUNT_OF(offers), "smtp:250", "dXNlcj1tZUB4AWF1dGg9QmVhcmVyIHQtMQEB", 1 }, /* user=me@x, auth=Bearer t-1 */
        { refuses_once, COUNT_OF(refuses_once), "smtp:250", "dXNlcj1tZUB4AWF1dGg9QmVhcmVyIHQtMwEB", 3 },
        { refuses, COUNT_OF(refuses), "smtp:535", "AUTH XOAUTH2", 5 },
    };
    struct mail_server *server = mail_server_new(NULL);
    struct error err;
    issuer = receiver_new(NULL);
    receiver_script(issuer, tokens, COUNT_OF(tokens));
    rig = (struct rig){ .loop = event_base_new() };
    assert_int_equal(smtp_transport_new(rig.loop, 8, &rig.transport, &err), STATUS_OK);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        mail_server_script(server, cases[i].rules, cases[i].count);
        const char *text = "preset: email, url: 'smtp://127.0.0.1:%d', allow_private: true, username: 'me@x', oauth2: { token_url: "
                           "'http://127.0.0.1:%d/', client_id: c, client_secret: s }";
        if (i == 0)
            rig_configure(&rig, text, mail_server_port(server), receiver_port(issuer));
        rig_prepare(&rig, &sends[0]);
        sends[0].job.payload = SLICE("{\"from\":\"a@x\",\"to\":\"b@y\",\"text\":\"hi\"}");
        rig_start(&rig, &sends[0]);
        rig_wait(&rig, &sends[0]);
        check(strcmp(sends[0].code, cases[i].code) == 0, "%zu: %s", i, sends[0].text);
        check(said(server, cases[i].login), "%zu: login", i);
        assert_int_equal(receiver_requests(issuer), cases[i].fetched);
        mail_server_free(server); /* the next has a connection of its own to make */
        server = mail_server_new(NULL);
        if (i + 1 < COUNT_OF(cases))
            rig_configure(&rig, text, mail_server_port(server), receiver_port(issuer));
    }
    mail_server_free(server);
    rig_close(&rig);
    receiver_free(issuer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_token_is_fetched_and_kept), cmocka_unit_test(test_token_that_expires),
        cmocka_unit_test(test_token_that_is_refused),     cmocka_unit_test(test_no_token),
        cmocka_unit_test(test_others_do_not_wait),        cmocka_unit_test(test_tenants),
        cmocka_unit_test(test_mail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
