/*
 * work.h - a batch under way: the jobs it knows of, as they were and as they are now.
 *
 * A batch goes in rounds. A round asks for everything that its operations need to know, in one trip; then they are applied
 * one after the other to what is in memory, where each sees what those before it did; then what has changed is written. An
 * operation that looks for jobs by their place (a claim, a promotion, orphans, a trim) begins a new round, in the same
 * transaction, if one before it may have moved some. So a batch does what it would do operation by operation, and most
 * batches are one round: two trips.
 */
#ifndef STORE_POSTGRES_WORK_H
#define STORE_POSTGRES_WORK_H

#include "store/digest.h"
#include "store/tally.h"
#include "store/postgres/handle.h"

struct postgres_entry {
    struct job before, job; /* as it was when the round began, or was inserted; and as it is */
    bool was, is;           /* whether it was there, and is */
    bool state_dirty, lease_dirty, body_dirty;
    bool made;      /* its id was made here: it is found by the number in it */
    bool inserted;  /* it was as it was inserted: `state` has no row of it */
    bool body_here; /* job.payload is set */
    bool claimed;   /* `place` is where its row of the queue is, as the server writes it */
    char place[POSTGRES_PLACE_BYTES];
    size_t body_bytes;
    unsigned char digest[JOB_DIGEST_BYTES_MAX];
    struct postgres_entry *next, *next_of_chain;
};

/* What claims of a lane may take, in order; the first of them has asked for all. */
struct postgres_candidates {
    struct postgres_entry **entries;
    size_t count;
    size_t max;   /* all of them together */
    int64_t lane; /* 0: it is not the first */
};

struct postgres_answer {
    PGresult *result;
    struct postgres_answer *next;
};

struct postgres_round {
    struct map by_seq, by_name, by_chain;
    struct postgres_entry *first, **last;
    struct postgres_candidates *claims; /* by the operation's place in the round */
    struct postgres_entry **due;
    size_t due_count;
    instant next_at;                   /* the first time that has not come */
    struct postgres_answer *answers;   /* texts of entries point into them */
    PGresult *orphans, *oldest_events, *owned; /* three of these */
    uint64_t low_mark;                         /* of what it asks */
    size_t begin, end;                 /* operations */
    struct arena memory;
};

/* One call of apply. Functions that take it return a failure of the whole transaction; refusals go to op->status. */
struct postgres_batch {
    struct postgres_store *store;
    instant now;
    struct arena *memory; /* results */
    struct postgres_round round;
    struct redrive_tally tally;
    bool begun; /* the transaction, at the server */
    bool wrote;
    bool trimmed; /* the trail: so lanes that nothing refers to any more may go */
    struct error *err;
};

enum status round_init(struct postgres_batch *batch, size_t begin, size_t end) MUST_CHECK;
void round_release(struct postgres_batch *batch);

/* The key of a name. */
void name_key(struct slice tenant, struct slice id, unsigned char ret_key[KEY_BYTES]);

/* NULL: it is not known in the round, or gone. */
struct postgres_entry *entry_by_seq(const struct postgres_round *round, int64_t seq);
struct postgres_entry *entry_by_name(const struct postgres_round *round, struct slice tenant, struct slice id);
/* A job of an answer, whose texts stay there; one that the round has already is that one. */
enum status entry_load(struct postgres_batch *batch, const PGresult *answer, int row,
                       struct postgres_entry **ret_entry) MUST_CHECK;
/* A new one, as it is in `job`; findable by its name if it was not made here. */
enum status entry_new(struct postgres_batch *batch, const struct job *job, bool made,
                      struct postgres_entry **ret_entry) MUST_CHECK;
enum status entry_name(struct postgres_batch *batch, struct postgres_entry *entry) MUST_CHECK;
/* One that is filled in, findable by its number. */
enum status entry_add(struct postgres_batch *batch, struct postgres_entry *entry) MUST_CHECK;

/*
 * Invariant 2. The one way a job changes: `after` NULL is a deleted one. Counts, and appends the event (EVENT_TYPE_NONE:
 * there is none).
 */
enum status entry_change(struct postgres_batch *batch, struct postgres_entry *entry, const struct job *after,
                         enum event_type type, struct slice data) MUST_CHECK;
/* events.c: appends to the chain; number, time and hash are filled in. `lane` 0: of none. */
enum status event_append(struct postgres_batch *batch, struct event *event, int64_t lane) MUST_CHECK;

/* A job of an answer, but for what names its lane; texts point into the answer. STATUS_CORRUPT. */
enum status job_decode(const PGresult *answer, int row, struct job *ret_job, struct error *err) MUST_CHECK;
/* Copies of all its texts, with the payload if it has one. */
enum status job_texts_copy(struct job *job, struct arena *memory) MUST_CHECK;

enum status batch_no_memory(struct postgres_batch *batch);

/* chain.c: the round knows of a job that may have a key. */
enum status chain_join(struct postgres_batch *batch, struct postgres_entry *entry) MUST_CHECK;
/* Whether a job of that chain has not ended; `chain` 0: none has. */
enum status chain_held(struct postgres_batch *batch, int64_t lane, int64_t chain, bool *ret_held) MUST_CHECK;
/* A job was changed: what that means for the next of its key. */
enum status chain_follow(struct postgres_batch *batch, const struct job *before, const struct job *after,
                         struct released *ret_released) MUST_CHECK;

/*
 * ask.c: the lanes that a batch names by their number; how many operations from `begin` on can be one round; then what they
 * need to know.
 */
enum status lanes_ask(struct postgres_batch *batch, const struct store_op *ops, size_t count) MUST_CHECK;
size_t round_plan(struct postgres_batch *batch, const struct store_op *ops, size_t begin, size_t count);
enum status round_ask(struct postgres_batch *batch, const struct store_op *ops) MUST_CHECK;
/* The bodies of large jobs, which were not asked for at once. */
enum status bodies_ask(struct postgres_batch *batch, struct postgres_entry **entries, size_t count) MUST_CHECK;
/* One statement, at once; its answer lives as long as the round. */
enum status answer_ask(struct postgres_batch *batch, enum postgres_statement statement, PGresult **ret_answer) MUST_CHECK;
enum status numbers_ask(struct postgres_batch *batch, enum postgres_statement which, struct postgres_block *block,
                        int64_t size) MUST_CHECK;

/* ops.c: one operation, in memory. */
enum status op_apply(struct postgres_batch *batch, struct store_op *op, size_t place) MUST_CHECK;

/* write.c: sends what the round has changed; then, at the end, what the batch has counted, its seal and the commit. */
enum status round_write(struct postgres_batch *batch) MUST_CHECK;
/* Sends what the batch has counted for redrives. */
enum status batch_tally(struct postgres_batch *batch) MUST_CHECK;
enum status batch_seal(struct postgres_batch *batch) MUST_CHECK;
/* Sends one statement of the batch with its parameters. */
enum status batch_send(struct postgres_batch *batch, enum postgres_statement statement) MUST_CHECK;
struct postgres_params *batch_params(struct postgres_batch *batch, enum postgres_statement statement);

#endif
