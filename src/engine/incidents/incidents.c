#include "engine/incidents/incidents.h"

#include "base/hash.h"
#include "base/log.h"
#include "engine/loop.h"
#include "engine/saved/trim.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A text to write. */
struct incident_note {
    struct dest *dest;
    char id[INCIDENT_ID_BYTES];
    bool last; /* the incident is over: no other follows */
    char *text;
    size_t len;
    struct incident_note *next;
};

void incident_init(struct incident_state *state)
{
    *state = (struct incident_state){
        .record = { .destination = SLICE(""), .reason = SLICE(""), .health_reason = SLICE(""),
                    .incident = { .entered_at = INSTANT_NONE } },
    };
}

void incident_release(struct incident_state *state)
{
    free(state->reason);
    incident_init(state);
}

static bool is_there(const struct incident_state *state)
{
    return state->record.incident.entered_at != INSTANT_NONE;
}

static void note_free(struct incident_note *note)
{
    free(note->text);
    free(note);
}

void incidents_release(struct engine *engine)
{
    while (engine->incidents.notes) {
        struct incident_note *next = engine->incidents.notes->next;
        note_free(engine->incidents.notes);
        engine->incidents.notes = next;
    }
}

/* ---- what happens ---- */

static void begin(struct dest *dest)
{
    struct incident_state *state = &dest->incident;
    struct slice health_reason = state->record.health_reason; /* of the checks that led to it */
    incident_release(state);
    state->record.destination = slice_from(dest->name);
    state->record.incident = dest->gate.contingency.saved.incident;
    state->record.mode = MODE_CONTINGENCY;
    state->record.held_first = dest->queue.ready;
    if (state->record.incident.checks_failed > 0)
        state->record.health_reason = health_reason;
    state->dirty = true;
}

static void take_reason(struct incident_state *state, const char *reason)
{
    char *copy = reason ? strdup(reason) : NULL;
    if (!copy)
        return; /* without memory it says less */
    free(state->reason);
    state->reason = copy;
    state->record.reason = slice_from(copy);
}

void incident_mode_changed(struct dest *dest, const struct mode_change *change)
{
    assert(change->to < MODE_COUNT);
    struct incident_state *state = &dest->incident;
    if (state->record.incident.entered_at != dest->gate.contingency.saved.incident.entered_at)
        begin(dest);
    struct incident_change saved = { .at = change->at, .mode = change->to, .cause = change->cause,
                                    .criterion = change->criterion };
    incident_record_change(&state->record, saved);
    if (change->cause == CAUSE_OPERATOR && change->to == MODE_CONTINGENCY)
        take_reason(state, dest->orders.mode_reason);
    state->dirty = true;
}

void incident_check_failed(struct dest *dest, const char *reason)
{
    dest->incident.record.health_reason = slice_from(reason);
}

/* ---- what the store has of its jobs ---- */

static bool wants_stock(const struct dest *dest)
{
    const struct incident_state *state = &dest->incident;
    bool over = state->record.mode == MODE_NORMAL;
    return is_there(state) && state->dirty && (over ? !state->record.last.known : !state->counted);
}

static struct incident_stock *stock_of(struct dest *dest)
{
    assert(is_there(&dest->incident));
    return dest->incident.record.mode == MODE_NORMAL ? &dest->incident.record.last : &dest->incident.record.first;
}

static enum status read_counts(struct store_read *read, struct store_reader *reader, struct error *err)
{
    struct incident_counts *counts = (struct incident_counts *)read;
    return reader->ops->reader_totals(reader, 0, &read->memory, &counts->totals, &counts->count, err);
}

static struct incident_stock stock_in(const struct incident_counts *read, struct slice destination)
{
    for (size_t i = 0; i < read->count; i++) {
        const struct lane_counts *counts = &read->totals[i].counts;
        if (slice_equal(read->totals[i].destination, destination))
            return (struct incident_stock){ .known = true, .completed = counts->completed, .dead = counts->dead,
                                            .pending = counts->pending + counts->waiting + counts->running };
    }
    return (struct incident_stock){ .known = true };
}

/* An incident that began meanwhile did not ask. */
static void counts_read(struct question *question)
{
    const struct incident_counts *read = (const struct incident_counts *)question;
    struct engine *engine = question->engine;
    bool known = question->read.status == STATUS_OK;
    if (!known)
        log_event(LOG_ERROR, "incident_count_failed", FIELD_CSTR("error", question->read.error.text));
    for (struct dest *dest = engine->dests.first; dest; dest = dest->next) {
        struct incident_state *state = &dest->incident;
        if (!state->asked)
            continue;
        assert(state->asked == &state->record.first || state->asked == &state->record.last);
        state->record.held = dest->queue.ready;
        *state->asked = known ? stock_in(read, slice_from(dest->name)) : (struct incident_stock){ 0 };
        state->asked = NULL;
        state->dirty = state->dirty || known;
    }
}

/* At the beginning and at the end. Without an answer the report says less. */
static void take_stock(struct engine *engine)
{
    bool wanted = false;
    for (struct dest *dest = engine->dests.first; dest && !engine->incidents.counts.question.out; dest = dest->next) {
        if (!wants_stock(dest))
            continue;
        assert(!dest->incident.asked);
        dest->incident.asked = stock_of(dest);
        dest->incident.counted = true;
        wanted = true;
    }
    if (wanted)
        question_ask(engine, &engine->incidents.counts.question, read_counts, counts_read);
}

/* ---- writing ---- */

/* Puts a text onto the list, in place of an older one of the same incident that has not gone out. */
static bool list_text(struct engine *engine, struct dest *dest, struct buffer *text)
{
    char id[INCIDENT_ID_BYTES];
    struct incident_note **link = &engine->incidents.notes;
    incident_id(dest->incident.record.incident.entered_at, slice_from(dest->name), id);
    while (*link && strcmp((*link)->id, id) != 0)
        link = &(*link)->next;
    struct incident_note *note = *link ? *link : calloc(1, sizeof *note);
    size_t len = text->len;
    char *taken = buffer_take(text);
    if (!note || !taken) {
        free(taken);
        if (note != *link)
            free(note);
        return false;
    }
    free(note->text);
    memcpy(note->id, id, sizeof id);
    note->dest = dest;
    note->last = dest->incident.record.mode == MODE_NORMAL;
    note->text = taken;
    note->len = len;
    *link = note;
    return true;
}

static bool has_stepped(const struct incident *was, const struct incident *is)
{
    assert(was->curve_count <= RAMP_CURVE_MAX && is->curve_count <= RAMP_CURVE_MAX);
    return was->curve_count != is->curve_count ||
           (is->curve_count > 0 && was->curve[was->curve_count - 1].at != is->curve[is->curve_count - 1].at);
}

/* Whether there is a reason to look at its figures, although nothing was reported. */
static bool is_due(const struct engine *engine, const struct incident_state *state, instant now)
{
    bool put_back = state->write_at > instant_add(now, INCIDENT_WRITE_EVERY_MS); /* the clock was */
    return is_there(state) && state->record.mode != MODE_NORMAL && (engine->stopping || state->write_at <= now || put_back);
}

/* Whoever looks in the first minute is not to hear that nothing is held; twice as many each time are few writes. */
static bool has_grown(const struct incident_state *state, const struct incident *is)
{
    assert(state->held_listed >= 0);
    return is->held_max > state->held_listed && is->held_max / 2 >= state->held_listed;
}

static void refresh(struct dest *dest)
{
    assert(dest->gate.contingency.saved.mode < MODE_COUNT);
    struct incident_state *state = &dest->incident;
    const struct incident *is = &dest->gate.contingency.saved.incident;
    if (!is_there(state) || (state->record.mode == MODE_NORMAL && !state->dirty))
        return;
    state->dirty = state->dirty || has_stepped(&state->record.incident, is) || has_grown(state, is);
    state->record.incident = *is;
    state->record.mode = dest->gate.contingency.saved.mode;
    if (state->record.mode != MODE_NORMAL)
        state->record.held = dest->queue.ready;
}

static void list_record(struct engine *engine, struct dest *dest, instant now)
{
    struct incident_state *state = &dest->incident;
    state->write_at = instant_add(now, INCIDENT_WRITE_EVERY_MS);
    struct buffer text = buffer_up_to(INCIDENT_RECORD_BYTES_MAX);
    incident_record_write(&text, &state->record);
    uint64_t hash = hash_slice(engine->seed, 0, buffer_slice(&text));
    bool same = !state->dirty && hash == state->written;
    if (buffer_status(&text) == STATUS_OK && (same || list_text(engine, dest, &text))) {
        state->dirty = false;
        state->written = hash;
        state->held_listed = state->record.incident.held_max;
    } else {
        state->dirty = true; /* no memory: in a moment */
    }
    buffer_release(&text);
}

static void list_changed(struct engine *engine, instant now)
{
    for (struct dest *dest = engine->dests.first; dest; dest = dest->next)
        refresh(dest);
    take_stock(engine);
    for (struct dest *dest = engine->dests.first; dest; dest = dest->next)
        if (dest->incident.dirty || is_due(engine, &dest->incident, now))
            list_record(engine, dest, now);
}

static void incident_saved(const struct op_result *result);

void incidents_save(struct engine *engine)
{
    list_changed(engine, engine_now(engine));
    while (engine->incidents.notes && !engine_must_wait(engine)) {
        struct incident_note *note = engine->incidents.notes;
        struct store_op *op = outgoing_add(engine, incident_saved, note);
        if (!op)
            return;
        assert(note->text && note->dest);
        op->kind = OP_SAVE;
        op->save = (struct op_save){ .space = SPACE_INCIDENT, .name = slice_from(note->id),
                                     .value = { note->text, note->len } };
        dest_is_out(engine, note->dest);
        engine->incidents.notes = note->next;
        note->next = NULL;
    }
}

static void incident_saved(const struct op_result *result)
{
    struct engine *engine = result->engine;
    struct incident_note *note = result->context;
    assert(result->op->kind == OP_SAVE && !note->next);
    const struct incident_state *state = &note->dest->incident;
    char id[INCIDENT_ID_BYTES] = "";
    if (is_there(state))
        incident_id(state->record.incident.entered_at, slice_from(note->dest->name), id);
    bool present = strcmp(id, note->id) == 0;
    if (!result->applied && !engine->stopping && present) {
        note->dest->incident.dirty = true; /* as it stands by then: a newer text may be in the store already */
    } else if (!result->applied && !engine->stopping && note->last) {
        note->next = engine->incidents.notes;
        engine->incidents.notes = note;
        return;
    }
    note_free(note);
}

/* ---- over a restart ---- */

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The record is written more often than the destination's state, which on the other hand is never behind in its mode. */
static void merge(struct incident *is, const struct incident *recorded)
{
    for (int i = 0; i < CRITERION_COUNT; i++)
        is->signs[i] = larger(is->signs[i], recorded->signs[i]);
    is->checks_failed = larger(is->checks_failed, recorded->checks_failed);
    is->probes = larger(is->probes, recorded->probes);
    is->held_max = larger(is->held_max, recorded->held_max);
    is->unspent = larger(is->unspent, recorded->unspent);
    bool newer = recorded->curve_count > 0 && is->curve_count > 0 && recorded->relapses >= is->relapses &&
                 recorded->curve[recorded->curve_count - 1].at >= is->curve[is->curve_count - 1].at;
    if (newer) {
        memcpy(is->curve, recorded->curve, sizeof is->curve);
        is->curve_count = recorded->curve_count;
    }
    assert(is->curve_count <= RAMP_CURVE_MAX);
}

/* The text of a constant, since a record's own text does not live long enough. */
static struct slice health_reason_of(struct slice name)
{
    for (int i = HEALTH_WELL + 1; i < HEALTH_REASON_COUNT; i++)
        if (slice_equal(name, slice_from(health_reason_name((enum health_reason)i))))
            return slice_from(health_reason_name((enum health_reason)i));
    return SLICE("");
}

static void go_on(struct dest *dest, const struct incident_record *record)
{
    struct incident_state *state = &dest->incident;
    struct incident *is = &dest->gate.contingency.saved.incident;
    assert(is->entered_at != INSTANT_NONE);
    char *reason = strndup(record->reason.data, record->reason.len);
    merge(is, &record->incident);
    state->record = *record;
    state->record.destination = slice_from(dest->name);
    state->record.health_reason = health_reason_of(record->health_reason);
    state->record.incident = *is;
    state->record.reason = SLICE("");
    take_reason(state, reason && *reason ? reason : NULL);
    free(reason);
    state->counted = record->first.known;
    state->dirty = true; /* it may have been behind */
}

enum status incident_restore(struct dest *dest, struct slice text)
{
    const struct contingency_saved *saved = &dest->gate.contingency.saved;
    struct incident_record record;
    struct arena memory = { 0 };
    if (saved->mode == MODE_NORMAL || saved->incident.entered_at == INSTANT_NONE)
        return STATUS_OK;
    enum status status = incident_record_read(text, &memory, &record);
    if (status == STATUS_OK)
        go_on(dest, &record);
    else if (status == STATUS_INVALID)
        begin(dest);
    arena_release(&memory);
    return status == STATUS_INVALID ? STATUS_OK : status;
}

bool incident_written(const struct engine *engine, const struct dest *dest)
{
    for (const struct incident_note *note = engine->incidents.notes; note; note = note->next)
        if (note->dest == dest)
            return false;
    return !dest->incident.dirty && !dest->incident.asked;
}

/* ---- the end of their time ---- */

static bool is_present(const struct engine *engine, struct slice id)
{
    struct slice name = slice_from_offset(id, INSTANT_STAMP_BYTES + 1);
    const struct dest *dest = dest_find(engine, name);
    char present[INCIDENT_ID_BYTES];
    if (!dest || !is_there(&dest->incident) || dest->incident.record.mode == MODE_NORMAL)
        return false;
    incident_id(dest->incident.record.incident.entered_at, name, present);
    return slice_equal(id, slice_from(present));
}

/* One that is not over stays, however long ago it began. */
static bool forget_past(struct engine *engine, struct slice space, struct slice id)
{
    return is_present(engine, id) ||
           (saved_forget(engine, SPACE_INCIDENT_LESSONS, id) && saved_forget(engine, space, id));
}

void incidents_trim(struct engine *engine)
{
    saved_trim(engine, &engine->incidents.trim, SPACE_INCIDENT, forget_past);
}
