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
#include "engine/restore.h"
#include "engine/saved/gate_state.h"
#include "engine/saved/json.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { STATE_BYTES_MAX = 1 << 20 };

struct dest *dest_find(const struct engine *engine, struct slice name)
{
    return map_get(&engine->dests.by_name, name);
}

static void dest_init(struct engine *engine, struct dest *dest)
{
    dest->rules.first = gate_rules_of(engine, NULL);
    gate_init(&dest->gate, &dest->rules.first, engine_now(engine), INSTANT_NONE);
    dest->rules.second = fallback_rules_of(NULL);
    gate_init(&dest->fallback, &dest->rules.second, engine_now(engine), INSTANT_NONE);
    dest->orders.paused_since = INSTANT_NONE;
    dest->holds.asked_until = INSTANT_NONE;
    dest->block.alone_until = INSTANT_NONE;
    dest->ahead.answer_ms = SECOND_MS; /* it has to prove that it is quick */
    incident_init(&dest->incident);
    dest_alerts_init(&dest->alerts);
    dest->rate.saved = INSTANT_NONE;
    rate_init(&dest->rate.limiter, (struct rate){ 0 }, 0, INSTANT_NONE);
    adaptive_init(&dest->trend.adaptive);
    rate_init(&dest->redrive.rate, (struct rate){ 0 }, 0, INSTANT_NONE);
    dest->redrive.next_due = INSTANT_NONE;
    turns_init(&dest->queue.turns, &(struct turns_settings){ .round_robin = true, .batch = 1, .base_priority = 1 });
    shares_init(&dest->queue.shares);
    dest->queue.end = &dest->queue.first;
    dest->workers.last = &dest->workers.first;
    assert(dest->gate.rules == &dest->rules.first && dest->fallback.rules == &dest->rules.second);
}

enum status dest_add(struct engine *engine, struct slice name, struct dest **ret_dest)
{
    struct dest *dest = dest_find(engine, name);
    if (!dest) {
        dest = calloc(1, sizeof *dest);
        if (!dest)
            return STATUS_NO_MEMORY;
        dest->name = strndup(name.data, name.len);
        if (!dest->name || map_put(&engine->dests.by_name, slice_from(dest->name), dest) != STATUS_OK) {
            free(dest->name);
            free(dest);
            return STATUS_NO_MEMORY;
        }
        dest_init(engine, dest);
        dest->next = engine->dests.first;
        engine->dests.first = dest;
    }
    *ret_dest = dest;
    return STATUS_OK;
}

enum status dest_get(struct engine *engine, struct slice name, struct dest **ret_dest)
{
    return engine->shared && !dest_find(engine, name) ? STATUS_NOT_FOUND : dest_add(engine, name, ret_dest);
}

/* What was allowed without a configuration says nothing about what it bears. First checks are spread over an interval. */
static void begin_anew(struct engine *engine, struct dest *dest)
{
    assert(dest->rules.first.concurrency > 0 && dest->rules.second.concurrency > 0);
    concurrency_restart(&dest->gate.adaptive, dest->rules.first.concurrency, !dest->rules.first.fixed_concurrency);
    concurrency_restart(&dest->fallback.adaptive, dest->rules.second.concurrency, !dest->rules.second.fixed_concurrency);
    if (dest->rules.first.health_every_ms > 0) {
        uint64_t spread = hash_slice(engine->seed, 0, slice_from(dest->name)) % (uint64_t)dest->rules.first.health_every_ms;
        health_init(&dest->gate.health, instant_add(engine_now(engine), (int64_t)spread));
    }
}

void dest_configure(struct engine *engine, struct dest *dest, const struct config *config)
{
    bool unknown = !dest->config;
    bool is_loaded = dest->own.stage != OWN_UNREAD || !engine->started; /* at the start all are, before anything happens */
    dest->config = is_loaded ? config_destination(config, slice_from(dest->name)) : NULL;
    dest->rules.first = gate_rules_of(engine, dest->config);
    gate_configure(&dest->gate, &dest->rules.first, engine_now(engine));
    dest->rules.second = fallback_rules_of(dest->config);
    gate_configure(&dest->fallback, &dest->rules.second, engine_now(engine));
    if (unknown)
        begin_anew(engine, dest);
    if (!dest->config)
        return;
    struct rate total = dest->config->rate_total, redrives = dest->config->dead.redrive_rate;
    int64_t burst = dest->config->rate_burst, at_once = dest->config->concurrency;
    rate_configure(&dest->rate.limiter, total, burst > 0 ? burst : rate_burst(total, at_once));
    rate_configure(&dest->redrive.rate, redrives, rate_burst(redrives, at_once));
    const struct fairness_config *fairness = &dest->config->fairness;
    turns_configure(&dest->queue.turns, &(struct turns_settings){ .round_robin = fairness->round_robin,
                                                            .batch = fairness->batch,
                                                            .base_priority = fairness->base_priority });
    for (struct lane_state *lane = dest->queue.first; lane; lane = lane->next)
        lane_configure(lane, config);
}

bool dest_dead_full(const struct dest *dest)
{
    assert(dest->dead.count >= 0 && dest->dead.dying >= 0);
    return dest->config && dest->config->dead.max > 0 && dest->dead.count + dest->dead.dying >= dest->config->dead.max;
}

void dest_free(struct engine *engine, struct dest *dest)
{
    assert(!dest->check.engine && !dest->own.loading);
    assert(dest->ahead.count == 0 && dest->ahead.asked == 0 && dest->workers.out == 0);
    struct dest **link = &engine->dests.first;
    while (*link != dest)
        link = &(*link)->next;
    *link = dest->next;
    map_remove(&engine->dests.by_name, slice_from(dest->name));
    while (dest->queue.first)
        lane_drop(engine, dest->queue.first);
    assert(dest->queue.lanes == 0 && dest->queue.end == &dest->queue.first);
    turns_release(&dest->queue.turns);
    free(dest->orders.pause_reason);
    free(dest->block.reason);
    free(dest->block.alone_reason);
    free(dest->orders.mode_reason);
    free(dest->second.reason);
    incident_release(&dest->incident);
    dead_exports_release(dest);
    free(dest->days.ended);
    free(dest->name);
    free(dest);
}

/* ---- over a restart ---- */

/* Should ever more changes wait than there is room for, the newest takes the place of the one before: the state is whole. */
void dest_changed(struct dest *dest, struct dest_change change)
{
    assert(change.change && (!change.lane || change.lane->dest == dest));
    size_t at = dest->saved.change_count < DEST_CHANGES_MAX ? dest->saved.change_count++ : DEST_CHANGES_MAX - 1;
    dest->saved.changes[at] = change;
    struct slice by = utf8_cut(dest->saved.operator_name, OPERATOR_BYTES - 1);
    if (by.len > 0 && change.by[0] == '\0')
        memcpy(dest->saved.changes[at].by, by.data, by.len);
    saved_waits_changed(&dest->saved.waits);
    dest->alerts.due = true;
    assert(dest->saved.change_count > 0 && dest->saved.change_count <= DEST_CHANGES_MAX);
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

/* What an event tells, or the whole of what is saved: only that may be larger than an event. */
static struct slice state_text(const struct dest *dest, const struct dest_change *change, bool whole, struct arena *memory)
{
    assert(change->change && (!change->lane || change->lane->dest == dest));
    struct gate_saved saved = gate_save(&dest->gate);
    if (dest->holds.asked_alone)
        saved.closed_until = INSTANT_NONE; /* the tenant's, and saved with it */
    struct buffer state = buffer_up_to(whole ? STATE_BYTES_MAX : EVENT_DATA_BYTES_MAX);
    struct json_writer json = json_begin(&state);
    json_member_text(&json, "destination", dest->name);
    json_member_text(&json, "change", change->change);
    write_reason(&json, "cause", change->cause);
    write_reason(&json, "sign", change->sign);
    json_member_instant(&json, "at", change->at);
    if (!whole)
        json_member_given(&json, "by", slice_from(change->by));
    write_reason(&json, "reason", dest->orders.pause_reason);
    json_member_instant(&json, "since", dest->orders.paused_since);
    write_reason(&json, "block_reason", dest->block.reason);
    if (whole && dest->block.alone_until != INSTANT_NONE) {
        json_member_instant(&json, "refused_until", dest->block.alone_until);
        write_reason(&json, "refused_reason", dest->block.alone_reason);
    }
    write_reason(&json, "mode_reason", dest->orders.mode_reason);
    if (change->lane) {
        json_member_text(&json, "tenant", change->lane->tenant);
        if (change->lane->hold.held)
            write_reason(&json, "tenant_reason", change->lane->hold.reason);
    }
    if (whole)
        lane_holds_write(&json, dest);
    fallback_state_write(&json, dest);
    if (dest->trend.cycles.last.number > 0 && (whole || change->cycle == dest->trend.cycles.last.number))
        cycle_write(&json, &dest->trend.cycles.last);
    gate_state_write(&json, &saved);
    json_object_end(&json);
    return buffer_into(&state, memory);
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
    assert(dest->saved.change_count > 0);
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
        saved_waits_fail(&dest->saved.waits.first, &error);
        return false;
    }
    memmove(dest->saved.changes, dest->saved.changes + 1, --dest->saved.change_count * sizeof *dest->saved.changes);
    if (dest->saved.change_count == 0) /* the state is whole, also when one of them had no room */
        sent->brings = dest->saved.waits.changes;
    saved_waits_out(&dest->saved.waits);
    dest_is_out(engine, dest);
    return true;
}

/* When it fails the next one brings it; but there is none after a destination was lost. */
static void look_saved(const struct op_result *result)
{
    struct dest *dest = result->context;
    assert(result->op->kind == OP_SAVE);
    if (!result->applied && dest->own.stage == OWN_LOSING && !result->engine->stopping)
        dest->saved.looked = true;
}

static void save_look(struct engine *engine, struct dest *dest)
{
    assert(dest->saved.looked && dest->saved.change_count == 0);
    struct store_op *op = outgoing_add(engine, look_saved, dest);
    if (!op)
        return;
    const struct dest_change look = { .change = "looked", .at = engine_now(engine) };
    op->kind = OP_SAVE;
    op->save = (struct op_save){ .space = SPACE_DESTINATION, .name = slice_from(dest->name),
                                 .value = state_text(dest, &look, true, outgoing_memory(engine)) };
    if (!op->save.value.data)
        outgoing_drop_last(engine);
    dest_is_out(engine, dest);
    dest->saved.looked = false;
}

void dests_save(struct engine *engine)
{
    if (engine_must_wait(engine))
        return;
    for (struct dest *dest = engine->dests.first; dest; dest = dest->next) {
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
    assert(dest->saved.change_count <= DEST_CHANGES_MAX);
}

static void dest_saved(const struct op_result *result)
{
    const struct sent_change *sent = result->context;
    struct dest *dest = sent->dest;
    assert(result->op->kind == OP_DESTINATION && sent->change.change);
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

void dest_restore(struct engine *engine, struct dest *dest, const struct restored_state *state)
{
    assert(dest->own.stage != OWN_LOSING && slice_equal(state->name, slice_from(dest->name)));
    json_t *root = json_loadb(state->text.data, state->text.len, 0, NULL);
    struct gate_saved saved = gate_save(&dest->gate);
    instant since = saved_instant(root, "since");
    gate_state_read(root, &saved);
    gate_restore(&dest->gate, &saved, engine_now(engine));
    dest->block.alone_until = saved_instant(root, "refused_until");
    dest->block.alone_reason = copy_text(root, "refused_reason");
    if (block_holds(&dest->gate.block))
        dest->block.reason = copy_text(root, json_object_get(root, "block_reason") ? "block_reason" : "reason");
    if (saved.paused)
        dest->orders.pause_reason = copy_text(root, "reason");
    if (saved.paused && since != INSTANT_NONE)
        dest->orders.paused_since = since;
    if (saved.contingency.mode == MODE_CONTINGENCY)
        dest->orders.mode_reason = copy_text(root, "mode_reason");
    cycle_read(root, &dest->trend.cycles.last);
    lane_holds_read(engine, dest, root, state);
    fallback_state_read(dest, root, engine_now(engine));
    json_decref(root);
}

bool dest_is_saved(const struct dest *dest)
{
    assert(dest->saved.change_count <= DEST_CHANGES_MAX);
    return dest->saved.change_count == 0 && !dest->saved.looked;
}

/* ---- reasons ---- */

bool hold_reason_set(char **held, struct slice reason)
{
    struct slice whole = utf8_cut(reason, HOLD_REASON_BYTES_MAX);
    assert(whole.len <= HOLD_REASON_BYTES_MAX);
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
