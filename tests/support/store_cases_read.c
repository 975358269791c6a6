#include "support/store_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void an_unknown_job_is_not_found(void **state)
{
    struct store_fixture *f = *state;
    put(f, "a");
    assert_false(job_exists(f, "t", "b"));
    assert_false(job_exists(f, "", "a"));
    size_t count;
    read_history(f, "t", "b", &count);
    assert_int_equal(count, 0);
}

static void payload_comes_when_asked_for(void **state)
{
    struct store_fixture *f = *state;
    put(f, "a");
    for (int with = 0; with < 2; with++) {
        struct error err = { 0 };
        struct job one, *page;
        size_t count;
        int64_t next;
        struct job_filter all = { 0 };
        assert_int_equal(
            f->store->ops->reader_job(f->reader, SLICE("t"), SLICE("a"), with, &f->memory, &one, &err), STATUS_OK);
        assert_int_equal(
            f->store->ops->reader_jobs(f->reader, &all, 10, with, &f->memory, &page, &count, &next, &err), STATUS_OK);
        assert_int_equal(count, 1);
        assert_text(one.payload, with ? "{}" : "");
        assert_text(page[0].payload, with ? "{}" : "");
    }
}

static void a_number_finds_its_job(void **state)
{
    struct store_fixture *f = *state;
    struct error err = { 0 };
    struct job by_name, by_seq;
    put(f, "a");
    put(f, "b");
    assert_int_equal(f->store->ops->reader_job(f->reader, SLICE("t"), SLICE("b"), true, &f->memory, &by_name, &err),
                     STATUS_OK);
    assert_int_equal(f->store->ops->reader_job_seq(f->reader, by_name.seq, true, &f->memory, &by_seq, &err), STATUS_OK);
    assert_text(by_seq.id, "b");
    assert_text(by_seq.tenant, "t");
    assert_text(by_seq.payload, "{}");
    assert_int_equal(f->store->ops->reader_job_seq(f->reader, by_name.seq + 1000, true, &f->memory, &by_seq, &err),
                     STATUS_NOT_FOUND);
}

/* 60 jobs: three destinations, two tenants, and of each ten one dead, one completed, the rest pending. */
static void mixture(struct store_fixture *f)
{
    for (int i = 0; i < 60; i++) {
        char destination[8], tenant[8], id[8];
        snprintf(destination, sizeof destination, "d%d", i % 3);
        snprintf(tenant, sizeof tenant, "t%d", i % 2);
        snprintf(id, sizeof id, "j%d", i);
        struct store_op op = insert_op(f, destination, tenant, id);
        op.insert.rank = -i; /* so that the next claim gets this one */
        assert_run(f, &op, STATUS_OK);
        if (i % 10 == 4)
            take_and_settle(f, op.insert.ret_lane, EVENT_GIVE_UP);
        else if (i % 10 == 7)
            take_and_settle(f, op.insert.ret_lane, EVENT_DELIVER);
    }
}

static void jobs_are_filtered(void **state)
{
    struct store_fixture *f = *state;
    mixture(f);
    static const struct {
        const char *name;
        struct job_filter filter;
        size_t count;
    } rows[] = {
        { "all", { 0 }, 60 },
        { "dead", { .state = STATE_DEAD }, 6 },
        { "completed", { .state = STATE_COMPLETED }, 6 },
        { "pending", { .state = STATE_PENDING }, 48 },
        { "running", { .state = STATE_RUNNING }, 0 },
        { "destination", { .destination = { "d1", 2 } }, 20 },
        { "tenant", { .tenant = { "t1", 2 } }, 30 },
        { "lane", { .destination = { "d2", 2 }, .tenant = { "t0", 2 } }, 10 },
        { "last code", { .code = { "http:503", 8 } }, 6 },
        { "dead code", { .code = { "MAX_RETRIES_EXCEEDED", 20 } }, 6 },
        { "code of the good", { .code = { "http:200", 8 } }, 6 },
        { "code and state", { .state = STATE_DEAD, .code = { "http:200", 8 } }, 0 },
        { "all at once", { .state = STATE_DEAD, .destination = { "d1", 2 }, .tenant = { "t0", 2 }, .code = { "http:503", 8 } }, 2 },
        { "unknown destination", { .destination = { "d9", 2 } }, 0 },
        { "a prefix is not enough", { .destination = { "d", 1 } }, 0 },
    };
    static const size_t pages[] = { 1, 7, STORE_PAGE_MAX };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (size_t j = 0; j < 3; j++) {
            size_t count;
            struct job *jobs = read_jobs(f, rows[i].filter, pages[j], &count);
            if (count != rows[i].count)
                fail_msg("%s by %zu: %zu", rows[i].name, pages[j], count);
            for (size_t k = 0; k < count; k++) {
                assert_true(k == 0 || jobs[k].seq < jobs[k - 1].seq);
                assert_true(rows[i].filter.state == STATE_NONE || jobs[k].state == rows[i].filter.state);
            }
        }
    }
}

static size_t ahead(struct store_fixture *f, int64_t lane, int64_t rank, int64_t seq, size_t max)
{
    struct error err = { 0 };
    size_t count = SIZE_MAX;
    assert_int_equal(f->store->ops->reader_ahead(f->reader, lane, rank, seq, max, &count, &err), STATUS_OK);
    return count;
}

static void who_is_ahead_is_counted(void **state)
{
    struct store_fixture *f = *state;
    struct store_op ops[6];
    int64_t lane = put(f, "first");
    int64_t rank = read_job(f, "t", "first").rank;
    for (int i = 0; i < 6; i++) {
        char id[8];
        snprintf(id, sizeof id, "j%d", i);
        ops[i] = insert_op(f, "d", "t", id);
        ops[i].insert.rank = rank + i / 2; /* two of each rank, by arrival */
        assert_run(f, &ops[i], STATUS_OK);
    }
    struct store_op later = insert_op(f, "d", "t", "later"), other = insert_op(f, "d", "u", "other");
    later.insert.run_at = f->now + 1000; /* not ready: before nobody */
    later.insert.rank = rank - 5;
    assert_run(f, &later, STATUS_OK);
    assert_run(f, &other, STATUS_OK);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(ahead(f, lane, ops[i].insert.rank, ops[i].insert.ret_seq, 1000), i + 1);
    assert_int_equal(ahead(f, lane, rank, read_job(f, "t", "first").seq, 1000), 0);
    assert_int_equal(ahead(f, lane, rank - 5, later.insert.ret_seq, 1000), 0);
    assert_int_equal(ahead(f, lane, INT64_MAX, INT64_MAX, 1000), 7);
    assert_int_equal(ahead(f, lane, INT64_MAX, INT64_MAX, 3), 3); /* and no further */
    assert_int_equal(ahead(f, other.insert.ret_lane, INT64_MAX, INT64_MAX, 1000), 1);
    assert_int_equal(ahead(f, 99, INT64_MAX, INT64_MAX, 1000), 0);
    take(f, lane);
    assert_int_equal(ahead(f, lane, INT64_MAX, INT64_MAX, 1000), 6); /* what is under way is not ahead */
}

static void a_page_starts_at_its_cursor(void **state)
{
    struct store_fixture *f = *state;
    mixture(f);
    size_t count, rest;
    struct job *jobs = read_jobs(f, (struct job_filter){ 0 }, 10, &count);
    struct job *older = read_jobs(f, (struct job_filter){ .before_seq = jobs[19].seq }, 10, &rest);
    assert_int_equal(rest, 40);
    assert_slice(older[0].id, jobs[20].id);
    read_jobs(f, (struct job_filter){ .before_seq = 1 }, 10, &rest);
    assert_int_equal(rest, 0);
}

static void a_page_is_never_longer_than_the_limit(void **state)
{
    struct store_fixture *f = *state;
    enum { COUNT = STORE_PAGE_MAX + 200 };
    static struct store_op ops[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        ops[i] = insert_op(f, "d", "t", "");
    fixture_apply(f, ops, COUNT);
    struct error err = { 0 };
    struct job *jobs;
    struct event *events;
    size_t count;
    int64_t next;
    struct job_filter all = { 0 };
    assert_int_equal(
        f->store->ops->reader_jobs(f->reader, &all, 100000, false, &f->memory, &jobs, &count, &next, &err), STATUS_OK);
    assert_true(count <= STORE_PAGE_MAX && next > 0);
    assert_int_equal(f->store->ops->reader_events(f->reader, 0, 100000, &f->memory, &events, &count, &err), STATUS_OK);
    assert_true(count > 0 && count <= STORE_PAGE_MAX);
    read_jobs(f, all, STORE_PAGE_MAX, &count);
    assert_int_equal(count, COUNT);
    read_events(f, 0, &count);
    assert_int_equal(count, COUNT);
}

static void events_come_in_order_without_gaps(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    take_and_settle(f, lane, EVENT_RETRY);
    put(f, "b");
    take_and_settle(f, lane, EVENT_DELIVER);
    size_t count;
    struct event *events = read_events(f, 0, &count);
    static const enum event_type types[] = { EVENT_TYPE_ACCEPTED, EVENT_TYPE_CLAIMED, EVENT_TYPE_RETRY_SCHEDULED,
                                             EVENT_TYPE_ACCEPTED, EVENT_TYPE_CLAIMED, EVENT_TYPE_COMPLETED };
    static const int64_t previous[] = { 0, 1, 2, 0, 3, 5 };
    assert_int_equal(count, 6);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(events[i].number, i + 1);
        assert_string_equal(event_type_name(events[i].type), event_type_name(types[i]));
        assert_int_equal(events[i].previous, previous[i]);
    }
    events = read_events(f, 4, &count);
    assert_int_equal(count, 2);
    assert_int_equal(events[0].number, 5);
    read_events(f, 6, &count);
    assert_int_equal(count, 0);
    read_events(f, INT64_MAX, &count);
    assert_int_equal(count, 0);
}

static void history_gives_the_newest(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    put(f, "other");
    struct store_op cancel = job_op(OP_CANCEL, "t", "other");
    assert_run(f, &cancel, STATUS_OK);
    for (int i = 0; i < 5; i++)
        take_and_settle(f, lane, EVENT_RETRY);
    size_t all;
    struct event *events = read_history(f, "t", "a", &all);
    assert_int_equal(all, 11);
    for (size_t i = 0; i < all; i++) {
        assert_text(events[i].job, "a");
        assert_int_equal(events[i].previous, i > 0 ? events[i - 1].number : 0);
    }
    struct error err = { 0 };
    struct event *newest;
    size_t count;
    assert_int_equal(
        f->store->ops->reader_history(f->reader, SLICE("t"), SLICE("a"), 3, &f->memory, &newest, &count, &err), STATUS_OK);
    assert_int_equal(count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(newest[i].number, events[all - 3 + i].number);
}

/* C-80 */
static void a_forgotten_job_leaves_its_history(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    struct job job = take(f, lane);
    struct store_op op = settle_op(&job, EVENT_DELIVER);
    op.settle.forget_at = f->now + 1;
    assert_run(f, &op, STATUS_OK);
    f->now += 1;
    assert_int_equal(promote(f).ret_forgotten, 1);
    size_t count;
    struct event *events = read_history(f, "t", "a", &count);
    assert_int_equal(count, 3);
    assert_int_equal(events[2].type, EVENT_TYPE_COMPLETED);
    assert_text(events[0].tenant, "t");
}

static void the_chain_tells_a_changed_byte(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    take_and_settle(f, lane, EVENT_GIVE_UP);
    struct store_op note = { .kind = OP_NOTE, .data = SLICE("{\"note\":\"paused\"}") };
    assert_run(f, &note, STATUS_OK);
    size_t count;
    struct event *events = read_events(f, 0, &count);
    assert_true(chain_holds(events, count));
    for (size_t i = 0; i < count; i++) {
        struct event saved = events[i];
        for (int change = 0; change < 10; change++) {
            switch (change) {
            case 0: events[i].number ^= 1; break;
            case 1: events[i].at ^= 1; break;
            case 2: events[i].type ^= 1; break;
            case 3: events[i].state ^= 1; break;
            case 4: events[i].attempt ^= 1; break;
            case 5: events[i].previous ^= 1; break;
            case 6: events[i].destination = SLICE("elsewhere"); break;
            case 7: events[i].tenant = SLICE("u"); break;
            case 8: events[i].data = SLICE("{\"note\":\"Paused\"}"); break;
            case 9: events[i].hash[31] ^= 1; break;
            }
            if (i == 0 && change == 0) /* looks like the first one kept after a trim */
                assert_true(events[0].number != 1);
            else
                assert_false(chain_holds(events, count));
            events[i] = saved;
        }
    }
    assert_true(chain_holds(events, count));
    struct event swapped = events[1];
    events[1] = events[2];
    events[2] = swapped;
    assert_false(chain_holds(events, count));
}

static void notes_are_of_no_job(void **state)
{
    struct store_fixture *f = *state;
    struct store_op op = { .kind = OP_NOTE, .data = SLICE("{\"note\":\"started\"}") };
    assert_run(f, &op, STATUS_OK);
    size_t count;
    struct event *events = read_events(f, 0, &count);
    assert_int_equal(count, 1);
    assert_int_equal(events[0].type, EVENT_TYPE_NOTE);
    assert_int_equal(events[0].state, STATE_NONE);
    assert_int_equal(events[0].attempt, 0);
    assert_int_equal(events[0].previous, 0);
    assert_int_equal(events[0].destination.len + events[0].tenant.len + events[0].job.len, 0);
    assert_text(events[0].data, "{\"note\":\"started\"}");
}

static struct slice destination_state(struct store_fixture *f, const char *name, enum status expected)
{
    struct error err = { 0 };
    struct slice text = SLICE("");
    enum status status = f->store->ops->reader_saved(f->reader, SPACE_DESTINATION, slice_from(name), &f->memory, &text, &err);
    assert_int_equal(status, expected);
    return text;
}

static void a_destinations_state_is_kept(void **state)
{
    struct store_fixture *f = *state;
    destination_state(f, "claims", STATUS_NOT_FOUND);
    static const char *const states[] = { "{\"mode\":\"contingency\"}", "{\"mode\":\"normal\"}" };
    for (size_t i = 0; i < 2; i++) {
        struct store_op op = { .kind = OP_DESTINATION,
                               .data = SLICE("{\"why\":1}"),
                               .save = { .name = SLICE("claims"), .value = slice_from(states[i]) } };
        assert_run(f, &op, STATUS_OK);
        assert_text(destination_state(f, "claims", STATUS_OK), states[i]);
    }
    destination_state(f, "claim", STATUS_NOT_FOUND);
    size_t count;
    struct event *events = read_events(f, 0, &count);
    assert_int_equal(count, 2);
    assert_int_equal(events[1].type, EVENT_TYPE_DESTINATION);
    assert_int_equal(events[1].state, STATE_NONE);
    assert_text(events[1].destination, "claims");
    assert_text(events[1].data, "{\"why\":1}");
    assert_int_equal(events[1].job.len, 0);
}

static void notes_are_kept_by_space_and_name(void **state)
{
    static const struct {
        const char *space, *name, *value;
    } notes[] = { { "a", "1", "one" }, { "a", "3", "three" }, { "b", "2", "other" }, { "a", "2", "two" }, { "a", "10", "ten" },
                  { "a", "3", "drei" }, { "a", "2", "" } };
    static const char *const expected[] = { "3", "drei", "10", "ten", "1", "one" };
    struct store_fixture *f = *state;
    const struct store_ops *ops = f->store->ops;
    struct error err = { 0 };
    struct slice value;
    struct saved *saved;
    size_t count;
    for (size_t i = 0; i < sizeof notes / sizeof notes[0]; i++) {
        struct store_op op = { .kind = OP_SAVE, .save = { slice_from(notes[i].space), slice_from(notes[i].name),
                                                          slice_from(notes[i].value) } };
        assert_run(f, &op, STATUS_OK);
    }
    assert_int_equal(ops->reader_saved_list(f->reader, SLICE("a"), SLICE(""), 9, &f->memory, &saved, &count, &err), STATUS_OK);
    assert_int_equal(count, 3);
    for (size_t i = 0; i < count; i++) {
        assert_text(saved[i].name, expected[2 * i]);
        assert_text(saved[i].value, expected[2 * i + 1]);
    }
    assert_int_equal(ops->reader_saved_list(f->reader, SLICE("a"), SLICE("3"), 1, &f->memory, &saved, &count, &err), STATUS_OK);
    assert_int_equal(count, 1);
    assert_text(saved[0].name, "10");
    assert_int_equal(ops->reader_saved(f->reader, SLICE("b"), SLICE("2"), &f->memory, &value, &err), STATUS_OK);
    assert_text(value, "other");
    assert_int_equal(ops->reader_saved(f->reader, SLICE("a"), SLICE("2"), &f->memory, &value, &err), STATUS_NOT_FOUND);
    read_events(f, 0, &count);
    assert_int_equal(count, 0);
}

/* As bytes, not as a language has it: who looks for all names that begin alike finds them together. And values are any text. */
static void notes_are_ordered_by_bytes(void **state)
{
    static const char *const expected[] = { "web0", "web/m01", "web/h09", "web.0", "web-1", "WEB/m01" };
    struct store_fixture *f = *state;
    struct error err = { 0 };
    struct saved *saved;
    char value[95];
    size_t count;
    for (char c = ' '; c <= '~'; c++)
        value[c - ' '] = c;
    for (size_t i = 0; i < 6; i++) {
        struct store_op op = { .kind = OP_SAVE, .save = { SLICE("a"), slice_from(expected[(i * 5 + 2) % 6]),
                                                          { value, sizeof value } } };
        assert_run(f, &op, STATUS_OK);
    }
    assert_int_equal(f->store->ops->reader_saved_list(f->reader, SLICE("a"), SLICE(""), 9, &f->memory, &saved, &count, &err),
                     STATUS_OK);
    assert_int_equal(count, 6);
    for (size_t i = 0; i < count; i++) {
        assert_text(saved[i].name, expected[i]);
        assert_true(slice_equal(saved[i].value, (struct slice){ value, sizeof value }));
    }
    assert_int_equal(f->store->ops->reader_saved_list(f->reader, SLICE("a"), SLICE("web0"), 1, &f->memory, &saved, &count, &err),
                     STATUS_OK);
    assert_text(saved[0].name, "web/m01");
}

static void lanes_are_listed_in_order(void **state)
{
    struct store_fixture *f = *state;
    mixture(f);
    struct error err = { 0 };
    struct lane *lanes;
    size_t count;
    assert_int_equal(f->store->ops->reader_lanes(f->reader, 0, 100, &f->memory, &lanes, &count, &err), STATUS_OK);
    assert_int_equal(count, 6);
    for (size_t i = 0; i < count; i++) {
        struct lane_counts counts = lanes[i].counts;
        assert_true(i == 0 || lanes[i].id > lanes[i - 1].id);
        assert_int_equal(counts.pending + counts.dead + counts.completed, 10);
        assert_int_equal(counts.ready, counts.pending);
    }
    int64_t third = lanes[2].id;
    assert_int_equal(f->store->ops->reader_lanes(f->reader, third, 2, &f->memory, &lanes, &count, &err), STATUS_OK);
    assert_int_equal(count, 2);
    assert_true(lanes[0].id > third);
}

/* Totals follow every change, the tenants with the most jobs come first, and a batch that failed is not counted. */
static void totals_are_told(void **state)
{
    enum { TENANTS = 40, LARGEST = 5 };
    struct store_fixture *f = *state;
    struct error err = { 0 };
    struct destination_total *totals;
    size_t count;
    for (int i = 0; i < TENANTS * TENANTS; i++) {
        char tenant[8], id[8];
        if (i % TENANTS > i / TENANTS)
            continue; /* tenant k gets TENANTS - k jobs */
        snprintf(tenant, sizeof tenant, "t%d", i % TENANTS);
        snprintf(id, sizeof id, "j%d", i);
        struct store_op op = insert_op(f, "many", tenant, id);
        assert_run(f, &op, STATUS_OK);
    }
    struct store_op other = insert_op(f, "few", "t0", "a");
    assert_run(f, &other, STATUS_OK);
    take_and_settle(f, other.insert.ret_lane, EVENT_DELIVER);
    assert_int_equal(f->store->ops->reader_totals(f->reader, LARGEST, &f->memory, &totals, &count, &err), STATUS_OK);
    assert_int_equal(count, 2);
    assert_text(totals[0].destination, "few");
    assert_int_equal(totals[0].counts.completed, 1);
    assert_int_equal(totals[0].largest_count, 0);
    assert_int_equal(totals[1].counts.pending, TENANTS * (TENANTS + 1) / 2);
    assert_int_equal(totals[1].tenants, TENANTS);
    assert_int_equal(totals[1].largest_count, LARGEST);
    for (int i = 0; i < LARGEST; i++)
        assert_int_equal(totals[1].largest[i].counts.pending, TENANTS - i);
    for (int i = 0; i < 10; i++) /* the largest gets to the fifth place */
        take_and_settle(f, totals[1].largest[0].id, i % 2 ? EVENT_GIVE_UP : EVENT_DELIVER);
    assert_int_equal(f->store->ops->reader_totals(f->reader, LARGEST, &f->memory, &totals, &count, &err), STATUS_OK);
    assert_text(totals[1].largest[0].tenant, "t1");
    assert_text(totals[1].largest[4].tenant, "t0");
    assert_int_equal(totals[1].counts.dead, 5);
    assert_int_equal(totals[1].counts.completed, 5);
}

static void results_outlive_later_changes(void **state)
{
    struct store_fixture *f = *state;
    int64_t lane = put(f, "a");
    struct job claimed = take(f, lane);
    struct job read = read_job(f, "t", "a");
    size_t count;
    struct event *events = read_history(f, "t", "a", &count);
    struct store_op op = settle_op(&claimed, EVENT_GIVE_UP);
    assert_run(f, &op, STATUS_OK);
    struct store_op purge = job_op(OP_PURGE, "t", "a");
    assert_run(f, &purge, STATUS_OK);
    struct store_op trim = { .kind = OP_TRIM, .trim = { .before = f->now + 1, .max = 100 } };
    assert_run(f, &trim, STATUS_OK);
    assert_text(claimed.payload, "{}");
    assert_text(claimed.destination, "d");
    assert_text(read.id, "a");
    assert_text(events[0].job, "a");
    assert_text(events[0].data, "{}");
}

/* However many tenants have the same id, and whatever they have besides, each of theirs is found once. */
static void jobs_of_one_id_are_found_whosever_they_are(void **state)
{
    struct store_fixture *f = *state;
    enum { TENANTS = 700 }; /* more than one page looks at */
    for (int i = 0; i < TENANTS; i++) {
        char tenant[16];
        snprintf(tenant, sizeof tenant, "tenant-%d", i);
        struct store_op ops[] = { insert_op(f, i % 2 ? "d" : "e", tenant, "same"), insert_op(f, i % 2 ? "d" : "e", tenant, "another") };
        fixture_apply(f, ops, 2);
    }
    static const size_t pages[] = { 1, 7, STORE_PAGE_MAX };
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        size_t count;
        struct job *jobs = read_jobs(f, (struct job_filter){ .id = SLICE("same") }, pages[i], &count);
        bool seen[2 * TENANTS + 1] = { false };
        assert_int_equal(count, TENANTS);
        for (size_t k = 0; k < count; k++) {
            assert_text(jobs[k].id, "same");
            assert_false(seen[jobs[k].seq]);
            seen[jobs[k].seq] = true;
        }
        read_jobs(f, (struct job_filter){ .id = SLICE("same"), .destination = SLICE("e") }, pages[i], &count);
        assert_int_equal(count, TENANTS / 2);
        read_jobs(f, (struct job_filter){ .id = SLICE("same"), .tenant = SLICE("tenant-699") }, pages[i], &count);
        assert_int_equal(count, 1);
        read_jobs(f, (struct job_filter){ .id = SLICE("same"), .state = STATE_DEAD }, pages[i], &count);
        assert_int_equal(count, 0);
        read_jobs(f, (struct job_filter){ .id = SLICE("nobody's") }, pages[i], &count);
        assert_int_equal(count, 0);
    }
}

/* Of the form that the store gives to ids too: its own, and one that somebody chose. */
static void made_ids_are_found_by_themselves(void **state)
{
    struct store_fixture *f = *state;
    struct store_op made = insert_op(f, "d", "t", "");
    assert_run(f, &made, STATUS_OK);
    char id[JOB_ID_MADE_BYTES + 1] = "";
    memcpy(id, made.insert.ret_id.data, JOB_ID_MADE_BYTES);
    struct store_op chosen[] = { insert_op(f, "d", "u", id), insert_op(f, "d", "v", id) };
    fixture_apply(f, chosen, 2);
    for (size_t page = 1; page <= 4; page++) {
        size_t count;
        read_jobs(f, (struct job_filter){ .id = slice_from(id) }, page, &count);
        assert_int_equal(count, 3);
        read_jobs(f, (struct job_filter){ .id = slice_from(id), .tenant = SLICE("t") }, page, &count);
        assert_int_equal(count, 1);
        read_jobs(f, (struct job_filter){ .id = slice_from(id), .tenant = SLICE("u") }, page, &count);
        assert_int_equal(count, 1);
    }
}

static struct destination_total total_of_d(struct store_fixture *f)
{
    struct error err = { 0 };
    struct destination_total *totals;
    size_t count;
    assert_int_equal(f->store->ops->reader_totals(f->reader, 10, &f->memory, &totals, &count, &err), STATUS_OK);
    assert_int_equal(count, 1);
    assert_text(totals[0].destination, "d");
    return totals[0];
}

/* Tenants that come once leave nothing but their events, and what they did in their destination's counts. */
static void a_lane_goes_with_its_last_job(void **state)
{
    struct store_fixture *f = *state;
    enum { TENANTS = 1200, KEPT = 3 }; /* more than one page, each gone but these */
    struct error err = { 0 };
    for (int i = 0; i < TENANTS; i++) {
        char tenant[16];
        snprintf(tenant, sizeof tenant, "once-%d", i);
        struct store_op op = insert_op(f, "d", tenant, "job");
        assert_run(f, &op, STATUS_OK);
        if (i % (TENANTS / KEPT) == 7)
            continue;
        struct job job = take(f, op.insert.ret_lane);
        struct store_op settle = settle_op(&job, EVENT_DELIVER);
        settle.settle.forget_at = f->now + 10;
        assert_run(f, &settle, STATUS_OK);
    }
    f->now += 10;
    while (promote(f).ret_forgotten > 0)
        ;
    struct lane *lanes, lane;
    size_t count;
    assert_int_equal(f->store->ops->reader_lanes(f->reader, 0, STORE_PAGE_MAX, &f->memory, &lanes, &count, &err), STATUS_OK);
    assert_int_equal(count, KEPT);
    assert_text(lanes[0].tenant, "once-7");
    assert_int_equal(f->store->ops->reader_lane(f->reader, SLICE("d"), SLICE("once-8"), &f->memory, &lane, &err), STATUS_NOT_FOUND);
    assert_int_equal(total_of_d(f).counts.completed, TENANTS - KEPT);
    assert_int_equal(total_of_d(f).tenants, KEPT);

    /* Its trail can still be read, and it can come back. */
    struct event *events = read_history(f, "once-8", "job", &count);
    assert_int_equal(count, 3);
    assert_text(events[2].destination, "d");
    assert_text(events[2].tenant, "once-8");
    struct store_op again = insert_op(f, "d", "once-8", "job");
    assert_run(f, &again, STATUS_OK);
    assert_false(again.insert.ret_existed);
    assert_int_equal(total_of_d(f).tenants, KEPT + 1);
    assert_int_equal(total_of_d(f).counts.completed, TENANTS - KEPT);
    struct job job = take(f, again.insert.ret_lane);
    assert_text(job.tenant, "once-8");
    struct store_op settle = settle_op(&job, EVENT_GIVE_UP);
    assert_run(f, &settle, STATUS_OK);
    struct store_op purge = job_op(OP_PURGE, "once-8", "job");
    assert_run(f, &purge, STATUS_OK);
    assert_int_equal(f->store->ops->reader_lane(f->reader, SLICE("d"), SLICE("once-8"), &f->memory, &lane, &err), STATUS_NOT_FOUND);
    read_history(f, "once-8", "job", &count);
    assert_int_equal(count, 7);
    struct store_op claim = claim_op(f, again.insert.ret_lane, 1);
    assert_run(f, &claim, STATUS_OK);
    assert_int_equal(claim.claim.ret_count, 0);

    struct store_op trim = { .kind = OP_TRIM, .trim = { .before = f->now + 1, .max = 100000 } };
    assert_run(f, &trim, STATUS_OK);
    again = insert_op(f, "d", "once-8", "job");
    assert_run(f, &again, STATUS_OK);
    assert_int_equal(total_of_d(f).tenants, KEPT + 1);
    assert_int_equal(total_of_d(f).counts.completed, TENANTS - KEPT);
}

/* One that comes and goes in a batch that fails was never there. */
static void a_lane_that_left_is_back_when_its_batch_fails(void **state)
{
    struct store_fixture *f = *state;
    struct error err = { 0 };
    int64_t lane = put(f, "a");
    take_and_settle(f, lane, EVENT_GIVE_UP);
    struct store_op *ops = calloc(STORE_BATCH_OPS_MAX, sizeof *ops);
    ops[0] = job_op(OP_PURGE, "t", "a");
    ops[1] = insert_op(f, "d", "new", "b");
    for (size_t i = 2; i < STORE_BATCH_OPS_MAX; i++)
        ops[i] = insert_op(f, "d", "new", "");
    struct arena little;
    arena_init(&little, 4096);
    assert_int_equal(f->store->ops->apply(f->store, f->now, ops, STORE_BATCH_OPS_MAX, &little, &err), STATUS_NO_MEMORY);
    arena_release(&little);
    free(ops);
    assert_int_equal(read_lane(f, lane).counts.dead, 1);
    struct lane found;
    assert_int_equal(f->store->ops->reader_lane(f->reader, SLICE("d"), SLICE("new"), &f->memory, &found, &err), STATUS_NOT_FOUND);
    struct store_op redrive = job_op(OP_REDRIVE, "t", "a");
    assert_run(f, &redrive, STATUS_OK);
    take_and_settle(f, lane, EVENT_DELIVER);
}

const struct store_case store_cases_read[] = {
    { "a lane goes with its last job", a_lane_goes_with_its_last_job },
    { "a lane that left is back when its batch fails", a_lane_that_left_is_back_when_its_batch_fails },
    { "jobs of one id are found whosever they are", jobs_of_one_id_are_found_whosever_they_are },
    { "made ids are found by themselves", made_ids_are_found_by_themselves },
    { "an unknown job is not found", an_unknown_job_is_not_found },
    { "a number finds its job", a_number_finds_its_job },
    { "payload comes when asked for", payload_comes_when_asked_for },
    { "jobs are filtered", jobs_are_filtered },
    { "who is ahead is counted", who_is_ahead_is_counted },
    { "a page starts at its cursor", a_page_starts_at_its_cursor },
    { "a page is never longer than the limit", a_page_is_never_longer_than_the_limit },
    { "events come in order without gaps", events_come_in_order_without_gaps },
    { "history gives the newest", history_gives_the_newest },
    { "a forgotten job leaves its history", a_forgotten_job_leaves_its_history },
    { "the chain tells a changed byte", the_chain_tells_a_changed_byte },
    { "notes are of no job", notes_are_of_no_job },
    { "a destination's state is kept", a_destinations_state_is_kept },
    { "notes are kept by space and name", notes_are_kept_by_space_and_name },
    { "notes are ordered by bytes", notes_are_ordered_by_bytes },
    { "lanes are listed in order", lanes_are_listed_in_order },
    { "totals are told", totals_are_told },
    { "results outlive later changes", results_outlive_later_changes },
    { 0 },
};
