/*
 * Destinations: how they stand, and holding them.
 */
#include "api/call/ask.h"
#include "api/call/body.h"
#include "api/call/counts.h"
#include "api/call/query.h"
#include "api/operate/operate.h"
#include "base/json.h"
#include "base/units.h"
#include "config/config.h"
#include "config/problems.h"
#include "engine/orders.h"
#include "engine/status.h"

/* --- the rules that it is sent to by, as figures for people: the page puts them into words ------- */

static void write_figure(struct json_writer *json, const char *name, const char *member, int64_t value)
{
    if (value <= 0)
        return;
    json_member_object(json, name);
    json_member_int(json, member, value);
    json_object_end(json);
}

static void write_rate(struct json_writer *json, const char *name, struct rate rate)
{
    char text[UNITS_TEXT_BYTES];
    if (rate.count <= 0)
        return;
    rate_format(rate, text);
    json_member_object(json, name);
    json_member_text(json, "total", text);
    json_object_end(json);
}

static void write_retry(struct json_writer *json, const struct retry_policy *retry)
{
    json_member_object(json, "retry");
    json_member_int(json, "max_retries", retry->retries_max);
    json_member_int(json, "base_ms", retry->base_ms);
    json_member_real(json, "factor", retry->factor);
    json_member_int(json, "cap_ms", retry->cap_ms);
    json_member_real(json, "jitter", retry->jitter);
    json_object_end(json);
}

static void write_breaker(struct json_writer *json, const struct breaker_config *breaker)
{
    if (!breaker->enabled)
        return;
    json_member_object(json, "breaker");
    json_member_real(json, "failure_rate", breaker->failure_rate);
    json_member_int(json, "min_calls", breaker->min_calls);
    json_member_int(json, "window_ms", breaker->window_ms);
    json_member_int(json, "open_ms", breaker->open_ms);
    json_object_end(json);
}

static void write_outage(struct json_writer *json, const struct health_config *health,
                         const struct contingency_config *contingency)
{
    if (health->url) {
        json_member_object(json, "health");
        json_member_int(json, "every_ms", health->every_ms);
        json_member_int(json, "failures", health->failures);
        json_object_end(json);
    }
    if (!contingency->enabled)
        return;
    json_member_object(json, "contingency");
    json_member_array(json, "ramp");
    for (size_t i = 0; i < contingency->ramp_count; i++)
        json_put_int(json, contingency->ramp[i]);
    json_array_end(json);
    json_member_int(json, "stable_ms", contingency->stable_ms);
    json_object_end(json);
}

/* The member `policy`. Nothing secret is in it, and nothing that is not in force. */
static void write_rules(struct json_writer *json, const struct destination_config *config)
{
    static const char *const doubts[] = {
        [DOUBT_RESEND] = "in_doubt_resend", [DOUBT_VERIFY] = "in_doubt_verify", [DOUBT_PARK] = "in_doubt_park",
    };
    json_member_object(json, "policy");
    write_retry(json, &config->policy.retry);
    json_member_bool(json, doubts[config->policy.in_doubt], true);
    write_figure(json, "timeout", "time_ms", config->timeout_ms);
    write_figure(json, "lifetime", "time_ms", config->job_ttl_ms);
    if (config->transport != TRANSPORT_PULL) /* its workers decide */
        write_figure(json, "concurrency", "max", config->concurrency);
    write_rate(json, "rate", config->rate_total);
    write_rate(json, "rate_per_tenant", config->rate_per_tenant);
    if (config->fairness.round_robin)
        write_figure(json, "fairness", "batch", config->fairness.batch);
    write_breaker(json, &config->breaker);
    write_outage(json, &config->health, &config->contingency);
    json_member_object(json, "dead");
    json_member_int(json, "ttl_ms", config->dead.ttl_ms);
    json_member_int(json, "max", config->dead.max);
    json_object_end(json);
    json_object_end(json);
}

/* --- how it stands ------------------------------------------------------------------------------ */

static const char *transport_name(enum transport_kind kind)
{
    static const char *const names[] = {
        [TRANSPORT_HTTP] = "http", [TRANSPORT_SMTP] = "smtp", [TRANSPORT_PULL] = "pull", [TRANSPORT_EXEC] = "exec",
        [TRANSPORT_SES] = "ses",   [TRANSPORT_REDIS] = "redis", [TRANSPORT_AMQP] = "amqp",
    };
    return names[kind];
}

/* Who is held, when one destination is shown. */
static void write_holds(struct json_writer *json, const struct tenant_hold *holds, size_t count)
{
    json_member_array(json, "paused");
    for (size_t i = 0; i < count; i++) {
        json_object_begin(json);
        json_member_text(json, "tenant", holds[i].tenant ? holds[i].tenant : "");
        json_member_instant(json, "since", holds[i].hold.since);
        if (holds[i].hold.blocked)
            json_member_bool(json, "blocked", true);
        json_member_instant(json, "next_look_at", holds[i].hold.look_at);
        json_member_given(json, "reason", slice_from(holds[i].hold.reason));
        json_object_end(json);
    }
    json_array_end(json);
}

/* The last sixty seconds, and the minutes up to now, oldest first. */
static void write_pace(struct json_writer *json, const struct pace *pace, instant now)
{
    static const char *const names[] = { "delivered_by_minute", "failed_by_minute" };
    struct pace_count minutes[PACE_MINUTES], last = pace_last_minute(pace, now);
    pace_read(pace, now, minutes);
    json_member_int(json, "delivered_last_minute", last.good);
    json_member_int(json, "failed_last_minute", last.bad);
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        json_member_array(json, names[n]);
        for (size_t i = 0; i < PACE_MINUTES; i++)
            json_put_int(json, n == 0 ? minutes[i].good : minutes[i].bad);
        json_array_end(json);
    }
}

static void write_concurrency(struct json_writer *json, const struct limit_status *limit)
{
    char words[LIMIT_WORDS_BYTES];
    limit_words(limit, words);
    json_member_int(json, "concurrency_now", limit->now);
    json_member_text(json, "concurrency_why", words);
    json_member_instant(json, "concurrency_rises_at", limit->rises_at);
}

/* What everybody may see; for a confined token the status has nothing else in it. See confined.h. */
static void write_shared(struct json_writer *json, const struct call *call, const struct destination_total *counts,
                         const struct destination_config *config, const struct destination_status *status)
{
    size_t count;
    json_member_string(json, "name", counts->destination);
    if (config && config->description)
        json_member_text(json, "description", config->description);
    json_member_text(json, "mode", status->known ? status->mode : "normal");
    if (status->known && status->mode_behind)
        json_member_text(json, "mode_behind", status->mode_behind);
    if (status->known && status->cause) {
        if (!call->tenant_bound.data)
            json_member_text(json, "mode_cause", status->cause);
        json_member_instant(json, "mode_since", status->mode_since);
    }
    if (status->known && status->held_by)
        json_member_text(json, "held_by", status->held_by);
    if (status->known) {
        json_member_instant(json, "held_since", status->held_since);
        json_member_instant(json, "held_until", status->held_until);
        json_member_instant(json, "next_look_at", status->look_at);
    }
    counts_write(json, &counts->counts);
    const struct tenant_hold *holds = call_tenant_holds(call, &count);
    if (status->tenants_paused > 0)
        json_member_int(json, "tenants_paused", (int64_t)status->tenants_paused);
    if (count > 0)
        write_holds(json, holds, count);
}

static void write_view(struct json_writer *json, const struct call *call, const struct destination_config *config,
                           const struct destination_status *status)
{
    if (status->fallback)
        json_member_bool(json, "fallback", true);
    if (status->second.held) {
        json_member_text(json, "fallback_blocked", status->second.reason ? status->second.reason : "");
        json_member_instant(json, "fallback_look_at", status->second.look_at);
    }
    json_member_given(json, "pause_reason", slice_from(status->pause_reason));
    json_member_given(json, "mode_behind_reason", slice_from(status->behind_reason));
    if (config && config->transport != TRANSPORT_PULL) /* its workers decide */
        write_concurrency(json, &status->limit);
    if (config)
        json_member_text(json, "breaker", status->breaker);
    if (status->cycle.number > 0)
        cycle_write(json, &status->cycle);
    write_pace(json, &status->pace, api_now(call->api));
}

/* `whole`: with its rules, which a list has no room for. */
static void write_destination(struct json_writer *json, const struct call *call, const struct destination_total *counts,
                              bool whole)
{
    static const struct destination_status unknown = { 0 };
    const struct destination_config *config = config_destination(call->api->config, counts->destination);
    const struct destination_status *found = call_view(call, counts->destination);
    const struct destination_status *status = found ? found : &unknown;
    json_object_begin(json);
    write_shared(json, call, counts, config, status);
    if (!call->tenant_bound.data) {
        if (whole && call->api->config->node.name)
            json_member_text(json, "owner", call->api->config->node.name); /* who answers is that */
        if (whole && config)
            json_member_given(json, "pinned", slice_from(config->node));
        json_member_bool(json, "configured", config != NULL);
        if (config) {
            json_member_text(json, "transport", transport_name(config->transport));
            json_member_given(json, "preset", slice_from(config->preset));
            json_member_given(json, "url", slice_from(config->url_shown));
        }
        json_member_int(json, "tenants", (int64_t)counts->tenants);
        json_member_int(json, "under_way", status->known ? status->under_way : 0);
        json_member_int(json, "concurrency", config ? config->concurrency : 0);
        if (status->known && counts->counts.ready > 0)
            json_member_instant(json, "oldest_at", status->next_since);
        if (status->known)
            write_view(json, call, config, status);
        if (config && whole)
            write_rules(json, config);
    }
    json_object_end(json);
}

/* --- list --------------------------------------------------------------------------------------- */

struct destination_page {
    struct counts counts;
    size_t limit, first, end;
};

static void answer_list(struct call *call)
{
    const struct destination_page *page = call->context;
    struct json_writer *json = call_answer(call);
    json_member_array(json, "destinations");
    for (size_t i = page->first; i < page->end; i++)
        write_destination(json, call, &page->counts.items[i], false);
    json_array_end(json);
    json_member_or_null(json, "next",
                        page->end < page->counts.count && page->end > 0 ? page->counts.items[page->end - 1].destination
                                                                        : SLICE(""));
    call_answer_send(call, 200);
}

/* Behind the destination that the cursor names, whether it is still there or not. */
static size_t first_after(const struct counts *counts, struct slice cursor)
{
    size_t first = 0;
    while (first < counts->count && cursor.len > 0 && slice_compare(counts->items[first].destination, cursor) <= 0)
        first++;
    return first;
}

static enum status read_list(struct call *call, struct store_reader *reader, struct error *err)
{
    struct destination_page *page = call->context;
    return counts_list(call, reader, 0, &page->counts, err);
}

static void ask_list(struct call *call)
{
    struct destination_page *page = call->context;
    page->first = first_after(&page->counts, call_query(call, "cursor"));
    page->end = page->counts.count - page->first < page->limit ? page->counts.count : page->first + page->limit;
    for (size_t i = page->first; i < page->end; i++)
        call_view_add(call, page->counts.items[i].destination);
    call_views(call, answer_list);
}

void handle_destinations_list(struct call *call)
{
    struct destination_page *page = call_context(call, sizeof *page);
    if (page && call_limit(call, &page->limit))
        call_read(call, read_list, ask_list);
}

/* --- one ---------------------------------------------------------------------------------------- */

static void not_found(struct call *call, struct slice name)
{
    struct nearest nearest = { .wanted = name };
    for (size_t i = 0; i < call->api->config->destination_count; i++)
        nearest_offer(&nearest, call->api->config->destinations[i].name);
    if (nearest.name)
        call_problem(call, 404, "destination_not_found", "there is no destination \"%s\"; did you mean \"%s\"?",
                     quote(name).text, nearest.name);
    else
        call_problem(call, 404, "destination_not_found",
                     "there is no destination \"%s\"; insist dest lists them",
                     quote(name).text);
}

static enum status read_one(struct call *call, struct store_reader *reader, struct error *err)
{
    struct counts counts;
    enum status status = counts_list(call, reader, 0, &counts, err);
    const struct destination_total *found = status == STATUS_OK ? counts_find(&counts, call->parameters[0]) : NULL;
    call->context = (void *)(uintptr_t)found;
    return status == STATUS_OK && !found ? STATUS_NOT_FOUND : status;
}

static void write_one(struct call *call)
{
    if (call->reading.status == STATUS_NOT_FOUND) {
        not_found(call, call->parameters[0]);
        return;
    }
    struct buffer body = call_buffer();
    struct json_writer json = json_writer(&body);
    write_destination(&json, call, call->context, true);
    call_json(call, 200, &body);
}

static void answer_destination(struct call *call)
{
    call_read(call, read_one, write_one);
}

void handle_destination_get(struct call *call)
{
    call_view_add(call, call->parameters[0]);
    ask(call, call->parameters[0], views_ask, answer_destination);
}

/* --- holding ------------------------------------------------------------------------------------ */

enum hold_kind {
    ORDER_PAUSE,
    ORDER_RESUME,
    ORDER_ENTER, /* contingency */
    ORDER_LEAVE,
};

struct hold_order {
    enum hold_kind kind;
    bool one_tenant;
    struct slice tenant; /* of that, */
    struct lane lane;    /* and its lane; id 0: it never had a job there */
    struct slice reason;
    enum status status;
    struct error error;
    struct saved_wait saved; /* only when the status is good */
};

static void after_order(struct call *call)
{
    const struct hold_order *order = call->context;
    if (order->status == STATUS_NOT_FOUND && order->one_tenant)
        call_problem(call, 404, "tenant_not_found", "%s", order->error.text);
    else if (order->status == STATUS_LIMIT)
        call_problem(call, 409, "too_many_paused", "%s", order->error.text);
    else if (order->status == STATUS_NOT_FOUND && config_destination(call->api->config, call->parameters[0]))
        ask_later(call, call->parameters[0]); /* this node has just become its owner, and reads it */
    else if (order->status == STATUS_NOT_FOUND)
        not_found(call, call->parameters[0]);
    else if (order->status != STATUS_OK)
        call_problem(call, 503, "not_done", "%s", order->error.text);
    else if (order->saved.error.status != STATUS_OK)
        call_problem(call, 503, "not_kept",
                     "the order holds, but could not be written: %s; the daemon goes on trying, and a restart before that "
                     "undoes it",
                     order->saved.error.text);
    else
        handle_destination_get(call);
}

static enum status order_tenant(struct engine *engine, struct slice destination, struct hold_order *order)
{
    int64_t lane = order->lane.id;
    if (!engine_destination(engine, destination).known)
        return error_set(&order->error, STATUS_NOT_FOUND, "no destination \"%.*s\"", SLICE_ARG(destination));
    if (lane == 0)
        return error_set(&order->error, STATUS_NOT_FOUND, "tenant \"%.*s\" never had a job at %.*s",
                         SLICE_ARG(order->tenant), SLICE_ARG(destination));
    engine_recall(engine, lane, destination, order->tenant);
    return order->kind == ORDER_PAUSE ? engine_pause_tenant(engine, lane, order->reason, &order->error)
                                      : engine_resume_tenant(engine, lane, &order->error);
}

static bool run_order(struct call *call, struct engine *engine)
{
    struct hold_order *order = call->context;
    struct slice name = call->parameters[0];
    engine_operator(engine, name, call->who);
    switch (order->kind) {
    case ORDER_PAUSE:
        order->status = order->one_tenant ? order_tenant(engine, name, order)
                                          : engine_pause(engine, name, order->reason, &order->error);
        break;
    case ORDER_RESUME:
        order->status = order->one_tenant ? order_tenant(engine, name, order) : engine_resume(engine, name, &order->error);
        break;
    case ORDER_ENTER:
        order->status = engine_enter_contingency(engine, name, order->reason, &order->error);
        break;
    case ORDER_LEAVE:
        order->status = engine_leave_contingency(engine, name, &order->error);
        break;
    }
    engine_operator(engine, name, SLICE(""));
    if (order->status != STATUS_OK)
        return true;
    order->saved = ask_saved(call);
    engine_await_saved(engine, name, &order->saved);
    return false;
}

static enum status read_tenant(struct call *call, struct store_reader *reader, struct error *err)
{
    struct hold_order *order = call->context;
    return reader->ops->reader_lane(reader, call->parameters[0], order->tenant, &call->memory, &order->lane, err);
}

static void give_order(struct call *call)
{
    ask(call, call->parameters[0], run_order, after_order);
}

static void order_hold(struct call *call, const struct hold_order *wanted)
{
    struct hold_order *order = call_context(call, sizeof *order);
    if (!order)
        return;
    *order = *wanted;
    if (order->one_tenant)
        call_read(call, read_tenant, give_order);
    else
        give_order(call);
}

/* Only a pause has a reason. */
static void pause_or_resume(struct call *call, enum hold_kind kind)
{
    struct hold_order order = { .kind = kind, .one_tenant = body_member(call, "tenant") != NULL };
    if (body_text(call, "reason", HOLD_REASON_BYTES_MAX, &order.reason) &&
        body_text(call, "tenant", JOB_ID_BYTES_MAX, &order.tenant))
        order_hold(call, &order);
}

void handle_destination_pause(struct call *call)
{
    pause_or_resume(call, ORDER_PAUSE);
}

void handle_destination_resume(struct call *call)
{
    pause_or_resume(call, ORDER_RESUME);
}

void handle_destination_contingency(struct call *call)
{
    struct slice reason;
    bool enter;
    if (body_bool(call, "enter", &enter) && body_text(call, "reason", HOLD_REASON_BYTES_MAX, &reason))
        order_hold(call, &(struct hold_order){ .kind = enter ? ORDER_ENTER : ORDER_LEAVE, .reason = reason });
}
