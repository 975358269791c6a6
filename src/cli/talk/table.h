/*
 * table.h - columns of text for people.
 *
 * Cells are filled row by row. Numbers stand right, text left; columns are as wide as their
 * widest cell; control characters are shown as '?', so that no cell can move the cursor. On a terminal they are made to
 * fit its width: columns that are empty are left out, and what is cut ends in an ellipsis. An ID is never cut, since it is
 * what the next command needs. Elsewhere all is whole.
 */
#ifndef CLI_TALK_TABLE_H
#define CLI_TALK_TABLE_H

#include "cli/cli.h"

enum { TABLE_COLUMNS_MAX = 16 };

enum table_color {
    TABLE_PLAIN,
    TABLE_GREEN,
    TABLE_YELLOW,
    TABLE_RED,
    TABLE_COLOR_COUNT
};

/* Text stands left, numbers right; what is brief is text that is cut first where the terminal is narrow. */
enum table_side {
    TABLE_LEFT,
    TABLE_RIGHT,
    TABLE_BRIEF,
};

struct table_column {
    const char *title;
    enum table_side side;
};

struct table {
    const struct table_column *columns; /* borrowed */
    size_t column_count;
    size_t widths[TABLE_COLUMNS_MAX]; /* of their widest cells */
    size_t fitted[TABLE_COLUMNS_MAX]; /* as they are shown; 0: left out, since it is empty */
    bool filled[TABLE_COLUMNS_MAX];   /* some cell has a text */
    size_t cell_count;
    struct buffer cells; /* each: a byte of enum table_color + 1, the text, a NUL */
    bool titled;         /* the titles are printed, for these columns */
    bool begun;          /* some row was printed */
    bool facts;          /* names and values, which are never cut */
};

void table_init(struct table *table, const struct table_column *columns, size_t column_count);
void table_release(struct table *table);

/* The colour is shown only where the terminal has colours. */
void table_cell_colored(struct table *table, struct slice text, enum table_color color);
void table_cell_text(struct table *table, const char *text);
void table_cell_int(struct table *table, int64_t value);

/*
 * Appends the rows filled so far and forgets them; the last must be complete. The first time the titles stand above, bold
 * when the terminal has colours. A long list can so be printed page by page: columns only grow.
 */
void table_append(struct table *table, const struct cli *cli, struct buffer *out);

/* Text from elsewhere for a terminal: control characters and broken UTF-8 become '?', unseen ones their number, <U+202E>. */
void plain_append(struct slice text, struct buffer *out);

#endif
