/*
 * GET /metrics: what jobs leave behind in it, to the number; its form; who may see it; and that the documentation and the
 * example rules name what there is.
 */
#include "api/observe/metrics.h"
#include "support/api_fixture.h"
#include "support/check.h"
#include "support/prometheus.h"

#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>

static const char config[] =
    "listen: 127.0.0.1:0\n"
    "store: 'memory:'\n"
    "destinations:\n"
    "  web: { url: 'http://127.0.0.1:1/', concurrency: 4, breaker: { min_calls: 1000 },\n"
    "         retry: { max_retries: 2, base: 1m, factor: 2, cap: 2m, floor: 1m, jitter: 0 },\n"
    "         errors: { permanent: ['400'], transient: ['503'] }, fairness: { base_priority: 5, batch: 3 },\n"
    "         alerts: { dead_per_tenant: 1 } }\n"
    "  slow: { url: 'http://127.0.0.1:1/', concurrency: 1, job_ttl: 1h, fairness: { base_priority: 5, batch: 3 } }\n"
    "  yard: { transport: pull, retry: { max_retries: 2, base: 1h, factor: 2, cap: 5h, floor: 1h, jitter: 0 },\n"
    "          errors: { permanent: [BROKEN], transient: [TIMEOUT] } }\n";

/* A job that is not to be sent for long. */
static const char later[] =
    "{\"destination\":\"web\",\"tenant\":\"later\",\"id\":\"l1\",\"payload\":\"ok\",\"run_at\":\"2999-12-31T00:00:00Z\"}";

static int setup(void **state)
{
    static const struct api_fixture_settings settings = { .config = config };
    *state = api_fixture_new(&settings);
    return 0;
}

static int teardown(void **state)
{
    api_fixture_free(*state);
    return 0;
}

/* The answer's text, checked; to be freed. */
static char *scrape(const struct api_fixture *fixture)
{
    struct reply reply = http_do(fixture, "GET", "/metrics", NULL);
    char *type = reply_header(&reply, "Content-Type");
    check(reply.status == 200, "%d %s", reply.status, reply.body);
    assert_string_equal(type, "text/plain; version=0.0.4; charset=utf-8");
    check(!prometheus_problem(reply.body), "%s", prometheus_problem(reply.body));
    char *text = strdup(reply.body);
    free(type);
    reply_release(&reply);
    return text;
}

struct expected {
    const char *series;
    double value; /* not a number: it must not be there */
};

static void check_values(const char *text, const struct expected *expected, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double value = NAN;
        bool found = prometheus_value(text, expected[i].series, &value);
        if (isnan(expected[i].value))
            check(!found, "%s is there: %g", expected[i].series, value);
        else
            check(found && fabs(value - expected[i].value) < 1e-9, "%s is %g, not %g", expected[i].series, value,
                  expected[i].value);
    }
}

static double value_of(const char *text, const char *series)
{
    double value = NAN;
    check(prometheus_value(text, series, &value), "there is no %s", series);
    return value;
}

static void post(const struct api_fixture *fixture, const char *path, const char *body, int status)
{
    struct reply reply = http_do(fixture, "POST", path, body);
    check(reply.status == status, "%s: %d %s", path, reply.status, reply.body);
    reply_release(&reply);
}

/*
 * Three of acme are delivered. Of globex one is refused for good, and one fails three times, which is all it has: after waits
 * of one and two minutes, of which the second is the cap.
 */
static void run_outcomes(struct api_fixture *fixture)
{
    static const char job[] = "{\"destination\":\"web\",\"tenant\":\"acme\",\"id\":\"a1\",\"payload\":\"ok\"}";
    put_job(fixture, "web", "acme", "a1", "ok");
    put_job(fixture, "web", "acme", "a2", "ok");
    put_job(fixture, "web", "acme", "a3", "ok");
    put_job(fixture, "web", "globex", "b1", "bad");
    put_job(fixture, "web", "globex", "b2", "fail");
    post(fixture, "/v1/jobs", job, 200); /* again */
    post(fixture, "/v1/jobs", "{\"destination\":\"web\",\"tenant\":\"acme\",\"id\":\"a1\",\"payload\":\"other\"}", 409);
    await_state(fixture, "/v1/jobs/a1?tenant=acme", "completed");
    await_state(fixture, "/v1/jobs/a2?tenant=acme", "completed");
    await_state(fixture, "/v1/jobs/a3?tenant=acme", "completed");
    await_state(fixture, "/v1/jobs/b1?tenant=globex", "dead");
    for (int attempt = 1; attempt < 3; attempt++) {
        await_number(fixture, "/v1/jobs/b2?tenant=globex", "retry_count", attempt);
        await_state(fixture, "/v1/jobs/b2?tenant=globex", "waiting");
        api_fixture_advance(fixture, 3 * 60 * 1000);
    }
    await_state(fixture, "/v1/jobs/b2?tenant=globex", "dead");
}

/*
 * S0-076 S0-135 S0-136 S0-137 S0-138 S1-048 S1-058 S1-109 S1-110 S1-111 S1-112 S1-113 S2-040 S2-041 S2-042 S2-090 S2-091
 * S2-092 S2-093 S2-094 S2-096 S2-097 S3-073 C-83
 */
static void outcomes_are_counted(void **state)
{
    static const struct expected expected[] = {
        { "submission_retry_total{destination=\"web\"}", 2 },
        { "retry_scheduled_total{destination=\"web\"}", 2 },
        { "retry_attempts_total{destination=\"web\",attempt=\"1\"}", 1 },
        { "retry_attempts_total{destination=\"web\",attempt=\"2\"}", 1 },
        { "retry_attempts_total{destination=\"web\",attempt=\"3\"}", 0 },
        { "submission_retry_backoff_minutes_count{destination=\"web\"}", 2 },
        { "submission_retry_backoff_minutes_sum{destination=\"web\"}", 3 },
        { "submission_retry_backoff_minutes_bucket{destination=\"web\",le=\"0.5\"}", 0 },
        { "submission_retry_backoff_minutes_bucket{destination=\"web\",le=\"1\"}", 1 },
        { "backoff_duration_minutes_sum{destination=\"web\"}", 3 },
        { "backoff_duration_minutes_bucket{destination=\"web\",le=\"2\"}", 2 },
        { "retry_backoff_delay_seconds_sum{destination=\"web\"}", 180 },
        { "retry_backoff_delay_seconds_bucket{destination=\"web\",le=\"30\"}", 0 },
        { "retry_backoff_delay_seconds_bucket{destination=\"web\",le=\"60\"}", 1 },
        { "retry_backoff_delay_seconds_bucket{destination=\"web\",le=\"+Inf\"}", 2 },
        { "submission_retry_max_exceeded{destination=\"web\"}", 1 },
        { "max_retries_exceeded_total{destination=\"web\"}", 1 },
        { "permanent_errors_total{destination=\"web\"}", 1 },
        { "error_classification_distribution{destination=\"web\",classification=\"TRANSIENT\"}", 3 },
        { "error_classification_distribution{destination=\"web\",classification=\"PERMANENT\"}", 1 },
        { "error_classification_distribution{destination=\"web\",classification=\"UNKNOWN\"}", 0 },
        { "retry_analysis_duration_seconds_count{destination=\"web\"}", 7 },
        { "retry_analysis_duration_seconds_bucket{destination=\"web\",le=\"1\"}", 7 },
        { "retry_success_rate{destination=\"web\",attempt=\"1\"}", 0.6 },
        { "retry_success_rate{destination=\"web\",attempt=\"2\"}", 0 },
        { "retry_success_rate{destination=\"web\",attempt=\"all\"}", 0 },
        { "retry_success_rate{destination=\"yard\",attempt=\"all\"}", NAN },
        { "dlq_entries_total{destination=\"web\"}", 2 },
        { "dlq_size{destination=\"web\"}", 2 },
        { "dlq_by_error_code{destination=\"web\",code=\"http:400\"}", 1 },
        { "dlq_by_error_code{destination=\"web\",code=\"http:503\"}", 1 },
        { "dlq_by_company{destination=\"web\",tenant=\"acme\"}", 0 },
        { "dlq_by_company{destination=\"web\",tenant=\"globex\"}", 2 },
        { "tenant_jobs_processed{destination=\"web\",tenant=\"acme\"}", 3 },
        { "tenant_jobs_processed{destination=\"web\",tenant=\"globex\"}", 4 },
        { "insist_jobs{destination=\"web\",state=\"dead\"}", 2 },
        { "insist_jobs{destination=\"web\",state=\"waiting\"}", 0 },
        { "insist_jobs_enqueued_total{destination=\"web\"}", 5 },
        { "insist_jobs_duplicate_total{destination=\"web\"}", 1 },
        { "insist_enqueue_refused_total{reason=\"id_conflict\"}", 1 },
        { "insist_jobs_completed_total{destination=\"web\"}", 3 },
        { "insist_jobs_dead_total{destination=\"web\",reason=\"PERMANENT_ERROR\"}", 1 },
        { "insist_jobs_dead_total{destination=\"web\",reason=\"MAX_RETRIES_EXCEEDED\"}", 1 },
        { "insist_success_ratio{destination=\"web\"}", 0.6 },
        { "insist_success_ratio{destination=\"yard\"}", NAN },
        { "insist_attempts_total{destination=\"web\",class=\"delivered\"}", 3 },
        { "insist_attempts_total{destination=\"web\",class=\"transient\"}", 3 },
        { "insist_attempts_total{destination=\"web\",class=\"permanent\"}", 1 },
        { "insist_attempts_by_number_total{destination=\"web\",attempt=\"1\",result=\"delivered\"}", 3 },
        { "insist_attempts_by_number_total{destination=\"web\",attempt=\"3\",result=\"failed\"}", 1 },
        { "insist_attempt_errors_total{destination=\"web\",code=\"http:503\"}", 3 },
        { "insist_attempt_duration_seconds_sum{destination=\"web\"}", 0.035 },
        { "insist_attempt_duration_seconds_bucket{destination=\"web\",le=\"0.005\"}", 7 },
        { "insist_attempt_duration_seconds_bucket{destination=\"web\",le=\"0.002\"}", 0 },
        { "insist_delivery_seconds_count{destination=\"web\"}", 3 },
        { "insist_queue_seconds_count{destination=\"web\"}", 5 },
        { "insist_queue_oldest_seconds{destination=\"web\"}", 0 },
        { "insist_backoff_capped_total{destination=\"web\"}", 1 },
        { "insist_in_flight{destination=\"web\"}", 0 },
        { "insist_breaker_state{destination=\"web\",state=\"closed\"}", 1 },
        { "insist_breaker_state{destination=\"web\",state=\"open\"}", 0 },
        { "insist_destination_mode{destination=\"web\",mode=\"normal\"}", 1 },
        { "insist_destination_up{destination=\"web\"}", NAN },
        { "insist_contingency_seconds{destination=\"web\"}", 0 },
        { "insist_tenants{destination=\"web\"}", 2 },
        { "insist_tenant_jobs{destination=\"web\",tenant=\"globex\",state=\"dead\"}", 2 },
        { "insist_tenant_jobs{destination=\"web\",tenant=\"acme\",state=\"dead\"}", NAN },
        { "insist_tenant_jobs{destination=\"web\",tenant=\"other\",state=\"dead\"}", 0 },
        { "insist_http_requests_total{class=\"enqueue\",code=\"201\"}", 5 },
        { "insist_http_requests_total{class=\"enqueue\",code=\"200\"}", 1 },
        { "insist_http_requests_total{class=\"enqueue\",code=\"409\"}", 1 },
        { "insist_http_request_duration_seconds_count{class=\"enqueue\"}", 7 },
        { "insist_build_info{version=\"" INSIST_VERSION "\"}", 1 },
    };
    struct api_fixture *fixture = *state;
    run_outcomes(fixture);
    char *text = scrape(fixture);
    check_values(text, expected, COUNT_OF(expected));
    assert_true(value_of(text, "insist_events_last_number") >= 16); /* 5 accepted, 7 claimed, 7 settled, at least */
    assert_true(value_of(text, "insist_commit_operations_sum") >= 19);
    assert_true(value_of(text, "insist_commit_duration_seconds_count") >= 5);
    assert_true(value_of(text, "process_open_fds") > 3 && value_of(text, "process_resident_memory_bytes") > 1 << 20);
    free(text);
}

/* S1-114: of the jobs that needed a retry, how many it helped, however many attempts that took. */
static void a_success_rate_is_of_jobs(void **state)
{
    static const struct expected recovered[] = {
        { "retry_success_rate{destination=\"web\",attempt=\"1\"}", 0 },
        { "retry_success_rate{destination=\"web\",attempt=\"2\"}", 1 },
        { "retry_success_rate{destination=\"web\",attempt=\"all\"}", 1 },
    };
    static const struct expected lost[] = { { "retry_success_rate{destination=\"web\",attempt=\"all\"}", 4. / 5 },
                                            { "retry_success_rate{destination=\"web\",attempt=\"3\"}", 0 } };
    struct api_fixture *fixture = *state;
    char id[8];
    for (int i = 0; i < 4; i++) {
        snprintf(id, sizeof id, "r%d", i);
        put_job(fixture, "web", "acme", id, "once");
    }
    await_number(fixture, "/v1/destinations/web", "waiting", 4);
    api_fixture_advance(fixture, 3 * 60 * 1000);
    await_number(fixture, "/v1/destinations/web", "completed", 4);
    char *text = scrape(fixture);
    check_values(text, recovered, COUNT_OF(recovered));
    free(text);
    put_job(fixture, "web", "acme", "f", "fail");
    put_job(fixture, "web", "acme", "b", "bad"); /* never retried: no part of it */
    for (int attempt = 1; attempt < 3; attempt++) {
        await_number(fixture, "/v1/jobs/f?tenant=acme", "retry_count", attempt);
        await_state(fixture, "/v1/jobs/f?tenant=acme", "waiting");
        api_fixture_advance(fixture, 3 * 60 * 1000);
    }
    await_number(fixture, "/v1/destinations/web", "dead", 2);
    text = scrape(fixture);
    check_values(text, lost, COUNT_OF(lost));
    free(text);
}

/* S2-095: in the bucket of their age, until they are gone. */
static void dead_letters_have_an_age(void **state)
{
    static const struct expected young[] = {
        { "dlq_age_seconds_bucket{destination=\"web\",le=\"60\"}", 2 }, { "dlq_age_seconds_count{destination=\"web\"}", 2 },
    };
    static const struct expected old[] = {
        { "dlq_age_seconds_bucket{destination=\"web\",le=\"3600\"}", 0 },
        { "dlq_age_seconds_bucket{destination=\"web\",le=\"21600\"}", 2 },
        { "dlq_age_seconds_count{destination=\"web\"}", 2 },
        { "dlq_age_seconds_count{destination=\"yard\"}", NAN },
    };
    static const struct expected gone[] = { { "dlq_age_seconds_count{destination=\"web\"}", 0 },
                                            { "dlq_age_seconds_sum{destination=\"web\"}", 0 } };
    struct api_fixture *fixture = *state;
    put_job(fixture, "web", "t", "1", "bad");
    put_job(fixture, "web", "t", "2", "bad");
    await_state(fixture, "/v1/jobs/1?tenant=t", "dead");
    await_state(fixture, "/v1/jobs/2?tenant=t", "dead");
    char *text = scrape(fixture);
    check_values(text, young, COUNT_OF(young));
    free(text);
    api_fixture_advance(fixture, 2 * 3600 * 1000);
    text = scrape(fixture);
    check_values(text, old, COUNT_OF(old));
    assert_true(fabs(value_of(text, "dlq_age_seconds_sum{destination=\"web\"}") - 14400) < 60);
    free(text);
    post(fixture, "/v1/jobs/1/retry?tenant=t", "{\"payload\":\"ok\"}", 200);
    post(fixture, "/v1/jobs/2/retry?tenant=t", "{\"payload\":\"ok\"}", 200);
    await_state(fixture, "/v1/jobs/1?tenant=t", "completed");
    await_state(fixture, "/v1/jobs/2?tenant=t", "completed");
    text = scrape(fixture);
    check_values(text, gone, COUNT_OF(gone));
    free(text);
}

/* S2-098 S2-099 S2-100 S2-101: the document's figures, which GET /v1/tenants has by the document's names. */
static void tenants_fare_as_the_document_says(void **state)
{
    static const struct { const char *family, *member; } figures[] = {
        { "tenant_jobs_processed", "totalProcessed" },
        { "tenant_current_priority", "currentPriority" },
        { "tenant_consecutive_batch", "consecutiveBatchCount" },
        { "tenant_rounds_without_processing", "roundsWithoutProcessing" },
    };
    struct api_fixture *fixture = *state;
    for (int i = 0; i < 7; i++) {
        char id[8];
        snprintf(id, sizeof id, "%d", i);
        put_job(fixture, "slow", "acme", id, "ok");
        if (i % 3 == 0)
            put_job(fixture, "slow", "globex", id, "ok");
    }
    put_job(fixture, "slow", "initech", "0", "ok");
    await_number(fixture, "/v1/destinations/slow", "completed", 11);
    struct reply reply = http_do(fixture, "GET", "/v1/tenants?destination=slow", NULL);
    char *text = scrape(fixture);
    assert_int_equal(json_array_size(reply_at(&reply, "tenants")), 3);
    for (int i = 0; i < 3; i++) {
        for (size_t k = 0; k < COUNT_OF(figures); k++) {
            char series[128], path[64];
            snprintf(path, sizeof path, "tenants.%d.fairness.companyId", i);
            snprintf(series, sizeof series, "%s{destination=\"slow\",tenant=\"%s\"}", figures[k].family, reply_text(&reply, path));
            snprintf(path, sizeof path, "tenants.%d.fairness.%s", i, figures[k].member);
            check(value_of(text, series) == (double)reply_int(&reply, path), "%s is %g, not %lld", series, value_of(text, series),
                  (long long)reply_int(&reply, path));
        }
    }
    assert_true(value_of(text, "tenant_jobs_processed{destination=\"slow\",tenant=\"acme\"}") == 7);
    reply_release(&reply);
    free(text);
}

/* However many tenants there are, so many series and not more; one that is called "other" is one of the others. */
static void tenants_are_bounded(void **state)
{
    struct api_fixture *fixture = *state;
    for (int i = 0; i < 30; i++) {
        char tenant[16];
        snprintf(tenant, sizeof tenant, i == 0 ? "other" : "t%d", i);
        put_job(fixture, "web", tenant, "1", "bad");
    }
    await_number(fixture, "/v1/destinations/web", "dead", 30);
    char *text = scrape(fixture);
    assert_int_equal(prometheus_count(text, "tenant_jobs_processed{destination=\"web\""), MEASURED_TENANTS_MAX + 1);
    assert_int_equal(prometheus_count(text, "dlq_by_company{destination=\"web\""), MEASURED_TENANTS_MAX + 1);
    assert_int_equal(prometheus_count(text, "insist_tenant_jobs{destination=\"web\""), 4 * (METRICS_LARGEST_MAX + 1));
    assert_true(value_of(text, "dlq_by_company{destination=\"web\",tenant=\"other\"}") == 10);
    assert_true(value_of(text, "tenant_jobs_processed{destination=\"web\",tenant=\"other\"}") == 10);
    assert_true(value_of(text, "insist_tenant_jobs{destination=\"web\",tenant=\"other\",state=\"dead\"}") == 10);
    assert_true(prometheus_count(text, "tenant_current_priority{destination=\"web\"") <= MEASURED_TENANTS_MAX + METRICS_LARGEST_MAX);
    free(text);
}

static void a_strange_name_is_escaped(void **state)
{
    struct api_fixture *fixture = *state;
    put_job(fixture, "web", "a\\\"b\\\\c", "1", "ok");
    await_number(fixture, "/v1/destinations/web", "completed", 1);
    char *text = scrape(fixture);
    assert_true(value_of(text, "tenant_jobs_processed{destination=\"web\",tenant=\"a\\\"b\\\\c\"}") == 1);
    free(text);
}

static void leases_are_counted(void **state)
{
    static const struct expected held[] = { { "insist_leases{destination=\"yard\"}", 2 },
                                            { "insist_leases{destination=\"web\"}", NAN },
                                            { "insist_lease_workers_waiting{destination=\"yard\"}", 0 },
                                            { "insist_in_flight{destination=\"yard\"}", 2 } };
    static const struct expected done[] = {
        { "insist_leases{destination=\"yard\"}", 0 },
        { "insist_attempts_total{destination=\"yard\",class=\"delivered\"}", 1 },
        { "insist_attempts_total{destination=\"yard\",class=\"permanent\"}", 1 },
        { "insist_delivery_seconds_count{destination=\"yard\"}", 1 },
        { "insist_delivery_seconds_bucket{destination=\"yard\",le=\"15\"}", 0 },
        { "insist_delivery_seconds_bucket{destination=\"yard\",le=\"60\"}", 1 },
        { "insist_attempt_duration_seconds_bucket{destination=\"yard\",le=\"10\"}", 0 },
        { "insist_attempt_duration_seconds_bucket{destination=\"yard\",le=\"30\"}", 2 },
        { "insist_queue_seconds_count{destination=\"yard\"}", 2 },
        { "dlq_by_error_code{destination=\"yard\",code=\"BROKEN\"}", 1 },
        { "tenant_jobs_processed{destination=\"yard\",tenant=\"t\"}", 2 },
    };
    struct api_fixture *fixture = *state;
    char body[256];
    put_job(fixture, "yard", "t", "1", "ok");
    put_job(fixture, "yard", "t", "2", "ok");
    struct reply reply = http_do(fixture, "POST", "/v1/leases", "{\"destination\":\"yard\",\"max\":2,\"wait_s\":5}");
    assert_int_equal(json_array_size(reply_at(&reply, "leases")), 2);
    char *text = scrape(fixture);
    check_values(text, held, COUNT_OF(held));
    free(text);
    api_fixture_advance(fixture, 20 * 1000);
    snprintf(body, sizeof body, "{\"lease\":\"%s\"}", reply_text(&reply, "leases.0.lease"));
    post(fixture, "/v1/leases/ack", body, 200);
    snprintf(body, sizeof body, "{\"lease\":\"%s\",\"error\":\"BROKEN\",\"code\":\"BROKEN\"}",
             reply_text(&reply, "leases.1.lease"));
    post(fixture, "/v1/leases/nack", body, 200);
    reply_release(&reply);
    text = scrape(fixture);
    check_values(text, done, COUNT_OF(done));
    free(text);
}

/* Before the engine has begun there is nothing to be counted, and how destinations stand is told all the same. */
static void they_are_told_from_the_beginning(void **state)
{
    static const struct api_fixture_settings held = { .config = config, .engine_held = true };
    static const struct expected expected[] = {
        { "insist_jobs{destination=\"web\",state=\"pending\"}", NAN },
        { "insist_destination_mode{destination=\"web\",mode=\"normal\"}", 1 },
        { "retry_scheduled_total{destination=\"web\"}", NAN },
        { "insist_destination_availability_ratio{destination=\"web\"}", NAN },
        { "insist_engine_idle_seconds", NAN },
    };
    (void)state;
    struct api_fixture *fixture = api_fixture_new(&held);
    char *text = scrape(fixture);
    check_values(text, expected, COUNT_OF(expected));
    free(text);
    api_fixture_start_engine(fixture);
    api_fixture_free(fixture);
}

/* What nobody has used is told by its mode alone; from its first job on it has its counters, from 0 on, and keeps them. */
static void what_never_happened_is_not_told(void **state)
{
    static const struct expected first[] = {
        { "insist_jobs{destination=\"yard\",state=\"pending\"}", 1 },   { "dlq_size{destination=\"yard\"}", 0 },
        { "dlq_entries_total{destination=\"yard\"}", 0 },             { "insist_jobs_cancelled_total{destination=\"yard\"}", 0 },
        { "retry_scheduled_total{destination=\"yard\"}", 0 },         { "insist_attempt_duration_seconds_count{destination=\"yard\"}", NAN },
        { "insist_jobs_dead_total{destination=\"yard\",reason=\"PERMANENT_ERROR\"}", 0 },
        { "insist_destination_mode{destination=\"yard\",mode=\"contingency\"}", 0 },
    };
    static const struct expected after[] = {
        { "insist_jobs{destination=\"yard\",state=\"pending\"}", 0 },
        { "insist_jobs_cancelled_total{destination=\"yard\"}", 1 },
        { "retry_scheduled_total{destination=\"yard\"}", 0 },
    };
    struct api_fixture *fixture = *state;
    char *text = scrape(fixture);
    for (const char *at = text; (at = strstr(at, "destination=\"")); at++)
        check(strncmp(strchr(at, ','), ",mode=\"normal\"} 1\n", 18) == 0, "told: %.80s", at);
    assert_int_equal(prometheus_count(text, "insist_destination_mode{"), 3);
    assert_int_equal(prometheus_count(text, "insist_http_request_duration_seconds_count{class=\"lease\"}"), 0);
    free(text);
    put_job(fixture, "yard", "t", "1", "x");
    text = scrape(fixture);
    check_values(text, first, COUNT_OF(first));
    assert_int_equal(prometheus_count(text, "insist_destination_mode{destination=\"web\""), 1);
    free(text);
    post(fixture, "/v1/jobs/1/cancel?tenant=t", "{}", 200);
    text = scrape(fixture);
    check_values(text, after, COUNT_OF(after));
    free(text);
}

/* S3-072 S3-074: the mean time in the queue, and how long the destination was there. */
static void the_queue_and_the_destination_are_timed(void **state)
{
    static const struct expected expected[] = {
        { "insist_queue_seconds_bucket{destination=\"web\",le=\"5\"}", 0 },
        { "insist_queue_seconds_bucket{destination=\"web\",le=\"15\"}", 2 },
        { "insist_destination_held{destination=\"web\",by=\"contingency\"}", NAN },
        { "insist_destination_mode{destination=\"yard\",mode=\"contingency\"}", 1 },
        { "insist_destination_held{destination=\"yard\",by=\"contingency\"}", 1 },
    };
    struct api_fixture *fixture = *state;
    post(fixture, "/v1/destinations/web/pause", "{}", 200);
    put_job(fixture, "web", "t", "1", "ok");
    put_job(fixture, "web", "u", "1", "ok");
    post(fixture, "/v1/destinations/yard/contingency", "{\"enter\":true}", 200);
    api_fixture_advance(fixture, 10 * 1000);
    await_number(fixture, "/v1/destinations/web", "pending", 2);
    post(fixture, "/v1/destinations/web/resume", "{}", 200);
    await_number(fixture, "/v1/destinations/web", "completed", 2);
    char *text = scrape(fixture);
    check_values(text, expected, COUNT_OF(expected));
    double mean = value_of(text, "insist_queue_mean_seconds{destination=\"web\"}");
    check(mean >= 10 && mean < 15, "%g", mean);
    assert_true(fabs(mean - value_of(text, "insist_queue_seconds_sum{destination=\"web\"}") / 2) < 1e-6);
    double contingency = value_of(text, "insist_contingency_seconds{destination=\"yard\"}");
    check(contingency >= 10 && contingency < 30, "%g", contingency);
    assert_true(value_of(text, "insist_destination_availability_ratio{destination=\"web\"}") == 1); /* a pause is ours */
    double away = value_of(text, "insist_destination_availability_ratio{destination=\"yard\"}");
    double lost = value_of(text, "insist_destination_observed_seconds_total{destination=\"yard\"}") -
                  value_of(text, "insist_destination_available_seconds_total{destination=\"yard\"}");
    check(away < 0.5 && lost >= 10 && fabs(lost - value_of(text, "insist_contingency_seconds_total{destination=\"yard\"}")) < 0.01,
          "%g %g", away, lost);
    free(text);
}

/* Those whose deadline passed in the queue are told, without saying whose they were. */
static void expired_jobs_are_counted(void **state)
{
    static const struct expected expected[] = {
        { "dlq_entries_total", 1 },
        { "dlq_by_error_code{code=\"EXPIRED\"}", 1 },
        { "dlq_by_company{tenant=\"other\"}", 1 },
        { "insist_jobs_dead_total{reason=\"EXPIRED\"}", 1 },
        { "dlq_entries_total{destination=\"yard\"}", 0 },
        { "dlq_size{destination=\"yard\"}", 1 },
    };
    struct api_fixture *fixture = *state;
    post(fixture, "/v1/jobs", "{\"destination\":\"yard\",\"id\":\"1\",\"payload\":\"x\",\"deadline\":\"2999-01-01T00:00:00Z\"}", 201);
    api_fixture_advance(fixture, INT64_C(31000000) * 1000 * 1000);
    await_state(fixture, "/v1/jobs/1", "dead");
    char *text = scrape(fixture);
    check_values(text, expected, COUNT_OF(expected));
    free(text);
}

/* C-48: what the limit of the store refuses is counted, one job at a time. */
static void refused_jobs_are_counted(void **state)
{
    static const struct api_fixture_settings small = { .config = config, .pending_max = 1 };
    static const struct expected expected[] = {
        { "insist_enqueue_refused_total{reason=\"queue_full\"}", 3 },
        { "insist_enqueue_refused_total{reason=\"id_conflict\"}", 0 },
        { "insist_jobs_enqueued_total{destination=\"yard\"}", 1 },
        { "insist_http_requests_total{class=\"enqueue\",code=\"429\"}", 1 },
        { "insist_http_requests_total{class=\"none\",code=\"404\"}", 1 },
    };
    (void)state;
    struct api_fixture *fixture = api_fixture_new(&small);
    put_job(fixture, "yard", "t", "1", "x");
    post(fixture, "/v1/jobs", "{\"destination\":\"yard\",\"id\":\"2\",\"payload\":\"x\"}", 429);
    post(fixture, "/v1/jobs/batch", "[{\"destination\":\"yard\",\"payload\":\"x\"},{\"destination\":\"yard\",\"payload\":\"y\"}]", 200);
    post(fixture, "/nowhere", "{}", 404);
    char *text = scrape(fixture);
    check_values(text, expected, COUNT_OF(expected));
    free(text);
    api_fixture_free(fixture);
}

/* A token for all tenants sees all, one for a tenant is told why it does not. */
static void who_may_see_them(void **state)
{
    /* The digests are of "monitor", "acme" and "sender". */
    static const char tokens[] =
        "tokens:\n"
        "  - { name: monitor, scopes: [read],\n"
        "      sha256: 7de97367c9cdc3c6db31aa114057b65cea1a7bafc71cf0595a2931011526a0a3 }\n"
        "  - { name: acme, scopes: [read], tenant: acme,\n"
        "      sha256: 822b33ad87c148a0a20a5ba7cd5ebcaa68d36a18e7aad165554903f52ca82757 }\n"
        "  - { name: sender, scopes: [enqueue],\n"
        "      sha256: 0a367b92cf0b037dfd89960ee832d56f7fc151681bb41e53690e776f5786998a }\n";
    static const struct api_fixture_settings settings = { .config = config, .tokens = tokens };
    static const struct { const char *token; int status; const char *contains; } cases[] = {
        { "monitor", 200, "insist_destination_mode{destination=\"web\",mode=\"normal\"} 1" },
        { "acme", 403, "metrics are of all tenants" },
        { "sender", 403, "forbidden_scope" },
        { NULL, 401, "unauthorized" },
    };
    (void)state;
    struct api_fixture *fixture = api_fixture_new(&settings);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct request request = { .method = "GET", .path = "/metrics", .token = cases[i].token };
        struct reply reply = http_ask(fixture, &request);
        check(reply.status == cases[i].status && strstr(reply.body, cases[i].contains), "%s: %d %s",
              cases[i].token ? cases[i].token : "none", reply.status, reply.body);
        reply_release(&reply);
    }
    api_fixture_free(fixture);
}

/* ---- the table ---- */

static const struct metric_row *row_of(const char *name, size_t len)
{
    for (const struct metric_row *row = metric_rows; row->family.name; row++)
        if (strlen(row->family.name) == len && strncmp(row->family.name, name, len) == 0)
            return row;
    return NULL;
}

/* The documents' names as they wrote them, and their kinds. */
static void the_documents_names_are_theirs(void **state)
{
    static const struct { const char *name; enum metric_type type; const char *labels; } names[] = {
        { "submission_retry_total", METRIC_COUNTER, "destination" },
        { "submission_retry_backoff_minutes", METRIC_HISTOGRAM, "destination" },
        { "submission_retry_max_exceeded", METRIC_COUNTER, "destination" },
        { "error_classification_distribution", METRIC_COUNTER, "destination, classification" },
        { "retry_analysis_duration_seconds", METRIC_HISTOGRAM, "destination" },
        { "retry_scheduled_total", METRIC_COUNTER, "destination" },
        { "max_retries_exceeded_total", METRIC_COUNTER, "destination" },
        { "permanent_errors_total", METRIC_COUNTER, "destination" },
        { "backoff_duration_minutes", METRIC_HISTOGRAM, "destination" },
        { "retry_success_rate", METRIC_GAUGE, "destination, attempt" },
        { "retry_attempts_total", METRIC_COUNTER, "destination, attempt" },
        { "retry_backoff_delay_seconds", METRIC_HISTOGRAM, "destination" },
        { "dlq_entries_total", METRIC_COUNTER, "destination" },
        { "dlq_size", METRIC_GAUGE, "destination" },
        { "dlq_age_seconds", METRIC_HISTOGRAM, "destination" },
        { "dlq_by_error_code", METRIC_COUNTER, "destination, code" },
        { "dlq_by_company", METRIC_COUNTER, "destination, tenant" },
        { "tenant_jobs_processed", METRIC_COUNTER, "destination, tenant" },
        { "tenant_current_priority", METRIC_GAUGE, "destination, tenant" },
        { "tenant_consecutive_batch", METRIC_GAUGE, "destination, tenant" },
        { "tenant_rounds_without_processing", METRIC_GAUGE, "destination, tenant" },
    };
    size_t own = 0, all = 0;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const struct metric_row *row = row_of(names[i].name, strlen(names[i].name));
        check(row && row->family.type == names[i].type && strcmp(row->labels, names[i].labels) == 0, "%s", names[i].name);
    }
    for (const struct metric_row *row = metric_rows; row->family.name; row++, all++) {
        bool ours = strncmp(row->family.name, "insist_", 7) == 0 || strncmp(row->family.name, "process_", 8) == 0;
        bool total = strlen(row->family.name) > 6 && strcmp(row->family.name + strlen(row->family.name) - 6, "_total") == 0;
        own += ours;
        check(!ours || total == (row->family.type == METRIC_COUNTER), "%s: only counters end with _total", row->family.name);
    }
    assert_int_equal(all - own, COUNT_OF(names));
}

/* Every row is in the answer, and every sample has the labels that the table names for it, or a part of them. */
static void every_family_is_told(void **state)
{
    struct api_fixture *fixture = *state;
    run_outcomes(fixture);
    char *text = scrape(fixture), *rest = text;
    const struct metric_row *row = metric_rows - 1;
    for (char *line; (line = strsep(&rest, "\n")) && *line;) {
        if (strncmp(line, "# TYPE ", 7) == 0)
            continue;
        if (strncmp(line, "# HELP ", 7) == 0) {
            row++;
            check(row->family.name && strncmp(line + 7, row->family.name, strlen(row->family.name)) == 0, "%s", line);
            continue;
        }
        for (const char *at = line + strcspn(line, "{ "); *at == '{' || *at == ',';) {
            char label[64];
            size_t len = strcspn(++at, "=");
            snprintf(label, sizeof label, "%.*s", (int)len, at);
            check(strcmp(label, "le") == 0 || strstr(row->labels, label), "%s: label %s", line, label);
            at += len + 2;
            at += strcspn(at, "\"") + 1; /* no value here has a quote in it */
        }
    }
    check(row[1].family.name == NULL, "%s is not told", row[1].family.name);
    free(text);
}

static bool is_forgotten(const struct api_fixture *fixture)
{
    struct reply reply = http_do(fixture, "GET", "/v1/tenants?destination=web", NULL);
    const json_t *row = json_array_get(json_object_get(reply.json, "tenants"), 0);
    bool forgotten = row && !json_object_get(row, "fairness");
    check(row != NULL, "%s", reply.body);
    reply_release(&reply);
    return forgotten;
}

/* The engine forgets who has nothing to send for long; whoever looks at the metrics does not. */
static void tenants_are_counted_for_good(void **state)
{
    struct api_fixture *fixture = *state;
    post(fixture, "/v1/jobs", later, 201);
    for (int minute = 0; minute < 40 && !is_forgotten(fixture); minute++)
        api_fixture_advance(fixture, 60 * 1000);
    assert_true(is_forgotten(fixture));
    char *text = scrape(fixture);
    assert_int_equal(value_of(text, "insist_tenants{destination=\"web\"}"), 1);
    free(text);
}

/* Whether the number of the series comes to be that; not a number: that it goes away. */
static void await_value(struct api_fixture *fixture, const char *series, double wanted)
{
    double value = NAN;
    bool found = false, right = false;
    for (int i = 0; i < 200 && !right; i++) {
        api_fixture_advance(fixture, 1000);
        char *text = scrape(fixture);
        found = prometheus_value(text, series, &value);
        right = isnan(wanted) ? !found : found && fabs(value - wanted) < 1e-9;
        free(text);
    }
    check(right, "%s: %s%g, not %g", series, found ? "" : "none, ", value, wanted);
}

static void standing_alerts_are_told(void **state)
{
    static const char contingency[] = "insist_alerts{alert=\"contingency\",severity=\"critical\",destination=\"slow\"}";
    static const char permanent[] = "insist_alerts{alert=\"permanent_error\",severity=\"critical\",destination=\"web\"}";
    static const char of_tenants[] =
        "insist_alerts{alert=\"dead_per_tenant\",severity=\"warning\",destination=\"web\"}";
    static const char expired[] = "insist_alerts{alert=\"expired\",severity=\"critical\"}";
    struct api_fixture *fixture = *state;
    char *text = scrape(fixture);
    check(!strstr(text, "insist_alerts{"), "nothing stands: %s", text);
    free(text);
    post(fixture, "/v1/destinations/slow/contingency", "{\"enter\":true,\"reason\":\"they called\"}", 200);
    await_value(fixture, contingency, 1);
    put_job(fixture, "web", "acme", "a1", "bad");
    await_value(fixture, permanent, 1);
    put_job(fixture, "web", "acme", "a2", "bad");
    put_job(fixture, "web", "globex", "b1", "bad");
    put_job(fixture, "web", "globex", "b2", "bad");
    await_value(fixture, of_tenants, 2);
    put_job(fixture, "slow", "acme", "s1", "ok"); /* is too old after an hour */
    api_fixture_advance(fixture, 2 * 60 * 60 * 1000);
    await_value(fixture, expired, 1);
    await_value(fixture, permanent, 1); /* nobody has acknowledged it */
    await_value(fixture, contingency, 1);
}

/* ---- documents ---- */

static char *read_all(const char *path)
{
    struct buffer text;
    char piece[4096];
    size_t len;
    FILE *file = fopen(path, "rb");
    check(file, "there is no %s", path);
    buffer_init(&text, 1 << 20);
    while ((len = fread(piece, 1, sizeof piece, file)) > 0)
        buffer_append(&text, (struct slice){ piece, len });
    fclose(file);
    return buffer_take(&text);
}

/* The page with the table of families as it must be. */
static char *page_of(const char *page)
{
    static const char begin[] = "<!-- families: made from the program -->\n", end[] = "<!-- end of families -->";
    const char *from = strstr(page, begin), *to = strstr(page, end);
    struct buffer text;
    check(from && to && from < to, "docs/metrics.md has no place for the families");
    buffer_init(&text, 1 << 20);
    buffer_append(&text, (struct slice){ page, (size_t)(from - page) + strlen(begin) });
    buffer_append_text(&text, "| name | type | labels | meaning |\n|---|---|---|---|\n");
    for (const struct metric_row *row = metric_rows; row->family.name; row++)
        buffer_printf(&text, "| `%s` | %s | %s | %s |\n", row->family.name, metric_type_name(row->family.type), row->labels,
                      row->family.help);
    buffer_append_text(&text, to);
    return buffer_take(&text);
}

static void the_page_lists_them(void **state)
{
    char *page = read_all("docs/metrics.md"), *wanted = page_of(page);
    (void)state;
    if (getenv("INSIST_UPDATE_DOCS")) {
        FILE *file = fopen("docs/metrics.md", "wb");
        assert_true(file && fwrite(wanted, 1, strlen(wanted), file) == strlen(wanted));
        fclose(file);
    } else {
        check(strcmp(page, wanted) == 0, "docs/metrics.md is out of date: run this test with INSIST_UPDATE_DOCS=1");
    }
    free(page);
    free(wanted);
}

/* Without the suffix that the format adds to a histogram's name. */
static bool is_told(const char *name, size_t len)
{
    static const char *const suffixes[] = { "_bucket", "_sum", "_count" };
    const struct metric_row *row = row_of(name, len);
    for (size_t i = 0; i < COUNT_OF(suffixes) && !row; i++) {
        size_t suffix = strlen(suffixes[i]);
        if (len > suffix && strncmp(name + len - suffix, suffixes[i], suffix) == 0) {
            row = row_of(name, len - suffix);
            return row && row->family.type == METRIC_HISTOGRAM;
        }
    }
    return row && row->family.type != METRIC_HISTOGRAM;
}

/* Whether they fire when they must is tests/cases/prometheus; here, that they ask for nothing that is not told. */
static void the_rules_name_what_is_told(void **state)
{
    char *rules = read_all("examples/prometheus/insist-rules.yml");
    regex_t name;
    regmatch_t match[2];
    size_t found = 0;
    (void)state;
    /* Of an expression's words those with an underscore before a range, a matcher, a comparison or a closing bracket. */
    assert_int_equal(regcomp(&name, "([a-z]+_[a-z_]+)( [<>=]|\\[|\\{|\\))", REG_EXTENDED), 0);
    for (const char *at = rules; regexec(&name, at, 2, match, 0) == 0; at += match[1].rm_eo, found++) {
        size_t len = (size_t)(match[1].rm_eo - match[1].rm_so);
        check(is_told(at + match[1].rm_so, len), "the rules name %.*s, which is no series", (int)len, at + match[1].rm_so);
    }
    check(found > 25, "%zu", found);
    regfree(&name);
    free(rules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(outcomes_are_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(a_success_rate_is_of_jobs, setup, teardown),
        cmocka_unit_test_setup_teardown(dead_letters_have_an_age, setup, teardown),
        cmocka_unit_test_setup_teardown(tenants_fare_as_the_document_says, setup, teardown),
        cmocka_unit_test_setup_teardown(tenants_are_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(a_strange_name_is_escaped, setup, teardown),
        cmocka_unit_test_setup_teardown(leases_are_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(the_queue_and_the_destination_are_timed, setup, teardown),
        cmocka_unit_test_setup_teardown(expired_jobs_are_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(tenants_are_counted_for_good, setup, teardown),
        cmocka_unit_test_setup_teardown(standing_alerts_are_told, setup, teardown),
        cmocka_unit_test_setup_teardown(every_family_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(what_never_happened_is_not_told, setup, teardown),
        cmocka_unit_test(they_are_told_from_the_beginning),
        cmocka_unit_test(refused_jobs_are_counted),
        cmocka_unit_test(who_may_see_them),
        cmocka_unit_test(the_documents_names_are_theirs),
        cmocka_unit_test(the_page_lists_them),
        cmocka_unit_test(the_rules_name_what_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
