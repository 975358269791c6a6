/* A pattern is sought in the first 64 KB of an answer: what it means for a job when it is not found there. */
#include "support/check.h"
#include "support/http_rig.h"
#include "support/receiver.h"

enum { FILLER_BYTES = 100 * 1000 };

static struct rig rig;

static void fill(struct buffer *body, const char *tail)
{
    buffer_init(body, 2 * FILLER_BYTES);
    buffer_append_text(body, "{\"filler\":\"");
    while (body->len < FILLER_BYTES)
        buffer_append_text(body, "filler ");
    buffer_append_text(body, "\"");
    buffer_append_text(body, tail);
    buffer_append_text(body, "}");
    assert_int_equal(buffer_status(body), STATUS_OK);
}

#define PATTERN "'pattern:/[xyz]{3}(\\d+)/'"

static const struct {
    const char *name, *settings, *tail;
    enum outcome outcome;
    bool unconfirmed;
    const char *reference, *text;
} sent[] = {
    { "a reference that nobody needs", "reference: [" PATTERN "]", "", OUTCOME_DELIVERED, false, "", "HTTP 200: {" },
    { "one that decides", "reference: [" PATTERN "], delivered_when: reference", "", OUTCOME_NONE, true, "",
      "HTTP 200 (answer not searched: it is longer than the 64 KB" },
    { "one that decides, at another place", "reference: [" PATTERN ", 'json:/id'], delivered_when: reference", ",\"id\":\"R-1\"",
      OUTCOME_DELIVERED, false, "R-1", "HTTP 200" },
    { "a code as well", "error_code: [" PATTERN ", http.status], reference: ['json:/id']", ",\"id\":\"R-1\"", OUTCOME_NONE, true, "R-1",
      "HTTP 200 (answer not searched: it is longer than the 64 KB" },
};

static void a_reference_counts_where_it_decides(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(sent); i++) {
        struct receiver *receiver = receiver_new(NULL);
        struct rig_send send;
        struct buffer body;
        fill(&body, sent[i].tail);
        const struct receiver_reply reply = { .body = body.data };
        receiver_script(receiver, &reply, 1);
        rig_configure(&rig, "url: 'http://127.0.0.1:%d', allow_private: true, timeout: 60s, %s", receiver_port(receiver),
                      sent[i].settings);
        rig_send(&rig, &send);
        check(send.answer.outcome == sent[i].outcome && send.answer.unconfirmed == sent[i].unconfirmed, "%s: %d %.120s",
              sent[i].name, (int)send.answer.outcome, send.text);
        check(strcmp(send.reference, sent[i].reference) == 0, "%s: %s", sent[i].name, send.reference);
        check(strncmp(send.text, sent[i].text, strlen(sent[i].text)) == 0, "%s: %.120s", sent[i].name, send.text);
        receiver_free(receiver);
        buffer_release(&body);
    }
}

/* The status says nothing of a job; a code that stands in the answer does. */
static void a_question_is_answered_by_what_was_found(void **state)
{
    static const struct { const char *name, *tail; enum query_answer query; } rows[] = {
        { "delivered", ",\"state\":\"done\"", QUERY_DELIVERED },
        { "absent", ",\"state\":\"unknown\"", QUERY_ABSENT },
        { "in no list", ",\"state\":\"other\"", QUERY_UNCLEAR },
        { "nothing found", "", QUERY_UNCLEAR },
    };
    (void)state;
    for (size_t i = 0; i < 2 * COUNT_OF(rows); i++) {
        size_t row = i / 2;
        struct receiver *receiver = receiver_new(NULL);
        struct rig_send send;
        struct buffer body;
        fill(&body, rows[row].tail);
        const struct receiver_reply reply = { .body = body.data };
        receiver_script(receiver, &reply, 1);
        rig_configure(&rig,
                      "url: 'http://127.0.0.1:%d', allow_private: true, timeout: 60s, %s: { url: 'http://127.0.0.1:%d/{id}', "
                      "error_code: [" PATTERN ", 'json:/state', http.status], delivered: ['app:done', 2xx], absent: ['app:unknown'] }",
                      receiver_port(receiver), i % 2 ? "poll" : "verify", receiver_port(receiver));
        rig_prepare(&rig, &send);
        send.job.step = i % 2 ? STEP_POLL : STEP_VERIFY;
        rig_start(&rig, &send);
        rig_wait(&rig, &send);
        check(send.answer.query == rows[row].query, "%s: %d %.120s", rows[row].name, (int)send.answer.query, send.text);
        receiver_free(receiver);
        buffer_release(&body);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reference_counts_where_it_decides),
        cmocka_unit_test(a_question_is_answered_by_what_was_found),
    };
    rig_open(&rig);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rig_close(&rig);
    return failed;
}
