/*
 * handle.h - the store as it is open, and a batch under way.
 */
#ifndef STORE_POSTGRES_HANDLE_H
#define STORE_POSTGRES_HANDLE_H

#include "store/lane_table.h"
#include "store/postgres/link.h"
#include "store/trail.h"

enum {
    CHAIN_ID = 0, /* of one writer, whose events have the numbers that a store of one node gives them */
    SLOT = 0,
    SALTS_AT_ONCE = 64,
    SEQ_BLOCK = 4096, /* numbers that the sequence gives at once: as many as a batch can need */
    TOKEN_BLOCK = 1048576,
    KEY_BYTES = 16,
    KEY_ID_BYTES = 8, /* of these: of the id alone, so that jobs of one id lie together, whosever they are */
};

/* What moves with each transaction and goes back with it. */
struct postgres_progress {
    int64_t batch; /* the number of the last one that was sealed */
    int64_t event_last;
    unsigned char event_hash[EVENT_HASH_BYTES];
    int64_t trimmed_last;
    int64_t lane_last; /* the greatest number of a lane ever given */
};

/* Numbers taken from a sequence: the next, and how many are left. Those are never given back. */
struct postgres_block {
    int64_t next;
    int64_t left;
};

struct postgres_store {
    struct store base; /* first */
    struct store_settings settings;
    char *address, *place;
    bool is_writer; /* it was opened, and not only looked at */
    char *own_tenant;
    struct postgres_link link;
    int64_t term; /* of the connection: one of an earlier one seals nothing */
    struct lane_table lanes;
    struct postgres_progress progress, saved;
    struct postgres_block seqs, tokens;
    struct postgres_params params[POSTGRES_STATEMENTS]; /* of the writer's */
    struct trail_key key;                               /* if key_set */
    bool key_set;
    unsigned char salts[SALTS_AT_ONCE][EVENT_SALT_BYTES];
    size_t salts_left;
    bool in_doubt;        /* a batch was answered STATUS_AWAY, and nobody has asked yet */
    uint64_t round_mark;  /* of lanes, by the round under way */
    struct error failure; /* .status is not STATUS_OK: the store may not be used any more */
};

extern const struct store_ops postgres_store_ops;

enum status postgres_apply(struct store *base, instant now, struct store_op *ops, size_t count, struct arena *memory,
                           struct error *err);
enum status postgres_outcome(struct store *base, bool *ret_applied, struct error *err);
/* Connects the writer: the server is looked at, the chain taken over, statements prepared. */
enum status postgres_connect(struct postgres_store *store, bool first, struct error *err) MUST_CHECK;

#endif
