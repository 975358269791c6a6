/*
 * turns.h - whose turn it is: round robin over the lanes of one destination.
 *
 * A lane that has work stands in the ring once; it may send up to `batch` jobs in a row and
 * then goes to the end. A tenant with work waits at most (active lanes x batch) dispatches
 * for its turn (invariant 7), however many jobs the others have. Constant work a turn.
 */
#ifndef CORE_TURNS_H
#define CORE_TURNS_H

#include "base/slice.h"

/* Lives inside the lane it stands for. */
struct turn {
    struct turn *next, *previous; /* NULL: not in the ring */
    int64_t in_a_row;             /* taken since it came to the front */
};

struct turns {
    struct turn *front;
    int64_t batch;
    size_t count;
};

void turns_init(struct turns *turns, int64_t batch);
/* At the end of the ring; a turn that is in it already stays where it is. */
void turns_add(struct turns *turns, struct turn *turn);
void turns_remove(struct turns *turns, struct turn *turn);

/* Who is next and how many it may take now; NULL when nobody has work. */
struct turn *turns_front(const struct turns *turns, int64_t *ret_max);
/* The front has taken `count`; after `batch` in a row the next one is front. */
void turns_took(struct turns *turns, int64_t count);

#endif
