/*
 * No job and no tenant keeps an outage going: with every preset, and bad jobs of every kind at the head of the queue, what
 * is good is delivered soon after the destination is back, and what is bad is sent as often as its policy says and once
 * more. Each case is played with ten ids, since the id decides how long a job waits: a destination each, in one world.
 */
#include "support/check.h"
#include "support/engine_fixture.h"

#include "base/log.h"
#include "engine/orders.h"
#include "engine/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { JOBS = 40, IDS = 10, TENANTS = 5 };

/* ---- the presets ---- */

struct preset {
    const char *name, *settings;
    const char *down_code, *bad_code, *wait_code;
    int sends;           /* of one job, by its policy */
    int64_t outage_ms;
    int64_t look_ms;     /* longest interval between looks, */
    int64_t spread_ms;   /* and how long the way back takes from there: its ramp, its rate, its cycles */
    bool has_health;
};

#define HTTP "url: 'https://a.example/'"
#define MAIL "url: 'smtp://mail.example:25'"
/* Times of a preset that take hours are divided by one number: ticks cost something, also in virtual time. */
static const struct preset presets[] = {
    /* by 10 */
    { "tiss", "preset: tiss, " HTTP ", retry: { base: 30s, cap: 24m, floor: 30s, max_elapsed: 24m, retry_after_max: 24m, throttle_min: 30s },"
      " breaker: { window: 2m, open: 6s, open_max: 1m }, job_ttl: 144m", "http:503", "http:500", "curl:2", 6, 6 * MINUTE_MS, MINUTE_MS,
      6 * SECOND_MS, false },
    { "email", "preset: email, " MAIL ", concurrency: 5", "curl:7", "smtp:451", "curl:2", 5, 20 * MINUTE_MS, 5 * MINUTE_MS, 3 * MINUTE_MS,
      false },
    { "sifen", "preset: sifen, " HTTP ", verify: { url: 'https://a.example/v' }, poll: { url: 'https://a.example/p' },"
      " health: { url: 'https://a.example/h' }, tls: { cert: c, key: k }", "http:503", "http:500", "sifen:0162", 4, HOUR_MS,
      5 * MINUTE_MS, MINUTE_MS, true },
    /* by 6 */
    { "provisioning", "preset: provisioning, " HTTP ", retry: { base: 5s, cap: 100s, retry_after_max: 100s }, cycle: { every: 10s },"
      " breaker: { window: 10s, open: 5s, open_max: 50s }, contingency: { stable: 10s, check: 10s }", "http:503", "http:500", "curl:2", 10,
      10 * MINUTE_MS, 100 * SECOND_MS, 30 * SECOND_MS, false },
    /* Without breaker and contingency nobody looks: each job has its own next time. The first two by 10, then by 60. */
    { "http", "preset: http, " HTTP ", retry: { base: 500ms, cap: 6m, floor: 100ms, retry_after_max: 6m, throttle_min: 100ms }", "http:503",
      "http:500", "curl:2", 16, 2 * MINUTE_MS, 0, 6 * SECOND_MS, false },
    { "smtp", "preset: smtp, " MAIL ", retry: { base: 500ms, cap: 6m, floor: 100ms, retry_after_max: 6m, throttle_min: 100ms }", "curl:7",
      "smtp:451", "curl:2", 16, 2 * MINUTE_MS, 0, 6 * SECOND_MS, false },
    { "email-relay", "preset: email-relay, " MAIL ", job_ttl: 2h, retry: { base: 10s, cap: 3m, floor: 5s, max_elapsed: 2h, retry_after_max: 3m,"
      " throttle_min: 5s }", "curl:7", "smtp:451", "curl:2", 43, MINUTE_MS, 0, 6 * SECOND_MS, false },
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
    struct story_job {
        bool bad;
        char tenant[4], id[32];
        int64_t sends;
        instant due_at, done_at; /* at the return; delivered */
    } jobs[IDS][JOBS];
};

static size_t job_number(const struct send *send)
{
    return (size_t)strtoul(send->job->id.data, NULL, 10);
}

static const char *destination_name(int id)
{
    static char name[8];
    snprintf(name, sizeof name, "d%d", id);
    return name;
}

static int64_t story_answers(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct story *story = stage->context;
    size_t number = job_number(send);
    if (number >= JOBS)
        return delivers(stage, send, answer); /* it came long after the return */
    struct story_job *job = &story->jobs[atoi(send->destination->name + 1)][number];
    struct destination_status status = engine_destination(stage->engine, send->job->destination);
    bool down = stage->now < story->back_at;
    bool held = strcmp(status.mode, "normal") != 0 || strcmp(status.breaker, "closed") != 0;
    job->sends += !(down && held); /* as long as it is away, looks cost nothing */
    if (!down && !job->bad) {
        answer->outcome = OUTCOME_DELIVERED;
        answer->query = QUERY_DELIVERED;
        job->done_at = stage->now;
        return 50;
    }
    answer->query = QUERY_ABSENT;
    answer->code = slice_from(down ? story->preset->down_code : story->kind == WAITS ? story->preset->wait_code : story->preset->bad_code);
    answer->text = down ? SLICE("SERVICE_UNAVAILABLE") : SLICE("SERVER_ERROR");
    return 50;
}

static int64_t story_health(struct stage *stage, const struct probe *probe, struct health_answer *answer)
{
    const struct story *story = stage->context;
    bool up = stage->now >= story->back_at;
    (void)probe;
    *answer = (struct health_answer){ .connected = up, .status = up ? 200 : 0,
        .body = up ? SLICE("{\"status\":\"UP\",\"services\":{\"facturation\":\"UP\",\"batch\":\"UP\"}}") : SLICE("") };
    return 5;
}

static void story_begin(struct story *story, struct stage *stage, const struct preset *preset, enum kind kind)
{
    char yaml[8192];
    size_t len = (size_t)snprintf(yaml, sizeof yaml, "destinations:\n");
    *story = (struct story){ .preset = preset, .kind = kind, .back_at = began + preset->outage_ms };
    *stage = (struct stage){ .destination = story_answers, .health = preset->has_health ? story_health : NULL, .context = story };
    for (int id = 0; id < IDS; id++)
        len += (size_t)snprintf(yaml + len, sizeof yaml - len, "  %s: { %s }\n", destination_name(id), preset->settings);
    stage_begin(stage, yaml, began);
    for (int i = 0; i < JOBS; i++) {
        for (int id = 0; id < IDS; id++) {
            struct story_job *job = &story->jobs[id][i];
            int tenant = kind == ONE_TENANT ? 0 : i % TENANTS;
            job->bad = is_bad(kind, i, tenant);
            snprintf(job->tenant, sizeof job->tenant, "t%d", tenant);
            snprintf(job->id, sizeof job->id, "%d-%d-CLM-%d", i, id, id * 7919 + i);
            stage_add(stage, destination_name(id), job->tenant, job->id, "x");
        }
        stage_run_for(stage, 10); /* the first is the oldest */
    }
}

static void note_due(struct story *story, struct stage *stage)
{
    for (int i = 0; i < IDS * JOBS; i++) {
        struct story_job *told = &story->jobs[i / JOBS][i % JOBS];
        struct job job = stage_job(stage, told->tenant, told->id);
        told->due_at = job.state == STATE_WAITING && job.run_at > story->back_at ? job.run_at : story->back_at;
        if (job.state == STATE_DEAD)
            told->due_at = INSTANT_MAX; /* as the documents say, before the outage was noticed */
    }
}

static void check_story(const struct story *story, int id, instant now)
{
    const struct preset *preset = story->preset;
    const char *name = kinds[story->kind];
    for (int i = 0; i < JOBS; i++) {
        const struct story_job *job = &story->jobs[id][i];
        if (job->bad)
            check(job->sends <= preset->sends + 1, "%s, %s, id %d: job %d was sent %" PRId64 " times", preset->name, name, id, i, job->sends);
        if (job->bad || job->due_at == INSTANT_MAX)
            continue;
        instant after_looks = story->back_at + 2 * preset->look_ms;
        instant latest = (job->due_at > after_looks ? job->due_at : after_looks) + preset->spread_ms;
        instant done_at = job->done_at != 0 ? job->done_at : now;
        check(done_at <= latest, "%s, %s, id %d: job %d %s %" PRId64 " s after the return, %" PRId64 " s too late", preset->name, name, id, i,
              job->done_at ? "done" : "not even", (done_at - story->back_at) / 1000, (done_at - latest) / 1000);
    }
}

/*
 * One that is told to wait is to blame only if others are served meanwhile: so there is another after each of its sends.
 * False: it is over.
 */
static bool add_another(struct stage *stage, const struct story *story, int id, int64_t *seen, instant *next)
{
    char name[32];
    struct job job = stage_job(stage, story->jobs[id][0].tenant, story->jobs[id][0].id);
    if (job.state == STATE_DEAD)
        return false;
    if (job.state == STATE_WAITING && job.attempts > *seen) {
        snprintf(name, sizeof name, "%d-%d", JOBS + (int)job.attempts, id);
        stage_add(stage, destination_name(id), "t1", name, "x");
        *seen = job.attempts;
    }
    instant at = job.state == STATE_WAITING && job.run_at > stage->now ? job.run_at : stage->now + 500;
    *next = at < *next ? at : *next;
    return true;
}

static void run_with_others(struct stage *stage, const struct story *story)
{
    int64_t seen[IDS];
    bool open = true;
    memset(seen, 0xff, sizeof seen); /* -1 */
    for (int i = 0; i < 50000 && open; i++) {
        instant next = INSTANT_MAX;
        open = false;
        for (int id = 0; id < IDS; id++)
            open = add_another(stage, story, id, &seen[id], &next) || open;
        if (open)
            stage_run_until(stage, next);
    }
}

static int64_t left(struct stage *stage)
{
    int64_t count = 0;
    for (int id = 0; id < IDS; id++) {
        struct lane_counts counts = stage_counts(stage, destination_name(id));
        count += counts.waiting + counts.pending;
    }
    return count;
}

static void nobody_stops_the_others(void **state)
{
    (void)state;
    static struct story story;
    for (size_t p = 0; p < COUNT_OF(presets); p++)
        for (enum kind kind = ONE; kind < KINDS; kind++) {
            struct stage stage;
            story_begin(&story, &stage, &presets[p], kind);
            stage_run_until(&stage, story.back_at + 200); /* what was under way then has failed by now */
            note_due(&story, &stage);
            if (kind == WAITS)
                run_with_others(&stage, &story);
            for (int i = 0; i < 20 * 24 * 2 && left(&stage) > 0; i++) /* bad ones alone are looked at ever more seldom: each look uses one up */
                stage_run_for(&stage, 30 * MINUTE_MS);
            for (int id = 0; id < IDS; id++)
                check_story(&story, id, stage.now);
            check(left(&stage) == 0, "%s, %s: %" PRId64 " are left", presets[p].name, kinds[kind], left(&stage));
            stage_end(&stage);
        }
}

/* ---- told to wait, and nobody else is there ---- */

struct lonely {
    const char *code;
    size_t sends;
    instant last_at;
    int64_t shortest_ms; /* between two of the last three hours */
};

static int64_t tells_one_to_wait(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct lonely *lonely = stage->context;
    (void)send;
    if (lonely->sends++ > 0 && stage->now > began + 6 * HOUR_MS && stage->now - lonely->last_at < lonely->shortest_ms)
        lonely->shortest_ms = stage->now - lonely->last_at;
    lonely->last_at = stage->now;
    answer->code = slice_from(lonely->code);
    answer->query = QUERY_ABSENT;
    return 50;
}

/*
 * A-20 C-69: whether the job is bad or the destination away cannot be known then. So it spends nothing, however often it is
 * sent, which is no more often than its longest wait, or ten intervals between looks; and its deadline ends it.
 */
static void a_job_alone_that_is_told_to_wait_spends_nothing(void **state)
{
    (void)state;
    for (size_t p = 0; p < COUNT_OF(presets); p++) {
        struct lonely lonely = { .code = presets[p].wait_code, .shortest_ms = DAY_MS };
        struct stage stage = { .destination = tells_one_to_wait, .context = &lonely };
        char yaml[1024];
        snprintf(yaml, sizeof yaml, "destinations: { d: { %s } }\n", presets[p].settings);
        stage_begin(&stage, yaml, began);
        const struct retry_policy *retry = &config_destination(stage.config, SLICE("d"))->policy.retry;
        const struct store_op op = { .kind = OP_INSERT,
                                     .insert = { .destination = SLICE("d"), .tenant = SLICE("t0"), .id = SLICE("CLM-1"), .run_at = INSTANT_NONE,
                                                 .deadline = began + 10 * HOUR_MS, .payload = SLICE("x") } };
        stage_apply(&stage, &op);
        stage_run_until(&stage, began + 9 * HOUR_MS);
        struct job job = stage_job(&stage, "t0", "CLM-1");
        int64_t seldom = (int64_t)((double)retry->cap_ms * (1 - retry->jitter));
        check(job.state == STATE_WAITING && job.retry_count == 0, "%s: %s, %" PRId64 " retries", presets[p].name,
              job_state_name(job.state), job.retry_count);
        check(lonely.shortest_ms >= seldom || lonely.shortest_ms >= presets[p].look_ms, "%s: sent again after %" PRId64 " s",
              presets[p].name, lonely.shortest_ms / 1000);
        stage_run_until(&stage, began + 12 * HOUR_MS);
        job = stage_job(&stage, "t0", "CLM-1");
        check(job.state == STATE_DEAD && slice_equal(job.dead_code, SLICE("EXPIRED")), "%s: %s", presets[p].name, job_state_name(job.state));
        stage_end(&stage);
    }
}

static int64_t away_for_three_hours(struct stage *stage, const struct send *send, struct answer *answer)
{
    (void)send;
    if (stage->now < began + 3 * HOUR_MS) {
        answer->code = stage->send_count % 2 ? SLICE("curl:7") : SLICE("http:503");
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
        struct stage stage = { .destination = away_for_three_hours };
        stage_begin(&stage, "destinations: { d: { preset: provisioning, " HTTP " } }\n", began);
        for (int job = 0; job < counts[i]; job++)
            stage_add(&stage, "d", job % 2 ? "A" : "B", NULL, "x");
        stage_run_until(&stage, began + 3 * HOUR_MS);
        assert_int_equal(stage_counts(&stage, "d").dead, 0);
        stage_run_for(&stage, 25 * MINUTE_MS); /* two looks at their longest interval, and the way back */
        assert_int_equal(stage_counts(&stage, "d").completed, counts[i]);
        stage_end(&stage);
    }
}

/* What each of the tenants is told. */
struct wishes {
    int64_t ms[3]; /* of A, B, C; 0: all is well */
};

static int64_t tells_to_wait(struct stage *stage, const struct send *send, struct answer *answer)
{
    const struct wishes *wishes = stage->context;
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
    struct stage stage = { .destination = tells_to_wait, .context = &wishes };
    stage_begin(&stage, "destinations: { d: { preset: http, " HTTP " } }\n", began);
    for (int i = 0; i < 3; i++) {
        stage_add(&stage, "d", "B", NULL, "x");
        stage_add(&stage, "d", "A", NULL, "x");
    }
    stage_run_for(&stage, SECOND_MS);
    stage_add(&stage, "d", "A", "late", "x");
    stage_add(&stage, "d", "B", NULL, "x");
    stage_run_for(&stage, MINUTE_MS);
    struct lane_counts counts = stage_counts(&stage, "d");
    assert_int_equal(counts.completed, 4); /* all of B's */
    assert_int_equal(stage_job(&stage, "A", "late").attempts, 0);
    assert_null(status_of(&stage).held_by); /* although A was alone for a moment */
    wishes.ms[0] = 0;
    stage_run_for(&stage, 61 * MINUTE_MS);
    assert_int_equal(stage_job(&stage, "A", "late").state, STATE_COMPLETED); /* retry_after_max: an hour */
    stage_run_for(&stage, 61 * MINUTE_MS);
    wishes = (struct wishes){ { 30 * SECOND_MS, 60 * SECOND_MS, 0 } };
    stage_add(&stage, "d", "C", "scheduled", "x");
    stage_run_for(&stage, SECOND_MS);
    stage_add(&stage, "d", "A", NULL, "x");
    stage_add(&stage, "d", "B", NULL, "x");
    stage_run_for(&stage, SECOND_MS);
    assert_string_equal(status_of(&stage).held_by, "throttle");
    assert_in_range(status_of(&stage).held_until - stage.now, 55 * SECOND_MS, 60 * SECOND_MS); /* the longer one */
    stage_end(&stage);
}

static int64_t lane_of(struct stage *stage, const char *tenant, const char *id)
{
    return stage_job(stage, tenant, id).lane;
}

/* Kept with the store, whether others had work then or not, and also of a tenant that has none for long. */
static void a_wish_outlives_the_process(void **state)
{
    (void)state;
    for (int others = 0; others < 2; others++)
        for (int order = 0; order < 2; order++) {
            struct wishes wishes = { { 50 * MINUTE_MS, 0, 0 } };
            struct stage stage = { .destination = tells_to_wait, .context = &wishes };
            stage_begin(&stage, "destinations: { d: { preset: http, " HTTP ", retry: { max_retries: 0 } } }\n", began);
            stage_add(&stage, "d", "A", "told", "x");
            for (int i = 0; i < 3 * others; i++)
                stage_add(&stage, "d", "B", NULL, "x");
            stage_run_for(&stage, MINUTE_MS);
            assert_int_equal(stage_job(&stage, "A", "told").state, STATE_DEAD);
            stage_apply(&stage, &(struct store_op){ .kind = OP_PURGE, .job = { .tenant = SLICE("A"), .id = SLICE("told") } });
            if (order)
                stage_restart(&stage);
            else
                stage_crash(&stage);
            stage_run_for(&stage, 25 * MINUTE_MS); /* one without work is forgotten after 15 */
            stage_add(&stage, "d", "A", "later", "x");
            stage_add(&stage, "d", "B", "other", "x");
            wishes.ms[0] = 0;
            stage_run_for(&stage, 20 * MINUTE_MS);
            assert_int_equal(stage_job(&stage, "A", "later").state, STATE_PENDING);
            assert_int_equal(stage_job(&stage, "B", "other").state, STATE_COMPLETED);
            struct queue_place place = engine_place(stage.engine, lane_of(&stage, "A", "later"), 0, stage.now);
            assert_in_range(place.asked_until - began, 50 * MINUTE_MS, 51 * MINUTE_MS);
            assert_int_equal(place.at, place.asked_until);
            stage_run_for(&stage, 6 * MINUTE_MS);
            assert_int_equal(stage_job(&stage, "A", "later").state, STATE_COMPLETED);
            stage_end(&stage);
        }
}

/* The destination's hold, since two were told; an operator who resumes it ends the wish. */
static void all_wait_over_a_restart_until_somebody_resumes(void **state)
{
    (void)state;
    struct wishes wishes = { { 50 * MINUTE_MS, 50 * MINUTE_MS, 0 } };
    struct stage stage = { .destination = tells_to_wait, .context = &wishes };
    struct error error;
    stage_begin(&stage, "destinations: { d: { preset: http, " HTTP " } }\n", began);
    stage_add(&stage, "d", "A", NULL, "x");
    stage_add(&stage, "d", "B", NULL, "x");
    stage_run_for(&stage, MINUTE_MS);
    stage_crash(&stage);
    stage_add(&stage, "d", "C", "other", "x");
    stage_run_for(&stage, MINUTE_MS);
    assert_string_equal(status_of(&stage).held_by, "throttle");
    assert_int_equal(stage_job(&stage, "C", "other").attempts, 0);
    assert_int_equal(engine_pause(stage.engine, SLICE("d"), SLICE(""), &error), STATUS_OK);
    assert_int_equal(engine_resume(stage.engine, SLICE("d"), &error), STATUS_OK);
    stage_run_for(&stage, MINUTE_MS);
    assert_int_equal(stage_job(&stage, "C", "other").state, STATE_COMPLETED);
    stage_end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_stops_the_others),
        cmocka_unit_test(a_job_alone_that_is_told_to_wait_spends_nothing),
        cmocka_unit_test(an_outage_exhausts_no_item),
        cmocka_unit_test(a_wish_is_the_tenants),
        cmocka_unit_test(a_wish_outlives_the_process),
        cmocka_unit_test(all_wait_over_a_restart_until_somebody_resumes),
    };
    log_set_level(LOG_NONE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
