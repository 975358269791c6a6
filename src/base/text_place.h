/*
 * text_place.h - where in a text something stands, as editors count.
 */
#ifndef BASE_TEXT_PLACE_H
#define BASE_TEXT_PLACE_H

#include "base/slice.h"

/* Both count from 1, columns in characters. Line 0: nowhere in particular. */
struct text_place {
    size_t line, column;
};

/* The place of a byte of the text, or of its end. `start` is where the text begins; TEXT_PLACE_FIRST: it is the whole. */
#define TEXT_PLACE_FIRST ((struct text_place){ 1, 1 })
struct text_place text_place_of(struct text_place start, struct slice text, size_t offset);

/* A place in a text that begins at `start`, as a place in the whole. */
struct text_place text_place_within(struct text_place start, struct text_place place);

#endif
