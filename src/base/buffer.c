#include "base/buffer.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CAPACITY_FIRST = 256 };

struct buffer buffer_up_to(size_t limit)
{
    assert(limit < SIZE_MAX / 2);
    return (struct buffer){ .limit = limit };
}

void buffer_init(struct buffer *buffer, size_t limit)
{
    *buffer = buffer_up_to(limit);
}

void buffer_release(struct buffer *buffer)
{
    size_t limit = buffer->limit;
    free(buffer->data);
    *buffer = (struct buffer){ .limit = limit };
}

void buffer_clear(struct buffer *buffer)
{
    buffer->len = 0;
    buffer->failure = STATUS_OK;
    if (buffer->data)
        buffer->data[0] = '\0';
}

static bool grow(struct buffer *buffer, size_t extra)
{
    if (buffer->failure != STATUS_OK)
        return false;
    if (extra > buffer->limit - buffer->len) {
        buffer->failure = STATUS_LIMIT;
        return false;
    }
    size_t needed = buffer->len + extra + 1;
    if (needed <= buffer->capacity)
        return true;
    size_t capacity = buffer->capacity ? buffer->capacity * 2 : CAPACITY_FIRST;
    if (capacity > buffer->limit + 1)
        capacity = buffer->limit + 1;
    if (capacity < needed)
        capacity = needed;
    char *data = realloc(buffer->data, capacity);
    if (!data) {
        buffer->failure = STATUS_NO_MEMORY;
        return false;
    }
    buffer->data = data;
    buffer->data[buffer->len] = '\0';
    buffer->capacity = capacity;
    return true;
}

char *buffer_reserve(struct buffer *buffer, size_t len)
{
    return grow(buffer, len) ? buffer->data + buffer->len : NULL;
}

void buffer_commit(struct buffer *buffer, size_t len)
{
    assert(buffer->len + len < buffer->capacity);
    buffer->len += len;
    buffer->data[buffer->len] = '\0';
}

void buffer_append(struct buffer *buffer, struct slice text)
{
    char *room = buffer_reserve(buffer, text.len);
    if (!room)
        return;
    if (text.len > 0)
        memcpy(room, text.data, text.len);
    buffer_commit(buffer, text.len);
}

void buffer_append_byte(struct buffer *buffer, char byte)
{
    buffer_append(buffer, (struct slice){ &byte, 1 });
}

void buffer_append_text(struct buffer *buffer, const char *text)
{
    buffer_append(buffer, slice_from(text));
}

void buffer_append_int64(struct buffer *buffer, int64_t value)
{
    char digits[24];
    char *end = digits + sizeof digits;
    char *start = end;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do
        *--start = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    if (value < 0)
        *--start = '-';
    buffer_append(buffer, (struct slice){ start, (size_t)(end - start) });
}

void buffer_append_hex(struct buffer *buffer, struct slice bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        buffer_printf(buffer, "%02x", (unsigned char)bytes.data[i]);
}

void buffer_append_html(struct buffer *buffer, struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (c == '&')
            buffer_append_text(buffer, "&amp;");
        else if (c == '<')
            buffer_append_text(buffer, "&lt;");
        else if (c == '>')
            buffer_append_text(buffer, "&gt;");
        else if (c == '"')
            buffer_append_text(buffer, "&quot;");
        else
            buffer_append_byte(buffer, (unsigned char)c < ' ' ? ' ' : c);
    }
}

void buffer_printf(struct buffer *buffer, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    assert(len >= 0);

    char *room = buffer_reserve(buffer, (size_t)len);
    if (!room)
        return;
    va_start(args, format);
    vsnprintf(room, (size_t)len + 1, format, args);
    va_end(args);
    buffer_commit(buffer, (size_t)len);
}

enum status buffer_status(const struct buffer *buffer)
{
    return buffer->failure;
}

struct slice buffer_slice(const struct buffer *buffer)
{
    return buffer->data ? (struct slice){ buffer->data, buffer->len } : SLICE("");
}

char *buffer_take(struct buffer *buffer)
{
    if (buffer->failure != STATUS_OK || !buffer_reserve(buffer, 0))
        return NULL;
    char *data = buffer->data;
    data[buffer->len] = '\0';
    buffer->data = NULL;
    buffer_release(buffer);
    return data;
}

struct slice buffer_into(struct buffer *buffer, struct arena *memory)
{
    struct slice copy = { NULL, 0 };
    if (buffer->failure == STATUS_OK)
        copy = arena_copy(memory, buffer_slice(buffer));
    buffer_release(buffer);
    return copy;
}
