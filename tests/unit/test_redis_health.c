/* Whether a Redis keeps what it was given, by what it says of itself. */
#include "transport/broker/redis_health.h"

#include "support/check.h"

#define BIT(risk) (1u << (risk))
#define INFO(aof, policy, limit) \
    "# Memory\r\nused_memory:850\r\nused_memory_human:850B\r\nmaxmemory:" limit "\r\nmaxmemory_policy:" policy \
    "\r\n# Persistence\r\naof_enabled:" aof "\r\naof_last_write_status:ok\r\naof_last_bgrewrite_status:ok\r\n" \
    "# Stats\r\nrejected_connections:2\r\n# Errorstats\r\nerrorstat_ERR:count=9\r\nerrorstat_OOM:count=3\r\n"

#define SETTINGS_OF(sync, preamble, percentage, size)                                                               \
    { "appendfsync", sync, "aof-use-rdb-preamble", preamble, "auto-aof-rewrite-percentage", percentage,             \
      "auto-aof-rewrite-min-size", size }
#define GOOD SETTINGS_OF("everysec", "yes", "100", "67108864")

/* S2-006, S2-071, S2-072, S2-073, S2-074 */
static void each_setting_of_the_document_is_judged(void **state)
{
    static const struct {
        const char *name, *info;
        const char *settings[8];
        unsigned risks;
    } cases[] = {
        { "as the document has it", INFO("1", "noeviction", "1000"), GOOD, 0 },
        { "always is better", INFO("1", "noeviction", "1000"), SETTINGS_OF("always", "yes", "50", "1"), 0 },
        { "evicts", INFO("1", "allkeys-lru", "1000"), GOOD, BIT(REDIS_MAY_EVICT) },
        { "evicts what expires", INFO("1", "volatile-ttl", "1000"), GOOD, BIT(REDIS_MAY_EVICT) },
        { "no log", INFO("0", "noeviction", "1000"), SETTINGS_OF("no", "no", "0", "1"), BIT(REDIS_KEEPS_NO_LOG) },
        { "no sync", INFO("1", "noeviction", "1000"), SETTINGS_OF("no", "yes", "100", "1"), BIT(REDIS_SYNCS_SELDOM) },
        { "no limit", INFO("1", "noeviction", "0"), GOOD, BIT(REDIS_HAS_NO_LIMIT) },
        { "no preamble", INFO("1", "noeviction", "1000"), SETTINGS_OF("everysec", "no", "100", "1"), BIT(REDIS_PLAIN_LOG) },
        { "never rewritten", INFO("1", "noeviction", "1000"), SETTINGS_OF("everysec", "yes", "0", "1"), BIT(REDIS_LOG_GROWS) },
        { "late", INFO("1", "noeviction", "1000"), SETTINGS_OF("everysec", "yes", "101", "1"), BIT(REDIS_LOG_GROWS) },
        { "large", INFO("1", "noeviction", "1000"), SETTINGS_OF("everysec", "yes", "100", "67108865"), BIT(REDIS_LOG_GROWS) },
        { "it fails", "aof_enabled:1\naof_last_write_status:err\nmaxmemory:1\n", GOOD, BIT(REDIS_LOG_FAILS) },
        { "it says nothing", "", GOOD, BIT(REDIS_KEEPS_NO_LOG) | BIT(REDIS_HAS_NO_LIMIT) },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct redis_health health;
        redis_health_judge(slice_from(cases[i].info), cases[i].settings, COUNT_OF(cases[i].settings), &health);
        check(health.risks == cases[i].risks, "%s: %x, not %x", cases[i].name, health.risks, cases[i].risks);
    }
}

/* S2-077, S2-078, S2-079: what alerts are made of. */
static void memory_and_refusals_are_read(void **state)
{
    struct redis_health health;
    (void)state;
    redis_health_judge(SLICE(INFO("1", "noeviction", "1000")), NULL, 0, &health);
    assert_int_equal(health.used_bytes, 850);
    assert_int_equal(health.refused, 5);
    assert_int_equal(health.risks, BIT(REDIS_HIDES_SETTINGS));
    assert_true(redis_health_share(&health) == 0.85);
    for (int risk = 0; risk < REDIS_RISK_COUNT; risk++)
        assert_non_null(redis_risk_text((enum redis_risk)risk));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_setting_of_the_document_is_judged),
        cmocka_unit_test(memory_and_refusals_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
