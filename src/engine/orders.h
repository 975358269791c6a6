/*
 * orders.h - what an operator may order of the engine, and know of its alerts.
 */
#ifndef ENGINE_ORDERS_H
#define ENGINE_ORDERS_H

#include "base/slice.h"
#include "base/status.h"
#include "engine/saved/waits.h"

struct arena;
struct engine;
struct saved;

/*
 * A lane that somebody is about to ask of, or to give orders about, as the store names it: it may be forgotten here. Without
 * memory, or where the destination is not this engine's, it stays unknown.
 */
void engine_recall(struct engine *engine, int64_t lane, struct slice destination, struct slice tenant);

enum { HOLD_REASON_BYTES_MAX = 1024 }; /* why something is held: longer ones are cut at a character */

/* Until it is called again with nobody, what changes at the destination is that person's doing; the trail says so. */
void engine_operator(struct engine *engine, struct slice destination, struct slice who);
/* STATUS_NOT_FOUND. Saved over restarts. `reason` is a sentence for people; another one takes the place of one before. */
enum status engine_pause(struct engine *engine, struct slice destination, struct slice reason, struct error *err) MUST_CHECK;
enum status engine_resume(struct engine *engine, struct slice destination, struct error *err) MUST_CHECK;
/* The same for one tenant's lane, after engine_recall: the others go on. STATUS_LIMIT when too many are held already. */
enum status engine_pause_tenant(struct engine *engine, int64_t lane, struct slice reason, struct error *err) MUST_CHECK;
enum status engine_resume_tenant(struct engine *engine, int64_t lane, struct error *err) MUST_CHECK;

/* The same for contingency: it is held until somebody leaves it, and comes back by its ramp. Nothing to do is STATUS_OK. */
enum status engine_enter_contingency(struct engine *engine, struct slice destination, struct slice reason,
                                     struct error *err) MUST_CHECK;
enum status engine_leave_contingency(struct engine *engine, struct slice destination, struct error *err) MUST_CHECK;

/*
 * These orders hold at once, but may be acknowledged only when they are in the store: after one of them, also when there was
 * nothing to do, `wait` is done once everything that was ordered of the destination so far is durable. When that fails,
 * the order holds all the same and is written as soon as the store can; a restart before that undoes it.
 */
void engine_await_saved(struct engine *engine, struct slice destination, struct saved_wait *wait);

/* An operator knows of an alert. */
struct alert_ack {
    struct slice id, by, note; /* the last two may be empty */
    struct slice tenant;       /* only of this one's alerts; .data NULL: of all */
};
/*
 * STATUS_NOT_FOUND: none of that id stands. Else `wait` is done when it is in the store. One about dead letters ends by it,
 * another is marked and stands while it is true.
 */
enum status engine_ack_alert(struct engine *engine, const struct alert_ack *ack, struct saved_wait *wait,
                             struct error *err) MUST_CHECK;
/*
 * Alerts that stand and that the store has refused so far, as on a full disk: the newest first, in the form in which they
 * will be saved; only those whose id is before `before`, where that is not empty. *ret_more: there are more than `max`.
 */
enum status engine_alerts_unwritten(const struct engine *engine, struct slice before, size_t max, struct arena *memory,
                                    struct saved **ret_alerts, size_t *ret_count, bool *ret_more) MUST_CHECK;

#endif
