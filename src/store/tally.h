/*
 * tally.h - what has become of the jobs that a redrive sent back, counted by the store itself.
 *
 * Each count is a note of SPACE_TALLY, named after the redrive, so that readers and trims need nothing of their own. A batch
 * gathers what it counts and writes it with its own transaction: whatever is killed when, the counts are those of the jobs.
 */
#ifndef STORE_TALLY_H
#define STORE_TALLY_H

#include "store/change.h"

#define SPACE_TALLY SLICE("tally")

enum { TALLY_NAME_BYTES = 96, TALLY_ROWS = 32 };

struct tally_row {
    char name[TALLY_NAME_BYTES]; /* "ID.delivered" */
    int64_t more;
};

struct redrive_tally {
    struct tally_row rows[TALLY_ROWS];
    size_t count;
};

/* Whether another change can be counted; if not, what is there must be written first. */
bool tally_has_room(const struct redrive_tally *tally);
/* Counts a change of a job; `before` or `after` may be NULL. */
void tally_note(struct redrive_tally *tally, const struct job *before, const struct job *after);

/* All counts of a redrive; 0 where there are none. */
enum status tally_read(struct store_reader *reader, struct slice redrive, int64_t ret_counts[REDRIVE_COUNTS],
                       struct error *err) MUST_CHECK;

#endif
