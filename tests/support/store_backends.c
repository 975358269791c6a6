#include "support/store_fixture.h"

#include "store/store_memory.h"

static enum status memory_open(struct store_place *place, const struct store_settings *settings, struct store **ret_store,
                               struct error *err)
{
    (void)place;
    return store_memory_open(SLICE(""), settings, ret_store, err);
}

const struct store_under_test stores_under_test[] = {
    { "memory", memory_open, 3000 },
};

const size_t stores_under_test_count = sizeof stores_under_test / sizeof *stores_under_test;
