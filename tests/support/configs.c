#include "support/configs.h"

struct config *config_from(struct slice text, const char *name)
{
    struct config *config = NULL;
    struct buffer problems;
    buffer_init(&problems, PROBLEMS_BYTES);
    enum status status = config_parse(text, name, &config, &problems);
    check(status == STATUS_OK && problems.len == 0, "%s: %s", status_name(status), problems.data ? problems.data : "");
    buffer_release(&problems);
    return config;
}
