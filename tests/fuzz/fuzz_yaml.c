/*
 * A configuration from any bytes: it is taken whole, or refused with at least one problem that
 * names its place.
 */
#include "config/config.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = { (const char *)data, size };
    if (slice_search(text, SLICE("file:")) < text.len) /* the machine's files are no part of the input */
        return 0;
    struct buffer problems;
    buffer_init(&problems, 1 << 20);
    struct config *config = NULL;
    if (config_parse(text, "fuzz.yaml", &config, &problems) == STATUS_OK) {
        must(config != NULL);
        for (size_t i = 0; i < config->destination_count; i++)
            must(config_destination(config, slice_from(config->destinations[i].name)) != NULL);
        config_unref(config);
    } else {
        must(config == NULL);
        must(buffer_status(&problems) != STATUS_OK || slice_has_prefix(buffer_slice(&problems), SLICE("fuzz.yaml:")));
    }
    buffer_release(&problems);
    return 0;
}
