/*
 * table.h - columns of text for people.
 *
 * Cells are filled row by row. Numbers stand right, text left; columns are as wide as their
 * widest cell; control characters are shown as '?', so that no cell can move the cursor.
 */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include "cli/cli.h"

enum { TABLE_COLUMNS_MAX = 16 };

struct table_column {
    const char *title;
    bool right;
};

struct table {
    const struct table_column *columns; /* borrowed */
    size_t column_count;
    size_t widths[TABLE_COLUMNS_MAX];
    size_t cell_count;
    struct buffer cells; /* each ended with a NUL */
};

void table_init(struct table *table, const struct table_column *columns, size_t column_count);
void table_release(struct table *table);

void table_cell(struct table *table, struct slice text);
void table_cell_text(struct table *table, const char *text);
void table_cell_int(struct table *table, int64_t value);

/* Appends the table; the last row must be complete. Titles are bold when the terminal has colours. */
void table_append(const struct table *table, const struct cli *cli, struct buffer *out);

#endif
