/*
 * Destinations: those that are known, what is configured of them, and their state over a restart.
 */
#include "engine/destination.h"

#include "base/hash.h"
#include "base/log.h"
#include "engine/loop.h"
#include "engine/outage/cycles.h"
#include "engine/outage/fallback.h"
#include "engine/outage/modes.h"
#include "engine/queues/blocks.h"
#include "engine/saved/gate_state.h"
#include "engine/saved/json.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { STATE_BYTES_MAX = 1 << 20 };

struct dest *dest_find(const struct engine *engine, struct slice name)
{
    return map_get(&engine->dests_by_name, name);
}

enum status dest_get(struct engine *engine, struct slice name, struct dest **ret_dest)
{
    struct dest *dest = dest_find(engine, name);
    if (!dest) {
        dest = calloc(1, sizeof *dest);
        if (!dest)
            return STATUS_NO_MEMORY;
        dest->name = strndup(name.data, name.len);
        if (!dest->name || map_put(&engine->dests_by_name, slice_from(dest->name), dest) != STATUS_OK) {
            free(dest->name);
            free(dest);
            return STATUS_NO_MEMORY;
        }
        dest->rules.first = gate_rules_of(engine, NULL);
        gate_init(&dest->gate, &dest->rules.first, engine_now(engine), INSTANT_NONE);
        dest->rules.second = fallback_rules_of(NULL);
        gate_init(&dest->fallback, &dest->rules.second, engine_now(engine), INSTANT_NONE);
        dest->pause.since = INSTANT_NONE;
        dest->holds.asked_until = INSTANT_NONE;
        dest->block.alone_until = INSTANT_NONE;
        dest->ahead.answer_ms = SECOND_MS; /* it has to prove that it is quick */
        incident_init(&dest->incident);
        dest_alerts_init(&dest->alerts);
        dest->rate.saved = INSTANT_NONE;
        rate_init(&dest->rate.limiter, (struct rate){ 0 }, 0, INSTANT_NONE);
        adaptive_init(&dest->adaptive);
        rate_init(&dest->redrive.rate, (struct rate){ 0 }, 0, INSTANT_NONE);
        dest->redrive.next_due = INSTANT_NONE;
        turns_init(&dest->queue.turns, &(struct turns_settings){ .round_robin = true, .batch = 1, .base_priority = 1 });
        shares_init(&dest->queue.shares);
        dest->workers.last = &dest->workers.first;
        dest->next = engine->dests;
        engine->dests = dest;
    }
    *ret_dest = dest;
    return STATUS_OK;
}

/* What was allowed without a configuration says nothing about what it bears. First checks are spread over an interval. */
static void begin_anew(struct engine *engine, struct dest *dest)
{
    concurrency_restart(&dest->gate.adaptive, dest->rules.first.concurrency, !dest->rules.first.fixed_concurrency);
    concurrency_restart(&dest->fallback.adaptive, dest->rules.second.concurrency, !dest->rules.second.fixed_concurrency);
    if (dest->rules.first.health_every_ms > 0) {
        uint64_t spread = hash_slice(engine->seed, 0, slice_from(dest->name)) % (uint64_t)dest->rules.first.health_every_ms;
        health_init(&dest->gate.health, instant_add(engine_now(engine), (int64_t)spread));
    }
}

void dests_configure(struct engine *engine, const struct config *config)
{
    for (struct dest *dest = engine->dests; dest; dest = dest->next) {
        bool unknown = !dest->config;
        dest->config = config_destination(config, slice_from(dest->name));
        dest->rules.first = gate_rules_of(engine, dest->config);
        gate_configure(&dest->gate, &dest->rules.first, engine_now(engine));
        dest->rules.second = fallback_rules_of(dest->config);
        gate_configure(&dest->fallback, &dest->rules.second, engine_now(engine));
        if (unknown)
            begin_anew(engine, dest);
        if (!dest->config)
            continue;
        struct rate total = dest->config->rate_total, redrives = dest->config->dead.redrive_rate;
        int64_t burst = dest->config->rate_burst, at_once = dest->config->concurrency;
        rate_configure(&dest->rate.limiter, total, burst > 0 ? burst : rate_burst(total, at_once));
        rate_configure(&dest->redrive.rate, redrives, rate_burst(redrives, at_once));
        const struct fairness_config *fairness = &dest->config->fairness;
        turns_configure(&dest->queue.turns, &(struct turns_settings){ .round_robin = fairness->round_robin,
                                                                .batch = fairness->batch,
                                                                .base_priority = fairness->base_priority });
    }
    lanes_configure(engine, config);
}

bool dest_dead_full(const struct dest *dest)
{
    return dest->config && dest->config->dead.max > 0 && dest->dead.count + dest->dead.dying >= dest->config->dead.max;
}

void dests_release(struct engine *engine)
{
    while (engine->dests) {
        struct dest *next = engine->dests->next;
        turns_release(&engine->dests->queue.turns);
        free(engine->dests->pause.reason);
        free(engine->dests->block.reason);
        free(engine->dests->block.alone_reason);
        free(engine->dests->mode_reason);
        free(engine->dests->second.reason);
        incident_release(&engine->dests->incident);
        free(engine->dests->saved.text);
        free(engine->dests->name);
        free(engine->dests);
        engine->dests = next;
    }
    map_release(&engine->dests_by_name);
}

/* ---- over a restart ---- */

/* Should ever more changes wait than there is room for, the newest takes the place of the one before: the state is whole. */
void dest_changed(struct dest *dest, struct dest_change change)
{
    size_t at = dest->saved.change_count < DEST_CHANGES_MAX ? dest->saved.change_count++ : DEST_CHANGES_MAX - 1;
    dest->saved.changes[at] = change;
    struct slice by = utf8_cut(dest->saved.operator_name, OPERATOR_BYTES - 1);
    if (by.len > 0 && change.by[0] == '\0')
        memcpy(dest->saved.changes[at].by, by.data, by.len);
    saved_waits_changed(&dest->saved.waits);
    dest->alerts.due = true;
}

void engine_operator(struct engine *engine, struct slice destination, struct slice who)
{
    struct dest *dest = dest_find(engine, destination);
    if (dest)
        dest->saved.operator_name = who;
}

static void write_reason(struct json_writer *json, const char *name, const char *reason)
{
    if (reason)
        json_member_text(json, name, reason);
}

/* What an event tells, or the whole of what is kept: only that may be larger than an event. */
static struct slice state_text(const struct dest *dest, const struct dest_change *change, bool whole, struct arena *memory)
{
    struct buffer state;
    struct gate_saved saved = gate_save(&dest->gate);
    if (dest->holds.asked_alone)
        saved.closed_until = INSTANT_NONE; /* the tenant's, and kept with it */
    buffer_init(&state, whole ? STATE_BYTES_MAX : EVENT_DATA_BYTES_MAX);
    struct json_writer json = json_writer(&state);
    json_object_begin(&json);
    json_member_text(&json, "destination", dest->name);
    json_member_text(&json, "change", change->change);
    write_reason(&json, "cause", change->cause);
    write_reason(&json, "sign", change->sign);
    json_member_instant(&json, "at", change->at);
    if (!whole)
        json_member_given(&json, "by", slice_from(change->by));
    write_reason(&json, "reason", dest->pause.reason);
    json_member_instant(&json, "since", dest->pause.since);
    write_reason(&json, "block_reason", dest->block.reason);
    if (whole && dest->block.alone_until != INSTANT_NONE) {
        json_member_instant(&json, "refused_until", dest->block.alone_until);
        write_reason(&json, "refused_reason", dest->block.alone_reason);
    }
    write_reason(&json, "mode_reason", dest->mode_reason);
    if (change->lane) {
        json_member_text(&json, "tenant", change->lane->tenant);
        if (change->lane->hold.held)
            write_reason(&json, "tenant_reason", change->lane->hold.reason);
    }
    if (whole)
        lane_holds_write(&json, dest);
    fallback_state_write(&json, dest);
    if (dest->cycles.last.number > 0 && (whole || change->cycle == dest->cycles.last.number))
        cycle_write(&json, &dest->cycles.last);
    gate_state_write(&json, &saved);
    json_object_end(&json);
    struct slice text =
        buffer_status(&state) == STATUS_OK ? arena_copy(memory, buffer_slice(&state)) : (struct slice){ NULL, 0 };
    buffer_release(&state);
    return text;
}

/* A change on its way to the store. */
struct sent_change {
    struct dest *dest;
    struct dest_change change;
    uint64_t brings; /* all of the destination's changes up to this one; 0: more of them follow */
};

static void dest_saved(const struct op_result *result);

/* False: not now. */
static bool save_first(struct engine *engine, struct dest *dest)
{
    struct store_op *op = outgoing_add(engine, dest_saved, NULL);
    if (!op)
        return false; /* after the batch that is full now */
    op->kind = OP_DESTINATION;
    op->data = state_text(dest, &dest->saved.changes[0], false, outgoing_memory(engine));
    op->save = (struct op_save){ .name = slice_from(dest->name),
                                 .value = state_text(dest, &dest->saved.changes[0], true, outgoing_memory(engine)) };
    struct sent_change *sent =
        outgoing_set_context(engine, &(struct sent_change){ .dest = dest, .change = dest->saved.changes[0] }, sizeof *sent);
    if (!op->data.data || !op->save.value.data || !sent) {
        struct error error;
        outgoing_drop_last(engine); /* again in a moment, but nobody is to wait for memory */
        error_set(&error, STATUS_NO_MEMORY, "no memory for the state of %s", dest->name);
        saved_waits_fail(&dest->saved.waits, &error);
        return false;
    }
    memmove(dest->saved.changes, dest->saved.changes + 1, --dest->saved.change_count * sizeof *dest->saved.changes);
    if (dest->saved.change_count == 0) /* the state is whole, also when one of them had no room */
        sent->brings = dest->saved.waits.changes;
    saved_waits_out(&dest->saved.waits);
    return true;
}

/* When it fails the next one brings it. */
static void save_look(struct engine *engine, struct dest *dest)
{
    struct store_op *op = outgoing_add(engine, NULL, NULL);
    if (!op)
        return;
    const struct dest_change look = { .change = "looked", .at = engine_now(engine) };
    op->kind = OP_SAVE;
    op->save = (struct op_save){ .space = SPACE_DESTINATION, .name = slice_from(dest->name),
                                 .value = state_text(dest, &look, true, outgoing_memory(engine)) };
    if (!op->save.value.data)
        outgoing_drop_last(engine);
    dest->saved.looked = false;
}

void dests_save(struct engine *engine)
{
    if (engine_must_wait(engine))
        return;
    for (struct dest *dest = engine->dests; dest; dest = dest->next) {
        while (dest->saved.change_count > 0)
            if (!save_first(engine, dest))
                return;
        if (dest->saved.looked)
            save_look(engine, dest);
    }
}

static void save_again(const struct engine *engine, struct dest *dest, const struct dest_change *change)
{
    size_t at = 0;
    if (engine->stopping || dest->saved.change_count == DEST_CHANGES_MAX)
        return; /* what waits brings the same state */
    while (at < dest->saved.change_count && dest->saved.changes[at].at <= change->at)
        at++;
    memmove(dest->saved.changes + at + 1, dest->saved.changes + at,
            (dest->saved.change_count++ - at) * sizeof *dest->saved.changes);
    dest->saved.changes[at] = *change;
}

static void dest_saved(const struct op_result *result)
{
    const struct sent_change *sent = result->context;
    struct dest *dest = sent->dest;
    struct error error = result->batch->error;
    if (result->applied)
        error.status = STATUS_OK;
    else if (result->batch->status == STATUS_OK)
        error_set(&error, result->op->status, "the store refused it: %s", status_name(result->op->status));
    if (!result->applied)
        save_again(result->engine, dest, &sent->change);
    saved_waits_back(&dest->saved.waits, sent->brings, &error, dest->saved.change_count > 0);
}

void engine_await_saved(struct engine *engine, struct slice destination, struct saved_wait *wait)
{
    struct dest *dest = dest_find(engine, destination);
    assert(dest); /* it was given an order */
    saved_waits_add(&dest->saved.waits, wait, dest->saved.change_count > 0);
}

static char *copy_text(const json_t *root, const char *name)
{
    const char *text = json_string_value(json_object_get(root, name));
    return text ? strdup(text) : NULL; /* without memory it is held all the same, and says less */
}

static void dest_restore(struct engine *engine, struct dest *dest, struct slice state)
{
    json_t *root = json_loadb(state.data, state.len, 0, NULL);
    struct gate_saved saved = gate_save(&dest->gate);
    instant since = saved_instant(root, "since");
    gate_state_read(root, &saved);
    gate_restore(&dest->gate, &saved, engine_now(engine));
    dest->block.alone_until = saved_instant(root, "refused_until");
    dest->block.alone_reason = copy_text(root, "refused_reason");
    if (block_holds(&dest->gate.block))
        dest->block.reason = copy_text(root, json_object_get(root, "block_reason") ? "block_reason" : "reason");
    if (saved.paused)
        dest->pause.reason = copy_text(root, "reason");
    if (saved.paused && since != INSTANT_NONE)
        dest->pause.since = since;
    if (saved.contingency.mode == MODE_CONTINGENCY)
        dest->mode_reason = copy_text(root, "mode_reason");
    cycle_read(root, &dest->cycles.last);
    lane_holds_read(engine, dest, root);
    fallback_state_read(dest, root, engine_now(engine));
    json_decref(root);
}

/* What an earlier process, or an earlier configuration, left of it: dest->saved.text. Nothing when there is no store yet. */
static enum status read_saved(const struct engine *engine, struct dest *dest, struct error *err)
{
    struct arena memory = { 0 };
    struct slice state;
    if (dest->saved.is_read || !engine->reader)
        return STATUS_OK;
    enum status status =
        engine->reader->ops->reader_saved(engine->reader, SPACE_DESTINATION, slice_from(dest->name), &memory, &state, err);
    if (status == STATUS_OK) {
        dest->saved.text = strndup(state.data, state.len);
        if (!dest->saved.text)
            status = error_set(err, STATUS_NO_MEMORY, "no memory for the state of %s", dest->name);
    } else if (status == STATUS_NOT_FOUND) {
        status = STATUS_OK;
    }
    dest->saved.is_read = status == STATUS_OK;
    arena_release(&memory);
    return status;
}

/* After dests_configure: what is kept is read by the rules. All are restored, whatever fails. */
static enum status restore_saved(struct engine *engine, struct error *err)
{
    struct arena memory = { 0 };
    enum status failed = STATUS_OK;
    for (struct dest *dest = engine->dests; dest; dest = dest->next) {
        if (!dest->saved.is_read || dest->saved.restored)
            continue;
        if (dest->saved.text)
            dest_restore(engine, dest, slice_from(dest->saved.text));
        free(dest->saved.text);
        dest->saved.text = NULL;
        dest->saved.restored = true;
        enum status status = incident_restore(engine, dest, &memory, err);
        if (status != STATUS_OK)
            failed = status;
    }
    arena_release(&memory);
    return failed;
}

enum status dests_add(struct engine *engine, const struct config *config, struct error *err)
{
    for (size_t i = 0; i < config_destination_total(config); i++) {
        struct dest *dest;
        if (dest_get(engine, slice_from(config_destination_at(config, i)->name), &dest) != STATUS_OK)
            return error_set(err, STATUS_NO_MEMORY, "no memory for the destinations");
        enum status status = read_saved(engine, dest, err);
        if (status != STATUS_OK)
            return status;
    }
    dests_configure(engine, config);
    if (restore_saved(engine, err) != STATUS_OK) /* too late to go back, and only a report says less */
        log_event(LOG_ERROR, "incident_not_read", FIELD_CSTR("error", err->text));
    return STATUS_OK;
}

enum status dests_load(struct engine *engine, struct error *err)
{
    enum status status = incidents_find(engine, err);
    for (struct dest *dest = engine->dests; dest && status == STATUS_OK; dest = dest->next)
        status = read_saved(engine, dest, err);
    return status == STATUS_OK ? restore_saved(engine, err) : status;
}

/* ---- reasons ---- */

bool hold_reason_set(char **held, struct slice reason)
{
    struct slice whole = utf8_cut(reason, HOLD_REASON_BYTES_MAX);
    if (*held && slice_equal(whole, slice_from(*held)))
        return false;
    char *copy = whole.len > 0 ? strndup(whole.data, whole.len) : NULL; /* without memory it is held and says less */
    free(*held);
    *held = copy;
    return true;
}

bool hold_reason_change(char **held, struct slice reason)
{
    return reason.len > 0 && hold_reason_set(held, reason);
}
