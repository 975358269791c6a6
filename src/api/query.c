#include "api/query.h"

#include "api/api_private.h"
#include "config/problems.h"

#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <string.h>
#include <sys/queue.h>

enum { NAMES_BYTES_MAX = 256 };

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
    struct buffer names;
    if (!known) {
        call_problem(call, 422, "unknown_parameter", "\"%s\" is not known here; this call takes nothing behind ?",
                     quote(slice_from(name)).text);
        return;
    }
    buffer_init(&names, NAMES_BYTES_MAX);
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
    const struct evkeyval *parameter, *earlier;
    if (call->route->scope == SCOPE_NONE)
        return true;
    TAILQ_FOREACH(parameter, call->query, next) {
        if (!takes(call->route, parameter->key)) {
            refuse(call, parameter->key);
            return false;
        }
        for (earlier = TAILQ_FIRST(call->query); earlier != parameter; earlier = TAILQ_NEXT(earlier, next))
            if (strcmp(earlier->key, parameter->key) == 0) {
                call_problem(call, 422, "repeated_parameter", "\"%s\" is given twice; give it once", parameter->key);
                return false;
            }
    }
    return true;
}
