/*
 * job_read.h - a job from its JSON, checked.
 *
 * The texts of payload, headers and metadata are taken as they were written: 19.90 stays
 * 19.90. A member that is null counts as absent; one that is not known is refused, because a
 * misspelt "run_at" would otherwise send at once.
 */
#ifndef API_JOBS_JOB_READ_H
#define API_JOBS_JOB_READ_H

#include "api/call/body.h"
#include "config/config.h"
#include "store/store.h"

#include <jansson.h>

enum {
    TENANT_BYTES_MAX = 255,
    CORRELATION_BYTES_MAX = 255,
    KEY_BYTES_MAX = 255,
    CALLBACK_URL_BYTES_MAX = 2048,
    CONTENT_TYPE_BYTES_MAX = 255,
    JOB_HEADERS_BYTES_MAX = 16 * 1024,
    JOB_METADATA_BYTES_MAX = 64 * 1024,
};

struct job_reader {
    const struct config *config;
    struct slice tenant_bound; /* .data NULL: any tenant */
    enum priority priority_max; /* the most urgent that may be given */
    instant now;
    struct arena *memory; /* what the insert points to is copied here */
};

/* Fills `insert` from one JSON object. False: *ret_problem says why. */
bool job_read(const struct job_reader *reader, struct slice text, struct op_insert *insert, struct problem *ret_problem);

/*
 * The members payload and payload_base64 of an object whose text is `text`, copied into `memory`. *ret_given is false
 * when there is neither; *ret_string tells whether it was a JSON string. False: *ret_problem says why.
 */
struct payload_members {
    bool given, string, base64;
    struct slice payload;
};
bool payload_read(struct slice text, const json_t *root, int64_t bytes_max, struct arena *memory,
                  struct payload_members *ret_payload, struct problem *ret_problem);
/* Whether the job could be sent with that payload, which was read from `text`. False: *ret_problem says why not. */
bool payload_check(const struct destination_config *destination, const struct job *job, struct slice text,
                   const struct payload_members *payload, struct problem *ret_problem);

#endif
