/*
 * question.h - reading a question from JSON. See decision_json.h for its members.
 */
#ifndef LIB_QUESTION_H
#define LIB_QUESTION_H

#include "lib/decision_json.h"

struct question {
    void *document; /* what jansson read; the slices of `request` point into it */
    const struct policy *policy;
    struct decide_request request;
};

/*
 * QUESTION_OK, or what is wrong with a sentence in `err`. A blank id or error and a negative
 * retryCount are left to the decision itself. Release the question in any case.
 */
enum question_problem question_read(const struct decider *decider, struct slice text, struct question *ret_question,
                                    struct error *err) MUST_CHECK;
void question_release(struct question *question);

#endif
