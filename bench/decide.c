/*
 * decide.c - how long one insist_decide takes, and questions for `insist decide --batch`.
 *
 *     build/bench/decide time PRESET COUNT      nanoseconds a decision, the median of several rounds of COUNT decisions
 *     build/bench/decide lines COUNT            COUNT questions, one a line, on standard output
 */
#include <insist.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 15, IDS = 1024, ID_BYTES = 24 };

/* What real destinations answer: short and long, known and not, permanent and transient. */
static const char *const errors[] = {
    "TIMEOUT - Connection timeout after 30s",
    "INVALID_PATIENT_DATA - CPF 123.456.789-00 fails its check digits",
    "HTTP/1.1 503 Service Unavailable",
    "something that no rule has ever heard of",
    "CONNECTION_ERROR: connection refused by 10.20.30.40:8443 after 3 ms",
};
enum { ERRORS = sizeof errors / sizeof *errors };

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Sums something of every decision, so that none can be left out. */
static double round_ns(const struct insist_policy *policy, char ids[IDS][ID_BYTES], int count, int64_t *sum)
{
    struct insist_decision decision = { .size = sizeof decision };
    struct insist_question question = { .size = sizeof question, .now_ms = INT64_C(1736678400000) };
    int64_t start = now_ns();
    for (int i = 0; i < count; i++) {
        question.id = ids[i % IDS];
        question.id_len = strlen(question.id);
        question.error = errors[i % ERRORS];
        question.error_len = strlen(question.error);
        question.retry_count = i % 5;
        if (insist_decide(policy, &question, &decision) != INSIST_OK)
            exit(1);
        *sum += decision.delay_ms;
    }
    return (double)(now_ns() - start) / count;
}

static int measure(const char *preset, int count)
{
    static char ids[IDS][ID_BYTES];
    char message[512];
    struct insist_policy *policy;
    double rounds[ROUNDS];
    int64_t sum = 0;
    if (insist_policy_from_preset(preset, &policy, message, sizeof message) != INSIST_OK) {
        fprintf(stderr, "%s\n", message);
        return 2;
    }
    for (int i = 0; i < IDS; i++)
        snprintf(ids[i], sizeof ids[i], "CLM-2025-%06d", i);
    for (int i = 0; i < ROUNDS; i++)
        rounds[i] = round_ns(policy, ids, count, &sum);
    insist_policy_free(policy);
    qsort(rounds, ROUNDS, sizeof *rounds, compare);
    printf("{\"ns\":%.1f,\"sum\":%" PRId64 "}\n", rounds[ROUNDS / 2], sum);
    return 0;
}

static int print_lines(long count)
{
    for (long i = 0; i < count; i++)
        printf("{\"claimId\":\"CLM-2025-%06ld\",\"submissionError\":\"%s\",\"retryCount\":%ld,\"lastSubmissionTime\":"
               "\"2025-01-12T10:00:00Z\",\"policy\":\"tiss\",\"now\":\"2025-01-12T10:40:00Z\"}\n",
               i, errors[i % ERRORS], i % 6);
    return ferror(stdout) || fflush(stdout) ? 1 : 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "time") == 0 && atoi(argv[3]) > 0)
        return measure(argv[2], atoi(argv[3]));
    if (argc == 3 && strcmp(argv[1], "lines") == 0)
        return print_lines(atol(argv[2]));
    fprintf(stderr, "usage: %s time PRESET COUNT | lines COUNT\n", argv[0]);
    return 2;
}
