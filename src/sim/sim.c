#include "sim/sim.h"

#include "base/heap.h"
#include "engine/orders.h"
#include "engine/status.h"
#include "sim/answers.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STOP_STEP_MS = 1000, STOP_STEPS_MAX = 100000, NAME_BYTES = 32, TENANT_BYTES = 1024,
       HEALTH_BYTES_MAX = 1 << 20 };

/* A send or a health check under way, until the model's time for it is over. */
struct flight {
    struct heap_node node; /* first */
    struct send *send;     /* NULL: it is a health check */
    struct probe *probe;
    struct model_reply reply;
    bool there; /* of a question: the destination has the job */
    struct flight *next_free;
};

struct sim {
    const struct sim_settings *settings;
    struct store *store;
    struct store_reader *reader;
    struct engine *engine;
    struct model model;
    struct ledger *ledger;
    instant start, now;
    instant wake_at; /* INSTANT_NONE: nothing asked for */
    struct batch *batches;
    struct batch **batches_end;
    struct heap flights;
    struct flight *free_flights;
    uint64_t flight_count;
    int64_t next_arrival;
    instant next_arrival_at; /* INSTANT_NONE: no more */
    int64_t job_max;     /* backlog and arrivals */
    int64_t *job_of_seq; /* by the store's number less one; -1: none */
    instant attend_at;   /* when a person resumes the destination; INSTANT_NONE: it is not paused, as far as is known */
    struct buffer health; /* the body of an answer to a check */
    int64_t steps_sampled;   /* for the holds */
    struct sim_hold *holds;
    struct error error;      /* STATUS_OK, or why the simulation cannot go on */
};

static int64_t elapsed(const struct sim *sim)
{
    return sim->now - sim->start;
}

static void fail(struct sim *sim, enum status status, const char *what)
{
    if (sim->error.status == STATUS_OK)
        error_set(&sim->error, status, "%s", what);
}

/* ---- Ports ---- */

static instant port_now(void *context)
{
    return ((struct sim *)context)->now;
}

static void port_submit(void *context, struct batch *batch)
{
    struct sim *sim = context;
    batch->next_pending = NULL;
    *sim->batches_end = batch;
    sim->batches_end = &batch->next_pending;
}

static void port_wake_at(void *context, instant at)
{
    struct sim *sim = context;
    if (sim->wake_at == INSTANT_NONE || at < sim->wake_at)
        sim->wake_at = at;
}

static struct flight *flight_new(struct sim *sim)
{
    struct flight *flight = sim->free_flights;
    if (flight)
        sim->free_flights = flight->next_free;
    else
        flight = malloc(sizeof *flight);
    if (flight)
        *flight = (struct flight){ .next_free = NULL };
    return flight;
}

static void flight_free(struct sim *sim, struct flight *flight)
{
    flight->next_free = sim->free_flights;
    sim->free_flights = flight;
}

static int64_t job_number(const struct sim *sim, int64_t seq)
{
    assert(seq > 0 && seq <= sim->job_max && sim->job_of_seq[seq - 1] >= 0);
    return sim->job_of_seq[seq - 1];
}

/* NULL: no memory, and the simulation ends. */
static struct flight *flight_begin(struct sim *sim)
{
    struct flight *flight = flight_new(sim);
    if (flight && heap_reserve(&sim->flights, sim->flights.count + 1) == STATUS_OK)
        return flight;
    free(flight);
    fail(sim, STATUS_NO_MEMORY, "no memory for a send");
    return NULL;
}

static void flight_go(struct sim *sim, struct flight *flight)
{
    enum status pushed =
        heap_push(&sim->flights, &flight->node, sim->now + flight->reply.takes_ms, sim->flight_count++);
    assert(pushed == STATUS_OK); /* there is room */
    (void)pushed;
}

static void port_send(void *context, struct send *send)
{
    struct sim *sim = context;
    const struct job *job = send->job;
    struct job_record *record = &sim->ledger->jobs[job_number(sim, job->seq)];
    bool question = job->step != STEP_SEND;
    struct flight *flight = flight_begin(sim);
    if (!flight)
        return;
    struct model_request request = {
        .at_ms = elapsed(sim),
        .job = job_number(sim, job->seq),
        /* Questions draw apart from sends. */
        .attempt = question ? (job->attempts << 20) + job->step_count + 1 : job->attempts_total,
        .had_before = record->there,
        .question = question,
    };
    flight->send = send;
    flight->reply = model_begin(&sim->model, &request);
    flight->there = record->there;
    record->there = record->there || flight->reply.accepted;
    ledger_sent(sim->ledger, request.job, request.at_ms, question);
    flight_go(sim, flight);
}

/* Other destinations of the same file have nothing to do here, and are well. */
static void port_probe(void *context, struct probe *probe)
{
    struct sim *sim = context;
    bool ours = strcmp(probe->destination->name, sim->settings->destination->name) == 0;
    struct flight *flight = flight_begin(sim);
    if (!flight)
        return;
    flight->probe = probe;
    flight->reply = (struct model_reply){ .answer = MODEL_OK, .takes_ms = 1 };
    if (ours)
        flight->reply = model_check(&sim->model, elapsed(sim));
    if (flight->reply.takes_ms > probe->destination->health.timeout_ms)
        flight->reply = (struct model_reply){ .answer = MODEL_TIMED_OUT, .takes_ms = probe->destination->health.timeout_ms };
    flight_go(sim, flight);
}

/* ---- What happened to jobs, as the store's operations tell ---- */

static enum job_end end_of(const struct op_settle *settle)
{
    if (settle->event == EVENT_DELIVER)
        return END_COMPLETED;
    if (settle->event == EVENT_EXPIRE)
        return END_EXPIRED;
    if (slice_equal(settle->dead_code, SLICE("MAX_RETRIES_EXCEEDED")))
        return END_EXHAUSTED;
    if (slice_equal(settle->dead_code, SLICE("IN_DOUBT")))
        return END_IN_DOUBT;
    return slice_equal(settle->dead_code, SLICE("EXPIRED")) ? END_EXPIRED : END_PERMANENT;
}

static size_t backlog_count(const struct sim *sim)
{
    return sim->settings->backlog ? sim->settings->backlog->count : 0;
}

static enum priority priority_of(const struct sim *sim, int64_t job)
{
    int64_t arrival = job - (int64_t)backlog_count(sim);
    return arrival >= 0 ? load_arrival(&sim->settings->load, arrival).priority
                        : (enum priority)sim->settings->backlog->jobs[job].priority;
}

static void note_settled(struct sim *sim, const struct op_settle *settle)
{
    int64_t job = job_number(sim, settle->seq);
    const struct job_record *record = &sim->ledger->jobs[job];
    if (settle->event == EVENT_RETRY || settle->event == EVENT_RELEASE) {
        if (settle->retry_count > record->spent)
            ledger_retry(sim->ledger, job, settle->retry_count, settle->run_at - sim->start - record->answered_ms,
                         priority_of(sim, job));
        return;
    }
    ledger_ended(sim->ledger, job, elapsed(sim), end_of(settle));
}

static void note_applied(struct sim *sim, const struct store_op *op)
{
    if (op->status != STATUS_OK)
        return;
    if (op->kind == OP_SETTLE)
        note_settled(sim, &op->settle);
    else if (op->kind == OP_PROMOTE && op->promote.ret_expired > 0)
        ledger_expired(sim->ledger, elapsed(sim), (int64_t)op->promote.ret_expired);
    else if (op->kind == OP_REDRIVE && op->job.ret_was_dead)
        ledger_redriven(sim->ledger, job_number(sim, op->job.ret_seq), elapsed(sim));
}

static enum status apply(struct sim *sim, struct store_op *ops, size_t count, struct arena *results, struct error *err)
{
    enum status status = sim->store->ops->apply(sim->store, sim->now, ops, count, results, err);
    if (status != STATUS_OK) {
        fail(sim, status, err->text);
        return status;
    }
    for (size_t i = 0; i < count; i++)
        note_applied(sim, &ops[i]);
    struct notice *notice;
    if (notice_of(ops, count, sim->now, &notice) != STATUS_OK)
        fail(sim, STATUS_NO_MEMORY, "no memory for a notice");
    else if (notice)
        engine_notice(sim->engine, notice);
    return STATUS_OK;
}

/* ---- Events ---- */

static void apply_first(struct sim *sim)
{
    struct batch *batch = sim->batches;
    sim->batches = batch->next_pending;
    if (!sim->batches)
        sim->batches_end = &sim->batches;
    batch->status = apply(sim, batch->ops, batch->count, &batch->memory, &batch->error);
    batch->done(batch);
}

static void answer_probe(struct sim *sim, const struct flight *flight)
{
    struct health_answer answer;
    health_answer_make(&flight->reply, &flight->probe->destination->health, &sim->health, &answer);
    if (buffer_status(&sim->health) != STATUS_OK)
        fail(sim, STATUS_NO_MEMORY, "no memory for a health check");
    flight->probe->done(flight->probe, &answer);
}

static void answer_send(struct sim *sim, const struct flight *flight)
{
    struct send *send = flight->send;
    struct answer answer;
    model_done(&sim->model);
    ledger_answered(sim->ledger, job_number(sim, send->job->seq), elapsed(sim), flight->reply.answer);
    if (flight->reply.answer == MODEL_BLOCKED && sim->attend_at == INSTANT_NONE)
        sim->attend_at = instant_add(sim->now, sim->settings->attend_ms);
    answer_make(&flight->reply, send, flight->there, &answer);
    send->done(send, &answer);
}

static void answer_first(struct sim *sim)
{
    struct flight *flight = (struct flight *)heap_first(&sim->flights);
    heap_remove(&sim->flights, &flight->node);
    if (flight->send)
        answer_send(sim, flight);
    else
        answer_probe(sim, flight);
    flight_free(sim, flight);
}

/* The person who has heard that credentials are refused has a look, and switches the destination on again. */
static void attend(struct sim *sim)
{
    struct error error;
    sim->attend_at = INSTANT_NONE;
    if (engine_resume(sim->engine, slice_from(sim->settings->destination->name), &error) != STATUS_OK)
        fail(sim, error.status, error.text);
}

static void plan_arrival(struct sim *sim)
{
    const struct load_settings *load = &sim->settings->load;
    sim->next_arrival_at =
        sim->next_arrival < load->jobs ? sim->start + load_arrival(load, sim->next_arrival).at_ms : INSTANT_NONE;
}

/* New jobs are of the tenants that have a backlog, then of more. */
static void tenant_name(const struct sim *sim, int64_t tenant, char *ret_name, size_t size)
{
    const struct backlog *backlog = sim->settings->backlog;
    if (backlog && tenant < (int64_t)backlog->tenant_count)
        snprintf(ret_name, size, "%s", backlog->tenants[tenant]);
    else
        snprintf(ret_name, size, "tenant-%" PRId64, tenant + 1);
}

static void arrive(struct sim *sim)
{
    const struct destination_config *destination = sim->settings->destination;
    struct arrival arrival = load_arrival(&sim->settings->load, sim->next_arrival);
    char tenant[TENANT_BYTES], id[NAME_BYTES];
    struct arena memory = { 0 };
    struct error error;
    tenant_name(sim, arrival.tenant, tenant, sizeof tenant);
    snprintf(id, sizeof id, "SIM-2025-%" PRId64, sim->next_arrival + 1);
    struct store_op op = {
        .kind = OP_INSERT,
        .insert = {
            .destination = slice_from(destination->name),
            .tenant = slice_from(tenant),
            .id = slice_from(id),
            .priority = arrival.priority,
            .rank = rank_of(arrival.priority, sim->now, destination->aging_ms),
            .run_at = sim->now,
            .deadline = destination->job_ttl_ms > 0 ? instant_add(sim->now, destination->job_ttl_ms) : INSTANT_NONE,
        },
    };
    int64_t job = ledger_arrived(sim->ledger, elapsed(sim), arrival.tenant);
    if (apply(sim, &op, 1, &memory, &error) == STATUS_OK && op.status == STATUS_FULL)
        ledger_refused(sim->ledger, job, elapsed(sim));
    else if (op.status != STATUS_OK || op.insert.ret_seq < 1 || op.insert.ret_seq > sim->job_max)
        fail(sim, op.status != STATUS_OK ? op.status : STATUS_UNSUPPORTED, "the store did not take a job");
    else
        sim->job_of_seq[op.insert.ret_seq - 1] = job;
    arena_release(&memory);
    sim->next_arrival++;
    plan_arrival(sim);
}

/* Lets one thing happen that is due; false: nothing is. */
static bool step(struct sim *sim)
{
    struct heap_node *flight = heap_first(&sim->flights);
    if (sim->batches) {
        apply_first(sim);
    } else if (flight && flight->key <= sim->now) {
        answer_first(sim);
    } else if (sim->next_arrival_at != INSTANT_NONE && sim->next_arrival_at <= sim->now) {
        arrive(sim);
    } else if (sim->attend_at != INSTANT_NONE && sim->attend_at <= sim->now) {
        attend(sim);
    } else if (sim->wake_at != INSTANT_NONE && sim->wake_at <= sim->now) {
        sim->wake_at = INSTANT_NONE;
        engine_run(sim->engine);
    } else {
        return false;
    }
    return true;
}

static instant next_time(const struct sim *sim)
{
    const struct heap_node *flight = heap_first(&sim->flights);
    instant next = sim->wake_at;
    next = instant_earlier(next, sim->next_arrival_at);
    next = instant_earlier(next, sim->attend_at);
    next = instant_earlier(next, flight ? flight->key : INSTANT_NONE);
    return next;
}

static void add_hold(struct sim_hold *holds, const char *by, int64_t ms)
{
    for (int i = 0; i < SIM_HOLDS_MAX; i++) {
        if (holds[i].by && strcmp(holds[i].by, by) != 0)
            continue;
        holds[i].by = by; /* the engine's words are constant */
        holds[i].ms += ms;
        return;
    }
}

/* Once a step of the curves: what stands between the jobs and the destination. */
static void sample_hold(struct sim *sim)
{
    int64_t steps = elapsed(sim) / sim->ledger->step_ms;
    if (steps == sim->steps_sampled)
        return;
    struct destination_status status = engine_destination(sim->engine, slice_from(sim->settings->destination->name));
    /* That all places are taken is how a busy destination looks, and holds nothing up. */
    if (status.held_by && strcmp(status.held_by, "concurrency") != 0)
        add_hold(sim->holds, status.held_by, (steps - sim->steps_sampled) * sim->ledger->step_ms);
    sim->steps_sampled = steps;
}

static void run_until_done(struct sim *sim)
{
    instant limit = instant_add(sim->start + sim->settings->load.for_ms, sim->settings->settle_max_ms);
    while (sim->error.status == STATUS_OK) {
        if (step(sim))
            continue;
        sample_hold(sim);
        if (sim->next_arrival_at == INSTANT_NONE && sim->ledger->queue == 0)
            break;
        instant next = next_time(sim);
        if (next == INSTANT_NONE || next > limit)
            break;
        sim->now = next > sim->now ? next : sim->now;
    }
}

/* Lets what is under way come to its end, so that its memory can be freed. */
static void stop(struct sim *sim)
{
    sim->next_arrival_at = sim->attend_at = INSTANT_NONE;
    engine_stop(sim->engine);
    for (int i = 0; i < STOP_STEPS_MAX && engine_under_way(sim->engine) > 0; i++) {
        while (step(sim))
            continue;
        instant next = next_time(sim);
        sim->now = next != INSTANT_NONE && next > sim->now ? next : sim->now + STOP_STEP_MS;
        sim->wake_at = sim->now;
    }
}

/* Which jobs expired while they waited is known to the store alone. */
static enum status find_expired(struct sim *sim, struct error *err)
{
    struct ledger *ledger = sim->ledger;
    for (int64_t i = 0; i < sim->job_max; i++) {
        struct job job;
        struct arena memory = { 0 };
        int64_t number = sim->job_of_seq[i];
        if (number < 0 || ledger->jobs[number].end != END_OPEN)
            continue;
        enum status status = sim->reader->ops->reader_job_seq(sim->reader, i + 1, false, &memory, &job, err);
        bool gone = status == STATUS_NOT_FOUND; /* the dead letter's time to live ended too */
        if (gone || (status == STATUS_OK && job.state == STATE_DEAD))
            ledger_expired_job(ledger, number, gone ? elapsed(sim) : job.dead_at - sim->start);
        arena_release(&memory);
        if (status != STATUS_OK && !gone)
            return status;
    }
    return STATUS_OK;
}

static int64_t not_after_start(const struct sim *sim, instant at)
{
    return at != INSTANT_NONE && at < sim->start ? at - sim->start : 0;
}

static enum status load_backlog(struct sim *sim, struct error *err)
{
    const struct backlog *backlog = sim->settings->backlog;
    int64_t *seqs = malloc((backlog->count + 1) * sizeof *seqs);
    if (!seqs)
        return error_set(err, STATUS_NO_MEMORY, "no memory for %zu jobs", backlog->count);
    enum status status =
        backlog_restore(backlog, sim->store, sim->settings->destination->name, sim->start, seqs, err);
    for (size_t i = 0; i < backlog->count && status == STATUS_OK; i++) {
        const struct backlog_job *from = &backlog->jobs[i];
        int64_t job = ledger_was_there(sim->ledger, not_after_start(sim, from->created_at), from->tenant,
                                       not_after_start(sim, from->first_at), from->attempts, from->retry_count);
        if (seqs[i] < 1)
            ledger_refused(sim->ledger, job, 0);
        else if (seqs[i] > sim->job_max)
            status = error_set(err, STATUS_UNSUPPORTED, "the store did not take a job");
        else
            sim->job_of_seq[seqs[i] - 1] = job;
    }
    free(seqs);
    return status;
}

static enum status start(struct sim *sim, struct error *err)
{
    bool asked = sim->settings->model.health != MODEL_HEALTH_NONE;
    sim->job_of_seq = malloc(((size_t)sim->job_max + 1) * sizeof *sim->job_of_seq);
    if (!sim->job_of_seq)
        return error_set(err, STATUS_NO_MEMORY, "no memory for %" PRId64 " jobs", sim->job_max);
    for (int64_t i = 0; i < sim->job_max; i++)
        sim->job_of_seq[i] = -1;
    struct engine_settings settings = {
        .ports = { .context = sim, .now = port_now, .submit = port_submit, .send = port_send,
                   .probe = asked ? port_probe : NULL, .wake_at = port_wake_at },
        .config = sim->settings->config,
        .seed = sim->settings->seed,
        .no_alerts = true,
    };
    enum status status = sim->settings->backlog ? load_backlog(sim, err) : STATUS_OK;
    if (status == STATUS_OK)
        status = sim->store->ops->reader(sim->store, &sim->reader, err);
    if (status == STATUS_OK)
        status = engine_new(&settings, &sim->engine, err);
    if (status == STATUS_OK)
        status = engine_start(sim->engine, sim->reader, err);
    return status;
}

/* A destination that somebody had paused is attended to as well. */
static const char *mode_at_start(struct sim *sim)
{
    struct destination_status status = engine_destination(sim->engine, slice_from(sim->settings->destination->name));
    if (strcmp(status.mode, "paused") == 0)
        sim->attend_at = instant_add(sim->start, sim->settings->attend_ms);
    return status.mode; /* the engine's words are constant */
}

static void sim_release(struct sim *sim)
{
    /* A send that found no memory is never answered; then the engine must be left as it is. */
    if (sim->engine && engine_under_way(sim->engine) == 0)
        engine_free(sim->engine);
    if (sim->reader)
        sim->reader->ops->reader_close(sim->reader);
    heap_release(&sim->flights);
    buffer_release(&sim->health);
    free(sim->job_of_seq);
    while (sim->free_flights) {
        struct flight *next = sim->free_flights->next_free;
        free(sim->free_flights);
        sim->free_flights = next;
    }
}

enum status sim_run(const struct sim_settings *settings, struct store *store, struct sim_result *ret_result,
                    struct error *err)
{
    struct sim_result result = { 0 };
    const struct load_settings *load = &settings->load;
    const struct backlog *backlog = settings->backlog;
    instant begin = settings->start > 0 ? settings->start : SIM_START;
    int64_t tenants = backlog && (int64_t)backlog->tenant_count > load->tenants ? (int64_t)backlog->tenant_count
                                                                                : load->tenants;
    struct sim sim = { .settings = settings, .store = store, .ledger = &result.ledger, .holds = result.holds,
                       .start = begin, .now = begin, .wake_at = INSTANT_NONE, .attend_at = INSTANT_NONE,
                       .batches_end = &sim.batches };
    result.backlog_count = (int64_t)backlog_count(&sim);
    sim.job_max = load->jobs + result.backlog_count;
    if (ledger_init(&result.ledger, &settings->destination->policy.retry, sim.job_max, tenants,
                    ledger_step_for(load->for_ms)) != STATUS_OK)
        return error_set(err, STATUS_NO_MEMORY, "no memory for %" PRId64 " jobs", sim.job_max);
    model_start(&sim.model, &settings->model);
    heap_init(&sim.flights);
    buffer_init(&sim.health, HEALTH_BYTES_MAX);
    plan_arrival(&sim);
    enum status status = start(&sim, err);
    if (status == STATUS_OK) {
        result.mode = mode_at_start(&sim);
        run_until_done(&sim);
        result.ended_ms = elapsed(&sim);
        stop(&sim);
        if (result.ledger.failed)
            fail(&sim, STATUS_NO_MEMORY, "no memory for the curves");
        status = sim.error.status;
        if (status != STATUS_OK)
            error_set(err, status, "%s", sim.error.text);
        else
            status = find_expired(&sim, err);
        result.engine = engine_figures(sim.engine);
    }
    result.model = sim.model.figures;
    sim_release(&sim);
    if (status == STATUS_OK)
        *ret_result = result;
    else
        ledger_release(&result.ledger);
    return status;
}

void sim_result_release(struct sim_result *result)
{
    ledger_release(&result->ledger);
}
