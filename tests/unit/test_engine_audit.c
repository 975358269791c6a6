/* The trail of events is kept as long as it is said, and no longer. */
#include "support/check.h"
#include "support/engine_fixture.h"

#include <stdio.h>

#define KEPT_MS ((int64_t)30 * DAY_MS)

enum { MANY = 40000, SECONDS_MANY = 2 };

static const char yaml[] = "retention: { completed: 1h, audit: 30d }\n"
                           "destinations: { d: { transport: pull } }\n";

static instant start;

static int begin(void **state)
{
    static struct stage stage;
    assert_int_equal(instant_parse(SLICE("2025-01-12T10:40:00Z"), &start, NULL), STATUS_OK);
    stage_begin(&stage, yaml, start);
    *state = &stage;
    return 0;
}

static int end(void **state)
{
    stage_end(*state);
    return 0;
}

struct trail {
    size_t count;
    instant oldest;
};

static void see_event(void *context, const struct event *event)
{
    struct trail *trail = context;
    if (trail->count++ == 0)
        trail->oldest = event->at;
}

/* How many events there are; the oldest one's time is told, too. */
static size_t count_events(struct stage *stage, instant *ret_oldest)
{
    struct trail trail = { .oldest = INSTANT_NONE };
    events_each(stage, see_event, &trail);
    *ret_oldest = trail.oldest;
    return trail.count;
}

static void only_what_is_older_goes(void **state)
{
    struct stage *stage = *state;
    instant oldest;
    stage_add(stage, "d", "t", "old", "1");
    stage_add(stage, "d", "t", "as old", "1"); /* one event alone stays: a trim leaves one that tells of it */
    stage_run_for(stage, 10 * DAY_MS);
    stage_add(stage, "d", "t", "young", "1");
    stage_run_until(stage, start + KEPT_MS - MINUTE_MS);
    size_t before = count_events(stage, &oldest);
    check(oldest <= start + SECOND_MS, "events are gone before their time: the oldest is of %lld", (long long)oldest);
    stage_run_until(stage, start + KEPT_MS + 2 * MINUTE_MS);
    size_t after = count_events(stage, &oldest);
    check(after < before && after > 0, "%zu events of %zu", after, before);
    check(oldest >= start + 2 * MINUTE_MS && oldest <= start + 10 * DAY_MS + SECOND_MS, "the oldest is of %lld", (long long)oldest);
}

/* What comes faster than one look a minute can take away must go as fast as it came. */
static void a_long_trail_goes_in_a_row(void **state)
{
    struct stage *stage = *state;
    instant oldest;
    char id[16];
    for (int i = 0; i < MANY; i++) {
        snprintf(id, sizeof id, "%d", i);
        stage_add(stage, "d", "t", id, "1");
    }
    stage_run_until(stage, start + KEPT_MS - MINUTE_MS);
    assert_true(count_events(stage, &oldest) >= MANY);
    stage_run_until(stage, start + KEPT_MS + MINUTE_MS + SECONDS_MANY * SECOND_MS);
    size_t left = count_events(stage, &oldest);
    check(left < MANY / 10, "%zu events are left", left);
}

/* What is kept for seconds is looked at each second, not each minute: jobs, dead letters and events. */
static void short_times_are_kept_too(void **state)
{
    (void)state;
    struct stage stage = { 0 };
    instant oldest;
    struct arena memory;
    struct destination_total *totals;
    struct error error;
    size_t count;
    stage_begin(&stage, "retention: { completed: 10s, audit: 10s }\n"
                        "destinations: { d: { transport: pull, dead: { ttl: 5s } } }\n", start);
    for (int i = 0; i < 500; i++) {
        char id[16];
        snprintf(id, sizeof id, "%d", i);
        struct store_op op = { .kind = OP_INSERT,
                               .insert = { .destination = SLICE("d"), .tenant = SLICE("t"), .id = slice_from(id),
                                           .priority = PRIORITY_NORMAL, .run_at = INSTANT_NONE,
                                           .deadline = stage.now + SECOND_MS, .payload = SLICE("1") } };
        stage_apply(&stage, &op);
    }
    stage_run_for(&stage, 9 * SECOND_MS);
    arena_init(&memory, SIZE_MAX / 2);
    assert_int_equal(stage.reader->ops->reader_totals(stage.reader, 1, &memory, &totals, &count, &error), STATUS_OK);
    assert_int_equal(count, 1);
    assert_int_equal(totals[0].counts.pending, 0);
    check(totals[0].counts.dead == 0, "%lld dead letters are left", (long long)totals[0].counts.dead);
    arena_release(&memory);
    assert_true(count_events(&stage, &oldest) >= 1000);
    stage_run_for(&stage, 12 * SECOND_MS);
    size_t left = count_events(&stage, &oldest);
    check(left < 10, "%zu events are left", left);
    stage_end(&stage);
}

static void five_years_are_the_default(void **state)
{
    (void)state;
    struct config *config;
    instant from, to;
    assert_int_equal(config_default(&config), STATUS_OK);
    assert_int_equal(instant_parse(SLICE("2024-01-12T00:00:00Z"), &from, NULL), STATUS_OK);
    assert_int_equal(instant_parse(SLICE("2029-01-12T00:00:00Z"), &to, NULL), STATUS_OK); /* two leap days */
    assert_true(config->retention_audit_ms >= to - from);
    config_unref(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(only_what_is_older_goes, begin, end),
        cmocka_unit_test_setup_teardown(a_long_trail_goes_in_a_row, begin, end),
        cmocka_unit_test(short_times_are_kept_too),
        cmocka_unit_test(five_years_are_the_default),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
