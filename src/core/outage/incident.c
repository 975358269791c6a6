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
    return (enum mode)slice_index(name, mode_names, MODE_COUNT);
}

const char *cause_name(enum cause cause)
{
    assert(cause < CAUSE_COUNT);
    return cause_names[cause];
}

enum cause cause_from_name(struct slice name)
{
    size_t i = slice_index(name, cause_names, CAUSE_COUNT);
    return i < CAUSE_COUNT ? (enum cause)i : CAUSE_NONE;
}
