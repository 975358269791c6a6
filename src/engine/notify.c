#include "engine/notify.h"

#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>

enum { PAYLOAD_BYTES_MAX = 4 * ALERT_RECORD_BYTES_MAX };

static const char *const step_words[] = { [ALERT_RAISED] = "raised", [ALERT_GROWN] = "grown", [ALERT_CLEARED] = "cleared" };

static bool list_has(const struct text_list *list, struct slice text)
{
    for (size_t i = 0; i < list->count; i++)
        if (slice_equal(slice_from(list->items[i]), text))
            return true;
    return false;
}

bool notify_wants(const struct notify_config *notify, const struct alert_record *record)
{
    bool wanted = false;
    if (!notify->destination || (notify->destinations.count > 0 && !list_has(&notify->destinations, record->destination)))
        return false;
    if (notify->tenants.count > 0 &&
        !(alert_types[record->kind].of_tenant && list_has(&notify->tenants, record->tenant)))
        return false;
    for (size_t i = 0; i < notify->on.count && !wanted; i++)
        wanted = alert_matches(record->kind, slice_from(notify->on.items[i]));
    return wanted;
}

size_t notify_count(const struct config *config, const struct alert_record *record)
{
    size_t count = 0;
    for (size_t i = 0; i < config->notify_count; i++)
        count += notify_wants(&config->notify[i], record);
    return count;
}

static void write_subject(struct json_writer *json, const struct alert_record *record, enum alert_step step)
{
    const struct alert_type *type = &alert_types[record->kind];
    struct buffer subject;
    buffer_init(&subject, ALERT_RECORD_BYTES_MAX);
    buffer_printf(&subject, "[insist] %s%s: %s%s%.*s", step == ALERT_CLEARED ? "over, " : "",
                  alert_severity_name(type->severity), type->name, record->destination.len > 0 ? " at " : "",
                  SLICE_ARG(record->destination));
    json_member_string(json, "subject", buffer_slice(&subject));
    buffer_release(&subject);
}

static void write_text(struct json_writer *json, const struct alert_record *record, enum alert_step step)
{
    struct buffer text;
    char at[INSTANT_TEXT_BYTES];
    buffer_init(&text, PAYLOAD_BYTES_MAX);
    alert_record_summary(record, step, &text);
    instant_format(record->standing.raised_at, at);
    buffer_printf(&text, "\n\nalert: %s\nseverity: %s\nraised: %s\n", alert_types[record->kind].name,
                  alert_severity_name(alert_types[record->kind].severity), at);
    if (record->cleared_at != INSTANT_NONE) {
        instant_format(record->cleared_at, at);
        buffer_printf(&text, "cleared: %s\n", at);
    }
    if (record->incident.len > 0)
        buffer_printf(&text, "incident: %.*s\n", SLICE_ARG(record->incident));
    buffer_printf(&text, "id: %.*s\n", SLICE_ARG(record->id));
    json_member_string(json, "text", buffer_slice(&text));
    buffer_release(&text);
}

static void write_event(struct json_writer *json, const struct alert_record *record, enum alert_step step, instant now)
{
    char type[32];
    snprintf(type, sizeof type, "alert.%s", step_words[step]);
    json_member_text(json, "type", type);
    json_member_instant(json, "timestamp", now);
    json_name(json, "data");
    alert_record_write(json, record, step);
}

/* Of mail only what a message has; whoever gets the rest need not know words that it does not use. */
static struct slice payload_of(const struct notify_config *notify, bool mail, const struct alert_record *record,
                               enum alert_step step, instant now, struct arena *memory)
{
    struct buffer out;
    buffer_init(&out, PAYLOAD_BYTES_MAX);
    struct json_writer json = json_writer(&out);
    json_object_begin(&json);
    if (notify->from)
        json_member_text(&json, "from", notify->from);
    if (!notify->webhook) {
        json_member_text(&json, "to", notify->email ? notify->email : notify->to);
        write_subject(&json, record, step);
        write_text(&json, record, step);
    }
    if (!mail)
        write_event(&json, record, step, now);
    json_object_end(&json);
    struct slice text =
        buffer_status(&out) == STATUS_OK ? arena_copy(memory, buffer_slice(&out)) : (struct slice){ NULL, 0 };
    buffer_release(&out);
    return text;
}

static struct slice id_of(const struct notify_config *notify, const struct alert_record *record, enum alert_step step,
                          struct arena *memory)
{
    char id[JOB_ID_BYTES_MAX + 1], count[24] = "";
    if (step == ALERT_GROWN)
        snprintf(count, sizeof count, "-%" PRId64, record->standing.count);
    snprintf(id, sizeof id, "%.*s.%s%s.%s", SLICE_ARG(record->id), step_words[step], count, notify->name);
    return arena_copy(memory, slice_from(id));
}

enum status notify_job(const struct config *config, const struct notify_config *notify, const struct alert_record *record,
                       enum alert_step step, instant now, struct arena *memory, struct op_insert *ret_insert)
{
    const struct destination_config *destination = config_destination(config, slice_from(notify->destination));
    bool urgent = alert_types[record->kind].severity == SEVERITY_CRITICAL;
    bool mail = notify->email || (destination && destination->transport == TRANSPORT_SMTP);
    enum priority priority = urgent ? PRIORITY_CRITICAL : PRIORITY_NORMAL;
    struct op_insert insert = {
        .destination = arena_copy(memory, slice_from(notify->destination)), /* a reload may free the configuration first */
        .tenant = NOTIFY_TENANT,
        .id = id_of(notify, record, step, memory),
        .priority = priority,
        .rank = rank_of(priority, now, destination ? destination->aging_ms : 0),
        .run_at = now,
        .deadline = INSTANT_NONE, /* news that expired would be news */
        .content_type = SLICE("application/json"),
        .headers = SLICE(""),
        .correlation_id = arena_copy(memory, record->id),
        .metadata = SLICE(""),
        .payload = payload_of(notify, mail, record, step, now, memory),
        .beyond_limit = true,
    };
    if (!insert.destination.data || !insert.id.data || !insert.correlation_id.data || !insert.payload.data)
        return STATUS_NO_MEMORY;
    *ret_insert = insert;
    return STATUS_OK;
}
