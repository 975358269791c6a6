/*
 * bar.h - how far long work has come, on standard error.
 *
 * On a terminal it is one line that is drawn anew, ten times a second at most. Elsewhere it is a line now and then, for
 * those who asked for that, so that a log does not grow by it.
 */
#ifndef CLI_TALK_BAR_H
#define CLI_TALK_BAR_H

#include <stdbool.h>
#include <stdint.h>

struct bar {
    bool terminal;
    bool lines; /* without a terminal it is shown in lines */
    int64_t shown_ns; /* 0: never */
};

struct bar bar_begin(bool lines);
/* Of `all`, if that is known, else 0; `text` says of what. What is complete is always shown. */
void bar_show(struct bar *bar, int64_t done, int64_t all, const char *text);
/* Leaves an empty line on a terminal for what comes next. */
void bar_end(struct bar *bar);

#endif
