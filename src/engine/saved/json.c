#include "engine/saved/json.h"

struct slice saved_text(const json_t *object, const char *name)
{
    return slice_from(json_string_value(json_object_get(object, name)));
}

int64_t saved_count(const json_t *object, const char *name)
{
    int64_t count = json_integer_value(json_object_get(object, name));
    return count > 0 ? count : 0;
}

instant saved_instant(const json_t *object, const char *name)
{
    instant at;
    return instant_parse(saved_text(object, name), &at, NULL) == STATUS_OK ? at : INSTANT_NONE;
}
