#include "api/call/shared.h"

#include "base/log.h"
#include "store/inspect.h"

#include <event2/event.h>

enum { DISK_CHECK_EVERY_MS = 1000 };

instant api_now(const struct api *api)
{
    return api->settings.now ? api->settings.now(api->settings.context) : clock_now();
}

void api_may_end(struct api *api)
{
    if (api->stopping && api->calls == 0 && !api->pulse.out)
        event_base_loopbreak(api->http.loop);
}

static void check_disk(struct api *api)
{
    instant now = api_now(api);
    if (now < api->disk.checked_at + DISK_CHECK_EVERY_MS && now >= api->disk.checked_at)
        return;
    api->disk.checked_at = now;
    int64_t free_bytes = store_free_bytes(api->settings.store);
    if (free_bytes < 0)
        return; /* the store itself will say what is wrong with it */
    bool low = free_bytes < api->config->disk_free_bytes;
    if (low != api->disk.low)
        log_event(low ? LOG_ERROR : LOG_INFO, low ? "disk_low" : "disk_ok", FIELD_INT("free_bytes", free_bytes));
    api->disk.low = low;
}

bool api_disk_is_low(struct api *api)
{
    check_disk(api);
    return api->disk.low;
}

bool api_accepts(struct call *call)
{
    struct api *api = call->api;
    if (api->draining) {
        api->measures.refused[REFUSED_STOPPING]++;
        return call_problem(call, 503, "stopping", "the daemon is stopping; try again");
    }
    if (api_disk_is_low(api)) {
        api->measures.refused[REFUSED_DISK_FULL]++;
        return call_problem(call, 503, "disk_full",
                            "the disk has less than limits.disk_free; nothing was stored, free some space");
    }
    return true;
}
