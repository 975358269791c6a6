/* The end of the chain: each event is numbered, salted and hashed, and goes into the page under way. */
#include "store/postgres/events.h"

#include "store/postgres/work.h"

#include <assert.h>
#include <string.h>

/* A row of this many bytes, and what its columns need besides, fits one of the server's own pages: a larger one is cut in
 * pieces. */
enum { PAGE_BYTES_MAX = 8000, EVENT_FIXED_BYTES = 3 * 12 + 2 * 4 + 2 + EVENT_HASH_BYTES };

static_assert(EVENT_TYPE_COUNT <= UINT8_MAX && STATE_COUNT <= UINT8_MAX, "a page has a byte for each");

static struct slice salt_of(const struct event *event)
{
    return (struct slice){ (const char *)event->salt, event->data.len > 0 ? EVENT_SALT_BYTES : 0 };
}

/* Whether the event can go in the page under way: all in a page are of one time, as a batch is, and of one destination. */
static bool page_takes(const struct postgres_params *page, const struct event *event, struct slice destination)
{
    assert(params_rows(page) > 0);
    size_t bytes = EVENT_FIXED_BYTES + event->job.len + salt_of(event).len + event->data.len;
    return params_size(page) + bytes <= PAGE_BYTES_MAX &&
           slice_equal(buffer_slice(&page->values[PAGE_DESTINATION]), destination);
}

static void page_begin(struct postgres_params *page, const struct event *event, struct slice destination)
{
    params_int(page, PAGE_FIRST, event->number);
    params_int(page, PAGE_AT, event->at);
    params_int(page, PAGE_FORM, (int64_t)event->form);
    params_bytes(page, PAGE_DESTINATION, destination);
}

static void byte_put(struct postgres_params *page, int column, int value)
{
    const char byte = (char)value;
    params_bytes(page, column, (struct slice){ &byte, 1 });
}

static void page_add(struct postgres_params *page, const struct event *event, int64_t lane)
{
    params_int(page, PAGE_LANES, lane);
    params_int(page, PAGE_ATTEMPTS, event->attempt);
    params_int(page, PAGE_PREVIOUS, event->previous);
    params_bytes(page, PAGE_JOBS, event->job);
    params_joined(page, PAGE_DATA, salt_of(event), event->data);
    byte_put(page, PAGE_TYPES, (int)event->type);
    byte_put(page, PAGE_STATES, (int)event->state);
    params_bytes(page, PAGE_HASHES, (struct slice){ (const char *)event->hash, EVENT_HASH_BYTES });
}

/* A page that is full, or is of another destination, is sent; what a round leaves goes with all else that it writes. */
static enum status event_put(struct postgres_batch *batch, const struct event *event, int64_t lane)
{
    assert(event->number > 0 && event->at == batch->now);
    struct slice destination = lane > 0 ? SLICE("") : event->destination;
    struct postgres_params *page = batch_params(batch, WRITE_EVENTS);
    if (params_rows(page) > 0 && !page_takes(page, event, destination)) {
        enum status status = batch_send(batch, WRITE_EVENTS);
        if (status != STATUS_OK)
            return status;
        page = batch_params(batch, WRITE_EVENTS);
    }
    if (params_rows(page) == 0)
        page_begin(page, event, destination);
    page_add(page, event, lane);
    return STATUS_OK;
}

enum status event_append(struct postgres_batch *batch, struct event *event, int64_t lane)
{
    assert(event->type > EVENT_TYPE_NONE && event->type < EVENT_TYPE_COUNT);
    struct postgres_store *store = batch->store;
    event->number = store->progress.event_last + 1;
    event->at = batch->now;
    enum status status = trail_seal(&store->seals, store->progress.event_hash, event, batch->err);
    if (status == STATUS_OK)
        status = event_put(batch, event, lane);
    if (status != STATUS_OK)
        return status;
    store->progress.event_last = event->number;
    memcpy(store->progress.event_hash, event->hash, EVENT_HASH_BYTES);
    batch->wrote = true;
    return STATUS_OK;
}
