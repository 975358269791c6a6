/*
 * redis_client.h - a connection to Redis for a thread of its own, which waits for answers and can be asked to stop.
 *
 * libcurl makes the connection and TLS as for every transport; hiredis writes commands and reads answers. Commands may be
 * said many at once and heard one after the other.
 */
#ifndef TRANSPORT_BROKER_REDIS_CLIENT_H
#define TRANSPORT_BROKER_REDIS_CLIENT_H

#include "config/config.h"

struct redisReply;

/* Where to, and as whom; texts live as long as they are used. What the url says of the login comes first. */
struct redis_place {
    const char *url, *username, *password, *proxy;
    struct tls_config tls;
};

enum { REDIS_ANSWER_BYTES_MAX = 64 << 20, REDIS_WORDS_MAX = 4096 };

struct redis_client;

enum status redis_client_new(struct redis_client **ret_client, struct error *err) MUST_CHECK;
void redis_client_free(struct redis_client *client); /* accepts NULL */

/* Connects, logs in and selects the database. STATUS_AWAY: it cannot be reached; STATUS_INVALID: it refuses. */
enum status redis_client_open(struct redis_client *client, const struct redis_place *place, int64_t timeout_ms,
                              struct error *err) MUST_CHECK;
void redis_client_close(struct redis_client *client);

/* One command behind those said before; it goes out when an answer is waited for. False: no memory. */
bool redis_client_say(struct redis_client *client, const struct slice *words, size_t count) MUST_CHECK;
/*
 * The next answer, to be freed with freeReplyObject; one that is an error is an answer, too. STATUS_AWAY: the connection is
 * lost, nothing came in time, or it was asked to stop; STATUS_LIMIT: the answer is too long. Then it is closed.
 */
enum status redis_client_hear(struct redis_client *client, int64_t timeout_ms, struct redisReply **ret_reply,
                              struct error *err) MUST_CHECK;
/* Both, for a command that is plain words. An answer that is an error is STATUS_INVALID. */
enum status redis_client_ask(struct redis_client *client, const char *const *words, int64_t timeout_ms,
                             struct redisReply **ret_reply, struct error *err) MUST_CHECK;

/* Sleeps; false: it was asked to stop. */
bool redis_client_sleep(struct redis_client *client, int64_t ms);
/* Likewise, until somebody wakes it, from any thread. */
void redis_client_rest(struct redis_client *client, int64_t ms);
void redis_client_wake(struct redis_client *client);
/* From any thread: what is under way ends, and everything after it at once. */
void redis_client_stop(struct redis_client *client);
bool redis_client_stopped(const struct redis_client *client);

#endif
