/*
 * json_text.h - pieces of a JSON text as they were written.
 *
 * A payload is sent as its sender wrote it, so its text must not go through a parser and back:
 * 19.90 stays 19.90. The first two functions find where a value begins and ends, and take the
 * text's word for it; whether it is JSON is for jansson or json_text_is_valid to say.
 */
#ifndef API_CALL_JSON_TEXT_H
#define API_CALL_JSON_TEXT_H

#include "base/slice.h"

/* The text of a member of an object; empty when it has none of that name. */
struct slice json_text_member(struct slice object, struct slice name);
/* The text of its name, quotation marks included; likewise. */
struct slice json_text_member_key(struct slice object, struct slice name);

/*
 * The elements of an array one after the other: *rest starts as the whole text. False at the end, and when the
 * text is no array or is broken there (*ret_broken).
 */
bool json_text_next(struct slice *rest, struct slice *ret_element, bool *ret_broken);

/*
 * Whether the whole of `text` is one JSON value (RFC 8259, UTF-8) of at most 256 levels. Numbers may be of any size and
 * precision: nothing is made of them here.
 */
bool json_text_is_valid(struct slice text);

/* A string that stands for itself: nothing in it is escaped. */
bool json_text_is_plain(struct slice text);

#endif
