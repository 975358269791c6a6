#include "api/serve/routes.h"

#include "api/call/query.h"
#include "config/problems.h"

#include <string.h>

enum { METHODS_BYTES_MAX = 64 };

/* One segment off the front of a path. */
static struct slice take_segment(struct slice *path)
{
    if (path->len > 0 && path->data[0] == '/')
        *path = slice_from_offset(*path, 1);
    size_t end = slice_find(*path, '/');
    struct slice segment = { path->data, end };
    *path = slice_from_offset(*path, end);
    return segment;
}

static bool take_parameter(struct call *call, struct slice segment, size_t *count)
{
    if (!call)
        return true; /* it is not asked for */
    call->parameters[*count] = address_decode(&call->memory, segment, false);
    return call->parameters[(*count)++].data != NULL;
}

static bool path_matches(struct call *call, const char *pattern, struct slice path)
{
    struct slice rest = slice_from(pattern);
    size_t parameters = 0;
    while (rest.len > 0 || path.len > 0) {
        if (rest.len == 0 || path.len == 0)
            return false;
        struct slice wanted = take_segment(&rest);
        struct slice segment = take_segment(&path);
        bool parameter = wanted.len > 0 && wanted.data[0] == '{';
        if (parameter ? segment.len == 0 || !take_parameter(call, segment, &parameters) : !slice_equal(wanted, segment))
            return false;
    }
    return true;
}

const struct route *route_find(struct call *call, const char *method, struct slice path)
{
    for (const struct route *route = api_routes; route->method; route++)
        if (strcmp(route->method, method) == 0 && path_matches(call, route->pattern, path))
            return route;
    return NULL;
}

/* As the header Allow has them; empty: there is no such path. */
static struct buffer methods_of(struct call *call, struct slice path)
{
    struct buffer methods = buffer_up_to(METHODS_BYTES_MAX);
    for (const struct route *route = api_routes; route->method; route++)
        if (path_matches(call, route->pattern, path)) {
            buffer_append_text(&methods, methods.len > 0 ? ", " : "");
            buffer_append_text(&methods, route->method);
            if (strcmp(route->method, "GET") == 0)
                buffer_append_text(&methods, ", HEAD");
        }
    return methods;
}

static size_t segments_in(struct slice path)
{
    size_t count = 0;
    for (size_t i = 0; i < path.len; i++)
        count += path.data[i] == '/';
    return count;
}

/* Whether it would be a job's or another's path, were it not for the slashes in its id. */
static bool has_slashes_in_id(struct slice path)
{
    for (const struct route *route = api_routes; route->method; route++) {
        struct slice pattern = slice_from(route->pattern);
        size_t fixed = slice_find(pattern, '{');
        if (fixed < pattern.len && segments_in(path) > segments_in(pattern) &&
            slice_has_prefix(path, (struct slice){ pattern.data, fixed }))
            return true;
    }
    return false;
}

static void refuse_path(struct call *call, struct slice path)
{
    struct nearest nearest = { .wanted = path };
    struct slice shorter = path;
    while (shorter.len > 1 && shorter.data[shorter.len - 1] == '/')
        shorter.len--;
    struct buffer methods = methods_of(call, shorter);
    bool slash = shorter.len < path.len && methods.len > 0;
    buffer_release(&methods);
    for (const struct route *route = api_routes; route->method; route++)
        if (!strchr(route->pattern, '{'))
            nearest_offer(&nearest, route->pattern);
    if (slash)
        call_problem(call, 404, "not_found", "there is nothing here; take the / at the end of the path away");
    else if (nearest.name)
        call_problem(call, 404, "not_found", "there is nothing here; did you mean %s?", nearest.name);
    else if (has_slashes_in_id(path))
        call_problem(call, 404, "not_found", "there is nothing here; in an id or a name, / is written %%2F");
    else
        call_problem(call, 404, "not_found", "there is nothing here; see /openapi.json");
}

void route_problem(struct call *call, struct slice path)
{
    struct buffer methods = methods_of(call, path);
    if (methods.len > 0) {
        call_add_header(call, "Allow", methods.data);
        call_problem(call, 405, "method_not_allowed", "this path takes %s; see /openapi.json", methods.data);
    } else {
        refuse_path(call, path);
    }
    buffer_release(&methods);
}
