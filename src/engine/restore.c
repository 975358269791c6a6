#include "engine/restore.h"

#include "base/array.h"
#include "base/log.h"
#include "engine/alerts/alert_book.h"
#include "engine/attempt/leases.h"
#include "engine/loop.h"
#include "engine/saved/gate_state.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

enum { LANES_PAGE = STORE_PAGE_MAX };

/* ---- reading ---- */

static bool is_wanted(const struct restored *restored, struct slice destination)
{
    return !restored->only.data || slice_equal(restored->only, destination);
}

static enum status no_memory(struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "no memory for what the store has of the destinations");
}

static enum status add_note(struct restored *restored, struct restored_notes *notes, struct slice name, struct slice value)
{
    assert(notes->count <= notes->capacity);
    struct arena *memory = &restored->question.read.memory;
    struct saved *items = array_grow_in(memory, notes->items, notes->count, &notes->capacity, sizeof *items);
    struct saved note = { arena_copy(memory, name), arena_copy(memory, value) };
    if (!items || !note.name.data || !note.value.data)
        return STATUS_NO_MEMORY;
    notes->items = items;
    notes->items[notes->count++] = note;
    return STATUS_OK;
}

/* The tenants that are held are named in the state. */
static enum status read_held(struct restored *restored, struct restored_state *state, const json_t *root,
                             struct store_reader *reader, struct error *err)
{
    assert(state->held_count == 0);
    struct arena *memory = &restored->question.read.memory;
    const json_t *held = json_object_get(root, "tenants_paused");
    size_t count = json_array_size(held) < HELD_LANES_MAX ? json_array_size(held) : HELD_LANES_MAX;
    state->held = arena_alloc_array(memory, count + 1, sizeof *state->held);
    if (!state->held)
        return no_memory(err);
    for (size_t i = 0; i < count; i++) {
        const json_t *tenant = json_object_get(json_array_get(held, i), "tenant");
        if (!json_is_string(tenant))
            continue;
        enum status status = reader->ops->reader_lane(reader, state->name, slice_from(json_string_value(tenant)), memory,
                                                      &state->held[state->held_count], err);
        if (status == STATUS_OK)
            state->held_count++;
        else if (status != STATUS_NOT_FOUND)
            return status;
    }
    return STATUS_OK;
}

static enum status read_incident(struct restored *restored, struct restored_state *state, const json_t *root,
                                 struct store_reader *reader, struct error *err)
{
    assert(!state->incident.data);
    struct gate_saved gate = { .contingency = { .mode = MODE_NORMAL, .incident.entered_at = INSTANT_NONE } };
    char id[INCIDENT_ID_BYTES];
    gate_state_read(root, &gate);
    if (gate.contingency.mode == MODE_NORMAL || gate.contingency.incident.entered_at == INSTANT_NONE)
        return STATUS_OK;
    incident_id(gate.contingency.incident.entered_at, state->name, id);
    enum status status = reader->ops->reader_saved(reader, SPACE_INCIDENT, slice_from(id), &restored->question.read.memory,
                                                   &state->incident, err);
    if (status != STATUS_NOT_FOUND)
        return status;
    state->incident = SLICE(""); /* there is one, and nothing was written of it */
    return STATUS_OK;
}

static enum status add_state(struct restored *restored, struct slice name, struct slice text, struct store_reader *reader,
                             struct error *err)
{
    assert(restored->state_count <= restored->state_capacity);
    struct arena *memory = &restored->question.read.memory;
    struct restored_state *states =
        array_grow_in(memory, restored->states, restored->state_count, &restored->state_capacity, sizeof *states);
    struct restored_state state = { .name = arena_copy(memory, name), .text = arena_copy(memory, text) };
    if (!states || !state.name.data || !state.text.data)
        return no_memory(err);
    restored->states = states;
    json_t *root = json_loadb(text.data, text.len, 0, NULL);
    enum status status = read_held(restored, &state, root, reader, err);
    if (status == STATUS_OK)
        status = read_incident(restored, &state, root, reader, err);
    json_decref(root);
    if (status == STATUS_OK)
        restored->states[restored->state_count++] = state;
    return status;
}

/* One note of a space by the destination's name; none is none. */
static enum status read_one(struct restored *restored, struct slice space, struct restored_notes *notes,
                            struct store_reader *reader, struct error *err)
{
    assert(restored->only.data);
    struct slice value;
    enum status status =
        reader->ops->reader_saved(reader, space, restored->only, &restored->question.read.memory, &value, err);
    if (status == STATUS_NOT_FOUND)
        return STATUS_OK;
    return status == STATUS_OK ? add_note(restored, notes, restored->only, value) : status;
}

/* What goes with a walk over a space. */
struct walk {
    struct restored *restored;
    struct restored_notes *notes;
    bool (*wants)(const struct restored *restored, const struct saved *note); /* NULL: all */
};

static enum status visit(void *context, const struct saved *note)
{
    const struct walk *walk = context;
    if (walk->wants && !walk->wants(walk->restored, note))
        return STATUS_OK;
    return add_note(walk->restored, walk->notes, note->name, note->value);
}

static enum status read_space(struct restored *restored, struct slice space, struct restored_notes *notes,
                              bool (*wants)(const struct restored *restored, const struct saved *note),
                              struct store_reader *reader, struct error *err)
{
    struct walk walk = { restored, notes, wants };
    return store_each_saved(reader, space, visit, &walk, err);
}

/* Those of the one destination, or of all; none for who has only what belongs to no destination. */
static enum status read_notes(struct restored *restored, struct slice space, struct restored_notes *notes,
                              struct store_reader *reader, struct error *err)
{
    if (!restored->only.data)
        return read_space(restored, space, notes, NULL, reader, err);
    return restored->only.len > 0 ? read_one(restored, space, notes, reader, err) : STATUS_OK;
}

static enum status read_states(struct restored *restored, struct store_reader *reader, struct error *err)
{
    struct restored_notes notes = { 0 };
    enum status status = read_notes(restored, SPACE_DESTINATION, &notes, reader, err);
    for (size_t i = 0; i < notes.count && status == STATUS_OK; i++)
        status = add_state(restored, notes.items[i].name, notes.items[i].value, reader, err);
    return status;
}

static enum status read_lanes(struct restored *restored, struct store_reader *reader, struct error *err)
{
    struct arena *memory = &restored->question.read.memory;
    struct lane *page;
    size_t count;
    enum status status = reader->ops->reader_lanes(reader, restored->cursor, LANES_PAGE, memory, &page, &count, err);
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        assert(page[i].id > restored->cursor); /* which has_lane counts on */
        restored->cursor = page[i].id;
        if (!is_wanted(restored, page[i].destination))
            continue;
        struct lane *lanes =
            array_grow_in(memory, restored->lanes, restored->lane_count, &restored->lane_capacity, sizeof *lanes);
        if (!lanes)
            return no_memory(err);
        restored->lanes = lanes;
        restored->lanes[restored->lane_count++] = page[i];
    }
    restored->question.read.more = status == STATUS_OK && count == LANES_PAGE;
    return status;
}

static bool has_lane(const struct restored *restored, int64_t id)
{
    size_t low = 0, high = restored->lane_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (restored->lanes[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < restored->lane_count && restored->lanes[low].id == id;
}

static bool wants_rate(const struct restored *restored, const struct saved *note)
{
    const struct rate_note name = rate_note_parse(note->name);
    return name.lane > 0 || is_wanted(restored, name.destination);
}

static enum status read_rates(struct restored *restored, struct store_reader *reader, struct error *err)
{
    return read_space(restored, SPACE_RATE, &restored->rates, wants_rate, reader, err);
}

static bool wants_alert(const struct restored *restored, const struct saved *note)
{
    struct arena memory = { 0 };
    struct alert_record record = { 0 };
    bool wanted = !restored->only.data ||
                  (alert_record_read(note->name, note->value, &memory, &record) == STATUS_OK &&
                   is_wanted(restored, record.destination));
    arena_release(&memory);
    return wanted;
}

static enum status read_alerts(struct restored *restored, struct store_reader *reader, struct error *err)
{
    struct saved *last = NULL;
    size_t count = 0;
    enum status status = read_space(restored, SPACE_ALERT, &restored->alerts, wants_alert, reader, err);
    if (status == STATUS_OK)
        status = reader->ops->reader_saved_list(reader, SPACE_ALERT_CLEARED, SLICE(""), 1, &restored->question.read.memory,
                                                &last, &count, err);
    if (status == STATUS_OK && count > 0)
        restored->last_cleared = last->name;
    if (status == STATUS_OK)
        status = read_notes(restored, SPACE_ALERT_AGE, &restored->ages, reader, err);
    return status == STATUS_OK ? read_notes(restored, SPACE_DEAD_ACKED, &restored->acked, reader, err) : status;
}

static bool wants_error(const struct restored *restored, const struct saved *note)
{
    size_t tail = FINGERPRINT_BYTES + 1;
    return note->name.len > tail && is_wanted(restored, (struct slice){ note->name.data, note->name.len - tail });
}

static enum status read_errors(struct restored *restored, struct store_reader *reader, struct error *err)
{
    return read_space(restored, SPACE_ERRORS, &restored->errors, wants_error, reader, err);
}

static enum status read_history(struct restored *restored, struct store_reader *reader, struct error *err)
{
    return read_notes(restored, SPACE_HISTORY_NOW, &restored->history, reader, err);
}

static enum status read_days(struct restored *restored, struct store_reader *reader, struct error *err)
{
    return read_notes(restored, SPACE_DAY_NOW, &restored->days, reader, err);
}

static enum status read_running(struct restored *restored, struct store_reader *reader, struct error *err)
{
    struct arena *memory = &restored->question.read.memory;
    const struct job_filter filter = { .state = STATE_RUNNING, .before_seq = restored->cursor,
                                       .destination = restored->only.data ? restored->only : SLICE("") };
    struct job *page;
    size_t count = 0;
    enum status status = reader->ops->reader_jobs(reader, &filter, STORE_PAGE_MAX, false, memory, &page, &count,
                                                  &restored->cursor, err);
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        assert(page[i].state == STATE_RUNNING);
        struct job *jobs =
            array_grow_in(memory, restored->running, restored->running_count, &restored->running_capacity, sizeof *jobs);
        if (!jobs)
            return no_memory(err);
        restored->running = jobs;
        restored->running[restored->running_count++] = page[i];
    }
    restored->question.read.more = status == STATUS_OK && restored->cursor != 0;
    return status;
}

enum status restore_read(struct store_read *read, struct store_reader *reader, struct error *err)
{
    static enum status (*const phases[])(struct restored *, struct store_reader *, struct error *) = {
        read_states, read_lanes, read_rates, read_errors, read_history, read_days, read_running, read_alerts,
    };
    enum { PHASES = sizeof phases / sizeof *phases };
    struct restored *restored = (struct restored *)read;
    if (read->pieces == 0) { /* the first time, or anew; the engine's thread looks at the members around these meanwhile */
        enum { BEGIN = offsetof(struct restored, phase), END = offsetof(struct restored, memory) };
        memset((char *)restored + BEGIN, 0, END - BEGIN);
        restored->phase = restored->only.data && restored->only.len == 0 ? PHASES - 1 : 0;
    }
    assert(restored->phase < PHASES);
    enum status status = phases[restored->phase](restored, reader, err);
    if (status == STATUS_OK && !read->more) {
        restored->cursor = 0;
        read->more = ++restored->phase < PHASES;
    }
    return status;
}

/* ---- putting it in ---- */

/* One that is known already was reported meanwhile, and is right. */
static enum status put_lane(struct engine *engine, const struct restored *restored, size_t i)
{
    const struct lane *stored = &restored->lanes[i];
    struct lane_state *lane;
    if (lane_find(engine, stored->id))
        return STATUS_OK;
    enum status status = lane_get(engine, stored->id, stored->destination, stored->tenant, &lane);
    if (status != STATUS_OK)
        return status;
    lane_dead_add(lane, stored->counts.dead);
    lane_ready_add(engine, lane, stored->counts.ready);
    return STATUS_OK;
}

static enum status put_error(struct engine *engine, const struct restored *restored, size_t i)
{
    errors_restore(engine->errors.counted, restored->errors.items[i].name, restored->errors.items[i].value);
    return STATUS_OK;
}

/* A lane that is known and was not read is another destination's: it is right as it is. */
static enum status put_rate(struct engine *engine, const struct restored *restored, size_t i)
{
    const struct rate_note note = rate_note_parse(restored->rates.items[i].name);
    if (note.lane == 0 || has_lane(restored, note.lane) || !lane_find(engine, note.lane))
        rate_restore(engine, &restored->rates.items[i]);
    return STATUS_OK;
}

static enum status put_running(struct engine *engine, const struct restored *restored, size_t i)
{
    return lease_restore(engine, &restored->running[i]);
}

static const struct {
    size_t count; /* where that is */
    enum status (*put)(struct engine *engine, const struct restored *restored, size_t i);
} parts[] = {
    { offsetof(struct restored, lane_count), put_lane },
    { offsetof(struct restored, errors.count), put_error },
    { offsetof(struct restored, rates.count), put_rate },
    { offsetof(struct restored, running_count), put_running },
};
enum { PARTS = sizeof parts / sizeof *parts };

bool restore_is_put(const struct restored *restored)
{
    assert(restored->part <= PARTS);
    return restored->part == PARTS;
}

enum status restore_put(struct engine *engine, struct restored *restored, size_t max, struct error *err)
{
    enum status status = STATUS_OK;
    assert(!restored->putting && !restored->question.out);
    restored->putting = true;
    for (size_t done = 0; done < max && status == STATUS_OK && !restore_is_put(restored);) {
        size_t count = *(const size_t *)((const char *)restored + parts[restored->part].count);
        if (restored->put == count) {
            restored->part++;
            restored->put = 0;
            continue;
        }
        status = parts[restored->part].put(engine, restored, restored->put++);
        done++;
    }
    restored->putting = false;
    return status == STATUS_OK ? STATUS_OK : no_memory(err);
}

enum status restore_known(struct engine *engine, const struct restored *restored, struct error *err)
{
    struct dest *dest;
    for (size_t i = 0; i < restored->state_count; i++)
        if (restored->states[i].incident.data && dest_get(engine, restored->states[i].name, &dest) != STATUS_OK)
            return no_memory(err);
    return STATUS_OK;
}

static enum status put_states(struct engine *engine, const struct restored *restored)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < restored->state_count && status == STATUS_OK; i++) {
        const struct restored_state *state = &restored->states[i];
        struct dest *dest = dest_find(engine, state->name);
        if (!dest)
            continue;
        dest_restore(engine, dest, state);
        status = incident_restore(dest, state->incident);
    }
    return status;
}

static enum status put_alerts(struct engine *engine, const struct restored *restored)
{
    enum status status = STATUS_OK;
    if (!engine->alerts.book)
        return STATUS_OK;
    for (size_t i = 0; i < restored->alerts.count && status == STATUS_OK; i++)
        status = alert_restore(engine, &restored->alerts.items[i]);
    if (restored->last_cleared.data)
        alerts_named_last(engine, restored->last_cleared);
    for (size_t i = 0; i < restored->ages.count; i++)
        alert_age_restore(engine, &restored->ages.items[i]);
    for (size_t i = 0; i < restored->acked.count; i++)
        dead_acked_restore(engine, &restored->acked.items[i]);
    return status;
}

enum status restore_finish(struct engine *engine, const struct restored *restored, struct error *err)
{
    assert(restore_is_put(restored));
    assert(!restored->only.data || restored->only.len > 0 || restored->lane_count == 0); /* the office has none */
    enum status status = put_states(engine, restored);
    for (size_t i = 0; i < restored->history.count; i++)
        history_restore(engine, &restored->history.items[i]);
    for (size_t i = 0; i < restored->days.count; i++)
        days_restore(engine, &restored->days.items[i]);
    if (status == STATUS_OK)
        status = put_alerts(engine, restored);
    return status == STATUS_OK ? STATUS_OK : no_memory(err);
}
