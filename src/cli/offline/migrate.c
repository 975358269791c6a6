#include "base/json.h"
#include "cli/offline/configuration.h"
#include "cli/offline/offline.h"
#include "cli/options.h"
#include "cli/talk/bar.h"
#include "store/inspect.h"
#include "store/move.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct migration {
    const struct cli *cli;
    struct config *config;
    struct trail_key key;
    bool key_set;
    struct bar bar;
    enum move_kind kind;
    bool compares;
};

/* ---- how far it is ---- */

static void show_progress(void *context, bool compares, enum move_kind kind, int64_t done, int64_t all)
{
    struct migration *migration = context;
    char text[64];
    if (kind != migration->kind || compares != migration->compares)
        bar_end(&migration->bar); /* the next is shown at once */
    migration->kind = kind;
    migration->compares = compares;
    snprintf(text, sizeof text, "%s %s", move_kind_facts(kind)->name, compares ? "compared" : "moved");
    bar_show(&migration->bar, done, all, text);
}

/* ---- the command ---- */

static void said_schema(int from, int to)
{
    fprintf(stderr, "insist: the store is brought from schema version %d to %d first\n", from, to);
}

static int open_store(const struct migration *migration, const char *option, const char *address, enum store_make make,
                      struct store **ret_store)
{
    const char *key = migration->config->audit_key;
    struct error err;
    const struct store_settings settings = { .make = make,
                                             .sync_always = true,
                                             .for_move = true,
                                             .own_tenant = SLICE(""),
                                             .audit_key = key ? slice_from(key) : SLICE(""),
                                             .on_migrate = said_schema };
    enum status status = store_open(store_backends, slice_from(address), &settings, ret_store, &err);
    if (status == STATUS_OK)
        return EXIT_DONE;
    bool unusable = status == STATUS_UNSUPPORTED || status == STATUS_INVALID;
    return cli_fail(unusable ? EXIT_USAGE : EXIT_FAILED, "--%s: %s%s", option, err.text,
                    status == STATUS_BUSY ? "; all daemons are stopped for a move" : "");
}

/* A file that is not there is no source: it would be made, and be empty. */
static int source_check(const char *address)
{
    struct store *store;
    struct store_facts facts;
    struct error err;
    enum status status = store_look(store_backends, slice_from(address), &store, &err);
    if (status == STATUS_OK) {
        status = store_facts(store, &facts, &err);
        store->ops->close(store);
    }
    return status == STATUS_OK ? EXIT_DONE : cli_fail(EXIT_FAILED, "--from: %s", err.text);
}

static void append_result(const struct migration *migration, const struct move *move, const struct move_result *result,
                          struct buffer *out)
{
    char head[TRAIL_HEAD_BYTES];
    trail_head_format(&result->check.at, head);
    if (migration->cli->json) {
        struct json_writer json = json_begin(out);
        json_member_int(&json, "jobs", result->counts[MOVE_JOB]);
        json_member_int(&json, "events", result->counts[MOVE_EVENT]);
        json_member_int(&json, "lanes", result->counts[MOVE_LANE]);
        json_member_int(&json, "saved", result->counts[MOVE_SAVED]);
        json_member_bool(&json, "resumed", result->resumed || result->complete);
        json_member_bool(&json, "trail_valid", !result->broken);
        if (!result->broken)
            json_member_text(&json, "head", head);
        json_object_end(&json);
        buffer_append_byte(out, '\n');
        return;
    }
    buffer_printf(out,
                  "%s: %" PRId64 " jobs, %" PRId64 " events, %" PRId64 " lanes and %" PRId64
                  " saved values are there, row by row what they were.\n",
                  move->to->place, result->counts[MOVE_JOB], result->counts[MOVE_EVENT], result->counts[MOVE_LANE],
                  result->counts[MOVE_SAVED]);
    if (result->complete)
        buffer_append_text(out, "They had been moved before: nothing was written.\n");
    if (result->broken)
        buffer_printf(out, "The trail did not hold before, and does not now: %s.\n", result->why.text);
    else
        buffer_printf(out, "The trail holds, up to %s\n", head);
    buffer_printf(out,
                  "Set `store:` to the new one. Never start a daemon on %s again: it would send what it has a second"
                  " time.\n",
                  move->from->place);
}

static int run(struct migration *migration, struct store *from, struct store *to)
{
    struct move_result result;
    struct error err;
    struct buffer out = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    const struct move move = { .from = from, .to = to, .key = migration->key_set ? &migration->key : NULL,
                               .progress = show_progress, .context = migration };
    enum status status = store_move(&move, &result, &err);
    bar_end(&migration->bar);
    if (status != STATUS_OK)
        return cli_fail(EXIT_FAILED, "%s", err.text);
    append_result(migration, &move, &result, &out);
    return cli_print(&out, EXIT_DONE);
}

static int migrate(struct migration *migration, const char *from, const char *to)
{
    struct store *source = NULL, *target = NULL;
    int code = source_check(from);
    if (code == EXIT_DONE)
        code = open_store(migration, "from", from, STORE_MAKE_IN_EMPTY_FOLDER, &source);
    if (code == EXIT_DONE)
        code = open_store(migration, "to", to, STORE_MAKE, &target);
    if (code == EXIT_DONE)
        code = run(migration, source, target);
    if (target)
        target->ops->close(target);
    if (source)
        source->ops->close(source);
    return code;
}

int command_migrate(struct cli *cli)
{
    const char *config = NULL, *from = NULL, *to = NULL;
    struct migration migration = { .cli = cli, .bar = bar_begin(true), .kind = MOVE_KINDS };
    const struct option_row rows[] = { { "config", 'c', .value = &config }, { "from", '\0', .value = &from },
                                       { "to", '\0', .value = &to }, { 0 } };
    if (!command_options(cli, rows, 0))
        return cli->code;
    if (!from || !to)
        return cli_usage("migrate", "name both stores: --from and --to");
    if (strcmp(from, to) == 0)
        return cli_usage("migrate", "--from and --to are the same store");
    int code = configuration_load(config, &migration.config);
    if (code != EXIT_DONE)
        return code;
    migration.key_set = migration.config->audit_key != NULL;
    if (migration.key_set)
        trail_key_init(&migration.key, slice_from(migration.config->audit_key));
    code = migrate(&migration, from, to);
    config_unref(migration.config);
    return code;
}
