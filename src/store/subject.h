/*
 * subject.h - a person, as texts name one: an address, a number, a name. Whether a text, a job or an event tells of it.
 *
 * A subject is found as whole words, whatever the case of its letters, and however the text was written: as it is, escaped
 * as in JSON, in a form or in XML, in UTF-8 or in Latin-1. What is packed, encrypted or in Base64 is not looked into.
 *
 * Pure: no I/O, clock or allocation.
 */
#ifndef STORE_SUBJECT_H
#define STORE_SUBJECT_H

#include "store/store.h"

enum { SUBJECT_CHARACTERS_MIN = 3, SUBJECT_BYTES_MAX = 256 };

struct subject {
    uint32_t points[SUBJECT_BYTES_MAX]; /* its characters, in small letters */
    size_t count;
};

/* STATUS_INVALID: it is too short or too long to mean one person, or no UTF-8. */
enum status subject_init(struct subject *subject, struct slice text, struct error *err) MUST_CHECK;
/* Whether the text names it: not as a part of a longer word, in which . - + ' and @ join what stands around them. */
bool subject_in(const struct subject *subject, struct slice text);

/* Where in a job it was found, as bits. */
enum subject_place {
    SUBJECT_IN_PAYLOAD = 1,
    SUBJECT_IN_METADATA = 2,
    SUBJECT_IN_HEADERS = 4,
    SUBJECT_IN_CORRELATION_ID = 8,
    SUBJECT_IN_ERROR = 16,
    SUBJECT_IN_REFERENCE = 32,
    SUBJECT_IN_CALLBACK = 64,
    SUBJECT_IN_KEY = 128,
    SUBJECT_IN_ID = 256,
    SUBJECT_IN_TENANT = 512,
};
/* The job with its payload; 0: it does not tell of it. */
unsigned subject_in_job(const struct subject *subject, const struct job *job);
/* "payload", ...; NULL: there is no place of that bit. */
const char *subject_place_name(unsigned place);
/* Whether the names of an event, which are part of its hash and stay, tell of it. */
bool subject_in_names(const struct subject *subject, const struct event *event);

#endif
