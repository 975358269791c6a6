/* What a node makes of its beats and of what it has read of the others, from the inside. */
#include "daemon/nodes.c"

#include "support/check.h"
#include "support/configs.h"
#include "support/line_server.h"

static enum status answers;

static enum status answers_beat(struct store *store, uint64_t config, struct error *err)
{
    (void)store;
    (void)config;
    return answers == STATUS_OK ? STATUS_OK : error_set(err, answers, "as the test says");
}

/* Who else is there is not what this is about. */
static enum status reads_nothing(struct store_reader *reader, struct arena *memory, struct session **ret_sessions,
                                 size_t *ret_count, struct error *err)
{
    (void)reader;
    (void)memory;
    (void)ret_sessions;
    (void)ret_count;
    return error_set(err, STATUS_AWAY, "as the test says");
}

static void on_fenced(void *context, const struct error *error)
{
    (void)error;
    ++*(int *)context;
}

/* Whatever becomes of those after it; and no longer, when others took it for dead. */
static void trust_lasts_from_the_last_beat_that_was_answered(void **state)
{
    static const struct store_ops ops = { .beat = answers_beat, .reader_sessions = reads_nothing };
    struct store store = { .ops = &ops, .session = 7 };
    struct store_reader reader = { .ops = &ops };
    int told = 0;
    struct nodes nodes = {
        .settings = { .store = &store, .on_fenced = on_fenced, .context = &told },
        .reader = &reader,
        .config = config_from(SLICE("destinations: { d: { transport: pull } }\n"), "test.yaml"),
        .trusted_until = INT64_MIN,
    };
    (void)state;
    pthread_mutex_init(&nodes.lock, NULL);
    ownership_init(&nodes.ownership, store.session);
    assert_false(nodes_trusted(&nodes));

    answers = STATUS_AWAY;
    beat(&nodes);
    assert_false(nodes_trusted(&nodes));

    answers = STATUS_OK;
    int64_t before = clock_boot_ms();
    beat(&nodes);
    int64_t after = clock_boot_ms(), until = atomic_load(&nodes.trusted_until);
    check(until >= before + OWNERSHIP_TRUST_MS && until <= after + OWNERSHIP_TRUST_MS, "until %lld ms after the beat",
          (long long)(until - before));

    answers = STATUS_AWAY;
    beat(&nodes);
    assert_int_equal(atomic_load(&nodes.trusted_until), until);

    answers = STATUS_FENCED;
    for (int beats = 0; beats < 2; beats++)
        beat(&nodes);
    assert_false(nodes_trusted(&nodes));
    assert_int_equal(told, 1);
    pthread_mutex_destroy(&nodes.lock);
    config_unref(nodes.config);
}

static atomic_int beats, pages;
static atomic_bool over;

static enum status counts_beats(struct store *store, uint64_t config, struct error *err)
{
    (void)store;
    (void)config;
    (void)err;
    atomic_fetch_add(&beats, 1);
    return STATUS_OK;
}

static int no_bell(struct store *store)
{
    (void)store;
    return -1;
}

/* Lanes of nobody's here, for as long as the test says. */
static enum status reads_lanes(struct store_reader *reader, int64_t after, size_t max, struct arena *memory,
                               struct lane **ret_lanes, size_t *ret_count, struct error *err)
{
    (void)reader;
    (void)err;
    *ret_count = atomic_load(&over) ? 0 : max;
    *ret_lanes = arena_alloc_array(memory, max, sizeof **ret_lanes);
    for (size_t i = 0; i < *ret_count; i++)
        (*ret_lanes)[i] = (struct lane){ .id = after + 1 + (int64_t)i, .destination = SLICE("d"), .tenant = SLICE("t") };
    atomic_fetch_add(&pages, 1);
    return STATUS_OK;
}

static const struct store_ops many_lanes = { .beat = counts_beats, .bell = no_bell, .reader_sessions = reads_nothing,
                                             .reader_lanes = reads_lanes };

/* However many lanes there are of which no bell rang, it beats while it looks at them, or others would take it for dead. */
static void a_look_at_all_lanes_holds_up_no_beat(void **state)
{
    struct store store = { .ops = &many_lanes, .session = 7 };
    struct store_reader reader = { .ops = &many_lanes };
    struct nodes nodes = {
        .settings = { .store = &store },
        .reader = &reader,
        .config = config_from(SLICE("destinations: { d: { transport: pull } }\n"), "test.yaml"),
        .trusted_until = INT64_MIN,
        .recall = true,
    };
    struct error err;
    (void)state;
    pthread_mutex_init(&nodes.lock, NULL);
    ownership_init(&nodes.ownership, store.session);
    nodes.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    assert_int_equal(holdings_new(NULL, NULL, NULL, &nodes.holdings, &err), STATUS_OK);
    assert_int_equal(pthread_create(&nodes.thread, NULL, nodes_main, &nodes), 0);
    for (int i = 0; i < 6000 && (atomic_load(&beats) < 3 || atomic_load(&pages) < 3); i++)
        sleep_ms(10);
    int beaten = atomic_load(&beats), looked = atomic_load(&pages);
    atomic_store(&over, true);
    atomic_store(&nodes.stopping, true);
    wake(&nodes);
    pthread_join(nodes.thread, NULL);
    check(beaten >= 3 && looked >= 3, "%d beats, %d pages", beaten, looked);
    holdings_free(nodes.holdings);
    close(nodes.wake_fd);
    pthread_mutex_destroy(&nodes.lock);
    config_unref(nodes.config);
}

/* What may have been missed while it looks is looked for again, from the first on. */
static void a_look_at_all_lanes_goes_to_the_end(void **state)
{
    struct store store = { .ops = &many_lanes, .session = 7 };
    struct store_reader reader = { .ops = &many_lanes };
    struct nodes nodes = { .settings = { .store = &store }, .reader = &reader, .recall = true };
    struct error err;
    (void)state;
    assert_int_equal(holdings_new(NULL, NULL, NULL, &nodes.holdings, &err), STATUS_OK);
    atomic_store(&over, false);
    atomic_store(&pages, 0);
    for (int i = 1; i <= 3; i++) {
        assert_true(recalls(&nodes));
        recall(&nodes);
        assert_int_equal(nodes.recalled.to, i * STORE_PAGE_MAX);
    }
    nodes.recall = true;
    atomic_store(&over, true);
    recall(&nodes);
    assert_true(recalls(&nodes) && !nodes.recalled.on);
    atomic_store(&over, false);
    recall(&nodes);
    assert_int_equal(nodes.recalled.to, STORE_PAGE_MAX);
    atomic_store(&over, true);
    recall(&nodes);
    assert_false(recalls(&nodes));
    holdings_free(nodes.holdings);
}

/* What the store says is this node's, and it has not taken up or has just lost, is not passed on to itself. */
static void a_call_goes_to_another_or_waits(void **state)
{
    static const struct {
        const char *destination, *url;
        int64_t session;
        enum owner owner;
    } rows[] = {
        { "a-ours", "http://a", 7, OWNER_UNKNOWN },
        { "b-theirs", "http://b", 8, OWNER_ELSEWHERE },
        { "c-nobodys", "", 0, OWNER_UNKNOWN },
    };
    struct view_row seen[COUNT_OF(rows)];
    struct store store = { .session = 7 };
    struct nodes nodes = { .settings = { .store = &store }, .view = { .rows = seen, .count = COUNT_OF(rows) } };
    struct owner_place place;
    struct error err;
    (void)state;
    pthread_mutex_init(&nodes.lock, NULL);
    assert_int_equal(holdings_new(NULL, NULL, NULL, &nodes.holdings, &err), STATUS_OK);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        seen[i] = (struct view_row){ .destination = slice_from(rows[i].destination), .node = SLICE("n"),
                                     .url = slice_from(rows[i].url), .session = rows[i].session };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        check(nodes_owner(&nodes, slice_from(rows[i].destination), &place) == rows[i].owner, "%s", rows[i].destination);
        assert_string_equal(place.url, rows[i].owner == OWNER_ELSEWHERE ? rows[i].url : "");
    }
    assert_int_equal(nodes_owner(&nodes, SLICE("unheard"), &place), OWNER_HERE);
    holdings_free(nodes.holdings);
    pthread_mutex_destroy(&nodes.lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trust_lasts_from_the_last_beat_that_was_answered),
        cmocka_unit_test(a_look_at_all_lanes_holds_up_no_beat),
        cmocka_unit_test(a_look_at_all_lanes_goes_to_the_end),
        cmocka_unit_test(a_call_goes_to_another_or_waits),
    };
    log_set_level(LOG_NONE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
