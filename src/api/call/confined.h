/*
 * confined.h - what a token that acts for one tenant may know of what all tenants share.
 *
 * Of a destination: its name and description, its mode and since when, what holds the tenant's own jobs and until when,
 * its own counts, its own pauses, and why its own jobs are where they are. Of an incident: when it was, and its kind.
 * Everything else is absent: other tenants' names and figures, the limits that they share, and every text that a person
 * wrote or a destination answered, since it may be about somebody else's job.
 *
 * These functions and incident_confine of operate/incident_view.h are that list. They name what stays;
 * what is added to the structures later is not shown until somebody adds it here.
 */
#ifndef API_CALL_CONFINED_H
#define API_CALL_CONFINED_H

#include "engine/engine.h"
#include "engine/status.h"

void status_confine(struct destination_status *status);
/* Keeps those of the tenant, at the front; returns how many. */
size_t holds_confine(struct tenant_hold *holds, size_t count, struct slice tenant);
/* `ahead`: how many of the tenant's own are before the job. */
void place_confine(struct queue_place *place, size_t ahead);

#endif
