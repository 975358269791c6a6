#include "api/call/relay.h"

#include "api/call/shared.h"
#include "api/http/client.h"
#include "base/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OWNER_RETRY_AFTER_S = 2, CALLER_BYTES_MAX = 4096 };

#define CALLER_HEADER "Insist-Caller"

static void relay_free(struct forward *forward)
{
    free(forward->url);
    for (size_t i = 0; i < sizeof forward->headers / sizeof *forward->headers; i++)
        free(forward->headers[i]);
    free(forward->copy);
    buffer_release(&forward->answer.body);
    free(forward);
}

/* ---- the answer ---- */

static bool is_json(const char *type)
{
    struct slice media = slice_from(type);
    media.len = strcspn(type, "; ");
    return slice_equal_nocase(media, SLICE("application/json")) ||
           slice_equal_nocase(media, SLICE("application/problem+json"));
}

/* False: that was the answer to the client, who hears what is wrong with the node instead. */
static bool answer_is_usable(struct call *call, const struct forward *forward)
{
    const char *node = forward->to.node, *failure = forward->answer.failure;
    int status = forward->answer.status;
    if (forward->refused)
        call_problem(call, 503, "busy", "too many calls are on their way to other nodes; nothing was changed, try again");
    else if (status == 0 && forward->answer.reached)
        call_problem(call, 503, "owner_unreachable",
                     "node \"%s\" owns the destination and did not answer (%s); an order may have been taken, try again",
                     node, failure);
    else if (status == 0)
        call_problem(call, 503, "owner_unreachable",
                     "node \"%s\" owns the destination and is not reached (%s); nothing was changed, try again",
                     node, failure);
    else if (status == 401 || status == 421) /* who has called is known here: nodes are set up differently */
        call_problem(call, 503, "owner_refuses",
                     "node \"%s\" owns the destination and refuses calls of this node (HTTP %d); node.token%s must be the same "
                     "on all nodes", node, status, call->api->config->node.token ? "" : ", or the tokens file,");
    else if (!is_json(forward->answer.content_type))
        call_problem(call, 503, "owner_strange",
                     "node \"%s\" owns the destination, and what answers in its place is no insist (HTTP %d); see its "
                     "node.url", node, status);
    else
        return true;
    return false;
}

static void on_done(struct forward *forward)
{
    struct call *call = forward->context;
    struct buffer *body = &forward->answer.body;
    call->answer.retry_after_s = OWNER_RETRY_AFTER_S;
    call->asked.relayed = NULL;
    if (answer_is_usable(call, forward)) {
        char seconds[16];
        snprintf(seconds, sizeof seconds, "%d", forward->answer.retry_after_s);
        if (forward->answer.retry_after_s > 0)
            call_add_header(call, "Retry-After", seconds);
        call_send(call, forward->answer.status, forward->answer.content_type, body);
    }
    relay_free(forward);
}

/* ---- the question ---- */

static char *text_make(struct buffer *text)
{
    char *taken = buffer_status(text) == STATUS_OK ? buffer_take(text) : NULL;
    buffer_release(text);
    return taken;
}

static char *url_of(const struct call *call, const struct owner_place *place)
{
    struct buffer url = buffer_up_to(1 << 16);
    buffer_append_text(&url, place->url);
    if (url.len > 0 && url.data[url.len - 1] == '/')
        url.data[--url.len] = '\0';
    buffer_append(&url, call->head.path);
    if (call->head.query.len > 0) {
        buffer_append_text(&url, "?");
        buffer_append(&url, call->head.query);
    }
    return text_make(&url);
}

/* "SCOPES PRIORITY NAME TENANT", the names in hexadecimal digits; "-": no tenant. */
static char *caller_of(const struct call *call)
{
    struct buffer text = buffer_up_to(CALLER_BYTES_MAX);
    buffer_printf(&text, CALLER_HEADER ": %u %d x", call->scopes, (int)call->priority_max);
    buffer_append_hex(&text, call->who);
    buffer_append_text(&text, call->tenant_bound.data ? " x" : " -");
    buffer_append_hex(&text, call->tenant_bound);
    return text_make(&text);
}

static char *header_of(const char *name, const char *before, struct slice value)
{
    struct buffer text = buffer_up_to(1 << 16);
    buffer_printf(&text, "%s: %s", name, before);
    buffer_append(&text, value);
    return text_make(&text);
}

/* False: there is no memory. */
static bool headers_fill(const struct call *call, struct forward *forward)
{
    const char *token = call->api->config->node.token;
    struct slice own = call_header(call, SLICE("Authorization")), type = call_header(call, SLICE("Content-Type"));
    size_t count = 0, wanted = 1;
    forward->headers[count++] = header_of(RELAYED_HEADER, "", SLICE("1"));
    if (type.len > 0)
        forward->headers[wanted++] = header_of("Content-Type", "", type);
    if (token) {
        forward->headers[wanted++] = header_of("Authorization", "Bearer ", slice_from(token));
        forward->headers[wanted++] = caller_of(call);
    } else if (own.len > 0) {
        forward->headers[wanted++] = header_of("Authorization", "", own);
    }
    for (count = 0; count < wanted; count++)
        if (!forward->headers[count])
            return false;
    return true;
}

/* NULL: there is no memory. */
static struct forward *relay_make(struct call *call, const struct owner_place *place)
{
    struct forward *forward = calloc(1, sizeof *forward);
    if (!forward)
        return NULL;
    forward->answer.body = call_buffer();
    forward->method = http_method_name(call->head.method == HTTP_HEAD ? HTTP_GET : call->head.method);
    forward->url = url_of(call, place);
    forward->copy = malloc(call->body.len + 1);
    forward->to = *place;
    forward->wait_s = call->asked.wait_s;
    forward->reply_to = call->api->mailbox;
    forward->done = on_done;
    forward->context = call;
    if (!forward->url || !forward->copy || !headers_fill(call, forward)) {
        relay_free(forward);
        return NULL;
    }
    memcpy(forward->copy, call->body.len > 0 ? call->body.data : "", call->body.len);
    forward->body = (struct slice){ forward->copy, call->body.len };
    return forward;
}

void relay(struct call *call, const struct owner_place *place)
{
    const struct api_settings *settings = &call->api->settings;
    struct forward *forward = relay_make(call, place);
    if (!forward) {
        call_no_memory(call);
        return;
    }
    if (call->client)
        client_give_room(call->client); /* it is counted when it comes: many who wait must not stop who does not */
    call->asked.relayed = forward;
    settings->forward(settings->context, forward);
}

void relay_abandon(struct call *call)
{
    const struct api_settings *settings = &call->api->settings;
    if (call->asked.relayed)
        settings->abandon(settings->context, call->asked.relayed);
}

bool relay_is_one(const struct call *call)
{
    return call_header(call, SLICE(RELAYED_HEADER)).len > 0;
}

/* ---- at the other end ---- */

bool relay_is_from_node(const struct api *api, struct slice header)
{
    static const char scheme[] = "Bearer ";
    const char *token = api->config->node.token;
    size_t len = token ? strlen(token) : 0, skip = sizeof scheme - 1;
    unsigned char differs = 0;
    if (len == 0 || header.len != len + skip || memcmp(header.data, scheme, skip) != 0)
        return false;
    for (size_t i = 0; i < len; i++) /* all of it, so that the time tells nothing */
        differs |= (unsigned char)(header.data[skip + i] ^ token[i]);
    return differs == 0;
}

bool relay_identify(struct call *call, bool *ret_bad)
{
    struct slice caller = call_header(call, SLICE(CALLER_HEADER));
    char text[CALLER_BYTES_MAX], who[2048], tenant[2048];
    unsigned scopes;
    int priority;
    *ret_bad = false;
    if (!relay_is_from_node(call->api, call_header(call, SLICE("Authorization"))))
        return false;
    *ret_bad = true;
    if (caller.len >= sizeof text)
        return false;
    snprintf(text, sizeof text, "%.*s", SLICE_ARG(caller));
    if (sscanf(text, "%u %d %2047s %2047s", &scopes, &priority, who, tenant) != 4 || who[0] != 'x' || priority < 0 ||
        priority >= PRIORITY_COUNT)
        return false;
    call->scopes = scopes;
    call->priority_max = (enum priority)priority;
    call->who = hex_parse(slice_from(who + 1), &call->memory);
    if (tenant[0] == 'x')
        call->tenant_bound = hex_parse(slice_from(tenant + 1), &call->memory);
    *ret_bad = !call->who.data || (tenant[0] == 'x' && !call->tenant_bound.data);
    return !*ret_bad;
}
