#include "store/sqlite/held.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    HELD_ROWS = 2048, /* a power of two; jobs are claimed nearly in order, so few fall into one place */
    HELD_TEXT_BYTES = 256, /* a row with longer texts is read from the store */
};

struct sqlite_held {
    struct sqlite_row row;
    int64_t era; /* it is there in this one only; 0: never */
    char texts[HELD_TEXT_BYTES];
};

enum status sqlite_held_init(struct sqlite_store *store, struct error *err)
{
    assert(!store->held.rows);
    store->held.rows = calloc(HELD_ROWS, sizeof *store->held.rows);
    store->held.era = 1;
    return store->held.rows ? STATUS_OK : error_set(err, STATUS_NO_MEMORY, "no memory for the rows of running jobs");
}

void sqlite_held_release(struct sqlite_store *store)
{
    free(store->held.rows);
}

static struct sqlite_held *place_of(const struct sqlite_store *store, int64_t seq)
{
    return &store->held.rows[seq & (HELD_ROWS - 1)];
}

/* Moves a text behind those already in `texts`; false: it does not fit. */
static bool text_take(struct slice *text, char texts[HELD_TEXT_BYTES], size_t *used)
{
    assert(*used <= HELD_TEXT_BYTES);
    if (text->len > HELD_TEXT_BYTES - *used)
        return false;
    if (text->len > 0)
        memcpy(texts + *used, text->data, text->len);
    *used += text->len;
    return true;
}

void sqlite_held_put(struct sqlite_store *store, const struct sqlite_row *row)
{
    struct sqlite_held *held = place_of(store, row->job.seq);
    struct sqlite_row copy = *row;
    struct slice *const texts[] = { &copy.job.id, &copy.job.last_code, &copy.job.last_error, &copy.job.dead_code,
                                    &copy.job.reference, &copy.job.redrive, &copy.job.lease_owner };
    struct slice *const absent[] = { &copy.job.content_type, &copy.job.headers, &copy.job.correlation_id,
                                     &copy.job.metadata, &copy.job.key, &copy.job.callback, &copy.job.payload };
    char bytes[HELD_TEXT_BYTES]; /* first here: the texts may be those of the same place */
    size_t used = 0;
    bool fits = true;
    assert(row->job.state == STATE_RUNNING && !row->job.ready);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0] && fits; i++)
        fits = text_take(texts[i], bytes, &used);
    held->era = 0;
    if (!fits)
        return;
    memcpy(held->texts, bytes, used);
    const char *next = held->texts;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        texts[i]->data = next;
        next += texts[i]->len;
    }
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++)
        *absent[i] = SLICE("");
    held->row = copy;
    held->era = store->held.era;
}

void sqlite_held_remove(struct sqlite_store *store, int64_t seq)
{
    struct sqlite_held *held = place_of(store, seq);
    if (held->row.job.seq == seq)
        held->era = 0;
}

void sqlite_held_clear(struct sqlite_store *store)
{
    assert(store->held.era > 0);
    store->held.era++;
}

const struct sqlite_row *sqlite_held_find(const struct sqlite_store *store, int64_t seq)
{
    const struct sqlite_held *held = place_of(store, seq);
    return held->era == store->held.era && held->row.job.seq == seq ? &held->row : NULL;
}
