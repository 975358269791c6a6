/* Persons: jobs that go whatever their state, and events that lose their data while the chain holds. */
#include "support/store_cases.h"

#include "store/tally.h"

#include <stdio.h>

static struct store_op erase_op(const char *id)
{
    struct store_op op = job_op(OP_ERASE, "t", id);
    op.data = SLICE("{\"by\":\"ops\"}");
    return op;
}

static void any_job_goes_but_a_running_one(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "dead");
    take_and_settle(f, lane, EVENT_GIVE_UP);
    put(f, "done");
    take_and_settle(f, lane, EVENT_DELIVER);
    put(f, "waiting");
    take_and_settle(f, lane, EVENT_RETRY);
    put(f, "cancelled");
    struct store_op op = job_op(OP_CANCEL, "t", "cancelled");
    assert_run(f, &op, STATUS_OK);
    put(f, "running");
    struct store_op claim = claim_op(f, lane, 10);
    assert_run(f, &claim, STATUS_OK);
    put(f, "pending");
    op = erase_op("running");
    assert_run(f, &op, STATUS_CONFLICT);
    assert_state(f, "running", STATE_RUNNING);
    static const char *const ids[] = { "dead", "done", "waiting", "cancelled", "pending" };
    for (size_t i = 0; i < 5; i++) {
        bool running = job_exists(f, "t", ids[i]) && read_job(f, "t", ids[i]).state == STATE_RUNNING;
        op = erase_op(ids[i]);
        assert_run(f, &op, running ? STATUS_CONFLICT : STATUS_OK); /* the claim may have taken the waiting one, too */
        if (running)
            continue;
        assert_false(job_exists(f, "t", ids[i]));
        assert_int_equal(op.job.ret_was_dead, i == 0);
        last_event(f, "t", ids[i], EVENT_TYPE_ERASED);
        op = erase_op(ids[i]);
        assert_run(f, &op, STATUS_NOT_FOUND);
    }
    struct lane_counts counts = read_lane(f, lane).counts;
    assert_int_equal(counts.pending + counts.dead + counts.ready, 0);
}

static void an_id_can_be_used_again(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    struct store_op op = erase_op("a");
    assert_run(f, &op, STATUS_OK);
    op = insert_op(f, "d", "t", "a");
    op.insert.payload = SLICE("another");
    assert_run(f, &op, STATUS_OK);
    assert_false(op.insert.ret_existed);
    assert_int_equal(ready_in(f, lane), 1);
    assert_text(take(f, lane).payload, "another");
}

static void the_next_of_its_key_takes_its_place(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = 0;
    for (int i = 0; i < 4; i++) {
        struct store_op op = insert_op(f, "d", "t", (const char *const[]){ "a", "b", "c", "d" }[i]);
        op.insert.key = SLICE("k");
        assert_run(f, &op, STATUS_OK);
        lane = op.insert.ret_lane;
    }
    struct store_op op = erase_op("b"); /* from the middle */
    assert_run(f, &op, STATUS_OK);
    assert_false(op.ret_released.ready);
    assert_true(read_job(f, "t", "c").gap);
    op = erase_op("a");
    assert_run(f, &op, STATUS_OK);
    assert_true(op.ret_released.ready);
    assert_text(take(f, lane).id, "c");
    assert_int_equal(ready_in(f, lane), 0);
}

static void a_redrive_counts_it_as_gone(void **state)
{
    struct store_fixture *f = *state;
    int64_t counts[REDRIVE_COUNTS];
    struct error err;
    int64_t lane = put(f, "a");
    take_and_settle(f, lane, EVENT_GIVE_UP);
    struct store_op op = job_op(OP_REDRIVE, "t", "a");
    op.job.redrive = SLICE("R1");
    assert_run(f, &op, STATUS_OK);
    op = erase_op("a");
    assert_run(f, &op, STATUS_OK);
    assert_int_equal(tally_read(f->reader, SLICE("R1"), counts, &err), STATUS_OK);
    assert_int_equal(counts[REDRIVE_GONE], 1);
}

/* All events that there are, in one operation. */
static struct op_erase erase_all(struct store_fixture *f)
{
    size_t count;
    struct event *events = read_events(f, 0, &count);
    int64_t *numbers = arena_alloc_array(&f->memory, count + 1, sizeof *numbers);
    assert_non_null(numbers);
    for (size_t i = 0; i < count; i++)
        numbers[i] = events[i].number;
    struct store_op op = { .kind = OP_ERASE_EVENTS, .erase = { .numbers = numbers, .count = count } };
    assert_run(f, &op, STATUS_OK);
    return op.erase;
}

static void events_lose_their_data_and_the_chain_holds(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    for (int i = 0; i < 3; i++) {
        struct job job = take(f, lane);
        struct store_op op = settle_op(&job, EVENT_RETRY);
        op.data = SLICE("{\"error\":\"no patient Ana\"}");
        op.settle.run_at = f->now;
        assert_run(f, &op, STATUS_OK);
    }
    size_t before, after;
    const struct event *were = read_events(f, 0, &before);
    size_t with_data = 0;
    for (size_t i = 0; i < before; i++)
        with_data += were[i].data.len > 0;
    assert_true(with_data >= 3);
    assert_int_equal(erase_all(f).ret_erased, with_data);
    const struct event *are = read_events(f, 0, &after);
    assert_int_equal(after, before);
    for (size_t i = 0; i < before; i++) {
        assert_int_equal(are[i].data.len, 0);
        assert_int_equal(are[i].erased, were[i].data.len > 0);
        assert_int_equal(are[i].type, were[i].type);
        assert_memory_equal(are[i].hash, were[i].hash, EVENT_HASH_BYTES);
        static const unsigned char none[EVENT_SALT_BYTES];
        assert_memory_equal(are[i].salt, none, EVENT_SALT_BYTES); /* else the data could be tried out */
    }
    assert_true(chain_holds(are, after));
    assert_int_equal(erase_all(f).ret_erased, 0); /* once is enough */
    struct store_op op = erase_op("a");
    assert_run(f, &op, STATUS_OK); /* and it is written on behind them */
    are = read_events(f, 0, &after);
    assert_true(chain_holds(are, after));
}

static void what_is_not_there_is_not_erased(void **state)
{
    struct store_fixture *f = *state;
    static int64_t many[ERASE_EVENTS_MAX + 1];
    const int64_t numbers[] = { 900, 901 };
    put(f, "a");
    struct store_op op = { .kind = OP_ERASE_EVENTS, .erase = { .numbers = numbers, .count = 2 } };
    assert_run(f, &op, STATUS_OK);
    assert_int_equal(op.erase.ret_erased + op.erase.ret_left, 0);
    op.erase = (struct op_erase){ .numbers = many, .count = ERASE_EVENTS_MAX + 1 };
    assert_run(f, &op, STATUS_LIMIT);
    op.erase = (struct op_erase){ .count = 0 };
    assert_run(f, &op, STATUS_OK);
}

const struct store_case store_cases_erase[] = {
    { "erase: any job goes but a running one", any_job_goes_but_a_running_one },
    { "erase: an id can be used again", an_id_can_be_used_again },
    { "erase: the next of its key takes its place", the_next_of_its_key_takes_its_place },
    { "erase: a redrive counts it as gone", a_redrive_counts_it_as_gone },
    { "erase: events lose their data and the chain holds", events_lose_their_data_and_the_chain_holds },
    { "erase: what is not there is not erased", what_is_not_there_is_not_erased },
    { NULL, NULL },
};
