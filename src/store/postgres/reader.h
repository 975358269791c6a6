/*
 * reader.h - connections that only read: the readers' half of the table.
 */
#ifndef STORE_POSTGRES_READER_H
#define STORE_POSTGRES_READER_H

#include "store/store.h"

enum status postgres_reader_open(struct store *store, struct store_reader **ret_reader, struct error *err);
void postgres_reader_close(struct store_reader *base);
enum status postgres_reader_job(struct store_reader *base, struct slice tenant, struct slice id, bool with_payload,
                                struct arena *memory, struct job *ret_job, struct error *err);
enum status postgres_reader_job_seq(struct store_reader *base, int64_t seq, bool with_payload, struct arena *memory,
                                    struct job *ret_job, struct error *err);
enum status postgres_reader_jobs(struct store_reader *base, const struct job_filter *filter, size_t max, bool with_payload,
                                 struct arena *memory, struct job **ret_jobs, size_t *ret_count, int64_t *ret_next_seq,
                                 struct error *err);
enum status postgres_reader_events(struct store_reader *base, int64_t after, size_t max, struct arena *memory,
                                   struct event **ret_events, size_t *ret_count, struct error *err);
enum status postgres_reader_history(struct store_reader *base, struct slice tenant, struct slice id, size_t max,
                                    struct arena *memory, struct event **ret_events, size_t *ret_count, struct error *err);
enum status postgres_reader_lanes(struct store_reader *base, int64_t after, size_t max, struct arena *memory,
                                  struct lane **ret_lanes, size_t *ret_count, struct error *err);
enum status postgres_reader_lane(struct store_reader *base, struct slice destination, struct slice tenant,
                                 struct arena *memory, struct lane *ret_lane, struct error *err);
enum status postgres_reader_totals(struct store_reader *base, size_t largest_max, struct arena *memory,
                                   struct destination_total **ret_totals, size_t *ret_count, struct error *err);
enum status postgres_reader_ahead(struct store_reader *base, int64_t lane, int64_t rank, int64_t seq, size_t max,
                                  size_t *ret_count, struct error *err);
enum status postgres_reader_saved(struct store_reader *base, struct slice space, struct slice name, struct arena *memory,
                                  struct slice *ret_value, struct error *err);
enum status postgres_reader_saved_list(struct store_reader *base, struct slice space, struct slice before, size_t max,
                                       struct arena *memory, struct saved **ret_saved, size_t *ret_count, struct error *err);
enum status postgres_reader_heads(struct store_reader *reader, struct arena *memory, struct trail_head **ret_heads,
                                  size_t *ret_count, struct error *err);
enum status postgres_reader_sessions(struct store_reader *base, struct arena *memory, struct session **ret_sessions,
                                     size_t *ret_count, struct error *err);
enum status postgres_reader_shards(struct store_reader *base, struct arena *memory, struct shard **ret_shards,
                                   size_t *ret_count, struct error *err);

#endif
