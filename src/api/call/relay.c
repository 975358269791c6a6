#include "api/call/relay.h"

#include "api/call/shared.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OWNER_RETRY_AFTER_S = 2, CALLER_BYTES_MAX = 4096, ANSWER_BYTES_MAX = 64 << 20 };

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

static void on_done(struct forward *forward)
{
    struct call *call = forward->context;
    int status = forward->answer.status;
    struct buffer body = forward->answer.body;
    char type[sizeof forward->answer.content_type];
    forward->answer.body = (struct buffer){ 0 };
    memcpy(type, forward->answer.content_type, sizeof type);
    call->answer.retry_after_s = OWNER_RETRY_AFTER_S;
    int wait_s = forward->answer.retry_after_s;
    bool refused = forward->refused;
    relay_free(forward);
    call->relayed = NULL;
    if (refused) {
        buffer_release(&body);
        call_problem(call, 503, "busy", "too many calls are on their way to other nodes; nothing was changed, try again");
        return;
    }
    if (status == 0) {
        buffer_release(&body);
        call_problem(call, 503, "owner_unreachable",
                     "the node that owns the destination did not answer; an order may have been taken, try again");
        return;
    }
    if (wait_s > 0) {
        char seconds[16];
        snprintf(seconds, sizeof seconds, "%d", wait_s);
        call_add_header(call, "Retry-After", seconds);
    }
    call_send(call, status, type[0] ? type : "application/json", &body);
}

static char *text_make(struct buffer *text)
{
    char *taken = buffer_status(text) == STATUS_OK ? buffer_take(text) : NULL;
    buffer_release(text);
    return taken;
}

static char *url_of(const struct call *call, const struct owner_place *place)
{
    struct buffer url;
    buffer_init(&url, 1 << 16);
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

static void hex_append(struct buffer *out, struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        buffer_printf(out, "%02x", (unsigned char)text.data[i]);
}

/* "SCOPES PRIORITY NAME TENANT", the names in hexadecimal digits; "-": no tenant. */
static char *caller_of(const struct call *call)
{
    struct buffer text;
    buffer_init(&text, CALLER_BYTES_MAX);
    buffer_printf(&text, CALLER_HEADER ": %u %d x", call->scopes, (int)call->priority_max);
    hex_append(&text, call->who);
    buffer_append_text(&text, call->tenant_bound.data ? " x" : " -");
    hex_append(&text, call->tenant_bound);
    return text_make(&text);
}

static char *header_of(const char *name, const char *before, struct slice value)
{
    struct buffer text;
    buffer_init(&text, 1 << 16);
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

void relay(struct call *call, const struct owner_place *place)
{
    const struct api_settings *settings = &call->api->settings;
    struct forward *forward = calloc(1, sizeof *forward);
    if (!forward) {
        call_no_memory(call);
        return;
    }
    buffer_init(&forward->answer.body, ANSWER_BYTES_MAX);
    forward->method = http_method_name(call->head.method == HTTP_HEAD ? HTTP_GET : call->head.method);
    forward->url = url_of(call, place);
    forward->copy = malloc(call->body.len + 1);
    forward->reply_to = call->api->mailbox;
    forward->done = on_done;
    forward->context = call;
    forward->waits = call->waits;
    if (!forward->url || !forward->copy || !headers_fill(call, forward)) {
        relay_free(forward);
        call_no_memory(call);
        return;
    }
    memcpy(forward->copy, call->body.len > 0 ? call->body.data : "", call->body.len);
    forward->body = (struct slice){ forward->copy, call->body.len };
    call->relayed = forward;
    settings->forward(settings->context, forward);
}

void relay_abandon(struct call *call)
{
    const struct api_settings *settings = &call->api->settings;
    if (call->relayed)
        settings->abandon(settings->context, call->relayed);
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

static struct slice hex_read(struct arena *memory, const char *hex)
{
    size_t len = strlen(hex) / 2;
    char *bytes = arena_alloc(memory, len + 1);
    for (size_t i = 0; bytes && i < len; i++)
        bytes[i] = (char)(ascii_hex_value(hex[2 * i]) << 4 | ascii_hex_value(hex[2 * i + 1]));
    return (struct slice){ bytes, bytes ? len : 0 };
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
    call->who = hex_read(&call->memory, who + 1);
    if (tenant[0] == 'x')
        call->tenant_bound = hex_read(&call->memory, tenant + 1);
    *ret_bad = !call->who.data || (tenant[0] == 'x' && !call->tenant_bound.data);
    return !*ret_bad;
}
