#include "config/loading.h"

#include "base/embedded.h"

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

static void row_append(struct buffer *out, const struct setting *row)
{
    buffer_printf(out, "| `%s` | ", row->name);
    kind_append(out, row);
    buffer_append_text(out, " | ");
    fallback_append(out, row);
    buffer_append_text(out, " | ");
    if (row->min && row->max)
        buffer_printf(out, "%s to %s", row->min, row->max);
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
    buffer_append(out, (struct slice){ embedded_reference[0].data, embedded_reference[0].len });
    section_append(out, &file_section, "The file", "##");
    for (size_t i = 0; i < file_section.count; i++) {
        const struct setting *row = &file_section.rows[i];
        if ((row->kind == SETTING_SPECIAL && row->section) || row->kind == SETTING_ITEMS)
            section_append(out, row->section, row->name, "##");
    }
}
