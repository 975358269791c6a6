/*
 * Who goes first on the way back from an outage. The way begins with a round in which those with critical work go first,
 * then those with work of high priority, then those whose work was held, and those that have only work that came since last.
 *
 * So the test batch and the first steps are what matters most, of all tenants. But a tenant still has no more than its share
 * of a round: one that calls all of its work critical holds up nobody for longer than that (invariant 7). And the rounds
 * that follow keep the order of the first: were they ordered anew, who was first in one could be last in the next and wait
 * for two rounds. Only tenants that come anew, and so have not used up their share, go by what they have: the urgent before
 * everybody else, those with only new work last.
 *
 * A lane's class is that of its most urgent job, by rank: so it heeds age and deadlines, and a job that has waited for two
 * aging intervals is as good as critical. The store is asked for it when the lane comes to the front, and when it gets new
 * work. Lanes of a class whose time has not come are set aside.
 *
 * Where classes count across tenants (priority.scope: destination) every round goes by class, on the way back or not, and
 * one slot in five goes by turns over all classes, so that who calls all of its work critical stops nobody.
 *
 * What is being claimed may or may not be gone already where the store is asked; it counts as gone, and the lane is looked
 * at anew when the claim is back. With one tenant there is nothing to do: the store goes by rank.
 */
#include "base/log.h"
#include "core/decision/job.h"
#include "engine/loop.h"

#include <stddef.h>

enum {
    LOOKS_MAX = 256,    /* at lanes, of one destination, before the engine does other things */
    LOOK_JOBS_MAX = 64, /* that are counted by one look */
    LOOK_EVERY_MS = 60 * 1000, /* at all lanes, where classes count across tenants */
};

static struct lane_state *lane_of(struct turn *turn)
{
    return (struct lane_state *)((char *)turn - offsetof(struct lane_state, turn));
}

static bool is_returning(const struct dest *dest)
{
    return dest->gate.contingency.saved.mode == MODE_RECOVERING;
}

/* Without an answer it goes with the many. */
static void look(struct engine *engine, struct lane_state *lane, instant now)
{
    const struct dest *dest = lane->dest;
    int64_t aging_ms = dest->config->aging_ms;
    const int64_t ranks[] = {
        [RETURN_CRITICAL] = rank_of(PRIORITY_CRITICAL, now, aging_ms),
        [RETURN_HIGH] = rank_of(PRIORITY_HIGH, now, aging_ms),
        [RETURN_HELD] = is_returning(dest)
                            ? rank_of(PRIORITY_NORMAL, dest->gate.contingency.saved.incident.recovering_at, aging_ms)
                            : INT64_MAX - 1,
    };
    struct error error;
    lane->order.left = INT64_MAX;
    for (int class = RETURN_CRITICAL; class <= RETURN_HELD; class++) {
        size_t count;
        enum status status = engine->reader->ops->reader_ahead(engine->reader, lane->id, ranks[class] + 1, 0,
                                                               (size_t)lane->claiming + LOOK_JOBS_MAX, &count, &error);
        lane->order.class = (enum return_class)class;
        if (status != STATUS_OK) {
            log_event(LOG_ERROR, "return_order_failed", FIELD_CSTR("destination", dest->name),
                      FIELD_CSTR("error", error.text));
            alerts_store_failed(engine, &error);
            lane->order.class = RETURN_HELD;
            return;
        }
        if ((int64_t)count > lane->claiming) {
            lane->order.left = (int64_t)count - lane->claiming;
            return;
        }
    }
    lane->order.class = RETURN_NEW;
}

/* More urgent work than what goes now goes first. */
static void heed_class(struct dest *dest, const struct lane_state *lane)
{
    if (lane->order.class < dest->queue.order.class)
        dest->queue.order.class = lane->order.class;
}

bool dest_by_class(const struct dest *dest)
{
    return dest->config && dest->config->priority_scope == PRIORITY_DESTINATION && dest->queue.turns.settings.round_robin;
}

static bool has_order(const struct dest *dest)
{
    return dest->config && dest->queue.lanes > 1 && (is_returning(dest) || dest_by_class(dest));
}

/* Work grows more urgent while it waits, and what was held is told from what is new when a way back begins. */
static void look_at_all_anew(struct engine *engine, struct dest *dest, instant now)
{
    bool put_back = dest->queue.order.looked_at > now;
    if (!dest_by_class(dest) || (now < instant_add(dest->queue.order.looked_at, LOOK_EVERY_MS) && !put_back &&
                                 dest->queue.order.returning == is_returning(dest)))
        return;
    dest->queue.order.looked_at = now;
    dest->queue.order.returning = is_returning(dest);
    dest->queue.order.class = RETURN_CRITICAL;
    turns_bring_back(&dest->queue.turns, RETURN_NEW);
    for (size_t i = 0; i < engine->lanes.capacity; i++)
        if (engine->lanes.by_id[i] && engine->lanes.by_id[i]->dest == dest)
            engine->lanes.by_id[i]->order.class = RETURN_UNKNOWN;
}

void return_order_begin(struct engine *engine, struct dest *dest)
{
    bool has = has_order(dest);
    dest->queue.order.looks = LOOKS_MAX;
    if (has)
        look_at_all_anew(engine, dest, engine_now(engine));
    if (has == (dest->queue.order.class != RETURN_UNKNOWN))
        return;
    dest->queue.order.class = has ? RETURN_CRITICAL : RETURN_UNKNOWN;
    dest->queue.order.round = 0;
    turns_bring_back(&dest->queue.turns, RETURN_NEW);
    if (has)
        turns_begin_afresh(&dest->queue.turns);
    for (size_t i = 0; i < engine->lanes.capacity && has; i++)
        if (engine->lanes.by_id[i] && engine->lanes.by_id[i]->dest == dest)
            engine->lanes.by_id[i]->order.class = RETURN_UNKNOWN; /* of an earlier return */
}

/* Those of this round that matter less are next. False: there are none. */
static bool next_class(struct dest *dest)
{
    int64_t aside = turns_aside_class(&dest->queue.turns);
    if (aside == INT64_MAX)
        return false;
    dest->queue.order.class = (enum return_class)aside;
    turns_bring_back(&dest->queue.turns, aside);
    return true;
}

/* Whether whoever is in front of this round must wait: it keeps its place, but some that may overtake it are aside. */
static bool next_overtakers(struct dest *dest, const struct turn *front)
{
    return !turns_may_overtake(&dest->queue.turns,
                               front) && turns_aside_class(&dest->queue.turns) < RETURN_NEW && next_class(dest);
}

/* False: enough of them for now. */
static bool look_at_front(struct engine *engine, struct lane_state *lane, instant now)
{
    if (lane->order.class != RETURN_UNKNOWN)
        return true;
    if (lane->dest->queue.order.looks-- <= 0) {
        engine_wake(engine);
        return false;
    }
    look(engine, lane, now);
    return true;
}

/* Where classes count across tenants: whoever has work of the class that goes, in turn; the others are aside meanwhile. */
static struct turn *urgent_front(struct engine *engine, struct dest *dest, instant now, int64_t *ret_max)
{
    for (;;) {
        struct turn *turn = turns_front(&dest->queue.turns, ret_max);
        if (!turn && next_class(dest))
            continue;
        if (!turn || !look_at_front(engine, lane_of(turn), now))
            return NULL;
        const struct lane_state *lane = lane_of(turn);
        heed_class(dest, lane);
        if (lane->order.class == dest->queue.order.class) {
            *ret_max = lane->order.left < *ret_max ? lane->order.left : *ret_max;
            return turn;
        }
        turns_set_aside(&dest->queue.turns, turn, lane->order.class);
    }
}

struct turn *dest_front_of_all(struct dest *dest, int64_t *ret_max)
{
    turns_bring_back(&dest->queue.turns, RETURN_NEW);
    return turns_front(&dest->queue.turns, ret_max);
}

struct turn *dest_front(struct engine *engine, struct dest *dest, instant now, int64_t *ret_max)
{
    if (dest->queue.order.class != RETURN_UNKNOWN && dest_by_class(dest))
        return urgent_front(engine, dest, now, ret_max);
    for (;;) {
        struct turn *turn = turns_front(&dest->queue.turns, ret_max);
        if (dest->queue.order.class == RETURN_UNKNOWN)
            return turn;
        if (!turn || turns_front_round(&dest->queue.turns) > dest->queue.order.round) {
            if (next_class(dest))
                continue;
            if (!turn)
                return NULL;
            dest->queue.order.round = turns_front_round(&dest->queue.turns);
            dest->queue.order.class = RETURN_CRITICAL;
        }
        if (next_overtakers(dest, turn))
            continue;
        if (!turns_may_overtake(&dest->queue.turns, turn))
            return turn;
        struct lane_state *lane = lane_of(turn);
        if (!look_at_front(engine, lane, now))
            return NULL;
        heed_class(dest, lane);
        if (lane->order.class == dest->queue.order.class) {
            *ret_max = lane->order.left < *ret_max ? lane->order.left : *ret_max;
            return turn;
        }
        turns_set_aside(&dest->queue.turns, turn, lane->order.class);
    }
}

void return_order_took(struct lane_state *lane, int64_t count)
{
    lane->claiming += count;
    if (lane->order.class == RETURN_UNKNOWN || lane->order.left == INT64_MAX)
        return;
    lane->order.left -= count;
    if (lane->order.left <= 0)
        lane->order.class = RETURN_UNKNOWN;
}

static void look_anew(struct lane_state *lane)
{
    lane->order.class = RETURN_UNKNOWN;
    turns_bring_back_one(&lane->dest->queue.turns, &lane->turn);
}

void return_order_claimed(struct lane_state *lane, int64_t count)
{
    lane->claiming -= count;
    if (lane->dest->queue.order.class != RETURN_UNKNOWN)
        look_anew(lane);
}

void return_order_added(struct engine *engine, struct lane_state *lane)
{
    if (lane->dest->queue.order.class == RETURN_UNKNOWN || !has_order(lane->dest))
        return;
    look_anew(lane);
    if (!dest_by_class(lane->dest) && !turns_may_overtake(&lane->dest->queue.turns, &lane->turn))
        return;
    look(engine, lane, engine_now(engine));
    heed_class(lane->dest, lane);
}
