#include "base/log.h"
#include "cli/commands.h"
#include "cli/offline/configuration.h"
#include "cli/offline/policies.h"
#include "cli/options.h"
#include "daemon/daemon.h"

#include <stdio.h>

static void on_ready(void *context, int port)
{
    const struct config *config = context;
    char address[LISTEN_TEXT_BYTES];
    listen_format(&config->listen, port, address);
    printf("insist %s listens on http://%s, store %s\n", INSIST_VERSION, address, config->store);
    if (config->destination_count == 0)
        printf("There is no destination yet: write one into insist.yaml (see docs/configuration.md), then send SIGHUP.\n");
    else
        printf("Try:   echo hello | insist add %s -\n       insist jobs\n       curl http://%s/v1/stats\n",
               config->destinations[0].name, address);
    fflush(stdout);
}

static int serve(const char *path, const char *level_name, bool init)
{
    struct config *config = NULL;
    struct buffer problems;
    enum log_level level;
    if (level_name && !log_level_from_name(slice_from(level_name), &level))
        return cli_usage("serve", "--log-level is one of debug, info, warn, error");
    if (level_name)
        log_set_level(level);
    buffer_init(&problems, PROBLEMS_BYTES_MAX);
    enum status status = path ? config_load(path, &config, &problems) : config_default(&config);
    problems_print(&problems);
    buffer_release(&problems);
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

static int run(struct cli *cli, int argc, char **argv)
{
    const char *path = NULL;
    const char *level = NULL;
    bool init = false;
    const struct option_row rows[] = {
        { "config", 'c', &path, NULL },
        { "log-level", '\0', &level, NULL },
        { "init", '\0', NULL, &init },
        { NULL, '\0', NULL, NULL },
    };
    struct arguments arguments;
    int code;
    if (!command_options(cli, &command_serve, rows, argc, argv, 0, &arguments, &code))
        return code;
    return serve(path ? path : cli_config_path(), level, init);
}

const struct command command_serve = {
    .name = "serve",
    .summary = "the daemon",
    .help = "usage: insist serve [-c FILE] [--init] [--log-level LEVEL]\n\n"
            "Stores jobs, delivers them and answers the HTTP API until SIGTERM or SIGINT; then it takes no more work,\n"
            "lets sends under way end (30 s at most) and stops. SIGHUP reads the configuration again: a bad file\n"
            "changes nothing. Logs go to standard error, one JSON object a line.\n"
            "A new store is made only in an empty folder that is there, or with --init.\n"
            "Without -c: ./insist.yaml, then /etc/insist/insist.yaml, then the built-in defaults.\n\n"
            "Options:\n"
            "  -c, --config FILE       the configuration\n"
            "      --init              make the store, and the folders to it, where there is none\n"
            "      --log-level LEVEL   debug, info, warn or error (info)\n\n"
            "Exit codes: 0 stopped in order; 1 it could not start, or the store failed; 2 the configuration is not valid.\n\n"
            "Examples:\n"
            "  insist serve -c insist.yaml\n"
            "  insist serve --init         the first time, where ./data is to be made\n",
    .run = run,
};
