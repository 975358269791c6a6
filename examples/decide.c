/*
 * decide.c - asks a preset what to do about an error.
 *
 *     cc -o decide decide.c $(pkg-config --cflags --libs insist)
 *     ./decide tiss CLM-2025-001 'TIMEOUT - Connection timeout after 30s' 1
 */
#include <insist.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: %s PRESET ID ERROR RETRY_COUNT\n", argv[0]);
        return 2;
    }

    char message[512];
    struct insist_policy *policy;
    int status = insist_policy_from_preset(argv[1], &policy, message, sizeof message);
    if (status != INSIST_OK) {
        fprintf(stderr, "%s\n", message);
        return 2;
    }

    struct insist_question question = {
        .size = sizeof question,
        .id = argv[2],
        .id_len = strlen(argv[2]),
        .error = argv[3],
        .error_len = strlen(argv[3]),
        .retry_count = atoll(argv[4]),
        .now_ms = (int64_t)time(NULL) * 1000,
    };
    struct insist_decision decision = { .size = sizeof decision };
    status = insist_decide(policy, &question, &decision);
    if (status != INSIST_OK)
        fprintf(stderr, "%s\n", insist_status_text(status));
    else if (decision.should_retry)
        printf("%s in %" PRId64 " ms, retry %" PRId64 " of %" PRId64 "\n", insist_action_name(decision.action),
               decision.delay_ms, decision.retry_count, decision.retries_max);
    else
        printf("%s: %s\n", insist_action_name(decision.action), insist_outcome_name(decision.outcome));
    insist_policy_free(policy);
    return status == INSIST_OK ? 0 : 2;
}
