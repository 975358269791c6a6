/*
 * New work beside a redrive, on a stage: thousands of letters of one tenant go back, and whoever has new work meanwhile, that
 * tenant too, is sent as if they did not.
 */
#include "engine/redrives/redrives.h"
#include "support/check.h"
#include "support/engine_fixture.h"

#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LETTERS = 3000, SLOTS = 10, TAKES_MS = 20, TENANTS = 3, NEW_MAX = 30000 };

/* 10 at a time, 20 ms each: 500 a second. */
#define YAML                                                                                                                 \
    "destinations: { d: { url: 'http://d.example/', concurrency: { max: 10, adaptive: false }, breaker: { enabled: false },"  \
    " retry: { max_retries: 0 } } }\n"

/* The letters are the first one's. */
static const char *const tenants[TENANTS] = { "t", "a", "b" };

struct scene {
    bool down;
    int64_t letters;                 /* sent again */
    int64_t letters_in_second, letters_most; /* of any second, by the clock */
    instant second;
    int64_t sent[TENANTS];           /* of new work */
    int64_t longest_ms[TENANTS];     /* that one of it waited */
    int added;
    instant added_at[NEW_MAX];
};

static size_t tenant_of(struct slice name)
{
    size_t i = 0;
    while (i < TENANTS && !slice_equal(name, slice_from(tenants[i])))
        i++;
    assert_in_range(i, 0, TENANTS - 1);
    return i;
}

static void letter_sent(struct scene *scene, instant now)
{
    if (now >= scene->second + SECOND_MS) {
        scene->second = now;
        scene->letters_in_second = 0;
    }
    scene->letters++;
    scene->letters_in_second++;
    if (scene->letters_in_second > scene->letters_most)
        scene->letters_most = scene->letters_in_second;
}

static int64_t answers(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct scene *scene = stage->context;
    if (scene->down) {
        answer->code = SLICE("http:503");
        answer->text = SLICE("HTTP 503: down");
        return 1;
    }
    answer->outcome = OUTCOME_DELIVERED;
    if (send->job->id.data[0] == 'j') {
        letter_sent(scene, stage->now);
        return TAKES_MS;
    }
    size_t tenant = tenant_of(send->job->tenant);
    int64_t waited_ms = stage->now - scene->added_at[atoi(send->job->id.data + 1)];
    scene->sent[tenant]++;
    if (waited_ms > scene->longest_ms[tenant])
        scene->longest_ms[tenant] = waited_ms;
    return TAKES_MS;
}

static void on_saved(struct saved_wait *wait)
{
    assert_int_equal(wait->error.status, STATUS_OK);
}

static void redrive_all(struct stage *stage, struct saved_wait *wait, const char *more)
{
    char text[256];
    struct redrive_record record;
    struct error error;
    snprintf(text, sizeof text, "{\"id\":\"new\",\"state\":\"running\",\"filter\":{\"destination\":\"d\"},\"by\":\"me\"%s}", more);
    assert_int_equal(redrive_record_read(slice_from(text), &record, &error), STATUS_OK);
    *wait = (struct saved_wait){ .done = on_saved };
    assert_int_equal(engine_redrive_begin(stage->engine, &record, wait, &error), STATUS_OK);
}

static void begin(struct stage *stage, struct scene *scene)
{
    char id[16];
    *scene = (struct scene){ .down = true };
    *stage = (struct stage){ .context = scene, .destination = answers };
    stage_begin(stage, YAML, began);
    for (int i = 0; i < LETTERS; i++) {
        snprintf(id, sizeof id, "j%d", i);
        stage_add(stage, "d", tenants[0], id, "{}");
    }
    stage_run_for(stage, 10 * SECOND_MS);
    assert_int_equal(stage_counts(stage, "d").dead, LETTERS);
    scene->down = false;
}

static void add_new(struct stage *stage, struct scene *scene, size_t tenant)
{
    char id[16];
    assert_in_range(scene->added, 0, NEW_MAX - 1);
    scene->added_at[scene->added] = stage->now;
    snprintf(id, sizeof id, "n%d", scene->added++);
    stage_add(stage, "d", tenants[tenant], id, "{}");
}

/* The destination could do more: what is new is sent when a slot is free, and one is after 20 ms at the latest. */
static void it_waits_for_a_slot_at_most(void **state)
{
    static const char *const rows[] = { "", ",\"rate\":\"100/s\"" };
    static struct scene scene;
    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct stage stage;
        struct saved_wait wait;
        begin(&stage, &scene);
        redrive_all(&stage, &wait, rows[row]);
        for (int i = 0; i < 1000; i++) {
            for (size_t tenant = 0; tenant < TENANTS; tenant++)
                add_new(&stage, &scene, tenant);
            stage_run_for(&stage, 10);
        }
        for (size_t tenant = 0; tenant < TENANTS; tenant++)
            check(scene.longest_ms[tenant] <= TAKES_MS && scene.sent[tenant] >= 1000 - SLOTS,
                  "row %zu: %s: %d of 1000 were sent, one after %d ms", row, tenants[tenant], (int)scene.sent[tenant],
                  (int)scene.longest_ms[tenant]);
        check(scene.letters >= 900, "row %zu: only %d letters went", row, (int)scene.letters);
        check(row == 0 || scene.letters_most <= 102, "row %zu: %d went in a second", row, (int)scene.letters_most);
        stage_end(&stage);
    }
}

/* The destination has more to do than it can: the others get what they got, and letters go when nothing new is left. */
static void a_full_queue_is_sent_as_without_it(void **state)
{
    static const char *const rows[] = { NULL, "", ",\"rate\":\"100/s\"" };
    static struct scene scene;
    int64_t without[TENANTS];
    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct stage stage;
        struct saved_wait wait;
        begin(&stage, &scene);
        for (int i = 0; i < 2000; i++)
            for (size_t tenant = 0; tenant < TENANTS; tenant++)
                add_new(&stage, &scene, tenant);
        if (rows[row])
            redrive_all(&stage, &wait, rows[row]);
        stage_run_for(&stage, 9 * SECOND_MS);
        for (size_t tenant = 0; tenant < TENANTS; tenant++) {
            if (!rows[row])
                without[tenant] = scene.sent[tenant];
            check(llabs(without[tenant] - scene.sent[tenant]) <= SLOTS, "row %zu: %s: %d were sent, %d without it", row,
                  tenants[tenant], (int)scene.sent[tenant], (int)without[tenant]);
        }
        check(without[1] > 1000 && scene.letters <= SLOTS, "row %zu: %d letters went before new work", row, (int)scene.letters);
        stage_run_for(&stage, 30 * SECOND_MS);
        check(scene.letters == (rows[row] ? LETTERS : 0), "row %zu: %d letters went", row, (int)scene.letters);
        stage_end(&stage);
    }
}

/* Its letters are that tenant's: with others at work it gets its turn, not a turn for each letter. */
static void the_letters_take_their_tenants_turn(void **state)
{
    static struct scene scene;
    struct stage stage;
    struct saved_wait wait;
    (void)state;
    begin(&stage, &scene);
    redrive_all(&stage, &wait, "");
    for (int i = 0; i < 2000; i++)
        for (size_t tenant = 1; tenant < TENANTS; tenant++)
            add_new(&stage, &scene, tenant);
    stage_run_for(&stage, 6 * SECOND_MS);
    int64_t third = (scene.letters + scene.sent[1] + scene.sent[2]) / 3;
    assert_in_range(third, 900, 1010);
    for (size_t tenant = 1; tenant < TENANTS; tenant++)
        check(llabs(scene.sent[tenant] - third) <= 3 * SLOTS, "%s: %d were sent of a third of %d", tenants[tenant],
              (int)scene.sent[tenant], (int)third);
    stage_end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_waits_for_a_slot_at_most),
        cmocka_unit_test(a_full_queue_is_sent_as_without_it),
        cmocka_unit_test(the_letters_take_their_tenants_turn),
    };
    log_set_level(LOG_NONE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
