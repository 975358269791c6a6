#include "base/json.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/offline/configuration.h"
#include "cli/offline/offline.h"
#include "cli/options.h"
#include "cli/talk/lines.h"
#include "store/inspect.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the trail in a file ---- */

enum { LINE_BYTES_MAX = 1 << 20 };

/* ---- writing ---- */

static void member_hex(struct json_writer *json, const char *name, const unsigned char *bytes, size_t count)
{
    char text[EVENT_HASH_BYTES * 2 + 1];
    hex_format(bytes, count, text);
    json_member_text(json, name, text);
}

/* These write the lines. */
static void audit_line_begin(struct buffer *out, const struct trail_head *anchor)
{
    struct json_writer json = json_begin(out);
    json_member_int(&json, "after", anchor->number);
    member_hex(&json, "hash", anchor->hash, EVENT_HASH_BYTES);
    json_object_end(&json);
    buffer_append_byte(out, '\n');
}

static void audit_line_event(struct buffer *out, const struct event *event)
{
    struct json_writer json = json_begin(out);
    json_member_int(&json, "number", event->number);
    json_member_instant(&json, "at", event->at);
    json_member_text(&json, "type", event_type_name(event->type));
    if (event->state != STATE_NONE)
        json_member_text(&json, "state", job_state_name(event->state));
    json_member_int(&json, "attempt", event->attempt);
    json_member_int(&json, "previous", event->previous);
    json_member_given(&json, "destination", event->destination);
    json_member_given(&json, "tenant", event->tenant);
    json_member_given(&json, "job", event->job);
    json_member_int(&json, "form", event->form);
    json_member_given(&json, "data", event->data);
    if (event->erased)
        member_hex(&json, "digest", event->digest, EVENT_HASH_BYTES);
    else if (event->data.len > 0 && event->form != EVENT_FORM_PLAIN)
        member_hex(&json, "salt", event->salt, EVENT_SALT_BYTES);
    member_hex(&json, "hash", event->hash, EVENT_HASH_BYTES);
    json_object_end(&json);
    buffer_append_byte(out, '\n');
}

/* ---- reading ---- */

static struct slice text_of(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_string(value) ? (struct slice){ json_string_value(value), json_string_length(value) } : SLICE("");
}

static int64_t int_of(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

/* Hexadecimal digits of just so many bytes; absent: zeros. */
static bool bytes_of(const json_t *object, const char *name, unsigned char *ret_bytes, size_t count)
{
    char padded[EVENT_HASH_BYTES * 2];
    unsigned char bytes[EVENT_HASH_BYTES];
    struct slice text = text_of(object, name);
    memset(ret_bytes, 0, count);
    if (text.len == 0)
        return true;
    if (text.len != count * 2)
        return false;
    memset(padded, '0', sizeof padded);
    memcpy(padded, text.data, text.len);
    if (!trail_hash_parse((struct slice){ padded, sizeof padded }, bytes))
        return false;
    memcpy(ret_bytes, bytes, count);
    return true;
}

/* The event borrows from the object. */
static bool event_of(const json_t *object, struct event *ret_event)
{
    struct slice state = text_of(object, "state");
    struct event event = {
        .number = int_of(object, "number"),
        .type = event_type_from_name(text_of(object, "type")),
        .state = state.len ? job_state_from_name(state) : STATE_NONE,
        .attempt = int_of(object, "attempt"),
        .previous = int_of(object, "previous"),
        .destination = text_of(object, "destination"),
        .tenant = text_of(object, "tenant"),
        .job = text_of(object, "job"),
        .data = text_of(object, "data"),
        .form = (enum event_form)int_of(object, "form"),
        .erased = json_object_get(object, "digest") != NULL,
    };
    *ret_event = event;
    return event.type != EVENT_TYPE_NONE && instant_parse(text_of(object, "at"), &ret_event->at, NULL) == STATUS_OK &&
           bytes_of(object, "salt", ret_event->salt, EVENT_SALT_BYTES) &&
           bytes_of(object, "digest", ret_event->digest, EVENT_HASH_BYTES) &&
           bytes_of(object, "hash", ret_event->hash, EVENT_HASH_BYTES) && !(event.erased && event.data.len > 0);
}

struct reading {
    struct trail_check *checks; /* a chain each: one may tell of another's trims */
    size_t count;
    const struct trail_key *key;
    const struct trail_head *expected;
    size_t expected_count;
    int64_t line;
};

static enum status line_read(struct reading *reading, struct slice line, struct error *err)
{
    struct event event;
    struct trail_head anchor;
    enum status status = STATUS_CORRUPT;
    json_t *object = json_loadb(line.data, line.len, JSON_ALLOW_NUL, NULL);
    reading->line++;
    error_set(err, status, "line %" PRId64 " is none of an exported trail", reading->line);
    if (object && json_is_integer(json_object_get(object, "after")) &&
        bytes_of(object, "hash", anchor.hash, EVENT_HASH_BYTES)) {
        anchor.number = int_of(object, "after");
        status = reading->count < TRAIL_CHAINS_MAX
                     ? STATUS_OK
                     : error_set(err, STATUS_UNSUPPORTED, "it has more than %d chains", TRAIL_CHAINS_MAX);
        if (status == STATUS_OK) /* each chain begins so */
            trail_check_begin(&reading->checks[reading->count++], reading->key, &anchor, reading->expected,
                              reading->expected_count);
    } else if (object && reading->count > 0 && event_of(object, &event)) {
        status = trail_check_event(&reading->checks[reading->count - 1], &event, err);
    }
    json_decref(object);
    return status;
}

static enum status lines_read(struct reading *reading, struct lines *lines, struct error *err)
{
    enum status status = STATUS_OK;
    struct slice line;
    while (status == STATUS_OK) {
        enum line_kind kind = lines_next(lines, &line);
        if (kind == LINE_WHOLE)
            status = line_read(reading, line, err);
        else if (kind == LINE_TOO_LONG)
            status = error_set(err, STATUS_CORRUPT, "line %" PRId64 " is too long for an event", reading->line + 1);
        else if (lines->ended)
            break;
        else if (!lines_fill(lines))
            status = error_set(err, STATUS_IO, "cannot read it: %s", strerror(errno));
    }
    if (status == STATUS_OK && reading->count == 0)
        status = error_set(err, STATUS_CORRUPT, "it is empty: an exported trail has a first line at least");
    return status;
}

/* Checks a file of such lines, "-": standard input. As store_verify. */
static enum status audit_file_verify(const char *path, const struct trail_key *key, const struct trail_head *expected,
                              size_t expected_count, struct trail_check *ret_check, struct error *err)
{
    struct reading reading = { .checks = calloc(TRAIL_CHAINS_MAX, sizeof *reading.checks), .key = key, .expected = expected,
                               .expected_count = expected_count };
    struct lines lines;
    int descriptor = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
        free(reading.checks);
        return error_set(err, STATUS_NOT_FOUND, "cannot open %s: %s", path, strerror(errno));
    }
    enum status status = !reading.checks ? STATUS_NO_MEMORY : lines_init(&lines, descriptor, LINE_BYTES_MAX);
    if (status == STATUS_OK) {
        status = lines_read(&reading, &lines, err);
        lines_release(&lines);
    } else {
        error_set(err, status, "no memory to read it");
    }
    if (descriptor != STDIN_FILENO)
        close(descriptor);
    if (status == STATUS_OK)
        status = trail_checks_end(reading.checks, NULL, reading.count, err);
    if (reading.count > 0)
        *ret_check = reading.checks[reading.count - 1];
    free(reading.checks);
    return status;
}

/* ---- the command ---- */

enum { EXPORT_BYTES = 256 << 10 };

/* What the command line and the configuration say. */
struct audit {
    const struct cli *cli;
    const char *file, *out;
    struct config *config;
    struct store *store; /* NULL: a file is verified */
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
        struct json_writer json = json_begin(out);
        json_member_bool(&json, "valid", true);
        json_member_int(&json, "events", trail_check_events(check));
        json_member_int(&json, "first", none ? 0 : check->first);
        json_member_int(&json, "last", check->at.number);
        json_member_text(&json, "hash", hash);
        json_member_text(&json, "head", head);
        json_member_array(&json, "heads");
        for (size_t i = 0; i < check->head_count; i++) {
            trail_head_format(&check->heads[i], head);
            json_put_string(&json, slice_from(head));
        }
        json_array_end(&json);
        json_member_int(&json, "plain", check->forms[EVENT_FORM_PLAIN]);
        json_member_int(&json, "salted", check->forms[EVENT_FORM_SALTED]);
        json_member_int(&json, "keyed", check->forms[EVENT_FORM_KEYED]);
        json_member_int(&json, "erased", check->erased);
        json_member_int(&json, "unchecked", check->unchecked);
        json_object_end(&json);
        buffer_append_byte(out, '\n');
        return;
    }
    if (none && trail_check_events(check) == 0)
        buffer_append_text(out, "There are no events.\n");
    else if (none) /* nodes have a chain each, and there was no daemon before them */
        buffer_printf(out,
                      "%" PRId64 " events of %zu chains are what was written. Note elsewhere where they end, and compare later "
                      "with --expect:\n",
                      trail_check_events(check), check->head_count - 1);
    else
        buffer_printf(out,
                      "Events %" PRId64 " to %" PRId64 " are what was written. Note elsewhere where they end, and compare later "
                      "with --expect:\n%s\n",
                      check->first, check->at.number, head);
    for (size_t i = 1; i < check->head_count; i++) {
        trail_head_format(&check->heads[i], head);
        buffer_printf(out, "%s\n", head);
    }
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
    struct buffer out = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    const struct trail_key *key = audit->key_set ? &audit->key : NULL;
    struct trail_reading reading = { .key = key, .expected = audit->expected, .expected_count = audit->expected_count };
    const char *place = audit->file ? audit->file : audit->store->place;
    enum status status = audit->file
                             ? audit_file_verify(audit->file, key, audit->expected, audit->expected_count, &check, &err)
                             : store_verify(audit->store, &reading, &check, &err);
    if (status == STATUS_CORRUPT)
        return cli_fail(EXIT_FAILED, "%s: %s; events from there on prove nothing", place, err.text);
    if (status == STATUS_NOT_FOUND)
        return cli_fail(EXIT_FAILED, "%s%s", err.text,
                        audit->file ? "" : "; run it in the folder that the daemon runs in, or name its configuration with "
                                           "-c");
    if (status != STATUS_OK)
        return cli_fail(EXIT_FAILED, "%s: %s", place, err.text);
    append_chain(audit->cli, &check, &out);
    return cli_print(&out, EXIT_DONE);
}

/* ---- export ---- */

struct exporting {
    int descriptor;
    int failure; /* errno of a write */
    struct buffer out;
};

static enum status export_flush(struct exporting *exporting, size_t more_than, struct error *err)
{
    if (buffer_status(&exporting->out) != STATUS_OK)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the lines");
    if (exporting->out.len <= more_than)
        return STATUS_OK;
    if (cli_write(exporting->descriptor, buffer_slice(&exporting->out)) != STATUS_OK) {
        exporting->failure = errno;
        return error_set(err, STATUS_IO, "cannot write: %s", strerror(errno));
    }
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
    struct trail_reading reading = { .key = audit->key_set ? &audit->key : NULL, .expected = audit->expected,
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
    enum status status = store_verify(audit->store, &reading, &check, &err);
    struct error ignored;
    enum status flushed = export_flush(&exporting, 0, status == STATUS_OK ? &err : &ignored);
    buffer_release(&exporting.out);
    if (audit->out && fsync(exporting.descriptor) != 0 && status == STATUS_OK && flushed == STATUS_OK)
        exporting.failure = errno;
    if (audit->out)
        close(exporting.descriptor);
    if (exporting.failure == EPIPE) /* `insist audit export | head` has all it wanted */
        return EXIT_FAILED;
    if (exporting.failure != 0)
        return cli_fail(EXIT_FAILED, "cannot write %s: %s; it ends before the trail does",
                        audit->out ? audit->out : "to standard output", strerror(exporting.failure));
    if (status == STATUS_OK && flushed == STATUS_OK)
        return EXIT_DONE;
    return cli_fail(EXIT_FAILED, "%s: %s; what was written ends before that", audit->store->place, err.text);
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

int command_audit(struct cli *cli)
{
    const char *config = NULL;
    struct audit audit = { .cli = cli };
    const struct option_row rows[] = { { "config", 'c', .value = &config },   { "expect", '\0', .repeated = true },
                                       { "file", '\0', .value = &audit.file }, { "out", '\0', .value = &audit.out },
                                       { 0 } };
    if (!command_options(cli, rows, 1))
        return cli->code;
    const char *action = cli->arguments.count > 0 ? cli->arguments.items[0] : "";
    bool exports = strcmp(action, "export") == 0;
    if (!exports && strcmp(action, "verify") != 0)
        return cli_usage("audit", "say what to do: verify or export");
    if (audit.out && !exports)
        return cli_usage("audit", "--out goes with export");
    int code = read_expected(&audit, &cli->arguments);
    if (code == EXIT_DONE)
        code = configuration_load(config, &audit.config);
    if (code != EXIT_DONE)
        return code;
    audit.key_set = audit.config->audit_key != NULL;
    if (audit.key_set)
        trail_key_init(&audit.key, slice_from(audit.config->audit_key));
    if (!audit.file || exports)
        code = configuration_look(audit.config, &audit.store);
    if (code == EXIT_DONE)
        code = exports ? export(&audit) : verify(&audit);
    if (audit.store)
        audit.store->ops->close(audit.store);
    config_unref(audit.config);
    return code;
}
