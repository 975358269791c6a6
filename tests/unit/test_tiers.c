/* Tenants in tiers: what the file says, and whose weight it is. */
#include "support/check.h"
#include "support/configs.h"

#define WEIGHTS(weights) "destinations: { d: { url: 'https://a.example/', fairness: { weights: { " weights " } } } }\n"

static void weights_are_a_tenants_or_its_tiers(void **state)
{
    static const struct {
        const char *tenant;
        int64_t weight;
    } rows[] = { { "acme", 4 }, { "globex", 7 }, { "initech", 2 }, { "umbrella", 3 }, { "nobody", 1 }, { "", 1 }, { "gold", 4 } };
    struct config *config = config_from(SLICE("tiers: { gold: [acme, globex], silver: [initech], bronze: [] }\n" WEIGHTS(
                                            "gold: 4, silver: 2, bronze: 1, globex: 7, umbrella: 3")),
                                        "test.yaml");
    const struct destination_config *d = config_destination(config, SLICE("d"));
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        check(config_weight(config, d, slice_from(rows[i].tenant)) == rows[i].weight, "%s", rows[i].tenant);
    config_unref(config);
}

/* A tier may have a weight at one destination and none at another. */
static void a_tier_without_weight_counts_as_others(void **state)
{
    struct config *config = config_from(SLICE("tiers: { gold: [acme] }\n"
                                              "destinations:\n"
                                              "  a: { url: 'https://a.example/', fairness: { weights: { gold: 4 } } }\n"
                                              "  b: { url: 'https://b.example/' }\n"),
                                        "test.yaml");
    (void)state;
    assert_int_equal(config_weight(config, config_destination(config, SLICE("a")), SLICE("acme")), 4);
    assert_int_equal(config_weight(config, config_destination(config, SLICE("b")), SLICE("acme")), 1);
    config_unref(config);
}

static void what_is_wrong_is_told_with_its_place(void **state)
{
    static const struct {
        const char *yaml, *problems;
    } rows[] = {
        { "tiers: { glod: [acme] }\n" WEIGHTS("gold: 4"),
          "test.yaml:1:10: no destination's fairness.weights has tier \"glod\"; did you mean \"gold\"?\n" },
        { "tiers: { platinum: [acme] }\n" WEIGHTS("gold: 4"),
          "test.yaml:1:10: no destination's fairness.weights has tier \"platinum\"; give it a weight there, or remove it\n" },
        { "tiers:\n  gold: [acme]\n  silver: [globex, acme]\n" WEIGHTS("gold: 4, silver: 2"),
          "test.yaml:3:20: tenant \"acme\" is in tier \"gold\" already\n" },
        { "tiers: { gold: acme }\n" WEIGHTS("gold: 4"),
          "test.yaml:1:16: tier \"gold\" must be a list of tenants such as [acme, globex], not text\n" },
        { "tiers: [gold]\n" WEIGHTS("gold: 4"),
          "test.yaml:1:8: tiers must be names and lists of tenants such as { gold: [acme, globex] }, not a list\n" },
        { "tiers: { gold: [acme, [x], ''] }\n" WEIGHTS("gold: 4"),
          "test.yaml:1:23: an item of tier \"gold\" must be a tenant's name\n"
          "test.yaml:1:28: an item of tier \"gold\" must be a tenant's name\n" },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct config *config;
        struct buffer problems;
        buffer_init(&problems, 64 * 1024);
        check(config_parse(slice_from(rows[i].yaml), "test.yaml", &config, &problems) == STATUS_INVALID, "%s", rows[i].yaml);
        check(strcmp(problems.data, rows[i].problems) == 0, "%s: %s", rows[i].yaml, problems.data);
        buffer_release(&problems);
    }
}

static void none_are_needed(void **state)
{
    struct config *config = config_from(SLICE("tiers:\n" WEIGHTS("acme: 4")), "test.yaml");
    (void)state;
    assert_int_equal(config->tier_count, 0);
    assert_int_equal(config_weight(config, config_destination(config, SLICE("d")), SLICE("acme")), 4);
    config_unref(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_a_tenants_or_its_tiers),
        cmocka_unit_test(a_tier_without_weight_counts_as_others),
        cmocka_unit_test(what_is_wrong_is_told_with_its_place),
        cmocka_unit_test(none_are_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
