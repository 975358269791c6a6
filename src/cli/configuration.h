/*
 * configuration.h - the configuration that a command is about.
 */
#ifndef CLI_CONFIGURATION_H
#define CLI_CONFIGURATION_H

#include "cli/cli.h"
#include "config/config.h"

/* `given`, or without it ./insist.yaml, then /etc/insist/insist.yaml; NULL: none, the built-in defaults hold. */
const char *configuration_path(const char *given);

/* The file of the configured SQLite store, pointing into the configuration; NULL: the store is of another kind. */
const char *configuration_sqlite_path(const struct config *config);

/* The same as one step, for commands that need the file only. EXIT_DONE, or a code after its message; free the path. */
int configuration_store_file(const char *given, char **ret_path);

#endif
