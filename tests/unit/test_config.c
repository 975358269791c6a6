/* The configuration as a whole: the documented example, presets, references, and every kind of problem. */
#include "support/configs.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char example[] =
    "listen: 127.0.0.1:7878\n"
    "store: sqlite:data/insist.db          # memory:\n"
    "durability: always                    # always (fsync before the answer) | everysec\n"
    "limits: { payload: 1MB, pending: 10000000, disk_free: 256MB }\n"
    "retention: { completed: 24h, audit: 1826d }\n"
    "auth: { tokens_file: tokens.yaml }    # required when listening beyond loopback\n"
    "notify:\n"
    "  - { name: ops, webhook: https://hooks.example/x, on: [critical] }\n"
    "  - { name: billing, email: billing@example.org, through: mail, on: [max_retries_exceeded, permanent_error] }\n"
    "destinations:\n"
    "  claims:\n"
    "    preset: tiss                      # every value below may come from the preset or be overridden\n"
    "    transport: http                   # http | smtp | pull\n"
    "    url: https://operadora.example/tiss   # smtp://host:25, smtps://…\n"
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

static void test_example(void **state)
{
    (void)state;
    struct config *config = config_from(slice_from(example), "dir/insist.yaml");
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
    assert_int_equal(config->internal_count, 1);
    assert_int_equal(config_destination_total(config), config->destination_count + 1);
    const struct destination_config *reported = config_destination(config, SLICE("notify.ops"));
    assert_ptr_equal(reported, config_destination_at(config, config->destination_count));
    assert_string_equal(reported->url, "https://hooks.example/x");
    assert_true(reported->internal && reported->policy.classifier);
    assert_int_equal(reported->dead.max, 0); /* it is never held by its dead letters */
    assert_string_equal(config->notify[0].destination, "notify.ops");
    assert_string_equal(config->notify[1].destination, "mail");
    assert_string_equal(config->notify[0].webhook, "https://hooks.example/x");
    assert_string_equal(config->notify[1].through, "mail");
    assert_int_equal(config->notify[1].on.count, 2);
    assert_string_equal(config->notify[1].on.items[1], "permanent_error");
    assert_int_equal(config->warnings.count, 1); /* there is no destination "mail" */
    assert_int_equal(config->destination_count, 1);
    assert_null(config_destination(config, SLICE("claim")));
    config_unref(config);
}

static void test_example_destination(void **state)
{
    (void)state;
    struct config *config = config_from(slice_from(example), "dir/insist.yaml");
    const struct destination_config *claims = config_destination(config, SLICE("claims"));
    assert_non_null(claims);
    assert_string_equal(claims->name, "claims");
    assert_string_equal(claims->preset, "tiss");
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

/* Files of a test, in a folder of its own. */
static char folder[] = "/tmp/insist-config-XXXXXX";

static int folder_make(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static void file_path(const char *name, char ret_path[128])
{
    snprintf(ret_path, 128, "%s/%s", folder, name);
}

static void file_write(const char *name, const char *text, size_t len)
{
    char path[128];
    file_path(name, path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

static void file_text(const char *name, const char *text)
{
    file_write(name, text, strlen(text));
}

static int folder_remove(void **state)
{
    static const char *const names[] = { "main.yaml", "base.yaml", "child.yaml", "bad.yaml", "secret", "big",  "nul",
                                         "a.yaml",    "b.yaml",    "p0.yaml",    "p1.yaml",  "p2.yaml", "p3.yaml",
                                         "p4.yaml",   "p5.yaml" };
    char path[128];
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        file_path(names[i], path);
        unlink(path);
    }
    return rmdir(folder);
}

/* What config_load of main.yaml says; the folder's name is cut from it. NULL: it is good. */
static void expect_load(const char *text, const char *problems_expected)
{
    char path[128];
    struct config *config = NULL;
    struct buffer problems, cut;
    file_text("main.yaml", text);
    file_path("main.yaml", path);
    buffer_init(&problems, PROBLEMS_BYTES);
    buffer_init(&cut, PROBLEMS_BYTES);
    enum status status = config_load(path, &config, &problems);
    struct slice rest = buffer_slice(&problems);
    while (rest.len > 0) {
        size_t at = slice_search(rest, slice_from(folder));
        buffer_append(&cut, (struct slice){ rest.data, at });
        rest = slice_from_offset(rest, at < rest.len ? at + strlen(folder) + 1 : at);
    }
    assert_string_equal(cut.data ? cut.data : "", problems_expected);
    assert_int_equal(status, STATUS_INVALID);
    assert_null(config);
    buffer_release(&problems);
    buffer_release(&cut);
}

static struct config *load_ok(const char *text)
{
    char path[128];
    file_path("main.yaml", path);
    return config_from(slice_from(text), path);
}

static const char base_preset[] = "description: the base\n"
                                  "url: https://base.example/\n"
                                  "method: PUT\n"
                                  "headers: { A: base, B: base }\n"
                                  "success: [base]\n"
                                  "retry: { max_retries: 7, base: 1m }\n"
                                  "in_doubt: verify\n"
                                  "health: { every: 7s }\n"
                                  "breaker: { window: 7s }\n"
                                  "errors: { permanent: [GONE], transient: [BUSY], unknown: permanent }\n";

static void test_preset_file(void **state)
{
    (void)state;
    file_text("base.yaml", base_preset);
    file_text("child.yaml", "extends: ./base.yaml\nretry: { base: 2m }\nsuccess+: [child]\n");
    struct config *config = load_ok("destinations:\n"
                                    "  x:\n"
                                    "    preset: ./child.yaml\n"
                                    "    in_doubt: resend\n"
                                    "    method: \"\"\n"
                                    "    description: \"\"\n"
                                    "    headers: { b: own, C: own }\n"
                                    "    success+: [own]\n"
                                    "    retry: { max_attempts: 3 }\n"
                                    "    breaker: { enabled: false }\n"
                                    "    errors: { permanent+: [NEVER], transient: [LATER] }\n"
                                    "  y: { preset: child.yaml, in_doubt: park, success: [] , url: 'https://y.example' }\n");
    const struct destination_config *x = config_destination(config, SLICE("x"));
    assert_null(x->description); /* taken back */
    assert_string_equal(x->method, "POST");
    assert_string_equal(x->preset, "./child.yaml");
    assert_string_equal(x->url, "https://base.example/");
    assert_int_equal(x->headers.count, 3);
    assert_string_equal(x->headers.items[0].value, "base");
    assert_string_equal(x->headers.items[1].name, "b");
    assert_string_equal(x->headers.items[1].value, "own");
    assert_int_equal(x->success.count, 3);
    assert_string_equal(x->success.items[0], "base");
    assert_string_equal(x->success.items[1], "child");
    assert_string_equal(x->success.items[2], "own");
    assert_int_equal(x->policy.retry.retries_max, 2);
    assert_int_equal(x->policy.retry.base_ms, 2 * MINUTE_MS);
    assert_int_equal(x->breaker.window_ms, 7 * SECOND_MS);
    assert_false(x->breaker.enabled);
    assert_int_equal(x->health.kind, HEALTH_NONE); /* the preset says how, nobody says where */
    static const struct {
        const char *text;
        enum outcome outcome;
    } cases[] = { { "GONE", OUTCOME_PERMANENT }, { "NEVER", OUTCOME_PERMANENT }, { "LATER", OUTCOME_TRANSIENT }, { "BUSY", OUTCOME_NONE } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(classify(x->policy.classifier, (struct evidence){ .text = slice_from(cases[i].text) }).outcome,
                         cases[i].outcome);
    const struct destination_config *y = config_destination(config, SLICE("y"));
    assert_string_equal(y->description, "the base");
    assert_string_equal(y->method, "PUT");
    assert_int_equal(y->success.count, 0);
    assert_int_equal(y->headers.count, 2);
    assert_int_equal(y->policy.retry.retries_max, 7);
    assert_true(y->breaker.enabled);
    assert_ptr_not_equal(x->policy.classifier, y->policy.classifier);
    config_unref(config);
}

static void test_preset_problems(void **state)
{
    (void)state;
    file_text("base.yaml", base_preset);
    expect_load("destinations: { x: { preset: ./base.yaml } }\n",
                "main.yaml:1:17: in_doubt is verify, but nothing tells where to ask; give verify.url, or set in_doubt: resend or park\n");
    file_text("bad.yaml", "timeout: x\npreset: http\n");
    expect_load("destinations: { x: { preset: ./bad.yaml }, y: { preset: ./bad.yaml } }\n",
                "bad.yaml:2:9: a preset starts from another with extends, not preset\n"
                "bad.yaml:1:10: timeout is \"x\"; write a duration such as 250ms, 30s, 5m, 2h or 7d\n"
                "main.yaml:1:57: the preset \"./bad.yaml\" has problems\n");
    file_text("a.yaml", "extends: ./b.yaml\n");
    file_text("b.yaml", "extends: ./a.yaml\n");
    expect_load("destinations: { x: { preset: ./a.yaml } }\n", "b.yaml:1:10: the preset \"./a.yaml\" extends itself\n");
    file_text("p0.yaml", "url: https://a.example\n");
    file_text("p1.yaml", "extends: p0.yaml\n");
    file_text("p2.yaml", "extends: p1.yaml\n");
    file_text("p3.yaml", "extends: p2.yaml\n");
    file_text("p4.yaml", "extends: p3.yaml\n");
    file_text("p5.yaml", "extends: p4.yaml\n");
    config_unref(load_ok("destinations: { x: { preset: p4.yaml } }\n"));
    expect_load("destinations: { x: { preset: p5.yaml } }\n", "p1.yaml:1:10: presets extend each other more than 4 deep\n");
    file_text("bad.yaml", "errors:\n  wait: [A, /(/]\n");
    expect_load("destinations: { x: { preset: bad.yaml, transport: pull } }\n",
                "bad.yaml:2:13: this rule does not work: pattern: missing closing parenthesis at character 2\n");
}

static void test_references(void **state)
{
    (void)state;
    char big[65 * 1024];
    memset(big, 'a', sizeof big);
    setenv("INSIST_TEST_SECRET", "hunter2: [", 1);
    setenv("INSIST_TEST_EMPTY", "", 1);
    file_text("secret", "s3cret\n\n");
    struct config *config = load_ok(D "    username: u-${INSIST_TEST_SECRET}-$${x}-$5-$\n"
                                      "    verify: { body: '${file:secret}' }\n"
                                      "    preset: \"${INSIST_TEST_EMPTY:-http}${INSIST_TEST_EMPTY}\"\n"
                                      "    content_type: ${INSIST_TEST_EMPTY}\n"
                                      "    headers: { Authorization: 'Bearer ${INSIST_TEST_SECRET}' }\n"
                                      "    description: one\n");
    const struct destination_config *x = config_destination(config, SLICE("x"));
    assert_string_equal(x->username, "u-hunter2: [-${x}-$5-$");
    assert_null(x->content_type);
    assert_string_equal(x->verify.body, "s3cret\n"); /* one line break is the file's own */
    assert_string_equal(x->preset, "http");
    assert_string_equal(x->headers.items[0].value, "Bearer hunter2: [");
    config_unref(config);

    file_text("secret", "s3cret\r\n");
    config = load_ok(D "    password: ${file:secret}\n");
    assert_string_equal(config_destination(config, SLICE("x"))->password, "s3cret");
    config_unref(config);
    file_write("secret", big, 64 * 1024);
    config = load_ok(D "    headers: { A: '${file:secret}' }\n");
    assert_int_equal(strlen(config_destination(config, SLICE("x"))->headers.items[0].value), 64 * 1024);
    config_unref(config);
    file_write("big", big, 64 * 1024 + 1);
    file_write("nul", "a\0b", 3);
    expect_load(D "    password: ${file:big}\n    username: ${file:nul}\n    proxy: ${file:none}\n",
                "main.yaml:4:15: ${file:big} cannot be read: it has more than 65536 bytes\n"
                "main.yaml:5:15: ${file:nul} has a NUL byte\n"
                "main.yaml:6:12: ${file:none} cannot be read: No such file or directory\n");
}

/* A reference can be repeated, but not without end. */
static void test_references_in_all(void **state)
{
    (void)state;
    char content[64 * 1024];
    struct buffer text;
    buffer_init(&text, 1 << 20);
    memset(content, 'a', sizeof content);
    file_write("big", content, sizeof content);
    buffer_append_text(&text, D "    argv:\n");
    for (int i = 0; i < 300; i++)
        buffer_append_text(&text, "      - ${file:big}\n");
    struct config *config;
    struct buffer problems;
    char path[128];
    file_path("main.yaml", path);
    buffer_init(&problems, PROBLEMS_BYTES);
    assert_int_equal(config_parse(buffer_slice(&text), path, &config, &problems), STATUS_LIMIT);
    assert_non_null(strstr(problems.data, "what references bring in has more than 16777216 bytes in all"));
    buffer_release(&problems);
    buffer_release(&text);
}

static void test_load_problems(void **state)
{
    (void)state;
    struct config *config;
    struct buffer problems;
    buffer_init(&problems, PROBLEMS_BYTES);
    assert_int_equal(config_load("/no/such.yaml", &config, &problems), STATUS_IO);
    assert_string_equal(problems.data, "/no/such.yaml: cannot be read: No such file or directory\n");
    buffer_clear(&problems);
    assert_int_equal(config_load("/", &config, &problems), STATUS_IO);
    assert_string_equal(problems.data, "/: cannot be read: it is a folder\n");
    buffer_release(&problems);
}

static void expect_limit(struct slice text, enum status expected, const char *problem)
{
    struct config *config;
    struct buffer problems;
    buffer_init(&problems, PROBLEMS_BYTES);
    assert_int_equal(config_parse(text, "f", &config, &problems), expected);
    assert_non_null(strstr(problems.data, problem));
    buffer_release(&problems);
}

static void repeat(struct buffer *text, const char *part, size_t times)
{
    for (size_t i = 0; i < times; i++)
        buffer_append_text(text, part);
}

static void test_limits(void **state)
{
    (void)state;
    struct buffer text;
    buffer_init(&text, 8 << 20);
    repeat(&text, "# 789abcdef\n", CONFIG_BYTES_MAX / 12);
    repeat(&text, "\n", CONFIG_BYTES_MAX - text.len);
    config_unref(config_from(buffer_slice(&text), "f"));
    repeat(&text, "\n", 1);
    expect_limit(buffer_slice(&text), STATUS_LIMIT, "f: the file has 4194305 bytes; the limit is 4194304\n");

    buffer_clear(&text);
    repeat(&text, "[", 100000);
    expect_limit(buffer_slice(&text), STATUS_LIMIT, "f:1:25: the file is nested too deeply; the limit is 24 levels\n");
    buffer_clear(&text);
    repeat(&text, "{a: ", 100000);
    expect_limit(buffer_slice(&text), STATUS_LIMIT, "the file is nested too deeply; the limit is 24 levels\n");
    buffer_clear(&text);
    repeat(&text, "- ", 100000);
    expect_limit(buffer_slice(&text), STATUS_LIMIT, "the file is nested too deeply; the limit is 24 levels\n");

    buffer_clear(&text);
    buffer_append_text(&text, "a: [");
    repeat(&text, "1,", 500000);
    buffer_append_text(&text, "]");
    expect_limit(buffer_slice(&text), STATUS_LIMIT, "the file has too many values; the limit is 500000\n");

    buffer_clear(&text);
    buffer_append_text(&text, D "    success: [");
    repeat(&text, "1,", 4097);
    buffer_append_text(&text, "]");
    expect_limit(buffer_slice(&text), STATUS_INVALID, "f:4:14: success has 4097 items; the limit is 4096\n");

    buffer_clear(&text);
    buffer_append_text(&text, D "    headers:\n");
    for (int i = 0; i < 257; i++)
        buffer_printf(&text, "      A%d: b\n", i);
    expect_limit(buffer_slice(&text), STATUS_INVALID, "f:5:7: headers has 257 items; the limit is 256\n");

    buffer_clear(&text);
    buffer_append_text(&text, D "    errors:\n      wait: [");
    repeat(&text, "a1,", 4096);
    buffer_append_text(&text, "]\n      permanent: [x]\n");
    expect_limit(buffer_slice(&text), STATUS_INVALID, "f:2:3: destination \"x\" has 4097 error rules; the limit is 4096\n");

    buffer_clear(&text);
    buffer_append_text(&text, D "    errors: { wait: [");
    repeat(&text, "x", RULE_BYTES_MAX + 1);
    buffer_append_text(&text, "] }\n");
    expect_limit(buffer_slice(&text), STATUS_INVALID, "f:4:22: this rule does not work: the rule has 257 bytes, the limit is 256\n");

    buffer_clear(&text);
    buffer_append_text(&text, D "    username: ");
    repeat(&text, "x", 64 * 1024 + 1);
    expect_limit(buffer_slice(&text), STATUS_INVALID, "f:4:15: username has 65537 bytes; the limit is 65536\n");
    buffer_release(&text);
}

static void test_many_destinations(void **state)
{
    (void)state;
    struct buffer text;
    buffer_init(&text, 4 << 20);
    buffer_append_text(&text, "destinations:\n");
    for (int i = 0; i < DESTINATIONS_MAX; i++)
        buffer_printf(&text, "  d%d: { preset: http, url: 'http://h/%d' }\n", i, i);
    struct config *config = config_from(buffer_slice(&text), "f");
    assert_int_equal(config->destination_count, DESTINATIONS_MAX);
    const struct destination_config *last = config_destination(config, SLICE("d9999"));
    assert_string_equal(last->url, "http://h/9999");
    assert_ptr_equal(last->policy.classifier, config->destinations[0].policy.classifier); /* same rules, one classifier */
    config_unref(config);
    buffer_append_text(&text, "  more: { url: 'http://h/' }\n");
    expect_limit(buffer_slice(&text), STATUS_INVALID, "f:2:3: there are 10001 destinations; the limit is 10000\n");
    buffer_release(&text);
}

static void test_presets_built_in(void **state)
{
    (void)state;
    struct slice text;
    struct error err;
    struct config *config = NULL;
    struct buffer problems;
    buffer_init(&problems, PROBLEMS_BYTES);
    assert_non_null(preset_name(0));
    for (size_t i = 0; preset_name(i); i++) {
        struct slice name = slice_from(preset_name(i));
        assert_int_equal(preset_text(name, &text, &err), STATUS_OK);
        assert_true(text.len > 0);
        if (config_preset(name, &config, &problems) != STATUS_OK)
            fail_msg("%s", problems.data);
        assert_int_equal(config->destination_count, 1);
        const struct destination_config *destination = config_destination(config, name);
        assert_ptr_equal(destination, &config->destinations[0]);
        assert_string_equal(destination->preset, preset_name(i));
        assert_string_equal(destination->policy.name, preset_name(i));
        assert_non_null(destination->policy.classifier);
        assert_true(config->listen.loopback);
        config_unref(config);
    }
    assert_int_equal(preset_text(SLICE("htpp"), &text, &err), STATUS_NOT_FOUND);
    assert_string_equal(err.text, "there is no preset \"htpp\"; did you mean \"http\"?");
    assert_int_equal(config_preset(SLICE("htpp"), &config, &problems), STATUS_NOT_FOUND);
    assert_string_equal(problems.data, "preset: there is no preset \"htpp\"; did you mean \"http\"?\n");
    buffer_clear(&problems);
    assert_int_equal(config_preset(SLICE("./http.yaml"), &config, &problems), STATUS_NOT_FOUND);
    buffer_release(&problems);
}

static void test_references_counted(void **state)
{
    (void)state;
    struct config *config = config_from(slice_from(D), "f");
    struct config *other = config_ref(config);
    assert_ptr_equal(config, other);
    config_unref(config);
    assert_string_equal(other->destinations[0].name, "x"); /* still there; the sanitizer sees a use after free */
    config_unref(other);
    config_unref(NULL);
}

/* No text may crash it or leave memory behind: the example with every byte changed, cut and doubled. */
static void test_any_bytes(void **state)
{
    static const char bytes[] = { '\0', '\n', '\t', ' ', '{', ']', ':', '-', '"', '$', '&', '*', '\xff', '9' };
    (void)state;
    size_t len = strlen(example);
    char *text = malloc(len + 1);
    assert_non_null(text);
    uint64_t random = 88172645463325252u;
    for (int round = 0; round < 1500; round++) {
        memcpy(text, example, len + 1);
        size_t cut = len;
        for (int change = 0; change <= round % 4; change++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            text[random % len] = bytes[(random >> 32) % sizeof bytes];
            if (round % 5 == 0)
                cut = (size_t)(random >> 8) % len;
        }
        struct config *config = NULL;
        struct buffer problems;
        buffer_init(&problems, PROBLEMS_BYTES);
        enum status status = config_parse((struct slice){ text, cut }, "f", &config, &problems);
        assert_true((status == STATUS_OK) == (config != NULL));
        assert_true((status == STATUS_OK) == (problems.len == 0));
        config_unref(config);
        buffer_release(&problems);
    }
    free(text);
}

static void test_reference_page(void **state)
{
    (void)state;
    static const char path[] = "docs/configuration.md";
    struct buffer page;
    buffer_init(&page, 1 << 20);
    config_reference(&page);
    assert_int_equal(buffer_status(&page), STATUS_OK);
    if (getenv("INSIST_UPDATE_DOCS")) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        assert_int_equal(fwrite(page.data, 1, page.len, file), page.len);
        assert_int_equal(fclose(file), 0);
    }
    struct buffer written;
    buffer_init(&written, 1 << 20);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char *room = buffer_reserve(&written, page.len + 1);
    buffer_commit(&written, fread(room, 1, page.len + 1, file));
    fclose(file);
    if (!slice_equal(buffer_slice(&page), buffer_slice(&written)))
        fail_msg("%s is not what the tables say; run INSIST_UPDATE_DOCS=1 build/tests/test_config", path);
    buffer_release(&page);
    buffer_release(&written);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_example),
        cmocka_unit_test(test_example_destination),
        cmocka_unit_test(test_preset_file),
        cmocka_unit_test(test_preset_problems),
        cmocka_unit_test(test_references),
        cmocka_unit_test(test_references_in_all),
        cmocka_unit_test(test_load_problems),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_many_destinations),
        cmocka_unit_test(test_presets_built_in),
        cmocka_unit_test(test_references_counted),
        cmocka_unit_test(test_any_bytes),
        cmocka_unit_test(test_reference_page),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
