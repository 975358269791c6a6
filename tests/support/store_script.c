#include "support/store_script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPS_MAX = 80, START_S = 1760000000, BATCH_MS = 1000, BIG_BYTES = 20000, LONG_ERROR_BYTES = 5000 };

/* A batch being put together. */
struct plan {
    struct script *script;
    instant now;
    struct store_op ops[OPS_MAX];
    enum status expected[OPS_MAX];
    size_t count;
};

static char big[BIG_BYTES];

static instant script_now(int number)
{
    return (instant)START_S * 1000 + (instant)number * BATCH_MS;
}

static struct store_op *add(struct plan *plan, enum op_kind kind, enum status expected)
{
    if (plan->count == OPS_MAX)
        abort();
    struct store_op *op = &plan->ops[plan->count];
    *op = (struct store_op){ .kind = kind, .data = SLICE("{\"by\":\"script\"}") };
    plan->expected[plan->count++] = expected;
    return op;
}

static struct op_insert *add_insert(struct plan *plan, const char *destination, const char *tenant, const char *id,
                                    size_t payload, enum status expected)
{
    struct store_op *op = add(plan, OP_INSERT, expected);
    op->insert = (struct op_insert){
        .destination = slice_from(destination),
        .tenant = slice_from(tenant),
        .id = slice_from(id),
        .priority = PRIORITY_NORMAL,
        .rank = plan->now,
        .run_at = plan->now,
        .deadline = INSTANT_NONE,
        .content_type = SLICE("application/json"),
        .headers = SLICE("{\"x\":\"1\"}"),
        .payload = { big, payload },
    };
    return &op->insert;
}

static void add_claim(struct plan *plan, int64_t lane, size_t max)
{
    add(plan, OP_CLAIM, STATUS_OK)->claim =
        (struct op_claim){ .lane = lane, .max = max, .lease_until = plan->now + 60000 };
}

static struct op_settle *add_settle(struct plan *plan, int64_t seq, enum job_event event, enum status expected)
{
    struct store_op *op = add(plan, OP_SETTLE, expected);
    op->settle = (struct op_settle){
        .seq = seq,
        .token = plan->script->tokens[seq],
        .event = event,
        .run_at = plan->now + 1500,
        .rank = plan->now,
        .retry_count = 1,
        .outcome = event == EVENT_DELIVER ? OUTCOME_DELIVERED : OUTCOME_TRANSIENT,
        .code = event == EVENT_DELIVER ? SLICE("http:200") : SLICE("http:503"),
        .error = event == EVENT_DELIVER ? SLICE("") : SLICE("busy"),
        .dead_code = SLICE("MAX_RETRIES_EXCEEDED"),
        .dead_ttl_ms = 9500,
        .forget_at = plan->now + 7500,
    };
    return &op->settle;
}

static struct op_job *add_named(struct plan *plan, enum op_kind kind, const char *tenant, const char *id,
                                enum status expected)
{
    struct store_op *op = add(plan, kind, expected);
    op->job = (struct op_job){ .tenant = slice_from(tenant),
                               .id = slice_from(id),
                               .rank = plan->now - 5000,
                               .priority = PRIORITY_CRITICAL,
                               .forget_at = plan->now + 4500 };
    return &op->job;
}

/* One that becomes a job elsewhere. */
static void add_export(struct plan *plan, const char *tenant, const char *id, const char *export, enum status expected)
{
    static struct op_insert insert;
    insert = *add_insert(plan, "archive", tenant, export, 900, STATUS_OK);
    plan->count--;
    add_named(plan, OP_PURGE, tenant, id, expected)->export = &insert;
}

static void add_promote(struct plan *plan)
{
    add(plan, OP_PROMOTE, STATUS_OK)->promote = (struct op_promote){ .max = 100, .dead_ttl_ms = 5000 };
}

static void add_note(struct plan *plan)
{
    add(plan, OP_NOTE, STATUS_OK)->data = SLICE("{\"note\":\"a batch\"}");
}

/* Lanes: 1 claims/t1, 2 claims/t2, 3 mail/t1. */
static void plan_first(struct plan *plan)
{
    for (int i = 0; i < 6; i++) {
        static const char *const ids[] = { "A", "B", "C", "D", "E", "F" };
        add_insert(plan, "claims", "t1", ids[i], 100, STATUS_OK);
    }
    add_insert(plan, "claims", "t2", "", 300, STATUS_OK);                               /* 7 */
    add_insert(plan, "claims", "t2", "soon", 10, STATUS_OK)->run_at = plan->now + 2500; /* 8 */
    add_insert(plan, "mail", "t1", "late", 10, STATUS_OK)->deadline = plan->now + 2500; /* 9 */
    add_insert(plan, "claims", "t1", "A", 100, STATUS_OK);                              /* the same again */
    add_insert(plan, "claims", "t1", "A", 99, STATUS_CONFLICT);
}

static void plan_settle_first(struct plan *plan)
{
    add_settle(plan, 1, EVENT_DELIVER, STATUS_OK);
    add_settle(plan, 1, EVENT_DELIVER, STATUS_CONFLICT);
    add_settle(plan, 2, EVENT_RETRY, STATUS_OK);
    struct op_settle *dead = add_settle(plan, 3, EVENT_GIVE_UP, STATUS_OK);
    dead->error = (struct slice){ big, LONG_ERROR_BYTES };
    add_settle(plan, 4, EVENT_RELEASE, STATUS_OK)->attempt_undone = true;
    add(plan, OP_EXTEND, STATUS_OK)->extend = (struct op_extend){ 5, plan->script->tokens[5], plan->now + 90000 };
    add(plan, OP_EXTEND, STATUS_CONFLICT)->extend = (struct op_extend){ 5, 1, plan->now };
}

static void plan_by_name(struct plan *plan)
{
    add_named(plan, OP_CANCEL, "t1", "F", STATUS_OK);
    add_named(plan, OP_CANCEL, "t1", "A", STATUS_CONFLICT);
    add_named(plan, OP_PRIORITIZE, "t1", "B", STATUS_OK);
    add_named(plan, OP_PRIORITIZE, "t9", "B", STATUS_NOT_FOUND);
    struct op_job *redrive = add_named(plan, OP_REDRIVE, "t1", "C", STATUS_OK);
    redrive->payload_given = true;
    redrive->payload = (struct slice){ big, 6000 };
    add_named(plan, OP_PURGE, "t1", "B", STATUS_CONFLICT);
}

static void plan_many(struct plan *plan, int count, size_t payload)
{
    for (int i = 0; i < count; i++)
        add_insert(plan, i % 2 ? "claims" : "mail", i % 3 ? "t1" : "t3", "", payload, STATUS_OK);
}

static void plan_settle_rest(struct plan *plan)
{
    for (int64_t seq = 1; seq <= SCRIPT_SEQ_MAX; seq++)
        if (plan->script->tokens[seq] && plan->count + 1 < OPS_MAX)
            add_settle(plan, seq, seq % 3 ? EVENT_DELIVER : seq % 2 ? EVENT_GIVE_UP : EVENT_EXPIRE, STATUS_OK);
}

static void plan_destination(struct plan *plan)
{
    add(plan, OP_DESTINATION, STATUS_OK)->save =
        (struct op_save){ .name = SLICE("claims"), .value = SLICE("{\"mode\":\"paused\"}") };
    add(plan, OP_ORPHANS, STATUS_OK)->orphans = (struct op_orphans){ .until = INSTANT_MAX, .max = 10 };
}

static void plan_trim(struct plan *plan, instant before)
{
    add(plan, OP_TRIM, STATUS_OK)->trim = (struct op_trim){ .before = before, .max = 1000 };
}

static void plan_early(struct plan *plan, int number)
{
    switch (number) {
    case 0:
        plan_first(plan);
        break;
    case 1:
        add_claim(plan, 1, 5);
        break;
    case 2:
        plan_settle_first(plan);
        break;
    case 3:
        add_promote(plan); /* "soon" is due, "late" expires */
        break;
    case 4:
        add_promote(plan);
        break;
    case 5:
        plan_by_name(plan);
        break;
    case 6:
        plan_destination(plan);
        break;
    case 7:
        plan_many(plan, 30, 700);
        break;
    case 8:
        plan_many(plan, 3, BIG_BYTES);
        break;
    case 9:
        add_claim(plan, 2, 10);
        add_claim(plan, 3, 20);
        break;
    default:
        abort();
    }
}

static void plan_late(struct plan *plan, int number)
{
    switch (number) {
    case 10:
        plan_settle_rest(plan);
        add_promote(plan);
        break;
    case 11:
        plan_trim(plan, script_now(2));
        add_promote(plan);
        break;
    case 12:
        add_claim(plan, 1, 3);
        break;
    case 13:
        break; /* the note alone */
    case 14:
        plan_settle_rest(plan);
        break;
    case 15:
        add_promote(plan);
        add_named(plan, OP_REDRIVE, "t1", "late", STATUS_NOT_FOUND);
        add_export(plan, "t1", "C", "exported", STATUS_OK);
        break;
    case 16:
        add_insert(plan, "claims", "t1", "A", 99, STATUS_OK); /* the first A is forgotten */
        plan_many(plan, 20, 200);
        break;
    case 17:
        plan_trim(plan, script_now(16));
        break;
    case 18:
        add_promote(plan);
        break;
    case 19:
        add_claim(plan, 1, 50);
        plan_destination(plan);
        break;
    default:
        abort();
    }
}

bool script_closes_after(int batch)
{
    return batch == 6;
}

bool script_dies_after(int batch)
{
    return batch == 12;
}

static void tokens_from(struct script *script, const struct job *jobs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (jobs[i].seq > SCRIPT_SEQ_MAX)
            abort();
        script->tokens[jobs[i].seq] = jobs[i].lease_token;
    }
}

/* Results that are not the ones expected are a failure of the store as a whole. */
static enum status plan_check(struct plan *plan, int number, struct error *err)
{
    for (size_t i = 0; i < plan->count; i++) {
        struct store_op *op = &plan->ops[i];
        if (op->status != plan->expected[i])
            return error_set(err, STATUS_UNSUPPORTED, "batch %d, operation %zu: %s instead of %s", number, i,
                             status_name(op->status), status_name(plan->expected[i]));
        if (op->kind == OP_CLAIM)
            tokens_from(plan->script, op->claim.ret_jobs, op->claim.ret_count);
        if (op->kind == OP_SETTLE && op->status == STATUS_OK)
            plan->script->tokens[op->settle.seq] = 0;
    }
    return STATUS_OK;
}

enum status script_apply(struct script *script, struct store *store, int number, struct error *err)
{
    struct arena memory = { 0 };
    memset(big, 'x', sizeof big);
    struct plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the script");
    plan->script = script;
    plan->now = script_now(number);
    if (number < 10)
        plan_early(plan, number);
    else
        plan_late(plan, number);
    add_note(plan); /* no batch leaves the store as it was */
    uint64_t seed = store->seed;
    store->seed = SCRIPT_SEED; /* ids that the store makes depend on it, and equal runs must give equal ids */
    enum status status = store->ops->apply(store, plan->now, plan->ops, plan->count, &memory, err);
    store->seed = seed;
    if (status == STATUS_OK)
        status = plan_check(plan, number, err);
    arena_release(&memory);
    free(plan);
    return status;
}

enum status script_learn(struct script *script, struct store *store, struct error *err)
{
    struct arena memory = { 0 };
    struct store_op op = { .kind = OP_ORPHANS, .orphans = { .until = INSTANT_MAX, .max = SCRIPT_SEQ_MAX } };
    *script = (struct script){ { 0 } };
    enum status status = store->ops->apply(store, script_now(0), &op, 1, &memory, err);
    if (status == STATUS_OK)
        tokens_from(script, op.orphans.ret_jobs, op.orphans.ret_count);
    arena_release(&memory);
    return status;
}
