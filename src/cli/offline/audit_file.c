#include "cli/offline/audit_file.h"

#include "base/json.h"
#include "base/units.h"
#include "cli/talk/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

enum { LINE_BYTES_MAX = 1 << 20 };

/* ---- writing ---- */

static void member_hex(struct json_writer *json, const char *name, const unsigned char *bytes, size_t count)
{
    char text[EVENT_HASH_BYTES * 2 + 1];
    hex_format(bytes, count, text);
    json_member_text(json, name, text);
}

void audit_line_begin(struct buffer *out, const struct trail_head *anchor)
{
    struct json_writer json = json_writer(out);
    json_object_begin(&json);
    json_member_int(&json, "after", anchor->number);
    member_hex(&json, "hash", anchor->hash, EVENT_HASH_BYTES);
    json_object_end(&json);
    buffer_append_byte(out, '\n');
}

void audit_line_event(struct buffer *out, const struct event *event)
{
    struct json_writer json = json_writer(out);
    json_object_begin(&json);
    json_member_int(&json, "number", event->number);
    json_member_instant(&json, "at", event->at);
    json_member_text(&json, "type", event_type_name(event->type));
    if (event->state != STATE_NONE)
        json_member_text(&json, "state", job_state_name(event->state));
    json_member_int(&json, "attempt", event->attempt);
    json_member_int(&json, "previous", event->previous);
    json_member_given(&json, "destination", event->destination);
    json_member_given(&json, "tenant", event->tenant);
    json_member_given(&json, "job", event->job);
    json_member_int(&json, "form", event->form);
    json_member_given(&json, "data", event->data);
    if (event->erased)
        member_hex(&json, "digest", event->digest, EVENT_HASH_BYTES);
    else if (event->data.len > 0 && event->form != EVENT_FORM_PLAIN)
        member_hex(&json, "salt", event->salt, EVENT_SALT_BYTES);
    member_hex(&json, "hash", event->hash, EVENT_HASH_BYTES);
    json_object_end(&json);
    buffer_append_byte(out, '\n');
}

/* ---- reading ---- */

static struct slice text_of(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_string(value) ? (struct slice){ json_string_value(value), json_string_length(value) } : SLICE("");
}

static int64_t int_of(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

/* Hexadecimal digits of just so many bytes; absent: zeros. */
static bool bytes_of(const json_t *object, const char *name, unsigned char *ret_bytes, size_t count)
{
    char padded[EVENT_HASH_BYTES * 2];
    unsigned char bytes[EVENT_HASH_BYTES];
    struct slice text = text_of(object, name);
    memset(ret_bytes, 0, count);
    if (text.len == 0)
        return true;
    if (text.len != count * 2)
        return false;
    memset(padded, '0', sizeof padded);
    memcpy(padded, text.data, text.len);
    if (!trail_hash_parse((struct slice){ padded, sizeof padded }, bytes))
        return false;
    memcpy(ret_bytes, bytes, count);
    return true;
}

/* Borrows from the object. */
static bool event_of(const json_t *object, struct event *ret_event)
{
    struct slice state = text_of(object, "state");
    struct event event = {
        .number = int_of(object, "number"),
        .type = event_type_from_name(text_of(object, "type")),
        .state = state.len ? job_state_from_name(state) : STATE_NONE,
        .attempt = int_of(object, "attempt"),
        .previous = int_of(object, "previous"),
        .destination = text_of(object, "destination"),
        .tenant = text_of(object, "tenant"),
        .job = text_of(object, "job"),
        .data = text_of(object, "data"),
        .form = (enum event_form)int_of(object, "form"),
        .erased = json_object_get(object, "digest") != NULL,
    };
    *ret_event = event;
    return event.type != EVENT_TYPE_NONE && instant_parse(text_of(object, "at"), &ret_event->at, NULL) == STATUS_OK &&
           bytes_of(object, "salt", ret_event->salt, EVENT_SALT_BYTES) &&
           bytes_of(object, "digest", ret_event->digest, EVENT_HASH_BYTES) &&
           bytes_of(object, "hash", ret_event->hash, EVENT_HASH_BYTES) && !(event.erased && event.data.len > 0);
}

struct reading {
    struct trail_check check;
    bool begun;
    int64_t line;
};

static enum status line_read(struct reading *reading, struct slice line, struct error *err)
{
    struct event event;
    struct trail_head anchor;
    enum status status = STATUS_CORRUPT;
    json_t *object = json_loadb(line.data, line.len, JSON_ALLOW_NUL, NULL);
    reading->line++;
    error_set(err, status, "line %" PRId64 " is none of an exported trail", reading->line);
    if (object && !reading->begun && json_is_integer(json_object_get(object, "after")) &&
        bytes_of(object, "hash", anchor.hash, EVENT_HASH_BYTES)) {
        anchor.number = int_of(object, "after");
        const struct trail_check *check = &reading->check;
        trail_check_begin(&reading->check, check->key, &anchor, check->expected, check->expected_count);
        reading->begun = true;
        status = STATUS_OK;
    } else if (object && reading->begun && event_of(object, &event)) {
        status = trail_check_event(&reading->check, &event, err);
    }
    json_decref(object);
    return status;
}

static enum status lines_read(struct reading *reading, struct lines *lines, struct error *err)
{
    enum status status = STATUS_OK;
    struct slice line;
    while (status == STATUS_OK) {
        enum line_kind kind = lines_next(lines, &line);
        if (kind == LINE_WHOLE)
            status = line_read(reading, line, err);
        else if (kind == LINE_TOO_LONG)
            status = error_set(err, STATUS_CORRUPT, "line %" PRId64 " is too long for an event", reading->line + 1);
        else if (lines->ended)
            break;
        else if (!lines_fill(lines))
            status = error_set(err, STATUS_IO, "cannot read it: %s", strerror(errno));
    }
    if (status == STATUS_OK && !reading->begun)
        status = error_set(err, STATUS_CORRUPT, "it is empty: an exported trail has a first line at least");
    return status;
}

enum status audit_file_verify(const char *path, const struct trail_key *key, const struct trail_head *expected,
                              size_t expected_count, struct trail_check *ret_check, struct error *err)
{
    static const struct trail_head none;
    struct reading reading = { .check = { .key = key, .expected = expected, .expected_count = expected_count } };
    struct lines lines;
    int descriptor = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return error_set(err, STATUS_NOT_FOUND, "cannot open %s: %s", path, strerror(errno));
    enum status status = lines_init(&lines, descriptor, LINE_BYTES_MAX);
    if (status == STATUS_OK) {
        status = lines_read(&reading, &lines, err);
        lines_release(&lines);
    } else {
        error_set(err, status, "no memory to read it");
    }
    if (descriptor != STDIN_FILENO)
        close(descriptor);
    if (status == STATUS_OK)
        status = trail_check_end(&reading.check, &none, err);
    *ret_check = reading.check;
    return status;
}
