/*
 * The thread that makes events to jobs, with the real writer: each event that is wanted is one job, whatever the store refuses
 * and whoever stops when; nothing of before it was asked for.
 */
#include "guests/forward.h"

#include "base/clock.h"
#include "base/log.h"
#include "store/memory/memory.h"
#include "support/check.h"
#include "support/configs.h"
#include "support/store_faulty.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { WAITS_MAX = 30000, WAIT_MS = 2, LISTED_MAX = 2000, PLACE_BYTES_MAX = 128 };

#define DESTINATIONS "destinations:\n  bus: { url: 'https://b.example/' }\n  claims: { url: 'https://c.example/' }\n"
#define EVENTS "events: [{ name: ends, to: bus, on: [completed, dead, expired] }]\n"

struct rig {
    struct config *config;
    struct store *store;
    struct store_reader *reader;
    struct writer *writer;
    struct mailbox *mailbox;
    struct forward *forward;
    bool answered;
};

static instant now_of(void *context)
{
    (void)context;
    return clock_now();
}

static void on_notice(void *context, struct notice *notice)
{
    (void)context;
    notice_free(notice);
}

static void on_failure(void *context, const struct error *error)
{
    (void)context;
    fail_msg("%s", error->text);
}

static void rest(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = WAIT_MS * 1000000L }, NULL);
}

static void go_on(struct rig *rig)
{
    struct error error;
    const struct forward_settings settings = { .config = rig->config, .store = rig->store, .writer = rig->writer, .now = now_of };
    assert_int_equal(forward_start(&settings, &rig->forward, &error), STATUS_OK);
}

static void rig_begin(struct rig *rig, const char *yaml, int64_t pending_max)
{
    struct error error;
    struct store *inner;
    struct store_settings settings = { .sync_always = true, .pending_max = pending_max };
    *rig = (struct rig){ .config = config_from(slice_from(yaml), "test.yaml") };
    assert_int_equal(store_memory_open(SLICE(""), &settings, &inner, &error), STATUS_OK);
    assert_int_equal(store_faulty_wrap(inner, &rig->store, &error), STATUS_OK);
    assert_int_equal(rig->store->ops->begin(rig->store, clock_now(), &error), STATUS_OK);
    assert_int_equal(inner->ops->reader(inner, &rig->reader, &error), STATUS_OK);
    assert_int_equal(mailbox_new(&rig->mailbox, &error), STATUS_OK);
    assert_int_equal(writer_new(&(struct writer_settings){ .store = rig->store, .sync_always = true, .now = now_of,
                                                           .on_notice = on_notice, .on_failure = on_failure },
                                &rig->writer, &error), STATUS_OK);
}

static void rig_end(struct rig *rig)
{
    forward_stop(rig->forward);
    writer_free(rig->writer);
    mailbox_free(rig->mailbox);
    rig->reader->ops->reader_close(rig->reader);
    rig->store->ops->close(rig->store);
    config_unref(rig->config);
}

static void on_answered(struct batch *batch)
{
    struct rig *rig = batch->context;
    rig->answered = true;
}

/* By the writer, as everybody does; the batch is the caller's. */
static struct batch *run(struct rig *rig, struct store_op op)
{
    struct batch *batch = batch_new(1, SIZE_MAX / 4);
    assert_non_null(batch);
    batch->ops[batch->count++] = op;
    batch->reply_to = rig->mailbox;
    batch->done = on_answered;
    batch->context = rig;
    rig->answered = false;
    writer_submit(rig->writer, batch);
    while (!rig->answered) {
        mailbox_wait(rig->mailbox, -1);
        mailbox_drain(rig->mailbox);
    }
    assert_int_equal(batch->status, STATUS_OK);
    return batch;
}

/* A job of tenant t that has ended so. */
static void job_ends(struct rig *rig, const char *id, const char *callback, enum job_event how)
{
    instant now = clock_now();
    struct batch *batch = run(rig, (struct store_op){ .kind = OP_INSERT, .insert = {
        .destination = SLICE("claims"), .tenant = SLICE("t"), .id = slice_from(id), .priority = PRIORITY_NORMAL, .run_at = now,
        .deadline = INSTANT_NONE, .payload = SLICE("x"), .headers = SLICE(""), .metadata = SLICE(""), .correlation_id = SLICE(""),
        .callback = slice_from(callback), .key = SLICE(""), .content_type = SLICE("") } });
    assert_int_equal(batch->ops[0].status, STATUS_OK);
    int64_t lane = batch->ops[0].insert.ret_lane;
    batch_free(batch);
    batch = run(rig, (struct store_op){ .kind = OP_CLAIM, .claim = { .lane = lane, .max = 1, .lease_until = now + HOUR_MS } });
    assert_int_equal(batch->ops[0].claim.ret_count, 1);
    int64_t seq = batch->ops[0].claim.ret_jobs[0].seq, token = batch->ops[0].claim.ret_jobs[0].lease_token;
    batch_free(batch);
    batch = run(rig, (struct store_op){ .kind = OP_SETTLE, .settle = {
        .seq = seq, .token = token, .event = how, .step = STEP_SEND, .error = SLICE("HTTP 400: no"), .code = SLICE("http:400"),
        .outcome = how == EVENT_DELIVER ? OUTCOME_DELIVERED : OUTCOME_PERMANENT,
        .dead_code = how == EVENT_DELIVER ? SLICE("") : SLICE("PERMANENT_ERROR"), .forget_at = INSTANT_NONE } });
    assert_int_equal(batch->ops[0].status, STATUS_OK);
    batch_free(batch);
}

static void jobs_end(struct rig *rig, const char *prefix, int count)
{
    for (int i = 0; i < count; i++) {
        char id[32];
        snprintf(id, sizeof id, "%s%d", prefix, i);
        job_ends(rig, id, "", i % 3 ? EVENT_DELIVER : EVENT_GIVE_UP);
    }
}

/* How many jobs the bus has; each has the id of what it tells of for a key. */
static int bus_jobs(struct rig *rig)
{
    struct job_filter filter = { .destination = SLICE("bus") };
    int jobs = 0;
    do {
        struct arena memory = { 0 };
        struct job *page;
        struct error error;
        size_t count;
        assert_int_equal(rig->reader->ops->reader_jobs(rig->reader, &filter, 200, true, &memory, &page, &count, &filter.before_seq, &error),
                         STATUS_OK);
        for (size_t i = 0; i < count; i++)
            check(page[i].key.len > 0 && memmem(page[i].payload.data, page[i].payload.len, page[i].key.data, page[i].key.len),
                  "%.*s has the key '%.*s'", SLICE_ARG(page[i].id), SLICE_ARG(page[i].key));
        jobs += (int)count;
        arena_release(&memory);
    } while (filter.before_seq > 0 && jobs < LISTED_MAX);
    return jobs;
}

static void await_jobs(struct rig *rig, int count)
{
    for (int i = 0; i < WAITS_MAX && bus_jobs(rig) < count; i++)
        rest();
    assert_int_equal(bus_jobs(rig), count);
}

/* "": none is. */
static void place_saved(struct rig *rig, char ret_place[PLACE_BYTES_MAX])
{
    struct arena memory = { 0 };
    struct slice value = SLICE("");
    struct error error;
    enum status status = rig->reader->ops->reader_saved(rig->reader, SPACE_FORWARD, SLICE("place"), &memory, &value, &error);
    snprintf(ret_place, PLACE_BYTES_MAX, "%.*s", status == STATUS_OK ? (int)value.len : 0, value.data);
    arena_release(&memory);
}

static bool is_saved(struct rig *rig)
{
    char place[PLACE_BYTES_MAX];
    place_saved(rig, place);
    return place[0] != '\0';
}

/* Until it has begun to follow the trail. */
static void await_begun(struct rig *rig)
{
    for (int i = 0; i < WAITS_MAX && !is_saved(rig); i++)
        rest();
    assert_true(is_saved(rig));
}

/* More than a page, over two lives; what ended before it was asked for is not told. */
static void each_end_is_told_once(void **state)
{
    struct rig rig;
    (void)state;
    rig_begin(&rig, EVENTS DESTINATIONS, 100000);
    jobs_end(&rig, "before", 7);
    go_on(&rig);
    await_begun(&rig);
    jobs_end(&rig, "a", 250);
    await_jobs(&rig, 250);
    forward_stop(rig.forward);
    jobs_end(&rig, "b", 30);
    go_on(&rig);
    await_jobs(&rig, 280);
    jobs_end(&rig, "c", 1);
    await_jobs(&rig, 281);
    rig_end(&rig);
}

/* Its place is on record before anybody can be promised anything: a crash right after that misses nothing. */
static void its_place_is_kept_from_the_start(void **state)
{
    struct rig rig;
    (void)state;
    rig_begin(&rig, EVENTS DESTINATIONS, 100000);
    jobs_end(&rig, "before", 2);
    go_on(&rig);
    assert_true(is_saved(&rig));
    forward_stop(rig.forward);
    jobs_end(&rig, "a", 3);
    go_on(&rig);
    await_jobs(&rig, 3);
    rig_end(&rig);
}

/* A store without room: they wait, and none is lost. */
static void a_full_store_loses_none(void **state)
{
    enum { ROOM = 30, JOBS = 40 };
    struct rig rig;
    (void)state;
    rig_begin(&rig, EVENTS DESTINATIONS, ROOM);
    go_on(&rig);
    await_begun(&rig);
    forward_stop(rig.forward);
    jobs_end(&rig, "a", JOBS);
    go_on(&rig);
    for (int told = 0; told < JOBS; told++) { /* each that goes makes room for one more */
        struct arena memory = { 0 };
        struct job_filter filter = { .destination = SLICE("bus"), .state = STATE_PENDING };
        struct job *jobs;
        struct error error;
        size_t count = 0;
        int64_t next;
        for (int i = 0; i < WAITS_MAX && count == 0; i++) {
            arena_release(&memory);
            assert_int_equal(rig.reader->ops->reader_jobs(rig.reader, &filter, 1, false, &memory, &jobs, &count, &next, &error), STATUS_OK);
            if (count == 0)
                rest();
        }
        assert_int_equal(count, 1);
        struct store_op op = { .kind = OP_CANCEL, .job = { .tenant = jobs[0].tenant, .id = jobs[0].id, .forget_at = INSTANT_NONE } };
        batch_free(run(&rig, op));
        arena_release(&memory);
    }
    await_jobs(&rig, JOBS);
    rig_end(&rig);
}

/* Who may add jobs can guess the ids that events will have. */
static void nobody_takes_an_events_place(void **state)
{
    enum { TAKEN = 60, JOBS = 5 };
    struct rig rig;
    (void)state;
    rig_begin(&rig, EVENTS DESTINATIONS, 100000);
    for (int i = 0; i < TAKEN; i++) {
        char id[32];
        snprintf(id, sizeof id, "event-%d.ends", 3 * TAKEN + i);
        job_ends(&rig, id, "", EVENT_DELIVER); /* three events each */
    }
    go_on(&rig);
    await_begun(&rig);
    jobs_end(&rig, "a", JOBS);
    await_jobs(&rig, JOBS);
    rig_end(&rig);
}

/* Also the first that ever had one, while events go out already; and none of a job without. */
static void a_callback_is_made(void **state)
{
    struct rig rig;
    (void)state;
    rig_begin(&rig, "events: [{ name: none, to: bus, on: [cancelled] }]\n" DESTINATIONS, 100000);
    go_on(&rig);
    await_begun(&rig);
    jobs_end(&rig, "a", 3);
    batch_free(run(&rig, (struct store_op){ .kind = OP_SAVE, .save = { .space = SPACE_FORWARD, .name = SLICE("callbacks"), .value = SLICE("{}") } }));
    job_ends(&rig, "called", "{\"destination\":\"bus\"}", EVENT_GIVE_UP);
    await_jobs(&rig, 1);
    jobs_end(&rig, "b", 3);
    job_ends(&rig, "last", "{\"destination\":\"bus\"}", EVENT_DELIVER);
    await_jobs(&rig, 2);
    rig_end(&rig);
}

/* Also where events were told, and are not any more. */
static void a_callback_is_made_after_the_last_event(void **state)
{
    struct rig rig;
    char before[PLACE_BYTES_MAX], after[PLACE_BYTES_MAX];
    (void)state;
    rig_begin(&rig, "events: [{ name: none, to: bus, on: [cancelled] }]\n" DESTINATIONS, 100000);
    go_on(&rig);
    await_begun(&rig);
    struct config *without = config_from(SLICE(DESTINATIONS), "test.yaml");
    forward_reload(rig.forward, without);
    config_unref(without);
    place_saved(&rig, before);
    jobs_end(&rig, "a", 1);
    place_saved(&rig, after);
    for (int i = 0; i < WAITS_MAX && strcmp(before, after) == 0; i++) { /* what it reads then, it reads by the new one */
        rest();
        place_saved(&rig, after);
    }
    assert_string_not_equal(before, after);
    batch_free(run(&rig, (struct store_op){ .kind = OP_SAVE, .save = { .space = SPACE_FORWARD, .name = SLICE("callbacks"), .value = SLICE("{}") } }));
    job_ends(&rig, "called", "{\"destination\":\"bus\"}", EVENT_GIVE_UP);
    await_jobs(&rig, 1);
    rig_end(&rig);
}

/* With nothing to tell it writes nothing. */
static void at_rest_it_is_quiet(void **state)
{
    struct rig rig;
    (void)state;
    rig_begin(&rig, EVENTS DESTINATIONS, 100000);
    go_on(&rig);
    await_begun(&rig);
    jobs_end(&rig, "a", 3);
    await_jobs(&rig, 3);
    int64_t before = store_faulty_count(rig.store, FAULTY_APPLY);
    for (int i = 0; i < 300; i++) /* half a second and more */
        rest();
    int64_t more = store_faulty_count(rig.store, FAULTY_APPLY) - before;
    check(more <= 3, "%d transactions", (int)more);
    rig_end(&rig);
}

/* One that has nothing to tell rests for a second; a daemon that stops does not wait for that. */
static void a_stop_wakes_it(void **state)
{
    enum { STOPS = 20 };
    struct rig rig;
    (void)state;
    rig_begin(&rig, DESTINATIONS, 100000);
    int64_t began = clock_ticks_ns();
    for (int i = 0; i < STOPS; i++) {
        go_on(&rig);
        rest(); /* so that it rests, too */
        forward_stop(rig.forward);
    }
    int64_t took_ms = (clock_ticks_ns() - began) / 1000000;
    check(took_ms < STOPS * 1000 / 2, "%d stops took %lld ms", STOPS, (long long)took_ms);
    rig.forward = NULL;
    rig_end(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_end_is_told_once),
        cmocka_unit_test(its_place_is_kept_from_the_start),
        cmocka_unit_test(a_full_store_loses_none),
        cmocka_unit_test(nobody_takes_an_events_place),
        cmocka_unit_test(a_callback_is_made),
        cmocka_unit_test(a_callback_is_made_after_the_last_event),
        cmocka_unit_test(at_rest_it_is_quiet),
        cmocka_unit_test(a_stop_wakes_it),
    };
    log_set_level(LOG_NONE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
