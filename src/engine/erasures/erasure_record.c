#include "engine/erasures/erasure_record.h"

#include "engine/saved/json.h"

#include <assert.h>
#include <jansson.h>
#include <string.h>

static const char *const phase_names[ERASURE_PHASES] = {
    [ERASE_JOBS] = "jobs",
    [ERASE_COPIES] = "copies",
    [ERASE_EVENTS] = "events",
};

void erasure_record_release(struct erasure_record *record)
{
    arena_release(&record->memory);
    *record = (struct erasure_record){ .id = "" };
}

void erasure_members(struct json_writer *json, const struct erasure_record *record)
{
    assert(record->phase < ERASURE_PHASES);
    json_member_text(json, "id", record->id);
    json_member_text(json, "state", record->done ? "done" : "running");
    if (!record->done)
        json_member_text(json, "phase", phase_names[record->phase]);
    json_member_given(json, "tenant", record->tenant);
    json_member_string(json, "by", record->by);
    json_member_int(json, "jobs", record->jobs);
    json_member_int(json, "events", record->events);
    json_member_int(json, "copies", record->copies);
    json_member_int(json, "errors", record->rules);
    json_member_int(json, "events_left", record->events_left);
    json_member_int(json, "names_left", record->names_left);
    json_member_instant(json, "started_at", record->started_at);
    json_member_instant(json, "ended_at", record->ended_at);
}

void erasure_record_write(struct buffer *out, const struct erasure_record *record)
{
    assert(record->id[0]);
    struct json_writer json = json_begin(out);
    erasure_members(&json, record);
    json_member_given(&json, "subject", record->subject);
    json_member_int(&json, "place", record->place);
    json_member_text(&json, "name", record->name);
    json_member_int(&json, "pass_at", record->pass_at);
    json_object_end(&json);
}

/* ---- reading ---- */

static void numbers_fill(const json_t *root, struct erasure_record *record)
{
    record->place = saved_count(root, "place");
    record->pass_at = saved_count(root, "pass_at");
    record->jobs = saved_count(root, "jobs");
    record->events = saved_count(root, "events");
    record->copies = saved_count(root, "copies");
    record->rules = saved_count(root, "errors");
    record->events_left = saved_count(root, "events_left");
    record->names_left = saved_count(root, "names_left");
    record->started_at = saved_instant(root, "started_at");
    record->ended_at = saved_instant(root, "ended_at");
}

static enum status record_fill(const json_t *root, struct erasure_record *record, struct error *err)
{
    struct slice id = saved_text(root, "id"), name = saved_text(root, "name"), phase = saved_text(root, "phase");
    record->done = slice_equal(saved_text(root, "state"), SLICE("done"));
    while (!record->done && record->phase < ERASURE_PHASES && !slice_equal(phase, slice_from(phase_names[record->phase])))
        record->phase++;
    if (id.len == 0 || id.len >= sizeof record->id || name.len >= sizeof record->name || record->phase == ERASURE_PHASES)
        return error_set(err, STATUS_CORRUPT, "an erasure that is saved has no id or no phase");
    memcpy(record->id, id.data, id.len);
    memcpy(record->name, name.data, name.len);
    record->subject = arena_copy(&record->memory, saved_text(root, "subject"));
    record->tenant = arena_copy(&record->memory, saved_text(root, "tenant"));
    record->by = arena_copy(&record->memory, saved_text(root, "by"));
    numbers_fill(root, record);
    return record->subject.data && record->tenant.data && record->by.data
               ? STATUS_OK
               : error_set(err, STATUS_NO_MEMORY, "no memory for an erasure");
}

enum status erasure_record_read(struct slice value, struct erasure_record *ret_record, struct error *err)
{
    struct erasure_record record = { .id = "" };
    json_t *root = json_loadb(value.data, value.len, 0, NULL);
    enum status status = json_is_object(root) ? record_fill(root, &record, err)
                                              : error_set(err, STATUS_CORRUPT, "an erasure that is saved is no JSON");
    json_decref(root);
    if (status != STATUS_OK) {
        erasure_record_release(&record);
        return status;
    }
    *ret_record = record;
    return STATUS_OK;
}
