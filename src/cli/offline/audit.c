#include "base/json.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/offline/audit_file.h"
#include "cli/offline/configuration.h"
#include "cli/options.h"
#include "store/sqlite/sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXPORT_BYTES = 256 << 10 };

/* What the command line and the configuration say. */
struct audit {
    const struct cli *cli;
    const char *file, *out;
    struct config *config;
    const char *path; /* of the store */
    struct trail_key key;
    bool key_set;
    struct trail_head expected[TRAIL_EXPECTED_MAX];
    size_t expected_count;
};

/* ---- verify ---- */

static void append_chain(const struct cli *cli, const struct trail_check *check, struct buffer *out)
{
    char hash[EVENT_HASH_BYTES * 2 + 1], head[TRAIL_HEAD_BYTES];
    hex_format(check->at.hash, EVENT_HASH_BYTES, hash);
    trail_head_format(&check->at, head);
    bool none = check->at.number < check->first;
    if (cli->json) {
        struct json_writer json = json_writer(out);
        json_object_begin(&json);
        json_member_bool(&json, "valid", true);
        json_member_int(&json, "events", check->at.number - check->first + 1);
        json_member_int(&json, "first", none ? 0 : check->first);
        json_member_int(&json, "last", check->at.number);
        json_member_text(&json, "hash", hash);
        json_member_text(&json, "head", head);
        json_member_int(&json, "plain", check->forms[EVENT_FORM_PLAIN]);
        json_member_int(&json, "salted", check->forms[EVENT_FORM_SALTED]);
        json_member_int(&json, "keyed", check->forms[EVENT_FORM_KEYED]);
        json_member_int(&json, "erased", check->erased);
        json_member_int(&json, "unchecked", check->unchecked);
        json_object_end(&json);
        buffer_append_byte(out, '\n');
        return;
    }
    if (none)
        buffer_append_text(out, "There are no events.\n");
    else
        buffer_printf(out,
                      "Events %" PRId64 " to %" PRId64 " are what was written. Note elsewhere where they end, and compare later "
                      "with --expect:\n%s\n",
                      check->first, check->at.number, head);
    if (check->forms[EVENT_FORM_PLAIN] > 0)
        buffer_printf(out, "%" PRId64 " are of an older form: their data is part of their hash and cannot be erased.\n",
                      check->forms[EVENT_FORM_PLAIN]);
    if (check->erased > 0)
        buffer_printf(out, "The data of %" PRId64 " was erased.\n", check->erased);
    if (check->unchecked > 0)
        buffer_printf(out, "%" PRId64 " of the events to expect were trimmed since and cannot be compared.\n",
                      check->unchecked);
}

static int verify(struct audit *audit)
{
    struct trail_check check = { 0 };
    struct error err;
    struct buffer out;
    const struct trail_key *key = audit->key_set ? &audit->key : NULL;
    struct store_sqlite_trail trail = { .key = key, .expected = audit->expected, .expected_count = audit->expected_count };
    const char *place = audit->file ? audit->file : audit->path;
    enum status status = audit->file
                             ? audit_file_verify(audit->file, key, audit->expected, audit->expected_count, &check, &err)
                             : store_sqlite_trail(audit->path, &trail, &check, &err);
    if (status == STATUS_CORRUPT)
        return cli_fail(EXIT_FAILED, "%s: %s; events from there on prove nothing", place, err.text);
    if (status == STATUS_NOT_FOUND)
        return cli_fail(EXIT_FAILED, "%s", err.text);
    if (status != STATUS_OK)
        return cli_fail(EXIT_FAILED, "%s: %s", place, err.text);
    buffer_init(&out, CLI_OUTPUT_BYTES_MAX);
    append_chain(audit->cli, &check, &out);
    int code = cli_print(&out, EXIT_DONE);
    buffer_release(&out);
    return code;
}

/* ---- export ---- */

struct exporting {
    int descriptor;
    struct buffer out;
};

static enum status export_flush(struct exporting *exporting, size_t more_than, struct error *err)
{
    if (buffer_status(&exporting->out) != STATUS_OK)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the lines");
    if (exporting->out.len <= more_than)
        return STATUS_OK;
    if (cli_write(exporting->descriptor, buffer_slice(&exporting->out)) != STATUS_OK)
        return error_set(err, STATUS_IO, "cannot write: %s", strerror(errno));
    buffer_clear(&exporting->out);
    return STATUS_OK;
}

static enum status export_begin(void *context, const struct trail_head *anchor, struct error *err)
{
    struct exporting *exporting = context;
    audit_line_begin(&exporting->out, anchor);
    return export_flush(exporting, EXPORT_BYTES, err);
}

static enum status export_event(void *context, const struct event *event, struct error *err)
{
    struct exporting *exporting = context;
    audit_line_event(&exporting->out, event);
    return export_flush(exporting, EXPORT_BYTES, err);
}

static int export(struct audit *audit)
{
    struct exporting exporting = { .descriptor = STDOUT_FILENO };
    struct store_sqlite_trail trail = { .key = audit->key_set ? &audit->key : NULL, .expected = audit->expected,
                                        .expected_count = audit->expected_count, .begin = export_begin,
                                        .visit = export_event, .context = &exporting };
    struct trail_check check;
    struct error err;
    if (audit->file)
        return cli_usage("audit", "--file goes with verify");
    if (audit->out)
        exporting.descriptor = open(audit->out, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (exporting.descriptor < 0)
        return cli_fail(EXIT_USAGE, "cannot make %s: %s", audit->out, strerror(errno));
    buffer_init(&exporting.out, SIZE_MAX / 4);
    enum status status = store_sqlite_trail(audit->path, &trail, &check, &err);
    struct error ignored;
    enum status flushed = export_flush(&exporting, 0, status == STATUS_OK ? &err : &ignored);
    buffer_release(&exporting.out);
    if (audit->out && fsync(exporting.descriptor) != 0 && status == STATUS_OK && flushed == STATUS_OK)
        flushed = error_set(&err, STATUS_IO, "cannot write: %s", strerror(errno));
    if (audit->out)
        close(exporting.descriptor);
    if (status == STATUS_OK && flushed == STATUS_OK)
        return EXIT_DONE;
    return cli_fail(EXIT_FAILED, "%s: %s; what was written ends before that", audit->path, err.text);
}

/* ---- the command ---- */

static int read_expected(struct audit *audit, const struct arguments *arguments)
{
    struct error err;
    for (size_t i = 0; i < arguments->repeated_count; i++) {
        enum status status = trail_head_parse(slice_from(arguments->repeated[i].value),
                                              &audit->expected[audit->expected_count++], &err);
        if (status != STATUS_OK)
            return cli_usage("audit", "--expect: %s", err.text);
    }
    return EXIT_DONE;
}

int command_audit(struct cli *cli, int argc, char **argv)
{
    const char *config = NULL;
    struct audit audit = { .cli = cli };
    const struct option_row rows[] = { { "config", 'c', &config, NULL },   { "expect", '\0', NULL, NULL },
                                       { "file", '\0', &audit.file, NULL }, { "out", '\0', &audit.out, NULL },
                                       { NULL, '\0', NULL, NULL } };
    struct arguments arguments;
    int code;
    if (!command_options(cli, rows, argc, argv, 1, &arguments, &code))
        return code;
    const char *action = arguments.count > 0 ? arguments.items[0] : "";
    bool exports = strcmp(action, "export") == 0;
    if (!exports && strcmp(action, "verify") != 0)
        return cli_usage("audit", "say what to do: verify or export");
    if (audit.out && !exports)
        return cli_usage("audit", "--out goes with export");
    code = read_expected(&audit, &arguments);
    if (code == EXIT_DONE)
        code = configuration_load(config, &audit.config);
    if (code != EXIT_DONE)
        return code;
    audit.path = configuration_sqlite_path(audit.config);
    audit.key_set = audit.config->audit_key != NULL;
    if (audit.key_set)
        trail_key_init(&audit.key, slice_from(audit.config->audit_key));
    if (!audit.path && !audit.file)
        code = cli_fail(EXIT_USAGE, "store %s is no file; only sqlite: stores are", audit.config->store);
    else
        code = exports ? export(&audit) : verify(&audit);
    config_unref(audit.config);
    return code;
}
