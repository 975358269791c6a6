/* E-mail over real sockets: what goes out, what each reply at each command becomes, and what is certain when none comes. */
#include "support/certificates.h"
#include "support/check.h"
#include "support/http_rig.h"
#include "support/mail_server.h"

#include "transport/smtp/smtp.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define MESSAGE "{\"from\":\"ops@example.org\",\"to\":\"bob@example.net\",\"subject\":\"Hi\",\"text\":\"one\\n.\\n..two\\n\"}"
#define TO_THREE                                                                                                            \
    "{\"from\":\"ops@example.org\",\"to\":[\"a@example.net\",\"b@example.net\",\"c@example.net\"],\"text\":\"hi\"}"

static struct certificates files;
static struct rig rig;
static struct mail_server *server;

static int open_all(void **state)
{
    (void)state;
    struct error err;
    signal(SIGPIPE, SIG_IGN);
    certificates_make(&files);
    rig = (struct rig){ .loop = event_base_new() };
    if (smtp_transport_new(rig.loop, 64, &rig.transport, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    rig_close(&rig);
    certificates_remove(&files);
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    if (rig.transport)
        rig.transport->ops->forget(rig.transport); /* its connections, before their other end */
    mail_server_free(server);
    server = NULL;
    return 0;
}

static void serve(const struct mail_settings *settings, const struct mail_rule *rules, size_t count)
{
    mail_server_free(server);
    server = mail_server_new(settings);
    mail_server_script(server, rules, count);
}

static void configure(const char *more)
{
    rig_configure(&rig, "preset: email, url: 'smtp://127.0.0.1:%d', allow_private: true, smtp: { helo: me.test }%s",
                  mail_server_port(server), more);
}

static void send_payload(struct rig_send *send, const char *payload)
{
    rig_prepare(&rig, send);
    send->job.payload = slice_from(payload);
    send->job.created_at = 1736678400000;
    rig_start(&rig, send);
    rig_wait(&rig, send);
}

static bool said(const char *text)
{
    struct buffer commands;
    mail_server_commands(server, &commands);
    bool found = strstr(commands.data, text) != NULL;
    buffer_release(&commands);
    return found;
}

static enum outcome judged(const struct rig_send *send)
{
    struct evidence evidence = { send->answer.code, send->answer.text };
    return send->answer.outcome != OUTCOME_NONE ? send->answer.outcome
                                                : classify(send->send.destination->policy.classifier, evidence).outcome;
}

static void test_it_arrives(void **state)
{
    (void)state;
    struct rig_send send;
    struct buffer commands, content;
    serve(NULL, NULL, 0);
    configure("");
    send_payload(&send, MESSAGE);
    check(send.answer.outcome == OUTCOME_DELIVERED, "%s", send.text);
    assert_true(send.answer.attempted);
    assert_string_equal(send.code, "smtp:250");
    assert_string_equal(send.reference, "2.0.0 Ok: queued as 4F2A1");
    mail_server_commands(server, &commands);
    assert_string_equal(commands.data,
                        "EHLO me.test\nMAIL FROM:<ops@example.org>\nRCPT TO:<bob@example.net>\nDATA\n");
    mail_server_content(server, &content);
    const char *body = strstr(content.data, "\r\n\r\n");
    assert_non_null(body);
    assert_string_equal(body, "\r\n\r\none\r\n..\r\n...two\r\n.\r\n"); /* dots are doubled; only the last line ends it */
    assert_int_equal(mail_server_messages(server), 1);
    buffer_release(&commands);
    buffer_release(&content);
}

/* Rows: one reply at one command, and what becomes of the job. */
static const struct {
    const char *name;
    struct mail_rule rule;
    enum outcome outcome; /* with the rules of preset email */
    const char *code, *text;
} replies[] = {
    { "busy at once",
      { "GREETING", "421 4.3.2 too busy\r\n", MAIL_CLOSE, 0 },
      OUTCOME_TRANSIENT,
      "smtp:421",
      "SMTP 421: 4.3.2 too busy (at the greeting)" },
    { "no service for us",
      { "GREETING", "554 5.7.1 go away\r\n", MAIL_CLOSE, 0 },
      OUTCOME_TRANSIENT,
      "smtp:554",
      "go away (at the greeting)" },
    { "sender put off",
      { "MAIL", "451 4.7.1 greylisted\r\n", MAIL_ANSWER, 0 },
      OUTCOME_TRANSIENT,
      "smtp:451",
      "SMTP 451: 4.7.1 greylisted (at MAIL FROM)" },
    { "sender refused", { "MAIL", "550 5.1.0 not you\r\n", MAIL_ANSWER, 0 }, OUTCOME_PERMANENT, "smtp:550", "not you" },
    { "login needed",
      { "MAIL", "530 5.7.0 authentication required\r\n", MAIL_ANSWER, 0 },
      OUTCOME_BLOCKED,
      "smtp:530",
      "required" },
    { "too large", { "MAIL", "552 5.3.4 too large\r\n", MAIL_ANSWER, 0 }, OUTCOME_PERMANENT, "smtp:552", "too large" },
    { "no such user",
      { "RCPT", "550-5.1.1 no such\r\n550 5.1.1 user\r\n", MAIL_ANSWER, 0 },
      OUTCOME_PERMANENT,
      "smtp:550",
      "SMTP 550: 550 5.1.1 no such user [bob@example.net] (at RCPT TO; nobody got the message)" },
    { "mailbox busy",
      { "RCPT", "450 4.2.1 later\r\n", MAIL_ANSWER, 0 },
      OUTCOME_TRANSIENT,
      "smtp:450",
      "[bob@example.net]" },
    { "leaving at RCPT", { "RCPT", "421 4.7.0 slow down\r\n", MAIL_CLOSE, 0 }, OUTCOME_THROTTLED, "smtp:421", "slow down" },
    { "DATA refused",
      { "DATA", "554 5.5.1 no valid recipients\r\n", MAIL_ANSWER, 0 },
      OUTCOME_PERMANENT,
      "smtp:554",
      "(at DATA)" },
    { "DATA put off", { "DATA", "451 4.3.0 later\r\n", MAIL_ANSWER, 0 }, OUTCOME_TRANSIENT, "smtp:451", "(at DATA)" },
    { "content refused",
      { "CONTENT", "552 5.2.2 mailbox full\r\n", MAIL_ANSWER, 0 },
      OUTCOME_PERMANENT,
      "smtp:552",
      "(at the end of the message)" },
    { "content put off",
      { "CONTENT", "451 4.3.0 try later\r\n", MAIL_ANSWER, 0 },
      OUTCOME_TRANSIENT,
      "smtp:451",
      "(at the end of the message)" },
    { "neither yes nor no", { "CONTENT", "354 what?\r\n", MAIL_ANSWER, 0 }, OUTCOME_IN_DOUBT, "smtp:354", "what?" },
    { "closed after the message",
      { "CONTENT", NULL, MAIL_CLOSE, 0 },
      OUTCOME_IN_DOUBT,
      "curl:52",
      "(the whole message was sent)" },
    { "reset after the message",
      { "CONTENT", NULL, MAIL_RESET, 0 },
      OUTCOME_IN_DOUBT,
      "curl:56",
      "(the whole message was sent)" },
    { "half a reply to the message",
      { "CONTENT", "250-2.0.0 Ok", MAIL_CLOSE, 0 },
      OUTCOME_IN_DOUBT,
      "curl:52",
      "(the whole message was sent)" },
    { "no SMTP after the message", { "CONTENT", "hello\r\n", MAIL_ANSWER, 0 }, OUTCOME_IN_DOUBT, "curl:8", "no SMTP reply" },
    { "a refusal of the message that ends as a yes",
      { "CONTENT", "550-5.7.1 no\r\n250 2.0.0 Ok\r\n", MAIL_ANSWER, 0 },
      OUTCOME_IN_DOUBT,
      "curl:8",
      "no SMTP reply" },
    { "a refusal of the recipient that ends as a yes",
      { "RCPT", "550-5.1.1 no\r\n250 2.1.5 Ok\r\n", MAIL_ANSWER, 0 },
      OUTCOME_TRANSIENT,
      "curl:8",
      "no SMTP reply" },
    { "an endless reply to the message",
      { "CONTENT", "250-more and more of it\r\n", MAIL_ENDLESS, 0 },
      OUTCOME_IN_DOUBT,
      "curl:8",
      "without an end" },
    { "closed at MAIL",
      { "MAIL", NULL, MAIL_CLOSE, 0 },
      OUTCOME_TRANSIENT,
      "curl:52",
      "(at MAIL FROM; the message was not sent)" },
    { "reset at RCPT",
      { "RCPT", NULL, MAIL_RESET, 0 },
      OUTCOME_TRANSIENT,
      "curl:56",
      "(at RCPT TO; the message was not sent)" },
    { "closed at DATA",
      { "DATA", NULL, MAIL_CLOSE, 0 },
      OUTCOME_TRANSIENT,
      "curl:52",
      "(at DATA; the message was not sent)" },
    { "closed at once", { "GREETING", NULL, MAIL_CLOSE, 0 }, OUTCOME_TRANSIENT, "curl:", "" },
    { "half a greeting", { "GREETING", "220-wait", MAIL_CLOSE, 0 }, OUTCOME_TRANSIENT, "curl:", "" },
    { "an endless greeting",
      { "GREETING", "220-more and more of it\r\n", MAIL_ENDLESS, 0 },
      OUTCOME_TRANSIENT,
      "curl:8",
      "without an end" },
    { "another protocol",
      { "GREETING", "HTTP/1.1 400 Bad Request\r\n\r\n", MAIL_CLOSE, 0 },
      OUTCOME_TRANSIENT,
      "curl:8",
      "no SMTP reply" },
    { "an answer before the question",
      { "MAIL", "250 ok\r\n250 ok\r\n", MAIL_ANSWER, 0 },
      OUTCOME_TRANSIENT,
      "curl:8",
      "(at RCPT TO; the message was not sent)" },
    { "a yes before the message",
      { "DATA", "354 go on\r\n250 ok\r\n", MAIL_ANSWER, 0 },
      OUTCOME_TRANSIENT,
      "curl:8",
      "(at the message; the message was not sent)" },
};

static void test_replies(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(replies); i++) {
        struct rig_send send;
        serve(NULL, &replies[i].rule, 1);
        configure(", response_max: 64KB");
        send_payload(&send, MESSAGE);
        check(send.answer.attempted, "%s: attempted", replies[i].name);
        check(strncmp(send.code, replies[i].code, strlen(replies[i].code)) == 0, "%s: %s %s", replies[i].name, send.code, send.text);
        check(strstr(send.text, replies[i].text), "%s: %s", replies[i].name, send.text);
        check(judged(&send) == replies[i].outcome, "%s: %s, %s %s", replies[i].name, outcome_name(judged(&send)), send.code, send.text);
        check(mail_server_messages(server) == 0, "%s: it was taken", replies[i].name);
        rig.transport->ops->forget(rig.transport);
    }
}

static void test_patience(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct mail_rule rule;
        enum outcome outcome;
    } cases[] = {
        { "no greeting", { "GREETING", NULL, MAIL_HANG, 0 }, OUTCOME_TRANSIENT },
        { "no answer to EHLO", { "EHLO", NULL, MAIL_HANG, 0 }, OUTCOME_TRANSIENT },
        { "no answer to MAIL", { "MAIL", NULL, MAIL_HANG, 0 }, OUTCOME_TRANSIENT },
        { "no answer to RCPT", { "RCPT", NULL, MAIL_HANG, 0 }, OUTCOME_TRANSIENT },
        { "no answer to DATA", { "DATA", NULL, MAIL_HANG, 0 }, OUTCOME_TRANSIENT },
        { "no answer to the message", { "CONTENT", NULL, MAIL_HANG, 0 }, OUTCOME_IN_DOUBT },
    };
    static const char *const times[] = { ", timeout: 200ms, connect_timeout: 100ms", ", timeout: 3s", ", timeout: 15s" };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct rig_send send;
        for (size_t n = 0; n < COUNT_OF(times); n++) { /* a busy machine may not come to where it hangs in so short a time */
            serve(NULL, &cases[i].rule, 1);
            configure(times[n]);
            send_payload(&send, MESSAGE);
            if (judged(&send) == cases[i].outcome)
                break;
        }
        check(strcmp(send.code, "curl:28") == 0 && strstr(send.text, "TIMEOUT - "), "%s: %s %s", cases[i].name, send.code, send.text);
        check(judged(&send) == cases[i].outcome, "%s: %s", cases[i].name, send.text);
        check(send.answer.duration_ms >= 150, "%s: given up after %lld ms", cases[i].name, (long long)send.answer.duration_ms);
    }
}

/* The loop goes on while a server thinks about a message: libcurl alone would wait for it. */
static void test_a_slow_answer_holds_nobody(void **state)
{
    (void)state;
    struct rig_send slow, quick;
    const struct mail_rule hang = { "CONTENT", NULL, MAIL_HANG, 1 };
    serve(NULL, &hang, 1);
    configure(", timeout: 60s");
    rig_prepare(&rig, &slow);
    slow.job.payload = slice_from(MESSAGE);
    rig_start(&rig, &slow);
    struct buffer content = { 0 };
    for (int i = 0; i < 60000 && content.len == 0; i++) {
        rig_run(&rig, 1);
        buffer_release(&content);
        mail_server_content(server, &content);
    }
    assert_true(content.len > 0);
    buffer_release(&content);
    send_payload(&quick, MESSAGE);
    check(quick.answer.outcome == OUTCOME_DELIVERED, "%s", quick.text);
    assert_int_equal(slow.times, 0);
    rig.transport->ops->abort(rig.transport, &slow.send);
    assert_int_equal(slow.times, 1);
    assert_true(slow.answer.attempted);
    assert_int_equal(slow.answer.outcome, OUTCOME_IN_DOUBT);
}

static void test_slow_replies(void **state)
{
    (void)state;
    struct rig_send send;
    const struct mail_rule slow[] = { { "GREETING", "220-hello\r\n220 world\r\n", MAIL_SLOW, 0 },
                                      { "RCPT", "250-one\r\n250 two\r\n", MAIL_SLOW, 0 },
                                      { "CONTENT", "250-2.0.0 queued\r\n250 2.0.0 as 7\r\n", MAIL_SLOW, 0 } };
    serve(NULL, slow, COUNT_OF(slow));
    configure("");
    send_payload(&send, MESSAGE);
    check(send.answer.outcome == OUTCOME_DELIVERED, "%s", send.text);
    assert_string_equal(send.reference, "2.0.0 queued as 7");
}

static void test_recipients(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct mail_rule rules[2];
        size_t count;
        const char *code;
        const char *names[2]; /* in the text */
        enum outcome outcome;
    } cases[] = {
        { "all taken", { { 0 } }, 0, "smtp:250", { NULL, NULL }, OUTCOME_DELIVERED },
        { "one is unknown", { { "RCPT TO:<b@", "550 5.1.1 who\r\n", MAIL_ANSWER, 0 } }, 1, "smtp:550",
          { "550 5.1.1 who [b@example.net]", NULL }, OUTCOME_PERMANENT },
        { "one is busy", { { "RCPT TO:<a@", "450 4.2.0 busy\r\n", MAIL_ANSWER, 0 } }, 1, "smtp:450",
          { "450 4.2.0 busy [a@example.net]", NULL }, OUTCOME_TRANSIENT },
        { "one is busy, one unknown", { { "RCPT TO:<a@", "450 4.2.0 busy\r\n", MAIL_ANSWER, 0 },
          { "RCPT TO:<c@", "550 5.1.1 who\r\n", MAIL_ANSWER, 0 } }, 2, "smtp:550",
          { "450 4.2.0 busy [a@example.net]", "550 5.1.1 who [c@example.net]" }, OUTCOME_PERMANENT },
        { "the first that is busy decides", { { "RCPT TO:<a@", "450 4.2.0 busy\r\n", MAIL_ANSWER, 0 },
          { "RCPT TO:<c@", "452 4.5.3 too many\r\n", MAIL_ANSWER, 0 } }, 2, "smtp:450",
          { "450 4.2.0 busy [a@example.net]", "452 4.5.3 too many [c@example.net]" }, OUTCOME_TRANSIENT },
        { "a goodbye", { { "RCPT TO:<a@", "421 4.7.0 bye\r\n", MAIL_ANSWER, 0 } }, 1, "smtp:421", { NULL, NULL }, OUTCOME_TRANSIENT },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct rig_send send;
        serve(NULL, cases[i].rules, cases[i].count);
        configure("");
        send_payload(&send, TO_THREE);
        check(strcmp(send.code, cases[i].code) == 0, "%s: %s %s", cases[i].name, send.code, send.text);
        for (size_t k = 0; k < 2 && cases[i].names[k]; k++)
            check(strstr(send.text, cases[i].names[k]), "%s: %s", cases[i].name, send.text);
        check(judged(&send) == cases[i].outcome, "%s: %s", cases[i].name, send.text);
        check(said("RCPT TO:<c@example.net>") == (i + 1 < COUNT_OF(cases)), "%s: all are asked about, but for the last", cases[i].name);
        check(said("DATA") == (cases[i].outcome == OUTCOME_DELIVERED), "%s: all or none", cases[i].name);
        rig.transport->ops->forget(rig.transport);
    }
}

static void test_connections_are_kept(void **state)
{
    (void)state;
    struct rig_send send;
    const struct mail_rule refuse = { "RCPT", "550 5.1.1 who\r\n", MAIL_ANSWER, 2 };
    serve(NULL, &refuse, 1);
    configure("");
    for (int i = 0; i < 4; i++) {
        send_payload(&send, MESSAGE);
        check((send.answer.outcome == OUTCOME_DELIVERED) == (i != 1), "message %d: %s", i, send.text);
    }
    assert_int_equal(mail_server_connections(server), 1);
    assert_int_equal(mail_server_messages(server), 3);
    assert_true(said("RSET\nMAIL FROM")); /* after the refusal, and only then */
    assert_false(said("RSET\nMAIL FROM:<ops@example.org>\nRCPT TO:<bob@example.net>\nDATA\nRSET"));
}

/* A kept connection that has ended meanwhile is no failure of the job, and no reason to send it twice. */
static void test_kept_connections_that_ended(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct mail_rule rule;
    } cases[] = {
        { "closed at the next MAIL", { "MAIL", NULL, MAIL_CLOSE, 2 } },
        { "reset at the next MAIL", { "MAIL", NULL, MAIL_RESET, 2 } },
        { "421 at the next MAIL", { "MAIL", "421 4.4.2 idle too long\r\n", MAIL_CLOSE, 2 } },
        { "closed while idle", { "CONTENT", "250 2.0.0 Ok\r\n", MAIL_CLOSE, 1 } },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct rig_send send;
        serve(NULL, &cases[i].rule, 1);
        configure("");
        for (int k = 0; k < 2; k++) {
            send_payload(&send, MESSAGE);
            check(send.answer.outcome == OUTCOME_DELIVERED, "%s, message %d: %s", cases[i].name, k, send.text);
        }
        check(mail_server_connections(server) == 2, "%s: %zu connections", cases[i].name, mail_server_connections(server));
        rig.transport->ops->forget(rig.transport);
    }
    /* Where a new connection meets the same, that is told. */
    struct rig_send send;
    const struct mail_rule always[] = { { "MAIL", "250 ok\r\n", MAIL_ANSWER, 1 }, { "MAIL", "421 4.3.2 bye\r\n", MAIL_CLOSE, 0 } };
    serve(NULL, always, 2);
    configure("");
    send_payload(&send, MESSAGE);
    check(send.answer.outcome == OUTCOME_DELIVERED, "%s", send.text);
    send_payload(&send, MESSAGE);
    check(strcmp(send.code, "smtp:421") == 0, "%s %s", send.code, send.text);
}

static void test_a_changed_configuration(void **state)
{
    (void)state;
    struct rig_send send;
    serve(NULL, NULL, 0);
    configure("");
    send_payload(&send, MESSAGE);
    rig_configure(&rig, "preset: email, url: 'smtp://localhost:%d', allow_private: true, smtp: { helo: other.test, from: me@example.org }",
                  mail_server_port(server));
    send_payload(&send, "{\"to\":\"bob@example.net\"}");
    check(send.answer.outcome == OUTCOME_DELIVERED, "%s", send.text);
    assert_true(said("EHLO other.test\nMAIL FROM:<me@example.org>"));
    assert_int_equal(mail_server_connections(server), 2);
}

static void test_resend_keeps_its_message_id(void **state)
{
    (void)state;
    struct rig_send send;
    struct buffer first, second;
    const struct mail_rule lose = { "CONTENT", NULL, MAIL_RESET, 1 };
    serve(NULL, &lose, 1);
    configure("");
    send_payload(&send, MESSAGE);
    assert_int_equal(send.answer.outcome, OUTCOME_IN_DOUBT);
    mail_server_content(server, &first);
    rig_prepare(&rig, &send);
    send.job.payload = slice_from(MESSAGE);
    send.job.created_at = 1736678400000;
    send.job.attempts = send.job.attempts_total = 2;
    rig_start(&rig, &send);
    rig_wait(&rig, &send);
    check(send.answer.outcome == OUTCOME_DELIVERED, "%s", send.text);
    mail_server_content(server, &second);
    assert_non_null(strstr(first.data, "Message-ID: <"));
    assert_string_equal(first.data, second.data);
    buffer_release(&first);
    buffer_release(&second);
}

static void test_what_the_server_offers(void **state)
{
    (void)state;
    static const struct {
        const char *name, *offers, *payload, *mail;
        enum outcome outcome;
    } cases[] = {
        { "size", "250-SIZE 1000000\r\n", MESSAGE, "MAIL FROM:<ops@example.org> SIZE=", OUTCOME_DELIVERED },
        { "no 8 bits needed", "250-8BITMIME\r\n", MESSAGE, "MAIL FROM:<ops@example.org>\n", OUTCOME_DELIVERED },
        { "UTF-8", "250-8bitmime\r\n250-smtputf8\r\n", "{\"from\":\"j\\u00fc@example.org\",\"to\":\"b@example.net\"}",
          "MAIL FROM:<j\xc3\xbc@example.org> BODY=8BITMIME SMTPUTF8\n", OUTCOME_DELIVERED },
        { "no UTF-8", NULL, "{\"from\":\"j\\u00fc@example.org\",\"to\":\"b@example.net\"}", "EHLO", OUTCOME_PERMANENT },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct rig_send send;
        struct mail_settings settings = { .offers = cases[i].offers };
        serve(&settings, NULL, 0);
        configure("");
        send_payload(&send, cases[i].payload);
        check(send.answer.outcome == cases[i].outcome, "%s: %s", cases[i].name, send.text);
        check(said(cases[i].mail), "%s", cases[i].name);
        rig.transport->ops->forget(rig.transport);
    }
    assert_false(said("MAIL"));
}

static void test_an_old_server(void **state)
{
    (void)state;
    struct rig_send send;
    const struct mail_rule old = { "EHLO", "500 what?\r\n", MAIL_ANSWER, 0 };
    serve(NULL, &old, 1);
    configure("");
    send_payload(&send, MESSAGE);
    check(send.answer.outcome == OUTCOME_DELIVERED, "%s", send.text);
    assert_true(said("HELO me.test\nMAIL FROM"));
    /* What it said to the first word is not why, when the second is refused or the connection ends. */
    const struct mail_rule none[] = { { "EHLO", "500 what?\r\n", MAIL_ANSWER, 0 }, { "HELO", "504 5.5.2 a full name\r\n", MAIL_ANSWER, 0 } };
    serve(NULL, none, 2);
    configure("");
    send_payload(&send, MESSAGE);
    check(strcmp(send.code, "smtp:504") == 0 && strstr(send.text, "a full name (at EHLO)"), "%s %s", send.code, send.text);
    const struct mail_rule gone[] = { { "EHLO", "500 what?\r\n", MAIL_ANSWER, 0 }, { "HELO", NULL, MAIL_RESET, 0 } };
    serve(NULL, gone, 2);
    configure("");
    send_payload(&send, MESSAGE);
    check(strcmp(send.code, "curl:56") == 0 && judged(&send) == OUTCOME_TRANSIENT, "%s %s", send.code, send.text);
}

static void test_messages_that_are_none(void **state)
{
    (void)state;
    static const char *const payloads[] = { "hello", "{\"to\":\"a@b.c\"}", "{\"from\":\"a@b.c\",\"to\":\"x@y.z\\r\\nDATA\"}" };
    serve(NULL, NULL, 0);
    configure("");
    for (size_t i = 0; i < COUNT_OF(payloads); i++) {
        struct rig_send send;
        send_payload(&send, payloads[i]);
        check(send.answer.outcome == OUTCOME_PERMANENT && strcmp(send.code, "insist:message") == 0, "%zu: %s %s", i, send.code, send.text);
    }
    assert_int_equal(mail_server_connections(server), 0);
}

static void test_private_addresses(void **state)
{
    (void)state;
    struct rig_send send;
    serve(NULL, NULL, 0);
    rig_configure(&rig, "preset: email, url: 'smtp://127.0.0.1:%d', timeout: 60s", mail_server_port(server));
    send_payload(&send, MESSAGE);
    assert_int_equal(send.answer.outcome, OUTCOME_BLOCKED);
    assert_string_equal(send.code, "insist:private_address");
    assert_int_equal(mail_server_connections(server), 0);
}

static void test_nobody_there(void **state)
{
    (void)state;
    struct rig_send send;
    serve(NULL, NULL, 0);
    configure("");
    mail_server_free(server);
    server = NULL;
    send_payload(&send, MESSAGE);
    assert_string_equal(send.code, "curl:7");
    assert_int_equal(judged(&send), OUTCOME_TRANSIENT);
}

static void test_abort(void **state)
{
    (void)state;
    struct rig_send send;
    const struct mail_rule hang = { "RCPT", NULL, MAIL_HANG, 0 };
    serve(NULL, &hang, 1);
    configure(", timeout: 60s");
    rig_prepare(&rig, &send);
    send.job.payload = slice_from(MESSAGE);
    rig_start(&rig, &send);
    for (int i = 0; i < 60000 && !said("RCPT"); i++)
        rig_run(&rig, 1);
    rig.transport->ops->abort(rig.transport, &send.send);
    assert_int_equal(send.times, 1);
    assert_false(send.answer.attempted);
    assert_int_equal(send.answer.outcome, OUTCOME_NONE);
    /* Before it began, and one that cannot begin. */
    static const char *const payloads[] = { MESSAGE, "hello" };
    for (size_t i = 0; i < COUNT_OF(payloads); i++) {
        rig_prepare(&rig, &send);
        send.job.payload = slice_from(payloads[i]);
        rig_start(&rig, &send);
        rig.transport->ops->abort(rig.transport, &send.send);
        check(send.times == 1 && !send.answer.attempted, "payload %zu", i);
    }
    rig_run(&rig, 5);
    assert_int_equal(send.times, 1);
}

static void test_many_at_once(void **state)
{
    (void)state;
    enum { MANY = 40 };
    static struct rig_send sends[MANY];
    serve(NULL, NULL, 0);
    configure("");
    size_t before = rig_descriptors();
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < MANY; i++) {
            rig_prepare(&rig, &sends[i]);
            sends[i].job.payload = slice_from(TO_THREE);
            rig_start(&rig, &sends[i]);
        }
        for (size_t i = 0; i < MANY; i++) {
            rig_wait(&rig, &sends[i]);
            check(sends[i].answer.outcome == OUTCOME_DELIVERED, "%zu: %s", i, sends[i].text);
        }
    }
    assert_int_equal(mail_server_messages(server), 2 * MANY);
    assert_int_equal(mail_server_connections(server), MANY);
    stop_server(NULL);
    assert_true(rig_descriptors() <= before);
}

/* More than any buffer on the way holds. */
static void test_a_large_message(void **state)
{
    (void)state;
    enum { LINES = 60000 };
    struct rig_send send;
    struct buffer payload, content;
    struct mail_settings settings = { .cert = files.server, .key = certificate_key(files.server) };
    buffer_init(&payload, 16 << 20);
    buffer_append_text(&payload, "{\"from\":\"a@b.c\",\"to\":\"x@y.z\",\"text\":\"");
    for (int i = 0; i < LINES; i++)
        buffer_printf(&payload, ".line %d with something in it to fill it up\\n", i);
    buffer_append_text(&payload, "\"}");
    for (int tls = 0; tls < 2; tls++) {
        char more[256];
        snprintf(more, sizeof more, ", timeout: 60s%s%s%s", tls ? ", tls: { ca: '" : "", tls ? files.ca : "", tls ? "' }" : "");
        serve(tls ? &settings : NULL, NULL, 0);
        configure(more);
        send_payload(&send, payload.data);
        check(send.answer.outcome == OUTCOME_DELIVERED, "%s", send.text);
        mail_server_content(server, &content);
        char last[64];
        snprintf(last, sizeof last, "\r\n..line %d with something in it to fill it up\r\n.\r\n", LINES - 1);
        check(content.len > strlen(last) && strcmp(content.data + content.len - strlen(last), last) == 0, "its end");
        buffer_release(&content);
        rig.transport->ops->forget(rig.transport);
    }
    /* A server that has heard enough says so in the middle. */
    const struct mail_rule early = { "CONTENT", "552 5.3.4 too large\r\n", MAIL_EARLY, 0 };
    serve(NULL, &early, 1);
    configure(", timeout: 60s");
    send_payload(&send, payload.data);
    check(judged(&send) != OUTCOME_IN_DOUBT && judged(&send) != OUTCOME_DELIVERED, "%s %s", send.code, send.text);
    assert_true(send.answer.attempted);
    buffer_release(&payload);
}

/* --- TLS and login ----------------------------------------------------------------------------- */

static void configure_tls(const char *scheme, const char *host, const char *tls, const char *more)
{
    rig_configure(&rig, "preset: email, url: '%s://%s:%d', allow_private: true, timeout: 60s, tls: { %s }%s", scheme, host,
                  mail_server_port(server), tls, more);
}

static void test_tls(void **state)
{
    (void)state;
    char ca[256], other[256];
    snprintf(ca, sizeof ca, "ca: '%s'", files.ca);
    snprintf(other, sizeof other, "ca: '%s'", files.other_ca);
    const struct {
        const char *name, *scheme, *cert, *tls, *more;
        struct mail_rule rule;
        enum outcome outcome;
        const char *code;
        const char *said; /* among the commands; "<": over TLS */
    } cases[] = {
        { "STARTTLS", "smtp", files.server, ca, "", { 0 }, OUTCOME_DELIVERED, "smtp:250", "STARTTLS\n<EHLO" },
        { "STARTTLS required", "smtp", files.server, ca, ", smtp: { starttls: required }", { 0 }, OUTCOME_DELIVERED, "smtp:250", "<MAIL" },
        { "TLS from the start", "smtps", files.server, ca, "", { 0 }, OUTCOME_DELIVERED, "smtp:250", "<MAIL" },
        { "no TLS wanted", "smtp", files.server, ca, ", smtp: { starttls: none }", { 0 }, OUTCOME_DELIVERED, "smtp:250", "\nMAIL" },
        { "not offered", "smtp", NULL, ca, "", { 0 }, OUTCOME_DELIVERED, "smtp:250", "\nMAIL" },
        { "not offered but required", "smtp", NULL, ca, ", smtp: { starttls: required }", { 0 }, OUTCOME_BLOCKED, "curl:64", "EHLO" },
        { "refused but required", "smtp", files.server, ca, ", smtp: { starttls: required }",
          { "STARTTLS", "502 5.5.1 no\r\n", MAIL_ANSWER, 0 }, OUTCOME_BLOCKED, "smtp:502", "STARTTLS" },
        { "put off and required", "smtp", files.server, ca, ", smtp: { starttls: required }",
          { "STARTTLS", "454 4.7.0 TLS not available\r\n", MAIL_ANSWER, 0 }, OUTCOME_THROTTLED, "smtp:454", "STARTTLS" },
        { "refused and not required", "smtp", files.server, ca, ", smtp: { starttls: opportunistic }",
          { "STARTTLS", "454 4.7.0 TLS not available\r\n", MAIL_ANSWER, 0 }, OUTCOME_DELIVERED, "smtp:250", "\nMAIL" },
        { "unknown authority", "smtp", files.server, other, "", { 0 }, OUTCOME_BLOCKED, "curl:60", "STARTTLS" },
        { "expired", "smtp", files.expired, ca, "", { 0 }, OUTCOME_BLOCKED, "curl:60", "STARTTLS" },
        { "another host's", "smtps", files.elsewhere, ca, "", { 0 }, OUTCOME_BLOCKED, "curl:60", "" },
        { "not checked", "smtp", files.elsewhere, "verify: false", "", { 0 }, OUTCOME_DELIVERED, "smtp:250", "<MAIL" },
        { "no such authority file", "smtp", files.server, "ca: '/nowhere/ca.pem'", "", { 0 }, OUTCOME_BLOCKED, "curl:77", "STARTTLS" },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct rig_send send;
        struct mail_settings settings = { .cert = cases[i].cert, .key = cases[i].cert ? certificate_key(cases[i].cert) : NULL,
                                          .tls = strcmp(cases[i].scheme, "smtps") == 0 };
        serve(&settings, &cases[i].rule, cases[i].rule.command ? 1 : 0);
        configure_tls(cases[i].scheme, "localhost", cases[i].tls, cases[i].more);
        send_payload(&send, MESSAGE);
        check(judged(&send) == cases[i].outcome && strcmp(send.code, cases[i].code) == 0, "%s: %s, %s %s", cases[i].name,
              outcome_name(judged(&send)), send.code, send.text);
        check(said(cases[i].said), "%s: %s", cases[i].name, cases[i].said);
        check(mail_server_messages(server) == (cases[i].outcome == OUTCOME_DELIVERED), "%s: sent", cases[i].name);
        rig.transport->ops->forget(rig.transport);
    }
}

/* By itself, clear text is only for where nobody can sit in between. */
static void test_tls_is_required_by_default(void **state)
{
    (void)state;
    static const struct {
        const char *host;
        enum outcome outcome;
    } cases[] = {
        { "127.0.0.1", OUTCOME_DELIVERED },
        { "localhost", OUTCOME_DELIVERED },
        { "mail.localhost", OUTCOME_BLOCKED }, /* a name, which somebody may answer for */
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct rig_send send;
        serve(NULL, NULL, 0);
        configure_tls("smtp", cases[i].host, "", ", username: user, password: s3cret");
        send_payload(&send, MESSAGE);
        check(judged(&send) == cases[i].outcome, "%s: %s %s", cases[i].host, send.code, send.text);
        check(said("AUTH") == (cases[i].outcome == OUTCOME_DELIVERED), "%s: the password", cases[i].host);
        rig.transport->ops->forget(rig.transport);
    }
}

static void test_client_certificate(void **state)
{
    (void)state;
    const struct {
        const char *name, *cert;
        enum outcome outcome;
    } cases[] = {
        { "ours", files.client, OUTCOME_DELIVERED },
        { "a stranger's", files.stranger, OUTCOME_BLOCKED },
        { "none", NULL, OUTCOME_BLOCKED },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct rig_send send;
        char tls[640];
        struct mail_settings settings = { .cert = files.server, .key = certificate_key(files.server), .tls = true, .client_ca = files.ca };
        serve(&settings, NULL, 0);
        snprintf(tls, sizeof tls, "ca: '%s'%s%s%s%s%s", files.ca, cases[i].cert ? ", cert: '" : "", cases[i].cert ? cases[i].cert : "",
                 cases[i].cert ? "', key: '" : "", cases[i].cert ? certificate_key(cases[i].cert) : "", cases[i].cert ? "'" : "");
        configure_tls("smtps", "localhost", tls, "");
        send_payload(&send, MESSAGE);
        check(judged(&send) == cases[i].outcome, "%s: %s %s", cases[i].name, send.code, send.text);
        rig.transport->ops->forget(rig.transport);
    }
}

static void test_login(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct mail_rule rule;
        enum outcome outcome;
        const char *code;
    } cases[] = {
        { "welcome", { 0 }, OUTCOME_DELIVERED, "smtp:250" },
        { "wrong password", { "AUTH", "535 5.7.8 bad credentials\r\n", MAIL_ANSWER, 0 }, OUTCOME_BLOCKED, "smtp:535" },
        { "a refusal by another number", { "AUTH", "550 5.7.1 disabled\r\n", MAIL_ANSWER, 0 }, OUTCOME_BLOCKED, "smtp:550" },
        { "later", { "AUTH", "454 4.7.0 temporary failure\r\n", MAIL_ANSWER, 0 }, OUTCOME_THROTTLED, "smtp:454" },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct rig_send send;
        char tls[256];
        struct mail_settings settings = { .cert = files.server, .key = certificate_key(files.server) };
        serve(&settings, &cases[i].rule, cases[i].rule.command ? 1 : 0);
        snprintf(tls, sizeof tls, "ca: '%s'", files.ca);
        configure_tls("smtp", "localhost", tls, ", username: user, password: s3cret");
        send_payload(&send, MESSAGE);
        check(judged(&send) == cases[i].outcome && strcmp(send.code, cases[i].code) == 0, "%s: %s %s", cases[i].name, send.code, send.text);
        check(cases[i].outcome != OUTCOME_DELIVERED || said("<AUTH PLAIN\n<AHVzZXIAczNjcmV0\n"), "%s: what was said", cases[i].name);
        check(cases[i].outcome == OUTCOME_DELIVERED || strstr(send.text, "(at AUTH)"), "%s: %s", cases[i].name, send.text);
        check(!strstr(send.text, "s3cret"), "%s: the password is told", cases[i].name);
        rig.transport->ops->forget(rig.transport);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_it_arrives, stop_server),
        cmocka_unit_test_teardown(test_replies, stop_server),
        cmocka_unit_test_teardown(test_patience, stop_server),
        cmocka_unit_test_teardown(test_a_slow_answer_holds_nobody, stop_server),
        cmocka_unit_test_teardown(test_slow_replies, stop_server),
        cmocka_unit_test_teardown(test_recipients, stop_server),
        cmocka_unit_test_teardown(test_connections_are_kept, stop_server),
        cmocka_unit_test_teardown(test_kept_connections_that_ended, stop_server),
        cmocka_unit_test_teardown(test_a_changed_configuration, stop_server),
        cmocka_unit_test_teardown(test_resend_keeps_its_message_id, stop_server),
        cmocka_unit_test_teardown(test_what_the_server_offers, stop_server),
        cmocka_unit_test_teardown(test_an_old_server, stop_server),
        cmocka_unit_test_teardown(test_messages_that_are_none, stop_server),
        cmocka_unit_test_teardown(test_private_addresses, stop_server),
        cmocka_unit_test_teardown(test_nobody_there, stop_server),
        cmocka_unit_test_teardown(test_abort, stop_server),
        cmocka_unit_test_teardown(test_many_at_once, stop_server),
        cmocka_unit_test_teardown(test_a_large_message, stop_server),
        cmocka_unit_test_teardown(test_tls, stop_server),
        cmocka_unit_test_teardown(test_tls_is_required_by_default, stop_server),
        cmocka_unit_test_teardown(test_client_certificate, stop_server),
        cmocka_unit_test_teardown(test_login, stop_server),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
