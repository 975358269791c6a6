/*
 * What a seed says: how long the world lasts, who lives in it, and what is configured, three times over for reloads.
 */
#include "support/configs.h"
#include "world.h"

#include <inttypes.h>
#include <stdio.h>

enum { TEXT_BYTES = 2048, DISK_ONE_IN = 16 };

/* One destination's YAML, as a flow mapping that is still open. */
struct text {
    char data[TEXT_BYTES];
    size_t len;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int len = vsnprintf(text->data + text->len, sizeof text->data - text->len, format, arguments);
    va_end(arguments);
    assert_true(len >= 0 && (size_t)len < sizeof text->data - text->len);
    text->len += (size_t)len;
}

static size_t between(struct world *world, size_t low, size_t high)
{
    return low + below(world, high - low + 1);
}

static const char *one_of(struct world *world, const char *const *words, size_t count)
{
    return words[below(world, count)];
}
#define ONE_OF(world, ...)                                                                                             \
    one_of(world, (const char *const[]){ __VA_ARGS__ }, sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

static void draw_retry(struct world *world, struct text *text)
{
    size_t base = between(world, 1, 60), cap = base * between(world, 1, 50);
    put(text, ", retry: { max_retries: %zu, base: %zus, factor: %s, cap: %zus, floor: %zus, jitter: %s, clamp: %s",
        between(world, 0, 8), base, ONE_OF(world, "1", "1.5", "2", "3"), cap, below(world, base + 1),
        ONE_OF(world, "0", "0.1", "0.2", "1"), ONE_OF(world, "after", "before", "saturate"));
    put(text, ", retry_after_max: %zus, throttle_min: %zus, throttled_counts: %s", between(world, 1, 7200),
        below(world, 30), ONE_OF(world, "true", "false"));
    if (once_in(world, 4))
        put(text, ", max_elapsed: %zum", between(world, 1, 600));
    if (once_in(world, 3))
        put(text, ", adaptive: true");
    put(text, " }");
}

static void draw_dead(struct world *world, struct text *text)
{
    put(text, ", dead: { ttl: %zuh, max: %zu", between(world, 1, 900), once_in(world, 6) ? between(world, 1, 9) : 100000);
    if (once_in(world, 3)) {
        put(text, ", auto_redrive: { after: %zum, times: %zu", between(world, 1, 300), between(world, 1, 3));
        if (once_in(world, 2))
            put(text, ", rate: %zu/%s", between(world, 1, 20), ONE_OF(world, "s", "m"));
        put(text, " }");
    }
    put(text, " }");
    if (once_in(world, 3))
        put(text, ", job_ttl: %zum", between(world, 5, 10000));
}

/* Kept short enough that a year fits: what the presets bring is longer. */
static void draw_questions(struct world *world, struct text *text)
{
    const char *doubt = ONE_OF(world, "resend", "verify", "park");
    bool verify = strcmp(doubt, "verify") == 0 || once_in(world, 3);
    put(text, ", in_doubt: %s", doubt);
    if (verify)
        put(text, ", verify: { url: 'https://x.example/{id}', after: %zus, every: %zus, times: %zu }", below(world, 60),
            between(world, 1, 60), between(world, 1, 6));
    if (once_in(world, 3))
        put(text, ", poll: { url: 'https://x.example/{id}', after: %zus, every: %zus, times: %zu }", below(world, 60),
            between(world, 1, 300), between(world, 1, 12));
}

enum way { BY_HTTP, BY_MAIL, TO_WORKERS };

static enum way draw_policy(struct world *world, struct text *text)
{
    static const char *const presets[] = { "tiss", "sifen", "provisioning", "http" };
    size_t which = below(world, 9);
    bool custom = which > 5;
    bool mail = which == 4 || which == 5;
    if (mail)
        put(text, "preset: %s, url: 'smtp://x.example:25'", which == 4 ? "email" : "email-relay");
    else if (!custom)
        put(text, "preset: %s, url: 'https://x.example/'", presets[which]);
    else
        put(text, "url: 'https://x.example/', timeout: %zus", between(world, 1, 30));
    if (which == 1)
        put(text, ", verify: { url: 'https://x.example/' }, poll: { url: 'https://x.example/' }");
    if (custom) {
        draw_retry(world, text);
        draw_questions(world, text);
        draw_dead(world, text);
    }
    if (once_in(world, 3))
        put(text, ", blocked: tenant");
    put(text, ", headers: { X-Key: 's3cr3t-of-the-header' }");
    return mail ? BY_MAIL : BY_HTTP;
}

static void draw_fairness(struct world *world, struct text *text)
{
    put(text, ", fairness: { round_robin: %s, batch: %zu, base_priority: %zu", once_in(world, 6) ? "false" : "true",
        between(world, 1, 5), between(world, 1, 10));
    if (once_in(world, 2))
        put(text, ", weights: { t0: %zu, t1: %zu }", between(world, 1, 6), between(world, 1, 3));
    put(text, " }");
}

static void draw_limits(struct world *world, struct text *text)
{
    size_t at_once = once_in(world, 4) ? 1 : between(world, 1, 30);
    put(text, once_in(world, 5) ? ", concurrency: { max: %zu, adaptive: false }" : ", concurrency: %zu", at_once);
    draw_fairness(world, text);
    if (once_in(world, 3)) {
        put(text, ", rate: { total: %zu/%s", between(world, 1, 40), ONE_OF(world, "s", "m", "m"));
        if (once_in(world, 2))
            put(text, ", per_tenant: %zu/%s", between(world, 1, 40), ONE_OF(world, "s", "m"));
        if (once_in(world, 3))
            put(text, ", burst: %zu", between(world, 1, 60));
        put(text, " }");
    }
    if (once_in(world, 4))
        put(text, ", cycle: { every: %zus, batch: %zu }", between(world, 1, 120), between(world, 1, 20));
    bool across = world->seed % 4 == 1; /* by the seed itself, so that other worlds stay as they are */
    const char *scope = across ? "scope: destination" : "scope: tenant";
    if (once_in(world, 3)) {
        put(text, ", priority: { %s, aging: %zum", scope, between(world, 1, 600));
        if (once_in(world, 2))
            put(text, ", delay_factor: { critical: 0.%zu, high: %zu }", between(world, 1, 9), between(world, 1, 3));
        put(text, " }");
    } else if (across) {
        put(text, ", priority: { %s }", scope);
    }
}

static void draw_holds(struct world *world, struct text *text, enum way where)
{
    static const char *const ramps[] = { "[1, 2, 4]", "[5, 10, 25]", "[1]", "[2, 20]" };
    size_t begins = text->len;
    if (once_in(world, 2)) {
        put(text, ", breaker: { window: %zus, min_calls: %zu, failure_rate: 0.%zu, open: %zus, open_max: %zus, probes: %zu",
            between(world, 5, 120), between(world, 1, 20), between(world, 1, 9), between(world, 1, 60),
            between(world, 60, 600), between(world, 1, 6));
        if (once_in(world, 3))
            put(text, ", slow: %zus, slow_rate: 0.%zu", between(world, 1, 60), between(world, 1, 9));
        put(text, " }");
    }
    if (once_in(world, 3))
        put(text, ", health: { url: 'https://x.example/health', every: %zus, timeout: 5s, failures: %zu, expect: { status: UP } }",
            between(world, 10, 120), between(world, 1, 4));
    if (once_in(world, 2)) {
        put(text, ", contingency: { ramp: %s, stable: %zus, check: %zus", one_of(world, ramps, COUNT_OF(ramps)),
            between(world, 1, 900), between(world, 5, 600));
        if (once_in(world, 3))
            put(text, ", activate_on_single_event: true");
        if (once_in(world, 4))
            put(text, ", maintenance: ['%s 0%zu:00-0%zu:30']", ONE_OF(world, "Sun", "Mon", "Thu"), between(world, 0, 3),
                between(world, 4, 9));
        put(text, " }");
    }
    const char *own = text->data + begins;
    bool reported = strstr(own, ", breaker:") || strstr(own, ", contingency:"); /* else nobody would know when to use it */
    if (where != TO_WORKERS && once_in(world, 5) && reported)
        put(text, ", fallback: { url: '%s://y.example/' }", where == BY_MAIL ? "smtp" : "https");
}

static void draw_thresholds(struct world *world, struct text *text)
{
    if (once_in(world, 2))
        return;
    put(text, ", alerts: { pending: %zu, dead: %zu, dead_per_tenant: %zu, quiet: %zus", below(world, 30), below(world, 10),
        below(world, 6), between(world, 1, 1800));
    if (once_in(world, 2))
        put(text, ", dead_rate: 0.%zu, dead_window: %zum, growth: 1.%zu", between(world, 1, 9), between(world, 1, 120),
            between(world, 1, 9));
    if (once_in(world, 2))
        put(text, ", age: %zus, breaker_open: %zus, down: %zus", between(world, 1, 3600), between(world, 1, 600),
            between(world, 1, 3600));
    put(text, " }");
}

/* Nothing holds it but what it is learnt to bear. */
static void draw_narrow(struct world *world, struct text *text)
{
    put(text, "url: 'https://x.example/', retry: { max_retries: 20, base: %zus, factor: 1.5, cap: 5m }, concurrency: %zu",
        between(world, 1, 10), between(world, 8, 30));
    draw_fairness(world, text);
    put(text, ", breaker: { enabled: false }");
}

static void draw_destination(struct world *world, int dest, struct text *text)
{
    text->len = 0;
    if (dest == 0 && world->narrow) {
        draw_narrow(world, text);
        return;
    }
    if (dest == CLIENT_DESTS - 1 && once_in(world, 3)) {
        put(text, "transport: pull");
        draw_thresholds(world, text);
        draw_retry(world, text);
        draw_dead(world, text);
        draw_limits(world, text);
        draw_holds(world, text, TO_WORKERS);
        return;
    }
    enum way way = draw_policy(world, text);
    draw_thresholds(world, text);
    draw_limits(world, text);
    draw_holds(world, text, way);
}

/* ---- who is told ---- */

static void draw_wishes(struct world *world, struct text *text)
{
    put(text, ", on: [%s]", ONE_OF(world, "all", "critical", "warning, info", "contingency, down, blocked, tenant_blocked, dead",
                                   "max_retries_exceeded, permanent_error, in_doubt, expired"));
    if (once_in(world, 3))
        put(text, ", destinations: [a, %s]", ONE_OF(world, "b", "c", "d"));
    if (once_in(world, 6))
        put(text, ", tenants: [t0, t1]");
    put(text, " }\n");
}

/* In a configuration to come somebody may be told no more, or of other things. */
static void draw_notify(struct world *world, struct text *text, bool all)
{
    static const char *const entries[] = {
        "name: ops, webhook: 'https://hooks.example/ops', headers: { X-Key: 's3cr3t-of-the-hook' }",
        "name: all, webhook: 'https://hooks.example/all'",
        "name: sms, to: '+595981000000', through: b",
    };
    text->len = 0;
    put(text, "notify:\n");
    for (size_t i = 0; i < COUNT_OF(entries); i++) {
        if (!all && once_in(world, 4))
            continue;
        put(text, "  - { %s", entries[i]);
        draw_wishes(world, text);
    }
    if (text->len == sizeof "notify:\n" - 1)
        text->len = 0;
}

/* The first has every destination; in the others some are missing and some are set otherwise. */
static void draw_configs(struct world *world)
{
    struct text own[CLIENT_DESTS], now, notify = { .len = 0 };
    char yaml[(CLIENT_DESTS + 1) * TEXT_BYTES + 256];
    for (int dest = 0; dest < CLIENT_DESTS; dest++)
        draw_destination(world, dest, &own[dest]);
    for (int i = 0; i < CONFIGS; i++) {
        if (world->tells)
            draw_notify(world, &notify, i == 0);
        size_t len = (size_t)snprintf(yaml, sizeof yaml, "retention: { completed: %zuh, audit: %s }\n%.*sdestinations:\n",
                                      between(world, 1, 200), once_in(world, 4) ? "3d" : "1826d", (int)notify.len, notify.data);
        bool any = false;
        for (int dest = 0; dest < CLIENT_DESTS; dest++) {
            bool other = i > 0 && once_in(world, 2) && !(dest == 0 && world->narrow);
            if (i > 0 && once_in(world, 4) && (any || dest < CLIENT_DESTS - 1))
                continue;
            any = true;
            if (other)
                draw_destination(world, dest, &now);
            len += (size_t)snprintf(yaml + len, sizeof yaml - len, "  %s: { %s }\n", dest_names[dest],
                                    other ? now.data : own[dest].data);
        }
        if (world->verbose)
            printf("# configuration %d\n%s", i, yaml);
        world->configs[i] = config_from((struct slice){ yaml, len }, "world.yaml");
    }
}

/* Short and crowded, long and quiet, or between. */
static void draw_pace(struct world *world)
{
    size_t pace = below(world, 8);
    if (pace < 5) {
        world->lasts_ms = (int64_t)between(world, 10, 240) * MINUTE_MS;
        world->disturb_ms = (int64_t)between(world, 1, 60) * SECOND_MS;
    } else if (pace < 7) {
        world->lasts_ms = (int64_t)between(world, 4, 72) * HOUR_MS;
        world->disturb_ms = (int64_t)between(world, 30, 1200) * SECOND_MS;
    } else {
        world->lasts_ms = (int64_t)between(world, 3, 40) * DAY_MS;
        world->disturb_ms = (int64_t)between(world, 10, 200) * MINUTE_MS;
    }
    if (pace > 4 && (!once_in(world, 6) || pace == 7)) /* to wake each second of forty days costs as much as fifty worlds */
        world->late_ms = (int64_t)between(world, 10, 60) * SECOND_MS;
    world->jobs_max = (int)between(world, 20, JOBS_MAX);
    world->arrive_ms = world->lasts_ms * 4 / 5 / world->jobs_max + 1;
}

void world_draw(struct world *world)
{
    draw_pace(world);
    world->tenants = (int)between(world, 1, TENANTS_MAX);
    world->clock_jumps = once_in(world, 2);
    world->tells = !once_in(world, 3);
    world->narrow = once_in(world, 10);
    world->listens = once_in(world, 16) || world->sabotage == SABOTAGE_TALKATIVE;
    world->store_lag_ms = once_in(world, 5) ? (int64_t)between(world, 1, 3000) : 0;
    world->pending_max = once_in(world, 8) ? (int64_t)between(world, 5, 60) : 1000000000;
    for (int dest = 0; dest < DESTS; dest++) {
        struct receiver *receiver = &world->receivers[dest];
        *receiver = (struct receiver){ .badness = below(world, 5) * 20, .how = (enum outage_kind)below(world, 3) };
        receiver->capacity = once_in(world, 4) ? (int64_t)between(world, 1, 6) : 0;
        receiver->refused = once_in(world, 4) ? (enum refused_kind)between(world, REFUSED_JOBS, REFUSED_ALL) : REFUSED_NONE;
        receiver->refused_until = (int64_t)below(world, (size_t)(1 + world->lasts_ms));
        receiver->second_refuses = once_in(world, 2);
    }
    if (world->narrow) {
        world->receivers[0] = (struct receiver){ .capacity = (int64_t)between(world, 2, 6) };
        world->lasts_ms = (int64_t)between(world, 60, 300) * MINUTE_MS;
        world->disturb_ms = (int64_t)between(world, 60, 600) * SECOND_MS;
        world->late_ms = world->store_lag_ms = 0;
        world->jobs_max = JOBS_NARROW;
        world->arrive_ms = world->lasts_ms / 8 / world->jobs_max + 1;
        world->pending_max = 1000000000;
    }
    /* By the seed itself, so that other worlds stay as they are. */
    bool asks = (world->seed % 5 == 3 && !world->narrow) || world->sabotage == SABOTAGE_READ_LOST;
    world->read_random.state = world->seed;
    world->read_lag_ms = asks ? 1 + (int64_t)(random_next(&world->read_random) % 6000) : 0;
    /* By the seed itself, so that all else is the same in either store. Long worlds would take minutes there. */
    world->on_disk = world->seed % DISK_ONE_IN == DISK_ONE_IN - 1 && world->lasts_ms <= 5 * HOUR_MS;
    draw_configs(world);
}
