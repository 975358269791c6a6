/*
 * What answers: receivers that fail, lie, hang and break down, their health, and the workers of pull destinations.
 */
#include "engine/pull.h"
#include "world.h"

#include "engine/settlement.h"

#include <stdlib.h>

enum { SLOW_MS_MAX = 200 * SECOND_MS, USUAL_MS_MAX = 3000, NARROW_MS = 300, WORKER_LEASE_MS = 60 * SECOND_MS,
       UNHEARD_ONE_IN = 16 };

#define PERSON "HTTP 500: of 529.982.247-25"

struct reply {
    enum outcome outcome; /* as a transport would be certain of; NONE: the rules judge */
    const char *code, *text;
    enum fault fault;
};

static const struct reply replies[] = {
    { OUTCOME_NONE, "http:500", PERSON, FAULT_ERROR },
    { OUTCOME_NONE, "http:503", "SERVICE_UNAVAILABLE", FAULT_ERROR },
    { OUTCOME_NONE, "http:429", "RATE_LIMIT: too many requests", FAULT_ERROR },
    { OUTCOME_NONE, "http:422", "INVALID_PATIENT_DATA of 529.982.247-25", FAULT_ERROR },
    { OUTCOME_NONE, "http:200", "<faultcode>soap:Server</faultcode> TIMEOUT", FAULT_LIE },
    { OUTCOME_NONE, "http:200", "DUPLICATE_CLAIM", FAULT_LIE },
    { OUTCOME_NONE, "smtp:451", "451 4.3.0 try again later", FAULT_ERROR },
    { OUTCOME_NONE, "smtp:550", "550 5.1.1 no such user", FAULT_ERROR },
    { OUTCOME_NONE, "curl:7", "CONNECTION_ERROR: refused", FAULT_ERROR },
    { OUTCOME_NONE, "", "something that no rule knows", FAULT_ERROR },
    { OUTCOME_IN_DOUBT, "curl:28", "TIMEOUT: no answer", FAULT_ERROR },
    { OUTCOME_IN_DOUBT, "curl:56", "CONNECTION_ERROR: broken", FAULT_LOST },
    { OUTCOME_TRANSIENT, "http:502", "bad gateway", FAULT_ERROR },
    { OUTCOME_THROTTLED, "http:429", "slow down", FAULT_ERROR },
    { OUTCOME_WAIT, "http:503", "maintenance", FAULT_ERROR },
    { OUTCOME_ACCEPTED, "http:202", "taken", FAULT_ERROR },
    { OUTCOME_DUPLICATE, "http:409", "we have it", FAULT_LIE },
    { OUTCOME_PERMANENT, "http:400", "INVALID_PROCEDURE_CODE", FAULT_ERROR },
    { OUTCOME_PARTIAL, "sifen:0362", "some of it", FAULT_ERROR },
    { OUTCOME_DELIVERED, "http:200", "", FAULT_LIE }, /* and it has nothing */
    { OUTCOME_BLOCKED, "http:401", "unauthorized", FAULT_ERROR },
};

static void say(struct answer *answer, const struct reply *reply)
{
    answer->outcome = reply->outcome;
    answer->code = slice_from(reply->code);
    answer->text = slice_from(reply->text);
}

static void say_delivered(struct flight *flight)
{
    static const struct reply delivered = { OUTCOME_DELIVERED, "http:200", "", FAULT_COUNT };
    say(&flight->answer, &delivered);
    flight->answer.query = QUERY_DELIVERED;
    flight->shadow->received = true;
}

static bool is_down(struct world *world, struct receiver *receiver)
{
    if (receiver->flapping && world->mono >= receiver->flaps_at) {
        receiver->down = !receiver->down;
        receiver->up_at = INT64_MAX;
        receiver->flaps_at = world->mono + (int64_t)below(world, 120 * SECOND_MS) + 1;
    }
    if (receiver->down && world->mono >= receiver->up_at)
        receiver->down = false;
    return receiver->down && !world->healthy;
}

static int64_t answer_down(struct world *world, struct flight *flight, enum outage_kind how)
{
    static const struct reply down[] = {
        [DOWN_REFUSES] = { OUTCOME_NONE, "curl:7", "CONNECTION_ERROR: refused", FAULT_OUTAGE },
        [DOWN_HANGS] = { OUTCOME_IN_DOUBT, "curl:28", "TIMEOUT: no answer", FAULT_OUTAGE },
        [DOWN_SAYS_503] = { OUTCOME_NONE, "http:503", "SERVICE_UNAVAILABLE", FAULT_OUTAGE },
    };
    injected(world, FAULT_OUTAGE);
    say(&flight->answer, &down[how]);
    flight->answer.query = QUERY_UNCLEAR;
    return how == DOWN_HANGS ? flight->send->destination->timeout_ms : 1 + (int64_t)below(world, 50);
}

static void answer_overload(struct world *world, struct flight *flight)
{
    static const struct reply overload = { OUTCOME_NONE, "http:503", "SERVICE_UNAVAILABLE", FAULT_COUNT };
    injected(world, FAULT_OVERLOAD);
    say(&flight->answer, &overload);
    flight->answer.query = QUERY_UNCLEAR;
}

static bool is_refused(const struct world *world, const struct receiver *receiver, const struct flight *flight)
{
    if (world->healthy || world->mono >= receiver->refused_until)
        return false;
    switch (receiver->refused) {
    case REFUSED_JOBS:
        return flight->shadow->seq % 7 == 0;
    case REFUSED_TENANT:
        return flight->shadow->tenant == receiver->refused_tenant;
    case REFUSED_ALL:
        return true;
    default:
        return false;
    }
}

static void answer_refused(struct world *world, struct flight *flight)
{
    static const struct reply refused = { OUTCOME_BLOCKED, "http:401", "unauthorized", FAULT_COUNT };
    injected(world, FAULT_REFUSED);
    say(&flight->answer, &refused);
}

static void answer_question(struct world *world, struct flight *flight, bool bad)
{
    bool there = flight->shadow->received;
    if (bad)
        injected(world, FAULT_LIE);
    flight->answer.code = SLICE("http:200");
    flight->answer.text = SLICE("asked");
    flight->answer.query = bad     ? (enum query_answer)below(world, QUERY_REJECTED + 1)
                           : there ? QUERY_DELIVERED
                                   : QUERY_ABSENT;
}

static void answer_badly(struct world *world, struct flight *flight)
{
    const struct reply *reply = &replies[below(world, COUNT_OF(replies))];
    struct answer *answer = &flight->answer;
    injected(world, reply->fault);
    say(answer, reply);
    if (reply->fault == FAULT_LOST || reply->outcome == OUTCOME_ACCEPTED || (reply->outcome == OUTCOME_IN_DOUBT && once_in(world, 2)))
        flight->shadow->received = true;
    if (once_in(world, 4)) {
        static const int64_t wishes[] = { 0, 1, 1000, 30000, 3600000, INT64_C(315360000000), INT64_MAX / 2 };
        answer->retry_after_ms = wishes[below(world, COUNT_OF(wishes))];
        answer->slow_all = once_in(world, 2);
        if (answer->retry_after_ms == 0 || answer->retry_after_ms > DAY_MS)
            injected(world, FAULT_ABSURD);
    }
    if (once_in(world, 20)) {
        answer->attempted = false;
        injected(world, FAULT_UNSENT);
    }
}

static int64_t takes(struct world *world, const struct receiver *receiver, const struct send *send)
{
    if (world->healthy)
        return 10;
    if (world->narrow && receiver == world->receivers)
        return NARROW_MS + (int64_t)below(world, NARROW_MS);
    if (once_in(world, receiver->slow ? 3 : 100)) {
        injected(world, FAULT_SLOW);
        return (int64_t)below(world, SLOW_MS_MAX) + send->destination->timeout_ms;
    }
    return (int64_t)below(world, USUAL_MS_MAX);
}

int64_t receive(struct world *world, struct flight *flight)
{
    struct receiver *receiver = &world->receivers[flight->shadow->dest];
    bool fallback = flight->send->use_fallback;
    receiver->at_once++;
    int64_t duration = takes(world, receiver, flight->send);
    if (!fallback && is_down(world, receiver))
        return answer_down(world, flight, receiver->how);
    bool bad = !world->healthy && below(world, 100) < receiver->badness;
    if (receiver->capacity > 0 && receiver->at_once > receiver->capacity && !world->healthy)
        answer_overload(world, flight);
    else if (flight->send->job->step != STEP_SEND)
        answer_question(world, flight, bad);
    else if ((!fallback || receiver->second_refuses) && is_refused(world, receiver, flight))
        answer_refused(world, flight);
    else if (bad)
        answer_badly(world, flight);
    else
        say_delivered(flight);
    return duration;
}

int64_t receive_check(struct world *world, const struct probe *probe, struct health_answer *answer)
{
    struct receiver *receiver = &world->receivers[dest_number(slice_from(probe->destination->name))];
    bool up = !is_down(world, receiver);
    if (!world->healthy && once_in(world, 200)) {
        injected(world, FAULT_HEALTH);
        up = !up;
    }
    *answer = (struct health_answer){ .connected = up, .status = up ? 200 : 0,
                                      .body = up ? SLICE("{\"status\":\"UP\",\"services\":{\"facturation\":\"UP\",\"batch\":\"UP\"}}")
                                                 : SLICE("") };
    return up ? 5 : 1 + (int64_t)below(world, 8000);
}

/* ---- pull workers ---- */

static void task_end(struct task *task)
{
    *task->link = task->next;
    if (task->next)
        task->next->link = task->link;
    arena_release(&task->memory);
    free(task);
}

/*
 * What the API does when the store has taken a worker's word: the engine hears of it, unless it is another one by now. Of some
 * it does not: another node took it, and its bell was not heard.
 */
static void task_taken(struct world *world, const struct task *task)
{
    bool acked = task->op.settle.event == EVENT_DELIVER;
    if (world->epoch != task->epoch || task->op.status != STATUS_OK)
        return;
    if (acked && task->seq % UNHEARD_ONE_IN == 0)
        seen(world, FEATURE_UNHEARD);
    else if (acked)
        engine_acked(world->engine, task->seq, task->token);
    else if (task->nack.job)
        engine_nacked(world->engine, &task->nack, &task->op, &task->settlement);
}

void task_doubt_over(struct world *world, bool applied)
{
    struct task *task = world->doubted_task;
    world->doubted_task = NULL;
    if (task && applied)
        task_taken(world, task);
    if (task)
        task_end(task);
}

/* Invariant 3: whoever comes after the end of a lease changes nothing. While it is in doubt whether it did, the task waits. */
static void task_apply(struct world *world, struct task *task)
{
    int64_t current = world_job(world, task->job.id)->token;
    bool away = world->in_doubt;
    task->epoch = world->epoch;
    bool applied = world_apply(world, &task->op, &task->memory);
    if (applied && task->op.status == STATUS_OK && task->token != current)
        violated(world, INVARIANT_LEASE, "%.*s was settled by a worker whose lease was over", SLICE_ARG(task->job.id));
    if (applied)
        task_taken(world, task);
    if (!away && world->in_doubt)
        world->doubted_task = task;
}

/* What the API does with a worker's word. */
static void task_ack(struct world *world, struct task *task)
{
    task->op = (struct store_op){
        .kind = OP_SETTLE,
        .settle = { .seq = task->seq, .token = task->token, .event = EVENT_DELIVER, .retry_count = task->job.retry_count,
                    .outcome = OUTCOME_DELIVERED, .forget_at = world_now(world) + DAY_MS },
    };
    world_job(world, task->job.id)->may_complete = true;
    task_apply(world, task);
}

static void task_nack(struct world *world, struct task *task)
{
    const struct reply *reply = &replies[below(world, 4)];
    struct shadow *shadow = world_job(world, task->job.id);
    const struct policy *policy;
    task->nack = (struct lease_nack){ .job = &task->job, .answer = { .attempted = true, .code = slice_from(reply->code),
                                                                     .text = slice_from(reply->text), .retry_after_ms = -1 } };
    injected(world, FAULT_WORKER);
    if (task->token == shadow->token)
        check_nack(world, shadow, &task->job, &task->nack.answer);
    if (engine_nack(world->engine, &task->nack, &task->memory, &task->op, &task->settlement, &policy) == STATUS_OK)
        task_apply(world, task);
    shadow->expected.set = false; /* where the store refused, its lease runs out */
}

/* It goes back as if it had never been taken. */
static void task_return(struct world *world, struct task *task)
{
    const struct job *job = &task->job;
    task->op = (struct store_op){
        .kind = OP_SETTLE,
        .settle = { .seq = task->seq, .token = task->token, .event = EVENT_RELEASE, .step = job->step,
                    .run_at = world_now(world), .rank = job->rank, .retry_count = job->retry_count,
                    .step_count = job->step_count, .doubted = job->doubted, .attempt_undone = job->step == STEP_SEND,
                    .outcome = OUTCOME_WAIT, .forget_at = INSTANT_NONE },
    };
    seen(world, FEATURE_RETURNED);
    engine_lease_returned(world->engine, task->seq, task->token);
    task_apply(world, task);
}

/* Whether the worker has it for longer. */
static bool task_extend(struct world *world, const struct task *task)
{
    struct arena memory = { 0 };
    int64_t current = world_job(world, task->job.id)->token;
    struct store_op op = { .kind = OP_EXTEND, .extend = { .seq = task->seq, .token = task->token,
                                                          .lease_until = world_now(world) + WORKER_LEASE_MS } };
    bool extended = world_apply(world, &op, &memory) && op.status == STATUS_OK;
    if (extended && task->token != current)
        violated(world, INVARIANT_LEASE, "the lease of %.*s was over, and was prolonged", SLICE_ARG(task->job.id));
    if (extended)
        seen(world, FEATURE_EXTENDED);
    arena_release(&memory);
    return extended;
}

/* True: the worker has it still. */
static bool task_go_on(struct world *world, struct task *task)
{
    if (!world->healthy && once_in(world, 6) && task_extend(world, task))
        return true;
    if (!world->healthy && once_in(world, 4))
        task_nack(world, task);
    else if (!world->healthy && once_in(world, 8))
        task_return(world, task);
    else
        task_ack(world, task);
    return false;
}

static void task_fire(struct world *world, struct timer *timer)
{
    struct task *task = (struct task *)timer;
    struct error error;
    arena_release(&task->memory);
    bool found = world->eye->ops->reader_job_seq(world->eye, task->seq, false, &task->memory, &task->job, &error) == STATUS_OK;
    bool vanishes = !world->healthy && once_in(world, 10);
    if (vanishes)
        injected(world, FAULT_WORKER);
    else if (found && world_dest(world, dest_number(task->job.destination))) {
        task->job.lease_token = task->token; /* as it was told the worker, stale or not */
        if (task_go_on(world, task)) {
            timer_set(world, timer, world->mono + (int64_t)below(world, WORKER_LEASE_MS / 2));
            return;
        }
    }
    if (world->doubted_task != task)
        task_end(task);
}

static void on_leased(struct lease_request *request, enum status status, const struct job *jobs, size_t count)
{
    struct world *world = request->context;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        struct task *task = calloc(1, sizeof *task);
        assert_non_null(task);
        *task = (struct task){ .timer.fire = task_fire, .seq = jobs[i].seq, .token = jobs[i].lease_token,
                               .next = world->tasks, .link = &world->tasks };
        if (task->next)
            task->next->link = &task->next;
        world->tasks = task;
        bool late = !world->healthy && once_in(world, 10); /* its lease is over by then */
        if (late)
            injected(world, FAULT_WORKER);
        timer_set(world, &task->timer, world->mono + (int64_t)below(world, late ? 5 * WORKER_LEASE_MS : WORKER_LEASE_MS / 2));
    }
    lease_release(request);
    world->asking = false;
}

void workers_begin(struct world *world)
{
    int dest = CLIENT_DESTS - 1;
    const struct destination_config *config = world_dest(world, dest);
    if (world->asking || !config || config->transport != TRANSPORT_PULL)
        return;
    world->asking = true;
    world->request = (struct lease_request){
        .destination = slice_from(dest_names[dest]),
        .worker = SLICE("worker"),
        .max = 1 + below(world, 8),
        .lease_ms = WORKER_LEASE_MS,
        .wait_until = world_now(world) + 30 * SECOND_MS,
        .done = on_leased,
        .context = world,
    };
    engine_lease(world->engine, &world->request);
}
