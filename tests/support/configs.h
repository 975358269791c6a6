/*
 * configs.h - configurations from text, for tests.
 */
#ifndef TESTS_CONFIGS_H
#define TESTS_CONFIGS_H

#include "config/config.h"
#include "support/check.h"

enum { PROBLEMS_BYTES = 64 * 1024 };

/* A destination "x" to add settings to, indented by four. */
#define D "destinations:\n  x:\n    url: https://a.example/\n"

/* Fails the test when there is any problem. The caller unrefs it. */
struct config *config_from(struct slice text, const char *name);

#endif
