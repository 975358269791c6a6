/*
 * decide.h - what to do after an attempt: the retry decision.
 *
 * A pure function of the policy, the job, the error and the time given to it. It does not
 * allocate, and the same question always has the same answer.
 *
 * The retry limit is looked at before the class of the error, as the documents ask: with all
 * retries used, a permanent error too answers EXHAUSTED, and its class is reported beside.
 * What spends no retry (hold, verify, poll, block) is never exhausted: an outage alone cannot
 * use up a job, and a doubtful last send is still verified.
 */
#ifndef CORE_DECISION_DECIDE_H
#define CORE_DECISION_DECIDE_H

#include "base/instant.h"
#include "core/decision/policy.h"

enum verdict {
    VERDICT_COMPLETE,  /* the destination has it */
    VERDICT_POLL,      /* ask again at next_at how it was judged */
    VERDICT_RETRY,     /* send again at next_at; one retry is spent */
    VERDICT_HOLD,      /* send again at next_at or when the destination is back; nothing is spent */
    VERDICT_VERIFY,    /* at next_at ask whether it arrived, before sending again */
    VERDICT_BLOCK,     /* hold the job, and what else is refused (block.h); nothing is spent */
    VERDICT_SPLIT,     /* each part by its own outcome */
    VERDICT_PERMANENT, /* dead: will not work as it is */
    VERDICT_EXHAUSTED, /* dead: no retry is left */
    VERDICT_EXPIRED,   /* dead: the deadline comes before the next try */
    VERDICT_PARK,      /* dead: may have arrived, a person must look */
    VERDICT_COUNT
};

enum decide_reason {
    REASON_OUTCOME,  /* the class of the error alone */
    REASON_RETRIES,  /* the number of retries */
    REASON_ELAPSED,  /* the time since the first attempt */
    REASON_DEADLINE, /* the job's own deadline */
};

enum decide_problem {
    PROBLEM_NONE = 0,
    PROBLEM_ID,
    PROBLEM_ERROR_MESSAGE, /* blank */
    PROBLEM_RETRY_COUNT,   /* negative */
};

struct decide_request {
    struct slice id;
    struct slice code; /* "http:503"; empty: none is known */
    struct slice text; /* what was seen, for people and for the text rules */
    enum outcome outcome; /* known without asking the rules; OUTCOME_NONE: ask them */
    enum outcome treated_as; /* it keeps its class and the waits of it, but this one's treatment; OUTCOME_NONE: its own */
    bool unconfirmed;     /* a good answer without what makes it a delivery: in doubt unless a rule says that it failed */
    bool doubted;         /* an earlier attempt was in doubt */
    int64_t retry_count; /* retries already scheduled */
    int64_t waits;       /* that it got before this one, in a row, and that spent nothing: the next is longer */
    enum priority priority;
    int64_t retry_after_ms; /* what the destination asked for; negative: nothing */
    instant now;
    instant first_at; /* of the first attempt; INSTANT_NONE: unknown */
    instant deadline; /* INSTANT_NONE: none */
    uint64_t seed;
};

struct decision {
    enum verdict verdict;
    enum outcome outcome;
    bool known;        /* a rule matched; else the policy's `unknown` decided */
    struct slice rule; /* which; lives as long as the policy */
    enum decide_reason reason;
    int64_t retry_count; /* after this decision */
    int64_t delay_ms;    /* of RETRY, HOLD, VERIFY, POLL; else 0 */
    instant next_at;     /* now + delay_ms, or INSTANT_NONE */
};

/* Fills *ret_decision only for PROBLEM_NONE. */
enum decide_problem decide(const struct policy *policy, const struct decide_request *request, struct decision *ret_decision);

/* "retry", "hold", "verify"...: the `action` of the JSON answer. */
const char *verdict_name(enum verdict verdict);
/* Whether something follows: a try, or a question. */
bool verdict_goes_on(enum verdict verdict);
/*
 * Whether it is sent again, which is `shouldRetry`: what was accepted is only asked about, and what was refused is sent
 * where there is a queue that holds it, which then says when.
 */
bool decision_resends(const struct decision *decision);

#endif
