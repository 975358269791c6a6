/*
 * Dead letters are told of until somebody knows: alerts that stand, their figures, and what acknowledging does.
 */
#include "engine/alerts/alert_book.h"
#include "engine/loop.h"
#include "support/alert_script.h"

#include <jansson.h>

struct heard {
    struct saved_wait wait;
    bool done;
    enum status status;
};

static void on_saved(struct saved_wait *wait)
{
    struct heard *heard = wait->context;
    heard->done = true;
    heard->status = wait->error.status;
}

/* The newest alert that stands; the caller lets it go. */
static json_t *newest(struct stage *stage, struct slice space)
{
    struct arena memory;
    struct slice record;
    assert_true(alert_notes(stage, space, &record, &memory) > 0);
    json_t *root = json_loadb(record.data, record.len, 0, NULL);
    arena_release(&memory);
    return root;
}

static const char *text_at(const json_t *root, const char *name)
{
    const char *text = json_string_value(json_object_get(root, name));
    return text ? text : "";
}

static void acknowledge_newest(struct stage *stage, const char *note)
{
    struct heard heard = { .wait = { .done = on_saved, .context = &heard } };
    struct error error;
    json_t *alert = newest(stage, SPACE_ALERT);
    const struct alert_ack ack = { .id = slice_from(text_at(alert, "id")), .by = SLICE("maria"), .note = slice_from(note) };
    assert_int_equal(engine_ack_alert(stage->engine, &ack, &heard.wait, &error), STATUS_OK);
    stage_run_for(stage, SECOND_MS);
    assert_true(heard.done);
    assert_int_equal(heard.status, STATUS_OK);
    json_decref(alert);
}

static struct engine_figures figures(const struct stage *stage)
{
    return engine_figures(stage->engine);
}

/* Never "all well" with dead letters that nobody has acknowledged, for as long as they are there. */
static void dead_letters_stand_until_acknowledged(void **state)
{
    struct script script = { .fails_with = "http:400" };
    struct stage stage = { .destination = alert_answers, .context = &script };
    (void)state;
    stage_begin(&stage, TO(QUICK), began);
    alert_jobs_add(&stage, "d", "A", 46);
    stage_run_for(&stage, 2 * DAY_MS);
    assert_int_equal(alert_state(&stage), 1);
    assert_int_equal(figures(&stage).alerts_unacked, 1);
    stage_crash(&stage);
    stage_run_for(&stage, DAY_MS);
    assert_int_equal(alert_state(&stage), 1);
    acknowledge_newest(&stage, "told billing");
    assert_int_equal(alert_state(&stage), 0);
    assert_int_equal(figures(&stage).alerts_unacked, 0);
    CHECK_MESSAGES(&script, "acknowledged", "raised permanent_error d -", "cleared permanent_error d -");
    json_t *over = newest(&stage, SPACE_ALERT_CLEARED);
    assert_string_equal(text_at(over, "summary"),
                        "d: the run of permanent errors is acknowledged after 2d23h59m59s by maria; 46 jobs met a permanent error");
    assert_string_equal(text_at(json_object_get(over, "acknowledged"), "by"), "maria");
    assert_string_equal(text_at(json_object_get(over, "acknowledged"), "note"), "told billing");
    json_decref(over);
    assert_int_equal(alert_events(&stage, "alert_acknowledged"), 1);
    assert_int_equal(alert_events(&stage, "maria"), 1);
    for (int crashed = 0; crashed < 2; crashed++) { /* they are still there, and known */
        stage_run_for(&stage, 5 * MINUTE_MS);
        assert_int_equal(stage_counts(&stage, "d").dead, 46);
        assert_int_equal(alert_state(&stage), 0);
        stage_crash(&stage);
    }
    stage_add(&stage, "d", "A", "another", "x");
    stage_run_for(&stage, MINUTE_MS);
    assert_int_equal(alert_state(&stage), 1);
    assert_string_equal(script.messages[script.count - 1], "raised permanent_error d -");
    stage_end(&stage);
}

/* A page that nobody can read is told once, stands until somebody knows, and is told again when it is met again. */
static void a_damaged_store_is_told(void **state)
{
    struct script script = { 0 };
    struct stage stage = { .destination = alert_answers, .context = &script };
    struct error busy, damage;
    (void)state;
    error_set(&busy, STATUS_BUSY, "locked");
    error_set(&damage, STATUS_CORRUPT, "page 7");
    stage_begin(&stage, TO(""), began);
    engine_store_damaged(stage.engine, &busy);
    stage_run_for(&stage, MINUTE_MS);
    assert_int_equal(alert_state(&stage), 0);
    for (int met = 0; met < 5; met++) {
        engine_store_damaged(stage.engine, &damage);
        stage_run_for(&stage, MINUTE_MS);
    }
    CHECK_MESSAGES(&script, "damaged", "raised store_damaged - -");
    stage_crash(&stage);
    stage_run_for(&stage, DAY_MS);
    assert_int_equal(alert_state(&stage), 1);
    acknowledge_newest(&stage, "restored");
    assert_int_equal(alert_state(&stage), 0);
    engine_store_damaged(stage.engine, &damage);
    stage_run_for(&stage, MINUTE_MS);
    CHECK_MESSAGES(&script, "once more", "raised store_damaged - -", "cleared store_damaged - -", "raised store_damaged - -");
    stage_end(&stage);
}

/* Of nodes: a state is told when it begins and when it ends; an end that is missing stands until somebody knows of it. */
static void what_is_wrong_with_nodes_is_told(void **state)
{
    struct script script = { 0 };
    struct stage stage = { .destination = alert_answers, .context = &script };
    struct nodes_news news = { .gone = "b" };
    (void)state;
    stage_begin(&stage, TO(""), began);
    stage.engine->shared = true;
    stage_run_for(&stage, MINUTE_MS);
    assert_int_equal(alert_state(&stage), 0);
    engine_nodes_news(stage.engine, &news);
    stage_run_for(&stage, 3 * SECOND_MS); /* at once, not with the next look at all */
    CHECK_MESSAGES(&script, "gone", "raised node_gone - -");
    news = (struct nodes_news){ .differ = "a; c", .differ_ms = MINUTE_MS - 1 };
    engine_nodes_news(stage.engine, &news);
    stage_run_for(&stage, MINUTE_MS);
    CHECK_MESSAGES(&script, "it is back", "raised node_gone - -", "cleared node_gone - -");
    news.differ_ms = MINUTE_MS;
    engine_nodes_news(stage.engine, &news);
    stage_run_for(&stage, MINUTE_MS);
    engine_nodes_news(stage.engine, &(struct nodes_news){ .missing = "2.7" });
    engine_nodes_news(stage.engine, &(struct nodes_news){ 0 }); /* the next look comes before anybody was told */
    stage_run_for(&stage, MINUTE_MS);
    CHECK_MESSAGES(&script, "all", "raised node_gone - -", "cleared node_gone - -", "raised nodes_differ - -",
                   "raised head_missing - -", "cleared nodes_differ - -");
    assert_int_equal(alert_state(&stage), 1);
    acknowledge_newest(&stage, "restored");
    assert_int_equal(alert_state(&stage), 0);
    stage_end(&stage);
}

/* Whoever looks sees how many there are, not how many there were when it was told. */
static void figures_are_of_now(void **state)
{
    struct script script = { .fails_with = "http:400" };
    struct stage stage = { .destination = alert_answers, .context = &script };
    (void)state;
    stage_begin(&stage, TO(QUICK ", alerts: { dead: 3 }"), began);
    for (int dead = 1; dead <= 9; dead++) {
        alert_jobs_add(&stage, "d", "A", 1);
        stage_run_for(&stage, 30 * SECOND_MS);
        struct arena memory;
        struct slice record;
        char summary[64], count[32];
        size_t current = alert_notes(&stage, SPACE_ALERT, &record, &memory);
        snprintf(count, sizeof count, "\"count\":%d,\"told\":1,", dead);
        snprintf(summary, sizeof summary, current > 1 ? "\"value\":%d," : count, dead);
        check(current == (dead > 3 ? 2 : 1), "%zu stand at %d", current, dead);
        check(slice_search(record, slice_from(summary)) < record.len, "%s is not in %.*s", summary, SLICE_ARG(record));
        arena_release(&memory);
    }
    CHECK_MESSAGES(&script, "told no more often", "raised permanent_error d -", "raised dead d -");
    assert_int_equal(alert_events(&stage, "alert_raised"), 2);
    assert_int_equal(alert_events(&stage, "\"note\":\"alert_"), 2); /* no other step */
    stage_end(&stage);
}

static void count_saves(struct stage *stage, const struct store_op *ops, size_t count)
{
    struct script *script = stage->context;
    for (size_t i = 0; i < count; i++)
        script->saves += ops[i].kind == OP_SAVE && slice_equal(ops[i].save.space, SPACE_ALERT);
}

/* A figure that grows with the time is written once a minute, not each time that somebody looks. */
static void a_time_is_not_written_all_the_time(void **state)
{
    struct script script = { 0 };
    struct stage stage = { .destination = alert_answers, .context = &script };
    struct error error;
    (void)state;
    stage_begin(&stage, TO(", alerts: { down: 1m }"), began);
    status_ok(engine_enter_contingency(stage.engine, SLICE("d"), SLICE("they called"), &error));
    stage_run_for(&stage, 5 * MINUTE_MS);
    assert_int_equal(alert_state(&stage), 2); /* contingency, and down */
    stage.applied = count_saves;
    stage_run_for(&stage, HOUR_MS);
    check(script.saves >= 50 && script.saves <= 61, "%zu times in an hour", script.saves);
    stage_end(&stage);
}

/* What no alert told of, for it was before there were any, is found by its count. */
static void dead_letters_of_before_are_told(void **state)
{
    struct script script = { .fails_with = "http:400" };
    struct stage stage = { .destination = alert_answers, .context = &script };
    struct store_op forget = { .kind = OP_SAVE };
    (void)state;
    stage_begin(&stage, TO(QUICK), began);
    alert_jobs_add(&stage, "d", "A", 5);
    stage_run_for(&stage, MINUTE_MS);
    json_t *alert = newest(&stage, SPACE_ALERT);
    forget.save = (struct op_save){ .space = SPACE_ALERT, .name = slice_from(text_at(alert, "id")), .value = SLICE("") };
    stage_apply(&stage, &forget);
    stage_crash(&stage);
    json_decref(alert);
    stage_run_for(&stage, MINUTE_MS);
    alert = newest(&stage, SPACE_ALERT);
    assert_string_equal(text_at(alert, "summary"), "d: nobody has acknowledged 5 dead letters");
    json_decref(alert);
    acknowledge_newest(&stage, "");
    stage_run_for(&stage, 5 * MINUTE_MS);
    assert_int_equal(alert_state(&stage), 0);
    stage_end(&stage);
}

/* What is still true is marked, and stands. */
static void a_state_is_marked_and_stands(void **state)
{
    struct script script = { 0 };
    struct stage stage = { .destination = alert_answers, .context = &script };
    struct error error;
    (void)state;
    stage_begin(&stage, TO(""), began);
    status_ok(engine_enter_contingency(stage.engine, SLICE("d"), SLICE("they called"), &error));
    stage_run_for(&stage, MINUTE_MS);
    assert_int_equal(figures(&stage).alerts_unacked, 1);
    acknowledge_newest(&stage, "we wait");
    for (int crashed = 0; crashed < 2; crashed++) {
        assert_int_equal(alert_state(&stage), 1);
        assert_int_equal(figures(&stage).alerts, 1);
        assert_int_equal(figures(&stage).alerts_unacked, 0);
        json_t *alert = newest(&stage, SPACE_ALERT);
        assert_string_equal(text_at(alert, "state"), "standing");
        assert_string_equal(text_at(json_object_get(alert, "acknowledged"), "note"), "we wait");
        json_decref(alert);
        stage_crash(&stage);
        stage_run_for(&stage, MINUTE_MS);
    }
    CHECK_MESSAGES(&script, "nobody is told of that", "raised contingency d -");
    status_ok(engine_leave_contingency(stage.engine, SLICE("d"), &error));
    stage_run_for(&stage, DAY_MS);
    assert_int_equal(alert_state(&stage), 0);
    assert_int_equal(figures(&stage).alerts_unacked, 0);
    stage_end(&stage);
}

/* It seemed to be over, and was not before that could be written: so it never was, and somebody can take care of it. */
static void one_whose_end_was_not_written_goes_on(void **state)
{
    struct script script = { 0 };
    struct stage stage = { .destination = alert_answers, .context = &script };
    struct error error;
    (void)state;
    stage_begin(&stage, TO(", contingency: { ramp: [5], stable: 1s, check: 5m }"), began);
    status_ok(engine_enter_contingency(stage.engine, SLICE("d"), SLICE("they called"), &error));
    stage_run_for(&stage, MINUTE_MS);
    stage.fail_applies = true;
    status_ok(engine_leave_contingency(stage.engine, SLICE("d"), &error));
    stage_run_for(&stage, MINUTE_MS);
    assert_int_equal(stage.engine->alerts.book->first->step, ALERT_CLEARED);
    status_ok(engine_enter_contingency(stage.engine, SLICE("d"), SLICE("they called again"), &error));
    stage_run_for(&stage, MINUTE_MS);
    stage.fail_applies = false;
    stage_run_for(&stage, MINUTE_MS);
    CHECK_MESSAGES(&script, "once", "raised contingency d -");
    assert_int_equal(alert_cleared(&stage), 0);
    acknowledge_newest(&stage, "we wait");
    stage_end(&stage);
}

/* Somebody acknowledges while the alert is on its way to the store with a new figure: he is answered after that. */
static void an_acknowledgement_waits_for_what_is_being_written(void **state)
{
    struct script script = { .fails_with = "http:400" };
    struct stage stage = { .destination = alert_answers, .context = &script };
    struct heard heard = { .wait = { .done = on_saved, .context = &heard } };
    struct error error;
    (void)state;
    stage_begin(&stage, TO(QUICK), began);
    alert_jobs_add(&stage, "d", "A", 1);
    stage_run_for(&stage, MINUTE_MS);
    json_t *alert = newest(&stage, SPACE_ALERT);
    stage.commit_ms = 50;
    alert_jobs_add(&stage, "d", "A", 1);
    for (instant until = stage.now + MINUTE_MS; stage.engine->alerts.book->first->out == ALERT_SAME;)
        assert_true(stage_step(&stage) || stage.now++ < until);
    const struct alert_ack ack = { .id = slice_from(text_at(alert, "id")), .by = SLICE("maria"), .note = SLICE("") };
    status_ok(engine_ack_alert(stage.engine, &ack, &heard.wait, &error));
    stage_run_for(&stage, MINUTE_MS);
    assert_true(heard.done);
    assert_int_equal(heard.status, STATUS_OK);
    assert_int_equal(alert_state(&stage), 0);
    json_decref(alert);
    stage_end(&stage);
}

/* Sent again and delivered, there is nothing left to acknowledge. */
static void nothing_is_left_to_acknowledge(void **state)
{
    struct script script = { .fails_with = "http:400" };
    struct stage stage = { .destination = alert_answers, .context = &script };
    struct store_op again = { .kind = OP_REDRIVE };
    (void)state;
    stage_begin(&stage, TO(QUICK), began);
    stage_add(&stage, "d", "A", "one", "x");
    stage_run_for(&stage, MINUTE_MS);
    assert_int_equal(alert_state(&stage), 1);
    script.fails_with = NULL;
    again.job = (struct op_job){ .tenant = SLICE("A"), .id = SLICE("one") };
    stage_apply(&stage, &again);
    stage_run_for(&stage, 3 * MINUTE_MS);
    assert_int_equal(stage_counts(&stage, "d").completed, 1);
    assert_int_equal(alert_state(&stage), 0);
    stage_end(&stage);
}

static void strangers_are_not_found(void **state)
{
    struct script script = { .fails_with = "http:400" };
    struct stage stage = { .destination = alert_answers, .context = &script };
    struct heard heard = { .wait = { .done = on_saved, .context = &heard } };
    struct error error;
    (void)state;
    stage_begin(&stage, TO(QUICK), began);
    stage_add(&stage, "d", "A", "one", "x");
    stage_run_for(&stage, MINUTE_MS);
    json_t *alert = newest(&stage, SPACE_ALERT);
    struct alert_ack ack = { .id = SLICE("nothing") };
    assert_int_equal(engine_ack_alert(stage.engine, &ack, &heard.wait, &error), STATUS_NOT_FOUND);
    ack = (struct alert_ack){ .id = slice_from(text_at(alert, "id")), .tenant = SLICE("A") }; /* it is not the tenant's */
    assert_int_equal(engine_ack_alert(stage.engine, &ack, &heard.wait, &error), STATUS_NOT_FOUND);
    json_decref(alert);
    assert_false(heard.done);
    assert_int_equal(alert_state(&stage), 1);
    stage_end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dead_letters_stand_until_acknowledged),
        cmocka_unit_test(a_damaged_store_is_told),
        cmocka_unit_test(what_is_wrong_with_nodes_is_told),
        cmocka_unit_test(figures_are_of_now),
        cmocka_unit_test(a_time_is_not_written_all_the_time),
        cmocka_unit_test(dead_letters_of_before_are_told),
        cmocka_unit_test(a_state_is_marked_and_stands),
        cmocka_unit_test(one_whose_end_was_not_written_goes_on),
        cmocka_unit_test(an_acknowledgement_waits_for_what_is_being_written),
        cmocka_unit_test(nothing_is_left_to_acknowledge),
        cmocka_unit_test(strangers_are_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
