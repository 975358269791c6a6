/*
 * query.h - the part of an address behind ?, held to what its route takes.
 *
 * A misspelt filter that is passed over shows everything, and a misspelt limit too much: both look like an answer.
 */
#ifndef API_QUERY_H
#define API_QUERY_H

#include "api/call.h"

/* A path's segment, or a value (`plus`: a + is a blank there), without its %XX. .data NULL: no memory. */
struct slice address_decode(struct arena *memory, struct slice text, bool plus);

/* NAME=VALUE, joined by &, into call->query. False: it is something else. */
bool query_read(struct call *call, struct slice query);

/*
 * Whether each parameter is one of the route's and stands there once. Routes that need no token take any: who asks
 * whether the daemon lives may add what it likes. False: answered already, with the nearest name.
 */
bool query_is_known(struct call *call);

#endif
