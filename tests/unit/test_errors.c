/*
 * What the engine learns about errors that no rule knows: the table, and the whole engine over it.
 */
#include "engine/errors/errors.h"
#include "support/check.h"
#include "support/stage.h"

#include <stdio.h>

static const instant began = (instant)1736678400 * 1000;

/* ---- the table ---- */

static struct fingerprint numbered(size_t number)
{
    static const char digits[] = "abcdefghijklmnopqrstuvwxyz";
    char text[] = "strange ____";
    struct fingerprint fingerprint;
    for (size_t i = 0; i < 4; i++, number /= 26)
        text[sizeof text - 2 - i] = digits[number % 26];
    fingerprint_make(SLICE(""), SLICE(""), slice_from(text), &fingerprint);
    return fingerprint;
}

static size_t count_of(const struct errors *errors, const char *destination)
{
    struct arena memory = { 0 };
    const struct known_error **list;
    size_t count;
    assert_int_equal(errors_list(errors, slice_from(destination), SIZE_MAX, &memory, &list, &count), STATUS_OK);
    arena_release(&memory);
    return count;
}

static bool has(const struct errors *errors, const char *destination, const struct fingerprint *fingerprint)
{
    struct arena memory = { 0 };
    const struct known_error **list;
    size_t count;
    bool found = false;
    assert_int_equal(errors_list(errors, slice_from(destination), SIZE_MAX, &memory, &list, &count), STATUS_OK);
    for (size_t i = 0; i < count; i++)
        found = found || strcmp(list[i]->fingerprint.text, fingerprint->text) == 0;
    arena_release(&memory);
    return found;
}

static size_t write_all(struct errors *errors, bool written)
{
    static struct known_error *taken[ERRORS_BATCH_MAX];
    size_t removed = 0;
    for (size_t count; (count = errors_take(errors, taken, ERRORS_BATCH_MAX)) > 0;) {
        for (size_t i = 0; i < count; i++) {
            removed += taken[i]->table == NULL;
            errors_written(errors, taken[i], written, !written);
        }
    }
    return removed;
}

static void the_least_recently_seen_goes(void **state)
{
    struct errors *errors;
    (void)state;
    assert_int_equal(errors_new(1, &errors), STATUS_OK);
    for (size_t i = 0; i < ERRORS_DESTINATION_MAX; i++) {
        struct fingerprint fingerprint = numbered(i);
        errors_seen(errors, SLICE("d"), &fingerprint, began + (instant)i);
    }
    struct fingerprint first = numbered(0), second = numbered(1), one_more = numbered(ERRORS_DESTINATION_MAX);
    errors_seen(errors, SLICE("d"), &first, began + 5000);
    assert_int_equal(write_all(errors, true), 0);
    errors_seen(errors, SLICE("d"), &one_more, began + 6000);
    errors_seen(errors, SLICE("other"), &second, began + 6000);
    assert_int_equal(count_of(errors, "d"), ERRORS_DESTINATION_MAX);
    assert_true(has(errors, "d", &first) && has(errors, "d", &one_more) && !has(errors, "d", &second));
    assert_true(has(errors, "other", &second));
    assert_int_equal(errors_unwritten(errors), 3); /* two new ones, and one to be taken out */
    assert_int_equal(write_all(errors, true), 1);
    assert_int_equal(errors_unwritten(errors), 0);
    errors_free(errors);
}

static void all_tables_together_are_bounded(void **state)
{
    struct errors *errors;
    char name[16];
    (void)state;
    assert_int_equal(errors_new(1, &errors), STATUS_OK);
    for (size_t i = 0; i < ERRORS_MAX + 500; i++) {
        struct fingerprint fingerprint = numbered(i);
        snprintf(name, sizeof name, "d%zu", i / 900);
        errors_seen(errors, slice_from(name), &fingerprint, began + (instant)i);
    }
    assert_int_equal(count_of(errors, ""), ERRORS_MAX);
    assert_int_equal(errors_unwritten(errors), ERRORS_MAX); /* what was never written need not be taken out */
    struct fingerprint lonely = numbered(3);
    errors_seen(errors, SLICE("new"), &lonely, began);
    assert_true(has(errors, "new", &lonely));
    assert_int_equal(count_of(errors, ""), ERRORS_MAX);
    errors_free(errors);
}

/* Dropped while it is being written: it must not stay in the store. */
static void one_that_goes_on_its_way_is_taken_out(void **state)
{
    static const struct { const char *name; bool stored, written; size_t left; } cases[] = {
        { "new and written", false, true, 1 },
        { "new and failed", false, false, 0 },
        { "written before", true, true, 1 },
        { "written before, failed now", true, false, 1 },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct errors *errors;
        struct known_error *taken[2];
        struct fingerprint fingerprint = numbered(7);
        assert_int_equal(errors_new(1, &errors), STATUS_OK);
        errors_seen(errors, SLICE("d"), &fingerprint, began);
        if (cases[i].stored)
            write_all(errors, true);
        errors_seen(errors, SLICE("d"), &fingerprint, began);
        assert_int_equal(errors_take(errors, taken, 2), 1);
        assert_int_equal(errors_forget(errors, SLICE(""), slice_from(fingerprint.text)), 1);
        errors_written(errors, taken[0], cases[i].written, false);
        check(errors_unwritten(errors) == cases[i].left, "%s: %zu", cases[i].name, errors_unwritten(errors));
        check(write_all(errors, true) == cases[i].left, "%s", cases[i].name);
        assert_int_equal(errors_unwritten(errors), 0);
        errors_free(errors);
    }
}

static void a_failed_write_is_tried_again_unless_given_up(void **state)
{
    struct errors *errors;
    struct known_error *taken[2];
    struct fingerprint fingerprint = numbered(7);
    (void)state;
    assert_int_equal(errors_new(1, &errors), STATUS_OK);
    errors_seen(errors, SLICE("d"), &fingerprint, began);
    assert_int_equal(errors_take(errors, taken, 2), 1);
    assert_int_equal(errors_take(errors, taken + 1, 1), 0);
    errors_written(errors, taken[0], false, false);
    assert_int_equal(errors_unwritten(errors), 1);
    assert_int_equal(errors_take(errors, taken, 2), 1);
    errors_written(errors, taken[0], false, true);
    assert_int_equal(errors_unwritten(errors), 0);
    errors_free(errors);
}

static void what_cannot_be_read_is_not_taken(void **state)
{
    static const struct { const char *name, *value; size_t count; } cases[] = {
        { "d/0123456789abcdef",
          "{\"code\":\"\",\"sample\":\"x\",\"seen\":1,\"recovered\":2,\"gave_up\":3,"
          "\"first_at\":\"2025-01-12T10:40:00.000Z\",\"last_at\":\"2025-01-12T10:40:00.000Z\"}", 1 },
        { "d/0123456789abcdef", "{}", 0 },
        { "d/0123456789abcdef", "not JSON", 0 },
        { "d/0123456789abcdef",
          "{\"code\":\"\",\"sample\":\"x\",\"seen\":1,\"recovered\":-2,\"gave_up\":3,"
          "\"first_at\":\"2025-01-12T10:40:00.000Z\",\"last_at\":\"2025-01-12T10:40:00.000Z\"}", 0 },
        { "d", "{}", 0 },
        { "0123456789abcdefgh", "{}", 0 },
        { "/0123456789abcdef", "{}", 0 },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct errors *errors;
        assert_int_equal(errors_new(1, &errors), STATUS_OK);
        errors_restore(errors, slice_from(cases[i].name), slice_from(cases[i].value));
        errors_restore(errors, slice_from(cases[i].name), slice_from(cases[i].value)); /* twice is once */
        check(count_of(errors, "") == cases[i].count, "row %zu", i);
        assert_int_equal(errors_unwritten(errors), 0);
        errors_free(errors);
    }
}

/* ---- the engine ---- */

#define TO(more)                                                                                                          \
    "destinations: { d: { url: 'http://127.0.0.1:1/', allow_private: true, concurrency: 4, breaker: { enabled: false }, " \
    "retry: { max_retries: 3, base: 1m, floor: 1m, cap: 1m, jitter: 0 }, "                                                \
    "errors: { transient: [TIMEOUT], permanent: [BROKEN]" more " } } }\n"

/* The script: what the n-th send of a job is answered; NULL: delivered. */
struct script {
    const char *texts[8];
};

static int64_t by_script(struct stage *stage, const struct send *send, struct answer *answer)
{
    const struct script *script = stage->context;
    const char *text = script->texts[send->job->attempts - 1];
    if (text)
        answer->text = slice_from(text);
    else
        answer->outcome = OUTCOME_DELIVERED;
    return 10;
}

static struct arena listed; /* of the last list */

static struct error_report *reports_of(struct stage *stage, size_t *ret_count)
{
    struct error_report *reports;
    arena_release(&listed);
    assert_int_equal(engine_errors(stage->engine, SLICE(""), 100, &listed, &reports, ret_count), STATUS_OK);
    return reports;
}

static void check_learned(struct stage *stage, const char *name, size_t errors, int64_t seen, int64_t recovered, int64_t gave_up)
{
    size_t count;
    const struct error_report *reports = reports_of(stage, &count);
    check(count == errors, "%s: %zu errors", name, count);
    if (count > 0)
        check(reports[0].learning.seen == seen && reports[0].learning.recovered == recovered &&
                  reports[0].learning.gave_up == gave_up,
              "%s: %s: seen %d, recovered %d, gave up %d", name, reports[0].fingerprint.sample,
              (int)reports[0].learning.seen, (int)reports[0].learning.recovered, (int)reports[0].learning.gave_up);
}

static void a_jobs_life_is_counted(void **state)
{
    static const struct {
        const char *name, *yaml;
        struct script script;
        enum job_state state;
        size_t errors;
        int64_t seen, recovered, gave_up; /* of the first */
    } cases[] = {
        { "delivered at once", TO(""), { { NULL } }, STATE_COMPLETED, 0, 0, 0, 0 },
        { "recovered", TO(""), { { "bucket 7 is odd", "bucket 8 is odd", NULL } }, STATE_COMPLETED, 1, 2, 1, 0 },
        { "given up", TO(""), { { "odd 1", "odd 2", "odd 3", "odd 4" } }, STATE_DEAD, 1, 4, 0, 1 },
        { "known errors are not counted", TO(""), { { "TIMEOUT", "TIMEOUT", NULL } }, STATE_COMPLETED, 0, 0, 0, 0 },
        { "a known permanent error neither", TO(""), { { "BROKEN" } }, STATE_DEAD, 0, 0, 0, 0 },
        { "the last failure counts", TO(""), { { "odd one", "TIMEOUT", NULL } }, STATE_COMPLETED, 1, 1, 0, 0 },
        { "also when it is unknown", TO(""), { { "TIMEOUT", "odd one", NULL } }, STATE_COMPLETED, 1, 1, 1, 0 },
        { "it dies of a known one", TO(""), { { "odd one", "BROKEN" } }, STATE_DEAD, 1, 1, 0, 0 },
        { "looks permanent, is retried all the same", TO(""), { { "will never ever work", NULL } }, STATE_COMPLETED, 1, 1, 1, 0 },
        { "dead untried is no evidence", TO(", unknown: permanent"), { { "odd one" } }, STATE_DEAD, 1, 1, 0, 0 },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct script script = cases[i].script;
        struct stage stage = { .destination = by_script, .context = &script };
        stage_begin(&stage, cases[i].yaml, began);
        stage_add(&stage, "d", "t", "one", "x");
        stage_run_for(&stage, 10 * 60 * 1000);
        check(stage_job(&stage, "t", "one").state == cases[i].state, "%s", cases[i].name);
        check_learned(&stage, cases[i].name, cases[i].errors, cases[i].seen, cases[i].recovered, cases[i].gave_up);
        stage_end(&stage);
    }
}

/* 70 jobs die of it, the proposal says permanent, and the 71st is tried like the first. */
static void nothing_is_discarded_on_a_guess(void **state)
{
    static struct script script = { { "odd 1", "odd 2", "odd 3", "odd 4" } };
    struct stage stage = { .destination = by_script, .context = &script };
    char id[16];
    (void)state;
    stage_begin(&stage, TO(""), began);
    for (int i = 0; i < 70; i++) {
        snprintf(id, sizeof id, "job-%d", i);
        stage_add(&stage, "d", "t", id, "x");
    }
    stage_run_for(&stage, 60 * 60 * 1000);
    check_learned(&stage, "70 died", 1, 280, 0, 70);
    size_t count;
    assert_int_equal(learning_class(&reports_of(&stage, &count)[0].learning), OUTCOME_PERMANENT);
    size_t before = stage.send_count;
    stage_add(&stage, "d", "t", "one-more", "x");
    stage_run_for(&stage, 60 * 60 * 1000);
    assert_int_equal(stage.send_count - before, 4);
    assert_int_equal(stage_job(&stage, "t", "one-more").last_class, OUTCOME_TRANSIENT);
    stage_end(&stage);
}

static void counts_outlive_a_restart(void **state)
{
    static struct script script = { { "odd 1", NULL } };
    struct stage stage = { .destination = by_script, .context = &script };
    (void)state;
    stage_begin(&stage, TO(""), began);
    stage_add(&stage, "d", "t", "one", "x");
    stage_run_for(&stage, 30 * 1000);
    check_learned(&stage, "before", 1, 1, 0, 0);
    stage_crash(&stage); /* the job waits, and its failure is known again from what is stored of it */
    check_learned(&stage, "after a crash", 1, 1, 0, 0);
    stage_run_for(&stage, 10 * 60 * 1000);
    check_learned(&stage, "delivered", 1, 1, 1, 0);
    stage_crash(&stage);
    check_learned(&stage, "after another", 1, 1, 1, 0);
    stage_end(&stage);
}

static void a_stop_loses_nothing_a_crash_the_last_seconds(void **state)
{
    static struct script script = { { "odd 1", "odd 2", "odd 3", "odd 4" } };
    struct stage stage = { .destination = by_script, .context = &script };
    (void)state;
    stage_begin(&stage, TO(""), began);
    stage_add(&stage, "d", "t", "one", "x");
    stage_run_for(&stage, 10 * 1000);
    check_learned(&stage, "kept", 1, 1, 0, 0);
    stage_add(&stage, "d", "t", "two", "x");
    stage_run_for(&stage, 100);
    stage_add(&stage, "d", "t", "three", "x");
    stage_run_for(&stage, 100);
    check_learned(&stage, "in memory", 1, 3, 0, 0);
    engine_stop(stage.engine);
    stage_settle(&stage);
    assert_int_equal(engine_under_way(stage.engine), 0);
    stage_crash(&stage);
    check_learned(&stage, "after a stop", 1, 3, 0, 0);
    stage_run_for(&stage, 200);
    stage_add(&stage, "d", "t", "four", "x");
    stage_run_for(&stage, 100);
    stage_add(&stage, "d", "t", "five", "x");
    stage_run_for(&stage, 100);
    check_learned(&stage, "in memory again", 1, 5, 0, 0);
    stage_crash(&stage);
    check_learned(&stage, "after a crash", 1, 4, 0, 0); /* the first after the start was written at once */
    stage_end(&stage);
}

static void a_store_that_fails_does_not_hold_up_the_stop(void **state)
{
    static struct script script = { { "odd 1", "odd 2", "odd 3", "odd 4" } };
    struct stage stage = { .destination = by_script, .context = &script };
    (void)state;
    stage_begin(&stage, TO(""), began);
    stage_add(&stage, "d", "t", "one", "x");
    stage_run_for(&stage, 10 * 1000);
    stage_add(&stage, "d", "t", "two", "x");
    stage_run_for(&stage, 100);
    stage.fail_applies = true;
    stage_run_for(&stage, 20 * 1000); /* tried again and again */
    check_learned(&stage, "still there", 1, 2, 0, 0);
    stage.fail_applies = false;
    stage_run_for(&stage, 20 * 1000);
    stage_crash(&stage);
    check_learned(&stage, "written when it could be", 1, 2, 0, 0);
    stage_end(&stage);
}

static void a_rule_that_was_added_is_told(void **state)
{
    static struct script script = { { "bucket 7 is odd today", NULL } };
    struct stage stage = { .destination = by_script, .context = &script };
    struct error error;
    size_t count;
    struct config *config;
    struct buffer problems;
    (void)state;
    stage_begin(&stage, TO(""), began);
    stage_add(&stage, "d", "t", "one", "x");
    stage_run_for(&stage, 10 * 1000);
    assert_int_equal(reports_of(&stage, &count)[0].known_as, OUTCOME_NONE);
    buffer_init(&problems, 4096);
    assert_int_equal(config_parse(SLICE(TO(", wait: ['/bucket .*? is odd/']")), "x", &config, &problems), STATUS_OK);
    assert_int_equal(engine_reload(stage.engine, config, &error), STATUS_OK);
    const struct error_report *reports = reports_of(&stage, &count);
    assert_int_equal(reports[0].known_as, OUTCOME_WAIT);
    assert_true(slice_equal(reports[0].rule, SLICE("/bucket .*? is odd/")));
    config_unref(config);
    buffer_release(&problems);
    stage_end(&stage);
}

static void what_is_forgotten_stays_forgotten(void **state)
{
    static struct script script = { { "odd 1", NULL } };
    struct stage stage = { .destination = by_script, .context = &script };
    size_t count;
    (void)state;
    stage_begin(&stage, TO(""), began);
    stage_add(&stage, "d", "t", "one", "x");
    stage_run_for(&stage, 10 * 1000);
    struct fingerprint fingerprint = reports_of(&stage, &count)[0].fingerprint;
    assert_int_equal(engine_forget_error(stage.engine, SLICE("other"), slice_from(fingerprint.text)), 0);
    assert_int_equal(engine_forget_error(stage.engine, SLICE("d"), slice_from(fingerprint.text)), 1);
    stage_run_for(&stage, 10 * 60 * 1000);
    check_learned(&stage, "a delivery brings nothing back", 0, 0, 0, 0);
    stage_crash(&stage);
    check_learned(&stage, "nor does a restart", 0, 0, 0, 0);
    stage_end(&stage);
}

/* More than one page of them. */
static void all_pages_are_read(void **state)
{
    struct stage stage = { .destination = by_script };
    struct arena memory = { 0 };
    struct error error;
    static struct store_op ops[STORE_PAGE_MAX + 7];
    char name[32];
    size_t count;
    struct error_report *reports;
    (void)state;
    stage_begin(&stage, TO(""), began);
    for (size_t i = 0; i < COUNT_OF(ops); i++) {
        snprintf(name, sizeof name, "d%zu/%016zx", i % 2, i);
        ops[i].kind = OP_SAVE;
        ops[i].save = (struct op_save){
            .space = SPACE_ERRORS, .name = arena_copy(&memory, slice_from(name)),
            .value = SLICE("{\"code\":\"\",\"sample\":\"x\",\"seen\":1,\"recovered\":0,\"gave_up\":0,"
                           "\"first_at\":\"2025-01-12T10:40:00.000Z\",\"last_at\":\"2025-01-12T10:40:00.000Z\"}"),
        };
    }
    assert_int_equal(stage.store->ops->apply(stage.store, began, ops, COUNT_OF(ops), &memory, &error), STATUS_OK);
    stage_crash(&stage);
    assert_int_equal(engine_errors(stage.engine, SLICE(""), SIZE_MAX, &memory, &reports, &count), STATUS_OK);
    assert_int_equal(count, COUNT_OF(ops));
    arena_release(&memory);
    stage_end(&stage);
}

static int forget_listed(void **state)
{
    (void)state;
    arena_release(&listed);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_recently_seen_goes),
        cmocka_unit_test(all_tables_together_are_bounded),
        cmocka_unit_test(one_that_goes_on_its_way_is_taken_out),
        cmocka_unit_test(a_failed_write_is_tried_again_unless_given_up),
        cmocka_unit_test(what_cannot_be_read_is_not_taken),
        cmocka_unit_test(a_jobs_life_is_counted),
        cmocka_unit_test(nothing_is_discarded_on_a_guess),
        cmocka_unit_test(counts_outlive_a_restart),
        cmocka_unit_test(a_stop_loses_nothing_a_crash_the_last_seconds),
        cmocka_unit_test(a_store_that_fails_does_not_hold_up_the_stop),
        cmocka_unit_test(a_rule_that_was_added_is_told),
        cmocka_unit_test(what_is_forgotten_stays_forgotten),
        cmocka_unit_test(all_pages_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, forget_listed);
}
