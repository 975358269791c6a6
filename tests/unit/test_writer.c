/*
 * Group commit, with real threads and a store that fails or waits when told to.
 */
#include "node/writer.h"

#include "base/log.h"
#include "store/memory/memory.h"
#include "support/check.h"
#include "support/said.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { NOW_FIRST = 1000000, SUBMITTERS = 4, BATCHES_EACH = 250, ORDER_MAX = 8 };

/* A memory store behind a door. */
struct door {
    struct store store; /* first: what the writer sees */
    struct store *inner;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool closed; /* apply waits */
    bool inside; /* somebody is in apply */
    enum status fail_apply, fail_sync;
    bool loses_answers; /* of a transaction that is answered STATUS_AWAY: it was applied */
    bool in_doubt, doubt_applied;
    int applies, syncs, asked;
};

struct scene {
    struct door door;
    struct writer *writer;
    struct mailbox *mailbox; /* of the test's own thread */
    _Atomic instant now;
    atomic_int failures, notices, ready;
    int answered;
    enum status last_status;
    char order[ORDER_MAX]; /* n: notice, d: done */
};

static enum status door_apply(struct store *store, instant now, struct store_op *ops, size_t count, struct arena *memory,
                              struct error *err)
{
    struct door *door = (struct door *)store;
    pthread_mutex_lock(&door->lock);
    door->inside = true;
    pthread_cond_broadcast(&door->changed);
    while (door->closed)
        pthread_cond_wait(&door->changed, &door->lock);
    door->inside = false;
    door->applies++;
    enum status failure = door->fail_apply;
    bool applies = failure == STATUS_AWAY && door->loses_answers;
    check(!door->in_doubt, "a transaction while another is in doubt");
    door->in_doubt = failure == STATUS_AWAY;
    door->doubt_applied = applies;
    pthread_mutex_unlock(&door->lock);
    if (applies)
        assert_int_equal(door->inner->ops->apply(door->inner, now, ops, count, memory, err), STATUS_OK);
    if (failure != STATUS_OK)
        return error_set(err, failure, "the test's store fails");
    return door->inner->ops->apply(door->inner, now, ops, count, memory, err);
}

static enum status door_sync(struct store *store, struct error *err)
{
    struct door *door = (struct door *)store;
    pthread_mutex_lock(&door->lock);
    door->syncs++;
    enum status failure = door->fail_sync;
    pthread_cond_broadcast(&door->changed);
    pthread_mutex_unlock(&door->lock);
    return failure == STATUS_OK ? door->inner->ops->sync(door->inner, err) : error_set(err, failure, "the test's sync fails");
}

static enum status door_outcome(struct store *store, bool *ret_applied, struct error *err)
{
    struct door *door = (struct door *)store;
    pthread_mutex_lock(&door->lock);
    check(door->in_doubt, "nothing is in doubt");
    door->asked++;
    enum status failure = door->fail_apply;
    door->in_doubt = failure == STATUS_AWAY;
    *ret_applied = door->doubt_applied;
    pthread_cond_broadcast(&door->changed);
    pthread_mutex_unlock(&door->lock);
    return failure == STATUS_OK ? STATUS_OK : error_set(err, failure, "the test's store fails");
}

static const struct store_ops door_ops = { .name = "door", .writers_max = 1, .apply = door_apply, .sync = door_sync,
                                          .outcome = door_outcome };
static const struct store_ops mute_ops = { .name = "mute", .writers_max = 1, .apply = door_apply, .sync = door_sync };

/* The trail ends where the last transaction did. */
static struct trail_head door_head(struct store *store)
{
    struct door *door = (struct door *)store;
    pthread_mutex_lock(&door->lock);
    struct trail_head head = { .number = door->applies };
    pthread_mutex_unlock(&door->lock);
    return head;
}

static const struct store_ops headed_ops = { .name = "headed", .writers_max = 1, .apply = door_apply, .sync = door_sync,
                                            .head = door_head };

/* Until the store was asked so often what became of a transaction. */
static void door_wait_asked(struct door *door, int times)
{
    pthread_mutex_lock(&door->lock);
    while (door->asked < times)
        pthread_cond_wait(&door->changed, &door->lock);
    pthread_mutex_unlock(&door->lock);
}

static void door_set(struct door *door, bool closed, enum status fail_apply, enum status fail_sync)
{
    pthread_mutex_lock(&door->lock);
    door->closed = closed;
    door->fail_apply = fail_apply;
    door->fail_sync = fail_sync;
    pthread_cond_broadcast(&door->changed);
    pthread_mutex_unlock(&door->lock);
}

static void door_wait_inside(struct door *door)
{
    pthread_mutex_lock(&door->lock);
    while (!door->inside)
        pthread_cond_wait(&door->changed, &door->lock);
    pthread_mutex_unlock(&door->lock);
}

static int door_syncs(struct door *door)
{
    pthread_mutex_lock(&door->lock);
    int syncs = door->syncs;
    pthread_mutex_unlock(&door->lock);
    return syncs;
}

static instant scene_now(void *context)
{
    return atomic_load(&((struct scene *)context)->now);
}

static void remember(struct scene *scene, char what)
{
    size_t len = strlen(scene->order);
    if (len < sizeof scene->order - 1)
        scene->order[len] = what;
}

static void on_notice_posted(struct message *message)
{
    struct notice *notice = message_of(message, MESSAGE_NOTICE);
    struct scene *scene = notice->context;
    remember(scene, 'n');
    notice_free(notice);
}

static void on_notice(void *context, struct notice *notice)
{
    struct scene *scene = context;
    atomic_fetch_add(&scene->notices, 1);
    for (size_t i = 0; i < notice->count; i++)
        atomic_fetch_add(&scene->ready, (int)notice->lanes[i].ready);
    notice->context = scene;
    mailbox_post(scene->mailbox, &notice->message, MESSAGE_NOTICE, on_notice_posted);
}

static void on_failure(void *context, const struct error *error)
{
    struct scene *scene = context;
    check(error->status != STATUS_OK && error->text[0], "a failure without a sentence");
    atomic_fetch_add(&scene->failures, 1);
}

static void scene_begin_on(struct scene *scene, bool sync_always, const struct store_ops *ops)
{
    struct error error;
    struct store_settings store = { .sync_always = sync_always };
    memset(scene, 0, sizeof *scene);
    atomic_store(&scene->now, NOW_FIRST);
    pthread_mutex_init(&scene->door.lock, NULL);
    pthread_cond_init(&scene->door.changed, NULL);
    scene->door.store.ops = ops;
    assert_int_equal(store_memory_open(SLICE(""), &store, &scene->door.inner, &error), STATUS_OK);
    assert_int_equal(mailbox_new(&scene->mailbox, &error), STATUS_OK);
    struct writer_settings settings = {
        .store = &scene->door.store, .sync_always = sync_always, .now = scene_now,
        .on_notice = on_notice,      .on_failure = on_failure,   .context = scene,
    };
    assert_int_equal(writer_new(&settings, &scene->writer, &error), STATUS_OK);
}

static void scene_begin(struct scene *scene, bool sync_always)
{
    scene_begin_on(scene, sync_always, &door_ops);
}

static void scene_end(struct scene *scene)
{
    writer_free(scene->writer);
    mailbox_drain(scene->mailbox);
    mailbox_free(scene->mailbox);
    scene->door.inner->ops->close(scene->door.inner);
    pthread_cond_destroy(&scene->door.changed);
    pthread_mutex_destroy(&scene->door.lock);
}

static void on_done(struct batch *batch)
{
    struct scene *scene = batch->context;
    scene->answered++;
    scene->last_status = batch->status;
    remember(scene, 'd');
    batch_free(batch);
}

static struct batch *inserts(struct scene *scene, size_t count)
{
    struct batch *batch = batch_new(count, 1 << 20);
    assert_non_null(batch);
    for (size_t i = 0; i < count; i++) {
        batch->ops[i].kind = OP_INSERT;
        batch->ops[i].insert = (struct op_insert){ .destination = SLICE("d"), .tenant = SLICE("t"), .run_at = INSTANT_NONE,
                                                   .deadline = INSTANT_NONE, .payload = SLICE("x") };
    }
    batch->count = count;
    batch->reply_to = scene->mailbox;
    batch->done = on_done;
    batch->context = scene;
    return batch;
}

static void await_answers(struct scene *scene, int count)
{
    while (scene->answered < count) {
        mailbox_wait(scene->mailbox, -1);
        mailbox_drain(scene->mailbox);
    }
    assert_int_equal(scene->answered, count);
}

static int64_t pending_in(struct scene *scene)
{
    struct store_reader *reader;
    struct arena memory;
    struct lane *lanes;
    size_t count;
    struct error error;
    arena_init(&memory, 1 << 20);
    assert_int_equal(scene->door.inner->ops->reader(scene->door.inner, &reader, &error), STATUS_OK);
    assert_int_equal(reader->ops->reader_lanes(reader, 0, 10, &memory, &lanes, &count, &error), STATUS_OK);
    int64_t pending = count == 0 ? 0 : lanes[0].counts.pending;
    reader->ops->reader_close(reader);
    arena_release(&memory);
    return pending;
}

/* C-50 */
static void nothing_is_answered_before_it_is_applied(void **state)
{
    struct scene scene;
    (void)state;
    scene_begin(&scene, true);
    door_set(&scene.door, true, STATUS_OK, STATUS_OK);
    writer_submit(scene.writer, inserts(&scene, 1));
    door_wait_inside(&scene.door);
    assert_false(mailbox_drain(scene.mailbox));
    assert_true(writer_figures(scene.writer).busy);
    door_set(&scene.door, false, STATUS_OK, STATUS_OK);
    await_answers(&scene, 1);
    assert_int_equal(scene.last_status, STATUS_OK);
    assert_string_equal(scene.order, "nd"); /* the engine hears of a job before its sender does */
    struct writer_figures figures = writer_figures(scene.writer);
    assert_int_equal(figures.transactions, 1);
    assert_int_equal(figures.operations, 1);
    assert_int_equal(scene.door.syncs, 0); /* `always`: apply itself has synced */
    scene_end(&scene);
}

static void what_waits_shares_one_transaction(void **state)
{
    static const struct { const char *name; size_t batches, ops; int transactions; } cases[] = {
        { "a hundred small ones", 100, 1, 1 },
        { "as many as fit exactly", 4, STORE_BATCH_OPS_MAX / 4, 1 },
        { "a batch is never divided", 3, STORE_BATCH_OPS_MAX / 2 - 1, 2 },
        { "the largest alone", 2, STORE_BATCH_OPS_MAX, 2 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct scene scene;
        scene_begin(&scene, true);
        door_set(&scene.door, true, STATUS_OK, STATUS_OK);
        writer_submit(scene.writer, inserts(&scene, 1));
        door_wait_inside(&scene.door);
        for (size_t k = 0; k < cases[i].batches; k++)
            writer_submit(scene.writer, inserts(&scene, cases[i].ops));
        door_set(&scene.door, false, STATUS_OK, STATUS_OK);
        await_answers(&scene, 1 + (int)cases[i].batches);
        check(scene.door.applies == 1 + cases[i].transactions, "%s: %d transactions", cases[i].name, scene.door.applies - 1);
        assert_int_equal(pending_in(&scene), (int64_t)(1 + cases[i].batches * cases[i].ops));
        struct writer_measures measures = writer_measures(scene.writer);
        assert_int_equal(histogram_total(&measures.operations), 1 + cases[i].transactions);
        assert_int_equal(measures.operations.sum, 1 + cases[i].batches * cases[i].ops);
        assert_int_equal(histogram_total(&measures.commit_ns), 1 + cases[i].transactions);
        assert_true(measures.commit_ns.sum > 0);
        assert_int_equal(atomic_load(&scene.ready), 1 + (int)(cases[i].batches * cases[i].ops));
        scene_end(&scene);
    }
}

struct submitter {
    struct scene *scene;
    struct mailbox *mailbox;
    int answered;
};

static void on_submitter_done(struct batch *batch)
{
    struct submitter *submitter = batch->context;
    check(batch->status == STATUS_OK && batch->ops[0].status == STATUS_OK, "%s", batch->error.text);
    check(batch->ops[0].insert.ret_id.len > 0, "no id was made");
    submitter->answered++;
    batch_free(batch);
}

static void *submit_all(void *context)
{
    struct submitter *submitter = context;
    for (int i = 0; i < BATCHES_EACH; i++) {
        struct batch *batch = inserts(submitter->scene, 1 + (size_t)i % 3);
        batch->reply_to = submitter->mailbox;
        batch->done = on_submitter_done;
        batch->context = submitter;
        writer_submit(submitter->scene->writer, batch);
        if (i % 7 == 0)
            mailbox_drain(submitter->mailbox);
    }
    while (submitter->answered < BATCHES_EACH) {
        mailbox_wait(submitter->mailbox, -1);
        mailbox_drain(submitter->mailbox);
    }
    return NULL;
}

static void many_submitters_are_all_answered(void **state)
{
    struct scene scene;
    struct submitter submitters[SUBMITTERS];
    pthread_t threads[SUBMITTERS];
    struct error error;
    int ops = 0;
    (void)state;
    scene_begin(&scene, true);
    for (int i = 0; i < BATCHES_EACH; i++)
        ops += 1 + i % 3;
    for (int i = 0; i < SUBMITTERS; i++) {
        submitters[i] = (struct submitter){ .scene = &scene };
        assert_int_equal(mailbox_new(&submitters[i].mailbox, &error), STATUS_OK);
        assert_int_equal(pthread_create(&threads[i], NULL, submit_all, &submitters[i]), 0);
    }
    for (int i = 0; i < SUBMITTERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(submitters[i].answered, BATCHES_EACH);
        mailbox_free(submitters[i].mailbox);
    }
    assert_int_equal(pending_in(&scene), SUBMITTERS * ops);
    assert_int_equal(writer_figures(scene.writer).operations, SUBMITTERS * ops);
    assert_true(writer_figures(scene.writer).transactions <= SUBMITTERS * BATCHES_EACH);
    scene_end(&scene);
}

static void a_failed_store_refuses_everything_after(void **state)
{
    static const enum status failures[] = { STATUS_IO, STATUS_CORRUPT };
    (void)state;
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        struct scene scene;
        scene_begin(&scene, true);
        writer_submit(scene.writer, inserts(&scene, 1));
        await_answers(&scene, 1);
        door_set(&scene.door, false, failures[i], STATUS_OK);
        writer_submit(scene.writer, inserts(&scene, 2));
        await_answers(&scene, 2);
        assert_int_equal(scene.last_status, failures[i]);
        door_set(&scene.door, false, STATUS_OK, STATUS_OK); /* that it would work again changes nothing */
        for (int k = 0; k < 3; k++)
            writer_submit(scene.writer, inserts(&scene, 1));
        await_answers(&scene, 5);
        assert_int_equal(scene.last_status, failures[i]);
        assert_int_equal(scene.door.applies, 2); /* it was not even asked */
        assert_int_equal(atomic_load(&scene.failures), 1);
        assert_int_equal(atomic_load(&scene.notices), 1);
        assert_int_equal(pending_in(&scene), 1);
        scene_end(&scene);
        assert_int_equal(atomic_load(&scene.failures), 1);
    }
}

static void a_full_store_is_asked_again(void **state)
{
    static const enum status failures[] = { STATUS_FULL, STATUS_BUSY, STATUS_NO_MEMORY };
    (void)state;
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        struct scene scene;
        scene_begin(&scene, true);
        door_set(&scene.door, false, failures[i], STATUS_OK);
        writer_submit(scene.writer, inserts(&scene, 1));
        await_answers(&scene, 1);
        assert_int_equal(scene.last_status, failures[i]);
        door_set(&scene.door, false, STATUS_OK, STATUS_OK);
        writer_submit(scene.writer, inserts(&scene, 1));
        await_answers(&scene, 2);
        assert_int_equal(scene.last_status, STATUS_OK);
        assert_int_equal(atomic_load(&scene.failures), 0);
        assert_int_equal(pending_in(&scene), 1);
        scene_end(&scene);
    }
}

/*
 * A store across a network goes away with a transaction under way. What became of it is asked before anybody is
 * answered, and nothing happens twice; others are refused at once, and nothing has failed for good.
 */
static void a_transaction_in_doubt_is_asked_about(void **state)
{
    (void)state;
    for (int lost = 0; lost < 2; lost++) {
        struct scene scene;
        scene_begin(&scene, false);
        scene.door.loses_answers = lost;
        door_set(&scene.door, false, STATUS_AWAY, STATUS_OK);
        writer_submit(scene.writer, inserts(&scene, 3));
        door_wait_asked(&scene.door, 2);
        assert_true(writer_figures(scene.writer).away && !writer_figures(scene.writer).busy);
        assert_true(scene.answered == 0 && atomic_load(&scene.ready) == 0); /* nor is anybody told */
        writer_submit(scene.writer, inserts(&scene, 1)); /* while it is away */
        await_answers(&scene, 1);
        assert_int_equal(scene.last_status, STATUS_AWAY);
        assert_int_equal(scene.door.applies, 1); /* it was not even tried */
        door_set(&scene.door, false, STATUS_OK, STATUS_OK);
        await_answers(&scene, 2);
        assert_int_equal(scene.last_status, lost ? STATUS_OK : STATUS_AWAY);
        assert_false(writer_figures(scene.writer).away);
        assert_true(pending_in(&scene) == (lost ? 3 : 0) && atomic_load(&scene.ready) == (lost ? 3 : 0));
        atomic_fetch_add(&scene.now, 5000);
        for (int i = 0; i < 600 && door_syncs(&scene.door) < lost; i++)
            mailbox_wait(scene.mailbox, 100);
        assert_int_equal(door_syncs(&scene.door), lost); /* what was applied after all is synced as anything else */
        writer_submit(scene.writer, inserts(&scene, 1));
        await_answers(&scene, 3);
        assert_int_equal(scene.last_status, STATUS_OK);
        assert_int_equal(pending_in(&scene), lost ? 4 : 1);
        assert_true(scene.door.applies == 2 && atomic_load(&scene.failures) == 0);
        scene_end(&scene);
    }
}

/* Nobody waits for a store that is away when the process ends, or is told not to: all are answered, and none as applied. */
static void the_end_does_not_wait_for_a_store_that_is_away(void **state)
{
    (void)state;
    for (int reported = 0; reported < 2; reported++) {
        struct scene scene;
        scene_begin(&scene, true);
        door_set(&scene.door, false, STATUS_AWAY, STATUS_OK);
        writer_submit(scene.writer, inserts(&scene, 1));
        door_wait_asked(&scene.door, 1);
        if (reported) {
            writer_wait_no_more(scene.writer);
            await_answers(&scene, 1);
        }
        scene_end(&scene);
        assert_int_equal(scene.answered, 1);
        assert_int_equal(scene.last_status, STATUS_AWAY);
        assert_int_equal(scene.door.applies, 1);
        assert_int_equal(atomic_load(&scene.failures), 0);
    }
}

/* One that finds, when it is asked, that it has failed, or that cannot be asked at all, has failed for good. */
static void a_store_that_says_so_has_failed(void **state)
{
    (void)state;
    static const enum status said[] = { STATUS_AWAY, STATUS_CORRUPT, STATUS_UNSUPPORTED };
    for (size_t asked = 0; asked < COUNT_OF(said); asked++) {
        struct scene scene;
        scene_begin_on(&scene, true, asked ? &door_ops : &mute_ops);
        door_set(&scene.door, false, STATUS_AWAY, STATUS_OK);
        writer_submit(scene.writer, inserts(&scene, 1));
        if (asked)
            door_wait_asked(&scene.door, 1);
        door_set(&scene.door, false, said[asked], STATUS_OK);
        await_answers(&scene, 1);
        assert_int_equal(scene.last_status, said[asked]);
        assert_int_equal(atomic_load(&scene.failures), 1);
        door_set(&scene.door, false, STATUS_OK, STATUS_OK);
        writer_submit(scene.writer, inserts(&scene, 1));
        await_answers(&scene, 2);
        assert_int_not_equal(scene.last_status, STATUS_OK);
        assert_int_equal(scene.door.applies, 1);
        scene_end(&scene);
    }
}

/* A sync that does not reach the store is asked for again; it has not failed. */
static void a_sync_of_a_store_that_is_away_is_tried_again(void **state)
{
    struct scene scene;
    (void)state;
    scene_begin(&scene, false);
    door_set(&scene.door, false, STATUS_OK, STATUS_AWAY);
    writer_submit(scene.writer, inserts(&scene, 1));
    await_answers(&scene, 1);
    for (int syncs = 0; syncs < 2; syncs++) {
        atomic_fetch_add(&scene.now, SECOND_MS);
        while (door_syncs(&scene.door) <= syncs) {
            writer_submit(scene.writer, inserts(&scene, 1));
            await_answers(&scene, scene.answered + 1);
        }
    }
    assert_int_equal(atomic_load(&scene.failures), 0);
    door_set(&scene.door, false, STATUS_OK, STATUS_OK);
    scene_end(&scene);
    assert_true(scene.door.syncs >= 3);
}

static void every_second_is_synced(void **state)
{
    struct scene scene;
    (void)state;
    scene_begin(&scene, false);
    for (int second = 0; second < 3; second++) {
        for (int i = 0; i < 5; i++)
            writer_submit(scene.writer, inserts(&scene, 1));
        await_answers(&scene, second * 6 + 5);
        atomic_fetch_add(&scene.now, 1000);
        writer_submit(scene.writer, inserts(&scene, 1));
        await_answers(&scene, second * 6 + 6);
    }
    /* The answer to the last batch may be here before its sync, but not two before. */
    assert_in_range(door_syncs(&scene.door), 2, 3);
    atomic_fetch_sub(&scene.now, 100000); /* a clock set back must not put the next sync off for a day */
    int before = door_syncs(&scene.door);
    for (int i = 0; i < 2; i++) {
        writer_submit(scene.writer, inserts(&scene, 1));
        await_answers(&scene, 19 + i);
    }
    assert_true(door_syncs(&scene.door) > before);
    writer_submit(scene.writer, inserts(&scene, 1));
    await_answers(&scene, 21);
    before = door_syncs(&scene.door);
    writer_free(scene.writer); /* the rest at the end */
    scene.writer = NULL;
    assert_int_equal(scene.door.syncs, before + 1);
    scene_end(&scene);
}

/* Whoever keeps the log elsewhere can compare the trail with it: once a day, and at the end. */
static void the_end_of_the_trail_is_told_daily(void **state)
{
    enum { DAYS = 3 };
    struct scene scene;
    int told = 0;
    (void)state;
    log_set_level(LOG_INFO);
    said_begin();
    scene_begin_on(&scene, true, &headed_ops);
    writer_submit(scene.writer, inserts(&scene, 1));
    await_answers(&scene, 1);
    for (int day = 1; day <= DAYS; day++) {
        atomic_fetch_add(&scene.now, DAY_MS);
        writer_submit(scene.writer, inserts(&scene, 1));
        await_answers(&scene, 2 * day);
        writer_submit(scene.writer, inserts(&scene, 1)); /* what was due is said by then */
        await_answers(&scene, 2 * day + 1);
        atomic_fetch_add(&scene.now, day < DAYS ? 0 : DAY_MS - 1);
    }
    writer_submit(scene.writer, inserts(&scene, 1));
    await_answers(&scene, 2 * DAYS + 2);
    scene_end(&scene);
    char *said = said_end();
    for (char *at = said; (at = strstr(at, "\"event\":\"trail_head\"")); at++)
        told++;
    check(told == DAYS + 1, "told %d times: %s", told, said);
    check(strstr(said, "\"expect\":\"8:00000000"), "%s", said);
}

/* Nothing arrives after the last batch: it is synced all the same. Takes a second of real time. */
static void an_idle_writer_syncs_too(void **state)
{
    struct scene scene;
    (void)state;
    scene_begin(&scene, false);
    writer_submit(scene.writer, inserts(&scene, 1));
    await_answers(&scene, 1);
    atomic_fetch_add(&scene.now, 1000);
    pthread_mutex_lock(&scene.door.lock);
    while (scene.door.syncs == 0)
        pthread_cond_wait(&scene.door.changed, &scene.door.lock);
    pthread_mutex_unlock(&scene.door.lock);
    scene_end(&scene);
    assert_int_equal(scene.door.syncs, 1); /* nothing was left to sync */
}

static void a_failed_sync_is_never_tried_again(void **state)
{
    struct scene scene;
    (void)state;
    scene_begin(&scene, false);
    door_set(&scene.door, false, STATUS_OK, STATUS_IO);
    atomic_fetch_add(&scene.now, 5000);
    writer_submit(scene.writer, inserts(&scene, 1));
    await_answers(&scene, 1);
    for (int i = 0; i < 3; i++) {
        writer_submit(scene.writer, inserts(&scene, 1));
        await_answers(&scene, 2 + i);
        assert_int_equal(scene.last_status, STATUS_IO);
        atomic_fetch_add(&scene.now, 5000);
    }
    door_set(&scene.door, false, STATUS_OK, STATUS_OK);
    scene_end(&scene);
    assert_int_equal(scene.door.syncs, 1);
    assert_int_equal(atomic_load(&scene.failures), 1);
}

static void the_end_answers_all(void **state)
{
    struct scene scene;
    (void)state;
    scene_begin(&scene, true);
    door_set(&scene.door, true, STATUS_OK, STATUS_OK);
    for (int i = 0; i < 50; i++)
        writer_submit(scene.writer, inserts(&scene, 100));
    door_set(&scene.door, false, STATUS_OK, STATUS_OK);
    writer_free(scene.writer);
    scene.writer = NULL;
    mailbox_drain(scene.mailbox);
    assert_int_equal(scene.answered, 50);
    assert_int_equal(pending_in(&scene), 5000);
    scene_end(&scene);
}

struct keeper {
    struct batch *saved[2];
    int count;
};

static void keep(struct batch *batch)
{
    struct keeper *keeper = batch->context;
    keeper->saved[keeper->count++] = batch;
}

/* Batches of one transaction share the memory of their results; each may go first. */
static void results_outlive_the_neighbour(void **state)
{
    (void)state;
    for (int first = 0; first < 2; first++) {
        struct scene scene;
        struct keeper keeper = { .count = 0 };
        scene_begin(&scene, true);
        door_set(&scene.door, true, STATUS_OK, STATUS_OK);
        writer_submit(scene.writer, inserts(&scene, 1));
        door_wait_inside(&scene.door);
        for (int i = 0; i < 2; i++) {
            struct batch *batch = inserts(&scene, 1);
            batch->done = keep;
            batch->context = &keeper;
            writer_submit(scene.writer, batch);
        }
        door_set(&scene.door, false, STATUS_OK, STATUS_OK);
        while (keeper.count < 2) {
            mailbox_wait(scene.mailbox, -1);
            mailbox_drain(scene.mailbox);
        }
        assert_int_equal(scene.door.applies, 2);
        batch_free(keeper.saved[first]);
        const struct op_insert *left = &keeper.saved[1 - first]->ops[0].insert;
        assert_int_equal(left->ret_id.len, JOB_ID_MADE_BYTES);
        for (size_t i = 0; i < left->ret_id.len; i++)
            assert_true(ascii_is_alnum(left->ret_id.data[i]));
        batch_free(keeper.saved[1 - first]);
        scene_end(&scene);
    }
    batch_free(NULL);
    notice_free(NULL);
    writer_free(NULL);
}

#define INSERTED(at, until) { .destination = SLICE("d"), .run_at = (at), .deadline = (until), .ret_lane = 3 }
#define SETTLED(what, at) { .event = (what), .run_at = (at), .ret_lane = 3 }

static void each_change_gives_its_notice(void **state)
{
    enum { NOW = 500 };
    static const struct { const char *name; struct store_op op; bool news; int64_t ready; instant next_at; } cases[] = {
        { "due insert", { .kind = OP_INSERT, .insert = INSERTED(NOW, INSTANT_NONE) }, true, 1, INSTANT_NONE },
        { "insert without a time", { .kind = OP_INSERT, .insert = INSERTED(INSTANT_NONE, INSTANT_NONE) }, true, 1, INSTANT_NONE },
        { "later insert", { .kind = OP_INSERT, .insert = INSERTED(900, INSTANT_NONE) }, true, 0, 900 },
        { "due insert with a deadline", { .kind = OP_INSERT, .insert = INSERTED(NOW, 700) }, true, 1, 700 },
        { "later insert with an earlier deadline", { .kind = OP_INSERT, .insert = INSERTED(900, 700) }, true, 0, 700 },
        { "known insert", { .kind = OP_INSERT, .insert = { .ret_existed = true } }, false, 0, 0 },
        { "refused insert", { .kind = OP_INSERT, .status = STATUS_FULL }, false, 0, 0 },
        { "retry", { .kind = OP_SETTLE, .settle = SETTLED(EVENT_RETRY, 800) }, true, 0, 800 },
        { "retry that is due by now", { .kind = OP_SETTLE, .settle = SETTLED(EVENT_RETRY, NOW) }, true, 1, INSTANT_NONE },
        { "release", { .kind = OP_SETTLE, .settle = SETTLED(EVENT_RELEASE, 800) }, true, 0, 800 },
        { "delivery", { .kind = OP_SETTLE, .settle = SETTLED(EVENT_DELIVER, 800) }, false, 0, 0 },
        { "death", { .kind = OP_SETTLE, .settle = SETTLED(EVENT_GIVE_UP, 800) }, true, 0, INSTANT_NONE },
        { "expiry", { .kind = OP_SETTLE, .settle = SETTLED(EVENT_EXPIRE, 800) }, true, 0, INSTANT_NONE },
        { "redrive of a dead one", { .kind = OP_REDRIVE, .job = { .ret_lane = 3, .ret_was_dead = true } }, true, 1, INSTANT_NONE },
        { "purge", { .kind = OP_PURGE, .job = { .ret_lane = 3 } }, true, 0, INSTANT_NONE },
        { "stale settlement", { .kind = OP_SETTLE, .settle = SETTLED(EVENT_RETRY, 800), .status = STATUS_CONFLICT }, false, 0, 0 },
        { "redrive", { .kind = OP_REDRIVE, .job = { .ret_lane = 3 } }, true, 1, INSTANT_NONE },
        { "cancel", { .kind = OP_CANCEL, .job = { .ret_lane = 3 } }, false, 0, 0 },
        { "insert behind another of its key",
          { .kind = OP_INSERT, .insert = { .destination = SLICE("d"), .run_at = NOW, .deadline = 700, .ret_lane = 3, .ret_behind = true } },
          true, 0, 700 },
        { "delivery that lets another go", { .kind = OP_SETTLE, .settle = SETTLED(EVENT_DELIVER, 800), .ret_released = { .ready = true } },
          true, 1, INSTANT_NONE },
        { "cancel that lets one go later", { .kind = OP_CANCEL, .job = { .ret_lane = 3 }, .ret_released = { .at = 900 } }, true, 0, 900 },
        { "redrive behind another", { .kind = OP_REDRIVE, .job = { .ret_lane = 3, .ret_behind = true, .ret_was_dead = true } }, true, 0,
          INSTANT_NONE },
        { "claim", { .kind = OP_CLAIM, .claim = { .lane = 3 } }, false, 0, 0 },
        { "note", { .kind = OP_NOTE }, false, 0, 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct notice *notice;
        assert_int_equal(notice_of(&cases[i].op, 1, NOW, &notice), STATUS_OK);
        check(!notice == !cases[i].news, "%s", cases[i].name);
        if (notice) {
            check(notice->count == 1 && notice->lanes[0].lane == 3, "%s: wrong lane", cases[i].name);
            check(notice->lanes[0].ready == cases[i].ready, "%s: %lld ready", cases[i].name, (long long)notice->lanes[0].ready);
            bool died = strcmp(cases[i].name, "death") == 0 || strcmp(cases[i].name, "expiry") == 0;
            bool back = strcmp(cases[i].name, "purge") == 0 || strcmp(cases[i].name, "redrive of a dead one") == 0 ||
                        strcmp(cases[i].name, "redrive behind another") == 0;
            check(notice->lanes[0].dead == died - back, "%s: %lld dead", cases[i].name, (long long)notice->lanes[0].dead);
            check(notice->lanes[0].next_at == cases[i].next_at, "%s: next %lld", cases[i].name,
                  (long long)notice->lanes[0].next_at);
        }
        notice_free(notice);
    }
}

static void a_notice_has_a_lane_once(void **state)
{
    enum { OPS = 3000, LANES = 700 };
    static struct store_op ops[OPS];
    struct notice *notice;
    int64_t ready = 0;
    bool seen[LANES + 1] = { false };
    (void)state;
    for (int i = 0; i < OPS; i++) {
        ops[i].kind = OP_INSERT;
        ops[i].insert = (struct op_insert){ .destination = SLICE("d"), .run_at = i % 2 ? 5 : 1000 - i / 1000,
                                            .deadline = INSTANT_NONE, .ret_lane = 1 + i % LANES };
    }
    assert_int_equal(notice_of(ops, OPS, 10, &notice), STATUS_OK);
    assert_int_equal(notice->count, LANES);
    for (size_t i = 0; i < notice->count; i++) {
        const struct lane_notice *lane = &notice->lanes[i];
        assert_in_range(lane->lane, 1, LANES);
        assert_false(seen[lane->lane]);
        seen[lane->lane] = true;
        assert_true(slice_equal(lane->destination, SLICE("d")));
        ready += lane->ready;
    }
    assert_int_equal(ready, OPS / 2);
    notice_free(notice);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_answered_before_it_is_applied),
        cmocka_unit_test(what_waits_shares_one_transaction),
        cmocka_unit_test(many_submitters_are_all_answered),
        cmocka_unit_test(a_failed_store_refuses_everything_after),
        cmocka_unit_test(a_full_store_is_asked_again),
        cmocka_unit_test(a_transaction_in_doubt_is_asked_about),
        cmocka_unit_test(the_end_does_not_wait_for_a_store_that_is_away),
        cmocka_unit_test(a_store_that_says_so_has_failed),
        cmocka_unit_test(a_sync_of_a_store_that_is_away_is_tried_again),
        cmocka_unit_test(every_second_is_synced),
        cmocka_unit_test(the_end_of_the_trail_is_told_daily),
        cmocka_unit_test(an_idle_writer_syncs_too),
        cmocka_unit_test(a_failed_sync_is_never_tried_again),
        cmocka_unit_test(the_end_answers_all),
        cmocka_unit_test(results_outlive_the_neighbour),
        cmocka_unit_test(each_change_gives_its_notice),
        cmocka_unit_test(a_notice_has_a_lane_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
