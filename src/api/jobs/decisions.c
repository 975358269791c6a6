#include "api/jobs/decisions.h"

#include "base/clock.h"
#include "base/json.h"
#include "core/errors/redact.h"
#include "lib/decision_json.h"
#include "lib/decision_reason.h"

#include <stdlib.h>

enum { EVENT_ERROR_BYTES_MAX = 512 }; /* as in the events of attempts */

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

/* S0-093, S1-024: the documents' record, by their names. */
static void write_event(const struct policy *policy, const struct decide_request *request, const struct decision *decision,
                        const struct decided *decided)
{
    char reason[DECISION_REASON_BYTES_MAX];
    const char *code = decision_error_code(decision->verdict);
    struct json_writer json = json_writer(decided->event);
    struct buffer masked = buffer_up_to(EVENT_ERROR_BYTES_MAX);
    redact(&masked, request->text, EVENT_ERROR_BYTES_MAX);
    json_object_begin(&json);
    json_member_text(&json, "note", "decision");
    json_member_instant(&json, "timestamp", request->now);
    json_member_text(&json, "action", verdict_name(decision->verdict));
    json_member_text(&json, "policy", policy->name);
    json_member_string(&json, "claimId", request->id);
    json_member_string(&json, "errorMessage", buffer_slice(&masked));
    json_member_int(&json, "retryCount", decision->retry_count);
    json_member_int(&json, "maxRetries", policy->retry.retries_max);
    json_member_text(&json, "errorClassification", outcome_label(decision->outcome, decision->known));
    json_member_bool(&json, "shouldRetry", decision_resends(decision));
    json_member_string(&json, "retryReason", decision_reason(policy, decision, reason));
    if (code)
        json_member_text(&json, "errorCode", code);
    if (decision->next_at != INSTANT_NONE)
        json_member_int(&json, "backoffMinutes", (decision->delay_ms + MINUTE_MS / 2) / MINUTE_MS);
    json_member_instant(&json, "nextRetryTime", decision->next_at);
    json_member_int(&json, "duration_ms", (clock_ticks_ns() - decided->began_ns) / 1000000);
    json_member_given(&json, "by", decided->by);
    json_object_end(&json);
    buffer_release(&masked);
}

static int64_t stored_count(void *context, struct slice tenant, struct slice id)
{
    const struct decided *decided = context;
    return decided->retry_count ? decided->retry_count(decided->context, tenant, id) : -1;
}

static void note(void *context, const struct policy *policy, const struct decide_request *request,
                 const struct decision *decision, bool record)
{
    struct decided *decided = context;
    decided->policy = policy->name;
    decided->decision = *decision;
    if (record)
        write_event(policy, request, decision, decided);
}

bool decisions_answer(struct decisions *decisions, struct slice question, instant now, struct decided *decided,
                      struct buffer *out)
{
    const struct decider_store store = { .context = decided, .retry_count = stored_count, .decided = note };
    const struct decider decider = { .policies = &decisions->policies, .now = now, .store = &store };
    decided->began_ns = clock_ticks_ns();
    return decision_json_answer(&decider, question, out).problem == QUESTION_OK;
}
