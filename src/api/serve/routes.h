/*
 * routes.h - which route a request is for, and what to say when there is none.
 */
#ifndef API_SERVE_ROUTES_H
#define API_SERVE_ROUTES_H

#include "api/call/call.h"

extern const struct route api_routes[]; /* method NULL ends */

/*
 * The route of method and path, with what stands for {id} and {name} in call->parameters, unless `call` is NULL, as it is
 * while the body is not read yet. NULL: there is none.
 */
const struct route *route_find(struct call *call, const char *method, struct slice path);

/* Answers a path without a route: with the methods that it takes, or with the path that was probably meant. */
void route_problem(struct call *call, struct slice path);

#endif
