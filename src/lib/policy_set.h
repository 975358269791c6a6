/*
 * policy_set.h - policies by name: the destinations of a configuration, and the presets.
 *
 * A destination hides the preset of the same name. What was found once is remembered, so
 * that a stream of questions pays for loading a preset a single time. For one thread.
 */
#ifndef LIB_POLICY_SET_H
#define LIB_POLICY_SET_H

#include "base/map.h"
#include "config/config.h"

struct policy_set {
    struct config *config; /* NULL: presets only */
    struct map known;      /* name to policy */
    struct loaded_preset *presets;
};

/* Takes a reference of its own to `config`, which may be NULL. */
void policy_set_init(struct policy_set *set, struct config *config);
void policy_set_release(struct policy_set *set);

/* The policy lives as long as the set. STATUS_NOT_FOUND names the nearest. */
enum status policy_set_find(struct policy_set *set, struct slice name, const struct policy **ret_policy,
                            struct error *err) MUST_CHECK;

#endif
