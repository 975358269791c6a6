/*
 * Rules and texts from any bytes.
 *
 * Byte 0 chooses: its low bit whether the rules come from the input or are a fixed set, the next
 * two the namespace. Then lines up to an empty one: the code, and with rules of its own one rule a
 * line, whose first byte gives tier and outcome. The rest is the text.
 */
#include "core/decision/classify.h"

#include "base/status.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FUZZ_RULES_MAX = 64 };

static const struct rule fixed_rules[] = {
    { TIER_MAIN, OUTCOME_PERMANENT, { "INVALID_PATIENT_DATA", 20 } },
    { TIER_MAIN, OUTCOME_TRANSIENT, { "TIMEOUT", 7 } },
    { TIER_MAIN, OUTCOME_TRANSIENT, { "503", 3 } },
    { TIER_MAIN, OUTCOME_BLOCKED, { "5.7.1", 5 } },
    { TIER_MAIN, OUTCOME_WAIT, { "sifen:1300-2699", 15 } },
    { TIER_MAIN, OUTCOME_DUPLICATE, { "http:409", 8 } },
    { TIER_MAIN, OUTCOME_PERMANENT, { "/no such .* user/", 17 } },
    { TIER_FALLBACK, OUTCOME_TRANSIENT, { "smtp:4xx", 8 } },
    { TIER_FALLBACK, OUTCOME_PERMANENT, { "smtp:5xx", 8 } },
    { TIER_FALLBACK, OUTCOME_TRANSIENT, { "http:5xx", 8 } },
    { TIER_EXCEPTION, OUTCOME_TRANSIENT, { "/(a+)+$/", 8 } },
    { TIER_EXCEPTION, OUTCOME_ACCEPTED, { "app:*", 5 } },
};

static struct classifier *compiled_once[4];

static void must(bool condition)
{
    if (!condition)
        abort();
}

static struct slice take_line(struct slice *rest)
{
    size_t end = slice_find(*rest, '\n');
    struct slice line = { rest->data, end };
    *rest = slice_from_offset(*rest, end + 1);
    return line;
}

static size_t take_rules(struct slice *rest, struct rule rules[FUZZ_RULES_MAX])
{
    size_t count = 0;
    while (count < FUZZ_RULES_MAX && rest->len > 0) {
        struct slice line = take_line(rest);
        if (line.len == 0)
            break;
        unsigned kind = (unsigned char)line.data[0];
        rules[count++] = (struct rule){ (enum rule_tier)(kind / 16 % 3), (enum outcome)(1 + kind % (OUTCOME_COUNT - 1)),
                                        slice_from_offset(line, 1) };
    }
    return count;
}

static void try_classify(const struct classifier *classifier, struct slice code, struct slice text)
{
    struct classification found = classify(classifier, (struct evidence){ code, text });
    struct classification again = classify(classifier, (struct evidence){ code, text });
    must(found.outcome == again.outcome && found.rule.data == again.rule.data);
    must((found.outcome == OUTCOME_NONE) == (found.rule.len == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct slice namespaces[4] = { { "", 0 }, { "smtp", 4 }, { "sifen", 5 }, { "http", 4 } };
    if (size == 0)
        return 0;
    size_t chosen = data[0] / 2 % 4;
    bool own_rules = data[0] & 1;
    struct slice rest = { (const char *)data + 1, size - 1 };
    struct slice code = take_line(&rest);
    struct rule rules[FUZZ_RULES_MAX];
    size_t bad;
    struct error err;

    if (!own_rules) {
        if (!compiled_once[chosen])
            must(classifier_new(fixed_rules, sizeof fixed_rules / sizeof *fixed_rules, namespaces[chosen], &compiled_once[chosen], &bad,
                                &err) == STATUS_OK);
        try_classify(compiled_once[chosen], code, rest);
        code_matches(code, rest);
        return 0;
    }
    size_t count = take_rules(&rest, rules);
    struct classifier *classifier;
    if (classifier_new(rules, count, namespaces[chosen], &classifier, &bad, &err) != STATUS_OK) {
        must(bad < count && err.text[0] != '\0');
        return 0;
    }
    try_classify(classifier, code, rest);
    for (size_t i = 0; i < count; i++) /* a rule as the text: nothing may break, whether or not it matches itself */
        try_classify(classifier, (struct slice){ NULL, 0 }, rules[i].token);
    classifier_free(classifier);
    return 0;
}
