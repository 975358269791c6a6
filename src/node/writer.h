/*
 * writer.h - group commit: the one thread that changes the store.
 *
 * Everything that arrived while the last transaction was being made durable goes into the
 * next one: one fsync for all, and only then is each caller answered (invariant 1).
 *
 * When the store fails (a sync, the disk), nothing more is accepted: every batch from then
 * on is answered with that failure, and `on_failure` is called once. The process must end.
 *
 * A store that is away (STATUS_AWAY) has not failed. The transaction in doubt is held and asked about until the store says
 * what became of it; then its batches are answered, as applied or with STATUS_AWAY: it did not happen. Meanwhile every other
 * batch is answered STATUS_AWAY at once. Nothing is repeated here: a lease or a wait that was decided
 * before is not right any more when the store is back, so whoever asked decides anew.
 */
#ifndef NODE_WRITER_H
#define NODE_WRITER_H

#include "base/histogram.h"
#include "node/mailbox.h"
#include "store/store.h"

/*
 * Operations that belong together; they share one transaction with whoever else is waiting. The
 * owner fills ops and count, inits memory, and gets it back in `done`, called by the owner's mailbox.
 */
struct batch {
    struct message message; /* first: the way in and the way back */
    struct store_op *ops;
    size_t count;
    struct arena memory; /* for the inputs */
    enum status status;  /* of the transaction; the ops have their own only when this is OK */
    struct error error;
    struct mailbox *reply_to;
    void (*done)(struct batch *batch);
    void *context;
    struct batch_group *group; /* the writer's: holds the results, shared by all batches of one transaction */
    struct batch *next_pending; /* the writer's */
    struct writer *writer;      /* the writer's */
};

/* What a transaction made ready, for the engine. */
struct lane_notice {
    int64_t lane;
    struct slice destination, tenant; /* empty when the lane must be known already */
    int64_t ready;            /* jobs more */
    int64_t dead;             /* dead letters more, or fewer */
    instant next_at; /* earliest time of jobs that wait; INSTANT_NONE: none */
};

struct notice {
    struct message message; /* first */
    struct lane_notice *lanes;
    size_t count;
    struct arena memory;
    void *context;
};

struct writer_settings {
    struct store *store;
    bool sync_always;
    instant (*now)(void *context);
    /* Called by the writer's thread. `on_notice` passes ownership of the notice: free it with notice_free. */
    void (*on_notice)(void *context, struct notice *notice);
    void (*on_failure)(void *context, const struct error *error);
    void *context;
};

struct writer;

/* Starts the thread. */
enum status writer_new(const struct writer_settings *settings, struct writer **ret_writer, struct error *err) MUST_CHECK;
/* Answers everything submitted before, syncs, ends the thread. */
void writer_free(struct writer *writer);

void writer_submit(struct writer *writer, struct batch *batch);
/* From now on nobody waits for a store that is away: what is in doubt is answered STATUS_AWAY, and the next start sees. */
void writer_wait_no_more(struct writer *writer);

/* What applied operations made ready at `now`; *ret_notice is NULL when that is nothing. */
enum status notice_of(const struct store_op *ops, size_t count, instant now, struct notice **ret_notice) MUST_CHECK;
void notice_free(struct notice *notice);

/* A batch with room for `ops_max` zeroed operations (count starts at 0); NULL when there is no memory. */
struct batch *batch_new(size_t ops_max, size_t memory_bytes_max);
/* Adds an operation that saves a note, or with an empty value forgets it; the texts are borrowed. There is room for it. */
void batch_save(struct batch *batch, struct slice space, struct slice name, struct slice value);
/* The results are freed with it. */
void batch_free(struct batch *batch);

/* Counted since the start; read from any thread. */
struct writer_figures {
    int64_t transactions, operations;
    bool busy;             /* a transaction is under way */
    bool away;             /* the store is, and one is in doubt */
    instant progressed_at; /* when the thread last began or ended one */
};
struct writer_figures writer_figures(const struct writer *writer);

/* Of each transaction: how long it took, and how many operations it had. A copy; from any thread. */
struct writer_measures {
    struct histogram commit_ns, operations;
};
extern const struct histogram_bounds measured_commit, measured_operations;
struct writer_measures writer_measures(struct writer *writer);

#endif
