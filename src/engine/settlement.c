#include "engine/settlement.h"

#include "base/json.h"
#include "core/outage/block.h"
#include "core/errors/redact.h"
#include "core/outage/criterion.h"
#include "lib/decision_reason.h"

#include <assert.h>
#include <string.h>

enum {
    EVENT_ERROR_BYTES_MAX = 512,
    EVENT_CODE_BYTES_MAX = 256, /* of a code or a rule: however much a destination answers, the event must fit */
};

/* What the attempt saw; never blank. */
static struct slice error_text(const struct answer *answer)
{
    return slice_is_blank(answer->text) ? SLICE("UNKNOWN_ERROR: the transport gave no text") : answer->text;
}

/* The documents' codes of a dead letter: MAX_RETRIES_EXCEEDED, PERMANENT_ERROR, EXPIRED, IN_DOUBT, PARTIAL. */
static const char *dead_code_of(const struct decision *decision)
{
    switch (decision->verdict) {
    case VERDICT_EXHAUSTED:
        return "MAX_RETRIES_EXCEEDED";
    case VERDICT_EXPIRED:
        return "EXPIRED";
    case VERDICT_PARK:
        return "IN_DOUBT";
    case VERDICT_SPLIT:
        return "PARTIAL";
    default:
    assert(decision->verdict == VERDICT_PERMANENT);
        return "PERMANENT_ERROR";
    }
}

/* A wait of fixed length, for questions about a job that was sent. */
static struct decision ask_again(const struct settlement_input *input, enum verdict verdict, int64_t delay_ms)
{
    assert(delay_ms > 0 && verdict != VERDICT_COMPLETE);
    return (struct decision){
        .verdict = verdict,
        .outcome = verdict == VERDICT_POLL ? OUTCOME_ACCEPTED : OUTCOME_IN_DOUBT,
        .known = true,
        .retry_count = input->job->retry_count,
        .delay_ms = delay_ms,
        .next_at = instant_add(input->now, delay_ms),
    };
}

static struct decision final_decision(const struct settlement_input *input, enum verdict verdict, enum outcome outcome)
{
    return (struct decision){ .verdict = verdict, .outcome = outcome, .known = true,
                              .retry_count = input->job->retry_count, .next_at = INSTANT_NONE };
}

static bool looks(const struct settlement_input *input)
{
    return input->outage && outage_lasts(input->outage);
}

/* How many in a row before this one were refused, or else were asked to wait. */
static int64_t in_a_row(const struct job *job, bool refused)
{
    assert(job->step_count >= 0);
    bool was_refused = job->last_class == OUTCOME_BLOCKED;
    return job->step == STEP_SEND && was_refused == refused ? job->step_count : 0;
}

static struct decision decide_on(const struct settlement_input *input, struct slice code, struct slice text,
                                 enum outcome outcome, enum outcome treated_as)
{
    const struct job *job = input->job;
    struct decision decision;
    struct decide_request request = {
        .id = job->id,
        .code = code,
        .text = slice_is_blank(text) ? SLICE("UNKNOWN_ERROR") : text,
        .outcome = outcome,
        .treated_as = treated_as,
        .unconfirmed = outcome == OUTCOME_NONE && input->answer->unconfirmed,
        .doubted = job->doubted,
        .retry_count = job->retry_count,
        .waits = looks(input) || treated_as != OUTCOME_NONE ? 0 : in_a_row(job, false),
        .priority = job->priority,
        .retry_after_ms = input->answer->retry_after_ms,
        .now = input->now,
        .first_at = job->first_at != INSTANT_NONE ? instant_add(job->first_at, input->held_ms) : INSTANT_NONE,
        .deadline = job->deadline,
        .seed = input->seed + (uint64_t)job->generation, /* a redrive draws anew */
    };
    /* An id that was accepted once stays acceptable, even if the policy's pattern changed since. */
    struct policy policy = input->destination->policy;
    policy.id_pattern = NULL;
    if (input->backoff_factor > 0)
        policy.retry.delay_factor[job->priority] *= input->backoff_factor;
    enum decide_problem problem = decide(&policy, &request, &decision);
    assert(problem == PROBLEM_NONE);
    (void)problem;
    return decision;
}

static bool may_pass(enum outcome outcome)
{
    return outcome == OUTCOME_TRANSIENT || outcome == OUTCOME_THROTTLED || outcome == OUTCOME_WAIT ||
           outcome == OUTCOME_IN_DOUBT;
}

/* Whether a failure of that kind is the outage's. */
static bool is_spared(const struct settlement_input *input, enum outcome outcome)
{
    bool away = criterion_away(outcome, input->answer->code);
    return input->spared || (looks(input) && outage_spares(input->outage, input->job->look_failed_at, away));
}

/* After STEP_VERIFY or STEP_POLL. */
static struct decision decide_query(const struct settlement_input *input)
{
    assert(input->answer->attempted && (input->job->step == STEP_POLL || input->job->step == STEP_VERIFY));
    bool poll = input->job->step == STEP_POLL;
    const struct query_config *query = poll ? &input->destination->poll : &input->destination->verify;
    enum verdict again = poll ? VERDICT_POLL : VERDICT_VERIFY;
    switch (input->answer->query) {
    case QUERY_DELIVERED:
        return final_decision(input, VERDICT_COMPLETE, OUTCOME_DELIVERED);
    case QUERY_REJECTED:
        return final_decision(input, VERDICT_PERMANENT, OUTCOME_PERMANENT);
    case QUERY_ABSENT:
        return decide_on(input, SLICE(""), SLICE("the destination says that it never arrived"), OUTCOME_TRANSIENT,
                         OUTCOME_NONE);
    case QUERY_PENDING:
    case QUERY_UNCLEAR:
        break;
    }
    if (!is_spared(input, OUTCOME_IN_DOUBT) && input->job->step_count + 1 >= query->times)
        return final_decision(input, VERDICT_PARK, OUTCOME_IN_DOUBT);
    return ask_again(input, again, query->every_ms > 0 ? query->every_ms : MINUTE_MS);
}

static struct decision decide_as(const struct settlement_input *input, enum outcome treated_as)
{
    const struct answer *answer = input->answer;
    return decide_on(input, answer->code, answer->text, answer->outcome, treated_as);
}

static struct decision decide_send(const struct settlement_input *input)
{
    assert(input->answer->attempted && input->job->step == STEP_SEND);
    struct decision decision = decide_as(input, OUTCOME_NONE);
    bool spends = decision.verdict == VERDICT_RETRY || decision.verdict == VERDICT_EXHAUSTED;
    bool spared = may_pass(decision.outcome) && is_spared(input, decision.outcome);
    if (spared && spends)
        return decide_as(input, OUTCOME_WAIT);
    bool own = looks(input) || (input->served && decision.outcome == OUTCOME_WAIT);
    if (!spared && own && decision.verdict == VERDICT_HOLD)
        return decide_as(input, OUTCOME_TRANSIENT); /* others go well: it is the job that is asked to wait */
    if (decision.verdict == VERDICT_POLL && !input->destination->poll.url)
        return final_decision(input, VERDICT_COMPLETE, OUTCOME_ACCEPTED); /* nobody to ask: acceptance is all there is */
    return decision;
}

/*
 * Verify and poll that failed to be asked at all, and sends that never left, are no attempt of anybody's; one that must
 * never leave is no attempt either.
 */
static struct decision decide_unattempted(const struct settlement_input *input)
{
    assert(!input->answer->attempted);
    if (input->job->damaged && input->answer->outcome == OUTCOME_PERMANENT) /* of others that never left it says nothing */
        return final_decision(input, VERDICT_PERMANENT, OUTCOME_PERMANENT);
    struct decision decision = ask_again(input, VERDICT_HOLD, SECOND_MS);
    decision.outcome = OUTCOME_WAIT;
    return decision;
}

static bool waits_by_policy(const struct settlement_input *input, enum verdict verdict)
{
    return input->answer->attempted && (verdict == VERDICT_RETRY || verdict == VERDICT_HOLD);
}

static enum job_event event_of(enum verdict verdict)
{
    assert(verdict < VERDICT_COUNT);
    static const enum job_event events[VERDICT_COUNT] = {
        [VERDICT_COMPLETE] = EVENT_DELIVER,  [VERDICT_POLL] = EVENT_RETRY,        [VERDICT_RETRY] = EVENT_RETRY,
        [VERDICT_HOLD] = EVENT_RELEASE,      [VERDICT_VERIFY] = EVENT_RETRY,      [VERDICT_BLOCK] = EVENT_RELEASE,
        [VERDICT_SPLIT] = EVENT_GIVE_UP,     [VERDICT_PERMANENT] = EVENT_GIVE_UP, [VERDICT_EXHAUSTED] = EVENT_GIVE_UP,
        [VERDICT_EXPIRED] = EVENT_EXPIRE,    [VERDICT_PARK] = EVENT_GIVE_UP,
    };
    return events[verdict];
}

static void event_data(const struct settlement_input *input, const struct decision *decision, struct buffer *out)
{
    const struct job *job = input->job;
    const struct answer *answer = input->answer;
    bool failed = decision->verdict != VERDICT_COMPLETE;
    char reason[DECISION_REASON_BYTES_MAX];
    struct json_writer json = json_begin(out);
    json_member_int(&json, "attempt", job->attempts);
    json_member_int(&json, "duration_ms", answer->duration_ms);
    json_member_text(&json, "class", outcome_name(decision->outcome));
    if (answer->code.len > 0)
        json_member_string(&json, "code", utf8_cut(answer->code, EVENT_CODE_BYTES_MAX));
    json_member_given(&json, "headers_left_out", answer->left_out);
    if (job->step != STEP_SEND)
        json_member_text(&json, "step", job->step == STEP_VERIFY ? "verify" : "poll");
    if (failed) {
        struct buffer masked = buffer_up_to(EVENT_ERROR_BYTES_MAX);
        redact(&masked, error_text(answer), EVENT_ERROR_BYTES_MAX);
        json_member_string(&json, "error", buffer_slice(&masked));
        buffer_release(&masked);
        json_member_text(&json, "action", verdict_name(decision->verdict));
        if (event_of(decision->verdict) == EVENT_GIVE_UP || event_of(decision->verdict) == EVENT_EXPIRE)
            json_member_text(&json, "dead_code", dead_code_of(decision));
        json_member_text(&json, "errorClassification", outcome_label(decision->outcome, decision->known));
        if (decision->rule.len > 0)
            json_member_string(&json, "rule", utf8_cut(decision->rule, EVENT_CODE_BYTES_MAX));
        json_member_bool(&json, "shouldRetry", decision_resends(decision) || decision->verdict == VERDICT_BLOCK);
        json_member_int(&json, "retryCount", decision->retry_count);
        json_member_int(&json, "maxRetries", input->destination->policy.retry.retries_max);
        json_member_string(&json, "retryReason", decision_reason(&input->destination->policy, decision, reason));
        if (decision->next_at != INSTANT_NONE) {
            json_member_int(&json, "backoffMs", decision->delay_ms);
            json_member_int(&json, "backoffMinutes", (decision->delay_ms + MINUTE_MS / 2) / MINUTE_MS);
        }
        json_member_instant(&json, "next_at", decision->next_at);
        if (input->backoff_factor > 0 && waits_by_policy(input, decision->verdict))
            json_member_real(&json, "backoff_factor", input->backoff_factor);
    }
    json_object_end(&json);
}

static enum status keep_texts(const struct settlement_input *input, const struct decision *decision, struct arena *memory,
                              struct store_op *op)
{
    struct op_settle *settle = &op->settle;
    struct slice error = utf8_cut(error_text(input->answer), ERROR_TEXT_STORED_BYTES_MAX);
    bool failed = decision->verdict != VERDICT_COMPLETE;
    settle->code = arena_copy(memory, utf8_cut(input->answer->code, EVENT_CODE_BYTES_MAX));
    settle->error = arena_copy(memory, failed ? error : SLICE(""));
    settle->reference = arena_copy(memory, input->answer->reference);

    struct buffer data = buffer_up_to(EVENT_DATA_BYTES_MAX);
    event_data(input, decision, &data);
    op->data = buffer_into(&data, memory);
    return settle->code.data && settle->error.data && settle->reference.data && op->data.data ? STATUS_OK : STATUS_NO_MEMORY;
}

static enum job_step step_of(enum verdict verdict, enum job_step current)
{
    switch (verdict) {
    case VERDICT_VERIFY:
        return STEP_VERIFY;
    case VERDICT_POLL:
        return STEP_POLL;
    case VERDICT_HOLD:
        return current; /* whatever could not be done is still to do */
    default:
        return STEP_SEND;
    }
}

/* What a worker could not send is nobody's but the job's. */
static bool is_unsent(const struct settlement_input *input)
{
    return input->destination->transport != TRANSPORT_PULL && block_is_unsent(input->answer->code);
}

/* The job is held for it. */
static bool is_refused(const struct settlement_input *input, const struct decision *decision)
{
    return decision->verdict == VERDICT_BLOCK && !is_unsent(input);
}

/* When it is tried again; nothing is spent. */
static void wait_refused(const struct settlement_input *input, struct decision *decision)
{
    assert(decision->verdict == VERDICT_BLOCK);
    decision->delay_ms = block_job_ms(in_a_row(input->job, true) + 1);
    decision->next_at = instant_add(input->now, decision->delay_ms);
}

/* A question that was answered is no failure, whatever the answer. */
static bool has_failed(const struct settlement_input *input, const struct decision *decision)
{
    bool unclear = input->job->step == STEP_SEND || input->answer->query == QUERY_UNCLEAR;
    return input->answer->attempted && unclear && decision->verdict != VERDICT_COMPLETE && decision->verdict != VERDICT_POLL;
}

/* Questions asked in this step; of sends, those in a row that were refused, or asked to wait, and spent nothing. */
static int64_t step_count_of(const struct settlement_input *input, const struct decision *decision, enum job_step step)
{
    assert(decision->retry_count >= input->job->retry_count);
    const struct job *job = input->job;
    if (is_refused(input, decision))
        return in_a_row(job, true) + 1;
    if (step != job->step)
        return 0;
    if (step == STEP_SEND && input->answer->attempted)
        return decision->verdict == VERDICT_HOLD ? in_a_row(job, false) + !looks(input) : 0;
    if (step == STEP_SEND)
        return in_a_row(job, false);
    return job->step_count + (input->answer->attempted && !is_spared(input, decision->outcome));
}

/* A wait says how the destination is, in an outage or not; after a refusal others are to look first. */
static bool was_to_show(const struct settlement_input *input, const struct decision *decision)
{
    if (is_refused(input, decision))
        return true;
    return may_pass(decision->outcome) && (looks(input) || input->spared || decision->outcome == OUTCOME_WAIT);
}

static void fill(const struct settlement_input *input, const struct decision *decision, struct op_settle *settle)
{
    const struct job *job = input->job;
    const struct destination_config *destination = input->destination;
    enum job_step step = step_of(decision->verdict, job->step);
    /* One that could not be sent waits with its destination; its time only keeps it in order. */
    instant run_at = decision->next_at != INSTANT_NONE ? decision->next_at : instant_add(input->now, SECOND_MS);
    settle->seq = job->seq;
    settle->token = job->lease_token;
    settle->event = event_of(decision->verdict);
    settle->step = step;
    settle->run_at = run_at;
    settle->rank = job->rank;
    settle->retry_count = decision->retry_count;
    settle->step_count = step_count_of(input, decision, step);
    settle->doubted = job->doubted || decision->outcome == OUTCOME_IN_DOUBT;
    if (has_failed(input, decision))
        settle->failed_at = input->now;
    if (has_failed(input, decision) && was_to_show(input, decision))
        settle->look_failed_at = input->now;
    settle->attempt_undone = !input->answer->attempted && job->step == STEP_SEND;
    settle->outcome = decision->outcome;
    settle->dead_ttl_ms = destination->dead.ttl_ms;
    settle->forget_at = input->retention_ms > 0 ? instant_add(input->now, input->retention_ms) : INSTANT_NONE;
    if (settle->event == EVENT_GIVE_UP || settle->event == EVENT_EXPIRE)
        settle->dead_code = slice_from(dead_code_of(decision));
    assert(settle->step_count >= 0 && settle->retry_count >= job->retry_count);
}

enum status settlement_make(const struct settlement_input *input, struct arena *memory, struct store_op *op,
                            struct settlement *ret_settlement)
{
    struct decision decision = !input->answer->attempted        ? decide_unattempted(input)
                               : input->job->step == STEP_SEND  ? decide_send(input)
                                                                : decide_query(input);
    if (is_refused(input, &decision))
        wait_refused(input, &decision);
    memset(op, 0, sizeof *op);
    op->kind = OP_SETTLE;
    fill(input, &decision, &op->settle);
    if (keep_texts(input, &decision, memory, op) != STATUS_OK)
        return STATUS_NO_MEMORY;
    decision.rule = arena_copy(memory, decision.rule); /* a reload may free the policy before the store has answered */
    if (!decision.rule.data)
        return STATUS_NO_MEMORY;
    assert(job_state_after(STATE_RUNNING, op->settle.event) != STATE_NONE);
    *ret_settlement = (struct settlement){
        .decision = decision,
        .may_pass = decision.verdict == VERDICT_EXHAUSTED && may_pass(decision.outcome) && input->job->step == STEP_SEND,
        .spared = op->settle.look_failed_at != 0 && decision.verdict != VERDICT_BLOCK && is_spared(input, decision.outcome),
        .blocks = decision.verdict == VERDICT_BLOCK,
        .unsent = is_unsent(input),
        .over = input->job->step == STEP_SEND && input->answer->attempted &&
                block_is_over(decision.outcome, input->answer->code),
        .dead = op->settle.event == EVENT_GIVE_UP || op->settle.event == EVENT_EXPIRE,
    };
    if (ret_settlement->dead)
        ret_settlement->dead_code = dead_code_of(&decision);
    return STATUS_OK;
}
