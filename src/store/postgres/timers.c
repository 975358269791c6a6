#include "store/postgres/timers.h"

#include <assert.h>

enum { LATE_MS = 5 * SECOND_MS, WHOLE_MS = MINUTE_MS };

static bool is_whole(const struct postgres_batch *batch)
{
    const struct postgres_progress *progress = &batch->store->progress;
    return progress->timers_mark != batch->round.low_mark || batch->now >= progress->timers_whole_at ||
           progress->timers_whole_at > instant_add(batch->now, WHOLE_MS); /* the clock was put back */
}

instant timers_begin_at(const struct postgres_batch *batch)
{
    return is_whole(batch) ? INSTANT_NONE : batch->store->progress.timers_low;
}

void timers_promoted(struct postgres_batch *batch, bool all)
{
    struct postgres_progress *progress = &batch->store->progress;
    assert(batch->now > LATE_MS);
    if (!all)
        return;
    if (is_whole(batch)) {
        progress->timers_whole_at = instant_add(batch->now, WHOLE_MS);
        progress->timers_mark = batch->round.low_mark;
    }
    progress->timers_low = batch->now - LATE_MS;
    assert(!is_whole(batch));
}

void timers_set(struct postgres_store *store, instant at)
{
    if (at != INSTANT_NONE && at < store->progress.timers_low)
        store->progress.timers_low = at;
}

void timers_forget(struct postgres_store *store)
{
    store->progress.timers_whole_at = 0;
}
