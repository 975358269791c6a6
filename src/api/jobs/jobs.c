/*
 * Looking at jobs and acting on one.
 */
#include "api/call/ask.h"
#include "api/call/body.h"
#include "api/call/confined.h"
#include "api/call/counts.h"
#include "api/call/query.h"
#include "api/jobs/jobs.h"
#include "api/jobs/job_json.h"
#include "api/jobs/job_read.h"
#include "api/jobs/letters.h"
#include "api/jobs/why.h"
#include "base/units.h"
#include "engine/orders.h"
#include "engine/status.h"

#include <openssl/evp.h>
#include <string.h>

enum {
    ATTEMPTS_EVENTS_MAX = STORE_PAGE_MAX,
    PAYLOADS_MAX = 50, /* of one page; its cursor goes on from there */
    PIECES_MAX = 40,   /* that are read for one page, however little they give */
};

/* --- what several handlers need ------------------------------------------------------------------ */

static const char *held_by_of(const struct call *call, const struct job *job)
{
    const char *held_by = why_held_by(job, call_view(call, job->destination), call_lane_hold(call, job->lane),
                                      api_now(call->api));
    /* Waiting for a free place is the normal case, not a hold. */
    return held_by && strcmp(held_by, gate_hold_name(HOLD_CONCURRENCY)) != 0 ? held_by : NULL;
}

/* It is false where the call was answered. */
static bool read_payload_wish(struct call *call, bool *ret_wanted)
{
    struct slice value = call_query(call, "payload");
    *ret_wanted = slice_equal(value, SLICE("true")) || slice_equal(value, SLICE("1"));
    if (*ret_wanted || value.len == 0 || slice_equal(value, SLICE("false")) || slice_equal(value, SLICE("0")))
        return true;
    return call_problem(call, 422, "invalid_parameter", "payload must be true or false");
}

/* What somebody wants to be done with a job. */
struct job_action {
    enum op_kind kind;
    enum priority priority;
    bool resend;
    struct payload_members payload;
};

/* The job that the path names, and what is to become of it. */
struct one_job {
    struct slice tenant;
    bool with_payload;
    void (*found)(struct call *call);
    struct job job;
    struct job_view view;
    bool waits;
    struct why_place place;
    struct job_action action;
};

static enum status read_job(struct call *call, struct store_reader *reader, struct error *err)
{
    struct one_job *one = call->context;
    return reader->ops->reader_job(reader, one->tenant, call->parameters[0], one->with_payload, &call->memory, &one->job,
                                   err);
}

static void job_was_read(struct call *call)
{
    const struct one_job *one = call->context;
    if (call->reading.status == STATUS_OK)
        one->found(call);
    else if (one->tenant.len > 0)
        call_problem(call, 404, "job_not_found", "tenant \"%.*s\" has no job \"%.*s\"", SLICE_ARG(one->tenant),
                     SLICE_ARG(call->parameters[0]));
    else
        call_problem(call, 404, "job_not_found",
                     "there is no job \"%.*s\" without a tenant; name its tenant, or find it in all of them: insist job ID",
                     SLICE_ARG(call->parameters[0]));
}

/* Its memory as the call's context. NULL: answered already. */
static struct one_job *one_job_of(struct call *call)
{
    struct one_job *one = call_context(call, sizeof *one);
    return one && call_tenant(call, call_query(call, "tenant"), &one->tenant) ? one : NULL;
}

/* Goes on with `found`, or answers that there is none. */
static void find_job(struct call *call, bool with_payload, void (*found)(struct call *call))
{
    struct one_job *one = call->context;
    one->with_payload = with_payload;
    one->found = found;
    call_read(call, read_job, job_was_read);
}

static void answer_one(struct call *call)
{
    struct one_job *one = call->context;
    struct buffer body = call_buffer();
    struct json_writer json = json_writer(&body);
    one->view.destination = config_destination(call->api->config, one->job.destination);
    one->view.held_by = held_by_of(call, &one->job);
    job_json_write(&json, &one->job, &one->view);
    call_json(call, 200, &body);
}

static enum status read_attempts(struct call *call, struct store_reader *reader, struct error *err)
{
    struct one_job *one = call->context;
    struct event *events = NULL;
    one->view = (struct job_view){ .payload = one->with_payload, .attempts = true };
    enum status status = reader->ops->reader_history(reader, one->job.tenant, one->job.id, ATTEMPTS_EVENTS_MAX,
                                                     &call->memory, &events, &one->view.event_count, err);
    one->view.events = events;
    return status;
}

static void add_view(struct call *call, const struct job *job)
{
    call_view_add(call, job->destination);
    call_lane_add(call, job->lane);
}

static void ask_about_one(struct call *call)
{
    const struct one_job *one = call->context;
    add_view(call, &one->job);
    call_views(call, answer_one);
}

static void show_job(struct call *call)
{
    call_read(call, read_attempts, ask_about_one);
}

void handle_job_get(struct call *call)
{
    bool with_payload;
    if (read_payload_wish(call, &with_payload) && one_job_of(call))
        find_job(call, with_payload, show_job);
}

static void answer_why(struct call *call)
{
    const struct one_job *why = call->context;
    struct buffer body = call_buffer();
    why_write(&body, &why->job, config_destination(call->api->config, why->job.destination),
              call_view(call, why->job.destination), call_lane_hold(call, why->job.lane),
              why->waits ? &why->place : NULL, api_now(call->api));
    call_json(call, 200, &body);
}

/* How the destination stands, and where the job does that waits for its turn there. */
static bool ask_why(struct call *call, struct engine *engine)
{
    struct one_job *why = call->context;
    if (!why->waits)
        return views_ask(call, engine);
    engine_recall(engine, why->job.lane, why->job.destination, why->job.tenant);
    why->place.queue = engine_place(engine, why->job.lane, (int64_t)why->place.ahead, why->job.run_at);
    if (call->tenant_bound.data)
        place_confine(&why->place.queue, why->place.ahead);
    return views_ask(call, engine);
}

static void ask_owner(struct call *call)
{
    const struct one_job *why = call->context;
    ask(call, why->job.destination, ask_why, answer_why);
}

static enum status count_ahead(struct call *call, struct store_reader *reader, struct error *err)
{
    struct one_job *why = call->context;
    return reader->ops->reader_ahead(reader, why->job.lane, why->job.rank, why->job.seq, WHY_AHEAD_MAX, &why->place.ahead,
                                     err);
}

static void explain(struct call *call)
{
    struct one_job *why = call->context;
    add_view(call, &why->job);
    why->waits = why->job.state == STATE_PENDING || why->job.state == STATE_WAITING;
    if (why->waits)
        call_read(call, count_ahead, ask_owner);
    else
        ask_owner(call);
}

void handle_job_why(struct call *call)
{
    if (one_job_of(call))
        find_job(call, false, explain);
}

/* --- lists -------------------------------------------------------------------------------------- */

struct job_page {
    struct job_walk walk;
    size_t limit;
    struct job *jobs;
    size_t count;
    int64_t next;
    size_t pieces; /* that were read */
    bool payload;
    const char *name; /* of the array: jobs or dead */
};

static void answer_page(struct call *call)
{
    const struct job_page *page = call->context;
    struct json_writer *json = call_answer(call);
    json_member_array(json, page->name);
    for (size_t i = 0; i < page->count; i++) {
        struct job_view view = { .destination = config_destination(call->api->config, page->jobs[i].destination),
                                 .held_by = held_by_of(call, &page->jobs[i]), .payload = page->payload };
        job_json_write(json, &page->jobs[i], &view);
    }
    json_array_end(json);
    json_member_cursor(json, page->next);
    call_answer_send(call, 200);
}

/* Where few of many rows are wanted, a piece finds few or none, and the next goes on. */
static enum status read_jobs(struct call *call, struct store_reader *reader, struct error *err)
{
    struct job_page *page = call->context;
    struct job *jobs;
    size_t count;
    enum status status = walk_page(reader, &page->walk, page->limit - page->count, page->payload, &call->memory, &jobs,
                                   &count, err);
    if (status != STATUS_OK)
        return status;
    if (count > 0)
        memcpy(page->jobs + page->count, jobs, count * sizeof *jobs);
    page->count += count;
    page->next = page->walk.id_count == 0 ? page->walk.filter.before_seq : 0; /* a list of ids is not paged */
    call->reading.more = !page->walk.over && page->count < page->limit && ++page->pieces < PIECES_MAX;
    return STATUS_OK;
}

static void ask_about_page(struct call *call)
{
    const struct job_page *page = call->context;
    for (size_t i = 0; i < page->count; i++)
        if (page->jobs[i].state == STATE_PENDING || page->jobs[i].state == STATE_WAITING)
            add_view(call, &page->jobs[i]);
    if (call->views.count > 0)
        call_views(call, answer_page);
    else
        answer_page(call);
}

static void read_list(struct call *call)
{
    call_read(call, read_jobs, ask_about_page);
}

static void list_jobs(struct call *call, const char *name, enum job_state state)
{
    struct job_page *page = call_context(call, sizeof *page);
    if (!page || !query_filter(call, &page->walk) || !call_limit(call, &page->limit) ||
        !read_payload_wish(call, &page->payload))
        return;
    if (state != STATE_NONE)
        page->walk.filter.state = state;
    page->name = name;
    if (page->payload && page->limit > PAYLOADS_MAX)
        page->limit = PAYLOADS_MAX;
    page->jobs = arena_alloc_array(&call->memory, page->limit, sizeof *page->jobs);
    if (page->jobs)
        destination_check(call, read_list);
    else
        call_no_memory(call);
}

void handle_jobs_list(struct call *call)
{
    list_jobs(call, "jobs", STATE_NONE);
}

void handle_dead_list(struct call *call)
{
    list_jobs(call, "dead", STATE_DEAD);
}

/* --- acting on one ------------------------------------------------------------------------------- */

static void answer_purged(struct call *call)
{
    struct json_writer *json = call_answer(call);
    json_member_int(json, "matched", 1);
    json_member_int(json, "purged", 1);
    call_answer_send(call, 200);
}

/* What its state does not allow, and what can be done instead; the words are those of the calls and of the commands. */
static void answer_forbidden(struct call *call, const struct store_op *op)
{
    enum job_state state = op->job.ret_state;
    const char *only = op->kind == OP_PURGE    ? "dead letters can be purged"
                       : op->kind == OP_CANCEL ? "pending and waiting jobs can be cancelled"
                       : op->kind != OP_REDRIVE ? "pending, waiting and running jobs can be given another priority"
                       : op->job.resend         ? "completed jobs can be sent once more (resend)"
                                                : "dead and waiting jobs can be tried again (retry)";
    const char *instead = "";
    if (state == STATE_CANCELLED)
        instead = "; a cancelled one stays so: add it with another id, or with this one when retention.completed is over";
    else if (op->kind == OP_REDRIVE && (state == STATE_PENDING || state == STATE_RUNNING))
        instead = "; it is sent without that, see why";
    else if (op->kind == OP_REDRIVE)
        instead = op->job.resend ? "; use retry" : "; use resend";
    call_problem(call, 409, "state_forbids", "the job is %s; only %s%s", job_state_name(state), only, instead);
}

static void answer_action(struct call *call)
{
    const struct store_op *op = &call->batch->ops[0];
    if (call->batch->status != STATUS_OK)
        call_store_problem(call, call->batch->status, &call->batch->error);
    else if (op->status == STATUS_NOT_FOUND)
        call_problem(call, 404, "job_not_found", "the job has just been deleted");
    else if (op->status == STATUS_CONFLICT)
        answer_forbidden(call, op);
    else if (op->status != STATUS_OK)
        call_problem(call, 422, "refused", "the store refused it: %s", status_name(op->status));
    else if (op->kind == OP_PURGE)
        answer_purged(call);
    else
        find_job(call, false, show_job);
}

/* As a job of that class which came at `since`; a deadline that is only the destination's time to live hurries nobody. */
static int64_t rank_from(const struct call *call, const struct job *job, enum priority priority, instant since)
{
    const struct destination_config *destination = config_destination(call->api->config, job->destination);
    if (!destination)
        return rank_of(priority, since, 0);
    bool own = destination->job_ttl_ms == 0 || job->deadline != instant_add(job->created_at, destination->job_ttl_ms);
    return rank_heed_deadline(rank_of(priority, since, destination->aging_ms), since, own ? job->deadline : INSTANT_NONE,
                              destination->deadline_lead_ms);
}

static void write_payload_facts(struct json_writer *json, struct slice payload)
{
    unsigned char hash[EVP_MAX_MD_SIZE];
    char text[EVP_MAX_MD_SIZE * 2 + 1];
    unsigned len = 0;
    json_member_int(json, "payload_bytes", (int64_t)payload.len);
    if (!EVP_Digest(payload.data ? payload.data : "", payload.len, hash, &len, EVP_sha256(), NULL))
        return; /* a library without SHA-256 opens no store either: its chain is made of them */
    hex_format(hash, len, text);
    json_member_text(json, "payload_sha256", text);
}

/* Submits it with what the trail is to say: who, and what the job has from now on; of a payload the hash, never itself. */
static void submit_action(struct call *call, struct store_op *op)
{
    bool corrected = op->kind == OP_REDRIVE && op->job.payload_given;
    struct buffer data = buffer_up_to(EVENT_DATA_BYTES_MAX);
    struct json_writer json = json_begin(&data);
    json_member_string(&json, "by", call->who);
    if (op->kind == OP_PRIORITIZE)
        json_member_text(&json, "priority", priority_name(op->job.priority));
    if (corrected)
        write_payload_facts(&json, op->job.payload);
    json_object_end(&json);
    op->data = buffer_into(&data, &call->memory);
    if (op->data.data)
        call_submit(call, answer_action);
    else
        call_no_memory(call);
}

static void act(struct call *call)
{
    const struct one_job *one = call->context;
    const struct job_action *action = &one->action;
    const struct job *job = &one->job;
    instant now = api_now(call->api);
    int64_t keep_ms = call->api->config->retention_completed_ms;
    const struct destination_config *destination = config_destination(call->api->config, job->destination);
    struct problem problem;
    if (action->payload.given && destination && !payload_check(destination, job, call->body, &action->payload, &problem)) {
        body_problem(call, &problem);
        return;
    }
    call->batch = batch_new(1, SIZE_MAX / 4);
    if (!call->batch) {
        call_no_memory(call);
        return;
    }
    struct store_op *op = &call->batch->ops[0];
    call->batch->count = 1;
    op->kind = action->kind;
    op->job = (struct op_job){
        .tenant = job->tenant, /* in the call's memory, which outlives the batch */
        .id = job->id,
        .resend = action->resend,
        .priority = action->priority,
        .payload_given = action->payload.given,
        .payload = action->payload.payload,
    };
    if (action->kind == OP_CANCEL)
        op->job.forget_at = keep_ms > 0 ? instant_add(now, keep_ms) : INSTANT_NONE;
    else if (action->kind == OP_PRIORITIZE)
        op->job.rank = rank_from(call, job, action->priority, job->created_at);
    else
        op->job.rank = rank_from(call, job, job->priority, now);
    submit_action(call, op);
}

static void act_on(struct call *call, const struct job_action *action)
{
    struct one_job *one = one_job_of(call);
    if (!one)
        return;
    one->action = *action;
    find_job(call, false, act);
}

void handle_job_cancel(struct call *call)
{
    act_on(call, &(struct job_action){ .kind = OP_CANCEL });
}

void handle_job_patch(struct call *call)
{
    enum priority priority;
    char number[2] = "";
    const json_t *value = body_member(call, "priority");
    if (json_is_integer(value) && json_integer_value(value) > 0 && json_integer_value(value) < 10)
        number[0] = (char)('0' + json_integer_value(value));
    if (!priority_from_name(slice_from(json_is_string(value) ? json_string_value(value) : number), &priority))
        call_problem(call, 422, "invalid_priority", "priority must be critical, high or normal, or 1 to 3");
    else if (priority < call->priority_max)
        call_problem(call, 403, "forbidden_priority", "this token may give priority %s at most, not %s",
                     priority_name(call->priority_max), priority_name(priority));
    else
        act_on(call, &(struct job_action){ .kind = OP_PRIORITIZE, .priority = priority });
}

void handle_job_retry(struct call *call)
{
    struct job_action action = { .kind = OP_REDRIVE };
    struct problem problem;
    int64_t bytes_max = call->api->config->payload_bytes_max;
    if (payload_read(call->body, call->object, bytes_max, &call->memory, &action.payload, &problem))
        act_on(call, &action);
    else
        body_problem(call, &problem);
}

void handle_job_resend(struct call *call)
{
    act_on(call, &(struct job_action){ .kind = OP_REDRIVE, .resend = true });
}

void handle_dead_delete(struct call *call)
{
    act_on(call, &(struct job_action){ .kind = OP_PURGE });
}
