/*
 * The page for people: files that are built into the program. They hold no facts, so they are open to all; the scripts
 * ask the API for those, with the token that they were given.
 */
#include "api/api_private.h"
#include "base/embedded.h"
#include "base/hash.h"

#include <event2/http.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Nothing of others is loaded, nothing is run that is not in a script of ours, and nobody may put the page in a frame. */
static const char policy[] = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
                             "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

static const struct embedded_file *find_file(const char *name)
{
    const struct embedded_file *file = embedded_api;
    while (file->name && strcmp(file->name, name) != 0)
        file++;
    return file;
}

/* A browser asks each time, and is told that it has the same: a new version is seen at once. */
static void send_file(struct call *call, const char *name, const char *content_type)
{
    const struct embedded_file *file = find_file(name);
    struct slice text = { file->data ? file->data : "", file->len };
    struct evkeyvalq *headers = evhttp_request_get_output_headers(call->http);
    const char *had = evhttp_find_header(evhttp_request_get_input_headers(call->http), "If-None-Match");
    char tag[24];
    struct buffer body = call_buffer();
    snprintf(tag, sizeof tag, "\"%016" PRIx64 "\"", hash_slice(0, 0, text));
    evhttp_add_header(headers, "ETag", tag);
    evhttp_add_header(headers, "Cache-Control", "no-cache");
    evhttp_add_header(headers, "Content-Security-Policy", policy);
    evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
    evhttp_add_header(headers, "Referrer-Policy", "no-referrer");
    evhttp_add_header(headers, "Cross-Origin-Opener-Policy", "same-origin");
    bool same = had && strcmp(had, tag) == 0;
    if (!same)
        buffer_append(&body, text);
    call_send(call, same ? 304 : 200, content_type, &body);
}

void handle_root(struct call *call)
{
    send_file(call, "page.html", "text/html; charset=utf-8");
}

void handle_page_style(struct call *call)
{
    send_file(call, call->route->pattern + 1, "text/css; charset=utf-8");
}

void handle_page_script(struct call *call)
{
    send_file(call, call->route->pattern + 1, "text/javascript; charset=utf-8");
}
