/*
 * status.h - how functions say that they failed.
 *
 * A function that can fail returns `enum status`, and takes `struct error *err` last
 * for the sentence a person reads. Outputs named `ret_...` are written only on success.
 */
#ifndef BASE_STATUS_H
#define BASE_STATUS_H

#include <stddef.h>

#define UNUSED __attribute__((unused)) /* a parameter that the signature asks for */
#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(format_index, first) __attribute__((format(printf, format_index, first)))

enum status {
    STATUS_OK = 0,
    STATUS_INVALID,   /* the input is wrong; the caller can correct it */
    STATUS_NOT_FOUND, /* nothing has that name */
    STATUS_CONFLICT,  /* somebody else has it: a lost lease, an id in use with another body */
    STATUS_FULL,      /* a limit of the store or the queue is reached; later may work */
    STATUS_LIMIT,     /* one value is over its own limit; later will not work either */
    STATUS_BUSY,      /* locked by somebody else just now */
    STATUS_AWAY,      /* it cannot be reached; whether it did what it was asked is not known */
    STATUS_FENCED,    /* another node has ended this one's session; nothing was done */
    STATUS_NO_MEMORY,
    STATUS_IO,      /* the system refused: disk, socket, sync */
    STATUS_CORRUPT, /* what was read is not what was written */
    STATUS_UNSUPPORTED,
    STATUS_COUNT
};

enum { ERROR_TEXT_BYTES_MAX = 512 };

struct error {
    enum status status;
    char text[ERROR_TEXT_BYTES_MAX];
};

/* Fills `err` (NULL is allowed) and returns `status`, so that `return error_set(...)` reads well. */
enum status error_set(struct error *err, enum status status, const char *format, ...) PRINTF_LIKE(3, 4);

/* A stable lower-case word for logs and JSON: "ok", "invalid", "not_found"... */
const char *status_name(enum status status);

#endif
