#include "engine/alerts/notify.h"

#include "core/errors/redact.h"
#include "store/store.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

enum { PAYLOAD_BYTES_MAX = 4 * ALERT_RECORD_BYTES_MAX, LETTER_ERROR_BYTES_MAX = 2048,
       REPORT_MESSAGE_BYTES_MAX = 32 * 1024 * 1024 };

static const char *const step_words[] = { [ALERT_RAISED] = "raised", [ALERT_GROWN] = "grown", [ALERT_CLEARED] = "cleared" };

static bool list_has(const struct text_list *list, struct slice text)
{
    return slice_index(text, list->items, list->count) < list->count;
}

/* Of these an entry may want to hear of each job. */
static bool alert_is_of_each(enum alert_kind kind)
{
    assert(kind < ALERT_KIND_COUNT);
    return alert_types[kind].shape == ALERT_COUNT && alert_ends_by_hand(kind);
}

/* The alert that would tell of it with others; ALERT_KIND_COUNT: none. */
static enum alert_kind kind_of_letter(const struct dead_letter *letter)
{
    return slice_equal(letter->dead_code, SLICE("EXPIRED")) ? ALERT_EXPIRED : alert_kind_of_dead(letter->dead_code);
}

bool notify_wants(const struct notify_config *notify, const struct alert_record *record)
{
    assert(record->kind < ALERT_KIND_COUNT);
    bool wanted = false;
    if (!notify->destination || (notify->destinations.count > 0 && !list_has(&notify->destinations, record->destination)))
        return false;
    if (notify->tenants.count > 0 &&
        !(alert_types[record->kind].of_tenant && list_has(&notify->tenants, record->tenant)))
        return false;
    for (size_t i = 0; i < notify->on.count && !wanted; i++)
        wanted = alert_matches(record->kind, slice_from(notify->on.items[i]));
    return wanted && !(notify->each && alert_is_of_each(record->kind));
}

/* ---- one dead letter ---- */

bool letter_wants(const struct notify_config *notify, const struct dead_letter *letter)
{
    enum alert_kind kind = kind_of_letter(letter);
    bool wanted = false, coded = notify->where_code.count == 0;
    if (!notify->each || !notify->destination || kind == ALERT_KIND_COUNT)
        return false;
    if ((notify->destinations.count > 0 && !list_has(&notify->destinations, letter->destination)) ||
        (notify->tenants.count > 0 && !list_has(&notify->tenants, letter->job->tenant)) ||
        (notify->where_dead_code.count > 0 && !list_has(&notify->where_dead_code, letter->dead_code)))
        return false;
    for (size_t i = 0; i < notify->where_code.count && !coded; i++) {
        struct slice rule = slice_from(notify->where_code.items[i]);
        coded = code_matches(rule, letter->code) || slice_equal(rule, letter->rule);
    }
    for (size_t i = 0; i < notify->on.count && !wanted; i++)
        wanted = alert_matches(kind, slice_from(notify->on.items[i]));
    return wanted && coded;
}

static void write_letter(struct json_writer *json, const struct dead_letter *letter, struct slice error, instant now)
{
    json_member_text(json, "type", "job.dead");
    json_member_instant(json, "timestamp", now);
    json_member_object(json, "data");
    json_member_string(json, "claimId", letter->job->id);
    json_member_string(json, "tenant", letter->job->tenant);
    json_member_string(json, "destination", letter->destination);
    json_member_string(json, "dead_code", letter->dead_code);
    json_member_given(json, "code", letter->code);
    json_member_string(json, "errorMessage", error);
    json_member_int(json, "attempts", letter->job->attempts);
    json_member_given(json, "correlation_id", letter->job->correlation_id);
    json_object_end(json);
}

static void write_letter_mail(struct json_writer *json, const struct dead_letter *letter, struct slice error)
{
    struct buffer text = buffer_up_to(PAYLOAD_BYTES_MAX);
    buffer_printf(&text, "[insist] %.*s: %.*s at %.*s", SLICE_ARG(letter->dead_code), SLICE_ARG(letter->job->id),
                  SLICE_ARG(letter->destination));
    json_member_string(json, "subject", buffer_slice(&text));
    buffer_clear(&text);
    buffer_printf(&text, "%.*s of tenant \"%.*s\" died at %.*s after %" PRId64 " attempts: %.*s\n\n",
                  SLICE_ARG(letter->job->id), SLICE_ARG(letter->job->tenant), SLICE_ARG(letter->destination),
                  letter->job->attempts, SLICE_ARG(letter->dead_code));
    if (letter->code.len > 0)
        buffer_printf(&text, "code: %.*s\n", SLICE_ARG(letter->code));
    buffer_printf(&text, "error: %.*s\n", SLICE_ARG(error));
    json_member_string(json, "text", buffer_slice(&text));
    buffer_release(&text);
}

static void write_addresses(struct json_writer *json, const struct notify_config *notify)
{
    if (notify->from)
        json_member_text(json, "from", notify->from);
    if (!notify->webhook)
        json_member_text(json, "to", notify->email ? notify->email : notify->to);
}

static struct slice letter_payload(const struct notify_config *notify, bool mail, const struct dead_letter *letter,
                                   instant now, struct arena *memory)
{
    struct buffer out = buffer_up_to(PAYLOAD_BYTES_MAX);
    struct buffer error = buffer_up_to(LETTER_ERROR_BYTES_MAX);
    redact(&error, letter->error, LETTER_ERROR_BYTES_MAX); /* it leaves the house */
    struct json_writer json = json_begin(&out);
    write_addresses(&json, notify);
    if (!notify->webhook)
        write_letter_mail(&json, letter, buffer_slice(&error));
    if (!mail)
        write_letter(&json, letter, buffer_slice(&error), now);
    json_object_end(&json);
    buffer_release(&error);
    return buffer_into(&out, memory);
}

/* ---- an alert ---- */

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
    struct buffer subject = buffer_up_to(ALERT_RECORD_BYTES_MAX);
    buffer_printf(&subject, "[insist] %s%s: %s%s%.*s", step == ALERT_CLEARED ? "over, " : "",
                  alert_severity_name(type->severity), type->name, record->destination.len > 0 ? " at " : "",
                  SLICE_ARG(record->destination));
    json_member_string(json, "subject", buffer_slice(&subject));
    buffer_release(&subject);
}

static void write_text(struct json_writer *json, const struct alert_record *record, enum alert_step step)
{
    assert(record->state.raised_at != INSTANT_NONE);
    char at[INSTANT_TEXT_BYTES];
    struct buffer text = buffer_up_to(PAYLOAD_BYTES_MAX);
    alert_record_summary(record, step, &text);
    instant_format(record->state.raised_at, at);
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
    assert(step == ALERT_RAISED || step == ALERT_GROWN || step == ALERT_CLEARED);
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
    struct buffer out = buffer_up_to(PAYLOAD_BYTES_MAX);
    struct json_writer json = json_begin(&out);
    write_addresses(&json, notify);
    if (!notify->webhook) {
        write_subject(&json, record, step);
        write_text(&json, record, step);
    }
    if (!mail)
        write_event(&json, record, step, now);
    json_object_end(&json);
    return buffer_into(&out, memory);
}

static struct slice id_of(const struct notify_config *notify, const struct alert_record *record, enum alert_step step,
                          struct arena *memory)
{
    assert(step == ALERT_RAISED || step == ALERT_GROWN || step == ALERT_CLEARED);
    char id[JOB_ID_BYTES_MAX + 1], count[24] = "";
    if (step == ALERT_GROWN)
        snprintf(count, sizeof count, "-%" PRId64, record->state.count);
    snprintf(id, sizeof id, "%.*s.%s%s.%s", SLICE_ARG(record->id), step_words[step], count, notify->name);
    return arena_copy(memory, slice_from(id));
}

/* What every message has, and who gets it. */
static enum status insert_of(const struct config *config, const struct notify_config *notify, bool urgent, instant now,
                             struct arena *memory, struct op_insert *insert)
{
    assert(notify->destination);
    const struct destination_config *destination = config_destination(config, slice_from(notify->destination));
    enum priority priority = urgent ? PRIORITY_CRITICAL : PRIORITY_NORMAL;
    /* A reload may free the configuration first. */
    insert->destination = arena_copy(memory, slice_from(notify->destination));
    insert->tenant = NOTIFY_TENANT;
    insert->priority = priority;
    insert->rank = rank_of(priority, now, destination ? destination->aging_ms : 0);
    insert->run_at = now;
    insert->deadline = INSTANT_NONE; /* news that expired would be news */
    insert->content_type = SLICE("application/json");
    insert->headers = insert->metadata = SLICE("");
    insert->beyond_limit = true;
    return insert->destination.data && insert->id.data && insert->correlation_id.data && insert->payload.data
               ? STATUS_OK
               : STATUS_NO_MEMORY;
}

static bool goes_by_mail(const struct config *config, const struct notify_config *notify)
{
    assert(notify->destination);
    const struct destination_config *destination = config_destination(config, slice_from(notify->destination));
    return notify->email || (destination && transport_is_mail(destination->transport));
}

enum status letter_job(const struct config *config, const struct notify_config *notify, const struct dead_letter *letter,
                       instant now, struct arena *memory, struct op_insert *ret_insert)
{
    assert(notify->each && kind_of_letter(letter) < ALERT_KIND_COUNT);
    char id[JOB_ID_BYTES_MAX + 1];
    bool urgent = alert_types[kind_of_letter(letter)].severity == SEVERITY_CRITICAL;
    /* Each time that it dies is news: once a generation. */
    snprintf(id, sizeof id, "dead-%" PRId64 ".%" PRId64 ".%s", letter->job->seq, letter->job->generation, notify->name);
    *ret_insert = (struct op_insert){ .id = arena_copy(memory, slice_from(id)),
                                      .correlation_id = arena_copy(memory, letter->job->correlation_id),
                                      .payload = letter_payload(notify, goes_by_mail(config, notify), letter, now, memory) };
    return insert_of(config, notify, urgent, now, memory, ret_insert);
}

enum status notify_job(const struct config *config, const struct notify_config *notify, const struct alert_record *record,
                       enum alert_step step, instant now, struct arena *memory, struct op_insert *ret_insert)
{
    bool mail = goes_by_mail(config, notify);
    *ret_insert = (struct op_insert){ .id = id_of(notify, record, step, memory),
                                      .correlation_id = arena_copy(memory, record->id),
                                      .payload = payload_of(notify, mail, record, step, now, memory) };
    return insert_of(config, notify, alert_types[record->kind].severity == SEVERITY_CRITICAL, now, memory, ret_insert);
}

enum status report_job(const struct config *config, const struct notify_config *notify, const struct report_message *report,
                       instant now, struct arena *memory, struct op_insert *ret_insert)
{
    assert(report->id.len > 0 && report->id.len <= JOB_ID_BYTES_MAX);
    bool mail = goes_by_mail(config, notify);
    struct buffer out = buffer_up_to(REPORT_MESSAGE_BYTES_MAX);
    struct json_writer json = json_begin(&out);
    write_addresses(&json, notify);
    if (!notify->webhook) {
        json_member_string(&json, "subject", report->title);
        json_member_string(&json, "text", report->text);
    }
    if (mail) {
        json_member_string(&json, "html", report->html);
    } else {
        json_member_text(&json, "type", report->type);
        json_member_instant(&json, "timestamp", now);
        json_member_raw(&json, "data", report->data);
    }
    json_object_end(&json);
    *ret_insert = (struct op_insert){
        .id = arena_copy(memory, report->id),
        .correlation_id = SLICE(""),
        .payload = buffer_into(&out, memory),
    };
    return insert_of(config, notify, false, now, memory, ret_insert);
}
