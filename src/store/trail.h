/*
 * trail.h - the chain of events: how an event is sealed, and how a chain is checked.
 *
 * An event's hash covers the one before and all that it tells. Its data goes in as a salted digest, so that the data can be
 * erased later, with the salt, and the chain still holds; nobody can guess the data from what is left. With a key that is
 * not in the store the hash is an HMAC: who has the store alone cannot make another chain that holds.
 *
 * What a chain cannot show by itself is where it ends and where it began. For the end there are heads, saved in the store,
 * in the log and by whoever notes one. For the beginning a trim leaves an event that tells what it took.
 */
#ifndef STORE_TRAIL_H
#define STORE_TRAIL_H

#include "store/store.h"

/* OpenSSL 3 would rather have its EVP interface, which costs three times as much for inputs this small. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/crypto.h>
#include <openssl/sha.h>

enum {
    TRAIL_HEAD_BYTES = 24 + EVENT_HASH_BYTES * 2, /* "NUMBER:HASH" with its NUL */
    TRAIL_EXPECTED_MAX = 64,
    TRAIL_TRIMMED_BYTES = 160, /* the data of a trim's event */
};

/* A secret outside the store: an HMAC's two beginnings. */
struct trail_key {
    SHA256_CTX inner, outer;
};
void trail_key_init(struct trail_key *key, struct slice secret);

/* As event_chain; `key` NULL: as events without one. */
void trail_chain(const struct trail_key *key, const unsigned char before[EVENT_HASH_BYTES], struct event *event);

void trail_head_format(const struct trail_head *head, char ret_text[TRAIL_HEAD_BYTES]);
/* "NUMBER:HASH", or with the chain's name before it, "CHAIN.NUMBER:HASH"; a store has one chain, without a name. */
enum status trail_head_parse(struct slice text, struct trail_head *ret_head, struct error *err) MUST_CHECK;
/* What a saved head carries so that it cannot be made without the key. */
void trail_head_mark(const struct trail_key *key, const struct trail_head *head, unsigned char ret_mark[EVENT_HASH_BYTES]);
/* STATUS_CORRUPT: it is not the mark that this head was kept with. */
enum status trail_mark_check(const struct trail_key *key, const struct trail_head *head,
                             const unsigned char mark[EVENT_HASH_BYTES], struct error *err) MUST_CHECK;

/* The text has 64 hexadecimal digits. */
bool trail_hash_parse(struct slice text, unsigned char ret_hash[EVENT_HASH_BYTES]) MUST_CHECK;

/* The data of the event that a store begins with when its trail does not end where it should. */
void trail_broken_format(const struct trail_head *saved, char ret_text[TRAIL_TRIMMED_BYTES]);
/* The data of the event that a trim leaves: the newest that went. */
void trail_trimmed_format(const struct trail_head *newest, char ret_text[TRAIL_TRIMMED_BYTES]);

/* ---- a check, event by event ---- */

struct trail_check {
    const struct trail_key *key; /* NULL: none is known */
    const struct trail_head *expected;
    size_t expected_count;
    struct trail_head anchor; /* the newest that was trimmed; number 0: none */
    struct trail_head at;     /* how far it has come */
    struct trail_head trimmed; /* as the newest event of a trim tells; number 0: none does */
    int64_t first;
    int64_t forms[EVENT_FORM_COUNT]; /* how many of each */
    int64_t erased;
    int64_t broken;    /* the event that tells that the trail was not whole before it; 0: none */
    int64_t unchecked; /* expected heads that were trimmed since */
};

/* From the anchor on; a number 0 with any hash is the beginning of all. */
void trail_check_begin(struct trail_check *check, const struct trail_key *key, const struct trail_head *anchor,
                       const struct trail_head *expected, size_t expected_count);
/* The next event. STATUS_CORRUPT: it is missing, or not what was written. STATUS_INVALID: its key is not known. */
enum status trail_check_event(struct trail_check *check, const struct event *event, struct error *err) MUST_CHECK;
/* `saved`: the head that the store has, number 0: none. STATUS_CORRUPT: the chain ends too early, or begins too late. */
enum status trail_check_end(struct trail_check *check, const struct trail_head *saved, struct error *err) MUST_CHECK;

/* ---- a whole chain ---- */

/* How a trail is to be followed; all of it may be left out. */
struct trail_reading {
    const struct trail_key *key;       /* the store's, if its events are under one */
    const struct trail_head *expected; /* events that were noted earlier */
    size_t expected_count;
    /* Called with the newest event that was trimmed, number 0: none; then with each event that was found to be right. */
    enum status (*begin)(void *context, const struct trail_head *anchor, struct error *err);
    enum status (*visit)(void *context, const struct event *event, struct error *err);
    void *context;
};

/* From the anchor to the last event that the reader finds, page by page. `saved` as of trail_check_end. */
enum status trail_follow(struct store_reader *reader, const struct trail_reading *reading, const struct trail_head *anchor,
                         const struct trail_head *saved, struct trail_check *ret_check, struct error *err) MUST_CHECK;

#endif
