/*
 * secret.h - where in an error text a secret stands.
 *
 * A secret is known by its name: the value of password, token, api_key, cookie and the like, in the
 * forms name=value, name: value, "name":"value", "name":[...] and <name>value</name>, and what follows a scheme
 * of Authorization. A plain word behind "token: " is taken for a message, as in "invalid token: expired".
 *
 * Pure, and of bounded work on any bytes.
 */
#ifndef CORE_ERRORS_SECRET_H
#define CORE_ERRORS_SECRET_H

#include "base/slice.h"

/* What is written for one. */
#define SECRET_MASK "<secret>"

/* The length of a mask, of a secret or of anything else that is masked in error texts, at the start of `text`, or 0. */
size_t mask_len(struct slice text);

struct secret {
    struct slice value; /* a part of the text */
    struct slice shown; /* what is written for it: the mask; itself when it is one already, or null and the like */
};

/*
 * Whether a secret belongs to the sign (= : > or a blank) at `sign` of the text. It stands behind the sign; no number and no
 * e-mail address reaches from the one into the other.
 */
bool secret_behind(struct slice text, size_t sign, struct secret *ret_secret);

#endif
