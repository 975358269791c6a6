/*
 * The decision in the words of the documents: members, types and texts of the JSON answer.
 * A case's name begins with the requirements that it keeps.
 */
#include "insist.h"

#include "base/instant.h"

#include <jansson.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const int64_t now_ms = 1736678400000; /* 2025-01-12T10:40:00Z */

static int load(void **state)
{
    struct insist_policy *policy = NULL;
    char problem[256];
    if (insist_policy_from_preset("tiss", &policy, problem, sizeof problem) != INSIST_OK) {
        print_error("%s\n", problem);
        return -1;
    }
    *state = policy;
    return 0;
}

static int release(void **state)
{
    insist_policy_free(*state);
    return 0;
}

static json_t *asked(void *policy, const char *question)
{
    char *answer = NULL;
    size_t len = 0;
    assert_int_equal(insist_decide_json(policy, question, strlen(question), now_ms, &answer, &len), INSIST_OK);
    json_t *object = json_loadb(answer, len, 0, NULL);
    insist_text_free(answer);
    assert_non_null(object);
    return object;
}

#define TRANSIENT                                                                                                       \
    "{\"claimId\":\"CLM-2025-001\",\"submissionError\":\"TIMEOUT - Connection timeout after 30s\",\"retryCount\":1}"
#define FIRST "{\"claimId\":\"CLM-2025-001\",\"submissionError\":\"TIMEOUT\"}"
#define UNKNOWN "{\"claimId\":\"CLM-2025-001\",\"submissionError\":\"WEIRD\"}"
#define PERMANENT "{\"claimId\":\"CLM-2025-001\",\"submissionError\":\"INVALID_PATIENT_DATA - CPF\"}"
#define EXHAUSTED "{\"claimId\":\"CLM-2025-001\",\"submissionError\":\"TIMEOUT\",\"retryCount\":5}"

/* `expected` is JSON; NULL: the member must be absent. */
static const struct {
    const char *name, *question, *member, *expected;
} cases[] = {
    { "S0-039 S0-060 S1-038 S1-039", TRANSIENT, "shouldRetry", "true" },
    { "S0-041 S0-062 S0-121 S1-038 S1-039", TRANSIENT, "retryCount", "2" },
    { "S0-123 S1-039", TRANSIENT, "maxRetries", "5" },
    { "S0-042 S0-063 S1-023 S1-040 C-17", TRANSIENT, "retryReason", "\"Transient error, retry 2 of 5\"" },
    { "S0-123 S1-039", TRANSIENT, "errorClassification", "\"TRANSIENT\"" },
    { "S1-039 S1-040", TRANSIENT, "originalError", "\"TIMEOUT - Connection timeout after 30s\"" },
    { "S0-058 S1-041 the count is 0 when none is given", FIRST, "retryCount", "1" },
    { "S0-123 unknown", UNKNOWN, "errorClassification", "\"UNKNOWN\"" },
    { "C-17 unknown", UNKNOWN, "retryReason", "\"Unknown error, retry 1 of 5\"" },
    { "S0-099 S0-120", PERMANENT, "errorCode", "\"PERMANENT_ERROR\"" },
    { "S0-120 with its text", PERMANENT, "originalError", "\"INVALID_PATIENT_DATA - CPF\"" },
    { "S0-099", PERMANENT, "shouldRetry", "false" },
    { "S0-099 no time is given", PERMANENT, "nextRetryTime", NULL },
    { "S0-098", EXHAUSTED, "errorCode", "\"MAX_RETRIES_EXCEEDED\"" },
    { "S0-098", EXHAUSTED, "shouldRetry", "false" },
    { "S0-123 RetryCount may be 5", EXHAUSTED, "retryCount", "5" },
};

static void members(void **state)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        json_t *answer = asked(*state, cases[i].question);
        json_t *expected = cases[i].expected ? json_loads(cases[i].expected, JSON_DECODE_ANY, NULL) : NULL;
        json_t *found = json_object_get(answer, cases[i].member);
        if (expected ? !json_equal(found, expected) : found != NULL) {
            char *text = json_dumps(answer, 0);
            fail_msg("%s: %s in %s", cases[i].name, cases[i].member, text);
        }
        json_decref(expected);
        json_decref(answer);
    }
}

/*
 * S0-040, S0-043, S0-061, S0-064, S1-041, S1-084, C-11, C-19, C-29: an absolute time in UTC made from milliseconds, and
 * beside it whole minutes, the nearest, inside the bounds.
 */
static void time_and_minutes(void **state)
{
    for (int count = 0; count < 5; count++)
        for (int i = 0; i < 50; i++) {
            char question[160];
            snprintf(question, sizeof question, "{\"id\":\"CLM-%d-1\",\"submissionError\":\"503\",\"retryCount\":%d}", i,
                     count);
            json_t *answer = asked(*state, question);
            int64_t wait = json_integer_value(json_object_get(answer, "backoffMs"));
            json_t *minutes = json_object_get(answer, "backoffMinutes");
            assert_true(json_is_integer(minutes));
            assert_int_equal(json_integer_value(minutes), (wait + MINUTE_MS / 2) / MINUTE_MS);
            assert_in_range(json_integer_value(minutes), 5, 240);

            char expected[INSTANT_TEXT_BYTES];
            instant_format(now_ms + wait, expected);
            assert_string_equal(json_string_value(json_object_get(answer, "nextRetryTime")), expected);
            assert_int_equal(expected[strlen(expected) - 1], 'Z');
            json_decref(answer);
        }
}

/* S0-014, S0-053, S0-059, S1-037: it may be left out or null and changes nothing; what is no time is refused. */
static void last_submission_is_optional(void **state)
{
    static const struct { const char *member; bool valid; } rows[] = {
        { "", true },
        { ",\"lastSubmissionTime\":null", true },
        { ",\"lastSubmissionTime\":\"2025-01-12T10:00:00Z\"", true },
        { ",\"lastSubmissionTime\":\"2025-01-12T07:00:00.123-03:00\"", true },
        { ",\"lastSubmissionTime\":\"yesterday\"", false },
        { ",\"lastSubmissionTime\":\"2025-13-12T10:00:00Z\"", false },
        { ",\"lastSubmissionTime\":\"2025-01-12T10:00:00\"", false }, /* whose ten o'clock? */
        { ",\"lastSubmissionTime\":7", false },
    };
    char *usual = NULL;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char question[200];
        snprintf(question, sizeof question, "{\"claimId\":\"CLM-2025-001\",\"submissionError\":\"TIMEOUT\",\"retryCount\":1%s}",
                 rows[i].member);
        json_t *answer = asked(*state, question);
        char *text = json_dumps(answer, JSON_SORT_KEYS);
        if (!usual)
            usual = strdup(text);
        if (rows[i].valid)
            assert_string_equal(text, usual);
        else
            assert_string_equal(json_string_value(json_object_get(answer, "error")), "INVALID_TIME");
        free(text);
        json_decref(answer);
    }
    free(usual);
}

/* C-17, C-19: a policy's own zone for times that have none, and its own words for the reason. */
static void a_policy_has_its_zone_and_words(void **state)
{
    static const char *const zones[] = { "-03:00", "America/Sao_Paulo" };
    char file[256];
    static const char *const times[] = { "2025-01-12T07:40:00", "2025-01-12T07:40", "2025-01-12T07:40:00.000000",
                                         "2025-01-12T10:40:00Z", "2025-01-12T11:40:00+01:00" };
    struct insist_policy *policy = NULL;
    char problem[512];
    (void)state;
    for (size_t i = 0; i < COUNT(zones) * COUNT(times); i++) {
        snprintf(file, sizeof file,
                 "destinations: { d: { preset: tiss, url: 'https://a.example', zone: '%s',\n"
                 "  retry: { reason: 'Erro transiente, tentativa {n} de {max}' } } }\n", zones[i / COUNT(times)]);
        assert_int_equal(insist_policy_from_yaml(file, strlen(file), "d", &policy, problem, sizeof problem), INSIST_OK);
        char question[200];
        snprintf(question, sizeof question,
                 "{\"claimId\":\"CLM-2025-001\",\"submissionError\":\"TIMEOUT\",\"retryCount\":1,\"now\":\"%s\"}",
                 times[i % COUNT(times)]);
        json_t *answer = asked(policy, question);
        instant next_at;
        assert_int_equal(instant_parse((struct slice){ json_string_value(json_object_get(answer, "nextRetryTime")), 24 },
                                       &next_at, NULL), STATUS_OK);
        assert_int_equal(next_at - json_integer_value(json_object_get(answer, "backoffMs")), now_ms);
        assert_string_equal(json_string_value(json_object_get(answer, "retryReason")), "Erro transiente, tentativa 2 de 5");
        json_decref(answer);
        insist_policy_free(policy);
    }
    static const struct { const char *zone, *says; } wrong[] = {
        { "America/Nowhere", "there is no \"America/Nowhere\" in the tz database" }, { "../etc/passwd", "must be UTC, an offset" },
        { "America", "in the tz database" }, { "tzdata.zi", "must be UTC, an offset" }, { "+25:00", "must be UTC, an offset" },
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        snprintf(file, sizeof file, "destinations: { d: { preset: tiss, url: 'https://a.example', zone: '%s' } }\n", wrong[i].zone);
        assert_int_not_equal(insist_policy_from_yaml(file, strlen(file), "d", &policy, problem, sizeof problem), INSIST_OK);
        if (!strstr(problem, wrong[i].says))
            fail_msg("%s: %s", wrong[i].zone, problem);
    }
}

/* S0-130, S1-106, C-22: 2 seconds are allowed for one decision; here a thousand have one. */
static void decisions_are_quick(void **state)
{
    struct timespec before, after;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    for (int i = 0; i < 1000; i++)
        json_decref(asked(*state, TRANSIENT));
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    assert_true((double)(after.tv_sec - before.tv_sec) + (double)(after.tv_nsec - before.tv_nsec) / 1e9 < 1.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members),
        cmocka_unit_test(time_and_minutes),
        cmocka_unit_test(last_submission_is_optional),
        cmocka_unit_test(a_policy_has_its_zone_and_words),
        cmocka_unit_test(decisions_are_quick),
    };
    return cmocka_run_group_tests(tests, load, release);
}
