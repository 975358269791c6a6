#include "guests/wire.h"

#include "base/clock.h"

#include <assert.h>
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>

enum { CONNECT_TIMEOUT_MS = 5000, LOOK_MS = 1000 };

struct wire {
    struct wire_settings settings;
    CURLM *multi;
    CURL *handles[WIRE_AT_ONCE_MAX]; /* made when they are needed, then used again */
    struct curl_slist *headers;
    _Atomic bool stopping;
};

static size_t on_answer(char *data, size_t size, size_t count, void *context)
{
    struct exchange *exchange = context;
    size_t len = size * count;
    size_t room = exchange->head_only ? WIRE_HEAD_BYTES_MAX - exchange->answer.len : len;
    buffer_append(&exchange->answer, (struct slice){ data, len < room ? len : room });
    return buffer_status(&exchange->answer) == STATUS_OK ? len : 0;
}

enum status wire_new(const struct wire_settings *settings, struct wire **ret_wire, struct error *err)
{
    struct wire *wire = calloc(1, sizeof *wire);
    if (!wire)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a connection");
    wire->settings = *settings;
    wire->multi = curl_multi_init();
    wire->headers = curl_slist_append(NULL, "Content-Type: application/json");
    if (!wire->multi || !wire->headers) {
        wire_free(wire);
        return error_set(err, STATUS_NO_MEMORY, "no memory for a connection");
    }
    *ret_wire = wire;
    return STATUS_OK;
}

void wire_free(struct wire *wire)
{
    if (!wire)
        return;
    for (size_t i = 0; i < WIRE_AT_ONCE_MAX; i++)
        if (wire->handles[i])
            curl_easy_cleanup(wire->handles[i]);
    if (wire->multi)
        curl_multi_cleanup(wire->multi);
    curl_slist_free_all(wire->headers);
    free(wire);
}

/* Redirects are not followed: what is asked changes things. */
static bool begin(struct wire *wire, CURL *curl, struct exchange *exchange, int64_t timeout_ms)
{
    curl_easy_reset(curl);
    curl_easy_setopt(curl, CURLOPT_URL, exchange->url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_PROXY, ""); /* as destinations: the environment names none */
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, wire->headers);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)exchange->body.len);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, exchange->body.data);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "insist/" INSIST_VERSION);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, exchange->failure);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_answer);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, exchange);
    curl_easy_setopt(curl, CURLOPT_PRIVATE, exchange);
    if (wire->settings.token) {
        curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
        curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, wire->settings.token);
    } else if (wire->settings.username) {
        curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
        curl_easy_setopt(curl, CURLOPT_USERNAME, wire->settings.username);
        curl_easy_setopt(curl, CURLOPT_PASSWORD, wire->settings.password ? wire->settings.password : "");
    }
    return curl_multi_add_handle(wire->multi, curl) == CURLM_OK;
}

static void take_ended(struct wire *wire)
{
    int left;
    for (CURLMsg *message; (message = curl_multi_info_read(wire->multi, &left));) {
        if (message->msg != CURLMSG_DONE)
            continue;
        struct exchange *exchange;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&exchange);
        if (message->data.result == CURLE_OK)
            curl_easy_getinfo(message->easy_handle, CURLINFO_RESPONSE_CODE, &exchange->status);
        else if (!exchange->failure[0])
            snprintf(exchange->failure, sizeof exchange->failure, "%s", curl_easy_strerror(message->data.result));
    }
}

/* At most WIRE_AT_ONCE_MAX. */
static void run_some(struct wire *wire, struct exchange *exchanges, size_t count, int64_t timeout_ms)
{
    assert(count <= WIRE_AT_ONCE_MAX);
    for (size_t i = 0; i < count; i++) {
        if (!wire->handles[i])
            wire->handles[i] = curl_easy_init();
        if (!wire->handles[i] || !begin(wire, wire->handles[i], &exchanges[i], timeout_ms))
            snprintf(exchanges[i].failure, sizeof exchanges[i].failure, "no memory for a request");
    }
    for (int running = 1; running > 0 && !wire_stopped(wire);) {
        if (curl_multi_perform(wire->multi, &running) != CURLM_OK)
            break;
        if (running > 0)
            curl_multi_poll(wire->multi, NULL, 0, LOOK_MS, NULL);
    }
    take_ended(wire);
    for (size_t i = 0; i < count; i++)
        if (wire->handles[i])
            curl_multi_remove_handle(wire->multi, wire->handles[i]);
}

void wire_run(struct wire *wire, struct exchange *exchanges, size_t count, int64_t timeout_ms)
{
    for (size_t i = 0; i < count; i++) {
        exchanges[i].status = 0;
        exchanges[i].failure[0] = '\0';
        buffer_clear(&exchanges[i].answer);
    }
    for (size_t done = 0; done < count && !wire_stopped(wire); done += WIRE_AT_ONCE_MAX)
        run_some(wire, exchanges + done, count - done < WIRE_AT_ONCE_MAX ? count - done : WIRE_AT_ONCE_MAX, timeout_ms);
}

bool wire_sleep(struct wire *wire, int64_t ms)
{
    int64_t until_ns = clock_ticks_ns() + ms * 1000000;
    for (int64_t left_ms = ms; left_ms > 0 && !wire_stopped(wire); left_ms = (until_ns - clock_ticks_ns()) / 1000000)
        curl_multi_poll(wire->multi, NULL, 0, (int)(left_ms < LOOK_MS ? left_ms : LOOK_MS), NULL);
    return !wire_stopped(wire);
}

void wire_stop(struct wire *wire)
{
    wire->stopping = true;
    curl_multi_wakeup(wire->multi);
}

bool wire_stopped(const struct wire *wire)
{
    return wire->stopping;
}
