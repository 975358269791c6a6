/*
 * disk.h - the store's files: their room, their places, their length.
 */
#ifndef STORE_SQLITE_DISK_H
#define STORE_SQLITE_DISK_H

#include "store/sqlite/handle.h"

/* ---- room.c ---- */

/* From now on this connection is given no piece of the log's index that has no blocks: SQLITE_FULL instead. */
enum status sqlite_room_guard(sqlite3 *db, struct error *err) MUST_CHECK;
/* From now on the index of the log gets its blocks ahead of use. */
void sqlite_room_begin(struct sqlite_store *store);
/* Whether the index has room for so many frames; it is made. False: the disk is full. */
bool sqlite_room_for(struct sqlite_store *store, int64_t frames);
/* Before it is opened: gives up the spare file where there is no room otherwise. */
void sqlite_room_release(const struct sqlite_store *store);
/* Once a minute: makes it again where there is. */
void sqlite_room_spare(struct sqlite_store *store, instant now);
/* SQLite's result: the whole log is synced where it stands. */
int sqlite_room_settle(struct sqlite_store *store) MUST_CHECK;

/* ---- vacuum.c ---- */

/* Once a second: gives back some free pages when little is written. A full disk is no failure. */
enum status sqlite_vacuum(struct sqlite_store *store, struct error *err) MUST_CHECK;
/* For some milliseconds: gives back free pages, of which there are `pages`, until so many are left. */
enum status sqlite_vacuum_slices(struct sqlite_store *store, int64_t pages, int64_t left, struct error *err) MUST_CHECK;

/* ---- watch.c ---- */

/* From now on the log and its index must stay the files they are. */
void sqlite_watch_begin(struct sqlite_store *store);
/* STATUS_IO: one of the store's files is not in its place, and nothing more may be acknowledged. */
enum status sqlite_watch_names(struct sqlite_store *store, struct error *err) MUST_CHECK;
/* The same, or its log is shorter than it was. */
enum status sqlite_watch(struct sqlite_store *store, struct error *err) MUST_CHECK;
enum status sqlite_store_tend(struct store *store, instant now, struct error *err);

/* ---- log.c ---- */

/* SQLite's result: the log is written back and cut. Who reads what was before is not waited for: SQLITE_BUSY. */
int sqlite_log_cut(sqlite3 *db) MUST_CHECK;
/* Makes the log longer when there is little left of it; before a batch. */
enum status sqlite_log_reserve(struct sqlite_store *store, struct error *err) MUST_CHECK;
/* From now on a commit writes the log in one piece where it may, and no frame before its place in the index is there. */
enum status sqlite_log_gather(struct sqlite_store *store, struct error *err) MUST_CHECK;

#endif
