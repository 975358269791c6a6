/*
 * How the daemon itself is: health, figures, its description.
 */
#include "api/call/counts.h"
#include "api/observe/observe.h"
#include "base/embedded.h"
#include "base/log.h"
#include "engine/measures.h"
#include "engine/status.h"

#include <string.h>

/* --- health --------------------------------------------------------------------------------------- */

static void answer_fine(struct call *call)
{
    struct buffer body = call_buffer();
    buffer_append_text(&body, "{\"status\":\"ok\"}");
    call_json(call, 200, &body);
}

void handle_livez(struct call *call)
{
    enum liveness liveness = api_liveness(call->api);
    if (liveness == LIVENESS_WRITER_STUCK)
        call_problem(call, 503, "writer_stuck", "a transaction has been under way for more than %d s; look at the disk",
                     STUCK_AFTER_MS / SECOND_MS);
    else if (liveness == LIVENESS_ENGINE_STUCK)
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
    else if (writer_figures(api->settings.writer).away)
        call_problem(call, 503, "store_away", "the store cannot be reached; nothing is accepted until it is back");
    else if (api_disk_is_low(api))
        call_problem(call, 503, "disk_full", "the disk has less than limits.disk_free; free some space");
    else
        answer_fine(call);
}

/* --- figures -------------------------------------------------------------------------------------- */

static void write_destinations(struct json_writer *json, const struct call *call, const struct counts *counts)
{
    json_member_array(json, "destinations");
    for (size_t i = 0; i < counts->count; i++) {
        const struct destination_status *status = call_view(call, counts->items[i].destination);
        json_object_begin(json);
        json_member_string(json, "name", counts->items[i].destination);
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
    const struct engine_figures *figures = &call->views.figures;
    json_member_object(json, "engine");
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
    json_member_object(json, "alerts");
    json_member_int(json, "standing", call->views.figures.alerts);
    json_member_int(json, "unacknowledged", call->views.figures.alerts_unacked);
    json_object_end(json);
}

static void write_writer(struct json_writer *json, const struct api *api)
{
    struct writer_figures figures = writer_figures(api->settings.writer);
    json_member_object(json, "writer");
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
    json_member_array(json, "scopes");
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
    struct json_writer *json = call_answer(call);
    json_member_text(json, "version", INSIST_VERSION);
    json_member_instant(json, "started_at", api->began_at);
    json_member_int(json, "uptime_s", (api_now(api) - api->began_at) / SECOND_MS);
    json_member_object(json, "totals");
    counts_write(json, &counts->total);
    json_object_end(json);
    write_destinations(json, call, counts);
    write_caller(json, call);
    if (!call->tenant_bound.data) { /* the rest is about all tenants */
        write_writer(json, api);
        write_engine(json, call);
        write_alerts(json, call);
        json_member_int(json, "calls", (int64_t)api->calls);
    }
    call_answer_send(call, 200);
}

static enum status read_counts(struct call *call, struct store_reader *reader, struct error *err)
{
    return counts_list(call, reader, 0, call->context, err);
}

static void ask_views(struct call *call)
{
    const struct counts *counts = call->context;
    for (size_t i = 0; i < counts->count; i++)
        call_view_add(call, counts->items[i].destination);
    call_views(call, answer_stats);
}

void handle_stats(struct call *call)
{
    if (call_context(call, sizeof(struct counts)))
        call_read(call, read_counts, ask_views);
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
