#include "api/http/answer.h"

#include "api/http/server.h"

#include <event2/event.h>
#include <event2/util.h>

static const char *title_of(int status)
{
    static const struct {
        int status;
        const char *title;
    } titles[] = {
        { 200, "OK" },
        { 201, "Created" },
        { 202, "Accepted" },
        { 204, "No Content" },
        { 304, "Not Modified" },
        { 400, "Bad Request" },
        { 401, "Unauthorized" },
        { 403, "Forbidden" },
        { 404, "Not Found" },
        { 405, "Method Not Allowed" },
        { 408, "Request Timeout" },
        { 409, "Conflict" },
        { 413, "Payload Too Large" },
        { 415, "Unsupported Media Type" },
        { 417, "Expectation Failed" },
        { 421, "Misdirected Request" },
        { 422, "Unprocessable Content" },
        { 429, "Too Many Requests" },
        { 500, "Internal Server Error" },
        { 501, "Not Implemented" },
        { 503, "Service Unavailable" },
    };
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        if (titles[i].status == status)
            return titles[i].title;
    return "Error";
}

/* The header is written once a second. */
static const char *date_of(struct http_server *server)
{
    struct timeval now;
    event_base_gettimeofday_cached(server->loop, &now);
    if (now.tv_sec != server->date_s && evutil_date_rfc1123(server->date, sizeof server->date, NULL) > 0)
        server->date_s = now.tv_sec;
    return server->date;
}

void answer_head_write(struct http_server *server, const struct answer_form *form, struct buffer *out)
{
    buffer_append_text(out, "HTTP/1.1 ");
    buffer_append_int64(out, form->status);
    buffer_append_byte(out, ' ');
    buffer_append_text(out, title_of(form->status));
    buffer_append_text(out, "\r\nContent-Type: ");
    buffer_append_text(out, form->content_type);
    buffer_append_text(out, "\r\nDate: ");
    buffer_append_text(out, date_of(server));
    buffer_append_text(out, "\r\n");
    buffer_append_text(out, ANSWER_FOR_ALL);
    if (!form->cached)
        buffer_append_text(out, ANSWER_NOT_CACHED);
    buffer_append(out, form->headers);
    if (form->length >= 0 && form->status != 204 && form->status != 304) {
        buffer_append_text(out, "Content-Length: ");
        buffer_append_int64(out, form->length);
        buffer_append_text(out, "\r\n");
    }
    if (form->length == ANSWER_IN_CHUNKS)
        buffer_append_text(out, "Transfer-Encoding: chunked\r\n");
    if (form->closes)
        buffer_append_text(out, "Connection: close\r\n");
    else if (form->old)
        buffer_append_text(out, "Connection: keep-alive\r\n");
    buffer_append_text(out, "\r\n");
}

void json_member_place(struct json_writer *json, struct text_place place)
{
    if (place.line == 0)
        return;
    json_member_int(json, "line", (int64_t)place.line);
    json_member_int(json, "column", (int64_t)place.column);
}

void problem_write(struct buffer *out, int status, const char *type, struct text_place place, const char *detail)
{
    struct json_writer json = json_begin(out);
    json_member_text(&json, "type", type);
    json_member_text(&json, "title", title_of(status));
    json_member_int(&json, "status", status);
    json_member_text(&json, "detail", detail);
    json_member_place(&json, place);
    json_object_end(&json);
}
