#include "transport/smtp/smtp.h"

#include "base/clock.h"
#include "transport/curl_send.h"
#include "transport/oauth.h"
#include "transport/smtp/session.h"

#include <assert.h>
#include <event2/event.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    IDLE_SESSIONS_MAX = 256,
    TOKEN_WAITS_MAX = 3,             /* of one send: tokens may end before they can be used */
    TOKEN_BYTES_MAX = 16 * 1024,
    RENEW_WITHIN_MS = 30 * 1000,     /* later the lease might end before the second try does */
};

struct smtp_transport {
    struct transport transport; /* first */
    struct curl_loop loop;
    struct oauth *oauth;
    struct delivery *idle; /* connections at rest, the latest first */
    size_t idle_count;
    size_t open, open_max;      /* connections, at rest or not */
    uint64_t generation;        /* of the configuration: what was opened before is not used again */
    struct delivery *unstarted; /* failed before they began; reported from the loop */
    struct send *starved;       /* likewise, without memory even for a delivery */
    struct event *unstarted_event;
};

/* One job on its way, or a connection at rest. */
struct delivery {
    struct smtp_session session; /* first */
    struct smtp_transport *smtp;
    struct send *send; /* NULL: at rest */
    struct smtp_message message;
    bool has_message;
    struct error failure; /* of what failed before it began */
    int64_t started_ns;
    uint64_t generation;
    struct oauth_wait wait; /* for an access token */
    struct buffer bearer;   /* a copy of it, for when the connection is made anew */
    uint64_t token;         /* its number */
    int waits;
    bool renewed;          /* it was refused, and another is fetched */
    struct delivery *next; /* in idle or unstarted */
};

/* --- from what was seen to the answer ---------------------------------------------------------- */

/* "SMTP 550: 5.1.1 no such user": the rules read the number at the front, people the rest. */
static void tell_reply(const struct smtp_session *session, const char *where, struct words *words)
{
    struct slice text = buffer_slice(&session->reader.text);
    buffer_printf(&words->code, "smtp:%d", session->reader.code);
    buffer_printf(&words->text, "SMTP %d: %.*s (at %s)", session->reader.code, SLICE_ARG(text), where);
}

static void judge_refused_recipients(const struct smtp_session *session, struct words *words)
{
    buffer_printf(&words->code, "smtp:%d", session->result.refused_code);
    buffer_printf(&words->text, "SMTP %d: %.*s (at RCPT TO; nobody got the message)", session->result.refused_code,
                  SLICE_ARG(buffer_slice(&session->result.refused)));
}

static void judge_reply(const struct smtp_session *session, struct answer *answer, struct words *words)
{
    int class = session->reader.code / 100;
    if (session->result.refused_code > 0) {
        judge_refused_recipients(session, words);
        return;
    }
    tell_reply(session, smtp_stage_name(session->stage), words);
    if (session->stage != SMTP_ANSWER)
        return;
    if (class == 2) {
        struct slice text = buffer_slice(&session->reader.text);
        answer->outcome = OUTCOME_DELIVERED;
        buffer_append(&words->reference,
                      (struct slice){ text.data, text.len < REFERENCE_BYTES_MAX ? text.len : REFERENCE_BYTES_MAX });
    } else if (class == 3) {
        answer->outcome = OUTCOME_IN_DOUBT; /* neither yes nor no */
    }
}

/*
 * While connecting, libcurl ends with one of these where a reply was the reason. A reply before another end, say a refused
 * EHLO before a lost connection, was not.
 */
static const char *refused_command(CURLcode result)
{
    switch (result) {
    case CURLE_WEIRD_SERVER_REPLY:
        return "the greeting";
    case CURLE_REMOTE_ACCESS_DENIED:
        return "EHLO";
    case CURLE_USE_SSL_FAILED:
        return "STARTTLS";
    case CURLE_LOGIN_DENIED:
    case CURLE_AUTH_ERROR:
        return "AUTH";
    default:
        return NULL;
    }
}

/* True: a reply is what ended it. */
static bool judge_greeting(const struct smtp_session *session, struct answer *answer, struct words *words)
{
    const char *command = refused_command(session->result.failure);
    int code = session->reader.code;
    if (session->connected || !command || !session->reader.whole || code < 400)
        return false;
    tell_reply(session, command, words);
    if (code == 554 && session->result.failure != CURLE_LOGIN_DENIED)
        buffer_printf(&words->text, " unexpected smtp-server response: %d", code); /* the rules know it by this */
    /* No encryption or no login: no job is at fault, and none would fare better. */
    if (code >= 500 && strcmp(command, "the greeting") != 0 && strcmp(command, "EHLO") != 0)
        answer->outcome = OUTCOME_BLOCKED;
    return true;
}

static void tell_lost(const struct smtp_session *session, CURLcode result, struct words *words)
{
    const char *detail = session->result.curl_error;
    if (session->result.timed_out)
        detail = session->stage == SMTP_CONNECT ? "no connection and greeting in time" : "no reply in time";
    else if (result == CURLE_GOT_NOTHING)
        detail = "the server closed the connection";
    else if (result == CURLE_WEIRD_SERVER_REPLY || result == CURLE_WRITE_ERROR)
        detail = "what the server said is no SMTP reply, or one without an end";
    curl_failure_text(result, detail, &words->text);
    if (session->stage == SMTP_ANSWER)
        buffer_append(&words->text, SLICE(" (the whole message was sent)"));
    else if (session->stage != SMTP_CONNECT)
        buffer_printf(&words->text, " (at %s; the message was not sent)", smtp_stage_name(session->stage));
}

static void judge_lost(const struct smtp_session *session, struct answer *answer, struct words *words)
{
    CURLcode result = session->result.failure;
    if (session->result.private_address) {
        private_judge(answer, words);
        return;
    }
    if (judge_greeting(session, answer, words))
        return;
    bool refused = curl_failure_refused_certificate(result, session->result.curl_error);
    if (refused)
        result = CURLE_SSL_CLIENTCERT;
    if (result == CURLE_WRITE_ERROR)
        result = CURLE_WEIRD_SERVER_REPLY; /* it was us who did not want to read more */
    buffer_printf(&words->code, "curl:%d", (int)result);
    tell_lost(session, result, words);
    if (session->stage == SMTP_ANSWER)
        answer->outcome = OUTCOME_IN_DOUBT;
    else if (session->result.starved || session->result.unset || result == CURLE_OUT_OF_MEMORY ||
             result == CURLE_FAILED_INIT)
        answer->attempted = false;
    else if (refused || result == CURLE_SSL_CERTPROBLEM || result == CURLE_SSL_CACERT_BADFILE ||
             result == CURLE_USE_SSL_FAILED || result == CURLE_LOGIN_DENIED)
        answer->outcome = OUTCOME_BLOCKED;
}

static void judge(const struct smtp_session *session, struct answer *answer, struct words *words)
{
    switch (session->result.end) {
    case SMTP_END_REPLY:
        judge_reply(session, answer, words);
        break;
    case SMTP_END_LOST:
        judge_lost(session, answer, words);
        break;
    case SMTP_END_NO_UTF8:
        answer->outcome = OUTCOME_PERMANENT;
        buffer_append(&words->code, SLICE("insist:smtputf8"));
        buffer_append(&words->text, SLICE("an address has letters beyond ASCII, and the server does not offer SMTPUTF8"));
        break;
    }
}

/* --- deliveries -------------------------------------------------------------------------------- */

static void delivery_free(struct delivery *delivery)
{
    delivery->smtp->open--;
    smtp_session_release(&delivery->session);
    if (delivery->has_message)
        smtp_message_release(&delivery->message);
    buffer_release(&delivery->bearer);
    free(delivery);
}

static bool delivery_can_rest(const struct delivery *delivery)
{
    return smtp_session_can_rest(&delivery->session) && delivery->generation == delivery->smtp->generation &&
           delivery->smtp->idle_count < IDLE_SESSIONS_MAX;
}

/* The connection is put to rest, or closed, before the caller hears: it may start the next send at once. */
static void report(struct delivery *delivery, struct answer *answer, struct words *words, bool may_rest)
{
    struct smtp_transport *smtp = delivery->smtp;
    struct send *send = delivery->send;
    words_tell(words, delivery->started_ns, answer);
    send->transport = NULL;
    delivery->send = NULL;
    if (may_rest && delivery_can_rest(delivery)) {
        smtp_message_release(&delivery->message);
        delivery->has_message = false;
        smtp_session_rest(&delivery->session);
        delivery->next = smtp->idle;
        smtp->idle = delivery;
        smtp->idle_count++;
    } else {
        delivery_free(delivery);
    }
    send->done(send, answer);
    words_release(words);
}

static void delivery_begin(struct delivery *delivery);

/* A token may be refused before its time: another is fetched, once. True: that is under way. */
static bool token_renew(struct delivery *delivery)
{
    const struct smtp_session *session = &delivery->session;
    bool denied = session->result.end == SMTP_END_LOST && !session->connected &&
                  (session->result.failure == CURLE_LOGIN_DENIED || session->result.failure == CURLE_AUTH_ERROR);
    bool late = clock_ticks_ns() - delivery->started_ns > RENEW_WITHIN_MS * INT64_C(1000000);
    if (!denied || late || delivery->renewed || !session->destination->oauth2.token_url)
        return false;
    delivery->renewed = true;
    oauth_refused(delivery->smtp->oauth, session->destination, delivery->token);
    smtp_session_reset(&delivery->session);
    delivery_begin(delivery);
    return true;
}

static void on_done(struct smtp_session *session)
{
    struct delivery *delivery = (struct delivery *)session;
    if (token_renew(delivery))
        return;
    struct answer answer = { .attempted = true, .retry_after_ms = -1 };
    struct words words;
    words_init(&words);
    judge(session, &answer, &words);
    report(delivery, &answer, &words, true);
}

static void idle_remove(struct delivery *delivery)
{
    struct delivery **link = &delivery->smtp->idle;
    while (*link != delivery)
        link = &(*link)->next;
    *link = delivery->next;
    delivery->smtp->idle_count--;
}

static void on_gone(struct smtp_session *session)
{
    struct delivery *delivery = (struct delivery *)session;
    idle_remove(delivery);
    delivery_free(delivery);
}

static void on_connected(void *private_data, CURLcode result)
{
    smtp_session_connected(private_data, result);
}

static void idle_close(struct smtp_transport *smtp)
{
    while (smtp->idle)
        on_gone(&smtp->idle->session);
}

/* --- starting ---------------------------------------------------------------------------------- */

static struct delivery *idle_take(struct smtp_transport *smtp, const struct send *send)
{
    for (struct delivery *delivery = smtp->idle; delivery; delivery = delivery->next)
        if (delivery->session.destination == send->destination && delivery->session.fallback == send->use_fallback) {
            idle_remove(delivery);
            return delivery;
        }
    return NULL;
}

/* Closes the connection that has been at rest for longest; false: none is. */
static bool idle_make_room(struct smtp_transport *smtp)
{
    struct delivery *last = smtp->idle;
    while (last && last->next)
        last = last->next;
    if (last)
        on_gone(&last->session);
    return last != NULL;
}

/*
 * A connection at rest, or a new one. A send opens one only where none of its destination's rests, so a server never has
 * more than were under way to it at one time.
 */
static struct delivery *delivery_get(struct smtp_transport *smtp, const struct send *send)
{
    struct delivery *delivery = idle_take(smtp, send);
    if (delivery)
        return delivery;
    delivery = calloc(1, sizeof *delivery);
    if (!delivery)
        return NULL;
    if (smtp->open >= smtp->open_max && !idle_make_room(smtp))
        error_set(&delivery->failure, STATUS_FULL, "all %zu connections are in use", smtp->open_max);
    smtp->open++; /* one that failed so lives until it is reported */
    delivery->smtp = smtp;
    delivery->generation = smtp->generation;
    if (!smtp_session_init(&delivery->session, &smtp->loop)) {
        delivery_free(delivery);
        return NULL;
    }
    delivery->session.destination = send->destination;
    delivery->session.fallback = send->use_fallback;
    buffer_init(&delivery->bearer, TOKEN_BYTES_MAX);
    delivery->session.done = on_done;
    delivery->session.gone = on_gone;
    return delivery;
}

/* A send that could not begin is still answered from the loop, never from inside start. */
static void on_unstarted(UNUSED evutil_socket_t fd, UNUSED short what, void *context)
{
    struct smtp_transport *smtp = context;
    while (smtp->unstarted) {
        struct delivery *delivery = smtp->unstarted;
        struct answer answer = { .retry_after_ms = -1 };
        struct words words;
        smtp->unstarted = delivery->next;
        words_init(&words);
        unstarted_judge(&delivery->failure, "insist:message", "INVALID_MESSAGE", &answer, &words);
        report(delivery, &answer, &words, false);
    }
    starved_answer_all(&smtp->starved);
}

static void fail_unstarted(struct delivery *delivery)
{
    delivery->next = delivery->smtp->unstarted;
    delivery->smtp->unstarted = delivery;
    event_active(delivery->smtp->unstarted_event, EV_TIMEOUT, 0);
}

static void on_token(struct oauth_wait *wait, const struct answer *failure)
{
    struct delivery *delivery = (struct delivery *)((char *)wait - offsetof(struct delivery, wait));
    struct words words;
    if (!failure) {
        delivery_begin(delivery);
        return;
    }
    struct answer answer = *failure;
    words_init(&words);
    buffer_append(&words.code, failure->code);
    buffer_append(&words.text, failure->text);
    report(delivery, &answer, &words, false);
}

/* False: it is waited for, or there is no use in that. */
static bool token_get(struct delivery *delivery)
{
    struct oauth *oauth = delivery->smtp->oauth;
    const struct destination_config *destination = delivery->session.destination;
    const char *bearer = oauth_bearer(oauth, destination, &delivery->token);
    if (bearer) {
        buffer_clear(&delivery->bearer);
        buffer_append_text(&delivery->bearer, bearer);
        buffer_append_byte(&delivery->bearer, '\0');
        delivery->session.bearer = delivery->bearer.data;
        if (buffer_status(&delivery->bearer) == STATUS_OK)
            return true;
    }
    if (++delivery->waits > TOKEN_WAITS_MAX)
        error_set(&delivery->failure, STATUS_UNSUPPORTED, "access tokens expire before they can be used");
    else if (oauth_wait(oauth, destination, &delivery->wait))
        return false;
    else
        error_set(&delivery->failure, STATUS_NO_MEMORY, "no memory to wait for an access token");
    fail_unstarted(delivery);
    return false;
}

/* A connection at rest has logged in. */
static void delivery_begin(struct delivery *delivery)
{
    bool logs_in = delivery->session.destination->oauth2.token_url && !delivery->session.connected;
    if (!logs_in || token_get(delivery))
        smtp_session_deliver(&delivery->session, &delivery->message);
}

static void smtp_start(struct transport *transport, struct send *send)
{
    struct smtp_transport *smtp = (struct smtp_transport *)transport;
    const struct job *job = send->job;
    struct delivery *delivery = delivery_get(smtp, send);
    assert(job->step == STEP_SEND); /* the configuration allows no questions */
    send->transport = delivery;
    if (!delivery) {
        send->next = smtp->starved;
        smtp->starved = send;
        event_active(smtp->unstarted_event, EV_TIMEOUT, 0);
        return;
    }
    delivery->send = send;
    delivery->started_ns = clock_ticks_ns();
    delivery->wait = (struct oauth_wait){ .done = on_token };
    delivery->waits = 0;
    delivery->renewed = false;
    struct smtp_source source = { .destination = send->destination, .tenant = job->tenant, .id = job->id,
                                  .payload = job->payload, .metadata = job->metadata, .headers = job->headers,
                                  .created_at = job->created_at };
    enum status status = delivery->failure.status;
    if (status == STATUS_OK)
        status = smtp_message_make(&source, &delivery->message, &delivery->failure);
    delivery->failure.status = status;
    delivery->has_message = status == STATUS_OK;
    if (status == STATUS_OK)
        delivery_begin(delivery);
    else
        fail_unstarted(delivery);
}

static void smtp_abort(struct transport *transport, struct send *send)
{
    struct smtp_transport *smtp = (struct smtp_transport *)transport;
    struct delivery *delivery = send->transport;
    struct answer answer = { .retry_after_ms = -1 };
    struct words words;
    if (!delivery) {
        starved_abort(&smtp->starved, send);
        return;
    }
    if (delivery->wait.token)
        oauth_leave(&delivery->wait);
    for (struct delivery **link = &smtp->unstarted; *link; link = &(*link)->next)
        if (*link == delivery) {
            *link = delivery->next;
            break;
        }
    answer.attempted = delivery->session.stage == SMTP_ANSWER;
    answer.outcome = answer.attempted ? OUTCOME_IN_DOUBT : OUTCOME_NONE;
    words_interrupted(&words);
    report(delivery, &answer, &words, false);
}

static void smtp_forget(struct transport *transport)
{
    struct smtp_transport *smtp = (struct smtp_transport *)transport;
    smtp->generation++;
    idle_close(smtp);
    oauth_forget(smtp->oauth);
}

static void smtp_free(struct transport *transport)
{
    struct smtp_transport *smtp = (struct smtp_transport *)transport;
    idle_close(smtp);
    curl_loop_release(&smtp->loop);
    oauth_free(smtp->oauth);
    if (smtp->unstarted_event)
        event_free(smtp->unstarted_event);
    curl_global_cleanup();
    free(smtp);
}

static const struct transport_ops smtp_ops = {
    .name = "smtp", .start = smtp_start, .abort = smtp_abort, .forget = smtp_forget, .free = smtp_free,
};

enum status smtp_transport_new(struct event_base *loop, long connections_max, struct transport **ret_transport,
                               struct error *err)
{
    struct smtp_transport *smtp = calloc(1, sizeof *smtp);
    if (!smtp || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        free(smtp);
        return error_set(err, STATUS_NO_MEMORY, "no memory for the SMTP transport");
    }
    smtp->transport.ops = &smtp_ops;
    smtp->unstarted_event = event_new(loop, -1, 0, on_unstarted, smtp);
    enum status status = curl_loop_init(&smtp->loop, loop, on_connected) && smtp->unstarted_event
                             ? oauth_new(loop, &smtp->oauth, err)
                             : error_set(err, STATUS_NO_MEMORY, "no memory for the SMTP transport");
    if (status != STATUS_OK) {
        smtp_free(&smtp->transport);
        return status;
    }
    smtp->open_max = (size_t)connections_max;
    curl_multi_setopt(smtp->loop.multi, CURLMOPT_MAXCONNECTS, connections_max);
    *ret_transport = &smtp->transport;
    return STATUS_OK;
}
