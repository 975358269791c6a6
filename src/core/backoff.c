#include "core/backoff.h"

#include "base/hash.h"

#include <assert.h>

/* base x factor^exponent as a double, by squaring; an overflow is an infinity, which the cap takes. */
static double grown(double base, double factor, int64_t exponent)
{
    double result = base;
    for (double power = factor; exponent > 0; exponent >>= 1, power *= power)
        if (exponent & 1)
            result *= power;
    return result;
}

static int64_t clip(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

int64_t backoff_nominal_ms(const struct retry_policy *policy, int64_t retry, enum priority priority)
{
    assert(retry >= 1);
    assert(policy->base_ms >= 0 && policy->floor_ms >= 0 && policy->cap_ms >= policy->floor_ms);
    double nominal = grown((double)policy->base_ms, policy->factor, retry - 1) * policy->delay_factor[priority];
    if (!(nominal < (double)policy->cap_ms)) /* infinite, or not a number after 0 x infinity */
        return policy->cap_ms;
    return clip((int64_t)(nominal + 0.5), policy->floor_ms, policy->cap_ms);
}

struct backoff_range backoff_range(const struct retry_policy *policy, int64_t retry, enum priority priority)
{
    int64_t nominal = backoff_nominal_ms(policy, retry, priority);
    /* Rounded towards the middle, so that no draw exceeds the amplitude. */
    int64_t reach = (int64_t)((double)nominal * policy->jitter);
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

int64_t backoff_after_ms(const struct retry_policy *policy, uint64_t seed, struct slice id, int64_t retry, int64_t asked_ms)
{
    assert(asked_ms >= 0);
    int64_t low = asked_ms < policy->retry_after_max_ms ? asked_ms : policy->retry_after_max_ms;
    int64_t reach = (int64_t)((double)low * policy->jitter);
    if (reach > policy->retry_after_max_ms - low)
        reach = policy->retry_after_max_ms - low;
    int64_t wait = draw((struct backoff_range){ low, low + reach }, seed, id, retry);
    return wait > 1 ? wait : 1;
}
