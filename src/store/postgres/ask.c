/* The first phase of a round: what its operations need to know, asked for in one trip. */
#include "store/postgres/claimed.h"
#include "store/postgres/timers.h"

#include <assert.h>
#include <string.h>

/* ---- which operations can be one round ---- */

enum {
    PLAIN_MAX = 256,
    CLAIMED_TOGETHER_MAX = 1024, /* jobs, by claims of one lane: their answer is in memory as a whole */
};

struct plan {
    size_t plain;   /* inserts that need to know nothing */
    size_t claimed; /* jobs, at most */
    bool jobs;      /* some may change */
    bool leased;    /* some are known by their leases, without what a payload is checked with */
    bool moved;     /* in or out of the ready ones, of any lane */
    bool events;    /* some are written */
    bool owned;     /* who has a destination may change: nothing else is in that round */
};

static bool is_by_name(enum op_kind kind)
{
    return kind == OP_CANCEL || kind == OP_PRIORITIZE || kind == OP_REDRIVE || kind == OP_PURGE || kind == OP_UNDO ||
           kind == OP_ERASE;
}

static bool is_plain(const struct store_op *op)
{
    return op->kind == OP_INSERT && op->insert.id.len == 0 && op->insert.key.len == 0;
}

static bool is_own(enum op_kind kind)
{
    return kind == OP_TAKE || kind == OP_GIVE;
}

/* Claims of a lane are one question, but for those by failures, and behind a job that is new there. */
static bool can_claim(const struct postgres_store *store, const struct plan *plan, const struct op_claim *claim)
{
    const struct store_lane *lane = lane_table_by_id(&store->lanes, claim->lane);
    if (!lane || lane->mark < store->batch.round_mark)
        return true;
    return lane->mark > store->batch.round_mark && claim->failed_last == 0 && claim->max <= CLAIMED_TOGETHER_MAX &&
           plan->claimed + claim->max <= CLAIMED_TOGETHER_MAX;
}

/*
 * Whether what the operation looks for is still where the server has it. A long run of new jobs goes in parts, which cost no
 * trip: the server writes one while the next is made.
 */
static bool can_join(const struct postgres_store *store, const struct plan *plan, const struct store_op *op)
{
    if (plan->plain == PLAIN_MAX && is_plain(op))
        return false;
    if (plan->owned || (is_own(op->kind) && (plan->jobs || plan->events)))
        return false;
    if (op->kind == OP_CLAIM)
        return !plan->moved && can_claim(store, plan, &op->claim);
    if (op->kind == OP_PROMOTE || op->kind == OP_ORPHANS)
        return !plan->jobs;
    if (is_by_name(op->kind) && op->job.payload_given)
        return !plan->leased;
    return op->kind != OP_TRIM || !plan->events;
}

static void join(struct postgres_store *store, struct plan *plan, const struct store_op *op, instant now)
{
    struct store_lane *lane = NULL;
    uint64_t mark = store->batch.round_mark;
    plan->plain += is_plain(op);
    plan->jobs = plan->jobs || op->kind <= OP_ORPHANS || is_by_name(op->kind);
    plan->leased = plan->leased || op->kind == OP_SETTLE || op->kind == OP_EXTEND;
    plan->events = plan->events || op->kind != OP_SAVE;
    plan->owned = is_own(op->kind);
    plan->moved = plan->moved || is_by_name(op->kind) || op->kind == OP_PROMOTE;
    if (op->kind == OP_CLAIM) {
        lane = lane_table_by_id(&store->lanes, op->claim.lane);
        mark += op->claim.failed_last == 0;
        plan->claimed += op->claim.max < CLAIMED_TOGETHER_MAX ? op->claim.max : CLAIMED_TOGETHER_MAX;
    } else if (op_insertion(op))
        lane = lane_table_find(&store->lanes, op_insertion(op)->destination, op_insertion(op)->tenant);
    else if (op->kind == OP_SETTLE && store->has_chains && op->settle.event != EVENT_RETRY &&
             op->settle.event != EVENT_RELEASE)
        plan->moved = true; /* another of its key may take its place */
    else if (op->kind == OP_SETTLE && (op->settle.event == EVENT_RETRY || op->settle.event == EVENT_RELEASE))
        plan->moved = plan->moved || op->settle.run_at <= now;
    if (lane)
        lane->mark = mark;
}

size_t round_plan(struct postgres_batch *batch, const struct store_op *ops, size_t begin, size_t count)
{
    assert(begin < count);
    struct plan plan = { 0 };
    size_t end = begin;
    batch->store->batch.round_mark += 2;
    while (end < count && can_join(batch->store, &plan, &ops[end]))
        join(batch->store, &plan, &ops[end++], batch->now);
    assert(end > begin);
    return end;
}

/* ---- asking ---- */

/* What a round asks; of claims also whose they are, by the order in which the server numbers them. */
struct asks {
    struct postgres_batch *batch;
    bool asked[WRITE_BEGIN];
    size_t *claims[2]; /* places in the round: of ASK_CLAIM, and of those that go by failures */
    size_t claim_count[2];
};

static struct postgres_params *ask(struct asks *asks, enum postgres_statement statement)
{
    assert(statement < WRITE_BEGIN);
    struct postgres_params *params = batch_params(asks->batch, statement);
    if (!asks->asked[statement])
        params_begin(params, postgres_text(statement)->types);
    asks->asked[statement] = true;
    return params;
}

/* Where others change jobs too, nobody else does it between what is read of one and what is written. */
static void ask_lock(struct asks *asks, struct slice tenant, struct slice id)
{
    assert(asks->batch->store->shared);
    unsigned char key[KEY_BYTES];
    int64_t seq = change_id_seq(id);
    name_key(tenant, id, key);
    params_bytes(ask(asks, ASK_LOCK_KEY), 0, (struct slice){ (const char *)key, KEY_BYTES });
    if (seq > 0)
        params_int(ask(asks, ASK_LOCK_SEQ), 0, seq);
}

static void ask_name(struct asks *asks, struct slice tenant, struct slice id)
{
    unsigned char key[KEY_BYTES];
    int64_t seq = change_id_seq(id);
    name_key(tenant, id, key);
    params_bytes(ask(asks, ASK_BY_KEY), 0, (struct slice){ (const char *)key, KEY_BYTES });
    if (seq > 0)
        params_int(ask(asks, ASK_BY_SEQ), 0, seq);
}

/* What others did to a lane is looked at anew where it decides whether its tenant may add to it. */
static bool is_near_limit(const struct postgres_store *store, const struct store_lane *lane)
{
    assert(store->shared);
    int64_t share = pending_share(&store->settings, store->lanes.tenant_count);
    return share > 0 && store->lanes.waiting >= share && !lane->touched &&
           lane_table_tenant_waiting(&store->lanes, lane->lane.tenant) >= share;
}

/* A lane that is not in memory has no jobs, where nobody else writes; but it may have had some. */
static void ask_lane(struct asks *asks, const struct op_insert *insert)
{
    struct postgres_store *store = asks->batch->store;
    const struct store_lane *lane = lane_table_find(&store->lanes, insert->destination, insert->tenant);
    if (lane && !(store->shared && is_near_limit(store, lane)))
        return;
    struct postgres_params *params = ask(asks, ASK_LANES);
    params_bytes(params, 0, insert->destination);
    params_bytes(params, 1, insert->tenant);
    if (!shard_find(store, insert->destination))
        params_bytes(ask(asks, ASK_SHARDS), 0, insert->destination);
}

static void ask_chain(struct asks *asks, const struct op_insert *insert)
{
    if (insert->key.len == 0)
        return;
    struct postgres_params *params = ask(asks, ASK_CHAINED);
    params_bytes(params, 0, insert->destination);
    params_bytes(params, 1, insert->tenant);
    params_int(params, 2, job_chain(insert->key));
    if (asks->batch->store->shared)
        params_int(ask(asks, ASK_CHAIN_LOCK), 0, job_chain(insert->key));
}

/* The first claim of a lane asks for all of them. */
static void claim_join(struct postgres_batch *batch, const struct store_op *op, size_t place)
{
    struct postgres_candidates *claims = batch->round.claims;
    struct store_lane *lane = op->kind == OP_CLAIM ? lane_table_by_id(&batch->store->lanes, op->claim.lane) : NULL;
    if (!lane)
        return; /* one that never was has nothing ready */
    if (lane->claim_place >= place || claims[lane->claim_place].lane != lane->lane.id) {
        lane->claim_place = place;
        claims[place].lane = lane->lane.id;
    }
    claims[lane->claim_place].max += op->claim.max < INT32_MAX ? op->claim.max : INT32_MAX;
}

static void ask_claim(struct asks *asks, const struct op_claim *claim, size_t place)
{
    assert(place < asks->batch->round.end - asks->batch->round.begin);
    const struct store_lane *lane = lane_table_by_id(&asks->batch->store->lanes, claim->lane);
    bool by_failure = claim->failed_last != 0;
    size_t max = asks->batch->round.claims[place].max;
    if (max == 0)
        return; /* or it is asked for by another */
    assert(lane && lane->claim_place == place);
    struct postgres_params *params = ask(asks, by_failure ? ASK_CLAIM_FAILED_LAST : ASK_CLAIM);
    params_int(params, 0, claim->lane);
    params_int(params, 1, (int64_t)max);
    bool known = !asks->batch->store->shared || lane->low_mark == asks->batch->round.low_mark;
    int64_t looks = max > CLAIM_LOOKS_MAX ? (int64_t)max : CLAIM_LOOKS_MAX;
    params_int(params, 2, by_failure ? claim->failed_last : known ? lane->low_rank : INT64_MIN);
    params_int(params, 3, by_failure ? looks : known ? lane->low_seq : INT64_MIN);
    asks->claims[by_failure][asks->claim_count[by_failure]++] = place;
}

/* Whose destinations an operation is about: one's own, and as the steward nobody's. */
static void ask_owners(const struct asks *asks, struct postgres_params *params)
{
    const struct postgres_store *store = asks->batch->store;
    if (store->shared)
        params_int(params, 0, store->base.session);
    if (store_is_steward(store))
        params_int(params, 0, 0);
}

static void ask_promote(struct asks *asks, const struct op_promote *promote)
{
    const struct postgres_batch *batch = asks->batch;
    struct postgres_params *due = ask(asks, ASK_DUE), *next = ask(asks, ASK_NEXT);
    int64_t max = promote->max < INT32_MAX ? (int64_t)promote->max + 1 : INT32_MAX;
    ask_owners(asks, due);
    params_int(due, 1, asks->batch->now);
    params_int(due, 2, max);
    params_int(due, 3, timers_begin_at(batch));
    ask_owners(asks, next);
    params_int(next, 1, asks->batch->now);
}

static void ask_orphans(struct asks *asks, const struct op_orphans *orphans)
{
    struct postgres_params *params = ask(asks, ASK_ORPHANS);
    ask_owners(asks, params);
    params_int(params, 1, orphans->after_until);
    params_int(params, 2, orphans->after_until == INSTANT_NONE ? INT64_MIN : orphans->after_seq);
    params_int(params, 3, orphans->until == INSTANT_MAX ? INT64_MAX : orphans->until);
    params_int(params, 4, orphans->of_ended ? asks->batch->store->base.session : 0);
    params_int(params, 5, orphans->max < INT32_MAX ? (int64_t)orphans->max : INT32_MAX);
}

static void ask_insert(struct asks *asks, const struct op_insert *insert)
{
    ask_lane(asks, insert);
    ask_chain(asks, insert);
    if (insert->id.len > 0)
        ask_name(asks, insert->tenant, insert->id);
}

static void ask_op(struct asks *asks, const struct store_op *op, size_t place)
{
    struct postgres_params *params;
    if (op_insertion(op))
        ask_insert(asks, op_insertion(op));
    switch (op->kind) {
    case OP_CLAIM:
        ask_claim(asks, &op->claim, place);
        break;
    case OP_SETTLE:
        if (!claimed_recall(asks->batch, op->settle.seq, op->settle.token))
            params_int(ask(asks, ASK_BY_LEASE), 0, op->settle.seq);
        break;
    case OP_EXTEND:
        params_int(ask(asks, ASK_BY_LEASE), 0, op->extend.seq);
        break;
    case OP_PROMOTE:
        ask_promote(asks, &op->promote);
        break;
    case OP_ORPHANS:
        ask_orphans(asks, &op->orphans);
        break;
    case OP_TRIM:
        params = ask(asks, ASK_OLDEST_EVENTS);
        params_int(params, 0, op->trim.before);
        params_int(params, 1, op->trim.max < INT32_MAX ? (int64_t)op->trim.max : INT32_MAX);
        break;
    case OP_TAKE:
    case OP_GIVE:
        if (!asks->batch->store->shared)
            break;
        params = ask(asks, op->kind == OP_TAKE ? ASK_TAKE : ASK_GIVE);
        params_bytes(params, 0, op->own.destination);
        params_int(params, 1, asks->batch->store->base.session);
        break;
    default:
        if (!is_by_name(op->kind))
            break;
        if (asks->batch->store->shared)
            ask_lock(asks, op->job.tenant, op->job.id);
        ask_name(asks, op->job.tenant, op->job.id);
    }
}

/* ---- answers ---- */

/* Jobs by their names: what is found by a number must have that name, which only one that was made here can. */
static enum status load_named(struct postgres_batch *batch, const PGresult *answer)
{
    enum status status = STATUS_OK;
    for (int row = 0; row < PQntuples(answer) && status == STATUS_OK; row++) {
        struct postgres_entry *entry;
        status = entry_load(batch, answer, row, &entry);
        if (status == STATUS_OK)
            status = entry_name(batch, entry);
    }
    return status;
}

static enum status load_leased(struct postgres_batch *batch, const PGresult *answer)
{
    enum status status = STATUS_OK;
    struct postgres_entry *entry;
    for (int row = 0; row < PQntuples(answer) && status == STATUS_OK; row++)
        status = entry_load(batch, answer, row, &entry);
    return status;
}

/* Of a name that is known by another number: another node has deleted that lane and made it anew. All are asked for. */
static enum status lane_replaced(struct postgres_batch *batch)
{
    batch->store->link.clashed = batch->store->link.lane_gone = true;
    return error_set(batch->err, STATUS_BUSY, "another node has made a lane anew");
}

static enum status load_lanes(struct postgres_batch *batch, const PGresult *answer)
{
    struct lane_table *lanes = &batch->store->lanes;
    bool shared = batch->store->shared;
    for (int row = 0; row < PQntuples(answer); row++) {
        const struct lane found = {
            .id = value_int(answer, row, 0),
            .destination = value_bytes(answer, row, 1),
            .tenant = value_bytes(answer, row, 2),
            .counts = { .pending = shared ? value_int(answer, row, 3) : 0,
                        .waiting = shared ? value_int(answer, row, 5) : 0,
                        .completed = value_int(answer, row, 6),
                        .cancelled = value_int(answer, row, 8) },
        };
        struct store_lane *lane = lane_table_by_id(lanes, found.id);
        if (!lane && lane_table_find(lanes, found.destination, found.tenant))
            return lane_replaced(batch);
        if (!lane && lane_table_add(lanes, &found, &lane) != STATUS_OK)
            return batch_no_memory(batch);
        if (!shard_learn(batch->store, found.destination, value_int(answer, row, LANE_SHARD)))
            return batch_no_memory(batch);
        lane->shard = value_int(answer, row, LANE_SHARD);
        lane->listed = lane->listed || (shared && value_int(answer, row, LANE_LIVE) != 0);
        if (shared && !lane->touched)
            lane->lane.counts = lane->shown.committed = found.counts;
    }
    return STATUS_OK;
}

static enum status load_shards(struct postgres_batch *batch, const PGresult *answer)
{
    for (int row = 0; row < PQntuples(answer); row++)
        if (!shard_learn(batch->store, value_bytes(answer, row, 1), value_int(answer, row, 0)))
            return batch_no_memory(batch);
    batch->wrote = batch->wrote || PQntuples(answer) > 0; /* it may have made one known */
    return STATUS_OK;
}

/* Rows come claim by claim, each in its order. */
static enum status load_claims(struct asks *asks, bool by_failure, const PGresult *answer)
{
    struct postgres_batch *batch = asks->batch;
    int rows = PQntuples(answer);
    struct postgres_entry **entries = arena_alloc_array(&batch->round.memory, (size_t)rows, sizeof(struct postgres_entry *));
    if (!entries)
        return batch_no_memory(batch);
    for (int row = 0; row < rows; row++) {
        int64_t number = value_int(answer, row, CLAIM_NUMBER);
        assert(number >= 1 && (size_t)number <= asks->claim_count[by_failure]);
        struct postgres_candidates *claim = &batch->round.claims[asks->claims[by_failure][number - 1]];
        enum status status = entry_load(batch, answer, row, &entries[row]);
        if (status != STATUS_OK)
            return status;
        struct slice place = value_bytes(answer, row, CLAIM_PLACE);
        entries[row]->claimed = place.len == sizeof entries[row]->place;
        if (entries[row]->claimed)
            memcpy(entries[row]->place, place.data, place.len);
        entries[row]->body_bytes = (size_t)value_int(answer, row, JOB_BODY_BYTES);
        entries[row]->body_here = !PQgetisnull(answer, row, JOB_BODY);
        entries[row]->job.payload = value_bytes(answer, row, JOB_BODY); /* it may be known by its name, without one */
        if (claim->count++ == 0)
            claim->entries = &entries[row];
        if (claim->entries + claim->count - 1 != &entries[row] || !entries[row]->job.ready)
            return error_set(batch->err, STATUS_CORRUPT, "job %lld is in the queue and is not ready",
                             (long long)entries[row]->job.seq);
    }
    return STATUS_OK;
}

static enum status load_due(struct postgres_batch *batch, const PGresult *answer)
{
    struct postgres_round *round = &batch->round;
    assert(round->due_count == 0);
    int rows = PQntuples(answer);
    round->due = arena_alloc_array(&round->memory, (size_t)rows, sizeof *round->due);
    if (!round->due)
        return batch_no_memory(batch);
    for (int row = 0; row < rows; row++) {
        struct postgres_entry *entry = NULL;
        bool there = !PQgetisnull(answer, row, JOB_SEQ);
        enum status status = there ? entry_load(batch, answer, row, &entry) : STATUS_OK;
        if (status != STATUS_OK)
            return status;
        if (!entry || job_due(&entry->job) != value_int(answer, row, JOB_MORE))
            return error_set(batch->err, STATUS_CORRUPT, "a timer points to job %lld, which is not there to be timed",
                             (long long)value_int(answer, row, JOB_MORE + 1));
        round->due[round->due_count++] = entry;
    }
    return STATUS_OK;
}

static enum status load(struct asks *asks, enum postgres_statement statement, PGresult *answer)
{
    struct postgres_round *round = &asks->batch->round;
    switch (statement) {
    case ASK_BY_LEASE:
    case ASK_CHAINED:
        return load_leased(asks->batch, answer);
    case ASK_BY_KEY:
    case ASK_BY_SEQ:
        return load_named(asks->batch, answer);
    case ASK_LANES:
        return load_lanes(asks->batch, answer);
    case ASK_SHARDS:
        return load_shards(asks->batch, answer);
    case ASK_CHAIN_LOCK:
    case ASK_LOCK_KEY:
    case ASK_LOCK_SEQ:
        return STATUS_OK;
    case ASK_TAKE:
    case ASK_GIVE:
        round->owned = answer;
        return STATUS_OK;
    case ASK_CLAIM:
    case ASK_CLAIM_FAILED_LAST:
        return load_claims(asks, statement == ASK_CLAIM_FAILED_LAST, answer);
    case ASK_DUE:
        return load_due(asks->batch, answer);
    case ASK_NEXT:
        round->next_at = value_instant(answer, 0, 0);
        return STATUS_OK;
    case ASK_ORPHANS:
        round->orphans = answer;
        return STATUS_OK;
    default:
        assert(statement == ASK_OLDEST_EVENTS);
        round->oldest_events = answer;
        return STATUS_OK;
    }
}

/* Answers to what was written before must be good; they tell nothing else. */
static enum status answers_skip(struct postgres_batch *batch, size_t count)
{
    enum status status = STATUS_OK;
    for (; count > 0 && status == STATUS_OK; count--) {
        PGresult *answer;
        status = link_answer(&batch->store->link, &answer, batch->err);
        if (status == STATUS_OK)
            PQclear(answer);
    }
    return status;
}

/* Until the round ends. */
static enum status answer_keep(struct postgres_batch *batch, PGresult *answer)
{
    struct postgres_answer *kept = arena_alloc(&batch->round.memory, sizeof *kept);
    if (!kept) {
        PQclear(answer);
        return batch_no_memory(batch);
    }
    *kept = (struct postgres_answer){ answer, batch->round.answers };
    batch->round.answers = kept;
    return STATUS_OK;
}

static enum status trip(struct postgres_batch *batch, enum postgres_statement statement, PGresult **ret_answer)
{
    size_t before = batch->store->link.awaited + !batch->begun;
    enum status status = batch_send(batch, statement);
    if (status == STATUS_OK)
        status = link_flush(&batch->store->link, false, batch->err);
    if (status == STATUS_OK)
        status = answers_skip(batch, before);
    return status == STATUS_OK ? link_answer(&batch->store->link, ret_answer, batch->err) : status;
}

static bool has_jobs(enum postgres_statement statement)
{
    return statement == ASK_BY_LEASE || statement == ASK_BY_KEY || statement == ASK_BY_SEQ || statement == ASK_CLAIM ||
           statement == ASK_CLAIM_FAILED_LAST || statement == ASK_DUE || statement == ASK_ORPHANS;
}

static void lane_miss(struct postgres_batch *batch, int64_t lane)
{
    if (!lane_table_by_id(&batch->store->lanes, lane))
        params_int(batch_params(batch, ASK_LANES_BY_ID), 0, lane);
}

static void lanes_miss(struct postgres_batch *batch, const PGresult *answer)
{
    for (int row = 0; row < PQntuples(answer); row++)
        if (!PQgetisnull(answer, row, JOB_LANE))
            lane_miss(batch, value_int(answer, row, JOB_LANE));
}

static enum status lanes_missing_ask(struct postgres_batch *batch)
{
    PGresult *answer;
    if (params_rows(batch_params(batch, ASK_LANES_BY_ID)) == 0)
        return STATUS_OK;
    enum status status = trip(batch, ASK_LANES_BY_ID, &answer);
    if (status != STATUS_OK)
        return status;
    status = load_lanes(batch, answer);
    PQclear(answer);
    return status;
}

enum status lanes_ask(struct postgres_batch *batch, const struct store_op *ops, size_t count)
{
    if (!batch->store->shared)
        return STATUS_OK;
    for (size_t i = 0; i < count; i++)
        if (ops[i].kind == OP_CLAIM)
            lane_miss(batch, ops[i].claim.lane);
    return lanes_missing_ask(batch);
}

static enum status asks_send(struct asks *asks)
{
    struct postgres_batch *batch = asks->batch;
    enum status status = STATUS_OK;
    bool any = false;
    for (enum postgres_statement i = 0; i < WRITE_BEGIN && status == STATUS_OK; i++) {
        if (!asks->asked[i])
            continue;
        any = true;
        status = batch_send(batch, i);
    }
    if (status != STATUS_OK || !any)
        return status;
    return link_flush(&batch->store->link, false, batch->err);
}

/* Lanes are known by then: where others write, jobs may be of some that are not. */
static enum status load_all(struct asks *asks, PGresult *const answers[WRITE_BEGIN])
{
    struct postgres_batch *batch = asks->batch;
    enum status status = STATUS_OK;
    for (enum postgres_statement i = 0; i < WRITE_BEGIN && status == STATUS_OK && batch->store->shared; i++)
        if (asks->asked[i] && has_jobs(i))
            lanes_miss(batch, answers[i]);
    if (batch->store->shared)
        status = lanes_missing_ask(batch);
    for (enum postgres_statement i = 0; i < WRITE_BEGIN && status == STATUS_OK; i++)
        if (asks->asked[i])
            status = load(asks, i, answers[i]);
    return status;
}

static enum status asks_read(struct asks *asks, size_t before)
{
    PGresult *answers[WRITE_BEGIN] = { 0 };
    enum status status = answers_skip(asks->batch, before);
    for (enum postgres_statement i = 0; i < WRITE_BEGIN && status == STATUS_OK; i++) {
        if (!asks->asked[i])
            continue;
        status = link_answer(&asks->batch->store->link, &answers[i], asks->batch->err);
        if (status == STATUS_OK)
            status = answer_keep(asks->batch, answers[i]);
    }
    return status == STATUS_OK ? load_all(asks, answers) : status;
}

enum status round_ask(struct postgres_batch *batch, const struct store_op *ops)
{
    struct postgres_round *round = &batch->round;
    struct asks asks = { .batch = batch };
    round->low_mark = atomic_load(&batch->store->low_mark);
    size_t count = round->end - round->begin, inserts = 0;
    for (int i = 0; i < 2; i++) {
        asks.claims[i] = arena_alloc_array(&round->memory, count, sizeof *asks.claims[i]);
        if (!asks.claims[i])
            return batch_no_memory(batch);
    }
    for (size_t i = 0; i < count; i++)
        claim_join(batch, &ops[round->begin + i], i);
    for (size_t i = 0; i < count; i++) {
        ask_op(&asks, &ops[round->begin + i], i);
        inserts += op_insertion(&ops[round->begin + i]) != NULL;
    }
    enum status status = STATUS_OK;
    bool any = false;
    for (int i = 0; i < WRITE_BEGIN; i++)
        any = any || asks.asked[i];
    if (any) {
        size_t before = batch->store->link.awaited + !batch->begun;
        status = asks_send(&asks);
        if (status == STATUS_OK)
            status = asks_read(&asks, before);
    }
    if (status == STATUS_OK && (int64_t)inserts > batch->store->ids.seqs.left)
        status = numbers_ask(batch, ASK_SEQ_BLOCK, &batch->store->ids.seqs, SEQ_BLOCK);
    return status;
}

/* ---- trips of their own ---- */

enum status answer_ask(struct postgres_batch *batch, enum postgres_statement statement, PGresult **ret_answer)
{
    enum status status = trip(batch, statement, ret_answer);
    return status == STATUS_OK ? answer_keep(batch, *ret_answer) : status;
}

enum status numbers_ask(struct postgres_batch *batch, enum postgres_statement which, struct postgres_block *block,
                        int64_t size)
{
    PGresult *answer;
    params_begin(batch_params(batch, which), "");
    enum status status = trip(batch, which, &answer);
    if (status != STATUS_OK)
        return status;
    *block = (struct postgres_block){ .next = value_int(answer, 0, 0), .left = size };
    PQclear(answer);
    return STATUS_OK;
}

enum status bodies_ask(struct postgres_batch *batch, struct postgres_entry **entries, size_t count)
{
    struct postgres_params *params = batch_params(batch, ASK_BODY);
    PGresult *answer;
    params_begin(params, postgres_text(ASK_BODY)->types);
    for (size_t i = 0; i < count; i++)
        if (!entries[i]->body_here)
            params_int(params, 0, entries[i]->job.seq);
    if (params_rows(params) == 0)
        return STATUS_OK;
    enum status status = answer_ask(batch, ASK_BODY, &answer);
    if (status != STATUS_OK)
        return status;
    for (int row = 0; row < PQntuples(answer); row++) {
        struct postgres_entry *entry = entry_by_seq(&batch->round, value_int(answer, row, 0));
        assert(entry);
        entry->job.payload = value_bytes(answer, row, 1);
        entry->body_here = true;
    }
    return STATUS_OK;
}
