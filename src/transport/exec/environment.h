/*
 * environment.h - what a program learns of its job besides the payload.
 */
#ifndef TRANSPORT_EXEC_ENVIRONMENT_H
#define TRANSPORT_EXEC_ENVIRONMENT_H

#include "base/arena.h"
#include "transport/transport.h"

struct environment {
    struct arena memory;
    char **items; /* "NAME=value"; NULL ends */
};

/*
 * A PATH, exec.environment and the facts of the job as INSIST_...; nothing of the daemon's own. STATUS_INVALID: a fact of
 * the job cannot be a variable's value.
 */
enum status environment_make(const struct send *send, struct environment *ret_environment, struct error *err) MUST_CHECK;
void environment_release(struct environment *environment);

#endif
