/*
 * move.h - all that a store has, moved to another, whatever their kinds.
 *
 * What is moved stands in pages of rows, the same for every kind of store: jobs in any state with their leases, events
 * with their hashes, counters, what the engine has saved, numbers that were given. Nothing is made anew, so that a chain of
 * events that held before holds behind it, and an id, a lease's token or a lane's number means the same.
 *
 * A page is written with a note of how far it goes, in one transaction. Who is interrupted goes on from there. As long as
 * that note is there nobody else can open the store. At the end both are read again, and compared row by row.
 */
#ifndef STORE_MOVE_H
#define STORE_MOVE_H

#include "base/arena.h"
#include "store/trail.h"

/* In the order in which they are moved. */
enum move_kind {
    MOVE_META,    /* the seed, and the greatest numbers that were given */
    MOVE_LANE,    /* with counters */
    MOVE_GONE,    /* what lanes that are no more have done at a destination */
    MOVE_JOB,     /* with payload, place and lease */
    MOVE_EVENT,
    MOVE_ARCHIVE, /* from the name of a job that is gone to its last event */
    MOVE_SAVED,
    MOVE_CHAIN,   /* where chains of events end, and what was trimmed of them */
    MOVE_KINDS
};

/* Columns that are looked at here; all of them stand beside the SQL of each kind of store, in the order of move_types. */
enum {
    MOVE_JOB_TENANT = 2,
    MOVE_JOB_ID = 3,
    MOVE_JOB_MADE = 4,
    MOVE_JOB_DIGEST = 5,
    MOVE_JOB_COLUMNS = 51,
    MOVE_ARCHIVE_TENANT = 1,
    MOVE_ARCHIVE_ID = 2,
    MOVE_COLUMNS_MAX = MOVE_JOB_COLUMNS,
    MOVE_PAGE_ROWS = 500,
    MOVE_PAGE_BYTES = 8 << 20, /* of a page, but for one row */
};

struct move_value {
    bool null;
    int64_t number;
    struct slice bytes; /* .data is never NULL */
};

struct move_page {
    size_t count;
    int columns;
    struct move_value *values; /* row after row */
};

struct move_kind_facts {
    const char *name; /* many of them, for people */
    const char *types; /* a letter a column: i number, t text, x bytes; large letters may be null */
    int keys; /* so many columns, the first, are its place in the order */
};
const struct move_kind_facts *move_kind_facts(enum move_kind kind);

/* As of store_ops.move. After the first `write` the store can be moved to, and be closed; what else it knew is not so. */
struct move_ops {
    bool one_chain; /* it has no place for events of nodes, which have a chain each */
    /* Rows behind the place that the first values of `after` name, NULL: from the first. At most a page. */
    enum status (*read)(struct store *store, enum move_kind kind, const struct move_value *after, struct arena *memory,
                        struct move_page *ret_page, struct error *err);
    enum status (*count)(struct store *store, enum move_kind kind, int64_t *ret_count, struct error *err);
    /* Adds rows, and saves `note` as SPACE_MOVE's, in one transaction that is durable when it returns. */
    enum status (*write)(struct store *store, enum move_kind kind, const struct move_page *page, struct slice note,
                         struct error *err);
    /* All is there: puts what follows from it in order, and takes the note away. */
    enum status (*end)(struct store *store, struct error *err);
};

/* The note, in a space of what is saved. */
#define SPACE_MOVE SLICE("move")
#define MOVE_NOTE SLICE("half done")

struct move {
    struct store *from, *to; /* opened for this, so that no daemon works there */
    const struct trail_key *key; /* of the events; NULL: none */
    /* How far it is: rows of that kind, of so many; NULL: nobody hears of it. */
    void (*progress)(void *context, bool compares, enum move_kind kind, int64_t done, int64_t all);
    void *context;
};

struct move_result {
    int64_t counts[MOVE_KINDS];
    bool resumed;
    bool complete; /* an earlier try had moved all of it: nothing was written */
    bool broken; /* the source's trail did not hold before; `why` says where */
    struct error why;
    struct trail_check check; /* of the target's trail, if it holds */
};

/*
 * Moves all of it, or what is left of an earlier try, which may be nothing. STATUS_CONFLICT: the target is not empty, or has
 * half of something else, or the source has. STATUS_CORRUPT: what is there behind it is not what was there before.
 * STATUS_UNSUPPORTED: such a store cannot be moved.
 */
enum status store_move(const struct move *move, struct move_result *ret_result, struct error *err) MUST_CHECK;

/* STATUS_CONFLICT: half of another store was moved there. */
enum status move_whole(struct store *store, struct error *err) MUST_CHECK;

#endif
