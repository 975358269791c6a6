#include "sim/draw.h"

#include "base/hash.h"

#include <assert.h>
#include <math.h>

double draw_share(struct draw draw)
{
    const int64_t names[2] = { draw.of, draw.turn };
    uint64_t bits = hash_slice(draw.seed, (uint64_t)draw.purpose, (struct slice){ (const char *)names, sizeof names });
    return (double)(bits >> 11) / (double)(UINT64_C(1) << 53);
}

double draw_normal(struct draw draw)
{
    assert(draw.purpose == DRAW_LATENCY);
    double radius = draw_share(draw);
    draw.purpose = DRAW_LATENCY_ANGLE;
    double angle = draw_share(draw);
    return sqrt(-2 * log(1 - radius)) * cos(2 * acos(-1) * angle);
}
