/*
 * The memory store when the process has no memory left: its sources are compiled in once more, under other names
 * and with allocations that fail when told to.
 */
#include "support/scarce.h"

#define memory_beat scarce_memory_beat
#define memory_begin scarce_memory_begin
#define memory_fence scarce_memory_fence
#define memory_give scarce_memory_give
#define memory_owns scarce_memory_owns
#define memory_reader_sessions scarce_memory_reader_sessions
#define memory_reader_shards scarce_memory_reader_shards
#define memory_session_begin scarce_memory_session_begin
#define memory_session_end scarce_memory_session_end
#define memory_session_of scarce_memory_session_of
#define memory_sessions_free scarce_memory_sessions_free
#define memory_sessions_left scarce_memory_sessions_left
#define memory_shard_get scarce_memory_shard_get
#define memory_take scarce_memory_take
#define memory_text_put scarce_memory_text_put
#define memory_undo scarce_memory_undo
#define store_memory_join scarce_store_memory_join
#define memory_chain_next scarce_memory_chain_next
#define memory_clear scarce_memory_clear
#define memory_commit scarce_memory_commit
#define memory_event_add scarce_memory_event_add
#define memory_event_erase scarce_memory_event_erase
#define memory_event_find scarce_memory_event_find
#define memory_event_first scarce_memory_event_first
#define memory_event_previous scarce_memory_event_previous
#define memory_event_salt scarce_memory_event_salt
#define memory_job_add scarce_memory_job_add
#define memory_job_copy scarce_memory_job_copy
#define memory_job_become scarce_memory_job_become
#define memory_job_delete scarce_memory_job_delete
#define memory_job_find scarce_memory_job_find
#define memory_tenant_waiting scarce_memory_tenant_waiting
#define memory_lane_get scarce_memory_lane_get
#define memory_name_find scarce_memory_name_find
#define memory_reader scarce_memory_reader
#define memory_reader_ahead scarce_memory_reader_ahead
#define memory_reader_close scarce_memory_reader_close
#define memory_reader_saved scarce_memory_reader_saved
#define memory_reader_saved_list scarce_memory_reader_saved_list
#define memory_saved_get scarce_memory_saved_get
#define memory_reader_events scarce_memory_reader_events
#define memory_reader_history scarce_memory_reader_history
#define memory_reader_job scarce_memory_reader_job
#define memory_reader_job_seq scarce_memory_reader_job_seq
#define memory_reader_jobs scarce_memory_reader_jobs
#define memory_reader_lock scarce_memory_reader_lock
#define memory_reader_unlock scarce_memory_reader_unlock
#define memory_reader_lane scarce_memory_reader_lane
#define memory_reader_lanes scarce_memory_reader_lanes
#define memory_reader_totals scarce_memory_reader_totals
#define memory_rollback scarce_memory_rollback
#define memory_store_ops scarce_memory_store_ops
#define memory_text_set scarce_memory_text_set
#define names_add scarce_names_add
#define names_find scarce_names_find
#define names_init scarce_names_init
#define names_next scarce_names_next
#define names_pop scarce_names_pop
#define names_release scarce_names_release
#define names_remove scarce_names_remove
#define store_memory_backend scarce_store_memory_backend
#define store_memory_open scarce_store_memory_open
#define tree_add scarce_tree_add
#define tree_after scarce_tree_after
#define tree_before scarce_tree_before
#define tree_find scarce_tree_find
#define tree_first scarce_tree_first
#define tree_remove scarce_tree_remove

#include "store/memory/memory.c"
#include "store/memory/names.c"
#include "store/memory/nodes.c"
#include "store/memory/read.c"
#include "store/memory/state.c"
#include "store/memory/tree.c"

#include "support/store_cases.h"

static enum status scarce_open(struct store_place *place, const struct store_settings *settings, struct store **ret_store,
                               struct error *err)
{
    (void)place;
    return store_memory_open(SLICE(""), settings, ret_store, err);
}

static struct store_under_test scarce = { "scarce memory", scarce_open, 0, NULL, false, NULL };

static enum status try_with_few(struct store_fixture *f, struct store_op *ops, size_t count, size_t round)
{
    struct error err = { 0 };
    scarce_left = (long)round;
    enum status status = f->store->ops->apply(f->store, f->now, ops, count, &f->memory, &err);
    scarce_left = -1;
    assert_int_equal(status != STATUS_OK, err.text[0] != '\0');
    return status;
}

static void a_batch_without_memory_leaves_nothing(void **state)
{
    batch_fails_and_leaves_nothing(*state, try_with_few);
}

static void a_store_without_memory_does_not_open(void **state)
{
    (void)state;
    struct store_settings settings = { 0 };
    struct store *store = NULL;
    struct error err = { 0 };
    scarce_left = 0;
    assert_int_equal(store_memory_open(SLICE(""), &settings, &store, &err), STATUS_NO_MEMORY);
    scarce_left = -1;
    assert_null(store);
    assert_true(err.text[0] != '\0');
}

static void a_reader_without_memory_does_not_open(void **state)
{
    struct store_fixture *f = *state;
    struct store_reader *reader = NULL;
    struct error err = { 0 };
    scarce_left = 0;
    assert_int_equal(f->store->ops->reader(f->store, &reader, &err), STATUS_NO_MEMORY);
    scarce_left = -1;
    assert_null(reader);
}

/* Whoever does not get all of a batch gets no destination by it. */
static void a_destination_is_not_taken_without_memory(void **state)
{
    struct store_fixture *f = *state;
    struct error err = { 0 };
    struct shard *shards;
    size_t count = 1;
    enum status status = STATUS_NO_MEMORY;
    fixture_reopen(f, &(struct store_settings){ .node = SLICE("a") });
    f->shared = true;
    for (long round = 0; status != STATUS_OK; round++) {
        assert_true(round < 1000);
        assert_int_equal(f->store->ops->reader_shards(f->reader, &f->memory, &shards, &count, &err), STATUS_OK);
        assert_int_equal(count, 0);
        struct store_op ops[] = { { .kind = OP_TAKE, .own = { .destination = SLICE("d") } }, insert_op(f, "d", "t", "job"),
                                  { .kind = OP_TAKE, .own = { .destination = SLICE("") } } };
        status = try_with_few(f, ops, 3, (size_t)round);
    }
    assert_int_equal(f->store->ops->reader_shards(f->reader, &f->memory, &shards, &count, &err), STATUS_OK);
    assert_int_equal(count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_store_without_memory_does_not_open),
        cmocka_unit_test_prestate_setup_teardown(a_reader_without_memory_does_not_open, fixture_setup, fixture_teardown, &scarce),
        cmocka_unit_test_prestate_setup_teardown(a_destination_is_not_taken_without_memory, fixture_setup, fixture_teardown, &scarce),
        cmocka_unit_test_prestate_setup_teardown(a_batch_without_memory_leaves_nothing, fixture_setup, fixture_teardown, &scarce),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
