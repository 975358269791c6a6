/* Which events go out, and in whose words. */
#include "guests/forward_event.h"
#include "support/check.h"

#include <jansson.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#define RETRY_FACTS                                                                                                         \
    "{\"attempt\":2,\"duration_ms\":31,\"class\":\"transient\",\"code\":\"http:503\",\"error\":\"TIMEOUT\","                \
    "\"errorClassification\":\"TRANSIENT\",\"shouldRetry\":true,\"retryCount\":2,\"maxRetries\":5,\"backoffMs\":701234,"    \
    "\"next_at\":\"2025-01-12T10:51:41.234Z\"}"
#define DEAD_FACTS(code) "{\"code\":\"tiss:1001\",\"error\":\"gone wrong\",\"retryCount\":5,\"dead_code\":\"" code "\"}"

static struct event event_of(enum event_type type, const char *facts)
{
    return (struct event){ .number = 77, .at = 1736678500000, .type = type, .state = STATE_DEAD, .attempt = 6,
                           .destination = SLICE("claims"), .tenant = SLICE("h1"), .job = SLICE("CLM-7"),
                           .data = slice_from(facts) };
}

static json_t *said_of(enum event_format format, enum event_type type, const char *facts)
{
    struct arena memory = { 0 };
    struct event event = event_of(type, facts);
    struct job job = { .id = event.job, .created_at = event.at - 5000, .correlation_id = SLICE("c-1") };
    struct forward_event read;
    struct buffer out;
    buffer_init(&out, 65536);
    assert_int_equal(forward_event_read(&event, &memory, &read), STATUS_OK);
    forward_event_write(&out, format, &read, &job);
    json_t *said = json_loadb(out.data, out.len, 0, NULL);
    assert_non_null(said);
    buffer_release(&out);
    arena_release(&memory);
    return said;
}

static void assert_member(const json_t *said, const char *name, const char *value)
{
    const json_t *member = json_object_get(said, name);
    char number[32] = "";
    if (json_is_integer(member))
        snprintf(number, sizeof number, "%lld", (long long)json_integer_value(member));
    const char *is = json_is_string(member) ? json_string_value(member) : json_is_true(member) ? "true" : number;
    check(strcmp(is, value) == 0, "%s is \"%s\", not \"%s\"", name, is, value);
}

/* S0-124 S0-134 S1-097 S1-108 S2-102 C-18 C-30 C-51 */
static void a_scheduled_retry_has_every_documents_members(void **state)
{
    static const char *const members[][2] = {
        { "type", "SubmissionRetryScheduledEvent" }, { "event", "submission_retry_scheduled" }, { "claimId", "CLM-7" },
        { "retryCount", "2" }, { "maxRetries", "5" }, { "errorClassification", "TRANSIENT" },
        { "nextRetryTime", "2025-01-12T10:51:41.234Z" }, { "backoffMinutes", "12" }, { "submissionError", "TIMEOUT" },
        { "executionTimeMs", "31" }, { "version", "77" }, { "timestamp", "2025-01-12T10:41:40.000Z" },
        { "scheduledAt", "2025-01-12T10:41:40.000Z" }, { "level", "warn" }, { "message", "Job failed, scheduling retry" },
        { "jobId", "CLM-7" }, { "companyId", "h1" }, { "attempt", "6" }, { "maxAttempts", "6" }, { "errorCode", "http:503" },
        { "errorReason", "TIMEOUT" }, { "nextRetryDelay", "701234" }, { "isRetryable", "true" },
    };
    (void)state;
    json_t *said = said_of(EVENT_FORMAT_DOCUMENTS, EVENT_TYPE_RETRY_SCHEDULED, RETRY_FACTS);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        assert_member(said, members[i][0], members[i][1]);
    const json_t *types = json_object_get(said, "types");
    assert_string_equal(json_string_value(json_array_get(types, 1)), "RetryScheduledEvent");
    json_decref(said);
}

/* S0-125 S1-098 */
static void retries_used_up_are_told_under_both_names(void **state)
{
    (void)state;
    json_t *said = said_of(EVENT_FORMAT_DOCUMENTS, EVENT_TYPE_DEAD, DEAD_FACTS("MAX_RETRIES_EXCEEDED"));
    assert_member(said, "type", "MaxRetriesExceededEvent");
    assert_string_equal(json_string_value(json_array_get(json_object_get(said, "types"), 1)), "SubmissionRetryExhaustedEvent");
    assert_member(said, "claimId", "CLM-7");
    assert_member(said, "finalError", "gone wrong");
    assert_member(said, "lastError", "gone wrong");
    assert_member(said, "retryCount", "5");
    assert_member(said, "totalAttempts", "6");
    assert_member(said, "totalDuration", "5000");
    assert_member(said, "exceededAt", "2025-01-12T10:41:40.000Z");
    assert_member(said, "severity", "CRITICAL");
    json_decref(said);
}

/* S1-099 */
static void a_permanent_error_is_told(void **state)
{
    (void)state;
    json_t *said = said_of(EVENT_FORMAT_DOCUMENTS, EVENT_TYPE_DEAD, DEAD_FACTS("PERMANENT_ERROR"));
    assert_member(said, "type", "PermanentErrorDetectedEvent");
    assert_member(said, "errorType", "tiss:1001");
    assert_member(said, "errorMessage", "gone wrong");
    assert_member(said, "detectedAt", "2025-01-12T10:41:40.000Z");
    assert_member(said, "severity", "CRITICAL");
    json_decref(said);
}

static void a_cloudevent_has_what_the_standard_asks(void **state)
{
    (void)state;
    json_t *said = said_of(EVENT_FORMAT_CLOUDEVENTS, EVENT_TYPE_RETRY_SCHEDULED, RETRY_FACTS);
    assert_member(said, "specversion", "1.0");
    assert_member(said, "id", "77");
    assert_member(said, "source", "insist");
    assert_member(said, "type", "insist.job.retry_scheduled");
    assert_member(said, "subject", "CLM-7");
    assert_member(said, "time", "2025-01-12T10:41:40.000Z");
    const json_t *data = json_object_get(said, "data");
    assert_member(data, "correlation_id", "c-1");
    assert_member(json_object_get(data, "facts"), "code", "http:503");
    json_decref(said);
}

static void facts_that_are_none_do_no_harm(void **state)
{
    static const char *const texts[] = { "", "{", "[]", "7", "{\"code\":7,\"retryCount\":\"x\"}" };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_decref(said_of(EVENT_FORMAT_CLOUDEVENTS, EVENT_TYPE_DEAD, texts[i]));
        json_decref(said_of(EVENT_FORMAT_DOCUMENTS, EVENT_TYPE_RETRY_SCHEDULED, texts[i]));
    }
}

static void entries_choose(void **state)
{
    static const char yaml[] =
        "events:\n"
        "  - { name: all, to: bus }\n"
        "  - { name: tries, to: bus, on: [attempt] }\n"
        "  - { name: tiss, to: bus, on: [dead, expired], where: { code: [\"tiss:*\"], dead_code: [PERMANENT_ERROR] } }\n"
        "  - { name: late, to: bus, where: { dead_code: [EXPIRED] } }\n"
        "destinations:\n  bus: { url: \"http://127.0.0.1:9\" }\n  claims: { url: \"http://127.0.0.1:9\" }\n";
    static const struct { const char *name, *facts, *destination, *job; enum event_type type; bool wanted[4]; } cases[] = {
        { "a retry", RETRY_FACTS, "claims", "a", EVENT_TYPE_RETRY_SCHEDULED, { true, true, false, false } },
        { "an acceptance", "", "claims", "a", EVENT_TYPE_ACCEPTED, { true, false, false, false } },
        { "a permanent error", DEAD_FACTS("PERMANENT_ERROR"), "claims", "a", EVENT_TYPE_DEAD, { true, true, true, false } },
        { "one that died otherwise", DEAD_FACTS("IN_DOUBT"), "claims", "a", EVENT_TYPE_DEAD, { true, true, false, false } },
        { "an expiry without a code", "", "claims", "a", EVENT_TYPE_EXPIRED, { true, false, false, true } },
        { "one of what tells", DEAD_FACTS("PERMANENT_ERROR"), "bus", "a", EVENT_TYPE_DEAD, { false, false, false, false } },
        { "one of no job", "{}", "", "", EVENT_TYPE_NOTE, { false, false, false, false } },
    };
    struct config *config;
    struct buffer problems;
    (void)state;
    buffer_init(&problems, 4096);
    assert_int_equal(config_parse(slice_from(yaml), "test.yaml", &config, &problems), STATUS_OK);
    assert_int_equal(config->event_count, 4);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena memory = { 0 };
        struct event event = event_of(cases[i].type, cases[i].facts);
        struct forward_event read;
        event.destination = slice_from(cases[i].destination);
        event.job = slice_from(cases[i].job);
        assert_int_equal(forward_event_read(&event, &memory, &read), STATUS_OK);
        for (size_t j = 0; j < 4; j++)
            check(forward_event_wanted(config, &config->events[j], &read) == cases[i].wanted[j], "%s by %s", cases[i].name,
                  config->events[j].name);
        arena_release(&memory);
    }
    buffer_release(&problems);
    config_unref(config);
}

/* What the configuration knows as types of events are those that the store has of jobs. */
static void every_event_of_a_job_can_be_named(void **state)
{
    (void)state;
    for (enum event_type type = EVENT_TYPE_NONE + 1; type < EVENT_TYPE_NOTE; type++) {
        bool known = false;
        for (size_t i = 0; event_words[i] && !known; i++)
            known = strcmp(event_words[i], event_type_name(type)) == 0;
        check(known, "%s cannot be named in events", event_type_name(type));
    }
    for (size_t i = 2; event_words[i]; i++)
        check(event_type_from_name(slice_from(event_words[i])) != EVENT_TYPE_NONE, "there is no event %s", event_words[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scheduled_retry_has_every_documents_members),
        cmocka_unit_test(retries_used_up_are_told_under_both_names),
        cmocka_unit_test(a_permanent_error_is_told),
        cmocka_unit_test(a_cloudevent_has_what_the_standard_asks),
        cmocka_unit_test(facts_that_are_none_do_no_harm),
        cmocka_unit_test(entries_choose),
        cmocka_unit_test(every_event_of_a_job_can_be_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
