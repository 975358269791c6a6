/*
 * log.h - what the daemon says to its operator: one JSON object a line on standard error.
 *
 * Event names are stable, facts are fields. Payloads and secrets never appear (invariant 9).
 * Only engine, api, cli and main log.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/clock.h"
#include "base/slice.h"

enum log_level {
    LOG_DEBUG,
    LOG_INFO,
    LOG_WARN,
    LOG_ERROR,
    LOG_NONE, /* for log_set_level: nothing at all */
};

enum field_kind {
    FIELD_KIND_TEXT,
    FIELD_KIND_INT,
    FIELD_KIND_REAL,
    FIELD_KIND_INSTANT, /* left out when INSTANT_NONE */
};

struct field {
    const char *name;
    enum field_kind kind;
    struct slice text;
    int64_t number;
    double real;
};

#define FIELD_TEXT(field_name, value) ((struct field){ .name = (field_name), .kind = FIELD_KIND_TEXT, .text = (value) })
#define FIELD_CSTR(field_name, value) FIELD_TEXT(field_name, slice_from(value))
#define FIELD_INT(field_name, value) ((struct field){ .name = (field_name), .kind = FIELD_KIND_INT, .number = (value) })
#define FIELD_REAL(field_name, value) ((struct field){ .name = (field_name), .kind = FIELD_KIND_REAL, .real = (value) })
#define FIELD_INSTANT(field_name, value)                                                                                    \
    ((struct field){ .name = (field_name), .kind = FIELD_KIND_INSTANT, .number = (value) })

/* log_event(LOG_WARN, "retry_scheduled", FIELD_TEXT("job", job->id), FIELD_INT("attempt", 2)); at least one field. */
#define log_event(level, event, ...) \
    log_fields(level, event, (const struct field[]){ __VA_ARGS__ }, \
               sizeof((const struct field[]){ __VA_ARGS__ }) / sizeof(struct field))

void log_fields(enum log_level level, const char *event, const struct field *fields, size_t count);

/* Below this level nothing is written; LOG_INFO at first. */
void log_set_level(enum log_level level);
/* For what is costly to put together. */
bool log_writes(enum log_level level);
bool log_level_from_name(struct slice name, enum log_level *ret_level);

#endif
