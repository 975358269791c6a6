/*
 * room.h - the memory that clients may take between them: bodies that are not complete and answers that are not read.
 *
 * Who does not fit waits, in order. Small things have a part of their own, so that they do not wait behind large ones. What
 * is larger than its part fits when nothing else is in it. Pure.
 */
#ifndef API_HTTP_ROOM_H
#define API_HTTP_ROOM_H

#include <stdbool.h>
#include <stddef.h>

enum room_part { ROOM_SMALL, ROOM_LARGE, ROOM_PART_COUNT };

struct room_wait {
    struct room_wait *next, **link; /* link NULL: it does not wait */
    enum room_part part;
    size_t bytes;
};

struct room {
    size_t limit;
    size_t used[ROOM_PART_COUNT];
    struct room_wait *first[ROOM_PART_COUNT], **last[ROOM_PART_COUNT];
};

void room_init(struct room *room, size_t limit);

/* True: so many bytes are taken. Nobody overtakes who waits. */
bool room_take(struct room *room, enum room_part part, size_t bytes);
/* Whatever there is: what is there already is only counted. */
void room_take_anyway(struct room *room, enum room_part part, size_t bytes);
void room_give(struct room *room, enum room_part part, size_t bytes);

/* Waits for wait->bytes in wait->part. */
void room_wait_begin(struct room *room, struct room_wait *wait);
/* Does nothing where it does not wait. */
void room_wait_end(struct room *room, struct room_wait *wait);
/* Who has waited longest and fits now: it waits no more, and the bytes are taken. NULL: nobody. */
struct room_wait *room_next(struct room *room);
bool room_is_wanted(const struct room *room);

#endif
