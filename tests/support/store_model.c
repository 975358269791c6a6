#include "support/store_model.h"

#include <stdlib.h>
#include <string.h>

enum { JOBS_MAX = 32 * 1024 };

const char *const model_destinations[MODEL_DESTINATIONS] = { "claims", "mail", "invoices" };
const char *const model_tenants[MODEL_TENANTS] = { "", "a", "Hospital São João" };

void model_init(struct model *model, instant now, int64_t pending_max)
{
    *model = (struct model){ .now = now, .pending_max = pending_max };
    model->jobs = calloc(JOBS_MAX, sizeof *model->jobs); /* never moves: operations point to its ids */
    assert_non_null(model->jobs);
}

void model_release(struct model *model)
{
    free(model->jobs);
    free(model->events);
}

static size_t index_of(const char *const *names, size_t count, struct slice name)
{
    for (size_t i = 0; i < count; i++)
        if (slice_equal(slice_from(names[i]), name))
            return i;
    fail_msg("%.*s is not in the model", SLICE_ARG(name));
    return 0;
}

static struct model_job *job_named(struct model *model, struct slice tenant, struct slice id)
{
    for (size_t i = model->job_count; id.len > 0 && i-- > 0;) {
        struct model_job *job = &model->jobs[i];
        if (job->exists && slice_equal(slice_from(job->id), id) && slice_equal(job->job.tenant, tenant))
            return job;
    }
    return NULL;
}

/* Of a trim's own event; the hash that follows is the store's. */
static const struct slice trimmed_note = { "{\"note\":\"trimmed\",\"newest\":\"", 28 };

static void event_add(struct model *model, enum event_type type, struct model_job *job, struct slice destination,
                      struct slice data)
{
    if (model->event_count == model->event_capacity) {
        model->event_capacity = model->event_capacity ? model->event_capacity * 2 : 256;
        model->events = realloc(model->events, model->event_capacity * sizeof *model->events);
        assert_non_null(model->events);
    }
    struct model_event *event = &model->events[model->event_count++];
    *event = (struct model_event){
        .event = { .number = (int64_t)model->event_count,
                   .at = model->now,
                   .type = type,
                   .state = job ? job->job.state : STATE_NONE,
                   .attempt = job ? job->job.attempts : 0,
                   .destination = job ? job->job.destination : destination,
                   .data = data,
                   .previous = job ? job->job.last_event : 0 },
        .job = job ? (size_t)(job - model->jobs) : MODEL_NONE,
    };
    if (job)
        job->job.last_event = event->event.number;
}

static void job_changed(struct model *model, struct model_job *job, enum event_type type, struct slice data)
{
    job->job.updated_at = model->now;
    event_add(model, type, job, SLICE(""), data);
}

/* Of one tenant; without data: of all. */
static int64_t backlog(const struct model *model, struct slice tenant)
{
    int64_t count = 0;
    for (size_t i = 0; i < model->job_count; i++) {
        const struct model_job *job = &model->jobs[i];
        count += job->exists && (job->job.state == STATE_PENDING || job->job.state == STATE_WAITING) &&
                 (!tenant.data || slice_equal(job->job.tenant, tenant));
    }
    return count;
}

static bool has_tenants(const struct model *model)
{
    for (size_t i = 1; i < model->job_count; i++)
        if (!slice_equal(model->jobs[i].job.tenant, model->jobs[0].job.tenant))
            return true;
    return false;
}

/* Of those of a key that have not ended, the first that came, or the first that is behind; NULL: there is none. */
static struct model_job *chain_first(struct model *model, int64_t lane, struct slice key, bool behind)
{
    for (size_t i = 0; key.len > 0 && i < model->job_count; i++) {
        struct model_job *job = &model->jobs[i];
        bool ended = job->job.state == STATE_COMPLETED || job->job.state == STATE_DEAD || job->job.state == STATE_CANCELLED;
        if (job->exists && !ended && job->job.lane == lane && slice_equal(job->job.key, key) && (!behind || job->job.behind))
            return job;
    }
    return NULL;
}

/* It has ended, in its turn or before it. Whether one more is ready now. */
static bool chain_ended(struct model *model, struct model_job *job)
{
    bool was_behind = job->job.behind, gap = job->job.state != STATE_COMPLETED;
    job->job.behind = false;
    struct model_job *next = chain_first(model, job->job.lane, job->job.key, true);
    while (was_behind && next && (next < job || !next->job.behind || !slice_equal(next->job.key, job->job.key) ||
                                  next->job.lane != job->job.lane || !next->exists))
        next = next + 1 < model->jobs + model->job_count ? next + 1 : NULL;
    if (!next)
        return false;
    next->job.gap = next->job.gap || gap;
    if (was_behind)
        return false;
    next->job.behind = false;
    next->ready = next->job.run_at <= model->now;
    return next->ready;
}

static void apply_insert(struct model *model, const struct store_op *op, struct expected *expected)
{
    const struct op_insert *insert = &op->insert;
    struct model_job *job = job_named(model, insert->tenant, insert->id);
    if (job) {
        bool same = slice_equal(job->body, insert->payload) && slice_equal(job->job.destination, insert->destination) &&
                    slice_equal(job->job.key, insert->key);
        expected->status = same ? STATUS_OK : STATUS_CONFLICT;
        expected->existed = same;
        expected->job = (size_t)(job - model->jobs);
        return;
    }
    bool tenant_full = has_tenants(model) && backlog(model, insert->tenant) >= model->pending_max / 2;
    if (backlog(model, (struct slice){ NULL, 0 }) >= model->pending_max || tenant_full) {
        expected->status = STATUS_FULL;
        return;
    }
    assert_true(model->job_count < JOBS_MAX);
    size_t destination = index_of(model_destinations, MODEL_DESTINATIONS, insert->destination);
    size_t tenant = index_of(model_tenants, MODEL_TENANTS, insert->tenant);
    bool is_behind = chain_first(model, (int64_t)(destination * MODEL_TENANTS + tenant), insert->key, false) != NULL;
    expected->job = model->job_count;
    job = &model->jobs[model->job_count++];
    *job = (struct model_job){
        .job = { .lane = (int64_t)(destination * MODEL_TENANTS + tenant),
                 .destination = slice_from(model_destinations[destination]),
                 .tenant = slice_from(model_tenants[tenant]),
                 .state = STATE_PENDING,
                 .priority = insert->priority,
                 .rank = insert->rank,
                 .generation = 1,
                 .created_at = model->now,
                 .first_at = INSTANT_NONE,
                 .failed_at = INSTANT_NONE,
                 .look_failed_at = INSTANT_NONE,
                 .run_at = insert->run_at,
                 .deadline = insert->deadline,
                 .dead_at = INSTANT_NONE,
                 .expires_at = INSTANT_NONE,
                 .last_code = SLICE(""),
                 .last_error = SLICE(""),
                 .dead_code = SLICE(""),
                 .reference = SLICE(""),
                 .key = insert->key,
                 .behind = is_behind,
                 .payload = insert->payload },
        .body = insert->payload,
        .forget_at = INSTANT_NONE,
        .exists = true,
        .ready = insert->run_at <= model->now && !is_behind,
    };
    memcpy(job->id, insert->id.data, insert->id.len);
    job_changed(model, job, EVENT_TYPE_ACCEPTED, op->data);
}

/* Its place among the others; CLAIM_LOOKS_MAX is more than a model ever has. */
static instant behind(const struct model_job *job, instant failed_last)
{
    return failed_last != 0 && job->job.look_failed_at >= failed_last ? job->job.look_failed_at : INSTANT_NONE;
}

static bool goes_before(const struct model_job *a, const struct model_job *b, instant failed_last)
{
    instant a_behind = behind(a, failed_last), b_behind = behind(b, failed_last);
    return a_behind != b_behind ? a_behind < b_behind : a->job.rank < b->job.rank;
}

/* The ready job of the lane that comes first, or NULL. */
static struct model_job *first_ready(struct model *model, int64_t lane, const struct store_op *op)
{
    instant failed_last = op->claim.failed_last;
    struct model_job *first = NULL;
    for (size_t i = 0; i < model->job_count; i++) {
        struct model_job *job = &model->jobs[i];
        if (job->exists && job->ready && job->job.lane == lane &&
            !(op->claim.unfailed_only && behind(job, failed_last) != INSTANT_NONE) &&
            (!first || goes_before(job, first, failed_last)))
            first = job;
    }
    return first;
}

static void apply_claim(struct model *model, const struct store_op *op, struct expected *expected)
{
    size_t lane = 0;
    while (lane < MODEL_LANES && (model->lanes[lane].id == 0 || model->lanes[lane].id != op->claim.lane))
        lane++;
    assert_true(op->claim.max <= MODEL_CLAIM_MAX);
    for (struct model_job *job; expected->count < op->claim.max && (job = first_ready(model, (int64_t)lane, op));) {
        job->ready = false;
        job->job.claimed_from = job->job.state;
        job->job.state = STATE_RUNNING;
        job->job.lease_until = op->claim.lease_until;
        job->session = op->claim.owner.len == 0 ? model->session : INT64_MAX;
        job->token_known = false;
        job->job.first_at = job->job.first_at == INSTANT_NONE ? model->now : job->job.first_at;
        if (job->job.step == STEP_SEND) {
            job->job.attempts++;
            job->job.attempts_total++;
        }
        job_changed(model, job, EVENT_TYPE_CLAIMED, op->data);
        expected->claimed[expected->count++] = (size_t)(job - model->jobs);
    }
}

static struct model_job *leased(struct model *model, int64_t seq, int64_t token)
{
    for (size_t i = 0; i < model->job_count; i++) {
        struct model_job *job = &model->jobs[i];
        if (job->exists && job->job.seq == seq && job->job.state == STATE_RUNNING && job->token_known && job->token == token)
            return job;
    }
    return NULL;
}

static void apply_settle(struct model *model, const struct store_op *op, struct expected *expected)
{
    const struct op_settle *settle = &op->settle;
    struct model_job *job = leased(model, settle->seq, settle->token);
    if (!job) {
        expected->status = STATUS_CONFLICT;
        return;
    }
    expected->job = (size_t)(job - model->jobs);
    if (settle->attempt_undone && job->job.step == STEP_SEND) {
        job->job.attempts--;
        job->job.attempts_total--;
    }
    if (settle->outcome != OUTCOME_NONE) {
        job->job.last_class = settle->outcome;
        job->job.last_code = settle->code;
        job->job.last_error = settle->error;
    }
    if (settle->reference.len > 0)
        job->job.reference = settle->reference;
    job->job.retry_count = settle->retry_count;
    job->job.step_count = settle->step_count;
    job->job.doubted = settle->doubted;
    if (settle->failed_at != 0 && job->job.failed_at == INSTANT_NONE)
        job->job.failed_at = settle->failed_at;
    if (settle->look_failed_at != 0)
        job->job.look_failed_at = settle->look_failed_at;
    job->job.claimed_from = STATE_NONE;
    enum event_type type = EVENT_TYPE_COMPLETED;
    if (settle->event == EVENT_RETRY || settle->event == EVENT_RELEASE) {
        type = settle->event == EVENT_RETRY ? EVENT_TYPE_RETRY_SCHEDULED : EVENT_TYPE_RELEASED;
        job->job.state = STATE_WAITING;
        job->job.step = settle->step;
        job->job.run_at = settle->run_at;
        job->job.rank = settle->rank;
        job->ready = settle->run_at <= model->now;
    } else if (settle->event == EVENT_DELIVER) {
        job->job.state = STATE_COMPLETED;
        job->forget_at = settle->forget_at;
        model->lanes[job->job.lane].completed++;
    } else {
        type = settle->event == EVENT_GIVE_UP ? EVENT_TYPE_DEAD : EVENT_TYPE_EXPIRED;
        job->job.state = STATE_DEAD;
        job->job.dead_at = model->now;
        job->job.expires_at = settle->dead_ttl_ms > 0 ? model->now + settle->dead_ttl_ms : INSTANT_NONE;
        job->job.dead_code = settle->dead_code;
    }
    job_changed(model, job, type, op->data);
    if (job->job.state != STATE_WAITING)
        expected->released = chain_ended(model, job);
}

static void apply_extend(struct model *model, const struct store_op *op, struct expected *expected)
{
    struct model_job *job = leased(model, op->extend.seq, op->extend.token);
    if (!job) {
        expected->status = STATUS_CONFLICT;
        return;
    }
    job->job.lease_until = op->extend.lease_until;
    job_changed(model, job, EVENT_TYPE_LEASE_EXTENDED, op->data);
}

static void redrive(struct model *model, const struct store_op *op, struct model_job *job)
{
    if (job->job.state == STATE_DEAD) {
        job->job.generation++;
        job->job.attempts = job->job.retry_count = job->job.step_count = 0;
        job->job.step = STEP_SEND;
        job->job.doubted = false;
        job->job.first_at = job->job.dead_at = job->job.expires_at = INSTANT_NONE;
        job->job.failed_at = job->job.look_failed_at = INSTANT_NONE;
        job->job.dead_code = SLICE("");
        if (job->job.deadline <= model->now)
            job->job.deadline = INSTANT_NONE;
    }
    if (op->job.payload_given)
        job->job.payload = op->job.payload;
    job->job.behind = job->job.state == STATE_DEAD && chain_first(model, job->job.lane, job->job.key, false);
    job->job.state = STATE_PENDING;
    job->job.run_at = model->now;
    job->job.rank = op->job.rank;
    job->job.redrives_auto += op->job.automatic;
    job->ready = !job->job.behind;
    job_changed(model, job, EVENT_TYPE_REDRIVEN, op->data);
}

static void purge(struct model *model, const struct store_op *op, struct model_job *job, struct expected *expected)
{
    if (op->job.export) {
        const struct store_op insert = { .kind = OP_INSERT, .insert = *op->job.export };
        size_t letter = expected->job;
        apply_insert(model, &insert, expected);
        expected->exported = expected->job;
        expected->job = letter;
    }
    if (expected->status != STATUS_OK)
        return;
    event_add(model, op->job.export ? EVENT_TYPE_DEAD_EXPIRED : EVENT_TYPE_PURGED, job, SLICE(""), op->data);
    job->exists = false;
}

static void apply_named(struct model *model, const struct store_op *op, struct expected *expected)
{
    struct model_job *job = job_named(model, op->job.tenant, op->job.id);
    if (!job) {
        expected->status = STATUS_NOT_FOUND;
        return;
    }
    enum job_state state = job->job.state;
    bool queued = state == STATE_PENDING || state == STATE_WAITING;
    bool allowed = op->kind == OP_CANCEL    ? queued
                   : op->kind == OP_REDRIVE ? state == STATE_DEAD || (state == STATE_WAITING && !op->job.automatic)
                   : op->kind == OP_PURGE   ? state == STATE_DEAD
                                            : queued || state == STATE_RUNNING;
    expected->job = (size_t)(job - model->jobs);
    if (!allowed) {
        expected->status = STATUS_CONFLICT;
    } else if (op->kind == OP_CANCEL) {
        job->job.state = STATE_CANCELLED;
        job->ready = false;
        job->forget_at = op->job.forget_at;
        model->lanes[job->job.lane].cancelled++;
        job_changed(model, job, EVENT_TYPE_CANCELLED, op->data);
        expected->released = chain_ended(model, job);
    } else if (op->kind == OP_PRIORITIZE) {
        job->job.priority = op->job.priority;
        job->job.rank = op->job.rank;
        job_changed(model, job, EVENT_TYPE_PRIORITIZED, op->data);
    } else if (op->kind == OP_REDRIVE) {
        redrive(model, op, job);
    } else {
        purge(model, op, job, expected);
    }
}

static instant job_due(const struct model_job *job)
{
    const struct job *j = &job->job;
    if (!job->exists || j->state == STATE_RUNNING)
        return INSTANT_NONE;
    if (j->state == STATE_DEAD)
        return j->expires_at;
    if (j->state == STATE_COMPLETED || j->state == STATE_CANCELLED)
        return job->forget_at;
    if (job->ready || j->behind || (j->deadline != INSTANT_NONE && j->deadline < j->run_at))
        return j->deadline;
    return j->run_at;
}

/* Of those that are due by `until`, chosen or not: of the destination with the fewest turns, the first by time and seq. */
static struct model_job *first_due(struct model *model, bool chosen, instant until, const size_t *turns)
{
    struct model_job *first = NULL;
    for (size_t i = 0; i < model->job_count; i++) {
        struct model_job *job = &model->jobs[i];
        instant due = job_due(job);
        if (due == INSTANT_NONE || due > until || job->chosen != chosen)
            continue;
        size_t had = turns[job->job.lane / MODEL_TENANTS], fewest = first ? turns[first->job.lane / MODEL_TENANTS] : 0;
        if (!first || had < fewest || (had == fewest && due < job_due(first)))
            first = job;
    }
    return first;
}

static void promote_one(struct model *model, const struct store_op *op, struct model_job *job, struct expected *expected)
{
    const struct dead_export *export = op->promote.export_count > 0 ? &op->promote.exports[0] : NULL;
    if (job->job.state == STATE_DEAD && export && slice_equal(export->destination, job->job.destination)) {
        bool wanted = expected->promote.ret_due_count < export->room;
        expected->claimed[expected->promote.ret_due_count % MODEL_CLAIM_MAX] = (size_t)(job - model->jobs);
        expected->promote.ret_due_count += wanted;
        job->job.expires_at = model->now + (wanted ? op->promote.wanted_ms : op->promote.unwanted_ms);
        expected->promote.ret_put_off++;
    } else if (job->job.state == STATE_DEAD) {
        expected->promote.ret_dead_deleted++;
        expected->dead[job->job.lane]--;
        event_add(model, EVENT_TYPE_DEAD_EXPIRED, job, SLICE(""), op->data);
        job->exists = false;
    } else if (job->job.state == STATE_COMPLETED || job->job.state == STATE_CANCELLED) {
        expected->promote.ret_forgotten++;
        job->exists = false;
    } else if (job->job.deadline != INSTANT_NONE && job->job.deadline <= model->now) {
        expected->promote.ret_expired++;
        expected->dead[job->job.lane]++;
        job->ready = false;
        job->job.state = STATE_DEAD;
        job->job.dead_at = model->now;
        job->job.expires_at = model->now + op->promote.dead_ttl_ms;
        job->job.dead_code = SLICE("EXPIRED");
        if (job->job.last_error.len == 0)
            job->job.last_error = (struct slice){ NULL, 0 };
        job_changed(model, job, EVENT_TYPE_EXPIRED, op->data);
        expected->ready[job->job.lane] += chain_ended(model, job);
    } else {
        expected->promote.ret_promoted++;
        expected->ready[job->job.lane]++;
        job->ready = true;
    }
}

static void apply_promote(struct model *model, const struct store_op *op, struct expected *expected)
{
    size_t turns[MODEL_DESTINATIONS] = { 0 }, none[MODEL_DESTINATIONS] = { 0 };
    struct model_job *job;
    for (size_t i = 0; i < op->promote.max && (job = first_due(model, false, model->now, turns)); i++) {
        job->chosen = true;
        turns[job->job.lane / MODEL_TENANTS] += model->turns;
    }
    for (; (job = first_due(model, true, model->now, none)); job->chosen = false)
        promote_one(model, op, job, expected);
    job = first_due(model, false, INT64_MAX, none);
    expected->promote.ret_next_at = job ? job_due(job) : INSTANT_NONE;
}

static bool orphaned(const struct model *model, const struct model_job *job, const struct op_orphans *orphans)
{
    return job->exists && job->job.state == STATE_RUNNING &&
           (job->job.lease_until <= orphans->until || (orphans->of_ended && job->session < model->session));
}

void model_apply(struct model *model, const struct store_op *op, struct expected *expected)
{
    *expected = (struct expected){ .status = STATUS_OK, .job = MODEL_NONE, .exported = MODEL_NONE };
    switch (op->kind) {
    case OP_INSERT:
        apply_insert(model, op, expected);
        break;
    case OP_CLAIM:
        apply_claim(model, op, expected);
        break;
    case OP_SETTLE:
        apply_settle(model, op, expected);
        break;
    case OP_EXTEND:
        apply_extend(model, op, expected);
        break;
    case OP_PROMOTE:
        apply_promote(model, op, expected);
        break;
    case OP_ORPHANS:
        for (size_t i = 0; i < model->job_count; i++)
            expected->count += orphaned(model, &model->jobs[i], &op->orphans);
        break;
    case OP_DESTINATION:
    case OP_SAVE:
        model->states[index_of(model_destinations, MODEL_DESTINATIONS, op->save.name)] = op->save.value;
        if (op->kind == OP_DESTINATION)
            event_add(model, EVENT_TYPE_DESTINATION, NULL, op->save.name, op->data);
        break;
    case OP_NOTE:
        event_add(model, EVENT_TYPE_NOTE, NULL, SLICE(""), op->data);
        break;
    case OP_TRIM:
        while (expected->count < op->trim.max && model->trimmed < model->event_count &&
               model->events[model->trimmed].event.at < op->trim.before) {
            model->trimmed++;
            expected->count++;
        }
        if (expected->count >= TRIM_LEAST) {
            event_add(model, EVENT_TYPE_NOTE, NULL, SLICE(""), trimmed_note);
        } else {
            model->trimmed -= expected->count;
            expected->count = 0;
        }
        break;
    default:
        apply_named(model, op, expected);
    }
}

static void learn_insert(struct model *model, const struct op_insert *insert, const struct expected *expected)
{
    struct model_job *job = &model->jobs[expected->job];
    assert_int_equal(insert->ret_existed, expected->existed);
    if (!expected->existed) {
        assert_true(expected->job == 0 || insert->ret_seq > model->jobs[expected->job - 1].job.seq);
        job->job.seq = insert->ret_seq;
        assert_true(insert->ret_id.len < sizeof job->id);
        assert_true(job->id[0] == '\0' || slice_equal(insert->ret_id, slice_from(job->id)));
        memcpy(job->id, insert->ret_id.data, insert->ret_id.len);
        if (model->lanes[job->job.lane].id == 0)
            model->lanes[job->job.lane].id = insert->ret_lane;
    }
    assert_int_equal(insert->ret_seq, job->job.seq);
    assert_int_equal(insert->ret_lane, model->lanes[job->job.lane].id);
    assert_text(insert->ret_id, job->id);
}

static void learn_claim(struct model *model, const struct op_claim *claim, const struct expected *expected)
{
    assert_int_equal(claim->ret_count, expected->count);
    for (size_t i = 0; i < expected->count; i++) {
        struct model_job *job = &model->jobs[expected->claimed[i]];
        assert_int_equal(claim->ret_jobs[i].seq, job->job.seq);
        assert_text(claim->ret_jobs[i].id, job->id);
        for (size_t j = 0; j < model->job_count; j++)
            assert_true(model->jobs[j].token < claim->ret_jobs[i].lease_token);
        job->token = claim->ret_jobs[i].lease_token;
        job->token_known = true;
    }
}

static void check_promote(const struct model *model, const struct op_promote *promote, const struct expected *expected)
{
    assert_int_equal(promote->ret_promoted, expected->promote.ret_promoted);
    assert_int_equal(promote->ret_expired, expected->promote.ret_expired);
    assert_int_equal(promote->ret_dead_deleted, expected->promote.ret_dead_deleted);
    assert_int_equal(promote->ret_forgotten, expected->promote.ret_forgotten);
    assert_true(promote->ret_put_off == expected->promote.ret_put_off && promote->ret_due_count == expected->promote.ret_due_count);
    for (size_t i = 0; i < promote->ret_due_count; i++) {
        const struct job *job = &model->jobs[expected->claimed[i]].job;
        const struct due_letter *due = &promote->due[i];
        assert_true(due->seq == job->seq && due->lane == model->lanes[job->lane].id && due->dead_at == job->dead_at);
    }
    bool more = model->turns && expected->promote.ret_next_at != INSTANT_NONE && expected->promote.ret_next_at <= model->now;
    assert_true(more ? promote->ret_next_at <= model->now : promote->ret_next_at == expected->promote.ret_next_at);
    size_t lanes = 0;
    for (size_t i = 0; i < MODEL_LANES; i++) {
        lanes += expected->ready[i] > 0 || expected->dead[i] != 0;
        for (size_t j = 0; j < promote->ret_ready_count; j++) {
            const struct lane_ready *reported = &promote->ret_ready[j];
            if (reported->lane != model->lanes[i].id)
                continue;
            assert_int_equal(reported->count, expected->ready[i]);
            assert_int_equal(reported->dead, expected->dead[i]);
            assert_text(reported->destination, model_destinations[i / MODEL_TENANTS]);
            assert_text(reported->tenant, model_tenants[i % MODEL_TENANTS]);
        }
    }
    assert_true(promote->ret_ready_count >= lanes); /* one in which as many died as went may be told */
}

void model_check_op(struct model *model, const struct store_op *op, const struct expected *expected)
{
    if (op->status != expected->status)
        fail_msg("operation of kind %d: %s, not %s", (int)op->kind, status_name(op->status), status_name(expected->status));
    if (op->status != STATUS_OK)
        return;
    assert_int_equal(op->ret_released.ready, expected->released);
    switch (op->kind) {
    case OP_INSERT:
        learn_insert(model, &op->insert, expected);
        break;
    case OP_CLAIM:
        learn_claim(model, &op->claim, expected);
        break;
    case OP_SETTLE:
        assert_int_equal(op->settle.ret_lane, model->lanes[model->jobs[expected->job].job.lane].id);
        break;
    case OP_PROMOTE:
        check_promote(model, &op->promote, expected);
        break;
    case OP_ORPHANS:
        assert_int_equal(op->orphans.ret_count, expected->count);
        break;
    case OP_TRIM:
        assert_int_equal(op->trim.ret_deleted, expected->count);
        break;
    case OP_CANCEL:
    case OP_PRIORITIZE:
    case OP_REDRIVE:
    case OP_PURGE:
        if (op->kind == OP_PURGE && op->job.export)
            learn_insert(model, op->job.export, &(struct expected){ .job = expected->exported, .existed = expected->existed });
        assert_int_equal(op->job.ret_seq, model->jobs[expected->job].job.seq);
        assert_int_equal(op->job.ret_lane, model->lanes[model->jobs[expected->job].job.lane].id);
        break;
    default:
        break;
    }
}

static void check_job(const struct model *model, const struct model_job *expected, const struct job *job)
{
    const struct job *e = &expected->job;
    bool running = e->state == STATE_RUNNING;
    const struct {
        const char *name;
        int64_t is, should;
    } numbers[] = {
        { "seq", job->seq, e->seq },
        { "lane", job->lane, model->lanes[e->lane].id },
        { "state", (int64_t)job->state, (int64_t)e->state },
        { "claimed_from", (int64_t)job->claimed_from, (int64_t)e->claimed_from },
        { "priority", (int64_t)job->priority, (int64_t)e->priority },
        { "step", (int64_t)job->step, (int64_t)e->step },
        { "rank", job->rank, e->rank },
        { "generation", job->generation, e->generation },
        { "attempts", job->attempts, e->attempts },
        { "attempts_total", job->attempts_total, e->attempts_total },
        { "retry_count", job->retry_count, e->retry_count },
        { "step_count", job->step_count, e->step_count },
        { "redrives_auto", job->redrives_auto, e->redrives_auto },
        { "doubted", job->doubted, e->doubted },
        { "created_at", job->created_at, e->created_at },
        { "first_at", job->first_at, e->first_at },
        { "run_at", job->run_at, e->run_at },
        { "deadline", job->deadline, e->deadline },
        { "updated_at", job->updated_at, e->updated_at },
        { "failed_at", job->failed_at, e->failed_at },
        { "look_failed_at", job->look_failed_at, e->look_failed_at },
        { "dead_at", job->dead_at, e->dead_at },
        { "expires_at", job->expires_at, e->expires_at },
        { "lease_token", job->lease_token, running ? expected->token : 0 },
        { "lease_until", job->lease_until, running ? e->lease_until : job->lease_until },
        { "last_class", (int64_t)job->last_class, (int64_t)e->last_class },
        { "last_event", job->last_event, e->last_event },
        { "behind", job->behind, e->behind },
        { "gap", job->gap, e->gap },
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].is != numbers[i].should)
            fail_msg("%s of %s is %lld, not %lld", numbers[i].name, expected->id, (long long)numbers[i].is,
                     (long long)numbers[i].should);
    assert_text(job->id, expected->id);
    assert_slice(job->tenant, e->tenant);
    assert_slice(job->destination, e->destination);
    assert_slice(job->last_code, e->last_code);
    assert_slice(job->dead_code, e->dead_code);
    assert_slice(job->reference, e->reference);
    assert_slice(job->payload, e->payload);
    assert_slice(job->key, e->key);
    if (e->last_error.data)
        assert_slice(job->last_error, e->last_error);
    else
        assert_true(job->last_error.len > 0);
}

/* Once the store chose the words, they are its last error like any other. */
static void learn_error(struct model_job *expected)
{
    if (!expected->job.last_error.data)
        expected->job.last_error = (struct slice){ NULL, 1 };
}

static void check_event(const struct model *model, const struct model_event *expected, const struct event *event)
{
    const struct event *e = &expected->event;
    const struct model_job *job = expected->job == MODEL_NONE ? NULL : &model->jobs[expected->job];
    assert_int_equal(event->number, e->number);
    assert_int_equal(event->at, e->at);
    assert_string_equal(event_type_name(event->type), event_type_name(e->type));
    assert_int_equal(event->state, e->state);
    assert_int_equal(event->attempt, e->attempt);
    assert_int_equal(event->previous, e->previous);
    assert_slice(event->destination, e->destination);
    if (e->data.data == trimmed_note.data)
        assert_true(slice_has_prefix(event->data, e->data));
    else
        assert_slice(event->data, e->data);
    assert_text(event->job, job ? job->id : "");
    assert_slice(event->tenant, job ? job->job.tenant : SLICE(""));
}

static void check_history(const struct model *model, struct store_fixture *f, const struct model_job *job)
{
    size_t count, seen = 0;
    char tenant[64] = "";
    memcpy(tenant, job->job.tenant.data, job->job.tenant.len);
    struct event *events = read_history(f, tenant, job->id, &count);
    for (size_t i = model->trimmed; i < model->event_count; i++) {
        const struct model_job *of = model->events[i].job == MODEL_NONE ? NULL : &model->jobs[model->events[i].job];
        if (!of || !slice_equal(of->job.tenant, job->job.tenant) || strcmp(of->id, job->id) != 0)
            continue;
        assert_true(seen < count);
        check_event(model, &model->events[i], &events[seen++]);
    }
    assert_int_equal(count, seen);
}

/* With its last job the lane goes; whether it has the same number and counts when it comes back is the store's to say. */
static void forget_lane(struct model *model, struct store_fixture *f, size_t index)
{
    struct lane lane;
    assert_int_equal(f->store->ops->reader_lane(f->reader, slice_from(model_destinations[index / MODEL_TENANTS]),
                                                slice_from(model_tenants[index % MODEL_TENANTS]), &f->memory, &lane, NULL),
                     STATUS_NOT_FOUND);
    model->lanes[index].id = 0;
    model->lanes[index].completed_before = model->lanes[index].completed;
    model->lanes[index].cancelled_before = model->lanes[index].cancelled;
}

static bool has_jobs(const struct model *model, size_t index)
{
    for (size_t i = 0; i < model->job_count; i++)
        if (model->jobs[i].exists && model->jobs[i].job.lane == (int64_t)index)
            return true;
    return false;
}

/* What it has counted before it was forgotten is there still, or not. */
static void learn_counts(struct model *model, size_t index, const struct lane *lane)
{
    int64_t *before[] = { &model->lanes[index].completed_before, &model->lanes[index].cancelled_before };
    bool anew = lane->counts.completed == model->lanes[index].completed - *before[0] &&
                lane->counts.cancelled == model->lanes[index].cancelled - *before[1];
    if (anew) {
        model->lanes[index].completed -= *before[0];
        model->lanes[index].cancelled -= *before[1];
    }
    *before[0] = *before[1] = 0;
}

static void check_lane(struct model *model, struct store_fixture *f, size_t index)
{
    if (!has_jobs(model, index)) {
        forget_lane(model, f, index);
        return;
    }
    struct lane lane = read_lane(f, model->lanes[index].id);
    learn_counts(model, index, &lane);
    struct lane_counts counts = { .completed = model->lanes[index].completed, .cancelled = model->lanes[index].cancelled };
    for (size_t i = 0; i < model->job_count; i++) {
        const struct model_job *job = &model->jobs[i];
        if (!job->exists || job->job.lane != (int64_t)index)
            continue;
        counts.pending += job->job.state == STATE_PENDING;
        counts.running += job->job.state == STATE_RUNNING;
        counts.waiting += job->job.state == STATE_WAITING;
        counts.dead += job->job.state == STATE_DEAD;
        counts.ready += job->ready;
    }
    assert_memory_equal(&lane.counts, &counts, sizeof counts);
    assert_text(lane.destination, model_destinations[index / MODEL_TENANTS]);
    assert_text(lane.tenant, model_tenants[index % MODEL_TENANTS]);
}

void model_check_store(struct model *model, struct store_fixture *f, size_t history_of)
{
    size_t job_count, event_count, seen = 0;
    struct job *jobs = read_jobs(f, (struct job_filter){ 0 }, 37, &job_count);
    for (size_t i = model->job_count; i-- > 0;) {
        if (!model->jobs[i].exists)
            continue;
        assert_true(seen < job_count);
        check_job(model, &model->jobs[i], &jobs[seen++]);
        learn_error(&model->jobs[i]);
    }
    assert_int_equal(job_count, seen);
    struct event *events = read_events(f, 0, &event_count);
    assert_int_equal(event_count, model->event_count - model->trimmed);
    for (size_t i = 0; i < event_count; i++)
        check_event(model, &model->events[model->trimmed + i], &events[i]);
    assert_true(chain_holds(events, event_count));
    for (size_t i = 0; i < MODEL_LANES; i++)
        if (model->lanes[i].id > 0)
            check_lane(model, f, i);
    if (history_of < model->job_count)
        check_history(model, f, &model->jobs[history_of]);
    for (size_t i = 0; i < MODEL_DESTINATIONS; i++) {
        struct slice saved, name = slice_from(model_destinations[i]);
        enum status status = f->store->ops->reader_saved(f->reader, SPACE_DESTINATION, name, &f->memory, &saved, NULL);
        assert_int_equal(status, model->states[i].len > 0 ? STATUS_OK : STATUS_NOT_FOUND);
        if (status == STATUS_OK)
            assert_slice(saved, model->states[i]);
    }
}
