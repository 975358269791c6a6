#include "config/destination.h"

#include "config/checks.h"
#include "config/expand.h"

#include <stdio.h>
#include <string.h>

enum { BAD_RULES_MAX = 10, LOCAL_BYTES_MAX = 64 << 20, KEY_BYTES_MAX = 32 << 20 };

/* What a transport needs and which addresses it can use. */
static const struct {
    const char *name;
    const char *schemes[2];
    bool needs_url;
    const char *preset; /* that knows its errors; NULL: none */
} transports[] = {
    [TRANSPORT_HTTP] = { "http", { "http://", "https://" }, true, "http" },
    [TRANSPORT_SMTP] = { "smtp", { "smtp://", "smtps://" }, true, "smtp" },
    [TRANSPORT_PULL] = { "pull", { NULL, NULL }, false, NULL },
    [TRANSPORT_EXEC] = { "exec", { NULL, NULL }, false, "exec" },
    [TRANSPORT_SES] = { "ses", { "http://", "https://" }, false, "smtp" },
    [TRANSPORT_REDIS] = { "redis", { "redis://", "rediss://" }, true, "redis" },
    [TRANSPORT_AMQP] = { "amqp", { "amqp://", "amqps://" }, true, "amqp" },
};

#define ZONE_FOLDER "/usr/share/zoneinfo/"

struct finish {
    struct settings *settings;
    struct destination_draft *draft;
    struct destination_config *config; /* draft->config */
    bool real;
    struct place place; /* of the destination */
};

#define FINISH_PROBLEM(finish, field, ...)                                                                                  \
    problem_add((finish)->settings->problems, settings_place_of((finish)->settings, (field), (finish)->place), __VA_ARGS__)

static bool scheme_fits(enum transport_kind transport, const char *url)
{
    for (int i = 0; i < 2; i++) {
        const char *scheme = transports[transport].schemes[i];
        if (scheme && slice_has_prefix(slice_from(url), slice_from(scheme)))
            return true;
    }
    return false;
}

/* It is false where nothing says so. */
static bool transport_derive(const struct destination_draft *draft, enum transport_kind *ret_transport)
{
    if (draft->transport != TRANSPORT_UNSAID)
        *ret_transport = (enum transport_kind)draft->transport;
    else {
        int kind = TRANSPORT_HTTP; /* the first that takes such a url */
        while (kind < TRANSPORT_COUNT && !(draft->config.url && scheme_fits((enum transport_kind)kind, draft->config.url)))
            kind++;
        if (kind == TRANSPORT_COUNT)
            return false;
        *ret_transport = (enum transport_kind)kind;
    }
    return true;
}

const char *destination_rules_preset(const struct destination_draft *draft)
{
    enum transport_kind transport;
    return transport_derive(draft, &transport) ? transports[transport].preset : NULL;
}

static void url_check(const struct finish *finish, const char *const *url, const char *name)
{
    enum transport_kind transport = finish->config->transport;
    if (!*url || scheme_fits(transport, *url))
        return;
    if (transports[transport].schemes[0])
        FINISH_PROBLEM(finish, url, "%s must start with %s or %s, because the transport is %s", name,
                       transports[transport].schemes[0], transports[transport].schemes[1], transports[transport].name);
    else
        FINISH_PROBLEM(finish, url, "%s has no meaning with transport %s; remove it", name, transports[transport].name);
}

/* Only HTTP has questions: a mail server or a program can be asked nothing about what it took. */
static void questions_check(const struct finish *finish)
{
    struct destination_config *config = finish->config;
    const char *name = transports[config->transport].name;
    if (config->transport == TRANSPORT_HTTP || config->transport == TRANSPORT_PULL)
        return;
    if (config->verify.url)
        FINISH_PROBLEM(finish, &config->verify.url,
                       "verify has no meaning with transport %s; use in_doubt: resend or park", name);
    if (config->poll.url)
        FINISH_PROBLEM(finish, &config->poll.url, "poll has no meaning with transport %s; remove it", name);
}

static void oauth2_check(const struct finish *finish)
{
    struct destination_config *config = finish->config;
    const struct oauth2_config *oauth2 = &config->oauth2;
    if (!oauth2->token_url)
        return;
    if (config->transport != TRANSPORT_HTTP && config->transport != TRANSPORT_SMTP)
        FINISH_PROBLEM(finish, &oauth2->token_url, "oauth2 has no meaning with transport %s; remove it",
                       transports[config->transport].name);
    if (!oauth2->client_id || !oauth2->client_secret)
        FINISH_PROBLEM(finish, &oauth2->token_url, "oauth2 needs client_id and client_secret");
    if (config->password)
        FINISH_PROBLEM(finish, &config->password, "password stands beside oauth2, which logs in with a token; remove one");
    if (config->transport == TRANSPORT_SMTP && !config->username)
        FINISH_PROBLEM(finish, &oauth2->token_url, "oauth2 of smtp needs username, whose mailbox the token is for");
}

static void login_check(const struct finish *finish)
{
    struct destination_config *config = finish->config;
    if (config->transport == TRANSPORT_SMTP && !config->oauth2.token_url && !config->username != !config->password)
        FINISH_PROBLEM(finish, config->username ? &config->username : &config->password,
                       "username and password belong together; give both or none");
    if (!config->tls.cert != !config->tls.key)
        FINISH_PROBLEM(finish, config->tls.cert ? &config->tls.cert : &config->tls.key,
                       "cert and key in tls belong together; give both or none");
}

static void exec_finish(const struct finish *finish)
{
    struct destination_config *config = finish->config;
    const struct pair_list *environment = &config->exec.environment;
    if (config->transport != TRANSPORT_EXEC) {
        if (config->exec.argv.count > 0)
            FINISH_PROBLEM(finish, &config->exec.argv, "exec.argv has no meaning with transport %s; set transport: exec",
                           transports[config->transport].name);
        return;
    }
    if (config->exec.argv.count == 0 && finish->real)
        problem_add(finish->settings->problems, finish->place,
                    "%s needs exec.argv, such as [/usr/local/bin/deliver, --quiet]", finish->settings->subject);
    else if (config->exec.argv.count > 0 && config->exec.argv.items[0][0] != '/')
        FINISH_PROBLEM(finish, &config->exec.argv,
                       "the first of exec.argv must be the absolute path of a program; no PATH is searched");
    for (size_t i = 0; i < environment->count; i++)
        if (check_variable(slice_from(environment->items[i].name)))
            FINISH_PROBLEM(finish, &config->exec.environment, "the name \"%s\" in environment %s",
                           environment->items[i].name, check_variable(slice_from(environment->items[i].name)));
}

static void ses_finish(const struct finish *finish)
{
    struct destination_config *config = finish->config;
    if (config->transport != TRANSPORT_SES || !finish->real)
        return;
    if (!config->ses.region)
        problem_add(finish->settings->problems, finish->place, "%s needs ses.region, such as sa-east-1",
                    finish->settings->subject);
    if (!config->username || !config->password)
        problem_add(finish->settings->problems, finish->place,
                    "%s needs username, the access key's id, and password, its secret", finish->settings->subject);
}

static void queue_finish(const struct finish *finish)
{
    struct destination_config *config = finish->config;
    if (config->transport == TRANSPORT_REDIS && finish->real && !config->redis.stream)
        problem_add(finish->settings->problems, finish->place, "%s needs redis.stream, the key of a stream",
                    finish->settings->subject);
    if (config->transport == TRANSPORT_AMQP && finish->real && !config->amqp.exchange && !config->amqp.routing_key)
        problem_add(finish->settings->problems, finish->place,
                    "%s needs amqp.routing_key, the name of a queue, or amqp.exchange", finish->settings->subject);
}

static void transport_finish(const struct finish *finish)
{
    struct destination_config *config = finish->config;
    if (!transport_derive(finish->draft, &config->transport)) {
        config->transport = TRANSPORT_HTTP;
        if (config->url)
            FINISH_PROBLEM(
                finish, &config->url,
                "url must start with http://, https://, smtp://, smtps://, redis://, rediss://, amqp:// or amqps://");
        else if (finish->real)
            problem_add(finish->settings->problems, finish->place,
                        "%s needs a url, or transport: pull, exec or ses", finish->settings->subject);
        return;
    }
    url_check(finish, &config->url, "url");
    url_check(finish, &config->fallback_url, "fallback.url");
    if (!finish->real)
        return;
    if (config->fallback_url && !config->contingency.enabled && !config->breaker.enabled)
        FINISH_PROBLEM(finish, &config->fallback_url,
                       "fallback.url would never be used: without contingency and breaker nothing tells that the destination is down; "
                       "add one of them, or remove it");
    if (transports[config->transport].needs_url && !config->url)
        problem_add(finish->settings->problems, finish->place, "%s needs a url that starts with %s or %s",
                    finish->settings->subject, transports[config->transport].schemes[0],
                    transports[config->transport].schemes[1]);
}

/* Without user, password, query and, when it came from a reference, path: hooks have their secret there. */
static void url_shown_finish(const struct finish *finish)
{
    struct destination_config *config = finish->config;
    struct slice url = slice_from(config->url);
    size_t host = slice_search(url, SLICE("://"));
    if (host == url.len)
        return;
    host += 3;
    size_t end = host, at = host;
    while (end < url.len && !strchr("/?#", url.data[end]))
        end++;
    for (size_t i = host; i < end; i++)
        at = url.data[i] == '@' ? i + 1 : at;
    bool private = settings_private(finish->settings, &config->url);
    size_t shown = end;
    while (!private && shown < url.len && !strchr("?#", url.data[shown]))
        shown++;
    char *text = settings_alloc(finish->settings, host + shown - at + 1, 1);
    if (!text)
        return;
    memcpy(text, url.data, host);
    memcpy(text + host, url.data + at, shown - at);
    config->url_shown = text;
}

static void bounds_check(const struct finish *finish)
{
    struct destination_config *config = finish->config;
    struct retry_policy *retry = &config->policy.retry;
    if (retry->floor_ms > retry->cap_ms)
        FINISH_PROBLEM(finish, &retry->floor_ms, "floor is longer than cap in retry; floor must be cap or less");
    if (config->breaker.open_ms > config->breaker.open_max_ms)
        FINISH_PROBLEM(finish, &config->breaker.open_ms,
                       "open is longer than open_max in breaker; open must be open_max or less");
    if (config->contingency.ramp_count == 0)
        FINISH_PROBLEM(finish, &config->contingency.ramp, "ramp needs at least one step, such as [5, 10, 25]");
    for (size_t i = 1; i < config->contingency.ramp_count; i++)
        if (config->contingency.ramp[i] <= config->contingency.ramp[i - 1]) {
            FINISH_PROBLEM(finish, &config->contingency.ramp, "each step of ramp must be larger than the one before");
            return;
        }
}

static void limit_check(const struct finish *finish)
{
    const struct destination_config *config = finish->config;
    int64_t limit = config->concurrency_limit;
    const struct contingency_config *contingency = &config->contingency;
    if (limit == 0)
        return;
    if (config->concurrency > limit)
        FINISH_PROBLEM(finish, &config->concurrency, "concurrency is more than the %lld that the destination takes",
                       (long long)limit);
    if (config->cycle_every_ms > 0 && config->cycle_batch > limit)
        FINISH_PROBLEM(finish, &config->cycle_batch, "batch in cycle is more than the %lld that the destination takes",
                       (long long)limit);
    if (contingency->ramp_count > 0 && contingency->ramp[contingency->ramp_count - 1] > limit)
        FINISH_PROBLEM(finish, &contingency->ramp, "ramp goes beyond the %lld that the destination takes", (long long)limit);
}

enum status zone_load(const char *name, struct arena *memory, struct zone *ret_zone, struct error *err)
{
    char path[sizeof ZONE_FOLDER + ZONE_NAME_BYTES_MAX];
    struct buffer file;
    struct error error;
    if (zone_of_offset(slice_from(name), ret_zone))
        return STATUS_OK;
    if (!zone_name_is_possible(slice_from(name)))
        return error_set(err, STATUS_INVALID, "zone: \"%s\" is no name of a zone", name);
    snprintf(path, sizeof path, ZONE_FOLDER "%s", name);
    enum status status = file_read(path, ZONE_FILE_BYTES_MAX, true, &file, &error);
    if (status == STATUS_OK) {
        status = zone_read(buffer_slice(&file), memory, ret_zone, &error);
        buffer_release(&file);
    }
    if (status == STATUS_OK)
        return status;
    return error_set(err, status, "zone: there is no \"%s\" in the tz database (%s%s: %s); is the package tzdata there?",
                     name, ZONE_FOLDER, name, error.text);
}

/* One that is no name at all was reported already. */
static void zone_finish(const struct finish *finish)
{
    struct policy *policy = &finish->config->policy;
    struct error error;
    if (!policy->zone)
        return;
    enum status status = zone_load(policy->zone, finish->settings->memory, &policy->zone_rules, &error);
    if (status != STATUS_OK && zone_name_is_possible(slice_from(policy->zone)))
        FINISH_PROBLEM(finish, &policy->zone, "%s", error.text);
    if (status != STATUS_OK)
        policy->zone = NULL;
}

static void doubt_finish(const struct finish *finish)
{
    struct destination_config *config = finish->config;
    struct policy *policy = &config->policy;
    policy->can_verify = config->verify.url != NULL;
    policy->verify_after_ms = config->verify.after_ms;
    policy->poll_every_ms = config->poll.every_ms;
    if (finish->real && policy->in_doubt == DOUBT_VERIFY && !policy->can_verify)
        FINISH_PROBLEM(
            finish, &policy->in_doubt,
            "in_doubt is verify, but nothing tells where to ask; give verify.url, or set in_doubt: resend or park");
    if (finish->real && config->delivered_when == DELIVERED_BY_REFERENCE && config->reference.count == 0)
        FINISH_PROBLEM(finish, &config->delivered_when,
                       "delivered_when is reference, but nothing tells where it is; give reference, such as [\"json:/id\"]");
}

static void health_finish(const struct finish *finish)
{
    static const struct {
        const char *scheme;
        bool http;
        enum health_kind kind;
    } schemes[] = {
        { "http://", true, HEALTH_JSON },
        { "https://", true, HEALTH_JSON },
        { "tcp://", false, HEALTH_TCP },
        { "smtp://", false, HEALTH_SMTP },
    };
    struct health_config *health = &finish->config->health;
    enum health_kind written = (enum health_kind)finish->draft->health_kind;
    if (!health->url) {
        health->kind = HEALTH_NONE;
        /* A preset may say how to check and leave open where. */
        struct place nowhere = { 0 };
        struct place place = settings_place_of(finish->settings, &finish->draft->health_given, nowhere);
        if (finish->real && place.file)
            problem_add(finish->settings->problems, place, "health needs a url");
        return;
    }
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        if (!slice_has_prefix(slice_from(health->url), slice_from(schemes[i].scheme)))
            continue;
        bool asks_http = written == HEALTH_JSON || written == HEALTH_HTTP || written == HEALTH_WSDL;
        health->kind = written == HEALTH_NONE ? schemes[i].kind : written;
        if (written != HEALTH_NONE && asks_http != schemes[i].http)
            FINISH_PROBLEM(finish, &health->url, "the url of health starts with %s, which does not fit its kind",
                           schemes[i].scheme);
        return;
    }
    FINISH_PROBLEM(finish, &health->url, "the url of health must start with http://, https://, tcp:// or smtp://");
}

static void windows_finish(const struct finish *finish)
{
    struct contingency_config *contingency = &finish->config->contingency;
    size_t count = contingency->maintenance.count;
    contingency->windows = count > 0 ? settings_alloc(finish->settings, count, sizeof *contingency->windows) : NULL;
    for (size_t i = 0; i < count && contingency->windows; i++)
        /* Checked when it was read: what could not be parsed is not in the list. */
        (void)!maintenance_parse(slice_from(contingency->maintenance.items[i]), &contingency->windows[i]);
}

static void id_pattern_finish(const struct finish *finish, struct classifier_pool *pool)
{
    struct policy *policy = &finish->config->policy;
    struct error err;
    struct pattern *pattern;
    if (!policy->id_pattern_text)
        return;
    enum status status = pattern_new(slice_from(policy->id_pattern_text), &pattern, &err);
    if (status == STATUS_NO_MEMORY || (status == STATUS_OK && pool->keep_pattern(pool->owner, pattern) != STATUS_OK))
        finish->settings->failed = true;
    else if (status != STATUS_OK)
        FINISH_PROBLEM(finish, &policy->id_pattern_text, "id_pattern does not work: %s", err.text);
    else
        policy->id_pattern = pattern;
}

/* All rules of a draft in one array, with their places. */
struct flat_rules {
    struct rule *rules;
    struct place *places;
    size_t count;
};

static bool rules_flatten(const struct destination_draft *draft, struct arena *scratch, struct flat_rules *ret_flat)
{
    size_t count = 0;
    for (int tier = 0; tier < TIER_COUNT; tier++)
        for (int outcome = 0; outcome < OUTCOME_COUNT; outcome++)
            count += draft->rules[tier][outcome].count;
    struct flat_rules flat = { .rules = arena_alloc_array(scratch, count + 1, sizeof *flat.rules),
                               .places = arena_alloc_array(scratch, count + 1, sizeof *flat.places) };
    if (!flat.rules || !flat.places)
        return false;
    for (int tier = 0; tier < TIER_COUNT; tier++)
        for (int outcome = 0; outcome < OUTCOME_COUNT; outcome++) {
            const struct rule_list *list = &draft->rules[tier][outcome];
            for (size_t i = 0; i < list->count; i++, flat.count++) {
                flat.rules[flat.count] = (struct rule){ (enum rule_tier)tier, (enum outcome)outcome, list->items[i].token };
                flat.places[flat.count] = list->items[i].place;
            }
        }
    *ret_flat = flat;
    return true;
}

/* Equal keys mean equal classifiers. */
static struct slice rules_key(const struct flat_rules *flat, const char *code_namespace, struct arena *scratch)
{
    struct buffer key = buffer_up_to(KEY_BYTES_MAX);
    buffer_append_text(&key, code_namespace);
    for (size_t i = 0; i < flat->count; i++) {
        buffer_append_byte(&key, '\0');
        buffer_append_byte(&key, (char)('0' + flat->rules[i].tier));
        buffer_append_byte(&key, (char)('A' + flat->rules[i].outcome));
        buffer_append(&key, flat->rules[i].token);
    }
    return buffer_into(&key, scratch);
}

static void flat_remove(struct flat_rules *flat, size_t index)
{
    size_t behind = flat->count - index - 1;
    memmove(flat->rules + index, flat->rules + index + 1, behind * sizeof *flat->rules);
    memmove(flat->places + index, flat->places + index + 1, behind * sizeof *flat->places);
    flat->count--;
}

/* Compiles; each bad rule is a problem at its own place, and the others are looked at all the same. */
static struct classifier *rules_compile(const struct finish *finish, struct flat_rules *flat)
{
    struct slice code_namespace = slice_from(finish->draft->code_namespace);
    for (int bad = 0; bad < BAD_RULES_MAX; bad++) {
        struct classifier *classifier;
        struct error err;
        size_t index;
        enum status status = classifier_new(flat->rules, flat->count, code_namespace, &classifier, &index, &err);
        if (status == STATUS_OK)
            return classifier;
        if (status == STATUS_NO_MEMORY) {
            finish->settings->failed = true;
            return NULL;
        }
        problem_add(finish->settings->problems, index < flat->count ? flat->places[index] : finish->place,
                    "this rule does not work: %s", err.text);
        if (status != STATUS_INVALID || index >= flat->count)
            return NULL;
        flat_remove(flat, index);
    }
    return NULL;
}

/* A classifier for rules that no destination had before. */
static struct classifier *pool_add(const struct finish *finish, struct classifier_pool *pool, struct flat_rules *flat,
                                   struct slice key)
{
    pool->rule_bytes += key.len;
    if (pool->rule_bytes > POOL_RULE_BYTES_MAX) {
        problem_add(finish->settings->problems, finish->place,
                    "the different error rules of all destinations have more than %d bytes; share them in a preset",
                    POOL_RULE_BYTES_MAX);
        return NULL;
    }
    struct classifier *classifier = rules_compile(finish, flat);
    if (!classifier)
        return NULL;
    struct slice saved = arena_copy(pool->scratch, key);
    if (pool->keep_classifier(pool->owner, classifier) == STATUS_OK && saved.data &&
        map_put(&pool->by_rules, saved, classifier) == STATUS_OK)
        return classifier;
    finish->settings->failed = true;
    return NULL;
}

static void classifier_finish(const struct finish *finish, struct classifier_pool *pool)
{
    struct flat_rules flat;
    struct arena local; /* the pool's scratch would grow with the number of destinations */
    arena_init(&local, LOCAL_BYTES_MAX);
    if (!rules_flatten(finish->draft, &local, &flat)) {
        finish->settings->failed = true;
    } else if (flat.count > RULES_MAX) {
        problem_add(finish->settings->problems, finish->place, "%s has %zu error rules; the limit is %d",
                    finish->settings->subject, flat.count, RULES_MAX);
    } else {
        struct slice key = rules_key(&flat, finish->draft->code_namespace, &local);
        struct classifier *known = key.data ? map_get(&pool->by_rules, key) : NULL;
        finish->settings->failed = finish->settings->failed || !key.data;
        if (key.data)
            finish->config->policy.classifier = known ? known : pool_add(finish, pool, &flat, key);
    }
    arena_release(&local);
}

static struct config_place place_of(const struct finish *finish, const void *field)
{
    struct place place = settings_place_of(finish->settings, field, finish->place);
    return (struct config_place){ place.line, place.column };
}

static void places_finish(const struct finish *finish)
{
    struct destination_config *config = finish->config;
    config->at.self = (struct config_place){ finish->place.line, finish->place.column };
    config->at.url = place_of(finish, &config->url);
    config->at.fallback_url = place_of(finish, &config->fallback_url);
    config->at.health_url = place_of(finish, &config->health.url);
    config->at.verify_url = place_of(finish, &config->verify.url);
    config->at.poll_url = place_of(finish, &config->poll.url);
    config->at.tls_ca = place_of(finish, &config->tls.ca);
    config->at.tls_cert = place_of(finish, &config->tls.cert);
    config->at.tls_key = place_of(finish, &config->tls.key);
    config->at.dead_ttl = place_of(finish, &config->dead.ttl_ms);
    config->at.dead_export = place_of(finish, &config->dead.export);
    config->at.oauth2_url = place_of(finish, &config->oauth2.token_url);
}

void account_check(struct settings *settings, struct destination_draft *draft, struct place place)
{
    struct finish finish = { settings, draft, &draft->config, true, place };
    url_check(&finish, &draft->config.url, "url");
    login_check(&finish);
    oauth2_check(&finish);
    places_finish(&finish);
}

void destination_finish(struct settings *settings, struct destination_draft *draft, bool real, struct place place,
                        struct classifier_pool *pool)
{
    struct finish finish = { settings, draft, &draft->config, real, place };
    draft->config.policy.name = draft->config.name;
    if (draft->config.deadline_lead_ms == 0)
        draft->config.deadline_lead_ms = draft->config.aging_ms;
    transport_finish(&finish);
    url_shown_finish(&finish);
    questions_check(&finish);
    login_check(&finish);
    oauth2_check(&finish);
    exec_finish(&finish);
    ses_finish(&finish);
    queue_finish(&finish);
    bounds_check(&finish);
    limit_check(&finish);
    zone_finish(&finish);
    doubt_finish(&finish);
    health_finish(&finish);
    windows_finish(&finish);
    id_pattern_finish(&finish, pool);
    classifier_finish(&finish, pool);
    places_finish(&finish);
}
