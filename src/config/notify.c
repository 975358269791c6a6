#include "config/loading.h"

#include "config/checks.h"

#include <stdio.h>
#include <string.h>

#define NOTIFY(member) offsetof(struct notify_config, member)

enum { NOTIFY_NAME_BYTES_MAX = DESTINATION_NAME_BYTES_MAX - (int)(sizeof NOTIFY_PREFIX - 1) };

static const struct setting sign_rows[] = {
    { "secrets", SETTING_TEXT_LIST, NOTIFY(sign.secrets), .meaning = "As of a destination.", .check = check_secret,
      .secret = true },
};
static const struct section sign_section = { .name = "notify.sign", SECTION_ROWS(sign_rows) };

static const char *check_dead_code(struct slice text)
{
    bool known = slice_equal(text, SLICE("EXPIRED")) || alert_kind_of_dead(text) != ALERT_KIND_COUNT;
    return known ? NULL : "must be MAX_RETRIES_EXCEEDED, PERMANENT_ERROR, IN_DOUBT, PARTIAL or EXPIRED";
}

static const struct setting where_rows[] = {
    { "code", SETTING_TEXT_LIST, NOTIFY(where_code), "",
      .meaning = "Only those whose last answer had one of these codes, as `tiss:1001`, `tiss:*` or `http:5xx`, or was "
                 "judged by a rule of errors that is written so.",
      .check = check_line },
    { "dead_code", SETTING_TEXT_LIST, NOTIFY(where_dead_code), "",
      .meaning = "Only those that died so: `MAX_RETRIES_EXCEEDED`, `PERMANENT_ERROR`, `IN_DOUBT`, `PARTIAL`.",
      .check = check_dead_code },
};
static const struct section where_section = { .name = "notify.where", SECTION_ROWS(where_rows) };

static const struct setting notify_rows[] = {
    { "name", SETTING_TEXT, NOTIFY(name), .meaning = "What it is called. Two entries may not have the same.",
      .check = check_name },
    { "webhook", SETTING_URL, NOTIFY(webhook),
      .meaning = "Where to post. Give this, email or to. Its jobs are those of a destination `notify.NAME`.",
      .check = check_http_url },
    { "email", SETTING_TEXT, NOTIFY(email), .meaning = "Who gets mail. Needs through.", .check = check_email },
    { "to", SETTING_TEXT, NOTIFY(to),
      .meaning = "Whom a gateway is to reach, such as a telephone number. Needs through.", .check = check_line },
    { "through", SETTING_TEXT, NOTIFY(through),
      .meaning = "The destination of email (smtp) or of to (any).", .check = check_name },
    { "from", SETTING_TEXT, NOTIFY(from), .meaning = "The sender of email. Without it the destination's own.",
      .check = check_email },
    { "on", SETTING_TEXT_LIST, NOTIFY(on), "critical",
      .meaning = "Which alerts: names, severities (`critical`, `warning`, `info`) or `all`. Their ends are told too.",
      .check = check_alert },
    { "destinations", SETTING_TEXT_LIST, NOTIFY(destinations), "",
      .meaning = "Only alerts about these destinations. Empty: all, and those about the daemon.", .check = check_name },
    { "tenants", SETTING_TEXT_LIST, NOTIFY(tenants), "", .meaning = "Only alerts about these tenants. Empty: all alerts." },
    { "each", SETTING_BOOL, NOTIFY(each), "false",
      .meaning = "Of jobs that die, tell of each by itself, with its id and error, instead of a run of them." },
    { "where", SETTING_SECTION, 0, .meaning = "Of which of them. Needs each.", .section = &where_section },
    { "headers", SETTING_HEADERS, NOTIFY(headers), .meaning = "Of a webhook's requests." },
    { "sign", SETTING_SECTION, 0, .meaning = "Signing a webhook's requests.", .section = &sign_section },
    { "allow_private", SETTING_BOOL, NOTIFY(allow_private), "false",
      .meaning = "Let a webhook connect to loopback and private addresses." },
};

static void item_check(struct settings *settings, const void *item, struct place place)
{
    const struct notify_config *notify = item;
    int ways = (notify->webhook != NULL) + (notify->email != NULL) + (notify->to != NULL);
    bool webhook_only = notify->headers.count > 0 || notify->sign.secrets.count > 0 || notify->allow_private;
    if (ways != 1)
        problem_add(settings->problems, place, "an item of notify needs either webhook, email or to");
    else if (notify->email && !notify->through)
        problem_add(settings->problems, place, "email needs through: the name of an smtp destination");
    else if (notify->to && !notify->through)
        problem_add(settings->problems, place, "to needs through: the name of the destination that delivers it");
    else if (notify->webhook && notify->through)
        problem_add(settings->problems, place, "through is only for email and to");
    else if (!notify->webhook && webhook_only)
        problem_add(settings->problems, place, "headers, sign and allow_private are only for a webhook; the destination has "
                                               "its own");
    if (!notify->each && notify->where_code.count + notify->where_dead_code.count > 0)
        problem_add(settings->problems, place, "where chooses single jobs, so it needs each: true");
    if (notify->from && !notify->email)
        problem_add(settings->problems, place, "from is only for email");
    if (!notify->name)
        problem_add(settings->problems, place, "an item of notify needs a name");
    else if (strlen(notify->name) > NOTIFY_NAME_BYTES_MAX)
        problem_add(settings->problems, place, "the name of an item of notify has at most %d bytes", NOTIFY_NAME_BYTES_MAX);
}

const struct section notify_section = {
    .name = "notify",
    SECTION_ROWS(notify_rows),
    .meaning =
        "A list: each item tells somebody about alerts. Each alert that begins, grows or ends is one job for each item that "
        "wants it, retried like any other.\n"
        "\n"
        "```yaml\n"
        "notify:\n"
        "  - { name: ops, webhook: https://hooks.example/x, on: [critical], sign: { secrets: [\"${HOOK_SECRET}\"] } }\n"
        "  - { name: billing, email: billing@example.org, through: mail, on: [max_retries_exceeded, permanent_error] }\n"
        "  - { name: sms, to: \"+595981000000\", through: smsgw, on: [contingency, down], destinations: [invoices] }\n"
        "  - { name: desk, email: desk@example.org, through: mail, on: [permanent_error], each: true, where: { code: [\"tiss:*\"] } }\n"
        "  - { name: acme, email: it@acme.example, through: mail, on: [dead_per_tenant, tenant_blocked], tenants: [acme] }\n"
        "```\n"
        "\n"
        "With `each: true` the job of an item is `{\"type\": \"job.dead\", \"timestamp\": ..., \"data\": {...}}` for each job that\n"
        "dies, with `claimId`, `tenant`, `destination`, `dead_code`, `code`, `errorMessage` and `attempts`.\n"
        "\n"
        "A webhook is sent `{\"type\": \"alert.raised\", \"timestamp\": ..., \"data\": {...}}`; the type is `alert.raised`,\n"
        "`alert.grown` or `alert.cleared`, and `data` an alert as `GET /v1/alerts` shows it. The job of an item with `email`,\n"
        "or with `to` through smtp, is `{\"from\": ..., \"to\": ..., \"subject\": ..., \"text\": ...}`. That of\n"
        "another item with `to` is `{\"to\": ..., \"subject\": ..., \"text\": ..., \"type\": ..., \"timestamp\": ...,\n"
        "\"data\": {...}}`, for gateways of SMS or push messages.",
    .item = { "name: ops, webhook: https://...", sizeof(struct notify_config), NOTIFY_MAX, true, item_check },
};

static void through_check(struct settings *settings, const struct notify_config *notify, const struct map *by_name,
                          struct place place)
{
    const struct destination_config *through = map_get(by_name, slice_from(notify->through));
    if (!through)
        loading_warn(settings->context, place,
                     notify->email ? "notify sends mail through a destination that is not there"
                                   : "notify goes through a destination that is not there");
    else if (notify->email && !transport_is_mail(through->transport))
        problem_add(settings->problems, place, "notify sends mail through \"%s\", which is neither smtp nor ses",
                    notify->through);
}

/*
 * The destination of a url: a plain HTTP one. Its dead letters go away by themselves and never hold it, since nobody
 * looks after them and the next alert must not wait for that.
 */
void internal_finish(struct settings *settings, const struct internal_destination *of, struct place place,
                     struct destination_config *ret_config)
{
    struct loading *loading = settings->context;
    struct destination_draft draft;
    char subject[DESTINATION_NAME_BYTES_MAX + 32];
    const struct destination_draft *base = preset_draft(loading, SLICE("http"), SLICE(""), place);
    if (!base)
        return;
    draft = *base;
    snprintf(subject, sizeof subject, "destination \"%s\"", of->name);
    struct settings own = loading_settings(loading, settings->file, settings->folder, &draft);
    own.subject = subject;
    own.placed = &draft.placed;
    draft.config.name = settings_copy(&own, slice_from(of->name));
    draft.config.preset = "http";
    draft.config.description = of->description;
    draft.config.url = of->url;
    draft.config.headers = of->headers;
    draft.config.sign = of->sign;
    draft.config.allow_private = of->allow_private;
    draft.config.dead = (struct dead_config){ .ttl_ms = INT64_C(7) * DAY_MS };
    draft.config.internal = true;
    destination_finish(&own, &draft, true, place, &loading->pool);
    settings->failed = settings->failed || own.failed;
    *ret_config = draft.config;
}

void notify_finish(struct settings *settings, const struct node *root, struct map *by_name)
{
    struct config *config = settings->root;
    struct place place = settings_place_under(settings, root, SLICE("notify"));
    config->internal =
        settings_alloc(settings, config->notify_count + config->callbacks.allow.count + 1, sizeof *config->internal);
    for (size_t i = 0; i < config->notify_count && config->internal; i++) {
        struct notify_config *notify = &config->notify[i];
        notify->destination = notify->through;
        if (notify->through)
            through_check(settings, notify, by_name, place);
        if (!notify->webhook || !notify->name || strlen(notify->name) > NOTIFY_NAME_BYTES_MAX)
            continue;
        struct destination_config *made = &config->internal[config->internal_count];
        char name[DESTINATION_NAME_BYTES_MAX + 1];
        snprintf(name, sizeof name, NOTIFY_PREFIX "%s", notify->name);
        internal_finish(settings,
                        &(struct internal_destination){ .name = name,
                                                        .description = "tells of alerts",
                                                        .url = notify->webhook,
                                                        .headers = notify->headers,
                                                        .sign = notify->sign,
                                                        .allow_private = notify->allow_private },
                        place, made);
        if (!made->name)
            return;
        notify->destination = made->name;
        config->internal_count++;
        if (map_put(by_name, slice_from(made->name), made) != STATUS_OK)
            settings->failed = true;
    }
}
