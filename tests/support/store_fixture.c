#include "support/store_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MEMORY_BYTES_MAX = 1 << 30, ROWS_MAX = 200000, LEASE_MS = 30 * SECOND_MS };

static void store_shut(struct store_fixture *f)
{
    if (f->reader)
        f->store->ops->reader_close(f->reader);
    if (f->store)
        f->store->ops->close(f->store);
    f->reader = NULL;
    f->store = NULL;
    if (f->place.folder[0] && folder_remove(f->place.folder) != 0)
        fail_msg("%s stays", f->place.folder);
    f->place.folder[0] = '\0';
}

static void store_start(struct store_fixture *f, const struct store_settings *settings)
{
    struct error err = { 0 };
    if (f->backend->open(&f->place, settings, &f->store, &err) != STATUS_OK)
        fail_msg("%s: %s", f->backend->name, err.text);
    if (f->store->ops->reader(f->store, &f->reader, &err) != STATUS_OK)
        fail_msg("%s: %s", f->backend->name, err.text);
}

int fixture_setup(void **state)
{
    struct store_fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->backend = *state;
    f->now = (instant)FIXTURE_START * SECOND_MS;
    arena_init(&f->memory, MEMORY_BYTES_MAX);
    *state = f;
    store_start(f, &(struct store_settings){ .pending_max = 1000000 });
    return 0;
}

int fixture_teardown(void **state)
{
    struct store_fixture *f = *state;
    fixture_audit(f);
    store_shut(f);
    arena_release(&f->memory);
    free(f);
    return 0;
}

void fixture_reopen(struct store_fixture *f, const struct store_settings *settings)
{
    store_shut(f);
    store_start(f, settings);
}

void fixture_forget(struct store_fixture *f)
{
    arena_release(&f->memory);
    arena_init(&f->memory, MEMORY_BYTES_MAX);
}

void fixture_apply(struct store_fixture *f, struct store_op *ops, size_t count)
{
    struct error err = { 0 };
    if (f->store->ops->apply(f->store, f->now, ops, count, &f->memory, &err) != STATUS_OK)
        fail_msg("%s: %s", f->backend->name, err.text);
}

enum status fixture_run(struct store_fixture *f, struct store_op *op)
{
    fixture_apply(f, op, 1);
    return op->status;
}

struct store_op insert_op(const struct store_fixture *f, const char *destination, const char *tenant, const char *id)
{
    return (struct store_op){
        .kind = OP_INSERT,
        .data = SLICE("{}"),
        .insert = { .destination = slice_from(destination),
                    .tenant = slice_from(tenant),
                    .id = slice_from(id),
                    .priority = PRIORITY_NORMAL,
                    .rank = f->now,
                    .run_at = f->now,
                    .deadline = INSTANT_NONE,
                    .content_type = SLICE("application/json"),
                    .headers = SLICE(""),
                    .correlation_id = SLICE(""),
                    .metadata = SLICE(""),
                    .payload = SLICE("{}") },
    };
}

struct store_op claim_op(const struct store_fixture *f, int64_t lane, size_t max)
{
    return (struct store_op){
        .kind = OP_CLAIM,
        .data = SLICE(""),
        .claim = { .lane = lane, .max = max, .lease_until = f->now + LEASE_MS },
    };
}

struct store_op settle_op(const struct job *job, enum job_event event)
{
    return (struct store_op){
        .kind = OP_SETTLE,
        .data = SLICE(""),
        .settle = { .seq = job->seq,
                    .token = job->lease_token,
                    .event = event,
                    .step = STEP_SEND,
                    .run_at = job->run_at,
                    .rank = job->rank,
                    .outcome = event == EVENT_DELIVER ? OUTCOME_DELIVERED : OUTCOME_TRANSIENT,
                    .code = event == EVENT_DELIVER ? SLICE("http:200") : SLICE("http:503"),
                    .error = event == EVENT_DELIVER ? SLICE("") : SLICE("timeout"),
                    .dead_code = event == EVENT_EXPIRE ? SLICE("EXPIRED") : SLICE("MAX_RETRIES_EXCEEDED"),
                    .forget_at = INSTANT_NONE,
                    .reference = SLICE("") },
    };
}

struct store_op job_op(enum op_kind kind, const char *tenant, const char *id)
{
    return (struct store_op){
        .kind = kind,
        .data = SLICE(""),
        .job = { .tenant = slice_from(tenant), .id = slice_from(id), .payload = SLICE(""), .forget_at = INSTANT_NONE },
    };
}

struct store_op promote_op(void)
{
    return (struct store_op){ .kind = OP_PROMOTE, .data = SLICE(""), .promote = { .max = 1000, .dead_ttl_ms = DAY_MS } };
}

int64_t put(struct store_fixture *f, const char *id)
{
    struct store_op op = insert_op(f, "d", "t", id);
    assert_run(f, &op, STATUS_OK);
    return op.insert.ret_lane;
}

struct job take(struct store_fixture *f, int64_t lane)
{
    struct store_op op = claim_op(f, lane, 1);
    assert_run(f, &op, STATUS_OK);
    assert_int_equal(op.claim.ret_count, 1);
    return op.claim.ret_jobs[0];
}

int64_t ready_in(struct store_fixture *f, int64_t lane)
{
    return read_lane(f, lane).counts.ready;
}

struct job take_and_settle(struct store_fixture *f, int64_t lane, enum job_event event)
{
    struct job job = take(f, lane);
    struct store_op op = settle_op(&job, event);
    assert_run(f, &op, STATUS_OK);
    return job;
}

struct op_promote promote(struct store_fixture *f)
{
    struct store_op op = promote_op();
    assert_run(f, &op, STATUS_OK);
    return op.promote;
}

struct job read_job(struct store_fixture *f, const char *tenant, const char *id)
{
    struct error err = { 0 };
    struct job job = { 0 };
    if (f->store->ops->reader_job(f->reader, slice_from(tenant), slice_from(id), true, &f->memory, &job, &err) != STATUS_OK)
        fail_msg("%s: job %s: %s", f->backend->name, id, err.text);
    return job;
}

bool job_exists(struct store_fixture *f, const char *tenant, const char *id)
{
    struct error err = { 0 };
    struct job job;
    enum status status =
        f->store->ops->reader_job(f->reader, slice_from(tenant), slice_from(id), false, &f->memory, &job, &err);
    assert_true(status == STATUS_OK || status == STATUS_NOT_FOUND);
    return status == STATUS_OK;
}

struct lane read_lane(struct store_fixture *f, int64_t lane)
{
    struct error err = { 0 };
    struct lane *lanes;
    size_t count;
    assert_int_equal(f->store->ops->reader_lanes(f->reader, lane - 1, 1, &f->memory, &lanes, &count, &err), STATUS_OK);
    assert_int_equal(count, 1);
    assert_int_equal(lanes[0].id, lane);
    return lanes[0];
}

/* The list with room for `more` rows behind its `count`. */
static void *rows_grow(struct store_fixture *f, void *rows, size_t count, size_t more, size_t size, size_t *capacity)
{
    assert_true(count + more <= ROWS_MAX);
    if (count + more <= *capacity)
        return rows;
    *capacity = (count + more) * 2;
    void *bigger = arena_alloc_array(&f->memory, *capacity, size);
    assert_non_null(bigger);
    if (count > 0)
        memcpy(bigger, rows, count * size);
    return bigger;
}

struct job *read_jobs(struct store_fixture *f, struct job_filter filter, size_t page, size_t *ret_count)
{
    struct job *all = NULL;
    size_t total = 0;
    size_t capacity = 0;
    do {
        struct error err = { 0 };
        struct job *jobs;
        size_t count;
        int64_t next;
        if (f->store->ops->reader_jobs(f->reader, &filter, page, true, &f->memory, &jobs, &count, &next, &err) != STATUS_OK)
            fail_msg("%s: %s", f->backend->name, err.text);
        assert_true(count <= page);
        all = rows_grow(f, all, total, count, sizeof *all, &capacity);
        if (count > 0)
            memcpy(all + total, jobs, count * sizeof *jobs);
        total += count;
        assert_true(next == 0 || filter.before_seq == 0 || filter.id.len > 0 || next < filter.before_seq);
        filter.before_seq = next;
    } while (filter.before_seq > 0);
    *ret_count = total;
    return all;
}

struct event *read_events(struct store_fixture *f, int64_t after, size_t *ret_count)
{
    struct event *all = NULL;
    size_t total = 0;
    size_t capacity = 0;
    for (size_t count = 1; count > 0; total += count) {
        struct error err = { 0 };
        struct event *events;
        if (f->store->ops->reader_events(f->reader, after, STORE_PAGE_MAX, &f->memory, &events, &count, &err) != STATUS_OK)
            fail_msg("%s: %s", f->backend->name, err.text);
        assert_true(count <= STORE_PAGE_MAX);
        all = rows_grow(f, all, total, count, sizeof *all, &capacity);
        if (count > 0) {
            memcpy(all + total, events, count * sizeof *events);
            after = events[count - 1].number;
        }
    }
    *ret_count = total;
    return all;
}

struct event *read_history(struct store_fixture *f, const char *tenant, const char *id, size_t *ret_count)
{
    struct error err = { 0 };
    struct event *events;
    if (f->store->ops->reader_history(f->reader, slice_from(tenant), slice_from(id), STORE_PAGE_MAX, &f->memory, &events,
                                      ret_count, &err) != STATUS_OK)
        fail_msg("%s: history of %s: %s", f->backend->name, id, err.text);
    return events;
}

struct event last_event(struct store_fixture *f, const char *tenant, const char *id, enum event_type type)
{
    size_t count;
    struct event *events = read_history(f, tenant, id, &count);
    assert_true(count > 0);
    assert_string_equal(event_type_name(events[count - 1].type), event_type_name(type));
    return events[count - 1];
}

void assert_slice(struct slice actual, struct slice expected)
{
    assert_int_equal(actual.len, expected.len);
    if (expected.len > 0)
        assert_memory_equal(actual.data, expected.data, expected.len);
}

void assert_text(struct slice actual, const char *expected)
{
    assert_slice(actual, slice_from(expected));
}

void assert_state(struct store_fixture *f, const char *id, enum job_state state)
{
    assert_string_equal(job_state_name(read_job(f, "t", id).state), job_state_name(state));
}

static int64_t chain_of(const struct event *event)
{
    return event->number >> EVENT_CHAIN_SHIFT;
}

/* Whether none before it is of the same chain. */
static bool begins_chain(const struct event *events, size_t place)
{
    return place == 0 || chain_of(&events[place]) != chain_of(&events[place - 1]);
}

bool chain_holds(const struct event *events, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        static const unsigned char nothing[EVENT_HASH_BYTES];
        struct event again = events[i];
        bool first = begins_chain(events, i);
        if (first && events[i].number != (chain_of(&events[i]) << EVENT_CHAIN_SHIFT) + 1)
            continue; /* the one before was trimmed */
        event_chain(first ? nothing : events[i - 1].hash, &again);
        if (memcmp(again.hash, events[i].hash, sizeof again.hash) != 0)
            return false;
    }
    return true;
}

static void audit_events(const struct event *events, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (begins_chain(events, i))
            continue;
        assert_int_equal(events[i].number, events[i - 1].number + 1);
        assert_true(events[i].at >= events[i - 1].at);
    }
    assert_true(chain_holds(events, count));
}

static void audit_job(const struct job *job, const struct event *events, size_t count)
{
    assert_true(job->seq > 0 && job->id.len > 0);
    assert_int_equal(job->state == STATE_RUNNING, job->lease_token > 0);
    assert_int_equal(job->state == STATE_DEAD, job->dead_at != INSTANT_NONE);
    if (job->state == STATE_DEAD)
        assert_true(job->last_error.len > 0 && job->dead_code.len > 0);
    size_t place = 0;
    while (place < count && events[place].number != job->last_event)
        place++;
    size_t first = 0;
    while (first < count && chain_of(&events[first]) != job->last_event >> EVENT_CHAIN_SHIFT)
        first++;
    if (first == count || job->last_event < events[first].number)
        return; /* trimmed */
    assert_true(place < count);
    const struct event *last = &events[place];
    assert_slice(last->job, job->id);
    assert_slice(last->tenant, job->tenant);
    assert_slice(last->destination, job->destination);
    assert_int_equal(last->state, job->state);
    assert_int_equal(last->attempt, job->attempts);
}

static void count_job(struct lane_counts *counts, enum job_state state)
{
    int64_t *const cells[STATE_COUNT] = {
        [STATE_PENDING] = &counts->pending,     [STATE_RUNNING] = &counts->running, [STATE_WAITING] = &counts->waiting,
        [STATE_COMPLETED] = &counts->completed, [STATE_DEAD] = &counts->dead,       [STATE_CANCELLED] = &counts->cancelled,
    };
    ++*cells[state];
}

static void audit_lane(struct store_fixture *f, const struct lane *lane, const struct job *jobs, size_t count)
{
    struct lane_counts again = { 0 };
    for (size_t i = 0; i < count; i++) {
        if (jobs[i].lane != lane->id)
            continue;
        assert_slice(jobs[i].destination, lane->destination);
        assert_slice(jobs[i].tenant, lane->tenant);
        count_job(&again, jobs[i].state);
    }
    assert_int_equal(lane->counts.pending, again.pending);
    assert_int_equal(lane->counts.running, again.running);
    assert_int_equal(lane->counts.waiting, again.waiting);
    assert_int_equal(lane->counts.dead, again.dead);
    assert_true(lane->counts.completed >= again.completed); /* ever: some may be forgotten */
    assert_true(lane->counts.cancelled >= again.cancelled);
    assert_in_range(lane->counts.ready, 0, again.pending + again.waiting);

    if (f->shared)
        return;
    struct store_op op = claim_op(f, lane->id, 0);
    assert_run(f, &op, STATUS_OK);
    assert_int_equal(op.claim.ret_count, 0);
}

static int64_t jobs_not_done(const struct lane_counts *counts)
{
    return counts->pending + counts->running + counts->waiting + counts->dead;
}

/* What the writer keeps is what the lanes say, and its largest are theirs. */
static void audit_totals(struct store_fixture *f)
{
    enum { LARGEST = 3 };
    struct destination_total *totals;
    struct lane *lanes, found;
    struct error err = { 0 };
    size_t total_count, lane_count;
    assert_int_equal(f->store->ops->reader_totals(f->reader, LARGEST, &f->memory, &totals, &total_count, &err), STATUS_OK);
    assert_int_equal(f->store->ops->reader_lanes(f->reader, 0, STORE_PAGE_MAX, &f->memory, &lanes, &lane_count, &err), STATUS_OK);
    assert_true(lane_count < STORE_PAGE_MAX);
    size_t lanes_left = lane_count;
    for (size_t i = 0; i < total_count; i++) {
        const struct destination_total *total = &totals[i];
        struct lane_counts sum = { 0 };
        int64_t tenants = 0, last = INT64_MAX;
        size_t with_jobs = 0;
        assert_true(i == 0 || slice_compare(totals[i - 1].destination, total->destination) < 0);
        for (size_t k = 0; k < total->largest_count; k++) {
            int64_t jobs = jobs_not_done(&total->largest[k].counts);
            assert_true(jobs > 0 && jobs <= last);
            last = jobs;
        }
        for (size_t k = 0; k < lane_count; k++) {
            if (!slice_equal(lanes[k].destination, total->destination))
                continue;
            lane_counts_add(&sum, &lanes[k].counts);
            tenants++;
            with_jobs += jobs_not_done(&lanes[k].counts) > 0;
            bool reported = false;
            for (size_t m = 0; m < total->largest_count; m++)
                reported = reported || total->largest[m].id == lanes[k].id;
            assert_true(reported || jobs_not_done(&lanes[k].counts) <= last);
            assert_int_equal(f->store->ops->reader_lane(f->reader, lanes[k].destination, lanes[k].tenant, &f->memory, &found, &err), STATUS_OK);
            assert_int_equal(found.id, lanes[k].id);
            assert_memory_equal(&found.counts, &lanes[k].counts, sizeof found.counts);
        }
        assert_int_equal(tenants, total->tenants);
        lanes_left -= (size_t)tenants;
        assert_int_equal(total->largest_count, with_jobs < LARGEST ? with_jobs : LARGEST);
        assert_int_equal(sum.pending, total->counts.pending);
        assert_int_equal(sum.running, total->counts.running);
        assert_int_equal(sum.waiting, total->counts.waiting);
        assert_int_equal(sum.dead, total->counts.dead);
        assert_int_equal(sum.ready, total->counts.ready);
        assert_true(sum.completed <= total->counts.completed && sum.cancelled <= total->counts.cancelled);
    }
    assert_int_equal(lanes_left, 0);
    assert_int_equal(f->store->ops->reader_lane(f->reader, SLICE("no such"), SLICE("t"), &f->memory, &found, &err), STATUS_NOT_FOUND);
}

void fixture_audit(struct store_fixture *f)
{
    size_t event_count, job_count, lane_count;
    struct error err = { 0 };
    struct lane *lanes;
    struct event *events = read_events(f, 0, &event_count);
    struct job *jobs = read_jobs(f, (struct job_filter){ 0 }, STORE_PAGE_MAX, &job_count);
    audit_events(events, event_count);
    for (size_t i = 0; i < job_count; i++) {
        assert_true(i == 0 || jobs[i].seq < jobs[i - 1].seq);
        audit_job(&jobs[i], events, event_count);
    }
    int64_t after = 0;
    do {
        assert_int_equal(
            f->store->ops->reader_lanes(f->reader, after, STORE_PAGE_MAX, &f->memory, &lanes, &lane_count, &err), STATUS_OK);
        for (size_t i = 0; i < lane_count; i++) {
            assert_true(lanes[i].id > after);
            after = lanes[i].id;
            audit_lane(f, &lanes[i], jobs, job_count);
        }
    } while (lane_count > 0);
    audit_totals(f);
    if (f->store->ops->check && f->store->ops->check(f->store, &err) != STATUS_OK)
        fail_msg("%s: %s", f->backend->name, err.text);
}
