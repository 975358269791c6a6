/*
 * confined.h - what a token that acts for one tenant may know of what all tenants share.
 *
 * Of a destination: its name and description, its mode and since when, what holds the tenant's own jobs and until when,
 * its own counts, its own pauses, and why its own jobs are where they are. Of an incident: when it was, and its kind.
 * Everything else is absent: other tenants' names and figures, the limits that they share, and every text that a person
 * wrote or a destination answered, since it may be about somebody else's job.
 *
 * These functions are that list. They name what stays; what is added to the structures later is not shown until
 * somebody adds it here.
 */
#ifndef API_CONFINED_H
#define API_CONFINED_H

#include "api/incident_view.h"
#include "api/why.h"

void status_confine(struct destination_status *status);
/* Keeps those of the tenant, at the front; returns how many. */
size_t holds_confine(struct tenant_hold *holds, size_t count, struct slice tenant);
void place_confine(struct why_place *place);
void incident_confine(struct incident_view *view);

#endif
