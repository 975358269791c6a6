/*
 * literal.h - a text without which a regular expression cannot match.
 *
 * Most expressions have a plain part that every match contains. Looking for it first is much
 * cheaper than starting the matcher, and most texts do not have it.
 */
#ifndef BASE_LITERAL_H
#define BASE_LITERAL_H

#include "base/slice.h"

enum { LITERAL_BYTES_MAX = 32 };

struct literal {
    char text[LITERAL_BYTES_MAX]; /* lower case */
    size_t len;                   /* 0: none is known */
};

/* The longest plain part outside groups. Gives up, with none, on anything that it does not know for certain. */
struct literal literal_of(struct slice expression);

/* Whether `text` has it, upper or lower case; always true when none is known. */
bool literal_occurs(const struct literal *literal, struct slice text);

#endif
