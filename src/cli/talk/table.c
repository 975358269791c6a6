#include "cli/talk/table.h"

#include "base/json.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { COLUMN_WIDTH_MIN = 12 };

void table_init(struct table *table, const struct table_column *columns, size_t column_count)
{
    assert(column_count > 0 && column_count <= TABLE_COLUMNS_MAX);
    *table = (struct table){ .columns = columns, .column_count = column_count };
    buffer_init(&table->cells, CLI_OUTPUT_BYTES_MAX);
    for (size_t i = 0; i < column_count; i++)
        table->widths[i] = slice_from(columns[i].title).len;
}

void table_release(struct table *table)
{
    buffer_release(&table->cells);
}

/* Characters, taking each UTF-8 sequence as one. */
static size_t width_of(struct slice text)
{
    size_t width = 0;
    for (size_t i = 0; i < text.len; i++)
        width += ((unsigned char)text.data[i] & 0xc0) != 0x80;
    return width;
}

void plain_append(struct slice text, struct buffer *out)
{
    for (size_t i = 0; i < text.len;) {
        size_t len = utf8_sequence_len(slice_from_offset(text, i));
        bool control = len == 1 && ((unsigned char)text.data[i] < ' ' || text.data[i] == 0x7f);
        uint32_t unseen = utf8_unseen(slice_from_offset(text, i));
        if (len == 0 || control)
            buffer_append_byte(out, '?');
        else if (unseen) /* a terminal would obey it, or show what follows in another order */
            buffer_printf(out, "<U+%04X>", (unsigned)unseen);
        else
            buffer_append(out, (struct slice){ text.data + i, len });
        i += len > 0 ? len : 1;
    }
}

void table_cell_colored(struct table *table, struct slice text, enum table_color color)
{
    size_t column = table->cell_count++ % table->column_count;
    buffer_append_byte(&table->cells, (char)(color + 1));
    size_t start = table->cells.len;
    plain_append(text, &table->cells);
    size_t width = width_of(slice_from_offset(buffer_slice(&table->cells), start));
    buffer_append_byte(&table->cells, '\0');
    table->filled[column] |= width > 0;
    if (width > table->widths[column])
        table->widths[column] = width;
}

static void table_cell(struct table *table, struct slice text)
{
    table_cell_colored(table, text, TABLE_PLAIN);
}

void table_cell_text(struct table *table, const char *text)
{
    table_cell(table, slice_from(text));
}

void table_cell_int(struct table *table, int64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRId64, value);
    table_cell_text(table, digits);
}

/* The first bytes that have up to `width` characters. */
static struct slice cut_to(struct slice text, size_t width)
{
    size_t end = 0;
    for (size_t seen = 0; end < text.len; end++) {
        bool starts = ((unsigned char)text.data[end] & 0xc0) != 0x80;
        if (starts && seen++ == width)
            break;
    }
    return (struct slice){ text.data, end };
}

static void append_padded(const struct table *table, size_t column, struct slice text, const char *color, struct buffer *out)
{
    bool last = true;
    for (size_t i = column + 1; i < table->column_count; i++)
        last = last && table->fitted[i] == 0;
    bool right = table->columns[column].side == TABLE_RIGHT;
    size_t width = table->fitted[column], used = width_of(text);
    if (width == 0) {
        buffer_append_text(out, column + 1 == table->column_count ? "\n" : "");
        return;
    }
    bool cut = used > width;
    size_t missing = cut ? 0 : width - used;
    for (size_t i = 0; right && i < missing; i++)
        buffer_append_byte(out, ' ');
    buffer_append_text(out, color);
    buffer_append(out, cut ? cut_to(text, width - 1) : text);
    buffer_append_text(out, cut ? "\u2026" : "");
    buffer_append_text(out, *color ? "\033[0m" : "");
    for (size_t i = 0; !right && !last && i < missing; i++)
        buffer_append_byte(out, ' ');
    buffer_append_text(out, !last ? "  " : column + 1 == table->column_count ? "\n" : "");
}

static bool is_whole(const struct table_column *column)
{
    return column->side == TABLE_RIGHT || strcmp(column->title, "ID") == 0;
}

/* The widest that may be cut: of the brief ones, then of those that are text. NULL: none is wider than it must be. */
static size_t *widest(struct table *table, bool brief)
{
    size_t *found = NULL;
    for (size_t i = 0; i < table->column_count; i++)
        if (!is_whole(&table->columns[i]) && (table->columns[i].side == TABLE_BRIEF || !brief) &&
            table->fitted[i] > COLUMN_WIDTH_MIN && (!found || table->fitted[i] > *found))
            found = &table->fitted[i];
    return found;
}

static void fit(struct table *table, size_t width)
{
    size_t whole = 2 * (table->column_count - 1), *column;
    for (size_t i = 0; i < table->column_count; i++)
        whole += table->widths[i];
    bool narrow = width > 0 && whole > width;
    for (size_t i = 0; i < table->column_count; i++) {
        bool shown = !narrow || table->filled[i] || table->cell_count == 0;
        if (table->begun && shown != (table->fitted[i] > 0)) /* a later page may have what this one has not */
            table->titled = false;
        table->fitted[i] = shown ? table->widths[i] : 0;
        whole -= shown ? 0 : table->widths[i] + 2;
    }
    table->begun = true;
    for (int brief = 1; brief >= 0; brief--)
        while (width > 0 && whole > width && (column = widest(table, brief))) {
            (*column)--;
            whole--;
        }
}

void table_append(struct table *table, const struct cli *cli, struct buffer *out)
{
    static const char *const colors[TABLE_COLOR_COUNT] = { "", "\033[32m", "\033[33m", "\033[31m" };
    assert(table->cell_count % table->column_count == 0);
    if (buffer_status(&table->cells) != STATUS_OK) {
        out->failure = buffer_status(&table->cells);
        return;
    }
    fit(table, table->facts ? 0 : cli->width);
    for (size_t i = 0; !table->titled && i < table->column_count; i++)
        append_padded(table, i, slice_from(table->columns[i].title), cli->color ? "\033[1m" : "", out);
    table->titled = true;
    struct slice rest = buffer_slice(&table->cells);
    for (size_t i = 0; i < table->cell_count; i++) {
        const char *color = cli->color ? colors[rest.data[0] - 1] : "";
        rest = slice_from_offset(rest, 1);
        struct slice cell = { rest.data, slice_find(rest, '\0') };
        append_padded(table, i % table->column_count, cell, color, out);
        rest = slice_from_offset(rest, cell.len + 1);
    }
    buffer_clear(&table->cells);
    table->cell_count = 0;
}
