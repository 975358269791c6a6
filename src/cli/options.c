#include "cli/options.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/units.h"
#include "config/problems.h"

#include <inttypes.h>
#include <string.h>

static const struct option_row *find_by_name(const struct option_row *rows, struct slice name)
{
    for (; rows && rows->name; rows++)
        if (slice_equal(name, slice_from(rows->name)))
            return rows;
    return NULL;
}

static const struct option_row *find_by_letter(const struct option_row *rows, char letter)
{
    for (; rows && rows->name; rows++)
        if (rows->letter == letter)
            return rows;
    return NULL;
}

static int unknown_option(const char *command, const struct option_row *rows, const struct option_row *globals,
                          struct slice name)
{
    struct nearest nearest = { .wanted = name };
    if (slice_equal(name, SLICE("json")))
        return cli_usage(command, "there is no option --json; write --output json, or -o json");
    for (; rows && rows->name; rows++)
        nearest_offer(&nearest, rows->name);
    for (; globals->name; globals++)
        nearest_offer(&nearest, globals->name);
    if (nearest.name)
        return cli_usage(command, "there is no option --%.*s; did you mean --%s?", SLICE_ARG(name), nearest.name);
    return cli_usage(command, "there is no option --%.*s", SLICE_ARG(name));
}

struct reader {
    const char *command;
    const struct option_row *rows, *globals;
    int argc;
    char **argv;
    int next; /* index of what was not read yet */
    struct arguments *arguments;
};

bool part_parse(struct slice text, double *ret_part)
{
    bool percent = slice_has_suffix(text, SLICE("%"));
    double value;
    if (percent)
        text.len--;
    if (!slice_to_double(text, &value))
        return false;
    value = percent ? value / 100 : value;
    if (!(value >= 0 && value <= 1))
        return false;
    *ret_part = value;
    return true;
}

static int put_count(const char *command, const struct option_row *row, const char *text)
{
    int64_t value;
    if (!slice_to_int64(slice_from(text), &value) || value < row->low || value > row->high)
        return cli_usage(command, "--%s is a whole number from %" PRId64 " to %" PRId64 ", not \"%s\"", row->name, row->low,
                         row->high, text);
    *row->count = value;
    return EXIT_DONE;
}

static int put_duration(const char *command, const struct option_row *row, const char *text)
{
    struct error error;
    int64_t ms;
    if (duration_parse(slice_from(text), &ms, &error) != STATUS_OK)
        return cli_usage(command, "--%s: %s", row->name, error.text);
    if (row->high > 0 && (ms < row->low || ms > row->high)) {
        char low[UNITS_TEXT_BYTES], high[UNITS_TEXT_BYTES];
        duration_format(row->low, low);
        duration_format(row->high, high);
        return cli_usage(command, "--%s is from %s to %s, not \"%s\"", row->name, low, high, text);
    }
    *row->duration = ms;
    return EXIT_DONE;
}

static int put_time(const char *command, const struct option_row *row, const char *text)
{
    struct error err;
    int64_t delay_ms;
    if (text[0] == '+') {
        if (duration_parse(slice_from(text + 1), &delay_ms, &err) != STATUS_OK)
            return cli_usage(command, "--%s %s: %s", row->name, text, err.text);
        *row->time = instant_add(clock_now(), delay_ms);
        return EXIT_DONE;
    }
    if (instant_parse(slice_from(text), row->time, &err) != STATUS_OK)
        return cli_usage(command, "--%s is a time as 2025-01-12T10:51:41Z, or as +5m from now on: %s", row->name, err.text);
    return EXIT_DONE;
}

static int put_past(struct reader *reader, const struct option_row *row, const char *text)
{
    struct error err;
    int64_t ago_ms;
    instant at;
    struct arguments *arguments = reader->arguments;
    if (text[0] != '-' && instant_parse(slice_from(text), &at, &err) != STATUS_OK)
        return cli_usage(reader->command, "--%s is a time as 2025-01-12T10:51:41Z, or as -2h before now: %s", row->name,
                         err.text);
    if (text[0] != '-') {
        *row->value = text;
        return EXIT_DONE;
    }
    if (duration_parse(slice_from(text + 1), &ago_ms, &err) != STATUS_OK)
        return cli_usage(reader->command, "--%s %s: %s", row->name, text, err.text);
    if (arguments->moment_count == OPTIONS_MOMENTS_MAX)
        return cli_usage(reader->command, "more than %d times are given", OPTIONS_MOMENTS_MAX);
    *row->value = arguments->moments[arguments->moment_count];
    instant_format(clock_now() - ago_ms, arguments->moments[arguments->moment_count++]);
    return EXIT_DONE;
}

static int put_value(struct reader *reader, const struct option_row *row, const char *text)
{
    struct arguments *arguments = reader->arguments;
    if (row->utf8 && !utf8_is_valid(slice_from(text)))
        return cli_usage(reader->command, "--%s \"%s\" is not UTF-8; look at the encoding of the terminal or script",
                         row->name, text);
    if (row->past)
        return put_past(reader, row, text);
    if (row->value)
        *row->value = text;
    else if (row->count)
        return put_count(reader->command, row, text);
    else if (row->duration)
        return put_duration(reader->command, row, text);
    else if (row->time)
        return put_time(reader->command, row, text);
    else if (row->part && !part_parse(slice_from(text), row->part))
        return cli_usage(reader->command, "--%s is a part such as 0.2 or 20%%, not \"%s\"", row->name, text);
    else if (row->priority && !priority_from_name(slice_from(text), row->priority))
        return cli_usage(reader->command, "--%s is critical, high or normal, not \"%s\"", row->name, text);
    if (!row->repeated)
        return EXIT_DONE;
    if (arguments->repeated_count == OPTIONS_ARGUMENTS_MAX)
        return cli_usage(reader->command, "option --%s is given more than %d times", row->name, OPTIONS_ARGUMENTS_MAX);
    arguments->repeated[arguments->repeated_count].name = row->name;
    arguments->repeated[arguments->repeated_count++].value = text;
    return EXIT_DONE;
}

/* The value behind the option, or the next argument. */
static int take_value(struct reader *reader, const struct option_row *row, const char *attached)
{
    if (row->flag && attached)
        return cli_usage(reader->command, "option --%s takes no value", row->name);
    if (row->flag) {
        *row->flag = true;
        return EXIT_DONE;
    }
    if (!attached && reader->next == reader->argc)
        return cli_usage(reader->command, "option --%s needs a value", row->name);
    return put_value(reader, row, attached ? attached : reader->argv[reader->next++]);
}

static int read_long(struct reader *reader, const char *text)
{
    const char *equals = strchr(text, '=');
    struct slice name = { text, equals ? (size_t)(equals - text) : strlen(text) };
    const struct option_row *row = find_by_name(reader->rows, name);
    if (!row)
        row = find_by_name(reader->globals, name);
    if (!row)
        return unknown_option(reader->command, reader->rows, reader->globals, name);
    return take_value(reader, row, equals ? equals + 1 : NULL);
}

/* Letters of options without a value may stand together; what follows one with a value is the value. */
static int read_short(struct reader *reader, const char *letters)
{
    for (; *letters; letters++) {
        const struct option_row *row = find_by_letter(reader->rows, *letters);
        if (!row)
            row = find_by_letter(reader->globals, *letters);
        if (!row)
            return cli_usage(reader->command, "there is no option -%c", *letters);
        if (!row->flag)
            return take_value(reader, row, letters[1] ? letters + 1 : NULL);
        *row->flag = true;
    }
    return EXIT_DONE;
}

static int check_output(struct cli *cli, const char *command)
{
    if (!cli->output)
        return EXIT_DONE;
    cli->json = strcmp(cli->output, "json") == 0;
    if (!cli->json && strcmp(cli->output, "table") != 0)
        return cli_usage(command, "--output is table or json, not \"%s\"", cli->output);
    return EXIT_DONE;
}

int options_read(struct cli *cli, const char *command, const struct option_row *rows, int argc, char **argv,
                 int *ret_consumed)
{
    /* The last row is known only before the command. */
    const struct option_row globals[] = {
        { "server", '\0', .value = &cli->server },
        { "token", '\0', .value = &cli->token },
        { "output", 'o', .value = &cli->output },
        { "help", 'h', .flag = &cli->help },
        { command ? NULL : "version", 'V', .flag = &cli->version },
        { 0 },
    };
    struct reader reader = { command, rows, globals, argc, argv, 1, &cli->arguments };
    bool ended = false;
    cli->arguments.count = 0;
    cli->arguments.repeated_count = 0;
    cli->arguments.moment_count = 0;
    while (reader.next < argc) {
        const char *text = argv[reader.next];
        bool option = !ended && text[0] == '-' && text[1] != '\0';
        if (!option && ret_consumed)
            break;
        reader.next++;
        int code = EXIT_DONE;
        if (option && strcmp(text, "--") == 0)
            ended = true;
        else if (option)
            code = text[1] == '-' ? read_long(&reader, text + 2) : read_short(&reader, text + 1);
        else if (cli->arguments.count == OPTIONS_ARGUMENTS_MAX)
            code = cli_usage(command, "more than %d arguments", OPTIONS_ARGUMENTS_MAX);
        else
            cli->arguments.items[cli->arguments.count++] = text;
        if (code != EXIT_DONE)
            return code;
    }
    if (ret_consumed)
        *ret_consumed = reader.next;
    return check_output(cli, command);
}

bool command_options(struct cli *cli, const struct option_row *rows, size_t arguments_max)
{
    const char *name = cli->command->name;
    cli->code = options_read(cli, name, rows, cli->argc, cli->argv, NULL);
    if (cli->code != EXIT_DONE)
        return false;
    if (cli->help) {
        cli->code = help_print(cli->command);
        return false;
    }
    if (cli->arguments.count > arguments_max) {
        cli->code = cli_usage(name, "unexpected argument \"%s\"", cli->arguments.items[arguments_max]);
        return false;
    }
    return true;
}

int options_filled(const struct cli *cli, const struct option_row *rows)
{
    for (; rows && rows->name; rows++)
        if (rows->value && *rows->value && !**rows->value)
            return cli_usage(cli->command->name, "--%s is empty; leave it out, or say which", rows->name);
    return EXIT_DONE;
}

const char *arguments_action(const struct cli *cli)
{
    return cli->arguments.count > 0 ? cli->arguments.items[0] : "list";
}

bool arguments_list_only(struct cli *cli)
{
    if (strcmp(arguments_action(cli), "list") == 0)
        return true;
    cli->code = cli_usage(cli->command->name, "unexpected argument \"%s\"", cli->arguments.items[0]);
    return false;
}
