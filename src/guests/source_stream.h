/*
 * source_stream.h - what is said to Redis about a stream and its consumer group.
 */
#ifndef GUESTS_SOURCE_STREAM_H
#define GUESTS_SOURCE_STREAM_H

#include "guests/source_entry.h"
#include "transport/broker/redis_client.h"

enum { STREAM_ID_BYTES = 48 }; /* of an entry */

struct stream {
    struct redis_client *client;
    const struct source_config *config;
    const char *consumer;
    char *rejected; /* the stream that takes what cannot be a job */
};

/* Entries of one answer, which they borrow from. */
struct stream_page {
    struct redisReply *reply;
    struct stream_entry *items;
    size_t count;
};
void stream_page_release(struct stream_page *page);

/* Connects, and makes the group if it is not there. */
enum status stream_open(struct stream *stream, struct error *err) MUST_CHECK;

/*
 * Up to `count` entries: those of this consumer that are pending behind `after`, or, with NULL, new ones, for which it waits
 * `block_ms` (0: not at all). STATUS_LIMIT: they are too long together, and the connection is closed.
 */
enum status stream_read(struct stream *stream, const char *after, int64_t count, int64_t block_ms,
                        struct stream_page *ret_page, struct error *err) MUST_CHECK;
/* What other consumers have left alone for claim_after becomes this one's; `gone` of it was deleted. */
enum status stream_claim(struct stream *stream, int64_t *ret_claimed, int64_t *ret_gone, struct error *err) MUST_CHECK;
/* These ids, one after the other with a zero behind each, are done with. */
enum status stream_ack(struct stream *stream, struct slice ids, size_t count, struct error *err) MUST_CHECK;
/*
 * The entry to the stream of the rejected, and done with, both or neither. Without fields it stays where it is, and is only
 * named there. STATUS_FULL: Redis does not take it now.
 */
enum status stream_reject(struct stream *stream, const struct stream_entry *entry, const struct problem *problem,
                          struct error *err) MUST_CHECK;
/* The id of the first entry of this consumer that is pending behind `after`; empty: none. */
enum status stream_pending(struct stream *stream, const char *after, char ret_id[STREAM_ID_BYTES],
                           struct error *err) MUST_CHECK;
/* How many are in the stream that the group has not read; negative: it does not say. */
enum status stream_lag(struct stream *stream, int64_t *ret_lag, struct error *err) MUST_CHECK;

#endif
