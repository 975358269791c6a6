/*
 * redact.h - error texts without what identifies a person.
 *
 * E-mail addresses and numbers of six digits or more (documents, cards, phones; also written
 * with . - / between their digits) are masked; codes and short numbers stay readable.
 */
#ifndef CORE_REDACT_H
#define CORE_REDACT_H

#include "base/buffer.h"

/* Appends at most `len_max` bytes of the masked text. */
void redact(struct buffer *out, struct slice text, size_t len_max);

#endif
