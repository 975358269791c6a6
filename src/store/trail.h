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

#include "base/buffer.h"
#include "store/store.h"

/* OpenSSL 3 would rather have its EVP interface, which costs three times as much for inputs this small. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/crypto.h>
#include <openssl/sha.h>

enum {
    TRAIL_HEAD_BYTES = 48 + EVENT_HASH_BYTES * 2, /* "CHAIN.NUMBER:HASH" with its NUL */
    TRAIL_EXPECTED_MAX = 64,
    TRAIL_TRIMMED_BYTES = 200, /* the data of a trim's event */
    TRAIL_CHAINS_MAX = 64,     /* that are checked, and named, together */
    TRAIL_SALTS_AT_ONCE = 64,  /* drawn by one system call */
    EVENT_ID_BYTES = 44,
};

/* An event for people and clients: "NUMBER", or "CHAIN.NUMBER" where its chain is not the first. */
struct event_id {
    char text[EVENT_ID_BYTES];
};
struct event_id event_id(int64_t number);
/* The text may name the chain. STATUS_INVALID: it is no event's. */
enum status event_id_parse(struct slice text, int64_t *ret_number) MUST_CHECK;

/* A secret outside the store: an HMAC's two beginnings. */
struct trail_key {
    SHA256_CTX inner, outer;
};
void trail_key_init(struct trail_key *key, struct slice secret);

/* As event_chain; `key` NULL: as events without one. */
void trail_chain(const struct trail_key *key, const unsigned char before[EVENT_HASH_BYTES], struct event *event);

/* What a store seals its events with. It stays where it was begun. */
struct trail_seals {
    const struct trail_key *key; /* NULL: there is none */
    struct trail_key own_key;
    unsigned char salts[TRAIL_SALTS_AT_ONCE][EVENT_SALT_BYTES];
    size_t salts_left;
};
/* `secret` empty: there is no key. */
void trail_seals_begin(struct trail_seals *seals, struct slice secret);
/* Form, salt and hash of the event behind the one with that hash. STATUS_NO_MEMORY: there are no random numbers. */
enum status trail_seal(struct trail_seals *seals, const unsigned char before[EVENT_HASH_BYTES], struct event *event,
                       struct error *err) MUST_CHECK;

/* What is left of an event's data when that is erased; a digest of it. Not of EVENT_FORM_PLAIN. */
void trail_data_digest(const struct event *event, unsigned char ret_digest[EVENT_HASH_BYTES]);

void trail_head_format(const struct trail_head *head, char ret_text[TRAIL_HEAD_BYTES]);
/* "NUMBER:HASH", or of another chain than the first "CHAIN.NUMBER:HASH". */
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
/* The data of an event that names the heads of other chains: who cuts one off must rewrite all. */
void trail_heads_format(const struct trail_head *heads, size_t count, struct buffer *out);
/* The data of the event that a trim leaves: the newest that went. */
void trail_trimmed_format(const struct trail_head *newest, char ret_text[TRAIL_TRIMMED_BYTES]);
/*
 * The same where there are several chains: of each that was ever trimmed the newest that went, since an earlier event that
 * told of it may go with this one. `count` is at least 1.
 */
void trail_trims_format(const struct trail_head *newest, size_t count, struct buffer *out);

/* ---- a check, event by event ---- */

struct trail_check {
    const struct trail_key *key; /* NULL: none is known */
    const struct trail_head *expected;
    size_t expected_count;
    struct trail_head anchor; /* the newest that was trimmed; number 0: none */
    struct trail_head at;     /* how far it has come */
    struct trail_head told[TRAIL_CHAINS_MAX]; /* of each chain the newest that was trimmed, as events of trims tell */
    size_t told_count;
    int64_t first;
    int64_t forms[EVENT_FORM_COUNT]; /* how many of each */
    int64_t erased;
    int64_t broken;    /* the event that tells that the trail was not whole before it; 0: none */
    int64_t unchecked; /* expected heads that were trimmed since */
    struct trail_head heads[TRAIL_CHAINS_MAX]; /* of all chains, where there are several */
    size_t head_count;
    struct trail_head named[TRAIL_CHAINS_MAX]; /* of each other chain the newest that an event names */
    size_t named_count;
};

/* How many events it has seen, of all chains. */
int64_t trail_check_events(const struct trail_check *check);

/* From the anchor on; a number 0 with any hash is the beginning of all. */
void trail_check_begin(struct trail_check *check, const struct trail_key *key, const struct trail_head *anchor,
                       const struct trail_head *expected, size_t expected_count);
/* The next event. STATUS_CORRUPT: it is missing, or not what was written. STATUS_INVALID: its key is not known. */
enum status trail_check_event(struct trail_check *check, const struct event *event, struct error *err) MUST_CHECK;
/* `saved`: the head that the store has, number 0: none. STATUS_CORRUPT: the chain ends too early, or begins too late. */
enum status trail_check_end(struct trail_check *check, const struct trail_head *saved, struct error *err) MUST_CHECK;

/* Of all chains of a store: an event of one tells of the trims of others. `saved`: one a chain; NULL: none are known. */
enum status trail_checks_end(struct trail_check *checks, const struct trail_head *saved, size_t count,
                             struct error *err) MUST_CHECK;

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

/* Where a chain begins and ends, as the store says apart from its events. */
struct trail_frame {
    struct trail_head anchor; /* the newest that was trimmed; without one, the number before the first */
    struct trail_head saved;
};

/*
 * All chains of a store, the first of them first, and every head that one names of another. *ret_check is of the first
 * chain, with what was counted of all, and where all end.
 */
enum status trail_follow_all(struct store_reader *reader, const struct trail_reading *reading,
                             const struct trail_frame *frames, size_t count, struct trail_check *ret_check,
                             struct error *err) MUST_CHECK;

/* From the anchor to the last event of its chain that the reader finds, page by page. `saved` as of trail_check_end. */
enum status trail_follow(struct store_reader *reader, const struct trail_reading *reading, const struct trail_head *anchor,
                         const struct trail_head *saved, struct trail_check *ret_check, struct error *err) MUST_CHECK;

#endif
