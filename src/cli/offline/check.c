#include "base/json.h"
#include "cli/offline/configuration.h"
#include "cli/offline/offline.h"
#include "cli/options.h"
#include "daemon/daemon.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void append_json(const struct config *config, struct buffer *out)
{
    struct json_writer json = json_begin(out);
    json_member_or_null(&json, "file", slice_from(config->path));
    struct buffer store = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    config_store_show(config, &store);
    json_member_string(&json, "store", buffer_slice(&store));
    buffer_release(&store);
    json_member_array(&json, "destinations");
    for (size_t i = 0; i < config->destination_count; i++)
        json_put_string(&json, slice_from(config->destinations[i].name));
    json_array_end(&json);
    json_member_array(&json, "warnings");
    for (size_t i = 0; i < config->warnings.count; i++)
        json_put_string(&json, slice_from(config->warnings.items[i]));
    json_array_end(&json);
    json_object_end(&json);
    buffer_append_byte(out, '\n');
}

static void append_summary(const struct cli *cli, const struct config *config, struct buffer *out)
{
    if (cli->json) {
        append_json(config, out);
        return;
    }
    char address[LISTEN_TEXT_BYTES];
    listen_format(&config->listen, config->listen.port, address);
    buffer_printf(out, "%s: valid; %zu destination%s, listens on ", config->path ? config->path : "built-in defaults",
                  config->destination_count, config->destination_count == 1 ? "" : "s");
    config_hide(config, address, out);
    buffer_append_byte(out, '\n');
}

/* What the file refers to: all that is wrong with it, one line each. */
static enum status look_around(const struct config *config)
{
    struct buffer problems = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    size_t count = daemon_problems(config, store_backends, &problems);
    struct error error;
    if (count == 0 && store_probe(store_backends, slice_from(config->store), config->durability == DURABILITY_ALWAYS,
                                  &error) != STATUS_OK) {
        buffer_printf(&problems, "%s:%zu:%zu: store: ", config->path ? config->path : "defaults", config->store_at.line,
                      config->store_at.column);
        config_hide(config, error.text, &problems);
        buffer_append_byte(&problems, '\n');
        count++;
    }
    struct slice text = buffer_slice(&problems);
    fprintf(stderr, "%.*s", SLICE_ARG(text));
    buffer_release(&problems);
    return count > 0 ? STATUS_INVALID : STATUS_OK;
}

/* Another daemon there is no mistake: it may be the one that is to be reloaded. */
static void warn_of_port(const struct config *config)
{
    char port[16];
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
    struct addrinfo *found = NULL;
    const int on = 1;
    snprintf(port, sizeof port, "%d", config->listen.port);
    int failure = getaddrinfo(config->listen.host, port, &hints, &found);
    int fd = failure == 0 ? socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
    bool bound = false;
    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        bound = bind(fd, found->ai_addr, found->ai_addrlen) == 0;
    }
    if (!bound && errno != EADDRINUSE)
        fprintf(stderr, "warning: cannot listen there on this machine: %s\n",
                failure ? gai_strerror(failure) : strerror(errno));
    if (fd >= 0)
        close(fd);
    freeaddrinfo(found);
}

/* These are allowed, but probably not meant. */
static void warn(const struct config *config)
{
    for (size_t i = 0; i < config->warnings.count; i++)
        fprintf(stderr, "warning: %s\n", config->warnings.items[i]);
    if (config->destination_count == 0)
        fputs("warning: there are no destinations, so that no job can be added\n", stderr);
    warn_of_port(config);
}

static int check(const struct cli *cli, const char *path, struct buffer *out)
{
    struct config *config = NULL;
    enum status status = configuration_read(path, &config);
    if (status == STATUS_OK)
        status = look_around(config);
    int code = EXIT_DONE;
    if (status == STATUS_OK) {
        warn(config);
        append_summary(cli, config, out);
    } else
        code = cli_fail(status == STATUS_NO_MEMORY ? EXIT_FAILED : EXIT_USAGE, "%s is not valid",
                        path ? path : "the built-in configuration");
    config_unref(config);
    return code;
}

int command_check(struct cli *cli)
{
    const char *path = NULL;
    bool reference = false;
    const struct option_row rows[] = {
        { "config", 'c', .value = &path },
        { "reference", '\0', .flag = &reference },
        { 0 },
    };
    int code = EXIT_DONE;
    if (!command_options(cli, rows, 1))
        return cli->code;
    if (cli->arguments.count == 1 && path)
        return cli_usage("check", "give one file, not both \"%s\" and \"%s\"", path, cli->arguments.items[0]);
    if (cli->arguments.count == 1)
        path = cli->arguments.items[0];
    struct buffer out = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    if (reference)
        config_reference(&out);
    else
        code = check(cli, configuration_path(path), &out);
    if (code == EXIT_DONE)
        return cli_print(&out, EXIT_DONE);
    buffer_release(&out);
    return code;
}
