/*
 * incident_view.h - an incident as it is shown: the record, the jobs as they stand now, what was learned.
 */
#ifndef API_OPERATE_INCIDENT_VIEW_H
#define API_OPERATE_INCIDENT_VIEW_H

#include "base/json.h"
#include "config/config.h"
#include "engine/incidents/incident_record.h"

struct incident_view {
    struct slice id;
    struct incident_record record;
    struct incident_stock stock; /* at its end, or now while it lasts */
    bool confined; /* who asks acts for one tenant: figures of all tenants' jobs and what was learned are not shown */
    struct slice lessons, lessons_by; /* empty: none; not known who */
    instant lessons_at;
    const struct destination_config *config; /* for the report; NULL: not configured any more, or confined */
    instant now;
};

/* Leaves what a token that acts for one tenant may know of it; see call/confined.h. */
void incident_confine(struct incident_view *view);

/* Gives "contingency", "recovering" or "restored". */
const char *incident_state_name(const struct incident_view *view);
/* From the first sign to its end, or until now; a clock that was set back gives 0. */
int64_t incident_lasted_ms(const struct incident_view *view);
/* Jobs delivered since it began; negative: not known. */
int64_t incident_processed(const struct incident_view *view);

/* Half a sentence, for people: "too many sends failed and the breaker opened". */
const char *cause_words(enum cause cause, enum mode mode);
/* Gives such as "server errors"; NULL for CRITERION_NONE. */
const char *criterion_words(enum criterion criterion);

/* For people: "1h10m31s", without parts that matter to nobody. */
void append_span(struct buffer *out, int64_t ms);
/* Writes it as "2025-01-12 10:40:00Z". */
void append_moment(struct buffer *out, instant at);

/* What happened, in a few plain sentences. */
void incident_summary(struct buffer *out, const struct incident_view *view);
/* An object; `whole`: with the steps, the changes and the lessons. */
void incident_json(struct json_writer *json, const struct incident_view *view, bool whole);

#endif
