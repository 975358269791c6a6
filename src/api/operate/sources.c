/* The sources: how each stands, and why. */
#include "api/operate/operate.h"

#include "base/json.h"
#include "node/source_board.h"

enum { WHY_BYTES_MAX = 8192 };

static void write_redis(struct json_writer *json, const struct source_figures *source)
{
    json_member_object(json, "redis");
    json_member_int(json, "used_bytes", source->redis.used_bytes);
    json_member_int(json, "limit_bytes", source->redis.limit_bytes);
    json_member_array(json, "risks");
    for (int risk = 0; risk < REDIS_RISK_COUNT; risk++)
        if (source->redis.risks & 1u << risk)
            json_put_string(json, slice_from(redis_risk_text((enum redis_risk)risk)));
    json_array_end(json);
    json_object_end(json);
}

static void write_rejected(struct json_writer *json, const struct source_figures *source)
{
    json_member_object(json, "last_rejected");
    json_member_text(json, "entry", source->rejected_entry);
    json_member_text(json, "reason", source->rejected_reason);
    json_object_end(json);
}

static void write_source(struct json_writer *json, const struct source_figures *source, instant now)
{
    struct buffer why = buffer_up_to(WHY_BYTES_MAX);
    source_why(source, now, &why);
    json_object_begin(json);
    json_member_text(json, "name", source->name);
    json_member_text(json, "destination", source->destination);
    json_member_text(json, "state", source_state_name(source->state));
    json_member_instant(json, "since", source->since);
    json_member_int(json, "accepted", source->counts.accepted);
    json_member_int(json, "duplicates", source->counts.duplicates);
    json_member_int(json, "rejected", source->counts.rejected);
    json_member_int(json, "gone", source->counts.gone);
    json_member_int(json, "claimed", source->counts.claimed);
    json_member_int(json, "held", source->held);
    if (source->lag >= 0)
        json_member_int(json, "lag", source->lag);
    json_member_instant(json, "last_at", source->last_at);
    if (source->rejected_entry[0])
        write_rejected(json, source);
    if (source->checked)
        write_redis(json, source);
    json_member_string(json, "why", buffer_slice(&why));
    json_object_end(json);
    buffer_release(&why);
}

/* They read for all tenants, and say what entries had. */
static bool may_see(struct call *call)
{
    if (!call->tenant_bound.data)
        return true;
    return call_problem(call, 403, "forbidden_tenant",
                        "sources are of all tenants, and this token is confined to tenant \"%.*s\"",
                        SLICE_ARG(call->tenant_bound));
}

void handle_sources_list(struct call *call)
{
    struct source_figures sources[SOURCES_MAX];
    if (!may_see(call))
        return;
    size_t count = source_board_copy(call->api->settings.sources, sources);
    struct json_writer *json = call_answer(call);
    json_member_array(json, "sources");
    for (size_t i = 0; i < count; i++)
        write_source(json, &sources[i], api_now(call->api));
    json_array_end(json);
    call_answer_send(call, 200);
}

void handle_source_get(struct call *call)
{
    struct source_figures sources[SOURCES_MAX];
    if (!may_see(call))
        return;
    size_t count = source_board_copy(call->api->settings.sources, sources), at = 0;
    while (at < count && !slice_equal(slice_from(sources[at].name), call->parameters[0]))
        at++;
    if (at == count) {
        call_problem(call, 404, "source_not_found", "there is no source \"%.*s\"", SLICE_ARG(call->parameters[0]));
        return;
    }
    struct buffer body = call_buffer();
    struct json_writer json = json_writer(&body);
    write_source(&json, &sources[at], api_now(call->api));
    call_json(call, 200, &body);
}
