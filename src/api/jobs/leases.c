/*
 * Pull workers: they lease jobs, and say what came of them.
 *
 * A lease's text is for the worker to give back as it is: the job's number, the token, and the
 * retries spent, which an ack would otherwise have to read.
 */
#include "api/call/ask.h"
#include "api/call/body.h"
#include "api/jobs/jobs.h"
#include "api/http/client.h"
#include "api/jobs/decisions.h"
#include "api/jobs/job_json.h"
#include "api/jobs/job_read.h"
#include "base/log.h"
#include "engine/errors/errors.h"
#include "engine/pull.h"
#include "engine/settlement.h"
#include "lib/decision_json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum {
    LEASES_MAX = 1000,
    LEASED_BYTES_MAX = 64 << 20, /* of an answer, unless its first job is longer */
    WAIT_S_MAX = 60,
    LEASE_S_MAX = 43200,
    LEASE_S_DEFAULT = 60,
    LEASE_TEXT_BYTES = 64,
    WORKER_BYTES_MAX = 128,
    NACK_ERROR_BYTES_MAX = 64 * 1024,
    RETRY_AFTER_S_MAX = 30 * 86400,
};

struct lease {
    int64_t seq, token, retry_count;
};

static void lease_format(const struct job *job, char text[LEASE_TEXT_BYTES])
{
    snprintf(text, LEASE_TEXT_BYTES, "%" PRIx64 "-%" PRIx64 "-%" PRIx64, (uint64_t)job->seq, (uint64_t)job->lease_token,
             (uint64_t)job->retry_count);
}

static bool take_hex(struct slice *text, int64_t *ret_value)
{
    uint64_t value = 0;
    size_t i = 0;
    for (; i < text->len && i < 16; i++) {
        char c = ascii_lower(text->data[i]);
        if (!ascii_is_digit(c) && (c < 'a' || c > 'f'))
            break;
        value = value << 4 | (uint64_t)(ascii_is_digit(c) ? c - '0' : c - 'a' + 10);
    }
    *text = slice_from_offset(*text, i);
    *ret_value = (int64_t)value;
    return i > 0 && value <= INT64_MAX;
}

static bool take_dash(struct slice *text)
{
    if (text->len == 0 || text->data[0] != '-')
        return false;
    *text = slice_from_offset(*text, 1);
    return true;
}

static bool lease_parse(struct slice text, struct lease *ret_lease)
{
    return take_hex(&text, &ret_lease->seq) && take_dash(&text) && take_hex(&text, &ret_lease->token) && take_dash(&text) &&
           take_hex(&text, &ret_lease->retry_count) && text.len == 0;
}

/* --- taking ------------------------------------------------------------------------------------- */

struct taking {
    struct lease_request request; /* first */
    struct call *call;
    enum status status;
    const struct job *jobs;
    size_t count;
    bool crowded;       /* there is no room for the answer: all of them go back */
    size_t given;       /* the first of them are in the answer; the others go back */
    struct buffer body; /* the answer */
};

static void give(struct call *call)
{
    struct taking *taking = call->context;
    lease_release(&taking->request);
    if (taking->given > 0)
        call_json(call, 200, &taking->body);
    else if (taking->crowded)
        call_problem(call, 503, "busy", "clients who do not read have all the memory of limits.body_budget; try again");
    else
        call_drop(call);
}

static void after_release(struct call *call)
{
    const struct batch *batch = call->batch;
    if (batch->status != STATUS_OK)
        log_event(LOG_WARN, "leases_not_released", FIELD_CSTR("error", batch->error.text)); /* they run out by themselves */
    give(call);
}

static void submit_release(struct call *call)
{
    call_submit(call, after_release);
}

static bool return_taken(struct call *call, struct engine *engine)
{
    const struct taking *taking = call->context;
    for (size_t i = taking->given; i < taking->count; i++)
        engine_lease_returned(engine, taking->jobs[i].seq, taking->jobs[i].lease_token);
    return true;
}

/* Jobs that the worker does not get go back as if they had never been taken. */
static void release_others(struct call *call)
{
    struct taking *taking = call->context;
    call->batch = batch_new(taking->count - taking->given, SIZE_MAX / 4);
    if (!call->batch) {
        log_event(LOG_WARN, "leases_not_released", FIELD_CSTR("error", "no memory"));
        give(call);
        return;
    }
    for (size_t i = taking->given; i < taking->count; i++) {
        const struct job *job = &taking->jobs[i];
        struct store_op *op = &call->batch->ops[call->batch->count++];
        op->kind = OP_SETTLE;
        op->settle = (struct op_settle){
            .seq = job->seq,
            .token = job->lease_token,
            .event = EVENT_RELEASE,
            .step = job->step,
            .run_at = api_now(call->api),
            .rank = job->rank,
            .retry_count = job->retry_count,
            .step_count = job->step_count,
            .doubted = job->doubted,
            .attempt_undone = job->step == STEP_SEND,
            .forget_at = INSTANT_NONE,
        };
    }
    ask_here(call, return_taken, submit_release);
}

static void write_leased(struct json_writer *json, const struct job *job, const struct destination_config *destination)
{
    char text[LEASE_TEXT_BYTES];
    const struct job_view view = { .destination = destination, .payload = true };
    lease_format(job, text);
    json_object_begin(json);
    json_member_text(json, "lease", text);
    json_member_int(json, "attempt", job->attempts);
    job_json_members(json, job, &view);
    json_object_end(json);
}

/* Writes as many as an answer takes. */
static void write_taken(struct call *call)
{
    struct taking *taking = call->context;
    const struct destination_config *destination = config_destination(call->api->config, taking->request.destination);
    taking->body = call_buffer();
    struct json_writer json = json_begin(&taking->body);
    json_member_array(&json, "leases");
    for (; taking->given < taking->count; taking->given++) {
        const struct job *job = &taking->jobs[taking->given];
        if (taking->given > 0 && taking->body.len + job->payload.len > LEASED_BYTES_MAX)
            break;
        write_leased(&json, job, destination);
    }
    json_array_end(&json);
    json_object_end(&json);
}

/* The answer is counted before it is made. */
static bool has_room(const struct call *call, const struct taking *taking)
{
    size_t bytes = 0;
    for (size_t i = 0; i < taking->count; i++)
        bytes += taking->jobs[i].payload.len;
    bytes = bytes < LEASED_BYTES_MAX ? bytes : LEASED_BYTES_MAX;
    return client_try_room(call->client, bytes > SMALL_ANSWER_BYTES_MAX ? ROOM_LARGE : ROOM_SMALL, bytes);
}

static void answer_taken(struct call *call)
{
    struct taking *taking = call->context;
    if (taking->status == STATUS_OK && taking->count > 0) {
        bool gone = call_client_gone(call);
        taking->crowded = !gone && !has_room(call, taking);
        if (gone || taking->crowded) {
            release_others(call); /* all of them: the worker went while it waited, or others have all the memory */
            return;
        }
    }
    if (taking->status != STATUS_OK) {
        lease_release(&taking->request);
        if (taking->status == STATUS_NOT_FOUND)
            call_problem(call, 422, "unknown_destination", "the destination is not configured any more");
        else if (taking->status == STATUS_AWAY)
            call_problem(call, 503, "store_away", "no jobs could be leased: the store cannot be reached; try again");
        else
            call_problem(call, 503, "store_failed", "no jobs could be leased: %s; try again", status_name(taking->status));
        return;
    }
    write_taken(call);
    if (taking->given < taking->count) {
        release_others(call);
        return;
    }
    lease_release(&taking->request);
    call_json(call, 200, &taking->body);
}

/* This runs in the engine's thread. */
static void on_leased(struct lease_request *request, enum status status, const struct job *jobs, size_t count)
{
    struct taking *taking = (struct taking *)request;
    taking->status = status;
    taking->jobs = jobs;
    taking->count = count;
    ask_return(taking->call);
}

static bool run_taking(struct call *call, struct engine *engine)
{
    struct taking *taking = call->context;
    engine_lease(engine, &taking->request);
    return false;
}

static bool read_destination(struct call *call, struct slice name)
{
    const struct destination_config *destination = config_destination(call->api->config, name);
    if (name.len == 0)
        return call_problem(call, 422, "invalid_member", "destination is missing; name one with transport: pull");
    if (!destination)
        return call_problem(call, 422, "unknown_destination",
                            "there is no destination \"%.*s\"; insist dest lists them", SLICE_ARG(name));
    if (destination->transport != TRANSPORT_PULL)
        return call_problem(call, 422, "not_pulled",
                            "destination %s sends by itself; workers lease from those with transport: pull",
                            destination->name);
    return true;
}

/* Reads the request; false: answered already. */
static bool read_taking(struct call *call, struct lease_request *request)
{
    int64_t max, wait_s, lease_s;
    if (!body_text(call, "destination", JOB_ID_BYTES_MAX, &request->destination) ||
        !body_text(call, "worker", WORKER_BYTES_MAX, &request->worker) ||
        !body_int(call, "max", 1, 1, LEASES_MAX, &max) || !body_int(call, "wait_s", 0, 0, WAIT_S_MAX, &wait_s) ||
        !body_int(call, "lease_s", LEASE_S_DEFAULT, 1, LEASE_S_MAX, &lease_s) ||
        !read_destination(call, request->destination))
        return false;
    if (slice_equal(request->worker, SLICE("engine")))
        return call_problem(call, 422, "invalid_member", "worker may not be \"engine\", which is insist's own name");
    if (request->worker.len == 0)
        request->worker = SLICE("worker");
    request->max = (size_t)max;
    request->lease_ms = lease_s * SECOND_MS;
    request->wait_until = instant_add(api_now(call->api), wait_s * SECOND_MS);
    call->asked.wait_s = wait_s;
    return true;
}

void handle_leases_post(struct call *call)
{
    if (call->api->draining) { /* a full disk is no reason: work that is done makes room */
        call_problem(call, 503, "stopping", "the daemon is stopping; try again");
        return;
    }
    struct taking *taking = call_context(call, sizeof *taking);
    if (!taking || !read_taking(call, &taking->request))
        return;
    taking->call = call;
    taking->request.done = on_leased;
    if (call->asked.wait_s > 0)
        client_follows(call->client); /* that it has gone is heard of before there is work for it, here or at another node */
    ask(call, taking->request.destination, run_taking, answer_taken);
}

/* --- lists of leases ---------------------------------------------------------------------------- */

struct lease_list {
    struct slice *texts;
    struct lease *leases;
    size_t count;
    const struct job **retried; /* of an ack: the jobs that failed before; NULL: none */
};

static bool add_lease(struct call *call, const json_t *value, struct lease_list *list)
{
    struct slice text = { json_string_value(value), json_string_length(value) };
    if (!json_is_string(value) || !lease_parse(text, &list->leases[list->count]))
        return call_problem(call, 422, "invalid_lease", "lease %zu is not what POST /v1/leases gave", list->count);
    list->texts[list->count] = arena_copy(&call->memory, text);
    if (!list->texts[list->count++].data)
        return call_no_memory(call);
    return true;
}

/* Members `leases` or `lease`. False: answered already. */
static bool read_leases(struct call *call, struct lease_list *ret_list)
{
    const json_t *many = body_member(call, "leases"), *one = body_member(call, "lease");
    size_t count = many ? json_array_size(many) : 1;
    if ((!many && !one) || (many && one) || (many && !json_is_array(many)) || count < 1 || count > LEASES_MAX)
        return call_problem(call, 422, "invalid_member", "give leases, a list of 1 to %d, or one lease", LEASES_MAX);
    struct lease_list list = { .texts = arena_alloc_array(&call->memory, count, sizeof *list.texts),
                               .leases = arena_alloc_array(&call->memory, count, sizeof *list.leases) };
    if (!list.texts || !list.leases)
        return call_no_memory(call);
    for (size_t i = 0; i < count; i++)
        if (!add_lease(call, many ? json_array_get(many, i) : one, &list))
            return false;
    *ret_list = list;
    return true;
}

/* An operation a lease, to be filled. False: answered already. */
static bool batch_for(struct call *call, size_t count)
{
    call->batch = batch_new(count, SIZE_MAX / 4);
    if (!call->batch)
        return call_no_memory(call);
    call->batch->count = count;
    return true;
}

/* What came of each; 409 when all were lost. */
static void answer_leases(struct call *call, const struct lease_list *list, const char *done, size_t *ret_done)
{
    const struct batch *batch = call->batch;
    *ret_done = 0;
    if (batch->status != STATUS_OK) {
        call_store_problem(call, batch->status, &batch->error);
        return;
    }
    for (size_t i = 0; i < batch->count; i++)
        *ret_done += batch->ops[i].status == STATUS_OK;
    if (*ret_done == 0) {
        call_problem(call, 409, "lease_lost", "the lease has run out or was settled already; nothing was changed");
        return;
    }
    struct json_writer *json = call_answer(call);
    json_member_int(json, done, (int64_t)*ret_done);
    json_member_int(json, "lost", (int64_t)(batch->count - *ret_done));
    if (batch->ops[0].kind == OP_EXTEND)
        json_member_instant(json, "lease_until", batch->ops[0].extend.lease_until);
    json_member_array(json, "results");
    for (size_t i = 0; i < batch->count; i++) {
        json_object_begin(json);
        json_member_string(json, "lease", list->texts[i]);
        json_member_text(json, "status", batch->ops[i].status == STATUS_OK ? done : "lease_lost");
        json_object_end(json);
    }
    json_array_end(json);
    call_answer_send(call, 200);
}

static void answer_acked(struct call *call)
{
    struct api *api = call->api;
    size_t acked;
    answer_leases(call, call->context, "acked", &acked);
    api->acked += (int64_t)acked;
}

/* The gate hears how its destination is, and a delivery after a failure tells of that failure. */
static bool tell_acked(struct call *call, struct engine *engine)
{
    static const struct settlement delivered = { .decision.verdict = VERDICT_COMPLETE };
    const struct lease_list *list = call->context;
    for (size_t i = 0; i < list->count; i++) {
        if (call->batch->ops[i].status != STATUS_OK)
            continue;
        engine_acked(engine, list->leases[i].seq, list->leases[i].token);
        if (list->retried && list->retried[i])
            engine_learn(engine, list->retried[i], &call->batch->ops[i].settle, &delivered);
    }
    return true;
}

static void after_ack(struct call *call)
{
    if (call->batch->status == STATUS_OK)
        ask_here(call, tell_acked, answer_acked);
    else
        answer_acked(call);
}

/* Reads the jobs that failed before, as they are leased. What cannot be read is acknowledged all the same. */
static enum status read_retried(struct call *call, struct store_reader *reader, struct error *err)
{
    struct lease_list *list = call->context;
    for (size_t i = 0; i < list->count; i++) {
        if (list->leases[i].retry_count == 0)
            continue;
        if (!list->retried)
            list->retried = arena_alloc_array(&call->memory, list->count, sizeof *list->retried);
        struct job *job = list->retried ? arena_alloc(&call->memory, sizeof *job) : NULL;
        if (job && reader->ops->reader_job_seq(reader, list->leases[i].seq, false, &call->memory, job, err) == STATUS_OK)
            list->retried[i] = job;
    }
    return STATUS_OK;
}

/* The list as the call's context; false: answered already. */
static bool take_leases(struct call *call)
{
    struct lease_list *list = call_context(call, sizeof *list);
    return list && read_leases(call, list) && batch_for(call, list->count);
}

static void acknowledge(struct call *call)
{
    const struct lease_list *list = call->context;
    int64_t keep_ms = call->api->config->retention_completed_ms;
    instant forget_at = keep_ms > 0 ? instant_add(api_now(call->api), keep_ms) : INSTANT_NONE;
    for (size_t i = 0; i < list->count; i++) {
        struct store_op *op = &call->batch->ops[i];
        op->kind = OP_SETTLE;
        op->data = SLICE("{\"class\":\"delivered\"}");
        op->settle = (struct op_settle){
            .seq = list->leases[i].seq, .token = list->leases[i].token, .event = EVENT_DELIVER,
            .retry_count = list->leases[i].retry_count, .outcome = OUTCOME_DELIVERED, .run_at = INSTANT_NONE,
            .forget_at = forget_at,
        };
    }
    call_submit(call, after_ack);
}

void handle_leases_ack(struct call *call)
{
    if (take_leases(call))
        call_read(call, read_retried, acknowledge);
}

static void answer_extended(struct call *call)
{
    size_t extended;
    answer_leases(call, call->context, "extended", &extended);
}

void handle_leases_extend(struct call *call)
{
    int64_t lease_s;
    if (!body_int(call, "lease_s", LEASE_S_DEFAULT, 1, LEASE_S_MAX, &lease_s) || !take_leases(call))
        return;
    const struct lease_list *list = call->context;
    instant until = instant_add(api_now(call->api), lease_s * SECOND_MS);
    for (size_t i = 0; i < list->count; i++) {
        struct store_op *op = &call->batch->ops[i];
        op->kind = OP_EXTEND;
        op->extend = (struct op_extend){ .seq = list->leases[i].seq, .token = list->leases[i].token, .lease_until = until };
    }
    call_submit(call, answer_extended);
}

/* --- saying that it failed ------------------------------------------------------------------------ */

struct nack {
    int64_t seq, token; /* of the lease */
    struct job job;
    struct lease_nack lease;
    struct settlement settlement;
    enum status status;
    struct buffer body; /* the decision, written before a reload can take its policy away */
};

static void answer_nacked(struct call *call)
{
    struct nack *nack = call->context;
    call_json(call, 200, &nack->body);
}

/* The store has taken it, so it is so. */
static bool tell_nacked(struct call *call, struct engine *engine)
{
    const struct nack *nack = call->context;
    engine_nacked(engine, &nack->lease, &call->batch->ops[0], &nack->settlement);
    return true;
}

static void after_nack(struct call *call)
{
    struct nack *nack = call->context;
    const struct batch *batch = call->batch;
    if (batch->status == STATUS_OK && batch->ops[0].status == STATUS_OK) {
        ask_here(call, tell_nacked, answer_nacked);
        return;
    }
    buffer_release(&nack->body);
    if (batch->status != STATUS_OK)
        call_store_problem(call, batch->status, &batch->error);
    else
        call_problem(call, 409, "lease_lost", "the lease has run out or was settled already; nothing was changed");
}

static void after_decision(struct call *call)
{
    struct nack *nack = call->context;
    if (nack->status == STATUS_OK)
        call_submit(call, after_nack);
    else if (nack->status == STATUS_NOT_FOUND)
        call_problem(call, 422, "unknown_destination",
                     "destination \"%.*s\" is not configured any more; the lease runs out by itself",
                     SLICE_ARG(nack->job.destination));
    else
        call_no_memory(call);
}

/* The engine alone knows how the destination stands, and it has the configuration while it decides. */
static bool decide_nack(struct call *call, struct engine *engine)
{
    struct nack *nack = call->context;
    const struct policy *policy;
    nack->lease.job = &nack->job;
    nack->status = engine_nack(engine, &nack->lease, &call->batch->memory, &call->batch->ops[0], &nack->settlement, &policy);
    if (nack->status == STATUS_OK) {
        nack->body = call_buffer();
        decision_json_write(policy, nack->lease.answer.text, &nack->settlement.decision, &nack->body);
    }
    return true;
}

static enum status read_leased(struct call *call, struct store_reader *reader, struct error *err)
{
    struct nack *nack = call->context;
    return reader->ops->reader_job_seq(reader, nack->seq, false, &call->memory, &nack->job, err);
}

static void decide_leased(struct call *call)
{
    const struct nack *nack = call->context;
    if (call->reading.status == STATUS_NOT_FOUND || nack->job.state != STATE_RUNNING || nack->job.lease_token != nack->token)
        call_problem(call, 409, "lease_lost", "the lease has run out or was settled already; nothing was changed");
    else if (batch_for(call, 1))
        ask(call, nack->job.destination, decide_nack, after_decision);
}

/* They are seconds, whole or not. */
static bool read_retry_after(struct call *call, int64_t *ret_ms)
{
    const json_t *value = body_member(call, "retry_after");
    double seconds = value ? json_number_value(value) : 0;
    if (value && (!json_is_number(value) || seconds < 0 || seconds > RETRY_AFTER_S_MAX))
        return call_problem(call, 422, "invalid_member", "retry_after must be a number of seconds from 0 to %d",
                            RETRY_AFTER_S_MAX);
    *ret_ms = value ? (int64_t)llround(seconds * 1000) : -1;
    return true;
}

/* The worker knows better than the policy's words. */
static bool read_class(struct call *call, enum outcome *ret_outcome)
{
    struct slice class;
    if (!body_text(call, "class", CODE_BYTES_MAX - 1, &class))
        return false;
    *ret_outcome = slice_equal(class, SLICE("permanent"))   ? OUTCOME_PERMANENT
                   : slice_equal(class, SLICE("transient")) ? OUTCOME_TRANSIENT
                                                            : OUTCOME_NONE;
    if (class.len == 0 || *ret_outcome != OUTCOME_NONE)
        return true;
    return call_problem(call, 422, "invalid_member", "class must be permanent or transient; without it the policy decides");
}

static bool read_nack(struct call *call, struct nack *nack)
{
    struct lease_list list;
    struct answer *answer = &nack->lease.answer;
    *answer = (struct answer){ .attempted = true };
    if (!body_member(call, "lease"))
        return call_problem(call, 422, "invalid_member", "lease is missing; give one, as POST /v1/leases gave it");
    if (!read_leases(call, &list) || !body_text(call, "error", NACK_ERROR_BYTES_MAX, &answer->text) ||
        !body_text(call, "code", CODE_BYTES_MAX - 1, &answer->code) || !read_class(call, &answer->outcome) ||
        !read_retry_after(call, &answer->retry_after_ms))
        return false;
    if (slice_is_blank(answer->text))
        return call_problem(call, 422, "invalid_error", "error is missing or blank; say what the try ended with");
    nack->seq = list.leases[0].seq;
    nack->token = list.leases[0].token;
    return true;
}

void handle_leases_nack(struct call *call)
{
    struct nack *nack = call_context(call, sizeof *nack);
    if (nack && read_nack(call, nack))
        call_read(call, read_leased, decide_leased);
}
