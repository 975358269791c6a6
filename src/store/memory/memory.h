/*
 * memory.h - a store that forgets: for tests, the simulator and trying things out.
 */
#ifndef STORE_MEMORY_MEMORY_H
#define STORE_MEMORY_MEMORY_H

#include "store/store.h"

extern const struct store_backend store_memory_backend;

/*
 * Another handle on what is in `other`: of a node beside it, or of the same one, whose process is gone. The store is there
 * until the last handle is closed.
 */
enum status store_memory_join(struct store *other, const struct store_settings *settings, struct store **ret_store,
                              struct error *err) MUST_CHECK;
enum status store_memory_open(struct slice ignored, const struct store_settings *settings, struct store **ret_store,
                              struct error *err) MUST_CHECK;

#endif
