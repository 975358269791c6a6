/*
 * redact.h - error texts without what identifies a person.
 *
 * E-mail addresses and numbers of six digits or more (documents, cards, phones; also written
 * with . - / between their digits) are masked; codes and short numbers stay readable.
 */
#ifndef CORE_REDACT_H
#define CORE_REDACT_H

#include "base/buffer.h"

/* Appends the masked text, at most `len_max` bytes of it: it ends before the first character or mask that does not fit. */
void redact(struct buffer *out, struct slice text, size_t len_max);

/* The length of an e-mail address at the start of `text`, or 0. */
size_t mail_address_len(struct slice text);

#endif
