#include "store/inspect.h"

#include <assert.h>

static enum status not_with(const struct store *store, const char *what, struct error *err)
{
    return error_set(err, STATUS_UNSUPPORTED, "not with this store: one of kind \"%s\" cannot %s", store->ops->name, what);
}

enum status store_space(struct store *store, struct store_space *ret_space, struct error *err)
{
    assert(ret_space);
    *ret_space = (struct store_space){ .bytes = -1, .log_bytes = -1, .free_bytes = -1 };
    return store->ops->space ? store->ops->space(store, ret_space, err) : STATUS_OK;
}

int64_t store_free_bytes(struct store *store)
{
    struct store_space space;
    return store_space(store, &space, NULL) == STATUS_OK ? space.free_bytes : -1;
}

enum status store_facts(struct store *store, struct store_facts *ret_facts, struct error *err)
{
    assert(ret_facts);
    return store->ops->facts ? store->ops->facts(store, ret_facts, err) : not_with(store, "tell of itself", err);
}

enum status store_check(struct store *store, struct error *err)
{
    return store->ops->check ? store->ops->check(store, err) : not_with(store, "be checked", err);
}

enum status store_verify(struct store *store, const struct trail_reading *reading, struct trail_check *ret_check,
                         struct error *err)
{
    assert(reading && ret_check);
    return store->ops->verify ? store->ops->verify(store, reading, ret_check, err) : not_with(store, "be verified", err);
}

enum status store_backup(struct store *store, const char *target, struct store_facts *ret_facts, struct error *err)
{
    assert(target[0] && ret_facts);
    return store->ops->backup ? store->ops->backup(store, target, ret_facts, err) : not_with(store, "be backed up", err);
}
