/* Random batches, the same in every run, to the store and to a model of it; all that can be seen is compared each time. */
#include "support/store_cases.h"
#include "support/store_model.h"

#include <stdio.h>
#include <string.h>

enum { IDS = 14, BATCH_OPS = 7, RECENT = 120, EVENTS_KEPT = 400 };

struct dice {
    uint64_t state;
};

/* splitmix64 */
static uint64_t roll(struct dice *dice)
{
    uint64_t x = dice->state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* From `low` to `high`, both included. */
static int64_t between(struct dice *dice, int64_t low, int64_t high)
{
    return low + (int64_t)(roll(dice) % (uint64_t)(high - low + 1));
}

static bool percent(struct dice *dice, int64_t chance)
{
    return between(dice, 1, 100) <= chance;
}

static struct slice one_of(struct dice *dice, const char *const *texts, size_t count)
{
    return slice_from(texts[between(dice, 0, (int64_t)count - 1)]);
}

/* What an operation points to. */
struct parts {
    struct store_op insert;
    struct dead_export export;
    struct due_letter due[MODEL_CLAIM_MAX];
};

static const char *const ids[IDS] = { "j0", "j1", "j2", "j3", "j4", "j5", "j6", "j7", "j8", "j9", "ç", "x y", "J1", "'" };
static const char *const payloads[] = { "{}", "", "{\"a\":1}" };
static const char *const keys[] = { "k1", "k2" };
static const char *const owners[] = { "", "w1", "w2" }; /* the session itself, workers */
static const char *const facts[] = { "", "{\"n\":1}", "{\"by\":\"ana\"}" };

/* One of the last jobs, that exists or not; NULL when there is none yet. */
static const struct model_job *some_job(struct dice *dice, const struct model *model)
{
    if (model->job_count == 0)
        return NULL;
    int64_t last = (int64_t)model->job_count - 1;
    return &model->jobs[between(dice, last > RECENT ? last - RECENT : 0, last)];
}

/* Running ones by preference: the lease may have ended meanwhile. */
static const struct model_job *some_leased(struct dice *dice, const struct model *model)
{
    const struct model_job *job = some_job(dice, model);
    for (int i = 0; i < 20 && job && !(job->exists && job->job.state == STATE_RUNNING && job->token_known); i++)
        job = some_job(dice, model);
    return job;
}

static void make_insert(struct dice *dice, const struct model *model, struct store_op *op)
{
    op->insert = (struct op_insert){
        .destination = one_of(dice, model_destinations, MODEL_DESTINATIONS),
        .tenant = one_of(dice, model_tenants, MODEL_TENANTS),
        .id = percent(dice, 15) ? SLICE("") : one_of(dice, ids, IDS),
        .priority = (enum priority)between(dice, PRIORITY_CRITICAL, PRIORITY_NORMAL),
        .rank = between(dice, -5, 30),
        .run_at = model->now + between(dice, -20, 60),
        .deadline = percent(dice, 25) ? model->now + between(dice, 0, 200) : INSTANT_NONE,
        .content_type = SLICE(""),
        .headers = SLICE(""),
        .correlation_id = SLICE(""),
        .metadata = SLICE(""),
        .key = percent(dice, 50) ? SLICE("") : one_of(dice, keys, 2),
        .payload = percent(dice, 70) ? SLICE("{}") : one_of(dice, payloads, 3),
    };
}

static void make_claim(struct dice *dice, const struct model *model, struct store_op *op)
{
    int64_t lane = model->lanes[between(dice, 0, MODEL_LANES - 1)].id;
    op->claim = (struct op_claim){ .lane = lane > 0 ? lane : 1000,
                                   .max = (size_t)between(dice, 0, MODEL_CLAIM_MAX),
                                   .failed_last = percent(dice, 40) ? model->now - between(dice, 0, 100) : 0,
                                   .unfailed_only = percent(dice, 30),
                                   .lease_until = model->now + between(dice, 1, 100),
                                   .owner = one_of(dice, owners, 3) };
}

static enum job_event some_ending(struct dice *dice)
{
    int64_t number = between(dice, 1, 100);
    return number <= 30 ? EVENT_DELIVER : number <= 60 ? EVENT_RETRY : number <= 75 ? EVENT_RELEASE
         : number <= 95 ? EVENT_GIVE_UP : EVENT_EXPIRE;
}

static void make_settle(struct dice *dice, const struct model *model, const struct model_job *job, struct store_op *op)
{
    enum job_event event = some_ending(dice);
    bool untried = event == EVENT_RELEASE;
    op->settle = (struct op_settle){
        .seq = job->job.seq,
        .token = job->token - percent(dice, 8),
        .event = event,
        .step = percent(dice, 70) ? STEP_SEND : percent(dice, 50) ? STEP_VERIFY : STEP_POLL,
        .run_at = model->now + between(dice, -5, 80),
        .rank = between(dice, -5, 30),
        .retry_count = between(dice, 0, 5),
        .step_count = between(dice, 0, 5),
        .doubted = percent(dice, 20),
        .failed_at = event == EVENT_RETRY ? model->now - between(dice, 0, 3) : 0,
        .look_failed_at = percent(dice, 50) ? model->now - between(dice, 0, 3) : 0,
        .attempt_undone = untried && percent(dice, 70),
        .outcome = untried ? OUTCOME_NONE : event == EVENT_DELIVER ? OUTCOME_DELIVERED : OUTCOME_THROTTLED,
        .code = untried ? SLICE("") : event == EVENT_DELIVER ? SLICE("http:200") : SLICE("http:429"),
        .error = untried || event == EVENT_DELIVER ? SLICE("") : SLICE("too fast"),
        .dead_code = percent(dice, 50) ? SLICE("PERMANENT_ERROR") : SLICE("MAX_RETRIES_EXCEEDED"),
        .dead_ttl_ms = percent(dice, 10) ? 0 : between(dice, 1, 200),
        .forget_at = model->now + between(dice, 0, 100),
        .reference = percent(dice, 20) ? SLICE("p-7") : SLICE(""),
    };
}

static void make_named(struct dice *dice, const struct model *model, const struct model_job *job, struct parts *parts,
                       struct store_op *op)
{
    for (int i = 0; i < 10 && (!job->exists || (op->kind == OP_PURGE && job->job.state != STATE_DEAD)); i++)
        job = some_job(dice, model);
    op->job = (struct op_job){
        .tenant = job->job.tenant,
        .id = job->id[0] ? slice_from(job->id) : SLICE("not known yet"),
        .priority = (enum priority)between(dice, PRIORITY_CRITICAL, PRIORITY_NORMAL),
        .rank = between(dice, -5, 30),
        .automatic = percent(dice, 30),
        .payload_given = percent(dice, 30),
        .payload = one_of(dice, payloads, 3),
        .forget_at = model->now + between(dice, 0, 100),
    };
    if (op->kind != OP_PURGE || percent(dice, 50))
        return;
    make_insert(dice, model, &parts->insert);
    op->job.export = &parts->insert.insert;
}

static void make_promote(struct dice *dice, struct parts *parts, struct store_op *op)
{
    parts->export = (struct dead_export){ .destination = slice_from(model_destinations[0]),
                                          .room = (size_t)between(dice, 0, MODEL_CLAIM_MAX) };
    op->promote = (struct op_promote){ .max = percent(dice, 50) ? 100000 : (size_t)between(dice, 0, 4),
                                       .dead_ttl_ms = between(dice, 1, 200),
                                       .exports = &parts->export,
                                       .export_count = percent(dice, 50),
                                       .due = parts->due,
                                       .wanted_ms = between(dice, 50, 60),
                                       .unwanted_ms = between(dice, 1, 10) };
}

static enum op_kind some_kind(struct dice *dice)
{
    static const struct {
        enum op_kind kind;
        int64_t weight;
    } kinds[] = {
        { OP_INSERT, 27 }, { OP_CLAIM, 16 },   { OP_SETTLE, 24 },  { OP_EXTEND, 3 },      { OP_CANCEL, 3 }, { OP_PRIORITIZE, 4 },
        { OP_REDRIVE, 5 }, { OP_PURGE, 2 },    { OP_PROMOTE, 10 }, { OP_ORPHANS, 2 },     { OP_NOTE, 1 },   { OP_DESTINATION, 1 },
        { OP_TRIM, 1 },    { OP_SAVE, 1 },
    };
    int64_t number = between(dice, 0, 99);
    size_t i = 0;
    while ((number -= kinds[i].weight) >= 0)
        i++;
    return kinds[i].kind;
}

static void make_op(struct dice *dice, const struct model *model, struct parts *parts, struct store_op *op)
{
    const struct model_job *job = some_leased(dice, model);
    *op = (struct store_op){ .kind = job ? some_kind(dice) : OP_INSERT, .data = one_of(dice, facts, 3) };
    switch (op->kind) {
    case OP_INSERT:
        make_insert(dice, model, op);
        break;
    case OP_CLAIM:
        make_claim(dice, model, op);
        break;
    case OP_SETTLE:
        make_settle(dice, model, job, op);
        break;
    case OP_EXTEND:
        op->extend = (struct op_extend){ job->job.seq, job->token, model->now + between(dice, 1, 100) };
        break;
    case OP_PROMOTE:
        make_promote(dice, parts, op);
        break;
    case OP_ORPHANS:
        op->orphans = (struct op_orphans){ .until = percent(dice, 30) ? INSTANT_MAX : model->now + between(dice, -10, 50),
                                           .of_ended = percent(dice, 50),
                                           .max = 100000 };
        break;
    case OP_DESTINATION:
    case OP_SAVE:
        op->save = (struct op_save){ SPACE_DESTINATION, one_of(dice, model_destinations, MODEL_DESTINATIONS), one_of(dice, facts, 3) };
        break;
    case OP_NOTE:
        break;
    case OP_TRIM:
        op->trim = (struct op_trim){ .before = model->now - between(dice, 0, 300), .max = (size_t)between(dice, 0, EVENTS_KEPT) };
        break;
    default:
        make_named(dice, model, job, parts, op);
    }
}

static void begin_anew(struct store_fixture *f, struct model *model)
{
    struct error err = { 0 };
    assert_int_equal(f->store->ops->begin(f->store, f->now, &err), STATUS_OK);
    model->session++;
}

static void run(struct store_fixture *f, uint64_t seed, int batches)
{
    struct dice dice = { seed };
    struct model model;
    const int64_t pending_max = 25;
    fixture_reopen(f, &(struct store_settings){ .pending_max = pending_max });
    model_init(&model, f->now, pending_max);
    model.turns = f->backend->turns;
    size_t refused[STATUS_COUNT] = { 0 };
    for (int batch = 0; batch < batches; batch++) {
        struct store_op ops[BATCH_OPS];
        struct parts parts[BATCH_OPS];
        struct expected expected[BATCH_OPS];
        size_t count = (size_t)between(&dice, 1, BATCH_OPS);
        f->now = model.now += between(&dice, 0, 12);
        if (percent(&dice, 5))
            begin_anew(f, &model);
        for (size_t i = 0; i < count; i++) {
            make_op(&dice, &model, &parts[i], &ops[i]);
            if (ops[i].kind == OP_TRIM && batch % 64 == 0)
                ops[i].trim.before = f->now; /* else the trail would grow, and each comparison with it */
            model_apply(&model, &ops[i], &expected[i]);
        }
        fixture_apply(f, ops, count);
        for (size_t i = 0; i < count; i++) {
            model_check_op(&model, &ops[i], &expected[i]);
            refused[ops[i].status]++;
        }
        model_check_store(&model, f, model.job_count > 0 ? (size_t)between(&dice, 0, (int64_t)model.job_count - 1) : 0);
        fixture_forget(f);
    }
    /* A test that only meets the easy cases says little. */
    assert_true(refused[STATUS_CONFLICT] > 0 && refused[STATUS_NOT_FOUND] > 0 && refused[STATUS_FULL] > 0);
    model_release(&model);
}

static void random_batches(void **state)
{
    struct store_fixture *f = *state;
    for (uint64_t seed = 1; seed <= 3; seed++)
        run(f, seed, f->backend->model_batches);
}

const struct store_case store_cases_random[] = {
    { "random batches do as the model does", random_batches },
    { 0 },
};
