#include "engine/alerts/alert_book.h"

#include "base/log.h"
#include "engine/alerts/notify.h"
#include "engine/loop.h"
#include "engine/saved/trim.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { KEEP_OPS_MAX = 4 }; /* of one step, without those who hear of it */

/* ---- in and out of the book ---- */

static uint64_t *mask_of(struct alert_book *book, struct dest *dest)
{
    return dest ? &dest->alerts.active : &book->active;
}

static int64_t *count_of(struct alert_book *book, struct dest *dest, enum alert_kind kind)
{
    assert(kind < ALERT_KIND_COUNT);
    return dest ? &dest->alerts.stand[kind] : &book->stand[kind];
}

static char *key_of(const struct alert_subject *subject)
{
    assert(subject->kind < ALERT_KIND_COUNT && (subject->dest || !alert_types[subject->kind].of_tenant));
    struct buffer key = buffer_up_to(SIZE_MAX / 4);
    buffer_append_text(&key, alert_types[subject->kind].name);
    buffer_append_byte(&key, '/');
    buffer_append_text(&key, subject->dest ? subject->dest->name : "");
    buffer_append_byte(&key, '/');
    if (alert_types[subject->kind].of_tenant)
        buffer_append(&key, subject->tenant);
    buffer_append_byte(&key, '\0');
    char *text = buffer_status(&key) == STATUS_OK ? buffer_take(&key) : NULL;
    buffer_release(&key);
    return text;
}

/* NULL: it does not stand. *ret_known false: without memory nobody can say. */
static struct alert *find(struct engine *engine, const struct alert_subject *subject, bool *ret_known)
{
    assert(subject->dest || !alert_types[subject->kind].of_tenant);
    struct alert_book *book = engine->alerts.book;
    bool of_tenant = alert_types[subject->kind].of_tenant;
    *ret_known = true;
    if (of_tenant ? subject->dest->alerts.tenants == 0 : !(*mask_of(book, subject->dest) & UINT64_C(1) << subject->kind))
        return NULL;
    char *key = key_of(subject);
    struct alert *found = key ? map_get(&book->by_key, slice_from(key)) : NULL;
    *ret_known = key != NULL;
    free(key);
    return found;
}

static void alert_free(struct alert *alert)
{
    if (!alert)
        return;
    free(alert->tenant);
    free(alert->reason);
    free(alert->key);
    free(alert->acked_by);
    free(alert->note);
    free(alert);
}

static bool has_room(struct alert_book *book, const struct alert_subject *subject)
{
    bool full = book->count >= ALERTS_MAX ||
                (alert_types[subject->kind].of_tenant && subject->dest->alerts.stand[subject->kind] >= ALERTS_TENANTS_MAX);
    if (full && !book->full_reported)
        log_event(LOG_ERROR, "alerts_full", FIELD_CSTR("alert", alert_types[subject->kind].name),
                  FIELD_INT("standing", (int64_t)book->count));
    book->full_reported = full;
    return !full;
}

static void set_reason(struct alert *alert, struct slice reason)
{
    struct slice whole = utf8_cut(reason, ALERT_REASON_BYTES_MAX);
    free(alert->reason);
    alert->reason = whole.len > 0 ? strndup(whole.data, whole.len) : NULL; /* without memory it says less */
    alert->record.reason = slice_from(alert->reason);
}

/* NULL: no memory. */
static struct alert *add(struct alert_book *book, const struct alert_subject *subject)
{
    assert(subject->dest || !alert_types[subject->kind].of_tenant);
    struct alert *alert = calloc(1, sizeof *alert);
    if (!alert)
        return NULL;
    alert->key = key_of(subject);
    alert->tenant = strndup(subject->tenant.data ? subject->tenant.data : "", subject->tenant.len);
    if (!alert->key || !alert->tenant || map_put(&book->by_key, slice_from(alert->key), alert) != STATUS_OK) {
        alert_free(alert);
        return NULL;
    }
    alert->dest = subject->dest;
    alert->record = (struct alert_record){
        .kind = subject->kind,
        .destination = slice_from(subject->dest ? subject->dest->name : ""),
        .tenant = slice_from(alert->tenant),
        .incident = SLICE(""),
        .state = alert_state_none(),
        .cleared_at = INSTANT_NONE,
        .acked_at = INSTANT_NONE,
    };
    alert->saved_at = INSTANT_NONE;
    set_reason(alert, subject->reason);
    *book->last = alert;
    book->last = &alert->next;
    book->count++;
    ++*count_of(book, subject->dest, subject->kind);
    if (alert_types[subject->kind].of_tenant)
        subject->dest->alerts.tenants++;
    else
        *mask_of(book, subject->dest) |= UINT64_C(1) << subject->kind;
    return alert;
}

static void drop(struct alert_book *book, struct alert *alert)
{
    assert(book->count > 0 && alert->step == ALERT_SAME && alert->out == ALERT_SAME && !alert->waits);
    struct alert **link = &book->first;
    while (*link != alert)
        link = &(*link)->next;
    *link = alert->next;
    if (book->last == &alert->next)
        book->last = link;
    book->count--;
    book->acked -= alert->record.acked_at != INSTANT_NONE;
    --*count_of(book, alert->dest, alert->record.kind);
    map_remove(&book->by_key, slice_from(alert->key));
    if (alert_types[alert->record.kind].of_tenant)
        alert->dest->alerts.tenants--;
    else
        *mask_of(book, alert->dest) &= ~(UINT64_C(1) << alert->record.kind);
    alert_free(alert);
}

enum status alerts_new(struct engine *engine)
{
    assert(!engine->alerts.book);
    static_assert(ALERT_KIND_COUNT <= sizeof(uint64_t) * 8, "a bit a kind");
    engine->alerts.book = calloc(1, sizeof *engine->alerts.book);
    if (!engine->alerts.book)
        return STATUS_NO_MEMORY;
    map_init(&engine->alerts.book->by_key, engine->seed);
    engine->alerts.book->last = &engine->alerts.book->first;
    engine->alerts.book->id_at = INSTANT_NONE;
    return STATUS_OK;
}

void alerts_free(struct engine *engine)
{
    struct alert_book *book = engine->alerts.book;
    if (!book)
        return;
    while (book->first) {
        struct alert *next = book->first->next;
        alert_free(book->first);
        book->first = next;
    }
    map_release(&book->by_key);
    free(book);
    engine->alerts.book = NULL;
}

/* ---- judging ---- */

static void set_step(struct alert_book *book, struct alert *alert, enum alert_step step)
{
    book->unwritten += step != ALERT_SAME && alert->step == ALERT_SAME;
    book->unwritten -= step == ALERT_SAME && alert->step != ALERT_SAME;
    alert->step = step;
    assert(book->unwritten <= book->count);
}

/* A moment of its own, so that no two have the same id although a clock may be put back. */
static void name_it(struct alert_book *book, struct alert *alert, instant now)
{
    instant at = book->id_at != INSTANT_NONE && now <= book->id_at ? book->id_at + 1 : now;
    const struct alert_record *record = &alert->record;
    assert(book->id_at == INSTANT_NONE || at > book->id_at);
    book->id_at = at;
    alert_id(record->kind, at, record->destination, record->tenant, alert->id);
    alert->record.id = slice_from(alert->id);
    bool of_outage = record->kind == ALERT_CONTINGENCY || record->kind == ALERT_DOWN;
    if (!of_outage || alert->dest->gate.contingency.saved.incident.entered_at == INSTANT_NONE)
        return;
    incident_id(alert->dest->gate.contingency.saved.incident.entered_at, record->destination, alert->incident);
    alert->record.incident = slice_from(alert->incident);
}

static void take_step(struct alert_book *book, struct alert *alert, enum alert_step step, instant now)
{
    assert(step != ALERT_SAME && alert->out == ALERT_SAME);
    switch (step) {
    case ALERT_RAISED:
        if (alert->written) { /* its end was not written yet: then it never ended */
            set_step(book, alert, ALERT_SAME);
            alert->record.cleared_at = INSTANT_NONE;
            return;
        }
        name_it(book, alert, now);
        set_step(book, alert, ALERT_RAISED);
        return;
    case ALERT_GROWN:
        set_step(book, alert, alert->written ? ALERT_GROWN : ALERT_RAISED);
        return;
    default:
        if (!alert->written) { /* nobody has heard of it */
            set_step(book, alert, ALERT_SAME);
            drop(book, alert);
            return;
        }
        alert->record.cleared_at = now;
        set_step(book, alert, ALERT_CLEARED);
    }
}

static void take_figures(struct alert *alert, const struct alert_state *state, const struct alert_reading *reading)
{
    assert(alert->out == ALERT_SAME && !alert->waits);
    instant raised_at = alert->record.state.raised_at;
    alert->record.state = *state;
    if (alert->written)
        alert->record.state.raised_at = raised_at;
    if (!state->stands) /* what it was is what its end tells of */
        return;
    alert->record.value = alert_types[alert->record.kind].shape == ALERT_COUNT ? (double)state->count : reading->value;
    alert->record.limit = reading->limit;
}

static double figure_of(const struct alert *alert)
{
    bool counts = alert_types[alert->record.kind].shape == ALERT_COUNT;
    return counts ? (double)alert->record.state.count : alert->record.value;
}

/* Whoever looks sees how it is now; what grows by itself, like a time, need not be written as often. */
static bool is_stale(const struct alert *alert, instant now)
{
    enum alert_measure measure = alert_types[alert->record.kind].measure;
    int64_t every_ms = measure == MEASURE_JOBS ? SECOND_MS : MINUTE_MS;
    bool changed = alert->written && measure != MEASURE_NONE && figure_of(alert) != alert->saved_figure;
    return changed && (alert->saved_at == INSTANT_NONE || now < alert->saved_at || now - alert->saved_at >= every_ms);
}

bool alert_read(struct engine *engine, const struct alert_subject *subject, const struct alert_reading *reading)
{
    struct alert_book *book = engine->alerts.book;
    instant now = engine_now(engine);
    bool known;
    struct alert *alert = find(engine, subject, &known);
    if (!known || (alert && (alert->out != ALERT_SAME || alert->waits)))
        return false;
    struct alert_state state = alert ? alert->record.state : alert_state_none();
    enum alert_step step = alert_judge(subject->kind, reading, &state, now);
    if (!alert && step != ALERT_RAISED)
        return true;
    if (!alert)
        alert = has_room(book, subject) ? add(book, subject) : NULL;
    if (!alert)
        return false;
    assert(alert->record.kind == subject->kind && alert->dest == subject->dest);
    take_figures(alert, &state, reading);
    if (step != ALERT_SAME)
        take_step(book, alert, step, now);
    else if (state.stands && alert->step == ALERT_SAME && is_stale(alert, now))
        set_step(book, alert, ALERT_REFRESHED);
    return true;
}

void alerts_unwatch(struct engine *engine, struct dest *dest)
{
    const struct alert_reading unwatched = { .watched = false };
    for (struct alert *alert = engine->alerts.book->first, *next; alert; alert = next) {
        next = alert->next;
        if (alert->dest != dest)
            continue;
        const struct alert_subject subject = { .kind = alert->record.kind, .dest = dest, .tenant = alert->record.tenant };
        alert_read(engine, &subject, &unwatched);
    }
}

/* ---- acknowledged ---- */

static bool set_text(char **text, struct slice *borrowed, struct slice given)
{
    char *copy = strndup(given.data ? given.data : "", given.len);
    if (!copy)
        return false;
    free(*text);
    *text = copy;
    *borrowed = slice_from(copy);
    return true;
}

static void await_ack(struct alert *alert, struct saved_wait *wait)
{
    struct saved_wait **last = &alert->waits;
    while (*last)
        last = &(*last)->next;
    wait->next = NULL;
    *last = wait;
}

/* A run of dead letters ends with it; what is still true goes on, known to somebody. */
static void take_ack(struct alert_book *book, struct alert *alert, instant now)
{
    assert(alert->written && alert->out == ALERT_SAME);
    bool ends = alert_ends_by_hand(alert->record.kind);
    book->acked += alert->record.acked_at == INSTANT_NONE;
    alert->record.acked_at = now;
    if (ends) {
        alert->record.state.stands = false;
        alert->record.cleared_at = now;
    }
    set_step(book, alert, ends ? ALERT_CLEARED : ALERT_ACKNOWLEDGED);
}

/* It stands, and the store refused it. */
static bool is_unwritten(const struct alert *alert)
{
    return !alert->written && alert->refused;
}

enum status engine_ack_alert(struct engine *engine, const struct alert_ack *ack, struct saved_wait *wait, struct error *err)
{
    struct alert_book *book = engine->alerts.book;
    struct alert *alert = book ? book->first : NULL;
    while (alert && !slice_equal(alert->record.id, ack->id))
        alert = alert->next;
    bool theirs = alert && (!ack->tenant.data || (alert_types[alert->record.kind].of_tenant &&
                                                  slice_equal(alert->record.tenant, ack->tenant)));
    if (theirs && is_unwritten(alert))
        return error_set(err, STATUS_FULL, "the store has not taken this alert yet; make room on its disk first");
    if (!theirs || !alert->written || alert->record.cleared_at != INSTANT_NONE)
        return error_set(err, STATUS_NOT_FOUND, "no alert \"%.*s\" stands; it may be over", SLICE_ARG(ack->id));
    if (engine->stopping)
        return error_set(err, STATUS_IO, "the daemon is stopping");
    if (!set_text(&alert->acked_by, &alert->record.acked_by, ack->by) ||
        !set_text(&alert->note, &alert->record.note, ack->note))
        return error_set(err, STATUS_NO_MEMORY, "no memory");
    await_ack(alert, wait);
    if (alert->out == ALERT_SAME)
        take_ack(book, alert, engine_now(engine));
    if (alert_ends_by_hand(alert->record.kind) && alert->dest)
        dead_acked(alert->dest);
    engine_wake(engine);
    return STATUS_OK;
}

/* ---- into the store ---- */

static struct slice record_text(const struct alert *alert, enum alert_step step, const char *note, struct arena *memory)
{
    assert(alert->record.id.len > 0);
    struct buffer out = buffer_up_to(2 * ALERT_RECORD_BYTES_MAX);
    struct json_writer json = json_writer(&out);
    if (note) {
        json_object_begin(&json);
        json_member_text(&json, "note", note);
        json_name(&json, "alert");
    }
    alert_record_write(&json, &alert->record, step);
    if (note)
        json_object_end(&json);
    return buffer_into(&out, memory);
}

static void alert_saved(const struct op_result *result);

/* Each adds one operation; false: no memory, or no room. */
static bool add_save(struct engine *engine, struct alert *alert, struct slice space, bool present)
{
    assert(alert->step != ALERT_SAME);
    bool first = alert->out == ALERT_SAME;
    struct store_op *op = outgoing_add(engine, first ? alert_saved : NULL, alert);
    if (!op)
        return false;
    alert->out = alert->step;
    op->kind = OP_SAVE;
    op->save = (struct op_save){ .space = space, .name = arena_copy(outgoing_memory(engine), alert->record.id) };
    op->save.value = present ? record_text(alert, alert->step, NULL, outgoing_memory(engine)) : SLICE("");
    return op->save.name.data && op->save.value.data;
}

/* How a step is called in the log and in the trail; NULL: it is no news. */
static const char *step_name(const struct alert *alert, enum alert_step step)
{
    assert(step != ALERT_SAME);
    static const char *const names[] = { [ALERT_RAISED] = "alert_raised", [ALERT_GROWN] = "alert_grown",
                                         [ALERT_CLEARED] = "alert_cleared", [ALERT_ACKNOWLEDGED] = "alert_acknowledged",
                                         [ALERT_REFRESHED] = NULL };
    bool by_hand = alert->record.acked_at != INSTANT_NONE && alert_ends_by_hand(alert->record.kind);
    return names[step == ALERT_CLEARED && by_hand ? ALERT_ACKNOWLEDGED : step];
}

static bool add_event(struct engine *engine, const struct alert *alert)
{
    assert(alert->step != ALERT_SAME);
    const char *name = step_name(alert, alert->step);
    struct store_op *op = name ? outgoing_add(engine, NULL, NULL) : NULL;
    if (!op)
        return !name;
    op->kind = OP_NOTE;
    op->data = record_text(alert, alert->step, name, outgoing_memory(engine));
    return op->data.data != NULL;
}

/* With the whole batch it is tried again. */
static void notice_written(const struct op_result *result)
{
    assert(result->op->kind == OP_INSERT);
    if (result->batch->status == STATUS_OK && !result->applied)
        log_event(LOG_ERROR, "notify_refused", FIELD_TEXT("job", result->op->insert.id),
                  FIELD_CSTR("status", status_name(result->op->status)));
}

static bool add_jobs(struct engine *engine, const struct alert *alert, instant now)
{
    bool news = alert->step != ALERT_REFRESHED && alert->step != ALERT_ACKNOWLEDGED;
    for (size_t i = 0; news && i < engine->config->notify_count; i++) {
        const struct notify_config *notify = &engine->config->notify[i];
        if (!notify_wants(notify, &alert->record))
            continue;
        struct store_op *op = outgoing_add(engine, notice_written, NULL);
        if (!op)
            return false;
        op->kind = OP_INSERT;
        if (notify_job(engine->config, notify, &alert->record, alert->step, now, outgoing_memory(engine), &op->insert) !=
            STATUS_OK)
            return false;
    }
    return true;
}

/* What its dead letters are to be is saved with it. */
static bool add_acked(struct engine *engine, const struct alert *alert)
{
    bool by_hand = alert->step == ALERT_CLEARED && alert->dest && alert->record.acked_at != INSTANT_NONE &&
                   alert_ends_by_hand(alert->record.kind);
    return !by_hand || dead_acked_save(engine, alert->dest);
}

/* All of one step or nothing of it. False: not now. */
static bool write_step(struct engine *engine, struct alert *alert)
{
    assert(alert->step != ALERT_SAME && alert->out == ALERT_SAME);
    size_t before = outgoing_count(engine);
    bool over = alert->step == ALERT_CLEARED;
    if (!outgoing_has_room(engine, KEEP_OPS_MAX + notify_count(engine->config, &alert->record)))
        return false;
    if (add_save(engine, alert, SPACE_ALERT, !over) && (!over || add_save(engine, alert, SPACE_ALERT_CLEARED, true)) &&
        add_acked(engine, alert) && add_event(engine, alert) && add_jobs(engine, alert, engine_now(engine))) {
        set_step(engine->alerts.book, alert, ALERT_SAME);
        alert->saved_figure = figure_of(alert);
        alert->saved_at = engine_now(engine);
        return true;
    }
    while (outgoing_count(engine) > before)
        outgoing_drop_last(engine);
    alert->out = ALERT_SAME;
    return false;
}

static bool is_unwritten_before(const struct alert *alert, struct slice before)
{
    return is_unwritten(alert) && (before.len == 0 || slice_compare(alert->record.id, before) < 0);
}

enum status engine_alerts_unwritten(const struct engine *engine, struct slice before, size_t max, struct arena *memory,
                                    struct saved **ret_alerts, size_t *ret_count, bool *ret_more)
{
    const struct alert *first = engine->alerts.book ? engine->alerts.book->first : NULL;
    size_t count = 0;
    for (const struct alert *alert = first; alert; alert = alert->next)
        count += is_unwritten_before(alert, before);
    struct saved *alerts = arena_alloc(memory, (max + 1) * sizeof *alerts);
    bool whole = alerts != NULL;
    size_t at = count; /* they are in the order in which they were raised */
    for (const struct alert *alert = first; alert && whole; alert = alert->next) {
        if (!is_unwritten_before(alert, before) || at-- > max)
            continue;
        alerts[at] = (struct saved){ .name = arena_copy(memory, alert->record.id),
                                     .value = record_text(alert, ALERT_RAISED, NULL, memory) };
        whole = alerts[at].name.data && alerts[at].value.data;
    }
    if (!whole)
        return STATUS_NO_MEMORY;
    *ret_alerts = alerts;
    *ret_count = count < max ? count : max;
    *ret_more = count > max;
    return STATUS_OK;
}

void alerts_write(struct engine *engine)
{
    struct alert_book *book = engine->alerts.book;
    if (book->unwritten == 0 || engine_must_wait(engine))
        return;
    for (struct alert *alert = book->first; alert && book->unwritten > 0; alert = alert->next)
        if (alert->step != ALERT_SAME && alert->out == ALERT_SAME && !write_step(engine, alert))
            return;
}

static void log_step(const struct alert *alert, enum alert_step step)
{
    const struct alert_type *type = &alert_types[alert->record.kind];
    bool calm = step == ALERT_CLEARED || step == ALERT_ACKNOWLEDGED;
    const char *name = step_name(alert, step);
    if (!name)
        return;
    struct buffer summary = buffer_up_to(ALERT_RECORD_BYTES_MAX);
    alert_record_summary(&alert->record, step, &summary);
    log_event(calm ? LOG_INFO : type->severity == SEVERITY_CRITICAL ? LOG_ERROR : LOG_WARN, name,
              FIELD_CSTR("alert", type->name), FIELD_CSTR("severity", alert_severity_name(type->severity)),
              FIELD_TEXT("destination", alert->record.destination), FIELD_TEXT("tenant", alert->record.tenant),
              FIELD_TEXT("id", alert->record.id), FIELD_TEXT("summary", buffer_slice(&summary)),
              FIELD_TEXT("by", alert->record.acked_by));
    buffer_release(&summary);
}

/* A message and the trail have it when the store has it, which may be when a full disk is over: the log does not wait. */
static void log_refused(struct alert *alert, const struct batch *batch)
{
    const struct alert_type *type = &alert_types[alert->record.kind];
    assert(alert->out == ALERT_SAME); /* it is to be written again */
    if (alert->refused)
        return;
    alert->refused = true;
    log_event(LOG_ERROR, "alert_not_written", FIELD_CSTR("alert", type->name),
              FIELD_CSTR("severity", alert_severity_name(type->severity)),
              FIELD_TEXT("destination", alert->record.destination), FIELD_TEXT("tenant", alert->record.tenant),
              FIELD_TEXT("reason", alert->record.reason), FIELD_CSTR("error", batch->error.text));
}

static void alert_saved(const struct op_result *result)
{
    struct engine *engine = result->engine;
    struct alert *alert = result->context;
    static const struct error good = { .status = STATUS_OK };
    struct alert_book *book = engine->alerts.book;
    enum alert_step step = alert->out;
    assert(result->op->kind == OP_SAVE && step != ALERT_SAME);
    bool acked = alert->waits && (step == ALERT_CLEARED || step == ALERT_ACKNOWLEDGED);
    struct error refused;
    alert->out = ALERT_SAME;
    if (!result->applied) {
        error_set(&refused, STATUS_IO, "the store refused it");
        log_refused(alert, result->batch);
        if (acked)
            saved_waits_fail(&alert->waits, &refused);
        if (!engine->stopping) /* else the next process finds out anew */
            set_step(book, alert, step); /* nothing of it was judged meanwhile */
        return;
    }
    log_step(alert, step);
    alert->written = true;
    alert->refused = false;
    if (acked)
        saved_waits_fail(&alert->waits, &good);
    else if (alert->waits)
        take_ack(book, alert, engine_now(engine)); /* it came while another step was on its way */
    if (step == ALERT_CLEARED)
        drop(book, alert);
}

/* ---- over a restart ---- */

/* What an earlier process named is not named again, whatever the clock says by now. */
void alerts_named_last(struct engine *engine, struct slice id)
{
    struct alert_book *book = engine->alerts.book;
    instant at = alert_id_at(id);
    if (at != INSTANT_NONE && (book->id_at == INSTANT_NONE || book->id_at < at))
        book->id_at = at;
}

enum status alert_restore(struct engine *engine, const struct saved *saved)
{
    struct alert_record record = { 0 };
    struct arena memory = { 0 };
    enum status status = alert_record_read(saved->name, saved->value, &memory, &record);
    struct alert_subject subject = { .kind = record.kind };
    bool fits = status == STATUS_OK && record.id.len < ALERT_ID_BYTES && record.incident.len < INCIDENT_ID_BYTES;
    if (fits && record.destination.len > 0)
        status = dest_get(engine, record.destination, &subject.dest);
    if (status == STATUS_OK && fits) {
        subject.tenant = record.tenant;
        subject.reason = record.reason;
        struct alert *alert = add(engine->alerts.book, &subject);
        status = alert ? STATUS_OK : STATUS_NO_MEMORY;
        if (alert) {
            memcpy(alert->id, record.id.data, record.id.len);
            memcpy(alert->incident, record.incident.data, record.incident.len);
            alert->record.id = slice_from(alert->id);
            alert->record.incident = slice_from(alert->incident);
            alert->record.state = record.state;
            alert->record.acked_at = record.acked_at;
            engine->alerts.book->acked += record.acked_at != INSTANT_NONE;
            if (!set_text(&alert->acked_by, &alert->record.acked_by, record.acked_by) ||
                !set_text(&alert->note, &alert->record.note, record.note))
                status = STATUS_NO_MEMORY;
            alert->record.value = record.value;
            alert->record.limit = record.limit;
            alert->saved_figure = figure_of(alert);
            alert->written = true;
            alerts_named_last(engine, record.id);
        }
    }
    arena_release(&memory);
    return status == STATUS_INVALID ? STATUS_OK : status; /* of a version to come */
}

void alert_age_restore(struct engine *engine, const struct saved *saved)
{
    struct dest *dest = dest_find(engine, saved->name);
    json_t *root = json_loadb(saved->value.data, saved->value.len, 0, NULL);
    struct backlog_age age = { .count = json_integer_value(json_object_get(root, "count")),
                               .created_mean = json_number_value(json_object_get(root, "created_mean")),
                               .fed_at = json_integer_value(json_object_get(root, "fed_at")) };
    if (dest && root && age.count >= 0)
        dest->alerts.age = age;
    json_decref(root);
}

void dead_acked_restore(struct engine *engine, const struct saved *saved)
{
    struct dest *dest = dest_find(engine, saved->name);
    json_t *root = json_loadb(saved->value.data, saved->value.len, 0, NULL);
    const json_t *dead = json_object_get(root, "dead");
    if (dest)
        dest->alerts.acked = json_is_integer(dead) ? json_integer_value(dead) : DEAD_ACKED_ALL;
    json_decref(root);
}

bool alerts_written(const struct engine *engine, const struct dest *dest)
{
    for (const struct alert *alert = engine->alerts.book ? engine->alerts.book->first : NULL; alert; alert = alert->next)
        if (alert->dest == dest && (alert->step != ALERT_SAME || alert->out != ALERT_SAME || alert->waits))
            return false;
    return true;
}

void alerts_forget(struct engine *engine, const struct dest *dest)
{
    for (struct alert *alert = engine->alerts.book ? engine->alerts.book->first : NULL, *next; alert; alert = next) {
        next = alert->next;
        if (alert->dest == dest)
            drop(engine->alerts.book, alert);
    }
}

void alerts_trim(struct engine *engine)
{
    saved_trim(engine, &engine->alerts.trim, SPACE_ALERT_CLEARED, saved_forget);
}
