#include "api/call/confined.h"

#include "engine/status.h"

void status_confine(struct destination_status *status)
{
    *status = (struct destination_status){
        .known = status->known,
        .mode = status->mode,
        .mode_behind = status->mode_behind,
        .mode_since = status->mode_since,
        .cause = status->cause, /* a word of ours: whether somebody must act */
        .held_by = status->held_by,
        .held_since = status->held_since,
        .held_until = status->held_until,
        .look_at = status->look_at,
        .limit.rises_at = INSTANT_NONE,
        .next_since = INSTANT_NONE,
        .second = { .wanted = status->second.wanted, .held = status->second.held, .look_at = status->second.look_at },
        .confined = true,
    };
}

size_t holds_confine(struct tenant_hold *holds, size_t count, struct slice tenant)
{
    size_t saved = 0;
    for (size_t i = 0; i < count; i++)
        if (slice_equal(slice_from(holds[i].tenant), tenant))
            holds[saved++] = holds[i];
    return saved;
}

/* The tenant as if it were alone; the time is its own job's. */
void place_confine(struct queue_place *place, size_t ahead)
{
    *place = (struct queue_place){
        .known = place->known,
        .tenants = 1,
        .before = (int64_t)ahead,
        .tenant_until = place->tenant_until,
        .asked_until = place->asked_until,
        .dead_full = place->dead_full,
        .share_used = place->share_used,
        .at = place->at,
    };
}
