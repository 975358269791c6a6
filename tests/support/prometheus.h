/*
 * prometheus.h - reads Prometheus' text format as strictly as its specification, for tests.
 */
#ifndef TESTS_PROMETHEUS_H
#define TESTS_PROMETHEUS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * What is wrong with the text, the line first; NULL: nothing. Beyond the syntax: HELP and TYPE stand once before a
 * family's samples, a family is in one piece, no series occurs twice, and of a histogram the bounds grow, the counts do
 * not fall, +Inf is the count and there is a sum. The text lives until the next call.
 */
const char *prometheus_problem(const char *text);

/* The value of a series as it is written there, as `name{a="b"}`; false: there is none. */
bool prometheus_value(const char *text, const char *series, double *ret_value);
/* How many series begin so. */
size_t prometheus_count(const char *text, const char *beginning);

#endif
