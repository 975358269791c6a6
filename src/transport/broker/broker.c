#include "transport/broker/broker.h"

#include "base/clock.h"
#include "transport/curl_send.h"

#include <assert.h>
#include <event2/event.h>
#include <stdlib.h>

enum {
    TICK_MS = 500, /* half of the shortest heartbeat; while there are connections */
    REST_MS = 60 * 1000, /* without a job a connection is closed after that */
    JOB_BYTES_MAX = WIRE_BYTES_MAX,
};

struct broker {
    struct transport transport; /* first */
    const struct broker_protocol *protocol;
    struct event_base *base;
    struct curl_loop loop;
    struct broker_link *links;
    size_t count, connections_max;
    uint64_t generation;             /* of the configuration */
    struct broker_queue unstarted;   /* reported from the loop */
    struct send *starved;            /* likewise, without memory even for an entry */
    struct event *later, *tick;
};

static const struct timeval tick_every = { .tv_usec = TICK_MS * 1000 };

/* ---- Lines of entries. ---- */

static void queue_add(struct broker_queue *queue, struct broker_entry *entry)
{
    entry->next = NULL;
    if (queue->last)
        queue->last->next = entry;
    else
        queue->first = entry;
    queue->last = entry;
}

static bool queue_remove(struct broker_queue *queue, struct broker_entry *entry)
{
    struct broker_entry *before = NULL;
    for (struct broker_entry *at = queue->first; at; before = at, at = at->next) {
        if (at != entry)
            continue;
        if (before)
            before->next = at->next;
        else
            queue->first = at->next;
        if (queue->last == at)
            queue->last = before;
        return true;
    }
    return false;
}

static struct broker_entry *queue_take(struct broker_queue *queue)
{
    struct broker_entry *entry = queue->first;
    if (entry)
        queue_remove(queue, entry);
    return entry;
}

static void entry_free(struct broker_entry *entry)
{
    if (entry->deadline)
        event_free(entry->deadline);
    buffer_release(&entry->why);
    free(entry);
}

/* ---- Answers. ---- */

static void report(struct broker_entry *entry, struct answer *answer, struct words *words)
{
    struct send *send = entry->send;
    words_tell(words, entry->started_ns, answer);
    entry->send = NULL;
    send->transport = NULL;
    send->done(send, answer);
    words_release(words);
}

static void tell(struct broker_entry *entry, enum outcome outcome, struct slice code, struct slice text,
                 struct slice reference)
{
    struct answer answer = { .attempted = true, .outcome = outcome, .retry_after_ms = -1 };
    struct words words;
    if (!entry->send)
        return;
    words_init(&words);
    buffer_append(&words.code, code);
    buffer_append(&words.text, text);
    buffer_append(&words.reference,
                  (struct slice){ reference.data, reference.len < REFERENCE_BYTES_MAX ? reference.len : 0 });
    report(entry, &answer, &words);
}

/* The links are looked over at the loop's next turn: nobody is freed while something of its own is on the way. */
static void look_later(struct broker *broker)
{
    event_active(broker->later, EV_TIMEOUT, 0);
}

void broker_answer(struct broker_link *link, struct broker_entry *entry, enum outcome outcome, struct slice code,
                   struct slice text, struct slice reference)
{
    bool found = queue_remove(&link->written, entry);
    assert(found);
    (void)found;
    link->used_ms = clock_ticks_ms();
    tell(entry, outcome, code, text, reference);
    entry_free(entry);
    if (link->leaving)
        look_later(link->broker);
}

struct broker_entry *broker_first(struct broker_link *link)
{
    return link->written.first;
}

/* Those that wait are answered so; the connection stays. */
static void broker_put_off(struct broker_link *link, struct slice code, struct slice text)
{
    struct broker_queue waiting = link->waiting; /* who is answered may start the next at once */
    struct broker_entry *entry;
    link->waiting = (struct broker_queue){ NULL, NULL };
    while ((entry = queue_take(&waiting))) {
        tell(entry, OUTCOME_NONE, code, text, SLICE(""));
        entry_free(entry);
    }
}

void broker_leave(struct broker_link *link)
{
    link->leaving = true;
    look_later(link->broker);
}

void broker_refuse(struct broker_link *link, bool certain, struct slice code, struct slice text)
{
    struct broker_queue written = link->written;
    struct broker_entry *entry;
    link->written = (struct broker_queue){ NULL, NULL };
    link->ready = false;
    broker_leave(link);
    wire_close(&link->wire);
    while ((entry = queue_take(&written))) {
        bool gone = link->wire.sent > entry->from;
        tell(entry, gone && !certain ? OUTCOME_IN_DOUBT : OUTCOME_NONE, code, text, SLICE(""));
        entry_free(entry);
    }
    broker_put_off(link, code, text);
}

/* ---- The connection. ---- */

static void judge_lost(const struct broker_link *link, CURLcode result, bool gone, struct answer *answer,
                       struct words *words)
{
    const struct wire *wire = &link->wire;
    if (wire->private_address && !gone) {
        private_judge(answer, words);
        return;
    }
    bool refused = curl_failure_refused_certificate(result, wire->curl_error);
    if (refused)
        result = CURLE_SSL_CLIENTCERT;
    buffer_printf(&words->code, "curl:%d", (int)result);
    curl_failure_text(result, result == CURLE_GOT_NOTHING ? "the server closed the connection" : wire->curl_error,
                      &words->text);
    if (gone)
        answer->outcome = OUTCOME_IN_DOUBT;
    else if (wire->starved || wire->unset || result == CURLE_OUT_OF_MEMORY || result == CURLE_FAILED_INIT)
        answer->attempted = false;
    else if (refused || result == CURLE_SSL_CERTPROBLEM || result == CURLE_SSL_CACERT_BADFILE)
        answer->outcome = OUTCOME_BLOCKED;
}

static void tell_lost(struct broker_link *link, struct broker_queue *queue, CURLcode result, bool written)
{
    struct broker_entry *entry;
    while ((entry = queue_take(queue))) {
        struct answer answer = { .attempted = true, .retry_after_ms = -1 };
        struct words words;
        if (entry->send) {
            words_init(&words);
            judge_lost(link, result, written && link->wire.sent > entry->from, &answer, &words);
            report(entry, &answer, &words);
        }
        entry_free(entry);
    }
}

static void on_lost(void *context, CURLcode result)
{
    struct broker_link *link = context;
    struct broker_queue written = link->written, waiting = link->waiting;
    link->written = link->waiting = (struct broker_queue){ NULL, NULL };
    link->ready = false;
    broker_leave(link);
    tell_lost(link, &written, result, true);
    tell_lost(link, &waiting, result, false);
}

static void on_opened(void *context)
{
    struct broker_link *link = context;
    link->broker->protocol->begin(link);
}

static void on_received(void *context, struct slice bytes)
{
    struct broker_link *link = context;
    link->broker->protocol->received(link, bytes);
}

static const struct wire_events wire_events = { .opened = on_opened, .received = on_received, .lost = on_lost };

void broker_give(struct broker_link *link, struct slice bytes)
{
    if (link->wire.curl && !wire_give(&link->wire, bytes)) {
        wire_close(&link->wire);
        on_lost(link, CURLE_OUT_OF_MEMORY);
    }
}

/* False: `failure` says why, and it waits in nobody's line. */
static bool entry_write(struct broker_link *link, struct broker_entry *entry)
{
    struct buffer out = buffer_up_to(JOB_BYTES_MAX);
    enum status status = link->broker->protocol->write(link, entry, &out, &entry->failure);
    if (status == STATUS_OK && buffer_status(&out) != STATUS_OK)
        status = error_set(&entry->failure, buffer_status(&out), "the job is too long to be sent");
    entry->from = link->wire.given;
    if (status == STATUS_OK && !wire_give(&link->wire, buffer_slice(&out)))
        status = error_set(&entry->failure, STATUS_FULL, "the server takes what it is sent too slowly");
    buffer_release(&out);
    entry->failure.status = status;
    if (status != STATUS_OK)
        return false;
    entry->number = ++link->numbers;
    queue_add(&link->written, entry);
    return true;
}

static void entry_fail(struct broker *broker, struct broker_entry *entry)
{
    event_del(entry->deadline); /* which may be due in the same turn: it has its answer */
    queue_add(&broker->unstarted, entry);
    look_later(broker);
}

void broker_ready(struct broker_link *link)
{
    struct broker_entry *entry;
    link->ready = true;
    while (link->ready && (entry = queue_take(&link->waiting)))
        if (!entry_write(link, entry))
            entry_fail(link->broker, entry);
}

/* ---- Links. ---- */

static void link_free(struct broker_link *link)
{
    struct broker_entry *entry;
    assert(!link->waiting.first);
    while ((entry = queue_take(&link->written))) { /* only places are left */
        assert(!entry->send);
        entry_free(entry);
    }
    link->broker->count--;
    link->broker->protocol->release(link);
    wire_release(&link->wire);
    broker_url_release(&link->url);
    free(link->state);
    free(link);
}

static bool link_has_work(const struct broker_link *link)
{
    for (const struct broker_entry *entry = link->written.first; entry; entry = entry->next)
        if (entry->send)
            return true;
    return link->waiting.first != NULL;
}

static void links_sweep(struct broker *broker)
{
    for (struct broker_link **at = &broker->links; *at;) {
        struct broker_link *link = *at;
        if (!link->leaving || link_has_work(link)) {
            at = &link->next;
            continue;
        }
        *at = link->next;
        link_free(link);
    }
    if (!broker->links)
        event_del(broker->tick);
}

static struct broker_link *link_new(struct broker *broker, const struct send *send, struct error *err)
{
    const char *url = send->use_fallback ? send->destination->fallback_url : send->destination->url;
    if (broker->count >= broker->connections_max) {
        error_set(err, STATUS_FULL, "all %zu connections are in use", broker->connections_max);
        return NULL;
    }
    struct broker_link *link = calloc(1, sizeof *link);
    if (!link) {
        error_set(err, STATUS_NO_MEMORY, "no memory for a connection");
        return NULL;
    }
    *link = (struct broker_link){ .broker = broker, .destination = send->destination, .fallback = send->use_fallback,
                                  .generation = broker->generation, .used_ms = clock_ticks_ms() };
    broker->count++;
    link->state = calloc(1, broker->protocol->state_bytes);
    bool made = wire_init(&link->wire, &broker->loop, &wire_events, link) && link->state &&
                (broker->links || event_add(broker->tick, &tick_every) == 0);
    if (!made || !broker_url_read(&broker->protocol->scheme, url, link->destination->username, link->destination->password,
                                  &link->url)) {
        error_set(err, made ? STATUS_UNSUPPORTED : STATUS_NO_MEMORY, "the url is not one that can be connected to");
        link_free(link);
        return NULL;
    }
    link->next = broker->links;
    broker->links = link;
    wire_open(&link->wire, link->destination, link->url.connect);
    return link;
}

static struct broker_link *link_of(struct broker *broker, const struct send *send, struct error *err)
{
    for (struct broker_link *link = broker->links; link; link = link->next)
        if (link->destination == send->destination && link->fallback == send->use_fallback && !link->leaving &&
            link->generation == broker->generation)
            return link;
    return link_new(broker, send, err);
}

/* ---- Sends. ---- */

/* One that is late costs the connection its next jobs: who does not answer one may not answer others. */
static void on_deadline(UNUSED evutil_socket_t fd, UNUSED short what, void *context)
{
    struct broker_entry *entry = context;
    struct broker_link *link = entry->link;
    bool waited = queue_remove(&link->waiting, entry);
    broker_leave(link);
    tell(entry, waited ? OUTCOME_NONE : OUTCOME_IN_DOUBT, SLICE("curl:28"),
         waited ? SLICE("TIMEOUT - no connection that takes jobs in time (nothing was sent)")
                : SLICE("TIMEOUT - no answer in time (the job was sent)"),
         SLICE(""));
    if (waited)
        entry_free(entry);
}

static struct broker_entry *entry_new(struct broker *broker, struct send *send)
{
    struct broker_entry *entry = calloc(1, sizeof *entry);
    if (!entry)
        return NULL;
    *entry = (struct broker_entry){ .send = send, .started_ns = clock_ticks_ns() };
    buffer_init(&entry->why, 1024);
    entry->deadline = event_new(broker->base, -1, 0, on_deadline, entry);
    if (entry->deadline)
        return entry;
    entry_free(entry);
    return NULL;
}

static void broker_start(struct transport *transport, struct send *send)
{
    struct broker *broker = (struct broker *)transport;
    struct broker_entry *entry = entry_new(broker, send);
    int64_t timeout_ms = send->destination->timeout_ms;
    struct timeval wait = { .tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000 };
    assert(send->job->step == STEP_SEND); /* the configuration allows no questions */
    send->transport = entry;
    if (!entry) {
        send->next = broker->starved;
        broker->starved = send;
        look_later(broker);
        return;
    }
    entry->link = link_of(broker, send, &entry->failure);
    if (!entry->link) {
        entry_fail(broker, entry);
        return;
    }
    entry->link->used_ms = clock_ticks_ms();
    event_add(entry->deadline, &wait);
    if (!entry->link->ready)
        queue_add(&entry->link->waiting, entry);
    else if (!entry_write(entry->link, entry))
        entry_fail(broker, entry);
}

static void broker_abort(struct transport *transport, struct send *send)
{
    struct broker *broker = (struct broker *)transport;
    struct broker_entry *entry = send->transport;
    struct answer answer = { .retry_after_ms = -1 };
    struct words words;
    if (!entry) {
        starved_abort(&broker->starved, send);
        return;
    }
    event_del(entry->deadline);
    bool unsent = queue_remove(&broker->unstarted, entry) || queue_remove(&entry->link->waiting, entry);
    answer.attempted = !unsent;
    answer.outcome = unsent ? OUTCOME_NONE : OUTCOME_IN_DOUBT;
    words_interrupted(&words);
    report(entry, &answer, &words);
    if (unsent)
        entry_free(entry); /* else its place stays until its answer comes */
}

/* Sends that never began are answered from the loop, never from inside start; links that are done with go. */
static void on_later(UNUSED evutil_socket_t fd, UNUSED short what, void *context)
{
    struct broker *broker = context;
    struct broker_entry *entry;
    while ((entry = queue_take(&broker->unstarted))) {
        struct answer answer = { .retry_after_ms = -1 };
        struct words words;
        words_init(&words);
        if (entry->failure.status == STATUS_BUSY) { /* the server said so: it waits, and nothing was sent */
            answer.attempted = true;
            buffer_printf(&words.code, "%s:blocked", broker->protocol->name);
            buffer_append_text(&words.text, entry->failure.text);
        } else {
            unstarted_judge(&entry->failure, "insist:message", "INVALID_MESSAGE", &answer, &words);
        }
        report(entry, &answer, &words);
        entry_free(entry);
    }
    starved_answer_all(&broker->starved);
    links_sweep(broker);
}

static void on_tick(UNUSED evutil_socket_t fd, UNUSED short what, void *context)
{
    struct broker *broker = context;
    int64_t now = clock_ticks_ms();
    for (struct broker_link *link = broker->links; link; link = link->next) {
        if (link->ready && broker->protocol->tick) /* one that leaves, too: it may have jobs without an answer */
            broker->protocol->tick(link, now);
        if (!link_has_work(link) && now - link->used_ms > REST_MS)
            link->leaving = true;
    }
    links_sweep(broker);
}

static void broker_forget(struct transport *transport)
{
    struct broker *broker = (struct broker *)transport;
    broker->generation++;
    for (struct broker_link *link = broker->links; link; link = link->next)
        link->leaving = true;
    links_sweep(broker);
}

static void broker_free(struct transport *transport)
{
    struct broker *broker = (struct broker *)transport;
    while (broker->links) {
        struct broker_link *next = broker->links->next;
        link_free(broker->links);
        broker->links = next;
    }
    curl_loop_release(&broker->loop);
    if (broker->later)
        event_free(broker->later);
    if (broker->tick)
        event_free(broker->tick);
    curl_global_cleanup();
    free(broker);
}

static const struct transport_ops broker_ops = {
    .name = "broker", .start = broker_start, .abort = broker_abort, .forget = broker_forget, .free = broker_free,
};

enum status broker_new(struct event_base *loop, const struct broker_protocol *protocol, size_t connections_max,
                       struct transport **ret_transport, struct error *err)
{
    struct broker *broker = calloc(1, sizeof *broker);
    if (!broker || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        free(broker);
        return error_set(err, STATUS_NO_MEMORY, "no memory for the transport %s", protocol->name);
    }
    *broker = (struct broker){ .transport.ops = &broker_ops, .protocol = protocol, .base = loop,
                               .connections_max = connections_max };
    broker->later = event_new(loop, -1, 0, on_later, broker);
    broker->tick = event_new(loop, -1, EV_PERSIST, on_tick, broker);
    if (!curl_loop_init(&broker->loop, loop, wire_connected) || !broker->later || !broker->tick) {
        broker_free(&broker->transport);
        return error_set(err, STATUS_NO_MEMORY, "no memory for the transport %s", protocol->name);
    }
    *ret_transport = &broker->transport;
    return STATUS_OK;
}
