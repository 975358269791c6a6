/*
 * fingerprint.h - which errors are the same error.
 *
 * What changes from one occurrence to the next is masked: numbers, ids, addresses, times, paths,
 * quoted names, secrets. What is left, with the code beside it, is hashed: two texts with one
 * fingerprint are one error.
 *
 * Pure, and of bounded work on any bytes. The masked text holds nothing that redact.h would mask.
 */
#ifndef CORE_ERRORS_FINGERPRINT_H
#define CORE_ERRORS_FINGERPRINT_H

#include "core/decision/classify.h"

enum {
    FINGERPRINT_BYTES = 16,            /* hexadecimal digits */
    FINGERPRINT_SAMPLE_BYTES_MAX = 200, /* of the masked text; the rest is not looked at */
    FINGERPRINT_TEXT_BYTES_MAX = 4096, /* how far a text is read */
};

struct fingerprint {
    char text[FINGERPRINT_BYTES + 1];
    char code[CODE_BYTES_MAX]; /* "http:418"; empty: none */
    char sample[FINGERPRINT_SAMPLE_BYTES_MAX + 1]; /* masked, lower case, valid UTF-8; may be empty */
    bool spaced; /* some white space in it is not a single space */
};

/*
 * `code` empty: the one that the text names, if any, as classify.h finds it. A number right behind a word for it ("HTTP
 * 418", "error code 1205", "ORA-00060") is a code and stays; every other is masked.
 */
void fingerprint_make(struct slice code_namespace, struct slice code, struct slice text,
                      struct fingerprint *ret_fingerprint);

#endif
