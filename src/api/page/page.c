/*
 * The page for people: files that are built into the program. They hold no facts, so they are open to all; the scripts
 * ask the API for those, with the token that they were given.
 */
#include "api/page/page.h"
#include "base/embedded.h"
#include "base/hash.h"

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

/* A browser asks each time, and hears that it has the same: a new version is seen at once. */
static void send_file(struct call *call, const char *name, const char *content_type)
{
    const struct embedded_file *file = find_file(name);
    struct slice text = { file->data ? file->data : "", file->len };
    struct slice had = call_header(call, SLICE("If-None-Match"));
    char tag[24];
    struct buffer body = call_buffer();
    snprintf(tag, sizeof tag, "\"%016" PRIx64 "\"", hash_slice(0, 0, text));
    call_add_header(call, "ETag", tag);
    call_add_header(call, "Cache-Control", "no-cache");
    call_add_header(call, "Content-Security-Policy", policy);
    call_add_header(call, "Referrer-Policy", "no-referrer");
    call_add_header(call, "Cross-Origin-Opener-Policy", "same-origin");
    bool same = slice_equal(had, slice_from(tag));
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
