/*
 * query.h - the part of an address behind ?, held to what its route takes.
 *
 * A misspelt filter that is passed over shows everything, and a misspelt limit too much: both look like an answer.
 */
#ifndef API_CALL_QUERY_H
#define API_CALL_QUERY_H

#include "api/call/call.h"

/* A path's segment, or a value (`plus`: a + is a blank there), without its %XX. .data NULL: no memory. */
struct slice address_decode(struct arena *memory, struct slice text, bool plus);

/* NAME=VALUE, joined by &, into call->query. False: it is something else. */
bool query_read(struct call *call, struct slice query);

/*
 * Whether each parameter is one of the route's and stands there once. Routes that need no token take any: who asks
 * whether the daemon lives may add what it likes. False: answered already, with the nearest name.
 */
bool query_is_known(struct call *call);

/* ---- what lists share: pagination ---- */

/* The limit: 1 to 1000, 100 when absent; false: answered already. */
bool call_limit(struct call *call, size_t *ret_limit);
/* A number that an earlier page gave; 0 when absent. False: answered already. */
bool call_cursor(struct call *call, const char *name, int64_t *ret_cursor);
/* "next": the cursor of the next page, as text, or null. */
void json_member_cursor(struct json_writer *json, int64_t next);

#endif
