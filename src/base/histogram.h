/*
 * histogram.h - how values spread over fixed bounds.
 *
 * Plain integers in fixed memory, counted by one thread: noting a value takes no lock and allocates nothing. The bounds are
 * given with each call, so that a zeroed histogram is an empty one.
 */
#ifndef BASE_HISTOGRAM_H
#define BASE_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

enum { HISTOGRAM_BOUNDS_MAX = 20 };

/* Growing. A value belongs to the first bound that it is not above. */
struct histogram_bounds {
    size_t count;
    int64_t at[HISTOGRAM_BOUNDS_MAX];
};

struct histogram {
    int64_t counts[HISTOGRAM_BOUNDS_MAX + 1]; /* one a bound; the one after the last: above all of them */
    int64_t sum;
};

static inline void histogram_note(struct histogram *histogram, const struct histogram_bounds *bounds, int64_t value)
{
    size_t i = 0;
    while (i < bounds->count && value > bounds->at[i])
        i++;
    histogram->counts[i]++;
    histogram->sum += value;
}

int64_t histogram_total(const struct histogram *histogram);
/* 0 of an empty one. */
double histogram_mean(const struct histogram *histogram);
/*
 * The value below which that share (0 to 1) lies, as if values were even between two bounds. Above the last bound it is
 * that bound: more is not known. 0 of an empty one.
 */
double histogram_quantile(const struct histogram *histogram, const struct histogram_bounds *bounds, double share);

#endif
