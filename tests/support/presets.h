/*
 * presets.h - the built-in presets, loaded once for a test program.
 */
#ifndef TESTS_SUPPORT_PRESETS_H
#define TESTS_SUPPORT_PRESETS_H

#include "config/config.h"

/* Fails the running test, with the loader's own words, when the preset does not load. */
const struct destination_config *preset_destination(const char *name);
const struct policy *preset_policy(const char *name);

/* Group fixture: frees what was loaded. */
int presets_release(void **state);

#endif
