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
};

static int64_t stored_retries(void *context, struct slice tenant, struct slice id)
{
    struct call *call = context;
    struct store_reader *reader = call->api->reader;
    struct slice whose = call->tenant_bound.data ? call->tenant_bound : tenant;
    struct error error;
    struct job job;
    enum status status = reader->ops->reader_job(reader, whose, id, false, &call->memory, &job, &error);
    return status == STATUS_OK ? job.retry_count : -1;
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
        call->context = asked;
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

void handle_decide(struct call *call)
{
    struct api *api = call->api;
    struct buffer event;
    struct decide_call *asked = call_alloc(call, sizeof *asked);
    if (!asked)
        return;
    if (!api->decisions)
        api->decisions = decisions_new(api->config);
    if (!api->decisions) {
        call_no_memory(call);
        return;
    }
    buffer_init(&event, EVENT_DATA_BYTES_MAX);
    asked->body = call_buffer();
    asked->decided = (struct decided){ .context = call, .retry_count = stored_retries, .by = call->who, .event = &event };
    int64_t began = clock_ticks_ns();
    bool valid = decisions_answer(api->decisions, call->body, api_now(api), &asked->decided, &asked->body);
    asked->took_ns = clock_ticks_ns() - began;
    if (valid && event.len > 0)
        keep_decision(call, asked, &event);
    else
        call_json(call, valid ? 200 : 422, &asked->body);
    buffer_release(&event);
}
