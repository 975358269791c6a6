/*
 * problems.h - what is wrong with a configuration, one line each.
 *
 * "file:line:column: what is wrong and what to do". The texts quote at most a few bytes of
 * the input, on one line, and never a value that came from a reference: it may be a secret.
 */
#ifndef CONFIG_PROBLEMS_H
#define CONFIG_PROBLEMS_H

#include "base/arena.h"
#include "base/buffer.h"

enum { PROBLEMS_MAX = 50, QUOTED_BYTES_MAX = 64, SECRET_BYTES_MIN = 6 };

/* What a reference brought in, and the reference itself, which is shown instead. What is shorter is no secret. */
struct secret {
    struct slice value, shown;
    const struct secret *next;
};

/* A file that a reference brought in. */
struct secret_file {
    const char *path;
    const struct secret_file *next;
};

/* The text with every secret in it as its reference. Also one that was quoted, and cut by that. */
void secrets_hide(const struct secret *secrets, struct slice whole, struct buffer *out);

/* Where something stands. Line and column count from 1; line 0: the file as a whole. */
struct place {
    const char *file;
    size_t line, column;
};

struct problems {
    struct buffer *out;
    size_t count;
    const struct secret *secrets; /* that no line may have in it */
    const struct secret_file *files;
};

/* Adds a line; beyond PROBLEMS_MAX only says, once, that there are more. */
void problem_add(struct problems *problems, struct place place, const char *format, ...) PRINTF_LIKE(3, 4);

/* Text cut to QUOTED_BYTES_MAX and with control characters as '?', for messages. */
struct quoted {
    char text[QUOTED_BYTES_MAX + 4];
};
struct quoted quote(struct slice text);

/* Looks for the name that was probably meant. */
struct nearest {
    struct slice wanted;
    const char *name; /* NULL: none is near */
    size_t distance;
};
void nearest_offer(struct nearest *nearest, const char *name);

#endif
