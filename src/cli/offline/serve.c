#include "base/log.h"
#include "cli/offline/configuration.h"
#include "cli/offline/offline.h"
#include "cli/options.h"
#include "daemon/daemon.h"

#include <stdio.h>

static void on_ready(void *context, int port)
{
    const struct config *config = context;
    char address[LISTEN_TEXT_BYTES];
    listen_format(&config->listen, port, address);
    struct buffer store = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    config_store_show(config, &store);
    printf("insist %s listens on http://%s, store %.*s\n", INSIST_VERSION, address, SLICE_ARG(buffer_slice(&store)));
    buffer_release(&store);
    if (config->destination_count == 0)
        printf("There is no destination yet: write one into insist.yaml (see docs/configuration.md), then send SIGHUP.\n");
    else
        printf("Try:   echo hello | insist add %s -\n       insist jobs\n       curl http://%s/v1/stats\n",
               config->destinations[0].name, address);
    if (fflush(stdout) != 0)
        clearerr(stdout); /* who is not greeted is served all the same, and the end is not to be called a failure */
}

static int serve(const char *path, const char *level_name, bool init)
{
    struct config *config = NULL;
    enum log_level level;
    if (level_name && !log_level_from_name(slice_from(level_name), &level))
        return cli_usage("serve", "--log-level is one of debug, info, warn, error");
    if (level_name)
        log_set_level(level);
    enum status status = configuration_read(path, &config);
    if (status != STATUS_OK)
        return cli_fail(status == STATUS_NO_MEMORY ? EXIT_FAILED : EXIT_USAGE, "%s is not valid; nothing was started",
                        path ? path : "the built-in configuration");

    struct error error;
    struct daemon_settings settings = { .config = config, .config_path = path, .backends = store_backends,
                                        .init = init, .on_ready = on_ready, .context = config };
    status = daemon_run(&settings, &error);
    config_unref(config);
    if (status == STATUS_OK)
        return EXIT_DONE;
    return cli_fail(status == STATUS_INVALID || status == STATUS_UNSUPPORTED ? EXIT_USAGE : EXIT_FAILED, "%s", error.text);
}

int command_serve(struct cli *cli)
{
    const char *path = NULL;
    const char *level = NULL;
    bool init = false;
    const struct option_row rows[] = {
        { "config", 'c', .value = &path },
        { "log-level", '\0', .value = &level },
        { "init", '\0', .flag = &init },
        { 0 },
    };
    if (!command_options(cli, rows, 0))
        return cli->code;
    return serve(path ? path : cli_config_path(), level, init);
}
