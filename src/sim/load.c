#include "sim/load.h"

#include "sim/draw.h"

#include <assert.h>

static double share(const struct load_settings *load, enum draw_purpose purpose, int64_t number)
{
    return draw_share((struct draw){ load->seed, purpose, number, 0 });
}

static int64_t tenant_of(const struct load_settings *load, int64_t number)
{
    double drawn = share(load, DRAW_TENANT, number);
    if (load->big_share <= 0 || load->tenants == 1)
        return (int64_t)(drawn * (double)load->tenants);
    if (drawn < load->big_share)
        return 0;
    int64_t other = (int64_t)((drawn - load->big_share) / (1 - load->big_share) * (double)(load->tenants - 1));
    return 1 + (other < load->tenants - 1 ? other : load->tenants - 2);
}

struct arrival load_arrival(const struct load_settings *load, int64_t number)
{
    assert(number >= 0 && number < load->jobs && load->tenants > 0);
    double slot_ms = (double)load->for_ms / (double)load->jobs;
    double at = ((double)number + share(load, DRAW_ARRIVAL, number)) * slot_ms;
    double urgency = share(load, DRAW_PRIORITY, number);
    return (struct arrival){
        .at_ms = at < (double)load->for_ms ? (int64_t)at : load->for_ms - 1,
        .tenant = tenant_of(load, number),
        .priority = urgency < load->critical                ? PRIORITY_CRITICAL
                    : urgency < load->critical + load->high ? PRIORITY_HIGH
                                                            : PRIORITY_NORMAL,
    };
}
