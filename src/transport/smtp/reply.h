/*
 * reply.h - reading the replies of an SMTP server as their bytes come.
 *
 * No I/O. A reply has one or more lines, "250-first", "250 last". What is held of its text is bounded however much a
 * server sends.
 */
#ifndef TRANSPORT_SMTP_REPLY_H
#define TRANSPORT_SMTP_REPLY_H

#include "base/buffer.h"

enum {
    SMTP_LINE_BYTES_MAX = 2048, /* held of one line; the standard's limit is 512 */
    SMTP_TEXT_BYTES_MAX = 4096, /* held of one reply */
};

enum smtp_read {
    SMTP_READ_MORE,   /* all bytes are taken, the reply is not whole yet */
    SMTP_READ_REPLY,  /* `code` and `text` are those of a whole reply */
    SMTP_READ_BROKEN, /* this is not SMTP, a reply without an end, or one whose lines have different codes */
};

struct smtp_reader {
    int code;           /* of the reply, 200 to 599 */
    struct buffer text; /* its lines without their codes, on one line; control characters are spaces */
    size_t limit;       /* bytes of one reply at most */
    size_t bytes;       /* of this one so far */
    bool whole;
    size_t enhanced_len; /* of "5.1.1" at the text's start; where a later line begins with the same it is left out */
    char line[SMTP_LINE_BYTES_MAX];
    size_t line_len;
};

/* `limit`: of one reply no more is read. */
void smtp_reader_init(struct smtp_reader *reader, size_t limit);
void smtp_reader_release(struct smtp_reader *reader);
/* Forgets what was read, also half a line: of another connection. */
void smtp_reader_clear(struct smtp_reader *reader);

/* Takes bytes from the front of *bytes up to the end of the next reply. What was there of the last one is gone. */
enum smtp_read smtp_reader_take(struct smtp_reader *reader, struct slice *bytes);

/* The capability word that a line of the answer to EHLO names, "250-SIZE 1000" is SIZE; empty: none. */
struct slice smtp_capability(struct slice line);

#endif
