#include "core/decision/adaptive.h"

#include <assert.h>
#include <math.h>

void adaptive_init(struct adaptive *adaptive)
{
    *adaptive = (struct adaptive){ .at = INSTANT_NONE };
}

/* What is left of a count of `at`. */
static double fading(const struct adaptive *adaptive, instant now)
{
    if (adaptive->at == INSTANT_NONE || now <= adaptive->at)
        return 1;
    return exp2(-((double)now - (double)adaptive->at) / ADAPTIVE_HALF_LIFE_MS);
}

void adaptive_note(struct adaptive *adaptive, bool succeeded, instant now)
{
    double left = fading(adaptive, now);
    adaptive->good = adaptive->good * left + (succeeded ? 1 : 0);
    adaptive->bad = adaptive->bad * left + (succeeded ? 0 : 1);
    adaptive->at = now;
}

double adaptive_factor(const struct adaptive *adaptive, instant now)
{
    double left = fading(adaptive, now);
    double good = adaptive->good * left, bad = adaptive->bad * left;
    double rate = (good + ADAPTIVE_PRIOR / 2.0) / (good + bad + ADAPTIVE_PRIOR);
    double factor = rate <= 0.5 ? 2 - 2 * rate : 1.5 - rate;
    assert(factor >= ADAPTIVE_FACTOR_MIN && factor <= ADAPTIVE_FACTOR_MAX);
    return factor;
}
