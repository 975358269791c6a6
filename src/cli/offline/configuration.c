#include "cli/offline/configuration.h"

#include <stdio.h>
#include <string.h>

const char *configuration_path(const char *given)
{
    return given ? given : cli_config_path();
}

void listen_format(const struct listen_address *address, int port, char ret_text[LISTEN_TEXT_BYTES])
{
    bool six = strchr(address->host, ':') != NULL;
    snprintf(ret_text, LISTEN_TEXT_BYTES, "%s%s%s:%d", six ? "[" : "", address->host, six ? "]" : "", port);
}

enum status configuration_read(const char *path, struct config **ret_config)
{
    struct buffer problems = buffer_up_to(PROBLEMS_BYTES_MAX);
    enum status status = path ? config_load(path, ret_config, &problems) : config_default(ret_config);
    problems_print(&problems);
    buffer_release(&problems);
    return status;
}

int configuration_load(const char *given, struct config **ret_config)
{
    const char *path = configuration_path(given);
    enum status status = configuration_read(path, ret_config);
    if (status == STATUS_OK)
        return EXIT_DONE;
    return cli_fail(status == STATUS_NO_MEMORY ? EXIT_FAILED : EXIT_USAGE, "%s is not valid",
                    path ? path : "the built-in configuration");
}

int configuration_look(const struct config *config, struct store **ret_store)
{
    struct error err;
    enum status status = store_look(store_backends, slice_from(config->store), ret_store, &err);
    return status == STATUS_OK ? EXIT_DONE : cli_fail(EXIT_USAGE, "%s", err.text);
}

/* ---- policies ---- */

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
    enum status status = path ? configuration_read(path, &config) : STATUS_OK;
    if (status != STATUS_OK)
        return cli_fail(EXIT_USAGE, "%s cannot be used: %s", path, status_name(status));
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
