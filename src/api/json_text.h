/*
 * json_text.h - pieces of a JSON text as they were written.
 *
 * A payload is sent as its sender wrote it, so its text must not go through a parser and back:
 * 19.90 stays 19.90. These functions find where a value begins and ends; whether the whole is
 * valid JSON is jansson's to say.
 */
#ifndef API_JSON_TEXT_H
#define API_JSON_TEXT_H

#include "base/slice.h"

/* The text of a member of an object; empty when it has none of that name. */
struct slice json_text_member(struct slice object, struct slice name);

/*
 * The elements of an array one after the other: *rest starts as the whole text. False at the end, and when the
 * text is no array or is broken there (*ret_broken).
 */
bool json_text_next(struct slice *rest, struct slice *ret_element, bool *ret_broken);

#endif
