#include "support/store_look.h"

#include "store/sqlite/sqlite.h"

/* The question is asked between these two. */
static enum status begin(const char *path, struct store **ret_store, struct error *err)
{
    static const struct store_backend *const backends[] = { &store_sqlite_backend, NULL };
    return store_look(backends, slice_from(path), ret_store, err);
}

static enum status end(struct store *store, enum status status)
{
    store->ops->close(store);
    return status;
}

enum status look_facts(const char *path, struct store_facts *ret_facts, struct error *err)
{
    struct store *store;
    enum status status = begin(path, &store, err);
    return status == STATUS_OK ? end(store, store_facts(store, ret_facts, err)) : status;
}

enum status look_check(const char *path, struct error *err)
{
    struct store *store;
    enum status status = begin(path, &store, err);
    return status == STATUS_OK ? end(store, store_check(store, err)) : status;
}

enum status look_verify(const char *path, const struct trail_reading *reading, struct trail_check *ret_check,
                        struct error *err)
{
    static const struct trail_reading plain;
    struct store *store;
    enum status status = begin(path, &store, err);
    return status == STATUS_OK ? end(store, store_verify(store, reading ? reading : &plain, ret_check, err)) : status;
}

enum status look_backup(const char *path, const char *target, struct store_facts *ret_facts, struct error *err)
{
    struct store *store;
    enum status status = begin(path, &store, err);
    return status == STATUS_OK ? end(store, store_backup(store, target, ret_facts, err)) : status;
}

enum status look_reader(const char *path, struct store_reader **ret_reader, struct error *err)
{
    struct store *store;
    enum status status = begin(path, &store, err);
    return status == STATUS_OK ? end(store, store->ops->reader(store, ret_reader, err)) : status;
}
