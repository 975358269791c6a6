/*
 * rows.h - all rows of one of the daemon's lists, page by page, for commands that count them.
 */
#ifndef CLI_TALK_ROWS_H
#define CLI_TALK_ROWS_H

#include "cli/talk/client.h"

struct rows_wish {
    const char *path, *member;
    const char *name, *value; /* of one parameter; NULL: none */
    int64_t max;              /* rows; then *ret_more is set, if there are more */
};

/* Calls `visit` with each. EXIT_DONE, or a code after its message. */
int rows_each(struct client *client, const struct rows_wish *wish, void (*visit)(void *context, json_t *row), void *context,
              bool *ret_more);

#endif
