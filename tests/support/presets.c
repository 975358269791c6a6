#include "support/presets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { LOADED_MAX = 16, PROBLEMS_BYTES = 1 << 16 };

static struct {
    char name[32];
    struct config *config;
} loaded[LOADED_MAX];
static size_t loaded_count;

const struct destination_config *preset_destination(const char *name)
{
    for (size_t i = 0; i < loaded_count; i++)
        if (strcmp(loaded[i].name, name) == 0)
            return &loaded[i].config->destinations[0];

    assert_true(loaded_count < LOADED_MAX);
    struct buffer problems;
    buffer_init(&problems, PROBLEMS_BYTES);
    struct config *config = NULL;
    if (config_preset(slice_from(name), &config, &problems) != STATUS_OK) {
        print_error("preset %s does not load:\n%.*s\n", name, SLICE_ARG(buffer_slice(&problems)));
        buffer_release(&problems);
        fail();
    }
    buffer_release(&problems);
    assert_int_equal(config->destination_count, 1);
    snprintf(loaded[loaded_count].name, sizeof loaded[loaded_count].name, "%s", name);
    loaded[loaded_count].config = config;
    return &loaded[loaded_count++].config->destinations[0];
}

const struct policy *preset_policy(const char *name)
{
    return &preset_destination(name)->policy;
}

int presets_release(void **state)
{
    (void)state;
    while (loaded_count > 0)
        config_unref(loaded[--loaded_count].config);
    return 0;
}
