#include "transport/http/probe.h"

#include "transport/address.h"
#include "transport/curl_loop.h"
#include "transport/curl_send.h"

#include <assert.h>
#include <curl/curl.h>
#include <event2/event.h>
#include <stdlib.h>
#include <sys/socket.h>

/* One probe and its request. */
struct question {
    struct prober *prober;
    struct probe *probe;
    CURL *curl; /* NULL: it could not even begin */
    struct curl_slist *headers;
    struct buffer body;
    bool unset;       /* there was no memory for an option: it must not be asked */
    int64_t greeting; /* of SMTP: the reply's code; 0: none yet */
    struct question *next, **link; /* in prober->questions */
};

struct prober {
    struct curl_loop loop;
    struct event *unstarted_event; /* some could not begin */
    struct question *questions;
    struct probe *starved; /* there was no memory for a question */
};

static void question_end(struct question *question, const struct health_answer *answer)
{
    struct probe *probe = question->probe;
    *question->link = question->next;
    if (question->next)
        question->next->link = question->link;
    if (question->curl) {
        curl_multi_remove_handle(question->prober->loop.multi, question->curl);
        curl_easy_cleanup(question->curl);
    }
    probe->done(probe, answer);
    curl_slist_free_all(question->headers);
    buffer_release(&question->body);
    free(question);
}

static const struct health_answer nothing = { .body = { "", 0 } };

static void question_lost(struct question *question)
{
    question_end(question, &nothing);
}

static void answer_starved(struct prober *prober)
{
    while (prober->starved) {
        struct probe *probe = prober->starved;
        prober->starved = probe->next;
        probe->done(probe, &nothing);
    }
}

/* ---- libcurl's callbacks ---- */

static size_t on_body(char *data, size_t size, size_t count, void *context)
{
    struct question *question = context;
    buffer_append(&question->body, (struct slice){ data, size * count });
    return buffer_status(&question->body) == STATUS_OK ? size * count : 0; /* enough was seen */
}

static size_t on_header(char *data, size_t size, size_t count, void *context)
{
    struct question *question = context;
    struct slice line = { data, size * count };
    int64_t code;
    if (question->greeting == 0 && line.len >= 3 && slice_to_int64((struct slice){ line.data, 3 }, &code))
        question->greeting = code;
    return size * count;
}

static curl_socket_t on_open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    const struct destination_config *destination = ((struct question *)context)->probe->destination;
    bool any = destination->allow_private || destination->proxy;
    if (purpose == CURLSOCKTYPE_IPCXN && !any && address_is_private(&address->addr))
        return CURL_SOCKET_BAD;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static void finish(void *private_data, CURLcode result)
{
    struct question *question = private_data;
    enum health_kind kind = question->probe->destination->health.kind;
    long status = 0;
    curl_off_t latency_us = 0;
    curl_easy_getinfo(question->curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(question->curl, CURLINFO_TOTAL_TIME_T, &latency_us);
    if (kind == HEALTH_SMTP)
        status = (long)question->greeting; /* what follows the greeting says nothing more */
    bool whole = result == CURLE_OK || result == CURLE_WRITE_ERROR || (kind == HEALTH_SMTP && status > 0);
    struct health_answer answer = {
        .connected = whole,
        .status = whole ? status : 0,
        .latency_ms = latency_us / 1000,
        .body = buffer_slice(&question->body),
    };
    question_end(question, &answer);
}

/* ---- asking ---- */

static void set_text(struct question *question, CURLoption option, const char *text)
{
    curl_set_text(question->curl, option, text, &question->unset);
}

static void add_header(struct question *question, const char *name, const char *value)
{
    struct buffer line = buffer_up_to(64 * 1024);
    buffer_printf(&line, "%s: %s", name, value);
    struct curl_slist *longer =
        buffer_status(&line) == STATUS_OK ? curl_slist_append(question->headers, line.data) : NULL;
    buffer_release(&line);
    if (longer)
        question->headers = longer;
    else
        question->unset = true;
}

/* A connection is asked for under the name of a protocol that libcurl knows. */
static void set_url(struct question *question, const struct health_config *health)
{
    static const char tcp[] = "tcp://";
    struct buffer url = buffer_up_to(64 * 1024);
    bool connects = health->kind == HEALTH_TCP || health->kind == HEALTH_SMTP;
    if (connects)
        curl_easy_setopt(question->curl, CURLOPT_CONNECT_ONLY, 1L);
    if (!slice_has_prefix(slice_from(health->url), SLICE("tcp://"))) {
        set_text(question, CURLOPT_URL, health->url);
        return;
    }
    buffer_printf(&url, "%s://%s", health->kind == HEALTH_SMTP ? "smtp" : "http", health->url + sizeof tcp - 1);
    if (buffer_status(&url) == STATUS_OK)
        set_text(question, CURLOPT_URL, url.data);
    else
        question->unset = true;
    buffer_release(&url);
}

static void set_options(struct question *question)
{
    CURL *curl = question->curl;
    const struct destination_config *destination = question->probe->destination;
    const struct health_config *health = &destination->health;
    set_url(question, health);
    set_text(question, CURLOPT_PROTOCOLS_STR, "http,https,smtp,smtps");
    for (size_t i = 0; i < health->headers.count; i++)
        add_header(question, health->headers.items[i].name, health->headers.items[i].value);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, question->headers);
    curl_easy_setopt(curl, CURLOPT_PRIVATE, question);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, question);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, question);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, question);
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(curl, CURLOPT_FRESH_CONNECT, 1L); /* whether a new connection can be made is part of the question */
    curl_easy_setopt(curl, CURLOPT_FORBID_REUSE, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)health->timeout_ms);
    set_text(question, CURLOPT_USERAGENT, "insist/" INSIST_VERSION);
    curl_set_way(curl, destination, &question->unset);
}

/* Those are answered from the loop, never from inside. */
static void on_unstarted(UNUSED evutil_socket_t fd, UNUSED short what, void *context)
{
    struct prober *prober = context;
    for (struct question *question = prober->questions, *next; question; question = next) {
        next = question->next;
        if (question->unset)
            question_lost(question);
    }
    answer_starved(prober);
}

void prober_start(struct prober *prober, struct probe *probe)
{
    struct question *question = calloc(1, sizeof *question);
    assert(probe->destination->health.kind != HEALTH_NONE && probe->destination->health.url);
    if (!question) {
        probe->next = prober->starved;
        prober->starved = probe;
        event_active(prober->unstarted_event, EV_TIMEOUT, 0);
        return;
    }
    *question = (struct question){ .prober = prober, .probe = probe, .next = prober->questions, .link = &prober->questions };
    buffer_init(&question->body, HEALTH_BODY_BYTES_MAX);
    if (question->next)
        question->next->link = &question->next;
    prober->questions = question;
    question->curl = curl_easy_init();
    if (question->curl)
        set_options(question);
    if (!question->curl || question->unset || curl_multi_add_handle(prober->loop.multi, question->curl) != CURLM_OK) {
        question->unset = true;
        event_active(prober->unstarted_event, EV_TIMEOUT, 0);
    }
}

void prober_abort(struct prober *prober)
{
    while (prober->questions)
        question_lost(prober->questions);
    answer_starved(prober);
}

void prober_free(struct prober *prober)
{
    if (!prober)
        return;
    assert(!prober->questions && !prober->starved);
    curl_loop_release(&prober->loop);
    if (prober->unstarted_event)
        event_free(prober->unstarted_event);
    free(prober);
}

enum status prober_new(struct event_base *loop, struct prober **ret_prober, struct error *err)
{
    struct prober *prober = calloc(1, sizeof *prober);
    if (!prober)
        return error_set(err, STATUS_NO_MEMORY, "no memory for health checks");
    prober->unstarted_event = event_new(loop, -1, 0, on_unstarted, prober);
    if (!curl_loop_init(&prober->loop, loop, finish) || !prober->unstarted_event) {
        prober_free(prober);
        return error_set(err, STATUS_NO_MEMORY, "no memory for health checks");
    }
    *ret_prober = prober;
    return STATUS_OK;
}
