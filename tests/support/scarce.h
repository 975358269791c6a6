/*
 * scarce.h - memory that runs out when a test says so.
 *
 * A test includes this and then the module's .c file: the module's own calls of malloc, calloc
 * and realloc go through here, the rest of the program is left alone. It works in the same way
 * under the sanitizers and valgrind.
 */
#ifndef TESTS_SCARCE_H
#define TESTS_SCARCE_H

#include <stdlib.h>

extern long scarce_left;  /* this many more allocations succeed; negative: all */
extern long scarce_calls; /* how many were asked for, whatever came of them */

void *scarce_malloc(size_t size);
void *scarce_calloc(size_t count, size_t size);
void *scarce_realloc(void *old, size_t size);

#define malloc scarce_malloc
#define calloc scarce_calloc
#define realloc scarce_realloc

#endif
