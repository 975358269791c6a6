/*
 * views.h - what the engine says of destinations and lanes, for an answer that tells of them.
 *
 * Add what is to be asked for, then ask once.
 */
#ifndef API_CALL_VIEWS_H
#define API_CALL_VIEWS_H

#include "engine/engine.h"
#include "engine/status.h"

struct call;

/* How a destination stands, as the engine said. */
struct view {
    struct slice name;
    bool here; /* else nothing is known of it */
    struct destination_status status; /* its texts are in the call's memory */
    struct tenant_hold *holds;        /* of its tenants, only when one destination is asked for */
    size_t hold_count;
};

/* Whether a tenant's lane is held for itself, likewise. */
struct lane_view {
    int64_t lane;
    struct lane_hold hold;
};

struct views {
    struct view *destinations;
    size_t count, capacity;
    bool unordered; /* one was added that comes before another */
    struct lane_view *lanes;
    size_t lane_count, lane_capacity;
    struct engine_figures figures;
};

/*
 * Asks the engine how destinations stand: add their names, which must live as long as the call, then ask; `then` runs
 * in the API's thread. A name may be added twice; a thousand in their order are found soonest.
 */
void call_view_add(struct call *call, struct slice name);
void call_views(struct call *call, void (*then)(struct call *call));
/* In the engine's thread: what call_views asks; for `ask`, where nothing else would do. */
bool views_ask(struct call *call, struct engine *engine);
/* Of a name that was added; a destination that the engine does not know is not `known`. */
const struct destination_status *call_view(const struct call *call, struct slice name);
/* Its tenants that are held for themselves. Only when no other destination was added. */
const struct tenant_hold *call_tenant_holds(const struct call *call, size_t *ret_count);

/* The same for a lane, by the store's number: added before call_views. NULL: it is not held for itself. */
void call_lane_add(struct call *call, int64_t lane);
const struct lane_hold *call_lane_hold(const struct call *call, int64_t lane);

#endif
