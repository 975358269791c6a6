/*
 * Any bytes as a question: the answer is one valid JSON object on one line, and the same the
 * second time; and what the plain reader takes, jansson takes too and sees the same in it.
 */
#include "lib/question.h"

#include <assert.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void answer(struct slice question, struct buffer *out)
{
    static struct policy_set policies;
    static bool ready;
    if (!ready) /* loading presets for each input would take all of the time */
        policy_set_init(&policies, NULL);
    ready = true;
    struct decider decider = { .policies = &policies, .now = 0 };
    buffer_clear(out);
    struct json_answer result = decision_json_answer(&decider, question, out);
    assert(buffer_status(out) == STATUS_OK);
    if (result.problem == QUESTION_OK && result.decision.verdict == VERDICT_RETRY)
        assert(result.decision.delay_ms > 0 && result.decision.retry_count > 0);
}

static void compare_readers(struct slice question)
{
    struct members plain, any;
    struct error err;
    if (!members_read_plain(question, &plain))
        return;
    enum question_problem problem = members_read_any(question, &any, &err);
    assert(problem == QUESTION_OK);
    for (int i = 0; i < MEMBER_COUNT; i++) {
        assert(plain.values[i].kind == any.values[i].kind && plain.values[i].integer == any.values[i].integer);
        assert(slice_equal(plain.values[i].text, any.values[i].text));
    }
    members_release(&any);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buffer first, second;
    struct slice question = { (const char *)data, size };
    buffer_init(&first, DECISION_ANSWER_BYTES_MAX);
    buffer_init(&second, DECISION_ANSWER_BYTES_MAX);
    compare_readers(question);
    answer(question, &first);
    answer(question, &second);
    assert(slice_equal(buffer_slice(&first), buffer_slice(&second)));
    assert(slice_find(buffer_slice(&first), '\n') == first.len);
    json_t *object = json_loadb(first.data, first.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    assert(json_is_object(object));
    json_decref(object);
    buffer_release(&first);
    buffer_release(&second);
    return 0;
}
