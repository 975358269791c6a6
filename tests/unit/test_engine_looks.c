/*
 * No job and no tenant keeps an outage going: with every preset, and bad jobs of every kind at the head of the queue, what
 * is good is delivered soon after the destination is back, and what is bad is sent as often as its policy says and once
 * more. Each case is played with ten ids, since the id decides how long a job waits.
 */
#include "support/check.h"
#include "support/engine_fixture.h"

#include "base/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { JOBS = 40, IDS = 10, IDS_OF_MANY = 2, TENANTS = 5 };

/* ---- the presets ---- */

struct preset {
    const char *name, *yaml;
    const char *down_code, *bad_code, *wait_code;
    int sends;           /* of one job, by its policy, */
    int64_t cap_ms;      /* and its longest wait */
    int64_t outage_ms;
    int64_t look_ms;     /* longest interval between looks, */
    int64_t spread_ms;   /* and how long the way back takes from there: its ramp, its rate, its cycles */
    bool has_health;
};

#define HTTP "url: 'https://a.example/'"
static const struct preset presets[] = {
    { "tiss", "destinations: { d: { preset: tiss, " HTTP " } }\n", "http:503", "http:500", "curl:2", 6, 240 * MINUTE_MS, HOUR_MS,
      10 * MINUTE_MS, MINUTE_MS, false },
    { "email", "destinations: { d: { preset: email, url: 'smtp://mail.example:25', concurrency: 5 } }\n", "curl:7", "smtp:451",
      "curl:2", 5, MINUTE_MS, 20 * MINUTE_MS, 5 * MINUTE_MS, 3 * MINUTE_MS, false },
    { "sifen", "destinations: { d: { preset: sifen, " HTTP ", verify: { url: 'https://a.example/v' }, poll: { url: 'https://a.example/p' },"
      " health: { url: 'https://a.example/h' }, tls: { cert: c, key: k } } }\n", "http:503", "http:500", "sifen:0162", 4, HOUR_MS, HOUR_MS,
      5 * MINUTE_MS, MINUTE_MS, true },
    { "provisioning", "destinations: { d: { preset: provisioning, " HTTP " } }\n", "http:503", "http:500", "curl:2", 10, 10 * MINUTE_MS, HOUR_MS,
      10 * MINUTE_MS, 3 * MINUTE_MS, false },
};

/* ---- who is bad ---- */

enum kind { ONE, THIRTY, NINETY, ONE_TENANT_BAD, ALL, TWO, WAITS, ONE_TENANT, KINDS };
static const char *const kinds[KINDS] = { "one bad job", "30 % bad",      "90 % bad",        "a tenant's all bad",
                                          "only bad ones", "two alternate", "one is told to wait", "one tenant" };

static bool is_bad(enum kind kind, int job, int tenant)
{
    switch (kind) {
    case THIRTY:
        return job % 10 < 3;
    case NINETY:
        return job % 10 < 9;
    case ONE_TENANT_BAD:
        return tenant == 0;
    case ALL:
        return true;
    case TWO:
        return job < 2;
    default:
        return job == 0;
    }
}

struct story {
    const struct preset *preset;
    enum kind kind;
    instant back_at;
    struct {
        bool bad;
        char tenant[4], id[32];
        int64_t sends;
        instant due_at, done_at; /* at the return; delivered */
    } jobs[JOBS];
};

static size_t job_number(const struct send *send)
{
    return (size_t)strtoul(send->job->id.data, NULL, 10);
}

static int64_t story_answers(struct world *world, const struct send *send, struct answer *answer)
{
    struct story *story = world->context;
    size_t number = job_number(send);
    bool down = world->now < story->back_at, bad = story->jobs[number].bad;
    bool held = strcmp(status_of(world).mode, "normal") != 0 || strcmp(status_of(world).breaker, "closed") != 0;
    story->jobs[number].sends += !(down && held); /* as long as it is away, looks cost nothing */
    if (!down && !bad) {
        answer->outcome = OUTCOME_DELIVERED;
        answer->query = QUERY_DELIVERED;
        story->jobs[number].done_at = world->now;
        return 50;
    }
    answer->query = QUERY_ABSENT;
    answer->code = slice_from(down ? story->preset->down_code : story->kind == WAITS ? story->preset->wait_code : story->preset->bad_code);
    answer->text = down ? SLICE("SERVICE_UNAVAILABLE") : SLICE("SERVER_ERROR");
    return 50;
}

static int64_t story_health(struct world *world, const struct probe *probe, struct health_answer *answer)
{
    const struct story *story = world->context;
    bool up = world->now >= story->back_at;
    (void)probe;
    *answer = (struct health_answer){ .connected = up, .status = up ? 200 : 0,
        .body = up ? SLICE("{\"status\":\"UP\",\"services\":{\"facturation\":\"UP\",\"batch\":\"UP\"}}") : SLICE("") };
    return 5;
}

static void story_begin(struct story *story, struct world *world, const struct preset *preset, enum kind kind, int id)
{
    *story = (struct story){ .preset = preset, .kind = kind, .back_at = began + preset->outage_ms };
    *world = (struct world){ .destination = story_answers, .health = preset->has_health ? story_health : NULL, .context = story };
    world_begin(world, preset->yaml, began);
    for (int i = 0; i < JOBS; i++) {
        int tenant = kind == ONE_TENANT ? 0 : i % TENANTS;
        story->jobs[i].bad = is_bad(kind, i, tenant);
        snprintf(story->jobs[i].tenant, sizeof story->jobs[i].tenant, "t%d", tenant);
        snprintf(story->jobs[i].id, sizeof story->jobs[i].id, "%d-%s-%d", i, "CLM", id * 7919 + i);
        world_add(world, "d", story->jobs[i].tenant, story->jobs[i].id, "x");
        world_run_for(world, 10); /* the first is the oldest */
    }
}

static void note_due(struct story *story, struct world *world)
{
    for (int i = 0; i < JOBS; i++) {
        struct job job = world_job(world, story->jobs[i].tenant, story->jobs[i].id);
        story->jobs[i].due_at = job.state == STATE_WAITING && job.run_at > story->back_at ? job.run_at : story->back_at;
        if (job.state == STATE_DEAD)
            story->jobs[i].due_at = INSTANT_MAX; /* as the documents say, before the outage was noticed */
    }
}

/* One that is told to wait when all others have been served is alone: its waits spend nothing, and grow. */
static int64_t most_sends(const struct story *story)
{
    const struct preset *preset = story->preset;
    int64_t alone = (6 * HOUR_MS) / (preset->cap_ms - preset->cap_ms / 5) + 6;
    return preset->sends + 1 + (story->kind == WAITS ? alone : 0);
}

static void check_story(const struct story *story, const struct preset *preset, int id, instant now)
{
    const char *name = kinds[story->kind];
    for (int i = 0; i < JOBS; i++) {
        if (story->jobs[i].bad)
            check(story->jobs[i].sends <= most_sends(story), "%s, %s, id %d: job %d was sent %" PRId64 " times", preset->name, name, id,
                  i, story->jobs[i].sends);
        if (story->jobs[i].bad || story->jobs[i].due_at == INSTANT_MAX)
            continue;
        instant after_looks = story->back_at + 2 * preset->look_ms;
        instant latest = (story->jobs[i].due_at > after_looks ? story->jobs[i].due_at : after_looks) + preset->spread_ms;
        instant done_at = story->jobs[i].done_at != 0 ? story->jobs[i].done_at : now;
        check(done_at <= latest, "%s, %s, id %d: job %d %s %" PRId64 " s after the return, %" PRId64 " s too late", preset->name, name, id, i,
              story->jobs[i].done_at ? "done" : "not even", (done_at - story->back_at) / 1000, (done_at - latest) / 1000);
    }
}

/* Bad ones alone are looked at ever more seldom, but each look uses one up. */
static int64_t left_in_the_end(struct world *world, enum kind kind)
{
    struct lane_counts counts = world_counts(world, "d");
    for (int i = 0; i < 40 && kind != WAITS && counts.waiting + counts.pending > 0; i++) {
        world_run_for(world, 12 * HOUR_MS);
        counts = world_counts(world, "d");
    }
    return kind == WAITS ? 0 : counts.waiting + counts.pending;
}

static void nobody_stops_the_others(void **state)
{
    (void)state;
    static struct story story;
    for (size_t p = 0; p < COUNT_OF(presets); p++)
        for (enum kind kind = ONE; kind < KINDS; kind++)
            for (int id = 0; id < (kind == ONE ? IDS : IDS_OF_MANY); id++) {
                struct world world;
                story_begin(&story, &world, &presets[p], kind, id);
                world_run_until(&world, story.back_at);
                note_due(&story, &world);
                world_run_for(&world, 6 * HOUR_MS);
                int64_t left = left_in_the_end(&world, kind);
                check_story(&story, &presets[p], id, world.now);
                check(left == 0, "%s, %s, id %d: %" PRId64 " are left", presets[p].name, kinds[kind], id, left);
                world_end(&world);
            }
}

static int64_t away_for_three_hours(struct world *world, const struct send *send, struct answer *answer)
{
    (void)send;
    if (world->now < began + 3 * HOUR_MS) {
        answer->code = world->send_count % 2 ? SLICE("curl:7") : SLICE("http:503");
        answer->text = SLICE("it is away");
    } else {
        answer->outcome = OUTCOME_DELIVERED;
    }
    return 10;
}

/* S4-002 S4-036 A-20: down for three hours, then up: all items are delivered by themselves, and none was exhausted. */
static void an_outage_exhausts_no_item(void **state)
{
    static const int counts[] = { 1, 3, 40 };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        struct world world = { .destination = away_for_three_hours };
        world_begin(&world, "destinations: { d: { preset: provisioning, " HTTP " } }\n", began);
        for (int job = 0; job < counts[i]; job++)
            world_add(&world, "d", job % 2 ? "A" : "B", NULL, "x");
        world_run_until(&world, began + 3 * HOUR_MS);
        assert_int_equal(world_counts(&world, "d").dead, 0);
        world_run_for(&world, 25 * MINUTE_MS); /* two looks at their longest interval, and the way back */
        assert_int_equal(world_counts(&world, "d").completed, counts[i]);
        world_end(&world);
    }
}

/* What each of the tenants is told. */
struct wishes {
    int64_t ms[3]; /* of A, B, C; 0: all is well */
};

static int64_t tells_to_wait(struct world *world, const struct send *send, struct answer *answer)
{
    const struct wishes *wishes = world->context;
    int64_t ms = wishes->ms[send->job->tenant.data[0] - 'A'];
    answer->outcome = ms > 0 ? OUTCOME_NONE : OUTCOME_DELIVERED;
    if (ms > 0) {
        answer->code = SLICE("http:429");
        answer->text = SLICE("HTTP 429");
        answer->slow_all = true;
        answer->retry_after_ms = ms;
    }
    return 10;
}

/* One tenant's Retry-After holds that tenant, for an hour at most; the destination only when two were told, or nobody else has work. */
static void a_wish_is_the_tenants(void **state)
{
    (void)state;
    struct wishes wishes = { { 80000 * SECOND_MS, 0, 0 } };
    struct world world = { .destination = tells_to_wait, .context = &wishes };
    world_begin(&world, "destinations: { d: { preset: http, " HTTP " } }\n", began);
    for (int i = 0; i < 3; i++) {
        world_add(&world, "d", "B", NULL, "x");
        world_add(&world, "d", "A", NULL, "x");
    }
    world_run_for(&world, SECOND_MS);
    world_add(&world, "d", "A", "late", "x");
    world_add(&world, "d", "B", NULL, "x");
    world_run_for(&world, MINUTE_MS);
    struct lane_counts counts = world_counts(&world, "d");
    assert_int_equal(counts.completed, 4); /* all of B's */
    assert_int_equal(world_job(&world, "A", "late").attempts, 0);
    assert_null(status_of(&world).held_by); /* although A was alone for a moment */
    wishes.ms[0] = 0;
    world_run_for(&world, 61 * MINUTE_MS);
    assert_int_equal(world_job(&world, "A", "late").state, STATE_COMPLETED); /* retry_after_max: an hour */
    world_run_for(&world, 61 * MINUTE_MS);
    wishes = (struct wishes){ { 30 * SECOND_MS, 60 * SECOND_MS, 0 } };
    world_add(&world, "d", "C", "scheduled", "x");
    world_run_for(&world, SECOND_MS);
    world_add(&world, "d", "A", NULL, "x");
    world_add(&world, "d", "B", NULL, "x");
    world_run_for(&world, SECOND_MS);
    assert_string_equal(status_of(&world).held_by, "throttle");
    assert_in_range(status_of(&world).held_until - world.now, 55 * SECOND_MS, 60 * SECOND_MS); /* the longer one */
    world_end(&world);
}

static int64_t lane_of(struct world *world, const char *tenant, const char *id)
{
    return world_job(world, tenant, id).lane;
}

/* Kept with the store, whether others had work then or not, and also of a tenant that has none for long. */
static void a_wish_outlives_the_process(void **state)
{
    (void)state;
    for (int others = 0; others < 2; others++)
        for (int order = 0; order < 2; order++) {
            struct wishes wishes = { { 50 * MINUTE_MS, 0, 0 } };
            struct world world = { .destination = tells_to_wait, .context = &wishes };
            world_begin(&world, "destinations: { d: { preset: http, " HTTP ", retry: { max_retries: 0 } } }\n", began);
            world_add(&world, "d", "A", "told", "x");
            for (int i = 0; i < 3 * others; i++)
                world_add(&world, "d", "B", NULL, "x");
            world_run_for(&world, MINUTE_MS);
            assert_int_equal(world_job(&world, "A", "told").state, STATE_DEAD);
            world_apply(&world, &(struct store_op){ .kind = OP_PURGE, .job = { .tenant = SLICE("A"), .id = SLICE("told") } });
            if (order)
                world_restart(&world);
            else
                world_crash(&world);
            world_run_for(&world, 25 * MINUTE_MS); /* one without work is forgotten after 15 */
            world_add(&world, "d", "A", "later", "x");
            world_add(&world, "d", "B", "other", "x");
            wishes.ms[0] = 0;
            world_run_for(&world, 20 * MINUTE_MS);
            assert_int_equal(world_job(&world, "A", "later").state, STATE_PENDING);
            assert_int_equal(world_job(&world, "B", "other").state, STATE_COMPLETED);
            struct queue_place place = engine_place(world.engine, lane_of(&world, "A", "later"), 0, world.now);
            assert_in_range(place.asked_until - began, 50 * MINUTE_MS, 51 * MINUTE_MS);
            assert_int_equal(place.at, place.asked_until);
            world_run_for(&world, 6 * MINUTE_MS);
            assert_int_equal(world_job(&world, "A", "later").state, STATE_COMPLETED);
            world_end(&world);
        }
}

/* The destination's hold, since two were told; an operator who resumes it ends the wish. */
static void all_wait_over_a_restart_until_somebody_resumes(void **state)
{
    (void)state;
    struct wishes wishes = { { 50 * MINUTE_MS, 50 * MINUTE_MS, 0 } };
    struct world world = { .destination = tells_to_wait, .context = &wishes };
    struct error error;
    world_begin(&world, "destinations: { d: { preset: http, " HTTP " } }\n", began);
    world_add(&world, "d", "A", NULL, "x");
    world_add(&world, "d", "B", NULL, "x");
    world_run_for(&world, MINUTE_MS);
    world_crash(&world);
    world_add(&world, "d", "C", "other", "x");
    world_run_for(&world, MINUTE_MS);
    assert_string_equal(status_of(&world).held_by, "throttle");
    assert_int_equal(world_job(&world, "C", "other").attempts, 0);
    assert_int_equal(engine_pause(world.engine, SLICE("d"), SLICE(""), &error), STATUS_OK);
    assert_int_equal(engine_resume(world.engine, SLICE("d"), &error), STATUS_OK);
    world_run_for(&world, MINUTE_MS);
    assert_int_equal(world_job(&world, "C", "other").state, STATE_COMPLETED);
    world_end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_stops_the_others),
        cmocka_unit_test(an_outage_exhausts_no_item),
        cmocka_unit_test(a_wish_is_the_tenants),
        cmocka_unit_test(a_wish_outlives_the_process),
        cmocka_unit_test(all_wait_over_a_restart_until_somebody_resumes),
    };
    log_set_level(LOG_NONE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
