/*
 * body.h - the JSON body of a request: what is wrong with it and where; and small objects of known members.
 */
#ifndef API_CALL_BODY_H
#define API_CALL_BODY_H

#include "api/call/call.h"
#include "base/text_place.h"

#include <jansson.h>

enum { PROBLEM_DETAIL_BYTES_MAX = 512 };

/* Why a request is refused. */
struct problem {
    int status;
    const char *type; /* stable */
    char detail[PROBLEM_DETAIL_BYTES_MAX];
    struct text_place place; /* in the text that was read */
};

/* Fills the problem, of no place in particular, and returns false, so that `return problem_set(...)` reads well. */
bool problem_set(struct problem *problem, int status, const char *type, const char *format, ...) PRINTF_LIKE(4, 5);
/* Says where the member of that name stands in `text`, if it does. Returns false, too. */
bool problem_at(struct problem *problem, struct slice text, const char *name);

/*
 * Reads a JSON text that may have a member `payload`. A payload that is no string is checked but not read, so that its
 * numbers may be of any size; in the result it is 0. NULL: *ret_problem says why and where.
 */
json_t *body_load(struct slice text, struct problem *ret_problem);

/* A member that is there and not null; NULL: absent. */
json_t *member_get(const json_t *object, const char *name);
/*
 * Whether all members of the object, whose text is `text`, are among `names`, ended by NULL; else the problem names the
 * first that is not, where it stands and what was probably meant.
 */
bool members_known(struct slice text, json_t *object, const char *const *names, struct problem *ret_problem);

/* ---- small objects: every function that returns false or NULL has answered the call with 422 ---- */

/* Reads the body as call->object, whose members must all be among the route's; no body is an empty object. */
bool body_read(struct call *call) MUST_CHECK;
/* A member of it that is there and not null; NULL: absent. */
const json_t *body_member(const struct call *call, const char *name);

/* Answers with what is wrong with the body, and where. */
bool body_problem(struct call *call, struct problem *problem);

/* The member is a whole number; where it is absent, `otherwise` is taken. */
bool body_int(struct call *call, const char *name, int64_t otherwise, int64_t min, int64_t max,
              int64_t *ret_value);
/* The member must be there. */
bool body_bool(struct call *call, const char *name, bool *ret_value);
/* A string without control characters, copied into the call's memory; absent: empty. */
bool body_text(struct call *call, const char *name, size_t len_max, struct slice *ret_text);

#endif
