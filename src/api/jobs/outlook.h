/*
 * outlook.h - whether a job that was just taken can be tried before its deadline.
 *
 * A queue that its limits keep from draining in time is reported to whoever adds to it, while something can
 * still be done. The job is taken all the same. Only limits that are configured count, not what was seen:
 * what is reported is certain. It costs a question to the engine, so only jobs with a deadline at a destination
 * with a limit are looked at.
 */
#ifndef API_JOBS_OUTLOOK_H
#define API_JOBS_OUTLOOK_H

#include "api/call/call.h"
#include "engine/status.h"

struct outlook {
    struct slice destination; /* borrowed: must live as long as the call */
    int64_t lane, rank, seq;
    instant deadline;
    int64_t ahead;
    struct queue_place place;
};

/* False: there is nothing to look at. */
bool outlook_of(const struct call *call, const struct op_insert *inserted, struct outlook *ret_outlook);
/* Reads who is ahead of each, asks the engine, and goes on with `then`. They live as long as the call. */
void outlooks_ask(struct call *call, struct outlook *outlooks, size_t count, void (*then)(struct call *call));
/* The sentence about the worst of them; false: all can be tried in time. */
bool outlooks_warning(const struct outlook *outlooks, size_t count, instant now, struct buffer *out);

#endif
