/*
 * Gives free pages back to the file system. Jobs and events that go leave their pages to those that come; after a flood, or
 * when retention was made shorter, there are many more than will be used soon. They are given back slice by slice while
 * little is written, so that no batch waits for it for long. Files of older versions cannot: see ADR 38.
 */
#include "base/clock.h"
#include "store/sqlite/disk.h"

#include <assert.h>
#include <stdio.h>

enum {
    FREE_PAGES_SAVED = 2048, /* 8 MB, for the jobs to come */
    SLICE_PAGES = 256,       /* moved at once: some ten milliseconds */
    SLICES_MS = 50,          /* for how long slices follow each other in a look: what comes meanwhile waits */
    QUIET_EVENTS = 100,      /* since the last look, a second ago */
};

/* The log is written back, so that the file ends where its last page does; not while somebody reads what was before. */
static enum status file_cut(struct sqlite_store *store, struct error *err)
{
    assert(store->vacuum.uncut);
    int frames = 0, written = 0;
    int result = sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &frames, &written);
    store->vacuum.uncut = result != SQLITE_OK || frames != written;
    store->log.pages = result == SQLITE_OK && frames == written ? 0 : store->log.pages;
    if (result == SQLITE_OK || (result & 0xff) == SQLITE_FULL || (result & 0xff) == SQLITE_BUSY)
        return STATUS_OK;
    return sqlite_failure(store->db, result, "checkpoint", err);
}

enum status sqlite_vacuum_slices(struct sqlite_store *store, int64_t pages, int64_t left, struct error *err)
{
    assert(store->vacuum.can_shrink);
    char sql[64];
    snprintf(sql, sizeof sql, "PRAGMA incremental_vacuum(%d)", SLICE_PAGES);
    int64_t until_ns = clock_ticks_ns() + SLICES_MS * (int64_t)1000000;
    enum status status = STATUS_OK;
    store->vacuum.uncut = true;
    while (status == STATUS_OK && pages > left && clock_ticks_ns() < until_ns) {
        status = sqlite_log_reserve(store, err);
        if (status == STATUS_OK)
            status = sqlite_exec(store->db, sql, err);
        pages -= SLICE_PAGES;
    }
    store->base.tend_soon = store->base.tend_soon && status == STATUS_OK;
    return status == STATUS_FULL || status == STATUS_BUSY ? STATUS_OK : status;
}

enum status sqlite_vacuum(struct sqlite_store *store, struct error *err)
{
    int64_t events = store->progress.event_last - store->vacuum.event, pages = 0;
    assert(events >= 0 && sqlite3_get_autocommit(store->db));
    store->vacuum.event = store->progress.event_last;
    store->base.tend_soon = false;
    if (events > QUIET_EVENTS)
        return STATUS_OK;
    enum status status = sqlite_query_int64(store->db, "PRAGMA freelist_count", 0, &pages, err);
    bool many = status == STATUS_OK && pages > FREE_PAGES_SAVED + SLICE_PAGES && store->vacuum.can_shrink;
    store->base.tend_soon = many && events == 0;
    if (many)
        status = sqlite_vacuum_slices(store, pages, FREE_PAGES_SAVED + SLICE_PAGES, err);
    if (status == STATUS_OK && store->vacuum.uncut && (!many || store->log.pages >= store->log.checkpoint_pages))
        status = file_cut(store, err);
    return status;
}
