#include "lib/policy_set.h"

#include "config/problems.h"

#include <assert.h>
#include <stdlib.h>

enum { PROBLEMS_BYTES_MAX = 64 << 10 };

struct loaded_preset {
    struct config *config;
    struct loaded_preset *next;
};

void policy_set_init(struct policy_set *set, struct config *config)
{
    *set = (struct policy_set){ .config = config ? config_ref(config) : NULL };
    map_init(&set->known, 0);
}

void policy_set_release(struct policy_set *set)
{
    while (set->presets) {
        struct loaded_preset *preset = set->presets;
        set->presets = preset->next;
        config_unref(preset->config);
        free(preset);
    }
    map_release(&set->known);
    config_unref(set->config);
    *set = (struct policy_set){ 0 };
}

static enum status not_found(const struct policy_set *set, struct slice name, struct error *err)
{
    struct nearest nearest = { .wanted = name };
    for (size_t i = 0; set->config && i < set->config->destination_count; i++)
        nearest_offer(&nearest, set->config->destinations[i].name);
    for (size_t i = 0; preset_name(i); i++)
        nearest_offer(&nearest, preset_name(i));

    int len = (int)(name.len < QUOTED_BYTES_MAX ? name.len : QUOTED_BYTES_MAX);
    const char *kinds = set->config ? "preset or destination" : "preset";
    if (nearest.name)
        return error_set(err, STATUS_NOT_FOUND, "no %s is called \"%.*s\"; did you mean \"%s\"?", kinds, len, name.data,
                         nearest.name);
    return error_set(err, STATUS_NOT_FOUND, "no %s is called \"%.*s\"; `insist presets` lists the presets", kinds, len,
                     name.data);
}

static bool preset_exists(struct slice name)
{
    for (size_t i = 0; preset_name(i); i++)
        if (slice_equal(name, slice_from(preset_name(i))))
            return true;
    return false;
}

static enum status load_preset(struct policy_set *set, struct slice name, const struct policy **ret_policy,
                               struct error *err)
{
    struct buffer problems = buffer_up_to(PROBLEMS_BYTES_MAX);
    struct loaded_preset *preset = calloc(1, sizeof *preset);
    enum status status = preset ? config_preset(name, &preset->config, &problems) : STATUS_NO_MEMORY;
    if (status != STATUS_OK) {
        error_set(err, status, "preset %.*s: %s", SLICE_ARG(name), problems.len > 0 ? problems.data : status_name(status));
        free(preset);
    } else {
        assert(preset->config->destination_count == 1);
        *ret_policy = &preset->config->destinations[0].policy;
        preset->next = set->presets;
        set->presets = preset;
    }
    buffer_release(&problems);
    return status;
}

enum status policy_set_find(struct policy_set *set, struct slice name, const struct policy **ret_policy, struct error *err)
{
    const struct policy *policy = map_get(&set->known, name);
    if (policy) {
        *ret_policy = policy;
        return STATUS_OK;
    }
    const struct destination_config *destination = set->config ? config_destination(set->config, name) : NULL;
    if (destination) {
        policy = &destination->policy;
    } else if (!preset_exists(name)) {
        return not_found(set, name, err);
    } else {
        enum status status = load_preset(set, name, &policy, err);
        if (status != STATUS_OK)
            return status;
    }
    /* The key must outlive the question: the policy's own name does. */
    assert(slice_equal(slice_from(policy->name), name));
    if (map_put(&set->known, slice_from(policy->name), (void *)(uintptr_t)policy) != STATUS_OK)
        return error_set(err, STATUS_NO_MEMORY, "no memory for policy %s", policy->name);
    *ret_policy = policy;
    return STATUS_OK;
}
