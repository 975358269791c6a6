#include "core/fairness/rate.h"

#include <assert.h>

/*
 * Time is counted in units of 1/count milliseconds, so that a job costs per_ms units, a whole number.
 * A burst has burst x per_ms of them, which RATE_BURST_MAX and a day keep inside 63 bits.
 */

int64_t rate_burst(struct rate rate, int64_t at_once)
{
    assert(rate.count >= 0 && at_once >= 0);
    int64_t second = rate.per_ms > 0 ? rate.count / (rate.per_ms > SECOND_MS ? rate.per_ms / SECOND_MS : 1) : 0;
    int64_t burst = second > at_once ? second : at_once;
    return burst < rate.count ? burst : rate.count;
}

void rate_configure(struct rate_limiter *limiter, struct rate rate, int64_t burst)
{
    assert(rate.count >= 0 && burst >= 0);
    if (rate.count > RATE_COUNT_MAX)
        rate.count = 0;
    assert(rate.count == 0 || (rate.per_ms > 0 && rate.per_ms <= DAY_MS));
    instant saved = rate_save(limiter);
    limiter->rate = rate;
    limiter->burst = burst > 0 && rate.count > 0 ? burst : rate.count;
    assert(limiter->burst <= RATE_BURST_MAX);
    limiter->paid_until = saved;
    limiter->paid_part = 0;
}

void rate_init(struct rate_limiter *limiter, struct rate rate, int64_t burst, instant saved)
{
    *limiter = (struct rate_limiter){ .paid_until = saved };
    rate_configure(limiter, rate, burst);
}

instant rate_save(const struct rate_limiter *limiter)
{
    assert(limiter->paid_part >= 0);
    return limiter->paid_part > 0 ? limiter->paid_until + 1 : limiter->paid_until;
}

static void pay(struct rate_limiter *limiter, instant now, int64_t units)
{
    assert(limiter->rate.count > 0 && units >= 0);
    limiter->paid_until = now + units / limiter->rate.count;
    limiter->paid_part = units % limiter->rate.count;
}

/*
 * How many units beyond `now` are paid for. More than a burst cannot be: if the clock says so, it was
 * put back, and the instant is put back too, or it would stay out of reach for as long as the jump.
 */
static int64_t owed(struct rate_limiter *limiter, instant now)
{
    assert(limiter->rate.count > 0 && limiter->paid_part >= 0 && limiter->paid_part < limiter->rate.count);
    const struct rate *rate = &limiter->rate;
    int64_t most = limiter->burst * rate->per_ms;
    if (limiter->paid_until == INSTANT_NONE || limiter->paid_until < now)
        return 0;
    int64_t ahead_ms = limiter->paid_until - now;
    if (ahead_ms <= most / rate->count && ahead_ms * rate->count + limiter->paid_part <= most)
        return ahead_ms * rate->count + limiter->paid_part;
    pay(limiter, now, most);
    return most;
}

struct rate_answer rate_ask(struct rate_limiter *limiter, instant now, int64_t count)
{
    assert(count > 0);
    const struct rate *rate = &limiter->rate;
    if (rate->count == 0)
        return (struct rate_answer){ .room = count, .at = now };
    int64_t units = owed(limiter, now);
    int64_t room = (limiter->burst * rate->per_ms - units) / rate->per_ms;
    if (room >= count)
        return (struct rate_answer){ .room = count, .at = now };
    int64_t together = count < limiter->burst ? count : limiter->burst;
    int64_t over = units - (limiter->burst - together) * rate->per_ms; /* above 0 unless a whole burst may go */
    int64_t wait_ms = over / rate->count + (over % rate->count > 0);
    return (struct rate_answer){ .room = room, .at = instant_add(now, wait_ms) };
}

void rate_take(struct rate_limiter *limiter, instant now, int64_t count)
{
    const struct rate *rate = &limiter->rate;
    assert(count > 0);
    if (rate->count == 0)
        return;
    int64_t units = owed(limiter, now);
    assert(count <= (limiter->burst * rate->per_ms - units) / rate->per_ms);
    pay(limiter, now, units + count * rate->per_ms);
}

int64_t rate_drain_ms(struct rate rate, int64_t backlog)
{
    assert(rate.count >= 0 && backlog >= 0);
    if (rate.count == 0 || rate.count > RATE_COUNT_MAX)
        return 0;
    int64_t rest = backlog % rate.count * rate.per_ms;
    int64_t rest_ms = rest / rate.count + (rest % rate.count > 0);
    int64_t whole_ms;
    if (__builtin_mul_overflow(backlog / rate.count, rate.per_ms, &whole_ms) || whole_ms > INT64_MAX - rest_ms)
        return INT64_MAX;
    return whole_ms + rest_ms;
}
