/*
 * When an alert begins and ends, from figures alone.
 */
#include "core/alerting/alert.h"
#include "core/alerting/readings.h"
#include "support/check.h"

#include <stdio.h>

enum { READINGS_MAX = 12 };

/* A figure each `every_ms`, and what it brings: '.' nothing, R raised, G grown, C cleared. */
static const struct {
    const char *name;
    enum alert_kind kind;
    int64_t every_ms;
    double limit;
    double values[READINGS_MAX];
    const char *steps;
} cases[] = {
    { "S3-063: contingency begins and ends", ALERT_CONTINGENCY, 10000, 1, { 0, 1, 1, 1, 0, 0 }, ".R..C." },
    { "S3-066: down only after so long", ALERT_DOWN, 60000, 120000, { 0, 1, 60000, 120000, 180000, 0 }, "...R.C" },
    { "S3-066: a short outage is not told", ALERT_DOWN, 60000, 120000, { 1, 60000, 0, 1, 60000, 0 }, "......" },
    { "S4-033: a breaker that stays open", ALERT_BREAKER_OPEN, 60000, 180000, { 1, 60000, 120000, 180000, 240000, 0 }, "...R.C" },
    { "S3-064: over 100, not at 100", ALERT_PENDING, 60000, 100, { 99, 100, 101, 500 }, "..R." },
    { "S2-044: over 100 dead letters", ALERT_DEAD, 60000, 100, { 100, 101, 101 }, ".R." },
    { "S2-046: over 50 of one tenant", ALERT_DEAD_PER_TENANT, 60000, 50, { 50, 51, 51 }, ".R." },
    { "a level trembles about its limit", ALERT_PENDING, 60000, 100, { 101, 99, 101, 95, 101, 91, 101 }, "R......" },
    { "it ends under nine tenths, a minute long", ALERT_PENDING, 60000, 100, { 101, 90, 89, 89, 89 }, "R..C." },
    { "not for a moment only", ALERT_PENDING, 10000, 100, { 101, 89, 89, 89, 95, 89, 89, 89, 89, 89, 89, 89 }, "R..........C" },
    { "and begins anew", ALERT_PENDING, 60000, 100, { 101, 1, 1, 1, 101 }, "R.C.R" },
    { "a small limit", ALERT_PENDING, 60000, 1, { 1, 2, 1, 0, 0 }, ".R..C" },
    { "S2-045: more than two in a hundred", ALERT_DEAD_RATE, 60000, 0.02, { 0.02, 0.021, 0.019, 0.01, 0.01 }, ".R..C" },
    { "S2-077: over 80%", ALERT_STORE_FILLING, 60000, 0.8, { 0.8, 0.81, 0.73, 0.71, 0.71 }, ".R..C" },
    { "S2-078: over 90%", ALERT_STORE_NEARLY_FULL, 60000, 0.9, { 0.9, 0.91, 0.82, 0.8, 0.8 }, ".R..C" },
    { "S2-079: refused", ALERT_STORE_REFUSING, 60000, 1, { 1, STORE_FILL_REFUSES, 0.95, 0.8, 0.8 }, ".R..C" },
    { "S4-035: the mean age", ALERT_AGE, 60000, 900000, { 900000, 900001, 800000, 800000 }, ".R.C" },
    { "S4-034: growth", ALERT_GROWTH, 60000, 200, { 150, 201, 201 }, ".R." },
    { "a limit that is not known raises nothing", ALERT_GROWTH, 60000, 0, { 150, 201 }, ".." },
    { "S3-065: one job, and nobody looks", ALERT_MAX_RETRIES_EXCEEDED, 60000, 180000, { 0, 1, 0, 0, 0, 0 }, ".R...." },
    { "it stands for days", ALERT_PERMANENT_ERROR, 86400000, 180000, { 1, 0, 0, 0 }, "R..." },
    { "another one after a quiet time is told", ALERT_PERMANENT_ERROR, 60000, 180000, { 1, 0, 0, 1, 1, 0, 0, 1 }, "R..G...G" },
    { "a count grows tenfold", ALERT_MAX_RETRIES_EXCEEDED, 60000, 180000, { 1, 8, 1, 89, 1, 899, 9000 }, "R.G.G.G" },
    { "but is not told twice a minute", ALERT_MAX_RETRIES_EXCEEDED, 10000, 180000, { 1, 9, 90, 900, 0, 0, 0 }, "R.....G" },
    { "a hundred at once are told once", ALERT_IN_DOUBT, 60000, 180000, { 100, 50, 50 }, "R.." },
};

static void steps_follow_figures(void **state)
{
    static const char letters[] = { [ALERT_SAME] = '.', [ALERT_RAISED] = 'R', [ALERT_GROWN] = 'G', [ALERT_CLEARED] = 'C' };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct alert_state current = alert_state_none();
        char seen[READINGS_MAX + 1] = "";
        instant now = INT64_C(1736678400000);
        for (size_t j = 0; cases[i].steps[j]; j++, now += cases[i].every_ms) {
            const struct alert_reading reading = { .watched = true, .value = cases[i].values[j], .limit = cases[i].limit };
            seen[j] = letters[alert_judge(cases[i].kind, &reading, &current, now)];
        }
        check(strcmp(seen, cases[i].steps) == 0, "%s: %s, expected %s", cases[i].name, seen, cases[i].steps);
    }
}

/* When no dead letter is left there is nothing to be acknowledged; but not while they are still being counted. */
static void a_count_ends_when_none_is_left(void **state)
{
    struct alert_state current = alert_state_none();
    const struct alert_reading one = { .watched = true, .value = 1, .limit = 900000, .gone = true };
    struct alert_reading none = { .watched = true, .limit = 900000 };
    (void)state;
    assert_int_equal(alert_judge(ALERT_PERMANENT_ERROR, &one, &current, 0), ALERT_RAISED);
    assert_int_equal(alert_judge(ALERT_PERMANENT_ERROR, &none, &current, HOUR_MS), ALERT_SAME);
    assert_int_equal(alert_judge(ALERT_PERMANENT_ERROR, &one, &current, 2 * HOUR_MS), ALERT_GROWN);
    none.gone = true;
    assert_int_equal(alert_judge(ALERT_PERMANENT_ERROR, &none, &current, 2 * HOUR_MS + ALERT_CLEAR_MS - 1), ALERT_SAME);
    assert_int_equal(alert_judge(ALERT_PERMANENT_ERROR, &none, &current, 2 * HOUR_MS + ALERT_CLEAR_MS), ALERT_CLEARED);
}

static void what_is_not_watched_ends(void **state)
{
    (void)state;
    for (int kind = 0; kind < ALERT_KIND_COUNT; kind++) {
        struct alert_state current = alert_state_none();
        struct alert_reading reading = { .watched = true, .value = 5, .limit = 1 };
        assert_int_equal(alert_judge((enum alert_kind)kind, &reading, &current, 1000), ALERT_RAISED);
        reading.watched = false;
        assert_int_equal(alert_judge((enum alert_kind)kind, &reading, &current, 1000), ALERT_CLEARED);
        assert_int_equal(alert_judge((enum alert_kind)kind, &reading, &current, 1000), ALERT_SAME);
    }
}

/* C-73: jobs that an outage holds are old for a reason that was told already. */
static void an_excused_alert_is_not_raised_and_goes_on(void **state)
{
    struct alert_state current = alert_state_none();
    struct alert_reading reading = { .watched = true, .excused = true, .value = 1000, .limit = 900 };
    (void)state;
    assert_int_equal(alert_judge(ALERT_AGE, &reading, &current, 0), ALERT_SAME);
    reading.excused = false;
    assert_int_equal(alert_judge(ALERT_AGE, &reading, &current, 0), ALERT_RAISED);
    reading.excused = true;
    assert_int_equal(alert_judge(ALERT_AGE, &reading, &current, DAY_MS), ALERT_SAME);
}

/* Neither early, since less time seems to have passed, nor hours late. */
static void a_clock_put_back_neither_hurries_nor_delays(void **state)
{
    const struct alert_reading low = { .watched = true, .value = 1, .limit = 100 }, high = { .watched = true, .value = 200, .limit = 100 };
    const struct alert_reading one = { .watched = true, .value = 1, .limit = MINUTE_MS }, gone = { .watched = true, .limit = MINUTE_MS, .gone = true };
    struct alert_state current = alert_state_none();
    (void)state;
    assert_int_equal(alert_judge(ALERT_PENDING, &high, &current, 10 * HOUR_MS), ALERT_RAISED);
    assert_int_equal(alert_judge(ALERT_PENDING, &low, &current, 10 * HOUR_MS), ALERT_SAME);
    assert_int_equal(alert_judge(ALERT_PENDING, &low, &current, HOUR_MS), ALERT_SAME);
    assert_int_equal(alert_judge(ALERT_PENDING, &low, &current, HOUR_MS + MINUTE_MS), ALERT_CLEARED);
    current = alert_state_none();
    assert_int_equal(alert_judge(ALERT_PARTIAL, &one, &current, 10 * HOUR_MS), ALERT_RAISED);
    assert_int_equal(alert_judge(ALERT_PARTIAL, &gone, &current, HOUR_MS), ALERT_SAME);
    assert_int_equal(alert_judge(ALERT_PARTIAL, &gone, &current, HOUR_MS + MINUTE_MS), ALERT_CLEARED);
}

static void words_of_on(void **state)
{
    static const struct {
        enum alert_kind kind;
        const char *word;
        bool matches, known;
    } words[] = {
        { ALERT_CONTINGENCY, "contingency", true, true }, { ALERT_CONTINGENCY, "critical", true, true },
        { ALERT_CONTINGENCY, "all", true, true },         { ALERT_CONTINGENCY, "warning", false, true },
        { ALERT_DEAD, "warning", true, true },            { ALERT_DEAD, "dead_rate", false, true },
        { ALERT_DEAD, "info", false, true },              { ALERT_DEAD, "", false, false },
        { ALERT_DEAD, "Dead", false, false },             { ALERT_DEAD, "contingencia", false, false },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        check(alert_matches(words[i].kind, slice_from(words[i].word)) == words[i].matches, "%s", words[i].word);
        check(alert_word_is_known(slice_from(words[i].word)) == words[i].known, "%s", words[i].word);
    }
    for (int kind = 0; kind < ALERT_KIND_COUNT; kind++)
        assert_int_equal(alert_kind_from_name(slice_from(alert_types[kind].name)), kind);
}

/* C-48: what is watched is what makes the daemon refuse jobs, not connections. */
static void the_store_fills(void **state)
{
    static const struct {
        struct store_fill fill;
        double low, high;
    } fills[] = {
        { { 0, 100, -1, 256 }, 0, 0 },          { { 80, 100, -1, 256 }, 0.8, 0.8 },
        { { 100, 100, -1, 256 }, 1.001, 1.02 }, { { 150, 100, -1, 256 }, 1.5, 1.5 },
        { { 50, 0, -1, 256 }, 0, 0 },           { { 0, 100, 1024, 256 }, 0.8, 0.8 },
        { { 0, 100, 512, 256 }, 0.9, 0.9 },     { { 0, 100, 256, 256 }, 1, 1 },
        { { 0, 100, 255, 256 }, 1.001, 1.02 },  { { 0, 100, 10240, 256 }, 0.07, 0.09 },
        { { 0, 100, 0, 0 }, 0, 0 },             { { 95, 100, 1024, 256 }, 0.95, 0.95 },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(fills); i++) {
        double share = store_fill_share(&fills[i].fill);
        check(share >= fills[i].low - 1e-9 && share <= fills[i].high + 1e-9, "row %zu: %f", i, share);
    }
}

/* C-47 */
static void the_share_is_of_the_last_hour(void **state)
{
    struct share_window window = share_none();
    instant now = INT64_C(1736678400000);
    (void)state;
    assert_true(share_dead(&window, now) < 0);
    share_add(&window, HOUR_MS, 99, 10, now);
    assert_true(share_dead(&window, now) < 0); /* too few to tell */
    share_add(&window, HOUR_MS, 101, 10, now + 10 * MINUTE_MS);
    assert_true(share_dead(&window, now + 10 * MINUTE_MS) == 0.1);
    assert_true(share_dead(&window, now + 65 * MINUTE_MS) == 10.0 / 101);
    assert_true(share_dead(&window, now + 2 * HOUR_MS) == 0);
    share_add(&window, HOUR_MS, 200, 200, now + 2 * HOUR_MS);
    assert_true(share_dead(&window, now + 2 * HOUR_MS) == 1);
    assert_true(share_dead(&window, now) < 0); /* the clock was put back: nothing is known */
    share_add(&window, DAY_MS, 150, 15, now);
    assert_true(share_dead(&window, now + 20 * HOUR_MS) == 0.1);
}

static void growth_is_against_ten_minutes_ago(void **state)
{
    struct growth_window window = { 0 };
    instant now = 0;
    (void)state;
    for (int i = 0; i < GROWTH_SAMPLES; i++, now += MINUTE_MS) {
        assert_true(growth_limit(&window, 2) == 0);
        growth_add(&window, 300 + i, now);
        growth_add(&window, 9999, now + 1); /* not so soon */
    }
    assert_true(growth_limit(&window, 2) == 600);
    assert_true(growth_limit(&window, 1.1) == 400);
    assert_true(growth_limit(&window, 0) == 0);
    growth_add(&window, 311, now);
    assert_true(growth_limit(&window, 2) == 602);
    growth_add(&window, 5, now - HOUR_MS);
    assert_int_equal(window.count, 1);
}

static void summaries(void **state)
{
    static const struct {
        struct alert_facts facts;
        const char *text;
    } rows[] = {
        { { .kind = ALERT_CONTINGENCY, .step = ALERT_RAISED, .destination = SLICE("claims"), .reason = SLICE("breaker") },
          "claims: contingency began: jobs are held and lose no tries (breaker)" },
        { { .kind = ALERT_CONTINGENCY, .step = ALERT_CLEARED, .destination = SLICE("claims"), .lasted_ms = 3723456 },
          "claims: contingency is over after 1h2m3s" },
        { { .kind = ALERT_PENDING, .step = ALERT_RAISED, .destination = SLICE("d"), .value = 101, .limit = 100 },
          "d: 101 jobs are not done; the limit is 100" },
        { { .kind = ALERT_GROWTH, .step = ALERT_RAISED, .destination = SLICE("d"), .value = 401, .limit = 400 },
          "d: 401 jobs are not done, many more than ten minutes ago; the limit is 400" },
        { { .kind = ALERT_AGE, .step = ALERT_RAISED, .destination = SLICE("d"), .value = 961000, .limit = 900000 },
          "d: jobs that are not done are 16m1s old on average; the limit is 15m" },
        { { .kind = ALERT_DEAD_RATE, .step = ALERT_RAISED, .destination = SLICE("d"), .value = 0.034, .limit = 0.02 },
          "d: 3.4% of the jobs that ended of late are dead; the limit is 2.0%" },
        { { .kind = ALERT_DEAD_PER_TENANT, .step = ALERT_RAISED, .destination = SLICE("d"), .tenant = SLICE("acme"), .value = 51, .limit = 50 },
          "d: tenant acme: 51 dead letters; the limit is 50" },
        { { .kind = ALERT_MAX_RETRIES_EXCEEDED, .step = ALERT_RAISED, .destination = SLICE("d"), .count = 1 },
          "d: 1 job used up its retries" },
        { { .kind = ALERT_PERMANENT_ERROR, .step = ALERT_GROWN, .destination = SLICE("d"), .count = 10000 },
          "d: 10000 jobs met a permanent error" },
        { { .kind = ALERT_EXPIRED, .step = ALERT_CLEARED, .count = 2, .lasted_ms = 900000 },
          "the run of expired jobs is over after 15m; 2 jobs were too old before they were done" },
        { { .kind = ALERT_DOWN, .step = ALERT_RAISED, .destination = SLICE("d"), .value = 1800000 }, "d: down for 30m" },
        { { .kind = ALERT_BREAKER_OPEN, .step = ALERT_RAISED, .destination = SLICE("d"), .value = 600000 },
          "d: the breaker has not been closed for 10m" },
        { { .kind = ALERT_DEAD_FULL, .step = ALERT_RAISED, .destination = SLICE("d"), .value = 10000 },
          "d: the dead-letter store is full (10000): the destination is held until some are cleared" },
        { { .kind = ALERT_TENANT_BLOCKED, .step = ALERT_RAISED, .destination = SLICE("d"), .tenant = SLICE("t"), .reason = SLICE("http 401") },
          "d: tenant t: held until a look goes well or somebody resumes it (http 401)" },
        { { .kind = ALERT_BLOCKED, .step = ALERT_RAISED, .destination = SLICE("d"), .value = 1 },
          "d: held until a look goes well or somebody resumes it" },
        { { .kind = ALERT_BLOCKED, .step = ALERT_RAISED, .destination = SLICE("d"), .value = ALERT_SECOND_ADDRESS },
          "d: its second address is held until a look goes well or somebody resumes it" },
        { { .kind = ALERT_STORE_FILLING, .step = ALERT_RAISED, .value = 0.815, .reason = SLICE("8 jobs wait") },
          "the store is 81% full (8 jobs wait)" },
        { { .kind = ALERT_STORE_FILLING, .step = ALERT_CLEARED, .lasted_ms = 60000, .reason = SLICE("8 jobs wait") },
          "the filling of the store is over after 1m" },
        { { .kind = ALERT_NODE_GONE, .step = ALERT_RAISED, .value = 1, .reason = SLICE("b since 12:00") },
          "a node was taken for dead and has not come back; others have what it had (b since 12:00)" },
        { { .kind = ALERT_NODES_DIFFER, .step = ALERT_RAISED, .value = 61000, .reason = SLICE("a, c; b") },
          "nodes have had different configurations for 1m1s (a, c; b)" },
        { { .kind = ALERT_HEAD_MISSING, .step = ALERT_RAISED, .value = 1, .reason = SLICE("2.7 of node b") },
          "the end of a chain of events is gone: insist audit verify says what is missing (2.7 of node b)" },
        { { .kind = ALERT_STORE_REFUSING, .step = ALERT_RAISED, .value = 1.01 }, "the store is full: new jobs are refused" },
        { { .kind = ALERT_STORE_DAMAGED, .step = ALERT_RAISED, .reason = SLICE("page 7") },
          "a page of the store cannot be read: insist doctor says what is damaged, a backup mends it (page 7)" },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct buffer out;
        buffer_init(&out, 4096);
        alert_summary(&rows[i].facts, &out);
        buffer_append_byte(&out, '\0');
        assert_string_equal(out.data, rows[i].text);
        buffer_release(&out);
    }
}

/* The operators' page has every kind, with its severity. */
static void the_page_has_every_alert(void **state)
{
    char page[64 * 1024];
    FILE *file = fopen("docs/alerts.md", "r");
    (void)state;
    assert_non_null(file);
    page[fread(page, 1, sizeof page - 1, file)] = '\0';
    fclose(file);
    for (int kind = 0; kind < ALERT_KIND_COUNT; kind++) {
        char row[64];
        snprintf(row, sizeof row, "| `%s` | %s |", alert_types[kind].name, alert_severity_name(alert_types[kind].severity));
        check(strstr(page, row) != NULL, "docs/alerts.md has no %s", row);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_follow_figures),
        cmocka_unit_test(a_count_ends_when_none_is_left),
        cmocka_unit_test(what_is_not_watched_ends),
        cmocka_unit_test(an_excused_alert_is_not_raised_and_goes_on),
        cmocka_unit_test(a_clock_put_back_neither_hurries_nor_delays),
        cmocka_unit_test(words_of_on),
        cmocka_unit_test(the_store_fills),
        cmocka_unit_test(the_share_is_of_the_last_hour),
        cmocka_unit_test(growth_is_against_ten_minutes_ago),
        cmocka_unit_test(summaries),
        cmocka_unit_test(the_page_has_every_alert),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
