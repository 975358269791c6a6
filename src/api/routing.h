/*
 * routing.h - which route a request is for, and what to say when there is none.
 */
#ifndef API_ROUTING_H
#define API_ROUTING_H

#include "api/call.h"

/* The route of method and path, with what stands for {id} and {name} in call->parameters. NULL: there is none. */
const struct route *route_find(struct call *call, const char *method, struct slice path);

/* The same, of a request whose body is not read yet. */
const struct route *route_for(const char *method, struct slice path);

/* Answers a path without a route: with the methods that it takes, or with the path that was probably meant. */
void route_problem(struct call *call, struct slice path);

#endif
