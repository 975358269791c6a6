#include "base/json.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/offline/configuration.h"
#include "cli/options.h"
#include "store/sqlite/sqlite.h"

#include <inttypes.h>
#include <stdlib.h>

static void append_facts(const struct cli *cli, const char *target, const struct store_sqlite_facts *facts,
                         struct buffer *out)
{
    char size[UNITS_TEXT_BYTES];
    if (!cli->json) {
        size_format(facts->bytes, size);
        buffer_printf(out,
                      "%s: %s; %" PRId64 " pending, %" PRId64 " running, %" PRId64 " waiting, %" PRId64
                      " dead; newest event %" PRId64 "\n",
                      target, size, facts->pending, facts->running, facts->waiting, facts->dead, facts->event_last);
        return;
    }
    struct json_writer json = json_writer(out);
    json_object_begin(&json);
    json_member_text(&json, "file", target);
    json_member_int(&json, "bytes", facts->bytes);
    json_member_int(&json, "schema_version", facts->schema_version);
    json_member_int(&json, "pending", facts->pending);
    json_member_int(&json, "running", facts->running);
    json_member_int(&json, "waiting", facts->waiting);
    json_member_int(&json, "dead", facts->dead);
    json_member_int(&json, "last_event", facts->event_last);
    json_object_end(&json);
    buffer_append_byte(out, '\n');
}

static int back_up(const struct cli *cli, const char *path, const char *target)
{
    struct store_sqlite_facts facts;
    struct error err;
    struct buffer out;
    enum status status = store_sqlite_backup_file(path, target, &err);
    if (status == STATUS_NOT_FOUND)
        return cli_fail(EXIT_FAILED, "%s; run it in the folder that the daemon runs in, or name its configuration with -c",
                        err.text);
    if (status == STATUS_CONFLICT)
        return cli_fail(EXIT_FAILED, "%s", err.text);
    if (status != STATUS_OK)
        return cli_fail(EXIT_FAILED, "%s: %s", path, err.text);
    status = store_sqlite_facts(target, false, &facts, &err);
    if (status != STATUS_OK)
        return cli_fail(EXIT_FAILED, "the backup %s cannot be read again: %s", target, err.text);
    buffer_init(&out, CLI_OUTPUT_BYTES_MAX);
    append_facts(cli, target, &facts, &out);
    int code = cli_print(&out, EXIT_DONE);
    buffer_release(&out);
    return code;
}

int command_backup(struct cli *cli)
{
    const char *config = NULL;
    char *path = NULL;
    const struct option_row rows[] = { { "config", 'c', &config, NULL }, { NULL, '\0', NULL, NULL } };
    if (!command_options(cli, rows, 1))
        return cli->code;
    if (cli->arguments.count == 0)
        return cli_usage("backup", "name the file to write");
    int code = configuration_store_file(config, &path);
    if (code == EXIT_DONE)
        code = back_up(cli, path, cli->arguments.items[0]);
    free(path);
    return code;
}
