/*
 * incidents.h - the record of each contingency, written while it lasts.
 *
 * A destination has one incident at a time, from the entry into contingency to normal mode; a
 * relapse on the way back is part of it. Its name follows from when it began, so a restart goes on
 * with the same record. It is written with the change of mode that it tells of, at each step of the
 * ramp, and each minute when its figures have changed.
 *
 * Each text to write waits on a list of its own until a batch has room, so an incident that
 * ends while the store refuses is not lost to the next one.
 */
#ifndef ENGINE_INCIDENTS_INCIDENTS_H
#define ENGINE_INCIDENTS_INCIDENTS_H

#include "engine/incidents/incident_record.h"
#include "engine/saved/trim.h"

struct dest;
struct engine;
struct mode_change;
struct incident_note;

enum {
    INCIDENT_WRITE_EVERY_MS = 60 * 1000, /* while it lasts and nothing happens but its figures */
};

/* What a destination has of its incident. */
struct incident_state {
    struct incident_record record; /* .incident.entered_at INSTANT_NONE: there is none */
    char *reason;                  /* what record.reason borrows */
    bool dirty;                    /* something happened that is not on the list yet */
    bool counted;                  /* the store was asked for record.first */
    uint64_t written;              /* a hash of the text that was listed last */
    instant write_at;              /* when to look at the figures again */
    int64_t held_listed; /* held_max as it was listed last */
    struct incident_stock *asked; /* of the record, which the store is asked for; NULL: it is not */
};

/* Of the engine. */
struct incidents {
    struct incident_note *notes; /* to be written */
    struct saved_trim trim;
    struct incident_counts {
        struct question question; /* first */
        struct destination_total *totals; /* the answer, */
        size_t count;
    } counts;
};

void incident_init(struct incident_state *state);
void incident_release(struct incident_state *state);
/* The mode has changed. */
void incident_mode_changed(struct dest *dest, const struct mode_change *change);
/* A health check has failed; `reason` is a constant. */
void incident_check_failed(struct dest *dest, const char *reason);
/* After the destination's state was restored: goes on with the record, where there is one. STATUS_NO_MEMORY. */
enum status incident_restore(struct dest *dest, struct slice text) MUST_CHECK;
/* Whether all of it is on its way to the store, or there. */
bool incident_written(const struct engine *engine, const struct dest *dest);

/* Writes what has changed. Call it behind dests_save, so that both are in one batch. */
void incidents_save(struct engine *engine);
/* Deletes those that began longer ago than the trail of events is retained, with what was learned from them. */
void incidents_trim(struct engine *engine);
void incidents_release(struct engine *engine);

#endif
