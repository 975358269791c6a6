#include "support/api_fixture.h"

#include "base/log.h"
#include "store/memory/memory.h"
#include "support/check.h"
#include "support/store_faulty.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { SENDS_MAX = 64, ANSWER_WAIT_S = 60 };

struct api_fixture {
    struct config *config;
    struct store *store;
    struct store_reader *reader;
    struct writer *writer;
    struct mailbox *mailbox; /* of the engine's thread */
    struct event_base *loop;
    struct event *wake;
    struct engine *engine;
    struct api *api;
    pthread_t thread;
    struct send *sends[SENDS_MAX]; /* to be answered in the next turn of the loop */
    size_t send_count;
    struct send *hanging[SENDS_MAX];
    size_t hanging_count;
    struct event *answer;
    bool stopping;
    bool api_stopping;
    _Atomic int64_t offset_ms;
    _Atomic int64_t set_back_ms; /* of the wall clock alone */
    _Atomic int alive; /* how often it was said */
    pthread_mutex_t stall;
    char tokens_path[64];
    bool faulty; /* that the store fails is meant */
};

static const char usual_config[] =
    "listen: 127.0.0.1:0\n"
    "store: 'memory:'\n"
    "limits: { payload: 64KB }\n"
    "destinations:\n"
    "  web: { transport: http, url: 'http://127.0.0.1:1/', allow_private: true, concurrency: 4, job_ttl: 7d,\n"
    "         retry: { max_retries: 3, base: 1h, factor: 2, cap: 5h, floor: 1h, jitter: 0 },\n"
    "         errors: { permanent: ['400', BROKEN], transient: ['503', TIMEOUT], blocked: [PASSWORD] } }\n"
    "  yard: { transport: pull, retry: { max_retries: 1, base: 1h, factor: 2, cap: 5h, floor: 1h, jitter: 0, retry_after_max: 3h },\n"
    "          errors: { permanent: [BROKEN], transient: [TIMEOUT], blocked: [PASSWORD] } }\n"
    "  strict: { transport: pull, id_pattern: 'CLM-\\d+', priority: { aging: 1h } }\n"
    "  mail: { transport: pull, content_type: message/rfc822, status_words: { completed: SENT, dead: DLQ } }\n";

static instant fixture_now(void *context)
{
    struct api_fixture *fixture = context;
    return clock_now() + atomic_load(&fixture->offset_ms) - atomic_load(&fixture->set_back_ms);
}

static void fixture_alive(void *context)
{
    struct api_fixture *fixture = context;
    fixture->alive++;
}

static int64_t fixture_ticks_ms(void *context)
{
    struct api_fixture *fixture = context;
    return clock_ticks_ns() / 1000000 + atomic_load(&fixture->offset_ms);
}

/* --- the engine's thread ---------------------------------------------------------------------------- */

static void answer_send(struct send *send)
{
    struct slice payload = send->job->payload;
    struct answer answer = { .attempted = true, .retry_after_ms = -1, .duration_ms = 5 };
    bool first = slice_has_prefix(payload, SLICE("once")) && send->job->attempts == 1;
    if (first || slice_has_prefix(payload, SLICE("fail"))) {
        answer.code = SLICE("http:503");
        answer.text = SLICE("HTTP 503: Service Unavailable");
    } else if (slice_has_prefix(payload, SLICE("bad"))) {
        answer.code = SLICE("http:400");
        answer.text = SLICE("HTTP 400: Bad Request");
    } else {
        answer.outcome = OUTCOME_DELIVERED;
        answer.code = SLICE("http:200");
    }
    send->done(send, &answer);
}

static void on_answers(evutil_socket_t fd, short what, void *context)
{
    struct api_fixture *fixture = context;
    (void)fd;
    (void)what;
    while (fixture->send_count > 0)
        answer_send(fixture->sends[--fixture->send_count]);
}

static void port_send(void *context, struct send *send)
{
    struct api_fixture *fixture = context;
    if (slice_has_prefix(send->job->payload, SLICE("hang"))) {
        assert_true(fixture->hanging_count < SENDS_MAX);
        fixture->hanging[fixture->hanging_count++] = send;
        return;
    }
    assert_true(fixture->send_count < SENDS_MAX);
    fixture->sends[fixture->send_count++] = send;
    event_active(fixture->answer, EV_TIMEOUT, 1);
}

static void port_submit(void *context, struct batch *batch)
{
    struct api_fixture *fixture = context;
    writer_submit(fixture->writer, batch);
}

static void port_wake_at(void *context, instant at)
{
    struct api_fixture *fixture = context;
    int64_t delay = at - fixture_now(fixture);
    delay = delay < 0 ? 0 : delay > 60000 ? 60000 : delay;
    const struct timeval wait = { delay / 1000, delay % 1000 * 1000 };
    event_add(fixture->wake, &wait);
}

static int64_t port_ticks_ns(void *context)
{
    (void)context;
    return clock_ticks_ns();
}

static void end_if_done(struct api_fixture *fixture)
{
    if (fixture->stopping && engine_under_way(fixture->engine) == 0)
        event_base_loopbreak(fixture->loop);
}

static void on_wake(evutil_socket_t fd, short what, void *context)
{
    struct api_fixture *fixture = context;
    (void)fd;
    (void)what;
    pthread_mutex_lock(&fixture->stall);
    engine_run(fixture->engine);
    pthread_mutex_unlock(&fixture->stall);
    end_if_done(fixture);
}

static void *engine_main(void *context)
{
    struct api_fixture *fixture = context;
    event_base_loop(fixture->loop, EVLOOP_NO_EXIT_ON_EMPTY);
    return NULL;
}

/* A message that the engine's thread runs while the test waits. */
struct order {
    struct message message;
    struct api_fixture *fixture;
    void (*run)(struct api_fixture *fixture);
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool is_done;
};

static void on_order(struct message *message)
{
    struct order *order = message_of(message, MESSAGE_TEST);
    order->run(order->fixture);
    pthread_mutex_lock(&order->lock);
    order->is_done = true;
    pthread_cond_signal(&order->done);
    pthread_mutex_unlock(&order->lock);
}

static void in_engine(struct api_fixture *fixture, void (*run)(struct api_fixture *fixture))
{
    struct order order = { .fixture = fixture, .run = run };
    pthread_mutex_init(&order.lock, NULL);
    pthread_cond_init(&order.done, NULL);
    mailbox_post(fixture->mailbox, &order.message, MESSAGE_TEST, on_order);
    pthread_mutex_lock(&order.lock);
    while (!order.is_done)
        pthread_cond_wait(&order.done, &order.lock);
    pthread_mutex_unlock(&order.lock);
    pthread_cond_destroy(&order.done);
    pthread_mutex_destroy(&order.lock);
}

static void on_notice_there(struct message *message)
{
    struct notice *notice = message_of(message, MESSAGE_NOTICE);
    struct api_fixture *fixture = notice->context;
    engine_notice(fixture->engine, notice);
}

static void on_notice(void *context, struct notice *notice)
{
    struct api_fixture *fixture = context;
    notice->context = fixture;
    mailbox_post(fixture->mailbox, &notice->message, MESSAGE_NOTICE, on_notice_there);
}

static void on_failure(void *context, const struct error *error)
{
    const struct api_fixture *fixture = context;
    if (fixture->faulty)
        return;
    fprintf(stderr, "# the store failed: %s\n", error->text);
    abort();
}

/* --- life -------------------------------------------------------------------------------------------- */

static struct config *config_of(struct api_fixture *fixture, const struct api_fixture_settings *settings)
{
    struct buffer text, problems;
    struct config *config = NULL;
    buffer_init(&text, 1 << 20);
    buffer_init(&problems, 1 << 20);
    buffer_append_text(&text, settings->config ? settings->config : usual_config);
    if (settings->tokens) {
        snprintf(fixture->tokens_path, sizeof fixture->tokens_path, "/tmp/insist-tokens-XXXXXX");
        int fd = mkstemp(fixture->tokens_path);
        assert_true(fd >= 0 && write(fd, settings->tokens, strlen(settings->tokens)) == (ssize_t)strlen(settings->tokens));
        close(fd);
        buffer_printf(&text, "auth: { tokens_file: %s }\n", fixture->tokens_path);
    }
    if (config_parse(buffer_slice(&text), "test.yaml", &config, &problems) != STATUS_OK)
        check(false, "%s", problems.data);
    config->listen.port = 0; /* a free one: a daemon may be running on the usual one */
    buffer_release(&text);
    buffer_release(&problems);
    return config;
}

static void begin(struct api_fixture *fixture)
{
    struct error error;
    assert_int_equal(engine_start(fixture->engine, fixture->reader, &error), STATUS_OK);
}

void api_fixture_start_engine(struct api_fixture *fixture)
{
    in_engine(fixture, begin);
}

static void start_engine(struct api_fixture *fixture)
{
    struct error error;
    assert_int_equal(mailbox_new(&fixture->mailbox, &error), STATUS_OK);
    fixture->loop = event_base_new();
    fixture->wake = evtimer_new(fixture->loop, on_wake, fixture);
    fixture->answer = event_new(fixture->loop, -1, EV_PERSIST, on_answers, fixture);
    assert_int_equal(mailbox_attach(fixture->mailbox, fixture->loop, &error), STATUS_OK);
    const struct writer_settings writer = { .store = fixture->store, .sync_always = true, .now = fixture_now,
                                            .on_notice = on_notice, .on_failure = on_failure, .context = fixture };
    assert_int_equal(writer_new(&writer, &fixture->writer, &error), STATUS_OK);
    const struct engine_settings engine = {
        .ports = { .context = fixture,
                   .now = fixture_now,
                   .submit = port_submit,
                   .send = port_send,
                   .wake_at = port_wake_at,
                   .ticks_ns = port_ticks_ns },
        .mailbox = fixture->mailbox,
        .config = fixture->config,
        .seed = 7,
    };
    assert_int_equal(engine_new(&engine, &fixture->engine, &error), STATUS_OK);
    assert_int_equal(pthread_create(&fixture->thread, NULL, engine_main, fixture), 0);
}

struct api_fixture *api_fixture_new(const struct api_fixture_settings *given)
{
    static const struct api_fixture_settings none = { 0 };
    const struct api_fixture_settings *settings = given ? given : &none;
    struct api_fixture *fixture = calloc(1, sizeof *fixture);
    struct error error = { 0 };
    assert_non_null(fixture);
    signal(SIGPIPE, SIG_IGN); /* as the daemon does: a client may be gone when its answer comes */
    log_set_level(LOG_ERROR);
    pthread_mutex_init(&fixture->stall, NULL);
    fixture->config = config_of(fixture, settings);
    fixture->faulty = settings->faulty;
    const struct store_settings store = { .sync_always = true, .pending_max = settings->pending_max };
    assert_int_equal(store_memory_open(SLICE(""), &store, &fixture->store, &error), STATUS_OK);
    if (settings->faulty)
        assert_int_equal(store_faulty_wrap(fixture->store, &fixture->store, &error), STATUS_OK);
    assert_int_equal(fixture->store->ops->reader(fixture->store, &fixture->reader, &error), STATUS_OK);
    start_engine(fixture);
    if (!settings->engine_held)
        api_fixture_start_engine(fixture);
    const struct api_settings api = { .config = fixture->config, .writer = fixture->writer, .store = fixture->store,
                                      .engine = fixture->engine, .engine_mailbox = fixture->mailbox, .seed = 7,
                                      .now = fixture_now, .ticks_ms = fixture_ticks_ms, .owner = settings->owner,
                                      .forward = settings->forward, .abandon = settings->abandon, .on_alive = fixture_alive,
                                      .context = fixture };
    if (api_new(&api, &fixture->api, &error) != STATUS_OK || api_start(fixture->api, &error) != STATUS_OK)
        check(false, "%s", error.text);
    return fixture;
}

static void stop_engine(struct api_fixture *fixture)
{
    const struct answer lost = { .retry_after_ms = -1, .text = SLICE("the test ended") };
    engine_stop(fixture->engine);
    while (fixture->hanging_count > 0) {
        struct send *send = fixture->hanging[--fixture->hanging_count];
        send->done(send, &lost);
    }
}

void api_fixture_stop_engine(struct api_fixture *fixture)
{
    in_engine(fixture, stop_engine);
}

static void end_engine(struct api_fixture *fixture)
{
    fixture->stopping = true;
    end_if_done(fixture);
}

void api_fixture_stop_api(struct api_fixture *fixture)
{
    fixture->api_stopping = true;
    api_stop(fixture->api);
}

void api_fixture_free(struct api_fixture *fixture)
{
    if (!fixture->api_stopping)
        api_stop_accepting(fixture->api);
    api_fixture_stop_engine(fixture);
    if (!fixture->api_stopping)
        api_fixture_stop_api(fixture);
    api_free(fixture->api);
    in_engine(fixture, end_engine);
    pthread_join(fixture->thread, NULL);
    writer_free(fixture->writer);
    mailbox_drain(fixture->mailbox); /* notices of the last transactions */
    engine_free(fixture->engine);
    event_free(fixture->wake);
    event_free(fixture->answer);
    mailbox_free(fixture->mailbox);
    event_base_free(fixture->loop);
    fixture->store->ops->reader_close(fixture->reader);
    fixture->store->ops->close(fixture->store);
    config_unref(fixture->config);
    pthread_mutex_destroy(&fixture->stall);
    if (fixture->tokens_path[0])
        unlink(fixture->tokens_path);
    free(fixture);
}

int api_fixture_port(const struct api_fixture *fixture)
{
    return api_port(fixture->api);
}

struct api *api_fixture_api(struct api_fixture *fixture)
{
    return fixture->api;
}

struct store *api_fixture_store(struct api_fixture *fixture)
{
    return fixture->store;
}

static void wake_now(struct api_fixture *fixture)
{
    port_wake_at(fixture, fixture_now(fixture));
}

void api_fixture_skip(struct api_fixture *fixture, int64_t ms)
{
    atomic_fetch_add(&fixture->offset_ms, ms);
}

void api_fixture_set_back(struct api_fixture *fixture, int64_t ms)
{
    atomic_fetch_add(&fixture->set_back_ms, ms);
}

void api_fixture_advance(struct api_fixture *fixture, int64_t ms)
{
    api_fixture_skip(fixture, ms);
    in_engine(fixture, wake_now);
}

int api_fixture_alive(const struct api_fixture *fixture)
{
    return fixture->alive;
}

void api_fixture_stall(struct api_fixture *fixture, bool stalled)
{
    if (stalled)
        pthread_mutex_lock(&fixture->stall);
    else
        pthread_mutex_unlock(&fixture->stall);
}

/* --- a client ------------------------------------------------------------------------------------------ */

int raw_connect(const struct api_fixture *fixture)
{
    const struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)api_port(fixture->api)),
                                         .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    const struct timeval wait = { ANSWER_WAIT_S, 0 };
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

void raw_send(int fd, const char *bytes, size_t len)
{
    for (size_t sent = 0; sent < len;) {
        ssize_t n = send(fd, bytes + sent, len - sent, MSG_NOSIGNAL);
        if (n < 0)
            return; /* the server has closed; what it said before is still to be read */
        sent += (size_t)n;
    }
}

char *raw_read(int fd, const char *until)
{
    struct buffer all;
    buffer_init(&all, 256 << 20);
    buffer_append_text(&all, "");
    for (;;) {
        char piece[65536];
        ssize_t n = recv(fd, piece, sizeof piece, 0);
        if (n <= 0)
            break;
        buffer_append(&all, (struct slice){ piece, (size_t)n });
        if (until && strstr(all.data, until))
            break;
    }
    if (!all.data)
        buffer_append_byte(&all, '\0');
    assert_int_equal(buffer_status(&all), STATUS_OK);
    return buffer_take(&all);
}

/* Chunks put together, in place. */
static size_t unchunk(char *body, size_t len)
{
    size_t in = 0, out = 0;
    while (in < len) {
        char *end;
        size_t size = strtoul(body + in, &end, 16);
        in = (size_t)(end - body) + 2;
        if (size == 0 || in + size > len)
            break;
        memmove(body + out, body + in, size);
        out += size;
        in += size + 2;
    }
    return out;
}

static struct reply parse_reply(char *text)
{
    struct reply reply = { 0 };
    char *body = strstr(text, "\r\n\r\n");
    if (body && sscanf(text, "HTTP/1.1 %d", &reply.status) == 1) {
        reply.headers = strndup(text, (size_t)(body - text) + 2);
        body += 4;
        reply.len = strlen(body);
        if (strcasestr(reply.headers, "Transfer-Encoding: chunked"))
            reply.len = unchunk(body, reply.len);
        reply.body = strndup(body, reply.len);
        reply.json = json_loadb(reply.body, reply.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    } else {
        reply.headers = strdup("");
        reply.body = strdup("");
    }
    free(text);
    return reply;
}

struct reply http_ask(const struct api_fixture *fixture, const struct request *request)
{
    struct buffer text;
    const char *body = request->body ? request->body : "";
    size_t body_len = request->body_len > 0 ? request->body_len : strlen(body);
    buffer_init(&text, 256 << 20);
    buffer_printf(&text, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n", request->method, request->path);
    if (request->token)
        buffer_printf(&text, "Authorization: Bearer %s\r\n", request->token);
    if (request->body)
        buffer_printf(&text, "Content-Type: %s\r\nContent-Length: %zu\r\n",
                      request->content_type ? request->content_type : "application/json", body_len);
    buffer_append_text(&text, "\r\n");
    buffer_append(&text, (struct slice){ body, body_len });
    int fd = raw_connect(fixture);
    raw_send(fd, text.data, text.len);
    struct reply reply = parse_reply(raw_read(fd, NULL));
    close(fd);
    buffer_release(&text);
    return reply;
}

struct reply http_do(const struct api_fixture *fixture, const char *method, const char *path, const char *body)
{
    const struct request request = { .method = method, .path = path, .body = body };
    return http_ask(fixture, &request);
}

void put_job(const struct api_fixture *fixture, const char *destination, const char *tenant, const char *id,
             const char *payload)
{
    char body[256];
    snprintf(body, sizeof body, "{\"destination\":\"%s\",\"tenant\":\"%s\",\"id\":\"%s\",\"payload\":\"%s\"}", destination,
             tenant, id, payload);
    struct reply reply = http_do(fixture, "POST", "/v1/jobs", body);
    check(reply.status == 201, "%s: %s", body, reply.body);
    reply_release(&reply);
}

void reply_release(struct reply *reply)
{
    json_decref(reply->json);
    free(reply->headers);
    free(reply->body);
    *reply = (struct reply){ 0 };
}

char *reply_header(const struct reply *reply, const char *name)
{
    char wanted[128];
    snprintf(wanted, sizeof wanted, "\r\n%s: ", name);
    const char *found = strcasestr(reply->headers, wanted);
    if (!found)
        return NULL;
    found += strlen(wanted);
    return strndup(found, strcspn(found, "\r"));
}

json_t *reply_at(const struct reply *reply, const char *path)
{
    json_t *at = reply->json;
    while (at && *path) {
        char name[64];
        size_t len = strcspn(path, ".");
        snprintf(name, sizeof name, "%.*s", (int)len, path);
        at = json_is_array(at) ? json_array_get(at, (size_t)strtoul(name, NULL, 10)) : json_object_get(at, name);
        path += len + (path[len] == '.');
    }
    return at;
}

const char *reply_text(const struct reply *reply, const char *path)
{
    const char *text = json_string_value(reply_at(reply, path));
    return text ? text : "";
}

int64_t reply_int(const struct reply *reply, const char *path)
{
    json_t *value = reply_at(reply, path);
    return json_is_integer(value) ? json_integer_value(value) : -1;
}

/* What is waited for: all that is given must be so. */
struct wish {
    int status;         /* 0: any */
    const char *member; /* NULL: none */
    const char *text;   /* its value, or NULL: */
    int64_t number;
};

static bool is_granted(const struct wish *wish, const struct reply *reply)
{
    if (wish->status && reply->status != wish->status)
        return false;
    if (!wish->member)
        return true;
    return wish->text ? strcmp(reply_text(reply, wish->member), wish->text) == 0
                      : reply_int(reply, wish->member) == wish->number;
}

static void await(const struct api_fixture *fixture, const char *path, const struct wish *wish)
{
    instant end = clock_now() + ANSWER_WAIT_S * SECOND_MS;
    for (;;) {
        struct reply reply = http_do(fixture, "GET", path, NULL);
        bool granted = is_granted(wish, &reply);
        check(granted || clock_now() < end, "%s still answers %d %s", path, reply.status, reply.body);
        reply_release(&reply);
        if (granted)
            return;
        poll(NULL, 0, 2);
    }
}

void await_state(const struct api_fixture *fixture, const char *path, const char *state)
{
    await(fixture, path, &(struct wish){ .member = "state", .text = state });
}

void await_text(const struct api_fixture *fixture, const char *path, const char *member, const char *text)
{
    await(fixture, path, &(struct wish){ .member = member, .text = text });
}

void await_number(const struct api_fixture *fixture, const char *path, const char *member, int64_t number)
{
    await(fixture, path, &(struct wish){ .member = member, .number = number });
}

void await_status(const struct api_fixture *fixture, const char *path, int status)
{
    await(fixture, path, &(struct wish){ .status = status });
}
