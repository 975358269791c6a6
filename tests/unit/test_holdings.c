/*
 * What a node does with the destinations that it is to take and to give away, with the real writer: whatever the store refuses
 * or cannot tell, the next look at it sets right, and nobody else has to wait for it.
 */
#include "daemon/holdings.h"

#include "base/log.h"
#include "engine/engine.h"
#include "store/memory/memory.h"
#include "support/check.h"
#include "support/configs.h"
#include "support/store_faulty.h"

enum { WAIT_MS = 5, TURNS_MAX = 12000 /* a minute */ };

struct rig {
    struct config *config;
    struct store *inner, *store, *other; /* other: of another node */
    struct store_reader *reader, *eye;   /* eye: does not fail */
    struct writer *writer;
    struct mailbox *mailbox;
    struct engine *engine;
    struct holdings *holdings;
};

static instant port_now(void *context)
{
    (void)context;
    return clock_now();
}

static void port_submit(void *context, struct batch *batch)
{
    writer_submit(((struct rig *)context)->writer, batch);
}

static void port_send(void *context, struct send *send)
{
    (void)context;
    (void)send;
    fail_msg("nothing is to be sent");
}

static void port_wake_at(void *context, instant at)
{
    (void)context; /* it runs in every turn */
    (void)at;
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

static void rig_begin(struct rig *rig)
{
    struct error error;
    struct store_settings a = { .sync_always = true, .pending_max = 1000, .node = SLICE("a") };
    struct store_settings b = { .sync_always = true, .pending_max = 1000, .node = SLICE("b") };
    *rig = (struct rig){ .config = config_from(SLICE("destinations: { d: { url: 'https://a.example/' } }\n"), "test.yaml") };
    assert_int_equal(store_memory_open(SLICE(""), &a, &rig->inner, &error), STATUS_OK);
    assert_int_equal(store_memory_join(rig->inner, &b, &rig->other, &error), STATUS_OK);
    assert_int_equal(rig->inner->ops->reader(rig->inner, &rig->eye, &error), STATUS_OK);
    assert_int_equal(store_faulty_wrap(rig->inner, &rig->store, &error), STATUS_OK);
    assert_int_equal(rig->store->ops->begin(rig->store, clock_now(), &error), STATUS_OK);
    assert_int_equal(rig->other->ops->begin(rig->other, clock_now(), &error), STATUS_OK);
    assert_int_equal(rig->store->ops->reader(rig->store, &rig->reader, &error), STATUS_OK);
    assert_int_equal(mailbox_new(&rig->mailbox, &error), STATUS_OK);
    assert_int_equal(writer_new(&(struct writer_settings){ .store = rig->store, .sync_always = true, .now = port_now,
                                                           .on_notice = on_notice, .on_failure = on_failure, .context = rig },
                                &rig->writer, &error), STATUS_OK);
    struct engine_settings settings = {
        .ports = { .context = rig, .now = port_now, .submit = port_submit, .send = port_send, .wake_at = port_wake_at },
        .mailbox = rig->mailbox, .config = rig->config, .shared_store = true,
    };
    assert_int_equal(engine_new(&settings, &rig->engine, &error), STATUS_OK);
    assert_int_equal(engine_start(rig->engine, rig->reader, &error), STATUS_OK);
    assert_int_equal(holdings_new(rig->engine, rig->writer, rig->mailbox, &rig->holdings, &error), STATUS_OK);
}

static void turn(struct rig *rig)
{
    engine_run(rig->engine);
    mailbox_wait(rig->mailbox, WAIT_MS);
    mailbox_drain(rig->mailbox);
}

static void rig_end(struct rig *rig)
{
    engine_stop(rig->engine);
    for (int i = 0; i < TURNS_MAX && engine_under_way(rig->engine) > 0; i++)
        turn(rig);
    writer_free(rig->writer);
    mailbox_drain(rig->mailbox);
    engine_free(rig->engine);
    holdings_free(rig->holdings);
    mailbox_free(rig->mailbox);
    rig->reader->ops->reader_close(rig->reader);
    rig->eye->ops->reader_close(rig->eye);
    rig->store->ops->close(rig->store);
    rig->other->ops->close(rig->other);
    config_unref(rig->config);
}

/* Whose d is; 0: nobody's, -1: nobody has heard of it. */
static int64_t owner(struct rig *rig)
{
    struct arena memory = { 0 };
    struct shard *shards;
    struct error error;
    size_t count;
    int64_t session = -1;
    assert_int_equal(rig->eye->ops->reader_shards(rig->eye, &memory, &shards, &count, &error), STATUS_OK);
    for (size_t i = 0; i < count; i++)
        if (slice_equal(shards[i].destination, SLICE("d")))
            session = shards[i].session;
    arena_release(&memory);
    return session;
}

static void await(struct rig *rig, bool have, int64_t session)
{
    for (int i = 0; i < TURNS_MAX && (holdings_have(rig->holdings, SLICE("d")) != have || owner(rig) != session); i++)
        turn(rig);
    assert_int_equal(holdings_have(rig->holdings, SLICE("d")), have);
    assert_int_equal(owner(rig), session);
}

/* Until the writer has answered what was given to it, and that was heard. */
static void await_answers(struct rig *rig, int64_t applies)
{
    for (int i = 0; i < TURNS_MAX && store_faulty_count(rig->store, FAULTY_APPLY) < applies; i++)
        turn(rig);
    for (int i = 0; i < TURNS_MAX && writer_figures(rig->writer).busy; i++)
        turn(rig);
    for (int i = 0; i < 10; i++)
        turn(rig);
}

static void order(struct rig *rig, enum holding_order what)
{
    holdings_order(rig->holdings, SLICE("d"), what);
}

static void other_does(struct rig *rig, enum op_kind kind)
{
    struct arena memory = { 0 };
    struct error error;
    struct store_op op = { .kind = kind, .own = { .destination = SLICE("d") } };
    assert_int_equal(rig->other->ops->apply(rig->other, clock_now(), &op, 1, &memory, &error), STATUS_OK);
    assert_int_equal(op.status, STATUS_OK);
    arena_release(&memory);
}

static void it_is_taken_and_given_away(void **state)
{
    struct rig rig;
    (void)state;
    rig_begin(&rig);
    await(&rig, false, -1);
    order(&rig, HOLDING_INTRODUCE);
    await(&rig, false, 0);
    order(&rig, HOLDING_TAKE);
    await(&rig, true, rig.inner->session);
    order(&rig, HOLDING_GIVE);
    assert_true(holdings_have(rig.holdings, SLICE("d"))); /* until the engine has ended what it has of it */
    await(&rig, false, 0);
    order(&rig, HOLDING_TAKE);
    await(&rig, true, rig.inner->session);
    rig_end(&rig);
}

/* What another has is not ours, whatever was ordered, until it has given it away. */
static void what_another_has_is_not_taken(void **state)
{
    struct rig rig;
    (void)state;
    rig_begin(&rig);
    other_does(&rig, OP_TAKE);
    int64_t before = store_faulty_count(rig.store, FAULTY_APPLY);
    order(&rig, HOLDING_TAKE);
    await_answers(&rig, before + 1);
    assert_false(holdings_have(rig.holdings, SLICE("d")));
    assert_int_equal(owner(&rig), rig.other->session);
    other_does(&rig, OP_GIVE);
    order(&rig, HOLDING_TAKE);
    await(&rig, true, rig.inner->session);
    rig_end(&rig);
}

/* Takes it, and gives it away while the nth transaction is refused; whether the store has it as ours still. */
static bool give_fails(struct rig *rig, int nth)
{
    order(rig, HOLDING_TAKE);
    await(rig, true, rig->inner->session);
    store_faulty_set(rig->store, FAULTY_APPLY, nth, false, STATUS_FULL);
    order(rig, HOLDING_GIVE);
    for (int i = 0; i < TURNS_MAX && holdings_have(rig->holdings, SLICE("d")); i++)
        turn(rig);
    await_answers(rig, 0);
    store_faulty_set(rig->store, FAULTY_APPLY, 0, false, STATUS_FULL);
    return owner(rig) != 0;
}

/* The store refuses to take it back: the engine has nothing of it any more, and it is given away when the next look shows it. */
static void what_could_not_be_given_is_given_later(void **state)
{
    struct rig rig;
    int nth = 1; /* the engine may have something to write first */
    (void)state;
    rig_begin(&rig);
    while (!give_fails(&rig, nth))
        assert_true(++nth < 20);
    assert_int_equal(owner(&rig), rig.inner->session);
    for (int i = 0; i < TURNS_MAX && owner(&rig) != 0; i++) { /* each look says so */
        order(&rig, HOLDING_OURS);
        assert_false(holdings_have(rig.holdings, SLICE("d")));
        turn(&rig);
    }
    await(&rig, false, 0);
    rig_end(&rig);
}

/* It is ours and cannot be read: nobody says that it is here before it is. */
static void what_could_not_be_read_is_read_later(void **state)
{
    struct rig rig;
    (void)state;
    rig_begin(&rig);
    store_faulty_set(rig.store, FAULTY_READ, 1, true, STATUS_IO);
    order(&rig, HOLDING_TAKE);
    for (int i = 0; i < TURNS_MAX && owner(&rig) != rig.inner->session; i++)
        turn(&rig);
    await_answers(&rig, 0);
    assert_false(holdings_have(rig.holdings, SLICE("d")));
    store_faulty_set(rig.store, FAULTY_READ, 0, false, STATUS_IO);
    for (int i = 0; i < TURNS_MAX && !holdings_have(rig.holdings, SLICE("d")); i++) {
        order(&rig, HOLDING_OURS);
        turn(&rig);
    }
    await(&rig, true, rig.inner->session);
    rig_end(&rig);
}

/* What passes by itself (a server that took too long, a statement that somebody cancelled) is asked again by itself. */
static void what_could_not_be_read_for_a_moment_is_asked_again(void **state)
{
    static const enum status statuses[] = { STATUS_AWAY, STATUS_BUSY, STATUS_FULL };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(statuses); i++) {
        struct rig rig;
        rig_begin(&rig);
        store_faulty_set(rig.store, FAULTY_READ, 1, true, statuses[i]);
        order(&rig, HOLDING_TAKE);
        for (int n = 0; n < TURNS_MAX && owner(&rig) != rig.inner->session; n++)
            turn(&rig);
        await_answers(&rig, 0);
        assert_false(holdings_have(rig.holdings, SLICE("d")));
        store_faulty_set(rig.store, FAULTY_READ, 0, false, statuses[i]);
        await(&rig, true, rig.inner->session);
        rig_end(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_taken_and_given_away),
        cmocka_unit_test(what_another_has_is_not_taken),
        cmocka_unit_test(what_could_not_be_given_is_given_later),
        cmocka_unit_test(what_could_not_be_read_is_read_later),
        cmocka_unit_test(what_could_not_be_read_for_a_moment_is_asked_again),
    };
    log_set_level(LOG_NONE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
