/*
 * POST /v1/decide: decisions that need no job.
 */
#include "api/call/ask.h"
#include "api/jobs/decisions.h"
#include "api/jobs/jobs.h"
#include "base/clock.h"
#include "engine/measures.h"

/* A decision on its way to the trail and the metrics. */
struct decide_call {
    struct decided decided;
    struct slice policy; /* of its own: a reload may come between */
    struct buffer body;
    int64_t took_ns;
    struct arena *memory; /* the call's */
    struct decide_job {
        struct slice tenant, id;
    } job;
    bool wants_count, is_counted; /* the store is asked for its retries; it was */
    int64_t retry_count;          /* negative: not known */
};

/* Which job's retries the question leaves to the store; once that was asked, how many there are. */
static int64_t stored_retries(void *context, struct slice tenant, struct slice id)
{
    struct decide_call *asked = context;
    if (asked->is_counted)
        return asked->retry_count;
    asked->job = (struct decide_job){ .tenant = arena_copy(asked->memory, tenant), .id = arena_copy(asked->memory, id) };
    asked->wants_count = asked->job.tenant.data && asked->job.id.data;
    return -1;
}

/* A job that cannot be read has no retries that are known. */
static enum status count_retries(struct call *call, struct store_reader *reader, struct error *err)
{
    struct decide_call *asked = call->context;
    struct slice tenant = call->tenant_bound.data ? call->tenant_bound : asked->job.tenant;
    struct job job;
    enum status status = reader->ops->reader_job(reader, tenant, asked->job.id, false, &call->memory, &job, err);
    asked->retry_count = status == STATUS_OK ? job.retry_count : -1;
    asked->is_counted = true;
    return STATUS_OK;
}

static void answer_decision(struct call *call)
{
    struct decide_call *asked = call->context;
    if (call->batch->status == STATUS_OK && call->batch->ops[0].status == STATUS_OK) {
        call_json(call, 200, &asked->body);
        return;
    }
    enum status status = call->batch->status != STATUS_OK ? call->batch->status : call->batch->ops[0].status;
    buffer_release(&asked->body);
    call_store_problem(call, status, &call->batch->error);
}

static bool count_decision(struct call *call, struct engine *engine)
{
    const struct decide_call *asked = call->context;
    engine_decided(engine, asked->policy, &asked->decided.decision, asked->took_ns);
    return true;
}

static void record_decision(struct call *call)
{
    call_submit(call, answer_decision);
}

/* What was decided is answered when the trail has it. */
static void keep_decision(struct call *call, struct decide_call *asked, struct buffer *event)
{
    bool may = (call->scopes & (SCOPE_ENQUEUE | SCOPE_OPERATE)) != 0;
    call->batch = may ? batch_new(1, SIZE_MAX / 4) : NULL;
    if (call->batch) {
        call->batch->count = 1;
        call->batch->ops[0].kind = OP_NOTE;
        call->batch->ops[0].data = arena_copy(&call->memory, buffer_slice(event));
    }
    asked->policy = arena_copy(&call->memory, slice_from(asked->decided.policy));
    if (call->batch && call->batch->ops[0].data.data && asked->policy.data && buffer_status(event) == STATUS_OK) {
        ask_here(call, count_decision, record_decision);
        return;
    }
    buffer_release(&asked->body);
    if (may)
        call_no_memory(call);
    else
        call_problem(call, 403, "forbidden_scope",
                     "a decision is kept in the trail, which needs the scope enqueue or operate; with \"record\": false nothing "
                     "is kept");
}

static void decide_now(struct call *call)
{
    struct api *api = call->api;
    struct decide_call *asked = call->context;
    struct buffer event = buffer_up_to(EVENT_DATA_BYTES_MAX);
    if (!api->decisions)
        api->decisions = decisions_new(api->config);
    if (!api->decisions) {
        call_no_memory(call);
        return;
    }
    asked->body = call_buffer();
    asked->decided = (struct decided){ .context = asked, .retry_count = stored_retries, .by = call->who, .event = &event };
    int64_t began = clock_ticks_ns();
    bool valid = decisions_answer(api->decisions, call->body, api_now(api), &asked->decided, &asked->body);
    asked->took_ns = clock_ticks_ns() - began;
    if (valid && asked->wants_count && !asked->is_counted) { /* so this was none: it is decided again with the count */
        buffer_release(&asked->body);
        call_read(call, count_retries, decide_now);
    } else if (valid && event.len > 0) {
        keep_decision(call, asked, &event);
    } else {
        call_json(call, valid ? 200 : 422, &asked->body);
    }
    buffer_release(&event);
}

void handle_decide(struct call *call)
{
    struct decide_call *asked = call_context(call, sizeof *asked);
    if (!asked)
        return;
    asked->memory = &call->memory;
    decide_now(call);
}
