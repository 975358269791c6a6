/*
 * policies.h - policies to test with: the numbers of the four presets, and compiled rules.
 */
#ifndef TESTS_POLICIES_H
#define TESTS_POLICIES_H

#include "base/instant.h"
#include "core/decision/policy.h"

extern const struct retry_policy tiss_retry;  /* 5 to 240 minutes, 20%, clamp after */
extern const struct retry_policy email_retry; /* 1 s to 60 s, 25%, clamp before */
extern const struct retry_policy sifen_retry; /* 30 s x 3, 10% */
extern const struct retry_policy provisioning_retry;

/* Compiles or fails the test. */
struct classifier *rules_compiled(const struct rule *rules, size_t count, const char *code_namespace);

#endif
