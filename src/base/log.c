#include "base/log.h"

#include "base/json.h"

#include <stdatomic.h>
#include <unistd.h>

enum { LINE_BYTES_MAX = 64 * 1024, FIELD_BYTES_MAX = 4096 };

static const char *const level_names[] = {
    [LOG_DEBUG] = "debug", [LOG_INFO] = "info", [LOG_WARN] = "warn", [LOG_ERROR] = "error"
};

static atomic_int threshold = LOG_INFO;

void log_set_level(enum log_level level)
{
    atomic_store(&threshold, (int)level);
}

bool log_writes(enum log_level level)
{
    return (int)level >= atomic_load(&threshold);
}

bool log_level_from_name(struct slice name, enum log_level *ret_level)
{
    for (int i = LOG_DEBUG; i <= LOG_ERROR; i++)
        if (slice_equal_nocase(name, slice_from(level_names[i]))) {
            *ret_level = (enum log_level)i;
            return true;
        }
    return false;
}

/* A line too long would be lost as a whole: rather the end of a text. */
static struct slice shortened(struct slice text)
{
    return (struct slice){ text.data, text.len < FIELD_BYTES_MAX ? text.len : FIELD_BYTES_MAX };
}

static void write_field(struct json_writer *json, const struct field *field)
{
    switch (field->kind) {
    case FIELD_KIND_TEXT:
        json_member_string(json, field->name, shortened(field->text));
        break;
    case FIELD_KIND_INT:
        json_member_int(json, field->name, field->number);
        break;
    case FIELD_KIND_REAL:
        json_name(json, field->name);
        json_put_real(json, field->real);
        break;
    case FIELD_KIND_INSTANT:
        json_member_instant(json, field->name, field->number);
        break;
    }
}

void log_fields(enum log_level level, const char *event, const struct field *fields, size_t count)
{
    if (!log_writes(level))
        return;
    struct buffer line = buffer_up_to(LINE_BYTES_MAX);
    struct json_writer json = json_begin(&line);
    json_member_instant(&json, "timestamp", clock_now());
    json_member_text(&json, "level", level_names[level]);
    json_member_text(&json, "event", event);
    for (size_t i = 0; i < count; i++)
        write_field(&json, &fields[i]);
    json_object_end(&json);
    buffer_append_byte(&line, '\n');
    if (buffer_status(&line) == STATUS_OK) {
        /* One write a line, so that threads do not mix; a closed standard error is nobody's to hear of. */
        ssize_t written = write(STDERR_FILENO, line.data, line.len);
        (void)written;
    }
    buffer_release(&line);
}
