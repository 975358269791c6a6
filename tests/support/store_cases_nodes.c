#include "support/check.h"
#include "support/store_cases.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { SHARED_IDS = 200 };

/* ---- one node, run after run ---- */

static size_t orphans_of(struct store_fixture *f, struct store *store, bool of_ended, struct job **ret_jobs)
{
    struct error err = { 0 };
    struct store_op op = { .kind = OP_ORPHANS, .orphans = { .until = f->now, .of_ended = of_ended, .after_until = INSTANT_NONE, .max = 10 } };
    assert_int_equal(store->ops->apply(store, f->now, &op, 1, &f->memory, &err), STATUS_OK);
    assert_int_equal(op.status, STATUS_OK);
    *ret_jobs = op.orphans.ret_jobs;
    return op.orphans.ret_count;
}

static void begin(struct store_fixture *f, struct store *store)
{
    struct error err = { 0 };
    int64_t before = store->session;
    if (store->ops->begin(store, f->now, &err) != STATUS_OK)
        fail_msg("%s: %s", f->backend->name, err.text);
    assert_true(store->session >= before && store->session > 0);
}

static void what_a_session_claimed_is_left_when_it_ends(void **state)
{
    struct store_fixture *f = *state;
    struct job *jobs;
    int64_t lane = put(f, "ours");
    struct job ours = take(f, lane);
    put(f, "leased");
    struct store_op lease = claim_op(f, lane, 1);
    lease.claim.owner = SLICE("worker");
    assert_run(f, &lease, STATUS_OK);
    assert_int_equal(orphans_of(f, f->store, true, &jobs), 0); /* its own session lives */

    int64_t before = f->store->session;
    begin(f, f->store);
    assert_true(f->store->session > before); /* a lease names the one before */
    put(f, "new");
    struct job new = take(f, lane);
    assert_int_equal(orphans_of(f, f->store, false, &jobs), 0); /* not asked for, and no lease is over */
    assert_int_equal(orphans_of(f, f->store, true, &jobs), 1);
    assert_text(jobs[0].id, "ours");
    assert_int_equal(jobs[0].lease_token, ours.lease_token);
    assert_int_equal(jobs[0].lease_fenced_at, INSTANT_NONE); /* its process is gone, and its sends with it */

    /* An answer that comes late still counts while nobody has settled it. */
    struct store_op settle = settle_op(&ours, EVENT_DELIVER);
    assert_run(f, &settle, STATUS_OK);
    assert_int_equal(orphans_of(f, f->store, true, &jobs), 0);
    begin(f, f->store);
    assert_int_equal(orphans_of(f, f->store, true, &jobs), 1);
    assert_text(jobs[0].id, "new");
    settle = settle_op(&new, EVENT_RELEASE);
    assert_run(f, &settle, STATUS_OK);
    f->now += DAY_MS;
    assert_int_equal(orphans_of(f, f->store, true, &jobs), 1); /* the worker's, by its own time */
    assert_text(jobs[0].id, "leased");
}

static void who_has_the_store_for_itself_owns_all_of_it(void **state)
{
    struct store_fixture *f = *state;
    struct store_op take_it = { .kind = OP_TAKE, .own = { .destination = SLICE("d") } };
    struct store_op give_it = { .kind = OP_GIVE, .own = { .destination = SLICE("d") } };
    int64_t lane = put(f, "a");
    assert_run(f, &take_it, STATUS_OK);
    assert_run(f, &give_it, STATUS_OK);
    take_and_settle(f, lane, EVENT_DELIVER);
    struct store_op trim = { .kind = OP_TRIM, .trim = { .before = f->now + 1, .max = 10 } };
    assert_run(f, &trim, STATUS_OK);
    assert_int_equal(trim.trim.ret_deleted, 3);
}

/* ---- several ---- */

struct pair {
    struct store_fixture *f; /* whose store is node a's */
    struct store *b;
};

static bool pair_begin(void **state, struct pair *pair)
{
    struct store_fixture *f = pair->f = *state;
    struct error err = { 0 };
    pair->b = NULL;
    if (!f->backend->join) {
        assert_true(!f->store->ops->end && !f->store->ops->beat && !f->store->ops->fence && !f->store->ops->reader_sessions);
        return false;
    }
    fixture_reopen(f, &(struct store_settings){ .node = SLICE("a"), .node_url = SLICE("http://a") });
    f->shared = true;
    if (f->backend->join(&f->place, f->store, &(struct store_settings){ .node = SLICE("b") }, &pair->b, &err) != STATUS_OK)
        fail_msg("%s: %s", f->backend->name, err.text);
    assert_true(pair->b->session > f->store->session);
    return true;
}

static void pair_end(struct pair *pair)
{
    pair->b->ops->close(pair->b);
}

static enum status run(struct pair *pair, struct store *store, struct store_op *op)
{
    struct error err = { 0 };
    enum status status = store->ops->apply(store, pair->f->now, op, 1, &pair->f->memory, &err);
    assert_true(status == STATUS_OK || status == STATUS_FENCED);
    return status == STATUS_OK ? op->status : status;
}

static enum status own(struct pair *pair, struct store *store, enum op_kind kind, const char *destination, int64_t *ret_epoch)
{
    struct store_op op = { .kind = kind, .own = { .destination = slice_from(destination) } };
    enum status status = run(pair, store, &op);
    if (ret_epoch)
        *ret_epoch = op.own.ret_epoch;
    return status;
}

static int64_t put_to(struct pair *pair, struct store *store, const char *destination, const char *id, int64_t in_ms)
{
    struct store_op op = insert_op(pair->f, destination, "t", id);
    op.insert.run_at += in_ms;
    assert_int_equal(run(pair, store, &op), STATUS_OK);
    return op.insert.ret_lane;
}

static struct job claim_by(struct pair *pair, struct store *store, int64_t lane)
{
    struct store_op op = claim_op(pair->f, lane, 1);
    assert_int_equal(run(pair, store, &op), STATUS_OK);
    assert_int_equal(op.claim.ret_count, 1);
    return op.claim.ret_jobs[0];
}

static struct session session_of(struct pair *pair, int64_t number)
{
    struct error err = { 0 };
    struct session *sessions;
    size_t count, i = 0;
    assert_int_equal(pair->f->store->ops->reader_sessions(pair->f->reader, &pair->f->memory, &sessions, &count, &err), STATUS_OK);
    while (i < count && sessions[i].number != number)
        i++;
    if (i == count)
        fail_msg("session %lld is not there", (long long)number);
    return sessions[i];
}

static enum status fence(struct pair *pair, struct store *by, const struct store *whom, int64_t beat)
{
    struct error err = { 0 };
    return by->ops->fence(by, whom->session, beat, pair->f->now, &err);
}

static void a_destination_has_one_owner(void **state)
{
    struct pair pair;
    int64_t first, second, third;
    if (!pair_begin(state, &pair))
        return;
    struct store *a = pair.f->store;
    assert_int_equal(own(&pair, a, OP_TAKE, "d", &first), STATUS_OK);
    assert_int_equal(own(&pair, a, OP_TAKE, "d", &second), STATUS_OK); /* it has it already */
    assert_int_equal(second, first);
    assert_int_equal(own(&pair, pair.b, OP_TAKE, "d", NULL), STATUS_CONFLICT);
    assert_int_equal(own(&pair, pair.b, OP_GIVE, "d", NULL), STATUS_CONFLICT);
    assert_int_equal(own(&pair, pair.b, OP_TAKE, "e", NULL), STATUS_OK);

    int64_t lane = put_to(&pair, pair.b, "d", "j", 0); /* anybody may add */
    struct store_op claim = claim_op(pair.f, lane, 1);
    assert_int_equal(run(&pair, pair.b, &claim), STATUS_CONFLICT);
    claim_by(&pair, a, lane);

    assert_int_equal(own(&pair, a, OP_GIVE, "d", &second), STATUS_OK);
    assert_true(second > first);
    claim = claim_op(pair.f, put_to(&pair, a, "d", "k", 0), 1);
    assert_int_equal(run(&pair, a, &claim), STATUS_CONFLICT); /* nobody's is not one's own */
    assert_int_equal(own(&pair, pair.b, OP_TAKE, "d", &third), STATUS_OK);
    assert_true(third > second);
    claim_by(&pair, pair.b, lane);

    struct error err = { 0 };
    struct shard *shards;
    size_t count;
    assert_int_equal(a->ops->reader_shards(pair.f->reader, &pair.f->memory, &shards, &count, &err), STATUS_OK);
    assert_int_equal(count, 2);
    assert_text(shards[0].destination, "d");
    assert_true(shards[0].session == pair.b->session && shards[0].epoch == third);
    assert_text(shards[1].destination, "e");
    pair_end(&pair);
}

/* All nodes place them by the same order. */
static void destinations_are_read_in_order_of_name(void **state)
{
    static const char *const names[] = { "x", "b", "q", "", "m", "a", "bb", "c" };
    enum { NAMES = sizeof names / sizeof *names };
    struct pair pair;
    struct shard *shards;
    struct error err = { 0 };
    size_t count;
    if (!pair_begin(state, &pair))
        return;
    for (int i = 0; i < NAMES; i++)
        assert_int_equal(own(&pair, i % 2 ? pair.b : pair.f->store, OP_TAKE, names[i], NULL), STATUS_OK);
    assert_int_equal(pair.f->store->ops->reader_shards(pair.f->reader, &pair.f->memory, &shards, &count, &err), STATUS_OK);
    assert_int_equal(count, NAMES);
    for (size_t i = 1; i < count; i++)
        assert_true(slice_compare(shards[i - 1].destination, shards[i].destination) < 0);
    pair_end(&pair);
}

/* What one node took and another sent is one history, in its order, whichever chains its events are in. */
static void a_history_goes_on_across_nodes(void **state)
{
    struct pair pair;
    struct error err = { 0 };
    if (!pair_begin(state, &pair))
        return;
    struct store *a = pair.f->store, *b = pair.b;
    static const enum event_type types[] = { EVENT_TYPE_ACCEPTED, EVENT_TYPE_CLAIMED, EVENT_TYPE_RELEASED, EVENT_TYPE_CANCELLED };
    assert_int_equal(own(&pair, a, OP_TAKE, "d", NULL), STATUS_OK);
    int64_t lane = put_to(&pair, b, "d", "moved", 0);
    struct job job = claim_by(&pair, a, lane);
    struct store_op release = settle_op(&job, EVENT_RELEASE);
    assert_int_equal(run(&pair, a, &release), STATUS_OK);
    struct store_op cancel = { .kind = OP_CANCEL, .job = { .tenant = SLICE("t"), .id = SLICE("moved") } };
    assert_int_equal(run(&pair, b, &cancel), STATUS_OK);
    for (size_t max = 1; max <= COUNT_OF(types); max++) {
        struct event *events;
        size_t count;
        assert_int_equal(a->ops->reader_history(pair.f->reader, SLICE("t"), SLICE("moved"), max, &pair.f->memory, &events, &count, &err), STATUS_OK);
        assert_int_equal(count, max);
        for (size_t i = 0; i < count; i++)
            assert_int_equal(events[i].type, types[COUNT_OF(types) - max + i]);
    }
    pair_end(&pair);
}

/*
 * What one node has claimed another may change, or settle: whoever settles it then does so on what it has become, also in a batch with
 * others that nobody has touched.
 */
static void what_another_did_to_a_claimed_job_counts(void **state)
{
    struct pair pair;
    enum { JOBS = 5 };
    static const char *const ids[JOBS] = { "prioritized", "untouched", "acked", "released", "prolonged" };
    struct job jobs[JOBS];
    if (!pair_begin(state, &pair))
        return;
    struct store *a = pair.f->store, *b = pair.b;
    assert_int_equal(own(&pair, a, OP_TAKE, "d", NULL), STATUS_OK);
    for (int i = 0; i < JOBS; i++)
        jobs[i] = claim_by(&pair, a, put_to(&pair, a, "d", ids[i], 0));
    struct store_op back = settle_op(&jobs[0], EVENT_RELEASE); /* so that it is no more as it was inserted */
    assert_int_equal(run(&pair, a, &back), STATUS_OK);
    jobs[0] = claim_by(&pair, a, jobs[0].lane);
    assert_text(jobs[0].id, ids[0]);
    pair.f->now += SECOND_MS;
    struct store_op prioritize = job_op(OP_PRIORITIZE, "t", "prioritized");
    prioritize.job.priority = PRIORITY_HIGH;
    prioritize.job.rank = 17;
    struct store_op prolong = { .kind = OP_EXTEND, .extend = { .seq = jobs[4].seq, .token = jobs[4].lease_token,
                                                               .lease_until = pair.f->now + DAY_MS } };
    struct store_op ack = settle_op(&jobs[2], EVENT_DELIVER), release = settle_op(&jobs[3], EVENT_RELEASE);
    assert_int_equal(run(&pair, b, &prioritize), STATUS_OK);
    assert_int_equal(run(&pair, b, &prolong), STATUS_OK);
    assert_int_equal(run(&pair, b, &ack), STATUS_OK);
    assert_int_equal(run(&pair, b, &release), STATUS_OK);
    assert_int_equal(own(&pair, a, OP_GIVE, "d", NULL), STATUS_OK);
    assert_int_equal(own(&pair, b, OP_TAKE, "d", NULL), STATUS_OK);
    struct job again = claim_by(&pair, b, jobs[3].lane);
    assert_text(again.id, ids[3]);
    struct store_op here = settle_op(&again, EVENT_DELIVER); /* whoever gave the lease */
    assert_int_equal(run(&pair, a, &here), STATUS_OK);

    struct store_op batch[JOBS];
    static const enum status expected[JOBS] = { STATUS_OK, STATUS_OK, STATUS_CONFLICT, STATUS_CONFLICT, STATUS_OK };
    for (int i = 0; i < JOBS; i++)
        batch[i] = settle_op(&jobs[i], i == 0 ? EVENT_RETRY : EVENT_DELIVER);
    fixture_apply(pair.f, batch, 2);
    fixture_apply(pair.f, batch + 2, JOBS - 2);
    for (int i = 0; i < JOBS; i++)
        assert_string_equal(status_name(batch[i].status), status_name(expected[i]));
    assert_int_equal(read_job(pair.f, "t", "prioritized").priority, PRIORITY_HIGH);
    for (int i = 1; i < JOBS; i++)
        assert_state(pair.f, ids[i], STATE_COMPLETED);
    pair_end(&pair);
}

static void a_fenced_batch_leaves_nothing(void **state)
{
    struct pair pair;
    struct error err = { 0 };
    if (!pair_begin(state, &pair))
        return;
    struct store *a = pair.f->store;
    assert_int_equal(own(&pair, a, OP_TAKE, "d", NULL), STATUS_OK);
    int64_t lane = put_to(&pair, a, "d", "claimed", 0);
    struct job claimed = claim_by(&pair, a, lane);
    put_to(&pair, a, "d", "ready", 0);

    /* Who has beaten since is not fenced. */
    int64_t seen = session_of(&pair, a->session).beat;
    assert_int_equal(a->ops->beat(a, 7, &err), STATUS_OK);
    assert_int_equal(fence(&pair, pair.b, a, seen), STATUS_CONFLICT);
    seen = session_of(&pair, a->session).beat;
    assert_true(session_of(&pair, a->session).config == 7 && session_of(&pair, pair.b->session).config == 0);
    assert_int_equal(own(&pair, pair.b, OP_TAKE, "d", NULL), STATUS_CONFLICT);
    assert_int_equal(fence(&pair, pair.b, a, seen), STATUS_OK);
    assert_int_equal(fence(&pair, pair.b, a, seen), STATUS_CONFLICT); /* somebody was quicker */

    size_t before, after;
    read_events(pair.f, 0, &before);
    struct store_op ops[] = { insert_op(pair.f, "d", "t", "late"), settle_op(&claimed, EVENT_DELIVER), claim_op(pair.f, lane, 1),
                              { .kind = OP_SAVE, .save = { SLICE("space"), SLICE("name"), SLICE("value") } } };
    assert_int_equal(a->ops->apply(a, pair.f->now, ops, 4, &pair.f->memory, &err), STATUS_FENCED);
    assert_int_equal(a->ops->beat(a, 7, &err), STATUS_FENCED);
    read_events(pair.f, 0, &after);
    assert_int_equal(after, before);
    assert_false(job_exists(pair.f, "t", "late"));
    assert_state(pair.f, "claimed", STATE_RUNNING);
    assert_int_equal(ready_in(pair.f, lane), 1);
    struct slice value;
    assert_int_equal(a->ops->reader_saved(pair.f->reader, SLICE("space"), SLICE("name"), &pair.f->memory, &value, &err), STATUS_NOT_FOUND);

    /* Another takes over at once what is ready, and is told since when the rest has no sender. */
    struct job *jobs;
    instant fenced_at = pair.f->now;
    assert_int_equal(orphans_of(pair.f, pair.b, true, &jobs), 0); /* not yet its own */
    assert_int_equal(own(&pair, pair.b, OP_TAKE, "d", NULL), STATUS_OK);
    claim_by(&pair, pair.b, lane);
    pair.f->now += 10;
    assert_int_equal(orphans_of(pair.f, pair.b, false, &jobs), 0);
    assert_int_equal(orphans_of(pair.f, pair.b, true, &jobs), 1);
    assert_text(jobs[0].id, "claimed");
    assert_int_equal(jobs[0].lease_fenced_at, fenced_at);

    /* The old owner comes back as another: it owns nothing, but the truth of what it sent is taken. */
    int64_t old = a->session;
    begin(pair.f, a);
    assert_true(a->session > old);
    struct store_op claim = claim_op(pair.f, lane, 1);
    assert_int_equal(run(&pair, a, &claim), STATUS_CONFLICT);
    struct store_op settle = settle_op(&claimed, EVENT_DELIVER);
    assert_int_equal(run(&pair, a, &settle), STATUS_OK);
    assert_int_equal(orphans_of(pair.f, pair.b, true, &jobs), 0);
    pair_end(&pair);
}

static void an_end_in_order_leaves_nothing_on_the_wire(void **state)
{
    struct pair pair;
    struct error err = { 0 };
    struct job *jobs;
    if (!pair_begin(state, &pair))
        return;
    struct store *a = pair.f->store;
    assert_int_equal(own(&pair, a, OP_TAKE, "d", NULL), STATUS_OK);
    claim_by(&pair, a, put_to(&pair, a, "d", "left", 0));
    assert_int_equal(a->ops->end(a, pair.f->now, &err), STATUS_OK);
    struct store_op note = { .kind = OP_NOTE, .data = SLICE("{}") };
    assert_int_equal(run(&pair, a, &note), STATUS_FENCED);
    assert_int_equal(fence(&pair, pair.b, a, session_of(&pair, a->session).beat), STATUS_CONFLICT);
    assert_int_equal(own(&pair, pair.b, OP_TAKE, "d", NULL), STATUS_OK);
    assert_int_equal(orphans_of(pair.f, pair.b, true, &jobs), 1);
    assert_int_equal(jobs[0].lease_fenced_at, INSTANT_NONE);
    pair_end(&pair);
}

/* d is a's, e is b's, and nobody has f. */
static void each_looks_after_its_own(void **state)
{
    struct pair pair;
    struct job *jobs;
    if (!pair_begin(state, &pair))
        return;
    struct store *a = pair.f->store;
    assert_int_equal(own(&pair, a, OP_TAKE, "d", NULL), STATUS_OK);
    assert_int_equal(own(&pair, pair.b, OP_TAKE, "e", NULL), STATUS_OK);
    assert_int_equal(own(&pair, pair.b, OP_TAKE, "", NULL), STATUS_OK); /* the steward's office */
    assert_int_equal(own(&pair, a, OP_TAKE, "", NULL), STATUS_CONFLICT);
    put_to(&pair, a, "d", "d1", 10);
    put_to(&pair, a, "d", "d2", 30);
    put_to(&pair, a, "e", "e1", 10);
    put_to(&pair, pair.b, "f", "f1", 10);
    pair.f->now += 10;
    struct store_op promote = promote_op();
    assert_int_equal(run(&pair, a, &promote), STATUS_OK);
    assert_int_equal(promote.promote.ret_promoted, 1);
    assert_text(promote.promote.ret_ready[0].destination, "d");
    assert_int_equal(promote.promote.ret_next_at, pair.f->now + 20);
    promote = promote_op();
    assert_int_equal(run(&pair, pair.b, &promote), STATUS_OK);
    assert_int_equal(promote.promote.ret_promoted, 2);
    assert_int_equal(promote.promote.ret_next_at, INSTANT_NONE);

    claim_by(&pair, a, read_job(pair.f, "t", "d1").lane);
    claim_by(&pair, pair.b, read_job(pair.f, "t", "e1").lane);
    pair.f->now += DAY_MS;
    assert_int_equal(orphans_of(pair.f, a, true, &jobs), 1);
    assert_text(jobs[0].id, "d1");
    assert_int_equal(orphans_of(pair.f, pair.b, true, &jobs), 1);
    assert_text(jobs[0].id, "e1");

    struct store_op trim = { .kind = OP_TRIM, .trim = { .before = pair.f->now, .max = 2 } };
    assert_int_equal(run(&pair, a, &trim), STATUS_CONFLICT);
    assert_int_equal(run(&pair, pair.b, &trim), STATUS_OK);
    assert_int_equal(trim.trim.ret_deleted, 2);
    pair_end(&pair);
}

static void note_by(struct pair *pair, struct store *store)
{
    struct store_op note = { .kind = OP_NOTE, .data = SLICE("{}") };
    assert_int_equal(run(pair, store, &note), STATUS_OK);
}

/* One job of d comes, is delivered, and is forgotten. */
static int64_t come_and_go(struct pair *pair, struct store *by, struct store *owner)
{
    int64_t lane = put_to(pair, by, "d", "once", 0);
    struct job job = claim_by(pair, owner, lane);
    struct store_op settle = settle_op(&job, EVENT_DELIVER), promote = promote_op();
    settle.settle.forget_at = pair->f->now + 10;
    assert_int_equal(run(pair, owner, &settle), STATUS_OK);
    pair->f->now += 10;
    assert_int_equal(run(pair, owner, &promote), STATUS_OK);
    assert_int_equal(promote.promote.ret_forgotten, 1);
    return lane;
}

/* A node goes on knowing a lane after the steward has deleted it, with the trail of its jobs. */
static void a_lane_that_another_deleted_is_made_anew(void **state)
{
    struct pair pair;
    int64_t lane = 0;
    if (!pair_begin(state, &pair))
        return;
    struct store *a = pair.f->store;
    assert_int_equal(own(&pair, a, OP_TAKE, "d", NULL), STATUS_OK);
    assert_int_equal(own(&pair, pair.b, OP_TAKE, "", NULL), STATUS_OK);
    for (int i = 0; i < 6; i++) {
        int64_t before = lane;
        lane = come_and_go(&pair, i % 2 ? pair.b : a, a);
        check(lane != before, "round %d: lane %lld again", i, (long long)lane);
        for (int days = 0; days < 2; days++) {
            struct store_op trim = { .kind = OP_TRIM, .trim = { .before = pair.f->now, .max = 100 } };
            note_by(&pair, a);
            note_by(&pair, pair.b);
            assert_int_equal(run(&pair, pair.b, &trim), STATUS_OK);
            pair.f->now += DAY_MS;
        }
    }
    pair_end(&pair);
}

/* A node that starts anew, by its name, is the end of its earlier session, whoever else is there. */
static void a_name_has_one_session(void **state)
{
    struct pair pair;
    struct error err = { 0 };
    struct job *jobs;
    struct store *again = NULL;
    if (!pair_begin(state, &pair))
        return;
    struct store *a = pair.f->store;
    assert_int_equal(own(&pair, a, OP_TAKE, "d", NULL), STATUS_OK);
    assert_int_equal(own(&pair, pair.b, OP_TAKE, "e", NULL), STATUS_OK);
    claim_by(&pair, a, put_to(&pair, a, "d", "left", 0));
    claim_by(&pair, pair.b, put_to(&pair, a, "e", "other", 0));
    assert_int_equal(pair.f->backend->join(&pair.f->place, a, &(struct store_settings){ .node = SLICE("a") }, &again, &err), STATUS_OK);
    struct store_op note = { .kind = OP_NOTE, .data = SLICE("{}") };
    assert_int_equal(run(&pair, a, &note), STATUS_FENCED);
    assert_int_equal(run(&pair, pair.b, &note), STATUS_OK);
    assert_int_equal(own(&pair, again, OP_TAKE, "e", NULL), STATUS_CONFLICT);
    assert_int_equal(own(&pair, again, OP_TAKE, "d", NULL), STATUS_OK);
    assert_int_equal(orphans_of(pair.f, again, true, &jobs), 1);
    assert_text(jobs[0].id, "left");
    struct session *sessions;
    size_t count;
    assert_int_equal(a->ops->reader_sessions(pair.f->reader, &pair.f->memory, &sessions, &count, &err), STATUS_OK);
    assert_int_equal(count, 3); /* the first has a lease left */
    assert_true(sessions[0].ended && !sessions[1].ended && !sessions[2].ended);
    assert_text(sessions[0].url, "http://a");
    assert_text(sessions[2].node, "a");
    again->ops->close(again);
    pair_end(&pair);
}

/* ---- at once ---- */

struct adder {
    struct store *store;
    instant now;
    int added, existed;
    bool failed;
};

static void *add_all(void *context)
{
    struct adder *adder = context;
    for (int i = 0; i < SHARED_IDS && !adder->failed; i++) {
        char id[16];
        struct arena memory = { 0 };
        struct error err;
        snprintf(id, sizeof id, "j%d", i);
        struct store_op op = insert_op(&(struct store_fixture){ .now = adder->now }, "d", "t", id);
        adder->failed = adder->store->ops->apply(adder->store, adder->now, &op, 1, &memory, &err) != STATUS_OK || op.status != STATUS_OK;
        adder->existed += op.insert.ret_existed;
        adder->added += !op.insert.ret_existed;
        arena_release(&memory);
    }
    return NULL;
}

static void two_that_add_the_same_add_it_once(void **state)
{
    struct pair pair;
    if (!pair_begin(state, &pair))
        return;
    struct adder adders[2] = { { .store = pair.f->store, .now = pair.f->now }, { .store = pair.b, .now = pair.f->now } };
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_all, &adders[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_false(adders[0].failed || adders[1].failed);
    assert_int_equal(adders[0].added + adders[1].added, SHARED_IDS);
    assert_int_equal(adders[0].existed + adders[1].existed, SHARED_IDS);
    struct lane lane = read_lane(pair.f, read_job(pair.f, "t", "j0").lane);
    assert_int_equal(lane.counts.pending, SHARED_IDS);
    assert_int_equal(lane.counts.ready, SHARED_IDS);

    /* The state decides, whoever was first. */
    assert_int_equal(own(&pair, pair.b, OP_TAKE, "d", NULL), STATUS_OK);
    struct job job = claim_by(&pair, pair.b, lane.id);
    struct store_op cancel = { .kind = OP_CANCEL, .job = { .tenant = job.tenant, .id = job.id } };
    assert_int_equal(run(&pair, pair.f->store, &cancel), STATUS_CONFLICT);
    pair_end(&pair);
}

const struct store_case store_cases_nodes[] = {
    { "what a session claimed is left when it ends", what_a_session_claimed_is_left_when_it_ends },
    { "who has the store for itself owns all of it", who_has_the_store_for_itself_owns_all_of_it },
    { "a destination has one owner", a_destination_has_one_owner },
    { "destinations are read in order of name", destinations_are_read_in_order_of_name },
    { "a history goes on across nodes", a_history_goes_on_across_nodes },
    { "what another did to a claimed job counts", what_another_did_to_a_claimed_job_counts },
    { "a fenced batch leaves nothing", a_fenced_batch_leaves_nothing },
    { "an end in order leaves nothing on the wire", an_end_in_order_leaves_nothing_on_the_wire },
    { "each looks after its own", each_looks_after_its_own },
    { "a lane that another deleted is made anew", a_lane_that_another_deleted_is_made_anew },
    { "a name has one session", a_name_has_one_session },
    { "two that add the same add it once", two_that_add_the_same_add_it_once },
    { 0 },
};
