/*
 * Incidents: the list, one of them, its report, and what was learned from it.
 */
#include "api/call/body.h"
#include "api/call/confined.h"
#include "api/call/counts.h"
#include "api/call/query.h"
#include "api/operate/operate.h"
#include "api/operate/incident_report.h"
#include "base/log.h"
#include "engine/saved/json.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum {
    LESSONS_BYTES_MAX = 16 * 1024,
    LOOKED_AT_MAX = 1000, /* rows for one page, however few are found */
    ROWS_AT_ONCE_MIN = 100,
};

/* ---- what is shown of one ---- */

/* While it lasts the jobs are counted now; *counts is read once for all. False: answered already. */
static bool take_stock(struct call *call, struct counts **counts, struct incident_view *view)
{
    view->stock = view->record.last;
    if (view->confined || view->record.mode == MODE_NORMAL)
        return true;
    if (!*counts) {
        struct counts *read = call_alloc(call, sizeof *read);
        if (!read || !counts_read(call, read))
            return false;
        *counts = read;
    }
    const struct destination_total *found = counts_find(*counts, view->record.destination);
    view->stock.known = true;
    if (found)
        view->stock = (struct incident_stock){
            .known = true,
            .pending = found->counts.pending + found->counts.waiting + found->counts.running,
            .completed = found->counts.completed,
            .dead = found->counts.dead,
        };
    return true;
}

static struct incident_view view_of(const struct call *call, struct slice id, const struct incident_record *record)
{
    struct incident_view view = {
        .id = id,
        .record = *record,
        .lessons = SLICE(""),
        .lessons_by = SLICE(""),
        .lessons_at = INSTANT_NONE,
        .config = config_destination(call->api->config, record->destination),
        .now = api_now(call->api),
    };
    if (call->tenant_bound.data)
        incident_confine(&view);
    return view;
}

/* ---- the list ---- */

struct incident_page {
    struct slice destination;
    size_t limit, written, looked_at;
    struct slice last; /* id of the last one that was looked at; empty: none */
    bool more;
    struct counts *counts;
};

/* STATUS_OK; *answered: the call is, with a problem. */
static enum status write_page(struct call *call, struct incident_page *page, struct json_writer *json, bool *answered,
                              struct error *err)
{
    struct store_reader *reader = call->api->reader;
    struct saved *saved;
    size_t count;
    size_t max = page->limit > ROWS_AT_ONCE_MIN ? page->limit : ROWS_AT_ONCE_MIN;
    enum status status =
        reader->ops->reader_saved_list(reader, SPACE_INCIDENT, page->last, max, &call->memory, &saved, &count, err);
    page->more = status == STATUS_OK && count == max;
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        struct incident_record record;
        if (page->written == page->limit) {
            page->more = true;
            return STATUS_OK;
        }
        page->last = saved[i].name;
        page->looked_at++;
        if (incident_record_read(saved[i].value, &call->memory, &record) != STATUS_OK)
            continue; /* of a version to come */
        if (page->destination.len > 0 && !slice_equal(page->destination, record.destination))
            continue;
        struct incident_view view = view_of(call, saved[i].name, &record);
        *answered = !take_stock(call, &page->counts, &view);
        if (*answered)
            return STATUS_OK;
        incident_json(json, &view, false);
        page->written++;
    }
    return status;
}

void handle_incidents_list(struct call *call)
{
    struct incident_page page = { .destination = call_query(call, "destination"), .last = call_query(call, "cursor"),
                                  .more = true };
    struct error error;
    enum status status = STATUS_OK;
    bool answered = false;
    if (!call_limit(call, &page.limit))
        return;
    struct buffer body = call_buffer();
    struct json_writer json = json_writer(&body);
    json_object_begin(&json);
    json_name(&json, "incidents");
    json_array_begin(&json);
    while (status == STATUS_OK && !answered && page.more && page.written < page.limit && page.looked_at < LOOKED_AT_MAX)
        status = write_page(call, &page, &json, &answered, &error);
    json_array_end(&json);
    json_name(&json, "next");
    if (page.more)
        json_put_string(&json, page.last);
    else
        json_put_null(&json);
    json_object_end(&json);
    if (!answered && status == STATUS_OK) {
        call_json(call, 200, &body);
        return;
    }
    buffer_release(&body);
    if (!answered)
        call_store_problem(call, status, &error);
}

/* ---- one ---- */

static enum status read_lessons(struct call *call, struct incident_view *view, struct error *err)
{
    struct store_reader *reader = call->api->reader;
    struct slice value;
    enum status status =
        reader->ops->reader_saved(reader, SPACE_INCIDENT_LESSONS, view->id, &call->memory, &value, err);
    if (status != STATUS_OK)
        return status == STATUS_NOT_FOUND ? STATUS_OK : status;
    json_t *root = json_loadb(value.data, value.len, 0, NULL);
    view->lessons = arena_copy(&call->memory, saved_text(root, "text"));
    view->lessons_by = arena_copy(&call->memory, saved_text(root, "by"));
    view->lessons_at = saved_instant(root, "at");
    json_decref(root);
    if (view->lessons.data && view->lessons_by.data)
        return STATUS_OK;
    return error_set(err, STATUS_NO_MEMORY, "no memory for the answer");
}

/* The one that the path names. False: answered already. */
static bool find_incident(struct call *call, struct incident_view *ret_view)
{
    struct store_reader *reader = call->api->reader;
    struct slice id = call->parameters[0], value;
    struct incident_record record;
    struct counts *counts = NULL;
    struct error error;
    enum status status = reader->ops->reader_saved(reader, SPACE_INCIDENT, id, &call->memory, &value, &error);
    if (status == STATUS_OK)
        status = incident_record_read(value, &call->memory, &record);
    if (status == STATUS_NOT_FOUND || status == STATUS_INVALID) {
        call_problem(call, 404, "incident_not_found", "there is no incident of this id; GET /v1/incidents lists them");
        return false;
    }
    if (status == STATUS_NO_MEMORY) {
        call_no_memory(call);
        return false;
    }
    if (status != STATUS_OK) {
        call_store_problem(call, status, &error);
        return false;
    }
    *ret_view = view_of(call, id, &record);
    if (!take_stock(call, &counts, ret_view))
        return false;
    status = ret_view->confined ? STATUS_OK : read_lessons(call, ret_view, &error);
    if (status == STATUS_OK)
        return true;
    call_store_problem(call, status, &error);
    return false;
}

static void answer_json(struct call *call)
{
    struct incident_view view;
    if (!find_incident(call, &view))
        return;
    struct buffer body = call_buffer();
    struct json_writer json = json_writer(&body);
    incident_json(&json, &view, true);
    call_json(call, 200, &body);
}

void handle_incident_report(struct call *call)
{
    struct incident_view view;
    if (!find_incident(call, &view))
        return;
    struct buffer body = call_buffer();
    incident_report(&body, &view);
    call_send(call, 200, "text/markdown; charset=utf-8", &body);
}

static bool wants_markdown(const struct call *call)
{
    struct slice accept = call_header(call, SLICE("Accept"));
    return slice_search(accept, SLICE("text/markdown")) < accept.len;
}

void handle_incident_get(struct call *call)
{
    if (wants_markdown(call))
        handle_incident_report(call);
    else
        answer_json(call);
}

/* ---- what was learned ---- */

static void after_lessons(struct call *call)
{
    enum status status = call->batch->status;
    for (size_t i = 0; i < call->batch->count && status == STATUS_OK; i++)
        status = call->batch->ops[i].status;
    if (call->batch->status != STATUS_OK)
        call_store_problem(call, status, &call->batch->error);
    else if (status != STATUS_OK)
        call_problem(call, 422, "refused", "the store refused it: %s", status_name(status));
    else
        answer_json(call);
}

/* The text itself is kept beside the incident; the trail says who wrote when. */
static bool fill(struct call *call, struct slice id, struct slice text)
{
    struct buffer value, note;
    buffer_init(&value, 8 * LESSONS_BYTES_MAX);
    buffer_init(&note, EVENT_DATA_BYTES_MAX);
    struct json_writer json = json_writer(&value);
    json_object_begin(&json);
    json_member_string(&json, "text", text);
    json_member_string(&json, "by", call->who);
    json_member_instant(&json, "at", api_now(call->api));
    json_object_end(&json);
    json = json_writer(&note);
    json_object_begin(&json);
    json_member_text(&json, "note", "incident_lessons");
    json_member_string(&json, "incident", id);
    json_member_string(&json, "by", call->who);
    json_member_int(&json, "bytes", (int64_t)text.len);
    json_object_end(&json);
    struct store_op *ops = call->batch->ops;
    ops[0].kind = OP_SAVE;
    ops[0].save = (struct op_save){ .space = SPACE_INCIDENT_LESSONS, .name = id };
    ops[0].save.value = text.len > 0 ? arena_copy(&call->memory, buffer_slice(&value)) : SLICE("");
    ops[1].kind = OP_NOTE;
    ops[1].data = arena_copy(&call->memory, buffer_slice(&note));
    call->batch->count = 2;
    bool whole = buffer_status(&value) == STATUS_OK && buffer_status(&note) == STATUS_OK;
    buffer_release(&value);
    buffer_release(&note);
    return whole && ops[0].save.value.data && ops[1].data.data;
}

void handle_incident_patch(struct call *call)
{
    static const char *const names[] = { "lessons_learned", NULL };
    struct incident_view view;
    struct slice text;
    if (call->tenant_bound.data) {
        call_problem(call, 403, "forbidden_tenant", "this token acts for one tenant; an incident concerns all of them");
        return;
    }
    json_t *body = body_object(call, names);
    if (!body)
        return;
    bool given = member_get(body, "lessons_learned") != NULL;
    bool read = given && body_text(call, body, "lessons_learned", LESSONS_BYTES_MAX, &text);
    json_decref(body);
    if (!given)
        call_problem(call, 422, "invalid_member", "lessons_learned must be there; an empty text takes them away");
    if (!read || !find_incident(call, &view))
        return;
    call->batch = batch_new(2, SIZE_MAX / 4);
    if (!call->batch || !fill(call, view.id, text)) {
        call_no_memory(call);
        return;
    }
    call_submit(call, after_lessons);
}
