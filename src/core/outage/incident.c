#include "core/outage/incident.h"

#include <assert.h>

static const char *const mode_names[MODE_COUNT] = {
    [MODE_NORMAL] = "normal",
    [MODE_CONTINGENCY] = "contingency",
    [MODE_RECOVERING] = "recovering",
};

static const char *const cause_names[CAUSE_COUNT] = {
    [CAUSE_HEALTH] = "health",     [CAUSE_SIGNAL] = "signal",   [CAUSE_BREAKER] = "breaker",
    [CAUSE_EXHAUSTED] = "exhausted", [CAUSE_MAINTENANCE] = "maintenance", [CAUSE_OPERATOR] = "operator",
    [CAUSE_RELAPSE] = "relapse",   [CAUSE_CHECKED] = "checked", [CAUSE_STABLE] = "stable",
    [CAUSE_CONFIGURATION] = "configuration", [CAUSE_REMOVED] = "removed",
};

int64_t incident_recovery_ms(const struct incident *incident)
{
    assert(incident->relapses >= 0 && incident->curve_count <= RAMP_CURVE_MAX);
    if (incident->restored_at == INSTANT_NONE || incident->restored_at < incident->first_sign_at)
        return incident->restored_at == INSTANT_NONE ? -1 : 0; /* 0: the clock was set back in between */
    return incident->restored_at - incident->first_sign_at;
}

const char *mode_name(enum mode mode)
{
    assert(mode < MODE_COUNT);
    return mode_names[mode];
}

enum mode mode_from_name(struct slice name)
{
    int i = 0;
    while (i < MODE_COUNT && !slice_equal(name, slice_from(mode_names[i])))
        i++;
    return (enum mode)i;
}

const char *cause_name(enum cause cause)
{
    assert(cause < CAUSE_COUNT);
    return cause_names[cause];
}

enum cause cause_from_name(struct slice name)
{
    for (int i = CAUSE_NONE + 1; i < CAUSE_COUNT; i++)
        if (slice_equal(name, slice_from(cause_names[i])))
            return (enum cause)i;
    return CAUSE_NONE;
}
