/*
 * The second address of a destination when it refuses one job after another: it is held for itself, and looked at as the
 * first is. That has other credentials, and goes on.
 */
#include "base/log.h"
#include "engine/loop.h"
#include "engine/outage/fallback.h"
#include "engine/saved/gate_state.h"
#include "engine/saved/json.h"

#include <assert.h>

void fallback_held(struct dest *dest, struct slice reason, int64_t only_lane, instant now)
{
    assert(block_holds(&dest->fallback.block));
    hold_reason_set(&dest->second.reason, reason);
    dest->second.lane = only_lane;
    dest_changed(dest, (struct dest_change){ .change = "fallback_blocked", .at = now });
    log_event(LOG_ERROR, "fallback_blocked", FIELD_CSTR("destination", dest->name),
              FIELD_CSTR("reason", dest->second.reason ? dest->second.reason : ""),
              FIELD_INSTANT("look_at", dest->fallback.block.saved.look_at));
}

void fallback_ended(struct dest *dest, const char *change, instant now)
{
    assert(!block_holds(&dest->fallback.block));
    hold_reason_set(&dest->second.reason, SLICE(""));
    dest->second.lane = 0;
    dest_changed(dest, (struct dest_change){ .change = change, .at = now });
    log_event(LOG_INFO, change, FIELD_CSTR("destination", dest->name));
}

void fallback_resume(struct engine *engine, struct dest *dest)
{
    bool held = block_holds(&dest->fallback.block);
    block_init(&dest->fallback.block);
    if (!held)
        return;
    fallback_ended(dest, "fallback_resumed", engine_now(engine));
    engine_wake(engine);
}

void fallback_state_write(struct json_writer *json, const struct dest *dest)
{
    if (!block_holds(&dest->fallback.block))
        return;
    json_member_text(json, "fallback_blocked", dest->second.reason ? dest->second.reason : "");
    json_member_object(json, "fallback");
    block_state_write(json, &dest->fallback.block.saved);
    json_object_end(json);
}

/* Older versions did not look: it is looked now. */
void fallback_state_read(struct dest *dest, const json_t *root, instant now)
{
    struct block_saved saved = block_state_read(json_object_get(root, "fallback"), now);
    if (!json_is_string(json_object_get(root, "fallback_blocked")))
        return;
    if (!saved.held)
        saved = (struct block_saved){ .held = true, .since = now, .look_at = now, .needed = BLOCK_NEEDED };
    block_restore(&dest->fallback.block, &saved);
    hold_reason_set(&dest->second.reason, saved_text(root, "fallback_blocked"));
}
