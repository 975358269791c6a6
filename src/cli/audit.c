#include "base/json.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/configuration.h"
#include "cli/options.h"
#include "store/store_sqlite.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void append_chain(const struct cli *cli, const struct store_sqlite_chain *chain, struct buffer *out)
{
    char hash[EVENT_HASH_BYTES * 2 + 1];
    hex_format(chain->hash, EVENT_HASH_BYTES, hash);
    bool none = chain->last < chain->first;
    if (cli->json) {
        struct json_writer json = json_writer(out);
        json_object_begin(&json);
        json_member_bool(&json, "valid", true);
        json_member_int(&json, "events", chain->last - chain->first + 1);
        json_member_int(&json, "first", none ? 0 : chain->first);
        json_member_int(&json, "last", chain->last);
        json_member_text(&json, "hash", hash);
        json_object_end(&json);
        buffer_append_byte(out, '\n');
    } else if (none) {
        buffer_append_text(out, "There are no events.\n");
    } else {
        buffer_printf(out, "Events %" PRId64 " to %" PRId64 " are what was written. The last one's hash: %s\n", chain->first,
                      chain->last, hash);
    }
}

static int verify(const struct cli *cli, const char *path)
{
    struct store_sqlite_chain chain;
    struct error err;
    struct buffer out;
    enum status status = store_sqlite_verify(path, &chain, &err);
    if (status == STATUS_CORRUPT)
        return cli_fail(EXIT_FAILED, "%s: %s; events from there on prove nothing", path, err.text);
    if (status == STATUS_NOT_FOUND)
        return cli_fail(EXIT_FAILED, "%s", err.text);
    if (status != STATUS_OK)
        return cli_fail(EXIT_FAILED, "%s: %s", path, err.text);
    buffer_init(&out, CLI_OUTPUT_BYTES_MAX);
    append_chain(cli, &chain, &out);
    int code = cli_print(&out, EXIT_DONE);
    buffer_release(&out);
    return code;
}

static int run(struct cli *cli, int argc, char **argv)
{
    const char *config = NULL;
    char *path = NULL;
    const struct option_row rows[] = { { "config", 'c', &config, NULL }, { NULL, '\0', NULL, NULL } };
    struct arguments arguments;
    int code;
    if (!command_options(cli, &command_audit, rows, argc, argv, 1, &arguments, &code))
        return code;
    if (arguments.count == 0 || strcmp(arguments.items[0], "verify") != 0)
        return cli_usage("audit", "say what to do: verify");
    code = configuration_store_file(config, &path);
    if (code == EXIT_DONE)
        code = verify(cli, path);
    free(path);
    return code;
}

const struct command command_audit = {
    .name = "audit",
    .summary = "verify the trail of events",
    .help = "usage: insist audit verify [-c CONFIG]\n\n"
            "Every event has a hash over itself and the one before. This follows them through the store, from the\n"
            "oldest that is kept, and says where one is missing or is not what was written. Note the last hash\n"
            "elsewhere: with it a trail that was rewritten as a whole shows, too. The daemon may run.\n\n"
            "Options:\n"
            "  -c, --config FILE   the daemon's configuration\n"
            "  -o, --output json   a JSON object\n\n"
            "Exit codes: 0 all is as it was written; 1 it is not, or cannot be read.\n\n"
            "Examples:\n"
            "  insist audit verify\n"
            "  insist audit verify -c /etc/insist/insist.yaml -o json\n",
    .run = run,
};
