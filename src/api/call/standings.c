#include "api/call/standings.h"

#include "api/call/call.h"
#include "api/call/confined.h"

#include <string.h>

void call_standing_add(struct call *call, struct slice name)
{
    if (call_standing(call, name))
        return;
    if (call->standings.count == call->standings.capacity) {
        size_t capacity = call->standings.capacity ? call->standings.capacity * 2 : 16;
        struct standing *grown = arena_alloc_array(&call->memory, capacity, sizeof *grown);
        if (!grown)
            return; /* shown as not known */
        if (call->standings.count > 0)
            memcpy(grown, call->standings.destinations, call->standings.count * sizeof *grown);
        call->standings.destinations = grown;
        call->standings.capacity = capacity;
    }
    call->standings.destinations[call->standings.count++] = (struct standing){ .name = name };
}

const struct destination_status *call_standing(const struct call *call, struct slice name)
{
    for (size_t i = 0; i < call->standings.count; i++)
        if (slice_equal(call->standings.destinations[i].name, name))
            return &call->standings.destinations[i].status;
    return NULL;
}

static struct lane_standing *find_lane(const struct call *call, int64_t lane)
{
    for (size_t i = 0; i < call->standings.lane_count; i++)
        if (call->standings.lanes[i].lane == lane)
            return &call->standings.lanes[i];
    return NULL;
}

void call_lane_add(struct call *call, int64_t lane)
{
    if (find_lane(call, lane))
        return;
    if (call->standings.lane_count == call->standings.lane_capacity) {
        size_t capacity = call->standings.lane_capacity ? call->standings.lane_capacity * 2 : 16;
        struct lane_standing *grown = arena_alloc_array(&call->memory, capacity, sizeof *grown);
        if (!grown)
            return; /* shown as not held */
        if (call->standings.lane_count > 0)
            memcpy(grown, call->standings.lanes, call->standings.lane_count * sizeof *grown);
        call->standings.lanes = grown;
        call->standings.lane_capacity = capacity;
    }
    call->standings.lanes[call->standings.lane_count++] = (struct lane_standing){ .lane = lane };
}

const struct lane_hold *call_lane_hold(const struct call *call, int64_t lane)
{
    const struct lane_standing *found = find_lane(call, lane);
    return found && found->hold.held ? &found->hold : NULL;
}

const struct tenant_hold *call_tenant_holds(const struct call *call, size_t *ret_count)
{
    *ret_count = call->standings.count == 1 ? call->standings.destinations[0].hold_count : 0;
    return *ret_count > 0 ? call->standings.destinations[0].holds : NULL;
}

static const char *keep_text(struct call *call, const char *text)
{
    return text ? arena_copy_text(&call->memory, slice_from(text)) : NULL;
}

static void ask_tenants(struct call *call, const struct engine *engine, struct standing *standing)
{
    size_t max = engine_destination(engine, standing->name).tenants_paused;
    standing->holds = max > 0 ? arena_alloc_array(&call->memory, max, sizeof *standing->holds) : NULL;
    if (!standing->holds)
        return;
    standing->hold_count = engine_tenant_holds(engine, standing->name, standing->holds, max);
    for (size_t i = 0; i < standing->hold_count; i++) {
        standing->holds[i].tenant = keep_text(call, standing->holds[i].tenant);
        standing->holds[i].hold.reason = keep_text(call, standing->holds[i].hold.reason);
    }
    if (call->tenant_bound.data)
        standing->hold_count = holds_confine(standing->holds, standing->hold_count, call->tenant_bound);
}

static void ask_engine(struct call *call, struct engine *engine)
{
    for (size_t i = 0; i < call->standings.lane_count; i++) {
        struct lane_hold hold = engine_lane_hold(engine, call->standings.lanes[i].lane);
        hold.reason = keep_text(call, hold.reason);
        call->standings.lanes[i].hold = hold;
    }
    for (size_t i = 0; i < call->standings.count; i++) {
        struct destination_status status = engine_destination(engine, call->standings.destinations[i].name);
        status.pause_reason = keep_text(call, status.pause_reason);
        status.fallback_reason = keep_text(call, status.fallback_reason);
        if (call->tenant_bound.data)
            status_confine(&status);
        call->standings.destinations[i].status = status;
    }
    if (call->standings.count == 1)
        ask_tenants(call, engine, &call->standings.destinations[0]);
    call->standings.figures = engine_figures(engine);
    call_return(call);
}

void call_standings(struct call *call, void (*then)(struct call *call))
{
    call_engine(call, ask_engine, then);
}
