/*
 * The families of /metrics, one row each. The documents' names stand as they wrote them; what is insist's own begins with
 * insist_ and ends with its unit. A number that the store or the engine has as it is reported is named by its row; what is
 * computed, or has labels of its own, has a function above.
 */
#include "api/call/shared.h"
#include "api/observe/dead_ages.h"
#include "api/observe/metrics.h"
#include "engine/status.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { ATTEMPT_BYTES = 24 };

#define LABEL(label_name, text) ((struct metric_label){ (label_name), (text) })
#define TEXT(label_name, text) ((struct metric_label){ (label_name), slice_from(text) })

static const struct exposition_scale duration_scale = { &measured_duration, 1000, 0 };
static const struct exposition_scale delivery_scale = { &measured_delivery, 1000, 0 };
static const struct exposition_scale wait_scale = { &measured_wait, 1000, 0 };
static const struct exposition_scale wait_minutes_scale = { &measured_wait, 60000, 30000 };
static const struct exposition_scale spread_scale = { &measured_spread, 1000, 0 };
static const struct exposition_scale analysis_scale = { &measured_analysis, 1e9, 0 };
static const struct exposition_scale commit_scale = { &measured_commit, 1e9, 0 };
static const struct exposition_scale operations_scale = { &measured_operations, 1, 0 };
static const struct exposition_scale request_scale = { &measured_request, 1e9, 0 };
static const struct exposition_scale age_scale = { &measured_age, 1000, 0 };

/* One sample with the destination and one label more. */
static void tell(const struct exposition *out, const struct metrics_destination *destination, struct metric_label label,
                 double value)
{
    const struct metric_label labels[] = { LABEL("destination", destination->name), label };
    exposition_sample(out, labels, 2, value);
}

/* ---- numbers of a destination ---- */

static double seconds(int64_t ms)
{
    return (double)ms / SECOND_MS;
}

/* Not a number when there is nothing to take a part of. */
static double ratio(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : NAN;
}

static int64_t died_by(const struct measures *measures, enum verdict verdict)
{
    return measures->verdicts[verdict] + measures->untried_dead[verdict];
}

static const struct { enum verdict verdict; const char *name; } dead_reasons[] = {
    { VERDICT_PERMANENT, "PERMANENT_ERROR" }, { VERDICT_EXHAUSTED, "MAX_RETRIES_EXCEEDED" }, { VERDICT_EXPIRED, "EXPIRED" },
    { VERDICT_PARK, "IN_DOUBT" },             { VERDICT_SPLIT, "PARTIAL" },
};

static int64_t died_of_all(const struct measures *measures)
{
    int64_t count = 0;
    for (size_t i = 0; i < sizeof dead_reasons / sizeof *dead_reasons; i++)
        count += died_by(measures, dead_reasons[i].verdict);
    return count;
}

/* Jobs go about in the order they came, and none has waited for longer than there have been some. */
static double waited(const struct measures *measures, int64_t ready, instant now)
{
    instant since = measures->head_at > measures->empty_at ? measures->head_at : measures->empty_at;
    if (ready == 0)
        return 0;
    return since == 0 ? NAN : now > since ? seconds(now - since) : 0;
}

static double lasted(const struct destination_measures *known, instant now)
{
    instant since = known->status.mode_since;
    return known->measures.contingency && since != INSTANT_NONE && now > since ? seconds(now - since) : 0;
}

static double success_ratio(UNUSED const struct metrics_scene *scene, const struct metrics_destination *of)
{
    return ratio(of->counts.completed, of->counts.completed + of->counts.dead);
}

/* One number of a destination that the engine knows, from its measures `m` and how it stands, `s`. */
#define FIGURE(name, expression)                                                                      \
    static double name(const struct metrics_scene *scene, const struct metrics_destination *of)       \
    {                                                                                                 \
        if (!of->measured)                                                                            \
            return NAN;                                                                               \
        const struct measures *m = &of->measured->measures;                                           \
        const struct destination_status *s = &of->measured->status;                                   \
        (void)scene, (void)m, (void)s;                                                                \
        return (double)(expression);                                                                  \
    }

FIGURE(retried, m->verdicts[VERDICT_RETRY] + m->decided[VERDICT_RETRY])
FIGURE(exhausted, died_by(m, VERDICT_EXHAUSTED) + m->decided[VERDICT_EXHAUSTED])
FIGURE(permanent, died_by(m, VERDICT_PERMANENT) + m->decided[VERDICT_PERMANENT])
FIGURE(died, died_of_all(m))
FIGURE(queue_mean, histogram_total(&m->times.queued) > 0 ? histogram_mean(&m->times.queued) / SECOND_MS : NAN)
FIGURE(queue_oldest, waited(m, of->counts.ready, scene->now))
FIGURE(availability, ratio(m->available_ms, m->observed_ms))
FIGURE(up, of->measured->checked ? of->measured->up : NAN)
FIGURE(contingency, lasted(of->measured, scene->now))
FIGURE(in_flight, s->under_way)
FIGURE(limit_now, s->limit.now)
FIGURE(tenants_with_work, s->lanes_with_work)
FIGURE(tenants_paused, s->tenants_paused)
FIGURE(leases, of->measured->pulled ? (double)s->under_way : NAN)
FIGURE(workers, of->measured->pulled ? (double)of->measured->workers : NAN)
FIGURE(cycle_duration, s->cycle.number > 0 ? seconds(cycle_took_ms(&s->cycle)) : NAN)
FIGURE(cycle_age, s->cycle.number > 0 ? seconds(s->cycle.age_ms) : NAN)

/* ---- of destinations, with labels of their own ---- */

static void labels(const struct exposition *out, const struct metrics_destination *destination)
{
    const struct measures *measures = &destination->measured->measures;
    static const char *const names[LABEL_COUNT] = { [LABEL_TRANSIENT] = "TRANSIENT", [LABEL_PERMANENT] = "PERMANENT",
                                                    [LABEL_UNKNOWN] = "UNKNOWN" };
    for (size_t i = 0; i < LABEL_COUNT; i++)
        tell(out, destination, TEXT("classification", names[i]), (double)measures->labels[i]);
}

static void outcomes(const struct exposition *out, const struct metrics_destination *destination)
{
    const struct measures *measures = &destination->measured->measures;
    for (int i = OUTCOME_DELIVERED; i < OUTCOME_COUNT; i++)
        tell(out, destination, TEXT("class", outcome_name((enum outcome)i)), (double)measures->outcomes[i]);
}

static const char *attempt_name(size_t index, char text[ATTEMPT_BYTES])
{
    if (index == MEASURED_ATTEMPTS_MAX)
        return "other";
    snprintf(text, ATTEMPT_BYTES, "%zu", index + 1);
    return text;
}

/* How many numbers of attempts there are to tell of: the first always, up to the highest that occurred. */
static size_t attempts_seen(const struct measures *measures)
{
    size_t count = MEASURED_ATTEMPTS_MAX + 1;
    while (count > 1 && measures->attempts[count - 1].answered == 0)
        count--;
    return count;
}

static void retries(const struct exposition *out, const struct metrics_destination *destination)
{
    const struct measures *measures = &destination->measured->measures;
    char text[ATTEMPT_BYTES];
    for (size_t i = 0; i < attempts_seen(measures); i++)
        tell(out, destination, TEXT("attempt", attempt_name(i, text)), (double)measures->attempts[i].retried);
}

static void numbers(const struct exposition *out, const struct metrics_destination *destination)
{
    const struct measures *measures = &destination->measured->measures;
    char text[ATTEMPT_BYTES];
    for (size_t i = 0; i < attempts_seen(measures); i++) {
        const struct attempt_measure *attempt = &measures->attempts[i];
        struct metric_label labels[] = { LABEL("destination", destination->name), TEXT("attempt", attempt_name(i, text)),
                                         TEXT("result", "delivered") };
        exposition_sample(out, labels, 3, (double)attempt->delivered);
        labels[2] = TEXT("result", "failed");
        exposition_sample(out, labels, 3, (double)(attempt->answered - attempt->delivered));
    }
}

/* C-83: one family. A number is about attempts; "all" about jobs: of those that were retried and ended, who got through. */
static void success(const struct exposition *out, const struct metrics_destination *destination)
{
    const struct measures *measures = &destination->measured->measures;
    char text[ATTEMPT_BYTES];
    int64_t ended = measures->retried_delivered + measures->retried_dead;
    for (size_t i = 0; i <= MEASURED_ATTEMPTS_MAX; i++) {
        const struct attempt_measure *attempt = &measures->attempts[i];
        if (attempt->answered > 0)
            tell(out, destination, TEXT("attempt", attempt_name(i, text)),
                 (double)attempt->delivered / (double)attempt->answered);
    }
    if (ended > 0)
        tell(out, destination, TEXT("attempt", "all"), (double)measures->retried_delivered / (double)ended);
}

/* Codes, those of dead letters or of all failures. */
static void codes_of(const struct exposition *out, const struct metrics_destination *destination, bool dead)
{
    const struct measures *measures = &destination->measured->measures;
    for (size_t i = 0; i <= measures->codes.count; i++) {
        bool other = i == measures->codes.count;
        const struct code_measure *code = other ? &measures->codes.other : &measures->codes.items[i];
        int64_t count = dead ? code->dead : code->failed;
        if (count > 0)
            tell(out, destination, TEXT("code", other ? "other" : code->code), (double)count);
    }
}

static void dead_codes(const struct exposition *out, const struct metrics_destination *destination)
{
    codes_of(out, destination, true);
}

static void failed_codes(const struct exposition *out, const struct metrics_destination *destination)
{
    codes_of(out, destination, false);
}

static void reasons(const struct exposition *out, const struct metrics_destination *destination)
{
    const struct measures *measures = &destination->measured->measures;
    for (size_t i = 0; i < sizeof dead_reasons / sizeof *dead_reasons; i++)
        tell(out, destination, TEXT("reason", dead_reasons[i].name),
             (double)died_by(measures, dead_reasons[i].verdict));
}

/* Of those that are gone it still tells that there were some. */
static void dead_ages(const struct exposition *out, const struct metrics_scene *scene)
{
    static const struct histogram none;
    for (size_t i = 0; i < scene->count; i++) {
        const struct metrics_destination *destination = &scene->items[i];
        const struct histogram *ages = destination->dead_ages ? destination->dead_ages : &none;
        if (destination->dead_ages || died(scene, destination) > 0)
            exposition_histogram(out, &LABEL("destination", destination->name), 1, ages, &age_scale);
    }
}

/* ---- alerts ---- */

static void tell_alerts(const struct exposition *out, const int64_t alerts[ALERT_KIND_COUNT], struct slice destination)
{
    for (int kind = 0; kind < ALERT_KIND_COUNT; kind++) {
        const struct metric_label labels[] = { TEXT("alert", alert_types[kind].name),
                                               TEXT("severity", alert_severity_name(alert_types[kind].severity)),
                                               LABEL("destination", destination) };
        if (alerts[kind] > 0)
            exposition_sample(out, labels, destination.len > 0 ? 3 : 2, (double)alerts[kind]);
    }
}

static void alerts(const struct exposition *out, const struct metrics_scene *scene)
{
    for (size_t i = 0; i < scene->count; i++)
        if (scene->items[i].measured)
            tell_alerts(out, scene->items[i].measured->alerts, scene->items[i].name);
    tell_alerts(out, scene->engine.alerts, SLICE(""));
}

/* ---- of tenants ---- */

static void tenants_of(const struct exposition *out, const struct metrics_destination *destination, bool dead)
{
    const struct measures *measures = &destination->measured->measures;
    const struct measured_tenant *tenants = destination->measured->tenants;
    int64_t others = dead ? measures->tenants.other.dead : measures->tenants.other.processed;
    for (size_t i = 0; i < measures->tenants.count; i++)
        tell(out, destination, LABEL("tenant", tenants[i].tenant), (double)(dead ? tenants[i].dead : tenants[i].processed));
    if (others > 0)
        tell(out, destination, TEXT("tenant", "other"), (double)others);
}

static void dead_tenants(const struct exposition *out, const struct metrics_destination *destination)
{
    tenants_of(out, destination, true);
}

static void processed(const struct exposition *out, const struct metrics_destination *destination)
{
    tenants_of(out, destination, false);
}

static const struct { const char *name; size_t count; } states[] = {
    { "pending", offsetof(struct lane_counts, pending) }, { "running", offsetof(struct lane_counts, running) },
    { "waiting", offsetof(struct lane_counts, waiting) }, { "dead", offsetof(struct lane_counts, dead) },
};

static double count_at(const struct lane_counts *counts, size_t offset)
{
    return (double)*(const int64_t *)((const char *)counts + offset);
}

/* Of every destination in use, whether the engine knows it or not. */
static void jobs(const struct exposition *out, const struct metrics_scene *scene)
{
    for (size_t i = 0; i < scene->count; i++)
        for (size_t k = 0; k < sizeof states / sizeof *states && scene->items[i].in_use; k++)
            tell(out, &scene->items[i], TEXT("state", states[k].name), count_at(&scene->items[i].counts, states[k].count));
}

static void jobs_of_tenant(const struct exposition *out, const struct metrics_destination *destination, struct slice tenant,
                           const struct lane_counts *counts)
{
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        const struct metric_label labels[] = { LABEL("destination", destination->name), LABEL("tenant", tenant),
                                               TEXT("state", states[i].name) };
        exposition_sample(out, labels, 3, count_at(counts, states[i].count));
    }
}

static void tenant_jobs(const struct exposition *out, const struct metrics_scene *scene)
{
    for (size_t i = 0; i < scene->count; i++) {
        const struct metrics_destination *destination = &scene->items[i];
        for (size_t k = 0; k < destination->largest_count; k++)
            jobs_of_tenant(out, destination, destination->largest[k].tenant, &destination->largest[k].counts);
        if (destination->in_use)
            jobs_of_tenant(out, destination, SLICE("other"), &destination->rest);
    }
}

/* ---- how destinations stand ---- */

/* One sample a word, 1 for the one that holds. */
static void tell_words(const struct exposition *out, const struct metrics_destination *destination, const char *label,
                       const char *const *words, size_t count, const char *present)
{
    for (size_t i = 0; i < count; i++)
        tell(out, destination, TEXT(label, words[i]), present && strcmp(words[i], present) == 0);
}

static void breaker(const struct exposition *out, const struct metrics_destination *destination)
{
    static const char *const words[] = { "closed", "open", "half_open" };
    tell_words(out, destination, "state", words, 3, destination->measured->status.breaker);
}

static void limit_reason(const struct exposition *out, const struct metrics_destination *destination)
{
    static const char *const words[] = {
        [LIMIT_CONFIGURED] = "configured", [LIMIT_MAX] = "max",     [LIMIT_STARTS] = "starts", [LIMIT_BORNE] = "borne",
        [LIMIT_RISES] = "rises",           [LIMIT_TRIAL] = "trial", [LIMIT_OUTAGE] = "outage",
    };
    tell(out, destination, TEXT("reason", words[destination->measured->status.limit.reason]), 1);
}

/* Of one that nobody has used yet, only the mode it is in. */
static void mode(const struct exposition *out, const struct metrics_destination *destination)
{
    static const char *const words[] = { "normal", "contingency", "recovering", "paused" };
    if (destination->in_use)
        tell_words(out, destination, "mode", words, 4, destination->measured->status.mode);
    else
        tell(out, destination, TEXT("mode", destination->measured->status.mode), 1);
}

static void held(const struct exposition *out, const struct metrics_destination *destination)
{
    if (destination->measured->status.held_by)
        tell(out, destination, TEXT("by", destination->measured->status.held_by), 1);
}

static void cycle_jobs(const struct exposition *out, const struct metrics_destination *destination)
{
    const struct cycle_figures *cycle = &destination->measured->status.cycle;
    if (cycle->number == 0)
        return;
    tell(out, destination, TEXT("result", "selected"), (double)cycle->selected);
    tell(out, destination, TEXT("result", "succeeded"), (double)cycle->succeeded);
    tell(out, destination, TEXT("result", "failed"), (double)cycle->failed);
    tell(out, destination, TEXT("result", "rescheduled"), (double)cycle->rescheduled);
}

/* ---- of the whole ---- */

static void build(const struct exposition *out, UNUSED const struct metrics_scene *scene)
{
    exposition_sample(out, &TEXT("version", INSIST_VERSION), 1, 1);
}

static void refused(const struct exposition *out, const struct metrics_scene *scene)
{
    for (int i = 0; i < REFUSAL_COUNT; i++)
        exposition_sample(out, &TEXT("reason", refusal_name((enum refusal)i)), 1, (double)scene->api->measures.refused[i]);
}

static void requests(const struct exposition *out, const struct metrics_scene *scene)
{
    for (int i = 0; i < REQUEST_CLASS_COUNT; i++) {
        for (size_t k = 0; k < REQUEST_STATUSES_MAX; k++) {
            int64_t count = scene->api->measures.counts[i][k];
            const struct metric_label labels[] = { TEXT("class", request_class_name((enum request_class)i)),
                                                   TEXT("code", request_status_name(k)) };
            if (count > 0)
                exposition_sample(out, labels, 2, (double)count);
        }
    }
}

static void request_durations(const struct exposition *out, const struct metrics_scene *scene)
{
    for (int i = 0; i < REQUEST_CLASS_COUNT; i++)
        if (histogram_total(&scene->api->measures.durations[i]) > 0)
            exposition_histogram(out, &TEXT("class", request_class_name((enum request_class)i)), 1,
                                 &scene->api->measures.durations[i], &request_scale);
}

static void commits(const struct exposition *out, const struct metrics_scene *scene)
{
    exposition_histogram(out, NULL, 0, &scene->writer.commit_ns, &commit_scale);
}

static void operations(const struct exposition *out, const struct metrics_scene *scene)
{
    exposition_histogram(out, NULL, 0, &scene->writer.operations, &operations_scale);
}

/* One number of the whole. */
#define NUMBER_OF(name, expression)                       \
    static double name(const struct metrics_scene *scene) \
    {                                                     \
        return (double)(expression);                      \
    }

NUMBER_OF(connections, scene->api->http.door.count)
NUMBER_OF(last_event, scene->last_event)
NUMBER_OF(reachable, !scene->away)
NUMBER_OF(disk_limit, scene->api->config->disk_free_bytes)
NUMBER_OF(dead_expired, scene->engine.dead_expired)
NUMBER_OF(jobs_limit, scene->api->config->pending_max > 0 ? (double)scene->api->config->pending_max : NAN)

static double engine_idle(const struct metrics_scene *scene)
{
    instant ran_at = scene->figures.ran_at;
    return ran_at == 0 ? NAN : scene->now > ran_at ? seconds(scene->now - ran_at) : 0;
}

/* ---- of nodes that share the store ---- */

NUMBER_OF(nodes, scene->nodes ? (double)scene->nodes->count : NAN)
NUMBER_OF(unowned, scene->nodes ? (double)scene->nodes->unowned : NAN)
NUMBER_OF(trusted, scene->nodes ? (double)scene->nodes->trusted : NAN)
NUMBER_OF(taken_for_dead, scene->nodes ? (double)scene->nodes->taken_for_dead : NAN)

static void silent(const struct exposition *out, const struct metrics_scene *scene)
{
    for (size_t i = 0; scene->nodes && i < scene->nodes->count; i++)
        exposition_sample(out, &TEXT("node", scene->nodes->nodes[i].name), 1, seconds(scene->nodes->nodes[i].silent_ms));
}

static void owned(const struct exposition *out, const struct metrics_scene *scene)
{
    for (size_t i = 0; scene->nodes && i < scene->nodes->count; i++)
        exposition_sample(out, &TEXT("node", scene->nodes->nodes[i].name), 1, (double)scene->nodes->nodes[i].destinations);
}

static void moved(const struct exposition *out, const struct metrics_scene *scene)
{
    if (!scene->nodes)
        return;
    exposition_sample(out, &TEXT("how", "taken"), 1, (double)scene->nodes->taken);
    exposition_sample(out, &TEXT("how", "given"), 1, (double)scene->nodes->given);
}

/* ---- sources ---- */

/* One number of a source; not a number: it is not known. */
#define SOURCE_FIGURE(name, expression)                     \
    static double name(const struct source_figures *source) \
    {                                                       \
        return (double)(expression);                        \
    }

SOURCE_FIGURE(source_up, source->state == SOURCE_READING || source->state == SOURCE_WAITING)
SOURCE_FIGURE(source_held, source->held)
SOURCE_FIGURE(source_lag, source->lag >= 0 ? (double)source->lag : NAN)
SOURCE_FIGURE(source_memory,
              source->checked && source->redis.limit_bytes > 0 ? redis_health_share(&source->redis) : NAN)

static void sources_entries(const struct exposition *out, const struct metrics_scene *scene)
{
    for (size_t i = 0; i < scene->source_count; i++) {
        const struct source_figures *source = &scene->sources[i];
        const struct {
            const char *result;
            int64_t count;
        } results[] = { { "accepted", source->counts.accepted }, { "duplicate", source->counts.duplicates },
                        { "rejected", source->counts.rejected }, { "gone", source->counts.gone } };
        for (size_t k = 0; k < sizeof results / sizeof *results; k++) {
            const struct metric_label labels[] = { TEXT("source", source->name), TEXT("result", results[k].result) };
            exposition_sample(out, labels, 2, (double)results[k].count);
        }
    }
}

/* Where a row's value comes from. */
#define STORED(member) .source = { .from = FROM_STORE, .offset = offsetof(struct metrics_destination, member) }
#define MEASURED(member) .source = { .from = FROM_MEASURES, .offset = offsetof(struct measures, member), .divisor = 1 }
#define TIMED(member) .source = { .from = FROM_MEASURES, .offset = offsetof(struct measures, member), .divisor = SECOND_MS }
#define SPREAD(member, scale_of) \
    .source = { .from = FROM_HISTOGRAM, .offset = offsetof(struct measures, member), .scale = &(scale_of) }
#define TURNS(member) .source = { .from = FROM_TURNS, .offset = offsetof(struct turn_figures, member) }
#define VALUE(function) .source = { .from = FROM_VALUE, .value = (function) }
#define EACH(function) .source = { .from = FROM_EACH, .each = (function) }
#define NUMBER(function) .source = { .from = FROM_NUMBER, .number = (function) }
#define OF_SOURCE(function) .source = { .from = FROM_SOURCES, .of_source = (function) }
#define WHOLE(function) .source = { .from = FROM_WHOLE, .whole = (function) }

#define COUNTER(name, labels, help) { name, METRIC_COUNTER, help }, labels
#define GAUGE(name, labels, help) { name, METRIC_GAUGE, help }, labels
#define HISTOGRAM(name, labels, help) { name, METRIC_HISTOGRAM, help }, labels
#define OF_DECISIONS .of_decisions = true

const struct metric_row metric_rows[] = {
    /* Asked for by RN-BIL-004. */
    { COUNTER("submission_retry_total", "destination", "Retries that were scheduled."), VALUE(retried), OF_DECISIONS },
    { HISTOGRAM("submission_retry_backoff_minutes", "destination", "Waits before retries, in minutes."),
      SPREAD(times.wait, wait_minutes_scale), OF_DECISIONS },
    { COUNTER("submission_retry_max_exceeded", "destination", "Jobs that used up their retries."), VALUE(exhausted),
      OF_DECISIONS },
    { COUNTER("error_classification_distribution", "destination, classification",
              "Failed attempts by the documents' three classes: TRANSIENT, PERMANENT, UNKNOWN."),
      EACH(labels), OF_DECISIONS },
    /* Asked for by RN-BIL-005. */
    { HISTOGRAM("retry_analysis_duration_seconds", "destination", "How long it took to judge an answer and decide."),
      SPREAD(times.analysis, analysis_scale), OF_DECISIONS },
    { COUNTER("retry_scheduled_total", "destination", "Retries that were scheduled."), VALUE(retried), OF_DECISIONS },
    { COUNTER("max_retries_exceeded_total", "destination", "Jobs that used up their retries."), VALUE(exhausted),
      OF_DECISIONS },
    { COUNTER("permanent_errors_total", "destination", "Jobs that died of a permanent error."), VALUE(permanent),
      OF_DECISIONS },
    { HISTOGRAM("backoff_duration_minutes", "destination", "Waits before retries, in minutes."),
      SPREAD(times.wait, wait_minutes_scale), OF_DECISIONS },
    { GAUGE("retry_success_rate", "destination, attempt",
            "Share of the attempts of that number that were delivered since the start, 0 to 1; `all`: of the jobs that "
            "were retried and are delivered or dead."),
      EACH(success) },
    /* Asked for by the e-mail document. */
    { COUNTER("retry_attempts_total", "destination, attempt",
              "Retries that were scheduled, by the number of the attempt that had failed."),
      EACH(retries) },
    { HISTOGRAM("retry_backoff_delay_seconds", "destination", "Waits before retries."), SPREAD(times.wait, wait_scale) },
    { COUNTER("dlq_entries_total", "destination",
              "Jobs that died. Those whose deadline passed while they waited have no destination."),
      VALUE(died), .expired = { "", "" } },
    { GAUGE("dlq_size", "destination", "Dead letters now."), STORED(counts.dead) },
    { HISTOGRAM("dlq_age_seconds", "destination",
                "Ages of the dead letters there are, so it can fall; of many as of the last pass, a thousand a "
                "scrape."),
      WHOLE(dead_ages) },
    { COUNTER("dlq_by_error_code", "destination, code", "Jobs that died, by the code of their last attempt."),
      EACH(dead_codes), .expired = { "code", "EXPIRED" } },
    { COUNTER("dlq_by_company", "destination, tenant", "Jobs that died, by tenant."), EACH(dead_tenants),
      .expired = { "tenant", "other" } },
    { COUNTER("tenant_jobs_processed", "destination, tenant", "Answered attempts, by tenant."), EACH(processed) },
    { GAUGE("tenant_current_priority", "destination, tenant",
            "The tenant's priority in the turns; 1 is the most urgent."),
      TURNS(priority) },
    { GAUGE("tenant_consecutive_batch", "destination, tenant",
            "Jobs of the tenant in a row, up to the batch of its turn; 0 when another was served since."),
      TURNS(in_a_row) },
    { GAUGE("tenant_rounds_without_processing", "destination, tenant", "Whole rounds since the tenant was served."),
      TURNS(rounds_without) },

    /* ---- jobs ---- */
    { GAUGE("insist_jobs", "destination, state", "Jobs now, by state."), WHOLE(jobs) },
    { GAUGE("insist_jobs_ready", "destination", "Jobs that could be sent now."), STORED(counts.ready) },
    { GAUGE("insist_jobs_limit", "", "limits.pending: beyond so many no job is taken."), NUMBER(jobs_limit) },
    { GAUGE("insist_tenant_jobs", "destination, tenant, state", "Jobs now, of the tenants that have the most."),
      WHOLE(tenant_jobs) },
    { COUNTER("insist_jobs_enqueued_total", "destination", "New jobs taken."), STORED(inserts.accepted) },
    { COUNTER("insist_jobs_duplicate_total", "destination", "Jobs that were there already, with the same body."),
      STORED(inserts.duplicates) },
    { COUNTER("insist_enqueue_refused_total", "reason",
              "Jobs that were not taken for another reason than their form; requests, where all of one was refused."),
      WHOLE(refused) },
    { COUNTER("insist_jobs_completed_total", "destination", "Jobs delivered; kept over restarts."),
      STORED(counts.completed) },
    { COUNTER("insist_jobs_cancelled_total", "destination", "Jobs cancelled; kept over restarts."),
      STORED(counts.cancelled) },
    { COUNTER("insist_jobs_dead_total", "destination, reason",
              "Jobs that died, by the reason in their dead letter. Those whose deadline passed while they waited "
              "have no destination."),
      EACH(reasons), .expired = { "reason", "EXPIRED" } },
    { COUNTER("insist_dead_exported_total", "destination",
              "Dead letters that went to dead.export when their time was over."),
      MEASURED(exported) },
    { COUNTER("insist_dead_export_refused_total", "destination",
              "Times that the store did not take one for dead.export: it stays a dead letter and is tried again."),
      MEASURED(export_refused) },
    { COUNTER("insist_dead_expired_total", "", "Dead letters that were deleted without an export when their time was over."),
      NUMBER(dead_expired) },
    { GAUGE("insist_success_ratio", "destination", "Delivered jobs' share of all that are delivered or dead, 0 to 1."),
      VALUE(success_ratio) },

    /* ---- attempts ---- */
    { COUNTER("insist_attempts_total", "destination, class", "Answered attempts, by what came of them."),
      EACH(outcomes) },
    { COUNTER("insist_attempts_by_number_total", "destination, attempt, result", "Answered attempts by their number."),
      EACH(numbers) },
    { COUNTER("insist_attempt_errors_total", "destination, code", "Failed attempts by code."), EACH(failed_codes) },
    { COUNTER("insist_attempts_unsent_total", "destination", "Jobs that were claimed and given back untouched."),
      MEASURED(unsent) },
    { COUNTER("insist_recovered_attempts_total", "destination",
              "Attempts whose end nobody recorded: after a crash, or a pull worker's lost lease."),
      MEASURED(recovered) },
    { HISTOGRAM("insist_attempt_duration_seconds", "destination",
                "How long an attempt took; of pull workers from lease to end."),
      SPREAD(times.duration, duration_scale) },
    { HISTOGRAM("insist_delivery_seconds", "destination", "From a job's arrival to its delivery."),
      SPREAD(times.delivery, delivery_scale) },
    { HISTOGRAM("insist_queue_seconds", "destination", "From when a job could be sent to its first attempt."),
      SPREAD(times.queued, delivery_scale) },
    { GAUGE("insist_queue_mean_seconds", "destination", "The mean of insist_queue_seconds since the start."),
      VALUE(queue_mean) },
    { GAUGE("insist_queue_oldest_seconds", "destination",
            "About how long the job that is next has waited: by the one claimed last, and by how long some have been "
            "waiting. Not known after a restart until something is claimed."),
      VALUE(queue_oldest) },
    { COUNTER("insist_backoff_capped_total", "destination", "Waits that had grown to the policy's cap."),
      MEASURED(capped) },
    { HISTOGRAM("insist_backoff_spread_ratio", "destination",
                "Where in its spread each wait was drawn, 0 to 1: even when the spread is."),
      SPREAD(times.spread, spread_scale) },

    /* ---- destinations ---- */
    { GAUGE("insist_in_flight", "destination", "Attempts under way."), VALUE(in_flight) },
    { GAUGE("insist_concurrency_limit", "destination", "How many may be under way now."), VALUE(limit_now) },
    { GAUGE("insist_concurrency_reason", "destination, reason",
            "1, with the reason why so many may be under way now: see docs/operations.md."),
      EACH(limit_reason) },
    { GAUGE("insist_breaker_state", "destination, state", "1 for the state the breaker is in, else 0."),
      EACH(breaker) },
    { GAUGE("insist_destination_mode", "destination, mode", "1 for the mode the destination is in, else 0."),
      EACH(mode), .of_unused = true },
    { GAUGE("insist_destination_held", "destination, by", "1 while something keeps jobs from being sent."),
      EACH(held), .of_unused = true },
    { GAUGE("insist_destination_up", "destination",
            "1 unless health checks say that it is down; only where there are some."),
      VALUE(up), .of_unused = true },
    { COUNTER("insist_destination_available_seconds_total", "destination",
              "Time without contingency, open breaker and failed health checks."),
      TIMED(available_ms) },
    { COUNTER("insist_destination_observed_seconds_total", "destination", "Time that was looked at."),
      TIMED(observed_ms) },
    { GAUGE("insist_destination_availability_ratio", "destination",
            "Available part of the observed time since the start, 0 to 1."),
      VALUE(availability) },
    { GAUGE("insist_contingency_seconds", "destination",
            "How long the present contingency has lasted; 0: there is none."),
      VALUE(contingency) },
    { COUNTER("insist_contingency_seconds_total", "destination", "Time in contingency."), TIMED(contingency_ms) },
    { GAUGE("insist_tenants", "destination", "Tenants that have or had jobs."), STORED(tenants) },
    { GAUGE("insist_tenants_with_work", "destination", "Tenants with jobs that could be sent."),
      VALUE(tenants_with_work) },
    { GAUGE("insist_tenants_paused", "destination", "Tenants that are held for themselves."), VALUE(tenants_paused) },
    { GAUGE("insist_leases", "destination", "Jobs that pull workers hold."), VALUE(leases) },
    { GAUGE("insist_lease_workers_waiting", "destination", "Pull workers that wait for a job."), VALUE(workers) },
    { GAUGE("insist_cycle_jobs", "destination, result", "Jobs of the last cycle: selected, and what came of them."),
      EACH(cycle_jobs) },
    { GAUGE("insist_cycle_duration_seconds", "destination", "How long the last cycle took."), VALUE(cycle_duration) },
    { GAUGE("insist_cycle_average_age_seconds", "destination", "Mean age of the jobs that the last cycle selected."),
      VALUE(cycle_age) },

    { GAUGE("insist_alerts", "alert, severity, destination",
            "Alerts that stand; about tenants, how many of them. Those about the daemon have no destination, and what does not "
            "stand has no series."),
      WHOLE(alerts) },

    /* ---- sources ---- */
    { GAUGE("insist_source_up", "source", "1 while its Redis is read, 0 while it cannot be."), OF_SOURCE(source_up) },
    { COUNTER("insist_source_entries_total", "source, result",
              "Entries by what came of them: `accepted`, a `duplicate` of a job that was there, `rejected`, or `gone` before they "
              "were read."),
      WHOLE(sources_entries) },
    { GAUGE("insist_source_held", "source", "Entries that were read and are not stored yet."), OF_SOURCE(source_held) },
    { GAUGE("insist_source_lag", "source", "Entries in the stream that were not read yet, as of ten seconds ago at most."),
      OF_SOURCE(source_lag) },
    { GAUGE("insist_source_redis_memory_ratio", "source", "Used part of the memory that its Redis may use."),
      OF_SOURCE(source_memory) },

    /* ---- the daemon ---- */
    { GAUGE("insist_build_info", "version", "1, with the version."), WHOLE(build) },
    { COUNTER("insist_http_requests_total", "class, code",
              "Answered requests by what they are for and by status; `gone`: the client had left."),
      WHOLE(requests) },
    { HISTOGRAM("insist_http_request_duration_seconds", "class",
                "From a whole request to its answer; pull workers wait in theirs."),
      WHOLE(request_durations) },
    { GAUGE("insist_http_connections", "", "Open connections of clients."), NUMBER(connections) },
    { HISTOGRAM("insist_commit_duration_seconds", "", "How long a transaction took, until it was durable."),
      WHOLE(commits) },
    { HISTOGRAM("insist_commit_operations", "", "Operations of a transaction."), WHOLE(operations) },
    { GAUGE("insist_events_last_number", "", "Number of the newest event in the trail."), NUMBER(last_event) },
    { GAUGE("insist_engine_idle_seconds", "", "Since the engine last ran; it does so at least each second."),
      NUMBER(engine_idle) },
    { GAUGE("insist_store_reachable", "", "0 while the store is away: nothing is accepted, and no destination is told of."),
      NUMBER(reachable) },
    { GAUGE("insist_store_bytes", "", "Size of the store's file."), NUMBER(metrics_store_bytes) },
    { GAUGE("insist_store_wal_bytes", "", "Size of the store's write-ahead log."), NUMBER(metrics_store_wal_bytes) },
    { GAUGE("insist_disk_free_bytes", "", "Free space where the store is."), NUMBER(metrics_disk_free) },
    { GAUGE("insist_disk_free_limit_bytes", "", "limits.disk_free: below it no job is taken."), NUMBER(disk_limit) },
    { GAUGE("insist_nodes", "", "Nodes that share the store and run. These seven are of a node; a daemon alone has none."),
      NUMBER(nodes) },
    { GAUGE("insist_node_silent_seconds", "node", "Since another node was heard of; six are taken for its death."),
      WHOLE(silent) },
    { GAUGE("insist_node_destinations", "node", "Destinations that a node owns."), WHOLE(owned) },
    { GAUGE("insist_destinations_unowned", "", "Destinations that no node owns: nothing is sent there."), NUMBER(unowned) },
    { GAUGE("insist_node_trusted", "", "1 while this node may send: it could say of late that it lives."), NUMBER(trusted) },
    { COUNTER("insist_nodes_taken_for_dead_total", "", "Sessions of other nodes that this one ended."),
      NUMBER(taken_for_dead) },
    { COUNTER("insist_destinations_moved_total", "how", "Destinations that this node took, or gave away."), WHOLE(moved) },
    { COUNTER("process_cpu_seconds_total", "", "Processor time of the process."), NUMBER(metrics_process_cpu) },
    { GAUGE("process_resident_memory_bytes", "", "Memory in use."), NUMBER(metrics_process_resident) },
    { GAUGE("process_virtual_memory_bytes", "", "Virtual memory."), NUMBER(metrics_process_virtual) },
    { GAUGE("process_open_fds", "", "Open file descriptors."), NUMBER(metrics_process_fds) },
    { GAUGE("process_max_fds", "", "How many may be open."), NUMBER(metrics_process_max_fds) },
    { GAUGE("process_start_time_seconds", "", "When the process began, since 1970."), NUMBER(metrics_process_start) },
    { .labels = NULL },
};
