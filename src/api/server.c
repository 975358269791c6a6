#include "api/api.h"

#include "api/api_private.h"
#include "api/decisions.h"
#include "api/query.h"
#include "api/routing.h"
#include "base/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/statvfs.h>

enum { FLUSH_TURNS = 16 };

instant api_now(const struct api *api)
{
    return api->settings.now ? api->settings.now(api->settings.context) : clock_now();
}

/* --- routing ----------------------------------------------------------------------------------- */

static const char *method_name(enum evhttp_cmd_type method)
{
    switch (method) {
    case EVHTTP_REQ_GET:
        return "GET";
    case EVHTTP_REQ_HEAD:
        return "GET"; /* the answer leaves the body out */
    case EVHTTP_REQ_POST:
        return "POST";
    case EVHTTP_REQ_PATCH:
        return "PATCH";
    case EVHTTP_REQ_DELETE:
        return "DELETE";
    default:
        return "";
    }
}

/* --- who may ----------------------------------------------------------------------------------- */

/* A name with a dot that is neither an address nor under localhost: anybody may own it and let it point here. */
static bool host_is_foreign(struct slice host)
{
    bool letters = false, dots = false;
    if (host.len > 0 && host.data[0] == '[')
        return false;
    host.len = slice_find(host, ':');
    for (size_t i = 0; i < host.len; i++) {
        dots = dots || host.data[i] == '.';
        letters = letters || (!ascii_is_digit(host.data[i]) && host.data[i] != '.');
    }
    return letters && dots && !slice_has_suffix(host, SLICE(".localhost"));
}

/*
 * Without tokens everything that runs on this machine may call, web pages of others in a browser included: those are
 * told by their Origin, or by the name under which they made the browser find us. False: answered with 403 already.
 */
static bool not_a_foreign_page(struct call *call)
{
    const struct evkeyvalq *headers = evhttp_request_get_input_headers(call->http);
    struct slice host = slice_from(evhttp_find_header(headers, "Host"));
    struct slice origin = slice_from(evhttp_find_header(headers, "Origin"));
    struct slice scheme_end = SLICE("://");
    size_t authority = slice_search(origin, scheme_end) + scheme_end.len;
    bool foreign = origin.len > 0 && (authority > origin.len || !slice_equal(slice_from_offset(origin, authority), host));
    if (!foreign && !host_is_foreign(host))
        return true;
    call_problem(call, 403, "forbidden_origin",
                 "web pages of other hosts may not call; use 127.0.0.1 or localhost, or set auth.tokens_file");
    return false;
}

/* False: answered with 401 or 403 already. */
static bool authorise(struct call *call)
{
    const struct tokens *tokens = call->api->tokens;
    call->scopes = SCOPE_ENQUEUE | SCOPE_READ | SCOPE_OPERATE | SCOPE_ADMIN | SCOPE_WORK;
    call->who = SLICE("loopback");
    if (call->route->scope == SCOPE_NONE)
        return true;
    if (!tokens)
        return not_a_foreign_page(call);
    struct slice header = slice_from(evhttp_find_header(evhttp_request_get_input_headers(call->http), "Authorization"));
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

static struct call *call_new(struct api *api, struct evhttp_request *http)
{
    struct client *client = client_of(api, evhttp_request_get_connection(http));
    struct call *call = client ? calloc(1, sizeof *call) : NULL;
    struct evkeyvalq *query = calloc(1, sizeof *query);
    if (!call || !query) {
        free(call);
        free(query);
        return NULL;
    }
    TAILQ_INIT(query);
    call->api = api;
    call->http = http;
    call->client = client;
    call->query = query;
    call->who = SLICE("");
    call->began_ns = clock_ticks_ns();
    arena_init(&call->memory, SIZE_MAX / 4);
    api->calls++;
    client_request_read(client);
    client_watch(client, on_client_gone, call);
    return call;
}

static void take_body(struct call *call)
{
    struct evbuffer *input = evhttp_request_get_input_buffer(call->http);
    size_t len = evbuffer_get_length(input);
    const unsigned char *data = len > 0 ? evbuffer_pullup(input, -1) : NULL;
    if (data)
        call->body = (struct slice){ (const char *)data, len };
}

/*
 * Requests that a proxy before us might cut elsewhere than libevent does: two lengths, a length beside chunks, or a
 * blank before a header's colon.
 */
static bool is_ambiguous(const struct call *call)
{
    const struct evkeyvalq *headers = evhttp_request_get_input_headers(call->http);
    const struct evkeyval *header;
    size_t framings = 0;
    TAILQ_FOREACH(header, headers, next) {
        struct slice name = slice_from(header->key);
        framings +=
            slice_equal_nocase(name, SLICE("Content-Length")) || slice_equal_nocase(name, SLICE("Transfer-Encoding"));
        if (name.len == 0 || slice_trim(name).len < name.len)
            return true;
    }
    return framings > 1;
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
static bool address_is_clean(struct call *call, const char *query)
{
    bool clean = !query || slice_search(slice_from(query), SLICE("%00")) == strlen(query);
    for (size_t i = 0; i < CALL_PARAMETERS_MAX && clean; i++)
        clean = !has_control(call->parameters[i]);
    if (!clean)
        call_problem(call, 422, "invalid_address",
                     "the address has a control character, as %%00 or %%0A; no id and no name has one");
    return clean;
}

static void on_request(struct evhttp_request *http, void *context)
{
    struct api *api = context;
    struct call *call = call_new(api, http);
    if (!call) {
        evhttp_send_error(http, 503, NULL);
        return;
    }
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(http);
    struct slice path = slice_from(uri ? evhttp_uri_get_path(uri) : NULL);
    const char *query = uri ? evhttp_uri_get_query(uri) : NULL;
    if (is_ambiguous(call)) {
        evhttp_add_header(evhttp_request_get_output_headers(http), "Connection", "close");
        call_problem(call, 400, "ambiguous_request", "give one Content-Length or one Transfer-Encoding, and no blank "
                                                     "before a header's colon");
        return;
    }
    if (query && evhttp_parse_query_str(query, call->query) != 0) {
        call_problem(call, 400, "bad_query", "behind ? stand NAME=VALUE, joined by &");
        return;
    }
    call->route = route_find(call, method_name(evhttp_request_get_command(http)), path);
    if (!call->route)
        route_problem(call, path);
    else if (api->stopping)
        call_problem(call, 503, "stopping", "the daemon is stopping; try again");
    else if (client_is_too_many(call->client)) {
        evhttp_add_header(evhttp_request_get_output_headers(http), "Connection", "close");
        call_problem(call, 503, "too_many_connections",
                     "limits.connections (%lld) are open already; use fewer at a time, or raise it",
                     (long long)api->config->connections_max);
    } else if (authorise(call) && address_is_clean(call, query) && query_is_known(call)) {
        take_body(call);
        call->route->handle(call);
    }
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

/* The API of this thread: libevent gives its listener's callbacks its own server, from which ours cannot be found. */
static _Thread_local struct api *api_here;

static void *api_main(void *context)
{
    struct api *api = context;
    api_here = api;
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

static void on_accept_again(evutil_socket_t fd, short what, void *context)
{
    struct api *api = context;
    (void)fd;
    (void)what;
    if (!api->stopping) /* the socket is gone then */
        evconnlistener_enable(evhttp_bound_socket_get_listener(api->socket));
}

/* No descriptors or no memory left. Who knocks is still there in a moment; asking at once again would never end. */
static void on_accept_failed(struct evconnlistener *listener, void *context)
{
    const struct timeval pause = { 0, ACCEPT_PAUSE_MS * 1000 };
    struct api *api = api_here;
    int number = EVUTIL_SOCKET_ERROR();
    (void)context;
    instant now = api_now(api);
    if (now >= api->accept_told_at + ACCEPT_TELL_EVERY_MS || now < api->accept_told_at) {
        log_event(LOG_ERROR, "accept_failed", FIELD_CSTR("error", strerror(number)),
                  FIELD_CSTR("advice", "raise the limit of open files, or lower limits.connections"));
        api->accept_told_at = now;
    }
    if (event_add(api->accept_again, &pause) == 0)
        evconnlistener_disable(listener);
}

static enum status watch_accept(struct api *api, struct error *err)
{
    struct evconnlistener *listener = evhttp_bound_socket_get_listener(api->socket);
    const int on = 1;
    /* Accepted sockets take it over. Without it the end of a long answer waits until the client confirms its beginning. */
    if (setsockopt(evconnlistener_get_fd(listener), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
        log_event(LOG_WARN, "nodelay_refused", FIELD_CSTR("error", strerror(errno)));
    api->accept_again = event_new(api->loop, -1, 0, on_accept_again, api);
    if (!api->accept_again)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a timer");
    evconnlistener_set_error_cb(listener, on_accept_failed);
    return STATUS_OK;
}

static enum status bind_address(struct api *api, struct error *err)
{
    const struct listen_address *listen = &api->config->listen;
    api->socket = evhttp_bind_socket_with_handle(api->http, listen->host, (uint16_t)listen->port);
    if (!api->socket)
        return error_set(err, STATUS_IO, "cannot listen on %s:%d: %s; is another insist running? set `listen:` or stop it",
                         listen->host, listen->port, strerror(errno));
    struct sockaddr_storage bound;
    socklen_t len = sizeof bound;
    evutil_socket_t fd = evhttp_bound_socket_get_fd(api->socket);
    if (getsockname(fd, (struct sockaddr *)&bound, &len) == 0)
        api->port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                                       : ((struct sockaddr_in *)&bound)->sin_port);
    return STATUS_OK;
}

static enum status open_server(struct api *api, struct error *err)
{
    api->loop = loop_new();
    api->http = api->loop ? evhttp_new(api->loop) : NULL;
    if (!api->http)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the HTTP server");
    clients_watch(api);
    evhttp_set_gencb(api->http, on_request, api);
    evhttp_set_max_headers_size(api->http, HEADER_BYTES_MAX);
    evhttp_set_max_body_size(api->http, UNKNOWN_BODY_BYTES_MAX); /* until a connection is watched */
    evhttp_set_timeout(api->http, CLIENT_TIMEOUT_S);
    /* Those that no path takes are let in to be answered with 405, as all problems are. */
    evhttp_set_allowed_methods(api->http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST | EVHTTP_REQ_PATCH |
                                              EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS);
    evhttp_set_default_content_type(api->http, NULL);
    enum status status = bind_address(api, err);
    return status == STATUS_OK ? watch_accept(api, err) : status;
}

enum status api_new(const struct api_settings *settings, struct api **ret_api, struct error *err)
{
    struct api *api = calloc(1, sizeof *api);
    if (!api)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the API");
    api->settings = *settings;
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
    evhttp_del_accept_socket(api->http, api->socket);
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
    if (api->http)
        evhttp_free(api->http);
    clients_release(api);
    if (api->pulse.timer)
        event_free(api->pulse.timer);
    if (api->accept_again)
        event_free(api->accept_again);
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
