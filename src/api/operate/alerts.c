/*
 * Alerts: those that stand, and those that are over; and that somebody knows of one.
 */
#include "api/call/ask.h"
#include "api/call/body.h"
#include "api/call/counts.h"
#include "api/call/query.h"
#include "api/operate/operate.h"
#include "config/problems.h"
#include "engine/alerts/alert_record.h"
#include "engine/orders.h"

#include <jansson.h>

enum {
    LOOKED_AT_MAX = 1000, /* rows for one page, however few are found */
    ROWS_AT_ONCE_MIN = 100,
};

struct alert_page {
    bool view, cleared; /* which are asked for */
    struct slice destination, severity, name;
    struct slice tenant; /* .data NULL: all */
    size_t limit, written, looked_at;
    struct slice last; /* id of the last one that was looked at; empty: none */
    bool more;         /* in this space */
    bool in_cleared;   /* which it is */
    struct saved *unwritten; /* what stands and is not in the store, which may be full */
    size_t unwritten_count;
    bool unwritten_more, no_memory;
};

static bool is_text(const json_t *root, const char *name, struct slice wanted)
{
    const json_t *member = json_object_get(root, name);
    return json_is_string(member) && slice_equal(wanted, slice_from(json_string_value(member)));
}

/* A token that acts for one tenant sees what is about that tenant, and nothing of what all of them have together. */
static bool is_wanted(const struct alert_page *page, struct slice value)
{
    json_t *root = json_loadb(value.data, value.len, 0, NULL);
    bool wanted = json_is_object(root) && (!page->tenant.data || is_text(root, "tenant", page->tenant)) &&
                  (page->destination.len == 0 || is_text(root, "destination", page->destination)) &&
                  (page->severity.len == 0 || is_text(root, "severity", page->severity)) &&
                  (page->name.len == 0 || is_text(root, "alert", page->name));
    json_decref(root);
    return wanted;
}

/* False: the page is full, and more follow. */
static bool put_alert(struct call *call, struct alert_page *page, const struct saved *alert)
{
    if (page->written == page->limit) {
        page->more = true;
        return false;
    }
    page->last = alert->name;
    page->looked_at++;
    if (is_wanted(page, alert->value)) {
        json_put_raw(&call->answer.json, alert->value);
        page->written++;
    }
    return true;
}

/* Those that are newer than the next one that the store has (NULL: it has no more). False: as above. */
static bool put_unwritten(struct call *call, struct alert_page *page, const struct saved *next)
{
    for (; page->unwritten_count > 0; page->unwritten++, page->unwritten_count--) {
        int order = next ? slice_compare(page->unwritten->name, next->name) : 1;
        if (order < 0)
            return true;
        if (order > 0 && !put_alert(call, page, page->unwritten)) /* else it has been written meanwhile */
            return false;
    }
    if (page->unwritten_more) {
        page->more = true;
        page->looked_at = LOOKED_AT_MAX;
    }
    return !page->unwritten_more;
}

static enum status write_some(struct call *call, struct store_reader *reader, struct alert_page *page, struct error *err)
{
    struct slice space = page->in_cleared ? SPACE_ALERT_CLEARED : SPACE_ALERT;
    struct saved *saved;
    size_t count;
    size_t max = page->limit > ROWS_AT_ONCE_MIN ? page->limit : ROWS_AT_ONCE_MIN;
    enum status status = reader->ops->reader_saved_list(reader, space, page->last, max, &call->memory, &saved, &count, err);
    page->more = status == STATUS_OK && count == max;
    for (size_t i = 0; status == STATUS_OK && i < count; i++)
        if (!put_unwritten(call, page, &saved[i]) || !put_alert(call, page, &saved[i]))
            return STATUS_OK;
    if (status == STATUS_OK && !page->more)
        put_unwritten(call, page, NULL);
    return status;
}

/* A piece is a read of one space; behind those that stand come those that are over. */
static enum status read_page(struct call *call, struct store_reader *reader, struct error *err)
{
    struct alert_page *page = call->context;
    enum status status = write_some(call, reader, page, err);
    if (status != STATUS_OK)
        return status;
    bool full = page->written == page->limit || page->looked_at >= LOOKED_AT_MAX;
    call->reading.more = page->more && !full;
    if (!page->more && !page->in_cleared && page->cleared) {
        page->in_cleared = page->more = call->reading.more = true;
        page->last = SLICE("");
    }
    return STATUS_OK;
}

/* "cleared/ID" goes on among those that are over. */
static const struct slice cleared_mark = { "cleared/", 8 };

static void answer_page(struct call *call)
{
    const struct alert_page *page = call->context;
    struct buffer next = buffer_up_to(2 * ALERT_ID_BYTES);
    if (page->more && page->in_cleared)
        buffer_append(&next, cleared_mark);
    if (page->more)
        buffer_append(&next, page->last);
    json_array_end(&call->answer.json);
    json_member_or_null(&call->answer.json, "next", buffer_slice(&next));
    buffer_release(&next);
    call_answer_send(call, 200);
}

static void begin_reading(struct call *call)
{
    json_member_array(call_answer(call), "alerts");
    call_read(call, read_page, answer_page);
}

static bool run_unwritten(struct call *call, struct engine *engine)
{
    struct alert_page *page = call->context;
    page->no_memory = engine_alerts_unwritten(engine, page->last, page->limit, &call->memory, &page->unwritten,
                                              &page->unwritten_count, &page->unwritten_more) != STATUS_OK;
    return true;
}

static void after_unwritten(struct call *call)
{
    const struct alert_page *page = call->context;
    if (page->no_memory)
        call_no_memory(call);
    else
        begin_reading(call);
}

static void begin_page(struct call *call)
{
    struct alert_page *page = call->context;
    page->in_cleared = !page->view;
    if (page->view)
        ask_here(call, run_unwritten, after_unwritten);
    else
        begin_reading(call);
}

/* A list of what nothing is called would be empty, and look like good news. False: answered already. */
static bool filter_is_known(struct call *call, const struct alert_page *page)
{
    struct nearest nearest = { .wanted = page->name };
    bool severity = page->severity.len == 0;
    for (int i = SEVERITY_INFO; i <= SEVERITY_CRITICAL && !severity; i++)
        severity = slice_equal(page->severity, slice_from(alert_severity_name((enum alert_severity)i)));
    if (!severity)
        return call_problem(call, 422, "invalid_parameter", "severity must be critical, warning or info");
    if (page->name.len > 0 && alert_kind_from_name(page->name) == ALERT_KIND_COUNT) {
        for (int i = 0; i < ALERT_KIND_COUNT; i++)
            nearest_offer(&nearest, alert_types[i].name);
        return call_problem(call, 422, "invalid_parameter", "there is no alert \"%s\"%s%s%s", quote(page->name).text,
                            nearest.name ? "; did you mean \"" : "", nearest.name ? nearest.name : "",
                            nearest.name ? "\"?" : "");
    }
    return true;
}

/* --- acknowledging ------------------------------------------------------------------------------ */

enum { NOTE_BYTES_MAX = 1024 };

struct ack_order {
    struct alert_ack ack;
    enum status status;
    struct error error;
    struct saved_wait saved; /* only when the status is good */
};

/* As it is saved now: among those that stand, or, ended by this, among the others. */
static enum status read_acked(struct call *call, struct store_reader *reader, struct error *err)
{
    struct slice *value = call->context;
    enum status status = reader->ops->reader_saved(reader, SPACE_ALERT, call->parameters[0], &call->memory, value, err);
    if (status == STATUS_NOT_FOUND)
        status = reader->ops->reader_saved(reader, SPACE_ALERT_CLEARED, call->parameters[0], &call->memory, value, err);
    return status == STATUS_NOT_FOUND ? error_set(err, STATUS_IO, "the alert is gone") : status;
}

static void write_acked(struct call *call)
{
    const struct slice *value = call->context;
    struct buffer body = call_buffer();
    buffer_append(&body, *value);
    call_json(call, 200, &body);
}

static void answer_acked(struct call *call)
{
    if (call_context(call, sizeof(struct slice)))
        call_read(call, read_acked, write_acked);
}

static void after_ack(struct call *call)
{
    const struct ack_order *order = call->context;
    if (order->status == STATUS_NOT_FOUND)
        call_problem(call, 404, "alert_not_found", "%s", order->error.text);
    else if (order->status != STATUS_OK)
        call_problem(call, 503, "not_done", "%s", order->error.text);
    else if (order->saved.error.status != STATUS_OK)
        call_problem(call, 503, "not_kept", "it could not be written: %s", order->saved.error.text);
    else
        answer_acked(call);
}

static bool run_ack(struct call *call, struct engine *engine)
{
    struct ack_order *order = call->context;
    order->saved = ask_saved(call);
    order->status = engine_ack_alert(engine, &order->ack, &order->saved, &order->error);
    return order->status != STATUS_OK;
}

void handle_alert_ack(struct call *call)
{
    struct ack_order *order = call_context(call, sizeof *order);
    if (!order || !body_text(call, "note", NOTE_BYTES_MAX, &order->ack.note))
        return;
    order->ack.id = call->parameters[0];
    order->ack.by = call->who;
    order->ack.tenant = call->tenant_bound;
    ask_here(call, run_ack, after_ack);
}

/* --- the list ------------------------------------------------------------------------------------- */

void handle_alerts_list(struct call *call)
{
    struct slice state = call_query(call, "state"), cursor = call_query(call, "cursor");
    struct alert_page *page = call_context(call, sizeof *page);
    if (!page)
        return;
    *page = (struct alert_page){ .destination = call_query(call, "destination"), .severity = call_query(call, "severity"),
                                 .name = call_query(call, "alert"), .tenant = call->tenant_bound, .last = cursor };
    bool all = slice_equal(state, SLICE("all"));
    page->cleared = all || slice_equal(state, SLICE("cleared"));
    page->view = all || state.len == 0 || slice_equal(state, SLICE("standing"));
    if (!page->view && !page->cleared) {
        call_problem(call, 422, "invalid_state", "state must be standing, cleared or all");
        return;
    }
    if (slice_has_prefix(cursor, cleared_mark)) {
        page->view = false;
        page->last = slice_from_offset(cursor, cleared_mark.len);
    }
    if (filter_is_known(call, page) && call_limit(call, &page->limit))
        destination_check(call, begin_page);
}
