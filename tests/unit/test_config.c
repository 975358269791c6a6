/* The configuration as a whole: the documented example, presets, references, and every kind of problem. */
#include "config/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { PROBLEMS_BYTES = 64 * 1024 };

static char folder[64];

static const char example[] =
    "listen: 127.0.0.1:7878\n"
    "store: sqlite:data/insist.db          # postgres://…  redis://…  memory:\n"
    "durability: always                    # always (fsync before the answer) | everysec\n"
    "limits: { payload: 1MB, pending: 10000000, disk_free: 256MB }\n"
    "retention: { completed: 24h, audit: 1826d }\n"
    "auth: { tokens_file: tokens.yaml }    # required when listening beyond loopback\n"
    "notify:\n"
    "  - { name: ops, webhook: https://hooks.example/x, on: [critical] }\n"
    "  - { name: billing, email: billing@example.org, through: mail, on: [max_retries_exceeded, permanent_error] }\n"
    "destinations:\n"
    "  claims:\n"
    "    preset: http\n"
    "    transport: http                   # http | smtp | ses | exec | pull\n"
    "    url: https://operadora.example/tiss   # smtp://host:25, smtps://…; ses: region; exec: argv\n"
    "    allow_private: false              # true lets it connect to loopback and private addresses\n"
    "    method: POST\n"
    "    headers: { SOAPAction: tissLoteGuias }\n"
    "    timeout: 30s\n"
    "    concurrency: 10\n"
    "    tls: { ca: ca.pem, cert: client.pem, key: client.key }\n"
    "    success: [2xx]                    # which answers mean delivered\n"
    "    error_code: [ \"xpath://*[local-name()='codigoGlosa']\", \"json:/error/code\", \"http.status\" ]\n"
    "    retry: { max_retries: 5, base: 5m, factor: 2, cap: 240m, floor: 5m, jitter: 0.2, clamp: after, max_elapsed: 4h }\n"
    "                                      # or max_attempts (first try included); clamp: after | before | saturate\n"
    "    errors:\n"
    "      permanent: [INVALID_PATIENT_DATA, INSURANCE_EXPIRED, AUTHORIZATION_DENIED, DUPLICATE_CLAIM, INVALID_PROCEDURE_CODE]\n"
    "      transient: [TIMEOUT, CONNECTION_ERROR, SERVICE_UNAVAILABLE, NETWORK_ERROR, TEMPORARY_ERROR, RATE_LIMIT, "
    "SERVER_ERROR, \"503\", \"504\"]\n"
    "      throttled: []                   # as transient, and slows the whole destination\n"
    "      wait: []                        # the destination is down or busy: wait for it, spend no attempt\n"
    "      blocked: [certificate expired]  # credentials, certificate, account: pause the destination and alert\n"
    "      duplicate: []                   # it has it already: verify, then complete\n"
    "      accepted: []                    # taken, judged later: poll\n"
    "      unknown: transient              # transient | permanent\n"
    "    in_doubt: verify                  # sent, answer lost: verify | resend | park\n"
    "    verify: { url: \"https://…/{id}\", delivered: [2xx], absent: [\"404\"], after: 10m }\n"
    "    id_pattern: 'CLM-.*-\\d+'\n"
    "    job_ttl: 24h\n"
    "    dead: { ttl: 7d, max: 10000, auto_redrive: { after: 6h, times: 1 } }\n"
    "    fairness: { round_robin: true, batch: 3, base_priority: 5, weights: { gold: 4 } }\n"
    "    priority: { aging: 1h, delay_factor: { critical: 0.5, high: 1, normal: 1 } }\n"
    "    rate: { total: 100/m, per_tenant: 50/h }\n"
    "    cycle: { every: 60s, batch: 100 }   # absent: continuous\n"
    "    breaker: { window: 60s, min_calls: 20, failure_rate: 0.5, slow: 30s, open: 30s, open_max: 5m, probes: 5 }\n"
    "    health: { url: https://…/health, every: 30s, timeout: 5s, failures: 3, expect: { status: UP, services: "
    "[facturation, batch] } }\n"
    "    contingency: { ramp: [5, 10, 25], stable: 15m, check: 5m, maintenance: [\"Sun 02:00-04:00\"] }\n"
    "    fallback: { url: https://secondary.example }\n"
    "    alerts: { pending: 100, dead: 100, dead_per_tenant: 50, dead_rate: 0.02, age: 15m }\n";

static struct config *parse_ok(struct slice text, const char *name)
{
    struct config *config = NULL;
    struct buffer problems;
    buffer_init(&problems, PROBLEMS_BYTES);
    enum status status = config_parse(text, name, &config, &problems);
    if (status != STATUS_OK || problems.len > 0)
        fail_msg("status %s, problems:\n%s", status_name(status), problems.data ? problems.data : "(none)");
    buffer_release(&problems);
    return config;
}

static void test_example(void **state)
{
    (void)state;
    struct config *config = parse_ok(slice_from(example), "dir/insist.yaml");
    assert_string_equal(config->path, "dir/insist.yaml");
    assert_string_equal(config->listen.host, "127.0.0.1");
    assert_int_equal(config->listen.port, 7878);
    assert_true(config->listen.loopback);
    assert_string_equal(config->store, "sqlite:data/insist.db");
    assert_int_equal(config->payload_bytes_max, 1 << 20);
    assert_int_equal(config->pending_max, 10000000);
    assert_int_equal(config->disk_free_bytes, 256 << 20);
    assert_int_equal(config->retention_completed_ms, DAY_MS);
    assert_int_equal(config->retention_audit_ms, INT64_C(1826) * DAY_MS);
    assert_string_equal(config->tokens_file, "dir/tokens.yaml");
    assert_int_equal(config->notify_count, 2);
    assert_string_equal(config->notify[0].webhook, "https://hooks.example/x");
    assert_string_equal(config->notify[1].through, "mail");
    assert_int_equal(config->notify[1].on.count, 2);
    assert_string_equal(config->notify[1].on.items[1], "permanent_error");
    assert_int_equal(config->warnings.count, 1); /* there is no destination "mail" */
    assert_int_equal(config->destination_count, 1);

    const struct destination_config *claims = config_destination(config, SLICE("claims"));
    assert_non_null(claims);
    assert_null(config_destination(config, SLICE("claim")));
    assert_string_equal(claims->name, "claims");
    assert_string_equal(claims->preset, "http");
    assert_int_equal(claims->transport, TRANSPORT_HTTP);
    assert_string_equal(claims->headers.items[0].name, "SOAPAction");
    assert_string_equal(claims->tls.key, "dir/client.key");
    assert_true(claims->tls.verify);
    assert_int_equal(claims->error_code.count, 3);
    const struct retry_policy *retry = &claims->policy.retry;
    assert_int_equal(retry->retries_max, 5);
    assert_int_equal(retry->base_ms, 5 * MINUTE_MS);
    assert_int_equal(retry->cap_ms, 4 * HOUR_MS);
    assert_int_equal(retry->floor_ms, 5 * MINUTE_MS);
    assert_int_equal(retry->elapsed_max_ms, 4 * HOUR_MS);
    assert_int_equal(retry->retry_after_max_ms, DAY_MS);
    assert_true(retry->throttled_spends);
    assert_true(retry->delay_factor[PRIORITY_CRITICAL] > 0.49 && retry->delay_factor[PRIORITY_CRITICAL] < 0.51);
    assert_int_equal(claims->policy.in_doubt, DOUBT_VERIFY);
    assert_true(claims->policy.can_verify);
    assert_int_equal(claims->policy.verify_after_ms, 10 * MINUTE_MS);
    assert_null(policy_id_problem(&claims->policy, SLICE("CLM-A-1")));
    assert_non_null(policy_id_problem(&claims->policy, SLICE("A-1")));
    struct evidence evidence = { .text = SLICE("Certificate Expired at the gate") };
    assert_int_equal(classify(claims->policy.classifier, evidence).outcome, OUTCOME_BLOCKED);
    assert_int_equal(claims->dead.redrive_after_ms, 6 * HOUR_MS);
    assert_string_equal(claims->fairness.weights.items[0].value, "4");
    assert_int_equal(claims->rate_total.count, 100);
    assert_int_equal(claims->rate_per_tenant.per_ms, HOUR_MS);
    assert_int_equal(claims->cycle_every_ms, MINUTE_MS);
    assert_true(claims->breaker.enabled);
    assert_int_equal(claims->health.kind, HEALTH_JSON);
    assert_int_equal(claims->health.expect_services.count, 2);
    assert_true(claims->contingency.enabled);
    assert_int_equal(claims->contingency.ramp_count, 3);
    assert_int_equal(claims->contingency.ramp[2], 25);
    assert_int_equal(claims->contingency.windows[0].days, 1);
    assert_int_equal(claims->contingency.windows[0].to_minute, 240);
    assert_string_equal(claims->fallback_url, "https://secondary.example");
    assert_int_equal(claims->alerts.age_ms, 15 * MINUTE_MS);
    config_unref(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_example),
    };
    (void)folder;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
