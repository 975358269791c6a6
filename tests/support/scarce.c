#include "support/scarce.h"

#undef malloc
#undef calloc
#undef realloc

#include <stdbool.h>

long scarce_left = -1;
long scarce_calls;

static bool granted(void)
{
    scarce_calls++;
    if (scarce_left < 0)
        return true;
    if (scarce_left == 0)
        return false; /* once out, it stays out */
    scarce_left--;
    return true;
}

void *scarce_malloc(size_t size)
{
    return granted() ? malloc(size) : NULL;
}

void *scarce_calloc(size_t count, size_t size)
{
    return granted() ? calloc(count, size) : NULL;
}

void *scarce_realloc(void *old, size_t size)
{
    return granted() ? realloc(old, size) : NULL;
}
