/*
 * found.h - whose job an id names.
 */
#ifndef CLI_TALK_FOUND_H
#define CLI_TALK_FOUND_H

#include "cli/cli.h"

/*
 * Looks for the job in every tenant that the token may see, unless `given` (NULL: not given) says whose it is. *ret_tenant
 * is to be freed; empty: the one without a tenant. EXIT_FAILED after a message: there is none, or several tenants have one.
 */
int job_tenant(const struct cli *cli, const char *id, const char *given, char **ret_tenant);

#endif
