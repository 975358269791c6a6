/* Questions and answers as JSON text: the bytes that other programs are written against. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/question.h"

#define NOW "2025-01-12T10:40:00Z"
enum { NOW_S = 1736678400 };

/* One rule a class, so that every verdict can be asked for. */
static const char every_class[] = "destinations:\n"
                                  "  every:\n"
                                  "    transport: http\n"
                                  "    url: https://example.org/\n"
                                  "    retry: { max_retries: 3, base: 1m, factor: 2, cap: 10m, floor: 1m, jitter: 0, "
                                  "max_elapsed: 1h }\n"
                                  "    in_doubt: park\n"
                                  "    errors:\n"
                                  "      permanent: [BAD]\n"
                                  "      transient: [SLOW]\n"
                                  "      throttled: [FAST]\n"
                                  "      wait: [DOWN]\n"
                                  "      blocked: [LOGIN]\n"
                                  "      duplicate: [TWICE]\n"
                                  "      accepted: [TAKEN]\n"
                                  "      unknown: permanent\n";

struct fixture {
    struct policy_set policies;
    struct decider decider;
    struct buffer out;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    struct config *config = NULL;
    struct buffer problems;
    buffer_init(&problems, 1 << 16);
    enum status status = config_parse(slice_from(every_class), "test.yaml", &config, &problems);
    if (status != STATUS_OK)
        print_error("%s", buffer_slice(&problems).data);
    buffer_release(&problems);
    if (!fixture || status != STATUS_OK)
        return -1;
    policy_set_init(&fixture->policies, config);
    config_unref(config);
    fixture->decider = (struct decider){ .policies = &fixture->policies, .now = (instant)NOW_S * 1000 };
    buffer_init(&fixture->out, DECISION_ANSWER_BYTES_MAX);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    buffer_release(&fixture->out);
    policy_set_release(&fixture->policies);
    free(fixture);
    return 0;
}

/* The answer as jansson reads it: it must be one valid object. */
static json_t *ask(struct fixture *fixture, struct slice question, enum question_problem problem)
{
    json_error_t error;
    buffer_clear(&fixture->out);
    struct json_answer answer = decision_json_answer(&fixture->decider, question, &fixture->out);
    assert_int_equal(buffer_status(&fixture->out), STATUS_OK);
    json_t *object = json_loadb(fixture->out.data, fixture->out.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (!object)
        print_error("%s in %s\n", error.text, fixture->out.data);
    assert_non_null(object);
    if (answer.problem != problem)
        print_error("%.*s\n%s\n", (int)(question.len < 200 ? question.len : 200), question.data, fixture->out.data);
    assert_int_equal(answer.problem, problem);
    return object;
}

static json_t *ask_text(struct fixture *fixture, const char *question)
{
    return ask(fixture, slice_from(question), QUESTION_OK);
}

static const char *text(json_t *object, const char *name)
{
    const char *value = json_string_value(json_object_get(object, name));
    return value ? value : "(absent)";
}

/* The names of the members in their order, each with a comma behind. */
static void assert_members(json_t *object, const char *expected)
{
    char names[512] = "";
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value)
    {
        strcat(names, name);
        strcat(names, ",");
    }
    assert_string_equal(names, expected);
}

static void s1_039_the_retry_answer(void **state)
{
    json_t *answer = ask_text(*state, "{\"claimId\":\"CLM-2025-001\",\"submissionError\":\"TIMEOUT - Connection timeout "
                                      "after 30s\",\"retryCount\":1,\"lastSubmissionTime\":null,\"policy\":\"tiss\",\"now\":\"" NOW "\"}");
    assert_members(answer, "shouldRetry,retryCount,maxRetries,backoffMinutes,backoffMs,nextRetryTime,retryReason,"
                           "errorClassification,originalError,outcome,action,rule,");
    assert_true(json_is_true(json_object_get(answer, "shouldRetry")));
    assert_int_equal(json_integer_value(json_object_get(answer, "retryCount")), 2);
    assert_int_equal(json_integer_value(json_object_get(answer, "maxRetries")), 5);
    json_int_t wait = json_integer_value(json_object_get(answer, "backoffMs"));
    assert_in_range(wait, 480000, 720000);
    assert_int_equal(json_integer_value(json_object_get(answer, "backoffMinutes")), (wait + 30000) / 60000);
    assert_string_equal(text(answer, "errorClassification"), "TRANSIENT");
    assert_string_equal(text(answer, "action"), "retry");
    assert_string_equal(text(answer, "rule"), "TIMEOUT");

    instant next;
    assert_int_equal(instant_parse(slice_from(text(answer, "nextRetryTime")), &next, NULL), STATUS_OK);
    assert_int_equal(next, (instant)NOW_S * 1000 + wait);
    json_decref(answer);
}

static void s1_040_the_sample_texts(void **state)
{
    json_t *answer = ask_text(*state, "{\"claimId\":\"CLM-2025-001\",\"submissionError\":\"TIMEOUT - Connection timeout "
                                      "after 30s\",\"retryCount\":1,\"policy\":\"tiss\"}");
    assert_string_equal(text(answer, "retryReason"), "Transient error, retry 2 of 5");
    assert_string_equal(text(answer, "originalError"), "TIMEOUT - Connection timeout after 30s");
    json_decref(answer);
}

static void s0_045_the_permanent_answer(void **state)
{
    json_t *answer = ask_text(*state, "{\"claimId\":\"CLM-A-1\",\"submissionError\":\"invalid_patient_data (TIMEOUT)\","
                                      "\"policy\":\"tiss\"}");
    assert_members(answer, "shouldRetry,errorCode,errorClassification,retryCount,maxRetries,retryReason,originalError,"
                           "outcome,action,rule,");
    assert_true(json_is_false(json_object_get(answer, "shouldRetry")));
    assert_string_equal(text(answer, "errorCode"), "PERMANENT_ERROR");
    assert_string_equal(text(answer, "errorClassification"), "PERMANENT");
    assert_int_equal(json_integer_value(json_object_get(answer, "retryCount")), 0);
    json_decref(answer);
}

static void a_01_the_retry_limit(void **state)
{
    static const struct { const char *count; bool retries; } cases[] = {
        { "0", true }, { "4", true }, { "5", false }, { "6", false }, { "1000", false }, { "9223372036854775807", false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char question[256];
        snprintf(question, sizeof question, "{\"id\":\"CLM-A-1\",\"submissionError\":\"503\",\"policy\":\"tiss\",\"retryCount\":%s}",
                 cases[i].count);
        json_t *answer = ask_text(*state, question);
        assert_int_equal(json_is_true(json_object_get(answer, "shouldRetry")), cases[i].retries);
        assert_string_equal(text(answer, "errorCode"), cases[i].retries ? "(absent)" : "MAX_RETRIES_EXCEEDED");
        json_decref(answer);
    }
}

#define EVERY "{\"id\":\"j-1\",\"policy\":\"every\",\"now\":\"" NOW "\",\"submissionError\":"

/* Columns: shouldRetry, errorCode, errorClassification, action, retryReason, retryCount, backoffMs (-1: absent). */
static const struct verdict_case {
    const char *name, *question;
    bool retry;
    const char *code, *label, *action, *reason;
    int count, wait_ms;
} verdict_cases[] = {
    { "transient", EVERY "\"SLOW\",\"retryCount\":1}", true, NULL, "TRANSIENT", "retry", "Transient error, retry 2 of 3", 2, 120000 },
    { "permanent", EVERY "\"BAD\"}", false, "PERMANENT_ERROR", "PERMANENT", "dead", "Permanent error, not retried", 0, -1 },
    { "unknown", EVERY "\"ODD\"}", false, "PERMANENT_ERROR", "UNKNOWN", "dead", "Unknown error, which this policy does not retry", 0, -1 },
    { "wait", EVERY "\"DOWN\",\"retryCount\":1}", true, NULL, "TRANSIENT", "hold",
      "Destination unavailable, waits without spending a retry, 1 of 3 used", 1, 120000 },
    { "wait is never exhausted", EVERY "\"DOWN\",\"retryCount\":3}", true, NULL, "TRANSIENT", "hold",
      "Destination unavailable, waits without spending a retry, 3 of 3 used", 3, 480000 },
    { "blocked", EVERY "\"LOGIN\"}", false, "PERMANENT_ERROR", "PERMANENT", "block",
      "Refused, or nothing can be sent as it is set; hold it until that is mended, no retry is spent", 0, -1 },
    { "duplicate", EVERY "\"TWICE\"}", false, "PERMANENT_ERROR", "PERMANENT", "dead", "Destination has it already, not retried", 0, -1 },
    { "duplicate after doubt", EVERY "\"TWICE\",\"doubted\":true}", false, NULL, "PERMANENT", "complete",
      "Arrived with an earlier attempt", 0, -1 },
    { "in doubt", EVERY "\"no answer\",\"inDoubt\":true}", false, "PERMANENT_ERROR", "TRANSIENT", "park",
      "Answer lost, a person must find out whether it arrived", 0, -1 },
    { "exhausted by count", EVERY "\"SLOW\",\"retryCount\":3}", false, "MAX_RETRIES_EXCEEDED", "TRANSIENT", "dead",
      "Maximum retries exceeded, 3 allowed", 3, -1 },
    { "exhausted by time", EVERY "\"SLOW\",\"firstSubmissionTime\":\"2025-01-12T09:40:30Z\"}", false, "MAX_RETRIES_EXCEEDED",
      "TRANSIENT", "dead", "Maximum time exceeded, the next retry would come more than 1h after the first attempt", 0, -1 },
    { "in time", EVERY "\"SLOW\",\"firstSubmissionTime\":\"2025-01-12T09:41:00Z\"}", true, NULL, "TRANSIENT", "retry",
      "Transient error, retry 1 of 3", 1, 60000 },
    { "deadline", EVERY "\"SLOW\",\"deadline\":\"2025-01-12T10:40:59Z\"}", false, "EXPIRED", "TRANSIENT", "dead",
      "Deadline exceeded, the next try would come after it", 0, -1 },
    { "deadline reached in time", EVERY "\"SLOW\",\"deadline\":\"2025-01-12T10:41:00Z\"}", true, NULL, "TRANSIENT", "retry",
      "Transient error, retry 1 of 3", 1, 60000 },
    { "asked to wait longer", EVERY "\"SLOW\",\"retryAfterMs\":300000}", true, NULL, "TRANSIENT", "retry",
      "Transient error, retry 1 of 3", 1, 300000 },
    { "the code decides", EVERY "\"who knows\",\"code\":\"http:BAD\"}", false, "PERMANENT_ERROR", "PERMANENT", "dead",
      "Permanent error, not retried", 0, -1 },
    { "null is absent", EVERY "\"SLOW\",\"retryCount\":null,\"code\":null,\"priority\":null,\"deadline\":null,\"seed\":null,"
      "\"inDoubt\":null,\"retryAfterMs\":null,\"claimId\":null}", true, NULL, "TRANSIENT", "retry", "Transient error, retry 1 of 3", 1, 60000 },
    { "others are ignored", EVERY "\"SLOW\",\"errorMessage\":7,\"x\":{\"retryCount\":-1}}", true, NULL, "TRANSIENT", "retry",
      "Transient error, retry 1 of 3", 1, 60000 },
};

static void every_verdict(void **state)
{
    for (size_t i = 0; i < sizeof verdict_cases / sizeof *verdict_cases; i++) {
        const struct verdict_case *expected = &verdict_cases[i];
        json_t *answer = ask_text(*state, expected->question);
        json_t *wait = json_object_get(answer, "backoffMs");
        bool same = json_is_true(json_object_get(answer, "shouldRetry")) == expected->retry &&
                    strcmp(text(answer, "errorCode"), expected->code ? expected->code : "(absent)") == 0 &&
                    strcmp(text(answer, "errorClassification"), expected->label) == 0 &&
                    strcmp(text(answer, "action"), expected->action) == 0 &&
                    strcmp(text(answer, "retryReason"), expected->reason) == 0 &&
                    json_integer_value(json_object_get(answer, "retryCount")) == expected->count &&
                    (wait ? json_integer_value(wait) : -1) == expected->wait_ms;
        if (!same)
            fail_msg("%s: %s", expected->name, ((struct fixture *)*state)->out.data);
        json_decref(answer);
    }
}

static void poll_is_no_retry(void **state)
{
    json_t *answer = ask_text(*state, EVERY "\"TAKEN\"}");
    assert_true(json_is_false(json_object_get(answer, "shouldRetry")));
    assert_null(json_object_get(answer, "errorCode"));
    assert_string_equal(text(answer, "action"), "poll");
    assert_string_equal(text(answer, "outcome"), "accepted");
    assert_non_null(json_object_get(answer, "nextRetryTime"));
    json_decref(answer);
}

static void throttled_answer_names_itself(void **state)
{
    json_t *answer = ask_text(*state, EVERY "\"FAST\"}");
    assert_true(json_is_true(json_object_get(answer, "shouldRetry")));
    assert_string_equal(text(answer, "outcome"), "throttled");
    assert_memory_equal(text(answer, "retryReason"), "Too many requests, ", 19);
    json_decref(answer);
}

#define TISS "{\"claimId\":\"CLM-A-1\",\"policy\":\"tiss\","
#define ERR "\"submissionError\":\"TIMEOUT\""
#define DIGITS_100 "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
#define TEN_TO_400 "1" DIGITS_100 DIGITS_100 DIGITS_100 DIGITS_100
#define CASE(name, text, problem) { name, text, sizeof(text) - 1, problem }

static const struct { const char *name, *text; size_t len; enum question_problem problem; } bad[] = {
    CASE("empty", "", QUESTION_INVALID_JSON),
    CASE("blank", "  \t ", QUESTION_INVALID_JSON),
    CASE("NUL", "\0", QUESTION_INVALID_JSON),
    CASE("NUL inside", "{\"claimId\":\"CLM-A-1\"\0}", QUESTION_INVALID_JSON),
    CASE("cut off", TISS ERR, QUESTION_INVALID_JSON),
    CASE("two objects", TISS ERR "}{}", QUESTION_INVALID_JSON),
    CASE("an array", "[]", QUESTION_INVALID_JSON),
    CASE("a string", "\"TIMEOUT\"", QUESTION_INVALID_JSON),
    CASE("a null", "null", QUESTION_INVALID_JSON),
    CASE("a duplicate key", TISS ERR ",\"claimId\":\"CLM-A-2\"}", QUESTION_INVALID_JSON),
    CASE("not UTF-8", TISS "\"submissionError\":\"TIMEOUT \xff\"}", QUESTION_INVALID_JSON),
    CASE("an overlong UTF-8 sequence", TISS "\"submissionError\":\"\xc0\xaf\"}", QUESTION_INVALID_JSON),
    CASE("a lone surrogate", TISS "\"submissionError\":\"\\ud800\"}", QUESTION_INVALID_JSON),
    CASE("a NUL in a key", TISS ERR ",\"a\\u0000b\":1}", QUESTION_INVALID_JSON),
    CASE("another number of 10^400", TISS ERR ",\"x\":" TEN_TO_400 "}", QUESTION_INVALID_JSON),
    CASE("10^400 in a nested retryCount", TISS ERR ",\"x\":{\"retryCount\":" TEN_TO_400 "}}", QUESTION_INVALID_JSON),
    CASE("an unknown policy", "{\"claimId\":\"CLM-A-1\"," ERR ",\"policy\":\"tis\"}", QUESTION_UNKNOWN_POLICY),
    CASE("an empty policy", "{\"claimId\":\"CLM-A-1\"," ERR ",\"policy\":\"\"}", QUESTION_UNKNOWN_POLICY),
    CASE("no policy", "{\"claimId\":\"CLM-A-1\"," ERR "}", QUESTION_UNKNOWN_POLICY),
    CASE("a number as policy", "{\"claimId\":\"CLM-A-1\"," ERR ",\"policy\":1}", QUESTION_UNKNOWN_POLICY),
    CASE("S0-050: no id", "{\"policy\":\"tiss\"," ERR "}", QUESTION_INVALID_ID),
    CASE("S0-050: an empty id", "{\"policy\":\"tiss\",\"claimId\":\"\"," ERR "}", QUESTION_INVALID_ID),
    CASE("S0-050: a number as id", "{\"policy\":\"tiss\",\"claimId\":12," ERR "}", QUESTION_INVALID_ID),
    CASE("S0-050: a NUL in the id", "{\"policy\":\"tiss\",\"claimId\":\"CLM-\\u0000-1\"," ERR "}", QUESTION_INVALID_ID),
    CASE("S1-034: an id of another form", "{\"policy\":\"tiss\",\"claimId\":\"CLAIM-1\"," ERR "}", QUESTION_INVALID_ID),
    CASE("A-06: no error", TISS "\"retryCount\":0}", QUESTION_INVALID_ERROR_MESSAGE),
    CASE("A-06: a null error", TISS "\"submissionError\":null}", QUESTION_INVALID_ERROR_MESSAGE),
    CASE("A-06: an empty error", TISS "\"submissionError\":\"\"}", QUESTION_INVALID_ERROR_MESSAGE),
    CASE("A-06: a blank error", TISS "\"submissionError\":\" \\t\\n\"}", QUESTION_INVALID_ERROR_MESSAGE),
    CASE("A-06: a NUL as error", TISS "\"submissionError\":\"\\u0000\"}", QUESTION_INVALID_ERROR_MESSAGE),
    CASE("A-06: a number as error", TISS "\"submissionError\":503}", QUESTION_INVALID_ERROR_MESSAGE),
    CASE("A-05: -1", TISS ERR ",\"retryCount\":-1}", QUESTION_INVALID_RETRY_COUNT),
    CASE("A-05: the smallest integer", TISS ERR ",\"retryCount\":-9223372036854775808}", QUESTION_INVALID_RETRY_COUNT),
    CASE("A-05: 1.5", TISS ERR ",\"retryCount\":1.5}", QUESTION_INVALID_RETRY_COUNT),
    CASE("A-05: x", TISS ERR ",\"retryCount\":\"x\"}", QUESTION_INVALID_RETRY_COUNT),
    CASE("A-05: 1 as text", TISS ERR ",\"retryCount\":\"1\"}", QUESTION_INVALID_RETRY_COUNT),
    CASE("A-05: true", TISS ERR ",\"retryCount\":true}", QUESTION_INVALID_RETRY_COUNT),
    CASE("A-05: 10^400", TISS ERR ",\"retryCount\":" TEN_TO_400 "}", QUESTION_INVALID_RETRY_COUNT),
    CASE("A-05: 10^400, minus", TISS ERR ",\"retryCount\" : -" TEN_TO_400 " }", QUESTION_INVALID_RETRY_COUNT),
    CASE("A-05: 1e400", TISS ERR ",\"retryCount\":1e400,\"x\":{}}", QUESTION_INVALID_RETRY_COUNT),
    CASE("A-05: 2^63", TISS ERR ",\"a\":[\"{\\\"\",{\"b\":\"}\"}],\"retryCount\":9223372036854775808}", QUESTION_INVALID_RETRY_COUNT),
    CASE("S0-053: a time without a zone", TISS ERR ",\"lastSubmissionTime\":\"2025-01-12T10:40:00\"}", QUESTION_INVALID_TIME),
    CASE("S0-053: a number as time", TISS ERR ",\"lastSubmissionTime\":1736678400}", QUESTION_INVALID_TIME),
    CASE("now: no such day", TISS ERR ",\"now\":\"2025-02-29T00:00:00Z\"}", QUESTION_INVALID_TIME),
    CASE("now: empty", TISS ERR ",\"now\":\"\"}", QUESTION_INVALID_TIME),
    CASE("A-11: now at the end of time", TISS ERR ",\"now\":\"9999-12-31T23:59:59Z\"}", QUESTION_INVALID_TIME),
    CASE("now before time", TISS ERR ",\"now\":\"0001-01-01T00:00:00+23:00\"}", QUESTION_INVALID_TIME),
    CASE("firstSubmissionTime", TISS ERR ",\"firstSubmissionTime\":\"yesterday\"}", QUESTION_INVALID_TIME),
    CASE("deadline", TISS ERR ",\"deadline\":false}", QUESTION_INVALID_TIME),
    CASE("a number as code", TISS ERR ",\"code\":503}", QUESTION_INVALID_JSON),
    CASE("an unknown priority", TISS ERR ",\"priority\":\"urgent\"}", QUESTION_INVALID_JSON),
    CASE("a priority of 4", TISS ERR ",\"priority\":4}", QUESTION_INVALID_JSON),
    CASE("a negative wish", TISS ERR ",\"retryAfterMs\":-1}", QUESTION_INVALID_JSON),
    CASE("a text as doubt", TISS ERR ",\"inDoubt\":\"yes\"}", QUESTION_INVALID_JSON),
    CASE("a real as seed", TISS ERR ",\"seed\":0.5}", QUESTION_INVALID_JSON),
};

static void bad_questions_are_answered(void **state)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        json_t *answer = ask(*state, (struct slice){ bad[i].text, bad[i].len }, bad[i].problem);
        assert_members(answer, "error,detail,");
        assert_string_equal(text(answer, "error"), question_problem_name(bad[i].problem));
        assert_true(strlen(text(answer, "detail")) > 10);
        json_decref(answer);
    }
}

/* Columns: whether the plain reader takes it. What it takes, jansson must read in the same way. */
static const struct { const char *text; bool plain; } plain_cases[] = {
    { TISS ERR "}", true },
    { " {\t\"id\" : \"a\" , \"retryCount\" : -0 ,\r\n\"inDoubt\":true,\"doubted\":false,\"now\":null} ", true },
    { "{\"id\":\"\xc3\xa9\xf0\x9f\x98\x80\x7f\",\"seed\":999999999999999999}", true },
    { "{\"id\":\"\"}", true },
    { "{}", false },
    { "{\"id\":\"a\\n\"}", false },
    { "{\"id\":\"a\",\"id\":\"a\"}", false },
    { "{\"x\":1,\"x\":2}", false },
    { "{\"x\":[]}", false },
    { "{\"x\":1.0}", false },
    { "{\"x\":1e0}", false },
    { "{\"x\":01}", false },
    { "{\"x\":-}", false },
    { "{\"x\":+1}", false },
    { "{\"x\":1000000000000000000}", false },
    { "{\"x\":tru}", false },
    { "{\"x\":truely}", false },
    { "{\"x\":1,}", false },
    { "{\"x\":1}}", false },
    { "{\"x\" 1}", false },
    { "{\"x\":", false },
    { "{\"x", false },
    { "{\"x\":\"\xed\xa0\x80\"}", false },
    { "{\"x\":\"\xe2\x82", false },
    { "{\"x\":\"a\tb\"}", false },
};

static void both_readers_agree(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof plain_cases / sizeof *plain_cases; i++) {
        struct members plain, any;
        struct error err;
        struct slice question = slice_from(plain_cases[i].text);
        bool taken = members_read_plain(question, &plain);
        if (taken != plain_cases[i].plain)
            fail_msg("%s", plain_cases[i].text);
        enum question_problem problem = members_read_any(question, &any, &err);
        if (taken) {
            assert_int_equal(problem, QUESTION_OK);
            for (int m = 0; m < MEMBER_COUNT; m++) {
                assert_int_equal(plain.values[m].kind, any.values[m].kind);
                assert_int_equal(plain.values[m].integer, any.values[m].integer);
                assert_true(slice_equal(plain.values[m].text, any.values[m].text));
            }
        }
        members_release(&any);
    }
}

static void unknown_policy_names_the_nearest(void **state)
{
    struct fixture *fixture = *state;
    json_t *answer = ask(fixture, slice_from("{\"claimId\":\"CLM-A-1\"," ERR ",\"policy\":\"tis\"}"), QUESTION_UNKNOWN_POLICY);
    assert_non_null(strstr(text(answer, "detail"), "\"tiss\""));
    json_decref(answer);
    answer = ask(fixture, slice_from("{\"claimId\":\"CLM-A-1\"," ERR ",\"policy\":\"evry\"}"), QUESTION_UNKNOWN_POLICY);
    assert_non_null(strstr(text(answer, "detail"), "\"every\""));
    json_decref(answer);
}

static void long_questions(void **state)
{
    struct fixture *fixture = *state;
    static const char head[] = TISS "\"submissionError\":\"TIMEOUT ";
    size_t len = DECISION_QUESTION_BYTES_MAX + 1;
    char *question = malloc(len);
    assert_non_null(question);
    memset(question, 0x7f, len); /* needs six bytes in the answer */
    memcpy(question, head, sizeof head - 1);
    memcpy(question + len - 2, "\"}", 2);
    json_t *answer = ask(fixture, (struct slice){ question, len }, QUESTION_INVALID_JSON);
    assert_non_null(strstr(text(answer, "detail"), "4194304"));
    json_decref(answer);

    memcpy(question + len - 3, "\"}", 2);
    answer = ask(fixture, (struct slice){ question, len - 1 }, QUESTION_OK);
    assert_int_equal(strlen(text(answer, "originalError")), len - 1 - (sizeof head - 1) - 2 + strlen("TIMEOUT "));
    json_decref(answer);
    free(question);
}

static void s1_idempotent_analysis(void **state)
{
    struct fixture *fixture = *state;
    const char *question = TISS ERR ",\"retryCount\":2,\"seed\":7,\"now\":\"" NOW "\"}";
    json_decref(ask_text(fixture, question));
    char *first = strdup(fixture->out.data);
    json_decref(ask_text(fixture, EVERY "\"SLOW\"}"));
    json_decref(ask_text(fixture, question));
    assert_string_equal(fixture->out.data, first);
    free(first);
}

static void seed_and_priority_count(void **state)
{
    struct fixture *fixture = *state;
    json_t *plain = ask_text(fixture, TISS ERR ",\"retryCount\":3}");
    json_t *seeded = ask_text(fixture, TISS ERR ",\"retryCount\":3,\"seed\":1}");
    assert_int_not_equal(json_integer_value(json_object_get(plain, "backoffMs")),
                         json_integer_value(json_object_get(seeded, "backoffMs")));
    json_decref(plain);
    json_decref(seeded);
    json_decref(ask_text(fixture, TISS ERR ",\"priority\":\"critical\"}"));
    json_decref(ask_text(fixture, TISS ERR ",\"priority\":3}"));
}

static void broken_bytes_are_repaired(void **state)
{
    struct fixture *fixture = *state;
    const struct policy *policy;
    struct error err;
    assert_int_equal(policy_set_find(&fixture->policies, SLICE("every"), &policy, &err), STATUS_OK);
    struct decide_request request = { .id = SLICE("j-1"),       .text = SLICE("SLOW \xff\xfe \xc3\xa9 \0 end"),
                                      .priority = PRIORITY_NORMAL, .retry_after_ms = -1,
                                      .now = 0,                 .first_at = INSTANT_NONE,
                                      .deadline = INSTANT_NONE };
    buffer_clear(&fixture->out);
    struct json_answer answer = decision_json_decide(policy, &request, &fixture->out);
    assert_int_equal(answer.problem, QUESTION_OK);
    assert_non_null(strstr(fixture->out.data, "\"SLOW \xef\xbf\xbd\xef\xbf\xbd \xc3\xa9 \\u0000 end\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(s1_039_the_retry_answer),
        cmocka_unit_test(s1_040_the_sample_texts),
        cmocka_unit_test(s0_045_the_permanent_answer),
        cmocka_unit_test(a_01_the_retry_limit),
        cmocka_unit_test(every_verdict),
        cmocka_unit_test(poll_is_no_retry),
        cmocka_unit_test(throttled_answer_names_itself),
        cmocka_unit_test(bad_questions_are_answered),
        cmocka_unit_test(both_readers_agree),
        cmocka_unit_test(unknown_policy_names_the_nearest),
        cmocka_unit_test(long_questions),
        cmocka_unit_test(s1_idempotent_analysis),
        cmocka_unit_test(seed_and_priority_count),
        cmocka_unit_test(broken_bytes_are_repaired),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
