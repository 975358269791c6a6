#include "api/api.h"

#include "api/api_private.h"
#include "api/decisions.h"
#include "api/origin.h"
#include "api/query.h"
#include "api/routing.h"
#include "base/log.h"

#include <event2/event.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

enum { FLUSH_TURNS = 16, ANSWER_HEADERS_BYTES_MAX = 4096, PAYLOADS_A_PAGE = 50 };

instant api_now(const struct api *api)
{
    return api->settings.now ? api->settings.now(api->settings.context) : clock_now();
}

int64_t api_ticks_ms(const struct api *api)
{
    return api->settings.ticks_ms ? api->settings.ticks_ms(api->settings.context) : clock_ticks_ns() / 1000000;
}

/* False: answered with 401 or 403 already. */
static bool authorise(struct call *call)
{
    const struct tokens *tokens = call->api->tokens;
    call->scopes = SCOPE_ENQUEUE | SCOPE_READ | SCOPE_OPERATE | SCOPE_ADMIN | SCOPE_WORK;
    call->who = SLICE("loopback");
    if (!tokens && !page_is_ours(call))
        return false;
    if (!tokens || call->route->scope == SCOPE_NONE)
        return true;
    struct slice header = call_header(call, SLICE("Authorization"));
    const struct token *token = tokens_find_bearer(tokens, header);
    if (!token) {
        call_problem(call, 401, "unauthorized", "%s: Authorization: Bearer TOKEN",
                     header.len > 0 ? "the daemon's tokens file has no such token; send one that it has" : "send a token");
        return false;
    }
    if (!(token->scopes & call->route->scope)) {
        call_problem(call, 403, "forbidden_scope", "token \"%s\" does not have the scope %s, which this call needs",
                     token->name, scope_name(call->route->scope));
        return false;
    }
    call->scopes = token->scopes;
    call->priority_max = token->priority_max;
    call->who = arena_copy(&call->memory, slice_from(token->name)); /* a reload frees the tokens */
    if (token->tenant)
        call->tenant_bound = arena_copy(&call->memory, slice_from(token->tenant));
    if (call->who.data && (!token->tenant || call->tenant_bound.data))
        return true;
    call_no_memory(call);
    return false;
}

/* --- one request ------------------------------------------------------------------------------- */

static void on_client_gone(void *context)
{
    call_client_left(context);
}

static struct call *call_new(struct api *api, struct client *client, const struct http_head *head, struct slice body)
{
    struct call *call = malloc(sizeof *call);
    if (!call)
        return NULL;
    memset(call, 0, offsetof(struct call, head));
    call->api = api;
    call->client = client;
    memcpy(&call->head, head, offsetof(struct http_head, headers) + head->header_count * sizeof *head->headers);
    call->head.header_count = head->header_count;
    call->body = body;
    call->who = SLICE("");
    call->began_ns = clock_ticks_ns();
    arena_init(&call->memory, SIZE_MAX / 4);
    buffer_init(&call->answer_headers, ANSWER_HEADERS_BYTES_MAX);
    api->calls++;
    client_watch(client, on_client_gone, NULL, call);
    return call;
}

/* No id and no name has one, and a text cut short at one would be another's. */
static bool has_control(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.data[i] < ' ' || text.data[i] == 0x7f)
            return true;
    return false;
}

/* False: answered already. */
static bool address_is_clean(struct call *call)
{
    struct slice query = call->head.query;
    bool clean = query.len == 0 || slice_search(query, SLICE("%00")) == query.len;
    for (size_t i = 0; i < CALL_PARAMETERS_MAX && clean; i++)
        clean = !has_control(call->parameters[i]);
    if (!clean)
        call_problem(call, 422, "invalid_address",
                     "the address has a control character, as %%00 or %%0A; no id and no name has one");
    return clean;
}

/* HEAD is GET, and the answer leaves the body out. */
static const char *method_of(const struct http_head *head)
{
    return http_method_name(head->method == HTTP_HEAD ? HTTP_GET : head->method);
}

static void on_admitted(void *context)
{
    struct call *call = context;
    call->route->handle(call);
}

static void on_not_admitted(void *context)
{
    call_problem(context, 503, "busy", "clients who do not read have all the memory of limits.body_budget; try again");
}

/*
 * Answers that may be long are made when there is room for them. How long is not known before: a page with payloads is as
 * long as they may be, read and written.
 */
static bool has_room(struct call *call)
{
    struct slice payload = call_query(call, "payload");
    int64_t payload_max = call->api->config->payload_bytes_max, pages = call->parameters[0].data ? 1 : PAYLOADS_A_PAGE;
    if (call->route->scope == SCOPE_NONE || call->head.method != HTTP_GET)
        return true;
    if (payload.len == 0)
        return client_take_room(call->client, ROOM_SMALL, SMALL_ANSWER_BYTES_MAX, on_admitted, on_not_admitted);
    return client_take_room(call->client, ROOM_LARGE, (size_t)(2 * payload_max * pages), on_admitted, on_not_admitted);
}

void api_request(struct api *api, struct client *client, const struct http_head *head, struct slice body)
{
    struct call *call = call_new(api, client, head, body);
    if (!call) {
        client_end(client);
        return;
    }
    if (!host_is_ours(call))
        return;
    if (head->query.len > 0 && !query_read(call, head->query)) {
        call_problem(call, 400, "bad_query", "behind ? stand NAME=VALUE, joined by &");
        return;
    }
    call->route = route_find(call, method_of(head), head->path);
    if (!call->route)
        route_problem(call, head->path);
    else if (api->stopping)
        call_problem(call, 503, "stopping", "the daemon is stopping; try again");
    else if (authorise(call) && address_is_clean(call) && query_is_known(call) && has_room(call))
        call->route->handle(call);
}

/* --- long bodies ------------------------------------------------------------------------------- */

/* All other calls take small ones. */
static const struct {
    void (*handle)(struct call *call);
    size_t max; /* 0: as limits.payload has it */
} long_bodies[] = {
    { handle_jobs_post, 0 },
    { handle_job_retry, 0 },
    { handle_jobs_batch, BATCH_BODY_BYTES_MAX },
    { handle_leases_ack, MIDDLE_BODY_BYTES_MAX },
    { handle_leases_nack, MIDDLE_BODY_BYTES_MAX },
    { handle_leases_extend, MIDDLE_BODY_BYTES_MAX },
    { handle_decide, MIDDLE_BODY_BYTES_MAX },
};

static bool refuse_body(struct body_verdict *verdict, int status, const char *type, const char *format, ...)
    PRINTF_LIKE(4, 5);

static bool refuse_body(struct body_verdict *verdict, int status, const char *type, const char *format, ...)
{
    va_list args;
    verdict->status = status;
    verdict->type = type;
    va_start(args, format);
    vsnprintf(verdict->detail, sizeof verdict->detail, format, args);
    va_end(args);
    return false;
}

bool api_takes_body(struct api *api, const struct http_head *head, int64_t length, struct body_verdict *ret_verdict)
{
    const struct route *route = route_for(method_of(head), head->path);
    struct slice bearer = http_head_find(head, SLICE("Authorization"));
    int64_t payload_max = api->config->payload_bytes_max;
    bool is_job = false;
    ret_verdict->max = SMALL_BODY_BYTES_MAX;
    if (api->tokens && !tokens_find_bearer(api->tokens, bearer.data ? bearer : SLICE("")))
        return refuse_body(ret_verdict, 401, "unauthorized", "send a token: Authorization: Bearer TOKEN");
    for (size_t i = 0; i < sizeof long_bodies / sizeof *long_bodies && route; i++)
        if (long_bodies[i].handle == route->handle) {
            is_job = long_bodies[i].max == 0; /* of which each byte may be written \u00xx */
            ret_verdict->max = is_job ? (size_t)payload_max * 6 + BODY_OVERHEAD_BYTES : long_bodies[i].max;
        }
    if (length >= 0 ? (size_t)length <= ret_verdict->max : ret_verdict->max > SMALL_BODY_BYTES_MAX)
        return true;
    if (is_job)
        return refuse_body(ret_verdict, 413, "payload_too_large", "the body has %lld bytes; limits.payload is %lld",
                           (long long)length, (long long)payload_max);
    return refuse_body(ret_verdict, 413, "body_too_large", "this call takes a body of up to %zu bytes; send less at once",
                       ret_verdict->max);
}

/* --- taking jobs ------------------------------------------------------------------------------- */

static void check_disk(struct api *api)
{
    struct statvfs facts;
    instant now = api_now(api);
    struct slice store = slice_from(api->config->store);
    if (now < api->disk_checked_at + DISK_CHECK_EVERY_MS && now >= api->disk_checked_at)
        return;
    api->disk_checked_at = now;
    if (!slice_has_prefix(store, SLICE("sqlite:")))
        return;
    if (statvfs(store.data + 7, &facts) != 0)
        return; /* the store itself will say what is wrong with its file */
    int64_t free_bytes = (int64_t)(facts.f_bavail * facts.f_frsize);
    bool low = free_bytes < api->config->disk_free_bytes;
    if (low != api->disk_low)
        log_event(low ? LOG_ERROR : LOG_INFO, low ? "disk_low" : "disk_ok", FIELD_INT("free_bytes", free_bytes));
    api->disk_low = low;
}

bool api_disk_is_low(struct api *api)
{
    check_disk(api);
    return api->disk_low;
}

bool api_accepts(struct call *call)
{
    struct api *api = call->api;
    if (api->draining) {
        api->measures.refused[REFUSED_STOPPING]++;
        call_problem(call, 503, "stopping", "the daemon is stopping; try again");
        return false;
    }
    if (api_disk_is_low(api)) {
        api->measures.refused[REFUSED_DISK_FULL]++;
        call_problem(call, 503, "disk_full", "the disk has less than limits.disk_free; nothing was stored, free some space");
        return false;
    }
    return true;
}

/* --- the engine's pulse ------------------------------------------------------------------------- */

static void on_pulse_back(struct message *message)
{
    struct pulse *pulse = (struct pulse *)message;
    pulse->out = false;
    pulse->ran_at = pulse->answer;
    api_may_end(pulse->api);
}

static void on_pulse_there(struct message *message)
{
    struct pulse *pulse = (struct pulse *)message;
    pulse->answer = engine_figures(pulse->api->settings.engine).ran_at;
    if (pulse->damage.status != STATUS_OK)
        engine_store_damaged(pulse->api->settings.engine, &pulse->damage);
    pulse->message.run = on_pulse_back;
    mailbox_post(pulse->api->mailbox, &pulse->message);
}

static void on_pulse_due(evutil_socket_t fd, short what, void *context)
{
    struct api *api = context;
    (void)fd;
    (void)what;
    if (api->pulse.out || api->stopping)
        return;
    api->pulse.out = true;
    api->pulse.damage = api->damage;
    api->damage.status = STATUS_OK;
    api->pulse.asked_at = api_now(api);
    api->pulse.message.run = on_pulse_there;
    mailbox_post(api->settings.engine_mailbox, &api->pulse.message);
}

static enum status start_pulse(struct api *api, struct error *err)
{
    const struct timeval every = { PULSE_EVERY_MS / 1000, PULSE_EVERY_MS % 1000 * 1000 };
    api->pulse.api = api;
    api->pulse.timer = event_new(api->loop, -1, EV_PERSIST, on_pulse_due, api);
    if (!api->pulse.timer || event_add(api->pulse.timer, &every) != 0)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a timer");
    event_active(api->pulse.timer, EV_TIMEOUT, 1);
    return STATUS_OK;
}

/* --- life -------------------------------------------------------------------------------------- */

static void *api_main(void *context)
{
    struct api *api = context;
    event_base_loop(api->loop, EVLOOP_NO_EXIT_ON_EMPTY);
    for (int i = 0; i < FLUSH_TURNS; i++)
        event_base_loop(api->loop, EVLOOP_NONBLOCK); /* the last answers are still in libevent's buffers */
    atomic_store(&api->ended, true);
    return NULL;
}

static enum status load_tokens(struct api *api, struct error *err)
{
    if (api->config->tokens_file)
        return tokens_load(api->config->tokens_file, &api->tokens, err);
    if (!api->config->listen.loopback)
        return error_set(err, STATUS_INVALID,
                         "listen %s is not loopback: set auth.tokens_file, or anybody could send and read jobs",
                         api->config->listen.host);
    return STATUS_OK;
}

static enum status open_server(struct api *api, struct error *err)
{
    api->loop = loop_new();
    if (!api->loop)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the HTTP server");
    buffer_init(&api->scratch, ANSWER_HEADERS_BYTES_MAX * 2);
    room_init(&api->room, (size_t)api->config->body_budget_bytes);
    enum status status = rota_init(api, err);
    return status == STATUS_OK ? door_open(api, err) : status;
}

enum status api_new(const struct api_settings *settings, struct api **ret_api, struct error *err)
{
    struct api *api = calloc(1, sizeof *api);
    if (!api)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the API");
    api->settings = *settings;
    api->door.fd = -1;
    api->config = config_ref(settings->config);
    api->began_at = api_now(api);
    api->loopback = api->config->listen.loopback;
    request_measures_init(&api->measures, settings->seed);
    dead_ages_init(&api->dead_ages, settings->seed);
    enum status status = load_tokens(api, err);
    if (status == STATUS_OK)
        status = open_server(api, err);
    if (status == STATUS_OK)
        status = mailbox_new(&api->mailbox, err);
    if (status == STATUS_OK)
        status = mailbox_attach(api->mailbox, api->loop, err);
    if (status == STATUS_OK)
        status = settings->store->ops->reader(settings->store, &api->reader, err);
    if (status != STATUS_OK) {
        api_free(api);
        return status;
    }
    *ret_api = api;
    return STATUS_OK;
}

enum status api_start(struct api *api, struct error *err)
{
    if (start_pulse(api, err) != STATUS_OK)
        return STATUS_NO_MEMORY;
    if (pthread_create(&api->thread, NULL, api_main, api) != 0)
        return error_set(err, STATUS_NO_MEMORY, "cannot start the API's thread");
    api->started = true;
    return STATUS_OK;
}

/* A message that the API's thread runs once, while the sender waits for nothing. */
struct api_order {
    struct message message;
    struct api *api;
    struct config *config;
    struct tokens *tokens;
};

static struct api_order *order_new(struct api *api, void (*run)(struct message *))
{
    struct api_order *order = calloc(1, sizeof *order);
    if (order)
        *order = (struct api_order){ .message.run = run, .api = api };
    return order;
}

static void post_order(struct api *api, void (*run)(struct message *))
{
    struct api_order *order = order_new(api, run);
    if (order)
        mailbox_post(api->mailbox, &order->message);
    else
        log_event(LOG_ERROR, "order_lost", FIELD_CSTR("error", "no memory"));
}

static void on_draining(struct message *message)
{
    struct api_order *order = (struct api_order *)message;
    order->api->draining = true;
    event_streams_end(order->api, "stopping");
    free(order);
}

void api_stop_accepting(struct api *api)
{
    post_order(api, on_draining);
}

static void on_reload(struct message *message)
{
    struct api_order *order = (struct api_order *)message;
    struct api *api = order->api;
    config_unref(api->config);
    api->config = order->config;
    tokens_free(api->tokens);
    api->tokens = order->tokens;
    api->room.limit = (size_t)api->config->body_budget_bytes;
    door_measure(api);
    decisions_free(api->decisions);
    api->decisions = NULL;
    event_streams_end(api, "reloaded"); /* whose token is still good comes again */
    free(order);
}

enum status api_prepare(struct api *api, struct config *config, struct api_order **ret_order, struct error *err)
{
    struct tokens *tokens = NULL;
    if (!config->tokens_file && !api->loopback)
        return error_set(err, STATUS_INVALID, "auth.tokens_file is gone, but others can reach us");
    enum status status = config->tokens_file ? tokens_load(config->tokens_file, &tokens, err) : STATUS_OK;
    if (status != STATUS_OK)
        return status;
    struct api_order *order = order_new(api, on_reload);
    if (!order) {
        tokens_free(tokens);
        return error_set(err, STATUS_NO_MEMORY, "no memory for a reload");
    }
    order->config = config_ref(config);
    order->tokens = tokens;
    *ret_order = order;
    return STATUS_OK;
}

void api_reload(struct api_order *order)
{
    mailbox_post(order->api->mailbox, &order->message);
}

void api_forget(struct api_order *order)
{
    config_unref(order->config);
    tokens_free(order->tokens);
    free(order);
}

static void on_stop(struct message *message)
{
    struct api_order *order = (struct api_order *)message;
    struct api *api = order->api;
    api->draining = true;
    event_streams_end(api, "stopping");
    api->stopping = true;
    door_shut(api);
    free(order);
    call_streams_end(api);
    api_may_end(api);
}

void api_may_end(struct api *api)
{
    if (api->stopping && api->calls == 0 && !api->pulse.out)
        event_base_loopbreak(api->loop);
}

void api_stop(struct api *api)
{
    if (api->started)
        post_order(api, on_stop);
}

bool api_stopped(const struct api *api)
{
    return !api->started || atomic_load(&api->ended);
}

void api_free(struct api *api)
{
    if (!api)
        return;
    if (api->started)
        pthread_join(api->thread, NULL);
    door_release(api);
    rota_release(api);
    buffer_release(&api->scratch);
    if (api->pulse.timer)
        event_free(api->pulse.timer);
    if (api->stream_timer)
        event_free(api->stream_timer);
    mailbox_free(api->mailbox);
    if (api->loop)
        event_base_free(api->loop);
    if (api->reader)
        api->reader->ops->reader_close(api->reader);
    decisions_free(api->decisions);
    tokens_free(api->tokens);
    request_measures_release(&api->measures);
    dead_ages_release(&api->dead_ages);
    config_unref(api->config);
    free(api);
}

int api_port(const struct api *api)
{
    return api->port;
}
