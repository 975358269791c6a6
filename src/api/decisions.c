#include "api/decisions.h"

#include "lib/decision_json.h"

#include <stdlib.h>

struct decisions {
    struct policy_set policies;
};

struct decisions *decisions_new(struct config *config)
{
    struct decisions *decisions = calloc(1, sizeof *decisions);
    if (decisions)
        policy_set_init(&decisions->policies, config);
    return decisions;
}

void decisions_free(struct decisions *decisions)
{
    if (!decisions)
        return;
    policy_set_release(&decisions->policies);
    free(decisions);
}

bool decisions_answer(struct decisions *decisions, struct slice question, instant now, struct buffer *out)
{
    const struct decider decider = { .policies = &decisions->policies, .now = now };
    return decision_json_answer(&decider, question, out).problem == QUESTION_OK;
}

void decisions_write(const struct policy *policy, struct slice error, const struct decision *decision, struct buffer *out)
{
    decision_json_write(policy, error, decision, out);
}
