/*
 * causes.h - the fingerprints of errors that dead letters were counted by, for the next time.
 *
 * To mask a text takes longer than to read the letter, and who looks at dead letters counts them again and again. A text
 * that is not among those remembered is masked anew: it is never wrong, only slower.
 */
#ifndef API_JOBS_CAUSES_H
#define API_JOBS_CAUSES_H

#include "core/errors/fingerprint.h"

struct causes;

/* NULL: there is no memory for it. */
struct causes *causes_new(uint64_t seed);
void causes_free(struct causes *causes); /* accepts NULL */

/* Writes the fingerprint of the code and the text. `causes` may be NULL: nothing is remembered. */
void causes_find(struct causes *causes, struct slice code, struct slice text, char ret_text[FINGERPRINT_BYTES + 1]);

#endif
