/*
 * address.h - mail addresses: "ops@example.org" or "Ops <ops@example.org>".
 *
 * What ends up in a command or a header is checked here once. No quoted local parts, no comments, no lists: who writes
 * addresses for a program has none of these, and each has been a way to smuggle in a second recipient.
 */
#ifndef TRANSPORT_SMTP_ADDRESS_H
#define TRANSPORT_SMTP_ADDRESS_H

#include "base/buffer.h"

enum { ADDRESS_BYTES_MAX = 254, ADDRESS_NAME_BYTES_MAX = 255 };

struct smtp_address {
    struct slice name;    /* for people; may be empty. Without quotes, as it was written inside them */
    struct slice address; /* ops@example.org */
};

/* Borrows `text`. STATUS_INVALID: `err` says what is wrong with it, and shows none of its control characters. */
enum status smtp_address_parse(struct slice text, struct smtp_address *ret_address, struct error *err) MUST_CHECK;

/* Whether all of it is ASCII: another one needs SMTPUTF8. */
bool smtp_text_is_ascii(struct slice text);

#endif
