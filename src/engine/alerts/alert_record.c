#include "engine/alerts/alert_record.h"

#include "base/hash.h"
#include "engine/saved/json.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

void alert_id(enum alert_kind kind, instant at, struct slice destination, struct slice tenant, char ret_id[ALERT_ID_BYTES])
{
    assert(kind < ALERT_KIND_COUNT && at != INSTANT_NONE);
    char stamp[INSTANT_STAMP_BYTES + 1];
    instant_stamp(at, stamp);
    size_t len = (size_t)snprintf(ret_id, ALERT_ID_BYTES, "%s-%s", stamp, alert_types[kind].name);
    if (destination.len > 0)
        len += (size_t)snprintf(ret_id + len, ALERT_ID_BYTES - len, "-%.*s", SLICE_ARG(destination));
    assert(len < ALERT_ID_BYTES);
    if (alert_types[kind].of_tenant) /* any text may be a tenant's name */
        snprintf(ret_id + len, ALERT_ID_BYTES - len, "-%08" PRIx32, (uint32_t)hash_slice(0, 0, tenant));
}

instant alert_id_at(struct slice id)
{
    char text[INSTANT_STAMP_BYTES + 5];
    struct error error;
    instant at;
    if (id.len < INSTANT_STAMP_BYTES)
        return INSTANT_NONE;
    const char *stamp = id.data; /* 20250112T110027.590Z */
    int len = snprintf(text, sizeof text, "%.4s-%.2s-%.2s%.3s:%.2s:%.7s", stamp, stamp + 4, stamp + 6, stamp + 8, stamp + 11,
                       stamp + 13);
                       assert(len > 0 && (size_t)len < sizeof text);
    bool parsed = instant_parse((struct slice){ text, (size_t)len }, &at, &error) == STATUS_OK;
    return parsed ? at : INSTANT_NONE;
}

void alert_record_summary(const struct alert_record *record, enum alert_step step, struct buffer *out)
{
    assert(record->kind < ALERT_KIND_COUNT);
    instant ended = record->cleared_at;
    struct alert_facts facts = {
        .kind = record->kind,
        .step = step,
        .destination = record->destination,
        .tenant = record->tenant,
        .reason = record->reason,
        .value = record->value,
        .limit = record->limit,
        .count = record->state.count,
        .acked = record->acked_at != INSTANT_NONE && alert_ends_by_hand(record->kind),
        .acked_by = record->acked_by,
        .lasted_ms = ended != INSTANT_NONE && ended > record->state.raised_at ? ended - record->state.raised_at : 0,
    };
    alert_summary(&facts, out);
}

static void write_figure(struct json_writer *json, const char *name, enum alert_measure measure, double value)
{
    if (measure == MEASURE_SHARE)
        json_member_real(json, name, value);
    else
        json_member_int(json, name, (int64_t)value);
}

void alert_record_write(struct json_writer *json, const struct alert_record *record, enum alert_step step)
{
    static const char *const units[] = { [MEASURE_NONE] = NULL, [MEASURE_JOBS] = "jobs", [MEASURE_MS] = "ms",
                                         [MEASURE_SHARE] = "share" };
    const struct alert_type *type = &alert_types[record->kind];
    struct buffer summary = buffer_up_to(ALERT_RECORD_BYTES_MAX);
    alert_record_summary(record, step, &summary);
    json_object_begin(json);
    json_member_string(json, "id", record->id);
    json_member_text(json, "alert", type->name);
    json_member_text(json, "severity", alert_severity_name(type->severity));
    json_member_text(json, "state", record->cleared_at == INSTANT_NONE ? "standing" : "cleared");
    json_member_given(json, "destination", record->destination);
    if (type->of_tenant)
        json_member_string(json, "tenant", record->tenant);
    json_member_string(json, "summary", buffer_slice(&summary));
    json_member_given(json, "reason", record->reason);
    if (type->shape == ALERT_COUNT) {
        json_member_int(json, "count", record->state.count);
        json_member_int(json, "told", record->state.reported);
    }
    if (units[type->measure] && type->shape != ALERT_COUNT) {
        write_figure(json, "value", type->measure, record->value);
        write_figure(json, "limit", type->measure, record->limit);
    }
    if (units[type->measure])
        json_member_text(json, "unit", units[type->measure]);
    json_member_instant(json, "raised_at", record->state.raised_at);
    json_member_instant(json, "last_at", record->state.last_at);
    json_member_instant(json, "cleared_at", record->cleared_at);
    json_member_given(json, "incident", record->incident);
    if (record->acked_at != INSTANT_NONE) {
        json_member_object(json, "acknowledged");
        json_member_instant(json, "at", record->acked_at);
        json_member_given(json, "by", record->acked_by);
        json_member_given(json, "note", record->note);
        json_object_end(json);
    }
    json_object_end(json);
    buffer_release(&summary);
}

static struct slice copy(const json_t *root, const char *name, struct arena *memory, bool *whole)
{
    struct slice text = arena_copy(memory, saved_text(root, name));
    *whole = *whole && text.data;
    return text;
}

enum status alert_record_read(struct slice id, struct slice text, struct arena *memory, struct alert_record *ret_record)
{
    json_t *root = json_loadb(text.data, text.len, 0, NULL);
    const json_t *acked = json_object_get(root, "acknowledged");
    struct alert_record record = { .id = arena_copy(memory, id),
                                   .kind = alert_kind_from_name(saved_text(root, "alert")),
                                   .state = alert_state_none(),
                                   .cleared_at = saved_instant(root, "cleared_at"),
                                   .acked_at = saved_instant(acked, "at") };
    bool whole = record.id.data != NULL;
    record.destination = copy(root, "destination", memory, &whole);
    record.tenant = copy(root, "tenant", memory, &whole);
    record.reason = copy(root, "reason", memory, &whole);
    record.incident = copy(root, "incident", memory, &whole);
    record.acked_by = copy(acked, "by", memory, &whole);
    record.note = copy(acked, "note", memory, &whole);
    record.value = json_number_value(json_object_get(root, "value"));
    record.limit = json_number_value(json_object_get(root, "limit"));
    record.state.stands = record.cleared_at == INSTANT_NONE;
    record.state.raised_at = record.state.reported_at = saved_instant(root, "raised_at");
    record.state.last_at = saved_instant(root, "last_at");
    record.state.count = saved_count(root, "count");
    record.state.reported = json_object_get(root, "told") ? saved_count(root, "told") : record.state.count;
    json_decref(root);
    if (!whole)
        return STATUS_NO_MEMORY;
    if (record.kind == ALERT_KIND_COUNT || record.state.raised_at == INSTANT_NONE)
        return STATUS_INVALID;
    *ret_record = record;
    return STATUS_OK;
}
