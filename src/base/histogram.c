#include "base/histogram.h"

int64_t histogram_total(const struct histogram *histogram)
{
    int64_t total = 0;
    for (size_t i = 0; i <= HISTOGRAM_BOUNDS_MAX; i++)
        total += histogram->counts[i];
    return total;
}

double histogram_mean(const struct histogram *histogram)
{
    int64_t total = histogram_total(histogram);
    return total > 0 ? (double)histogram->sum / (double)total : 0;
}

double histogram_quantile(const struct histogram *histogram, const struct histogram_bounds *bounds, double share)
{
    double wanted = share * (double)histogram_total(histogram);
    double before = 0;
    int64_t low = 0;
    if (!(wanted > 0))
        return 0;
    for (size_t i = 0; i < bounds->count; i++) {
        double here = (double)histogram->counts[i];
        if (here > 0 && before + here >= wanted)
            return (double)low + (double)(bounds->at[i] - low) * (wanted - before) / here;
        before += here;
        low = bounds->at[i];
    }
    return (double)low;
}
