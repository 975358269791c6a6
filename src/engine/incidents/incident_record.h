/*
 * incident_record.h - one incident as it is saved: what the mode knows of it, and what it did to the jobs.
 *
 * The engine writes it (incidents.h), the API reads it. Its name sorts by time, so that a
 * space of the store's, read from its end, gives the newest first.
 */
#ifndef ENGINE_INCIDENTS_INCIDENT_RECORD_H
#define ENGINE_INCIDENTS_INCIDENT_RECORD_H

#include "base/arena.h"
#include "base/buffer.h"
#include "config/checks.h"
#include "core/outage/contingency.h"

#define SPACE_INCIDENT SLICE("incident")
#define SPACE_INCIDENT_LESSONS SLICE("incident_lessons") /* apart: people write these, the engine the rest */

enum {
    INCIDENT_ID_BYTES = INSTANT_STAMP_BYTES + 1 + DESTINATION_NAME_BYTES_MAX + 1,
    INCIDENT_CHANGES_MAX = 32,
    INCIDENT_CHANGES_FIRST = 8, /* of those the ones that stay however many follow */
    INCIDENT_RECORD_BYTES_MAX = 64 * 1024,
};

/* The jobs of a destination, as the store counted them. */
struct incident_stock {
    bool known;
    int64_t pending;   /* not ended: pending, waiting and running */
    int64_t completed; /* ever */
    int64_t dead;      /* now */
};

struct incident_change {
    instant at;
    enum mode mode; /* the new one */
    enum cause cause;
    enum criterion criterion;
};

/* Slices borrow. */
struct incident_record {
    struct slice destination;
    enum mode mode; /* MODE_NORMAL: it is over */
    struct slice reason;        /* what the operator said who entered contingency last; empty: nothing */
    struct slice health_reason; /* what the last failed health check saw; empty: none failed */
    struct incident incident;
    int64_t held_first, held; /* jobs that could have gone: when it began, and now or at its end */
    struct incident_stock first, last; /* `last` is known when it is over */
    struct incident_change changes[INCIDENT_CHANGES_MAX];
    size_t change_count;
    int64_t changes_left_out; /* after the first ones */
};

/* The stamp and the destination. */
void incident_id(instant entered_at, struct slice destination, char ret_id[INCIDENT_ID_BYTES]);

void incident_record_change(struct incident_record *record, struct incident_change change);

/* JSON, in at most INCIDENT_RECORD_BYTES_MAX. */
void incident_record_write(struct buffer *out, const struct incident_record *record);
/* Texts are put into `memory`. STATUS_INVALID: not a record; STATUS_NO_MEMORY. */
enum status incident_record_read(struct slice text, struct arena *memory, struct incident_record *ret_record) MUST_CHECK;

#endif
