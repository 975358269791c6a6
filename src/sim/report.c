#include "sim/report.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVIATION_WAITS_MIN = 1000 }; /* fewer waits deviate by chance alone */

#define FIGURE(member) offsetof(struct report, member)

const struct figure figures[] = {
    { "Indicators", "S0-081", "successAfterRetry", "success after retry", UNIT_SHARE, FIGURE(success_after_retry), TARGET_AT_LEAST, 0.85 },
    { "Indicators", "S1-051", "successAfterRetry", "success after retry", UNIT_SHARE, FIGURE(success_after_retry), TARGET_AT_LEAST, 0.80 },
    { "Indicators", "", "successAfterRetry", "success after retry", UNIT_SHARE, FIGURE(success_after_retry), TARGET_NONE, 0 },
    { "Indicators", "S0-082", "attemptsMean", "attempts, mean", UNIT_NUMBER, FIGURE(attempts_mean), TARGET_AT_MOST, 1.2 },
    { "Indicators", "", "attemptsMean", "attempts, mean", UNIT_NUMBER, FIGURE(attempts_mean), TARGET_NONE, 0 },
    { "Indicators", "S0-083", "lost", "lost: retried until exhausted", UNIT_SHARE, FIGURE(lost), TARGET_AT_MOST, 0.03 },
    { "Indicators", "", "lost", "lost: retried until exhausted", UNIT_SHARE, FIGURE(lost), TARGET_NONE, 0 },
    { "Indicators", "S0-084", "timeToSuccessMedianMs", "first attempt to success, median", UNIT_TIME, FIGURE(success_median_ms), TARGET_AT_MOST, HOUR_MS },
    { "Indicators", "", "timeToSuccessMedianMs", "first attempt to success, median", UNIT_TIME, FIGURE(success_median_ms), TARGET_NONE, 0 },
    { "Indicators", "S1-052", "timeToSuccessMeanMs", "first attempt to success, mean", UNIT_TIME, FIGURE(success_mean_ms), TARGET_AT_MOST, 2 * HOUR_MS },
    { "Indicators", "", "timeToSuccessMeanMs", "first attempt to success, mean", UNIT_TIME, FIGURE(success_mean_ms), TARGET_NONE, 0 },
    { "Indicators", "S1-053", "permanent", "permanent errors", UNIT_SHARE, FIGURE(permanent), TARGET_BELOW, 0.10 },
    { "Indicators", "S0-085", "permanent", "permanent errors, alert", UNIT_SHARE, FIGURE(permanent), TARGET_AT_MOST, 0.10 },
    { "Indicators", "S1-057", "permanent", "permanent errors, alert", UNIT_SHARE, FIGURE(permanent), TARGET_AT_MOST, 0.15 },
    { "Indicators", "", "permanent", "permanent errors", UNIT_SHARE, FIGURE(permanent), TARGET_NONE, 0 },
    { "Indicators", "S1-054", "exhausted", "exhausted", UNIT_SHARE, FIGURE(exhausted), TARGET_BELOW, 0.05 },
    { "Indicators", "S1-056", "exhausted", "exhausted, alert", UNIT_SHARE, FIGURE(exhausted), TARGET_AT_MOST, 0.05 },
    { "Indicators", "", "exhausted", "exhausted", UNIT_SHARE, FIGURE(exhausted), TARGET_NONE, 0 },
    { "Indicators", "S0-086", "longestWait", "jobs that reached the longest wait", UNIT_SHARE, FIGURE(longest_wait), TARGET_AT_MOST, 0.05 },
    { "Indicators", "", "longestWait", "jobs that reached the longest wait", UNIT_SHARE, FIGURE(longest_wait), TARGET_NONE, 0 },
    { "Indicators", "S0-087", "waitDeviation", "unevenness of the spread of waits", UNIT_SHARE, FIGURE(wait_deviation), TARGET_AT_MOST, 0.30 },
    { "Indicators", "", "waitDeviation", "unevenness of the spread of waits", UNIT_SHARE, FIGURE(wait_deviation), TARGET_NONE, 0 },
    { "Indicators", "S0-088", "waitMeanMs", "wait before a retry, mean", UNIT_TIME, FIGURE(wait_mean_ms), TARGET_AT_MOST, 30 * MINUTE_MS },
    { "Indicators", "", "waitMeanMs", "wait before a retry, mean", UNIT_TIME, FIGURE(wait_mean_ms), TARGET_NONE, 0 },
    { "Jobs", "", "jobs", "in all", UNIT_COUNT, FIGURE(jobs.all), TARGET_NONE, 0 },
    { "Jobs", "", "backlog", "there at the start", UNIT_COUNT, FIGURE(backlog), TARGET_NONE, 0 },
    { "Jobs", "", "completed", "completed", UNIT_COUNT, FIGURE(jobs.completed), TARGET_NONE, 0 },
    { "Jobs", "", "permanentJobs", "dead: permanent error", UNIT_COUNT, FIGURE(jobs.permanent), TARGET_NONE, 0 },
    { "Jobs", "", "exhaustedJobs", "dead: exhausted", UNIT_COUNT, FIGURE(jobs.exhausted), TARGET_NONE, 0 },
    { "Jobs", "", "expired", "dead: missed its deadline", UNIT_COUNT, FIGURE(jobs.expired), TARGET_NONE, 0 },
    { "Jobs", "", "inDoubt", "dead: in doubt", UNIT_COUNT, FIGURE(jobs.in_doubt), TARGET_NONE, 0 },
    { "Jobs", "", "refused", "refused: the queue was full", UNIT_COUNT, FIGURE(jobs.refused), TARGET_NONE, 0 },
    { "Jobs", "", "open", "not ended", UNIT_COUNT, FIGURE(jobs.open), TARGET_NONE, 0 },
    { "Jobs", "", "waitedMedianMs", "arrival to success, median", UNIT_TIME, FIGURE(waited_median_ms), TARGET_NONE, 0 },
    { "Jobs", "", "waitedP99Ms", "arrival to success, 99 of 100", UNIT_TIME, FIGURE(waited_p99_ms), TARGET_NONE, 0 },
    { "Jobs", "", "endedMs", "the last one ended after", UNIT_TIME, FIGURE(ended_ms), TARGET_NONE, 0 },
    { "Jobs", "", "backlogEndedMs", "the backlog was worked off after", UNIT_TIME, FIGURE(backlog_ended_ms), TARGET_NONE, 0 },
    { "Destination", "", "requests", "requests", UNIT_COUNT, FIGURE(requests.all), TARGET_NONE, 0 },
    { "Destination", "", "requestsFailed", "requests that failed", UNIT_SHARE, FIGURE(requests.failed), TARGET_NONE, 0 },
    { "Destination", "", "peakPerSecond", "most requests in a second", UNIT_COUNT, FIGURE(requests.peak_second), TARGET_NONE, 0 },
    { "Destination", "", "peakAtOnce", "most requests at once", UNIT_COUNT, FIGURE(requests.peak_at_once), TARGET_NONE, 0 },
    { "Destination", "", "goodput", "requests that delivered", UNIT_SHARE, FIGURE(requests.goodput), TARGET_NONE, 0 },
    { "Destination", "", "duplicates", "jobs it was given twice", UNIT_COUNT, FIGURE(requests.duplicates), TARGET_NONE, 0 },
    { "Destination", "", "healthChecks", "health checks", UNIT_COUNT, FIGURE(health_checks), TARGET_NONE, 0 },
    { "Outage", "", "outageRequests", "requests during it", UNIT_COUNT, FIGURE(outage_requests), TARGET_NONE, 0 },
    { "Outage", "", "queuePeak", "longest queue", UNIT_COUNT, FIGURE(outage_queue_peak), TARGET_NONE, 0 },
    { "Outage", "", "drainMs", "queue as before after", UNIT_TIME, FIGURE(drain_ms), TARGET_NONE, 0 },
    { "Outage", "", "recoveryMs", "95% of the goodput again after", UNIT_TIME, FIGURE(recovery_ms), TARGET_NONE, 0 },
    { "Fairness", "", "jain", "Jain's index of tenants that compete", UNIT_NUMBER, FIGURE(jain), TARGET_NONE, 0 },
    { "Fairness", "", "smallTenantsP99Ms", "small tenants' first send, 99 of 100", UNIT_TIME, FIGURE(small_p99_ms), TARGET_NONE, 0 },
    { 0 },
};

static double ratio(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : NAN;
}

static int compare_times(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* The smallest value that `share` of all do not exceed. Sorts. */
static double percentile(int64_t *values, size_t count, double share)
{
    if (count == 0)
        return NAN;
    qsort(values, count, sizeof *values, compare_times);
    size_t rank = (size_t)ceil(share * (double)count);
    return (double)values[rank > 0 ? rank - 1 : 0];
}

static double mean(const int64_t *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)values[i];
    return count > 0 ? sum / (double)count : NAN;
}

static void make_times(const struct ledger *ledger, struct report *report, int64_t *values)
{
    size_t count = 0;
    for (int64_t i = 0; i < ledger->job_count; i++)
        if (ledger->jobs[i].end == END_COMPLETED)
            values[count++] = ledger->jobs[i].ended_ms - ledger->jobs[i].first_ms;
    report->success_mean_ms = mean(values, count);
    report->success_median_ms = percentile(values, count, 0.5);

    count = 0;
    for (int64_t i = 0; i < ledger->job_count; i++)
        if (ledger->jobs[i].end == END_COMPLETED)
            values[count++] = ledger->jobs[i].ended_ms - ledger->jobs[i].arrived_ms;
    report->waited_median_ms = percentile(values, count, 0.5);
    report->waited_p99_ms = percentile(values, count, 0.99);

    count = 0;
    for (int64_t i = 0; i < ledger->job_count; i++)
        if (ledger->jobs[i].tenant > 0 && ledger->jobs[i].tried)
            values[count++] = ledger->jobs[i].first_ms - ledger->jobs[i].arrived_ms;
    report->small_p99_ms = percentile(values, count, 0.99);
}

/* How far the fullest or emptiest tenth of the spread is from its share. */
static double wait_deviation(const struct ledger *ledger)
{
    int64_t all = 0;
    double most = 0;
    for (int i = 0; i < LEDGER_WAIT_PARTS; i++)
        all += ledger->wait_parts[i];
    if (all < DEVIATION_WAITS_MIN)
        return NAN;
    double expected = (double)all / LEDGER_WAIT_PARTS;
    for (int i = 0; i < LEDGER_WAIT_PARTS; i++) {
        double deviation = fabs((double)ledger->wait_parts[i] - expected) / expected;
        most = deviation > most ? deviation : most;
    }
    return most;
}

static void make_retries(const struct ledger *ledger, struct report *report)
{
    int64_t retried = 0, succeeded = 0, lost = 0, longest = 0, tried = 0, attempts = 0;
    for (int64_t i = 0; i < ledger->job_count; i++) {
        const struct job_record *job = &ledger->jobs[i];
        tried += job->attempts > 0;
        attempts += job->attempts;
        if (job->retries == 0)
            continue;
        retried++;
        succeeded += job->end == END_COMPLETED;
        lost += job->end == END_EXHAUSTED;
        longest += job->longest_wait;
    }
    report->success_after_retry = ratio(succeeded, retried);
    report->lost = ratio(lost, retried);
    report->longest_wait = ratio(longest, retried);
    report->attempts_mean = ratio(attempts, tried);
    report->wait_mean_ms = ratio(ledger->wait_sum_ms, ledger->wait_count);
    report->wait_deviation = wait_deviation(ledger);
}

static void make_ends(const struct ledger *ledger, struct report *report)
{
    report->jobs.all = (double)ledger->job_count;
    report->jobs.completed = (double)ledger->ends[END_COMPLETED];
    report->jobs.permanent = (double)ledger->ends[END_PERMANENT];
    report->jobs.exhausted = (double)ledger->ends[END_EXHAUSTED];
    report->jobs.expired = (double)ledger->ends[END_EXPIRED];
    report->jobs.in_doubt = (double)ledger->ends[END_IN_DOUBT];
    report->jobs.refused = (double)ledger->ends[END_REFUSED];
    report->jobs.open = (double)ledger->ends[END_OPEN];
    int64_t ended = ledger->job_count - ledger->ends[END_OPEN] - ledger->ends[END_REFUSED];
    report->permanent = ratio(ledger->ends[END_PERMANENT], ended);
    report->exhausted = ratio(ledger->ends[END_EXHAUSTED], ended);
    report->jain = ledger->jain_steps > 0 ? ledger->jain_sum / (double)ledger->jain_steps : NAN;
}

static void make_destination(const struct model_figures *model, struct report *report)
{
    report->requests.all = (double)model->requests;
    report->requests.failed = ratio(model->requests - model->answers[MODEL_OK], model->requests);
    report->requests.goodput = ratio(model->answers[MODEL_OK], model->requests);
    report->requests.peak_second = (double)model->peak_second;
    report->requests.peak_at_once = (double)model->peak_at_once;
    report->requests.duplicates = (double)model->duplicates;
    report->health_checks = model->health_checks > 0 ? (double)model->health_checks : NAN;
}

/* From all outages' first begin to their last end. */
static struct model_outage whole_outage(const struct model_settings *model)
{
    struct model_outage whole = model->outages[0];
    for (size_t i = 1; i < model->outage_count; i++) {
        if (model->outages[i].from_ms < whole.from_ms)
            whole.from_ms = model->outages[i].from_ms;
        if (model->outages[i].to_ms > whole.to_ms)
            whole.to_ms = model->outages[i].to_ms;
    }
    return whole;
}

static void make_outage(const struct run *run, struct report *report)
{
    const struct ledger *ledger = &run->result.ledger;
    const struct model_settings *model = &run->settings->model;
    if (model->outage_count == 0)
        return;
    struct model_outage outage = whole_outage(model);
    size_t before = (size_t)(outage.from_ms / ledger->step_ms);
    size_t after = (size_t)((outage.to_ms + ledger->step_ms - 1) / ledger->step_ms); /* the first whole step */
    int64_t delivered = 0, queue_before = 0, queue_peak = 0;
    for (size_t i = 0; i < ledger->step_count; i++) {
        const struct ledger_step *step = &ledger->steps[i];
        if (i < before) {
            delivered += step->delivered;
            queue_before = step->queue > queue_before ? step->queue : queue_before;
        }
        queue_peak = step->queue > queue_peak ? step->queue : queue_peak;
    }
    report->outage_requests = (double)run->result.model.during_outages;
    report->outage_queue_peak = (double)queue_peak;
    if (before == 0)
        return; /* nothing to compare with */
    double usual = (double)delivered / (double)before;
    for (size_t i = after; i < ledger->step_count; i++) {
        double since = (double)((int64_t)(i + 1) * ledger->step_ms - outage.to_ms);
        if (isnan(report->recovery_ms) && (double)ledger->steps[i].delivered >= 0.95 * usual)
            report->recovery_ms = since;
        if (isnan(report->drain_ms) && ledger->steps[i].queue <= queue_before)
            report->drain_ms = since;
    }
}

static void make_backlog(const struct sim_result *result, struct report *report)
{
    int64_t last = 0;
    if (result->backlog_count == 0)
        return;
    report->backlog = (double)result->backlog_count;
    for (int64_t i = 0; i < result->backlog_count; i++) {
        const struct job_record *job = &result->ledger.jobs[i];
        if (job->end == END_OPEN)
            return; /* it was not */
        last = job->ended_ms > last ? job->ended_ms : last;
    }
    report->backlog_ended_ms = (double)last;
}

void report_backlog(const struct run *run, struct buffer *out)
{
    const struct backlog *backlog = run->settings->backlog;
    buffer_printf(out, "backlog of %s: %zu job%s of %zu tenant%s", backlog->destination, backlog->count,
                  backlog->count == 1 ? "" : "s", backlog->tenant_count, backlog->tenant_count == 1 ? "" : "s");
    buffer_printf(out, " (%" PRId64 " pending, %" PRId64 " waiting, %" PRId64 " running)", backlog->pending,
                  backlog->waiting, backlog->running);
    if (run->result.mode)
        buffer_printf(out, ", mode %s", run->result.mode);
    if (backlog->left_out > 0)
        buffer_printf(out, "; its newest %" PRId64 " left out", backlog->left_out);
    if (backlog->other_jobs > 0)
        buffer_printf(out, "; %" PRId64 " job%s of %" PRId64 " other destination%s left out", backlog->other_jobs,
                      backlog->other_jobs == 1 ? "" : "s", backlog->other_destinations,
                      backlog->other_destinations == 1 ? "" : "s");
}

enum status report_make(struct run *run, struct error *err)
{
    const struct ledger *ledger = &run->result.ledger;
    struct report report = { .outage_requests = NAN, .outage_queue_peak = NAN, .drain_ms = NAN, .recovery_ms = NAN,
                             .backlog = NAN, .backlog_ended_ms = NAN };
    int64_t *values = malloc(((size_t)ledger->job_count + 1) * sizeof *values);
    if (!values)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the report");
    make_times(ledger, &report, values);
    free(values);
    make_retries(ledger, &report);
    make_ends(ledger, &report);
    make_destination(&run->result.model, &report);
    make_outage(run, &report);
    make_backlog(&run->result, &report);
    report.ended_ms = (double)run->result.ended_ms;
    if (ledger->tenants < 2)
        report.small_p99_ms = NAN;
    run->report = report;
    return STATUS_OK;
}

double figure_value(const struct figure *figure, const struct report *report)
{
    double value;
    memcpy(&value, (const char *)report + figure->offset, sizeof value);
    return value;
}

/* The documents on claims ask for their figures; to others these are figures without a target. */
static bool are_claims(const struct run *run)
{
    return slice_equal(classifier_namespace(run->settings->destination->policy.classifier), SLICE("tiss"));
}

bool figure_is_asked_for(const struct figure *figure, const struct run *run)
{
    return figure->rule[0] && are_claims(run);
}

bool figure_shown(const struct figure *figure, const struct run *runs, size_t count)
{
    bool claims = false, indicator = strcmp(figure->group, "Indicators") == 0;
    for (size_t i = 0; i < count; i++)
        claims = claims || are_claims(&runs[i]);
    if (indicator && claims != (figure->rule[0] != '\0'))
        return false;
    bool known = figure->target != TARGET_NONE;
    for (size_t i = 0; i < count; i++)
        known = known || !isnan(figure_value(figure, &runs[i].report));
    return known;
}

enum figure_verdict figure_judge(const struct figure *figure, const struct report *report)
{
    double value = figure_value(figure, report);
    if (figure->target == TARGET_NONE || isnan(value))
        return FIGURE_PLAIN;
    bool met = figure->target == TARGET_AT_LEAST  ? value >= figure->bound
               : figure->target == TARGET_AT_MOST ? value <= figure->bound
                                                  : value < figure->bound;
    return met ? FIGURE_MET : FIGURE_MISSED;
}

/* Short: beyond a minute no milliseconds. */
static void time_text(double ms, char ret_text[FIGURE_TEXT_BYTES])
{
    int64_t whole = llround(ms);
    int64_t grain = whole >= HOUR_MS ? MINUTE_MS : whole >= 10 * SECOND_MS ? SECOND_MS : 1;
    duration_format((whole + grain / 2) / grain * grain, ret_text);
}

static void magnitude(const struct figure *figure, double value, char ret_text[FIGURE_TEXT_BYTES])
{
    switch (figure->unit) {
    case UNIT_COUNT:
        snprintf(ret_text, FIGURE_TEXT_BYTES, "%.0f", value);
        break;
    case UNIT_SHARE:
        snprintf(ret_text, FIGURE_TEXT_BYTES, "%.2f%%", value * 100);
        break;
    case UNIT_TIME:
        time_text(value, ret_text);
        break;
    case UNIT_NUMBER:
        snprintf(ret_text, FIGURE_TEXT_BYTES, "%.3f", value);
        break;
    }
}

void figure_text(const struct figure *figure, double value, char ret_text[FIGURE_TEXT_BYTES])
{
    if (isnan(value))
        memcpy(ret_text, "-", 2);
    else
        magnitude(figure, value, ret_text);
}

void figure_difference(const struct figure *figure, double from, double to, char ret_text[FIGURE_TEXT_BYTES])
{
    char text[FIGURE_TEXT_BYTES];
    double difference = to - from;
    ret_text[0] = '\0';
    if (isnan(difference))
        return;
    magnitude(figure, fabs(difference), text);
    bool nothing = strspn(text, "0.%ms") == strlen(text);
    /* 80% against 90% are ten points, and an eighth more. */
    if (!nothing && figure->unit == UNIT_SHARE)
        snprintf(text, sizeof text, "%.2f points", fabs(difference) * 100);
    snprintf(ret_text, FIGURE_TEXT_BYTES, "%s%.*s", nothing ? "" : difference < 0 ? "-" : "+", FIGURE_TEXT_BYTES - 2,
             nothing ? "=" : text);
}

void figure_target_text(const struct figure *figure, char ret_text[FIGURE_TEXT_BYTES])
{
    static const char *const words[] = {
        [TARGET_NONE] = "", [TARGET_AT_LEAST] = "at least", [TARGET_AT_MOST] = "at most", [TARGET_BELOW] = "below",
    };
    char bound[FIGURE_TEXT_BYTES];
    ret_text[0] = '\0';
    if (figure->target == TARGET_NONE)
        return;
    if (figure->unit == UNIT_SHARE)
        snprintf(bound, sizeof bound, "%.0f%%", figure->bound * 100);
    else if (figure->unit == UNIT_NUMBER)
        snprintf(bound, sizeof bound, "%g", figure->bound);
    else
        magnitude(figure, figure->bound, bound);
    snprintf(ret_text, FIGURE_TEXT_BYTES, "%s %.*s", words[figure->target], FIGURE_TEXT_BYTES - 16, bound);
}
