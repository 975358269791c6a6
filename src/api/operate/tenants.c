/*
 * Tenants: what each has at each destination, and how it fares in the turns.
 */
#include "api/call/ask.h"
#include "api/call/counts.h"
#include "api/call/query.h"
#include "api/operate/operate.h"
#include "engine/status.h"

struct tenant_row {
    struct lane lane;
    struct tenant_status status;
};

struct tenant_page {
    struct tenant_row *rows;
    size_t count, limit;
    int64_t next; /* cursor of the page to follow; 0: this is the last */
};

static bool lane_is_wanted(const struct call *call, const struct lane *lane, struct slice destination)
{
    return (destination.len == 0 || slice_equal(lane->destination, destination)) &&
           (!call->tenant_bound.data || slice_equal(lane->tenant, call->tenant_bound));
}

/* A copy in the call's memory; the page it was read with goes. */
static enum status keep_row(struct call *call, struct tenant_page *page, const struct lane *lane, struct error *err)
{
    struct lane copy = *lane;
    copy.destination = arena_copy(&call->memory, lane->destination);
    copy.tenant = arena_copy(&call->memory, lane->tenant);
    if (!copy.destination.data || !copy.tenant.data)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the tenants");
    page->rows[page->count++].lane = copy;
    return STATUS_OK;
}

/* A piece is a page of lanes, until this page is full. */
static enum status read_page(struct call *call, struct store_reader *reader, struct error *err)
{
    struct tenant_page *page = call->context;
    struct slice destination = call_query(call, "destination");
    struct arena memory = { 0 };
    struct lane *lanes;
    size_t count;
    enum status status = reader->ops->reader_lanes(reader, page->next, STORE_PAGE_MAX, &memory, &lanes, &count, err);
    for (size_t i = 0; status == STATUS_OK && i < count && page->count < page->limit; i++) {
        page->next = lanes[i].id;
        if (lane_is_wanted(call, &lanes[i], destination))
            status = keep_row(call, page, &lanes[i], err);
    }
    arena_release(&memory);
    call->reading.more = status == STATUS_OK && count == STORE_PAGE_MAX && page->count < page->limit;
    return status;
}

/* The e-mail document's TenantFairnessMetrics, by its names (S2-069). */
static void write_fairness(struct json_writer *json, const struct tenant_row *row)
{
    const struct turn_figures *turns = &row->status.turns;
    json_member_object(json, "fairness");
    json_member_string(json, "companyId", row->lane.tenant);
    json_member_instant(json, "lastProcessedAt", turns->last_at);
    json_member_int(json, "roundsWithoutProcessing", turns->rounds_without);
    json_member_int(json, "currentPriority", turns->priority);
    json_member_int(json, "totalProcessed", turns->total);
    json_member_int(json, "consecutiveBatchCount", turns->in_a_row);
    json_member_int(json, "weight", row->status.weight);
    json_object_end(json);
}

static void answer_tenants(struct call *call)
{
    const struct tenant_page *page = call->context;
    struct json_writer *json = call_answer(call);
    json_member_array(json, "tenants");
    for (size_t i = 0; i < page->count; i++) {
        const struct tenant_row *row = &page->rows[i];
        json_object_begin(json);
        json_member_string(json, "tenant", row->lane.tenant);
        json_member_string(json, "destination", row->lane.destination);
        counts_write(json, &row->lane.counts);
        if (row->status.known)
            write_fairness(json, row);
        json_object_end(json);
    }
    json_array_end(json);
    json_member_cursor(json, page->next);
    call_answer_send(call, 200);
}

static bool ask_turns(struct call *call, struct engine *engine)
{
    struct tenant_page *page = call->context;
    for (size_t i = 0; i < page->count; i++)
        page->rows[i].status = engine_tenant(engine, page->rows[i].lane.id);
    return true;
}

static void ask_engine(struct call *call)
{
    struct tenant_page *page = call->context;
    page->next = page->count < page->limit ? 0 : page->next;
    ask_here(call, ask_turns, answer_tenants);
}

static void read_tenants(struct call *call)
{
    call_read(call, read_page, ask_engine);
}

void handle_tenants_list(struct call *call)
{
    struct tenant_page *page = call_context(call, sizeof *page);
    if (!page || !call_limit(call, &page->limit) || !call_cursor(call, "cursor", &page->next))
        return;
    page->rows = arena_alloc_array(&call->memory, page->limit, sizeof *page->rows);
    if (page->rows)
        destination_check(call, read_tenants);
    else
        call_no_memory(call);
}
