#include "core/decision/decide.h"

#include "core/decision/backoff.h"

#include <assert.h>

/* What each class asks for when nothing else (limits, doubt, duplicates) stands against it. */
static const enum verdict treatment[OUTCOME_COUNT] = {
    [OUTCOME_DELIVERED] = VERDICT_COMPLETE, [OUTCOME_ACCEPTED] = VERDICT_POLL,    [OUTCOME_TRANSIENT] = VERDICT_RETRY,
    [OUTCOME_THROTTLED] = VERDICT_RETRY,    [OUTCOME_WAIT] = VERDICT_HOLD,        [OUTCOME_IN_DOUBT] = VERDICT_RETRY,
    [OUTCOME_DUPLICATE] = VERDICT_VERIFY,   [OUTCOME_PERMANENT] = VERDICT_PERMANENT, [OUTCOME_BLOCKED] = VERDICT_BLOCK,
    [OUTCOME_PARTIAL] = VERDICT_SPLIT,
};

static const struct { const char *name; bool goes_on; } verdicts[VERDICT_COUNT] = {
    [VERDICT_COMPLETE] = { "complete", false }, [VERDICT_POLL] = { "poll", true },
    [VERDICT_RETRY] = { "retry", true },        [VERDICT_HOLD] = { "hold", true },
    [VERDICT_VERIFY] = { "verify", true },      [VERDICT_BLOCK] = { "block", false },
    [VERDICT_SPLIT] = { "split", false },       [VERDICT_PERMANENT] = { "dead", false },
    [VERDICT_EXHAUSTED] = { "dead", false },    [VERDICT_EXPIRED] = { "dead", false },
    [VERDICT_PARK] = { "park", false },
};

const char *verdict_name(enum verdict verdict)
{
    assert(verdict < VERDICT_COUNT);
    return verdicts[verdict].name;
}

bool verdict_goes_on(enum verdict verdict)
{
    assert(verdict < VERDICT_COUNT);
    return verdicts[verdict].goes_on;
}

bool decision_resends(const struct decision *decision)
{
    assert(!verdict_goes_on(decision->verdict) || decision->next_at != INSTANT_NONE);
    return decision->next_at != INSTANT_NONE && decision->verdict != VERDICT_POLL;
}

static enum decide_problem request_check(const struct policy *policy, const struct decide_request *request)
{
    assert(policy && request);
    if (policy_id_problem(policy, request->id))
        return PROBLEM_ID;
    if (slice_is_blank(request->text))
        return PROBLEM_ERROR_MESSAGE;
    if (request->retry_count < 0)
        return PROBLEM_RETRY_COUNT;
    return PROBLEM_NONE;
}

static bool is_good(enum outcome outcome)
{
    return outcome == OUTCOME_DELIVERED || outcome == OUTCOME_ACCEPTED;
}

/* Its code says that all is well and is not to be believed: what is left is the text, without the status in it. */
static void judge_unconfirmed(const struct policy *policy, struct slice text, struct decision *decision)
{
    assert(policy->classifier);
    struct classification found = classify(policy->classifier, (struct evidence){ SLICE("insist:unconfirmed"), text });
    bool said = found.outcome != OUTCOME_NONE && !is_good(found.outcome);
    decision->known = true;
    decision->outcome = said ? found.outcome : OUTCOME_IN_DOUBT;
    decision->rule = said ? found.rule : SLICE("");
}

static void judge(const struct policy *policy, const struct decide_request *request, struct decision *decision)
{
    if (request->outcome != OUTCOME_NONE) {
        decision->outcome = request->outcome;
        decision->known = true;
        return;
    }
    struct classification found = classify(policy->classifier, (struct evidence){ request->code, request->text });
    decision->known = found.outcome != OUTCOME_NONE;
    decision->outcome = decision->known ? found.outcome : policy->unknown;
    decision->rule = found.rule;
    if (request->unconfirmed && (is_good(decision->outcome) || !decision->known))
        judge_unconfirmed(policy, request->text, decision);
}

/* The verdict of the class, before the limits are looked at. */
static enum verdict verdict_of_class(const struct policy *policy, const struct decide_request *request, enum outcome outcome)
{
    assert(outcome > OUTCOME_NONE && outcome < OUTCOME_COUNT);
    static const enum verdict doubt[] = {
        [DOUBT_RESEND] = VERDICT_RETRY, [DOUBT_VERIFY] = VERDICT_VERIFY, [DOUBT_PARK] = VERDICT_PARK,
    };
    if (outcome == OUTCOME_IN_DOUBT)
        return doubt[policy->in_doubt];
    if (outcome == OUTCOME_DUPLICATE && !policy->can_verify)
        return request->doubted ? VERDICT_COMPLETE : VERDICT_PERMANENT; /* the doubtful send had arrived */
    if (outcome == OUTCOME_THROTTLED && !policy->retry.throttled_spends)
        return VERDICT_HOLD;
    return treatment[outcome];
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t delay_of(const struct policy *policy, const struct decide_request *request, const struct decision *decision)
{
    assert(request->retry_count >= 0 && request->waits >= 0);
    if (decision->verdict == VERDICT_VERIFY && policy->verify_after_ms > 0)
        return policy->verify_after_ms;
    if (decision->verdict == VERDICT_POLL && policy->poll_every_ms > 0)
        return policy->poll_every_ms;

    const struct retry_policy *retry = &policy->retry;
    int64_t waits = decision->verdict == VERDICT_HOLD ? request->waits : 0;
    int64_t next = request->retry_count < INT64_MAX - waits ? request->retry_count + waits + 1 : INT64_MAX;
    int64_t delay = backoff_ms(retry, request->seed, request->id, next, request->priority);
    if (request->retry_after_ms > 0)
        delay = larger(delay, backoff_after_ms(retry, request->seed, request->id, next, request->retry_after_ms));
    /* The policy's own least wait stands above the bound on what destinations ask. */
    if (decision->outcome == OUTCOME_THROTTLED && delay < retry->throttle_min_ms)
        delay = backoff_least_ms(retry, request->seed, request->id, next, retry->throttle_min_ms);
    return delay;
}

static void stop(struct decision *decision, enum verdict verdict, enum decide_reason reason)
{
    assert(verdict < VERDICT_COUNT && !verdicts[verdict].goes_on);
    decision->verdict = verdict;
    decision->reason = reason;
    decision->delay_ms = 0;
    decision->next_at = INSTANT_NONE;
}

static void schedule(const struct policy *policy, const struct decide_request *request, struct decision *decision)
{
    assert(verdict_goes_on(decision->verdict));
    bool spends = decision->verdict == VERDICT_RETRY;
    decision->delay_ms = delay_of(policy, request, decision);
    decision->next_at = instant_add(request->now, decision->delay_ms);
    if (decision->next_at <= request->now) { /* the calendar ends here: no later time can be named */
        stop(decision, VERDICT_EXPIRED, REASON_DEADLINE);
        return;
    }
    decision->delay_ms = decision->next_at - request->now;

    int64_t elapsed_max = policy->retry.elapsed_max_ms;
    if (spends && elapsed_max > 0 && request->first_at != INSTANT_NONE &&
        decision->next_at > instant_add(request->first_at, elapsed_max)) {
        stop(decision, VERDICT_EXHAUSTED, REASON_ELAPSED);
        return;
    }
    if (request->deadline != INSTANT_NONE && decision->next_at > request->deadline) {
        stop(decision, VERDICT_EXPIRED, REASON_DEADLINE);
        return;
    }
    if (spends)
        decision->retry_count++;
}

enum decide_problem decide(const struct policy *policy, const struct decide_request *request, struct decision *ret_decision)
{
    enum decide_problem problem = request_check(policy, request);
    if (problem != PROBLEM_NONE)
        return problem;

    struct decision decision = { .retry_count = request->retry_count, .next_at = INSTANT_NONE };
    judge(policy, request, &decision);
    enum outcome treated_as = request->treated_as != OUTCOME_NONE ? request->treated_as : decision.outcome;
    decision.verdict = verdict_of_class(policy, request, treated_as);
    bool limited = decision.verdict == VERDICT_RETRY || decision.verdict == VERDICT_PERMANENT;
    if (limited && request->retry_count >= policy->retry.retries_max)
        stop(&decision, VERDICT_EXHAUSTED, REASON_RETRIES);
    else if (verdict_goes_on(decision.verdict))
        schedule(policy, request, &decision);
    *ret_decision = decision;
    return PROBLEM_NONE;
}
