/*
 * Which lanes the engine remembers. The store knows them all; one that has been without work for a while, and of which
 * nothing is known but its name, is forgotten here and asked for again when it is needed. So memory follows the tenants
 * that have work, not those that ever had (invariant 6).
 */
#include "base/log.h"
#include "engine/loop.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    LANE_FORGET_MS = 15 * 60 * 1000, /* how long a lane without work is remembered */
    LANES_LOOK_EVERY_MS = 1000,
    LANES_LOOK_MAX = 2000, /* places looked at each time */
};

/* Held ones are known by name, what was told of one may not be written yet, and the few busiest are counted singly. */
static bool is_needed(const struct lane_state *lane, instant now)
{
    instant paid_until = lane->rate.limiter.rate.count > 0 ? rate_save(&lane->rate.limiter) : INSTANT_NONE;
    return lane->ready != 0 || lane->claiming != 0 || lane->dead.count != 0 || lane->dead.dying != 0 ||
           lane->share.group != SHARES_NONE || lane->hold.held || lane->reported || lane->measure || lane_asked(lane, now) ||
           (paid_until != INSTANT_NONE && paid_until > now);
}

static void forget(struct engine *engine, struct lane_state *lane)
{
    assert(engine->lanes.by_id[lane->id] == lane);
    turns_remove(&lane->dest->queue.turns, &lane->turn);
    shares_remove(&lane->dest->queue.shares, &lane->share);
    engine->lanes.by_id[lane->id] = NULL;
    lane->dest->queue.lanes--;
    engine->lanes.count--;
    lane_free(lane);
}

/* A clock that was put back begins the wait anew. */
static void look(struct engine *engine, struct lane_state *lane, instant now)
{
    asked_keep(engine, lane); /* the store may have refused it */
    if (is_needed(lane, now))
        lane->idle_since = INSTANT_NONE;
    else if (lane->idle_since == INSTANT_NONE || lane->idle_since > now)
        lane->idle_since = now;
    else if (now - lane->idle_since >= LANE_FORGET_MS)
        forget(engine, lane);
}

/* What is missed stays so until all of it is there; one that fails is enough for this time. */
static void recall_missed(struct engine *engine)
{
    for (size_t id = 1; id < engine->lanes.missed_capacity; id++) {
        struct lane_missed *missed = &engine->lanes.missed[id];
        if (missed->ready == 0 && missed->dead == 0)
            continue;
        struct lane_state *lane = lane_recall(engine, (int64_t)id);
        if (!lane)
            return;
        lane_dead_add(lane, missed->dead);
        lane_ready_add(engine, lane, missed->ready);
        *missed = (struct lane_missed){ 0, 0 };
    }
    free(engine->lanes.missed);
    engine->lanes.missed = NULL;
    engine->lanes.missed_capacity = 0;
}

void lanes_tick(struct engine *engine)
{
    instant now = engine_now(engine);
    bool put_back = engine->lanes.look_at > instant_add(now, LANES_LOOK_EVERY_MS);
    if (engine->stopping || (now < engine->lanes.look_at && !put_back))
        return;
    engine->lanes.look_at = instant_add(now, LANES_LOOK_EVERY_MS);
    recall_missed(engine);
    for (size_t i = 0; i < LANES_LOOK_MAX && i < engine->lanes.capacity; i++) {
        engine->lanes.looked = engine->lanes.looked + 1 < engine->lanes.capacity ? engine->lanes.looked + 1 : 0;
        if (engine->lanes.by_id[engine->lanes.looked])
            look(engine, engine->lanes.by_id[engine->lanes.looked], now);
    }
}

/* ---- asked for again ---- */

struct lane_state *lane_recall(struct engine *engine, int64_t id)
{
    struct lane_state *lane = lane_find(engine, id);
    struct arena memory = { 0 };
    struct lane *stored;
    struct error error = { .status = STATUS_OK };
    size_t count = 0;
    if (lane)
        return lane;
    enum status status = engine->reader->ops->reader_lanes(engine->reader, id - 1, 1, &memory, &stored, &count, &error);
    if (status == STATUS_OK && count == 1 && stored->id == id)
        status = lane_get(engine, id, stored->destination, stored->tenant, &lane);
    if (!lane) {
        log_event(LOG_ERROR, "lane_lost", FIELD_INT("lane", id), FIELD_CSTR("error", status_name(status)));
        alerts_store_failed(engine, &error);
    }
    arena_release(&memory);
    return lane;
}

/* Without memory its jobs are safe all the same, and are found at the next start. */
static void note_missed(struct engine *engine, int64_t id, int64_t ready, int64_t dead)
{
    size_t needed = (size_t)id + 1, had = engine->lanes.missed_capacity;
    if (needed > had) {
        size_t capacity = needed > engine->lanes.capacity ? needed : engine->lanes.capacity;
        struct lane_missed *missed = realloc(engine->lanes.missed, capacity * sizeof *missed);
        if (!missed)
            return;
        memset(missed + had, 0, (capacity - had) * sizeof *missed);
        engine->lanes.missed = missed;
        engine->lanes.missed_capacity = capacity;
    }
    engine->lanes.missed[id].ready += ready;
    engine->lanes.missed[id].dead += dead;
}

/* A lane that was forgotten had no dead letters then, and whatever died since was told: so it need not be counted. */
void lane_changed(struct engine *engine, int64_t id, int64_t ready, int64_t dead)
{
    struct lane_state *lane = lane_recall(engine, id);
    if (!lane) {
        note_missed(engine, id, ready, dead);
        return;
    }
    lane_dead_add(lane, dead);
    lane_ready_add(engine, lane, ready);
}

struct lane_state *lane_recall_named(struct engine *engine, const struct dest *dest, struct slice tenant)
{
    struct lane_state *lane = NULL;
    struct arena memory = { 0 };
    struct lane stored;
    struct error error = { 0 };
    if (!engine->reader)
        return NULL;
    enum status status =
        engine->reader->ops->reader_lane(engine->reader, slice_from(dest->name), tenant, &memory, &stored, &error);
    if (status == STATUS_OK)
        status = lane_get(engine, stored.id, stored.destination, stored.tenant, &lane);
    if (status != STATUS_OK && status != STATUS_NOT_FOUND)
        log_event(LOG_ERROR, "lane_not_read", FIELD_CSTR("destination", dest->name), FIELD_CSTR("error", error.text));
    arena_release(&memory);
    return lane;
}
