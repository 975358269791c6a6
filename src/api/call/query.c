#include "api/call/query.h"

#include "api/call/shared.h"
#include "config/problems.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NAMES_BYTES_MAX = 256, LIMIT_DEFAULT = 100 };

struct slice address_decode(struct arena *memory, struct slice text, bool plus)
{
    char *decoded = arena_alloc(memory, text.len + 1);
    size_t len = 0;
    if (!decoded)
        return (struct slice){ NULL, 0 };
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        int high = c == '%' && i + 2 < text.len ? ascii_hex_value(text.data[i + 1]) : -1;
        int low = high >= 0 ? ascii_hex_value(text.data[i + 2]) : -1;
        if (low >= 0) {
            c = (char)(high * 16 + low);
            i += 2;
        }
        decoded[len++] = plus && text.data[i] == '+' ? ' ' : c;
    }
    decoded[len] = '\0';
    return (struct slice){ decoded, len };
}

bool query_read(struct call *call, struct slice query)
{
    size_t count = 1;
    for (size_t i = 0; i < query.len; i++)
        count += query.data[i] == '&';
    call->query.items = arena_alloc_array(&call->memory, count, sizeof *call->query.items);
    while (call->query.items && query.len > 0) {
        size_t end = slice_find(query, '&');
        struct slice one = { query.data, end };
        size_t equals = slice_find(one, '=');
        struct call_parameter *parameter = &call->query.items[call->query.count];
        if (equals == 0 || equals == one.len)
            return false;
        parameter->name = arena_copy_text(&call->memory, (struct slice){ one.data, equals });
        parameter->value = address_decode(&call->memory, slice_from_offset(one, equals + 1), true);
        if (!parameter->name || !parameter->value.data)
            return false;
        call->query.count++;
        query = slice_from_offset(query, end + 1);
    }
    return call->query.items != NULL;
}

static bool takes(const struct route *route, const char *name)
{
    for (size_t i = 0; route->query && route->query[i]; i++)
        if (strcmp(route->query[i], name) == 0)
            return true;
    return false;
}

static void refuse(struct call *call, const char *name)
{
    const char *const *known = call->route->query;
    struct nearest nearest = { .wanted = slice_from(name) };
    struct buffer names = buffer_up_to(NAMES_BYTES_MAX);
    if (!known) {
        call_problem(call, 422, "unknown_parameter", "\"%s\" is not known here; this call takes nothing behind ?",
                     quote(slice_from(name)).text);
        return;
    }
    for (size_t i = 0; known[i]; i++) {
        nearest_offer(&nearest, known[i]);
        buffer_append(&names, slice_from(i > 0 ? ", " : ""));
        buffer_append(&names, slice_from(known[i]));
    }
    if (nearest.name)
        call_problem(call, 422, "unknown_parameter", "\"%s\" is not known here; did you mean \"%s\"?",
                     quote(slice_from(name)).text, nearest.name);
    else
        call_problem(call, 422, "unknown_parameter", "\"%s\" is not known here; this call takes %.*s",
                     quote(slice_from(name)).text, SLICE_ARG(buffer_slice(&names)));
    buffer_release(&names);
}

bool query_is_known(struct call *call)
{
    if (call->route->scope == SCOPE_NONE)
        return true;
    for (size_t i = 0; i < call->query.count; i++) {
        const char *name = call->query.items[i].name;
        if (!takes(call->route, name)) {
            refuse(call, name);
            return false;
        }
        for (size_t earlier = 0; earlier < i; earlier++)
            if (strcmp(call->query.items[earlier].name, name) == 0)
                return call_problem(call, 422, "repeated_parameter", "\"%s\" is given twice; give it once", name);
    }
    return true;
}

bool call_limit(struct call *call, size_t *ret_limit)
{
    struct slice text = call_query(call, "limit");
    int64_t limit = LIMIT_DEFAULT;
    if (text.len > 0 && (!slice_to_int64(text, &limit) || limit < 1 || limit > STORE_PAGE_MAX))
        return call_problem(call, 422, "invalid_limit", "limit must be a whole number from 1 to %d", STORE_PAGE_MAX);
    *ret_limit = (size_t)limit;
    return true;
}

bool call_cursor(struct call *call, const char *name, int64_t *ret_cursor)
{
    struct slice text = call_query(call, name);
    int64_t cursor = 0;
    if (text.len > 0 && (!slice_to_int64(text, &cursor) || cursor < 0))
        return call_problem(call, 422, "invalid_cursor", "%s must be what an earlier answer gave", name);
    *ret_cursor = cursor;
    return true;
}

void json_member_cursor(struct json_writer *json, int64_t next)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, next);
    json_member_or_null(json, "next", slice_from(next > 0 ? text : ""));
}
