/*
 * draw.h - chance that can be repeated: draws from a hash of a seed and of what they are for.
 *
 * Pure. A draw depends on nothing but its names, never on how many were made before: two runs that
 * differ in their policy still meet the same arrivals.
 */
#ifndef SIM_DRAW_H
#define SIM_DRAW_H

#include <stdint.h>

enum draw_purpose {
    DRAW_ARRIVAL,
    DRAW_TENANT,
    DRAW_PRIORITY,
    DRAW_WRONG,
    DRAW_OUTCOME,
    DRAW_LATENCY,
    DRAW_LATENCY_ANGLE,
    DRAW_COLLAPSE,
};

struct draw {
    uint64_t seed;
    enum draw_purpose purpose;
    int64_t of;   /* the job */
    int64_t turn; /* its attempt */
};

/* Uniform in [0, 1). */
double draw_share(struct draw draw);
/* With mean 0 and deviation 1; `draw.purpose` is DRAW_LATENCY. */
double draw_normal(struct draw draw);

#endif
