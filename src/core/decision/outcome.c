#include "core/decision/outcome.h"

#include <assert.h>

static const struct { const char *name; bool final; } outcomes[OUTCOME_COUNT] = {
    [OUTCOME_NONE] = { "none", false },           [OUTCOME_DELIVERED] = { "delivered", false },
    [OUTCOME_ACCEPTED] = { "accepted", false },   [OUTCOME_TRANSIENT] = { "transient", false },
    [OUTCOME_THROTTLED] = { "throttled", false }, [OUTCOME_WAIT] = { "wait", false },
    [OUTCOME_IN_DOUBT] = { "in_doubt", false },   [OUTCOME_DUPLICATE] = { "duplicate", true },
    [OUTCOME_PERMANENT] = { "permanent", true },  [OUTCOME_BLOCKED] = { "blocked", true },
    [OUTCOME_PARTIAL] = { "partial", false },
};

const char *outcome_name(enum outcome outcome)
{
    assert(outcome >= OUTCOME_NONE && outcome < OUTCOME_COUNT);
    return outcomes[outcome].name;
}

const char *outcome_label(enum outcome outcome, bool known)
{
    assert(outcome > OUTCOME_NONE && outcome < OUTCOME_COUNT);
    if (!known)
        return "UNKNOWN";
    return outcomes[outcome].final ? "PERMANENT" : "TRANSIENT";
}
