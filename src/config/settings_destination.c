#include "config/checks.h"
#include "config/destination.h"

#define AT(member) offsetof(struct destination_draft, config.member)
#define RETRY(member) AT(policy.retry.member)
#define QUERY(member) offsetof(struct query_config, member)

static const struct choice transports[] = {
    { "http", TRANSPORT_HTTP }, { "smtp", TRANSPORT_SMTP }, { "pull", TRANSPORT_PULL }, { "exec", TRANSPORT_EXEC },
    { "ses", TRANSPORT_SES },   { "redis", TRANSPORT_REDIS }, { "amqp", TRANSPORT_AMQP }, { NULL, 0 },
};
static const struct choice clamps[] = {
    { "after", CLAMP_AFTER }, { "before", CLAMP_BEFORE }, { "saturate", CLAMP_SATURATE }, { NULL, 0 },
};
static const struct choice unknowns[] = {
    { "transient", OUTCOME_TRANSIENT }, { "permanent", OUTCOME_PERMANENT }, { NULL, 0 },
};
static const struct choice doubts[] = {
    { "verify", DOUBT_VERIFY }, { "resend", DOUBT_RESEND }, { "park", DOUBT_PARK }, { NULL, 0 },
};
static const struct choice delivered_when[] = {
    { "success", DELIVERED_BY_CODE }, { "reference", DELIVERED_BY_REFERENCE }, { NULL, 0 },
};
static const struct choice priority_scopes[] = {
    { "tenant", PRIORITY_TENANT }, { "destination", PRIORITY_DESTINATION }, { NULL, 0 },
};
static const struct choice blocked_scopes[] = {
    { "destination", BLOCKED_DESTINATION }, { "tenant", BLOCKED_TENANT }, { NULL, 0 },
};
static const struct choice starttls_modes[] = {
    { "auto", STARTTLS_AUTO }, { "required", STARTTLS_REQUIRED }, { "opportunistic", STARTTLS_OPPORTUNISTIC },
    { "none", STARTTLS_NONE }, { NULL, 0 },
};
static const struct choice health_kinds[] = {
    { "json", HEALTH_JSON }, { "http", HEALTH_HTTP }, { "wsdl", HEALTH_WSDL },
    { "tcp", HEALTH_TCP },   { "smtp", HEALTH_SMTP }, { NULL, 0 },
};

static const struct setting tls_rows[] = {
    { "ca", SETTING_PATH, AT(tls.ca), .meaning = "Certificates to trust, in PEM. Without it the system's." },
    { "cert", SETTING_PATH, AT(tls.cert), .meaning = "The client's certificate, in PEM." },
    { "key", SETTING_PATH, AT(tls.key), .meaning = "The client's private key, in PEM." },
    { "verify", SETTING_BOOL, AT(tls.verify), "true",
      .meaning = "Check the server's certificate and name. Turn it off only to test." },
};
static const struct section tls_section = { .name = "tls", SECTION_ROWS(tls_rows) };

static const struct setting smtp_rows[] = {
    { "from", SETTING_TEXT, AT(smtp.from), .meaning = "The sender of messages that name none, such as ops@example.org.",
      .check = check_email },
    { "helo", SETTING_TEXT, AT(smtp.helo),
      .meaning = "Our name in HELO and EHLO. Without it the machine's. Many servers want a full name that leads back here.",
      .check = check_helo },
    { "starttls", SETTING_ENUM, AT(smtp.starttls), "auto",
      .meaning =
          "Whether a connection of smtp:// becomes TLS. `required`: nothing is sent without. `opportunistic`: where the "
          "server offers it. `none`: never. `auto`: required, but opportunistic where the url itself is localhost or a "
          "private address. smtps:// is always TLS.",
      .choices = starttls_modes },
};
static const struct section smtp_section = { .name = "smtp",
                                             SECTION_ROWS(smtp_rows),
                                             .meaning = "For transport smtp: see smtp.md." };

static const struct setting exec_rows[] = {
    { "argv", SETTING_TEXT_LIST, AT(exec.argv), "",
      .meaning = "The program, as an absolute path, and its arguments, each as it is: there is no shell." },
    { "memory", SETTING_SIZE, AT(exec.memory_bytes), "512MB", "0", "1024GB",
      .meaning = "Address space of one process. 0: no limit, as runtimes that reserve much may need." },
    { "output", SETTING_SIZE, AT(exec.output_bytes), "64KB", "1KB", "16MB",
      .meaning = "Of standard output and standard error together. A program that writes more is ended." },
    { "grace", SETTING_DURATION, AT(exec.grace_ms), "5s", "0s", "30s",
      .meaning = "How long a program that took longer than timeout may take to end after SIGTERM; then SIGKILL." },
    { "environment", SETTING_HEADERS, AT(exec.environment),
      .meaning = "Variables of the program, besides INSIST_... It gets none of the daemon's own." },
};
static const struct section exec_section = { .name = "exec",
                                             SECTION_ROWS(exec_rows),
                                             .meaning = "For transport exec: see transport-exec.md." };

static const struct setting ses_rows[] = {
    { "region", SETTING_TEXT, AT(ses.region), .meaning = "The region, such as sa-east-1.", .check = check_region },
    { "configuration_set", SETTING_TEXT, AT(ses.configuration_set), .meaning = "SES's configuration set of messages.",
      .check = check_line },
    { "session_token", SETTING_TEXT, AT(ses.session_token), .meaning = "Of temporary credentials; best as `${file:...}`.",
      .check = check_line, .secret = true },
};
static const struct section ses_section = { .name = "ses",
                                            SECTION_ROWS(ses_rows),
                                            .meaning = "For transport ses: see transport-ses.md." };

static const struct setting redis_rows[] = {
    { "stream", SETTING_TEXT, AT(redis.stream), .meaning = "The key of the stream to which jobs are added." },
    { "maxlen", SETTING_COUNT, AT(redis.maxlen), "0", "0", "1000000000000",
      .meaning = "Entries that the stream keeps, about: older ones go. 0: all of them." },
};
static const struct section redis_section = { .name = "redis",
                                              SECTION_ROWS(redis_rows),
                                              .meaning = "For transport redis: see transport-queues.md." };

static const struct setting amqp_rows[] = {
    { "exchange", SETTING_TEXT, AT(amqp.exchange),
      .meaning = "Where messages are published. Without it the default exchange, whose routing keys are names of queues.",
      .check = check_short },
    { "routing_key", SETTING_TEXT, AT(amqp.routing_key), .meaning = "Of each message.", .check = check_short },
    { "mandatory", SETTING_BOOL, AT(amqp.mandatory), "true",
      .meaning = "A message that reaches no queue is no delivery. `false`: the broker may drop it." },
};
static const struct section amqp_section = { .name = "amqp",
                                             SECTION_ROWS(amqp_rows),
                                             .meaning = "For transport amqp: see transport-queues.md." };

static const struct choice oauth2_auths[] = { { "basic", OAUTH2_BASIC }, { "body", OAUTH2_BODY }, { NULL, 0 } };

static const struct setting oauth2_rows[] = {
    { "token_url", SETTING_URL, AT(oauth2.token_url), .meaning = "Where access tokens are fetched.", .check = check_http_url },
    { "client_id", SETTING_TEXT, AT(oauth2.client_id), .meaning = "Who asks for them.", .check = check_line },
    { "client_secret", SETTING_TEXT, AT(oauth2.client_secret), .meaning = "Its secret; best as `${file:...}`.",
      .check = check_line, .secret = true },
    { "scope", SETTING_TEXT, AT(oauth2.scope), .meaning = "What the token is for, as the endpoint calls it.",
      .check = check_line },
    { "auth", SETTING_ENUM, AT(oauth2.auth), "basic",
      .meaning = "How id and secret are told: `basic` in a header, `body` in the form.", .choices = oauth2_auths },
};
static const struct section oauth2_section = {
    .name = "oauth2",
    SECTION_ROWS(oauth2_rows),
    .meaning =
        "Access tokens by client credentials, for http (`Authorization: Bearer`) and smtp (XOAUTH2). A token is kept until "
        "shortly before it expires, and fetched once more when the destination answers 401.",
};

static const struct setting tenant_rows[] = {
    { "url", SETTING_URL, AT(url), .meaning = "Where this tenant's jobs go." },
    { "headers", SETTING_HEADERS, AT(headers), .meaning = "Besides the destination's, or in place of those of the same name." },
    { "username", SETTING_TEXT, AT(username), .meaning = "Its login.", .check = check_line },
    { "password", SETTING_TEXT, AT(password), .meaning = "Its password; best as `${file:...}`.", .check = check_line,
      .secret = true },
    { "tls", SETTING_SECTION, 0, .meaning = "Its certificate.", .section = &tls_section },
    { "oauth2", SETTING_SECTION, 0, .meaning = "Its access tokens.", .section = &oauth2_section },
};
const struct section tenant_section = {
    .name = "tenants",
    SECTION_ROWS(tenant_rows),
    .meaning = "By the tenant's name: `tenants: { acme: { url: https://acme.example/claims, tls: { cert: acme.pem, key: "
               "acme.key } } }`. "
               "What a tenant does not say is the destination's. Each has connections and access tokens of its own; an "
               "answer of the "
               "class blocked then holds the tenant, unless `blocked` says otherwise.",
};

static const struct setting retry_rows[] = {
    { "max_retries", SETTING_COUNT, RETRY(retries_max), "5", "0", "1000000", .meaning = "Retries after the first attempt." },
    { "max_attempts", SETTING_COUNT, offsetof(struct destination_draft, attempts_max), NULL, "1", "1000001",
      .meaning = "The same, counted with the first attempt: max_retries + 1. Give one of the two." },
    { "base", SETTING_DURATION, RETRY(base_ms), "30s", "1ms", "30d", .meaning = "The wait before the first retry." },
    { "factor", SETTING_REAL, RETRY(factor), "2", "0.001", "1000",
      .meaning = "Each wait is this many times the one before." },
    { "cap", SETTING_DURATION, RETRY(cap_ms), "1h", "1ms", "365d", .meaning = "No wait is longer." },
    { "floor", SETTING_DURATION, RETRY(floor_ms), "0s", "0s", "365d", .meaning = "No wait is shorter." },
    { "jitter", SETTING_REAL, RETRY(jitter), "0.2", "0", "1",
      .meaning = "How far waits spread: 0.2 is from 20% less to 20% more." },
    { "clamp", SETTING_ENUM, RETRY(clamp), "after",
      .meaning =
          "Where floor and cap meet the spread. `after`: drawn evenly from what lies inside both. `before`: only the middle "
          "is inside. `saturate`: drawn, then cut off.",
      .choices = clamps },
    { "max_elapsed", SETTING_DURATION, RETRY(elapsed_max_ms), "0s", "0s", "3650d",
      .meaning = "No retry later than this after the first attempt, the last outage not counted. 0s: no such limit." },
    { "retry_after_max", SETTING_DURATION, RETRY(retry_after_max_ms), "1h", "0s", "365d",
      .meaning = "A destination's own wish (Retry-After) is believed up to this." },
    { "throttle_min", SETTING_DURATION, RETRY(throttle_min_ms), "30s", "0s", "30d",
      .meaning = "The shortest wait after a throttled answer." },
    { "reason", SETTING_TEXT, AT(policy.retry_reason),
      .meaning = "The words of `retryReason` for a retry, such as `Erro transiente, tentativa {n} de {max}`. Programs read "
                 "the other members.",
      .check = check_reason },
    { "throttled_counts", SETTING_BOOL, RETRY(throttled_spends), "true",
      .meaning = "Whether a throttled answer spends one of the retries." },
    { "adaptive", SETTING_BOOL, AT(adaptive_backoff), "false",
      .meaning =
          "Wait up to twice as long while retries fail, down to half as long while they succeed; floor and cap stand." },
};

/* max_attempts is another way to say max_retries: the one that was written last counts. */
static void retry_after(struct settings *settings, const struct node *node, void *base)
{
    struct destination_draft *draft = base;
    const struct node *attempts = node_child(node, SLICE("max_attempts"));
    const struct node *retries = node_child(node, SLICE("max_retries"));
    if (!attempts || draft->attempts_max == 0)
        return;
    if (retries && draft->config.policy.retry.retries_max != draft->attempts_max - 1)
        problem_add(settings->problems, settings_place(settings, attempts),
                    "max_attempts counts the first attempt too, so it must be max_retries + 1; give only one of them");
    draft->config.policy.retry.retries_max = draft->attempts_max - 1;
    draft->attempts_max = 0;
}

static const struct section retry_section = { .name = "retry", SECTION_ROWS(retry_rows), .after = retry_after };

#define RULES(tier, list_name, outcome, meaning_text) \
    { list_name, SETTING_RULES, offsetof(struct destination_draft, rules[tier][outcome]), .meaning = meaning_text }
#define RULE_LISTS(tier)                                                                                                  \
    RULES(tier, "permanent", OUTCOME_PERMANENT, "This job will never be taken as it is: dead letter."),                   \
        RULES(tier, "transient", OUTCOME_TRANSIENT, "Try again after a wait."),                                           \
        RULES(tier, "throttled", OUTCOME_THROTTLED, "As transient, and slows the whole destination."),                    \
        RULES(tier, "wait", OUTCOME_WAIT,                                                                                 \
              "The destination is down or busy: wait for it, spend no attempt. While others are served it counts."),      \
        RULES(tier, "blocked", OUTCOME_BLOCKED, "Credentials, certificate, account: hold what is refused, and alert."),   \
        RULES(tier, "duplicate", OUTCOME_DUPLICATE, "It has the job already: verify, then complete."),                    \
        RULES(tier, "accepted", OUTCOME_ACCEPTED, "Taken, and judged later: poll."),                                      \
        RULES(tier, "in_doubt", OUTCOME_IN_DOUBT, "Sent, but what became of it is not known."),                           \
        RULES(tier, "delivered", OUTCOME_DELIVERED, "Delivered, although the answer looks like an error."),               \
        RULES(tier, "partial", OUTCOME_PARTIAL, "Some parts were taken, some were not.")

static const struct setting exception_rows[] = { RULE_LISTS(TIER_EXCEPTION) };
static const struct section exception_section = { .name = "errors.exceptions",
                                                  SECTION_ROWS(exception_rows),
                                                  .meaning = "Rules that are looked at before all others.",
                                                  .same_as = "errors" };
static const struct setting general_rows[] = { RULE_LISTS(TIER_FALLBACK) };
static const struct section general_section = { .name = "errors.fallback",
                                                SECTION_ROWS(general_rows),
                                                .meaning = "Rules for what no rule of the lists above knows: what is "
                                                           "known of the protocol in general.",
                                                .same_as = "errors" };
static const struct setting errors_rows[] = {
    RULE_LISTS(TIER_MAIN),
    { "exceptions", SETTING_SECTION, 0, .meaning = "The same lists, looked at first.", .section = &exception_section },
    { "fallback", SETTING_SECTION, 0, .meaning = "The same lists, looked at last.", .section = &general_section },
    { "unknown", SETTING_ENUM, AT(policy.unknown), "transient", .meaning = "What an error is that no rule knows.",
      .choices = unknowns },
    { "namespace", SETTING_TEXT, offsetof(struct destination_draft, code_namespace),
      .meaning = "Whose codes the bare numbers in an error's text are: smtp, sifen.", .check = check_namespace },
};
static const struct section errors_section = { .name = "errors", SECTION_ROWS(errors_rows) };

static const struct setting query_rows[] = {
    { "url", SETTING_URL, QUERY(url), .meaning = "Where to ask. `{id}`, `{tenant}` and `{reference}` are filled in.",
      .check = check_http_url },
    { "method", SETTING_TEXT, QUERY(method), "GET", .meaning = "How to ask.", .check = check_method },
    { "body", SETTING_TEXT, QUERY(body), .meaning = "What to send along. `{id}`, `{tenant}` and `{reference}` are filled in." },
    { "delivered", SETTING_TEXT_LIST, QUERY(delivered), "2xx", .meaning = "Answers that mean: it is there, and good." },
    { "absent", SETTING_TEXT_LIST, QUERY(absent), "404", .meaning = "Answers that mean: it never arrived." },
    { "pending", SETTING_TEXT_LIST, QUERY(pending), "", .meaning = "Answers that mean: not judged yet." },
    { "rejected", SETTING_TEXT_LIST, QUERY(rejected), "", .meaning = "Answers that mean: judged, and refused." },
    { "error_code", SETTING_TEXT_LIST, QUERY(error_code), "http.status",
      .meaning = "Where the answer's code is; the first that is found.", .check = check_error_code },
    { "after", SETTING_DURATION, QUERY(after_ms), "0s", "0s", "30d", .meaning = "Wait before the first question. 0s: as before a retry." },
    { "every", SETTING_DURATION, QUERY(every_ms), "1m", "1s", "30d", .meaning = "Between questions." },
    { "times", SETTING_COUNT, QUERY(times), "30", "1", "1000000", .meaning = "Questions at most; then a person must look." },
};
static const struct section verify_section = { .name = "verify",
                                               SECTION_ROWS(query_rows),
                                               .meaning = "Asking whether a job arrived, after doubt." };
static const struct section poll_section = { .name = "poll",
                                             SECTION_ROWS(query_rows),
                                             .meaning = "Asking how an accepted job was judged.",
                                             .same_as = "verify" };

static const struct setting sign_rows[] = {
    { "secrets", SETTING_TEXT_LIST, AT(sign.secrets),
      .meaning =
          "Keys of the Standard Webhooks signature, `whsec_...`. The first is the current one; the others are still sent "
      "during a rotation.",
      .check = check_secret, .secret = true },
};
static const struct section sign_section = { .name = "sign", SECTION_ROWS(sign_rows) };

static const struct setting redrive_rows[] = {
    { "after", SETTING_DURATION, AT(dead.redrive_after_ms), "0s", "0s", "365d",
      .meaning = "Send dead letters that used up their retries back to work by itself, this long after they died, while the "
      "destination is well. 0s: never." },
    { "times", SETTING_COUNT, AT(dead.redrive_times), "1", "0", "1000", .meaning = "How often for one job." },
    { "rate", SETTING_RATE, AT(dead.redrive_rate), "60/m", .meaning = "How fast they go back." },
};
static const struct section redrive_section = { .name = "dead.auto_redrive", SECTION_ROWS(redrive_rows) };
static const struct setting dead_rows[] = {
    { "ttl", SETTING_DURATION, AT(dead.ttl_ms), "30d", "0s", "36500d", .meaning = "How long dead letters are kept. 0s: until purged." },
    { "export", SETTING_TEXT, AT(dead.export),
      .meaning = "The destination that gets them when that time is over: each becomes a job there, whose payload is its "
                 "line of `GET /v1/dead/export`, and only then is deleted. What that destination cannot deliver is a dead letter "
                 "there and is kept until purged, so it may have no `ttl` unless it exports itself. Not to `smtp` and `ses`. "
                 "Without it they are deleted.",
      .check = check_name },
    { "max", SETTING_COUNT, AT(dead.max), "100000", "1", "1000000000",
      .meaning = "How many are kept. When it is full the destination holds and alerts; nothing is dropped." },
    { "max_per_tenant", SETTING_COUNT, AT(dead.max_per_tenant), "0", "0", "1000000000",
      .meaning = "The same of one tenant: it alone is held. 0: all of them while one tenant is known, else half." },
    { "auto_redrive", SETTING_SECTION, 0, .meaning = "Trying dead letters again by itself.", .section = &redrive_section },
};
static const struct section dead_section = { .name = "dead", SECTION_ROWS(dead_rows) };

static const struct setting fairness_rows[] = {
    { "round_robin", SETTING_BOOL, AT(fairness.round_robin), "true", .meaning = "Tenants take turns." },
    { "batch", SETTING_COUNT, AT(fairness.batch), "3", "1", "10000", .meaning = "Jobs of one tenant in a row." },
    { "base_priority", SETTING_COUNT, AT(fairness.base_priority), "5", "1", "100",
      .meaning = "What a tenant starts with; it is more urgent the longer it has not had a turn." },
    { "weights", SETTING_WEIGHTS, AT(fairness.weights), NULL, "1", "1000",
      .meaning = "Turns of a tenant, or of each tenant of a tier, for each turn of the others. A tenant's own name counts "
                 "before its tier's." },
};
static const struct section fairness_section = { .name = "fairness", SECTION_ROWS(fairness_rows) };

static const struct setting factor_rows[] = {
    { "critical", SETTING_REAL, RETRY(delay_factor[PRIORITY_CRITICAL]), "1", "0.001", "1000", .meaning = "For critical jobs." },
    { "high", SETTING_REAL, RETRY(delay_factor[PRIORITY_HIGH]), "1", "0.001", "1000", .meaning = "For jobs of high priority." },
    { "normal", SETTING_REAL, RETRY(delay_factor[PRIORITY_NORMAL]), "1", "0.001", "1000", .meaning = "For all others." },
};
static const struct section factor_section = { .name = "priority.delay_factor", SECTION_ROWS(factor_rows) };
static const struct setting priority_rows[] = {
    { "aging", SETTING_DURATION, AT(aging_ms), "1h", "1s", "365d",
      .meaning = "A job that waited this long counts as one class more urgent." },
    { "deadline_lead", SETTING_DURATION, AT(deadline_lead_ms), "0s", "0s", "365d",
      .meaning =
          "So long before a deadline of its own a job goes before all new work of its tenant. 0s: as long as aging." },
    { "scope", SETTING_ENUM, AT(priority_scope), "tenant", .choices = priority_scopes,
      .meaning = "`tenant`: a class counts among its tenant's own jobs. `destination`: the most urgent class of all "
                 "tenants goes first, tenants in turn; one slot in five goes by turns over all classes." },
    { "delay_factor", SETTING_SECTION, 0, .meaning = "Waits are multiplied by this.", .section = &factor_section },
};
static const struct section priority_section = { .name = "priority", SECTION_ROWS(priority_rows) };

static const struct setting rate_rows[] = {
    { "total", SETTING_RATE, AT(rate_total), .meaning = "Sends of the destination. Without it there is no limit." },
    { "per_tenant", SETTING_RATE, AT(rate_per_tenant), .meaning = "Sends of one tenant. Without it there is no limit." },
    { "burst", SETTING_COUNT, AT(rate_burst), "0", "0", "1000000",
      .meaning = "How many may go at once after a pause; then one after the other, as the rate says. 0: `concurrency`, or "
      "what a second brings if that is more, but not more than the rate's own number. One tenant's is never more than the number of "
      "`per_tenant`." },
};
static const struct section rate_section = {
    .name = "rate",
    SECTION_ROWS(rate_rows),
    .meaning = "In any stretch of time at most `burst` plus what the rate brings in it are sent: with `100/m` and "
               "`burst: 100` a hundred at once after a pause, and one each 0.6 seconds from then on.",
};

static const struct setting cycle_rows[] = {
    { "every", SETTING_DURATION, AT(cycle_every_ms), "0s", "0s", "1d", .meaning = "Send in rounds this far apart. 0s: continuously." },
    { "batch", SETTING_COUNT, AT(cycle_batch), "100", "1", "1000000", .meaning = "Jobs in one round." },
};
static const struct section cycle_section = { .name = "cycle", SECTION_ROWS(cycle_rows) };

static const struct setting breaker_rows[] = {
    { "enabled", SETTING_BOOL, AT(breaker.enabled), .meaning = "On when the section is there; `false` turns off a preset's." },
    { "window", SETTING_DURATION, AT(breaker.window_ms), "60s", "1s", "1d", .meaning = "The time that is looked at." },
    { "min_calls", SETTING_COUNT, AT(breaker.min_calls), "20", "1", "1000000",
      .meaning = "With fewer jobs in the window nothing is judged; each counts once, by its last answer." },
    { "failure_rate", SETTING_REAL, AT(breaker.failure_rate), "0.5", "0.001", "1",
      .meaning = "Opens at this share of failures, of all jobs and for more than half of the tenants." },
    { "slow", SETTING_DURATION, AT(breaker.slow_ms), "30s", "1ms", "1h", .meaning = "A send that takes longer is slow." },
    { "slow_rate", SETTING_REAL, AT(breaker.slow_rate), "1", "0.001", "1", .meaning = "Opens at this share of slow sends." },
    { "open", SETTING_DURATION, AT(breaker.open_ms), "30s", "1ms", "1d", .meaning = "How long it stays open the first time." },
    { "open_max", SETTING_DURATION, AT(breaker.open_max_ms), "5m", "1ms", "30d", .meaning = "It doubles each time up to this." },
    { "probes", SETTING_COUNT, AT(breaker.probes), "5", "1", "1000",
      .meaning = "Jobs that look at once whether it is back; the first that goes well closes it." },
};

static bool *breaker_given(void *base)
{
    return &((struct destination_draft *)base)->config.breaker.enabled;
}

static const struct section breaker_section = { .name = "breaker",
                                                SECTION_ROWS(breaker_rows),
                                                .meaning = "Stops sending when too many sends fail. Absent: none.",
                                                .given = breaker_given };

static const struct setting expect_rows[] = {
    { "status", SETTING_TEXT, AT(health.expect_status), "UP", .meaning = "The status in the answer that means well.",
      .check = check_line },
    { "services", SETTING_TEXT_LIST, AT(health.expect_services), "", .meaning = "The services that must all be well." },
};
static const struct section expect_section = { .name = "health.expect", SECTION_ROWS(expect_rows) };
static const struct setting health_rows[] = {
    { "url", SETTING_URL, AT(health.url),
      .meaning = "What to ask: http://, https://, tcp://host:port or smtp://host:port. Without it there is no check." },
    { "kind", SETTING_ENUM, offsetof(struct destination_draft, health_kind),
      .meaning = "`json`: status and services in the answer. `http`: any 2xx. `wsdl`: 2xx with definitions in it. `tcp`: a "
      "connection. `smtp`: a greeting. Without it tcp and smtp by the url, else json.",
      .choices = health_kinds },
    { "every", SETTING_DURATION, AT(health.every_ms), "30s", "1s", "1d", .meaning = "Between checks." },
    { "timeout", SETTING_DURATION, AT(health.timeout_ms), "5s", "1ms", "5m", .meaning = "A check that takes longer has failed." },
    { "failures", SETTING_COUNT, AT(health.failures), "3", "1", "1000", .meaning = "Failed checks in a row that mean down." },
    { "expect", SETTING_SECTION, 0, .meaning = "What a good answer says.", .section = &expect_section },
    { "headers", SETTING_HEADERS, AT(health.headers), .meaning = "Headers of the request." },
};

static bool *health_given(void *base)
{
    return &((struct destination_draft *)base)->health_given;
}

static const struct section health_section = { .name = "health",
                                               SECTION_ROWS(health_rows),
                                               .meaning = "Asks the destination how it is. Absent: not asked.",
                                               .given = health_given };

static const struct setting contingency_rows[] = {
    { "enabled", SETTING_BOOL, AT(contingency.enabled),
      .meaning = "On when the section is there; `false` turns off a preset's." },
    { "ramp", SETTING_COUNT_LIST, AT(contingency.ramp), "5, 10, 25", "1", "1000000",
      .meaning = "Jobs in one go on the way back, step by step. A go fails when more than half of them do." },
    { "stable", SETTING_DURATION, AT(contingency.stable_ms), "15m", "1s", "30d", .meaning = "Well for this long is back to normal." },
    { "check", SETTING_DURATION, AT(contingency.check_ms), "5m", "1s", "1d",
      .meaning = "Between looks whether it is back. A tenth of it after an answer that says little, up to ten times it when "
                 "all jobs due have failed." },
    { "maintenance", SETTING_TEXT_LIST, AT(contingency.maintenance), "",
      .meaning =
          "When the destination is known to be away, in UTC: `Sun 02:00-04:00`, `Mon-Fri 22:00-23:30`, `daily 02:00-04:00`.",
      .check = check_maintenance },
    { "activate_on_single_event", SETTING_BOOL, AT(contingency.activate_on_single_event), "false",
      .meaning = "One sign of an outage is enough; else several must agree." },
};

static bool *contingency_given(void *base)
{
    return &((struct destination_draft *)base)->config.contingency.enabled;
}

static const struct section contingency_section = { .name = "contingency",
                                                    SECTION_ROWS(contingency_rows),
                                                    .meaning = "Holds jobs while the destination is down, and comes back "
                                                               "in steps. Absent: none.",
                                                    .given = contingency_given };

static const struct setting fallback_rows[] = {
    { "url", SETTING_URL, AT(fallback_url),
      .meaning = "Where to send while the destination is down: in contingency; without that, while the breaker is open." },
};
static const struct section fallback_section = { .name = "fallback", SECTION_ROWS(fallback_rows) };

static const struct setting alerts_rows[] = {
    { "pending", SETTING_COUNT, AT(alerts.pending), "0", "0", "1000000000",
      .meaning = "Alert at more jobs than this that are not done. 0: never." },
    { "growth", SETTING_REAL, AT(alerts.growth), "0", "0", "1000",
      .meaning = "Alert when these are more than so many times as ten minutes ago, and over 100 more. 0: never." },
    { "age", SETTING_DURATION, AT(alerts.age_ms), "0s", "0s", "365d",
      .meaning = "Alert when jobs that are not done are older than this on average, unless an outage or a pause holds them. "
      "0s: never." },
    { "dead", SETTING_COUNT, AT(alerts.dead), "100", "0", "1000000000", .meaning = "Alert at more dead letters than this. 0: never." },
    { "dead_per_tenant", SETTING_COUNT, AT(alerts.dead_per_tenant), "0", "0", "1000000000",
      .meaning = "Alert at more dead letters of one tenant than this. 0: never." },
    { "dead_rate", SETTING_REAL, AT(alerts.dead_rate), "0", "0", "1",
      .meaning = "Alert when more than this share of the jobs that ended within dead_window are dead, once 100 have ended. "
      "0: never." },
    { "dead_window", SETTING_DURATION, AT(alerts.dead_window_ms), "1h", "1m", "7d", .meaning = "The window of dead_rate." },
    { "breaker_open", SETTING_DURATION, AT(alerts.breaker_open_ms), "10m", "0s", "365d",
      .meaning = "Alert when the breaker has not been closed for this long. 0s: never." },
    { "down", SETTING_DURATION, AT(alerts.down_ms), "30m", "0s", "365d",
      .meaning = "Alert when contingency lasts this long. 0s: never." },
    { "quiet", SETTING_DURATION, AT(alerts.quiet_ms), "15m", "1s", "7d",
      .meaning = "An alert about single jobs, such as max_retries_exceeded, is told again when another comes after none did "
                 "for this long." },
};
static const struct section alerts_section = {
    .name = "alerts",
    SECTION_ROWS(alerts_rows),
    .meaning = "Thresholds. Contingency, refused jobs, a full dead-letter store and jobs that end dead raise alerts "
               "without any. `docs/alerts.md` has all of them.",
};

static const struct setting concurrency_rows[] = {
    { "max", SETTING_COUNT, AT(concurrency), "10", "1", "10000", .meaning = "Attempts at the same time, at most." },
    { "adaptive", SETTING_BOOL, AT(concurrency_adaptive), "true",
      .meaning = "Start lower and find what the destination bears, as above. `false`: always `max`." },
    { "limit", SETTING_COUNT, AT(concurrency_limit), "0", "0", "10000",
      .meaning = "The destination's own limit, for presets: a larger `max`, step of `contingency.ramp` or `cycle.batch` is "
                 "refused. 0: none." },
};
static const struct section concurrency_section = {
    .name = "concurrency",
    SECTION_ROWS(concurrency_rows),
    .meaning =
        "`concurrency: 10` is short for `concurrency: { max: 10 }`. It starts at 5 and doubles while answers are good. When "
        "more than 5 % fail, or good answers take 1.7 times as long as at their best, half as many are tried; it stays at "
        "that only if fewer fail, answers come sooner or as much is delivered. What has nothing to do with the load, such as "
        "every tenth request failing whatever is sent, changes nothing. After a fall it rises again in small steps. An outage "
        "changes nothing either, and the way back starts at 5. `docs/operations.md` has more. Pull workers are not bound by "
        "it.",
    .alone = "max",
};

static const struct setting destination_rows[] = {
    { "preset", SETTING_TEXT, AT(preset),
      .meaning = "What to start from: the name of a built-in preset, or the path of a file. Only in a configuration." },
    { "extends", SETTING_TEXT, offsetof(struct destination_draft, extends),
      .meaning = "What a preset itself starts from. Only in a preset file." },
    { "description", SETTING_TEXT, AT(description), .meaning = "One line for people.", .check = check_line },
    { "node", SETTING_TEXT, AT(node),
      .meaning = "The name of the node that is to send for it, of those that share a store: while it runs and is not "
                 "drained, the destination is its own. Without it, or while that node is away, whichever the destination "
                 "falls to.",
      .check = check_line },
    { "transport", SETTING_ENUM, offsetof(struct destination_draft, transport),
      .meaning = "How jobs are sent. Without it the url tells.", .choices = transports },
    { "url", SETTING_URL, AT(url), .meaning = "Where jobs go: http://, https://, smtp://, smtps://, redis://, rediss://, amqp:// or amqps://." },
    { "username", SETTING_TEXT, AT(username), .meaning = "Of smtp, redis, amqp, or of http (basic); the access key of ses.",
      .check = check_line },
    { "password", SETTING_TEXT, AT(password), .meaning = "Its password; best as `${file:...}`.",
      .check = check_line, .secret = true },
    { "allow_private", SETTING_BOOL, AT(allow_private), "false",
      .meaning = "Let it connect to loopback and private addresses." },
    { "method", SETTING_TEXT, AT(method), "POST", .meaning = "The HTTP method.", .check = check_method },
    { "content_type", SETTING_TEXT, AT(content_type), .meaning = "The media type of jobs that do not say theirs.",
      .check = check_line },
    { "headers", SETTING_HEADERS, AT(headers), .meaning = "Headers of each request, or of each message of smtp." },
    { "allow_headers", SETTING_TEXT_LIST, AT(allow_headers), "",
      .meaning =
          "Headers that a job may set though it commonly may not: `Authorization`, `Cookie`, `Proxy-...`, `HTTP2-Settings`, and "
          "what headers sets under a name of credentials.",
      .check = check_line },
    { "proxy", SETTING_URL, AT(proxy), .meaning = "A proxy to send through." },
    { "timeout", SETTING_DURATION, AT(timeout_ms), "30s", "1ms", "1h", .meaning = "An attempt that takes longer is given up." },
    { "connect_timeout", SETTING_DURATION, AT(connect_timeout_ms), "10s", "1ms", "10m", .meaning = "The part of it for connecting." },
    { "response_max", SETTING_SIZE, AT(response_bytes_max), "1MB", "1KB", "64MB", .meaning = "Of an answer no more is read." },
    { "concurrency", SETTING_SECTION, 0, .meaning = "How many attempts at the same time.", .section = &concurrency_section },
    { "tls", SETTING_SECTION, 0, .meaning = "Certificates.", .section = &tls_section },
    { "oauth2", SETTING_SECTION, 0, .meaning = "Access tokens.", .section = &oauth2_section },
    { "tenants", SETTING_SPECIAL, 0, .meaning = "Tenants with an account of their own.", .section = &tenant_section,
      .special = tenants_note },
    { "smtp", SETTING_SECTION, 0, .meaning = "Sending mail.", .section = &smtp_section },
    { "exec", SETTING_SECTION, 0, .meaning = "Running a program.", .section = &exec_section },
    { "ses", SETTING_SECTION, 0, .meaning = "Amazon SES.", .section = &ses_section },
    { "redis", SETTING_SECTION, 0, .meaning = "A stream of Redis.", .section = &redis_section },
    { "amqp", SETTING_SECTION, 0, .meaning = "Messages of AMQP.", .section = &amqp_section },
    { "success", SETTING_TEXT_LIST, AT(success), "2xx",
      .meaning = "Which answers mean delivered: `2xx`, or a code as error_code finds it." },
    { "error_code", SETTING_TEXT_LIST, AT(error_code), "http.status",
      .meaning =
          "Where the answer's code is; the first that is found: `xpath:...`, `json:/pointer`, `header:Name`, `pattern:/re/`, "
      "`http.status`, `smtp.reply`, `exec.status`.",
      .check = check_error_code },
    { "reference", SETTING_TEXT_LIST, AT(reference), "",
      .meaning =
          "Where an answer has the destination's own name of the job, such as a protocol number: places as of error_code. "
          "`{reference}` of verify and poll is filled in with it.",
      .check = check_error_code },
    { "delivered_when", SETTING_ENUM, AT(delivered_when), "success",
      .meaning =
          "What makes an answer a delivery. `success`: its code is one of success. `reference`: it also has a reference; "
          "without one a good status is judged by its text, and in doubt where no rule of errors knows that.",
      .choices = delivered_when },
    { "retry", SETTING_SECTION, 0, .meaning = "How often and when to try again.", .section = &retry_section },
    { "errors", SETTING_SECTION, 0, .meaning = "What each error means.", .section = &errors_section },
    { "blocked", SETTING_ENUM, AT(blocked), "destination",
      .meaning = "What answers of the class blocked may hold at most. A refused job is held; its tenant too when the "
      "tenant's next one is refused; with `destination` the destination, when another tenant's is, or when there is no other tenant. "
      "`tenant`: each tenant has credentials of its own, and the destination is held only when nothing can be sent at all: "
      "before a request leaves (TLS, a login, no access token), by a tenant that is not under `tenants`.",
      .choices = blocked_scopes },
    { "in_doubt", SETTING_ENUM, AT(policy.in_doubt), "resend",
      .meaning =
          "Sent, and the answer is lost. `verify`: ask whether it arrived. `resend`: the destination tolerates the same job "
      "twice. `park`: set aside for a person.",
      .choices = doubts },
    { "verify", SETTING_SECTION, AT(verify), .meaning = "How to ask whether it arrived.", .section = &verify_section },
    { "poll", SETTING_SECTION, AT(poll), .meaning = "How to ask how it was judged.", .section = &poll_section },
    { "sign", SETTING_SECTION, 0, .meaning = "Signing requests.", .section = &sign_section },
    { "id_pattern", SETTING_TEXT, AT(policy.id_pattern_text), .meaning = "A pattern that the whole of each id must match." },
    { "zone", SETTING_TEXT, AT(policy.zone),
      .meaning = "Where a time of a question to decide is that has no zone, as of Java's LocalDateTime: an offset like "
                 "-03:00, UTC, or a place like America/Sao_Paulo, whose rules the system's tz database (package tzdata) has "
                 "when the configuration is read. Of a time that the clock shows twice the earlier is meant. Without it "
                 "such a time is refused.",
      .check = check_zone },
    { "job_ttl", SETTING_DURATION, AT(job_ttl_ms), "0s", "0s", "3650d", .meaning = "A job that is older is dead. 0s: no limit." },
    { "dead", SETTING_SECTION, 0, .meaning = "Dead letters.", .section = &dead_section },
    { "fairness", SETTING_SECTION, 0, .meaning = "Turns between tenants.", .section = &fairness_section },
    { "priority", SETTING_SECTION, 0, .meaning = "Urgent jobs first.", .section = &priority_section },
    { "rate", SETTING_SECTION, 0, .meaning = "How fast to send.", .section = &rate_section },
    { "cycle", SETTING_SECTION, 0, .meaning = "Sending in rounds.", .section = &cycle_section },
    { "breaker", SETTING_SECTION, 0, .meaning = "Circuit breaker.", .section = &breaker_section },
    { "health", SETTING_SECTION, 0, .meaning = "Health check.", .section = &health_section },
    { "contingency", SETTING_SECTION, 0, .meaning = "What to do in an outage.", .section = &contingency_section },
    { "fallback", SETTING_SECTION, 0, .meaning = "A second address.", .section = &fallback_section },
    { "alerts", SETTING_SECTION, 0, .meaning = "When to raise an alert.", .section = &alerts_section },
    { "status_words", SETTING_WORDS, AT(status_words),
      .meaning = "The word that a job shows as its status: `{ pending: PENDING, dead: FAILED }`.", .check = check_line },
};

const struct section destination_section = {
    .name = "",
    SECTION_ROWS(destination_rows),
    .meaning = "One destination, under its name: letters, digits, `_`, `-` and `.`, at most 64. A preset file has the same "
               "settings at its top.",
};
