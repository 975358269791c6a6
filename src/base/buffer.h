/*
 * buffer.h - bytes that grow, up to a limit.
 *
 * Appending never reports: the first failure sticks, later appends do nothing, and
 * buffer_status says at the end whether all of it is there. The content stays terminated
 * with a NUL that is not counted, so `data` can be handed to C functions.
 */
#ifndef BASE_BUFFER_H
#define BASE_BUFFER_H

#include "base/arena.h"
#include "base/slice.h"
#include "base/status.h"

struct buffer {
    char *data; /* NULL until the first append */
    size_t len;
    size_t capacity;
    size_t limit;
    enum status failure; /* STATUS_OK, STATUS_LIMIT or STATUS_NO_MEMORY */
};

/* A buffer that will hold at most `limit` bytes; the second is for those inside something else. */
struct buffer buffer_up_to(size_t limit);
void buffer_init(struct buffer *buffer, size_t limit);
/* Frees the content; the buffer can be used again with the same limit. */
void buffer_release(struct buffer *buffer);
/* Empties it and forgets a failure, keeping the memory. */
void buffer_clear(struct buffer *buffer);

void buffer_append(struct buffer *buffer, struct slice text);
void buffer_append_byte(struct buffer *buffer, char byte);
void buffer_append_text(struct buffer *buffer, const char *text);
void buffer_append_int64(struct buffer *buffer, int64_t value);
/* Two lower-case hexadecimal digits a byte. */
void buffer_append_hex(struct buffer *buffer, struct slice bytes);
/* As the text of a page; control bytes become blanks. */
void buffer_append_html(struct buffer *buffer, struct slice text);
void buffer_printf(struct buffer *buffer, const char *format, ...) PRINTF_LIKE(2, 3);

/* Room for `len` more bytes to be written by the caller, who then calls buffer_commit; NULL when it failed. */
char *buffer_reserve(struct buffer *buffer, size_t len);
void buffer_commit(struct buffer *buffer, size_t len);

enum status buffer_status(const struct buffer *buffer) MUST_CHECK;
/* Borrows; valid until the next append. Never has a NULL pointer. */
struct slice buffer_slice(const struct buffer *buffer);
/* The content becomes the caller's, to be freed; the buffer is empty after it. NULL when it failed. */
char *buffer_take(struct buffer *buffer);
/* A copy of the content in the arena; the buffer is released. .data is NULL when either failed. */
struct slice buffer_into(struct buffer *buffer, struct arena *memory);

#endif
