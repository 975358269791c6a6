/*
 * probes.h - asking destinations how they are.
 */
#ifndef ENGINE_OUTAGE_PROBES_H
#define ENGINE_OUTAGE_PROBES_H

#include "transport/http/probe.h"

struct config;
struct engine;

/* Of a destination. */
struct health_check {
    struct engine *engine; /* one is under way; NULL: none */
    struct probe probe;
    struct config *config; /* the one it began with */
};

void probes_start(struct engine *engine);

#endif
