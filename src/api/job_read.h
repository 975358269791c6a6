/*
 * job_read.h - a job from its JSON, checked.
 *
 * The texts of payload, headers and metadata are taken as they were written: 19.90 stays
 * 19.90. A member that is null counts as absent; one that is not known is refused, because a
 * misspelt "run_at" would otherwise send at once.
 */
#ifndef API_JOB_READ_H
#define API_JOB_READ_H

#include "api/text_place.h"
#include "config/config.h"
#include "store/store.h"

#include <jansson.h>

enum {
    TENANT_BYTES_MAX = 255,
    CORRELATION_BYTES_MAX = 255,
    CONTENT_TYPE_BYTES_MAX = 255,
    JOB_HEADERS_BYTES_MAX = 16 * 1024,
    JOB_METADATA_BYTES_MAX = 64 * 1024,
    PROBLEM_DETAIL_BYTES_MAX = 512,
};

/* Why a request is refused. */
struct job_problem {
    int status;
    const char *type; /* stable */
    char detail[PROBLEM_DETAIL_BYTES_MAX];
    struct text_place place; /* in the text that was read */
};

struct job_reader {
    const struct config *config;
    struct slice tenant_bound; /* .data NULL: any tenant */
    enum priority priority_max; /* the most urgent that may be given */
    instant now;
    struct arena *memory; /* what the insert points to is copied here */
};

/* Fills `insert` from one JSON object. False: *ret_problem says why. */
bool job_read(const struct job_reader *reader, struct slice text, struct op_insert *insert, struct job_problem *ret_problem);

/*
 * The members payload and payload_base64 of an object whose text is `text`, copied into `memory`. *ret_given is false
 * when there is neither; *ret_string tells whether it was a JSON string. False: *ret_problem says why.
 */
struct payload_members {
    bool given, string, base64;
    struct slice payload;
};
bool payload_read(struct slice text, const json_t *root, int64_t bytes_max, struct arena *memory,
                  struct payload_members *ret_payload, struct job_problem *ret_problem);
/* Whether the job could be sent with that payload, which was read from `text`. False: *ret_problem says why not. */
bool payload_check(const struct destination_config *destination, const struct job *job, struct slice text,
                   const struct payload_members *payload, struct job_problem *ret_problem);

/* Fills the problem, of no place in particular, and returns false, so that `return job_refuse(...)` reads well. */
bool job_refuse(struct job_problem *problem, int status, const char *type, const char *format, ...) PRINTF_LIKE(4, 5);

/*
 * Reads a JSON text that may have a member `payload`. A payload that is no string is checked but not read, so that its
 * numbers may be of any size; in the result it is 0. NULL: *ret_problem says why and where.
 */
json_t *job_text_load(struct slice text, struct job_problem *ret_problem);

/* A member that is there and not null; NULL: absent. */
json_t *member_get(const json_t *object, const char *name);
/*
 * Whether all members of the object, whose text is `text`, are among `names`, ended by NULL; else the problem names the
 * first that is not, where it stands and what was probably meant.
 */
bool members_known(struct slice text, json_t *object, const char *const *names, struct job_problem *ret_problem);

#endif
