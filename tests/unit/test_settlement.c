/*
 * From what an attempt saw to the operation that records it.
 */
#include "engine/settlement.h"

#include "core/decision/classify.h"
#include "support/configs.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { NOW = 1700000000, FIRST_AGO = 3600, DEAD_TTL = 7 * 86400, KEEP = 3600 };

#define RETRY "    retry: { max_retries: 3, base: 10s, factor: 2, floor: 0s, cap: 1h, jitter: 0 }\n    dead: { ttl: 7d }\n"
static const char yaml[] = "destinations:\n"
                           "  plain:\n    url: https://a.example/\n    in_doubt: resend\n" RETRY
                           "  asks:\n    url: https://a.example/\n    in_doubt: verify\n" RETRY
                           "    verify: { url: 'https://a.example/{id}', after: 10m, every: 1m, times: 3 }\n"
                           "    poll: { url: 'https://a.example/{id}', after: 2m, every: 2m, times: 3 }\n"
                           "  parks:\n    url: https://a.example/\n    in_doubt: park\n" RETRY
                           "  patient:\n    url: https://a.example/\n    retry: { max_retries: 3, base: 10s, factor: 2, floor: 0s, "
                           "cap: 1h, jitter: 0, throttled_counts: false }\n    dead: { ttl: 7d }\n";

static const instant now = (instant)NOW * 1000;
static const char personal[] = "refused: CPF 529.982.247-25 of ana.silva@hospital.example";

#define AFTER(seconds) ((int64_t)(seconds) * 1000)
#define SENT(seen) { .attempted = true, .outcome = (seen), .code = SLICE("http:503"), .retry_after_ms = -1, .duration_ms = 12 }
#define ANSWERED(seen) { .attempted = true, .outcome = (seen), .code = SLICE("http:500"), .retry_after_ms = -1, .duration_ms = 12 }
#define ASKED(said) { .attempted = true, .query = (said), .code = SLICE("http:200"), .retry_after_ms = -1, .duration_ms = 12 }
#define UNSENT { .attempted = false, .retry_after_ms = -1 }

static const struct settle_case {
    const char *name, *destination;
    struct job job; /* only what matters */
    struct answer answer;
    const char *action;
    struct op_settle expected; /* run_at relative to now; 0: not looked at */
    bool blocks, dead;
} cases[] = {
    { "delivered", "plain", { .retry_count = 2 }, SENT(OUTCOME_DELIVERED), "complete",
      { .event = EVENT_DELIVER, .retry_count = 2, .outcome = OUTCOME_DELIVERED }, false, false },
    { "first failure", "plain", { 0 }, SENT(OUTCOME_TRANSIENT), "retry",
      { .event = EVENT_RETRY, .run_at = AFTER(10), .retry_count = 1, .outcome = OUTCOME_TRANSIENT }, false, false },
    { "third failure", "plain", { .retry_count = 2 }, SENT(OUTCOME_TRANSIENT), "retry",
      { .event = EVENT_RETRY, .run_at = AFTER(40), .retry_count = 3, .outcome = OUTCOME_TRANSIENT }, false, false },
    { "the last failure", "plain", { .retry_count = 3 }, SENT(OUTCOME_TRANSIENT), "dead",
      { .event = EVENT_GIVE_UP, .retry_count = 3, .outcome = OUTCOME_TRANSIENT, .dead_code = SLICE("MAX_RETRIES_EXCEEDED") },
      false, true },
    { "the deadline comes first", "plain", { .deadline = (instant)NOW * 1000 + 5000 }, SENT(OUTCOME_TRANSIENT), "dead",
      { .event = EVENT_EXPIRE, .outcome = OUTCOME_TRANSIENT, .dead_code = SLICE("EXPIRED") }, false, true },
    { "too fast", "plain", { 0 }, SENT(OUTCOME_THROTTLED), "retry",
      { .event = EVENT_RETRY, .run_at = AFTER(30), .retry_count = 1, .outcome = OUTCOME_THROTTLED }, false, false },
    { "down", "plain", { 0 }, SENT(OUTCOME_WAIT), "hold",
      { .event = EVENT_RELEASE, .run_at = AFTER(10), .step_count = 1, .outcome = OUTCOME_WAIT }, false, false },
    { "down, the third time", "plain", { .step_count = 2 }, SENT(OUTCOME_WAIT), "hold",
      { .event = EVENT_RELEASE, .run_at = AFTER(40), .step_count = 3, .outcome = OUTCOME_WAIT }, false, false },
    { "down, and then it fails", "plain", { .step_count = 2 }, SENT(OUTCOME_TRANSIENT), "retry",
      { .event = EVENT_RETRY, .run_at = AFTER(10), .retry_count = 1, .outcome = OUTCOME_TRANSIENT }, false, false },
    { "down, and then it does not leave", "plain", { .step_count = 2 }, UNSENT, "hold",
      { .event = EVENT_RELEASE, .run_at = AFTER(1), .step_count = 2, .attempt_undone = true, .outcome = OUTCOME_WAIT },
      false, false },
    { "down spends nothing, even at the limit", "plain", { .retry_count = 3 }, SENT(OUTCOME_WAIT), "hold",
      { .event = EVENT_RELEASE, .run_at = AFTER(80), .retry_count = 3, .step_count = 1, .outcome = OUTCOME_WAIT }, false, false },
    { "doubt, resend", "plain", { 0 }, SENT(OUTCOME_IN_DOUBT), "retry",
      { .event = EVENT_RETRY, .run_at = AFTER(10), .retry_count = 1, .doubted = true, .outcome = OUTCOME_IN_DOUBT }, false, false },
    { "doubt, verify", "asks", { .retry_count = 3 }, SENT(OUTCOME_IN_DOUBT), "verify",
      { .event = EVENT_RETRY, .step = STEP_VERIFY, .run_at = AFTER(600), .retry_count = 3, .doubted = true,
        .outcome = OUTCOME_IN_DOUBT }, false, false },
    { "doubt, park", "parks", { .retry_count = 1 }, SENT(OUTCOME_IN_DOUBT), "park",
      { .event = EVENT_GIVE_UP, .retry_count = 1, .doubted = true, .outcome = OUTCOME_IN_DOUBT, .dead_code = SLICE("IN_DOUBT") },
      false, true },
    { "a duplicate of nothing we know", "plain", { 0 }, SENT(OUTCOME_DUPLICATE), "dead",
      { .event = EVENT_GIVE_UP, .outcome = OUTCOME_DUPLICATE, .dead_code = SLICE("PERMANENT_ERROR") }, false, true },
    { "a duplicate of a doubtful send", "plain", { .doubted = true, .retry_count = 1 }, SENT(OUTCOME_DUPLICATE), "complete",
      { .event = EVENT_DELIVER, .retry_count = 1, .doubted = true, .outcome = OUTCOME_DUPLICATE }, false, false },
    { "a duplicate that can be verified", "asks", { 0 }, SENT(OUTCOME_DUPLICATE), "verify",
      { .event = EVENT_RETRY, .step = STEP_VERIFY, .run_at = AFTER(600), .outcome = OUTCOME_DUPLICATE }, false, false },
    { "permanent", "plain", { .doubted = true }, SENT(OUTCOME_PERMANENT), "dead",
      { .event = EVENT_GIVE_UP, .doubted = true, .outcome = OUTCOME_PERMANENT, .dead_code = SLICE("PERMANENT_ERROR") }, false, true },
    { "permanent at the limit", "plain", { .retry_count = 3 }, SENT(OUTCOME_PERMANENT), "dead",
      { .event = EVENT_GIVE_UP, .retry_count = 3, .outcome = OUTCOME_PERMANENT, .dead_code = SLICE("MAX_RETRIES_EXCEEDED") },
      false, true },
    { "blocked", "plain", { .retry_count = 1 }, SENT(OUTCOME_BLOCKED), "block",
      { .event = EVENT_RELEASE, .run_at = AFTER(60), .retry_count = 1, .step_count = 1,
        .outcome = OUTCOME_BLOCKED }, true, false },
    { "blocked again", "plain", { .retry_count = 1, .step_count = 3, .last_class = OUTCOME_BLOCKED }, SENT(OUTCOME_BLOCKED), "block",
      { .event = EVENT_RELEASE, .run_at = AFTER(480), .retry_count = 1, .step_count = 4,
        .outcome = OUTCOME_BLOCKED }, true, false },
    { "blocked after waits", "plain", { .step_count = 3, .last_class = OUTCOME_WAIT }, SENT(OUTCOME_BLOCKED), "block",
      { .event = EVENT_RELEASE, .run_at = AFTER(60), .step_count = 1, .outcome = OUTCOME_BLOCKED }, true, false },
    { "told to wait after it was refused", "plain", { .step_count = 3, .last_class = OUTCOME_BLOCKED }, SENT(OUTCOME_WAIT), "hold",
      { .event = EVENT_RELEASE, .run_at = AFTER(10), .step_count = 1, .outcome = OUTCOME_WAIT }, false, false },
    { "partial", "plain", { 0 }, SENT(OUTCOME_PARTIAL), "split",
      { .event = EVENT_GIVE_UP, .outcome = OUTCOME_PARTIAL, .dead_code = SLICE("PARTIAL") }, false, true },
    { "accepted, nobody to ask", "plain", { 0 }, SENT(OUTCOME_ACCEPTED), "complete",
      { .event = EVENT_DELIVER, .outcome = OUTCOME_ACCEPTED }, false, false },
    { "accepted, judged later", "asks", { .retry_count = 1 }, SENT(OUTCOME_ACCEPTED), "poll",
      { .event = EVENT_RETRY, .step = STEP_POLL, .run_at = AFTER(120), .retry_count = 1, .outcome = OUTCOME_ACCEPTED }, false, false },
    { "the rules judge", "plain", { 0 }, SENT(OUTCOME_NONE), "retry",
      { .event = EVENT_RETRY, .run_at = AFTER(10), .retry_count = 1, .outcome = OUTCOME_TRANSIENT }, false, false },

    { "a send that never left", "plain", { .retry_count = 1 }, UNSENT, "hold",
      { .event = EVENT_RELEASE, .run_at = AFTER(1), .retry_count = 1, .attempt_undone = true, .outcome = OUTCOME_WAIT },
      false, false },
    { "one that never left, whatever is said of it", "plain", { .retry_count = 1 },
      { .attempted = false, .outcome = OUTCOME_PERMANENT, .retry_after_ms = -1 }, "hold",
      { .event = EVENT_RELEASE, .run_at = AFTER(1), .retry_count = 1, .attempt_undone = true, .outcome = OUTCOME_WAIT },
      false, false },
    { "a question that was not asked", "asks", { .step = STEP_VERIFY, .step_count = 2, .doubted = true }, UNSENT, "hold",
      { .event = EVENT_RELEASE, .step = STEP_VERIFY, .run_at = AFTER(1), .step_count = 2, .doubted = true,
        .outcome = OUTCOME_WAIT }, false, false },
    { "a poll that was not asked", "asks", { .step = STEP_POLL, .step_count = 1 }, UNSENT, "hold",
      { .event = EVENT_RELEASE, .step = STEP_POLL, .run_at = AFTER(1), .step_count = 1, .outcome = OUTCOME_WAIT }, false, false },

    { "verified", "asks", { .step = STEP_VERIFY, .doubted = true }, ASKED(QUERY_DELIVERED), "complete",
      { .event = EVENT_DELIVER, .doubted = true, .outcome = OUTCOME_DELIVERED }, false, false },
    { "verified at the limit of retries", "asks", { .step = STEP_VERIFY, .retry_count = 3 }, ASKED(QUERY_DELIVERED), "complete",
      { .event = EVENT_DELIVER, .retry_count = 3, .outcome = OUTCOME_DELIVERED }, false, false },
    { "it never arrived", "asks", { .step = STEP_VERIFY, .step_count = 2, .doubted = true }, ASKED(QUERY_ABSENT), "retry",
      { .event = EVENT_RETRY, .run_at = AFTER(10), .retry_count = 1, .doubted = true, .outcome = OUTCOME_TRANSIENT }, false, false },
    { "it never arrived, and no retry is left", "asks", { .step = STEP_VERIFY, .retry_count = 3 }, ASKED(QUERY_ABSENT), "dead",
      { .event = EVENT_GIVE_UP, .retry_count = 3, .outcome = OUTCOME_TRANSIENT, .dead_code = SLICE("MAX_RETRIES_EXCEEDED") },
      false, true },
    { "verify: unclear", "asks", { .step = STEP_VERIFY }, ASKED(QUERY_UNCLEAR), "verify",
      { .event = EVENT_RETRY, .step = STEP_VERIFY, .run_at = AFTER(60), .step_count = 1, .doubted = true,
        .outcome = OUTCOME_IN_DOUBT }, false, false },
    { "verify: still pending", "asks", { .step = STEP_VERIFY, .step_count = 1 }, ASKED(QUERY_PENDING), "verify",
      { .event = EVENT_RETRY, .step = STEP_VERIFY, .run_at = AFTER(60), .step_count = 2, .doubted = true,
        .outcome = OUTCOME_IN_DOUBT }, false, false },
    { "verify: asked often enough", "asks", { .step = STEP_VERIFY, .step_count = 2 }, ASKED(QUERY_UNCLEAR), "park",
      { .event = EVENT_GIVE_UP, .doubted = true, .outcome = OUTCOME_IN_DOUBT, .dead_code = SLICE("IN_DOUBT") }, false, true },
    { "verify: refused", "asks", { .step = STEP_VERIFY }, ASKED(QUERY_REJECTED), "dead",
      { .event = EVENT_GIVE_UP, .outcome = OUTCOME_PERMANENT, .dead_code = SLICE("PERMANENT_ERROR") }, false, true },
    { "poll: approved", "asks", { .step = STEP_POLL, .step_count = 1 }, ASKED(QUERY_DELIVERED), "complete",
      { .event = EVENT_DELIVER, .outcome = OUTCOME_DELIVERED }, false, false },
    { "poll: pending", "asks", { .step = STEP_POLL }, ASKED(QUERY_PENDING), "poll",
      { .event = EVENT_RETRY, .step = STEP_POLL, .run_at = AFTER(120), .step_count = 1, .outcome = OUTCOME_ACCEPTED }, false, false },
    { "poll: unclear", "asks", { .step = STEP_POLL, .step_count = 1 }, ASKED(QUERY_UNCLEAR), "poll",
      { .event = EVENT_RETRY, .step = STEP_POLL, .run_at = AFTER(120), .step_count = 2, .outcome = OUTCOME_ACCEPTED }, false, false },
    { "poll: asked often enough", "asks", { .step = STEP_POLL, .step_count = 2 }, ASKED(QUERY_PENDING), "park",
      { .event = EVENT_GIVE_UP, .doubted = true, .outcome = OUTCOME_IN_DOUBT, .dead_code = SLICE("IN_DOUBT") }, false, true },
    { "poll: refused", "asks", { .step = STEP_POLL, .retry_count = 2 }, ASKED(QUERY_REJECTED), "dead",
      { .event = EVENT_GIVE_UP, .retry_count = 2, .outcome = OUTCOME_PERMANENT, .dead_code = SLICE("PERMANENT_ERROR") }, false, true },
    { "poll: it is gone", "asks", { .step = STEP_POLL, .step_count = 1 }, ASKED(QUERY_ABSENT), "retry",
      { .event = EVENT_RETRY, .run_at = AFTER(10), .retry_count = 1, .outcome = OUTCOME_TRANSIENT }, false, false },
};

/* Sends that were a look at the destination, in an outage that began an hour ago, and something went well since. */
static const struct outage outage = { .since = (instant)NOW * 1000 - 3600000, .good_at = (instant)NOW * 1000 - 60000,
                                      .ended_at = INSTANT_NONE };
#define FAILED_AGO(seconds) .look_failed_at = (instant)NOW * 1000 - AFTER(seconds)
static const struct settle_case looks[] = {
    { "a look that failed spends nothing", "plain", { .retry_count = 1 }, SENT(OUTCOME_TRANSIENT), "hold",
      { .event = EVENT_RELEASE, .run_at = AFTER(20), .retry_count = 1, .outcome = OUTCOME_TRANSIENT }, false, false },
    { "a last try that is not the job's fault", "plain", { .retry_count = 3 }, SENT(OUTCOME_TRANSIENT), "hold",
      { .event = EVENT_RELEASE, .run_at = AFTER(80), .retry_count = 3, .outcome = OUTCOME_TRANSIENT }, false, false },
    { "a look in doubt that is resent", "plain", { 0 }, SENT(OUTCOME_IN_DOUBT), "hold",
      { .event = EVENT_RELEASE, .run_at = AFTER(10), .doubted = true, .outcome = OUTCOME_IN_DOUBT }, false, false },
    { "a look in doubt that is verified", "asks", { 0 }, SENT(OUTCOME_IN_DOUBT), "verify",
      { .event = EVENT_RETRY, .step = STEP_VERIFY, .run_at = AFTER(600), .doubted = true, .outcome = OUTCOME_IN_DOUBT },
      false, false },
    { "a look with a job that is refused", "plain", { 0 }, SENT(OUTCOME_PERMANENT), "dead",
      { .event = EVENT_GIVE_UP, .outcome = OUTCOME_PERMANENT, .dead_code = SLICE("PERMANENT_ERROR") }, false, true },
    { "a second look that is answered badly", "plain", { .retry_count = 1, FAILED_AGO(30) }, ANSWERED(OUTCOME_TRANSIENT), "retry",
      { .event = EVENT_RETRY, .run_at = AFTER(20), .retry_count = 2, .outcome = OUTCOME_TRANSIENT }, false, false },
    { "and that is its last", "plain", { .retry_count = 3, FAILED_AGO(30) }, ANSWERED(OUTCOME_TRANSIENT), "dead",
      { .event = EVENT_GIVE_UP, .retry_count = 3, .outcome = OUTCOME_TRANSIENT, .dead_code = SLICE("MAX_RETRIES_EXCEEDED") }, false, true },
    { "a second look, and it is away", "plain", { .retry_count = 1, FAILED_AGO(30) }, SENT(OUTCOME_TRANSIENT), "hold",
      { .event = EVENT_RELEASE, .run_at = AFTER(20), .retry_count = 1, .outcome = OUTCOME_TRANSIENT }, false, false },
    { "the same, but something went well since", "plain", { .retry_count = 1, FAILED_AGO(90) }, SENT(OUTCOME_TRANSIENT), "retry",
      { .event = EVENT_RETRY, .run_at = AFTER(20), .retry_count = 2, .outcome = OUTCOME_TRANSIENT }, false, false },
    { "told to wait, but others are not", "plain", { .retry_count = 1, FAILED_AGO(90) }, SENT(OUTCOME_WAIT), "retry",
      { .event = EVENT_RETRY, .run_at = AFTER(20), .retry_count = 2, .outcome = OUTCOME_WAIT }, false, false },
    { "a look that was too fast", "plain", { 0 }, SENT(OUTCOME_THROTTLED), "hold",
      { .event = EVENT_RELEASE, .run_at = AFTER(30), .outcome = OUTCOME_THROTTLED }, false, false },
    { "too fast, but others are not", "patient", { FAILED_AGO(90) }, SENT(OUTCOME_THROTTLED), "retry",
      { .event = EVENT_RETRY, .run_at = AFTER(30), .retry_count = 1, .outcome = OUTCOME_THROTTLED }, false, false },
    { "it failed in an outage before", "plain", { .retry_count = 1, FAILED_AGO(3601) }, ANSWERED(OUTCOME_TRANSIENT), "hold",
      { .event = EVENT_RELEASE, .run_at = AFTER(20), .retry_count = 1, .outcome = OUTCOME_TRANSIENT }, false, false },
    { "a look by a question without answer", "asks", { .step = STEP_VERIFY, .step_count = 2, .doubted = true },
      ASKED(QUERY_UNCLEAR), "verify",
      { .event = EVENT_RETRY, .step = STEP_VERIFY, .run_at = AFTER(60), .step_count = 2, .doubted = true,
        .outcome = OUTCOME_IN_DOUBT }, false, false },
};

enum { LOOKS = sizeof looks / sizeof *looks };

/* The job of a case, made whole. */
static struct job job_of(const struct settle_case *c)
{
    struct job job = c->job;
    job.seq = 5;
    job.lease_token = 77;
    job.id = SLICE("CLM-1");
    job.generation = 1;
    job.attempts = 4;
    job.rank = 123;
    job.priority = PRIORITY_NORMAL;
    job.first_at = now - AFTER(FIRST_AGO);
    if (job.deadline == 0)
        job.deadline = INSTANT_NONE;
    if (job.look_failed_at == 0)
        job.look_failed_at = INSTANT_NONE;
    job.failed_at = INSTANT_NONE;
    return job;
}

static void settle(const struct config *config, const struct settle_case *c, struct slice text, struct arena *memory,
                   struct store_op *op, struct settlement *ret_settlement)
{
    struct job job = job_of(c);
    struct answer answer = c->answer;
    answer.text = text;
    struct settlement_input input = {
        .destination = config_destination(config, slice_from(c->destination)),
        .job = &job, .answer = &answer, .seed = 9, .now = now, .retention_ms = AFTER(KEEP), .outage = c >= looks && c < looks + LOOKS ? &outage : NULL,
    };
    check(input.destination, "%s: no destination", c->name);
    check(settlement_make(&input, memory, op, ret_settlement) == STATUS_OK, "%s", c->name);
}

static void check_fields(const struct settle_case *c, const struct store_op *op)
{
    const struct op_settle *is = &op->settle;
    const struct op_settle *due = &c->expected;
    bool goes_on = due->event == EVENT_RETRY || due->event == EVENT_RELEASE;
    check(op->kind == OP_SETTLE && is->seq == 5 && is->token == 77 && is->rank == 123, "%s: not this job", c->name);
    check(is->event == due->event, "%s: event %d", c->name, is->event);
    if (goes_on) {
        check(is->step == due->step, "%s: step %d", c->name, is->step);
        check(is->run_at - now == due->run_at, "%s: in %lld ms", c->name, (long long)(is->run_at - now));
        check(is->step_count == due->step_count, "%s: %lld questions", c->name, (long long)is->step_count);
    }
    check(is->retry_count == due->retry_count, "%s: %lld retries", c->name, (long long)is->retry_count);
    bool may_pass = due->outcome == OUTCOME_TRANSIENT || due->outcome == OUTCOME_IN_DOUBT || due->outcome == OUTCOME_WAIT ||
                    due->outcome == OUTCOME_THROTTLED;
    bool waits = due->outcome == OUTCOME_WAIT && c->answer.attempted;
    /* It is noted that it has used up its free failure, or that others are to look before it. */
    bool look = c->blocks || (may_pass && (waits || (c >= looks && c < looks + LOOKS)));
    check(is->look_failed_at == (look ? now : 0), "%s: look %lld", c->name, (long long)is->look_failed_at);
    check(is->doubted == due->doubted, "%s: doubt", c->name);
    check(is->attempt_undone == due->attempt_undone, "%s: undone", c->name);
    check(is->outcome == due->outcome, "%s: %s", c->name, outcome_name(is->outcome));
    check(slice_equal(is->dead_code, due->dead_code), "%s: %.*s", c->name, SLICE_ARG(is->dead_code));
    check(slice_equal(is->code, c->answer.code), "%s: code %.*s", c->name, SLICE_ARG(is->code));
    check((is->error.len == 0) == (due->event == EVENT_DELIVER), "%s: error \"%.*s\"", c->name, SLICE_ARG(is->error));
    check(is->dead_ttl_ms == AFTER(DEAD_TTL) && is->forget_at == now + AFTER(KEEP), "%s: ends", c->name);
}

static const char *member(const json_t *root, const char *name)
{
    const char *text = json_string_value(json_object_get(root, name));
    return text ? text : "(none)";
}

static void check_next(const struct settle_case *c, const json_t *root, const struct op_settle *settle, bool scheduled)
{
    instant next_at;
    if (!scheduled) {
        check(!json_object_get(root, "backoffMs") && !json_object_get(root, "next_at"), "%s: a time for nothing", c->name);
        return;
    }
    check(json_integer_value(json_object_get(root, "backoffMs")) == settle->run_at - now, "%s: backoffMs", c->name);
    check(json_integer_value(json_object_get(root, "backoffMinutes")) == (settle->run_at - now + 30000) / 60000, "%s: minutes",
          c->name);
    check(instant_parse(slice_from(member(root, "next_at")), &next_at, NULL) == STATUS_OK && next_at == settle->run_at,
          "%s: next_at %s", c->name, member(root, "next_at"));
}

/* The names are the documents' own. */
static void check_event(const struct settle_case *c, const struct store_op *op)
{
    static const char *const steps[] = { "(none)", "verify", "poll" };
    json_error_t error;
    json_t *root = json_loadb(op->data.data, op->data.len, JSON_REJECT_DUPLICATES, &error);
    check(json_is_object(root), "%s: %s", c->name, error.text);
    check(json_integer_value(json_object_get(root, "attempt")) == 4, "%s: attempt", c->name);
    check(json_integer_value(json_object_get(root, "duration_ms")) == c->answer.duration_ms, "%s: duration", c->name);
    check(strcmp(member(root, "class"), outcome_name(c->expected.outcome)) == 0, "%s: class %s", c->name, member(root, "class"));
    check(strcmp(member(root, "step"), steps[c->job.step]) == 0, "%s: step %s", c->name, member(root, "step"));
    if (c->expected.event == EVENT_DELIVER) {
        check(!json_object_get(root, "error") && !json_object_get(root, "shouldRetry"), "%s: an error in success", c->name);
    } else {
        bool scheduled = c->expected.run_at > 0 && !c->blocks;
        check(strcmp(member(root, "action"), c->action) == 0, "%s: action %s", c->name, member(root, "action"));
        check(strcmp(member(root, "error"), "refused: CPF <number> of <address>") == 0, "%s: error %s", c->name,
              member(root, "error"));
        /* As the same question has it at /v1/decide; but what was refused is held here, and sent again. */
        bool resends = c->blocks || (scheduled && strcmp(c->action, "poll") != 0);
        check(json_is_true(json_object_get(root, "shouldRetry")) == resends, "%s: shouldRetry", c->name);
        check(json_integer_value(json_object_get(root, "retryCount")) == c->expected.retry_count, "%s: retryCount", c->name);
        check(json_integer_value(json_object_get(root, "maxRetries")) == 3, "%s: maxRetries", c->name);
        check(json_is_string(json_object_get(root, "errorClassification")), "%s: errorClassification", c->name);
        check_next(c, root, &op->settle, scheduled || c->blocks);
    }
    json_decref(root);
}

static void settle_and_check(const struct config *config, const struct settle_case *c)
{
    struct arena memory;
    struct store_op op;
    struct settlement settlement;
    arena_init(&memory, 1 << 20);
    settle(config, c, slice_from(personal), &memory, &op, &settlement);
    check_fields(c, &op);
    check_event(c, &op);
    check(settlement.blocks == c->blocks, "%s: blocks", c->name);
    check(settlement.dead == c->dead, "%s: dead", c->name);
    check(strcmp(verdict_name(settlement.decision.verdict), c->action) == 0, "%s: %s", c->name,
          verdict_name(settlement.decision.verdict));
    arena_release(&memory);
}

/* S1-059 S3-090 S0-038 S0-089 S0-090 S0-091 S0-092 S1-025 S0-107 */
static void each_outcome_is_settled(void **state)
{
    struct config *config = config_from(slice_from(yaml), "test.yaml");
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        settle_and_check(config, &cases[i]);
    config_unref(config);
}

static void a_look_spends_nothing(void **state)
{
    struct config *config = config_from(slice_from(yaml), "test.yaml");
    (void)state;
    for (size_t i = 0; i < LOOKS; i++)
        settle_and_check(config, &looks[i]);
    config_unref(config);
}

/* Nobody is named, and the error is never empty, whatever a transport or a destination says. */
static void odd_texts_are_taken(void **state)
{
    static const struct { const char *name, *text; const char *shown; } texts[] = {
        { "nothing", "", "UNKNOWN_ERROR: the transport gave no text" },
        { "blank", " \n\t", "UNKNOWN_ERROR: the transport gave no text" },
        { "quotes", "say \"no\"\n", "say \"no\"\n" },
        { "bytes", "\xff\xfe", "\xef\xbf\xbd\xef\xbf\xbd" },
        { "only a name", "ana@b.example", "<address>" },
    };
    struct config *config = config_from(slice_from(yaml), "test.yaml");
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
            struct arena memory;
            struct store_op op;
            struct settlement settlement;
            if (cases[k].expected.event == EVENT_DELIVER)
                continue;
            arena_init(&memory, 1 << 20);
            settle(config, &cases[k], slice_from(texts[i].text), &memory, &op, &settlement);
            json_t *root = json_loadb(op.data.data, op.data.len, 0, NULL);
            check(op.settle.error.len > 0 && !slice_is_blank(op.settle.error), "%s, %s: no error", cases[k].name, texts[i].name);
            check(strcmp(member(root, "error"), texts[i].shown) == 0, "%s, %s: \"%s\"", cases[k].name, texts[i].name,
                  member(root, "error"));
            json_decref(root);
            arena_release(&memory);
        }
    }
    config_unref(config);
}

/* A header that a job may not set and went without is on record, delivered or not. */
static void what_was_left_out_is_on_record(void **state)
{
    static const struct settle_case rows[] = {
        { "delivered", "plain", { 0 }, SENT(OUTCOME_DELIVERED), NULL, { 0 }, false, false },
        { "failed", "plain", { 0 }, SENT(OUTCOME_TRANSIENT), NULL, { 0 }, false, false },
    };
    struct config *config = config_from(slice_from(yaml), "test.yaml");
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct settle_case c = rows[i];
        struct arena memory;
        struct store_op op;
        struct settlement settlement;
        arena_init(&memory, 1 << 20);
        c.answer.left_out = SLICE("Authorization, Cookie");
        settle(config, &c, SLICE("no"), &memory, &op, &settlement);
        json_t *root = json_loadb(op.data.data, op.data.len, 0, NULL);
        check(strcmp(member(root, "headers_left_out"), "Authorization, Cookie") == 0, "%s", c.name);
        json_decref(root);
        arena_release(&memory);
    }
    config_unref(config);
}

/* S1-067: an answer that says nothing at all is told, and taken for a failure that passes, whatever the preset. */
static void an_empty_error_is_transient(void **state)
{
    static const char *const presets[] = { "tiss", "http", "sifen", "provisioning" };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(presets); i++) {
        char text[512];
        snprintf(text, sizeof text, "destinations: { plain: { preset: %s, url: 'https://a.example/', "
                 "verify: { url: 'https://a.example/{id}' }, poll: { url: 'https://a.example/{id}' }, "
                 "health: { url: 'https://a.example/' } } }\n", presets[i]);
        struct config *config = config_from(slice_from(text), "test.yaml");
        struct settle_case c = { "says nothing", "plain", { 0 }, { .attempted = true, .retry_after_ms = -1 }, "retry", { 0 }, false, false };
        struct arena memory;
        struct store_op op;
        struct settlement settlement;
        arena_init(&memory, 1 << 20);
        settle(config, &c, SLICE(""), &memory, &op, &settlement);
        json_t *root = json_loadb(op.data.data, op.data.len, 0, NULL);
        check(op.settle.outcome == OUTCOME_TRANSIENT && op.settle.event == EVENT_RETRY, "%s: %s", presets[i], outcome_name(op.settle.outcome));
        check(strcmp(member(root, "error"), "UNKNOWN_ERROR: the transport gave no text") == 0, "%s: %s", presets[i], member(root, "error"));
        json_decref(root);
        arena_release(&memory);
        config_unref(config);
    }
}

/* A destination that answers with a book: the event stays within its limit, and the settlement is made. */
static void huge_answers_are_cut(void **state)
{
    enum { HUGE_BYTES = 300 * 1000 };
    static const char fillers[] = { 'x', '\n', '\x01', '\xc3' };
    struct config *config = config_from(slice_from(yaml), "test.yaml");
    char *huge = malloc(HUGE_BYTES);
    (void)state;
    assert_non_null(huge);
    for (size_t i = 0; i < sizeof fillers; i++) {
        struct arena memory;
        struct store_op op;
        struct settlement settlement;
        struct settle_case c = cases[1];
        memset(huge, fillers[i], HUGE_BYTES);
        c.answer.code = (struct slice){ huge, HUGE_BYTES };
        arena_init(&memory, 1 << 20);
        settle(config, &c, (struct slice){ huge, HUGE_BYTES }, &memory, &op, &settlement);
        check(op.data.len <= EVENT_DATA_BYTES_MAX, "%zu bytes of data", op.data.len);
        check(op.settle.error.len <= ERROR_TEXT_STORED_BYTES_MAX, "%zu bytes of error", op.settle.error.len);
        check(op.settle.code.len > 0 && op.settle.code.len <= 1024, "%zu bytes of code", op.settle.code.len);
        json_t *root = json_loadb(op.data.data, op.data.len, 0, NULL);
        check(json_is_object(root), "filler %zu: not JSON", i);
        json_decref(root);
        arena_release(&memory);
    }
    free(huge);
    config_unref(config);
}

static void without_memory_it_says_so(void **state)
{
    struct config *config = config_from(slice_from(yaml), "test.yaml");
    struct job job = job_of(&cases[1]);
    struct answer answer = cases[1].answer;
    struct settlement_input input = { .destination = config_destination(config, SLICE("plain")), .job = &job,
                                      .answer = &answer, .now = now };
    (void)state;
    answer.text = slice_from(personal);
    for (size_t limit = 8; limit < 256; limit += 8) { /* 0 is none */
        struct arena memory;
        struct store_op op;
        struct settlement settlement;
        arena_init(&memory, limit);
        assert_int_equal(settlement_make(&input, &memory, &op, &settlement), STATUS_NO_MEMORY);
        arena_release(&memory);
    }
    config_unref(config);
}

/* A redrive draws its waits anew; an id that the policy would refuse today is settled all the same. */
static void a_policy_that_changed_does_not_stop_it(void **state)
{
    struct config *config = config_from(SLICE("destinations:\n  x:\n    url: https://a.example/\n    id_pattern: 'CLM-[0-9]+'\n"
                                              "    retry: { max_retries: 3, base: 10s, jitter: 0.5, floor: 0s }\n"),
                                        "test.yaml");
    instant at[2];
    (void)state;
    for (int generation = 1; generation <= 2; generation++) {
        struct arena memory;
        struct store_op op;
        struct settlement settlement;
        struct job job = job_of(&cases[1]);
        struct answer answer = cases[1].answer;
        struct settlement_input input = { .destination = config_destination(config, SLICE("x")), .job = &job,
                                          .answer = &answer, .seed = 3, .now = now };
        job.id = SLICE("not of that pattern");
        job.generation = generation;
        answer.text = SLICE("x");
        arena_init(&memory, 1 << 20);
        assert_int_equal(settlement_make(&input, &memory, &op, &settlement), STATUS_OK);
        assert_int_equal(op.settle.event, EVENT_RETRY);
        at[generation - 1] = op.settle.run_at;
        arena_release(&memory);
    }
    assert_true(at[0] != at[1]);
    config_unref(config);
}

/* A worker's word may be with the store when a reload frees the policy that judged it: what is told afterwards has the rule. */
static void the_rule_outlives_its_policy(void **state)
{
    struct config *config = config_from(SLICE("destinations: { plain: { transport: pull, errors: { permanent: ['x:gone'] } } }\n"),
                                        "test.yaml");
    struct settle_case c = { "gone", "plain", { 0 }, SENT(OUTCOME_NONE), "dead", { 0 }, false, true };
    struct arena memory;
    struct store_op op;
    struct settlement settlement;
    (void)state;
    c.answer.code = SLICE("x:gone");
    arena_init(&memory, 1 << 20);
    settle(config, &c, SLICE("it is gone"), &memory, &op, &settlement);
    const struct policy *policy = &config_destination(config, SLICE("plain"))->policy;
    const char *of_policy = classify(policy->classifier, (struct evidence){ c.answer.code, SLICE("it is gone") }).rule.data;
    assert_non_null(of_policy);
    assert_ptr_not_equal(settlement.decision.rule.data, of_policy);
    config_unref(config);
    assert_true(slice_equal(settlement.decision.rule, SLICE("x:gone")));
    arena_release(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_outcome_is_settled),
        cmocka_unit_test(a_look_spends_nothing),
        cmocka_unit_test(odd_texts_are_taken),
        cmocka_unit_test(what_was_left_out_is_on_record),
        cmocka_unit_test(an_empty_error_is_transient),
        cmocka_unit_test(huge_answers_are_cut),
        cmocka_unit_test(without_memory_it_says_so),
        cmocka_unit_test(a_policy_that_changed_does_not_stop_it),
        cmocka_unit_test(the_rule_outlives_its_policy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
