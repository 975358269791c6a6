#include "store/trail_place.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static int64_t chain_of(int64_t number)
{
    return number >> EVENT_CHAIN_SHIFT;
}

/* ---- as text ---- */

bool trail_place_parse(struct slice text, struct trail_place *ret_place)
{
    struct trail_place place = { 0 };
    while (text.len > 0) {
        size_t end = slice_find(text, '-');
        int64_t number;
        if (event_id_parse((struct slice){ text.data, end }, &number) != STATUS_OK || place.count == TRAIL_CHAINS_MAX ||
            (place.count > 0 && chain_of(number) <= chain_of(place.last[place.count - 1])) || end + 1 == text.len)
            return false;
        place.last[place.count++] = number;
        text = slice_from_offset(text, end < text.len ? end + 1 : end);
    }
    *ret_place = place;
    return true;
}

void trail_place_format(const struct trail_place *place, char ret_text[PLACE_BYTES])
{
    assert(place->count <= TRAIL_CHAINS_MAX);
    size_t used = 0;
    ret_text[0] = '\0';
    for (size_t i = 0; i < place->count && used < PLACE_BYTES - EVENT_ID_BYTES; i++)
        used += (size_t)snprintf(ret_text + used, PLACE_BYTES - used, "%s%s", i > 0 ? "-" : "",
                                 event_id(place->last[i]).text);
    if (place->count == 0)
        snprintf(ret_text, PLACE_BYTES, "0");
}

/* ---- numbers ---- */

int64_t trail_place_last(const struct trail_place *place, int64_t number)
{
    assert(place->count <= TRAIL_CHAINS_MAX);
    for (size_t i = 0; i < place->count; i++)
        if (chain_of(place->last[i]) == chain_of(number))
            return place->last[i];
    return chain_of(number) << EVENT_CHAIN_SHIFT;
}

void trail_place_advance(struct trail_place *place, int64_t number)
{
    assert(place->count <= TRAIL_CHAINS_MAX);
    size_t i = 0;
    while (i < place->count && chain_of(place->last[i]) < chain_of(number))
        i++;
    bool known = i < place->count && chain_of(place->last[i]) == chain_of(number);
    if (!known && place->count == TRAIL_CHAINS_MAX)
        return;
    if (!known)
        memmove(&place->last[i + 1], &place->last[i], (place->count++ - i) * sizeof place->last[0]);
    place->last[i] = number;
}

/* ---- events ---- */

/* Whether there are events behind that number. */
static enum status events_follow(struct store_reader *reader, int64_t after, bool *ret_more, struct error *err)
{
    struct arena memory = { 0 };
    struct event *events;
    size_t count = 0;
    enum status status = reader->ops->reader_events(reader, after, 1, &memory, &events, &count, err);
    *ret_more = count > 0;
    arena_release(&memory);
    return status;
}

enum status events_newest(struct store_reader *reader, int64_t low, int64_t *ret_newest, struct error *err)
{
    assert(low >= 0);
    int64_t step = 1, high;
    bool more = true;
    enum status status = events_follow(reader, low, &more, err);
    for (high = low; status == STATUS_OK && more && step < INT64_MAX / 4; step *= 2) {
        low = high;
        high = low + step;
        status = events_follow(reader, high, &more, err);
    }
    while (status == STATUS_OK && low < high) {
        int64_t middle = low + (high - low) / 2;
        status = events_follow(reader, middle, &more, err);
        if (more)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_newest = low;
    return status;
}

enum status trail_place_end(struct store_reader *reader, int64_t low, struct trail_place *ret_place, struct error *err)
{
    struct arena memory = { 0 };
    struct trail_head *heads;
    struct trail_place place = { 0 };
    size_t count = 0;
    enum status status;
    if (!reader->ops->reader_heads) {
        place.count = 1;
        status = events_newest(reader, low, &place.last[0], err);
    } else {
        status = reader->ops->reader_heads(reader, &memory, &heads, &count, err);
    }
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        trail_place_advance(&place, heads[i].number);
    arena_release(&memory);
    if (status == STATUS_OK)
        *ret_place = place;
    return status;
}

enum status trail_place_skip(struct store_reader *reader, struct trail_place *place, int64_t newest, int64_t *ret_skipped,
                       struct error *err)
{
    assert(newest > 0);
    struct trail_place end;
    bool behind = true;
    enum status status = STATUS_OK;
    *ret_skipped = 0;
    if (!reader->ops->reader_heads) /* one look where there is nothing to skip */
        status = events_follow(reader, trail_place_last(place, 0) + newest, &behind, err);
    if (status != STATUS_OK || !behind)
        return status;
    status = trail_place_end(reader, trail_place_last(place, 0) + newest, &end, err);
    for (size_t i = 0; i < end.count && status == STATUS_OK; i++) {
        int64_t last = trail_place_last(place, end.last[i]);
        if (end.last[i] - newest <= last)
            continue;
        *ret_skipped += end.last[i] - newest - last;
        trail_place_advance(place, end.last[i] - newest);
    }
    return status;
}

/* A chain's events, up to the first that is of another. */
struct stretch {
    struct event *events;
    size_t count, taken;
};

/*
 * What came after all ends were read is left for the next time: so whatever an event follows, in whichever chain, is among
 * those that were read.
 */
static enum status stretch_read(struct store_reader *reader, int64_t after, int64_t end, size_t max, struct arena *memory,
                                struct stretch *ret_stretch, struct error *err)
{
    assert(after < end);
    enum status status =
        reader->ops->reader_events(reader, after, max, memory, &ret_stretch->events, &ret_stretch->count, err);
    for (size_t i = 0; status == STATUS_OK && i < ret_stretch->count; i++)
        if (ret_stretch->events[i].number > end)
            ret_stretch->count = i;
    return status;
}

/* Clocks of nodes differ a little: what a job's event follows comes first, whatever time it says. */
static bool waits(const struct stretch *stretches, size_t count, const struct event *event)
{
    for (size_t i = 0; i < count; i++) {
        const struct stretch *at = &stretches[i];
        if (at->taken < at->count && chain_of(at->events[at->taken].number) == chain_of(event->previous))
            return event->previous >= at->events[at->taken].number;
    }
    return false;
}

/* The one whose next event is the oldest; of those of one time, the first chain's. NULL: none has any. */
static struct stretch *stretch_next(struct stretch *stretches, size_t count)
{
    assert(count <= TRAIL_CHAINS_MAX);
    struct stretch *best = NULL;
    for (size_t i = 0; i < count; i++) {
        struct stretch *at = &stretches[i];
        if (at->taken < at->count && (!best || at->events[at->taken].at < best->events[best->taken].at) &&
            !waits(stretches, count, &at->events[at->taken]))
            best = at;
    }
    return best;
}

enum status trail_place_read(struct store_reader *reader, const struct trail_place *place, size_t max, struct arena *memory,
                       struct event **ret_events, size_t *ret_count, struct error *err)
{
    struct stretch stretches[TRAIL_CHAINS_MAX] = { 0 }, *next;
    struct trail_place end;
    size_t count = 0;
    if (!reader->ops->reader_heads)
        return reader->ops->reader_events(reader, trail_place_last(place, 0), max, memory, ret_events, ret_count, err);
    enum status status = trail_place_end(reader, 0, &end, err);
    for (size_t i = 0; status == STATUS_OK && i < end.count; i++)
        if (end.last[i] > trail_place_last(place, end.last[i]))
            status = stretch_read(reader, trail_place_last(place, end.last[i]), end.last[i], max, memory, &stretches[i],
                                  err);
    struct event *events = status == STATUS_OK ? arena_alloc_array(memory, max, sizeof *events) : NULL;
    if (status == STATUS_OK && !events)
        status = error_set(err, STATUS_NO_MEMORY, "no memory for events");
    while (status == STATUS_OK && count < max && (next = stretch_next(stretches, end.count)))
        events[count++] = next->events[next->taken++];
    if (status != STATUS_OK)
        return status;
    *ret_events = events;
    *ret_count = count;
    return STATUS_OK;
}
