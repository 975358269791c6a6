#include "guests/source_entry.h"

#include "api/call/json_text.h"
#include "base/json.h"

enum { ENTRY_BYTES_OVERHEAD = 256 * 1024 }; /* what a job may have besides its payload */

enum field_kind_of {
    FIELD_STRING,
    FIELD_JSON,    /* an object */
    FIELD_PAYLOAD, /* JSON, text or bytes */
    FIELD_IGNORED, /* what another insist says of its own attempt */
};

static const struct {
    const char *name;
    enum field_kind_of kind;
} known[] = {
    { "payload", FIELD_PAYLOAD },     { "id", FIELD_STRING },           { "tenant", FIELD_STRING },
    { "priority", FIELD_STRING },     { "run_at", FIELD_STRING },       { "deadline", FIELD_STRING },
    { "content_type", FIELD_STRING }, { "correlation_id", FIELD_STRING }, { "key", FIELD_STRING },
    { "headers", FIELD_JSON },        { "metadata", FIELD_JSON },       { "callback", FIELD_JSON },
    { "destination", FIELD_IGNORED }, { "idempotency_key", FIELD_IGNORED }, { "attempt", FIELD_IGNORED },
};
enum { KNOWN_COUNT = sizeof known / sizeof *known };

static bool write_payload(struct json_writer *json, struct slice value)
{
    struct slice text = slice_trim(value);
    bool structured = text.len > 0 && (text.data[0] == '{' || text.data[0] == '[') && json_text_is_valid(text);
    if (structured)
        json_member_raw(json, "payload", text);
    else
        json_member_bytes(json, "payload", "payload_base64", value);
    return true;
}

static bool write_field(struct json_writer *json, size_t which, struct slice value, struct problem *problem)
{
    const char *name = known[which].name;
    if (known[which].kind == FIELD_IGNORED)
        return true;
    if (known[which].kind == FIELD_PAYLOAD)
        return write_payload(json, value);
    if (!utf8_is_valid(value))
        return problem_set(problem, 422, "invalid_member", "field %s is not UTF-8", name);
    if (known[which].kind == FIELD_STRING) {
        json_member_string(json, name, value);
        return true;
    }
    struct slice text = slice_trim(value);
    if (!json_text_is_valid(text) || text.data[0] != '{')
        return problem_set(problem, 422, "invalid_member", "field %s is no JSON object", name);
    json_member_raw(json, name, text);
    return true;
}

/* KNOWN_COUNT: it is not known. */
static size_t field_find(struct slice name)
{
    size_t which = 0;
    while (which < KNOWN_COUNT && !slice_equal(name, slice_from(known[which].name)))
        which++;
    return which;
}

static bool write_fields(struct json_writer *json, const struct stream_entry *entry, bool *ret_has_id,
                         struct problem *problem)
{
    bool seen[KNOWN_COUNT] = { false };
    for (size_t i = 0; i + 1 < entry->field_count; i += 2) {
        size_t which = field_find(entry->fields[i]);
        struct slice shown = utf8_cut(entry->fields[i], 64);
        if (which == KNOWN_COUNT)
            return problem_set(problem, 422, "unknown_member", "field \"%.*s\" is not known; see docs/sources.md",
                               SLICE_ARG(shown));
        if (seen[which])
            return problem_set(problem, 422, "invalid_member", "field %s is there twice", known[which].name);
        seen[which] = true;
        if (!write_field(json, which, entry->fields[i + 1], problem))
            return false;
    }
    *ret_has_id = seen[field_find(SLICE("id"))];
    return true;
}

bool source_entry_read(const struct source_config *source, const struct job_reader *reader, const struct stream_entry *entry,
                       struct op_insert *ret_insert, struct problem *ret_problem)
{
    struct buffer text, id;
    bool has_id = false;
    size_t bytes = 0;
    for (size_t i = 0; i < entry->field_count; i++)
        bytes += entry->fields[i].len;
    /* Escapes are at most six times as long; what is longer than any payload may be is refused before it is copied. */
    if (bytes > (size_t)reader->config->payload_bytes_max + ENTRY_BYTES_OVERHEAD)
        return problem_set(ret_problem, 422, "payload_too_large", "the entry has %zu bytes; limits.payload is %lld", bytes,
                           (long long)reader->config->payload_bytes_max);
    buffer_init(&text, bytes * 6 + ENTRY_BYTES_OVERHEAD);
    buffer_init(&id, JOB_ID_BYTES_MAX);
    struct json_writer json = json_begin(&text);
    json_member_text(&json, "destination", source->destination);
    bool read = write_fields(&json, entry, &has_id, ret_problem);
    if (read && !has_id) {
        buffer_printf(&id, "%s-%.*s", source->name, SLICE_ARG(entry->id));
        json_member_string(&json, "id", buffer_slice(&id));
    }
    json_object_end(&json);
    if (read && (buffer_status(&text) != STATUS_OK || buffer_status(&id) != STATUS_OK))
        read = problem_set(ret_problem, 503, "no_memory", "no memory for the job");
    if (read)
        read = job_read(reader, buffer_slice(&text), ret_insert, ret_problem);
    buffer_release(&text);
    buffer_release(&id);
    return read;
}
