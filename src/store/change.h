/*
 * change.h - what an operation does to a job: the job before, the job after, and the event that tells of it.
 *
 * Pure: no I/O, clock or allocation. Every backend finds the job, has it changed here, and puts it where it belongs now; so
 * they cannot disagree. Texts of the job after are those of the job before, of the operation, or of the change.
 *
 * Held here: invariant 2 (a state changes only along core/job.h's table, each change has its event) and invariant 3 (a
 * change to a running job carries its lease token).
 */
#ifndef STORE_CHANGE_H
#define STORE_CHANGE_H

#include "store/store.h"

enum { CHANGE_TEXT_BYTES = 640 };

/* What came of an operation besides the job after. */
struct change {
    enum event_type event; /* EVENT_TYPE_NONE: there is none */
    bool deleted;          /* there is no job after */
    int ready, dead;       /* of OP_PROMOTE: so many more in its lane */
    char text[CHANGE_TEXT_BYTES];
};

/* Whether there can be such a job at all. STATUS_INVALID. */
enum status change_insert_check(const struct op_insert *insert) MUST_CHECK;
/* A new job, but for its number, lane and names. */
void change_insert(const struct op_insert *insert, instant now, struct job *ret_job);
/* The same id once more, `digest` as it was when that came first. STATUS_CONFLICT: it is another job. STATUS_NO_MEMORY. */
enum status change_insert_again(struct op_insert *insert, const struct job *job, const unsigned char *digest,
                                struct arena *memory) MUST_CHECK;
/*
 * An id for the job of that number. Nobody else has it and nobody need look: it holds the time, the number, and bits that
 * only this installation's seed gives, so a caller cannot have chosen it before. STATUS_NO_MEMORY.
 */
enum status change_id_make(uint64_t seed, instant now, int64_t seq, struct arena *memory, struct slice *ret_id) MUST_CHECK;
/* The number that an id would hold if it was made so; 0: it was not. */
int64_t change_id_seq(struct slice id);
/*
 * Of OP_SETTLE and OP_EXTEND to the job of that seq; of the operations with an op_job to that of that name or seq.
 * `job` NULL: there is none. Anything but STATUS_OK is the operation's result, and the job is as it was.
 */
enum status change_apply(struct store_op *op, instant now, struct job *job, struct change *ret_change) MUST_CHECK;
/* Of OP_CLAIM to a ready job. STATUS_CORRUPT: nobody can claim one in its state. */
enum status change_claim(const struct op_claim *claim, instant now, int64_t token, int64_t session,
                         struct job *job) MUST_CHECK;
/* OP_PROMOTE begins: it has done nothing yet. */
void change_due_begin(struct op_promote *promote);
/* Of OP_PROMOTE to a job whose time, job_due, has come; counts it. A job that only gets ready changes in nothing else. */
void change_due(struct op_promote *promote, instant now, struct job *job, struct change *ret_change);

/* Whether it takes part in the order of its key: it has one, and has not ended. */
bool job_is_chained(const struct job *job);
/* What a change, which `before` and `after` show, means for the next of its key. `after` NULL: it was deleted. */
enum chain_news {
    CHAIN_SAME,
    CHAIN_NEXT, /* the first of those behind takes its place */
    CHAIN_GAP,  /* it was itself behind: the first after it, if there is one, has lost one before it */
};
enum chain_news change_chain(const struct job *before, const struct job *after);
/* Does that to the next: `ended` is what became of the one before it. */
void change_next(enum chain_news news, enum job_state ended, instant now, struct job *next, struct released *ret_released);

/* When time has something to do to the job; INSTANT_NONE: never. A running one is with whoever has the lease. */
instant job_due(const struct job *job);
bool lane_counts_possible(const struct lane_counts *counts);
/* What a change does to its lane's counters. `before` NULL: a new job; `after` NULL: a deleted one. */
void lane_counts_change(struct lane_counts *counts, const struct job *before, const struct job *after);
/* The same where they are one writer's part of it, which by itself may be anything. */
void lane_counts_shift(struct lane_counts *counts, const struct job *before, const struct job *after);
/* What a change counts in the redrive that has, or had, the job. */
enum redrive_count {
    REDRIVE_COUNT_NONE,
    REDRIVE_SENT_BACK,
    REDRIVE_DELIVERED,
    REDRIVE_DEAD_AGAIN,
    REDRIVE_UNDONE,
    REDRIVE_GONE, /* cancelled, or deleted */
    REDRIVE_COUNTS
};
enum redrive_count change_counted(const struct job *before, const struct job *after);
/* The id of the redrive that has the job; empty: none. */
struct slice redrive_id(const struct job *job);
/* The event of a job, but for its number, time and hash. */
struct event change_event(enum event_type type, const struct job *job, struct slice data);

#endif
