/*
 * lines.h - lines from a descriptor, as fast as they come, in bounded memory.
 *
 * A line over the limit is reported once and the rest of it skipped. The last line needs no
 * line end.
 */
#ifndef CLI_TALK_LINES_H
#define CLI_TALK_LINES_H

#include "base/slice.h"
#include "base/status.h"

struct lines {
    int descriptor;
    char *data;
    size_t capacity;
    size_t start, end; /* what was read and not handed out yet */
    size_t scanned;    /* from start: no line end in there */
    size_t line_bytes_max;
    bool skipping; /* the rest of a line that was too long */
    bool ended;
};

enum line_kind {
    LINE_WHOLE,
    LINE_TOO_LONG,
    LINE_NONE, /* none is complete: call lines_fill, unless `ended` */
};

enum status lines_init(struct lines *lines, int descriptor, size_t line_bytes_max) MUST_CHECK;
void lines_release(struct lines *lines);

/* The next line of what was read, without its end; valid until lines_fill. LINE_NONE at the end of all, too. */
enum line_kind lines_next(struct lines *lines, struct slice *ret_line);

/* Whether lines_fill would find something at once. */
bool lines_ready(const struct lines *lines);
/* Reads once, waiting if it must. False: it failed, see errno. */
bool lines_fill(struct lines *lines) MUST_CHECK;

#endif
