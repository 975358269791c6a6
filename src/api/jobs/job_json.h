/*
 * job_json.h - a job as JSON.
 */
#ifndef API_JOBS_JOB_JSON_H
#define API_JOBS_JOB_JSON_H

#include "base/json.h"
#include "config/config.h"
#include "store/store.h"

struct job_view {
    const struct destination_config *destination; /* NULL: not configured any more */
    const char *held_by;                          /* of the destination; NULL: not held */
    bool payload;                                 /* it was read, show it */
    bool attempts;                                /* show the events that tell of attempts */
    const struct event *events;                   /* of the job, oldest first */
    size_t event_count;
};

/* Members only, so that the caller can add his own to the object. */
void job_json_members(struct json_writer *json, const struct job *job, const struct job_view *view);
/* Writes the whole object. */
void job_json_write(struct json_writer *json, const struct job *job, const struct job_view *view);

#endif
