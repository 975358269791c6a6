/*
 * pages.h - lists of the daemon, page by page: `insist jobs`, `insist dead list` and their like.
 */
#ifndef CLI_TALK_PAGES_H
#define CLI_TALK_PAGES_H

#include "cli/options.h"
#include "cli/talk/client.h"
#include "cli/talk/show.h"

enum { PAGES_LIMIT_MAX = 1000000000 };

struct pages {
    const char *path;
    const char *member; /* that has the rows */
    const char *what;   /* they are, in words; NULL: as the member is called */
    const struct shown *columns;
    size_t column_count;
    int64_t limit;      /* 0: 100 */
    const char *cursor; /* as given, or NULL */
    bool all;
};

#define PAGES_COLUMNS(table) .columns = (table), .column_count = sizeof(table) / sizeof *(table)

/* The rows of a command's options that every list has. */
#define PAGES_OPTIONS(pages) \
    { "limit", 'n', .count = &(pages).limit, .low = 1, .high = PAGES_LIMIT_MAX }, \
        { "cursor", '\0', .value = &(pages).cursor }, { "all", 'a', .flag = &(pages).all }

/*
 * Prints the rows as a table, or with --output json the daemon's answers as they came, one page a line. What is left over
 * is reported on standard error with the cursor to go on from. Of the command's options those that have a value and were
 * given choose the rows: the daemon knows them by the same names. NULL: there are none.
 */
int pages_print(const struct cli *cli, const struct pages *pages, const struct option_row *rows);

#endif
