#include "core/alerting/age.h"

#include <assert.h>

struct backlog_age backlog_age_none(void)
{
    return (struct backlog_age){ .fed_at = INSTANT_NONE };
}

static int64_t at_least_none(int64_t count)
{
    return count > 0 ? count : 0;
}

void backlog_age_feed(struct backlog_age *age, const struct backlog_flow *flow, instant now)
{
    assert(age->count >= 0 && flow->left_known >= 0);
    int64_t since_ms = age->fed_at != INSTANT_NONE && age->fed_at < now ? now - age->fed_at : 0;
    int64_t came = at_least_none(flow->count - age->count + flow->left);
    int64_t count = age->count + came;
    double sum = (double)age->count * age->created_mean + (double)came * ((double)now - (double)since_ms / 2);
    int64_t known = flow->left_known < count ? flow->left_known : count;
    if (known > 0) {
        sum -= flow->left_created / (double)flow->left_known * (double)known;
        count -= known;
    }
    /* The rest goes at the mean, which so stays. Rounding and jobs that were missed must not make it absurd. */
    double mean = count > 0 ? sum / (double)count : (double)now;
    age->created_mean = mean < (double)now ? mean : (double)now;
    age->count = at_least_none(flow->count);
    age->fed_at = now;
}

int64_t backlog_age_ms(const struct backlog_age *age, instant now)
{
    assert(age->count >= 0);
    if (age->count == 0 || age->created_mean >= (double)now)
        return 0;
    return (int64_t)((double)now - age->created_mean);
}
