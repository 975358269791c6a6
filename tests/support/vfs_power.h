/*
 * vfs_power.h - a disk for SQLite that loses power, fills up and breaks.
 *
 * Wraps the default VFS. Of the database and its log it keeps two images: what a sync has made durable, and the writes
 * since then in order, cut at 512-byte sectors. A power cut leaves the durable image and any part of the rest. A
 * sync that fails drops what it should have written, as Linux does: it can still be read, and never gets to the disk.
 */
#ifndef SUPPORT_VFS_POWER_H
#define SUPPORT_VFS_POWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum power_call {
    POWER_WRITE,
    POWER_TRUNCATE,
    POWER_SYNC,
    POWER_DELETE,
    POWER_READ,
    POWER_OPEN,
    POWER_SHM_MAP,
    POWER_CALL_COUNT
};

/* What a cut leaves of the writes that were not synced. */
enum power_loss {
    POWER_LOSE_ALL,
    POWER_LOSE_NONE,
    POWER_LOSE_TORN,  /* the last write is half there */
    POWER_LOSE_FIRST, /* the oldest write is lost, the younger ones are there */
    POWER_LOSE_SOME,  /* any sectors, by chance */
    POWER_LOSS_COUNT
};

/* Registers it as the default VFS; the plain one comes back with power_off. Files are forgotten. */
void power_on(void);
void power_off(void);
/* For a moment: connections opened meanwhile are plain ones. */
void power_plain(bool plain);

/* A disk that may damage what is beside the bytes it writes: SQLite fills up the sector behind each commit. */
void power_unsafe(bool unsafe);

/* Where the disk itself has its memory from, for tests in which realloc fails; what it gives can be freed. */
void power_memory(void *(*source)(void *memory, size_t size));

/* Called before each write, truncation, sync and deletion. NULL: nobody. */
void power_watch(void (*watch)(enum power_call call, void *context), void *context);

/* Writes what a cut at this moment would leave of the files that start with `from`, as files that start with `to`. */
bool power_cut(const char *from, const char *to, enum power_loss loss, uint64_t chance);
/* A number that is equal for equal cuts. */
uint64_t power_cut_fingerprint(const char *from, enum power_loss loss, uint64_t chance);

/* From the `nth` (1, 2, ...) call of a kind on, it fails with `errno_value`; only that one when `once`. 0: no faults. */
void power_fail(enum power_call call, int nth, int errno_value, bool once);
/* No file can be made longer: such a write is short and fails for want of room. */
void power_full(bool full);
/* What a write that fails leaves of itself: half of it, unless said otherwise. */
enum power_rest {
    POWER_REST_HALF,
    POWER_REST_NOTHING,
    POWER_REST_ALMOST_ALL, /* but for the last byte */
};
void power_fail_leaves(enum power_rest rest);
/* Whether a fault has happened since the last ones were asked for. */
bool power_failed(void);

#endif
