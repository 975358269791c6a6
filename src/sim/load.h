/*
 * load.h - the work that arrives: when, of which tenant, how urgent. Pure.
 *
 * Jobs arrive one in each slot of equal length, somewhere in it: their number is exact, their times are not even.
 */
#ifndef SIM_LOAD_H
#define SIM_LOAD_H

#include "core/decision/job.h"

#include <stdint.h>

struct load_settings {
    uint64_t seed;
    int64_t jobs;
    int64_t for_ms; /* they arrive in [0, for_ms) */
    int64_t tenants;
    double big_share; /* of tenant 0; the others share the rest evenly. 0: all the same */
    double critical, high; /* shares of the priorities; the rest is normal */
};

struct arrival {
    int64_t at_ms;
    int64_t tenant;
    enum priority priority;
};

/* The job of that number, from 0; later numbers never arrive earlier. */
struct arrival load_arrival(const struct load_settings *load, int64_t number);

#endif
