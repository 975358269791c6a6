/*
 * Decisions for whoever sends by himself; the trail and the export by the documents' names.
 */
#include "support/api_fixture.h"
#include "support/check.h"

#include "base/log.h"

#include <stdio.h>
#include <string.h>

static int setup(void **state)
{
    *state = api_fixture_new(NULL);
    return 0;
}

static int teardown(void **state)
{
    api_fixture_free(*state);
    return 0;
}

static void decisions_are_answered(void **state)
{
    struct api_fixture *fixture = *state;
    static const struct { const char *body; int status; const char *contains;
    } rows[] = {
        { "{\"claimId\":\"CLM-1\",\"submissionError\":\"TIMEOUT\",\"policy\":\"web\"}", 200, "\"shouldRetry\":true" },
        { "{\"claimId\":\"CLM-1\",\"submissionError\":\"BROKEN\",\"policy\":\"web\"}", 200, "PERMANENT_ERROR" },
        { "{\"claimId\":\"CLM-1\",\"submissionError\":\"TIMEOUT\",\"retryCount\":3,\"policy\":\"web\"}", 200,
          "MAX_RETRIES_EXCEEDED" },
        { "{\"claimId\":\"CLM-X-1\",\"submissionError\":\"TIMEOUT\",\"policy\":\"tiss\"}", 200, "\"maxRetries\":5" },
        { "{\"claimId\":\"CLM-1\",\"submissionError\":\"\",\"policy\":\"web\"}", 422, "INVALID_ERROR_MESSAGE" },
        { "{\"claimId\":\"CLM-1\",\"submissionError\":\"x\",\"policy\":\"wbe\"}", 422, "UNKNOWN_POLICY" },
        { "{", 422, "INVALID_JSON" },
        { "", 422, "INVALID_JSON" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct reply reply = http_do(fixture, "POST", "/v1/decide", rows[i].body);
        check(reply.status == rows[i].status && strstr(reply.body, rows[i].contains), "%s: %d %s", rows[i].body,
              reply.status, reply.body);
        reply_release(&reply);
    }
}

/* S0-093, S1-024, S1-060: in the first event of a list. */
static void check_document_names(struct reply *reply)
{
    static const char *const names[] = { "timestamp", "claimId", "errorMessage", "error", "retryCount", "errorClassification",
                                         "backoffMinutes", "nextRetryTime", "shouldRetry", "retryReason",
                                         "submissionError", "maxRetries", "executionTimeMs" };
    const json_t *event = json_array_get(reply_at(reply, "events"), 0);
    for (size_t i = 0; i < COUNT_OF(names); i++)
        check(json_object_get(event, names[i]), "%s is not in %s", names[i], reply->body);
    assert_string_equal(reply_text(reply, "events.0.eventType"), "SubmissionRetryScheduledEvent");
}

static void attempts_have_the_documents_names(void **state)
{
    struct api_fixture *fixture = *state;
    put_job(fixture, "web", "t", "CLM-1", "fail");
    await_number(fixture, "/v1/jobs/CLM-1?tenant=t", "retry_count", 1);
    struct reply reply = http_do(fixture, "GET", "/v1/events?format=documents", NULL);
    assert_int_equal(json_array_size(reply_at(&reply, "events")), 1); /* no claim, no acceptance */
    check_document_names(&reply);
    assert_string_equal(reply_text(&reply, "events.0.claimId"), "CLM-1");
    assert_string_equal(reply_text(&reply, "events.0.errorMessage"), "HTTP 503: Service Unavailable");
    reply_release(&reply);
    reply = http_do(fixture, "GET", "/v1/events?format=xml", NULL);
    assert_int_equal(reply.status, 422);
    reply_release(&reply);
}

/* What somebody else's sender is told is on record, by the documents' names, and counted. */
static void decisions_are_kept(void **state)
{
    struct api_fixture *fixture = *state;
    static const char question[] = "{\"claimId\":\"CLM-9-1\",\"submissionError\":\"TIMEOUT of 12345678901\",\"policy\":\"tiss\"%s}";
    char body[256];
    snprintf(body, sizeof body, question, ",\"record\":false");
    struct reply reply = http_do(fixture, "POST", "/v1/decide", body);
    assert_int_equal(reply.status, 200);
    reply_release(&reply);
    reply = http_do(fixture, "GET", "/v1/events?format=documents", NULL);
    assert_int_equal(json_array_size(reply_at(&reply, "events")), 0);
    reply_release(&reply);
    snprintf(body, sizeof body, question, "");
    reply = http_do(fixture, "POST", "/v1/decide", body);
    assert_int_equal(reply.status, 200);
    reply_release(&reply);
    reply = http_do(fixture, "GET", "/v1/events?format=documents", NULL);
    assert_int_equal(json_array_size(reply_at(&reply, "events")), 1);
    check_document_names(&reply);
    assert_string_equal(reply_text(&reply, "events.0.claimId"), "CLM-9-1");
    assert_string_equal(reply_text(&reply, "events.0.errorMessage"), "TIMEOUT of <number>");
    assert_int_equal(reply_int(&reply, "events.0.retryCount"), 1);
    reply_release(&reply);
    reply = http_do(fixture, "GET", "/metrics", NULL);
    static const char *const moved[] = { "submission_retry_total{destination=\"tiss\"} 1\n",
                                         "retry_scheduled_total{destination=\"tiss\"} 1\n",
                                         "permanent_errors_total{destination=\"tiss\"} 0\n",
                                         "backoff_duration_minutes_count{destination=\"tiss\"} 1\n",
                                         "retry_analysis_duration_seconds_count{destination=\"tiss\"} 1\n",
                                         "error_classification_distribution{destination=\"tiss\",classification=\"TRANSIENT\"} 1\n" };
    for (size_t i = 0; i < COUNT_OF(moved); i++)
        check(strstr(reply.body, moved[i]), "no %s", moved[i]);
    assert_null(strstr(reply.body, "dlq_size{destination=\"tiss\"}"));
    assert_null(strstr(reply.body, "submission_retry_total{destination=\"web\"}")); /* nobody used it */
    reply_release(&reply);
}

/* How often a job was retried is known where the question does not say. */
static void decisions_know_the_job(void **state)
{
    struct api_fixture *fixture = *state;
    static const struct { const char *more; int64_t count; } rows[] = {
        { "", 1 }, { ",\"tenant\":\"t\"", 2 }, { ",\"tenant\":\"t\",\"retryCount\":0", 1 }, { ",\"tenant\":\"u\"", 1 },
    };
    put_job(fixture, "web", "t", "known", "fail");
    await_number(fixture, "/v1/jobs/known?tenant=t", "retry_count", 1);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char body[256];
        snprintf(body, sizeof body, "{\"id\":\"known\",\"submissionError\":\"TIMEOUT\",\"policy\":\"web\"%s}", rows[i].more);
        struct reply reply = http_do(fixture, "POST", "/v1/decide", body);
        check(reply_int(&reply, "retryCount") == rows[i].count, "%s: %s", rows[i].more, reply.body);
        reply_release(&reply);
    }
}

/* C-38, S2-032, S2-038: a job that grew too old before it was ever tried has a reason in the export too. */
static void an_expired_job_says_so_in_the_export(void **state)
{
    struct api_fixture *fixture = *state;
    char body[256], deadline[INSTANT_TEXT_BYTES];
    instant_format(clock_now() + HOUR_MS, deadline);
    snprintf(body, sizeof body, "{\"destination\":\"yard\",\"tenant\":\"t\",\"id\":\"old\",\"payload\":\"x\",\"deadline\":\"%s\"}",
             deadline);
    struct reply reply = http_do(fixture, "POST", "/v1/jobs", body);
    assert_int_equal(reply.status, 201);
    reply_release(&reply);
    api_fixture_advance(fixture, 2 * HOUR_MS);
    await_state(fixture, "/v1/jobs/old?tenant=t", "dead");
    reply = http_do(fixture, "GET", "/v1/dead/export", NULL);
    check(reply.status == 200 && strstr(reply.body, "\"lastFailureReason\":\"EXPIRED: not delivered by its deadline"), "%d %s", reply.status, reply.body);
    reply_release(&reply);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(decisions_are_answered, setup, teardown),
        cmocka_unit_test_setup_teardown(decisions_are_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(attempts_have_the_documents_names, setup, teardown),
        cmocka_unit_test_setup_teardown(decisions_know_the_job, setup, teardown),
        cmocka_unit_test_setup_teardown(an_expired_job_says_so_in_the_export, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
