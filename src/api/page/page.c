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

/* The one of that name, or the end of the table. */
static const struct embedded_file *find_file(struct slice name)
{
    const struct embedded_file *file = embedded_api;
    while (file->name && !slice_equal(slice_from(file->name), name))
        file++;
    return file;
}

/* The same file packed, for those who take that; else as it is. */
static const struct embedded_file *packed(struct call *call, const struct embedded_file *file)
{
    char name[64];
    struct slice wish = call_header(call, SLICE("Accept-Encoding"));
    bool fits = (size_t)snprintf(name, sizeof name, "%s.gz", file->name) < sizeof name;
    call_add_header(call, "Vary", "Accept-Encoding");
    if (!fits || wish.len == 0 || !memmem(wish.data, wish.len, "gzip", strlen("gzip")))
        return file;
    const struct embedded_file *found = find_file(slice_from(name));
    if (!found->name)
        return file;
    call_add_header(call, "Content-Encoding", "gzip");
    return found;
}

/* A browser asks each time, and hears that it has the same: a new version is seen at once. */
static void send_file(struct call *call, const struct embedded_file *file, const char *content_type)
{
    file = packed(call, file);
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
    send_file(call, find_file(SLICE("page.html")), "text/html; charset=utf-8");
}

/* What a browser is to take a file for; NULL: it is no file of the page. */
static const char *content_type_of(struct slice name)
{
    static const struct { const char *end, *content_type; } kinds[] = {
        { ".css", "text/css; charset=utf-8" },
        { ".js", "text/javascript; charset=utf-8" },
        { ".json", "application/json" },
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (slice_has_suffix(name, slice_from(kinds[i].end)))
            return kinds[i].content_type;
    return NULL;
}

void handle_page_file(struct call *call)
{
    struct slice name = call->parameters[0];
    const struct embedded_file *file = find_file(name);
    const char *content_type = content_type_of(name);
    if (file->name && content_type)
        send_file(call, file, content_type);
    else
        call_problem(call, 404, "not_found", "the page has no such file");
}
