/*
 * configuration.h - the configuration that a command is about.
 */
#ifndef CLI_OFFLINE_CONFIGURATION_H
#define CLI_OFFLINE_CONFIGURATION_H

#include "cli/cli.h"
#include "config/config.h"
#include "lib/policy_set.h"

/* `given`, or without it ./insist.yaml, then /etc/insist/insist.yaml; NULL: none, the built-in defaults hold. */
const char *configuration_path(const char *given);

/* The one at `path`, or without it the built-in one; its problems are reported on standard error. */
enum status configuration_read(const char *path, struct config **ret_config) MUST_CHECK;

/* EXIT_DONE, or EXIT_USAGE after the problems and a message. Unreference it when done. */
int configuration_load(const char *given, struct config **ret_config);

/* As it stands in a URL: "127.0.0.1:7878", "[::1]:7878". `port` is the one that was got, which may not be the address's. */
enum { LISTEN_TEXT_BYTES = 300 };
void listen_format(const struct listen_address *address, int port, char ret_text[LISTEN_TEXT_BYTES]);

/* The configured store, looked at from outside: close it. EXIT_DONE, or a code after its message. */
int configuration_look(const struct config *config, struct store **ret_store);

/* ---- The policy that --policy and -c name. ---- */

/* The presets, and the destinations of the file at `path` unless it is NULL. EXIT_DONE, or a code after its message. */
int policies_open(const char *path, struct policy_set *ret_policies);

/* The policy of that name. EXIT_DONE, or EXIT_USAGE after its message; also when `name` is NULL. */
int policies_find(struct policy_set *policies, const char *command, const char *name, const struct policy **ret_policy);

/* The lines of `problems` on standard error, as they are. */
void problems_print(const struct buffer *problems);

enum { PROBLEMS_BYTES_MAX = 1 << 20 };

#endif
