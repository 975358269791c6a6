/*
 * question.h - from a question's JSON text to what `decide` is asked. See decision_json.h.
 */
#ifndef LIB_QUESTION_H
#define LIB_QUESTION_H

#include "lib/members.h"

struct question {
    struct members members; /* the slices of `request` point into it, or into the text */
    const struct policy *policy;
    struct decide_request request;
    bool record; /* false: it is not to be kept */
};

/*
 * QUESTION_OK, or what is wrong with a sentence in `err`. A blank id or error and a negative
 * retryCount are left to the decision itself. Release the question in any case; the text must
 * live as long.
 */
enum question_problem question_read(const struct decider *decider, struct slice text, struct question *ret_question,
                                    struct error *err) MUST_CHECK;
void question_release(struct question *question);

#endif
