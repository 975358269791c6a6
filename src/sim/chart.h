/*
 * chart.h - curves over time as inline SVG, made by hand so that a report is one file.
 *
 * A chart is as wide as it is given room; its colours are the page's own classes, so that light and dark are
 * the page's business.
 */
#ifndef SIM_CHART_H
#define SIM_CHART_H

#include "base/buffer.h"
#include "sim/model.h"

struct chart_curve {
    const char *name;
    const char *css; /* class of its line and of its legend */
    const int64_t *values;
    size_t count;
    double scale; /* a value times this is shown */
};

struct chart {
    const char *title;
    int64_t step_ms;
    const struct chart_curve *curves;
    size_t curve_count;
    bool stacked; /* areas one upon the other, else lines */
    double top;   /* the scale reaches at least this, so that charts can be compared */
    const struct model_outage *outages; /* shaded */
    size_t outage_count;
};

void chart_append(const struct chart *chart, struct buffer *out);
/* The largest value that the chart has to show. */
double chart_most(const struct chart *chart);

/* A bar a value, with its label under it, all of one class. */
struct chart_bar {
    char label[16];
    int64_t value;
};
void chart_bars_append(const char *title, const char *css, const struct chart_bar *bars, size_t count, struct buffer *out);

#endif
