/*
 * reads.h - reading the store without waiting for it: a thread with a reader of its own.
 *
 * Whoever must not wait hands over what is to be read as a function, and goes on. The function runs in the
 * thread, one after the other; `done` runs where the caller takes its mail. A long one reads in pieces and goes to the end
 * of the line after each, so that nobody waits for all of it.
 */
#ifndef NODE_READS_H
#define NODE_READS_H

#include "node/mailbox.h"
#include "store/store.h"

/* The owner fills the first part and does not touch it before `done`. */
struct store_read {
    struct message message; /* first: the way in and the way back */
    /* Touches nothing but the reader, and what nobody else does meanwhile: `memory`, and what this is part of. */
    enum status (*run)(struct store_read *read, struct store_reader *reader, struct error *err);
    void (*done)(struct store_read *read);
    bool cheap;               /* a few rows by an index: where the store is on this machine, not worth another thread */
    struct mailbox *reply_to; /* where `done` is to run */
    /* `run` sets this after a piece, to be called again in its turn; so many were read before. */
    bool more;
    size_t pieces;
    struct arena memory; /* of the answer; the owner releases it */
    enum status status;
    struct error error;
    struct reads *reads; /* the thread's */
};

/* Runs it here and now, all of it, and calls `done`. */
void store_read_run(struct store_read *read, struct store_reader *reader);

struct reads;

/* Opens a reader of the store and starts the thread. */
enum status reads_new(struct store *store, struct reads **ret_reads, struct error *err) MUST_CHECK;
/* Answers everything that was submitted before, ends the thread, closes the reader. */
void reads_free(struct reads *reads);
void reads_submit(struct reads *reads, struct store_read *read);

#endif
