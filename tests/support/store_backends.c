#include "support/store_fixture.h"

#include "store/memory/memory.h"
#include "store/postgres/postgres.h"
#include "store/sqlite/sqlite.h"
#include "support/postgres_server.h"

#include <stdio.h>
#include <stdlib.h>

static enum status memory_open(struct store_place *place, const struct store_settings *settings, struct store **ret_store,
                               struct error *err)
{
    (void)place;
    return store_memory_open(SLICE(""), settings, ret_store, err);
}

static enum status memory_join(struct store_place *place, struct store *store, const struct store_settings *settings,
                               struct store **ret_store, struct error *err)
{
    (void)place;
    return store_memory_join(store, settings, ret_store, err);
}

static enum status sqlite_open(struct store_place *place, const struct store_settings *settings, struct store **ret_store,
                               struct error *err)
{
    char path[sizeof place->folder + sizeof "/store.db"];
    if (folder_make(place->folder) != 0) {
        place->folder[0] = '\0';
        return error_set(err, STATUS_IO, "no folder for a test can be made");
    }
    snprintf(path, sizeof path, "%s/store.db", place->folder);
    return store_sqlite_open(slice_from(path), settings, ret_store, err);
}

static enum status postgres_join(struct store_place *place, struct store *store, const struct store_settings *settings,
                                 struct store **ret_store, struct error *err)
{
    (void)store;
    struct store_settings here = *settings;
    here.node_place = SLICE("this process");
    return store_postgres_open(slice_from(place->address), &here, ret_store, err);
}

static enum status postgres_open(struct store_place *place, const struct store_settings *settings, struct store **ret_store,
                                 struct error *err)
{
    struct store_settings here = *settings;
    here.node_place = SLICE("this process");
    postgres_server_schema(place->address);
    return store_postgres_open(slice_from(place->address), &here, ret_store, err);
}

const struct store_under_test stores_under_test[] = {
    { "memory", memory_open, 3000, memory_join, false, NULL },
    { "sqlite", sqlite_open, 600, NULL, false, NULL },
    { "postgres", postgres_open, 300, postgres_join, true, postgres_server_missing },
};

const size_t stores_under_test_count = sizeof stores_under_test / sizeof *stores_under_test;
