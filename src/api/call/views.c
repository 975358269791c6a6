#include "api/call/views.h"

#include "api/call/ask.h"
#include "api/call/confined.h"
#include "base/array.h"
#include "engine/status.h"


void call_view_add(struct call *call, struct slice name)
{
    struct views *views = &call->views;
    bool follows = views->count == 0 ||
                   (!views->unordered && slice_compare(views->destinations[views->count - 1].name, name) < 0);
    if (!follows && call_view(call, name))
        return;
    views->unordered = !follows;
    struct view *grown =
        array_grow_in(&call->memory, views->destinations, views->count, &views->capacity, sizeof *grown);
    if (!grown)
        return; /* shown as not known */
    views->destinations = grown;
    call->views.destinations[call->views.count++] = (struct view){ .name = name, .here = ask_is_here(call, name) };
}

const struct destination_status *call_view(const struct call *call, struct slice name)
{
    const struct views *views = &call->views;
    size_t low = 0, high = views->unordered ? 0 : views->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = slice_compare(views->destinations[middle].name, name);
        if (order == 0)
            return &views->destinations[middle].status;
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    for (size_t i = 0; views->unordered && i < views->count; i++)
        if (slice_equal(views->destinations[i].name, name))
            return &views->destinations[i].status;
    return NULL;
}

static struct lane_view *find_lane(const struct call *call, int64_t lane)
{
    for (size_t i = 0; i < call->views.lane_count; i++)
        if (call->views.lanes[i].lane == lane)
            return &call->views.lanes[i];
    return NULL;
}

void call_lane_add(struct call *call, int64_t lane)
{
    if (find_lane(call, lane))
        return;
    struct lane_view *grown = array_grow_in(&call->memory, call->views.lanes, call->views.lane_count,
                                            &call->views.lane_capacity, sizeof *grown);
    if (!grown)
        return; /* shown as not held */
    call->views.lanes = grown;
    call->views.lanes[call->views.lane_count++] = (struct lane_view){ .lane = lane };
}

const struct lane_hold *call_lane_hold(const struct call *call, int64_t lane)
{
    const struct lane_view *found = find_lane(call, lane);
    return found && found->hold.held ? &found->hold : NULL;
}

const struct tenant_hold *call_tenant_holds(const struct call *call, size_t *ret_count)
{
    *ret_count = call->views.count == 1 ? call->views.destinations[0].hold_count : 0;
    return *ret_count > 0 ? call->views.destinations[0].holds : NULL;
}

static const char *keep_text(struct call *call, const char *text)
{
    return text ? arena_copy_text(&call->memory, slice_from(text)) : NULL;
}

static void ask_tenants(struct call *call, const struct engine *engine, struct view *view)
{
    size_t max = engine_destination(engine, view->name).tenants_paused;
    view->holds = max > 0 ? arena_alloc_array(&call->memory, max, sizeof *view->holds) : NULL;
    if (!view->holds)
        return;
    view->hold_count = engine_tenant_holds(engine, view->name, view->holds, max);
    for (size_t i = 0; i < view->hold_count; i++) {
        view->holds[i].tenant = keep_text(call, view->holds[i].tenant);
        view->holds[i].hold.reason = keep_text(call, view->holds[i].hold.reason);
    }
    if (call->tenant_bound.data)
        view->hold_count = holds_confine(view->holds, view->hold_count, call->tenant_bound);
}

bool views_ask(struct call *call, struct engine *engine)
{
    for (size_t i = 0; i < call->views.lane_count; i++) {
        struct lane_hold hold = engine_lane_hold(engine, call->views.lanes[i].lane);
        hold.reason = keep_text(call, hold.reason);
        call->views.lanes[i].hold = hold;
    }
    for (size_t i = 0; i < call->views.count; i++) {
        struct destination_status status = { 0 };
        if (call->views.destinations[i].here)
            status = engine_destination(engine, call->views.destinations[i].name);
        status.pause_reason = keep_text(call, status.pause_reason);
        status.behind_reason = keep_text(call, status.behind_reason);
        status.second.reason = keep_text(call, status.second.reason);
        if (call->tenant_bound.data)
            status_confine(&status);
        call->views.destinations[i].status = status;
    }
    if (call->views.count == 1)
        ask_tenants(call, engine, &call->views.destinations[0]);
    call->views.figures = engine_figures(engine);
    return true;
}

void call_views(struct call *call, void (*then)(struct call *call))
{
    ask_here(call, views_ask, then);
}
