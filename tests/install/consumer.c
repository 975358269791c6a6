/* A program of somebody else: built with pkg-config against the installed header and library. */
#include <insist.h>

#include <stdio.h>
#include <string.h>

int main(void)
{
    char message[512];
    struct insist_policy *policy;
    if (insist_policy_from_preset("tiss", &policy, message, sizeof message) != INSIST_OK) {
        fprintf(stderr, "%s\n", message);
        return 1;
    }
    const char *id = "CLM-2025-001", *error = "TIMEOUT";
    struct insist_question question = {
        .size = sizeof question, .id = id, .id_len = strlen(id), .error = error, .error_len = strlen(error), .now_ms = 1000,
    };
    struct insist_decision decision = { .size = sizeof decision };
    int status = insist_decide(policy, &question, &decision);
    insist_policy_free(policy);
    printf("%s: %s\n", insist_version(), insist_action_name(decision.action));
    return status == INSIST_OK && decision.action == INSIST_ACTION_RETRY && decision.next_at_ms > question.now_ms ? 0 : 1;
}
