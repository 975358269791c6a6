#include "cli/operate/follow.h"

#include <inttypes.h>
#include <stdio.h>

struct reading {
    struct follow *follow;
    struct buffer text; /* that is not complete yet */
    json_t *events;     /* of this piece */
    bool enough, again;
    enum status status;
};

/* The value of a field in a block of lines; empty: absent. Of each there is one. */
static struct slice field_of(struct slice block, struct slice name)
{
    while (block.len > 0) {
        size_t end = slice_find(block, '\n');
        struct slice line = { block.data, end };
        if (slice_has_prefix(line, name))
            return slice_trim(slice_from_offset(line, name.len));
        block = slice_from_offset(block, end < block.len ? end + 1 : end);
    }
    return SLICE("");
}

static void take_block(struct reading *reading, struct slice block)
{
    struct slice id = field_of(block, SLICE("id:")), name = field_of(block, SLICE("event:"));
    struct slice data = field_of(block, SLICE("data:"));
    if (id.len > 0 && !slice_to_int64(id, &reading->follow->after))
        reading->status = STATUS_INVALID;
    if (data.len == 0)
        return;
    json_t *value = json_loadb(data.data, data.len, JSON_ALLOW_NUL, NULL);
    if (!value || (name.len == 0 && json_array_append(reading->events, value) != 0))
        reading->status = STATUS_INVALID;
    const char *reason = json_string_value(json_object_get(value, "reason"));
    if (slice_equal(name, SLICE("end")))
        reading->again =
            slice_equal(slice_from(reason), SLICE("reloaded")) || slice_equal(slice_from(reason), SLICE("slow"));
    json_decref(value);
}

static bool take_bytes(void *context, struct slice bytes)
{
    struct reading *reading = context;
    buffer_append(&reading->text, bytes);
    struct slice rest = buffer_slice(&reading->text);
    for (size_t end; (end = slice_search(rest, SLICE("\n\n"))) < rest.len; rest = slice_from_offset(rest, end + 2))
        take_block(reading, (struct slice){ rest.data, end });
    if (buffer_status(&reading->text) != STATUS_OK || reading->status != STATUS_OK)
        return false;
    struct buffer saved;
    buffer_init(&saved, CLI_OUTPUT_BYTES_MAX);
    buffer_append(&saved, rest);
    buffer_release(&reading->text);
    reading->text = saved;
    if (json_array_size(reading->events) > 0)
        reading->enough = !reading->follow->take(reading->follow->context, reading->events);
    json_array_clear(reading->events);
    return !reading->enough;
}

static enum status read_stream(struct reading *reading, struct reply *ret_reply, struct error *err)
{
    struct url url;
    char after[24] = "";
    const struct follow *follow = reading->follow;
    if (follow->after >= 0)
        snprintf(after, sizeof after, "%" PRId64, follow->after);
    url_init(&url, "/v1/events/stream");
    url_query(&url, "after", after);
    url_query(&url, "job", follow->job);
    url_query(&url, "tenant", follow->tenant);
    const struct request request = { .method = "GET", .url = &url, .take = take_bytes, .context = reading };
    enum status status = client_try(follow->client, &request, ret_reply, err);
    url_release(&url);
    return status;
}

int follow_events(struct follow *follow, bool *ret_refused)
{
    struct reading reading = { .follow = follow, .events = json_array(), .again = true };
    struct reply reply = { 0 };
    struct error error;
    int code = reading.events ? EXIT_DONE : cli_fail(EXIT_FAILED, "no memory for the events");
    *ret_refused = false;
    buffer_init(&reading.text, CLI_OUTPUT_BYTES_MAX);
    while (code == EXIT_DONE && reading.again && !reading.enough && !*ret_refused) {
        reading.again = false;
        buffer_clear(&reading.text);
        enum status status = read_stream(&reading, &reply, &error);
        *ret_refused = status == STATUS_OK && reply.status == 503;
        if (reading.status != STATUS_OK)
            code = cli_fail(EXIT_FAILED, "the stream of events cannot be read; is it an insist daemon?");
        else if (status != STATUS_OK && !reading.enough)
            code = cli_fail(EXIT_FAILED, "%s", error.text);
        else if (reply.status / 100 != 2 && !*ret_refused)
            code = client_refused(follow->client, &reply);
        reply_release(&reply);
    }
    if (code == EXIT_DONE && !reading.enough && !*ret_refused)
        code = cli_fail(EXIT_FAILED, "the daemon has ended the stream; to go on later: --after %" PRId64, follow->after);
    buffer_release(&reading.text);
    json_decref(reading.events);
    return code;
}
