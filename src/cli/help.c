#include "base/embedded.h"
#include "cli/cli.h"
#include "cli/options.h"

#include <assert.h>
#include <string.h>

static void append_list(struct buffer *out)
{
    buffer_append_text(out, "usage: insist [--server URL] [--token T] [--output table|json] COMMAND ...\n\n"
                            "Delivers work to services that fail: stores it, sends it, decides, waits, and says why.\n\n"
                            "Commands:\n");
    for (size_t i = 0; commands[i].name; i++)
        buffer_printf(out, "  %-12s %s\n", commands[i].name, commands[i].summary);
    buffer_append_text(out, "\nOptions of every command:\n"
                            "  --server URL           the daemon to talk to (INSIST_SERVER; http://127.0.0.1:7878)\n"
                            "  --token T              the token to show it (INSIST_TOKEN)\n"
                            "  -o, --output FORMAT    table or json\n"
                            "  -h, --help             this text, or a command's own\n"
                            "  -V, --version          the version\n\n"
                            "Exit codes: 0 done; 1 failed; 2 wrong use or invalid input; 10 permanent error;\n"
                            "11 retries exhausted. NO_COLOR switches colours off.\n\n"
                            "`insist help COMMAND` shows a command's options and examples.\n");
}

int help_print(const struct command *command)
{
    const struct embedded_file *page = embedded_help;
    while (page->name && strcmp(page->stem, command->name) != 0)
        page++;
    assert(page->name);
    struct buffer out = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    buffer_append(&out, (struct slice){ page->data, page->len });
    return cli_print(&out, EXIT_DONE);
}

int command_help(struct cli *cli)
{
    cli->help = cli->help && cli->argc > 1; /* `insist --help` comes here and wants the list */
    /* Of `help dead list` the first word counts: one text has all that the command can do. */
    if (!command_options(cli, NULL, OPTIONS_ARGUMENTS_MAX))
        return cli->code;
    if (cli->arguments.count > 0) {
        const struct command *command = command_find(slice_from(cli->arguments.items[0]));
        return command ? help_print(command) : cli_usage(NULL, "there is no command \"%s\"", cli->arguments.items[0]);
    }
    struct buffer out = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    append_list(&out);
    return cli_print(&out, EXIT_DONE);
}
