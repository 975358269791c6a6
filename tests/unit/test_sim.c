#include "sim/report.h"

#include "base/log.h"
#include "store/memory/memory.h"
#include "support/check.h"
#include "support/configs.h"
#include "support/store_faulty.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A simulation of one destination, as a test sees it. */
struct trial {
    struct config *config;
    struct store *store;
    struct sim_settings settings;
    struct run run;
};

static void trial_begin(struct trial *trial, const char *destination)
{
    struct buffer problems;
    char yaml[1024];
    snprintf(yaml, sizeof yaml, "destinations:\n  d: { url: \"%s://d.example/\", %s }\n",
             strstr(destination, "preset: email") ? "smtp" : "https", destination);
    memset(trial, 0, sizeof *trial);
    buffer_init(&problems, PROBLEMS_BYTES);
    if (config_parse(slice_from(yaml), "test.yaml", &trial->config, &problems) != STATUS_OK)
        fail_msg("%s", problems.data);
    buffer_release(&problems);
    trial->settings = (struct sim_settings){
        .config = trial->config,
        .destination = &trial->config->destinations[0],
        .model = { .seed = 1, .latency_ms = 100, .spread = 0.3, .timeout_ms = 5000 },
        .load = { .seed = 1, .jobs = 2000, .for_ms = HOUR_MS, .tenants = 3 },
        .seed = 1,
        .settle_max_ms = DAY_MS,
    };
}

static void trial_run(struct trial *trial)
{
    struct store_settings saved = { .pending_max = trial->config->pending_max };
    struct error error;
    trial->run = (struct run){ .title = "d", .settings = &trial->settings };
    assert_int_equal(store_memory_open(SLICE(""), &saved, &trial->store, &error), STATUS_OK);
    if (sim_run(&trial->settings, trial->store, &trial->run.result, &error) != STATUS_OK)
        fail_msg("%s", error.text);
    assert_int_equal(report_make(&trial->run, &error), STATUS_OK);
}

static void trial_forget(struct trial *trial)
{
    sim_result_release(&trial->run.result);
    trial->store->ops->close(trial->store);
}

static void trial_end(struct trial *trial)
{
    trial_forget(trial);
    config_unref(trial->config);
}

static struct lane_counts counts_of(struct store *store)
{
    struct lane_counts sum = { 0 };
    struct store_reader *reader;
    struct arena memory = { 0 };
    struct lane *lanes;
    struct error error;
    size_t count;
    assert_int_equal(store->ops->reader(store, &reader, &error), STATUS_OK);
    assert_int_equal(reader->ops->reader_lanes(reader, 0, STORE_PAGE_MAX, &memory, &lanes, &count, &error), STATUS_OK);
    for (size_t i = 0; i < count; i++) {
        sum.pending += lanes[i].counts.pending + lanes[i].counts.running + lanes[i].counts.waiting;
        sum.completed += lanes[i].counts.completed;
        sum.dead += lanes[i].counts.dead;
    }
    reader->ops->reader_close(reader);
    arena_release(&memory);
    return sum;
}

static char *json_of(const struct trial *trial)
{
    struct buffer out;
    buffer_init(&out, 1 << 24);
    report_json(&trial->run, 1, &out);
    char *text = buffer_take(&out);
    assert_non_null(text);
    return text;
}

static void test_deterministic(void **state)
{
    (void)state;
    struct trial trial;
    char *reports[3];
    trial_begin(&trial, "retry: { max_retries: 4, base: 5s, floor: 1s, cap: 1m }");
    trial.settings.model.transient = 0.2;
    trial.settings.model.lost = 0.02;
    for (int i = 0; i < 3; i++) {
        if (i == 2)
            trial.settings.seed = trial.settings.load.seed = trial.settings.model.seed = 2;
        trial_run(&trial);
        reports[i] = json_of(&trial);
        trial_forget(&trial);
    }
    assert_string_equal(reports[0], reports[1]);
    assert_string_not_equal(reports[0], reports[2]);
    for (int i = 0; i < 3; i++)
        free(reports[i]);
    config_unref(trial.config);
}

/* Every job ends in exactly one way, and the ledger, the store and the destination agree on it. */
static void check_conserved(const char *name, const struct trial *trial)
{
    const struct ledger *ledger = &trial->run.result.ledger;
    struct lane_counts stored = counts_of(trial->store);
    int64_t ends[END_COUNT] = { 0 }, there = 0, attempts = 0, sum = 0;
    for (int64_t i = 0; i < ledger->job_count; i++) {
        const struct job_record *job = &ledger->jobs[i];
        ends[job->end]++;
        there += job->there;
        attempts += job->attempts;
        check(job->end != END_COMPLETED || job->there, "%s: job %d is completed but not there", name, (int)i);
        check((job->end == END_OPEN) == (job->ended_ms < 0), "%s: job %d", name, (int)i);
    }
    for (int i = 0; i < END_COUNT; i++) {
        check(ends[i] == ledger->ends[i], "%s: end %d", name, i);
        sum += ends[i];
    }
    check(sum == trial->settings.load.jobs, "%s: %d jobs", name, (int)sum);
    check(stored.completed == ends[END_COMPLETED], "%s: completed %d", name, (int)stored.completed);
    check(stored.pending == ends[END_OPEN], "%s: open %d", name, (int)stored.pending);
    check(stored.dead == ends[END_PERMANENT] + ends[END_EXHAUSTED] + ends[END_EXPIRED] + ends[END_IN_DOUBT],
          "%s: dead %d", name, (int)stored.dead);
    check(there == trial->run.result.model.accepted, "%s: accepted", name);
    check(attempts <= trial->run.result.model.requests, "%s: attempts", name);

    int64_t arrived = 0, requests = 0, delivered = 0, dead = 0;
    for (size_t i = 0; i < ledger->step_count; i++) {
        arrived += ledger->steps[i].arrived;
        requests += ledger->steps[i].requests;
        delivered += ledger->steps[i].delivered;
        dead += ledger->steps[i].dead;
    }
    check(arrived == sum && requests == trial->run.result.model.requests, "%s: curves", name);
    check(delivered == ends[END_COMPLETED] && dead == sum - delivered - ends[END_OPEN], "%s: curves' ends", name);
    check(ledger->queue == ends[END_OPEN], "%s: queue", name);
}

static void test_conserved(void **state)
{
    (void)state;
    static const struct {
        const char *name, *destination;
        double transient, permanent, lost;
        int64_t latency_ms;
        struct model_outage outage;
        enum job_end seen; /* at least one ends so */
    } cases[] = {
        { "well", "concurrency: 5", 0, 0, 0, 100, { 0, 0, MODEL_REFUSE }, END_COMPLETED },
        { "wrong jobs", "preset: http", 0, 0.1, 0, 100, { 0, 0, MODEL_REFUSE }, END_PERMANENT },
        { "exhausted", "retry: { max_retries: 2, base: 1s, floor: 1s, cap: 5s }", 0.5, 0, 0, 100, { 0, 0, MODEL_REFUSE }, END_EXHAUSTED },
        { "expired in the queue", "concurrency: 1, job_ttl: 1m", 0, 0, 0, 4000, { 0, 0, MODEL_REFUSE }, END_EXPIRED },
        { "parked", "in_doubt: park", 0, 0, 0.05, 100, { 0, 0, MODEL_REFUSE }, END_IN_DOUBT },
        { "resent", "in_doubt: resend, retry: { base: 1s, floor: 1s }", 0, 0, 0.05, 100, { 0, 0, MODEL_REFUSE }, END_COMPLETED },
        { "verified", "in_doubt: verify, verify: { url: \"https://d.example/{id}\", delivered: [200], absent: [404], after: 1s, every: 5s, times: 3 }",
          0, 0, 0.05, 100, { 0, 0, MODEL_REFUSE }, END_COMPLETED },
        { "an outage that outlasts all", "retry: { max_retries: 100, base: 1m, floor: 1m, cap: 2h }", 0, 0, 0, 100,
          { 600000, 7 * (int64_t)DAY_MS, MODEL_TIME_OUT }, END_OPEN },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct trial trial;
        trial_begin(&trial, cases[i].destination);
        trial.settings.model.transient = cases[i].transient;
        trial.settings.model.permanent = cases[i].permanent;
        trial.settings.model.lost = cases[i].lost;
        trial.settings.model.latency_ms = cases[i].latency_ms;
        trial.settings.model.outages[0] = cases[i].outage;
        trial.settings.model.outage_count = cases[i].outage.to_ms > 0;
        trial_run(&trial);
        check_conserved(cases[i].name, &trial);
        check(trial.run.result.ledger.ends[cases[i].seen] > 0, "%s: none ended so", cases[i].name);
        trial_end(&trial);
    }
}

static void test_doubt(void **state)
{
    (void)state;
    struct trial trial;
    trial_begin(&trial, "in_doubt: resend, retry: { base: 1s, floor: 1s }");
    trial.settings.model.lost = 0.05;
    trial_run(&trial);
    assert_true(trial.run.report.requests.duplicates > 50); /* each answer that was lost means a second copy */
    trial_end(&trial);

    trial_begin(&trial, "in_doubt: verify, verify: { url: \"https://d.example/{id}\", delivered: [200], absent: [404], after: 1s }");
    trial.settings.model.lost = 0.05;
    trial_run(&trial);
    assert_true(trial.run.report.requests.duplicates == 0);
    assert_int_equal(trial.run.result.ledger.ends[END_COMPLETED], 2000);
    trial_end(&trial);
}

static void test_full_queue(void **state)
{
    (void)state;
    struct trial trial;
    trial_begin(&trial, "concurrency: 1");
    trial.config->pending_max = 10;
    trial.settings.model.latency_ms = 4000;
    trial.settings.model.spread = 0;
    trial_run(&trial);
    check_conserved("full", &trial);
    assert_true(trial.run.report.jobs.refused > 500);
    assert_true(trial.run.report.jobs.completed > 800);
    trial_end(&trial);
}

/* Enough dead letters stop the destination, and the report says so. */
static void test_held(void **state)
{
    (void)state;
    struct trial trial;
    trial_begin(&trial, "preset: http, dead: { max: 100 }");
    trial.settings.model.permanent = 0.5;
    trial_run(&trial);
    check_conserved("held", &trial);
    const struct sim_hold *holds = trial.run.result.holds;
    assert_string_equal(holds[0].by, "dead_full");
    assert_true(holds[0].ms > 50 * MINUTE_MS);
    assert_null(holds[1].by);
    assert_true(trial.run.report.jobs.open > 1000);
    trial_end(&trial);
}

static void test_outage_shows(void **state)
{
    (void)state;
    struct trial trial;
    trial_begin(&trial, "retry: { max_retries: 50, base: 10s, factor: 1.5, floor: 5s, cap: 2m }");
    trial.settings.model.outages[0] = (struct model_outage){ 20 * MINUTE_MS, 30 * MINUTE_MS, MODEL_UNAVAILABLE };
    trial.settings.model.outage_count = 1;
    trial_run(&trial);
    const struct ledger *ledger = &trial.run.result.ledger;
    assert_int_equal(ledger->step_ms, 15 * SECOND_MS);
    const struct ledger_step *before = &ledger->steps[76], *inside = &ledger->steps[116], *after = &ledger->steps[200];
    assert_true(before->failed == 0 && before->delivered > 0);
    assert_true(inside->failed > 0 && inside->delivered == 0);
    assert_true(inside->queue > 100 * (before->queue + 1) / 2);
    assert_true(after->failed == 0 && after->delivered > 0 && after->queue < 10);
    const struct report *report = &trial.run.report;
    assert_true(report->outage_requests > 300);
    assert_true(report->drain_ms > 0 && report->drain_ms < 10 * MINUTE_MS);
    assert_true(report->recovery_ms > 0 && report->recovery_ms < 5 * MINUTE_MS);
    assert_true(report->outage_queue_peak >= (double)inside->queue);
    assert_true(report->success_after_retry == 1);
    trial_end(&trial);
}

/* S1-089, S0-081..S0-088, S1-051..S1-054: an outage of four hours in a day costs the presets none of their targets. */
static void test_presets_outlast_an_outage(void **state)
{
    (void)state;
    static const struct { const char *preset; int64_t jobs; const char *held_by; } rows[] = {
        { "preset: tiss", 20000, "breaker" },
        { "preset: tiss", 1000, "breaker" },
        { "preset: tiss", 600, "breaker" },
        { "preset: tiss", 200, "breaker" },
        { "preset: email", 20000, "breaker" },
        { "preset: email", 5000, "breaker" },
        { "preset: sifen, in_doubt: resend", 20000, "contingency" },
        { "preset: provisioning", 20000, "contingency" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct trial trial;
        trial_begin(&trial, rows[i].preset);
        trial.settings.load = (struct load_settings){ .seed = 1, .jobs = rows[i].jobs, .for_ms = DAY_MS, .tenants = 1 };
        trial.settings.model.timeout_ms = trial.settings.destination->timeout_ms;
        trial.settings.model.transient = 0.02;
        trial.settings.model.permanent = 0.01;
        trial.settings.model.outages[0] = (struct model_outage){ 4 * (int64_t)HOUR_MS, 8 * (int64_t)HOUR_MS, MODEL_UNAVAILABLE };
        trial.settings.model.outage_count = 1;
        trial_run(&trial);
        check_conserved(rows[i].preset, &trial);
        for (const struct figure *figure = figures; figure->name; figure++)
            check(figure_judge(figure, &trial.run.report) != FIGURE_MISSED, "%s: %s %s is %f", rows[i].preset, figure->rule,
                  figure->label, figure_value(figure, &trial.run.report));
        check(trial.run.report.jobs.open == 0, "%s: some did not end", rows[i].preset);
        bool held = false;
        for (const struct sim_hold *hold = trial.run.result.holds; hold->by; hold++)
            held = held || (strcmp(hold->by, rows[i].held_by) == 0 && hold->ms > 3 * (int64_t)HOUR_MS);
        check(held, "%s: not held by %s", rows[i].preset, rows[i].held_by);
        trial_end(&trial);
    }
}

/* S0-104, S2-025: what is alone in an outage ends as its document says. */
static void test_alone_in_an_outage(void **state)
{
    (void)state;
    static const struct { const char *preset; int64_t jobs, sends; } rows[] = {
        { "preset: tiss", 1, 6 }, { "preset: email", 1, 5 }, { "preset: email", 3, 15 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct trial trial;
        trial_begin(&trial, rows[i].preset);
        trial.settings.load = (struct load_settings){ .seed = 1, .jobs = rows[i].jobs, .for_ms = MINUTE_MS, .tenants = 1 };
        trial.settings.model.outages[0] = (struct model_outage){ 0, 2 * (int64_t)DAY_MS, MODEL_REFUSE };
        trial.settings.model.outage_count = 1;
        trial_run(&trial);
        check(trial.run.result.ledger.ends[END_EXHAUSTED] == rows[i].jobs, "%s: %d exhausted", rows[i].preset,
              (int)trial.run.result.ledger.ends[END_EXHAUSTED]);
        check(trial.run.result.model.requests == rows[i].sends, "%s: %d sends", rows[i].preset, (int)trial.run.result.model.requests);
        trial_end(&trial);
    }
}

/* Credentials that are refused hold the destination until a look or somebody ends it, and cost no job anything. */
static void test_blocked(void **state)
{
    (void)state;
    struct trial trial;
    trial_begin(&trial, "preset: http, retry: { max_retries: 1 }");
    trial.settings.attend_ms = 5 * MINUTE_MS;
    trial.settings.model.outages[0] = (struct model_outage){ 10 * MINUTE_MS, 22 * MINUTE_MS, MODEL_BLOCK };
    trial.settings.model.outage_count = 1;
    trial_run(&trial);
    check_conserved("blocked", &trial);
    assert_int_equal(trial.run.result.ledger.ends[END_COMPLETED], 2000);
    assert_string_equal(trial.run.result.holds[0].by, "blocked");
    assert_true(trial.run.result.holds[0].ms >= 11 * MINUTE_MS && trial.run.result.holds[0].ms <= 16 * MINUTE_MS);
    /* All places at once, at its beginning and after each of two resumes; and looks, a minute and more apart, in twelve. */
    assert_true(trial.run.report.outage_requests <= 3 * 10 + 10);
    trial_end(&trial);
}

/* A check that tells the truth holds what one that lies sends. */
static void test_health_in_the_run(void **state)
{
    (void)state;
    double requests[MODEL_HEALTH_COUNT], exhausted[MODEL_HEALTH_COUNT];
    for (int how = 0; how < MODEL_HEALTH_COUNT; how++) {
        struct trial trial;
        trial_begin(&trial, "health: { url: \"https://d.example/health\", every: 30s, failures: 3 }, contingency: { ramp: [5, 10], stable: 1m, "
                            "check: 1m }, retry: { max_retries: 2, base: 30s, floor: 1s }");
        trial.settings.model.health = (enum model_health)how;
        trial.settings.model.outages[0] = (struct model_outage){ 20 * MINUTE_MS, 40 * MINUTE_MS, MODEL_REFUSE };
        trial.settings.model.outage_count = 1;
        trial_run(&trial);
        check_conserved("health", &trial);
        requests[how] = trial.run.report.outage_requests;
        exhausted[how] = trial.run.report.jobs.exhausted;
        check(isnan(trial.run.report.health_checks) == (how == MODEL_HEALTH_NONE), "%d: checks", how);
        trial_end(&trial);
    }
    assert_true(exhausted[MODEL_HEALTH_TRUE] == 0 && exhausted[MODEL_HEALTH_LYING] > 100);
    assert_true(requests[MODEL_HEALTH_TRUE] * 4 < requests[MODEL_HEALTH_LYING]);
    assert_true(exhausted[MODEL_HEALTH_NONE] < exhausted[MODEL_HEALTH_LYING]); /* a job is the check then */
}

static void test_fairness(void **state)
{
    (void)state;
    struct trial trial;
    trial_begin(&trial, "concurrency: 2, fairness: { batch: 1 }");
    trial.settings.model.latency_ms = 4500;
    trial.settings.model.spread = 0;
    trial.settings.load.big_share = 0.5;
    trial_run(&trial);
    assert_true(trial.run.report.jain > 0.9);
    assert_true(trial.run.report.small_p99_ms > 0);
    trial_end(&trial);

    trial_begin(&trial, "concurrency: 2");
    trial.settings.load.tenants = 1;
    trial_run(&trial);
    assert_true(isnan(trial.run.report.jain));
    assert_true(isnan(trial.run.report.small_p99_ms));
    trial_end(&trial);
}

/* S1-044. Four jobs, all figures by hand. */
static void test_figures_by_hand(void **state)
{
    (void)state;
    struct trial trial;
    struct error error;
    trial_begin(&trial, "retry: { max_retries: 1, base: 10m, floor: 1m, cap: 10m, jitter: 0 }");
    trial.settings.load.jobs = 4;
    trial.settings.load.tenants = 1;
    trial.run = (struct run){ .title = "d", .settings = &trial.settings };
    struct ledger *ledger = &trial.run.result.ledger;
    assert_int_equal(ledger_init(ledger, &trial.settings.destination->policy.retry, 4, 1, MINUTE_MS), STATUS_OK);
    for (int64_t job = 0; job < 4; job++) {
        assert_int_equal(ledger_arrived(ledger, 0, 0), job);
        ledger_sent(ledger, job, 1000, false);
    }
    ledger_answered(ledger, 0, 1100, MODEL_OK);
    ledger_ended(ledger, 0, 1100, END_COMPLETED); /* at once: 100 ms */
    ledger_answered(ledger, 1, 1200, MODEL_PERMANENT);
    ledger_ended(ledger, 1, 1200, END_PERMANENT);
    for (int64_t job = 2; job < 4; job++) {
        ledger_answered(ledger, job, 2000, MODEL_TRANSIENT);
        ledger_retry(ledger, job, 1, 600000, PRIORITY_NORMAL);
    }
    ledger_sent(ledger, 2, 602000, false);
    ledger_sent(ledger, 3, 602000, false);
    ledger_answered(ledger, 2, 603000, MODEL_OK);
    ledger_ended(ledger, 2, 603000, END_COMPLETED); /* after a retry: 602 s */
    ledger_answered(ledger, 3, 604000, MODEL_TRANSIENT);
    ledger_ended(ledger, 3, 604000, END_EXHAUSTED);
    trial.run.result.model = (struct model_figures){ .requests = 6, .answers = { [MODEL_OK] = 2 } };
    assert_int_equal(report_make(&trial.run, &error), STATUS_OK);

    const struct report *report = &trial.run.report;
    const struct {
        const char *name;
        double seen, expected;
    } rows[] = {
        { "success after retry", report->success_after_retry, 0.5 },
        { "attempts", report->attempts_mean, 1.5 },
        { "lost", report->lost, 0.5 },
        { "median", report->success_median_ms, 100 },
        { "mean", report->success_mean_ms, 301050 },
        { "arrival to success", report->waited_p99_ms, 603000 },
        { "permanent", report->permanent, 0.25 },
        { "exhausted", report->exhausted, 0.25 },
        { "longest wait", report->longest_wait, 1 },
        { "wait", report->wait_mean_ms, 600000 },
        { "goodput", report->requests.goodput, 1.0 / 3 },
        { "jobs", report->jobs.all, 4 },
        { "completed", report->jobs.completed, 2 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        check(fabs(rows[i].seen - rows[i].expected) < 1e-9, "%s: %f", rows[i].name, rows[i].seen);
    assert_true(isnan(report->wait_deviation)); /* too few waits to say */
    assert_true(isnan(report->drain_ms));
    assert_int_equal(ledger->steps[0].requests, 4);
    assert_int_equal(ledger->steps[0].queue, 2);
    assert_int_equal(ledger->steps[9].queue, 2);
    assert_int_equal(ledger->steps[10].queue, 0);
    assert_int_equal(ledger->wait_histogram[6], 2);
    sim_result_release(&trial.run.result);
    config_unref(trial.config);
}

static void test_redriven(void **state)
{
    (void)state;
    struct ledger ledger;
    const struct retry_policy retry = { .base_ms = 1000, .factor = 2, .floor_ms = 1000, .cap_ms = 60000, .delay_factor = { 1, 1, 1 } };
    assert_int_equal(ledger_init(&ledger, &retry, 1, 1, SECOND_MS), STATUS_OK);
    assert_int_equal(ledger_arrived(&ledger, 0, 0), 0);
    ledger_sent(&ledger, 0, 0, false);
    ledger_answered(&ledger, 0, 10, MODEL_PERMANENT);
    ledger_ended(&ledger, 0, 10, END_PERMANENT);
    ledger_redriven(&ledger, 0, 5000);
    assert_int_equal(ledger.ends[END_OPEN], 1);
    assert_int_equal(ledger.queue, 1);
    ledger_sent(&ledger, 0, 5000, false);
    ledger_ended(&ledger, 0, 5100, END_COMPLETED);
    assert_int_equal(ledger.ends[END_PERMANENT], 0);
    assert_int_equal(ledger.ends[END_COMPLETED], 1);
    ledger_release(&ledger);
}

/* C-23: rules that set different targets, for the same figure or another statistic of it, are judged each by itself. */
static void test_targets_of_each_rule(void **state)
{
    (void)state;
    const struct report report = { .success_after_retry = 0.82, .lost = 0.04, .exhausted = 0.04, .permanent = 0.12,
                                   .success_median_ms = 90 * MINUTE_MS, .success_mean_ms = 90 * MINUTE_MS };
    static const struct { const char *rule, *name; double bound; enum figure_verdict verdict; } rows[] = {
        { "S0-081", "successAfterRetry", 0.85, FIGURE_MISSED },
        { "S1-051", "successAfterRetry", 0.80, FIGURE_MET },
        { "S0-084", "timeToSuccessMedianMs", HOUR_MS, FIGURE_MISSED },
        { "S1-052", "timeToSuccessMeanMs", 2 * HOUR_MS, FIGURE_MET },
        { "S0-083", "lost", 0.03, FIGURE_MISSED },
        { "S1-054", "exhausted", 0.05, FIGURE_MET },
        { "S1-053", "permanent", 0.10, FIGURE_MISSED },
        { "S0-085", "permanent", 0.10, FIGURE_MISSED },
        { "S1-057", "permanent", 0.15, FIGURE_MET },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct figure *figure = figures;
        while (figure->name && strcmp(figure->rule, rows[i].rule) != 0)
            figure++;
        check(figure->name && strcmp(figure->name, rows[i].name) == 0, "%s: no figure %s", rows[i].rule, rows[i].name);
        check(fabs(figure->bound - rows[i].bound) < 1e-9, "%s: %f", rows[i].rule, figure->bound);
        check(figure_judge(figure, &report) == rows[i].verdict, "%s: %s", rows[i].rule, rows[i].name);
    }
}

static void test_texts(void **state)
{
    (void)state;
    const struct figure share = { .unit = UNIT_SHARE, .target = TARGET_AT_LEAST, .bound = 0.85 };
    const struct figure time = { .unit = UNIT_TIME, .target = TARGET_AT_MOST, .bound = HOUR_MS };
    const struct figure count = { .unit = UNIT_COUNT };
    const struct {
        const struct figure *figure;
        double from, to;
        const char *text, *difference, *target;
    } rows[] = {
        { &share, 0.5, 0.75, "50.00%", "+25.00 points", "at least 85%" },
        { &share, NAN, 0.75, "-", "", "at least 85%" },
        { &share, 0.5, 0.5, "50.00%", "=", "at least 85%" },
        { &time, 3725000, 3605000, "1h2m", "-2m", "at most 1h" },
        { &time, 1500, 1700, "1s500ms", "+200ms", "at most 1h" },
        { &count, 100, 20, "100", "-80", "" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char text[FIGURE_TEXT_BYTES];
        figure_text(rows[i].figure, rows[i].from, text);
        check(strcmp(text, rows[i].text) == 0, "row %zu: %s", i, text);
        figure_difference(rows[i].figure, rows[i].from, rows[i].to, text);
        check(strcmp(text, rows[i].difference) == 0, "row %zu: %s", i, text);
        figure_target_text(rows[i].figure, text);
        check(strcmp(text, rows[i].target) == 0, "row %zu: %s", i, text);
    }
    for (const struct figure *figure = figures; figure->name; figure++)
        check((figure->target != TARGET_NONE) == (figure->rule[0] != '\0'), "%s", figure->name);
}

static void test_steps(void **state)
{
    (void)state;
    static const struct { int64_t for_ms, step_ms; } rows[] = {
        { SECOND_MS, 10 }, { 10 * SECOND_MS, 100 }, { HOUR_MS, 15 * SECOND_MS }, { DAY_MS, 5 * MINUTE_MS },
        { 7 * (int64_t)DAY_MS, HOUR_MS }, { 366 * (int64_t)DAY_MS, DAY_MS },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        check(ledger_step_for(rows[i].for_ms) == rows[i].step_ms, "row %zu: %d", i, (int)ledger_step_for(rows[i].for_ms));
}

/* A store that fails ends the simulation with its words, and nothing is left behind. */
static void test_store_fails(void **state)
{
    (void)state;
    static const struct { enum faulty_call call; int64_t n; } rows[] = {
        { FAULTY_APPLY, 1 }, { FAULTY_APPLY, 50 }, { FAULTY_APPLY, 51 }, { FAULTY_APPLY, 52 }, { FAULTY_READ, 1 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct trial trial;
        struct store_settings saved = { 0 };
        struct error error = { 0 };
        struct store *inner;
        trial_begin(&trial, "concurrency: 5");
        assert_int_equal(store_memory_open(SLICE(""), &saved, &inner, &error), STATUS_OK);
        assert_int_equal(store_faulty_wrap(inner, &trial.store, &error), STATUS_OK);
        store_faulty_set(trial.store, rows[i].call, rows[i].n, true, STATUS_IO);
        check(sim_run(&trial.settings, trial.store, &trial.run.result, &error) == STATUS_IO, "row %zu", i);
        check(error.text[0] != '\0', "row %zu has no text", i);
        trial.store->ops->close(trial.store);
        config_unref(trial.config);
    }
}

static int quiet(void **state)
{
    (void)state;
    log_set_level(LOG_NONE);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deterministic),   cmocka_unit_test(test_conserved), cmocka_unit_test(test_doubt),
        cmocka_unit_test(test_full_queue), cmocka_unit_test(test_held), cmocka_unit_test(test_outage_shows),
        cmocka_unit_test(test_presets_outlast_an_outage), cmocka_unit_test(test_alone_in_an_outage),
        cmocka_unit_test(test_blocked), cmocka_unit_test(test_health_in_the_run),
        cmocka_unit_test(test_fairness),
        cmocka_unit_test(test_figures_by_hand), cmocka_unit_test(test_redriven), cmocka_unit_test(test_texts),
        cmocka_unit_test(test_targets_of_each_rule),
        cmocka_unit_test(test_steps),           cmocka_unit_test(test_store_fails),
    };
    return cmocka_run_group_tests(tests, quiet, NULL);
}
