#include "sim/ledger.h"

#include "core/decision/backoff.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS_FIRST = 512, STEPS_WANTED = 300 };

enum status ledger_init(struct ledger *ledger, const struct retry_policy *retry, int64_t jobs, int64_t tenants,
                        int64_t step_ms)
{
    assert(step_ms > 0 && tenants > 0 && jobs >= 0);
    *ledger = (struct ledger){ .retry = retry, .tenants = tenants, .step_ms = step_ms, .jobs_capacity = jobs };
    ledger->jobs = calloc((size_t)jobs + 1, sizeof *ledger->jobs);
    ledger->steps = calloc(STEPS_FIRST, sizeof *ledger->steps);
    ledger->tenant_untried = calloc((size_t)tenants, sizeof *ledger->tenant_untried);
    ledger->tenant_untried_before = calloc((size_t)tenants, sizeof *ledger->tenant_untried_before);
    ledger->tenant_sent = calloc((size_t)tenants, sizeof *ledger->tenant_sent);
    ledger->steps_capacity = STEPS_FIRST;
    ledger->step_count = 1;
    if (ledger->jobs && ledger->steps && ledger->tenant_untried && ledger->tenant_untried_before && ledger->tenant_sent)
        return STATUS_OK;
    ledger_release(ledger);
    return STATUS_NO_MEMORY;
}

void ledger_release(struct ledger *ledger)
{
    free(ledger->jobs);
    free(ledger->steps);
    free(ledger->tenant_untried);
    free(ledger->tenant_untried_before);
    free(ledger->tenant_sent);
    *ledger = (struct ledger){ 0 };
}

static struct ledger_step *running(struct ledger *ledger)
{
    return &ledger->steps[ledger->step_count - 1];
}

/* Jain's index of what the competing tenants were served in the step that ends: (sum x)^2 / (n sum x^2). */
static void close_fairness(struct ledger *ledger)
{
    double sum = 0, squares = 0;
    int64_t competing = 0;
    for (int64_t i = 0; i < ledger->tenants; i++) {
        if (ledger->tenant_untried_before[i] > 0 && ledger->tenant_untried[i] > 0) {
            double served = (double)ledger->tenant_sent[i];
            sum += served;
            squares += served * served;
            competing++;
        }
        ledger->tenant_untried_before[i] = ledger->tenant_untried[i];
        ledger->tenant_sent[i] = 0;
    }
    if (competing < 2 || squares <= 0)
        return;
    ledger->jain_sum += sum * sum / ((double)competing * squares);
    ledger->jain_steps++;
}

static bool steps_grow(struct ledger *ledger)
{
    if (ledger->step_count < ledger->steps_capacity)
        return true;
    size_t capacity = ledger->steps_capacity * 2;
    struct ledger_step *steps = realloc(ledger->steps, capacity * sizeof *steps);
    if (!steps) {
        ledger->failed = true;
        return false;
    }
    memset(steps + ledger->steps_capacity, 0, (capacity - ledger->steps_capacity) * sizeof *steps);
    ledger->steps = steps;
    ledger->steps_capacity = capacity;
    return true;
}

/* Time has come this far. */
static void ledger_advance(struct ledger *ledger, int64_t at_ms)
{
    while (at_ms >= (int64_t)ledger->step_count * ledger->step_ms) {
        running(ledger)->queue = ledger->queue;
        close_fairness(ledger);
        if (!steps_grow(ledger))
            return;
        ledger->step_count++;
    }
    running(ledger)->queue = ledger->queue;
}

static int64_t add_job(struct ledger *ledger, struct job_record record)
{
    assert(ledger->job_count < ledger->jobs_capacity && record.tenant < ledger->tenants);
    int64_t job = ledger->job_count++;
    ledger->jobs[job] = record;
    ledger->ends[END_OPEN]++;
    ledger->queue++;
    ledger->tenant_untried[record.tenant] += !record.tried;
    return job;
}

int64_t ledger_arrived(struct ledger *ledger, int64_t at_ms, int64_t tenant)
{
    ledger_advance(ledger, at_ms);
    running(ledger)->arrived++;
    return add_job(ledger, (struct job_record){ .arrived_ms = at_ms, .answered_ms = -1, .ended_ms = -1,
                                                .tenant = (int32_t)tenant });
}

int64_t ledger_was_there(struct ledger *ledger, int64_t at_ms, int64_t tenant, int64_t first_ms, int64_t attempts,
                         int64_t retries)
{
    assert(at_ms <= 0 && first_ms <= 0);
    return add_job(ledger, (struct job_record){ .arrived_ms = at_ms, .first_ms = first_ms, .answered_ms = -1, .ended_ms = -1,
                                                .tenant = (int32_t)tenant, .attempts = (int32_t)attempts,
                                                .retries = (int32_t)retries, .spent = (int32_t)retries,
                                                .tried = attempts > 0 });
}

void ledger_sent(struct ledger *ledger, int64_t job, int64_t at_ms, bool question)
{
    struct job_record *record = &ledger->jobs[job];
    ledger_advance(ledger, at_ms);
    running(ledger)->requests++;
    ledger->tenant_sent[record->tenant]++;
    if (!record->tried) {
        record->tried = true;
        record->first_ms = at_ms;
        ledger->tenant_untried[record->tenant]--;
    }
    record->attempts += !question;
}

void ledger_answered(struct ledger *ledger, int64_t job, int64_t at_ms, enum model_answer answer)
{
    ledger_advance(ledger, at_ms);
    ledger->jobs[job].answered_ms = at_ms;
    if (answer == MODEL_THROTTLED)
        running(ledger)->throttled++;
    else if (answer != MODEL_OK)
        running(ledger)->failed++;
}

int64_t ledger_histogram_bound(int part)
{
    static const int64_t bounds[LEDGER_HISTOGRAM] = {
        SECOND_MS,      10 * SECOND_MS, 30 * SECOND_MS, MINUTE_MS,   2 * MINUTE_MS, 5 * MINUTE_MS,
        10 * MINUTE_MS, 30 * MINUTE_MS, HOUR_MS,        2 * HOUR_MS, 4 * HOUR_MS,   INT64_MAX,
    };
    return bounds[part];
}

static void count_wait(struct ledger *ledger, int64_t wait_ms, int64_t retry, enum priority priority)
{
    ledger->wait_count++;
    ledger->wait_sum_ms += wait_ms;
    int part = 0;
    while (wait_ms > ledger_histogram_bound(part))
        part++;
    ledger->wait_histogram[part]++;

    /* A wait that the destination asked for lies outside the spread and says nothing about it. */
    struct backoff_range range = backoff_range(ledger->retry, retry, priority);
    if (wait_ms < range.low_ms || wait_ms > range.high_ms || range.high_ms - range.low_ms < LEDGER_WAIT_PARTS)
        return;
    int64_t place = (wait_ms - range.low_ms) * LEDGER_WAIT_PARTS / (range.high_ms - range.low_ms + 1);
    ledger->wait_parts[place]++;
}

void ledger_retry(struct ledger *ledger, int64_t job, int64_t retry, int64_t wait_ms, enum priority priority)
{
    struct job_record *record = &ledger->jobs[job];
    record->retries++;
    record->spent = (int32_t)retry;
    if (backoff_nominal_ms(ledger->retry, retry, priority) >= ledger->retry->cap_ms)
        record->longest_wait = true;
    count_wait(ledger, wait_ms, retry, priority);
}

void ledger_redriven(struct ledger *ledger, int64_t job, int64_t at_ms)
{
    struct job_record *record = &ledger->jobs[job];
    ledger_advance(ledger, at_ms);
    ledger->ends[record->end]--;
    ledger->ends[END_OPEN]++;
    record->end = END_OPEN;
    record->ended_ms = -1;
    record->spent = 0;
    ledger->queue++;
    running(ledger)->queue = ledger->queue;
}

static void end_record(struct ledger *ledger, int64_t job, int64_t at_ms, enum job_end end)
{
    struct job_record *record = &ledger->jobs[job];
    assert(record->end == END_OPEN && end != END_OPEN);
    record->end = (unsigned char)end;
    record->ended_ms = at_ms;
    ledger->ends[END_OPEN]--;
    ledger->ends[end]++;
}

void ledger_ended(struct ledger *ledger, int64_t job, int64_t at_ms, enum job_end end)
{
    ledger_advance(ledger, at_ms);
    end_record(ledger, job, at_ms, end);
    ledger->queue--;
    if (end == END_COMPLETED)
        running(ledger)->delivered++;
    else
        running(ledger)->dead++;
    running(ledger)->queue = ledger->queue;
}

void ledger_refused(struct ledger *ledger, int64_t job, int64_t at_ms)
{
    ledger->tenant_untried[ledger->jobs[job].tenant] -= !ledger->jobs[job].tried;
    ledger_ended(ledger, job, at_ms, END_REFUSED);
}

void ledger_expired(struct ledger *ledger, int64_t at_ms, int64_t count)
{
    ledger_advance(ledger, at_ms);
    ledger->queue -= count;
    running(ledger)->dead += count;
    running(ledger)->queue = ledger->queue;
}

void ledger_expired_job(struct ledger *ledger, int64_t job, int64_t at_ms)
{
    end_record(ledger, job, at_ms, END_EXPIRED);
}

int64_t ledger_step_for(int64_t for_ms)
{
    static const int64_t steps[] = {
        10,             100,            SECOND_MS,      2 * SECOND_MS, 5 * SECOND_MS, 10 * SECOND_MS,
        15 * SECOND_MS, 30 * SECOND_MS, MINUTE_MS,      2 * MINUTE_MS, 5 * MINUTE_MS, 10 * MINUTE_MS,
        15 * MINUTE_MS, 30 * MINUTE_MS, HOUR_MS,        2 * HOUR_MS,   6 * HOUR_MS,
    };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (for_ms / steps[i] <= STEPS_WANTED)
            return steps[i];
    return DAY_MS;
}
