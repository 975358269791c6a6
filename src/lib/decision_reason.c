#include "lib/decision_reason.h"

#include "base/units.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

/* What the retries are spent on, as the subject of "..., retry 2 of 5". */
static const char *retry_subject(const struct decision *decision)
{
    if (!decision->known)
        return "Unknown error";
    switch (decision->outcome) {
    case OUTCOME_THROTTLED:
        return "Too many requests";
    case OUTCOME_IN_DOUBT:
        return "Answer lost";
    default:
        return "Transient error";
    }
}

static const char *stop_reason(const struct decision *decision)
{
    bool duplicate = decision->outcome == OUTCOME_DUPLICATE;
    switch (decision->verdict) {
    case VERDICT_COMPLETE:
        return duplicate ? "Arrived with an earlier attempt" : "Delivered";
    case VERDICT_BLOCK:
        return "Refused, or nothing can be sent as it is set; hold it until that is mended, no retry is spent";
    case VERDICT_SPLIT:
        return "Taken in part, treat each part by its own outcome";
    case VERDICT_EXPIRED:
        return "Deadline exceeded, the next try would come after it";
    case VERDICT_PARK:
        return "Answer lost, a person must find out whether it arrived";
    default:
        if (!decision->known)
            return "Unknown error, which this policy does not retry";
        return duplicate ? "Destination has it already, not retried" : "Permanent error, not retried";
    }
}

/* The policy's own words; what stands in braces is filled in. At most a template's bytes and two numbers: it fits. */
static int own_words(const char *words, int64_t count, int64_t max, char text[DECISION_REASON_BYTES_MAX])
{
    size_t len = 0;
    for (struct slice rest = slice_from(words); rest.len > 0 && len + 1 < DECISION_REASON_BYTES_MAX;) {
        bool n = slice_has_prefix(rest, SLICE("{n}")), of = slice_has_prefix(rest, SLICE("{max}"));
        if (n || of)
            len += (size_t)snprintf(text + len, DECISION_REASON_BYTES_MAX - len, "%" PRId64, n ? count : max);
        else
            text[len++] = rest.data[0];
        rest = slice_from_offset(rest, n ? 3 : of ? 5 : 1);
    }
    return len < DECISION_REASON_BYTES_MAX ? (int)len : 0;
}

struct slice decision_reason(const struct policy *policy, const struct decision *decision,
                             char text[DECISION_REASON_BYTES_MAX])
{
    int64_t retries_max = policy->retry.retries_max;
    char limit[UNITS_TEXT_BYTES];
    bool throttled = decision->outcome == OUTCOME_THROTTLED;
    int len;
    switch (decision->verdict) {
    case VERDICT_RETRY:
        len = policy->retry_reason ? own_words(policy->retry_reason, decision->retry_count, retries_max, text) : 0;
        if (len == 0)
            len = snprintf(text, DECISION_REASON_BYTES_MAX, "%s, retry %" PRId64 " of %" PRId64, retry_subject(decision),
                       decision->retry_count, retries_max);
        break;
    case VERDICT_HOLD:
        len = snprintf(text, DECISION_REASON_BYTES_MAX,
                       "%s, waits without spending a retry, %" PRId64 " of %" PRId64 " used",
                       throttled ? "Too many requests" : "Destination unavailable", decision->retry_count, retries_max);
        break;
    case VERDICT_BLOCK:
        if (decision->next_at == INSTANT_NONE)
            return slice_from(stop_reason(decision));
        len = snprintf(text, DECISION_REASON_BYTES_MAX,
                       "Refused, held and sent again without spending a retry, %" PRId64 " of %" PRId64 " used",
                       decision->retry_count, retries_max);
        break;
    case VERDICT_VERIFY:
        len = snprintf(text, DECISION_REASON_BYTES_MAX, "%s, verify before sending again",
                       decision->outcome == OUTCOME_DUPLICATE ? "Destination may have it already" : "Answer lost");
        break;
    case VERDICT_POLL:
        len = snprintf(text, DECISION_REASON_BYTES_MAX, "Accepted and not judged yet, poll for the result");
        break;
    case VERDICT_EXHAUSTED:
        duration_format(policy->retry.elapsed_max_ms, limit);
        if (decision->reason == REASON_ELAPSED)
            len = snprintf(text, DECISION_REASON_BYTES_MAX,
                           "Maximum time exceeded, the next retry would come more than %s after the first attempt",
                           limit);
        else
            len = snprintf(text, DECISION_REASON_BYTES_MAX, "Maximum retries exceeded, %" PRId64 " allowed", retries_max);
        break;
    default:
        return slice_from(stop_reason(decision));
    }
    assert(len > 0 && len < DECISION_REASON_BYTES_MAX);
    return (struct slice){ text, (size_t)len };
}
