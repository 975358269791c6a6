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
 * work; meanwhile the others go on, unless it is in front: no slot stays empty for everything that comes. Lanes of a class
 * whose time has not come are set aside.
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

#include <assert.h>
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

/* ---- looking ---- */

static enum status read_class(const struct order_look *look, struct looked_lane *lane, struct store_reader *reader,
                              struct error *err)
{
    assert(lane->claiming >= 0);
    for (int class = RETURN_CRITICAL; class <= RETURN_HELD; class++) {
        size_t count;
        enum status status = reader->ops->reader_ahead(reader, lane->id, look->ranks[class] + 1, 0,
                                                       (size_t)lane->claiming + LOOK_JOBS_MAX, &count, err);
        lane->class = (enum return_class)class;
        lane->count = (int64_t)count;
        if (status != STATUS_OK || lane->count > lane->claiming)
            return status;
    }
    lane->class = RETURN_NEW;
    lane->count = INT64_MAX;
    return STATUS_OK;
}

static enum status read_classes(struct store_read *read, struct store_reader *reader, struct error *err)
{
    struct order_look *look = (struct order_look *)read;
    assert(look->count > 0 && look->count <= LOOK_LANES_MAX);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < look->count && status == STATUS_OK; i++)
        status = read_class(look, &look->lanes[i], reader, err);
    return status;
}

/* More urgent work than what goes now goes first. */
static void heed_class(struct dest *dest, const struct lane_state *lane)
{
    assert(lane->dest == dest);
    if (lane->order.class < dest->queue.order.class)
        dest->queue.order.class = lane->order.class;
}

/* What was claimed since it was asked counts as gone, too. */
static void take_class(struct lane_state *lane, const struct looked_lane *looked)
{
    assert(lane->claiming >= 0);
    int64_t left = looked->count == INT64_MAX ? INT64_MAX : looked->count - lane->claiming;
    turns_bring_back_one(&lane->dest->queue.turns, &lane->turn); /* it may have been aside for what it had before */
    lane->order.class = left > 0 ? looked->class : RETURN_UNKNOWN;
    if (left <= 0)
        return; /* it is looked at anew when it comes to the front */
    lane->order.left = left;
    heed_class(lane->dest, lane);
}

static void ask_wanted(struct engine *engine, struct dest *dest);
static bool has_order(const struct dest *dest);

static void want(struct lane_state *lane)
{
    struct order_look *look = &lane->dest->queue.order.look;
    if (lane->order.asked || look->wanted_count == LOOK_LANES_MAX)
        return;
    assert(!lane->order.stale && !lane->order.more);
    lane->order.asked = true;
    look->wanted[look->wanted_count++] = lane;
}

/* Without an answer they go with the many. What changed meanwhile is asked for at once: its turn may be long in coming. */
static void classes_read(struct question *question)
{
    struct order_look *look = (struct order_look *)question;
    struct engine *engine = question->engine;
    struct dest *dest = look->lanes[0].lane->dest;
    bool failed = question->read.status != STATUS_OK;
    if (failed) {
        log_event(LOG_ERROR, "return_order_failed", FIELD_CSTR("destination", dest->name),
                  FIELD_CSTR("error", question->read.error.text));
        alerts_store_failed(engine, &question->read.error);
    }
    for (size_t i = 0; i < look->count; i++) {
        struct lane_state *lane = look->lanes[i].lane;
        bool stale = lane->order.stale, again = stale || lane->order.more;
        assert(lane->order.asked && lane->dest == dest);
        lane->order.asked = lane->order.stale = lane->order.more = false;
        if (failed)
            look->lanes[i] = (struct looked_lane){ .lane = lane, .class = RETURN_HELD, .count = INT64_MAX };
        if (failed || !stale)
            take_class(lane, &look->lanes[i]);
        if (again && lane->ready > 0 && has_order(dest))
            want(lane);
    }
    ask_wanted(engine, dest);
}

static void ask_wanted(struct engine *engine, struct dest *dest)
{
    struct order_look *look = &dest->queue.order.look;
    if (look->question.out || look->wanted_count == 0)
        return;
    instant now = engine_now(engine);
    int64_t aging_ms = dest->config ? dest->config->aging_ms : HOUR_MS;
    look->ranks[RETURN_CRITICAL] = rank_of(PRIORITY_CRITICAL, now, aging_ms);
    look->ranks[RETURN_HIGH] = rank_of(PRIORITY_HIGH, now, aging_ms);
    look->ranks[RETURN_HELD] =
        is_returning(dest) ? rank_of(PRIORITY_NORMAL, dest->gate.contingency.saved.incident.recovering_at, aging_ms)
                           : INT64_MAX - 1;
    for (size_t i = 0; i < look->wanted_count; i++) {
        struct lane_state *lane = look->wanted[i];
        look->lanes[i] = (struct looked_lane){ .lane = lane, .id = lane->id, .claiming = lane->claiming };
        lane->order.stale = lane->order.more = false;
    }
    assert(look->wanted_count <= LOOK_LANES_MAX);
    look->count = look->wanted_count;
    look->wanted_count = 0;
    look->question.read.cheap = true;
    question_ask(engine, &look->question, read_classes, classes_read);
}

static void want_class(struct lane_state *lane)
{
    if (lane->order.class == RETURN_UNKNOWN)
        want(lane);
}

/*
 * The lane's class may be known when this returns. If not, the destination waits; and those that come soon after it are
 * asked for together, so that it does not wait once for each.
 */
static void look(struct engine *engine, struct lane_state *lane)
{
    struct dest *dest = lane->dest;
    want_class(lane);
    ask_wanted(engine, dest);
    if (lane->order.class != RETURN_UNKNOWN)
        return;
    struct turn *turn;
    for (size_t i = 0; i < LOOK_LANES_MAX && (turn = turns_at(&dest->queue.turns, i)); i++)
        want_class(lane_of(turn));
}

static void forget_class(struct lane_state *lane)
{
    lane->order.class = RETURN_UNKNOWN;
    lane->order.stale = lane->order.asked;
}

static void forget_classes(struct dest *dest)
{
    for (struct lane_state *lane = dest->queue.first; lane; lane = lane->next)
        forget_class(lane);
}

/* ---- the order ---- */

bool dest_by_class(const struct dest *dest)
{
    return dest->config && dest->config->priority_scope == PRIORITY_DESTINATION && dest->queue.turns.settings.round_robin;
}

static bool has_order(const struct dest *dest)
{
    return dest->config && dest->queue.lanes > 1 && (is_returning(dest) || dest_by_class(dest));
}

/* Work grows more urgent while it waits, and what was held differs from what is new when a way back begins. */
static void look_at_all_anew(struct dest *dest, instant now)
{
    bool put_back = dest->queue.order.looked_at > now, reloaded = dest->queue.order.aging_ms != dest->config->aging_ms;
    if (!dest_by_class(dest) || (now < instant_add(dest->queue.order.looked_at, LOOK_EVERY_MS) && !put_back && !reloaded &&
                                 dest->queue.order.returning == is_returning(dest)))
        return;
    dest->queue.order.looked_at = now;
    dest->queue.order.aging_ms = dest->config->aging_ms;
    dest->queue.order.returning = is_returning(dest);
    dest->queue.order.class = RETURN_CRITICAL;
    turns_bring_back(&dest->queue.turns, RETURN_NEW);
    forget_classes(dest);
}

void return_order_begin(struct engine *engine, struct dest *dest)
{
    bool has = has_order(dest);
    dest->queue.order.looks = LOOKS_MAX;
    if (has)
        look_at_all_anew(dest, engine_now(engine));
    if (has == (dest->queue.order.class != RETURN_UNKNOWN))
        return;
    dest->queue.order.class = has ? RETURN_CRITICAL : RETURN_UNKNOWN;
    dest->queue.order.round = 0;
    turns_bring_back(&dest->queue.turns, RETURN_NEW);
    if (!has)
        return;
    turns_begin_afresh(&dest->queue.turns);
    forget_classes(dest); /* of an earlier return */
}

/* Those of this round that matter less are next. False: there are none. */
static bool next_class(struct dest *dest)
{
    int64_t aside = turns_aside_class(&dest->queue.turns);
    if (aside == INT64_MAX)
        return false;
    assert(aside > RETURN_UNKNOWN && aside <= RETURN_NEW);
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

/* False: enough of them for now, or the store has not answered yet. */
static bool look_at_front(struct engine *engine, struct lane_state *lane)
{
    if (lane->order.class != RETURN_UNKNOWN)
        return true;
    if (lane->dest->queue.order.looks-- <= 0) {
        engine_wake(engine);
        return false;
    }
    look(engine, lane);
    return lane->order.class != RETURN_UNKNOWN;
}

/* Where classes count across tenants: whoever has work of the class that goes, in turn; the others are aside meanwhile. */
static struct turn *urgent_front(struct engine *engine, struct dest *dest, int64_t *ret_max)
{
    assert(dest_by_class(dest));
    for (;;) {
        struct turn *turn = turns_front(&dest->queue.turns, ret_max);
        if (!turn && next_class(dest))
            continue;
        if (!turn || !look_at_front(engine, lane_of(turn)))
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

struct turn *dest_front(struct engine *engine, struct dest *dest, int64_t *ret_max)
{
    if (dest->queue.order.class != RETURN_UNKNOWN && dest_by_class(dest))
        return urgent_front(engine, dest, ret_max);
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
        if (!look_at_front(engine, lane))
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
    assert(count > 0);
    lane->claiming += count;
    if (lane->order.class == RETURN_UNKNOWN || lane->order.left == INT64_MAX)
        return;
    lane->order.left -= count;
    if (lane->order.left <= 0)
        lane->order.class = RETURN_UNKNOWN;
}

static void look_anew(struct lane_state *lane)
{
    forget_class(lane);
    turns_bring_back_one(&lane->dest->queue.turns, &lane->turn);
}

void return_order_claimed(struct lane_state *lane, int64_t count)
{
    lane->claiming -= count;
    assert(lane->claiming >= 0);
    if (lane->dest->queue.order.class != RETURN_UNKNOWN)
        look_anew(lane);
}

/* Nobody knows yet what one has that was not looked at. */
void return_order_back(struct lane_state *lane)
{
    struct dest *dest = lane->dest;
    if (lane->order.class != RETURN_UNKNOWN)
        heed_class(dest, lane);
    else if (dest->queue.order.class != RETURN_UNKNOWN && dest_by_class(dest))
        dest->queue.order.class = RETURN_CRITICAL;
}

void return_order_added(struct engine *engine, struct lane_state *lane)
{
    assert(lane->ready > 0);
    if (lane->dest->queue.order.class == RETURN_UNKNOWN || !has_order(lane->dest))
        return;
    if (lane->order.asked) { /* were the answer of before to say nothing, who gets more all the time would never be known */
        lane->order.more = true;
        return;
    }
    look_anew(lane);
    if (!dest_by_class(lane->dest) && !turns_may_overtake(&lane->dest->queue.turns, &lane->turn))
        return;
    look(engine, lane);
}
