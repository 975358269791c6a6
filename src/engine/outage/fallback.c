/*
 * The second address of a destination when it refuses one job after another: it is paused for itself. The first address
 * has other credentials, and goes on.
 */
#include "base/log.h"
#include "engine/loop.h"
#include "engine/outage/fallback.h"
#include "engine/saved/json.h"

static void take_reason(struct dest *dest, struct slice reason)
{
    hold_reason_set(&dest->fallback_reason, reason);
}

void fallback_block(struct engine *engine, struct dest *dest, struct slice reason)
{
    if (dest->fallback.paused)
        return;
    take_reason(dest, reason);
    dest->fallback.paused = true;
    dest_changed(dest, (struct dest_change){ .change = "fallback_blocked", .at = engine_now(engine) });
    log_event(LOG_ERROR, "fallback_blocked", FIELD_CSTR("destination", dest->name),
              FIELD_CSTR("reason", dest->fallback_reason ? dest->fallback_reason : ""));
    engine_wake(engine);
}

void fallback_resume(struct engine *engine, struct dest *dest)
{
    if (!dest->fallback.paused)
        return;
    dest->fallback.paused = false;
    block_init(&dest->fallback.block);
    take_reason(dest, SLICE(""));
    dest_changed(dest, (struct dest_change){ .change = "fallback_resumed", .at = engine_now(engine) });
    log_event(LOG_INFO, "fallback_resumed", FIELD_CSTR("destination", dest->name));
    engine_wake(engine);
}

void fallback_state_write(struct json_writer *json, const struct dest *dest)
{
    if (dest->fallback.paused)
        json_member_text(json, "fallback_blocked", dest->fallback_reason ? dest->fallback_reason : "");
}

void fallback_state_read(struct dest *dest, const json_t *root)
{
    if (!json_is_string(json_object_get(root, "fallback_blocked")))
        return;
    dest->fallback.paused = true;
    take_reason(dest, saved_text(root, "fallback_blocked"));
}
