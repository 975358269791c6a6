/*
 * What the counts of an unknown error say, and the rule that is proposed.
 */
#include "core/errors/learning.h"

#include "core/errors/fingerprint.h"
#include "support/check.h"
#include "support/configs.h"

#include <math.h>

/* S1-092. Against the binomial sum, computed elsewhere. */
static void odds_are_the_beta_posterior(void **state)
{
    static const struct { int64_t recovered, gave_up; double mean, low, high; } cases[] = {
        { 0, 0, 0.5, 0.05, 0.95 },
        { 1, 1, 0.5, 0.135350, 0.864650 },
        { 20, 0, 0.954545, 0.867054, 0.997560 },
        { 0, 58, 0.016667, 0.000869, 0.049508 },
        { 10, 2, 0.785714, 0.589901, 0.933950 },
        { 90, 10, 0.892157, 0.837845, 0.937711 },
        { 3000, 1000, 0.749875, 0.738545, 0.761063 },
        { 0, 4000, 0.000250, 0.000013, 0.000748 },
        { 3000000, 1000000, 0.749875, 0.738545, 0.761063 }, /* wider than it could be, never narrower */
        { INT64_MAX / 4, INT64_MAX / 4, 0.5, 0.487, 0.513 },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct learning learning = { .recovered = cases[i].recovered, .gave_up = cases[i].gave_up };
        struct odds odds = learning_odds(&learning);
        double close = i == COUNT_OF(cases) - 1 ? 1e-4 : 1e-6;
        check(fabs(odds.mean - cases[i].mean) < close && fabs(odds.low - cases[i].low) < close &&
                  fabs(odds.high - cases[i].high) < close,
              "row %zu: %f %f %f", i, odds.mean, odds.low, odds.high);
    }
}

static void a_class_is_said_only_when_it_is_clear(void **state)
{
    static const struct { int64_t recovered, gave_up; enum outcome outcome; } cases[] = {
        { 0, 0, OUTCOME_NONE },         { 19, 0, OUTCOME_NONE }, /* sure enough, but too few */
        { 20, 0, OUTCOME_TRANSIENT },   { 19, 1, OUTCOME_NONE },
        { 90, 10, OUTCOME_TRANSIENT },  { 80, 20, OUTCOME_NONE },
        { 0, 20, OUTCOME_NONE },        { 0, 57, OUTCOME_NONE },
        { 0, 58, OUTCOME_PERMANENT },   { 1, 58, OUTCOME_NONE },
        { 500, 500, OUTCOME_NONE },     { 10, 990, OUTCOME_PERMANENT },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct learning learning = { .recovered = cases[i].recovered, .gave_up = cases[i].gave_up };
        check(learning_class(&learning) == cases[i].outcome, "row %zu: %d", i, (int)learning_class(&learning));
    }
}

static void the_rule_is_the_words_that_stay(void **state)
{
    static const struct { const char *code, *text, *rule; } cases[] = {
        { "", "the bucket is warming up", "the bucket is warming up" },
        { "", "the bucket 7 is warming up", "/the bucket .*? is warming up/" },
        { "", "7 buckets are warming up after 9", "/buckets are warming up after/" },
        { "http:418", "HTTP 418: bucket 7 warming", "/http 418: bucket .*? warming/" },
        { "", "bucket (a+b) cost $5 [x]", "/bucket \\(a\\+b\\) cost [$].*? \\[x\\]/" },
        { "", "it can't be warming", "/it can't be warming/" },
        { "", "bucket\n is warming", "/bucket\\s+is\\s+warming/" },
        { "http:418", "HTTP 418: 8f3a", "http:418" },
        { "app:E-7", "17", "app:e-7" },
        { "app:7", "no; 1; 2; 3; 4; 5; 6; 7; 8; 9; these words come too late", "app:7" },
        { "", "ready? 1 x 2 x 3 x 4 x 5 x 6 x 7 x 8 x 9 it ends", "/ready\\? .*? x .*? x .*? x .*? x .*? x .*? x .*? x .*? x/" },
        { "", "17", NULL },
        { "strange code", "17", NULL },
        { ":7", "17", NULL },
        { "app:", "17", NULL },
        { "a-b:7", "17", NULL },
        { "app:7/8", "17", NULL },
        { "", "busy", NULL },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fingerprint fingerprint;
        struct buffer rule;
        buffer_init(&rule, 4096);
        fingerprint_make(SLICE(""), slice_from(cases[i].code), slice_from(cases[i].text), &fingerprint);
        bool found = learning_rule(slice_from(fingerprint.code), slice_from(fingerprint.sample), fingerprint.spaced, &rule);
        check(found == (cases[i].rule != NULL), "%s", cases[i].text);
        check(!found || slice_equal(buffer_slice(&rule), slice_from(cases[i].rule)), "%s: %s", cases[i].text, rule.data);
        buffer_release(&rule);
    }
}

/* The proposal as a person would put it into a file that has the destination already. */
static struct config *config_with(struct slice proposal, const char *settings)
{
    static const char head[] = "destinations:\n  a-b.c_d:\n";
    struct buffer yaml;
    check(slice_has_prefix(proposal, slice_from(head)), "%.*s", SLICE_ARG(proposal));
    buffer_init(&yaml, 64 * 1024);
    buffer_append_text(&yaml, head);
    buffer_append_text(&yaml, "    url: https://a.example/\n");
    buffer_append_text(&yaml, settings);
    buffer_append(&yaml, slice_from_offset(proposal, sizeof head - 1));
    struct config *config = config_from(buffer_slice(&yaml), "proposal");
    buffer_release(&yaml);
    return config;
}

static void a_proposal_loads_and_knows_its_error(void **state)
{
    static const struct { const char *code, *text, *other; } cases[] = {
        { "http:418", "HTTP 418: quota bucket 8f3a-22 is warming up", "HTTP 418: quota bucket 999 is warming up" },
        { "", "Zufallsfehler: can't \"find\" it ${HOME} $x at 10.0.0.1", "zufallsfehler: can't 'do' it ${HOME} $x at ::1" },
        { "", "Serviço estranho\n\n às 10:40 (código 7)", "serviço  estranho às 11:00 (código 8)" },
        { "", "odd \\ back*slash+ [x] {y} ^z| 5 # end: - yes", "odd \\ back*slash+ [x] {y} ^z| 6 # end: - yes" },
        { "http:418", "HTTP 418: 8f3a", "HTTP 418: 11" },
        { "", "the bucket is warming up", "sorry, the bucket is warming up." },
        { "", "ééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé strange bucket",
          NULL },
        { "", ".*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.* odd odd odd odd "
              "odd odd odd odd odd odd odd odd odd odd", NULL },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fingerprint fingerprint;
        struct buffer proposal;
        buffer_init(&proposal, 4096);
        fingerprint_make(SLICE(""), slice_from(cases[i].code), slice_from(cases[i].text), &fingerprint);
        bool found = learning_propose(SLICE("a-b.c_d"), OUTCOME_TRANSIENT, slice_from(fingerprint.code),
                                      slice_from(fingerprint.sample), fingerprint.spaced, &proposal);
        check(found, "%s", cases[i].text);
        struct config *config = config_with(buffer_slice(&proposal), "");
        const struct destination_config *destination = config_destination(config, SLICE("a-b.c_d"));
        const char *texts[] = { cases[i].text, cases[i].other, fingerprint.sample };
        for (size_t k = 0; k < COUNT_OF(texts); k++) {
            struct evidence evidence = { slice_from(cases[i].code), slice_from(texts[k]) };
            if (texts[k])
                check(classify(destination->policy.classifier, evidence).outcome == OUTCOME_TRANSIENT, "%s by %s", texts[k],
                      proposal.data);
        }
        struct evidence else_where = { SLICE(""), SLICE("something quite different") };
        assert_int_equal(classify(destination->policy.classifier, else_where).outcome, OUTCOME_NONE);
        config_unref(config);
        buffer_release(&proposal);
    }
}

static void without_a_rule_nothing_is_proposed(void **state)
{
    struct buffer proposal, small;
    (void)state;
    buffer_init(&proposal, 4096);
    assert_false(learning_propose(SLICE("d"), OUTCOME_TRANSIENT, SLICE(""), SLICE("<id>"), false, &proposal));
    assert_int_equal(proposal.len, 0);
    buffer_release(&proposal);
    buffer_init(&small, 16); /* a failure of the buffer sticks */
    assert_true(learning_propose(SLICE("d"), OUTCOME_TRANSIENT, SLICE(""), SLICE("the bucket is gone"), false, &small));
    assert_int_equal(buffer_status(&small), STATUS_LIMIT);
    buffer_release(&small);
}

static void the_presets_rules_stay(void **state)
{
    struct buffer proposal;
    (void)state;
    buffer_init(&proposal, 4096);
    assert_true(learning_propose(SLICE("a-b.c_d"), OUTCOME_PERMANENT, SLICE(""), SLICE("the bucket is gone"), false, &proposal));
    struct config *config = config_with(buffer_slice(&proposal), "    preset: tiss\n");
    const struct classifier *classifier = config_destination(config, SLICE("a-b.c_d"))->policy.classifier;
    assert_int_equal(classify(classifier, (struct evidence){ SLICE(""), SLICE("the bucket is gone") }).outcome, OUTCOME_PERMANENT);
    assert_int_equal(classify(classifier, (struct evidence){ SLICE(""), SLICE("INSURANCE_EXPIRED") }).outcome, OUTCOME_PERMANENT);
    assert_int_equal(classify(classifier, (struct evidence){ SLICE(""), SLICE("TIMEOUT") }).outcome, OUTCOME_TRANSIENT);
    config_unref(config);
    buffer_release(&proposal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(odds_are_the_beta_posterior),
        cmocka_unit_test(a_class_is_said_only_when_it_is_clear),
        cmocka_unit_test(the_rule_is_the_words_that_stay),
        cmocka_unit_test(a_proposal_loads_and_knows_its_error),
        cmocka_unit_test(without_a_rule_nothing_is_proposed),
        cmocka_unit_test(the_presets_rules_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
