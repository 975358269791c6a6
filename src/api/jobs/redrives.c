/*
 * Dead letters by the thousand: counted first, then sent back to work by a redrive that is saved, or thrown away.
 *
 * Counting and purging go piece by piece, so that other calls are answered in between. A redrive is the engine's: the
 * call only hands it over.
 */
#include "api/call/ask.h"
#include "api/call/body.h"
#include "api/call/query.h"
#include "api/jobs/jobs.h"
#include "api/jobs/letters.h"
#include "base/json_patch.h"
#include "engine/redrives/redrives.h"

#include <string.h>

enum {
    LETTERS_A_PIECE = 100, /* looked at, about a millisecond */
    PURGED_AT_ONCE = 250,  /* by one transaction */
    REDRIVES_MAX = 100,    /* of one page */
};

/* What is to be done with the letters of a filter. */
struct plan {
    struct job_walk walk, from; /* as far as it has come, and from the beginning */
    struct letter_counts counts;
    bool dry_run;
    void (*counted)(struct call *call);
    struct redrive_record record;
    struct saved_wait saved;
    enum status status;
    struct error error;
    int64_t purged;
};

static void plan_forget(struct call *call)
{
    struct plan *plan = call->context;
    letter_counts_release(&plan->counts);
    redrive_record_release(&plan->record);
}

/* NULL: answered. What dies from now on is not meant. */
static struct plan *plan_of(struct call *call)
{
    struct plan *plan = call_context(call, sizeof *plan);
    if (!plan || !body_filter(call, &plan->walk))
        return NULL;
    const json_t *dry_run = body_member(call, "dry_run");
    if (dry_run && !json_is_boolean(dry_run)) {
        call_problem(call, 422, "invalid_member", "dry_run must be true or false");
        return NULL;
    }
    instant now = api_now(call->api);
    if (plan->walk.filter.until == 0 || plan->walk.filter.until > now)
        plan->walk.filter.until = now;
    plan->from = plan->walk;
    plan->walk.filter.brief = true; /* to be counted */
    plan->dry_run = json_is_true(dry_run);
    letter_counts_init(&plan->counts, call->api->settings.seed);
    call->forget = plan_forget;
    return plan;
}

static enum status count_piece(struct call *call, struct store_reader *reader, struct error *err)
{
    struct plan *plan = call->context;
    struct arena memory = { 0 };
    struct job *jobs;
    size_t count;
    enum status status = walk_page(reader, &plan->walk, LETTERS_A_PIECE, false, &memory, &jobs, &count, err);
    for (size_t i = 0; status == STATUS_OK && i < count; i++)
        letter_counts_add(call, &plan->counts, &jobs[i]);
    arena_release(&memory);
    call->reading.more = status == STATUS_OK && !plan->walk.over;
    return status;
}

static void answer_dry_run(struct call *call)
{
    struct plan *plan = call->context;
    struct json_writer *json = call_answer(call);
    letter_counts_write(json, &plan->counts);
    call_answer_send(call, 200);
}

static void letters_counted(struct call *call)
{
    struct plan *plan = call->context;
    if (plan->dry_run)
        answer_dry_run(call);
    else
        plan->counted(call);
}

/* ---- a redrive begins ---- */

static void redrive_begun(struct call *call)
{
    struct plan *plan = call->context;
    if (plan->status == STATUS_LIMIT) {
        call_problem(call, 429, "too_many_redrives", "%s", plan->error.text);
        return;
    }
    if (plan->status != STATUS_OK || plan->saved.error.status != STATUS_OK) {
        call_problem(call, 503, "not_begun", "%s", plan->status != STATUS_OK ? plan->error.text : plan->saved.error.text);
        return;
    }
    struct json_writer *json = call_answer(call);
    json_member_text(json, "id", plan->record.id);
    json_member_text(json, "state", redrive_state_name(plan->record.state));
    json_member_int(json, "matched", plan->record.matched);
    call_answer_send(call, 202);
}

/* The engine's copy lives on without the call. */
static bool run_begin(struct call *call, struct engine *engine)
{
    struct plan *plan = call->context;
    struct buffer text = buffer_up_to(REDRIVE_RECORD_BYTES_MAX);
    struct redrive_record copy;
    snprintf(plan->record.id, sizeof plan->record.id, "new");
    redrive_record_write(&text, &plan->record);
    plan->status = redrive_record_read(buffer_slice(&text), &copy, &plan->error);
    buffer_release(&text);
    plan->saved = ask_saved(call);
    if (plan->status == STATUS_OK)
        plan->status = engine_redrive_begin(engine, &copy, &plan->saved, &plan->error);
    if (plan->status == STATUS_OK)
        memcpy(plan->record.id, copy.id, sizeof copy.id);
    return plan->status != STATUS_OK;
}

static void begin_redrive(struct call *call)
{
    struct plan *plan = call->context;
    plan->record.walk = plan->from;
    plan->record.matched = plan->counts.matched;
    plan->record.by = call->who;
    plan->record.state = plan->record.canary > 0 ? REDRIVE_CANARY : REDRIVE_RUNNING;
    plan->record.started_at = plan->record.ended_at = INSTANT_NONE;
    ask(call, SLICE(""), run_begin, redrive_begun);
}

static bool read_rate(struct call *call, struct rate *ret_rate)
{
    struct slice text;
    struct error error;
    if (!body_text(call, "rate", 32, &text))
        return false;
    if (text.len == 0)
        return true;
    if (rate_parse(text, ret_rate, &error) == STATUS_OK && ret_rate->count > 0)
        return true;
    return call_problem(call, 422, "invalid_rate", "rate must be a number and a time, such as 50/s or 1000/m");
}

static bool read_how(struct call *call, struct redrive_record *record)
{
    const json_t *share = body_member(call, "abort_at"), *patch = body_member(call, "payload_patch");
    struct error error;
    if (!read_rate(call, &record->rate) ||
        !body_int(call, "limit", 0, 1, INT64_MAX / 2, &record->limit) ||
        !body_int(call, "canary", 0, 1, 100000, &record->canary))
        return false;
    record->abort_at = share ? json_number_value(share) : 0.5;
    record->abort_given = share != NULL;
    if (share && (!json_is_number(share) || record->abort_at <= 0 || record->abort_at > 1))
        return call_problem(call, 422, "invalid_abort_at",
                            "abort_at must be a share above 0, up to 1, of those that died again");
    if (patch && json_patch_check(patch, &error) != STATUS_OK)
        return call_problem(call, 422, "invalid_patch", "%s", error.text);
    record->patch = patch ? json_deep_copy(patch) : NULL;
    return true;
}

void handle_redrives_post(struct call *call)
{
    struct plan *plan = plan_of(call);
    if (!plan || !read_how(call, &plan->record))
        return;
    plan->counted = begin_redrive;
    call_read(call, count_piece, letters_counted);
}

/* ---- looking at them ---- */

struct redrive_page {
    size_t limit;
    struct slice before;
    struct slice *values;
    int64_t (*counts)[REDRIVE_COUNTS];
    size_t count;
    struct slice next;
    struct slice value; /* of one */
    enum redrive_order order;
    struct saved_wait saved;
    enum status status;
    struct error error;
};

/* Whose letters it means is whose it is; a call that is bound to a tenant sees no other's. */
static bool may_see(const struct call *call, const struct redrive_record *record)
{
    return !call->tenant_bound.data || slice_equal(record->walk.filter.tenant, call->tenant_bound);
}

static void show_value(const struct call *call, struct json_writer *json, struct slice value, const int64_t *counts)
{
    struct redrive_record record;
    struct error error;
    if (redrive_record_read(value, &record, &error) != STATUS_OK)
        return;
    if (may_see(call, &record))
        redrive_show(json, &record, counts);
    redrive_record_release(&record);
}

static enum status read_page(struct call *call, struct store_reader *reader, struct error *err)
{
    struct redrive_page *page = call->context;
    struct saved *saved;
    size_t count;
    enum status status = reader->ops->reader_saved_list(reader, SPACE_REDRIVE, page->before, page->limit, &call->memory,
                                                        &saved, &count, err);
    if (status != STATUS_OK)
        return status;
    page->values = arena_alloc_array(&call->memory, count + 1, sizeof *page->values);
    page->counts = arena_alloc_array(&call->memory, count + 1, sizeof *page->counts);
    if (!page->values || !page->counts)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a page of redrives");
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        page->values[i] = saved[i].value;
        status = tally_read(reader, saved[i].name, page->counts[i], err);
    }
    page->count = count;
    if (count == page->limit)
        page->next = saved[count - 1].name;
    return status;
}

static void answer_page(struct call *call)
{
    const struct redrive_page *page = call->context;
    struct json_writer *json = call_answer(call);
    json_member_array(json, "redrives");
    for (size_t i = 0; i < page->count; i++)
        show_value(call, json, page->values[i], page->counts[i]);
    json_array_end(json);
    json_member_or_null(json, "next", page->next);
    call_answer_send(call, 200);
}

void handle_redrives_list(struct call *call)
{
    struct redrive_page *page = call_context(call, sizeof *page);
    if (!page || !call_limit(call, &page->limit))
        return;
    page->limit = page->limit < REDRIVES_MAX ? page->limit : REDRIVES_MAX;
    page->before = call_query(call, "cursor");
    call_read(call, read_page, answer_page);
}

static enum status read_one(struct call *call, struct store_reader *reader, struct error *err)
{
    struct redrive_page *page = call->context;
    enum status status =
        reader->ops->reader_saved(reader, SPACE_REDRIVE, call->parameters[0], &call->memory, &page->value, err);
    return status == STATUS_OK ? tally_read(reader, call->parameters[0], page->counts[0], err) : status;
}

/* Whether it is there, and for this call; else that is answered. */
static bool is_found(struct call *call)
{
    const struct redrive_page *page = call->context;
    struct redrive_record record;
    struct error error;
    bool seen = false;
    if (call->reading.status == STATUS_OK && redrive_record_read(page->value, &record, &error) == STATUS_OK) {
        seen = may_see(call, &record);
        redrive_record_release(&record);
    }
    if (!seen)
        call_problem(call, 404, "redrive_not_found",
                     "there is no redrive \"%.*s\"; insist dead redrives lists them",
                     SLICE_ARG(call->parameters[0]));
    return seen;
}

static void answer_one(struct call *call)
{
    const struct redrive_page *page = call->context;
    if (!is_found(call))
        return;
    struct buffer body = call_buffer();
    struct json_writer json = json_writer(&body);
    show_value(call, &json, page->value, page->counts[0]);
    call_json(call, 200, &body);
}

static struct redrive_page *one_of(struct call *call)
{
    struct redrive_page *page = call_context(call, sizeof *page);
    if (!page)
        return NULL;
    page->counts = call_alloc(call, sizeof *page->counts);
    return page->counts ? page : NULL;
}

void handle_redrive_get(struct call *call)
{
    if (one_of(call))
        call_read(call, read_one, answer_one);
}

/* ---- cancel, undo ---- */

static void ordered(struct call *call)
{
    const struct redrive_page *page = call->context;
    if (page->status == STATUS_CONFLICT)
        call_problem(call, 409, "state_forbids", "%s", page->error.text);
    else if (page->status != STATUS_OK || page->saved.error.status != STATUS_OK)
        call_problem(call, 503, "not_done", "%s", page->status != STATUS_OK ? page->error.text : page->saved.error.text);
    else
        call_read(call, read_one, answer_one);
}

static bool run_order(struct call *call, struct engine *engine)
{
    struct redrive_page *page = call->context;
    page->saved = ask_saved(call);
    page->status = engine_redrive_order(engine, page->order, page->value, call->who, &page->saved, &page->error);
    return page->status != STATUS_OK;
}

static void give_order(struct call *call)
{
    if (is_found(call))
        ask(call, SLICE(""), run_order, ordered);
}

static void order(struct call *call, enum redrive_order what)
{
    struct redrive_page *page = one_of(call);
    if (!page)
        return;
    page->order = what;
    call_read(call, read_one, give_order);
}

void handle_redrive_cancel(struct call *call)
{
    order(call, REDRIVE_CANCEL);
}

void handle_redrive_undo(struct call *call)
{
    order(call, REDRIVE_UNDO);
}

/* ---- purge ---- */

static void purge_answer(struct call *call)
{
    const struct plan *plan = call->context;
    struct json_writer *json = call_answer(call);
    json_member_int(json, "matched", plan->counts.matched);
    json_member_int(json, "purged", plan->purged);
    call_answer_send(call, 200);
}

static void purge_next(struct call *call);

static void purge_done(struct call *call)
{
    struct plan *plan = call->context;
    if (call->batch->status != STATUS_OK) {
        call_store_problem(call, call->batch->status, &call->batch->error);
        return;
    }
    for (size_t i = 0; i < call->batch->count; i++)
        plan->purged += call->batch->ops[i].status == STATUS_OK;
    batch_free(call->batch);
    call->batch = NULL;
    purge_next(call);
}

static struct slice purge_data(struct call *call)
{
    struct buffer data = buffer_up_to(EVENT_DATA_BYTES_MAX);
    struct json_writer json = json_begin(&data);
    json_member_string(&json, "by", call->who);
    json_object_end(&json);
    return buffer_into(&data, &call->batch->memory);
}

static enum status read_purged(struct call *call, struct store_reader *reader, struct error *err)
{
    struct plan *plan = call->context;
    struct arena memory = { 0 };
    struct job *jobs;
    size_t count = 0;
    enum status status = walk_page(reader, &plan->walk, PURGED_AT_ONCE, false, &memory, &jobs, &count, err);
    call->batch = status == STATUS_OK ? batch_new(count + 1, SIZE_MAX / 4) : NULL;
    struct slice data = call->batch ? purge_data(call) : (struct slice){ NULL, 0 };
    if (status == STATUS_OK && !data.data)
        status = error_set(err, STATUS_NO_MEMORY, "no memory for a purge");
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        struct store_op *op = &call->batch->ops[call->batch->count++];
        op->kind = OP_PURGE;
        op->data = data;
        op->job = (struct op_job){ .tenant = arena_copy(&call->batch->memory, jobs[i].tenant),
                                   .id = arena_copy(&call->batch->memory, jobs[i].id),
                                   .seq = jobs[i].seq,
                                   .dead_at = jobs[i].dead_at };
        if (!op->job.tenant.data || !op->job.id.data)
            status = error_set(err, STATUS_NO_MEMORY, "no memory for a purge");
    }
    arena_release(&memory);
    return status;
}

static void submit_purged(struct call *call)
{
    if (call->batch->count > 0) {
        call_submit(call, purge_done);
        return;
    }
    batch_free(call->batch);
    call->batch = NULL;
    purge_next(call);
}

static void purge_next(struct call *call)
{
    const struct plan *plan = call->context;
    if (plan->walk.over)
        purge_answer(call);
    else
        call_read(call, read_purged, submit_purged);
}

static void begin_purge(struct call *call)
{
    struct plan *plan = call->context;
    plan->walk = plan->from;
    plan->walk.filter.brief = true;
    purge_next(call);
}

void handle_dead_purge(struct call *call)
{
    struct plan *plan = plan_of(call);
    if (!plan)
        return;
    plan->counted = begin_purge;
    call_read(call, count_piece, letters_counted);
}
