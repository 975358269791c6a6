#include "api/api.h"

#include "api/call/pieces.h"
#include "api/call/shared.h"
#include "api/jobs/decisions.h"
#include "api/jobs/causes.h"
#include "api/observe/dead_ages.h"
#include "api/observe/observe.h"
#include "api/serve/request.h"
#include "base/log.h"

#include <event2/event.h>
#include <stdlib.h>

enum { FLUSH_TURNS = 16, ANSWER_HEAD_BYTES_MAX = 8192 };

static void *api_main(void *context)
{
    struct api *api = context;
    event_base_loop(api->http.loop, EVLOOP_NO_EXIT_ON_EMPTY);
    for (int i = 0; i < FLUSH_TURNS; i++)
        event_base_loop(api->http.loop, EVLOOP_NONBLOCK); /* the last answers are still in libevent's buffers */
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

static int64_t ticks_ms(void *context)
{
    const struct api *api = context;
    return api->settings.ticks_ms ? api->settings.ticks_ms(api->settings.context) : clock_ticks_ns() / 1000000;
}

static enum status open_server(struct api *api, struct error *err)
{
    api->http.config = api->config;
    api->http.service = (struct http_service){ api, api_request, api_takes_body, api_refused, ticks_ms };
    api->http.loop = loop_new();
    if (!api->http.loop)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the HTTP server");
    buffer_init(&api->scratch, ANSWER_HEAD_BYTES_MAX);
    room_init(&api->http.room, (size_t)api->config->body_budget_bytes);
    enum status status = rota_init(&api->http.rota, api->http.loop, err);
    return status == STATUS_OK ? door_open(&api->http, err) : status;
}

/* One that can be away may let us wait: not here, where everybody is answered. */
static enum status open_reader(struct api *api, struct error *err)
{
    struct store *store = api->settings.store;
    return store->ops->outcome ? reads_new(store, &api->reader.apart, err)
                               : store->ops->reader(store, &api->reader.here, err);
}

enum status api_new(const struct api_settings *settings, struct api **ret_api, struct error *err)
{
    struct api *api = calloc(1, sizeof *api);
    if (!api)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the API");
    api->settings = *settings;
    api->http.door.fd = -1;
    api->config = config_ref(settings->config);
    api->began_at = api_now(api);
    api->loopback = api->config->listen.loopback;
    request_measures_init(&api->measures, settings->seed);
    enum status status = dead_ages_new(settings->seed, &api->dead.ages, err);
    if (status == STATUS_OK)
        status = load_tokens(api, err);
    if (status == STATUS_OK)
        status = open_server(api, err);
    if (status == STATUS_OK)
        status = mailbox_new(&api->mailbox, err);
    if (status == STATUS_OK)
        status = mailbox_attach(api->mailbox, api->http.loop, err);
    if (status == STATUS_OK)
        status = open_reader(api, err);
    if (status != STATUS_OK) {
        api_free(api);
        return status;
    }
    *ret_api = api;
    return STATUS_OK;
}

enum status api_start(struct api *api, struct error *err)
{
    if (pulse_start(api, err) != STATUS_OK)
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

static struct api_order *order_new(struct api *api)
{
    struct api_order *order = calloc(1, sizeof *order);
    if (order)
        *order = (struct api_order){ .api = api };
    return order;
}

static void post_order(struct api *api, void (*run)(struct message *))
{
    struct api_order *order = order_new(api);
    if (order)
        mailbox_post(api->mailbox, &order->message, MESSAGE_ORDER, run);
    else
        log_event(LOG_ERROR, "order_lost", FIELD_CSTR("error", "no memory"));
}

static void on_draining(struct message *message)
{
    struct api_order *order = message_of(message, MESSAGE_ORDER);
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
    struct api_order *order = message_of(message, MESSAGE_ORDER);
    struct api *api = order->api;
    config_unref(api->config);
    api->config = order->config;
    api->http.config = api->config;
    tokens_free(api->tokens);
    api->tokens = order->tokens;
    api->http.room.limit = (size_t)api->config->body_budget_bytes;
    door_measure(&api->http);
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
    struct api_order *order = order_new(api);
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
    mailbox_post(order->api->mailbox, &order->message, MESSAGE_ORDER, on_reload);
}

void api_forget(struct api_order *order)
{
    config_unref(order->config);
    tokens_free(order->tokens);
    free(order);
}

static void on_stop(struct message *message)
{
    struct api_order *order = message_of(message, MESSAGE_ORDER);
    struct api *api = order->api;
    api->draining = true;
    event_streams_end(api, "stopping");
    api->stopping = true;
    door_shut(&api->http);
    free(order);
    call_streams_end(api);
    api_may_end(api);
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
    reads_free(api->reader.apart); /* which has nothing of any call any more */
    door_release(&api->http);
    rota_release(&api->http.rota);
    buffer_release(&api->scratch);
    if (api->pulse.timer)
        event_free(api->pulse.timer);
    if (api->streams.timer)
        event_free(api->streams.timer);
    mailbox_free(api->mailbox);
    if (api->http.loop)
        event_base_free(api->http.loop);
    if (api->reader.here)
        api->reader.here->ops->reader_close(api->reader.here);
    decisions_free(api->decisions);
    tokens_free(api->tokens);
    request_measures_release(&api->measures);
    dead_ages_free(api->dead.ages);
    causes_free(api->dead.causes);
    config_unref(api->config);
    free(api);
}

int api_port(const struct api *api)
{
    return api->http.port;
}
