/*
 * add_batch.h - `insist add --batch`: one job a line, sent in bundles.
 */
#ifndef CLI_OPERATE_ADD_BATCH_H
#define CLI_OPERATE_ADD_BATCH_H

#include "cli/cli.h"

/*
 * Enqueues the lines of `path` ("-": standard input). Lines without a destination get `destination`, unless it is NULL.
 * A bundle is sent when it is full and whenever the input pauses. Prints the sums; refused lines are told on standard
 * error with their numbers. EXIT_USAGE when a line was refused, EXIT_FAILED when the daemon cannot be asked: then the lines
 * from the one that is named on were not taken.
 */
int add_batch(const struct cli *cli, const char *destination, const char *path);

#endif
