#include "api/http/room.h"

void room_init(struct room *room, size_t limit)
{
    *room = (struct room){ .limit = limit };
    for (int i = 0; i < ROOM_PART_COUNT; i++)
        room->last[i] = &room->first[i];
}

static bool fits(const struct room *room, enum room_part part, size_t bytes)
{
    size_t max = part == ROOM_SMALL ? room->limit / 4 : room->limit - room->limit / 4;
    return room->used[part] == 0 || (room->used[part] <= max && bytes <= max - room->used[part]);
}

bool room_take(struct room *room, enum room_part part, size_t bytes)
{
    if (room->first[part] || !fits(room, part, bytes))
        return false;
    room->used[part] += bytes;
    return true;
}

void room_take_anyway(struct room *room, enum room_part part, size_t bytes)
{
    room->used[part] += bytes;
}

void room_give(struct room *room, enum room_part part, size_t bytes)
{
    room->used[part] -= bytes;
}

void room_wait_begin(struct room *room, struct room_wait *wait)
{
    wait->next = NULL;
    wait->link = room->last[wait->part];
    *wait->link = wait;
    room->last[wait->part] = &wait->next;
}

void room_wait_end(struct room *room, struct room_wait *wait)
{
    if (!wait->link)
        return;
    *wait->link = wait->next;
    if (wait->next)
        wait->next->link = wait->link;
    else
        room->last[wait->part] = wait->link;
    wait->link = NULL;
}

struct room_wait *room_next(struct room *room)
{
    for (int part = 0; part < ROOM_PART_COUNT; part++) {
        struct room_wait *wait = room->first[part];
        if (!wait || !fits(room, wait->part, wait->bytes))
            continue;
        room_wait_end(room, wait);
        room->used[part] += wait->bytes;
        return wait;
    }
    return NULL;
}

bool room_is_wanted(const struct room *room)
{
    return room->first[ROOM_SMALL] || room->first[ROOM_LARGE];
}
