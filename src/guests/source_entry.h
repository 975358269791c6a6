/*
 * source_entry.h - an entry of a stream as a job.
 *
 * Its fields are the members of POST /v1/jobs, and are judged as that call judges them. Those that another insist adds to a
 * stream (docs/transport-queues.md) are understood.
 */
#ifndef GUESTS_SOURCE_ENTRY_H
#define GUESTS_SOURCE_ENTRY_H

#include "api/jobs/job_read.h"
#include "config/config.h"

/* It borrows from the answer that it came in. */
struct stream_entry {
    struct slice id;       /* as 1700000000000-0 */
    struct slice *fields;  /* names and values in turn */
    size_t field_count;    /* of both */
    bool gone;             /* it was deleted; nothing but its id is left */
};

/* The id where the entry has none is made of its own. False: *ret_problem says why; of status 503 it is nobody's fault. */
bool source_entry_read(const struct source_config *source, const struct job_reader *reader, const struct stream_entry *entry,
                       struct op_insert *ret_insert, struct problem *ret_problem);

#endif
