/*
 * Taking jobs: one, or many at once. Nothing is answered before it is durable (invariant 1).
 */
#include "api/call/body.h"
#include "api/call/json_text.h"
#include "api/http/answer.h"
#include "api/jobs/jobs.h"
#include "api/jobs/job_read.h"
#include "api/jobs/outlook.h"
#include "base/array.h"

#include <stdlib.h>

enum {
    OUTLOOKS_MAX = 16, /* tenants of one request whose queues are looked at */
    WARNING_BYTES_MAX = 1024,
    BATCH_JOBS_MAX = 100000, /* what is refused is listed: millions of empty lines may not become gigabytes */
};

static struct job_reader reader_of(struct call *call, struct arena *memory)
{
    return (struct job_reader){ .config = call->api->config, .tenant_bound = call->tenant_bound,
                                .priority_max = call->priority_max, .now = api_now(call->api), .memory = memory };
}

/* The problem of an insert that the store refused. */
static bool insert_problem(const struct store_op *op, struct problem *ret_problem)
{
    switch (op->status) {
    case STATUS_OK:
        return true;
    case STATUS_CONFLICT:
        return problem_set(ret_problem, 409, "id_conflict",
                          "there is a job \"%.*s\"%s%.*s%s with another body already; use another id, or send the same body",
                          SLICE_ARG(op->insert.id), op->insert.tenant.len > 0 ? " of tenant \"" : "",
                          SLICE_ARG(op->insert.tenant), op->insert.tenant.len > 0 ? "\"" : "");
    case STATUS_FULL:
        if (op->insert.ret_tenant_full)
            return problem_set(ret_problem, 429, "tenant_queue_full",
                              "tenant \"%.*s\" has as many jobs waiting as limits.pending_per_tenant allows; "
                              "some of them must end first",
                              SLICE_ARG(op->insert.tenant));
        return problem_set(ret_problem, 429, "queue_full",
                          "limits.pending jobs are waiting already; some of them must end first");
    default:
        return problem_set(ret_problem, 422, "refused", "the store refused the job: %s", status_name(op->status));
    }
}

/* --- one --------------------------------------------------------------------------------------- */

static void write_warning(struct json_writer *json, const struct call *call, const struct outlook *outlooks, size_t count)
{
    struct buffer warning = buffer_up_to(WARNING_BYTES_MAX);
    if (outlooks_warning(outlooks, count, api_now(call->api), &warning) && buffer_status(&warning) == STATUS_OK)
        json_member_string(json, "warning", buffer_slice(&warning));
    buffer_release(&warning);
}

static void write_inserted(struct call *call, const char *state)
{
    const struct store_op *op = &call->batch->ops[0];
    struct buffer body = call_buffer();
    struct json_writer json = json_begin(&body);
    json_member_string(&json, "id", op->insert.ret_id);
    json_member_string(&json, "tenant", op->insert.tenant);
    json_member_string(&json, "destination", op->insert.destination);
    if (state)
        json_member_text(&json, "state", state);
    json_member_bool(&json, "created", !op->insert.ret_existed);
    if (!op->insert.ret_existed)
        write_warning(&json, call, call->context, call->context ? 1 : 0);
    json_object_end(&json);
    call_json(call, op->insert.ret_existed ? 200 : 201, &body);
}

static void answer_new(struct call *call)
{
    write_inserted(call, job_state_name(STATE_PENDING));
}

/* How the job is that was there already; one that cannot be read is taken all the same. */
static enum status read_existing(struct call *call, struct store_reader *reader, struct error *err)
{
    const struct op_insert *insert = &call->batch->ops[0].insert;
    struct job job;
    enum status status = reader->ops->reader_job(reader, insert->tenant, insert->ret_id, false, &call->memory, &job, err);
    call->context = status == STATUS_OK ? (void *)(uintptr_t)job_state_name(job.state) : NULL;
    return STATUS_OK;
}

static void answer_existing(struct call *call)
{
    write_inserted(call, call->context); /* NULL: it was forgotten in between */
}

static void answer_insert(struct call *call)
{
    const struct store_op *op = &call->batch->ops[0];
    struct problem problem;
    struct outlook outlook;
    if (call->batch->status != STATUS_OK) {
        call->api->measures.refused[REFUSED_STORE_FAILED]++;
        call_store_problem(call, call->batch->status, &call->batch->error);
        return;
    }
    insert_measured(&call->api->measures, op);
    if (!insert_problem(op, &problem)) {
        call_problem(call, problem.status, problem.type, "%s", problem.detail);
        return;
    }
    struct outlook *saved = outlook_of(call, &op->insert, &outlook) ? arena_alloc(&call->memory, sizeof *saved) : NULL;
    call->context = saved;
    if (op->insert.ret_existed) {
        call_read(call, read_existing, answer_existing);
    } else if (saved) {
        *saved = outlook;
        outlooks_ask(call, saved, 1, answer_new);
    } else {
        answer_new(call);
    }
}

/* --- callbacks --------------------------------------------------------------------------------- */

static void on_noted(struct batch *batch)
{
    struct api *api = batch->context;
    api->callbacks_noted = batch->status == STATUS_OK;
    api->calls--;
    batch_free(batch);
    api_may_end(api);
}

/*
 * The first job that has one is preceded by a note of it, so that who follows the trail knows that it must look at the ends
 * of jobs. While nobody has used one, it need not.
 */
static void callbacks_note(struct api *api, const struct op_insert *insert)
{
    struct batch *batch = insert->callback.len > 0 && !api->callbacks_noted ? batch_new(1, SIZE_MAX / 4) : NULL;
    if (!batch)
        return;
    batch_save(batch, SPACE_FORWARD, SLICE("callbacks"), SLICE("{}"));
    batch->context = api;
    batch->done = on_noted;
    batch->reply_to = api->mailbox;
    api->callbacks_noted = true;
    api->calls++;
    writer_submit(api->settings.writer, batch);
}

void handle_jobs_post(struct call *call)
{
    struct problem problem;
    if (!api_accepts(call))
        return;
    call->batch = batch_new(1, SIZE_MAX / 4);
    if (!call->batch) {
        call_problem(call, 503, "no_memory", "no memory for the job; try again");
        return;
    }
    struct job_reader reader = reader_of(call, &call->batch->memory);
    struct store_op *op = &call->batch->ops[0];
    op->kind = OP_INSERT;
    if (!job_read(&reader, call->body, &op->insert, &problem)) {
        body_problem(call, &problem);
        return;
    }
    callbacks_note(call->api, &op->insert);
    call->batch->count = 1;
    call_submit(call, answer_insert);
}

/* --- many -------------------------------------------------------------------------------------- */

struct rejection {
    size_t index;
    const char *type;
    const char *detail;
    struct text_place place;
};

/* One request of many jobs: parts of up to CALL_OPS_MAX, submitted together. */
struct many {
    struct batch **parts;
    size_t part_count;
    size_t **indexes;  /* of each part's jobs in the request */
    size_t under_way;
    size_t accepted, duplicates;
    struct rejection *rejections;
    size_t rejection_count, rejection_capacity;
    enum status status; /* the first failure of the store */
    struct error error;
    struct outlook outlooks[OUTLOOKS_MAX]; /* of the last job of each tenant: it has the most before it */
    size_t outlook_count;
};

static bool reject(struct call *call, size_t index, const struct problem *problem)
{
    struct many *many = call->context;
    struct rejection *grown = array_grow_in(&call->memory, many->rejections, many->rejection_count,
                                            &many->rejection_capacity, sizeof *grown);
    if (!grown)
        return false;
    many->rejections = grown;
    const char *detail = arena_copy_text(&call->memory, slice_from(problem->detail));
    many->rejections[many->rejection_count++] = (struct rejection){ index, problem->type, detail, problem->place };
    return detail != NULL;
}

static void many_free(struct many *many)
{
    for (size_t i = 0; i < many->part_count; i++)
        batch_free(many->parts[i]);
}

static int by_index(const void *a, const void *b)
{
    size_t left = ((const struct rejection *)a)->index, right = ((const struct rejection *)b)->index;
    return (left > right) - (left < right);
}

static void write_many(struct json_writer *json, const struct call *call, const struct many *many)
{
    json_object_begin(json);
    json_member_int(json, "accepted", (int64_t)many->accepted);
    json_member_int(json, "duplicates", (int64_t)many->duplicates);
    json_member_array(json, "rejected");
    for (size_t i = 0; i < many->rejection_count; i++) {
        json_object_begin(json);
        json_member_int(json, "index", (int64_t)many->rejections[i].index);
        json_member_text(json, "type", many->rejections[i].type);
        json_member_text(json, "detail", many->rejections[i].detail);
        json_member_place(json, many->rejections[i].place);
        json_object_end(json);
    }
    json_array_end(json);
    write_warning(json, call, many->outlooks, many->outlook_count);
    json_object_end(json);
}

static void answer_counted(struct call *call)
{
    struct many *many = call->context;
    struct buffer body = call_buffer();
    struct json_writer json = json_writer(&body);
    if (many->rejection_count > 0)
        qsort(many->rejections, many->rejection_count, sizeof *many->rejections, by_index);
    write_many(&json, call, many);
    call_json(call, 200, &body);
}

static void answer_many(struct call *call)
{
    struct many *many = call->context;
    many_free(many);
    if (many->status != STATUS_OK) {
        /* Parts that were applied stay: sent again with the same ids, they are duplicates. */
        call_store_problem(call, many->status, &many->error);
        return;
    }
    outlooks_ask(call, many->outlooks, many->outlook_count, answer_counted);
}

static void look_ahead(struct call *call, const struct op_insert *inserted)
{
    struct many *many = call->context;
    struct outlook outlook;
    size_t at = 0;
    if (!outlook_of(call, inserted, &outlook))
        return;
    while (at < many->outlook_count && many->outlooks[at].lane != outlook.lane)
        at++;
    if (at == OUTLOOKS_MAX)
        return;
    if (at == many->outlook_count)
        outlook.destination = arena_copy(&call->memory, outlook.destination); /* the part goes before the answer */
    else
        outlook.destination = many->outlooks[at].destination;
    if (!outlook.destination.data)
        return;
    many->outlooks[at] = outlook;
    many->outlook_count += at == many->outlook_count;
}

static void count_part(struct call *call, const struct batch *batch, const size_t *indexes)
{
    struct many *many = call->context;
    struct problem problem;
    for (size_t i = 0; i < batch->count; i++) {
        const struct store_op *op = &batch->ops[i];
        insert_measured(&call->api->measures, op);
        if (insert_problem(op, &problem)) {
            *(op->insert.ret_existed ? &many->duplicates : &many->accepted) += 1;
            look_ahead(call, &op->insert);
        } else if (!reject(call, indexes[i], &problem))
            many->status = error_set(&many->error, STATUS_NO_MEMORY, "no memory to list what was refused");
    }
}

static void on_part(struct batch *batch)
{
    struct call *call = batch->context;
    struct many *many = call->context;
    size_t part = 0;
    while (many->parts[part] != batch)
        part++;
    if (batch->status == STATUS_OK) {
        count_part(call, batch, many->indexes[part]);
    } else if (many->status == STATUS_OK) {
        call->api->measures.refused[REFUSED_STORE_FAILED]++;
        many->status = batch->status;
        many->error = batch->error;
    }
    if (--many->under_way == 0)
        answer_many(call);
}

/* The next free operation; NULL: no memory. */
static struct store_op *next_op(struct call *call, size_t left, size_t index)
{
    struct many *many = call->context;
    struct batch *last = many->part_count > 0 ? many->parts[many->part_count - 1] : NULL;
    if (!last || last->count == CALL_OPS_MAX) {
        size_t room = left < CALL_OPS_MAX ? left : CALL_OPS_MAX;
        size_t *indexes = arena_alloc_array(&call->memory, room, sizeof *indexes);
        last = indexes ? batch_new(room, SIZE_MAX / 4) : NULL;
        if (!last)
            return NULL;
        many->indexes[many->part_count] = indexes;
        many->parts[many->part_count++] = last;
    }
    many->indexes[many->part_count - 1][last->count] = index;
    last->ops[last->count].kind = OP_INSERT;
    return &last->ops[last->count];
}

/* One element after the other, from an array or from lines. False at the end or where the array is broken. */
struct elements {
    struct slice rest;
    bool lines, broken;
};

static bool next_element(struct elements *elements, struct slice *ret_element)
{
    if (!elements->lines)
        return json_text_next(&elements->rest, ret_element, &elements->broken);
    while (elements->rest.len > 0) {
        size_t end = slice_find(elements->rest, '\n');
        *ret_element = slice_trim((struct slice){ elements->rest.data, end });
        elements->rest = slice_from_offset(elements->rest, end < elements->rest.len ? end + 1 : end);
        if (ret_element->len > 0)
            return true;
    }
    return false;
}

static struct elements elements_of(const struct call *call)
{
    struct slice type = call_header(call, SLICE("Content-Type"));
    struct slice text = slice_trim(call->body);
    bool lines = slice_has_prefix(type, SLICE("application/x-ndjson")) || text.len == 0 || text.data[0] != '[';
    return (struct elements){ .rest = text, .lines = lines };
}

/* It is false where there is no memory. */
static bool read_many(struct call *call, size_t count)
{
    struct elements elements = elements_of(call);
    struct many *many = call->context;
    struct job_reader reader = reader_of(call, NULL);
    struct slice text;
    struct text_place place = TEXT_PLACE_FIRST; /* of the last element that was refused */
    struct slice from = call->body;
    for (size_t index = 0; next_element(&elements, &text); index++) {
        struct problem problem;
        struct store_op *op = next_op(call, count - index, index);
        if (!op)
            return false;
        struct batch *batch = many->parts[many->part_count - 1];
        reader.memory = &batch->memory;
        if (job_read(&reader, text, &op->insert, &problem)) {
            callbacks_note(call->api, &op->insert);
            batch->count++;
            continue;
        }
        place = text_place_of(place, from, (size_t)(text.data - from.data));
        from = slice_from_offset(call->body, (size_t)(text.data - call->body.data));
        problem.place = text_place_within(place, problem.place);
        if (!reject(call, index, &problem))
            return false;
    }
    return true;
}

static void submit_many(struct call *call)
{
    struct many *many = call->context;
    size_t parts = many->part_count;
    many->under_way = 1; /* this function, until all are on their way */
    for (size_t i = 0; i < parts; i++) {
        struct batch *batch = many->parts[i];
        if (batch->count == 0)
            continue;
        batch->context = call;
        batch->done = on_part;
        batch->reply_to = call->api->mailbox;
        many->under_way++;
        writer_submit(call->api->settings.writer, batch);
    }
    if (--many->under_way == 0)
        answer_many(call);
}

static void refuse_array(struct call *call, struct slice rest, size_t count)
{
    struct problem problem;
    while (rest.len > 0 && ascii_is_space(rest.data[0]))
        rest = slice_from_offset(rest, 1);
    problem_set(&problem, 422, "invalid_json", "the array is broken after element %zu; nothing was taken", count);
    problem.place = text_place_of(TEXT_PLACE_FIRST, call->body, (size_t)(rest.data - call->body.data));
    body_problem(call, &problem);
}

void handle_jobs_batch(struct call *call)
{
    struct slice text;
    size_t count = 0;
    if (!api_accepts(call))
        return;
    struct elements elements = elements_of(call);
    while (count <= BATCH_JOBS_MAX && next_element(&elements, &text))
        count++;
    if (count > BATCH_JOBS_MAX) {
        call_problem(call, 413, "too_many_jobs", "one request takes up to %d jobs; nothing was taken, send several",
                     BATCH_JOBS_MAX);
        return;
    }
    if (elements.broken) {
        refuse_array(call, elements.rest, count);
        return;
    }
    size_t parts_max = count / CALL_OPS_MAX + 1;
    struct many *many = arena_alloc(&call->memory, sizeof *many);
    call->context = many;
    if (many) {
        many->parts = arena_alloc_array(&call->memory, parts_max, sizeof(struct batch *));
        many->indexes = arena_alloc_array(&call->memory, parts_max, sizeof(size_t *));
    }
    if (!many || !many->parts || !many->indexes || !read_many(call, count)) {
        if (many && many->parts)
            many_free(many);
        call_problem(call, 503, "no_memory", "no memory for so many jobs; send fewer at once");
        return;
    }
    submit_many(call);
}
