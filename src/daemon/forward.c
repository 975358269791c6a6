#include "daemon/forward.h"

#include "base/clock.h"
#include "base/log.h"

#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    CONNECT_MS_MAX = 2000,
    SILENT_MS_MAX = 6000, /* of the other machine's network: who is silent for longer is taken for dead by the store too */
    BEGIN_MS_MAX = 15000, /* an owner that needs longer for an order is not well, though it beats */
    REUSED_S_MAX = 30,    /* of rest: after a minute the other end closes a connection, perhaps while it is written to */
    ANSWER_S_MAX = 90,    /* whatever is the matter: a worker may wait for 60 */
    POLL_MS = 1000,
    SWEEP_MS = 250,   /* while something is under way */
    ORDERS_ONE_IN = 4, /* of the calls under way is for those that do not wait for work */
    SMALL_BYTES = 64 << 10,  /* an answer takes so much whatever is held: what people ask for waits for no worker's jobs */
    SLOWEST_BYTES_A_MS = 1024, /* nodes are near each other; who is slower could keep the memory for as long as it likes */
    LOG_EVERY_MS = 10000,
    LEASED_BYTES = 64 << 20, /* that an answer to a worker may have before its last job */
    ESCAPED_MOST = 8,        /* bytes of an answer for a byte of a payload, and more */
};

struct forwarder {
    struct forwarder_settings settings;
    CURLM *multi;
    pthread_t thread;
    bool running;
    atomic_bool stopping, abandoned; /* the latter: somebody does not want an answer any more */
    atomic_size_t calls, waiting;    /* under way; of these, that wait for work */
    pthread_mutex_t lock;
    struct forward *first; /* that were given, under the lock */
    /* The thread's own: */
    struct forward *out;
    size_t held;              /* bytes of answers that are not complete */
    struct forward *favoured; /* which goes on whatever is held, or nobody would ever be through; NULL: none */
    int64_t swept_ms, logged_ms;
};

static void run_done(struct message *message)
{
    struct forward *forward = message_of(message, MESSAGE_FORWARD);
    forward->done(forward);
}

static void forward_end(struct forwarder *forwarder, struct forward *forward)
{
    atomic_fetch_sub(&forwarder->calls, 1);
    if (forward->wait_s > 0)
        atomic_fetch_sub(&forwarder->waiting, 1);
    mailbox_post(forward->reply_to, &forward->message, MESSAGE_FORWARD, run_done);
}

/* It is not begun, or will not be answered any more. */
static void forward_fail(struct forwarder *forwarder, struct forward *forward, const char *failure)
{
    forward->answer.status = 0;
    snprintf(forward->answer.failure, sizeof forward->answer.failure, "%s", failure);
    buffer_release(&forward->answer.body);
    forward_end(forwarder, forward);
}

/* ---- what libcurl calls ---- */

/* Others are behind the one that is favoured. */
static bool has_memory(struct forwarder *forwarder, struct forward *forward, size_t bytes)
{
    if (forward->answer.body.len + bytes <= SMALL_BYTES ||
        forwarder->held + bytes <= forwarder->settings.answers_bytes_max)
        return true;
    if (!forwarder->favoured)
        forwarder->favoured = forward;
    return forwarder->favoured == forward;
}

static size_t on_body(char *data, size_t size, size_t count, void *context)
{
    struct forward *forward = context;
    struct forwarder *forwarder = forward->forwarder;
    size_t bytes = size * count, before = forward->answer.body.len;
    if (forward->begun_ms == 0)
        forward->begun_ms = clock_ticks_ms();
    forward->too_long = before + bytes > forwarder->settings.answer_bytes_max;
    if (forward->too_long)
        return 0;
    if (!has_memory(forwarder, forward, bytes)) {
        forward->paused_ms = clock_ticks_ms();
        return CURL_WRITEFUNC_PAUSE;
    }
    buffer_append(&forward->answer.body, (struct slice){ data, bytes });
    forwarder->held += forward->answer.body.len - before;
    return buffer_status(&forward->answer.body) == STATUS_OK ? bytes : 0;
}

static size_t on_header(char *data, size_t size, size_t count, void *context)
{
    static const char retry_after[] = "retry-after:";
    struct forward *forward = context;
    if (count > sizeof retry_after && strncasecmp(data, retry_after, sizeof retry_after - 1) == 0)
        forward->answer.retry_after_s = atoi(data + sizeof retry_after - 1); /* CR LF stands behind it */
    return size * count;
}

/*
 * When a reused connection ends before the answer, libcurl sends the request again on a new one. The owner may have carried
 * out the first; only a question may be repeated.
 */
static int on_sending(void *context, char *remote, char *local, int remote_port, int local_port)
{
    struct forward *forward = context;
    (void)remote;
    (void)local;
    (void)remote_port;
    (void)local_port;
    forward->repeated = forward->sent && strcmp(forward->method, "GET") != 0;
    forward->sent = true;
    return forward->repeated ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

/* A machine that is gone closes nothing. Where an option is not known, the call lasts as long as any. */
static int on_socket(void *context, curl_socket_t fd, curlsocktype purpose)
{
    const int on = 1, idle_s = SILENT_MS_MAX / 2000, every_s = 1, silent_ms = SILENT_MS_MAX;
    (void)context;
    (void)purpose;
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof every_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silent_ms, sizeof silent_ms);
    return CURL_SOCKOPT_OK;
}

/* ---- beginning ---- */

static bool headers_make(const struct forward *forward, struct curl_slist **ret_headers)
{
    struct curl_slist *headers = NULL;
    for (size_t i = 0; i < sizeof forward->headers / sizeof *forward->headers; i++) {
        struct curl_slist *more = forward->headers[i] ? curl_slist_append(headers, forward->headers[i]) : headers;
        if (!more && forward->headers[i]) {
            curl_slist_free_all(headers);
            return false;
        }
        headers = more;
    }
    *ret_headers = headers;
    return true;
}

static void options_set(CURL *curl, struct forward *forward, struct curl_slist *headers)
{
    curl_easy_setopt(curl, CURLOPT_URL, forward->url);
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L); /* a job may be called ".." */
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, forward->method);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    if (forward->body.len > 0) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)forward->body.len);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, forward->body.data);
    }
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, forward);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, forward);
    curl_easy_setopt(curl, CURLOPT_PRIVATE, forward);
    curl_easy_setopt(curl, CURLOPT_SOCKOPTFUNCTION, on_socket);
    curl_easy_setopt(curl, CURLOPT_PREREQFUNCTION, on_sending);
    curl_easy_setopt(curl, CURLOPT_PREREQDATA, forward);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS_MAX);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)ANSWER_S_MAX);
    curl_easy_setopt(curl, CURLOPT_MAXAGE_CONN, (long)REUSED_S_MAX);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
}

static void forward_begin(struct forwarder *forwarder, struct forward *forward)
{
    bool stopping = atomic_load(&forwarder->stopping);
    CURL *curl = stopping ? NULL : curl_easy_init();
    struct curl_slist *headers = NULL;
    if (!curl || !headers_make(forward, &headers)) {
        curl_easy_cleanup(curl);
        forward_fail(forwarder, forward, stopping ? "this one is stopping" : "no memory");
        return;
    }
    options_set(curl, forward, headers);
    forward->curl = curl;
    forward->sent_headers = headers;
    forward->forwarder = forwarder;
    forward->asked_ms = clock_ticks_ms();
    if (curl_multi_add_handle(forwarder->multi, curl) != CURLM_OK) {
        curl_slist_free_all(headers);
        curl_easy_cleanup(curl);
        forward_fail(forwarder, forward, "no memory");
        return;
    }
    forward->next = forwarder->out;
    forwarder->out = forward;
}

static void begin_given(struct forwarder *forwarder)
{
    pthread_mutex_lock(&forwarder->lock);
    struct forward *given = forwarder->first;
    forwarder->first = NULL;
    pthread_mutex_unlock(&forwarder->lock);
    while (given) {
        struct forward *forward = given;
        given = forward->next;
        forward_begin(forwarder, forward);
    }
}

/* ---- ending ---- */

static void unpause_all(struct forwarder *forwarder)
{
    for (struct forward *forward = forwarder->out; forward; forward = forward->next)
        if (forward->paused_ms != 0) {
            forward->begun_ms += clock_ticks_ms() - forward->paused_ms;
            forward->paused_ms = 0; /* it may be again at once */
            curl_easy_pause(forward->curl, CURLPAUSE_CONT);
        }
}

static void forward_take_out(struct forwarder *forwarder, struct forward *forward)
{
    struct forward **link = &forwarder->out;
    while (*link != forward)
        link = &(*link)->next;
    *link = forward->next;
    forwarder->held -= forward->answer.body.len;
    if (forwarder->favoured == forward)
        forwarder->favoured = NULL;
    forward->answer.reached = forward->sent;
    curl_multi_remove_handle(forwarder->multi, forward->curl);
    curl_slist_free_all(forward->sent_headers);
    curl_easy_cleanup(forward->curl);
    unpause_all(forwarder);
}

/* Once for many: a hundred clients may ask a node that is gone. */
static void tell(struct forwarder *forwarder, const struct forward *forward, const char *failure)
{
    int64_t now = clock_ticks_ms();
    if (forwarder->logged_ms != 0 && now - forwarder->logged_ms < LOG_EVERY_MS)
        return;
    forwarder->logged_ms = now;
    log_event(LOG_WARN, "node_not_reached", FIELD_CSTR("node", forward->to.node), FIELD_CSTR("url", forward->to.url),
              FIELD_CSTR("error", failure),
              FIELD_CSTR("advice", "node.url in its configuration is where others reach it, and it must listen there"));
}

static void finish(struct forwarder *forwarder, const CURLMsg *message)
{
    struct forward *forward;
    long status = 0;
    const char *type = NULL;
    CURLcode result = message->data.result;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &forward);
    if (result == CURLE_OK) {
        curl_easy_getinfo(message->easy_handle, CURLINFO_RESPONSE_CODE, &status);
        curl_easy_getinfo(message->easy_handle, CURLINFO_CONTENT_TYPE, &type);
    }
    forward->answer.status = (int)status;
    snprintf(forward->answer.content_type, sizeof forward->answer.content_type, "%s", type ? type : "");
    forward_take_out(forwarder, forward);
    if (result == CURLE_OK) {
        forward_end(forwarder, forward);
        return;
    }
    if (forward->repeated)
        result = CURLE_GOT_NOTHING;
    const char *failure = forward->too_long ? "its answer is too long" : curl_easy_strerror(result);
    tell(forwarder, forward, failure);
    forward_fail(forwarder, forward, failure);
}

/* NULL: it may go on. */
static const char *lateness(const struct forwarder *forwarder, const struct forward *forward, int64_t now)
{
    const struct forwarder_settings *settings = &forwarder->settings;
    int64_t carried_ms = (int64_t)forward->answer.body.len / SLOWEST_BYTES_A_MS;
    if (forward->begun_ms == 0)
        return now - forward->asked_ms > settings->begin_ms_max + forward->wait_s * 1000 ? "no answer in time" : NULL;
    if (forward->paused_ms != 0)
        return NULL;
    return now - forward->begun_ms > settings->stall_ms_max + carried_ms ? "its answer came to a halt" : NULL;
}

/* NULL: somebody waits for it, from a node that is there and in time. */
static const char *reason_to_end(const struct forwarder *forwarder, const struct forward *forward, int64_t now)
{
    if (!forwarder->settings.lives(forwarder->settings.context, forward->to.session))
        return "the node is gone";
    return atomic_load(&forward->abandoned) ? "nobody waits for it" : lateness(forwarder, forward, now);
}

/*
 * Those for whom nobody waits any more, whose owner hears of it by the end of the connection and leases nothing; those
 * whose node has ended: another has, or will have, what it owned; and those whose node beats, but does not answer.
 */
static void sweep(struct forwarder *forwarder)
{
    struct forward *next;
    int64_t now = clock_ticks_ms();
    if (!atomic_exchange(&forwarder->abandoned, false) && now - forwarder->swept_ms < SWEEP_MS)
        return;
    forwarder->swept_ms = now;
    for (struct forward *forward = forwarder->out; forward; forward = next) {
        next = forward->next;
        const char *reason = reason_to_end(forwarder, forward, now);
        if (!reason)
            continue;
        if (!atomic_load(&forward->abandoned))
            tell(forwarder, forward, reason);
        forward_take_out(forwarder, forward);
        forward_fail(forwarder, forward, reason);
    }
}

/* ---- the thread ---- */

static void *forwarder_main(void *context)
{
    struct forwarder *forwarder = context;
    int running, left;
    while (!atomic_load(&forwarder->stopping)) {
        begin_given(forwarder);
        curl_multi_perform(forwarder->multi, &running);
        for (CURLMsg *message; (message = curl_multi_info_read(forwarder->multi, &left));)
            if (message->msg == CURLMSG_DONE)
                finish(forwarder, message);
        sweep(forwarder);
        curl_multi_poll(forwarder->multi, NULL, 0, forwarder->out ? SWEEP_MS : POLL_MS, NULL);
    }
    begin_given(forwarder);
    while (forwarder->out) {
        struct forward *forward = forwarder->out;
        forward_take_out(forwarder, forward);
        forward_fail(forwarder, forward, "this one is stopping");
    }
    return NULL;
}

struct forwarder_settings forwarder_settings_of(const struct config *config, size_t calls_max)
{
    size_t budget = (size_t)config->body_budget_bytes;
    size_t leased = LEASED_BYTES + (size_t)config->payload_bytes_max * ESCAPED_MOST;
    return (struct forwarder_settings){ .calls_max = calls_max, .answers_bytes_max = budget,
                                        .answer_bytes_max = leased > budget ? leased : budget,
                                        .begin_ms_max = BEGIN_MS_MAX, .stall_ms_max = SILENT_MS_MAX };
}

enum status forwarder_new(const struct forwarder_settings *settings, struct forwarder **ret_forwarder, struct error *err)
{
    struct forwarder *forwarder = calloc(1, sizeof *forwarder);
    if (!forwarder)
        return error_set(err, STATUS_NO_MEMORY, "no memory for calls to other nodes");
    forwarder->settings = *settings;
    pthread_mutex_init(&forwarder->lock, NULL);
    forwarder->multi = curl_multi_init();
    if (forwarder->multi)
        curl_multi_setopt(forwarder->multi, CURLMOPT_MAXCONNECTS, (long)settings->calls_max);
    forwarder->running = forwarder->multi && pthread_create(&forwarder->thread, NULL, forwarder_main, forwarder) == 0;
    if (!forwarder->running) {
        forwarder_free(forwarder);
        return error_set(err, STATUS_NO_MEMORY, "cannot start the thread for calls to other nodes");
    }
    *ret_forwarder = forwarder;
    return STATUS_OK;
}

void forwarder_stop(struct forwarder *forwarder)
{
    if (!forwarder || !forwarder->running)
        return;
    atomic_store(&forwarder->stopping, true);
    curl_multi_wakeup(forwarder->multi);
    pthread_join(forwarder->thread, NULL);
    forwarder->running = false;
}

void forwarder_free(struct forwarder *forwarder)
{
    if (!forwarder)
        return;
    forwarder_stop(forwarder);
    curl_multi_cleanup(forwarder->multi);
    pthread_mutex_destroy(&forwarder->lock);
    free(forwarder);
}

/* Each call has a connection of its own: one that waits for work must not stand before an order, nor before other work. */
static bool has_room(struct forwarder *forwarder, const struct forward *forward)
{
    size_t calls_max = forwarder->settings.calls_max;
    size_t calls = atomic_fetch_add(&forwarder->calls, 1) + 1;
    size_t waiting = forward->wait_s > 0 ? atomic_fetch_add(&forwarder->waiting, 1) + 1 : 0;
    return calls <= calls_max && waiting <= calls_max - calls_max / ORDERS_ONE_IN;
}

void forwarder_send(struct forwarder *forwarder, struct forward *forward)
{
    forward->refused = !has_room(forwarder, forward);
    pthread_mutex_lock(&forwarder->lock); /* or it would come behind the last that the thread looks at */
    bool takes = !forward->refused && !atomic_load(&forwarder->stopping);
    if (takes) {
        forward->next = forwarder->first;
        forwarder->first = forward;
    }
    pthread_mutex_unlock(&forwarder->lock);
    if (takes)
        curl_multi_wakeup(forwarder->multi);
    else
        forward_fail(forwarder, forward, "this one is stopping");
}

void forwarder_abandon(struct forwarder *forwarder, struct forward *forward)
{
    atomic_store(&forward->abandoned, true);
    atomic_store(&forwarder->abandoned, true);
    curl_multi_wakeup(forwarder->multi);
}
