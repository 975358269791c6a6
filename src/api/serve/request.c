/*
 * From a complete request to its handler: whose it is, what it may, which route it means, whether there is room to answer.
 */
#include "api/serve/request.h"

#include "api/call/body.h"
#include "api/call/query.h"
#include "api/call/relay.h"
#include "api/http/client.h"
#include "api/http/head.h"
#include "api/jobs/jobs.h"
#include "api/serve/routes.h"
#include "base/clock.h"
#include "config/config.h"
#include "config/problems.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ANSWER_HEADERS_BYTES_MAX = 4096,
    PAYLOADS_A_PAGE = 50,
    BODY_OVERHEAD_BYTES = 64 * 1024, /* of a job's JSON around its payload */
};

/*
 * ---- by which name we are called, and from which page ----
 *
 * A page that somebody opens in a browser can call what listens on their machine, by a name of its own that it lets point
 * there, or across sites. Neither is taken.
 */

/* A name may be written with a dot behind it. */
static struct slice without_dot(struct slice name)
{
    if (name.len > 1 && name.data[name.len - 1] == '.')
        name.len--;
    return name;
}

/* Where other nodes call this one: whoever says so has the name right. */
static bool is_node_url(const struct config *config, struct slice name)
{
    struct slice url = slice_from(config->node.url ? config->node.url : ""), scheme_end = SLICE("://"), own;
    size_t authority = slice_search(url, scheme_end) + scheme_end.len;
    bool is_address;
    if (authority > url.len)
        return false;
    url = slice_from_offset(url, authority);
    url.len = slice_search(url, SLICE("/"));
    return http_host_split(url, &own, &is_address) && slice_equal_nocase(without_dot(name), without_dot(own));
}

/* Whether it is localhost, an address, or one of `hosts`. */
static bool host_is_ours(const struct config *config, struct slice host)
{
    struct slice name;
    bool is_address;
    if (host.len == 0 || !http_host_split(host, &name, &is_address))
        return host.len == 0; /* HTTP/1.0, which no browser speaks */
    if (is_address || slice_equal_nocase(without_dot(name), SLICE("localhost")))
        return true;
    for (size_t i = 0; i < config->hosts.count; i++)
        if (slice_equal_nocase(without_dot(name), slice_from(config->hosts.items[i])))
            return true;
    return is_node_url(config, name);
}

/*
 * Browsers say where a request is from; same-site may still be another's, on another port. Pages without facts may be
 * linked to from anywhere.
 */
static bool is_cross_site(const struct http_head *head, bool is_open)
{
    struct slice site = http_head_find(head, SLICE("Sec-Fetch-Site"));
    bool navigates = slice_equal(http_head_find(head, SLICE("Sec-Fetch-Mode")), SLICE("navigate"));
    if (site.len == 0 || slice_equal(site, SLICE("same-origin")) || slice_equal(site, SLICE("none")))
        return false;
    return !(navigates && is_open);
}

static bool is_foreign_origin(const struct http_head *head)
{
    struct slice origin = http_head_find(head, SLICE("Origin")), scheme_end = SLICE("://");
    size_t authority = slice_search(origin, scheme_end) + scheme_end.len;
    return origin.len > 0 &&
           (authority > origin.len || !slice_equal_nocase(slice_from_offset(origin, authority), head->host));
}

/* ---- whose it is, and what it may ---- */

static bool has_scope(struct call *call)
{
    if (call->scopes & call->route->scope)
        return true;
    return call_problem(call, 403, "forbidden_scope", "token \"%.*s\" does not have the scope %s, which this call needs",
                        SLICE_ARG(call->who), scope_name(call->route->scope));
}

/* False: answered with 401 or 403 already. */
static bool authorise(struct call *call)
{
    const struct tokens *tokens = call->api->tokens;
    call->scopes = SCOPE_ENQUEUE | SCOPE_READ | SCOPE_OPERATE | SCOPE_ADMIN | SCOPE_WORK;
    call->who = SLICE("loopback");
    /* A page of others; what has no facts may be linked to from anywhere. */
    if (!tokens && (is_cross_site(&call->head, call->route->scope == SCOPE_NONE) || is_foreign_origin(&call->head)))
        return call_problem(call, 403, "forbidden_origin",
                            "web pages of other hosts may not call; use 127.0.0.1 or localhost, or set auth.tokens_file");
    if (!tokens || call->route->scope == SCOPE_NONE)
        return true;
    bool bad_relay;
    if (relay_identify(call, &bad_relay))
        return has_scope(call);
    if (bad_relay)
        return call_problem(call, 401, "unauthorized", "a node passes this call on and does not say for whom");
    struct slice header = call_header(call, SLICE("Authorization"));
    const struct token *token = tokens_find_bearer(tokens, header);
    if (!token)
        return call_problem(call, 401, "unauthorized", "%s: Authorization: Bearer TOKEN",
                            header.len > 0 ? "the daemon's tokens file has no such token; send one that it has"
                                           : "send a token");
    call->scopes = token->scopes;
    call->priority_max = token->priority_max;
    call->who = arena_copy(&call->memory, slice_from(token->name)); /* a reload frees the tokens */
    if (token->tenant)
        call->tenant_bound = arena_copy(&call->memory, slice_from(token->tenant));
    if (call->who.data && (!token->tenant || call->tenant_bound.data))
        return has_scope(call);
    return call_no_memory(call);
}

/* A call about what all tenants share. False: answered already. */
static bool is_for_caller(struct call *call)
{
    const char *shared = call->route->shared;
    return !shared || !call->tenant_bound.data ||
           call_problem(call, 403, "forbidden_tenant", "this token acts for one tenant; %s", shared);
}

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
    buffer_init(&call->answer.headers, ANSWER_HEADERS_BYTES_MAX);
    api->calls++;
    client_watch(client, on_client_gone, NULL, call);
    return call;
}

/*
 * No id and no name has a control character, and a text cut short at one would be another's. It is false where the call
 * was answered.
 */
static bool address_is_clean(struct call *call)
{
    struct slice query = call->head.query;
    bool clean = query.len == 0 || slice_search(query, SLICE("%00")) == query.len;
    for (size_t i = 0; i < CALL_PARAMETERS_MAX && clean; i++)
        clean = !slice_has_control(call->parameters[i]);
    if (!clean)
        call_problem(call, 422, "invalid_address",
                     "the address has a control character, as %%00 or %%0A; no id and no name has one");
    return clean;
}

/* Compressed bytes would be taken for what they are not. False: answered already. */
static bool body_is_plain(struct call *call)
{
    struct slice coding = call_header(call, SLICE("Content-Encoding"));
    if (call->body.len == 0 || coding.len == 0 || slice_equal_nocase(coding, SLICE("identity")))
        return true;
    return call_problem(call, 415, "unsupported_encoding",
                        "the body has Content-Encoding %s, which is not taken; send it as it is, without that header",
                        quote(coding).text);
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

void api_request(void *context, struct client *client, const struct http_head *head, struct slice body)
{
    struct api *api = context;
    struct call *call = call_new(api, client, head, body);
    if (!call) {
        client_end(client);
        return;
    }
    if (!host_is_ours(api->config, head->host)) {
        client_close_after(client);
        call_problem(call, 421, "unknown_host",
                     "Host \"%s\" is not known here; call 127.0.0.1 or localhost, or add the name to `hosts:`",
                     quote(head->host).text);
        return;
    }
    if (head->query.len > 0 && !query_read(call, head->query)) {
        call_problem(call, 400, "bad_query", "behind ? stand NAME=VALUE, joined by &");
        return;
    }
    call->route = route_find(call, method_of(head), head->path);
    if (!call->route)
        route_problem(call, head->path);
    else if (api->stopping)
        call_problem(call, 503, "stopping", "the daemon is stopping; try again");
    else if (authorise(call) && address_is_clean(call) && query_is_known(call) && is_for_caller(call) &&
             body_is_plain(call) && (!call->route->members || body_read(call)) && has_room(call))
        call->route->handle(call);
}

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

bool api_takes_body(void *context, const struct http_head *head, int64_t length, struct body_verdict *ret_verdict)
{
    struct api *api = context;
    const struct route *route = route_find(NULL, method_of(head), head->path);
    struct slice found = http_head_find(head, SLICE("Authorization")), bearer = found.data ? found : SLICE("");
    int64_t payload_max = api->config->payload_bytes_max;
    size_t max = route ? route->body_bytes_max : 0;
    bool is_job = max == BODY_OF_PAYLOAD; /* of which each byte may be written \u00xx */
    ret_verdict->max = is_job ? (size_t)payload_max * 6 + BODY_OVERHEAD_BYTES : max > 0 ? max : SMALL_BODY_BYTES_MAX;
    if (api->tokens && !tokens_find_bearer(api->tokens, bearer) && !relay_is_from_node(api, bearer))
        return refuse_body(ret_verdict, 401, "unauthorized", "send a token: Authorization: Bearer TOKEN");
    if (length >= 0 ? (size_t)length <= ret_verdict->max : ret_verdict->max > SMALL_BODY_BYTES_MAX)
        return true;
    if (is_job)
        return refuse_body(ret_verdict, 413, "payload_too_large", "the body has %lld bytes; limits.payload is %lld",
                           (long long)length, (long long)payload_max);
    return refuse_body(ret_verdict, 413, "body_too_large", "this call takes a body of up to %zu bytes; send less at once",
                       ret_verdict->max);
}

void api_refused(void *context, int status)
{
    struct api *api = context;
    request_measured(&api->measures, NULL, status, 0);
}
