#include "engine/saved/waits.h"

#include <assert.h>

void saved_waits_changed(struct saved_waits *waits)
{
    waits->changes++;
}

static void answer(struct saved_wait *wait, const struct error *error)
{
    wait->next = NULL;
    wait->error = *error;
    wait->done(wait); /* perhaps it is gone now */
}

/* Nothing is on its way that could bring the change: only a stop gives up so. */
static struct error given_up(const struct error *result)
{
    struct error error = *result;
    if (error.status == STATUS_OK)
        error_set(&error, STATUS_IO, "the daemon is stopping, and the store refused it before");
    return error;
}

void saved_waits_add(struct saved_waits *waits, struct saved_wait *wait, bool more)
{
    assert(waits->saved <= waits->changes);
    static const struct error good = { .status = STATUS_OK };
    struct saved_wait **last = &waits->first;
    wait->change = waits->changes;
    if (waits->saved >= wait->change) {
        answer(wait, &good);
        return;
    }
    if (waits->out == 0 && !more) {
        struct error error = given_up(&good);
        answer(wait, &error);
        return;
    }
    while (*last)
        last = &(*last)->next;
    wait->next = NULL;
    *last = wait;
}

void saved_waits_out(struct saved_waits *waits)
{
    waits->out++;
    assert(waits->out > 0);
}

void saved_waits_back(struct saved_waits *waits, uint64_t upto, const struct error *result, bool more)
{
    static const struct error good = { .status = STATUS_OK };
    struct saved_wait **link = &waits->first;
    struct error failure = given_up(result);
    assert(waits->out > 0 && upto <= waits->changes);
    waits->out--;
    if (result->status == STATUS_OK && upto > waits->saved)
        waits->saved = upto;
    while (*link) {
        struct saved_wait *wait = *link;
        bool is_saved = wait->change <= waits->saved;
        if (!is_saved && wait->change > upto && (waits->out > 0 || more)) {
            link = &wait->next;
            continue;
        }
        *link = wait->next;
        answer(wait, is_saved ? &good : &failure);
    }
}

void saved_waits_fail(struct saved_wait **first, const struct error *error)
{
    while (*first) {
        struct saved_wait *wait = *first;
        *first = wait->next;
        answer(wait, error);
    }
}
