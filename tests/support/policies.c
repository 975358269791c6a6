#include "support/policies.h"

#include "support/check.h"

const struct retry_policy tiss_retry = {
    .retries_max = 5,
    .base_ms = 5 * MINUTE_MS,
    .factor = 2,
    .floor_ms = 5 * MINUTE_MS,
    .cap_ms = 240 * MINUTE_MS,
    .jitter = 0.2,
    .clamp = CLAMP_AFTER,
    .elapsed_max_ms = 4 * HOUR_MS,
    .retry_after_max_ms = DAY_MS,
    .throttled_spends = true,
    .delay_factor = { 1, 1, 1 },
};

const struct retry_policy email_retry = {
    .retries_max = 4,
    .base_ms = 1 * SECOND_MS,
    .factor = 2,
    .cap_ms = 60 * SECOND_MS,
    .jitter = 0.25,
    .clamp = CLAMP_BEFORE,
    .retry_after_max_ms = HOUR_MS,
    .throttled_spends = true,
    .delay_factor = { 1, 1, 1 },
};

const struct retry_policy sifen_retry = {
    .retries_max = 3,
    .base_ms = 30 * SECOND_MS,
    .factor = 3,
    .cap_ms = HOUR_MS,
    .jitter = 0.1,
    .clamp = CLAMP_AFTER,
    .retry_after_max_ms = HOUR_MS,
    .delay_factor = { 1, 1, 1 },
};

const struct retry_policy provisioning_retry = {
    .retries_max = 9,
    .base_ms = 30 * SECOND_MS,
    .factor = 2,
    .cap_ms = 600 * SECOND_MS,
    .jitter = 0.2,
    .clamp = CLAMP_AFTER,
    .retry_after_max_ms = HOUR_MS,
    .throttled_spends = true,
    .delay_factor = { 1, 1, 1 },
};

struct classifier *rules_compiled(const struct rule *rules, size_t count, const char *code_namespace)
{
    struct classifier *classifier = NULL;
    struct error err = { 0 };
    size_t bad;
    check(classifier_new(rules, count, slice_from(code_namespace), &classifier, &bad, &err) == STATUS_OK, "rule %zu: %s", bad,
          err.text);
    return classifier;
}
