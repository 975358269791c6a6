/*
 * redact.h - error texts without what identifies a person or opens a door.
 *
 * E-mail addresses (also with %40), numbers of six digits or more (documents, cards, phones; also written with . - /
 * between their digits, or of eight in groups with blanks), a CNPJ with letters, keys such as JWTs and secrets (secret.h)
 * are masked; codes, short numbers and IP addresses stay readable.
 */
#ifndef CORE_ERRORS_REDACT_H
#define CORE_ERRORS_REDACT_H

#include "base/buffer.h"
#include "core/errors/secret.h"

/*
 * Appends the masked text, at most `len_max` bytes of it: it ends before the first character or mask that does not fit.
 * A masked text stays as it is when it is masked again.
 */
void redact(struct buffer *out, struct slice text, size_t len_max);

/* The same piece by piece, without memory: a text, and how far it is read. */
struct redaction {
    struct slice text;
    size_t at;
    struct secret secret; /* that begins at or behind `at`; .value.data NULL: none */
};
/* False at the end. */
bool redact_next(struct redaction *redaction, struct slice *ret_shown);

/* The length of an e-mail address at the start of `text`, or 0. */
size_t mail_address_len(struct slice text);

#endif
