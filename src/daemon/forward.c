#include "daemon/forward.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    CONNECT_MS_MAX = 2000,
    ANSWER_S_MAX = 90,
    POLL_MS = 1000,
    ORDERS_ONE_IN = 4, /* of the calls under way is for those that do not wait for work */
};

struct forwarder {
    CURLM *multi;
    pthread_t thread;
    bool running;
    atomic_bool stopping, abandoned; /* the latter: somebody does not want an answer any more */
    size_t calls_max;
    atomic_size_t calls, waiting; /* under way; of these, that wait for work */
    pthread_mutex_t lock;
    struct forward *first; /* that were given, under the lock */
    struct forward *out;   /* with the thread */
};

static void run_done(struct message *message)
{
    struct forward *forward = message_of(message, MESSAGE_FORWARD);
    forward->done(forward);
}

static void forward_end(struct forwarder *forwarder, struct forward *forward)
{
    atomic_fetch_sub(&forwarder->calls, 1);
    if (forward->waits)
        atomic_fetch_sub(&forwarder->waiting, 1);
    mailbox_post(forward->reply_to, &forward->message, MESSAGE_FORWARD, run_done);
}

static size_t on_body(char *data, size_t size, size_t count, void *context)
{
    struct forward *forward = context;
    buffer_append(&forward->answer.body, (struct slice){ data, size * count });
    return buffer_status(&forward->answer.body) == STATUS_OK ? size * count : 0;
}

static size_t on_header(char *data, size_t size, size_t count, void *context)
{
    static const char retry_after[] = "retry-after:";
    struct forward *forward = context;
    if (count > sizeof retry_after && strncasecmp(data, retry_after, sizeof retry_after - 1) == 0)
        forward->answer.retry_after_s = atoi(data + sizeof retry_after - 1); /* CR LF stands behind it */
    return size * count;
}

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

static bool forward_begin(struct forwarder *forwarder, struct forward *forward)
{
    CURL *curl = curl_easy_init();
    struct curl_slist *headers = NULL;
    if (!curl || !headers_make(forward, &headers)) {
        curl_easy_cleanup(curl);
        return false;
    }
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
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS_MAX);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)ANSWER_S_MAX);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    forward->curl = curl;
    forward->sent_headers = headers;
    if (curl_multi_add_handle(forwarder->multi, curl) == CURLM_OK) {
        forward->next = forwarder->out;
        forwarder->out = forward;
        return true;
    }
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
    return false;
}

static void forward_take_out(struct forwarder *forwarder, struct forward *forward)
{
    struct forward **link = &forwarder->out;
    while (*link != forward)
        link = &(*link)->next;
    *link = forward->next;
    curl_multi_remove_handle(forwarder->multi, forward->curl);
    curl_slist_free_all(forward->sent_headers);
    curl_easy_cleanup(forward->curl);
}

static void finish(struct forwarder *forwarder, const CURLMsg *message)
{
    struct forward *forward;
    long status = 0;
    const char *type = NULL;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &forward);
    if (message->data.result == CURLE_OK) {
        curl_easy_getinfo(message->easy_handle, CURLINFO_RESPONSE_CODE, &status);
        curl_easy_getinfo(message->easy_handle, CURLINFO_CONTENT_TYPE, &type);
    }
    forward->answer.status = (int)status;
    snprintf(forward->answer.content_type, sizeof forward->answer.content_type, "%s", type ? type : "");
    forward_take_out(forwarder, forward);
    forward_end(forwarder, forward);
}

/* Its connection is closed, by which the owner hears of it: what nobody waits for is not leased. */
static void drop_abandoned(struct forwarder *forwarder)
{
    if (!atomic_exchange(&forwarder->abandoned, false))
        return;
    for (struct forward *forward = forwarder->out, *next; forward; forward = next) {
        next = forward->next;
        if (!atomic_load(&forward->abandoned))
            continue;
        forward_take_out(forwarder, forward);
        forward_end(forwarder, forward);
    }
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
        if (atomic_load(&forwarder->stopping) || !forward_begin(forwarder, forward))
            forward_end(forwarder, forward); /* its status is 0: not reached */
    }
}

static void *forwarder_main(void *context)
{
    struct forwarder *forwarder = context;
    int running, left;
    while (!atomic_load(&forwarder->stopping)) {
        begin_given(forwarder);
        drop_abandoned(forwarder);
        curl_multi_perform(forwarder->multi, &running);
        for (CURLMsg *message; (message = curl_multi_info_read(forwarder->multi, &left));)
            if (message->msg == CURLMSG_DONE)
                finish(forwarder, message);
        curl_multi_poll(forwarder->multi, NULL, 0, POLL_MS, NULL);
    }
    begin_given(forwarder);
    while (forwarder->out) {
        struct forward *forward = forwarder->out;
        forward_take_out(forwarder, forward);
        forward_end(forwarder, forward);
    }
    return NULL;
}

enum status forwarder_new(size_t calls_max, struct forwarder **ret_forwarder, struct error *err)
{
    struct forwarder *forwarder = calloc(1, sizeof *forwarder);
    if (!forwarder)
        return error_set(err, STATUS_NO_MEMORY, "no memory for calls to other nodes");
    pthread_mutex_init(&forwarder->lock, NULL);
    forwarder->calls_max = calls_max;
    forwarder->multi = curl_multi_init();
    if (forwarder->multi)
        curl_multi_setopt(forwarder->multi, CURLMOPT_MAXCONNECTS, (long)calls_max);
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
    size_t calls = atomic_fetch_add(&forwarder->calls, 1) + 1;
    size_t waiting = forward->waits ? atomic_fetch_add(&forwarder->waiting, 1) + 1 : 0;
    return calls <= forwarder->calls_max && waiting <= forwarder->calls_max - forwarder->calls_max / ORDERS_ONE_IN;
}

void forwarder_send(struct forwarder *forwarder, struct forward *forward)
{
    forward->refused = !has_room(forwarder, forward);
    if (forward->refused || atomic_load(&forwarder->stopping)) {
        forward_end(forwarder, forward);
        return;
    }
    pthread_mutex_lock(&forwarder->lock);
    forward->next = forwarder->first;
    forwarder->first = forward;
    pthread_mutex_unlock(&forwarder->lock);
    curl_multi_wakeup(forwarder->multi);
}

void forwarder_abandon(struct forwarder *forwarder, struct forward *forward)
{
    atomic_store(&forward->abandoned, true);
    atomic_store(&forwarder->abandoned, true);
    curl_multi_wakeup(forwarder->multi);
}
