#include "core/turns.h"

#include <assert.h>

void turns_init(struct turns *turns, int64_t batch)
{
    assert(batch > 0);
    *turns = (struct turns){ .batch = batch };
}

void turns_add(struct turns *turns, struct turn *turn)
{
    if (turn->next)
        return;
    turn->in_a_row = 0;
    if (!turns->front) {
        turns->front = turn->next = turn->previous = turn;
    } else {
        turn->next = turns->front;
        turn->previous = turns->front->previous;
        turn->previous->next = turn;
        turn->next->previous = turn;
    }
    turns->count++;
}

void turns_remove(struct turns *turns, struct turn *turn)
{
    if (!turn->next)
        return;
    if (turns->front == turn)
        turns->front = turn->next == turn ? NULL : turn->next;
    turn->previous->next = turn->next;
    turn->next->previous = turn->previous;
    turn->next = turn->previous = NULL;
    turns->count--;
}

struct turn *turns_front(const struct turns *turns, int64_t *ret_max)
{
    if (turns->front)
        *ret_max = turns->batch - turns->front->in_a_row;
    return turns->front;
}

void turns_took(struct turns *turns, int64_t count)
{
    struct turn *front = turns->front;
    assert(front && count > 0);
    front->in_a_row += count;
    assert(front->in_a_row <= turns->batch);
    if (front->in_a_row == turns->batch) {
        front->in_a_row = 0;
        turns->front = front->next;
    }
}
