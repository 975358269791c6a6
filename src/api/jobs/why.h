/*
 * why.h - why a job is where it is, what it waits for and what happens next.
 */
#ifndef API_JOBS_WHY_H
#define API_JOBS_WHY_H

#include "base/buffer.h"
#include "engine/engine.h"
#include "engine/status.h"

enum { WHY_AHEAD_MAX = STORE_PAGE_MAX }; /* jobs that are counted; then it says "or more" */

/* The word of `held_by` when a tenant's lane is held for itself. */
#define HELD_BY_TENANT "tenant_paused"
#define HELD_BY_TENANT_BLOCK "tenant_blocked" /* likewise, because its answers are refused */
#define HELD_BY_KEY "key"                     /* another of its key goes first */
#define HELD_BY_JOB_BLOCK "job_blocked"       /* the job itself was refused, and others are not */
#define HELD_BY_TENANT_DEAD "tenant_dead_full"
#define HELD_BY_SHARE "share" /* its tenant's, of the slots */

/*
 * What holds a job that waits: its tenant's hold, unless the destination has one that only ends when somebody acts; then
 * the destination's, and its own. NULL: nothing. `status` and `lane` may be NULL.
 */
const char *why_held_by(const struct job *job, const struct destination_status *status, const struct lane_hold *lane,
                        instant now);

/* Where a job that waits stands in its queue. */
struct why_place {
    size_t ahead; /* of its tenant, up to WHY_AHEAD_MAX */
    struct queue_place queue;
};

/*
 * One JSON object: facts, and sentences made of them. `destination` may be NULL: not configured; `lane` too: the tenant
 * is not held for itself; and `place`: it does not wait.
 */
void why_write(struct buffer *out, const struct job *job, const struct destination_config *destination,
               const struct destination_status *status, const struct lane_hold *lane, const struct why_place *place,
               instant now);

#endif
