/*
 * check.h - what the unit tests share: cmocka, a seeded generator, naming the failing row.
 */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include "base/slice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* Fails the test with a sentence that names the row of the table; printf-like. */
#define check(condition, ...)                                                                                          \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            check_failed(__FILE__, __LINE__, #condition, __VA_ARGS__);                                                 \
    } while (0)

__attribute__((format(printf, 4, 5), noreturn)) void check_failed(const char *file, int line, const char *condition,
                                                                  const char *format, ...);

/* splitmix64: the same numbers on every machine and in every run. */
struct random {
    uint64_t state;
};
uint64_t random_next(struct random *random);
/* Uniform enough for tests, over 0 .. bound - 1. */
size_t random_below(struct random *random, size_t bound);

/*
 * Pearson's chi-square of `counts` against equal expectation, as a standard normal by Wilson and
 * Hilferty: a value of 3.09 has p = 0.001, 3.72 has p = 0.0001.
 */
double chi_square_z(const size_t *counts, size_t bins);

#endif
