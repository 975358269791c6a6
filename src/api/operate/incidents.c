/*
 * Incidents: the list, one of them, its report, and what was learned from it.
 */
#include "api/call/body.h"
#include "api/call/counts.h"
#include "api/call/query.h"
#include "api/operate/operate.h"
#include "api/operate/incident_report.h"
#include "base/log.h"
#include "engine/saved/json.h"

#include <jansson.h>

enum {
    LESSONS_BYTES_MAX = 16 * 1024,
    LOOKED_AT_MAX = 1000, /* rows for one page, however few are found */
    ROWS_AT_ONCE_MIN = 100,
};

/* ---- what is shown of one ---- */

/* While it lasts the jobs are counted now; *counts is read once for all. */
static enum status take_stock(struct call *call, struct store_reader *reader, struct counts *counts,
                              struct incident_view *view, struct error *err)
{
    view->stock = view->record.last;
    if (view->confined || view->record.mode == MODE_NORMAL)
        return STATUS_OK;
    enum status status = counts->items ? STATUS_OK : counts_list(call, reader, 0, counts, err);
    if (status != STATUS_OK)
        return status;
    const struct destination_total *found = counts_find(counts, view->record.destination);
    view->stock.known = true;
    if (found)
        view->stock = (struct incident_stock){
            .known = true,
            .pending = found->counts.pending + found->counts.waiting + found->counts.running,
            .completed = found->counts.completed,
            .dead = found->counts.dead,
        };
    return STATUS_OK;
}

static struct incident_view view_of(const struct call *call, struct slice id, const struct incident_record *record)
{
    struct incident_view view = {
        .id = id,
        .record = *record,
        .lessons = SLICE(""),
        .lessons_by = SLICE(""),
        .lessons_at = INSTANT_NONE,
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
    struct counts counts;
};

/* A piece is one read of them. */
static enum status read_page(struct call *call, struct store_reader *reader, struct error *err)
{
    struct incident_page *page = call->context;
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
        status = take_stock(call, reader, &page->counts, &view, err);
        if (status != STATUS_OK)
            return status;
        incident_json(&call->answer.json, &view, false);
        page->written++;
    }
    call->reading.more = page->more && page->written < page->limit && page->looked_at < LOOKED_AT_MAX;
    return status;
}

static void answer_page(struct call *call)
{
    struct incident_page *page = call->context;
    json_array_end(&call->answer.json);
    json_member_or_null(&call->answer.json, "next", page->more ? page->last : SLICE(""));
    call_answer_send(call, 200);
}

void handle_incidents_list(struct call *call)
{
    struct incident_page *page = call_context(call, sizeof *page);
    if (!page || !call_limit(call, &page->limit))
        return;
    page->destination = call_query(call, "destination");
    page->last = call_query(call, "cursor");
    json_member_array(call_answer(call), "incidents");
    call_read(call, read_page, answer_page);
}

/* ---- one ---- */

static enum status read_lessons(struct call *call, struct store_reader *reader, struct incident_view *view,
                                struct error *err)
{
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

/* Reads the one that the path names. */
struct one_incident {
    struct incident_view view;
    void (*found)(struct call *call);
    struct slice lessons; /* that are to be written */
};

static enum status read_incident(struct call *call, struct store_reader *reader, struct error *err)
{
    struct one_incident *one = call->context;
    struct slice id = call->parameters[0], value;
    struct incident_record record;
    struct counts counts = { 0 };
    enum status status = reader->ops->reader_saved(reader, SPACE_INCIDENT, id, &call->memory, &value, err);
    if (status == STATUS_OK)
        status = incident_record_read(value, &call->memory, &record);
    if (status == STATUS_INVALID)
        return STATUS_NOT_FOUND;
    if (status != STATUS_OK)
        return status == STATUS_NO_MEMORY ? error_set(err, status, "no memory for the answer") : status;
    one->view = view_of(call, id, &record);
    status = take_stock(call, reader, &counts, &one->view, err);
    return status != STATUS_OK || one->view.confined ? status : read_lessons(call, reader, &one->view, err);
}

static void incident_was_read(struct call *call)
{
    const struct one_incident *one = call->context;
    if (call->reading.status == STATUS_OK)
        one->found(call);
    else
        call_problem(call, 404, "incident_not_found",
                     "there is no incident of this id; insist incidents lists them");
}

static void find_incident(struct call *call, void (*found)(struct call *call))
{
    struct one_incident *one = call->context ? call->context : call_context(call, sizeof *one);
    if (!one)
        return;
    one->found = found;
    call_read(call, read_incident, incident_was_read);
}

static void answer_json(struct call *call)
{
    const struct one_incident *one = call->context;
    struct buffer body = call_buffer();
    struct json_writer json = json_writer(&body);
    incident_json(&json, &one->view, true);
    call_json(call, 200, &body);
}

static void answer_report(struct call *call)
{
    struct one_incident *one = call->context;
    struct buffer body = call_buffer();
    if (!one->view.confined) /* the limits are those that all share */
        one->view.config = config_destination(call->api->config, one->view.record.destination);
    incident_report(&body, &one->view);
    call_send(call, 200, "text/markdown; charset=utf-8", &body);
}

void handle_incident_report(struct call *call)
{
    find_incident(call, answer_report);
}

static bool wants_markdown(const struct call *call)
{
    struct slice accept = call_header(call, SLICE("Accept"));
    return slice_search(accept, SLICE("text/markdown")) < accept.len;
}

void handle_incident_get(struct call *call)
{
    find_incident(call, wants_markdown(call) ? answer_report : answer_json);
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
        find_incident(call, answer_json);
}

/* The text itself is saved beside the incident; the trail says who wrote when. */
static bool fill(struct call *call, struct slice id, struct slice text)
{
    struct buffer value = buffer_up_to(8 * LESSONS_BYTES_MAX), note = buffer_up_to(EVENT_DATA_BYTES_MAX);
    struct json_writer json = json_begin(&value);
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
    struct slice lessons = buffer_into(&value, &call->memory);
    ops[0].save.value = text.len > 0 ? lessons : SLICE("");
    ops[1].kind = OP_NOTE;
    ops[1].data = buffer_into(&note, &call->memory);
    call->batch->count = 2;
    return ops[0].save.value.data && ops[1].data.data;
}

static void write_lessons(struct call *call)
{
    const struct one_incident *one = call->context;
    call->batch = batch_new(2, SIZE_MAX / 4);
    if (call->batch && fill(call, one->view.id, one->lessons))
        call_submit(call, after_lessons);
    else
        call_no_memory(call);
}

void handle_incident_patch(struct call *call)
{
    struct one_incident *one = call_context(call, sizeof *one);
    if (!one)
        return;
    if (!body_member(call, "lessons_learned"))
        call_problem(call, 422, "invalid_member", "lessons_learned must be there; an empty text takes them away");
    else if (body_text(call, "lessons_learned", LESSONS_BYTES_MAX, &one->lessons))
        find_incident(call, write_lessons);
}
