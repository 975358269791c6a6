/*
 * exposition.h - metrics as Prometheus reads them: its text format, version 0.0.4.
 *
 * A family is begun once, and all of its samples follow. Label values may hold any bytes: what the format cannot carry is
 * escaped, and what is not UTF-8 is replaced.
 */
#ifndef BASE_EXPOSITION_H
#define BASE_EXPOSITION_H

#include "base/buffer.h"
#include "base/histogram.h"

#define EXPOSITION_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

enum metric_type {
    METRIC_COUNTER,
    METRIC_GAUGE,
    METRIC_HISTOGRAM,
};

struct metric_family {
    const char *name;
    enum metric_type type;
    const char *help;
};

struct metric_label {
    const char *name;
    struct slice value;
};

struct exposition {
    struct buffer *out;
    const struct metric_family *family; /* being written */
};

/* Begins a family: its HELP and TYPE. */
void exposition_begin(struct exposition *exposition, struct buffer *out, const struct metric_family *family);
/* One sample of it, which is no histogram. A value that is not a number is left out. */
void exposition_sample(const struct exposition *exposition, const struct metric_label *labels, size_t count, double value);

/* A histogram of integers, and what one is in the unit of the family's name: 1000 for milliseconds written as seconds. */
struct exposition_scale {
    const struct histogram_bounds *bounds;
    double divisor;
    int64_t from; /* smaller bounds are not written: what is below them is in the first that is */
};
void exposition_histogram(const struct exposition *exposition, const struct metric_label *labels, size_t count,
                          const struct histogram *histogram, const struct exposition_scale *scale);

const char *metric_type_name(enum metric_type type); /* "counter", "gauge", "histogram" */

#endif
