/*
 * Fairness through the engine, with more jobs and tenants than a store of a test should hold: lanes are
 * numbers here, and a claim makes its jobs on the spot. The engine, its turns and its gates are the real ones.
 */
#include "base/units.h"
#include "engine/engine.h"
#include "engine/orders.h"
#include "engine/status.h"
#include "store/memory/memory.h"
#include "support/configs.h"

#include <stdio.h>
#include <stdlib.h>

enum { LANES_MAX = 1001, SENDS_MAX = 256, ARRIVALS_MAX = 64, BATCHES_MAX = 8, STEPS_MAX = 20000000 };

static const instant began = INT64_C(1736678400000);

struct lane_model {
    char tenant[16];
    int64_t ready;                 /* jobs that can be claimed */
    int64_t claimed, sent;         /* in all */
    instant arrivals[ARRIVALS_MAX]; /* of those that are watched: a ring */
    size_t arrived, answered;
};

struct batch_model {
    struct batch *batch;
    instant at;
};

struct send_model {
    struct send *send;
    instant at;
};

/* A destination "d" and those who want something of it. */
struct crowd {
    const char *more; /* YAML beside the destination; NULL: none */
    struct config *config;
    struct store *store; /* empty: the engine reads no lanes and no states from it */
    struct store_reader *reader;
    struct engine *engine;
    instant now, wake_at;
    struct batch_model batches[BATCHES_MAX]; /* in order */
    size_t batch_count;
    int64_t commit_ms;
    struct send_model sends[SENDS_MAX];
    size_t send_count;
    struct lane_model lanes[LANES_MAX]; /* by id: from 1 */
    int64_t seq;
    int64_t dispatched; /* jobs in claims, in the order of the turns */
    int64_t sent;
    int64_t service_ms, spread_ms;
    struct random random;
    int64_t *waits; /* of watched jobs, arrival to answer; NULL: not wanted */
    size_t wait_count, wait_max;
    /* Called for each claim, when the engine has decided on it. */
    void (*on_claim)(struct crowd *crowd, int64_t lane, int64_t count);
    void *context;
};

static instant port_now(void *context)
{
    return ((struct crowd *)context)->now;
}

static void port_wake_at(void *context, instant at)
{
    struct crowd *crowd = context;
    if (crowd->wake_at == INSTANT_NONE || at < crowd->wake_at)
        crowd->wake_at = at;
}

static void port_submit(void *context, struct batch *batch)
{
    struct crowd *crowd = context;
    for (size_t i = 0; i < batch->count; i++) {
        const struct op_claim *claim = &batch->ops[i].claim;
        if (batch->ops[i].kind != OP_CLAIM)
            continue;
        if (crowd->on_claim)
            crowd->on_claim(crowd, claim->lane, (int64_t)claim->max);
        crowd->dispatched += (int64_t)claim->max;
        crowd->lanes[claim->lane].claimed += (int64_t)claim->max;
    }
    check(crowd->batch_count < BATCHES_MAX, "too many batches at once");
    crowd->batches[crowd->batch_count++] = (struct batch_model){ batch, crowd->now + crowd->commit_ms };
}

static void port_send(void *context, struct send *send)
{
    struct crowd *crowd = context;
    int64_t spread = crowd->spread_ms > 0 ? (int64_t)random_below(&crowd->random, (size_t)crowd->spread_ms + 1) : 0;
    check(crowd->send_count < SENDS_MAX, "too many sends at once");
    crowd->lanes[send->job->lane].sent++;
    crowd->sent++;
    crowd->sends[crowd->send_count++] = (struct send_model){ send, crowd->now + crowd->service_ms + spread };
}

static void crowd_begin(struct crowd *crowd, const char *settings, size_t tenants)
{
    struct error error;
    struct store_settings store = { .sync_always = true };
    char yaml[512];
    snprintf(yaml, sizeof yaml, "destinations: { d: { url: 'https://a.example/', %s } }\n%s", settings,
             crowd->more ? crowd->more : "");
    crowd->config = config_from(slice_from(yaml), "test.yaml");
    crowd->now = began;
    crowd->wake_at = INSTANT_NONE;
    crowd->service_ms = 10;
    crowd->random = (struct random){ 7 };
    check(tenants < LANES_MAX, "%zu tenants", tenants);
    for (size_t i = 1; i <= tenants; i++)
        snprintf(crowd->lanes[i].tenant, sizeof crowd->lanes[i].tenant, "t%zu", i);
    assert_int_equal(store_memory_open(SLICE(""), &store, &crowd->store, &error), STATUS_OK);
    assert_int_equal(crowd->store->ops->reader(crowd->store, &crowd->reader, &error), STATUS_OK);
    struct engine_settings engine = {
        .ports = { .context = crowd, .now = port_now, .submit = port_submit, .send = port_send, .wake_at = port_wake_at },
        .config = crowd->config,
        .seed = 7,
    };
    assert_int_equal(engine_new(&engine, &crowd->engine, &error), STATUS_OK);
    assert_int_equal(engine_start(crowd->engine, crowd->reader, &error), STATUS_OK);
}

/* Jobs of one tenant arrive, as the writer would tell it. */
static void crowd_add(struct crowd *crowd, int64_t lane, int64_t count, bool watched)
{
    struct lane_model *model = &crowd->lanes[lane];
    struct notice *notice = calloc(1, sizeof *notice);
    assert_non_null(notice);
    arena_init(&notice->memory, 1 << 20);
    notice->lanes = arena_alloc_array(&notice->memory, 1, sizeof *notice->lanes);
    notice->count = 1;
    notice->lanes[0] = (struct lane_notice){ .lane = lane, .destination = SLICE("d"), .tenant = slice_from(model->tenant),
                                             .ready = count, .next_at = INSTANT_NONE };
    model->ready += count;
    if (watched) {
        check(model->arrived - model->answered < ARRIVALS_MAX, "too many jobs of tenant %s are watched", model->tenant);
        model->arrivals[model->arrived++ % ARRIVALS_MAX] = crowd->now;
    }
    engine_notice(crowd->engine, notice);
}

static void claim(struct crowd *crowd, struct op_claim *claim, struct arena *memory)
{
    struct lane_model *lane = &crowd->lanes[claim->lane];
    size_t count = (int64_t)claim->max < lane->ready ? claim->max : (size_t)lane->ready;
    claim->ret_jobs = arena_alloc_array(memory, count + 1, sizeof *claim->ret_jobs);
    assert_non_null(claim->ret_jobs);
    claim->ret_count = count;
    lane->ready -= (int64_t)count;
    for (size_t i = 0; i < count; i++)
        claim->ret_jobs[i] = (struct job){
            .seq = ++crowd->seq, .lane = claim->lane, .destination = SLICE("d"), .tenant = slice_from(lane->tenant),
            .id = SLICE("j"), .state = STATE_RUNNING, .priority = PRIORITY_NORMAL, .generation = 1, .attempts = 1,
            .created_at = crowd->now, .first_at = crowd->now, .run_at = crowd->now, .deadline = INSTANT_NONE,
            .lease_token = 1, .lease_until = claim->lease_until,
        };
}

static void apply_first(struct crowd *crowd)
{
    struct batch *batch = crowd->batches[0].batch;
    memmove(crowd->batches, crowd->batches + 1, --crowd->batch_count * sizeof *crowd->batches);
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->ops[i].kind == OP_CLAIM)
            claim(crowd, &batch->ops[i].claim, &batch->memory);
        else if (batch->ops[i].kind == OP_PROMOTE)
            batch->ops[i].promote.ret_next_at = INSTANT_NONE;
    }
    batch->done(batch);
}

static size_t earliest(const struct crowd *crowd)
{
    size_t first = 0;
    for (size_t i = 1; i < crowd->send_count; i++)
        if (crowd->sends[i].at < crowd->sends[first].at)
            first = i;
    return first;
}

static void answer_first(struct crowd *crowd)
{
    size_t first = earliest(crowd);
    struct send_model done = crowd->sends[first];
    struct lane_model *lane = &crowd->lanes[done.send->job->lane];
    const struct answer answer = { .attempted = true, .outcome = OUTCOME_DELIVERED, .duration_ms = crowd->service_ms,
                                   .retry_after_ms = -1 };
    crowd->sends[first] = crowd->sends[--crowd->send_count];
    if (lane->answered < lane->arrived) {
        int64_t wait = crowd->now - lane->arrivals[lane->answered++ % ARRIVALS_MAX];
        if (crowd->wait_count < crowd->wait_max)
            crowd->waits[crowd->wait_count++] = wait;
    }
    done.send->done(done.send, &answer);
}

/* Lets one thing happen that is due by `until`; false: nothing is, and it is `until`. */
static bool crowd_step(struct crowd *crowd, instant until)
{
    instant apply_at = crowd->batch_count > 0 ? crowd->batches[0].at : INSTANT_MAX;
    instant answer_at = crowd->send_count > 0 ? crowd->sends[earliest(crowd)].at : INSTANT_MAX;
    instant wake_at = crowd->wake_at != INSTANT_NONE ? crowd->wake_at : INSTANT_MAX;
    instant next = answer_at < wake_at ? answer_at : wake_at;
    next = apply_at < next ? apply_at : next;
    if (next > until) {
        crowd->now = until;
        return false;
    }
    crowd->now = next > crowd->now ? next : crowd->now;
    if (apply_at <= next) {
        apply_first(crowd);
    } else if (answer_at <= wake_at) {
        answer_first(crowd);
    } else {
        crowd->wake_at = INSTANT_NONE;
        engine_run(crowd->engine);
    }
    return true;
}

static void crowd_run_until(struct crowd *crowd, instant until)
{
    for (int i = 0; crowd_step(crowd, until); i++)
        check(i < STEPS_MAX, "it does not end");
}

static void crowd_end(struct crowd *crowd)
{
    engine_stop(crowd->engine);
    for (int i = 0; engine_under_way(crowd->engine) > 0; i++) {
        check(i < 1000, "it does not stop");
        crowd_run_until(crowd, crowd->now + 1000);
    }
    engine_free(crowd->engine);
    crowd->reader->ops->reader_close(crowd->reader);
    crowd->store->ops->close(crowd->store);
    config_unref(crowd->config);
}

static struct crowd *crowd_new(void)
{
    struct crowd *crowd = calloc(1, sizeof *crowd);
    assert_non_null(crowd);
    return crowd;
}

/* ---- one beside a million ---- */

struct arrival_watch {
    int64_t arrived_after; /* dispatches until it came */
    int64_t waited;        /* dispatches until it was claimed, itself included; 0: not yet */
};

static void watch_second(struct crowd *crowd, int64_t lane, int64_t count)
{
    struct arrival_watch *watch = crowd->context;
    (void)count;
    if (lane == 2 && watch->waited == 0)
        watch->waited = crowd->dispatched + 1 - watch->arrived_after;
}

/* A-17 C-45: whatever the moment at which it comes, one job is among the next three. */
static void one_job_beside_a_million(void **state)
{
    static const char *const settings[] = {
        "concurrency: 1, fairness: { batch: 3 }",
        "concurrency: 10, fairness: { batch: 3 }",
        "concurrency: 100, fairness: { batch: 3 }",
        "concurrency: 10, fairness: { batch: 1 }",
    };
    (void)state;
    for (size_t row = 0; row < COUNT_OF(settings); row++) {
        struct crowd *crowd = crowd_new();
        struct arrival_watch watch = { 0 };
        crowd->on_claim = watch_second;
        crowd->context = &watch;
        crowd_begin(crowd, settings[row], 2);
        crowd->spread_ms = 7;
        crowd_add(crowd, 1, 1000000, false);
        crowd_run_until(crowd, began + 5 * 1000); /* when the limit of concurrency is found */
        for (int i = 0; i < 300; i++) {
            int steps = (int)random_below(&crowd->random, 200);
            while (steps-- > 0) /* also between a claim and its commit, an answer and its settlement */
                crowd_step(crowd, INSTANT_MAX - 1);
            watch = (struct arrival_watch){ .arrived_after = crowd->dispatched };
            crowd_add(crowd, 2, 1, false);
            for (int j = 0; watch.waited == 0; j++) {
                check(j < 100000, "%s: arrival %d is never served", settings[row], i);
                crowd_step(crowd, INSTANT_MAX - 1);
            }
            check(watch.waited <= 3, "%s: arrival %d was dispatch %lld after it came", settings[row], i,
                  (long long)watch.waited);
        }
        check(crowd->lanes[1].ready > 500000, "%s: the backlog is gone", settings[row]);
        crowd_end(crowd);
        free(crowd);
    }
}

/*
 * The same where commits take as long as sends, so that claims are made ahead. Once its own claim is durable, a turn of the
 * other and what has a slot already are sent before it, not all that is claimed.
 */
static void one_job_beside_claims_made_ahead(void **state)
{
    struct crowd *crowd = crowd_new();
    struct error error;
    (void)state;
    crowd_begin(crowd, "concurrency: 10, in_doubt: resend, fairness: { batch: 3 }", 2);
    crowd->service_ms = 4;
    crowd->spread_ms = 4;
    crowd->commit_ms = 6;
    crowd_add(crowd, 1, 1000000, false);
    crowd_run_until(crowd, began + 5 * 1000);
    check(crowd->lanes[1].claimed - crowd->lanes[1].sent > 20, "nothing is claimed ahead");
    for (int i = 0; i < 300; i++) {
        int64_t before = crowd->lanes[2].sent, left;
        crowd_run_until(crowd, crowd->now + (int64_t)random_below(&crowd->random, 50));
        if (i % 3 == 0) { /* after a pause much is claimed at once */
            assert_int_equal(engine_pause(crowd->engine, SLICE("d"), SLICE(""), &error), STATUS_OK);
            crowd_run_until(crowd, crowd->now + 100);
            assert_int_equal(engine_resume(crowd->engine, SLICE("d"), &error), STATUS_OK);
            crowd_run_until(crowd, crowd->now + (int64_t)random_below(&crowd->random, 20));
        }
        crowd_add(crowd, 2, 1, false);
        do
            left = crowd->lanes[2].ready;
        while (left > 0 && crowd_step(crowd, INSTANT_MAX - 1));
        int64_t durable_at = crowd->sent;
        while (crowd->lanes[2].sent == before)
            crowd_step(crowd, INSTANT_MAX - 1);
        check(crowd->sent - durable_at <= 3 + 10, "arrival %d was send %lld after its claim", i,
              (long long)(crowd->sent - durable_at));
    }
    crowd_end(crowd);
    free(crowd);
}

/* ---- a thousand tenants ---- */

static int by_size(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

enum { SMALL_TENANTS = 999, WAITS_MAX = 100000 };

/* Small tenants' jobs at 60% of what the destination bears; the 99th percentile from arrival to answer. */
static int64_t small_wait_p99(bool beside_a_big_one)
{
    struct crowd *crowd = crowd_new();
    struct random random = { 3 };
    crowd_begin(crowd, "concurrency: 10, fairness: { batch: 3 }", SMALL_TENANTS + 1);
    crowd->service_ms = 8;
    crowd->spread_ms = 4; /* 10 at a time, 10 ms each: a thousand a second */
    if (beside_a_big_one)
        crowd_add(crowd, SMALL_TENANTS + 1, 1000000, false);
    crowd->waits = calloc(WAITS_MAX, sizeof *crowd->waits);
    assert_non_null(crowd->waits);
    for (instant at = began; at < began + 60 * 1000; at++) {
        crowd_run_until(crowd, at);
        crowd->wait_max = at < began + 20 * 1000 ? 0 : WAITS_MAX; /* when the limit of concurrency is found */
        if (random_below(&random, 1000) < 600)
            crowd_add(crowd, 1 + (int64_t)random_below(&random, SMALL_TENANTS), 1, true);
    }
    check(crowd->wait_count > 10000, "%zu waits", crowd->wait_count);
    qsort(crowd->waits, crowd->wait_count, sizeof *crowd->waits, by_size);
    int64_t p99 = crowd->waits[crowd->wait_count * 99 / 100];
    crowd_end(crowd);
    free(crowd->waits);
    free(crowd);
    return p99;
}

static void small_tenants_hardly_notice_a_big_one(void **state)
{
    (void)state;
    int64_t alone = small_wait_p99(false), beside = small_wait_p99(true);
    print_message("p99 from arrival to answer: %lld ms alone, %lld ms beside a million jobs\n", (long long)alone,
                  (long long)beside);
    check(beside <= 2 * alone, "%lld ms alone, %lld ms beside", (long long)alone, (long long)beside);
}

/* Jain: 1 when all have the same, 1/n when one has all. */
static double jain(const struct crowd *crowd, size_t tenants)
{
    double sum = 0, squares = 0;
    for (size_t i = 1; i <= tenants; i++) {
        double sent = (double)crowd->lanes[i].sent;
        sum += sent;
        squares += sent * sent;
    }
    return sum * sum / ((double)tenants * squares);
}

static void equals_get_the_same(void **state)
{
    enum { TENANTS = 1000 };
    struct crowd *crowd = crowd_new();
    struct random random = { 5 };
    (void)state;
    crowd_begin(crowd, "concurrency: 20, fairness: { batch: 3 }", TENANTS);
    crowd->spread_ms = 20;
    for (int64_t i = 1; i <= TENANTS; i++) /* equal is what they are due, not what they have waiting */
        crowd_add(crowd, i, 1000 + (int64_t)random_below(&random, 100000), false);
    crowd_run_until(crowd, began + 60 * 1000);
    check(crowd->dispatched > 20 * TENANTS, "%lld dispatches", (long long)crowd->dispatched);
    double index = jain(crowd, TENANTS);
    print_message("Jain's index of %d equal tenants after %lld dispatches: %.5f\n", TENANTS, (long long)crowd->dispatched,
                  index);
    check(index >= 0.99, "%f", index);
    crowd_end(crowd);
    free(crowd);
}

/* S2-125: two tenants in gold, one with a weight of its own, two without any. */
static void a_tier_has_its_share(void **state)
{
    static const struct {
        int64_t lane, share; /* of 4 + 4 + 2 + 1 + 1 */
    } rows[] = { { 1, 4 }, { 2, 4 }, { 3, 2 }, { 4, 1 }, { 5, 1 } };
    struct crowd *crowd = crowd_new();
    (void)state;
    crowd->more = "tiers: { gold: [t1, t2] }\n";
    crowd_begin(crowd, "concurrency: 4, fairness: { batch: 3, weights: { gold: 4, t3: 2 } }", COUNT_OF(rows));
    for (int64_t i = 1; i <= (int64_t)COUNT_OF(rows); i++)
        crowd_add(crowd, i, 100000, false);
    crowd_run_until(crowd, began + 60 * 1000);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        int64_t due = crowd->dispatched * rows[i].share / 12, got = crowd->lanes[rows[i].lane].claimed;
        check(got >= due - 12 && got <= due + 12, "tenant %s: %lld of %lld, due were %lld", crowd->lanes[i + 1].tenant,
              (long long)got, (long long)crowd->dispatched, (long long)due);
    }

    /* A reload that takes t2 out of the tier counts at once. */
    struct error error;
    struct config *other = config_from(SLICE("tiers: { gold: [t1] }\ndestinations: { d: { url: 'https://a.example/', "
                                             "concurrency: 4, fairness: { weights: { gold: 4 } } } }\n"),
                                       "test.yaml");
    assert_int_equal(engine_reload(crowd->engine, other, &error), STATUS_OK);
    int64_t gold = crowd->lanes[1].claimed, second = crowd->lanes[2].claimed;
    crowd_run_until(crowd, crowd->now + 60 * 1000);
    gold = crowd->lanes[1].claimed - gold;
    second = crowd->lanes[2].claimed - second;
    check(gold >= 4 * second - 48 && gold <= 4 * second + 48, "%lld and %lld", (long long)gold, (long long)second);
    config_unref(other);
    crowd_end(crowd);
    free(crowd);
}

/* ---- what is foretold ---- */

static const struct {
    const char *name, *settings;
    int64_t service_ms, ahead;
} foretold[] = {
    { "by what was seen", "concurrency: 4, fairness: { batch: 3 }", 1000, 100 },
    { "by what was seen, in the next turn", "concurrency: 4, fairness: { batch: 3 }", 1000, 2 },
    { "with weights", "concurrency: 4, fairness: { batch: 3, weights: { t2: 3, t3: 2 } }", 1000, 100 },
    { "by the rate of all", "concurrency: 4, rate: { total: 60/m }", 100, 50 },
    { "by the rate of a tenant", "concurrency: 4, rate: { per_tenant: 12/m }", 100, 50 },
    { "by the cycle", "concurrency: 10, cycle: { every: 10s, batch: 9 }", 100, 60 },
    { "in the order they came", "concurrency: 4, fairness: { round_robin: false }", 1000, 20 },
};

/* The time that engine_place tells for a job against the time at which it is sent, with no more work coming. */
static void the_time_foretold_is_about_right(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(foretold); i++) {
        struct crowd *crowd = crowd_new();
        crowd_begin(crowd, foretold[i].settings, 3);
        crowd->service_ms = foretold[i].service_ms;
        crowd_add(crowd, 2, 400, false);
        crowd_add(crowd, 3, 40, false);
        crowd_add(crowd, 1, 400, false);
        crowd_run_until(crowd, began + 20 * 1000);
        int64_t sent = crowd->lanes[1].sent;
        instant asked = crowd->now;
        struct queue_place place = engine_place(crowd->engine, 1, foretold[i].ahead, INSTANT_NONE);
        check(place.known && place.at != INSTANT_NONE && place.tenants >= 2, "%s", foretold[i].name);
        while (crowd->lanes[1].sent < sent + foretold[i].ahead + 1)
            crowd_step(crowd, INSTANT_MAX - 1);
        int64_t reported = place.at - asked, took = crowd->now - asked;
        print_message("%s: told %lld ms, took %lld ms\n", foretold[i].name, (long long)reported, (long long)took);
        check(reported <= took * 5 / 4 + 5000 && reported >= took * 3 / 4 - 5000, "%s: told %lld ms, took %lld ms", foretold[i].name,
              (long long)reported, (long long)took);
        crowd_end(crowd);
        free(crowd);
    }
}

/* Nothing is told where nothing is known. */
static void what_nobody_knows_is_not_foretold(void **state)
{
    struct crowd *crowd = crowd_new();
    struct error error;
    (void)state;
    crowd_begin(crowd, "concurrency: 1", 2);
    crowd_add(crowd, 1, 10, false);
    assert_true(engine_place(crowd->engine, 1, 5, INSTANT_NONE).at == INSTANT_NONE); /* no send was ever answered */
    assert_int_equal(engine_place(crowd->engine, 1, -1, INSTANT_NONE).before, 9);     /* all but itself */
    assert_false(engine_place(crowd->engine, 99, 0, INSTANT_NONE).known);
    assert_false(engine_tenant(crowd->engine, 99).known);
    crowd_run_until(crowd, began + 15);
    assert_true(engine_place(crowd->engine, 1, 5, INSTANT_NONE).at > crowd->now);
    assert_int_equal(engine_place(crowd->engine, 1, 5, began + DAY_MS).at, began + DAY_MS); /* not before its time */
    assert_int_equal(engine_pause(crowd->engine, SLICE("d"), SLICE(""), &error), STATUS_OK);
    assert_true(engine_place(crowd->engine, 1, 5, INSTANT_NONE).at == INSTANT_NONE);
    assert_int_equal(engine_resume(crowd->engine, SLICE("d"), &error), STATUS_OK);
    assert_int_equal(engine_enter_contingency(crowd->engine, SLICE("d"), SLICE(""), &error), STATUS_OK);
    assert_true(engine_place(crowd->engine, 1, 5, INSTANT_NONE).at == INSTANT_NONE);
    crowd_end(crowd);
    free(crowd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_job_beside_a_million),
        cmocka_unit_test(one_job_beside_claims_made_ahead),
        cmocka_unit_test(small_tenants_hardly_notice_a_big_one),
        cmocka_unit_test(equals_get_the_same),
        cmocka_unit_test(a_tier_has_its_share),
        cmocka_unit_test(the_time_foretold_is_about_right),
        cmocka_unit_test(what_nobody_knows_is_not_foretold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
