#include "config/loading.h"

#include <string.h>

static const char introduction[] =
    "# Configuration\n"
    "\n"
    "<!-- Made from the tables in src/config/settings_*.c; `INSIST_UPDATE_DOCS=1 build/tests/test_config` writes it anew. -->\n"
    "\n"
    "One YAML file: `insist serve -c insist.yaml`. Without `-c` it is `./insist.yaml`, then `/etc/insist/insist.yaml`, then\n"
    "the defaults on this page. `insist check -c FILE` reads it as the daemon would and names every problem with its place:\n"
    "\n"
    "```\n"
    "insist.yaml:12:7: unknown setting \"max_retrys\" in retry; did you mean \"max_retries\"?\n"
    "```\n"
    "\n"
    "It also opens the certificates, keys and tokens that the file names and looks at addresses: what can never work is a problem,\n"
    "what is probably not meant a warning, and then the file is valid all the same.\n"
    "\n"
    "SIGHUP makes the daemon read the file again. A file with problems changes nothing.\n"
    "\n"
    "## How values are written\n"
    "\n"
    "| kind | written as |\n"
    "|---|---|\n"
    "| duration | `250ms` `30s` `5m` `2h` `7d`, and sums such as `1h30m` |\n"
    "| size | `512` `64KB` `1MB` `2GB`; 1 KB is 1024 bytes |\n"
    "| rate | `20/s` `100/m` `1000/h` `5000/d` |\n"
    "| boolean | `true` `false` |\n"
    "| list | `[a, b]`, or one item a line after `- ` |\n"
    "| path | from the folder of the file it stands in |\n"
    "\n"
    "An empty text `\"\"` takes back what a preset gave: the default counts again. A name may be given once in each\n"
    "section. Anchors, aliases, tags and a second document are refused. A file has at most 4 MB.\n"
    "\n"
    "### References\n"
    "\n"
    "| in a value | becomes |\n"
    "|---|---|\n"
    "| `${NAME}` | the environment's `NAME`; it is a problem when there is none |\n"
    "| `${NAME:-text}` | the same, or `text` when there is none or it is empty |\n"
    "| `${file:PATH}` | what the file holds, without its last line break; at most 64 KB |\n"
    "| `$${` | a literal `${` |\n"
    "\n"
    "References are filled in after the YAML was read, so what they bring in is always one value. It never shows in a message.\n"
    "\n"
    "### Presets\n"
    "\n"
    "`preset: NAME` starts a destination from a built-in preset, and `preset: ./file.yaml` from a file of your own; a name\n"
    "with a `/` or the ending `.yaml` is a file. What the destination says itself comes on top:\n"
    "\n"
    "- a single value replaces the preset's;\n"
    "- a list replaces the preset's list, but with a `+` at its name it is added: `permanent+: [CARD_EXPIRED]`;\n"
    "- sections and maps such as `headers` are merged name by name.\n"
    "\n"
    "A preset file has a destination's settings at its top, and may itself start from another with `extends: NAME`, up to\n"
    "4 deep. `insist presets` lists the built-in ones, and `insist presets NAME` prints one to start from.\n"
    "\n"
    "### Rules\n"
    "\n"
    "The lists in `errors` hold rules. A rule is one of\n"
    "\n"
    "| rule | matches |\n"
    "|---|---|\n"
    "| `TIMEOUT` | the word or words anywhere in the error's text, in upper or lower case |\n"
    "| `503` `5.7.1` | the number as a word of its own in the text, and as a code of any namespace |\n"
    "| `http:503` | that code of one namespace only: `smtp:500` is not `http:500` |\n"
    "| `http:5xx` `sifen:*` `sifen:1300-2699` | all codes of the namespace that look so, or lie between |\n"
    "| `/no such .* user/` | a PCRE2 pattern over the text; case does not matter |\n"
    "\n"
    "When several match, the first of these wins: `exceptions`; the permanent rules of the lists themselves; the lists by\n"
    "the code, then `fallback` by the code; the lists by the text, then `fallback` by the text. Inside each of these the\n"
    "order is permanent, blocked, duplicate, in_doubt, partial, accepted, delivered, throttled, wait, transient. What\n"
    "nothing matches is what `unknown` says. `insist classify --policy NAME TEXT` shows which rule a text meets.\n"
    "\n"
    "A destination that has neither a preset nor a rule of its own is judged by the rules of the preset of its transport, `http`\n"
    "or `smtp`. With one rule of its own it has no others: start from a preset and add to its lists with `+`.\n";

/* "|" would end the cell. */
static void cell_append(struct buffer *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            buffer_append_byte(out, '\\');
        buffer_append_byte(out, *text);
    }
}


static void kind_append(struct buffer *out, const struct setting *row)
{
    if (row->kind != SETTING_ENUM) {
        buffer_append_text(out, kind_name(row->kind));
        return;
    }
    for (const struct choice *choice = row->choices; choice->name; choice++)
        buffer_printf(out, "%s`%s`", choice == row->choices ? "" : ", ", choice->name);
}

static void fallback_append(struct buffer *out, const struct setting *row)
{
    bool list = row->kind == SETTING_TEXT_LIST || row->kind == SETTING_COUNT_LIST;
    if (!row->fallback)
        return;
    buffer_printf(out, list ? "`[%s]`" : "`%s`", row->fallback);
}

static void range_append(struct buffer *out, const struct setting *row)
{
    if (row->min && row->max)
        buffer_printf(out, "%s to %s", row->min, row->max);
}

static void row_append(struct buffer *out, const struct setting *row)
{
    buffer_printf(out, "| `%s` | ", row->name);
    kind_append(out, row);
    buffer_append_text(out, " | ");
    fallback_append(out, row);
    buffer_append_text(out, " | ");
    range_append(out, row);
    buffer_append_text(out, " | ");
    cell_append(out, row->meaning);
    buffer_append_text(out, " |\n");
}

static void section_append(struct buffer *out, const struct section *section, const char *heading, const char *level);

/* The sections of a section, each under its own heading. */
static void inner_append(struct buffer *out, const struct section *section)
{
    for (size_t i = 0; i < section->count; i++) {
        const struct setting *row = &section->rows[i];
        if (row->kind == SETTING_SECTION)
            section_append(out, row->section, row->section->name, "###");
    }
}

static void section_append(struct buffer *out, const struct section *section, const char *heading, const char *level)
{
    buffer_printf(out, "\n%s %s\n\n", level, heading);
    if (section->meaning)
        buffer_printf(out, "%s\n\n", section->meaning);
    if (section->same_as) {
        buffer_printf(out, "It has the same settings as `%s`.\n", section->same_as);
        return;
    }
    buffer_append_text(out, "| name | kind | default | allowed | meaning |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < section->count; i++)
        row_append(out, &section->rows[i]);
    inner_append(out, section);
}

void config_reference(struct buffer *out)
{
    buffer_append_text(out, introduction);
    section_append(out, &file_section, "The file", "##");
    for (size_t i = 0; i < file_section.count; i++) {
        const struct setting *row = &file_section.rows[i];
        if (row->kind == SETTING_SPECIAL && row->section)
            section_append(out, row->section, row->name, "##");
    }
}
