#include "cli/offline/policies.h"

#include <stdio.h>

void problems_print(const struct buffer *problems)
{
    struct slice text = buffer_slice(problems);
    fwrite(text.data, 1, text.len, stderr);
    if (text.len > 0 && text.data[text.len - 1] != '\n')
        fputc('\n', stderr);
}

int policies_open(const char *path, struct policy_set *ret_policies)
{
    struct config *config = NULL;
    if (path) {
        struct buffer problems;
        buffer_init(&problems, PROBLEMS_BYTES_MAX);
        enum status status = config_load(path, &config, &problems);
        problems_print(&problems);
        buffer_release(&problems);
        if (status != STATUS_OK)
            return cli_fail(EXIT_USAGE, "%s cannot be used: %s", path, status_name(status));
    }
    policy_set_init(ret_policies, config);
    config_unref(config); /* the set has its own reference */
    return EXIT_DONE;
}

int policies_find(struct policy_set *policies, const char *command, const char *name, const struct policy **ret_policy)
{
    struct error err;
    if (!name)
        return cli_usage(command, "name a preset, or a destination of the file given with -c, as --policy");
    if (policy_set_find(policies, slice_from(name), ret_policy, &err) != STATUS_OK)
        return cli_usage(command, "%s", err.text);
    return EXIT_DONE;
}
