#include "api/operate/rules.h"

#include "base/units.h"

static void begin(struct json_writer *json, const char *name)
{
    json_member_object(json, name);
}

static void write_real(struct json_writer *json, const char *name, double value)
{
    json_member_real(json, name, value);
}

static void write_one(struct json_writer *json, const char *name, const char *member, int64_t value)
{
    if (value <= 0)
        return;
    begin(json, name);
    json_member_int(json, member, value);
    json_object_end(json);
}

static void write_rate(struct json_writer *json, const char *name, struct rate rate)
{
    char text[UNITS_TEXT_BYTES];
    if (rate.count <= 0)
        return;
    rate_format(rate, text);
    begin(json, name);
    json_member_text(json, "total", text);
    json_object_end(json);
}

static void write_retry(struct json_writer *json, const struct retry_policy *retry)
{
    begin(json, "retry");
    json_member_int(json, "max_retries", retry->retries_max);
    json_member_int(json, "base_ms", retry->base_ms);
    write_real(json, "factor", retry->factor);
    json_member_int(json, "cap_ms", retry->cap_ms);
    write_real(json, "jitter", retry->jitter);
    json_object_end(json);
}

static void write_breaker(struct json_writer *json, const struct breaker_config *breaker)
{
    if (!breaker->enabled)
        return;
    begin(json, "breaker");
    write_real(json, "failure_rate", breaker->failure_rate);
    json_member_int(json, "min_calls", breaker->min_calls);
    json_member_int(json, "window_ms", breaker->window_ms);
    json_member_int(json, "open_ms", breaker->open_ms);
    json_object_end(json);
}

static void write_outage(struct json_writer *json, const struct health_config *health,
                         const struct contingency_config *contingency)
{
    if (health->url) {
        begin(json, "health");
        json_member_int(json, "every_ms", health->every_ms);
        json_member_int(json, "failures", health->failures);
        json_object_end(json);
    }
    if (!contingency->enabled)
        return;
    begin(json, "contingency");
    json_member_array(json, "ramp");
    for (size_t i = 0; i < contingency->ramp_count; i++)
        json_put_int(json, contingency->ramp[i]);
    json_array_end(json);
    json_member_int(json, "stable_ms", contingency->stable_ms);
    json_object_end(json);
}

void rules_write(struct json_writer *json, const struct destination_config *config)
{
    static const char *const doubts[] = {
        [DOUBT_RESEND] = "in_doubt_resend", [DOUBT_VERIFY] = "in_doubt_verify", [DOUBT_PARK] = "in_doubt_park",
    };
    begin(json, "policy");
    write_retry(json, &config->policy.retry);
    json_member_bool(json, doubts[config->policy.in_doubt], true);
    write_one(json, "timeout", "time_ms", config->timeout_ms);
    write_one(json, "lifetime", "time_ms", config->job_ttl_ms);
    if (config->transport != TRANSPORT_PULL) /* its workers decide */
        write_one(json, "concurrency", "max", config->concurrency);
    write_rate(json, "rate", config->rate_total);
    write_rate(json, "rate_per_tenant", config->rate_per_tenant);
    if (config->fairness.round_robin)
        write_one(json, "fairness", "batch", config->fairness.batch);
    write_breaker(json, &config->breaker);
    write_outage(json, &config->health, &config->contingency);
    begin(json, "dead");
    json_member_int(json, "ttl_ms", config->dead.ttl_ms);
    json_member_int(json, "max", config->dead.max);
    json_object_end(json);
    json_object_end(json);
}
