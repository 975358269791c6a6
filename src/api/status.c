/*
 * How the daemon itself is: health, figures, its description; and decisions, which need no job.
 */
#include "api/api_private.h"
#include "api/counts.h"
#include "api/decisions.h"
#include "base/embedded.h"
#include "base/log.h"
#include "engine/measures.h"

#include <string.h>

/* --- health --------------------------------------------------------------------------------------- */

/* What the clock jumped over did not pass. */
static int64_t elapsed(instant since, instant now)
{
    return now - since - clock_stepped_ms(2 * STUCK_AFTER_MS);
}

static bool writer_is_stuck(const struct api *api, instant now)
{
    struct writer_figures figures = writer_figures(api->settings.writer);
    return figures.busy && elapsed(figures.progressed_at, now) > STUCK_AFTER_MS;
}

/* The pulse comes back about once a second, and so does the engine's own turn. */
static bool engine_is_stuck(const struct api *api, instant now)
{
    if (api->pulse.ran_at != 0)
        return elapsed(api->pulse.ran_at, now) > STUCK_AFTER_MS;
    return api->pulse.out && elapsed(api->pulse.asked_at, now) > STUCK_AFTER_MS;
}

static void answer_fine(struct call *call)
{
    struct buffer body = call_buffer();
    buffer_append_text(&body, "{\"status\":\"ok\"}");
    call_json(call, 200, &body);
}

void handle_livez(struct call *call)
{
    instant now = api_now(call->api);
    if (writer_is_stuck(call->api, now))
        call_problem(call, 503, "writer_stuck", "a transaction has been under way for more than %d s; look at the disk",
                     STUCK_AFTER_MS / SECOND_MS);
    else if (engine_is_stuck(call->api, now))
        call_problem(call, 503, "engine_stuck", "the engine has made no progress for more than %d s; restart the daemon",
                     STUCK_AFTER_MS / SECOND_MS);
    else
        answer_fine(call);
}

void handle_readyz(struct call *call)
{
    struct api *api = call->api;
    if (api->draining)
        call_problem(call, 503, "stopping", "the daemon is stopping");
    else if (api->pulse.ran_at == 0)
        call_problem(call, 503, "starting", "the engine has not started yet");
    else if (api_disk_is_low(api))
        call_problem(call, 503, "disk_full", "the disk has less than limits.disk_free; free some space");
    else
        answer_fine(call);
}

/* --- figures -------------------------------------------------------------------------------------- */

static void write_destinations(struct json_writer *json, const struct call *call, const struct counts *counts)
{
    json_name(json, "destinations");
    json_array_begin(json);
    for (size_t i = 0; i < counts->count; i++) {
        const struct destination_status *status = call_standing(call, counts->items[i].name);
        json_object_begin(json);
        json_member_string(json, "name", counts->items[i].name);
        json_member_text(json, "mode", status && status->known ? status->mode : "normal");
        if (status && status->held_by)
            json_member_text(json, "held_by", status->held_by);
        counts_write(json, &counts->items[i].counts);
        json_object_end(json);
    }
    json_array_end(json);
}

static void write_engine(struct json_writer *json, const struct call *call)
{
    const struct engine_figures *figures = &call->figures;
    json_name(json, "engine");
    json_object_begin(json);
    json_member_int(json, "claimed", figures->claimed);
    json_member_int(json, "delivered", figures->delivered + call->api->acked);
    json_member_int(json, "failed", figures->failed);
    json_member_int(json, "retried", figures->retried);
    json_member_int(json, "held", figures->held);
    json_member_int(json, "dead", figures->dead);
    json_member_int(json, "recovered", figures->recovered);
    if (figures->ran_at != 0)
        json_member_instant(json, "ran_at", figures->ran_at);
    json_object_end(json);
}

/* Nobody may say that all is well while one of these is not acknowledged. */
static void write_alerts(struct json_writer *json, const struct call *call)
{
    json_name(json, "alerts");
    json_object_begin(json);
    json_member_int(json, "standing", call->figures.alerts);
    json_member_int(json, "unacknowledged", call->figures.alerts_unacked);
    json_object_end(json);
}

static void write_writer(struct json_writer *json, const struct api *api)
{
    struct writer_figures figures = writer_figures(api->settings.writer);
    json_name(json, "writer");
    json_object_begin(json);
    json_member_int(json, "transactions", figures.transactions);
    json_member_int(json, "operations", figures.operations);
    json_member_bool(json, "busy", figures.busy);
    json_object_end(json);
}

/* What the caller may do, so that a page offers nothing else. */
static void write_caller(struct json_writer *json, const struct call *call)
{
    static const struct {
        unsigned scope;
        const char *name;
    } scopes[] = {
        { SCOPE_ENQUEUE, "enqueue" }, { SCOPE_READ, "read" }, { SCOPE_WORK, "work" },
        { SCOPE_OPERATE, "operate" }, { SCOPE_ADMIN, "admin" },
    };
    json_name(json, "scopes");
    json_array_begin(json);
    for (size_t i = 0; i < sizeof scopes / sizeof *scopes; i++)
        if (call->scopes & scopes[i].scope)
            json_put_string(json, slice_from(scopes[i].name));
    json_array_end(json);
    if (call->tenant_bound.data)
        json_member_string(json, "tenant", call->tenant_bound);
}

static void answer_stats(struct call *call)
{
    const struct api *api = call->api;
    const struct counts *counts = call->context;
    struct buffer body = call_buffer();
    struct json_writer json = json_writer(&body);
    json_object_begin(&json);
    json_member_text(&json, "version", INSIST_VERSION);
    json_member_instant(&json, "started_at", api->began_at);
    json_member_int(&json, "uptime_s", (api_now(api) - api->began_at) / SECOND_MS);
    json_name(&json, "totals");
    json_object_begin(&json);
    counts_write(&json, &counts->total);
    json_object_end(&json);
    write_destinations(&json, call, counts);
    write_caller(&json, call);
    if (!call->tenant_bound.data) { /* the rest is about all tenants */
        write_writer(&json, api);
        write_engine(&json, call);
        write_alerts(&json, call);
        json_member_int(&json, "calls", (int64_t)api->calls);
    }
    json_object_end(&json);
    call_json(call, 200, &body);
}

void handle_stats(struct call *call)
{
    struct counts *counts = call_alloc(call, sizeof *counts);
    if (!counts)
        return;
    if (!counts_read(call, counts))
        return;
    call->context = counts;
    for (size_t i = 0; i < counts->count; i++)
        call_standing_add(call, counts->items[i].name);
    call_standings(call, answer_stats);
}

/* --- decisions ------------------------------------------------------------------------------------ */

/* A decision on its way to the trail and the metrics. */
struct decide_call {
    struct decided decided;
    struct slice policy; /* of its own: a reload may come between */
    struct buffer body;
    int64_t took_ns;
};

static int64_t stored_retries(void *context, struct slice tenant, struct slice id)
{
    struct call *call = context;
    struct store_reader *reader = call->api->reader;
    struct slice whose = call->tenant_bound.data ? call->tenant_bound : tenant;
    struct error error;
    struct job job;
    enum status status = reader->ops->reader_job(reader, whose, id, false, &call->memory, &job, &error);
    return status == STATUS_OK ? job.retry_count : -1;
}

static void answer_decision(struct call *call)
{
    struct decide_call *asked = call->context;
    if (call->batch->status == STATUS_OK && call->batch->ops[0].status == STATUS_OK) {
        call_json(call, 200, &asked->body);
        return;
    }
    enum status status = call->batch->status != STATUS_OK ? call->batch->status : call->batch->ops[0].status;
    buffer_release(&asked->body);
    call_store_problem(call, status, &call->batch->error);
}

static void count_decision(struct call *call, struct engine *engine)
{
    const struct decide_call *asked = call->context;
    engine_decided(engine, asked->policy, &asked->decided.decision, asked->took_ns);
    call_return(call);
}

static void record_decision(struct call *call)
{
    call_submit(call, answer_decision);
}

/* What was decided is answered when the trail has it. */
static void keep_decision(struct call *call, struct decide_call *asked, struct buffer *event)
{
    bool may = (call->scopes & (SCOPE_ENQUEUE | SCOPE_OPERATE)) != 0;
    call->batch = may ? batch_new(1, SIZE_MAX / 4) : NULL;
    if (call->batch) {
        call->batch->count = 1;
        call->batch->ops[0].kind = OP_NOTE;
        call->batch->ops[0].data = arena_copy(&call->memory, buffer_slice(event));
    }
    asked->policy = arena_copy(&call->memory, slice_from(asked->decided.policy));
    if (call->batch && call->batch->ops[0].data.data && asked->policy.data && buffer_status(event) == STATUS_OK) {
        call->context = asked;
        call_engine(call, count_decision, record_decision);
        return;
    }
    buffer_release(&asked->body);
    if (may)
        call_no_memory(call);
    else
        call_problem(call, 403, "forbidden_scope",
                     "a decision is kept in the trail, which needs the scope enqueue or operate; with \"record\": false nothing "
                     "is kept");
}

void handle_decide(struct call *call)
{
    struct api *api = call->api;
    struct buffer event;
    struct decide_call *asked = call_alloc(call, sizeof *asked);
    if (!asked)
        return;
    if (!api->decisions)
        api->decisions = decisions_new(api->config);
    if (!api->decisions) {
        call_no_memory(call);
        return;
    }
    buffer_init(&event, EVENT_DATA_BYTES_MAX);
    asked->body = call_buffer();
    asked->decided = (struct decided){ .context = call, .retry_count = stored_retries, .by = call->who, .event = &event };
    int64_t began = clock_ticks_ns();
    bool valid = decisions_answer(api->decisions, call->body, api_now(api), &asked->decided, &asked->body);
    asked->took_ns = clock_ticks_ns() - began;
    if (valid && event.len > 0)
        keep_decision(call, asked, &event);
    else
        call_json(call, valid ? 200 : 422, &asked->body);
    buffer_release(&event);
}

/* --- what it is ----------------------------------------------------------------------------------- */

static void send_embedded(struct call *call, const char *name, const char *content_type)
{
    const struct embedded_file *file = embedded_api;
    while (file->name && strcmp(file->name, name) != 0)
        file++;
    struct buffer body = call_buffer();
    buffer_append(&body, (struct slice){ file->data ? file->data : "", file->len });
    call_send(call, 200, content_type, &body);
}

void handle_openapi(struct call *call)
{
    send_embedded(call, "openapi.json", "application/json");
}
