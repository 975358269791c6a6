/*
 * Dead letters that become jobs of another destination when their time is over, through the real engine in virtual time:
 * none is lost and none goes twice, whatever the target, the store or a person does meanwhile.
 */
#include "base/json.h"
#include "engine/dead/dead_exports.h"
#include "engine/erasures/erasures.h"
#include "engine/measures.h"
#include "engine/orders.h"
#include "support/check.h"
#include "support/configs.h"
#include "support/engine_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PLACE "url: 'http://127.0.0.1:1/', allow_private: true"
#define EXPORTING                                                                                                           \
    "destinations:\n"                                                                                                       \
    "  d: { " PLACE ", dead: { ttl: 1h, export: archive }, concurrency: { max: 1000, adaptive: false } }\n"                 \
    "  e: { " PLACE ", dead: { ttl: 1h } }\n"                                                                               \
    "  archive: { " PLACE ", concurrency: { max: 1000, adaptive: false } }\n"

enum { TTL_MS = HOUR_MS, ROUND_MS = DEAD_EXPORTS_WANTED_MS + 2 * MINUTE_MS, MANY = 3000, HUGE_BYTES = 4 << 20 };

/* What the archive was given: how often each letter, by the number that its id is, and the last line. */
struct archive {
    int got[MANY];
    size_t lines;
    char last[4096];
    size_t last_len;
    bool refuses;
};

static int64_t takes_letters(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct archive *archive = stage->context;
    if (strcmp(send->destination->name, "archive") != 0) {
        answer->code = SLICE("http:422");
        answer->text = SLICE("HTTP 422: no");
        return 1;
    }
    if (archive->refuses) {
        answer->code = SLICE("http:400");
        answer->text = SLICE("HTTP 400: never");
        return 1;
    }
    json_t *line = json_loadb(send->job->payload.data, send->job->payload.len, 0, NULL);
    const char *id = json_string_value(json_object_get(line, "jobId"));
    assert_non_null(id);
    archive->got[strtol(id, NULL, 10) % MANY]++;
    archive->lines++;
    archive->last_len = send->job->payload.len;
    snprintf(archive->last, sizeof archive->last, "%.*s", SLICE_ARG(send->job->payload));
    json_decref(line);
    return delivers(stage, send, answer);
}

static void add_letters(struct stage *stage, const char *destination, int from, int count, const char *payload)
{
    char id[16];
    for (int i = from; i < from + count; i++) {
        snprintf(id, sizeof id, "%d", i);
        stage_add(stage, destination, i % 2 ? "A" : "B", id, payload);
    }
    stage_run_for(stage, MINUTE_MS);
    assert_int_equal(stage_counts(stage, destination).dead, count);
}

static void assert_each_once(const struct archive *archive, int count)
{
    for (int i = 0; i < count; i++)
        check(archive->got[i] == 1, "letter %d came %d times", i, archive->got[i]);
    assert_int_equal(archive->lines, count);
}

static int64_t alerts_of(const struct stage *stage, enum alert_kind kind)
{
    struct arena memory = { 0 };
    struct engine_measures measures;
    int64_t active = 0;
    assert_int_equal(engine_measures(stage->engine, &memory, &measures), STATUS_OK);
    for (size_t i = 0; i < measures.count; i++)
        active += measures.items[i].alerts[kind];
    arena_release(&memory);
    return active;
}

static struct measures measures_of(const struct stage *stage, const char *destination)
{
    struct arena memory = { 0 };
    struct engine_measures all;
    struct measures found = { 0 };
    assert_int_equal(engine_measures(stage->engine, &memory, &all), STATUS_OK);
    for (size_t i = 0; i < all.count; i++)
        if (slice_equal(all.items[i].name, slice_from(destination)))
            found = all.items[i].measures;
    arena_release(&memory);
    return found;
}

static void note_expiry(void *context, const struct event *event)
{
    if (event->type == EVENT_TYPE_DEAD_EXPIRED && event->data.len > 0)
        snprintf(context, 128, "%.*s", SLICE_ARG(event->data));
}

/* C-37: its line is what GET /v1/dead/export shows of it, and its event says where it went. */
static void a_letter_is_exported_when_its_time_is_over(void **state)
{
    struct archive archive = { .lines = 0 };
    struct stage stage = { .destination = takes_letters, .context = &archive };
    char data[128] = "", expected[128];
    (void)state;
    stage_begin(&stage, EXPORTING, began);
    add_letters(&stage, "d", 1, 1, "{\"a\":1}");
    struct job letter = stage_job(&stage, "A", "1");
    int64_t seq = letter.seq;
    instant expires_at = letter.expires_at;
    stage_run_until(&stage, expires_at - 1);
    assert_int_equal(archive.lines, 0);
    assert_int_equal(stage_counts(&stage, "d").dead, 1);
    stage_run_until(&stage, expires_at + MINUTE_MS);
    assert_int_equal(stage_counts(&stage, "d").dead, 0);
    assert_int_equal(archive.got[1], 1);
    json_t *line = json_loads(archive.last, 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(line, "ttl")), TTL_MS);
    assert_string_equal(json_string_value(json_object_get(line, "companyId")), "A");
    assert_string_equal(json_string_value(json_object_get(line, "lastFailureCode")), "422");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(line, "originalData"), "a")), 1);
    assert_string_equal(json_string_value(json_object_get(json_object_get(line, "job"), "destination")), "d");
    json_decref(line);
    events_each(&stage, note_expiry, data);
    snprintf(expected, sizeof expected, "{\"exported_to\":\"archive\",\"job\":\"export-%lld\"}", (long long)seq);
    assert_string_equal(data, expected);
    assert_int_equal(measures_of(&stage, "d").exported, 1);
    assert_int_equal(alerts_of(&stage, ALERT_DEAD_EXPORT), 0);
    stage_end(&stage);
}

/* Thousands at once, more than are read together, and work of others that is due meanwhile. */
static void thousands_are_exported_each_once(void **state)
{
    struct archive archive = { .lines = 0 };
    struct stage stage = { .destination = takes_letters, .context = &archive };
    (void)state;
    stage_begin(&stage, EXPORTING, began);
    add_letters(&stage, "d", 0, MANY, "{}");
    add_letters(&stage, "e", MANY, 10, "{}");
    stage_run_for(&stage, TTL_MS + 2 * MINUTE_MS);
    assert_each_once(&archive, MANY);
    assert_int_equal(stage_counts(&stage, "d").dead, 0);
    assert_int_equal(stage_counts(&stage, "e").dead, 0);
    stage_end(&stage);
}

static void a_paused_target_has_them_when_it_is_back(void **state)
{
    struct archive archive = { .lines = 0 };
    struct stage stage = { .destination = takes_letters, .context = &archive };
    (void)state;
    stage_begin(&stage, EXPORTING, began);
    assert_int_equal(engine_pause(stage.engine, SLICE("archive"), SLICE(""), NULL), STATUS_OK);
    add_letters(&stage, "d", 0, 200, "{}");
    stage_run_for(&stage, TTL_MS + HOUR_MS);
    assert_int_equal(archive.lines, 0);
    assert_int_equal(stage_counts(&stage, "archive").pending, 200);
    assert_int_equal(engine_resume(stage.engine, SLICE("archive"), NULL), STATUS_OK);
    stage_run_for(&stage, HOUR_MS);
    assert_each_once(&archive, 200);
    stage_end(&stage);
}

/* What it refuses for good stays with it, for longer than any time to live. */
static void what_the_target_refuses_stays_there(void **state)
{
    struct archive archive = { .refuses = true };
    struct stage stage = { .destination = takes_letters, .context = &archive };
    (void)state;
    stage_begin(&stage, EXPORTING, began);
    add_letters(&stage, "d", 0, 20, "{}");
    stage_run_for(&stage, TTL_MS + 2 * MINUTE_MS);
    stage.now += INT64_C(100) * DAY_MS;
    stage_run_for(&stage, 10 * MINUTE_MS);
    assert_int_equal(stage_counts(&stage, "d").dead, 0);
    assert_int_equal(stage_counts(&stage, "archive").dead, 20);
    stage_end(&stage);
}

/* Neither those that have no room, nor, while they wait, those of others; and somebody hears of it. */
static void a_full_store_keeps_them_and_lets_others_go(void **state)
{
    struct archive archive = { .lines = 0 };
    struct stage stage = { .destination = takes_letters, .context = &archive, .pending_max = 60 };
    (void)state;
    stage_begin(&stage, EXPORTING, began);
    add_letters(&stage, "d", 0, 20, "{}");
    add_letters(&stage, "e", 20, 5, "{}");
    assert_int_equal(engine_pause(stage.engine, SLICE("e"), SLICE(""), NULL), STATUS_OK);
    for (int i = 0; i < 60; i++)
        stage_add(&stage, "e", i % 2 ? "A" : "B", NULL, "{}");
    stage_run_for(&stage, TTL_MS + ROUND_MS);
    assert_int_equal(stage_counts(&stage, "d").dead, 20);
    assert_int_equal(stage_counts(&stage, "e").dead, 0); /* they have no export, and their time was over */
    assert_int_equal(alerts_of(&stage, ALERT_DEAD_EXPORT), 1);
    assert_true(measures_of(&stage, "d").export_refused >= 2);
    assert_int_equal(archive.lines, 0);
    stage_run_for(&stage, DAY_MS);
    assert_int_equal(stage_counts(&stage, "d").dead, 20);
    check(measures_of(&stage, "d").export_refused <= 4 * (DAY_MS / DEAD_EXPORTS_UNWANTED_MS),
          "%d times: each is one read in vain", (int)measures_of(&stage, "d").export_refused);
    assert_int_equal(engine_resume(stage.engine, SLICE("e"), NULL), STATUS_OK); /* there is room again */
    stage_run_for(&stage, ROUND_MS);
    assert_each_once(&archive, 20);
    stage_run_for(&stage, 2 * ROUND_MS);
    assert_int_equal(alerts_of(&stage, ALERT_DEAD_EXPORT), 0);
    stage_end(&stage);
}

/* A's letters wait until A has room; B's go meanwhile. */
static void a_full_tenant_holds_up_no_other(void **state)
{
    struct archive archive = { .lines = 0 };
    struct stage stage = { .destination = takes_letters, .context = &archive, .pending_max = 100 };
    (void)state;
    stage_begin(&stage, EXPORTING, began);
    add_letters(&stage, "d", 0, 20, "{}");
    assert_int_equal(engine_pause(stage.engine, SLICE("e"), SLICE(""), NULL), STATUS_OK);
    for (int i = 0; i < 50; i++)
        stage_add(&stage, "e", "A", NULL, "{}");
    stage_run_for(&stage, TTL_MS + 2 * ROUND_MS);
    for (int i = 0; i < 20; i++)
        assert_int_equal(archive.got[i], i % 2 ? 0 : 1);
    assert_int_equal(stage_counts(&stage, "d").dead, 10);
    assert_int_equal(alerts_of(&stage, ALERT_DEAD_EXPORT), 1);
    stage_end(&stage);
}

/* More of A's than are read together come before B's: those do not wait for another round. */
static void a_full_tenants_pile_holds_up_no_other(void **state)
{
    enum { OF_A = DEAD_EXPORTS_AT_ONCE + 16, OF_B = 20 };
    struct archive archive = { .lines = 0 };
    struct stage stage = { .destination = takes_letters, .context = &archive, .pending_max = 200 };
    char id[16];
    (void)state;
    stage_begin(&stage, EXPORTING, began);
    for (int i = 0; i < OF_A + OF_B; i++) {
        snprintf(id, sizeof id, "%d", i);
        stage_add(&stage, "d", i < OF_A ? "A" : "B", id, "{}");
    }
    stage_run_for(&stage, MINUTE_MS);
    assert_int_equal(stage_counts(&stage, "d").dead, OF_A + OF_B);
    assert_int_equal(engine_pause(stage.engine, SLICE("e"), SLICE(""), NULL), STATUS_OK);
    for (int i = 0; i < 100; i++)
        stage_add(&stage, "e", "A", NULL, "{}");
    stage_run_until(&stage, began + TTL_MS + 4 * MINUTE_MS);
    assert_int_equal(stage_counts(&stage, "d").dead, OF_A);
    assert_int_equal(archive.lines, OF_B);
    stage_end(&stage);
}

/* Wherever a crash comes: the letter is there, or the job that it became is, and never both. */
static void a_crash_loses_none_and_doubles_none(void **state)
{
    (void)state;
    for (int steps = 0; steps < 40; steps++) {
        struct archive archive = { .lines = 0 };
        struct stage stage = { .destination = takes_letters, .context = &archive };
        stage_begin(&stage, EXPORTING, began);
        add_letters(&stage, "d", 0, 3, "{}");
        assert_int_equal(engine_pause(stage.engine, SLICE("archive"), SLICE(""), NULL), STATUS_OK);
        stage_run_until(&stage, stage_job(&stage, "B", "0").expires_at - 1);
        stage.now += 1;
        engine_run(stage.engine);
        for (int i = 0; i < steps && stage_step(&stage); i++)
            ;
        stage_crash(&stage);
        assert_int_equal(stage_counts(&stage, "d").dead + stage_counts(&stage, "archive").pending, 3);
        stage_run_for(&stage, ROUND_MS);
        assert_int_equal(stage_counts(&stage, "d").dead, 0);
        assert_int_equal(stage_counts(&stage, "archive").pending, 3);
        stage_end(&stage);
    }
}

static void a_store_that_fails_delays_them(void **state)
{
    struct archive archive = { .lines = 0 };
    struct stage stage = { .destination = takes_letters, .context = &archive };
    (void)state;
    stage_begin(&stage, EXPORTING, began);
    add_letters(&stage, "d", 0, 100, "{}");
    stage_run_until(&stage, began + TTL_MS - MINUTE_MS);
    stage.fail_applies = true;
    stage_run_for(&stage, 10 * MINUTE_MS);
    stage.fail_applies = false;
    stage_leave(&stage, true); /* and of one transaction nobody knows for a while whether it was made */
    stage_run_for(&stage, MINUTE_MS);
    stage_return(&stage);
    stage_run_for(&stage, ROUND_MS);
    stage_leave(&stage, false);
    stage_run_for(&stage, MINUTE_MS);
    stage_return(&stage);
    stage_run_for(&stage, 2 * ROUND_MS);
    assert_each_once(&archive, 100);
    stage_end(&stage);
}

static void a_huge_letter_is_exported(void **state)
{
    struct archive archive = { .lines = 0 };
    struct stage stage = { .destination = takes_letters, .context = &archive };
    char *payload = malloc(HUGE_BYTES + 1);
    (void)state;
    assert_non_null(payload);
    memset(payload, '\t', HUGE_BYTES); /* each takes two bytes, and is there twice */
    payload[HUGE_BYTES] = '\0';
    stage_begin(&stage, EXPORTING, began);
    add_letters(&stage, "d", 0, 1, payload);
    add_letters(&stage, "e", 1, 1, "{}");
    stage_run_for(&stage, TTL_MS + MINUTE_MS);
    assert_each_once(&archive, 1);
    assert_true(archive.last_len > 4 * (size_t)HUGE_BYTES);
    stage_end(&stage);
    free(payload);
}

/* Somebody sends it again while its line is being written. */
static void what_is_sent_again_is_not_exported(void **state)
{
    struct archive archive = { .lines = 0 };
    struct stage stage = { .destination = takes_letters, .context = &archive };
    (void)state;
    stage_begin(&stage, EXPORTING, began);
    add_letters(&stage, "d", 0, 2, "{}");
    assert_int_equal(engine_pause(stage.engine, SLICE("d"), SLICE(""), NULL), STATUS_OK);
    stage.commit_ms = 100;
    stage_run_until(&stage, stage_job(&stage, "B", "0").expires_at + 150); /* they are named, and on their way */
    assert_int_equal(stage_counts(&stage, "d").dead, 2);
    const struct store_op redrive = { .kind = OP_REDRIVE, .job = { .tenant = SLICE("B"), .id = SLICE("0") } };
    stage_apply(&stage, &redrive);
    stage_run_for(&stage, ROUND_MS);
    assert_int_equal(archive.got[0], 0);
    assert_int_equal(archive.got[1], 1);
    assert_int_equal(stage_counts(&stage, "d").pending, 1);
    stage_end(&stage);
}

/* Reads are slow while the flag is up. */
static bool reads_are_slow;

static int64_t reads_slowly(struct stage *stage, enum status *fails)
{
    (void)stage;
    (void)fails;
    return reads_are_slow ? 10 * SECOND_MS : 0;
}

/* Both are named, and one of them is read slowly; then one is sent again, and dies again: it has a time of its own. */
static void sent_again_while_one_is_read(int which)
{
    struct archive archive = { .lines = 0 };
    struct stage stage = { .destination = takes_letters, .context = &archive, .reading = reads_slowly };
    const char *tenant = which == 1 ? "A" : "B", *id = which == 1 ? "1" : "2";
    const struct store_op redrive = { .kind = OP_REDRIVE, .job = { .tenant = slice_from(tenant), .id = slice_from(id) } };
    reads_are_slow = false;
    stage_begin(&stage, "destinations:\n"
                        "  d: { " PLACE ", dead: { ttl: 1h, export: archive } }\n"
                        "  e: { " PLACE ", dead: { ttl: 1h, export: archive } }\n"
                        "  archive: { " PLACE " }\n", began);
    stage_add(&stage, "d", "A", "1", "{}");
    stage_add(&stage, "e", "B", "2", "{}");
    stage_run_for(&stage, MINUTE_MS);
    reads_are_slow = true;
    stage_run_until(&stage, stage_job(&stage, "B", "2").expires_at + SECOND_MS);
    stage_apply(&stage, &redrive);
    stage_run_for(&stage, SECOND_MS);
    reads_are_slow = false;
    instant again = stage_job(&stage, tenant, id).expires_at;
    assert_true(again > stage.now + TTL_MS / 2);
    stage_run_until(&stage, again - 1);
    assert_int_equal(archive.got[3 - which], 1);
    assert_int_equal(archive.got[which], 0);
    stage_run_for(&stage, ROUND_MS);
    assert_int_equal(archive.got[which], 1);
    stage_end(&stage);
}

static void a_letter_that_died_again_has_its_time(void **state)
{
    (void)state;
    for (int which = 1; which <= 2; which++)
        sent_again_while_one_is_read(which);
}

/* What is not exported any more goes as it went before. */
static void a_reload_ends_it(void **state)
{
    struct archive archive = { .lines = 0 };
    struct stage stage = { .destination = takes_letters, .context = &archive };
    struct error err;
    (void)state;
    stage_begin(&stage, EXPORTING, began);
    add_letters(&stage, "d", 0, 5, "{}");
    struct config *config = config_from(SLICE("destinations:\n"
                                              "  d: { " PLACE ", dead: { ttl: 1h } }\n  archive: { " PLACE " }\n"), "f");
    assert_int_equal(engine_reload(stage.engine, config, &err), STATUS_OK);
    stage_run_for(&stage, TTL_MS + 2 * MINUTE_MS);
    assert_int_equal(archive.lines, 0);
    assert_int_equal(stage_counts(&stage, "d").dead, 0);
    stage_end(&stage);
    config_unref(config);
}

/* ---- persons ---- */

static void on_saved(struct saved_wait *wait)
{
    (void)wait;
}

static void erase(struct stage *stage, const char *subject)
{
    static struct saved_wait wait;
    struct erasure_record record = { .id = "" };
    struct error err;
    record.subject = arena_copy(&record.memory, slice_from(subject));
    record.tenant = arena_copy(&record.memory, SLICE(""));
    record.by = arena_copy(&record.memory, SLICE("ops"));
    wait = (struct saved_wait){ .done = on_saved };
    assert_int_equal(engine_erasure_begin(stage->engine, &record, &wait, &err), STATUS_OK);
}

/* The same while there is much more of that person, so that a letter's time is over in the middle of it. */
static void an_erasure_of_much_misses_no_exported_letter(void **state)
{
    enum { MUCH = 80, BEFORE_MS = 1000 };
    (void)state;
    for (int steps = 0; steps < 40; steps++) {
        struct archive archive = { .lines = 0 };
        struct stage stage = { .destination = takes_letters, .context = &archive };
        stage_begin(&stage, EXPORTING, began);
        add_letters(&stage, "d", 0, 3, "{\"to\":\"ana@x.py\"}");
        assert_int_equal(engine_pause(stage.engine, SLICE("archive"), SLICE(""), NULL), STATUS_OK);
        assert_int_equal(engine_pause(stage.engine, SLICE("e"), SLICE(""), NULL), STATUS_OK);
        for (int i = 0; i < MUCH; i++)
            stage_add(&stage, "e", "A", NULL, "{\"to\":\"ana@x.py\"}");
        stage_run_until(&stage, stage_job(&stage, "B", "0").expires_at - BEFORE_MS);
        stage.commit_ms = 100;
        stage_run_for(&stage, 1 + BEFORE_MS / 40 * steps);
        erase(&stage, "ana@x.py");
        stage_run_for(&stage, 2 * ROUND_MS);
        check(stage_counts(&stage, "d").dead + stage_counts(&stage, "archive").pending + stage_counts(&stage, "e").pending == 0,
              "%d steps before the erasure: %d, %d and %d are left", steps, (int)stage_counts(&stage, "d").dead,
              (int)stage_counts(&stage, "archive").pending, (int)stage_counts(&stage, "e").pending);
        stage_end(&stage);
    }
}

/* Wherever an erasure begins: a letter of that person is gone, and so is what it has become. Others' are exported. */
static void an_erasure_misses_no_exported_letter(void **state)
{
    (void)state;
    for (int steps = 0; steps < 40; steps++) {
        struct archive archive = { .lines = 0 };
        struct stage stage = { .destination = takes_letters, .context = &archive };
        stage_begin(&stage, EXPORTING, began);
        add_letters(&stage, "d", 0, 3, "{\"to\":\"ana@x.py\"}");
        stage_add(&stage, "d", "B", "4", "{\"to\":\"eva@x.py\"}");
        stage_run_for(&stage, MINUTE_MS);
        assert_int_equal(engine_pause(stage.engine, SLICE("archive"), SLICE(""), NULL), STATUS_OK);
        stage_run_until(&stage, stage_job(&stage, "B", "0").expires_at - 1); /* those of that person come first */
        stage.commit_ms = 100; /* so that what is on its way is written after the erasure has begun */
        stage_run_for(&stage, 1 + 10 * steps);
        erase(&stage, "ana@x.py");
        stage_run_for(&stage, ROUND_MS);
        assert_int_equal(stage_counts(&stage, "d").dead, 0);
        check(stage_counts(&stage, "archive").pending == 1, "%d steps before the erasure: %d jobs are left", steps,
              (int)stage_counts(&stage, "archive").pending);
        stage_end(&stage);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_letter_is_exported_when_its_time_is_over),
        cmocka_unit_test(thousands_are_exported_each_once),
        cmocka_unit_test(a_paused_target_has_them_when_it_is_back),
        cmocka_unit_test(what_the_target_refuses_stays_there),
        cmocka_unit_test(a_full_store_keeps_them_and_lets_others_go),
        cmocka_unit_test(a_full_tenant_holds_up_no_other),
        cmocka_unit_test(a_full_tenants_pile_holds_up_no_other),
        cmocka_unit_test(a_crash_loses_none_and_doubles_none),
        cmocka_unit_test(a_store_that_fails_delays_them),
        cmocka_unit_test(a_huge_letter_is_exported),
        cmocka_unit_test(what_is_sent_again_is_not_exported),
        cmocka_unit_test(a_letter_that_died_again_has_its_time),
        cmocka_unit_test(a_reload_ends_it),
        cmocka_unit_test(an_erasure_misses_no_exported_letter),
        cmocka_unit_test(an_erasure_of_much_misses_no_exported_letter),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
