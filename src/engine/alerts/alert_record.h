/*
 * alert_record.h - one alert as it is saved and sent: the engine writes it, the API shows it as it is.
 *
 * Its name begins with the time it was raised, so that a space of the store's, read from its
 * end, gives the newest first. Active ones and those that are over have a space each.
 */
#ifndef ENGINE_ALERTS_ALERT_RECORD_H
#define ENGINE_ALERTS_ALERT_RECORD_H

#include "base/arena.h"
#include "base/json.h"
#include "config/checks.h"
#include "core/alerting/alert.h"
#include "engine/incidents/incident_record.h"

#define SPACE_ALERT SLICE("alert")
#define SPACE_ALERT_CLEARED SLICE("alert_cleared")
#define SPACE_DEAD_ACKED SLICE("dead_acked") /* how many dead letters somebody has acknowledged, by destination */
#define SPACE_ALERT_AGE SLICE("alert_age") /* how old jobs are on average, by destination */

enum {
    ALERT_NAME_BYTES_MAX = 32,
    /* A stamp, name, destination, and eight digits for a tenant. */
    ALERT_ID_BYTES = INSTANT_STAMP_BYTES + 1 + ALERT_NAME_BYTES_MAX + 1 + DESTINATION_NAME_BYTES_MAX + 9 + 1,
    ALERT_RECORD_BYTES_MAX = 8 * 1024,
};

/* Slices borrow. Empty: none. */
struct alert_record {
    struct slice id;
    enum alert_kind kind;
    struct slice destination, tenant, reason, incident;
    struct alert_state state;
    double value, limit;
    instant cleared_at; /* INSTANT_NONE: it stands */
    instant acked_at;   /* INSTANT_NONE: nobody has acknowledged it */
    struct slice acked_by, note; /* of that */
};

void alert_id(enum alert_kind kind, instant at, struct slice destination, struct slice tenant, char ret_id[ALERT_ID_BYTES]);

/* The time that its id begins with, which may be later than when it was raised. INSTANT_NONE: it begins otherwise. */
instant alert_id_at(struct slice id);

/* One object; `step` is what its summary tells. */
void alert_record_write(struct json_writer *json, const struct alert_record *record, enum alert_step step);
void alert_record_summary(const struct alert_record *record, enum alert_step step, struct buffer *out);
/* Texts are put into `memory`. STATUS_INVALID: not a record, or of a kind that is not known; STATUS_NO_MEMORY. */
enum status alert_record_read(struct slice id, struct slice text, struct arena *memory,
                              struct alert_record *ret_record) MUST_CHECK;

#endif
