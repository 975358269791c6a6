#include "api/jobs/job_read.h"

#include "api/call/json_text.h"
#include "config/problems.h"
#include "engine/alerts/notify.h"
#include "transport/http/headers.h"
#include "transport/ses/ses.h"
#include "transport/smtp/message.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

static bool text_member(const json_t *root, const char *name, size_t len_max, struct slice *ret_text,
                        struct problem *problem)
{
    json_t *value = member_get(root, name);
    *ret_text = SLICE("");
    if (!value)
        return true;
    if (!json_is_string(value))
        return problem_set(problem, 422, "invalid_member", "%s must be a string", name);
    struct slice text = { json_string_value(value), json_string_length(value) };
    if (text.len > len_max)
        return problem_set(problem, 422, "invalid_member", "%s has %zu bytes, the limit is %zu", name, text.len, len_max);
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.data[i] < ' ' || text.data[i] == 0x7f)
            return problem_set(problem, 422, "invalid_member", "%s has a control character; take it out", name);
    *ret_text = text;
    return true;
}

static bool time_member(const json_t *root, const char *name, instant *ret_at, struct problem *problem)
{
    struct error error;
    json_t *value = member_get(root, name);
    if (!value)
        return true;
    if (!json_is_string(value) ||
        instant_parse((struct slice){ json_string_value(value), json_string_length(value) }, ret_at, &error) != STATUS_OK)
        return problem_set(problem, 422, "invalid_time", "%s must be a time like 2025-01-12T10:51:41.234Z, with its zone",
                          name);
    return true;
}

/* A JSON member as it was written, copied. `len_max` 0: no limit. */
static bool raw_member(struct slice text, const char *name, size_t len_max, struct arena *memory, struct slice *ret_raw,
                       struct problem *problem)
{
    struct slice raw = json_text_member(text, slice_from(name));
    if (raw.len == 0)
        return problem_set(problem, 422, "invalid_member", "%s must be named without escapes and be nested at most 256 deep",
                          name);
    if (len_max > 0 && raw.len > len_max)
        return problem_set(problem, 422, "invalid_member", "%s has %zu bytes, the limit is %zu", name, raw.len, len_max);
    *ret_raw = arena_copy(memory, raw);
    return ret_raw->data || problem_set(problem, 503, "no_memory", "no memory for the job; try again");
}

/* --- payload ----------------------------------------------------------------------------------- */

static size_t base64_padding(struct slice text)
{
    size_t padding = 0;
    while (padding < 2 && padding < text.len && text.data[text.len - 1 - padding] == '=')
        padding++;
    return padding;
}

static bool base64_is_valid(struct slice text)
{
    size_t digits = text.len - base64_padding(text);
    if (text.len % 4 != 0)
        return false;
    for (size_t i = 0; i < digits; i++)
        if (!ascii_is_alnum(text.data[i]) && text.data[i] != '+' && text.data[i] != '/')
            return false;
    return true;
}

static bool base64_payload(struct slice text, struct arena *memory, struct slice *ret_payload, struct problem *problem)
{
    if (!base64_is_valid(text) || text.len > INT32_MAX)
        return problem_set(problem, 422, "invalid_payload",
                          "payload_base64 is not Base64 (A-Z a-z 0-9 + / and = at the end, no breaks)");
    unsigned char *bytes = arena_alloc(memory, text.len / 4 * 3 + 1);
    if (!bytes)
        return problem_set(problem, 503, "no_memory", "no memory for the payload; try again");
    int len = text.len > 0 ? EVP_DecodeBlock(bytes, (const unsigned char *)text.data, (int)text.len) : 0;
    if (len < 0)
        return problem_set(problem, 422, "invalid_payload", "payload_base64 is not Base64");
    *ret_payload = (struct slice){ (const char *)bytes, (size_t)len - base64_padding(text) };
    return true;
}

static bool payload_text(struct slice text, const json_t *payload, struct arena *memory, struct slice *ret_payload,
                         struct problem *problem)
{
    if (!json_is_string(payload))
        return raw_member(text, "payload", 0, memory, ret_payload, problem);
    struct slice raw = json_text_member(text, SLICE("payload"));
    struct slice value = { json_string_value(payload), json_string_length(payload) };
    if (json_text_is_plain(raw)) /* the document holds only a stand-in for it */
        value = (struct slice){ raw.data + 1, raw.len - 2 };
    *ret_payload = arena_copy(memory, value);
    return ret_payload->data || problem_set(problem, 503, "no_memory", "no memory for the payload; try again");
}

bool payload_read(struct slice text, const json_t *root, int64_t bytes_max, struct arena *memory,
                  struct payload_members *ret_payload, struct problem *ret_problem)
{
    const json_t *payload = member_get(root, "payload");
    const json_t *base64 = member_get(root, "payload_base64");
    struct payload_members found = { .given = payload || base64,
                                     .string = json_is_string(payload),
                                     .base64 = base64 != NULL };
    if (payload && base64)
        return problem_set(ret_problem, 422, "invalid_payload", "give payload or payload_base64, not both");
    if (base64 && !json_is_string(base64))
        return problem_set(ret_problem, 422, "invalid_payload", "payload_base64 must be a string");
    if (payload && !payload_text(text, payload, memory, &found.payload, ret_problem))
        return false;
    if (base64 && !base64_payload((struct slice){ json_string_value(base64), json_string_length(base64) }, memory,
                                  &found.payload, ret_problem))
        return false;
    if (found.given && found.payload.len > (size_t)bytes_max)
        return problem_set(ret_problem, 413, "payload_too_large",
                          "the payload has %zu bytes, limits.payload is %lld; send less or raise it", found.payload.len,
                          (long long)bytes_max);
    *ret_payload = found;
    return true;
}

static bool set_payload(const struct job_reader *reader, struct slice text, const json_t *root,
                        const struct destination_config *destination, struct slice content_type,
                        struct op_insert *insert, struct problem *problem)
{
    struct payload_members found;
    if (!payload_read(text, root, reader->config->payload_bytes_max, reader->memory, &found, problem))
        return false;
    if (!found.given)
        return problem_set(problem, 422, "invalid_payload", "payload is missing; give payload, or payload_base64 for bytes");
    insert->payload = found.payload;
    if (content_type.len > 0)
        insert->content_type = arena_copy(reader->memory, content_type);
    else if (!found.string && !found.base64)
        insert->content_type = SLICE("application/json");
    else if (destination->content_type)
        insert->content_type = arena_copy(reader->memory, slice_from(destination->content_type)); /* a reload may free it */
    else
        insert->content_type = found.base64 ? SLICE("application/octet-stream") : SLICE("text/plain; charset=utf-8");
    return insert->content_type.data || problem_set(problem, 503, "no_memory", "no memory for the job; try again");
}

/* --- headers, metadata ------------------------------------------------------------------------- */

static bool header_may_be_set(const struct destination_config *destination, struct slice name, struct problem *problem)
{
    bool type = slice_equal_nocase(name, SLICE("Content-Type"));
    enum header_rule rule = http_header_rule(destination, name);
    if (rule == HEADER_OURS || type || slice_equal_nocase(name, SLICE("traceparent")))
        return problem_set(problem, 422, "invalid_header", "header \"%.*s\" is set by insist; leave it out%s",
                          SLICE_ARG(name), type ? " and give content_type" : "");
    /* Workers fetch theirs: what they do with it is between them and whoever added the job. */
    if (rule == HEADER_GUARDED && destination->transport != TRANSPORT_PULL)
        return problem_set(problem, 422, "invalid_header",
                          "header \"%.*s\" is the destination's to set; leave it out, or name it in the destination's "
                          "allow_headers", SLICE_ARG(name));
    return true;
}

static bool set_headers(const struct job_reader *reader, struct slice text, const json_t *root,
                        const struct destination_config *destination, struct op_insert *insert, struct problem *problem)
{
    json_t *headers = member_get(root, "headers");
    const char *name;
    json_t *value;
    if (!headers)
        return true;
    if (!json_is_object(headers))
        return problem_set(problem, 422, "invalid_header", "headers must be an object of strings");
    json_object_foreach(headers, name, value) {
        struct slice content = { json_string_value(value), json_string_length(value) };
        if (!json_is_string(value))
            return problem_set(problem, 422, "invalid_header", "header \"%s\" must be a string",
                              quote(slice_from(name)).text);
        if (!http_header_is_safe(slice_from(name), content))
            return problem_set(problem, 422, "invalid_header",
                               "header \"%s\" has a character that may not stand in a header",
                              quote(slice_from(name)).text);
        if (!header_may_be_set(destination, slice_from(name), problem))
            return false;
    }
    if (json_object_size(headers) == 0)
        return true;
    return raw_member(text, "headers", JOB_HEADERS_BYTES_MAX, reader->memory, &insert->headers, problem);
}

static bool set_metadata(const struct job_reader *reader, struct slice text, const json_t *root, struct op_insert *insert,
                         struct problem *problem)
{
    json_t *metadata = member_get(root, "metadata");
    if (!metadata)
        return true;
    if (!json_is_object(metadata))
        return problem_set(problem, 422, "invalid_member", "metadata must be an object");
    return raw_member(text, "metadata", JOB_METADATA_BYTES_MAX, reader->memory, &insert->metadata, problem);
}

/* --- the rest ---------------------------------------------------------------------------------- */

static bool set_destination(const struct job_reader *reader, const json_t *root, struct op_insert *insert,
                            const struct destination_config **ret_destination, struct problem *problem)
{
    json_t *value = member_get(root, "destination");
    if (!value)
        return problem_set(problem, 422, "invalid_member",
                           "destination is missing; name one of the configured destinations");
    if (!json_is_string(value))
        return problem_set(problem, 422, "invalid_member", "destination must be a string");
    struct slice name = { json_string_value(value), json_string_length(value) };
    const struct destination_config *destination = config_destination(reader->config, name);
    if (destination && destination->internal)
        return problem_set(problem, 422, "reserved_destination", "destination %s only tells of alerts; add it to another",
                          destination->name);
    if (destination) {
        insert->destination = arena_copy(reader->memory, name);
        *ret_destination = destination;
        return insert->destination.data || problem_set(problem, 503, "no_memory", "no memory for the job; try again");
    }
    struct nearest nearest = { .wanted = name };
    for (size_t i = 0; i < reader->config->destination_count; i++)
        nearest_offer(&nearest, reader->config->destinations[i].name);
    if (nearest.name)
        return problem_set(problem, 422, "unknown_destination", "there is no destination \"%s\"; did you mean \"%s\"?",
                          quote(name).text, nearest.name);
    return problem_set(problem, 422, "unknown_destination", "there is no destination \"%s\"; add it to the configuration",
                      quote(name).text);
}

static bool set_id(const struct job_reader *reader, const json_t *root, const struct destination_config *destination,
                   struct op_insert *insert, struct problem *problem)
{
    json_t *value = member_get(root, "id");
    const char *wanted = destination->policy.id_pattern_text;
    insert->id = SLICE("");
    if (!value && !destination->policy.id_pattern)
        return true;
    if (!value)
        return problem_set(problem, 422, "invalid_id", "destination %s wants an id of the form %s", destination->name,
                          wanted);
    if (!json_is_string(value))
        return problem_set(problem, 422, "invalid_id", "id must be a string");
    struct slice id = { json_string_value(value), json_string_length(value) };
    const char *wrong = policy_id_problem(&destination->policy, id);
    if (wrong && destination->policy.id_pattern)
        return problem_set(problem, 422, "invalid_id", "%s; destination %s wants %s", wrong, destination->name, wanted);
    if (wrong)
        return problem_set(problem, 422, "invalid_id", "%s; give 1 to %d bytes, or leave id out", wrong, JOB_ID_BYTES_MAX);
    insert->id = arena_copy(reader->memory, id);
    return insert->id.data || problem_set(problem, 503, "no_memory", "no memory for the job; try again");
}

static bool set_tenant(const struct job_reader *reader, const json_t *root, struct op_insert *insert,
                       struct problem *problem)
{
    struct slice tenant;
    if (!text_member(root, "tenant", TENANT_BYTES_MAX, &tenant, problem))
        return false;
    if (reader->tenant_bound.data) {
        if (tenant.len > 0 && !slice_equal(tenant, reader->tenant_bound))
            return problem_set(problem, 403, "forbidden_tenant", "this token may act for tenant \"%s\" only",
                              quote(reader->tenant_bound).text);
        tenant = reader->tenant_bound;
    }
    if (slice_equal(tenant, NOTIFY_TENANT))
        return problem_set(problem, 422, "reserved_tenant", "the tenant insist.notify is the daemon's own; name another");
    insert->tenant = arena_copy(reader->memory, tenant);
    return insert->tenant.data || problem_set(problem, 503, "no_memory", "no memory for the job; try again");
}

static bool set_priority(const struct job_reader *reader, const json_t *root, struct op_insert *insert,
                         struct problem *problem)
{
    json_t *value = member_get(root, "priority");
    char number = json_is_integer(value) && json_integer_value(value) > 0 && json_integer_value(value) < 10
                      ? (char)('0' + json_integer_value(value)) : '0';
    struct slice name = json_is_string(value) ? (struct slice){ json_string_value(value), json_string_length(value) }
                                              : (struct slice){ &number, 1 };
    insert->priority = PRIORITY_NORMAL;
    if (value && !priority_from_name(name, &insert->priority))
        return problem_set(problem, 422, "invalid_priority", "priority must be critical, high or normal, or 1 to 3");
    if (insert->priority < reader->priority_max)
        return problem_set(problem, 403, "forbidden_priority", "this token may give priority %s at most, not %s",
                          priority_name(reader->priority_max), priority_name(insert->priority));
    return true;
}

static bool heed_times(const struct job_reader *reader, const struct destination_config *destination,
                       struct op_insert *insert, struct problem *problem)
{
    instant own_deadline = insert->deadline; /* the time to live that all jobs have makes none of them more urgent */
    instant due = insert->run_at > reader->now ? insert->run_at : reader->now;
    if (insert->deadline == INSTANT_NONE && destination->job_ttl_ms > 0)
        insert->deadline = instant_add(due, destination->job_ttl_ms); /* a job's life begins when it may be sent */
    if (insert->deadline != INSTANT_NONE && insert->deadline <= reader->now)
        return problem_set(problem, 422, "deadline_passed", "the deadline has passed already; give a later one, or none");
    if (insert->deadline != INSTANT_NONE && insert->run_at >= insert->deadline)
        return problem_set(problem, 422, "run_at_after_deadline",
                          "run_at is not before the deadline: it could never be sent");
    insert->rank = rank_heed_deadline(rank_of(insert->priority, reader->now, destination->aging_ms), reader->now,
                                      own_deadline, destination->deadline_lead_ms);
    return true;
}

/* What can never be sent is not taken. */
static bool can_be_sent(const struct smtp_source *source, struct problem *problem)
{
    struct error error;
    enum transport_kind transport = source->destination->transport;
    if (!transport_is_mail(transport))
        return true;
    enum status status = transport == TRANSPORT_SES ? ses_message_check(source, &error) : smtp_message_check(source, &error);
    bool wrong = status == STATUS_INVALID || status == STATUS_LIMIT;
    return !wrong || problem_set(problem, 422, "invalid_message", "%s", error.text);
}

static bool check_message(const struct job_reader *reader, const struct destination_config *destination,
                          const struct op_insert *insert, struct problem *problem)
{
    const struct smtp_source source = { .destination = destination, .payload = insert->payload,
                                        .metadata = insert->metadata, .headers = insert->headers,
                                        .tenant = insert->tenant, .id = insert->id, .created_at = reader->now };
    return can_be_sent(&source, problem);
}

bool payload_check(const struct destination_config *destination, const struct job *job, struct slice text,
                   const struct payload_members *payload, struct problem *ret_problem)
{
    const struct smtp_source source = { .destination = destination, .payload = payload->payload,
                                        .metadata = job->metadata, .headers = job->headers, .tenant = job->tenant,
                                        .id = job->id, .created_at = job->created_at };
    return can_be_sent(&source, ret_problem) ||
           problem_at(ret_problem, text, payload->base64 ? "payload_base64" : "payload");
}

/* Those of one key, of a tenant at a destination, go one at a time. */
static bool set_key(const struct job_reader *reader, const json_t *root, struct op_insert *insert, struct problem *problem)
{
    struct slice key = SLICE("");
    if (!text_member(root, "key", KEY_BYTES_MAX, &key, problem))
        return false;
    insert->key = key.len > 0 ? arena_copy(reader->memory, key) : SLICE("");
    return insert->key.data || problem_set(problem, 503, "no_memory", "no memory for the job; try again");
}

/* Where the news of its end goes: a destination of that name, or the one that was made for that url. */
static const struct destination_config *callback_goes_to(const struct job_reader *reader, struct slice url,
                                                         struct slice name, struct problem *problem)
{
    const struct destination_config *to = url.len > 0 ? config_callback(reader->config, url)
                                                      : config_destination(reader->config, name);
    if (!to && url.len > 0)
        problem_set(problem, 422, "callback_not_allowed",
                    "callbacks.allow does not name %.*s; add it there, or give a destination", SLICE_ARG(url));
    else if (!to || (url.len == 0 && to->internal))
        problem_set(problem, 422, "unknown_destination", "there is no destination \"%.*s\" for the callback",
                    SLICE_ARG(name));
    return to && (url.len > 0 || !to->internal) ? to : NULL;
}

static bool set_callback(const struct job_reader *reader, const json_t *root, struct op_insert *insert,
                         struct problem *problem)
{
    const json_t *callback = member_get(root, "callback");
    struct slice url = SLICE(""), name = SLICE("");
    char text[DESTINATION_NAME_BYTES_MAX + 32];
    insert->callback = SLICE("");
    if (!callback)
        return true;
    if (!json_is_object(callback))
        return problem_set(problem, 422, "invalid_member", "callback must be an object with url or destination");
    if (!text_member(callback, "url", CALLBACK_URL_BYTES_MAX, &url, problem) ||
        !text_member(callback, "destination", DESTINATION_NAME_BYTES_MAX, &name, problem))
        return false;
    if ((url.len > 0) == (name.len > 0) || json_object_size(callback) != 1)
        return problem_set(problem, 422, "invalid_member", "callback has either url or destination, and nothing else");
    const struct destination_config *to = callback_goes_to(reader, url, name, problem);
    if (!to)
        return false;
    snprintf(text, sizeof text, "{\"destination\":\"%s\"}", to->name); /* such a name needs no escapes */
    insert->callback = arena_copy(reader->memory, slice_from(text));
    return insert->callback.data || problem_set(problem, 503, "no_memory", "no memory for the job; try again");
}

static bool read_members(const struct job_reader *reader, struct slice text, json_t *root, struct op_insert *insert,
                         struct problem *problem)
{
    static const char *const names[] = {
        "destination", "id", "tenant", "priority", "payload", "payload_base64", "content_type", "headers", "run_at",
        "deadline", "correlation_id", "metadata", "key", "callback", NULL,
    };
    const struct destination_config *destination = NULL;
    struct slice correlation_id = SLICE(""), content_type;
    insert->run_at = reader->now;
    insert->deadline = INSTANT_NONE;
    if (!members_known(text, root, names, problem))
        return false;
    if (!set_destination(reader, root, insert, &destination, problem))
        return problem_at(problem, text, "destination");
    if (!set_id(reader, root, destination, insert, problem))
        return problem_at(problem, text, "id");
    if (!set_tenant(reader, root, insert, problem))
        return problem_at(problem, text, "tenant");
    if (!set_priority(reader, root, insert, problem))
        return problem_at(problem, text, "priority");
    if (!time_member(root, "run_at", &insert->run_at, problem))
        return problem_at(problem, text, "run_at");
    if (!time_member(root, "deadline", &insert->deadline, problem) || !heed_times(reader, destination, insert, problem))
        return problem_at(problem, text, "deadline");
    if (!text_member(root, "correlation_id", CORRELATION_BYTES_MAX, &correlation_id, problem))
        return problem_at(problem, text, "correlation_id");
    if (!set_headers(reader, text, root, destination, insert, problem))
        return problem_at(problem, text, "headers");
    if (!set_metadata(reader, text, root, insert, problem))
        return problem_at(problem, text, "metadata");
    if (!set_key(reader, root, insert, problem))
        return problem_at(problem, text, "key");
    if (!set_callback(reader, root, insert, problem))
        return problem_at(problem, text, "callback");
    if (correlation_id.len > 0)
        insert->correlation_id = arena_copy(reader->memory, correlation_id);
    if (!text_member(root, "content_type", CONTENT_TYPE_BYTES_MAX, &content_type, problem))
        return problem_at(problem, text, "content_type");
    bool sendable = set_payload(reader, text, root, destination, content_type, insert, problem) &&
                    check_message(reader, destination, insert, problem);
    return sendable ||
           problem_at(problem, text, member_get(root, "payload_base64") ? "payload_base64" : "payload");
}

bool job_read(const struct job_reader *reader, struct slice text, struct op_insert *insert, struct problem *ret_problem)
{
    memset(insert, 0, sizeof *insert);
    json_t *root = body_load(text, ret_problem);
    if (!root)
        return false;
    bool read = json_is_object(root) && read_members(reader, text, root, insert, ret_problem);
    if (!json_is_object(root)) {
        problem_set(ret_problem, 422, "invalid_json", "a job is a JSON object");
        ret_problem->place = TEXT_PLACE_FIRST;
    }
    json_decref(root);
    return read;
}
