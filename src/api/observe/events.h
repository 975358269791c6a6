/*
 * events.h - the trail as the API shows it: which events are meant, and one of them as JSON.
 */
#ifndef API_OBSERVE_EVENTS_H
#define API_OBSERVE_EVENTS_H

#include "api/call/call.h"

/* Empty or 0 means any. Borrows from the call. */
struct event_filter {
    struct slice job, tenant, destination;
    uint32_t types; /* a bit a type */
};

/* From the query: job, tenant, destination, type (one or several with commas). False: answered already. */
bool event_filter_read(struct call *call, struct event_filter *ret_filter);
bool event_filter_takes(const struct event_filter *filter, const struct event *event);
/* Writes one object. */
void event_write(struct json_writer *json, const struct event *event);

#endif
