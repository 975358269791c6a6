/*
 * memory.h - a store that forgets: for tests, the simulator and trying things out.
 */
#ifndef STORE_MEMORY_MEMORY_H
#define STORE_MEMORY_MEMORY_H

#include "store/store.h"

extern const struct store_backend store_memory_backend;

enum status store_memory_open(struct slice ignored, const struct store_settings *settings, struct store **ret_store,
                              struct error *err) MUST_CHECK;

#endif
