#include "core/decision/rank.h"

#include <assert.h>

int64_t rank_of(enum priority priority, instant since, int64_t aging_ms)
{
    assert(aging_ms >= 0);
    return since + (int64_t)priority * aging_ms;
}

int64_t rank_heed_deadline(int64_t rank, instant since, instant deadline, int64_t lead_ms)
{
    assert(lead_ms >= 0 && rank >= since);
    if (deadline == INSTANT_NONE || deadline <= since)
        return rank; /* passed: it expires, and is not to hurry before that */
    int64_t half = (deadline - since) / 2;
    int64_t urgent_at = deadline - (lead_ms < half ? lead_ms : half);
    return urgent_at < rank ? urgent_at : rank;
}
