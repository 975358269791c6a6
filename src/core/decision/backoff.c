#include "core/decision/backoff.h"

#include "base/hash.h"

#include <assert.h>
#include <math.h>

/* Gives base x factor^exponent as a double, by squaring; an overflow is an infinity, which the cap takes. */
static double grown(double base, double factor, int64_t exponent)
{
    assert(exponent >= 0 && base >= 0);
    double result = base;
    if (!(base > 0)) /* nothing grows out of nothing, and 0 x infinity is no number */
        return 0;
    for (double power = factor; exponent > 0; exponent >>= 1, power *= power)
        if (exponent & 1)
            result *= power;
    return result;
}

static int64_t clip(int64_t value, int64_t low, int64_t high)
{
    assert(low <= high);
    return value < low ? low : value > high ? high : value;
}

int64_t backoff_nominal_ms(const struct retry_policy *policy, int64_t retry, enum priority priority)
{
    assert(retry >= 1);
    assert(policy->base_ms >= 0 && policy->floor_ms >= 0 && policy->cap_ms >= policy->floor_ms);
    double base = (double)policy->base_ms * policy->delay_factor[priority];
    double nominal = grown(base, policy->factor, retry - 1);
    if (!(nominal < (double)policy->cap_ms)) /* also when it is infinite */
        return policy->cap_ms;
    return clip((int64_t)(nominal + 0.5), policy->floor_ms, policy->cap_ms);
}

/* How far the spread reaches from the middle. Rounded down, so that no draw exceeds the amplitude; low + reach fits. */
static int64_t reach_of(int64_t middle, double jitter)
{
    assert(middle >= 0 && jitter >= 0);
    double reach = (double)middle * jitter;
    return reach < (double)(INT64_MAX - middle) ? (int64_t)reach : INT64_MAX - middle;
}

struct backoff_range backoff_range(const struct retry_policy *policy, int64_t retry, enum priority priority)
{
    int64_t nominal = backoff_nominal_ms(policy, retry, priority);
    int64_t reach = reach_of(nominal, policy->jitter);
    struct backoff_range range = { nominal - reach, nominal + reach };
    if (policy->clamp == CLAMP_AFTER) {
        range.low_ms = clip(range.low_ms, policy->floor_ms, policy->cap_ms);
        range.high_ms = clip(range.high_ms, policy->floor_ms, policy->cap_ms);
    }
    assert(range.low_ms <= nominal && nominal <= range.high_ms);
    return range;
}

/* Uniform over [low, high] from 64 bits of hash; the bias of the multiplication is below 2^-20 for any real wait. */
static int64_t draw(struct backoff_range range, uint64_t seed, struct slice id, int64_t retry)
{
    assert(range.low_ms <= range.high_ms);
    uint64_t bits = hash_slice(seed, (uint64_t)retry, id);
    uint64_t width = (uint64_t)(range.high_ms - range.low_ms) + 1;
    return range.low_ms + (int64_t)(((unsigned __int128)bits * width) >> 64);
}

int64_t backoff_ms(const struct retry_policy *policy, uint64_t seed, struct slice id, int64_t retry, enum priority priority)
{
    int64_t wait = draw(backoff_range(policy, retry, priority), seed, id, retry);
    if (policy->clamp == CLAMP_SATURATE)
        wait = clip(wait, policy->floor_ms, policy->cap_ms);
    return wait > 1 ? wait : 1;
}

int64_t backoff_least_ms(const struct retry_policy *policy, uint64_t seed, struct slice id, int64_t retry, int64_t least_ms)
{
    assert(least_ms >= 0);
    int64_t high = least_ms + reach_of(least_ms, policy->jitter);
    int64_t wait = draw((struct backoff_range){ least_ms, high }, seed, id, retry);
    return wait > 1 ? wait : 1;
}

int64_t backoff_after_ms(const struct retry_policy *policy, uint64_t seed, struct slice id, int64_t retry, int64_t asked_ms)
{
    assert(asked_ms >= 0);
    int64_t max = policy->retry_after_max_ms;
    int64_t low = asked_ms < max ? asked_ms : max;
    int64_t high = low + reach_of(low, policy->jitter);
    int64_t wait = draw((struct backoff_range){ low, high < max ? high : max }, seed, id, retry);
    return wait > 1 ? wait : 1;
}

/* ---- adaptive ---- */

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
    assert(adaptive->good >= 0 && adaptive->bad >= 0);
    double left = fading(adaptive, now);
    adaptive->good = adaptive->good * left + (succeeded ? 1 : 0);
    adaptive->bad = adaptive->bad * left + (succeeded ? 0 : 1);
    adaptive->at = now;
}

double adaptive_factor(const struct adaptive *adaptive, instant now)
{
    assert(adaptive->good >= 0 && adaptive->bad >= 0);
    double left = fading(adaptive, now);
    double good = adaptive->good * left, bad = adaptive->bad * left;
    double rate = (good + ADAPTIVE_PRIOR / 2.0) / (good + bad + ADAPTIVE_PRIOR);
    double factor = rate <= 0.5 ? 2 - 2 * rate : 1.5 - rate;
    assert(factor >= ADAPTIVE_FACTOR_MIN && factor <= ADAPTIVE_FACTOR_MAX);
    return factor;
}
