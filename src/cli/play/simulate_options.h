/*
 * simulate_options.h - what `insist simulate` is asked, from text to settings.
 */
#ifndef CLI_PLAY_SIMULATE_OPTIONS_H
#define CLI_PLAY_SIMULATE_OPTIONS_H

#include "cli/options.h"
#include "sim/sim.h"

/* As given; NULL: not given. Times and numbers have a default. The outages are among the arguments' repeated options. */
struct simulate_options {
    const char *policy, *config, *compare, *html, *store, *now;
    const char *load, *skew, *priorities, *spread, *errors, *limit, *health;
    int64_t for_ms, attend_ms, latency_ms, seed;
    int64_t tenants, capacity; /* 0: not given */
};

/* Fills load, model, start and seed of *ret_settings. EXIT_DONE, or EXIT_USAGE after its message. */
int simulate_settings(const struct simulate_options *options, const struct arguments *arguments,
                      struct sim_settings *ret_settings);

/*
 * The destination to simulate: of the file at `path`, or without it the preset of that name. EXIT_DONE, or a code after
 * its message; *ret_config is then to be unreferenced.
 */
int simulate_destination(const char *path, const char *name, struct config **ret_config,
                         const struct destination_config **ret_destination);
/* The same for --compare: a preset, or a file with a destination of that name or with a single one. */
int simulate_compared(const char *compare, const char *name, struct config **ret_config,
                      const struct destination_config **ret_destination);

/*
 * The backlog of --store for a destination of that name; the load's tenants are at least those that have one. EXIT_DONE, or
 * a code after its message; release the backlog then.
 */
int simulate_backlog(const struct simulate_options *options, const char *destination, struct sim_settings *settings,
                     struct backlog *ret_backlog);

#endif
