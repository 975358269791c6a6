/* The public library, through its header alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <insist.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOW_MS INT64_C(1736678400000)
#define MINUTE INT64_C(60000)

/*
 * Counts allocations by standing in front of the C library's allocator. The sanitizers bring
 * their own, which nothing may stand in front of: there the count stays 0 and its test is skipped.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNTS_ALLOCATIONS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define COUNTS_ALLOCATIONS 0
#else
#define COUNTS_ALLOCATIONS 1
#endif
#else
#define COUNTS_ALLOCATIONS 1
#endif

static _Thread_local long allocations;

#if COUNTS_ALLOCATIONS
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);

void *malloc(size_t size)
{
    allocations++;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    allocations++;
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    allocations++;
    return __libc_realloc(memory, size);
}
#endif

static struct insist_policy *load(const char *preset)
{
    char message[512] = "";
    struct insist_policy *policy = NULL;
    int status = insist_policy_from_preset(preset, &policy, message, sizeof message);
    if (status != INSIST_OK)
        print_error("%s: %s\n", preset, message);
    assert_int_equal(status, INSIST_OK);
    assert_non_null(policy);
    return policy;
}

static struct insist_question question_of(const char *id, const char *error, int64_t retry_count)
{
    return (struct insist_question){
        .size = sizeof(struct insist_question),
        .id = id,
        .id_len = strlen(id),
        .error = error,
        .error_len = strlen(error),
        .retry_count = retry_count,
        .now_ms = NOW_MS,
    };
}

static void names_and_versions(void **state)
{
    (void)state;
    assert_string_equal(insist_version(), INSIST_VERSION);
    assert_string_equal(insist_outcome_name(INSIST_OUTCOME_TRANSIENT), "transient");
    assert_string_equal(insist_outcome_name(0), "none");
    assert_string_equal(insist_outcome_name(-1), "none");
    assert_string_equal(insist_outcome_name(99), "none");
    assert_string_equal(insist_action_name(INSIST_ACTION_RETRY), "retry");
    assert_string_equal(insist_action_name(INSIST_ACTION_PARK), "park");
    assert_string_equal(insist_action_name(99), "none");
    for (int status = 0; status <= INSIST_INVALID_TIME; status++)
        assert_string_not_equal(insist_status_text(status), "unknown status");
    assert_string_equal(insist_status_text(-1), "unknown status");
    assert_string_equal(insist_status_text(1000), "unknown status");
}

static void presets_load(void **state)
{
    static const char *const names[] = { "tiss", "email", "sifen", "provisioning" };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct insist_policy *policy = load(names[i]);
        assert_string_equal(insist_policy_name(policy), names[i]);
        assert_true(insist_policy_retries_max(policy) > 0);
        insist_policy_free(policy);
    }
    insist_policy_free(NULL);
}

static void unknown_presets_are_refused(void **state)
{
    (void)state;
    char message[256];
    struct insist_policy *policy = (struct insist_policy *)message;
    assert_int_equal(insist_policy_from_preset("tis", &policy, message, sizeof message), INSIST_NOT_FOUND);
    assert_null(policy);
    assert_non_null(strstr(message, "tiss"));
    assert_int_equal(insist_policy_from_preset(NULL, &policy, message, sizeof message), INSIST_NOT_FOUND);
    assert_int_equal(insist_policy_from_preset("tis", &policy, NULL, 0), INSIST_NOT_FOUND);
    assert_int_equal(insist_policy_from_preset("tiss", NULL, message, sizeof message), INSIST_INVALID);
    memset(message, '#', sizeof message);
    assert_int_equal(insist_policy_from_preset("tis", &policy, message, 5), INSIST_NOT_FOUND);
    assert_int_equal(strlen(message), 4);
    assert_int_equal(message[5], '#');
}

static const char two[] = "destinations:\n"
                          "  a: { preset: tiss, url: https://a.example/, retry: { max_retries: 2 } }\n"
                          "  b: { preset: email, transport: smtp, url: smtp://b.example:25 }\n";

static void yaml_loads(void **state)
{
    (void)state;
    char message[1024] = "";
    struct insist_policy *policy = NULL;
    if (insist_policy_from_yaml(two, sizeof two - 1, "a", &policy, message, sizeof message) != INSIST_OK)
        fail_msg("%s", message);
    assert_string_equal(insist_policy_name(policy), "a");
    assert_int_equal(insist_policy_retries_max(policy), 2);
    insist_policy_free(policy);

    assert_int_equal(insist_policy_from_yaml(two, sizeof two - 1, "c", &policy, message, sizeof message), INSIST_NOT_FOUND);
    assert_null(policy);
    assert_non_null(strstr(message, "\"c\""));
    assert_int_equal(insist_policy_from_yaml(two, sizeof two - 1, NULL, &policy, message, sizeof message), INSIST_NOT_FOUND);
    assert_non_null(strstr(message, "name one"));
    static const char wrong[] = "destinations:\n  a: { preset: tiss, url: https://a.example/, retri: {} }\n";
    assert_int_equal(insist_policy_from_yaml(wrong, sizeof wrong - 1, NULL, &policy, message, sizeof message), INSIST_INVALID);
    assert_non_null(strstr(message, "retry"));
    assert_int_equal(insist_policy_from_yaml(NULL, 0, NULL, &policy, message, sizeof message), INSIST_INVALID);
}

static void files_load(void **state)
{
    (void)state;
    char path[] = "/tmp/insist-test-XXXXXX";
    char message[1024] = "";
    struct insist_policy *policy = NULL;
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, two, sizeof two - 1), sizeof two - 1);
    close(descriptor);
    assert_int_equal(insist_policy_from_file(path, "b", &policy, message, sizeof message), INSIST_OK);
    assert_string_equal(insist_policy_name(policy), "b");
    insist_policy_free(policy);
    unlink(path);
    assert_int_not_equal(insist_policy_from_file(path, "b", &policy, message, sizeof message), INSIST_OK);
    assert_null(policy);
    assert_non_null(strstr(message, path));
    assert_int_equal(insist_policy_from_file(NULL, "b", &policy, message, sizeof message), INSIST_INVALID);
}

static void classes(void **state)
{
    static const struct { const char *code, *text; int outcome, known; const char *label; } cases[] = {
        { "", "TIMEOUT - Connection timeout after 30s", INSIST_OUTCOME_TRANSIENT, 1, "TRANSIENT" },
        { "", "timeout", INSIST_OUTCOME_TRANSIENT, 1, "TRANSIENT" },
        { "", "INVALID_PATIENT_DATA (TIMEOUT)", INSIST_OUTCOME_PERMANENT, 1, "PERMANENT" },
        { "", "gremlins", INSIST_OUTCOME_TRANSIENT, 0, "UNKNOWN" },
    };
    (void)state;
    struct insist_policy *policy = load("tiss");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct insist_class class = { .size = sizeof class };
        assert_int_equal(insist_classify(policy, cases[i].code, strlen(cases[i].code), cases[i].text, strlen(cases[i].text), &class),
                         INSIST_OK);
        assert_int_equal(class.outcome, cases[i].outcome);
        assert_int_equal(class.known, cases[i].known);
        assert_string_equal(class.label, cases[i].label);
        assert_int_equal(class.rule != NULL, cases[i].known);
    }
    struct insist_class class = { .size = sizeof class };
    assert_int_equal(insist_classify(policy, NULL, 0, " \n", 2, &class), INSIST_INVALID_ERROR_MESSAGE);
    assert_int_equal(insist_classify(policy, NULL, 0, NULL, 0, &class), INSIST_INVALID_ERROR_MESSAGE);
    assert_int_equal(insist_classify(NULL, NULL, 0, "x", 1, &class), INSIST_INVALID);
    class.size = 4;
    assert_int_equal(insist_classify(policy, NULL, 0, "x", 1, &class), INSIST_INVALID);
    insist_policy_free(policy);
}

static void a_03_waits_stay_in_range(void **state)
{
    (void)state;
    struct insist_policy *policy = load("tiss");
    int64_t low, high, wait;
    for (int64_t retry = 1; retry <= 70; retry++) {
        assert_int_equal(insist_backoff_range(policy, retry, INSIST_PRIORITY_DEFAULT, &low, &high), INSIST_OK);
        assert_true(low >= 5 * MINUTE && high <= 240 * MINUTE && low <= high);
        for (int i = 0; i < 1000; i++) {
            char id[32];
            int len = snprintf(id, sizeof id, "CLM-%d-1", i);
            assert_int_equal(insist_backoff_ms(policy, 0, id, (size_t)len, retry, INSIST_PRIORITY_NORMAL, &wait), INSIST_OK);
            assert_true(wait >= low && wait <= high);
        }
    }
    assert_int_equal(insist_backoff_range(policy, INT64_MAX, 0, &low, &high), INSIST_OK);
    assert_int_equal(high, 240 * MINUTE);
    assert_int_equal(insist_backoff_range(policy, 0, 0, &low, &high), INSIST_INVALID_RETRY_COUNT);
    assert_int_equal(insist_backoff_range(policy, 1, 4, &low, &high), INSIST_INVALID);
    assert_int_equal(insist_backoff_range(policy, 1, -1, &low, &high), INSIST_INVALID);
    assert_int_equal(insist_backoff_ms(policy, 0, "x", 1, -1, 0, &wait), INSIST_INVALID_RETRY_COUNT);
    assert_int_equal(insist_backoff_ms(policy, 0, "x", 1, 1, 0, NULL), INSIST_INVALID);
    insist_policy_free(policy);
}

static void decisions(void **state)
{
    static const struct { const char *id, *error; int64_t count; int status, action; int64_t low, high; } cases[] = {
        { "CLM-A-1", "TIMEOUT", 0, INSIST_OK, INSIST_ACTION_RETRY, 5 * MINUTE, 6 * MINUTE },
        { "CLM-A-1", "TIMEOUT", 4, INSIST_OK, INSIST_ACTION_RETRY, 64 * MINUTE, 96 * MINUTE },
        { "CLM-A-1", "TIMEOUT", 5, INSIST_OK, INSIST_ACTION_EXHAUSTED, 0, 0 },
        { "CLM-A-1", "gremlins", 2, INSIST_OK, INSIST_ACTION_RETRY, 16 * MINUTE, 24 * MINUTE },
        { "CLM-A-1", "DUPLICATE_CLAIM", 0, INSIST_OK, INSIST_ACTION_PERMANENT, 0, 0 },
        { "CLM-A-1", "DUPLICATE_CLAIM", 5, INSIST_OK, INSIST_ACTION_EXHAUSTED, 0, 0 },
        { "CLM-A-1", "", 0, INSIST_INVALID_ERROR_MESSAGE, 0, 0, 0 },
        { "CLM-A-1", "\t", 0, INSIST_INVALID_ERROR_MESSAGE, 0, 0, 0 },
        { "CLM-A-1", "TIMEOUT", -1, INSIST_INVALID_RETRY_COUNT, 0, 0, 0 },
        { "CLM-A-1", "TIMEOUT", INT64_MIN, INSIST_INVALID_RETRY_COUNT, 0, 0, 0 },
        { "", "TIMEOUT", 0, INSIST_INVALID_ID, 0, 0, 0 },
        { "claim 1", "TIMEOUT", 0, INSIST_INVALID_ID, 0, 0, 0 },
    };
    (void)state;
    struct insist_policy *policy = load("tiss");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct insist_question question = question_of(cases[i].id, cases[i].error, cases[i].count);
        struct insist_decision decision = { .size = sizeof decision, .action = 77 };
        assert_int_equal(insist_decide(policy, &question, &decision), cases[i].status);
        if (cases[i].status != INSIST_OK) {
            assert_int_equal(decision.action, 77);
            continue;
        }
        bool retry = cases[i].action == INSIST_ACTION_RETRY;
        assert_int_equal(decision.action, cases[i].action);
        assert_int_equal(decision.should_retry, retry);
        assert_int_equal(decision.retry_count, cases[i].count + (retry ? 1 : 0));
        assert_int_equal(decision.retries_max, 5);
        assert_true(decision.delay_ms >= cases[i].low && decision.delay_ms <= cases[i].high);
        assert_int_equal(decision.next_at_ms, retry ? NOW_MS + decision.delay_ms : INSIST_NO_TIME);
    }
    insist_policy_free(policy);
}

static void wrong_arguments(void **state)
{
    (void)state;
    struct insist_policy *policy = load("tiss");
    struct insist_question question = question_of("CLM-A-1", "TIMEOUT", 0);
    struct insist_decision decision = { .size = sizeof decision };
    assert_int_equal(insist_decide(NULL, &question, &decision), INSIST_INVALID);
    assert_int_equal(insist_decide(policy, NULL, &decision), INSIST_INVALID);
    assert_int_equal(insist_decide(policy, &question, NULL), INSIST_INVALID);
    decision.size = 8;
    assert_int_equal(insist_decide(policy, &question, &decision), INSIST_INVALID);
    decision.size = sizeof decision + 64; /* of a newer header */
    assert_int_equal(insist_decide(policy, &question, &decision), INSIST_OK);
    assert_int_equal(decision.size, sizeof decision);
    question.size = 0;
    assert_int_equal(insist_decide(policy, &question, &decision), INSIST_INVALID);
    question = question_of("CLM-A-1", "TIMEOUT", 0);
    question.priority = 9;
    assert_int_equal(insist_decide(policy, &question, &decision), INSIST_INVALID);
    question = question_of("CLM-A-1", "TIMEOUT", 0);
    question.now_ms = INT64_MAX;
    assert_int_equal(insist_decide(policy, &question, &decision), INSIST_INVALID_TIME);
    question.now_ms = NOW_MS;
    question.deadline_ms = INT64_MIN;
    assert_int_equal(insist_decide(policy, &question, &decision), INSIST_INVALID_TIME);
    insist_policy_free(policy);
}

static void times_and_flags(void **state)
{
    (void)state;
    struct insist_policy *policy = load("tiss");
    struct insist_decision decision = { .size = sizeof decision };
    struct insist_question question = question_of("CLM-A-1", "TIMEOUT", 0);
    question.deadline_ms = NOW_MS + MINUTE;
    assert_int_equal(insist_decide(policy, &question, &decision), INSIST_OK);
    assert_int_equal(decision.action, INSIST_ACTION_EXPIRED);
    question = question_of("CLM-A-1", "TIMEOUT", 0);
    question.first_at_ms = NOW_MS - 240 * MINUTE;
    assert_int_equal(insist_decide(policy, &question, &decision), INSIST_OK);
    assert_int_equal(decision.action, INSIST_ACTION_EXHAUSTED);
    question = question_of("CLM-A-1", "TIMEOUT", 0);
    question.retry_after_ms = 30 * MINUTE;
    assert_int_equal(insist_decide(policy, &question, &decision), INSIST_OK);
    assert_true(decision.delay_ms >= 30 * MINUTE);
    question = question_of("CLM-A-1", "no answer", 0);
    question.flags = INSIST_FLAG_IN_DOUBT;
    assert_int_equal(insist_decide(policy, &question, &decision), INSIST_OK);
    assert_int_equal(decision.outcome, INSIST_OUTCOME_IN_DOUBT);
    insist_policy_free(policy);
}

static const char json_question[] = "{\"claimId\":\"CLM-2025-001\",\"submissionError\":\"TIMEOUT\",\"retryCount\":1}";

static void json_texts(void **state)
{
    (void)state;
    struct insist_policy *policy = load("tiss");
    char *answer = NULL;
    size_t len = 0;
    assert_int_equal(insist_decide_json(policy, json_question, sizeof json_question - 1, NOW_MS, &answer, &len), INSIST_OK);
    assert_int_equal(strlen(answer), len);
    assert_non_null(strstr(answer, "\"retryReason\":\"Transient error, retry 2 of 5\""));
    insist_text_free(answer);

    static const char named[] = "{\"claimId\":\"CLM-A-1\",\"submissionError\":\"TIMEOUT\",\"policy\":\"tiss\"}";
    assert_int_equal(insist_decide_json(policy, named, sizeof named - 1, NOW_MS, &answer, &len), INSIST_OK);
    assert_non_null(strstr(answer, "\"shouldRetry\":true"));
    insist_text_free(answer);

    static const char other[] = "{\"claimId\":\"CLM-A-1\",\"submissionError\":\"TIMEOUT\",\"policy\":\"email\"}";
    assert_int_equal(insist_decide_json(policy, other, sizeof other - 1, NOW_MS, &answer, &len), INSIST_OK);
    assert_non_null(strstr(answer, "\"error\":\"UNKNOWN_POLICY\""));
    insist_text_free(answer);

    assert_int_equal(insist_decide_json(policy, NULL, 0, NOW_MS, &answer, &len), INSIST_OK);
    assert_non_null(strstr(answer, "\"error\":\"INVALID_JSON\""));
    insist_text_free(answer);
    insist_text_free(NULL);
    assert_int_equal(insist_decide_json(NULL, "{}", 2, NOW_MS, &answer, &len), INSIST_INVALID);
    assert_int_equal(insist_decide_json(policy, "{}", 2, INT64_MAX, &answer, &len), INSIST_INVALID_TIME);
    assert_int_equal(insist_decide_json(policy, "{}", 2, NOW_MS, NULL, &len), INSIST_INVALID);
    insist_policy_free(policy);
}

static void deciding_allocates_nothing(void **state)
{
    (void)state;
    if (!COUNTS_ALLOCATIONS)
        skip();
    static const char *const names[] = { "tiss", "email", "sifen", "provisioning" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct insist_policy *policy = load(names[i]);
        struct insist_decision decision = { .size = sizeof decision };
        struct insist_class class = { .size = sizeof class };
        struct insist_question question = question_of("CLM-A-1", "503 something went wrong: 550 5.1.1 mailbox unavailable", 0);
        int64_t low, high, wait;
        free(malloc(1));
        assert_true(allocations > 0); /* it does count */
        allocations = 0;
        int status = insist_decide(policy, &question, &decision);
        status |= insist_classify(policy, "http:503", 8, question.error, question.error_len, &class);
        status |= insist_backoff_range(policy, 3, 0, &low, &high);
        status |= insist_backoff_ms(policy, 1, question.id, question.id_len, 3, 0, &wait);
        long counted = allocations;
        assert_int_equal(status, INSIST_OK);
        assert_int_equal(counted, 0);
        insist_policy_free(policy);
    }
}

enum { THREADS = 8, QUESTIONS = 2000, ANSWERS_BYTES = QUESTIONS * 512 };

struct worker {
    const struct insist_policy *policy;
    pthread_t thread;
    char *answers;
    size_t len;
};

/* Appends the answers to the same questions, as JSON and from the structures. */
static void *work(void *argument)
{
    static const char *const errors[] = { "TIMEOUT", "DUPLICATE_CLAIM", "gremlins", "HTTP/1.1 503 Service Unavailable", "" };
    struct worker *worker = argument;
    for (int i = 0; i < QUESTIONS; i++) {
        char text[256], id[32];
        const char *error = errors[i % 5];
        snprintf(id, sizeof id, "CLM-%d-%d", i, i % 7);
        int len = snprintf(text, sizeof text, "{\"id\":\"%s\",\"submissionError\":\"%s\",\"retryCount\":%d}", id, error, i % 6);
        struct insist_question question = question_of(id, error, i % 6);
        struct insist_decision decision = { .size = sizeof decision };
        int status = insist_decide(worker->policy, &question, &decision);
        char *answer;
        size_t answer_len;
        if (insist_decide_json(worker->policy, text, (size_t)len, NOW_MS, &answer, &answer_len) != INSIST_OK)
            return NULL;
        worker->len += (size_t)snprintf(worker->answers + worker->len, ANSWERS_BYTES - worker->len, "%d %d %lld %s\n", status,
                                        decision.action, (long long)decision.delay_ms, answer);
        insist_text_free(answer);
    }
    return NULL;
}

static void threads_give_the_same_bytes(void **state)
{
    (void)state;
    struct insist_policy *policy = load("tiss");
    struct worker workers[THREADS + 1];
    for (int i = 0; i <= THREADS; i++) {
        workers[i] = (struct worker){ .policy = policy, .answers = malloc(ANSWERS_BYTES) };
        assert_non_null(workers[i].answers);
    }
    work(&workers[THREADS]); /* alone */
    assert_in_range(workers[THREADS].len, QUESTIONS * 50, ANSWERS_BYTES - 1);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(workers[i].len, workers[THREADS].len);
        assert_memory_equal(workers[i].answers, workers[THREADS].answers, workers[THREADS].len);
    }
    for (int i = 0; i <= THREADS; i++)
        free(workers[i].answers);
    insist_policy_free(policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_versions),
        cmocka_unit_test(presets_load),
        cmocka_unit_test(unknown_presets_are_refused),
        cmocka_unit_test(yaml_loads),
        cmocka_unit_test(files_load),
        cmocka_unit_test(classes),
        cmocka_unit_test(a_03_waits_stay_in_range),
        cmocka_unit_test(decisions),
        cmocka_unit_test(wrong_arguments),
        cmocka_unit_test(times_and_flags),
        cmocka_unit_test(json_texts),
        cmocka_unit_test(deciding_allocates_nothing),
        cmocka_unit_test(threads_give_the_same_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
