/*
 * hash.h - SipHash-1-3: a keyed 64-bit hash.
 *
 * Used where equal inputs must give equal values for ever (the spread of waits, the
 * store's key of an id) and where an outsider must not choose collisions (maps).
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "base/slice.h"

uint64_t hash_slice(uint64_t key0, uint64_t key1, struct slice data);
/*
 * A quick one for long texts, to find damage: who wants to finds two with the same value. A change of eight bytes in a row,
 * from a multiple of eight on, always changes it. The same on every machine, too.
 */
uint64_t hash_quick(uint64_t key, struct slice data);

#endif
