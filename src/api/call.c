#include "api/call.h"

#include "api/api_private.h"

#include <event2/buffer.h>
#include <event2/http.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_BYTES_MAX = 256 << 20, LIMIT_DEFAULT = 100, DETAIL_BYTES_MAX = 1024 };

struct buffer call_buffer(void)
{
    struct buffer buffer;
    buffer_init(&buffer, ANSWER_BYTES_MAX);
    return buffer;
}

struct slice call_query(const struct call *call, const char *name)
{
    return slice_from(evhttp_find_header(call->query, name));
}

bool call_limit(struct call *call, size_t *ret_limit)
{
    struct slice text = call_query(call, "limit");
    int64_t limit = LIMIT_DEFAULT;
    if (text.len > 0 && (!slice_to_int64(text, &limit) || limit < 1 || limit > STORE_PAGE_MAX)) {
        call_problem(call, 422, "invalid_limit", "limit must be a whole number from 1 to %d", STORE_PAGE_MAX);
        return false;
    }
    *ret_limit = (size_t)limit;
    return true;
}

bool call_tenant(struct call *call, struct slice asked, struct slice *ret_tenant)
{
    if (!call->tenant_bound.data) {
        *ret_tenant = asked;
        return true;
    }
    if (asked.len > 0 && !slice_equal(asked, call->tenant_bound)) {
        call_problem(call, 403, "forbidden_tenant", "this token may act for tenant \"%.*s\" only", SLICE_ARG(call->tenant_bound));
        return false;
    }
    *ret_tenant = call->tenant_bound;
    return true;
}

static void call_free(struct call *call)
{
    call->api->calls--;
    if (call->query) {
        evhttp_clear_headers(call->query);
        free(call->query);
    }
    batch_free(call->batch);
    arena_release(&call->memory);
    free(call);
}

static void release_text(const void *data, size_t len, void *context)
{
    (void)len;
    (void)context;
    free((void *)(uintptr_t)data);
}

void call_send(struct call *call, int status, const char *content_type, struct buffer *body)
{
    enum status made = buffer_status(body);
    if (!call->http) { /* the client did not wait */
        buffer_release(body);
        call_free(call);
        return;
    }
    if (made != STATUS_OK) {
        buffer_release(body);
        buffer_append_text(body, "{\"type\":\"answer_too_large\",\"title\":\"Internal Server Error\",\"status\":500,"
                                 "\"detail\":\"the answer is too large; ask for less with limit\"}");
        status = 500;
        content_type = "application/problem+json";
    }
    struct evkeyvalq *headers = evhttp_request_get_output_headers(call->http);
    evhttp_add_header(headers, "Content-Type", content_type);
    size_t len = body->len;
    char *text = buffer_take(body);
    struct evbuffer *out = evhttp_request_get_output_buffer(call->http);
    if (text && evbuffer_add_reference(out, text, len, release_text, NULL) != 0)
        free(text);
    evhttp_connection_set_closecb(evhttp_request_get_connection(call->http), NULL, NULL);
    evhttp_send_reply(call->http, status, NULL, NULL);
    call_free(call);
}

void call_json(struct call *call, int status, struct buffer *body)
{
    call_send(call, status, "application/json", body);
}

static const char *title_of(int status)
{
    static const struct { int status; const char *title; } titles[] = {
        { 400, "Bad Request" },       { 401, "Unauthorized" },         { 403, "Forbidden" },          { 404, "Not Found" },
        { 405, "Method Not Allowed" }, { 409, "Conflict" },            { 413, "Payload Too Large" },  { 415, "Unsupported Media Type" },
        { 422, "Unprocessable Content" }, { 429, "Too Many Requests" }, { 500, "Internal Server Error" }, { 503, "Service Unavailable" },
    };
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        if (titles[i].status == status)
            return titles[i].title;
    return "Error";
}

void call_problem(struct call *call, int status, const char *type, const char *format, ...)
{
    char detail[DETAIL_BYTES_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);

    struct buffer body = call_buffer();
    struct json_writer json = json_writer(&body);
    json_object_begin(&json);
    json_member_text(&json, "type", type);
    json_member_text(&json, "title", title_of(status));
    json_member_int(&json, "status", status);
    json_member_text(&json, "detail", detail);
    json_object_end(&json);
    if (call->http && (status == 429 || status == 503)) {
        char seconds[16];
        snprintf(seconds, sizeof seconds, "%d", RETRY_AFTER_S);
        evhttp_add_header(evhttp_request_get_output_headers(call->http), "Retry-After", seconds);
    }
    if (call->http && status == 401)
        evhttp_add_header(evhttp_request_get_output_headers(call->http), "WWW-Authenticate", "Bearer");
    call_send(call, status, "application/problem+json", &body);
}

void call_store_problem(struct call *call, enum status status, const struct error *err)
{
    if (status == STATUS_FULL)
        call_problem(call, 503, "store_full", "%s; nothing was changed, try again later", err->text);
    else
        call_problem(call, 503, "store_failed", "the store failed: %s; nothing was acknowledged", err->text);
}

static void on_applied(struct batch *batch)
{
    struct call *call = batch->context;
    call->then(call);
}

void call_submit(struct call *call, void (*then)(struct call *call))
{
    call->then = then;
    call->batch->context = call;
    call->batch->done = on_applied;
    call->batch->reply_to = call->api->mailbox;
    writer_submit(call->api->settings.writer, call->batch);
}

static void on_returned(struct message *message)
{
    struct call *call = (struct call *)message;
    call->then(call);
}

static void on_engine(struct message *message)
{
    struct call *call = (struct call *)message;
    call->run(call, call->api->settings.engine);
}

void call_engine(struct call *call, void (*run)(struct call *call, struct engine *engine), void (*then)(struct call *call))
{
    call->run = run;
    call->then = then;
    call->message.run = on_engine;
    mailbox_post(call->api->settings.engine_mailbox, &call->message);
}

void call_return(struct call *call)
{
    call->message.run = on_returned;
    mailbox_post(call->api->mailbox, &call->message);
}
