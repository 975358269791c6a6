#include "base/json.h"
#include "base/units.h"
#include "cli/offline/configuration.h"
#include "cli/offline/offline.h"
#include "cli/options.h"
#include "store/inspect.h"

#include <inttypes.h>

static void append_facts(const struct cli *cli, const char *target, const struct store_facts *facts, struct buffer *out)
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
    struct json_writer json = json_begin(out);
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

static int back_up(const struct cli *cli, struct store *store, const char *target)
{
    struct store_facts facts;
    struct error err;
    struct buffer out = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    enum status status = store_backup(store, target, &facts, &err);
    if (status == STATUS_NOT_FOUND)
        return cli_fail(EXIT_FAILED, "%s; run it in the folder that the daemon runs in, or name its configuration with -c",
                        err.text);
    if (status == STATUS_CONFLICT)
        return cli_fail(EXIT_FAILED, "%s", err.text);
    if (status != STATUS_OK)
        return cli_fail(EXIT_FAILED, "%s: %s", store->place, err.text);
    append_facts(cli, target, &facts, &out);
    return cli_print(&out, EXIT_DONE);
}

int command_backup(struct cli *cli)
{
    const char *path = NULL;
    struct config *config = NULL;
    struct store *store = NULL;
    const struct option_row rows[] = { { "config", 'c', .value = &path }, { 0 } };
    if (!command_options(cli, rows, 1))
        return cli->code;
    if (cli->arguments.count == 0)
        return cli_usage("backup", "name the file to write");
    int code = configuration_load(path, &config);
    if (code != EXIT_DONE)
        return code;
    code = configuration_look(config, &store);
    if (code == EXIT_DONE) {
        code = back_up(cli, store, cli->arguments.items[0]);
        store->ops->close(store);
    }
    config_unref(config);
    return code;
}
