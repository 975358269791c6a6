/*
 * alert_book.h - the alerts that stand, and their way into the store.
 */
#ifndef ENGINE_ALERTS_ALERT_BOOK_H
#define ENGINE_ALERTS_ALERT_BOOK_H

#include "base/map.h"
#include "engine/alerts/alerts.h"

struct saved;

struct alert {
    struct alert_record record; /* its texts are its own */
    char id[ALERT_ID_BYTES];
    struct dest *dest; /* NULL: of the daemon */
    char *tenant, *reason, *key, *acked_by, *note;
    char incident[INCIDENT_ID_BYTES];
    enum alert_step step; /* that is to be written; ALERT_SAME: none */
    enum alert_step out;  /* on its way to the store */
    bool written;         /* the store has it, active */
    bool refused;         /* the store did not take its step, and the log says so */
    double saved_figure;   /* as the store has it, */
    instant saved_at;      /* since then */
    struct saved_wait *waits; /* who acknowledged it and is to hear that this is saved */
    struct alert *next;
};

struct alert_book {
    struct map by_key;
    struct alert *first; /* in the order in which they were raised */
    struct alert **last;
    size_t count, acked; /* all, and those that stand although somebody acknowledged them */
    size_t unwritten;   /* that have a step */
    instant id_at;      /* of the last one that was raised: no two have the same */
    uint64_t active;  /* as of a destination, for those of the daemon */
    int64_t stand[ALERT_KIND_COUNT]; /* likewise */
    bool full_reported;
};

/* Of whom an alert is: no destination means the daemon's. */
struct alert_subject {
    enum alert_kind kind;
    struct dest *dest;
    struct slice tenant; /* of kinds that are a tenant's */
    struct slice reason; /* taken when it is raised */
};

/* Judges it by what is read. False: not now, what was read is to be held for the next time. */
bool alert_read(struct engine *engine, const struct alert_subject *subject, const struct alert_reading *reading);
/* Ends all that stand of a destination that is not watched any more. */
void alerts_unwatch(struct engine *engine, struct dest *dest);
/* Whatever dead letters there are now are acknowledged. */
void dead_acked(struct dest *dest);
/* Writes that down; false: no memory, or no room. */
bool dead_acked_save(struct engine *engine, const struct dest *dest);
/* What an earlier process or another node has left: an alert that stands, and of which id the last one was that is over. */
enum status alert_restore(struct engine *engine, const struct saved *saved) MUST_CHECK;
void alerts_named_last(struct engine *engine, struct slice id);
void alert_age_restore(struct engine *engine, const struct saved *saved);
void dead_acked_restore(struct engine *engine, const struct saved *saved);
/* Whether the store has all of the destination's. */
bool alerts_written(const struct engine *engine, const struct dest *dest);
/* They are another's from now on. */
void alerts_forget(struct engine *engine, const struct dest *dest);
/* Puts what is new into the batch being filled. */
void alerts_write(struct engine *engine);
/* Deletes those that are over and were raised longer ago than the trail of events is retained. */
void alerts_trim(struct engine *engine);

#endif
