/*
 * show.h - the daemon's JSON as tables and facts for people.
 */
#ifndef CLI_TALK_SHOW_H
#define CLI_TALK_SHOW_H

#include "base/instant.h"
#include "cli/cli.h"
#include "cli/talk/table.h"

#include <jansson.h>

enum show_as {
    SHOW_TEXT,
    SHOW_BRIEF,  /* text that is cut first where the terminal is narrow */
    SHOW_LIST,   /* likewise, of names */
    SHOW_NUMBER, /* to the right */
    SHOW_TIME,   /* 2025-01-12 10:51:41Z */
    SHOW_MS,     /* a duration: 1m30s */
    SHOW_SPAN,   /* likewise, from ten seconds on in whole ones */
    SHOW_STATE,  /* coloured */
};

/* A column of a table, or a line of facts. */
struct shown {
    const char *title;
    const char *name; /* of the member; "data.code" is one inside another, "a|b" the first of them that is there */
    enum show_as as;
};

/* A member's value for people; nothing when it is absent or null. Strings are made plain. */
void show_value(const json_t *value, enum show_as as, struct buffer *out);

void show_table_init(struct table *table, struct table_column columns[TABLE_COLUMNS_MAX], const struct shown *shown,
                     size_t count);
/* One row: the members of `object` that `shown` names. */
void show_row(struct table *table, const json_t *object, const struct shown *shown, size_t count);
/* A whole table of an array of objects. */
void show_table(const struct cli *cli, const json_t *array, const struct shown *shown, size_t count, struct buffer *out);

/* One line a fact that is there, titles aligned. */
void show_facts(const struct cli *cli, const json_t *object, const struct shown *shown, size_t count, struct buffer *out);
/* Every member of the object as a line, of objects inside too ("queue.pending"); those that `shown` names are left out. */
void show_others(const struct cli *cli, json_t *object, const struct shown *shown, size_t count, struct buffer *out);

/* Each line of the text behind the indent, made plain: a line's end inside a value is shown as something else. */
void show_lines(struct slice text, const char *indent, struct buffer *out);

/* The string of a member, or NULL; a whole number, or 0. */
const char *member_text(const json_t *object, const char *name);
int64_t member_int(const json_t *object, const char *name);

#endif
