#include "engine/incidents/incident_record.h"

#include "base/json.h"
#include "engine/saved/gate_state.h"
#include "engine/saved/json.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

void incident_id(instant entered_at, struct slice destination, char ret_id[INCIDENT_ID_BYTES])
{
    char stamp[INSTANT_STAMP_BYTES + 1];
    instant_stamp(entered_at, stamp);
    snprintf(ret_id, INCIDENT_ID_BYTES, "%s-%.*s", stamp, SLICE_ARG(destination));
}

void incident_record_change(struct incident_record *record, struct incident_change change)
{
    struct incident_change *saved = &record->changes[INCIDENT_CHANGES_FIRST];
    if (record->change_count == INCIDENT_CHANGES_MAX) {
        memmove(saved, saved + 1, (INCIDENT_CHANGES_MAX - INCIDENT_CHANGES_FIRST - 1) * sizeof *saved);
        record->change_count--;
        record->changes_left_out++;
    }
    record->changes[record->change_count++] = change;
    assert(record->change_count <= INCIDENT_CHANGES_MAX);
}

/* ---- writing ---- */

static void write_stock(struct json_writer *json, const char *name, const struct incident_stock *stock)
{
    if (!stock->known)
        return;
    json_member_object(json, name);
    json_member_int(json, "pending", stock->pending);
    json_member_int(json, "completed", stock->completed);
    json_member_int(json, "dead", stock->dead);
    json_object_end(json);
}

static void write_changes(struct json_writer *json, const struct incident_record *record)
{
    assert(record->change_count <= INCIDENT_CHANGES_MAX);
    json_member_array(json, "changes");
    for (size_t i = 0; i < record->change_count; i++) {
        const struct incident_change *change = &record->changes[i];
        json_object_begin(json);
        json_member_instant(json, "at", change->at);
        json_member_text(json, "mode", mode_name(change->mode));
        json_member_given(json, "cause", slice_from(cause_name(change->cause)));
        json_member_given(json, "sign", slice_from(criterion_name(change->criterion)));
        json_object_end(json);
    }
    json_array_end(json);
    json_member_int(json, "changes_left_out", record->changes_left_out);
}

void incident_record_write(struct buffer *out, const struct incident_record *record)
{
    struct json_writer json = json_begin(out);
    json_member_string(&json, "destination", record->destination);
    json_member_text(&json, "mode", mode_name(record->mode));
    json_member_given(&json, "reason", record->reason);
    json_member_given(&json, "health_reason", record->health_reason);
    incident_state_write(&json, &record->incident);
    json_member_int(&json, "held_first", record->held_first);
    json_member_int(&json, "held", record->held);
    write_stock(&json, "first", &record->first);
    write_stock(&json, "last", &record->last);
    write_changes(&json, record);
    json_object_end(&json);
}

/* ---- reading ---- */

static struct incident_stock read_stock(const json_t *object)
{
    return (struct incident_stock){
        .known = json_is_object(object),
        .pending = saved_count(object, "pending"),
        .completed = saved_count(object, "completed"),
        .dead = saved_count(object, "dead"),
    };
}

static void read_changes(const json_t *array, struct incident_record *record)
{
    for (size_t i = 0; i < json_array_size(array) && i < INCIDENT_CHANGES_MAX; i++) {
        const json_t *object = json_array_get(array, i);
        struct incident_change change = { .at = saved_instant(object, "at"),
                                          .mode = mode_from_name(saved_text(object, "mode")),
                                          .cause = cause_from_name(saved_text(object, "cause")),
                                          .criterion = criterion_from_name(saved_text(object, "sign")) };
        if (change.mode != MODE_COUNT && change.at != INSTANT_NONE)
            incident_record_change(record, change);
    }
}

static enum status read_record(const json_t *root, struct arena *memory, struct incident_record *record)
{
    *record = (struct incident_record){
        .destination = arena_copy(memory, saved_text(root, "destination")),
        .mode = mode_from_name(saved_text(root, "mode")),
        .reason = arena_copy(memory, saved_text(root, "reason")),
        .health_reason = arena_copy(memory, saved_text(root, "health_reason")),
        .incident = incident_state_read(root),
        .held_first = saved_count(root, "held_first"),
        .held = saved_count(root, "held"),
        .first = read_stock(json_object_get(root, "first")),
        .last = read_stock(json_object_get(root, "last")),
        .changes_left_out = saved_count(root, "changes_left_out"),
    };
    read_changes(json_object_get(root, "changes"), record);
    if (!record->destination.data || !record->reason.data || !record->health_reason.data)
        return STATUS_NO_MEMORY;
    bool whole = record->destination.len > 0 && record->mode != MODE_COUNT &&
                 record->incident.entered_at != INSTANT_NONE && record->incident.first_sign_at != INSTANT_NONE;
    return whole ? STATUS_OK : STATUS_INVALID;
}

enum status incident_record_read(struct slice text, struct arena *memory, struct incident_record *ret_record)
{
    json_t *root = json_loadb(text.data, text.len, 0, NULL);
    struct incident_record record;
    enum status status = root ? read_record(root, memory, &record) : STATUS_INVALID;
    json_decref(root);
    if (status == STATUS_OK)
        *ret_record = record;
    return status;
}
