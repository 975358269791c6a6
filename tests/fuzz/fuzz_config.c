/* Any bytes as a configuration: it is one, or at least one problem says why not. */
#include "config/config.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct config *config = NULL;
    struct buffer problems;
    buffer_init(&problems, 1 << 16);
    enum status status = config_parse((struct slice){ (const char *)data, size }, "input", &config, &problems);
    assert((status == STATUS_OK) == (config != NULL));
    assert((status == STATUS_OK) == (problems.len == 0));
    config_unref(config);
    buffer_release(&problems);
    return 0;
}
