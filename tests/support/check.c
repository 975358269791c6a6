#include "support/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void check_failed(const char *file, int line, const char *condition, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    print_error("%s: %s does not hold\n", text, condition);
    _fail(file, line);
    abort(); /* _fail does not come back */
}

uint64_t random_next(struct random *random)
{
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

size_t random_below(struct random *random, size_t bound)
{
    return (size_t)(random_next(random) % bound);
}

double chi_square_z(const size_t *counts, size_t bins)
{
    double total = 0;
    for (size_t i = 0; i < bins; i++)
        total += (double)counts[i];
    double expected = total / (double)bins;
    double chi = 0;
    for (size_t i = 0; i < bins; i++)
        chi += ((double)counts[i] - expected) * ((double)counts[i] - expected) / expected;
    double degrees = (double)bins - 1;
    double scale = 2 / (9 * degrees);
    return (cbrt(chi / degrees) - (1 - scale)) / sqrt(scale);
}
