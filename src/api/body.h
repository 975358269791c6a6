/*
 * body.h - the JSON body of a request that is not a job: small objects of known members.
 *
 * Every function that returns false or NULL has answered the call with 422.
 */
#ifndef API_BODY_H
#define API_BODY_H

#include "api/call.h"
#include "api/job_read.h"

#include <jansson.h>

/* The body as an object whose members are all among `names`, ended by NULL; no body is an empty object. To be decref'd. */
json_t *body_object(struct call *call, const char *const *names);

/* Answers with what is wrong with the body, and where. */
void body_problem(struct call *call, struct job_problem *problem);

/* A whole number; absent: `otherwise`. */
bool body_int(struct call *call, const json_t *body, const char *name, int64_t otherwise, int64_t min, int64_t max,
              int64_t *ret_value);
/* A member that must be there. */
bool body_bool(struct call *call, const json_t *body, const char *name, bool *ret_value);
/* A string without control characters, copied into the call's memory; absent: empty. */
bool body_text(struct call *call, const json_t *body, const char *name, size_t len_max, struct slice *ret_text);

#endif
