#include "core/concurrency.h"

#include <assert.h>

void concurrency_init(struct concurrency *concurrency, int64_t max)
{
    assert(max > 0);
    *concurrency = (struct concurrency){
        .max = max,
        .limit = max < CONCURRENCY_FIRST ? max : CONCURRENCY_FIRST,
        .queue_since = INSTANT_NONE,
    };
    capacity_init(&concurrency->capacity);
}

void concurrency_restore(struct concurrency *concurrency, const struct capacity_kept *kept)
{
    if (kept->ceiling >= concurrency->max)
        return;
    capacity_restore(&concurrency->capacity, kept);
    if (kept->ceiling > 0 && concurrency->limit > kept->ceiling)
        concurrency->limit = kept->ceiling;
}

void concurrency_configure(struct concurrency *concurrency, int64_t max)
{
    assert(max > 0);
    if (max == concurrency->max)
        return;
    concurrency->max = max;
    if (concurrency->limit > max)
        concurrency->limit = max;
    capacity_configure(&concurrency->capacity, max);
}

void concurrency_sent(struct concurrency *concurrency, int64_t under_way)
{
    if (under_way > concurrency->peak)
        concurrency->peak = under_way;
}

/*
 * With how many at once the answered one was under way: what it was allowed then, as far as that was used of late.
 * What was sent together shares it, whichever went first.
 */
static int64_t level_of(struct concurrency *concurrency, const struct concurrency_sample *sample)
{
    int64_t peak = concurrency->peak > concurrency->peak_before ? concurrency->peak : concurrency->peak_before;
    if (--concurrency->round <= 0) {
        concurrency->peak_before = concurrency->peak;
        concurrency->peak = sample->under_way;
        concurrency->round = concurrency->limit;
    }
    return sample->level < peak ? sample->level : peak;
}

static void lower(struct concurrency *concurrency)
{
    if (concurrency->limit > 1)
        concurrency->limit--;
    concurrency->credit = 0;
}

/*
 * Once for as many answers as the limit: those under way were sent before it fell. Where it started our load is no
 * reason any more: it has become slower for good.
 */
static void fall_slowly(struct concurrency *concurrency)
{
    concurrency->credit -= 1 / (double)concurrency->limit;
    if (concurrency->credit > -1)
        return;
    if (concurrency->limit <= CONCURRENCY_FIRST) {
        concurrency->credit = 0;
        latency_measure_anew(&concurrency->latency, concurrency->limit);
        return;
    }
    if (concurrency->capacity.suspect == 0)
        concurrency->capacity.suspect = concurrency->limit;
    lower(concurrency);
}

/* More than it has borne is being tried. */
static bool tries(const struct concurrency *concurrency)
{
    return concurrency->capacity.suspect > 0 && concurrency->limit > concurrency->capacity.suspect;
}

/*
 * It would rise, but a queue builds up. Growth by one an answer is quicker than the averages: it ends at the first
 * sign, at half of what it came to. A queue that lasts may be none, the destination having become slower for good: then
 * the best is measured anew, with half of the load.
 */
static bool heed_queue(struct concurrency *concurrency, instant now)
{
    struct latency *latency = &concurrency->latency;
    int64_t limit = concurrency->limit, half = limit / 2 > CONCURRENCY_FIRST ? limit / 2 : CONCURRENCY_FIRST;
    bool racing = concurrency->capacity.suspect == 0;
    if (racing && limit > CONCURRENCY_FIRST && latency_begins_to_queue(latency, limit)) {
        concurrency->limit = concurrency->capacity.suspect = half;
        concurrency->credit = 0;
        return true;
    }
    if (!latency_queues(latency, limit)) {
        concurrency->queue_since = INSTANT_NONE;
        return false;
    }
    if (concurrency->queue_since == INSTANT_NONE || concurrency->queue_since > now)
        concurrency->queue_since = now;
    if (now - concurrency->queue_since >= CONCURRENCY_QUEUE_MS && concurrency->capacity.waiting_since != INSTANT_NONE) {
        latency_measure_anew(latency, limit);
        concurrency->limit = half < limit ? half : limit;
        concurrency->queue_since = INSTANT_NONE;
    }
    return true;
}

/* Level by level above the one where trouble came, each borne for a while. */
static void try_on(struct concurrency *concurrency, instant now)
{
    if (!capacity_is_proven(&concurrency->capacity, concurrency->limit))
        return;
    capacity_prove(&concurrency->capacity, concurrency->limit);
    concurrency->credit = 0;
    if (capacity_allows(&concurrency->capacity, concurrency->limit + 1, now))
        concurrency->limit++;
}

static double gain(const struct concurrency *concurrency)
{
    int64_t suspect = concurrency->capacity.suspect;
    if (suspect == 0 || concurrency->limit < suspect / 2)
        return 1;
    double gain = 1 / (double)concurrency->limit;
    if (concurrency->limit < suspect)
        return gain;
    int64_t vain = concurrency->capacity.vain;
    return vain == 0 ? 1 : gain / (double)(INT64_C(1) << (vain - 1));
}

void concurrency_good(struct concurrency *concurrency, const struct concurrency_sample *sample)
{
    struct capacity *capacity = &concurrency->capacity;
    latency_note(&concurrency->latency, sample->latency_ms, concurrency->limit <= CONCURRENCY_FIRST);
    capacity_good(capacity, level_of(concurrency, sample), sample->load);
    concurrency->troubled = false;
    if (latency_ratio(&concurrency->latency) > CONCURRENCY_LATENCY_FALL) {
        fall_slowly(concurrency);
        return;
    }
    concurrency->credit = concurrency->credit > 0 ? concurrency->credit : 0;
    if (sample->under_way * 2 < concurrency->limit || concurrency->limit >= concurrency->max ||
        heed_queue(concurrency, sample->at))
        return;
    if (tries(concurrency)) {
        try_on(concurrency, sample->at);
        return;
    }
    if (!capacity_allows(capacity, concurrency->limit + 1, sample->at))
        return;
    concurrency->credit += gain(concurrency);
    if (concurrency->credit >= 1) {
        concurrency->credit -= 1;
        concurrency->limit++;
        capacity->proven = 0;
    }
}

/*
 * The first of a run of bad answers. While the limit still grows quickly, what was under way when it was sent tells best
 * how much is too much; half of it was borne just before.
 */
static void trouble_begins(struct concurrency *concurrency, int64_t level, const struct concurrency_sample *sample)
{
    struct capacity *capacity = &concurrency->capacity;
    int64_t limit = concurrency->limit;
    concurrency->troubled = true;
    concurrency->debt = 1;
    if (tries(concurrency) && level > capacity->suspect) {
        capacity_refute(capacity, sample->load, sample->at);
        concurrency->limit = capacity->suspect;
        concurrency->credit = 0;
    } else if (capacity->suspect == 0 && level * 2 >= limit) {
        capacity_suspect(capacity, sample->load > limit / 2 + 1 ? sample->load : limit / 2 + 1, sample->normal);
        concurrency->limit = capacity->suspect < limit ? capacity->suspect : limit;
        concurrency->credit = 0;
    } else {
        if (level * 2 >= limit && sample->normal)
            capacity_suspect(capacity, level, sample->normal);
        else
            capacity_note_trouble(capacity, level, sample->normal);
        lower(concurrency);
    }
}

void concurrency_bad(struct concurrency *concurrency, const struct concurrency_sample *sample)
{
    int64_t level = level_of(concurrency, sample);
    capacity_bad(&concurrency->capacity);
    if (sample->level > concurrency->limit)
        return; /* the limit has fallen since it was sent */
    if (!concurrency->troubled) {
        trouble_begins(concurrency, level, sample);
        return;
    }
    concurrency->debt -= 1 / (double)concurrency->limit;
    if (concurrency->debt <= 0) {
        concurrency->debt = 1;
        lower(concurrency);
    }
}
