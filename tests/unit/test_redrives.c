/*
 * Redrives on a stage: each letter goes back once, whatever fails or dies meanwhile, and no more of them, no sooner and no
 * faster than was asked for.
 */
#include "engine/redrives/redrives.h"
#include "store/tally.h"
#include "support/check.h"
#include "support/engine_fixture.h"

#include "base/log.h"
#include "engine/orders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define YAML                                                                                                                 \
    "retention: { audit: 5d, undo: 1d }\n"                                                                                         \
    "destinations: { d: { url: 'http://d.example/', concurrency: { max: 20, adaptive: false }, breaker: { enabled: false },"  \
    " retry: { max_retries: 0 }, fairness: { batch: 100 } } }\n"

enum { JOBS_MAX = 2000 };

struct scene {
    bool down;              /* all die */
    int64_t slow_ms;        /* what every third takes */
    int sends[JOBS_MAX];    /* since it began, by the number of the job */
    int64_t sent;
    instant last_at;
    char last_id[32];
    char payload[64];       /* of the last */
    bool failed;            /* the last order did */
};

static int64_t answers(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct scene *scene = stage->context;
    int number = send->job->id.data[0] == 'j' ? atoi(send->job->id.data + 1) : JOBS_MAX - 1;
    assert_in_range(number, 0, JOBS_MAX - 1);
    scene->sends[number]++;
    scene->sent++;
    scene->last_at = stage->now;
    snprintf(scene->last_id, sizeof scene->last_id, "%.*s", SLICE_ARG(send->job->id));
    snprintf(scene->payload, sizeof scene->payload, "%.*s", SLICE_ARG(send->job->payload));
    if (scene->down) {
        answer->code = SLICE("http:503");
        answer->text = SLICE("HTTP 503: down");
    } else {
        answer->outcome = OUTCOME_DELIVERED;
    }
    if (scene->slow_ms > 0 && number % 3 == 0)
        return scene->slow_ms;
    return 5;
}

/* One that is to be sent later, older than all others. */
static void add_later(struct stage *stage, const char *id, instant run_at)
{
    stage_apply(stage, &(struct store_op){ .kind = OP_INSERT, .insert = {
        .destination = SLICE("d"), .tenant = SLICE("t"), .id = slice_from(id), .priority = PRIORITY_NORMAL, .rank = stage->now,
        .run_at = run_at, .deadline = INSTANT_NONE, .payload = SLICE("{}") } });
}

/* So many dead letters, j0 the oldest; none was sent as far as the scene knows, and all is well again. */
static void begin_with(struct stage *stage, struct scene *scene, int letters, instant late_at)
{
    *scene = (struct scene){ .down = true };
    *stage = (struct stage){ .context = scene, .destination = answers };
    stage_begin(stage, YAML, began);
    if (late_at != INSTANT_NONE)
        add_later(stage, "j1998", late_at);
    for (int i = 0; i < letters; i++) {
        char id[16];
        snprintf(id, sizeof id, "j%d", i);
        stage_add(stage, "d", "t", id, "{\"a\":1}");
    }
    stage_run_for(stage, 5 * SECOND_MS);
    assert_int_equal(stage_counts(stage, "d").dead, letters);
    *scene = (struct scene){ 0 };
}

static void begin(struct stage *stage, struct scene *scene, int letters)
{
    begin_with(stage, scene, letters, INSTANT_NONE);
}

static void on_saved(struct saved_wait *wait)
{
    struct scene *scene = wait->context;
    scene->failed = wait->error.status != STATUS_OK;
}

static enum status try_to_start(struct stage *stage, struct saved_wait *wait, const char *state, const char *more_filter,
                                const char *more)
{
    char text[512];
    struct redrive_record record;
    struct error error;
    snprintf(text, sizeof text, "{\"id\":\"new\",\"state\":\"%s\",\"filter\":{\"destination\":\"d\"%s},\"by\":\"me\"%s}", state,
             more_filter, more);
    if (redrive_record_read(slice_from(text), &record, &error) != STATUS_OK)
        fail_msg("%s", error.text);
    *wait = (struct saved_wait){ .done = on_saved, .context = stage->context };
    return engine_redrive_begin(stage->engine, &record, wait, &error);
}

/* By what the record says besides the usual; its id. The wait outlives the call. */
static void start(struct stage *stage, struct saved_wait *wait, const char *state, const char *more)
{
    assert_int_equal(try_to_start(stage, wait, state, "", more), STATUS_OK);
}

struct seen {
    enum redrive_state state;
    bool active;
    int64_t patch_failed;
    int64_t counts[REDRIVE_COUNTS];
};

/* The only one, as the store has it. */
static struct seen look(struct stage *stage, struct buffer *ret_text)
{
    struct arena memory = { 0 };
    struct saved *saved;
    struct redrive_record record;
    struct error error;
    struct seen seen;
    size_t count;
    struct store_reader *reader = stage->reader;
    assert_int_equal(reader->ops->reader_saved_list(reader, SPACE_REDRIVE, SLICE(""), 10, &memory, &saved, &count, &error), STATUS_OK);
    assert_int_equal(count, 1);
    assert_int_equal(redrive_record_read(saved[0].value, &record, &error), STATUS_OK);
    if (ret_text)
        buffer_append(ret_text, saved[0].value);
    seen.state = record.state;
    seen.patch_failed = record.patch_failed;
    assert_int_equal(tally_read(reader, slice_from(record.id), seen.counts, &error), STATUS_OK);
    assert_int_equal(reader->ops->reader_saved_list(reader, SPACE_REDRIVE_ACTIVE, SLICE(""), 10, &memory, &saved, &count, &error), STATUS_OK);
    seen.active = count > 0;
    redrive_record_release(&record);
    arena_release(&memory);
    return seen;
}

/* What the nth of several has sent back, the newest first. */
static int64_t count_of(struct stage *stage, size_t n)
{
    struct arena memory = { 0 };
    struct saved *saved;
    struct error error;
    int64_t counts[REDRIVE_COUNTS];
    size_t count;
    struct store_reader *reader = stage->reader;
    assert_int_equal(reader->ops->reader_saved_list(reader, SPACE_REDRIVE, SLICE(""), 10, &memory, &saved, &count, &error), STATUS_OK);
    assert_in_range(n, 0, count - 1);
    assert_int_equal(tally_read(reader, saved[n].name, counts, &error), STATUS_OK);
    arena_release(&memory);
    return counts[REDRIVE_SENT_BACK];
}

static void assert_once(const struct scene *scene, int letters)
{
    for (int i = 0; i < letters; i++)
        check(scene->sends[i] == 1, "j%d was sent %d times", i, scene->sends[i]);
}

static void assert_ended(struct stage *stage, enum redrive_state state, int64_t sent_back)
{
    struct seen seen = look(stage, NULL);
    check(seen.state == state, "it is %s, not %s", redrive_state_name(seen.state), redrive_state_name(state));
    assert_false(seen.active);
    assert_int_equal(seen.counts[REDRIVE_SENT_BACK], sent_back);
}

/* ---- */

/* More than a step has. */
static void each_goes_back_once(void **state)
{
    enum { LETTERS = 1203 };
    static struct scene scene;
    struct stage stage;
    struct saved_wait wait;
    (void)state;
    begin(&stage, &scene, LETTERS);
    start(&stage, &wait, "running", "");
    stage_run_for(&stage, MINUTE_MS);
    assert_false(scene.failed);
    assert_once(&scene, LETTERS);
    assert_ended(&stage, REDRIVE_DONE, LETTERS);
    assert_int_equal(stage_counts(&stage, "d").completed, LETTERS);
    stage_end(&stage);
}

/* A crash at any moment, and a store that refuses: nothing is left out and nothing goes twice. Only what is back already is sent. */
static void whatever_fails_each_goes_once(void **state)
{
    enum { LETTERS = 1100 };
    static struct scene scene;
    (void)state;
    for (int row = 0; row < 6; row++) {
        struct stage stage;
        struct saved_wait wait;
        struct error error;
        begin(&stage, &scene, LETTERS);
        stage.commit_ms = 10;
        assert_int_equal(engine_pause(stage.engine, SLICE("d"), SLICE(""), &error), STATUS_OK);
        stage_run_for(&stage, SECOND_MS);
        start(&stage, &wait, "running", row % 2 ? ",\"rate\":\"100/s\"" : "");
        stage_run_for(&stage, 15); /* it is saved, and has hardly begun */
        for (int i = 0; i < 40; i++) {
            stage.fail_applies = i % 3 == 1 && i < 30;
            stage_run_for(&stage, 7 + 10 * row);
            if (row < 4 && i % 5 == 4 && i < 30)
                stage_crash(&stage);
        }
        stage.fail_applies = false;
        stage_run_for(&stage, MINUTE_MS);
        assert_ended(&stage, REDRIVE_DONE, LETTERS);
        assert_int_equal(engine_resume(stage.engine, SLICE("d"), &error), STATUS_OK);
        stage_run_for(&stage, MINUTE_MS);
        assert_int_equal(stage_counts(&stage, "d").completed, LETTERS);
        assert_once(&scene, LETTERS);
        stage_end(&stage);
    }
}

/* What dies while it goes on is not its business: it ends where all die again. */
static void what_dies_again_stays_dead(void **state)
{
    static struct scene scene;
    struct stage stage;
    struct saved_wait wait;
    (void)state;
    begin_with(&stage, &scene, 50, began + 7 * SECOND_MS);
    scene.down = true;
    start(&stage, &wait, "running", ",\"rate\":\"10/s\"");
    stage_run_for(&stage, 2 * SECOND_MS);
    stage_add(&stage, "d", "t", "j900", "{}"); /* dies after it began */
    stage_run_for(&stage, MINUTE_MS);
    assert_once(&scene, 50);
    assert_int_equal(scene.sends[900], 1);
    assert_int_equal(scene.sends[1998], 1); /* died when it had begun, before its turn came */
    assert_ended(&stage, REDRIVE_DONE, 50);
    assert_int_equal(look(&stage, NULL).counts[REDRIVE_DEAD_AGAIN], 50);
    stage_end(&stage);
}

static void no_more_than_its_limit(void **state)
{
    static const struct { int letters, limit; const char *more; } rows[] = {
        { 100, 17, ",\"limit\":17" },
        { 100, 17, ",\"limit\":17,\"rate\":\"5/s\"" },
        { 1203, 700, ",\"limit\":700" }, /* more than a step, and less than two */
        { 40, 35, ",\"limit\":35,\"payload_patch\":{\"a\":2}" }, /* likewise */
    };
    static struct scene scene;
    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct stage stage;
        struct saved_wait wait;
        begin(&stage, &scene, rows[row].letters);
        start(&stage, &wait, "running", rows[row].more);
        stage_run_for(&stage, MINUTE_MS);
        assert_int_equal(scene.sent, rows[row].limit);
        assert_ended(&stage, REDRIVE_DONE, rows[row].limit);
        stage_end(&stage);
    }
}

static void no_faster_than_its_rate(void **state)
{
    static struct scene scene;
    struct stage stage;
    struct saved_wait wait;
    (void)state;
    begin(&stage, &scene, 200);
    start(&stage, &wait, "running", ",\"rate\":\"60/m\"");
    for (int second = 1; second <= 100; second++) {
        stage_run_for(&stage, SECOND_MS);
        check(scene.sent <= second + 2, "%d went in %d s", (int)scene.sent, second);
    }
    check(scene.sent >= 95, "only %d went", (int)scene.sent);
    stage_end(&stage);
}

/* A few go first; the rest waits for what becomes of them. */
static void a_canary_goes_before_the_rest(void **state)
{
    static struct scene scene;
    (void)state;
    for (int row = 0; row < 2; row++) {
        struct stage stage;
        struct saved_wait wait;
        bool dies = row == 1;
        begin(&stage, &scene, 60);
        scene.down = dies;
        scene.slow_ms = 2 * SECOND_MS;
        start(&stage, &wait, "canary", ",\"canary\":5,\"abort_at\":0.5");
        for (int i = 0; i < 400 && scene.sent <= 5; i++) {
            stage_run_for(&stage, 10);
            check(scene.sent <= 5 || look(&stage, NULL).counts[REDRIVE_DELIVERED] == 5, "more go before the canary has ended");
        }
        stage_run_for(&stage, MINUTE_MS);
        assert_int_equal(scene.sent, dies ? 5 : 60);
        assert_ended(&stage, dies ? REDRIVE_ABORTED : REDRIVE_DONE, dies ? 5 : 60);
        stage_end(&stage);
    }
}

/* Also after a canary, when it was asked for; else it goes on. */
static void a_share_of_deaths_ends_it(void **state)
{
    static struct scene scene;
    (void)state;
    for (int row = 0; row < 2; row++) {
        struct stage stage;
        struct saved_wait wait;
        begin(&stage, &scene, 100);
        scene.down = true;
        start(&stage, &wait, "running", row == 0 ? ",\"rate\":\"5/s\",\"abort_at\":0.5,\"abort_given\":true" : ",\"rate\":\"5/s\"");
        stage_run_for(&stage, MINUTE_MS);
        if (row == 0)
            assert_in_range(scene.sent, 10, 20);
        else
            assert_int_equal(scene.sent, 100);
        assert_ended(&stage, row == 0 ? REDRIVE_ABORTED : REDRIVE_DONE, scene.sent);
        stage_end(&stage);
    }
}

/* However many go back, what is new does not wait for them. */
static void new_work_goes_first(void **state)
{
    static struct scene scene;
    struct stage stage;
    struct saved_wait wait;
    (void)state;
    begin(&stage, &scene, 600);
    assert_int_equal(engine_pause(stage.engine, SLICE("d"), SLICE(""), &(struct error){ 0 }), STATUS_OK);
    start(&stage, &wait, "running", "");
    stage_run_for(&stage, 10 * SECOND_MS);
    assert_int_equal(look(&stage, NULL).counts[REDRIVE_SENT_BACK], 600);
    stage_add(&stage, "d", "t", "j1500", "{}");
    assert_int_equal(engine_resume(stage.engine, SLICE("d"), &(struct error){ 0 }), STATUS_OK);
    for (int i = 0; i < 100 && scene.sends[1500] == 0; i++)
        stage_run_for(&stage, 1);
    check(scene.sends[1500] == 1 && scene.sent <= 20, "%d of them went before it", (int)scene.sent);
    stage_end(&stage);
}

static void order(struct stage *stage, struct saved_wait *wait, enum redrive_order which, enum status expected)
{
    struct buffer text;
    struct error error;
    buffer_init(&text, REDRIVE_RECORD_BYTES_MAX);
    (void)look(stage, &text);
    *wait = (struct saved_wait){ .done = on_saved, .context = stage->context };
    assert_int_equal(engine_redrive_order(stage->engine, which, buffer_slice(&text), SLICE("me"), wait, &error), expected);
    buffer_release(&text);
}

static void cancelled_it_stops(void **state)
{
    static struct scene scene;
    struct stage stage;
    struct saved_wait wait, cancelled;
    (void)state;
    begin(&stage, &scene, 100);
    start(&stage, &wait, "running", ",\"rate\":\"5/s\"");
    stage_run_for(&stage, 5 * SECOND_MS);
    order(&stage, &cancelled, REDRIVE_CANCEL, STATUS_OK);
    stage_run_for(&stage, SECOND_MS);
    int64_t sent = scene.sent;
    assert_in_range(sent, 10, 40);
    assert_ended(&stage, REDRIVE_CANCELLED, sent);
    stage_crash(&stage);
    stage_run_for(&stage, MINUTE_MS);
    assert_int_equal(scene.sent, sent);
    order(&stage, &cancelled, REDRIVE_CANCEL, STATUS_CONFLICT);
    stage_end(&stage);
}

/* An order is answered when it is saved, however long the next step would have to wait. */
static void an_order_does_not_wait_for_the_rate(void **state)
{
    static struct scene scene;
    (void)state;
    for (int row = 0; row < 2; row++) {
        struct stage stage;
        struct saved_wait wait, ordered;
        begin(&stage, &scene, 10);
        assert_int_equal(engine_pause(stage.engine, SLICE("d"), SLICE(""), &(struct error){ 0 }), STATUS_OK);
        start(&stage, &wait, "running", ",\"rate\":\"1/m\"");
        stage_run_for(&stage, 5 * SECOND_MS);
        assert_int_equal(look(&stage, NULL).counts[REDRIVE_SENT_BACK], 1);
        scene.failed = true;
        order(&stage, &ordered, row == 0 ? REDRIVE_CANCEL : REDRIVE_UNDO, STATUS_OK);
        stage_run_for(&stage, 3 * SECOND_MS);
        assert_false(scene.failed);
        assert_ended(&stage, row == 0 ? REDRIVE_CANCELLED : REDRIVE_UNDONE_ALL, 1);
        stage_end(&stage);
    }
}

/* What was not sent is dead again, as it was; its payload, too, where that was corrected. */
static void undone_it_is_as_before(void **state)
{
    static struct scene scene;
    (void)state;
    for (int row = 0; row < 4; row++) {
        bool patched = row % 2, dies = row >= 2;
        struct stage stage;
        struct saved_wait wait, undone;
        begin(&stage, &scene, 40);
        assert_int_equal(engine_pause(stage.engine, SLICE("d"), SLICE(""), &(struct error){ 0 }), STATUS_OK);
        stage_run_for(&stage, SECOND_MS);
        start(&stage, &wait, "running", patched ? ",\"payload_patch\":{\"a\":2}" : "");
        stage_run_for(&stage, 10 * SECOND_MS);
        assert_int_equal(stage_counts(&stage, "d").dead, 0);
        assert_string_equal(stage_job(&stage, "t", "j7").payload.data, patched ? "{\"a\":2}" : "{\"a\":1}");
        order(&stage, &undone, REDRIVE_UNDO, STATUS_OK);
        if (dies) { /* on the way: another goes on with it */
            stage_run_for(&stage, 1);
            stage_crash(&stage);
        }
        stage_run_for(&stage, 10 * SECOND_MS);
        assert_ended(&stage, REDRIVE_UNDONE_ALL, 40);
        assert_int_equal(stage_counts(&stage, "d").dead, 40);
        for (int i = 0; i < 40; i++) {
            char id[16];
            snprintf(id, sizeof id, "j%d", i);
            struct job job = stage_job(&stage, "t", id);
            check(slice_equal(job.payload, SLICE("{\"a\":1}")), "row %d: %s has %.*s", row, id, SLICE_ARG(job.payload));
        }
        stage_end(&stage);
    }
}

/* Steps of an undo that fail are done again, whatever was read ahead of them: no letter is left out. */
static void an_undo_leaves_nothing_out(void **state)
{
    enum { LETTERS = 1100 };
    static struct scene scene;
    (void)state;
    for (int row = 0; row < 4; row++) {
        struct stage stage;
        struct saved_wait wait, undone;
        begin(&stage, &scene, LETTERS);
        stage.commit_ms = 10;
        assert_int_equal(engine_pause(stage.engine, SLICE("d"), SLICE(""), &(struct error){ 0 }), STATUS_OK);
        start(&stage, &wait, "running", "");
        stage_run_for(&stage, 10 * SECOND_MS);
        assert_int_equal(stage_counts(&stage, "d").pending, LETTERS);
        order(&stage, &undone, REDRIVE_UNDO, STATUS_OK);
        stage_run_for(&stage, 15 + 10 * row); /* it is saved, and so many steps are done */
        stage.fail_applies = true;
        stage_run_for(&stage, 10);
        stage.fail_applies = false;
        assert_in_range(look(&stage, NULL).counts[REDRIVE_UNDONE], 0, LETTERS - 1);
        stage_run_for(&stage, MINUTE_MS);
        assert_ended(&stage, REDRIVE_UNDONE_ALL, LETTERS);
        assert_int_equal(stage_counts(&stage, "d").dead, LETTERS);
        assert_int_equal(look(&stage, NULL).counts[REDRIVE_UNDONE], LETTERS);
        stage_end(&stage);
    }
}

/* What cannot be corrected stays dead, and is counted. */
static void what_cannot_be_corrected_stays(void **state)
{
    static struct scene scene;
    struct stage stage;
    struct saved_wait wait;
    (void)state;
    begin(&stage, &scene, 20);
    scene.down = true;
    stage_add(&stage, "d", "t", "j30", "no JSON");
    stage_run_for(&stage, SECOND_MS);
    scene = (struct scene){ 0 };
    start(&stage, &wait, "running", ",\"payload_patch\":[{\"op\":\"replace\",\"path\":\"/a\",\"value\":3}]");
    stage_run_for(&stage, MINUTE_MS);
    assert_once(&scene, 20);
    assert_int_equal(scene.sends[30], 0);
    assert_string_equal(scene.payload, "{\"a\":3}");
    assert_int_equal(look(&stage, NULL).patch_failed, 1);
    assert_ended(&stage, REDRIVE_DONE, 20);
    stage_end(&stage);
}

/* Slow ones of one tenant's leave room for those of the others, and all together for none. */
static void one_tenant_leaves_room_for_others(void **state)
{
    static struct saved_wait waits[REDRIVES_ACTIVE_MAX + 2];
    struct scene scene;
    struct stage stage;
    int begun = 0;
    (void)state;
    begin(&stage, &scene, 3);
    while (begun < REDRIVES_TENANT_MAX)
        assert_int_equal(try_to_start(&stage, &waits[begun++], "running", ",\"tenant\":\"t\"", ",\"rate\":\"1/h\""), STATUS_OK);
    assert_int_equal(try_to_start(&stage, &waits[begun], "running", ",\"tenant\":\"t\"", ",\"rate\":\"1/h\""), STATUS_LIMIT);
    while (begun < REDRIVES_ACTIVE_MAX)
        start(&stage, &waits[begun++], "running", ",\"rate\":\"1/h\"");
    assert_int_equal(try_to_start(&stage, &waits[begun], "running", "", ",\"rate\":\"1/h\""), STATUS_LIMIT);
    stage_end(&stage);
}

static size_t notes_in(struct stage *stage, struct slice space)
{
    struct arena memory = { 0 };
    struct saved *saved;
    struct error error;
    size_t count;
    assert_int_equal(stage->reader->ops->reader_saved_list(stage->reader, space, SLICE(""), 1000, &memory, &saved, &count, &error),
                     STATUS_OK);
    arena_release(&memory);
    return count;
}

/* What payloads were goes first, record and counts with the trail; what has not ended loses nothing. */
static void what_is_old_goes(void **state)
{
    enum { LETTERS = 200 };
    static struct scene scene;
    struct stage stage;
    struct saved_wait wait, slow, undone;
    (void)state;
    begin(&stage, &scene, LETTERS);
    assert_int_equal(engine_pause(stage.engine, SLICE("d"), SLICE(""), &(struct error){ 0 }), STATUS_OK);
    start(&stage, &wait, "running", ",\"payload_patch\":{\"a\":2}");
    stage_run_for(&stage, 20 * HOUR_MS);
    assert_int_equal(notes_in(&stage, SPACE_REDRIVE_PAYLOAD), LETTERS);
    stage_run_for(&stage, 6 * HOUR_MS);
    assert_int_equal(notes_in(&stage, SPACE_REDRIVE_PAYLOAD), 0);
    assert_int_equal(look(&stage, NULL).counts[REDRIVE_SENT_BACK], LETTERS);
    order(&stage, &undone, REDRIVE_UNDO, STATUS_CONFLICT); /* not with the wrong payloads */
    assert_int_equal(stage_counts(&stage, "d").dead, 0);
    scene.down = true;
    stage_add(&stage, "d", "t", "j1500", "{\"a\":1}");
    stage_add(&stage, "d", "t", "j1501", "{\"a\":1}");
    assert_int_equal(engine_resume(stage.engine, SLICE("d"), &(struct error){ 0 }), STATUS_OK);
    stage_run_for(&stage, HOUR_MS);
    assert_int_equal(stage_counts(&stage, "d").dead, LETTERS + 2);
    start(&stage, &slow, "running", ",\"payload_patch\":{\"a\":2},\"rate\":\"6/h\"");
    stage_run_for(&stage, 27 * HOUR_MS); /* its first copies are older, but it goes on, */
    size_t copies = notes_in(&stage, SPACE_REDRIVE_PAYLOAD);
    check(copies >= 150, "%zu copies are there", copies);
    stage_run_for(&stage, 72 * HOUR_MS); /* now it has ended, */
    assert_int_equal(notes_in(&stage, SPACE_REDRIVE_PAYLOAD), 0);
    assert_int_equal(notes_in(&stage, SPACE_REDRIVE), 1); /* and the first is older than the trail, */
    stage_run_for(&stage, 30 * HOUR_MS);
    assert_int_equal(notes_in(&stage, SPACE_REDRIVE), 0); /* and so is it */
    assert_int_equal(notes_in(&stage, SPACE_TALLY), 0);
    stage_end(&stage);
}

/* One that has just begun does not wait for one of thousands, though that reads ahead; nor do those that correct payloads. */
static void several_take_turns(void **state)
{
    enum { LETTERS = 1100 };
    static struct scene scene;
    (void)state;
    for (int row = 0; row < 2; row++) {
        struct stage stage;
        struct saved_wait wait, second, third;
        begin(&stage, &scene, LETTERS);
        stage.commit_ms = 10;
        assert_int_equal(engine_pause(stage.engine, SLICE("d"), SLICE(""), &(struct error){ 0 }), STATUS_OK);
        const char *more = row == 0 ? "" : ",\"payload_patch\":{\"a\":2}";
        char few[96];
        snprintf(few, sizeof few, ",\"limit\":10%s", more);
        start(&stage, &wait, "running", more);
        stage_run_for(&stage, 25);
        start(&stage, &second, "running", few);
        start(&stage, &third, "running", few);
        stage_run_for(&stage, 160);
        for (size_t i = 0; i < 3; i++)
            check(count_of(&stage, i) >= 10 || i == 2, "row %d: redrive %zu has sent back %d", row, i, (int)count_of(&stage, i));
        check(row == 0 || count_of(&stage, 2) < LETTERS / 2, "the first was done before the others began");
        stage_run_for(&stage, MINUTE_MS);
        assert_int_equal(stage_counts(&stage, "d").pending, LETTERS);
        stage_end(&stage);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_goes_back_once),
        cmocka_unit_test(whatever_fails_each_goes_once),
        cmocka_unit_test(what_dies_again_stays_dead),
        cmocka_unit_test(no_more_than_its_limit),
        cmocka_unit_test(no_faster_than_its_rate),
        cmocka_unit_test(a_canary_goes_before_the_rest),
        cmocka_unit_test(a_share_of_deaths_ends_it),
        cmocka_unit_test(new_work_goes_first),
        cmocka_unit_test(one_tenant_leaves_room_for_others),
        cmocka_unit_test(cancelled_it_stops),
        cmocka_unit_test(an_order_does_not_wait_for_the_rate),
        cmocka_unit_test(undone_it_is_as_before),
        cmocka_unit_test(an_undo_leaves_nothing_out),
        cmocka_unit_test(what_cannot_be_corrected_stays),
        cmocka_unit_test(several_take_turns),
        cmocka_unit_test(what_is_old_goes),
    };
    log_set_level(LOG_NONE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
