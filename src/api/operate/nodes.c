/* The nodes that share the store, and what each has. */
#include "api/operate/operate.h"

#include "base/json.h"

#include <jansson.h>
#include <stdio.h>

struct nodes_read {
    struct session *sessions;
    size_t session_count;
    struct shard *shards;
    size_t shard_count;
    struct saved *wishes;
    size_t wish_count;
    struct slice pins; /* {"DESTINATION":"NODE"} */
    struct node_figures figures;
    const struct session *one; /* of a drain */
};

static enum status read_nodes(struct call *call, struct store_reader *reader, struct error *err)
{
    struct nodes_read *read = call->context;
    if (!reader->ops->reader_sessions)
        return STATUS_OK; /* it is for one node */
    enum status status = reader->ops->reader_sessions(reader, &call->memory, &read->sessions, &read->session_count, err);
    if (status == STATUS_OK)
        status = reader->ops->reader_shards(reader, &call->memory, &read->shards, &read->shard_count, err);
    if (status == STATUS_OK)
        status = reader->ops->reader_saved_list(reader, SPACE_NODE, SLICE(""), NODES_SHOWN_MAX, &call->memory, &read->wishes,
                                                &read->wish_count, err);
    if (status == STATUS_OK)
        status = reader->ops->reader_saved(reader, SPACE_PINS, PINS_NAME, &call->memory, &read->pins, err);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static void drain_wish(const struct session *session, char ret_wish[48])
{
    snprintf(ret_wish, 48, "{\"drain\":%lld}", (long long)session->number);
}

static bool is_draining(const struct nodes_read *read, const struct session *session)
{
    char wish[48];
    drain_wish(session, wish);
    for (size_t i = 0; i < read->wish_count; i++)
        if (slice_equal(read->wishes[i].name, session->node) && slice_equal(read->wishes[i].value, slice_from(wish)))
            return true;
    return false;
}

static int64_t silent_ms(const struct nodes_read *read, const struct session *session)
{
    for (size_t i = 0; i < read->figures.count; i++)
        if (read->figures.nodes[i].session == session->number)
            return read->figures.nodes[i].silent_ms;
    return 0;
}

/* Those that are its own for as long as it runs. */
static void write_pinned(struct json_writer *json, json_t *pins, const struct session *session)
{
    const char *destination;
    json_t *node;
    json_member_array(json, "pinned");
    json_object_foreach(pins, destination, node)
        if (slice_equal(slice_from(json_string_value(node)), session->node))
            json_put_string(json, slice_from(destination));
    json_array_end(json);
}

static void write_node(struct json_writer *json, const struct nodes_read *read, json_t *pins, const struct session *session)
{
    bool steward = false;
    json_object_begin(json);
    json_member_string(json, "name", session->node);
    json_member_string(json, "url", session->url);
    json_member_string(json, "version", session->version);
    json_member_instant(json, "since", session->since);
    json_member_int(json, "last_seen_ms", silent_ms(read, session));
    json_member_bool(json, "draining", is_draining(read, session));
    json_member_array(json, "destinations");
    for (size_t i = 0; i < read->shard_count; i++) {
        bool has = read->shards[i].session == session->number;
        steward = steward || (has && read->shards[i].destination.len == 0);
        if (has && read->shards[i].destination.len > 0)
            json_put_string(json, read->shards[i].destination);
    }
    json_array_end(json);
    write_pinned(json, pins, session);
    json_member_bool(json, "steward", steward);
    json_object_end(json);
}

static void answer_nodes(struct call *call)
{
    struct nodes_read *read = call->context;
    const struct api_settings *settings = &call->api->settings;
    struct json_writer *json = call_answer(call);
    json_t *pins = json_loadb(read->pins.data ? read->pins.data : "{}", read->pins.data ? read->pins.len : 2, 0, NULL);
    if (settings->node_figures)
        settings->node_figures(settings->context, &read->figures);
    json_member_array(json, "nodes");
    for (size_t i = 0; i < read->session_count; i++)
        if (!read->sessions[i].ended)
            write_node(json, read, pins, &read->sessions[i]);
    json_array_end(json);
    json_decref(pins);
    call_answer_send(call, 200);
}

void handle_nodes_list(struct call *call)
{
    if (call_context(call, sizeof(struct nodes_read)))
        call_read(call, read_nodes, answer_nodes);
}

/* ---- draining ---- */

static void after_drain(struct call *call)
{
    const struct nodes_read *read = call->context;
    if (call->batch->status != STATUS_OK) {
        call_store_problem(call, call->batch->status, &call->batch->error);
        return;
    }
    struct json_writer *json = call_answer(call);
    json_member_string(json, "name", read->one->node);
    json_member_text(json, "state", "draining");
    call_answer_send(call, 200);
}

static bool fill_drain(struct call *call, const struct session *session)
{
    char wish[48];
    struct buffer note = call_buffer();
    struct json_writer json = json_begin(&note);
    json_member_text(&json, "note", "node_drained");
    json_member_string(&json, "node", session->node);
    json_member_string(&json, "by", call->who);
    json_object_end(&json);
    drain_wish(session, wish);
    struct slice value = arena_copy(&call->memory, slice_from(wish)), data = buffer_into(&note, &call->memory);
    call->batch = value.data && data.data ? batch_new(2, 1 << 16) : NULL;
    if (!call->batch)
        return false;
    batch_save(call->batch, SPACE_NODE, session->node, value);
    call->batch->ops[call->batch->count++] = (struct store_op){ .kind = OP_NOTE, .data = data };
    return true;
}

static void drain(struct call *call)
{
    struct nodes_read *read = call->context;
    for (size_t i = 0; i < read->session_count; i++)
        if (!read->sessions[i].ended && slice_equal(read->sessions[i].node, call->parameters[0]))
            read->one = &read->sessions[i];
    if (!read->one)
        call_problem(call, 404, "node_not_found", "no node \"%.*s\" is running", SLICE_ARG(call->parameters[0]));
    else if (fill_drain(call, read->one))
        call_submit(call, after_drain);
    else
        call_no_memory(call);
}

/* What it has goes to the others, and it takes nothing more until it is started anew. */
void handle_node_drain(struct call *call)
{
    if (call_context(call, sizeof(struct nodes_read)))
        call_read(call, read_nodes, drain);
}
