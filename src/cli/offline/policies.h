/*
 * policies.h - the policy that --policy and -c name, for commands.
 */
#ifndef CLI_OFFLINE_POLICIES_H
#define CLI_OFFLINE_POLICIES_H

#include "cli/cli.h"
#include "lib/policy_set.h"

/* The presets, and the destinations of the file at `path` unless it is NULL. EXIT_DONE, or a code after its message. */
int policies_open(const char *path, struct policy_set *ret_policies);

/* The policy of that name. EXIT_DONE, or EXIT_USAGE after its message; also when `name` is NULL. */
int policies_find(struct policy_set *policies, const char *command, const char *name, const struct policy **ret_policy);

/* The lines of `problems` on standard error, as they are. */
void problems_print(const struct buffer *problems);

enum { PROBLEMS_BYTES_MAX = 1 << 20 };

#endif
