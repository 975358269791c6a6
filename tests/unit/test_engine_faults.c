/*
 * The engine in worlds where everything goes wrong at random: answers of every kind, crashes between any two steps,
 * a store that refuses, reloads, pauses. In the end, with all well again, every job has one end and no promise was
 * broken on the way.
 *
 * INSIST_SEED=n plays one world alone; INSIST_SEEDS=n plays that many.
 */
#include "base/log.h"
#include "engine/orders.h"
#include "engine/status.h"
#include "support/check.h"
#include "support/configs.h"
#include "support/stage.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SANITIZE_THREAD__
enum { SEEDS = 40 }; /* one thread: there is little to find, and it is slow */
#elif defined __SANITIZE_ADDRESS__
enum { SEEDS = 80 }; /* eight times as slow, and the worlds run the same code with it; the plain program plays all */
#else
enum { SEEDS = 250 };
#endif

enum {
    JOBS_MAX = 400,
    STEPS = 400,
    TENANTS = 7,
    RETRIES = 3,
    CONCURRENCY_MAX = 6,
    FINALE_ROUNDS = 30,
    PAGE = 500,
    TURN_SEEDS = 40,
};

static const instant began = (instant)1736678400 * 1000;

#define RETRY "retry: { max_retries: 3, base: 1s, factor: 2, floor: 0s, cap: 10s, jitter: 0.2, throttle_min: 2s }, " \
              "dead: { ttl: 90d, max: 1000000 }, timeout: 20s"
#define A(limit, batch) "  a: { url: 'https://a.example/', in_doubt: resend, concurrency: " #limit \
                        ", fairness: { round_robin: true, batch: " #batch " }, " RETRY " }\n"
#define B(limit) "  b: { url: 'https://b.example/', in_doubt: verify, concurrency: " #limit ", " RETRY ", " \
                 "verify: { url: 'https://b.example/{id}', after: 5s, every: 2s, times: 3 }, " \
                 "poll: { url: 'https://b.example/{id}', after: 3s, every: 3s, times: 4 } }\n"
#define C(limit) "  c: { url: 'https://c.example/', in_doubt: park, job_ttl: 10m, concurrency: " #limit ", " RETRY " }\n"
/* The same with limits that come and go. */
#define C_SLOWLY "  c: { url: 'https://c.example/', in_doubt: park, job_ttl: 10m, concurrency: 3, cycle: { every: 1s, batch: 5 }, " \
                 "rate: { total: 5/s, per_tenant: 60/m }, fairness: { weights: { t1: 3 } }, " RETRY " }\n"
#define FILE_OF(more) "retention: { completed: 90d, audit: 3650d }\ndestinations:\n" more

/* The first is whole; each can be put in the place of another while jobs are under way. */
static const char *const files[] = {
    FILE_OF(A(4, 2) B(3) C(2)),
    FILE_OF(A(1, 1) B(6) C_SLOWLY),
    FILE_OF(A(6, 5) B(1)), /* c is gone */
    FILE_OF(B(2) C(4)),    /* a is gone */
};
static const char *const destinations[] = { "a", "b", "c" };

struct reported {
    size_t sends;      /* requests that carried the job */
    size_t spending;   /* those that must have spent an attempt */
    instant busy_until; /* of the request under way */
    int busy_epoch;
    int delivered_epoch; /* when the destination last said that it has it; -1: never */
    bool may_complete;
};

/* A pause of one destination, and whether it was acknowledged. */
struct order {
    struct saved_wait wait;
    bool waits;
    bool stands;   /* nobody has resumed it since */
    bool promised; /* it was acknowledged */
};

struct chaos {
    struct stage stage; /* its context points back here */
    struct random random;
    uint64_t seed;
    bool healthy; /* the finale */
    int epoch;    /* crashes so far */
    int jobs;
    struct reported reported[JOBS_MAX];
    struct order orders[3]; /* by destination */
};

static size_t below(struct chaos *chaos, size_t bound)
{
    return random_below(&chaos->random, bound);
}

static size_t under_way_at(const struct stage *stage, struct slice destination)
{
    size_t count = 0;
    for (const struct stage_send *send = stage->sends; send; send = send->next)
        count += slice_equal(send->send->job->destination, destination);
    return count;
}

/* How a question is answered. */
static void answer_query(struct chaos *chaos, struct reported *reported, struct answer *answer)
{
    static const enum query_answer answers[] = { QUERY_UNCLEAR, QUERY_DELIVERED, QUERY_ABSENT, QUERY_PENDING, QUERY_REJECTED };
    answer->query = chaos->healthy ? QUERY_DELIVERED : answers[below(chaos, sizeof answers / sizeof *answers)];
    answer->text = SLICE("HTTP 200: a word about it");
    answer->attempted = chaos->healthy || below(chaos, 10) > 0;
    reported->may_complete = reported->may_complete || answer->query == QUERY_DELIVERED;
}

static void answer_send(struct chaos *chaos, struct reported *reported, struct answer *answer)
{
    static const enum outcome outcomes[] = {
        OUTCOME_DELIVERED, OUTCOME_DELIVERED, OUTCOME_DELIVERED, OUTCOME_DELIVERED, OUTCOME_TRANSIENT, OUTCOME_TRANSIENT,
        OUTCOME_ACCEPTED,  OUTCOME_THROTTLED, OUTCOME_WAIT,      OUTCOME_IN_DOUBT,  OUTCOME_DUPLICATE, OUTCOME_PERMANENT,
        OUTCOME_PARTIAL,   OUTCOME_BLOCKED,   OUTCOME_NONE,
    };
    answer->outcome = chaos->healthy ? OUTCOME_DELIVERED : outcomes[below(chaos, sizeof outcomes / sizeof *outcomes)];
    if (answer->outcome == OUTCOME_BLOCKED && below(chaos, 4) > 0)
        answer->outcome = OUTCOME_WAIT; /* a pause stops everything: not too often */
    answer->attempted = chaos->healthy || below(chaos, 20) > 0;
    answer->code = SLICE("http:500");
    answer->text = answer->outcome == OUTCOME_DELIVERED ? SLICE("") : SLICE("HTTP 500: of 529.982.247-25");
    if (!chaos->healthy && below(chaos, 8) == 0) {
        answer->retry_after_ms = (int64_t)below(chaos, 30000);
        answer->slow_all = below(chaos, 2) == 0;
    }
    if (answer->attempted && answer->outcome == OUTCOME_DELIVERED)
        reported->delivered_epoch = chaos->epoch;
    if (answer->attempted && answer->outcome != OUTCOME_WAIT && answer->outcome != OUTCOME_BLOCKED)
        reported->spending++;
    reported->may_complete = reported->may_complete || answer->outcome == OUTCOME_DELIVERED || answer->outcome == OUTCOME_ACCEPTED ||
                         answer->outcome == OUTCOME_DUPLICATE;
}

/* The destination: watches that no promise is broken, and answers. */
static int64_t destination(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct chaos *chaos = stage->context;
    int number = atoi(send->job->id.data + 1);
    struct reported *reported = &chaos->reported[number];
    bool sends = send->job->step == STEP_SEND;
    check(number >= 0 && number < chaos->jobs, "seed %" PRIu64 ": job %d never was", chaos->seed, number);
    check(reported->busy_epoch != chaos->epoch || stage->now >= reported->busy_until, "seed %" PRIu64 ": job %d is sent twice at once",
          chaos->seed, number);
    check(!sends || reported->delivered_epoch != chaos->epoch, "seed %" PRIu64 ": job %d is sent again after its delivery",
          chaos->seed, number);
    check(under_way_at(stage, send->job->destination) < CONCURRENCY_MAX, "seed %" PRIu64 ": too many under way", chaos->seed);
    /* Some take longer than their timeout, and longer than their lease. */
    int64_t takes = chaos->healthy ? 10 : (int64_t)below(chaos, below(chaos, 50) == 0 ? 200000 : 3000);
    reported->sends += sends;
    reported->busy_until = stage->now + takes;
    reported->busy_epoch = chaos->epoch;
    if (sends)
        answer_send(chaos, reported, answer);
    else
        answer_query(chaos, reported, answer);
    check(reported->spending <= RETRIES + 1, "seed %" PRIu64 ": job %d is sent for the %zuth time", chaos->seed, number,
          reported->spending);
    return takes;
}

static void add_jobs(struct chaos *chaos)
{
    for (size_t i = 1 + below(chaos, 10); i > 0 && chaos->jobs < JOBS_MAX && !chaos->stage.fail_applies; i--) {
        const char *to = destinations[below(chaos, 3)];
        char tenant[8], id[16];
        if (!config_destination(chaos->stage.config, slice_from(to)))
            continue; /* the API would refuse it */
        snprintf(tenant, sizeof tenant, "t%zu", below(chaos, TENANTS));
        snprintf(id, sizeof id, "j%d", chaos->jobs);
        chaos->reported[chaos->jobs] = (struct reported){ .busy_epoch = -1, .delivered_epoch = -1 };
        chaos->jobs++;
        stage_add(&chaos->stage, to, tenant, id, "x");
    }
}

/* What was on its way to the store has arrived there, but nobody lives to hear of it. */
static void commit_unheard(struct stage *stage)
{
    for (struct batch *batch = stage->batches; batch; batch = batch->next_pending) {
        struct error error;
        check(stage->store->ops->apply(stage->store, stage->now, batch->ops, batch->count, &batch->memory, &error) == STATUS_OK,
              "%s", error.text);
    }
}

static void crash(struct chaos *chaos)
{
    if (!chaos->stage.fail_applies && below(chaos, 2) == 0)
        commit_unheard(&chaos->stage);
    stage_crash(&chaos->stage);
    chaos->epoch++;
    for (size_t i = 0; i < 3; i++) {
        struct destination_status found = engine_destination(chaos->stage.engine, slice_from(destinations[i]));
        check(!chaos->orders[i].promised || !found.known || strcmp(found.mode, "paused") == 0,
              "seed %" PRIu64 ": the pause of %s was acknowledged and is lost", chaos->seed, destinations[i]);
        chaos->orders[i].waits = false; /* whoever waited is gone */
    }
}

static void reload(struct chaos *chaos, size_t which)
{
    struct config *config = config_from(slice_from(files[which]), "test.yaml");
    struct config *old = chaos->stage.config;
    struct error error;
    check(engine_reload(chaos->stage.engine, config, &error) == STATUS_OK, "%s", error.text);
    chaos->stage.config = config;
    config_unref(old);
}

static void on_paused(struct saved_wait *wait)
{
    struct order *order = wait->context;
    order->waits = false;
    if (wait->error.status == STATUS_OK)
        order->promised = order->promised || order->stands;
}

static void pause_or_resume(struct chaos *chaos)
{
    size_t which = below(chaos, 3);
    struct slice name = slice_from(destinations[which]);
    struct order *order = &chaos->orders[which];
    struct error error;
    bool pauses = below(chaos, 3) == 0;
    enum status status = pauses ? engine_pause(chaos->stage.engine, name, SLICE("maintenance"), &error)
                                : engine_resume(chaos->stage.engine, name, &error);
    check(status == STATUS_OK || status == STATUS_NOT_FOUND, "%s", error.text);
    if (!pauses)
        order->stands = order->promised = false;
    if (!pauses || status != STATUS_OK || order->waits)
        return;
    order->waits = order->stands = true;
    order->wait = (struct saved_wait){ .done = on_paused, .context = order };
    engine_await_saved(chaos->stage.engine, name, &order->wait);
}

static void disturb(struct chaos *chaos)
{
    size_t what = below(chaos, 100);
    if (what < 35)
        add_jobs(chaos);
    else if (what < 60)
        stage_run_for(&chaos->stage, (int64_t)below(chaos, 4000));
    else if (what < 80)
        for (size_t i = below(chaos, 12); i > 0 && stage_step(&chaos->stage); i--)
            ;
    else if (what < 86)
        crash(chaos);
    else if (what < 90)
        chaos->stage.fail_applies = !chaos->stage.fail_applies;
    else if (what < 94)
        reload(chaos, below(chaos, sizeof files / sizeof *files));
    else if (what < 99)
        pause_or_resume(chaos);
    else
        stage_run_for(&chaos->stage, (int64_t)below(chaos, 600000));
}

static void finale(struct chaos *chaos)
{
    struct error error;
    chaos->healthy = true;
    chaos->stage.fail_applies = false;
    reload(chaos, 0);
    for (int round = 0; round < FINALE_ROUNDS; round++) {
        for (size_t i = 0; i < 3; i++) /* an answer from before may have paused it again */
            check(engine_resume(chaos->stage.engine, slice_from(destinations[i]), &error) == STATUS_OK, "%s", error.text);
        stage_run_for(&chaos->stage, 30 * 1000);
    }
    for (size_t i = 0; i < 3; i++)
        check(!chaos->orders[i].waits, "seed %" PRIu64 ": who paused %s never hears of it", chaos->seed, destinations[i]);
}

/* One end for each job, in the trail too; the trail unbroken. */
static void check_events(const struct chaos *chaos, struct store_reader *reader)
{
    int ends[JOBS_MAX] = { 0 };
    unsigned char before[EVENT_HASH_BYTES] = { 0 };
    int64_t number = 0;
    size_t count;
    do {
        struct arena memory = { 0 };
        struct event *events;
        struct error error;
        check(reader->ops->reader_events(reader, number, PAGE, &memory, &events, &count, &error) == STATUS_OK, "%s", error.text);
        for (size_t i = 0; i < count; i++) {
            struct event again = events[i];
            event_chain(before, &again);
            check(events[i].number == number + 1, "seed %" PRIu64 ": event %" PRId64 " is missing", chaos->seed, number + 1);
            check(memcmp(again.hash, events[i].hash, sizeof before) == 0, "seed %" PRIu64 ": the chain breaks at %" PRId64,
                  chaos->seed, events[i].number);
            check(!memmem(events[i].data.data, events[i].data.len, "529.982", 7), "seed %" PRIu64 ": a person's number in the trail", chaos->seed);
            memcpy(before, events[i].hash, sizeof before);
            number = events[i].number;
            if (events[i].job.len > 0 && (events[i].state == STATE_COMPLETED || events[i].state == STATE_DEAD))
                ends[atoi(events[i].job.data + 1)]++;
        }
        arena_release(&memory);
    } while (count == PAGE);
    for (int i = 0; i < chaos->jobs; i++)
        check(ends[i] == 1, "seed %" PRIu64 ": job %d has %d ends", chaos->seed, i, ends[i]);
}

static void check_job(const struct chaos *chaos, const struct job *job)
{
    int number = atoi(job->id.data + 1);
    const struct reported *reported = &chaos->reported[number];
    check(job->state == STATE_COMPLETED || job->state == STATE_DEAD, "seed %" PRIu64 ": job %d is %s at %.*s", chaos->seed, number,
          job_state_name(job->state), SLICE_ARG(job->destination));
    check(job->state != STATE_COMPLETED || reported->may_complete, "seed %" PRIu64 ": job %d is complete, but nobody said so",
          chaos->seed, number);
    check(job->state != STATE_DEAD || (job->last_error.len > 0 && job->dead_code.len > 0), "seed %" PRIu64 ": job %d died of nothing",
          chaos->seed, number);
    check(job->attempts >= (int64_t)reported->spending, "seed %" PRIu64 ": job %d counts %" PRId64 " attempts of %zu", chaos->seed,
          number, job->attempts, reported->spending);
    check(job->retry_count <= RETRIES, "seed %" PRIu64 ": job %d has %" PRId64 " retries", chaos->seed, number, job->retry_count);
}

/* Every job, and the lanes' counts against them. */
static void check_jobs(const struct chaos *chaos, struct store_reader *reader)
{
    struct job_filter filter = { 0 };
    struct lane_counts sum = { 0 };
    int64_t completed = 0, dead = 0;
    int seen = 0;
    do {
        struct arena memory = { 0 };
        struct job *jobs;
        struct error error;
        size_t count;
        check(reader->ops->reader_jobs(reader, &filter, PAGE, false, &memory, &jobs, &count, &filter.before_seq, &error) == STATUS_OK,
              "%s", error.text);
        for (size_t i = 0; i < count; i++) {
            check_job(chaos, &jobs[i]);
            completed += jobs[i].state == STATE_COMPLETED;
            dead += jobs[i].state == STATE_DEAD;
        }
        seen += (int)count;
        arena_release(&memory);
    } while (filter.before_seq > 0);
    check(seen == chaos->jobs, "seed %" PRIu64 ": %d jobs of %d", chaos->seed, seen, chaos->jobs);
    for (size_t i = 0; i < 3; i++) {
        struct lane_counts counts = stage_counts((struct stage *)(uintptr_t)&chaos->stage, destinations[i]);
        sum.completed += counts.completed;
        sum.dead += counts.dead;
        sum.pending += counts.pending + counts.running + counts.waiting + counts.ready;
    }
    check(sum.completed == completed && sum.dead == dead && sum.pending == 0, "seed %" PRIu64 ": %" PRId64 " %" PRId64 " %" PRId64
          " against %" PRId64 " %" PRId64, chaos->seed, sum.completed, sum.dead, sum.pending, completed, dead);
}

static void check_gates(const struct chaos *chaos)
{
    for (size_t i = 0; i < 3; i++) {
        struct destination_status status = engine_destination(chaos->stage.engine, slice_from(destinations[i]));
        check(status.under_way == 0 && status.lanes_with_work == 0 && !status.held_by,
              "seed %" PRIu64 ": %s keeps %" PRId64 " under way, %zu lanes, held by %s", chaos->seed, destinations[i],
              status.under_way, status.lanes_with_work, status.held_by ? status.held_by : "nothing");
    }
}

static void play(uint64_t seed)
{
    struct chaos *chaos = calloc(1, sizeof *chaos);
    assert_non_null(chaos);
    chaos->seed = seed;
    chaos->random.state = seed;
    chaos->stage.destination = destination;
    chaos->stage.context = chaos;
    stage_begin(&chaos->stage, files[0], began);
    for (int i = 0; i < STEPS; i++)
        disturb(chaos);
    finale(chaos);
    check_gates(chaos);
    check_jobs(chaos, chaos->stage.reader);
    check_events(chaos, chaos->stage.reader);
    stage_end(&chaos->stage);
    free(chaos);
}

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void every_job_ends_once_whatever_happens(void **state)
{
    uint64_t alone = from_environment("INSIST_SEED", 0);
    uint64_t last = from_environment("INSIST_SEEDS", SEEDS);
    (void)state;
    for (uint64_t seed = alone ? alone : 1; seed <= (alone ? alone : last); seed++) {
        print_message("  INSIST_SEED=%" PRIu64 "\n", seed); /* the last one printed is the one that failed */
        play(seed);
    }
}

struct rota {
    struct random random;
    int64_t waiting[TENANTS]; /* jobs that are ready and not sent */
    int64_t passed[TENANTS];  /* sends of others since it has had work */
    int64_t bound, worst;
};

static int64_t takes_turns(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct rota *rota = stage->context;
    int tenant = atoi(send->job->tenant.data + 1);
    rota->waiting[tenant]--;
    for (int i = 0; i < TENANTS; i++) {
        rota->passed[i] = i == tenant || rota->waiting[i] == 0 ? 0 : rota->passed[i] + 1;
        rota->worst = rota->passed[i] > rota->worst ? rota->passed[i] : rota->worst;
        check(rota->passed[i] <= rota->bound, "tenant %d waited for %" PRId64 " sends, %" PRId64 " are allowed", i,
              rota->passed[i], rota->bound);
    }
    answer->outcome = OUTCOME_DELIVERED;
    return 1 + (int64_t)random_below(&rota->random, 50);
}

/* Invariant 7: a tenant with work waits for at most a round of turns, beside what was claimed before it came. */
static void every_tenant_gets_its_turn(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= TURN_SEEDS; seed++) {
        struct rota rota = { .random.state = seed };
        struct stage stage = { .destination = takes_turns, .context = &rota };
        int64_t concurrency = 1 + (int64_t)random_below(&rota.random, 8);
        int64_t batch = 1 + (int64_t)random_below(&rota.random, 4);
        char yaml[256];
        snprintf(yaml, sizeof yaml, "destinations: { d: { url: 'https://a.example/', concurrency: %" PRId64
                 ", fairness: { round_robin: true, batch: %" PRId64 " } } }\n", concurrency, batch);
        rota.bound = TENANTS * batch + concurrency;
        stage_begin(&stage, yaml, began);
        for (int step = 0; step < 200; step++) {
            int tenant = random_below(&rota.random, 2) == 0 ? 0 : (int)random_below(&rota.random, TENANTS);
            char name[8];
            snprintf(name, sizeof name, "t%d", tenant);
            for (size_t i = random_below(&rota.random, tenant == 0 ? 20 : 4); i > 0; i--) { /* the first has by far the most */
                rota.waiting[tenant]++;
                stage_add(&stage, "d", name, NULL, "x");
            }
            stage_run_for(&stage, (int64_t)random_below(&rota.random, 60));
        }
        stage_run_for(&stage, 600 * 1000);
        check(stage_counts(&stage, "d").completed == (int64_t)stage.send_count && stage_counts(&stage, "d").pending == 0,
              "seed %" PRIu64 ": not all was sent", seed);
        check(rota.worst > 0, "seed %" PRIu64 ": nobody ever waited, so nothing was tried", seed);
        stage_end(&stage);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_job_ends_once_whatever_happens),
        cmocka_unit_test(every_tenant_gets_its_turn),
    };
    log_set_level((enum log_level)(LOG_ERROR + 1)); /* it would be mostly about what was arranged */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
