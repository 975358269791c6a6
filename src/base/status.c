#include "base/status.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

enum status error_set(struct error *err, enum status status, const char *format, ...)
{
    assert(status > STATUS_OK && status < STATUS_COUNT);
    if (!err)
        return status;
    err->status = status;

    va_list args;
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    return status;
}

const char *status_name(enum status status)
{
    static const char *const names[STATUS_COUNT] = {
        [STATUS_OK] = "ok",
        [STATUS_INVALID] = "invalid",
        [STATUS_NOT_FOUND] = "not_found",
        [STATUS_CONFLICT] = "conflict",
        [STATUS_FULL] = "full",
        [STATUS_LIMIT] = "limit",
        [STATUS_BUSY] = "busy",
        [STATUS_AWAY] = "away",
        [STATUS_FENCED] = "fenced",
        [STATUS_NO_MEMORY] = "no_memory",
        [STATUS_IO] = "io",
        [STATUS_CORRUPT] = "corrupt",
        [STATUS_UNSUPPORTED] = "unsupported",
    };
    assert(status >= STATUS_OK && status < STATUS_COUNT);
    return names[status];
}
