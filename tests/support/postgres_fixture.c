#include "support/postgres_fixture.h"

#include "store/inspect.h"
#include "store/postgres/postgres.h"
#include "support/check.h"

#include <stdlib.h>

void must(enum status status, const struct error *err)
{
    if (status != STATUS_OK)
        fail_msg("%s: %s", status_name(status), err->text);
}

struct store *store_at(const char *address, const struct store_settings *settings)
{
    struct error err = { 0 };
    struct store *store = NULL;
    must(store_postgres_open(slice_from(address), settings, &store, &err), &err);
    return store;
}

struct store_fixture fixture_on(struct store *store)
{
    static const struct store_under_test postgres = { "postgres", NULL, 0, NULL, true, NULL };
    struct error err = { 0 };
    struct store_fixture f = { .backend = &postgres, .store = store, .now = (instant)FIXTURE_START * SECOND_MS };
    must(store->ops->reader(store, &f.reader, &err), &err);
    return f;
}

void fixture_drop(struct store_fixture *f)
{
    f->store->ops->reader_close(f->reader);
    f->store->ops->close(f->store);
    arena_release(&f->memory);
}

void fixture_close(struct store_fixture *f)
{
    fixture_audit(f);
    fixture_drop(f);
}

/* All in one batch, and all as it should be. */
void run_together(struct store_fixture *f, struct store_op *ops, size_t count)
{
    struct error err = { 0 };
    must(f->store->ops->apply(f->store, f->now, ops, count, &f->memory, &err), &err);
    for (size_t i = 0; i < count; i++)
        check(ops[i].status == STATUS_OK, "operation %zu: %s", i, status_name(ops[i].status));
}

int64_t number_of(const char *address, const char *sql)
{
    char text[64];
    postgres_server_run(address, sql, text, sizeof text);
    return strtoll(text, NULL, 10);
}

int64_t rows_of(const char *address, const char *table)
{
    char sql[80], first[24];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", table);
    postgres_server_run(address, sql, first, sizeof first);
    return strtoll(first, NULL, 10);
}

struct store_settings node_named(const char *name)
{
    struct store_settings settings = { .pending_max = 100000 };
    settings.node = slice_from(name);
    settings.node_url = SLICE("http://127.0.0.1:1");
    settings.node_place = SLICE("this process");
    settings.now = (instant)FIXTURE_START * SECOND_MS;
    return settings;
}

enum status open_named(const char *address, const char *name, struct error *err)
{
    const struct store_settings settings = node_named(name);
    struct store *store = NULL;
    enum status status = store_postgres_open(slice_from(address), &settings, &store, err);
    if (store)
        store->ops->close(store);
    return status;
}

void note_in(struct store_fixture *f, const char *data)
{
    struct store_op op = { .kind = OP_NOTE, .data = slice_from(data) };
    assert_run(f, &op, STATUS_OK);
}

enum status verify_at(const char *address, const struct trail_head *expected, size_t count, struct trail_check *ret_check,
                      struct error *err)
{
    struct store *outside;
    const struct trail_reading reading = { .expected = expected, .expected_count = count };
    must(store_postgres_backend.look(slice_from(address), &outside, err), err);
    enum status status = store_verify(outside, &reading, ret_check, err);
    outside->ops->close(outside);
    return status;
}

static void *apply_main(void *context)
{
    struct applying *applying = context;
    struct store_fixture *f = applying->f;
    applying->status = f->store->ops->apply(f->store, f->now, applying->ops, applying->count, &f->memory, &applying->err);
    return NULL;
}

void applying_begin(struct applying *applying, struct store_fixture *f, struct store_op *ops, size_t count)
{
    *applying = (struct applying){ .f = f, .ops = ops, .count = count };
    assert_int_equal(pthread_create(&applying->thread, NULL, apply_main, applying), 0);
}

void applying_end(struct applying *applying)
{
    assert_int_equal(pthread_join(applying->thread, NULL), 0);
}
