#include "engine/handover.h"

#include "base/log.h"
#include "engine/alerts/alert_book.h"
#include "engine/attempt/leases.h"
#include "engine/loop.h"
#include "engine/restore.h"

#include <assert.h>
#include <stdlib.h>

static void answer(struct saved_wait **wait, const struct error *error)
{
    struct saved_wait *first = *wait;
    *wait = NULL;
    if (!first)
        return;
    assert(error->status == STATUS_OK || error->text[0] != '\0');
    first->error = *error;
    first->done(first); /* perhaps it is gone now */
}

/* ---- gaining ---- */

static void forget(struct engine *engine, struct dest *dest)
{
    assert(dest->own.stage != OWN_WHOLE);
    alerts_forget(engine, dest);
    leases_forget(engine, dest);
    dest_free(engine, dest);
}

/* A destination of a shared store that could not be loaded is not this engine's; another one is tried again. */
static void load_failed(struct engine *engine, struct dest *dest, const struct error *error)
{
    assert(dest->own.stage == OWN_UNREAD && !dest->own.loading && error->status != STATUS_OK);
    log_event(LOG_ERROR, "destination_not_loaded", FIELD_CSTR("destination", dest->name), FIELD_CSTR("error", error->text));
    alerts_store_failed(engine, error);
    dest->own.load_at = instant_add(engine_now(engine), AGAIN_MS);
    if (!engine->shared)
        return;
    struct saved_wait *wait = dest->own.wait;
    forget(engine, dest);
    answer(&wait, error);
}

/* How many jobs of it somebody else has claimed to send them. */
static int64_t claimed_by_others(const struct restored *restored)
{
    int64_t count = 0;
    for (size_t i = 0; i < restored->running_count; i++)
        count += restored->running[i].lease_owner.len == 0;
    return count;
}

/* Its lanes are there before its state: that is by the rules, and names tenants. */
static enum status take(struct engine *engine, struct dest *dest, const struct restored *restored, struct error *err)
{
    assert(dest->own.stage == OWN_UNREAD && restore_is_put(restored));
    dest->own.stage = OWN_WHOLE;
    dest_configure(engine, dest, engine->config);
    return restore_finish(engine, restored, err);
}

/* All that is put in bit by bit is there, or `status` says why not. */
static void dest_put(struct engine *engine, struct dest *dest, enum status status, struct error *error)
{
    struct restored *restored = dest->own.loading;
    assert(dest->own.stage == OWN_UNREAD && !restored->question.out);
    dest->own.loading = NULL;
    if (status != STATUS_OK || take(engine, dest, restored, error) != STATUS_OK) {
        dest->own.stage = OWN_UNREAD;
        dest_configure(engine, dest, engine->config); /* it is treated as if it were not */
        load_failed(engine, dest, error);
    } else {
        lanes_ask_all_missed(engine); /* what was reported of its lanes meanwhile */
        left_behind_gained(engine, dest, engine->shared ? claimed_by_others(restored) : 0);
        /* Those who had it may have left attempts behind, and what has become due since waits for a first look. */
        engine->recovery.ripe_at = engine->recovery.promote_at = engine_now(engine);
        answer(&dest->own.wait, &(struct error){ .status = STATUS_OK });
    }
    arena_release(&restored->memory);
    free(restored);
}

/* A part of what was read. While there is more, others have their turn. */
static void put_on(struct engine *engine, struct dest *dest)
{
    struct restored *restored = dest->own.loading;
    struct error error;
    enum status status = restore_put(engine, restored, RESTORE_AT_ONCE, &error);
    if (status != STATUS_OK || restore_is_put(restored))
        dest_put(engine, dest, status, &error);
    else
        engine_wake(engine);
}

static enum status refuse_stopping(struct error *err)
{
    return error_set(err, STATUS_CONFLICT, "the engine is stopping");
}

static void dest_loaded(struct question *question)
{
    struct restored *restored = (struct restored *)question;
    struct engine *engine = question->engine;
    struct dest *dest = dest_find(engine, restored->only);
    struct error error = question->read.error;
    enum status status = engine->stopping ? refuse_stopping(&error) : question->read.status;
    assert(dest && dest->own.loading == restored && dest->own.stage == OWN_UNREAD);
    restored->memory = *question->memory;
    *question->memory = (struct arena){ 0 };
    if (status != STATUS_OK)
        dest_put(engine, dest, status, &error);
    else
        put_on(engine, dest);
}

void handover_stop(struct engine *engine)
{
    struct error error;
    assert(engine->stopping);
    for (struct dest *dest = engine->dests.first, *next; dest; dest = next) {
        next = dest->next;
        if (dest->own.loading && !dest->own.loading->question.out)
            dest_put(engine, dest, refuse_stopping(&error), &error);
    }
}

static void load(struct engine *engine, struct dest *dest)
{
    assert(dest->own.stage == OWN_UNREAD && !dest->own.loading);
    struct restored *restored = calloc(1, sizeof *restored);
    if (!restored) {
        struct error error;
        error_set(&error, STATUS_NO_MEMORY, "no memory for the destination");
        load_failed(engine, dest, &error);
        return;
    }
    restored->only = slice_from(dest->name);
    dest->own.loading = restored;
    question_ask(engine, &restored->question, restore_read, dest_loaded);
}

/* ---- the steward's office ---- */

static void office_loaded(struct question *question)
{
    struct restored *restored = (struct restored *)question;
    struct engine *engine = question->engine;
    assert(engine->office.loading == restored && engine->office.stage == OWN_UNREAD);
    struct error error = question->read.error;
    engine->office.loading = NULL;
    if (question->read.status == STATUS_OK && restore_put(engine, restored, SIZE_MAX, &error) == STATUS_OK &&
        restore_finish(engine, restored, &error) == STATUS_OK)
        engine->office.stage = OWN_WHOLE;
    answer(&engine->office.wait, &error);
    free(restored);
}

static void office_gain(struct engine *engine, struct saved_wait *gained)
{
    bool is_free = engine->office.stage == OWN_UNREAD && !engine->office.loading;
    struct restored *restored = is_free ? calloc(1, sizeof *restored) : NULL;
    struct error error;
    if (!restored) {
        error_set(&error, STATUS_CONFLICT, "this engine is the steward already, or there is no memory");
        answer(&gained, &error);
        return;
    }
    assert(!engine->office.wait);
    restored->only = SLICE("");
    engine->office.loading = restored;
    engine->office.wait = gained;
    question_ask(engine, &restored->question, restore_read, office_loaded);
}

static void office_lose(struct engine *engine, struct saved_wait *lost)
{
    struct error error;
    if (engine->office.stage != OWN_WHOLE) {
        error_set(&error, STATUS_NOT_FOUND, "this engine is not the steward");
        answer(&lost, &error);
        return;
    }
    assert(!engine->office.wait && !engine->office.loading);
    engine->office.stage = OWN_LOSING;
    engine->office.wait = lost;
    engine->office.batch = outgoing_number(engine);
    engine_wake(engine);
}

static void office_lose_on(struct engine *engine)
{
    assert(engine->office.stage == OWN_LOSING);
    if (!alerts_written(engine, NULL))
        engine->office.batch = outgoing_number(engine);
    else if (outgoing_passed(engine, engine->office.batch)) {
        alerts_forget(engine, NULL);
        engine->office = (struct handover){ .wait = engine->office.wait };
        answer(&engine->office.wait, &(struct error){ .status = STATUS_OK });
    }
}

/* ---- the orders ---- */

void engine_gain(struct engine *engine, struct slice destination, struct saved_wait *gained)
{
    struct dest *dest = dest_find(engine, destination);
    struct error error = { .status = STATUS_OK };
    if (engine->stopping || !engine->started)
        error_set(&error, STATUS_CONFLICT, "the engine does not run");
    else if (dest)
        error_set(&error, STATUS_CONFLICT, "destination \"%.*s\" is this engine's already", SLICE_ARG(destination));
    else if (destination.len > 0 && dest_add(engine, destination, &dest) != STATUS_OK)
        error_set(&error, STATUS_NO_MEMORY, "no memory for the destination");
    if (error.status != STATUS_OK) {
        answer(&gained, &error);
    } else if (destination.len == 0) {
        office_gain(engine, gained);
    } else {
        assert(!dest->own.wait && dest->own.stage == OWN_UNREAD);
        dest->own.wait = gained;
        load(engine, dest);
    }
}

static void nobody_asked(struct store_read *read)
{
    (void)read;
}

enum status handover_start(struct engine *engine, struct error *err)
{
    assert(!engine->started);
    struct restored restored = { .question.read = { .run = restore_read, .done = nobody_asked } };
    struct store_read *read = &restored.question.read;
    if (engine->shared)
        return STATUS_OK;
    store_read_run(read, engine->reader);
    enum status status = read->status;
    if (status != STATUS_OK)
        *err = read->error;
    else
        status = restore_known(engine, &restored, err);
    for (struct dest *dest = engine->dests.first; dest && status == STATUS_OK; dest = dest->next) {
        dest->own.stage = OWN_WHOLE;
        dest_configure(engine, dest, engine->config);
    }
    if (status == STATUS_OK)
        status = restore_put(engine, &restored, SIZE_MAX, err);
    if (status == STATUS_OK)
        status = restore_finish(engine, &restored, err);
    for (struct dest *dest = engine->dests.first; dest; dest = dest->next)
        dest->own.stage = OWN_WHOLE; /* those without a configuration that have jobs */
    arena_release(&read->memory);
    return status;
}

enum status handover_configure(struct engine *engine, const struct config *config, struct error *err)
{
    struct dest *dest;
    for (size_t i = 0; i < config_destination_total(config) && !engine->shared; i++)
        if (dest_add(engine, slice_from(config_destination_at(config, i)->name), &dest) != STATUS_OK)
            return error_set(err, STATUS_NO_MEMORY, "no memory for the destinations");
    for (dest = engine->dests.first; dest; dest = dest->next)
        dest_configure(engine, dest, config);
    return STATUS_OK;
}

/* Those that came with a configuration are loaded; others when they get one. */
static void load_on(struct engine *engine)
{
    instant now = engine_now(engine);
    for (struct dest *dest = engine->dests.first, *next; dest; dest = next) {
        next = dest->next;
        if (dest->own.loading && !dest->own.loading->question.out)
            put_on(engine, dest);
        else if (dest->own.stage == OWN_UNREAD && !dest->own.loading && dest->own.load_at <= now &&
            config_destination(engine->config, slice_from(dest->name)))
            load(engine, dest);
    }
}

/* ---- losing ---- */

void dest_is_out(const struct engine *engine, struct dest *dest)
{
    assert(dest->own.batch <= outgoing_number(engine));
    dest->own.batch = outgoing_number(engine);
}

void dest_lose(struct engine *engine, struct dest *dest)
{
    if (dest->own.stage == OWN_WHOLE)
        dest->own.stage = OWN_LOSING;
    ahead_send(engine, dest); /* gives them back */
    leases_end_of(engine, dest);
    assert(dest->own.stage != OWN_WHOLE && dest->ahead.count == 0 && !dest->workers.first);
}

void engine_lose(struct engine *engine, struct slice destination, struct saved_wait *lost)
{
    struct dest *dest = dest_find(engine, destination);
    struct error error;
    if (destination.len == 0) {
        office_lose(engine, lost);
        return;
    }
    if (!dest || dest->own.stage != OWN_WHOLE) {
        error_set(&error, dest ? STATUS_BUSY : STATUS_NOT_FOUND, "destination \"%.*s\" %s", SLICE_ARG(destination),
                  dest ? "is being gained or lost already" : "is not this engine's");
        answer(&lost, &error);
        return;
    }
    assert(!dest->own.wait && !dest->own.drained);
    dest->own.wait = lost;
    dest_is_out(engine, dest); /* with its claims */
    dest_lose(engine, dest);
    engine_wake(engine);
}

/* Whether nothing will be heard of it any more, whatever it has to write. */
static bool is_still(const struct engine *engine, const struct dest *dest)
{
    assert(dest->own.stage == OWN_LOSING);
    if (dest->workers.out > 0 || dest->check.engine || dest->redrive.page.question.out || dead_exports_out(dest) ||
        dest->block.release.page.question.out || dest->queue.order.look.question.out || dest->incident.asked)
        return false;
    for (const struct attempt *attempt = engine->attempts.first; attempt; attempt = attempt->next)
        if (attempt->dest == dest)
            return false;
    return outgoing_passed(engine, dest->own.batch);
}

static bool is_written(struct engine *engine, struct dest *dest)
{
    assert(dest->own.stage == OWN_LOSING && dest->own.drained);
    struct slice name = slice_from(dest->name);
    if (!errors_all_written(engine->errors.counted, name))
        engine->errors.at = engine_now(engine); /* at once */
    return dest_is_saved(dest) && incident_written(engine, dest) && alerts_written(engine, dest) &&
           errors_all_written(engine->errors.counted, name) && history_close(engine, dest) && rates_save(engine, dest);
}

/* Whether everything that it wrote is in the store, with how it stands now that nothing of it is under way. */
static bool is_closed(struct engine *engine, struct dest *dest)
{
    if (dest->own.drained)
        return is_written(engine, dest) && outgoing_passed(engine, dest->own.batch); /* what fails shows itself by then */
    dest->own.drained = true;
    dest->saved.looked = true;
    dest->incident.write_at = engine_now(engine);
    engine_wake(engine);
    return false;
}

static void lose_on(struct engine *engine, struct dest *dest)
{
    if (!is_still(engine, dest) || !is_closed(engine, dest))
        return;
    assert(dest->ahead.asked == 0 && dest->queue.shares.sides[SIDE_AHEAD].held == 0);
    assert(dest->fallback.under_way == 0 && dest->queue.shares.sides[SIDE_FALLBACK].held == 0);
    assert(dest_is_saved(dest) && dest->gate.under_way >= dest->own.left.held);
    struct saved_wait *lost = dest->own.wait;
    log_event(LOG_INFO, "destination_lost", FIELD_CSTR("destination", dest->name));
    errors_leave(engine->errors.counted, slice_from(dest->name));
    forget(engine, dest);
    answer(&lost, &(struct error){ .status = STATUS_OK });
}

void handover_run(struct engine *engine)
{
    if (engine->stopping)
        return;
    load_on(engine);
    if (engine_must_wait(engine))
        return; /* what is lost must be written first, and the store takes nothing now */
    for (struct dest *dest = engine->dests.first, *next; dest; dest = next) {
        next = dest->next;
        if (dest->own.stage == OWN_LOSING)
            lose_on(engine, dest);
    }
    if (engine->office.stage == OWN_LOSING)
        office_lose_on(engine);
}

instant handover_next(const struct engine *engine)
{
    instant next = INSTANT_NONE;
    for (const struct dest *dest = engine->dests.first; dest; dest = dest->next)
        if (dest->own.stage == OWN_UNREAD && !dest->own.loading && dest->own.load_at > 0)
            next = instant_earlier(next, dest->own.load_at);
    return next;
}

void handover_release(struct engine *engine)
{
    while (engine->dests.first)
        dest_free(engine, engine->dests.first);
    map_release(&engine->dests.by_name);
    assert(engine->dests.by_name.count == 0);
}
