/*
 * child.h - this program again, as a process of its own: for `insist demo`.
 */
#ifndef CLI_PLAY_CHILD_H
#define CLI_PLAY_CHILD_H

#include "base/buffer.h"
#include "base/status.h"

#include <sys/types.h>

enum { CHILD_ARGUMENTS_MAX = 16, CHILD_URL_BYTES = 128, CHILD_PATH_BYTES = 512 };

struct child {
    pid_t pid;                  /* 0: not running */
    char url[CHILD_URL_BYTES];  /* where it listens */
    char out[CHILD_PATH_BYTES]; /* what it printed; its log is beside it */
};

/*
 * Starts `insist ARGUMENTS...` (ended with NULL), its output in FOLDER/NAME.out and FOLDER/NAME.log, and waits until it
 * has printed the address that it listens on. It gets no Ctrl-C of the terminal, and ends when this process does.
 */
enum status child_start(struct child *ret_child, const char *folder, const char *name, const char *const *arguments,
                        struct error *err) MUST_CHECK;
bool child_is_running(struct child *child);
/* Asks it to end, and makes it after some seconds. Accepts one that is not running. */
void child_stop(struct child *child);
/* The last line that it printed. */
void child_last_line(const struct child *child, struct buffer *out);

#endif
