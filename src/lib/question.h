/*
 * question.h - from a question's JSON text to what `decide` is asked. See decision_json.h.
 */
#ifndef LIB_QUESTION_H
#define LIB_QUESTION_H

#include "lib/decision_json.h"

/*
 * ---- Its members. ----
 *
 * Two readers with one result. Most questions are flat objects of plain strings and whole
 * numbers: these are read in place, in one pass and without allocation. Whatever is not that
 * plain (escapes, nested values, fractions, anything wrong) is left to jansson, which alone
 * judges what is valid. The first must never take what the second refuses, nor see other
 * values in it; tests/fuzz/fuzz_decide_json.c compares them.
 */
enum member {
    MEMBER_CLAIM_ID,
    MEMBER_ID,
    MEMBER_SUBMISSION_ERROR,
    MEMBER_RETRY_COUNT,
    MEMBER_LAST_SUBMISSION_TIME,
    MEMBER_FIRST_SUBMISSION_TIME,
    MEMBER_POLICY,
    MEMBER_NOW,
    MEMBER_CODE,
    MEMBER_PRIORITY,
    MEMBER_RETRY_AFTER_MS,
    MEMBER_DEADLINE,
    MEMBER_IN_DOUBT,
    MEMBER_DOUBTED,
    MEMBER_SEED,
    MEMBER_TENANT,
    MEMBER_RECORD,
    MEMBER_COUNT
};

enum value_kind {
    VALUE_ABSENT, /* or null */
    VALUE_TEXT,
    VALUE_INTEGER,
    VALUE_TRUE,
    VALUE_FALSE,
    VALUE_OTHER, /* a fraction, an array, an object */
};

struct value {
    enum value_kind kind;
    struct slice text; /* points into the question or the document */
    int64_t integer;
};

struct members {
    struct value values[MEMBER_COUNT];
    void *document; /* jansson's; NULL when it was not needed */
};

/* The first reader alone: false when the question is not plain, and *ret_members is then of no use. */
bool members_read_plain(struct slice question, struct members *ret_members) MUST_CHECK;
/* The second alone. Release the members in any case. */
enum question_problem members_read_any(struct slice question, struct members *ret_members, struct error *err) MUST_CHECK;
void members_release(struct members *members);

/* ---- The whole. ---- */

struct question {
    struct members members; /* the slices of `request` point into it, or into the text */
    const struct policy *policy;
    struct decide_request request;
    bool record; /* false: it is not to be recorded */
};

/*
 * QUESTION_OK, or what is wrong with a sentence in `err`. A blank id or error and a negative
 * retryCount are left to the decision itself. Release the question in any case; the text must
 * live as long.
 */
enum question_problem question_read(const struct decider *decider, struct slice text, struct question *ret_question,
                                    struct error *err) MUST_CHECK;

#endif
