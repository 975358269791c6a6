#include "engine/redrives/redrive_record.h"

#include "base/json_patch.h"
#include "engine/saved/json.h"

#include <assert.h>
#include <string.h>

static const char *const state_names[REDRIVE_STATES] = { "canary", "running", "done", "cancelled", "aborted", "undone" };

const char *redrive_state_name(enum redrive_state state)
{
    assert(state >= 0 && state < REDRIVE_STATES);
    return state_names[state];
}

void redrive_record_release(struct redrive_record *record)
{
    json_decref(record->patch);
    record->patch = NULL;
    arena_release(&record->memory);
}

/* ---- the filter ---- */

enum filter_kind { FILTER_TEXT, FILTER_SINCE, FILTER_UNTIL };

static const struct filter_member {
    const char *name;
    enum filter_kind kind;
    size_t offset; /* in struct job_filter */
} members[] = {
    { "destination", FILTER_TEXT, offsetof(struct job_filter, destination) },
    { "tenant", FILTER_TEXT, offsetof(struct job_filter, tenant) },
    { "code", FILTER_TEXT, offsetof(struct job_filter, code) },
    { "dead_code", FILTER_TEXT, offsetof(struct job_filter, dead_code) },
    { "fingerprint", FILTER_TEXT, offsetof(struct job_filter, fingerprint) },
    { "since", FILTER_SINCE, offsetof(struct job_filter, since) },
    { "until", FILTER_UNTIL, offsetof(struct job_filter, until) },
    { "text", FILTER_TEXT, offsetof(struct job_filter, text) },
};
enum { MEMBERS = sizeof members / sizeof *members };

static void *member_of(const struct job_walk *walk, const struct filter_member *member)
{
    assert(member >= members && member < members + MEMBERS);
    return (char *)(uintptr_t)&walk->filter + member->offset;
}

enum status filter_set(struct job_walk *walk, const char *name, struct slice value, struct error *err)
{
    for (size_t i = 0; i < MEMBERS; i++) {
        if (strcmp(members[i].name, name) != 0)
            continue;
        if (members[i].kind == FILTER_TEXT) {
            if (value.len > FILTER_TEXT_BYTES_MAX)
                return error_set(err, STATUS_INVALID, "%s has %zu bytes; the limit is %d", name, value.len,
                                 FILTER_TEXT_BYTES_MAX);
            *(struct slice *)member_of(walk, &members[i]) = value;
            return STATUS_OK;
        }
        instant at;
        if (value.len > 0 && (instant_parse(value, &at, NULL) != STATUS_OK || at <= 0))
            return error_set(err, STATUS_INVALID, "%s must be a time such as 2025-01-12T10:51:41Z", name);
        *(instant *)member_of(walk, &members[i]) = value.len > 0 ? at : 0;
        return STATUS_OK;
    }
    return error_set(err, STATUS_NOT_FOUND, "a filter has no \"%s\"", name);
}

static enum status ids_read(const json_t *array, struct arena *memory, struct job_walk *walk, struct error *err)
{
    size_t count = json_array_size(array);
    struct slice *ids = arena_alloc_array(memory, count + 1, sizeof *ids);
    if (!json_is_array(array) || count == 0 || count > FILTER_IDS_MAX)
        return error_set(err, STATUS_INVALID, "ids must be an array of 1 to %d ids", FILTER_IDS_MAX);
    if (!ids)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the ids");
    for (size_t i = 0; i < count; i++) {
        const json_t *id = json_array_get(array, i);
        if (!json_is_string(id) || json_string_length(id) == 0 || json_string_length(id) > FILTER_TEXT_BYTES_MAX)
            return error_set(err, STATUS_INVALID, "ids must be an array of texts of 1 to %d bytes", FILTER_TEXT_BYTES_MAX);
        ids[i] = arena_copy(memory, (struct slice){ json_string_value(id), json_string_length(id) });
        if (!ids[i].data)
            return error_set(err, STATUS_NO_MEMORY, "no memory for the ids");
    }
    walk->ids = ids;
    walk->id_count = count;
    return STATUS_OK;
}

enum status filter_read(const json_t *object, struct arena *memory, struct job_walk *ret_walk, struct error *err)
{
    struct job_walk walk = { .filter.state = STATE_DEAD };
    const char *name;
    json_t *value;
    if (!json_is_object(object))
        return error_set(err, STATUS_INVALID, "filter must be an object");
    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        enum status status = STATUS_OK;
        if (json_is_null(value))
            continue;
        if (strcmp(name, "ids") == 0) {
            status = ids_read(value, memory, &walk, err);
        } else {
            if (!json_is_string(value))
                return error_set(err, STATUS_INVALID, "filter.%s must be a text", name);
            struct slice text = arena_copy(memory, (struct slice){ json_string_value(value), json_string_length(value) });
            status = text.data ? filter_set(&walk, name, text, err) : error_set(err, STATUS_NO_MEMORY, "no memory");
        }
        if (status != STATUS_OK)
            return status == STATUS_NOT_FOUND
                       ? error_set(err, STATUS_INVALID,
                                   "filter.%s is not known; a filter has destination, tenant, code, dead_code, fingerprint, "
                                   "since, until, text and ids",
                                   name)
                       : status;
    }
    *ret_walk = walk;
    return STATUS_OK;
}

bool filter_is_empty(const struct job_walk *walk)
{
    const struct job_filter *filter = &walk->filter;
    return walk->id_count == 0 && filter->destination.len + filter->tenant.len + filter->code.len == 0 &&
           !filter_has_rest(filter);
}

/* The members that say which jobs are meant, as the API takes and gives them; only what was given is written. */
static void filter_write(struct json_writer *json, const struct job_walk *walk)
{
    json_object_begin(json);
    for (size_t i = 0; i < MEMBERS; i++) {
        const void *value = member_of(walk, &members[i]);
        if (members[i].kind == FILTER_TEXT)
            json_member_given(json, members[i].name, *(const struct slice *)value);
        else if (*(const instant *)value != 0)
            json_member_instant(json, members[i].name, *(const instant *)value);
    }
    if (walk->id_count > 0) {
        json_member_array(json, "ids");
        for (size_t i = 0; i < walk->id_count; i++)
            json_put_string(json, walk->ids[i]);
        json_array_end(json);
    }
    json_object_end(json);
}

/* ---- the record ---- */

/* What both have. */
static void members_write(struct json_writer *json, const struct redrive_record *record)
{
    char rate[UNITS_TEXT_BYTES];
    json_member_text(json, "id", record->id);
    json_member_text(json, "state", redrive_state_name(record->state));
    json_name(json, "filter");
    filter_write(json, &record->walk);
    json_member_string(json, "by", record->by);
    json_member_int(json, "matched", record->matched);
    if (record->limit > 0)
        json_member_int(json, "limit", record->limit);
    if (record->rate.count > 0) {
        rate_format(record->rate, rate);
        json_member_text(json, "rate", rate);
    }
    if (record->canary > 0)
        json_member_int(json, "canary", record->canary);
    if (record->canary > 0 || record->abort_given)
        json_member_real(json, "abort_at", record->abort_at);
    if (record->patch) {
        json_name(json, "payload_patch");
        json_document_write(json, record->patch);
    }
    json_member_int(json, "patch_failed", record->patch_failed);
    json_member_bool(json, "undoing", record->undoing);
    json_member_instant(json, "started_at", record->started_at);
    json_member_instant(json, "ended_at", record->ended_at);
}

void redrive_record_write(struct buffer *out, const struct redrive_record *record)
{
    struct json_writer json = json_begin(out);
    members_write(&json, record);
    json_member_bool(&json, "abort_given", record->abort_given);
    json_member_int(&json, "at_id", (int64_t)record->walk.id);
    json_member_int(&json, "before_seq", record->walk.filter.before_seq);
    json_member_bool(&json, "over", record->walk.over);
    json_object_end(&json);
}

static enum status record_fill(const json_t *root, struct redrive_record *record, struct error *err)
{
    struct slice id = saved_text(root, "id"), rate = saved_text(root, "rate");
    const json_t *patch = json_object_get(root, "payload_patch");
    record->state = (enum redrive_state)slice_index(saved_text(root, "state"), state_names, REDRIVE_STATES);
    if (record->state == REDRIVE_STATES || id.len == 0 || id.len >= REDRIVE_ID_BYTES)
        return error_set(err, STATUS_CORRUPT, "a redrive that is saved has no id or no state");
    memcpy(record->id, id.data, id.len);
    enum status status = filter_read(json_object_get(root, "filter"), &record->memory, &record->walk, err);
    if (status != STATUS_OK)
        return status;
    if (rate.len > 0 && rate_parse(rate, &record->rate, NULL) != STATUS_OK)
        return error_set(err, STATUS_CORRUPT, "a redrive that is saved has no rate");
    record->by = arena_copy(&record->memory, saved_text(root, "by"));
    record->matched = saved_count(root, "matched");
    record->limit = saved_count(root, "limit");
    record->canary = saved_count(root, "canary");
    record->abort_at = json_number_value(json_object_get(root, "abort_at"));
    record->abort_given = json_is_true(json_object_get(root, "abort_given"));
    record->undoing = json_is_true(json_object_get(root, "undoing"));
    record->patch = patch && !json_is_null(patch) ? json_deep_copy(patch) : NULL;
    record->patch_failed = saved_count(root, "patch_failed");
    record->started_at = saved_instant(root, "started_at");
    record->ended_at = saved_instant(root, "ended_at");
    record->walk.id = (size_t)saved_count(root, "at_id");
    record->walk.filter.before_seq = saved_count(root, "before_seq");
    record->walk.over = json_is_true(json_object_get(root, "over")) ||
                        (record->walk.id_count > 0 && record->walk.id >= record->walk.id_count);
    return record->by.data ? STATUS_OK : error_set(err, STATUS_NO_MEMORY, "no memory for a redrive");
}

enum status redrive_record_read(struct slice value, struct redrive_record *ret_record, struct error *err)
{
    struct redrive_record record = { .id = "" };
    json_t *root = json_loadb(value.data, value.len, JSON_ALLOW_NUL, NULL); /* a patch may have one in a text */
    enum status status = json_is_object(root) ? record_fill(root, &record, err)
                                              : error_set(err, STATUS_CORRUPT, "a redrive that is saved is no JSON");
    json_decref(root);
    if (status != STATUS_OK) {
        redrive_record_release(&record);
        return status;
    }
    *ret_record = record;
    return STATUS_OK;
}

int64_t redrive_ended(const int64_t counts[REDRIVE_COUNTS])
{
    return counts[REDRIVE_DELIVERED] + counts[REDRIVE_DEAD_AGAIN] + counts[REDRIVE_UNDONE] + counts[REDRIVE_GONE];
}

bool redrive_died_too_much(const struct redrive_record *record, const int64_t counts[REDRIVE_COUNTS])
{
    int64_t ended = redrive_ended(counts);
    return ended > 0 && (double)counts[REDRIVE_DEAD_AGAIN] >= record->abort_at * (double)ended;
}

int64_t redrive_left(const struct redrive_record *record, const int64_t counts[REDRIVE_COUNTS])
{
    assert(counts[REDRIVE_SENT_BACK] >= 0);
    int64_t most = record->limit > 0 ? record->limit : INT64_MAX;
    if (record->state == REDRIVE_CANARY && record->canary < most)
        most = record->canary;
    return most > counts[REDRIVE_SENT_BACK] ? most - counts[REDRIVE_SENT_BACK] : 0;
}

void redrive_show(struct json_writer *json, const struct redrive_record *record, const int64_t counts[REDRIVE_COUNTS])
{
    int64_t redriven = counts[REDRIVE_SENT_BACK];
    int64_t aim = record->limit > 0 && record->limit < record->matched ? record->limit : record->matched;
    int64_t rest = aim - redriven - record->patch_failed;
    bool whole = record->state == REDRIVE_DONE; /* what is missing then had changed before its turn came */
    json_object_begin(json);
    members_write(json, record);
    json_member_int(json, "redriven", redriven);
    json_member_int(json, "delivered", counts[REDRIVE_DELIVERED]);
    json_member_int(json, "dead_again", counts[REDRIVE_DEAD_AGAIN]);
    json_member_int(json, "undone", counts[REDRIVE_UNDONE]);
    json_member_int(json, "gone", counts[REDRIVE_GONE]);
    json_member_int(json, "under_way", redriven - redrive_ended(counts));
    json_member_int(json, "left", whole || rest < 0 ? 0 : rest);
    json_member_int(json, "skipped", whole && rest > 0 ? rest : 0);
    json_object_end(json);
}
