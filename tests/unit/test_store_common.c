/* What all stores share: keys, ids, digests, the chain, ranks, opening; and the store that fails on demand. */
#include "support/store_fixture.h"

#include "base/clock.h"
#include "store/inspect.h"
#include "store/memory/memory.h"
#include "support/store_faulty.h"

#include <stdio.h>
#include <string.h>

static void made_ids_are_ordered(void **state)
{
    (void)state;
    static const struct {
        instant at;
        uint64_t number;
    } rows[] = { { 0, 0 },  { 0, 1 },  { 0, 31 }, { 0, 32 },           { 0, UINT64_MAX },  { 1, 0 },
                 { 31, 7 }, { 32, 0 }, { 32, 1 }, { 1700000000000, 5 }, { 1700000000001, 4 }, { INSTANT_MAX, 0 } };
    char before[JOB_ID_MADE_BYTES + 1] = "";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char id[JOB_ID_MADE_BYTES + 1];
        job_id_make(rows[i].at, rows[i].number, id);
        assert_int_equal(strlen(id), JOB_ID_MADE_BYTES);
        assert_true(strcmp(before, id) < 0);
        assert_int_equal(strspn(id, "0123456789ABCDEFGHJKMNPQRSTVWXYZ"), JOB_ID_MADE_BYTES);
        memcpy(before, id, sizeof id);
    }
}

static void keys_of_made_ids_are_ordered(void **state)
{
    (void)state;
    uint64_t before = 0;
    for (uint64_t i = 1; i < 5000; i++) {
        char id[JOB_ID_MADE_BYTES + 1];
        job_id_make(1700000000000 + (instant)(i / 100), i, id);
        uint64_t key = job_key(SLICE("tenant"), slice_from(id));
        assert_true(key > before);
        assert_true(key <= INT64_MAX);
        before = key;
    }
}

static void keys_tell_names_apart(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        { "", "a" },  { "a", "" },  { "", "ab" }, { "a", "b" }, { "ab", "" }, { "", "A" },
        { "b", "a" }, { "", "\x01" }, { "t", "0000000000000000000000000!" }, { "t", "00000000000000000000000000x" },
    };
    enum { COUNT = sizeof names / sizeof *names };
    for (size_t i = 0; i < COUNT; i++) {
        uint64_t key = job_key(slice_from(names[i][0]), slice_from(names[i][1]));
        assert_true(key <= INT64_MAX);
        assert_true(key == job_key(slice_from(names[i][0]), slice_from(names[i][1])));
        for (size_t j = 0; j < i; j++)
            assert_true(key != job_key(slice_from(names[j][0]), slice_from(names[j][1])));
    }
    /* Looks like a made id but for one byte, a NUL among them: hashed like any other. */
    char id[JOB_ID_MADE_BYTES + 1];
    job_id_make(1, 1, id);
    uint64_t made = job_key(SLICE("t"), slice_from(id));
    id[3] = '\0';
    assert_true(job_key(SLICE("t"), (struct slice){ id, JOB_ID_MADE_BYTES }) != made);
    id[3] = 'I';
    assert_true(job_key(SLICE("t"), slice_from(id)) != job_key(SLICE("u"), slice_from(id)));
}

static void a_digest_is_of_what_is_sent(void **state)
{
    (void)state;
    const struct op_insert base = { .destination = SLICE("d"), .content_type = SLICE("ct"), .headers = SLICE("h"),
                                    .payload = SLICE("p") };
    struct op_insert rows[12];
    for (size_t i = 0; i < 12; i++)
        rows[i] = base;
    /* The first seven change nothing that the destination sees. */
    rows[1].tenant = SLICE("t");
    rows[2].id = SLICE("id");
    rows[3].priority = PRIORITY_CRITICAL;
    rows[4].run_at = 5;
    rows[5].deadline = 5;
    rows[6].metadata = SLICE("{}");
    rows[7].destination = SLICE("e");
    rows[8].content_type = SLICE("c");
    rows[8].headers = SLICE("th");
    rows[9].headers = SLICE("");
    rows[10].payload = (struct slice){ "p\0", 2 };
    rows[11].headers = SLICE("hp");
    rows[11].payload = SLICE("");
    unsigned char digests[12][16];
    for (size_t i = 0; i < 12; i++) {
        job_digest(&rows[i], digests[i]);
        for (size_t j = 0; j < i; j++)
            assert_int_equal(memcmp(digests[i], digests[j], 16) == 0, i < 7);
    }
}

static void the_chain_depends_on_everything(void **state)
{
    (void)state;
    static const unsigned char start[EVENT_HASH_BYTES];
    static const unsigned char other[EVENT_HASH_BYTES] = { 1 };
    const struct event base = { .number = 7,           .at = 1000,           .type = EVENT_TYPE_DEAD,
                                .state = STATE_DEAD,   .attempt = 3,         .destination = SLICE("d"),
                                .tenant = SLICE("t"),  .job = SLICE("j"),    .data = SLICE("{}"),
                                .previous = 6 };
    struct event rows[12];
    for (size_t i = 0; i < 12; i++)
        rows[i] = base;
    rows[2].number++;
    rows[3].at++;
    rows[4].type = EVENT_TYPE_EXPIRED;
    rows[5].state = STATE_PENDING;
    rows[6].attempt++;
    rows[7].destination = SLICE("dt");
    rows[7].tenant = SLICE("");
    rows[8].tenant = SLICE("tj");
    rows[8].job = SLICE("");
    rows[9].job = SLICE("J");
    rows[10].data = SLICE("{ }");
    rows[11].previous = 0;
    for (size_t i = 0; i < 12; i++) {
        event_chain(i == 1 ? other : start, &rows[i]);
        for (size_t j = 0; j < i; j++)
            assert_memory_not_equal(rows[i].hash, rows[j].hash, EVENT_HASH_BYTES);
    }
    struct event again = base;
    memset(again.hash, 0xff, sizeof again.hash); /* what is in there before does not matter */
    event_chain(start, &again);
    assert_memory_equal(again.hash, rows[0].hash, EVENT_HASH_BYTES);
}

static void ranks_age(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum priority first, second;
        int64_t second_later_ms; /* than the first */
        bool first_wins;
    } rows[] = {
        { "critical before normal", PRIORITY_CRITICAL, PRIORITY_NORMAL, -1, true },
        { "one class is one interval", PRIORITY_HIGH, PRIORITY_CRITICAL, HOUR_MS + 1, true },
        { "a fresh critical overtakes", PRIORITY_HIGH, PRIORITY_CRITICAL, HOUR_MS - 1, false },
        { "two classes are two", PRIORITY_NORMAL, PRIORITY_CRITICAL, 2 * HOUR_MS + 1, true },
        { "two classes are not one", PRIORITY_NORMAL, PRIORITY_CRITICAL, 2 * HOUR_MS - 1, false },
        { "equals by age", PRIORITY_NORMAL, PRIORITY_NORMAL, 1, true },
    };
    const instant start = 1700000000000;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t first = rank_of(rows[i].first, start, HOUR_MS);
        int64_t second = rank_of(rows[i].second, start + rows[i].second_later_ms, HOUR_MS);
        if ((first < second) != rows[i].first_wins)
            fail_msg("%s", rows[i].name);
    }
    assert_int_equal(rank_of(PRIORITY_NORMAL, 5, 0), rank_of(PRIORITY_CRITICAL, 5, 0));
}

static void event_types_have_names(void **state)
{
    (void)state;
    for (int i = 0; i < EVENT_TYPE_COUNT; i++) {
        assert_non_null(event_type_name((enum event_type)i));
        for (int j = 0; j < i; j++)
            assert_string_not_equal(event_type_name((enum event_type)i), event_type_name((enum event_type)j));
    }
}

static char opened[32];

static enum status place_open(struct slice place, const struct store_settings *settings, struct store **ret_store,
                              struct error *err)
{
    (void)settings;
    (void)ret_store;
    assert_true(place.len < sizeof opened);
    memcpy(opened, place.data, place.len);
    opened[place.len] = '\0';
    return error_set(err, STATUS_BUSY, "held");
}

static enum status place_look(struct slice place, struct store **ret_store, struct error *err)
{
    return place_open(place, NULL, ret_store, err);
}

static const struct store_backend place_backend = { .scheme = "place:", .open = place_open, .look = place_look };
static const struct store_backend *const backends[] = { &place_backend, &store_memory_backend, NULL };

static void an_address_finds_its_store(void **state)
{
    (void)state;
    struct store_settings settings = { 0 };
    struct store *store = NULL;
    struct error err = { 0 };
    assert_int_equal(store_open(backends, SLICE("memory:"), &settings, &store, &err), STATUS_OK);
    assert_string_equal(store->ops->name, "memory");
    store->ops->close(store);

    store = NULL;
    assert_int_equal(store_open(backends, SLICE("place:a/b:c"), &settings, &store, &err), STATUS_BUSY);
    assert_string_equal(opened, "a/b:c");
    assert_string_equal(err.text, "held");
    assert_null(store);
}

/* `--store FILE` needs no scheme, and what ends with the daemon is not looked for on a disk. */
static void a_store_is_looked_at_by_its_address(void **state)
{
    static const struct { const char *address, *place; } cases[] = {
        { "place:a/b", "a/b" }, { "a/b", "a/b" }, { "./place:a", "./place:a" }, { "other:a", "other:a" },
    };
    struct store *store = NULL;
    struct error err = { 0 };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(store_look(backends, slice_from(cases[i].address), &store, &err), STATUS_BUSY);
        assert_string_equal(opened, cases[i].place);
    }
    opened[0] = '\0';
    assert_int_equal(store_look(backends, SLICE("memory:"), &store, &err), STATUS_UNSUPPORTED);
    assert_string_equal(err.text, "a memory: store lives in the daemon, and nothing else can look at it");
    assert_string_equal(opened, "");
    assert_null(store);
}

/* Nobody who looks after a store asks which kind it is: what it cannot do it says. */
static void what_a_store_cannot_do_is_said(void **state)
{
    static const struct trail_reading plain;
    struct store_settings settings = { 0 };
    struct store *store = NULL;
    struct store_space space = { .bytes = 7, .log_bytes = 7, .free_bytes = 7 };
    struct store_facts facts;
    struct trail_check chain;
    struct error err = { 0 };
    (void)state;
    assert_int_equal(store_open(backends, SLICE("memory:"), &settings, &store, &err), STATUS_OK);
    assert_int_equal(store_space(store, &space, &err), STATUS_OK);
    assert_true(space.bytes == -1 && space.log_bytes == -1 && space.free_bytes == -1 && space.folder[0] == '\0');
    assert_int_equal(store_free_bytes(store), -1);
    assert_int_equal(store_facts(store, &facts, &err), STATUS_UNSUPPORTED);
    assert_int_equal(store_check(store, &err), STATUS_UNSUPPORTED);
    assert_int_equal(store_verify(store, &plain, &chain, &err), STATUS_UNSUPPORTED);
    assert_int_equal(store_backup(store, "nowhere", &facts, &err), STATUS_UNSUPPORTED);
    assert_string_equal(err.text, "not with this store: one of kind \"memory\" cannot be backed up");
    store->ops->close(store);
}

static instant its_clock(struct store *store)
{
    return store->newest_at;
}

static void the_clock_is_the_stores_where_it_has_one(void **state)
{
    static const struct store_ops ops = { .clock = its_clock }, none = { .name = "none" };
    struct store store = { .ops = &ops, .newest_at = 4711 };
    (void)state;
    assert_int_equal(store_now(&store), 4711);
    store.ops = &none;
    instant before = clock_now(), now = store_now(&store);
    assert_true(now >= before && now <= clock_now());
}

static void an_unknown_address_is_told(void **state)
{
    (void)state;
    static const char *const addresses[] = { "", "memory", "Memory:", "redis://x", "xplace:a", ":" };
    struct store_settings settings = { 0 };
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        struct store *store = NULL;
        struct error err = { 0 };
        assert_int_equal(store_open(backends, slice_from(addresses[i]), &settings, &store, &err), STATUS_UNSUPPORTED);
        assert_null(store);
        assert_non_null(strstr(err.text, addresses[i]));
        assert_non_null(strstr(err.text, "sqlite:"));
    }
}

static struct store *faulty_new(void)
{
    struct store_settings settings = { .pending_max = 10 };
    struct store *inner, *store;
    struct error err = { 0 };
    assert_int_equal(store_memory_open(SLICE(""), &settings, &inner, &err), STATUS_OK);
    assert_int_equal(store_faulty_wrap(inner, &store, &err), STATUS_OK);
    assert_true(store->seed == inner->seed);
    return store;
}

static enum status note(struct store *store, struct error *err)
{
    struct store_op op = { .kind = OP_NOTE, .data = SLICE("{}") };
    struct arena memory;
    arena_init(&memory, 4096);
    enum status status = store->ops->apply(store, 1, &op, 1, &memory, err);
    arena_release(&memory);
    return status;
}

static size_t events_in(struct store *store)
{
    struct store_reader *reader;
    struct event *events;
    struct error err = { 0 };
    struct arena memory;
    size_t count;
    arena_init(&memory, 1 << 20);
    assert_int_equal(store->ops->reader(store, &reader, &err), STATUS_OK);
    assert_int_equal(store->ops->reader_events(reader, 0, 100, &memory, &events, &count, &err), STATUS_OK);
    store->ops->reader_close(reader);
    arena_release(&memory);
    return count;
}

static void the_nth_call_fails(void **state)
{
    (void)state;
    static const struct {
        int64_t n;
        bool for_good;
        const char *result; /* of five calls */
    } rows[] = { { 0, false, "....." }, { 1, false, "x...." }, { 3, false, "..x.." }, { 3, true, "..xxx" },
                 { 5, true, "....x" },  { 6, true, "....." },  { 0, true, "....." },  { 1, true, "xxxxx" } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct store *store = faulty_new();
        struct error err = { 0 };
        assert_int_equal(note(store, &err), STATUS_OK); /* counted from when it is set */
        store_faulty_set(store, FAULTY_APPLY, rows[i].n, rows[i].for_good, STATUS_IO);
        store_faulty_set(store, FAULTY_SYNC, rows[i].n, rows[i].for_good, STATUS_FULL);
        size_t done = 1;
        for (size_t j = 0; j < 5; j++) {
            bool fails = rows[i].result[j] == 'x';
            err.text[0] = '\0';
            assert_int_equal(note(store, &err), fails ? STATUS_IO : STATUS_OK);
            assert_int_equal(err.text[0] != '\0', fails);
            assert_int_equal(store->ops->sync(store, &err), fails ? STATUS_FULL : STATUS_OK);
            done += !fails;
        }
        assert_int_equal(store_faulty_count(store, FAULTY_APPLY), 6);
        assert_int_equal(store_faulty_count(store, FAULTY_SYNC), 5);
        assert_int_equal(events_in(store), done); /* what failed did not happen */
        store->ops->close(store);
    }
}

static void every_read_can_fail(void **state)
{
    (void)state;
    struct store *store = faulty_new();
    const struct store_ops *ops = store->ops;
    struct store_reader *reader, *second;
    struct error err = { 0 };
    struct arena memory;
    struct job job, *jobs;
    struct event *events;
    struct lane *lanes;
    struct slice text;
    struct saved *saved;
    struct job_filter filter = { 0 };
    size_t count;
    int64_t next;
    arena_init(&memory, 1 << 20);
    assert_int_equal(ops->reader(store, &reader, &err), STATUS_OK);
    for (int fails = 0; fails < 2; fails++) {
        enum status good = fails ? STATUS_CORRUPT : STATUS_OK;
        enum status absent = fails ? STATUS_CORRUPT : STATUS_NOT_FOUND;
        store_faulty_set(store, FAULTY_READ, fails, true, STATUS_CORRUPT);
        assert_int_equal(ops->reader_job(reader, SLICE("t"), SLICE("j"), true, &memory, &job, &err), absent);
        assert_int_equal(ops->reader_job_seq(reader, 1, true, &memory, &job, &err), absent);
        assert_int_equal(ops->reader_jobs(reader, &filter, 9, true, &memory, &jobs, &count, &next, &err), good);
        assert_int_equal(ops->reader_events(reader, 0, 9, &memory, &events, &count, &err), good);
        assert_int_equal(ops->reader_history(reader, SLICE("t"), SLICE("j"), 9, &memory, &events, &count, &err), good);
        assert_int_equal(ops->reader_lanes(reader, 0, 9, &memory, &lanes, &count, &err), good);
        assert_int_equal(ops->reader_saved(reader, SPACE_DESTINATION, SLICE("d"), &memory, &text, &err), absent);
        assert_int_equal(ops->reader_saved_list(reader, SPACE_DESTINATION, SLICE(""), 9, &memory, &saved, &count, &err), good);
        assert_int_equal(ops->reader(store, &second, &err), good);
        if (!fails)
            ops->reader_close(second);
    }
    assert_int_equal(store_faulty_count(store, FAULTY_READ), 19);
    ops->reader_close(reader);
    ops->close(store);
    arena_release(&memory);
}

/* ---- Walking ---- */

enum { WALK_ROWS = 2 * STORE_PAGE_MAX };

static char walk_names[WALK_ROWS][8];

static enum status walk_lanes(struct store_reader *reader, int64_t after, size_t max, struct arena *memory,
                              struct lane **ret_lanes, size_t *ret_count, struct error *err)
{
    (void)reader, (void)err;
    *ret_count = 0;
    *ret_lanes = arena_alloc_array(memory, max, sizeof **ret_lanes);
    assert_non_null(*ret_lanes);
    while (*ret_count < max && after + (int64_t)*ret_count < WALK_ROWS) {
        (*ret_lanes)[*ret_count] = (struct lane){ .id = after + (int64_t)*ret_count + 1 };
        ++*ret_count;
    }
    return STATUS_OK;
}

static enum status walk_saved(struct store_reader *reader, struct slice space, struct slice before, size_t max,
                             struct arena *memory, struct saved **ret_saved, size_t *ret_count, struct error *err)
{
    (void)reader, (void)err;
    size_t from = 0;
    assert_true(slice_equal(space, SLICE("space")));
    while (before.len > 0 && !slice_equal(before, slice_from(walk_names[from++])))
        assert_true(from < WALK_ROWS);
    *ret_count = 0;
    *ret_saved = arena_alloc_array(memory, max, sizeof **ret_saved);
    assert_non_null(*ret_saved);
    while (*ret_count < max && from < WALK_ROWS)
        (*ret_saved)[(*ret_count)++] = (struct saved){ .name = arena_copy(memory, slice_from(walk_names[from++])) };
    return STATUS_OK;
}

struct walked {
    int64_t count, fails_at; /* 0: never */
};

static enum status visit(struct walked *walked)
{
    return ++walked->count == walked->fails_at ? STATUS_NO_MEMORY : STATUS_OK;
}

static enum status visit_lane(void *context, const struct lane *lane)
{
    assert_int_equal(lane->id, ((struct walked *)context)->count + 1);
    return visit(context);
}

static enum status visit_saved(void *context, const struct saved *saved)
{
    assert_true(slice_equal(saved->name, slice_from(walk_names[((struct walked *)context)->count])));
    return visit(context);
}

/* Every row once and in order over the ends of pages, until a visit says that it is enough. */
static void all_pages_are_walked(void **state)
{
    (void)state;
    static const int64_t fails[] = { 0, 1, STORE_PAGE_MAX, STORE_PAGE_MAX + 1, WALK_ROWS };
    const struct store_ops ops = { .reader_lanes = walk_lanes, .reader_saved_list = walk_saved };
    struct store_reader reader = { &ops };
    for (int i = 0; i < WALK_ROWS; i++)
        snprintf(walk_names[i], sizeof walk_names[i], "n%d", i);
    for (size_t i = 0; i < sizeof fails / sizeof *fails; i++) {
        struct walked lanes = { 0, fails[i] }, saved = { 0, fails[i] };
        struct error err = { 0 };
        enum status wanted = fails[i] ? STATUS_NO_MEMORY : STATUS_OK;
        assert_int_equal(store_each_lane(&reader, visit_lane, &lanes, &err), wanted);
        assert_int_equal(err.text[0] != '\0', fails[i] != 0);
        assert_int_equal(store_each_saved(&reader, SLICE("space"), visit_saved, &saved, &err), wanted);
        assert_int_equal(lanes.count, fails[i] ? fails[i] : WALK_ROWS);
        assert_int_equal(saved.count, lanes.count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(made_ids_are_ordered),
        cmocka_unit_test(keys_of_made_ids_are_ordered),
        cmocka_unit_test(keys_tell_names_apart),
        cmocka_unit_test(a_digest_is_of_what_is_sent),
        cmocka_unit_test(the_chain_depends_on_everything),
        cmocka_unit_test(ranks_age),
        cmocka_unit_test(event_types_have_names),
        cmocka_unit_test(an_address_finds_its_store),
        cmocka_unit_test(a_store_is_looked_at_by_its_address),
        cmocka_unit_test(what_a_store_cannot_do_is_said),
        cmocka_unit_test(the_clock_is_the_stores_where_it_has_one),
        cmocka_unit_test(an_unknown_address_is_told),
        cmocka_unit_test(the_nth_call_fails),
        cmocka_unit_test(every_read_can_fail),
        cmocka_unit_test(all_pages_are_walked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
