/*
 * Tenants: what each has at each destination, and how it fares in the turns.
 */
#include "api/call/counts.h"
#include "api/call/query.h"
#include "api/operate/operate.h"

struct tenant_row {
    struct lane lane;
    struct tenant_status status;
};

struct tenant_page {
    struct tenant_row *rows;
    size_t count;
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

/* Reads lanes until the page is full. */
static enum status read_page(struct call *call, struct tenant_page *page, size_t limit, int64_t after, struct error *err)
{
    struct store_reader *reader = call->api->reader;
    struct slice destination = call_query(call, "destination");
    size_t count;
    do {
        struct arena memory = { 0 };
        struct lane *lanes;
        enum status status = reader->ops->reader_lanes(reader, after, STORE_PAGE_MAX, &memory, &lanes, &count, err);
        for (size_t i = 0; status == STATUS_OK && i < count && page->count < limit; i++) {
            after = lanes[i].id;
            if (lane_is_wanted(call, &lanes[i], destination))
                status = keep_row(call, page, &lanes[i], err);
        }
        arena_release(&memory);
        if (status != STATUS_OK)
            return status;
    } while (count == STORE_PAGE_MAX && page->count < limit);
    page->next = page->count < limit ? 0 : after;
    return STATUS_OK;
}

/* The e-mail document's TenantFairnessMetrics, by its names. S2-069 */
static void write_fairness(struct json_writer *json, const struct tenant_row *row)
{
    const struct turn_figures *turns = &row->status.turns;
    json_name(json, "fairness");
    json_object_begin(json);
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
    struct buffer body = call_buffer();
    struct json_writer json = json_writer(&body);
    json_object_begin(&json);
    json_name(&json, "tenants");
    json_array_begin(&json);
    for (size_t i = 0; i < page->count; i++) {
        const struct tenant_row *row = &page->rows[i];
        json_object_begin(&json);
        json_member_string(&json, "tenant", row->lane.tenant);
        json_member_string(&json, "destination", row->lane.destination);
        counts_write(&json, &row->lane.counts);
        if (row->status.known)
            write_fairness(&json, row);
        json_object_end(&json);
    }
    json_array_end(&json);
    json_member_cursor(&json, page->next);
    json_object_end(&json);
    call_json(call, 200, &body);
}

static void ask_turns(struct call *call, struct engine *engine)
{
    struct tenant_page *page = call->context;
    for (size_t i = 0; i < page->count; i++)
        page->rows[i].status = engine_tenant(engine, page->rows[i].lane.id);
    call_return(call);
}

void handle_tenants_list(struct call *call)
{
    size_t limit;
    int64_t after;
    struct error error;
    struct slice destination = call_query(call, "destination");
    if (!call_limit(call, &limit) || !call_cursor(call, "cursor", &after) ||
        (destination.len > 0 && !destination_is_not_misspelt(call, destination)))
        return;
    struct tenant_page *page = arena_alloc(&call->memory, sizeof *page);
    struct tenant_row *rows = page ? arena_alloc_array(&call->memory, limit, sizeof *rows) : NULL;
    if (!rows) {
        call_no_memory(call);
        return;
    }
    *page = (struct tenant_page){ .rows = rows };
    enum status status = read_page(call, page, limit, after, &error);
    if (status != STATUS_OK) {
        call_store_problem(call, status, &error);
        return;
    }
    call->context = page;
    call_engine(call, ask_turns, answer_tenants);
}
