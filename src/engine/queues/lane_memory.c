/*
 * Which lanes the engine remembers. The store knows them all; one that has been without work for a while, and of which
 * nothing is known but its name, is forgotten here and asked for again when it is needed. So memory follows the tenants
 * that have work, not those that ever had (invariant 6).
 */
#include "base/log.h"
#include "engine/loop.h"

#include <assert.h>
#include <stdlib.h>

enum {
    LANE_FORGET_MS = 15 * 60 * 1000, /* how long a lane without work is remembered */
    LANES_LOOK_EVERY_MS = 1000,
    LANES_LOOK_MAX = 2000, /* that are looked at each time */
};

/* Held ones are known by name, what was reported of one may not be written yet, and the few busiest are counted singly. */
static bool is_needed(const struct lane_state *lane, instant now)
{
    instant paid_until = lane->rate.limiter.rate.count > 0 ? rate_save(&lane->rate.limiter) : INSTANT_NONE;
    return lane->ready != 0 || lane->claiming != 0 || lane->dead.count != 0 || lane->dead.dying != 0 ||
           lane->share.group != SHARES_NONE || lane->hold.held || lane->reported || lane->measure || lane_asked(lane, now) ||
           lane->order.asked ||
           (paid_until != INSTANT_NONE && paid_until > now);
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
        lane_forget(engine, lane);
}

/* ---- asked for again ---- */

/* What was reported of a lane that is not known. */
struct lane_missed {
    int64_t id; /* the key */
    int64_t ready, dead;
    bool put_off; /* it was asked for, and its destination was still being loaded */
};

static enum status read_missed(struct store_read *read, struct store_reader *reader, struct error *err)
{
    struct lanes_recall *recall = (struct lanes_recall *)read;
    assert(recall->count > 0 && recall->count <= RECALL_MAX);
    recall->lanes = arena_alloc_array(&read->memory, recall->count, sizeof *recall->lanes);
    if (!recall->lanes)
        return error_set(err, STATUS_NO_MEMORY, "no memory for lanes");
    for (size_t i = 0; i < recall->count; i++) {
        struct lane *stored;
        size_t count = 0;
        enum status status = reader->ops->reader_lanes(reader, recall->ids[i] - 1, 1, &read->memory, &stored, &count, err);
        if (status != STATUS_OK)
            return status;
        recall->lanes[i] = count == 1 && stored->id == recall->ids[i] ? *stored : (struct lane){ 0 };
    }
    return STATUS_OK;
}

/*
 * Without memory, and while its destination is loaded, it stays missed. One that is not there has nothing. False: it was so
 * when it was asked for before.
 */
static bool take_missed(struct engine *engine, int64_t id, const struct lane *stored)
{
    struct lane_missed *missed = map_get(&engine->lanes.missed, map_key(&id));
    struct lane_state *lane = lane_find(engine, id);
    assert(missed);
    bool before = missed->put_off;
    enum status status =
        stored->id == id ? lane_get(engine, id, stored->destination, stored->tenant, &lane) : STATUS_NOT_FOUND;
    missed->put_off = status == STATUS_NO_MEMORY || status == STATUS_BUSY;
    if (missed->put_off)
        return !before;
    map_remove(&engine->lanes.missed, map_key(&id));
    if (lane) {
        lane_dead_add(lane, missed->dead);
        lane_ready_add(engine, lane, missed->ready);
    }
    free(missed);
    return true;
}

static void missed_read(struct question *question)
{
    struct lanes_recall *recall = (struct lanes_recall *)question;
    struct engine *engine = question->engine;
    if (question->read.status != STATUS_OK) { /* again when lanes are looked at next */
        log_event(LOG_ERROR, "lane_lost", FIELD_INT("lane", recall->ids[0]),
                  FIELD_CSTR("error", status_name(question->read.status)));
        alerts_store_failed(engine, &question->read.error);
        return;
    }
    bool news = false;
    for (size_t i = 0; i < recall->count; i++)
        news = take_missed(engine, recall->ids[i], &recall->lanes[i]) || news;
    if (news)
        lanes_ask_missed(engine); /* the next, and those that came meanwhile */
}

static void recall_some(struct engine *engine, bool put_off)
{
    struct lanes_recall *recall = &engine->lanes.recall;
    size_t cursor = 0;
    assert(!recall->question.out);
    for (struct map_entry *entry; recall->count < RECALL_MAX && (entry = map_next(&engine->lanes.missed, &cursor));) {
        const struct lane_missed *missed = entry->value;
        if (missed->put_off == put_off)
            recall->ids[recall->count++] = missed->id;
    }
}

/* However many wait for their destination, those of others go first. */
void lanes_ask_missed(struct engine *engine)
{
    struct lanes_recall *recall = &engine->lanes.recall;
    if (recall->question.out || engine->lanes.missed.count == 0)
        return;
    recall->count = 0;
    recall_some(engine, false);
    recall_some(engine, true);
    recall->question.read.cheap = true;
    assert(recall->count > 0);
    question_ask(engine, &recall->question, read_missed, missed_read);
}

void lanes_ask_all_missed(struct engine *engine)
{
    size_t cursor = 0;
    for (struct map_entry *entry; (entry = map_next(&engine->lanes.missed, &cursor));)
        ((struct lane_missed *)entry->value)->put_off = false;
    lanes_ask_missed(engine);
}

/* Without memory its jobs are safe all the same, and are found at the next start. */
static void note_missed(struct engine *engine, int64_t id, int64_t ready, int64_t dead)
{
    struct lane_missed *missed = map_get(&engine->lanes.missed, map_key(&id));
    if (!missed) {
        missed = calloc(1, sizeof *missed);
        if (!missed)
            return;
        missed->id = id;
        if (map_put(&engine->lanes.missed, map_key(&missed->id), missed) != STATUS_OK) {
            free(missed);
            return;
        }
    }
    missed->ready += ready;
    missed->dead += dead;
    assert(missed->id == id);
}

/* A lane that was forgotten had no dead letters then, and whatever died since was reported: so it need not be counted. */
void lane_changed(struct engine *engine, int64_t id, int64_t ready, int64_t dead)
{
    assert(id > 0);
    struct lane_state *lane = lane_find(engine, id);
    if (!lane) {
        note_missed(engine, id, ready, dead);
        lanes_ask_missed(engine);
        return;
    }
    lane_dead_add(lane, dead);
    lane_ready_add(engine, lane, ready);
}

/* ---- each second ---- */

void lanes_tick(struct engine *engine)
{
    instant now = engine_now(engine);
    bool put_back = engine->lanes.look_at > instant_add(now, LANES_LOOK_EVERY_MS);
    if (engine->stopping || (now < engine->lanes.look_at && !put_back))
        return;
    engine->lanes.look_at = instant_add(now, LANES_LOOK_EVERY_MS);
    lanes_ask_missed(engine);
    for (size_t i = 0; i < LANES_LOOK_MAX; i++) {
        const struct map_entry *entry = map_next(&engine->lanes.by_id, &engine->lanes.looked);
        if (!entry) {
            engine->lanes.looked = 0; /* from the first again, next time */
            return;
        }
        look(engine, entry->value, now);
    }
}
