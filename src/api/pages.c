#include "api/pages.h"

#include <inttypes.h>
#include <stdio.h>

bool call_cursor(struct call *call, const char *name, int64_t *ret_cursor)
{
    struct slice text = call_query(call, name);
    int64_t cursor = 0;
    if (text.len > 0 && (!slice_to_int64(text, &cursor) || cursor < 0)) {
        call_problem(call, 422, "invalid_cursor", "%s must be what an earlier answer gave", name);
        return false;
    }
    *ret_cursor = cursor;
    return true;
}

void json_member_cursor(struct json_writer *json, int64_t next)
{
    char text[24];
    json_name(json, "next");
    if (next <= 0) {
        json_put_null(json);
        return;
    }
    snprintf(text, sizeof text, "%" PRId64, next);
    json_put_string(json, slice_from(text));
}
