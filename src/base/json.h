/*
 * json.h - writing JSON into a buffer, and checking what jansson read.
 *
 * Reading is jansson's. Writing is by hand because answers are made by the hundred
 * thousand: no tree, no allocation but the buffer's own. The names are chosen apart from
 * jansson's json_string and its like, so that one file can use both.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/buffer.h"
#include "base/instant.h"

/* Writes one JSON text; commas are put where they belong. */
struct json_writer {
    struct buffer *out;
    bool comma; /* a value stands before, on this level */
};

struct json_writer json_writer(struct buffer *out);

void json_object_begin(struct json_writer *json);
/* A writer of one object, which is begun. */
static inline struct json_writer json_begin(struct buffer *out)
{
    struct json_writer json = json_writer(out);
    json_object_begin(&json);
    return json;
}
void json_object_end(struct json_writer *json);
void json_array_begin(struct json_writer *json);
void json_array_end(struct json_writer *json);
/* `name` is a plain ASCII word and is not escaped. */
void json_name(struct json_writer *json, const char *name);
/* The same of a name that somebody else chose. */
void json_name_any(struct json_writer *json, struct slice name);

/* Bytes that are not UTF-8 become U+FFFD: the text is always valid JSON. */
void json_put_string(struct json_writer *json, struct slice value);
/* The bytes in Base64, as a string. */
void json_put_base64(struct json_writer *json, struct slice bytes);
void json_put_int(struct json_writer *json, int64_t value);
void json_put_real(struct json_writer *json, double value);
void json_put_null(struct json_writer *json);
/* JSON text that is there already, as it is. */
void json_put_raw(struct json_writer *json, struct slice value);

/* `name` with the text when it is UTF-8, else `name_base64`. */
void json_member_bytes(struct json_writer *json, const char *name, const char *name_base64, struct slice bytes);

/* A name and its value at once; of the first two the beginning. */
void json_member_object(struct json_writer *json, const char *name);
void json_member_array(struct json_writer *json, const char *name);
void json_member_string(struct json_writer *json, const char *name, struct slice value);
void json_member_text(struct json_writer *json, const char *name, const char *value);
/* Left out when empty, or then null. */
void json_member_given(struct json_writer *json, const char *name, struct slice value);
void json_member_or_null(struct json_writer *json, const char *name, struct slice value);
void json_member_int(struct json_writer *json, const char *name, int64_t value);
void json_member_real(struct json_writer *json, const char *name, double value);
void json_member_bool(struct json_writer *json, const char *name, bool value);
/* JSON text that is there already; left out when empty. */
void json_member_raw(struct json_writer *json, const char *name, struct slice value);
/* Left out when the instant is INSTANT_NONE. */
void json_member_instant(struct json_writer *json, const char *name, instant value);

/* Length of the valid UTF-8 sequence at `text`, 0 when there is none. */
size_t utf8_sequence_len(struct slice text);
/* Whether all of it is UTF-8. */
bool utf8_is_valid(struct slice text);
/* So many bytes at the start of `text` stand for themselves in a JSON string; some of those after them may, too. */
size_t json_plain_len(struct slice text);
/* No more than so many bytes of it, and no part of a character at the end. */
struct slice utf8_cut(struct slice text, size_t len_max);
/*
 * The number of the character beyond ASCII at `text` where it is not seen itself but changes how others are: a C1 control,
 * one that turns the direction of writing, a separator of lines, a mark without width. 0: it is another, or no UTF-8.
 */
uint32_t utf8_unseen(struct slice text);

#endif
