/* Alerts about sources and their Redis, through the real engine, in virtual time. */
#include "node/source_board.h"
#include "support/alert_script.h"

#include <string.h>

#define SOURCES "sources: [{ name: in, redis: 'redis://h/', stream: s, destination: d }]\n"

static struct source_figures figures_of(struct stage *stage)
{
    struct source_figures figures;
    assert_true(source_board_get(stage->sources, "in", &figures));
    figures.checked = true;
    return figures;
}

static void begin(struct stage *stage, struct script *script)
{
    *script = (struct script){ 0 };
    *stage = (struct stage){ .destination = alert_answers, .context = script, .sources = source_board_new() };
    assert_non_null(stage->sources);
    stage_begin(stage, SOURCES TO(""), began);
    source_board_name(stage->sources, stage->config, began);
}

static void end(struct stage *stage)
{
    struct source_board *board = stage->sources;
    stage_end(stage);
    source_board_free(board);
}

/* S2-077, S2-078 */
static void a_redis_that_fills_is_told(void **state)
{
    struct script script;
    struct stage stage;
    (void)state;
    begin(&stage, &script);
    struct source_figures figures = figures_of(&stage);
    figures.redis = (struct redis_health){ .used_bytes = 80, .limit_bytes = 100 };
    source_board_set(stage.sources, &figures);
    stage_run_for(&stage, MINUTE_MS);
    assert_int_equal(script.count, 0);
    figures.redis.used_bytes = 81;
    source_board_set(stage.sources, &figures);
    stage_run_for(&stage, MINUTE_MS);
    CHECK_MESSAGES(&script, "80%", "raised redis_filling - -");
    figures.redis.used_bytes = 91;
    source_board_set(stage.sources, &figures);
    stage_run_for(&stage, MINUTE_MS);
    CHECK_MESSAGES(&script, "90%", "raised redis_filling - -", "raised redis_nearly_full - -");
    figures.redis.used_bytes = 10;
    source_board_set(stage.sources, &figures);
    stage_run_for(&stage, 3 * MINUTE_MS);
    assert_int_equal(alert_state(&stage), 0);
    end(&stage);
}

/* S2-079 */
static void refusals_are_told_until_it_is_quiet(void **state)
{
    struct script script;
    struct stage stage;
    (void)state;
    begin(&stage, &script);
    struct source_figures figures = figures_of(&stage);
    figures.refused_before = 7; /* before we looked */
    figures.redis = (struct redis_health){ .limit_bytes = 100, .refused = 7 };
    source_board_set(stage.sources, &figures);
    stage_run_for(&stage, MINUTE_MS);
    assert_int_equal(script.count, 0);
    figures.redis.refused = 8;
    source_board_set(stage.sources, &figures);
    stage_run_for(&stage, MINUTE_MS);
    CHECK_MESSAGES(&script, "refused", "raised redis_refusing - -");
    stage_run_for(&stage, 20 * MINUTE_MS);
    CHECK_MESSAGES(&script, "quiet", "raised redis_refusing - -", "cleared redis_refusing - -");
    end(&stage);
}

static void what_stood_stands_until_redis_was_asked(void **state)
{
    struct script script;
    struct stage stage;
    (void)state;
    begin(&stage, &script);
    struct source_figures figures = figures_of(&stage);
    figures.redis = (struct redis_health){ .limit_bytes = 100, .risks = 1u << REDIS_MAY_EVICT };
    source_board_set(stage.sources, &figures);
    stage_run_for(&stage, MINUTE_MS);
    CHECK_MESSAGES(&script, "unsafe", "raised redis_unsafe - -");
    figures.checked = false; /* a start: nothing is known */
    figures.redis = (struct redis_health){ 0 };
    source_board_set(stage.sources, &figures);
    stage_crash(&stage);
    stage_run_for(&stage, 5 * MINUTE_MS);
    assert_int_equal(script.count, 1);
    figures.checked = true;
    figures.redis = (struct redis_health){ .limit_bytes = 100, .risks = 1u << REDIS_PLAIN_LOG }; /* which loses nothing */
    source_board_set(stage.sources, &figures);
    stage_run_for(&stage, MINUTE_MS);
    CHECK_MESSAGES(&script, "mended", "raised redis_unsafe - -", "cleared redis_unsafe - -");
    end(&stage);
}

/* A restart of Redis is no alert; a minute without it is, and ends with it. */
static void a_source_that_is_away_is_told(void **state)
{
    struct script script;
    struct stage stage;
    (void)state;
    begin(&stage, &script);
    struct source_figures figures = figures_of(&stage);
    figures.state = SOURCE_AWAY;
    figures.since = stage.now;
    strcpy(figures.reason, "CONNECTION_ERROR - refused");
    source_board_set(stage.sources, &figures);
    stage_run_for(&stage, 50 * SECOND_MS);
    assert_int_equal(script.count, 0);
    stage_run_for(&stage, 25 * SECOND_MS);
    CHECK_MESSAGES(&script, "away", "raised source_away - -");
    figures.state = SOURCE_WAITING; /* the store's own alerts tell of that */
    source_board_set(stage.sources, &figures);
    stage_run_for(&stage, 25 * SECOND_MS);
    CHECK_MESSAGES(&script, "back", "raised source_away - -", "cleared source_away - -");
    end(&stage);
}

static void rejected_entries_are_told_until_acknowledged(void **state)
{
    struct script script;
    struct stage stage;
    (void)state;
    begin(&stage, &script);
    struct source_figures figures = figures_of(&stage);
    source_board_count(stage.sources, "in", &(struct source_counts){ .rejected = 3 });
    strcpy(figures.rejected_reason, "field \"run_art\" is not known");
    source_board_set(stage.sources, &figures);
    stage_run_for(&stage, 30 * MINUTE_MS);
    CHECK_MESSAGES(&script, "rejected", "raised source_rejected - -");
    assert_int_equal(alert_state(&stage), 1);
    end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_redis_that_fills_is_told),
        cmocka_unit_test(refusals_are_told_until_it_is_quiet),
        cmocka_unit_test(what_stood_stands_until_redis_was_asked),
        cmocka_unit_test(a_source_that_is_away_is_told),
        cmocka_unit_test(rejected_entries_are_told_until_acknowledged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
