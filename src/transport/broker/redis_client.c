#include "transport/broker/redis_client.h"

#include "base/clock.h"
#include "transport/broker/url.h"
#include "transport/curl_send.h"

#include <assert.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>

enum { RECEIVE_BYTES = 64 * 1024, LOOK_MS = 1000, GREETING_WORDS_MAX = 32, OUT_BYTES_MAX = 256 << 20 };

struct redis_client {
    CURLM *multi;
    CURL *curl; /* NULL: closed */
    curl_socket_t fd;
    redisReader *reader;
    struct buffer out; /* the first `gone` bytes of it are sent */
    size_t gone;
    size_t unread; /* bytes of an answer that has not ended */
    char curl_error[CURL_ERROR_SIZE];
    _Atomic bool stopping;
};

enum status redis_client_new(struct redis_client **ret_client, struct error *err)
{
    struct redis_client *client = calloc(1, sizeof *client);
    if (client) {
        client->multi = curl_multi_init();
        buffer_init(&client->out, OUT_BYTES_MAX);
    }
    if (!client || !client->multi) {
        free(client);
        return error_set(err, STATUS_NO_MEMORY, "no memory for a connection to Redis");
    }
    *ret_client = client;
    return STATUS_OK;
}

void redis_client_close(struct redis_client *client)
{
    if (client->curl) {
        curl_multi_remove_handle(client->multi, client->curl);
        curl_easy_cleanup(client->curl);
    }
    if (client->reader)
        redisReaderFree(client->reader);
    client->curl = NULL;
    client->reader = NULL;
    buffer_release(&client->out);
    client->gone = client->unread = 0;
}

void redis_client_free(struct redis_client *client)
{
    if (!client)
        return;
    redis_client_close(client);
    curl_multi_cleanup(client->multi);
    free(client);
}

/* The connection is of no use any more. */
static enum status lose(struct redis_client *client, enum status status, struct error *err, const char *reason)
{
    error_set(err, status, "%s", redis_client_stopped(client) ? "it was asked to stop" : reason);
    redis_client_close(client);
    return status;
}

/* ---- connecting ---- */

static bool set_options(struct redis_client *client, const struct redis_place *place, const char *url, int64_t timeout_ms)
{
    const struct destination_config way = { .tls = place->tls, .proxy = place->proxy };
    CURL *curl = client->curl;
    bool unset = false;
    client->curl_error[0] = '\0';
    curl_set_text(curl, CURLOPT_URL, url, &unset);
    curl_set_text(curl, CURLOPT_PROTOCOLS_STR, "http,https", &unset);
    curl_easy_setopt(curl, CURLOPT_CONNECT_ONLY, 1L);
    curl_easy_setopt(curl, CURLOPT_SSL_ENABLE_ALPN, 0L); /* it is not HTTP that is spoken */
    curl_easy_setopt(curl, CURLOPT_HTTPPROXYTUNNEL, 1L);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, client->curl_error);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)timeout_ms);
    curl_set_way(curl, &way, &unset);
    return !unset && curl_multi_add_handle(client->multi, curl) == CURLM_OK;
}

static CURLcode connect_wait(struct redis_client *client)
{
    CURLcode result = CURLE_OK;
    for (int running = 1, left; running > 0;) {
        if (redis_client_stopped(client))
            return CURLE_ABORTED_BY_CALLBACK;
        if (curl_multi_perform(client->multi, &running) != CURLM_OK)
            return CURLE_FAILED_INIT;
        if (running > 0)
            curl_multi_poll(client->multi, NULL, 0, LOOK_MS, NULL);
        for (CURLMsg *message; (message = curl_multi_info_read(client->multi, &left));)
            result = message->msg == CURLMSG_DONE ? message->data.result : result;
    }
    return result;
}

static enum status connect_to(struct redis_client *client, const struct redis_place *place, const char *url,
                              int64_t timeout_ms, struct error *err)
{
    client->curl = curl_easy_init();
    client->reader = redisReaderCreate();
    if (!client->curl || !client->reader || !set_options(client, place, url, timeout_ms))
        return lose(client, STATUS_NO_MEMORY, err, "no memory for a connection to Redis");
    CURLcode result = connect_wait(client);
    client->fd = CURL_SOCKET_BAD;
    if (result == CURLE_OK)
        result = curl_easy_getinfo(client->curl, CURLINFO_ACTIVESOCKET, &client->fd);
    if (result == CURLE_OK && client->fd == CURL_SOCKET_BAD)
        result = CURLE_GOT_NOTHING;
    if (result == CURLE_OK)
        return STATUS_OK;
    struct buffer text;
    buffer_init(&text, sizeof err->text);
    curl_failure_text(result, client->curl_error, &text);
    buffer_append_byte(&text, '\0');
    enum status status = lose(client, STATUS_AWAY, err, text.data ? text.data : "it cannot be reached");
    buffer_release(&text);
    return status;
}

static enum status greet(struct redis_client *client, const struct broker_url *url, int64_t timeout_ms, struct error *err)
{
    const char *login[] = { "AUTH", url->username && url->username[0] ? url->username : url->password,
                            url->username && url->username[0] ? url->password : NULL, NULL };
    const char *database[] = { "SELECT", url->path && url->path[0] == '/' ? url->path + 1 : "", NULL };
    struct redisReply *reply = NULL;
    enum status status = STATUS_OK;
    if (url->password) {
        status = redis_client_ask(client, login, timeout_ms, &reply, err);
        freeReplyObject(reply);
        reply = NULL;
    }
    if (status == STATUS_OK && database[1][0]) {
        status = redis_client_ask(client, database, timeout_ms, &reply, err);
        freeReplyObject(reply);
    }
    return status;
}

enum status redis_client_open(struct redis_client *client, const struct redis_place *place, int64_t timeout_ms,
                              struct error *err)
{
    static const struct broker_scheme scheme = { "rediss://", 6379, 6379 };
    struct broker_url url;
    assert(!client->curl);
    if (!broker_url_read(&scheme, place->url, place->username, place->password, &url)) {
        broker_url_release(&url);
        return error_set(err, STATUS_INVALID, "the url is not one that can be connected to");
    }
    buffer_init(&client->out, OUT_BYTES_MAX);
    enum status status = connect_to(client, place, url.connect, timeout_ms, err);
    if (status == STATUS_OK)
        status = greet(client, &url, timeout_ms, err);
    if (status != STATUS_OK && client->curl)
        redis_client_close(client);
    broker_url_release(&url);
    return status;
}

/* ---- speaking ---- */

bool redis_client_say(struct redis_client *client, const struct slice *words, size_t count)
{
    const char *texts[REDIS_WORDS_MAX];
    size_t lengths[REDIS_WORDS_MAX];
    char *command = NULL;
    assert(count > 0 && count <= REDIS_WORDS_MAX);
    for (size_t i = 0; i < count; i++) {
        texts[i] = words[i].data ? words[i].data : "";
        lengths[i] = words[i].len;
    }
    long long len = redisFormatCommandArgv(&command, (int)count, texts, lengths);
    if (len < 0)
        return false;
    buffer_append(&client->out, (struct slice){ command, (size_t)len });
    redisFreeCommand(command);
    return buffer_status(&client->out) == STATUS_OK;
}

/* Whether all is gone, so that only an answer is waited for. CURLE_AGAIN: not yet. */
static CURLcode flush(struct redis_client *client)
{
    while (client->gone < client->out.len) {
        size_t sent = 0;
        CURLcode result =
            curl_easy_send(client->curl, client->out.data + client->gone, client->out.len - client->gone, &sent);
        if (result != CURLE_OK)
            return result;
        client->gone += sent;
    }
    buffer_clear(&client->out);
    client->gone = 0;
    return CURLE_OK;
}

/* What has come, for the reader. CURLE_AGAIN: nothing. */
static CURLcode receive(struct redis_client *client)
{
    char bytes[RECEIVE_BYTES];
    size_t len = 0;
    CURLcode result = curl_easy_recv(client->curl, bytes, sizeof bytes, &len);
    if (result == CURLE_OK && len == 0)
        result = CURLE_GOT_NOTHING;
    if (result == CURLE_OK && redisReaderFeed(client->reader, bytes, len) != REDIS_OK)
        result = CURLE_OUT_OF_MEMORY;
    client->unread += result == CURLE_OK ? len : 0;
    return result;
}

enum status redis_client_hear(struct redis_client *client, int64_t timeout_ms, struct redisReply **ret_reply,
                              struct error *err)
{
    int64_t until_ms = clock_ticks_ms() + timeout_ms;
    *ret_reply = NULL;
    if (!client->curl)
        return error_set(err, STATUS_AWAY, "there is no connection");
    for (;;) {
        void *reply = NULL;
        if (redisReaderGetReply(client->reader, &reply) != REDIS_OK)
            return lose(client, STATUS_AWAY, err, "what the server says is not its protocol");
        if (reply) {
            client->unread = 0;
            *ret_reply = reply;
            return STATUS_OK;
        }
        if (client->unread > REDIS_ANSWER_BYTES_MAX)
            return lose(client, STATUS_LIMIT, err, "an answer is too long");
        CURLcode sent = flush(client);
        CURLcode result = sent == CURLE_OK || sent == CURLE_AGAIN ? receive(client) : sent;
        if (result == CURLE_OK)
            continue;
        int64_t left_ms = until_ms - clock_ticks_ms();
        if (result != CURLE_AGAIN)
            return lose(client, STATUS_AWAY, err, "the server closed the connection");
        if (left_ms <= 0 || redis_client_stopped(client))
            return lose(client, STATUS_AWAY, err, "it does not answer");
        struct curl_waitfd wait = { .fd = client->fd,
                                    .events = (short)(CURL_WAIT_POLLIN | (sent == CURLE_AGAIN ? CURL_WAIT_POLLOUT : 0)) };
        curl_multi_poll(client->multi, &wait, 1, (int)(left_ms < LOOK_MS ? left_ms : LOOK_MS), NULL);
    }
}

enum status redis_client_ask(struct redis_client *client, const char *const *words, int64_t timeout_ms,
                             struct redisReply **ret_reply, struct error *err)
{
    struct slice texts[GREETING_WORDS_MAX];
    size_t count = 0;
    *ret_reply = NULL;
    for (; words[count]; count++) {
        assert(count < GREETING_WORDS_MAX);
        texts[count] = slice_from(words[count]);
    }
    if (!client->curl)
        return error_set(err, STATUS_AWAY, "there is no connection");
    if (!redis_client_say(client, texts, count))
        return lose(client, STATUS_NO_MEMORY, err, "no memory for a command");
    enum status status = redis_client_hear(client, timeout_ms, ret_reply, err);
    if (status == STATUS_OK && (*ret_reply)->type == REDIS_REPLY_ERROR) {
        status = error_set(err, STATUS_INVALID, "%s", (*ret_reply)->str);
        freeReplyObject(*ret_reply);
        *ret_reply = NULL;
    }
    return status;
}

/* ---- waiting, and stopping ---- */

bool redis_client_sleep(struct redis_client *client, int64_t ms)
{
    int64_t until_ms = clock_ticks_ms() + ms;
    for (int64_t left_ms = ms; left_ms > 0 && !redis_client_stopped(client); left_ms = until_ms - clock_ticks_ms())
        curl_multi_poll(client->multi, NULL, 0, (int)(left_ms < LOOK_MS ? left_ms : LOOK_MS), NULL);
    return !redis_client_stopped(client);
}

void redis_client_rest(struct redis_client *client, int64_t ms)
{
    curl_multi_poll(client->multi, NULL, 0, (int)ms, NULL);
}

void redis_client_wake(struct redis_client *client)
{
    curl_multi_wakeup(client->multi);
}

void redis_client_stop(struct redis_client *client)
{
    client->stopping = true;
    redis_client_wake(client);
}

bool redis_client_stopped(const struct redis_client *client)
{
    return client->stopping;
}
