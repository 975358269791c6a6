#include "base/json.h"
#include "cli/offline/offline.h"
#include "cli/options.h"
#include "config/config.h"

/* The preset's own line `description: ...`, or nothing. */
static struct slice description(struct slice text)
{
    static const struct slice key = { "description:", sizeof "description:" - 1 };
    while (text.len > 0) {
        struct slice line = { text.data, slice_find(text, '\n') };
        if (slice_has_prefix(line, key))
            return slice_trim(slice_from_offset(line, key.len));
        text = slice_from_offset(text, line.len + 1);
    }
    return SLICE("");
}

static void append_preset(const struct cli *cli, const char *name, struct slice text, struct json_writer *json)
{
    if (!cli->json) {
        buffer_printf(json->out, "%-14s ", name);
        buffer_append(json->out, description(text));
        buffer_append_byte(json->out, '\n');
        return;
    }
    json_object_begin(json);
    json_member_text(json, "name", name);
    json_member_string(json, "description", description(text));
    json_object_end(json);
}

static int append_list(const struct cli *cli, struct buffer *out)
{
    struct json_writer json = json_writer(out);
    struct error err;
    if (cli->json)
        json_array_begin(&json);
    for (size_t i = 0; preset_name(i); i++) {
        struct slice text;
        if (preset_text(slice_from(preset_name(i)), &text, &err) != STATUS_OK)
            return cli_fail(EXIT_FAILED, "%s", err.text);
        append_preset(cli, preset_name(i), text, &json);
    }
    if (cli->json) {
        json_array_end(&json);
        buffer_append_byte(out, '\n');
    }
    return EXIT_DONE;
}

int command_presets(struct cli *cli)
{
    struct slice text;
    struct error err;
    int code = EXIT_DONE;
    if (!command_options(cli, NULL, 1))
        return cli->code;
    if (cli->json && cli->arguments.count > 0)
        return cli_usage("presets", "a preset is printed as the YAML that it is; --output json goes with their list");
    struct buffer out = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    if (cli->arguments.count == 0)
        code = append_list(cli, &out);
    else if (preset_text(slice_from(cli->arguments.items[0]), &text, &err) == STATUS_OK)
        buffer_append(&out, text);
    else
        code = cli_usage("presets", "%s", err.text);
    if (code == EXIT_DONE)
        return cli_print(&out, EXIT_DONE);
    buffer_release(&out);
    return code;
}
