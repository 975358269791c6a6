/*
 * read.h - the readers' part of the memory store's table.
 */
#ifndef STORE_MEMORY_READ_H
#define STORE_MEMORY_READ_H

#include "store/memory/state.h"

struct memory_reader {
    struct store_reader reader; /* first */
    struct memory_store *store;
};

/* The lock is held from the one to the other, which ends every read, good or bad. */
struct memory_store *memory_reader_lock(struct store_reader *base);
enum status memory_reader_unlock(struct memory_store *store, enum status status, struct error *err);
enum status memory_reader(struct store *base, struct store_reader **ret_reader, struct error *err);
void memory_reader_close(struct store_reader *base);
enum status memory_reader_job(struct store_reader *base, struct slice tenant, struct slice id, bool with_payload,
                              struct arena *memory, struct job *ret_job, struct error *err);
enum status memory_reader_job_seq(struct store_reader *reader, int64_t seq, bool with_payload, struct arena *memory,
                                  struct job *ret_job, struct error *err);
enum status memory_reader_jobs(struct store_reader *base, const struct job_filter *filter, size_t max, bool with_payload,
                               struct arena *memory, struct job **ret_jobs, size_t *ret_count, int64_t *ret_next_seq,
                               struct error *err);
enum status memory_reader_events(struct store_reader *base, int64_t after, size_t max, struct arena *memory,
                                 struct event **ret_events, size_t *ret_count, struct error *err);
enum status memory_reader_history(struct store_reader *base, struct slice tenant, struct slice id, size_t max,
                                  struct arena *memory, struct event **ret_events, size_t *ret_count, struct error *err);
enum status memory_reader_lanes(struct store_reader *base, int64_t after, size_t max, struct arena *memory,
                                struct lane **ret_lanes, size_t *ret_count, struct error *err);
enum status memory_reader_lane(struct store_reader *base, struct slice destination, struct slice tenant,
                               struct arena *memory, struct lane *ret_lane, struct error *err);
enum status memory_reader_totals(struct store_reader *base, size_t largest_max, struct arena *memory,
                                 struct destination_total **ret_totals, size_t *ret_count, struct error *err);
enum status memory_reader_ahead(struct store_reader *base, int64_t lane, int64_t rank, int64_t seq, size_t max,
                                size_t *ret_count, struct error *err);
enum status memory_reader_saved(struct store_reader *base, struct slice space, struct slice name, struct arena *memory,
                               struct slice *ret_value, struct error *err);
enum status memory_reader_saved_list(struct store_reader *base, struct slice space, struct slice before, size_t max,
                                    struct arena *memory, struct saved **ret_saved, size_t *ret_count, struct error *err);

#endif
