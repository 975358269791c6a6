#include "cli/talk/lines.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CAPACITY_FIRST = 256 << 10 };

enum status lines_init(struct lines *lines, int descriptor, size_t line_bytes_max)
{
    *lines = (struct lines){ .descriptor = descriptor, .line_bytes_max = line_bytes_max };
    lines->data = malloc(CAPACITY_FIRST);
    if (!lines->data)
        return STATUS_NO_MEMORY;
    lines->capacity = CAPACITY_FIRST;
    return STATUS_OK;
}

void lines_release(struct lines *lines)
{
    free(lines->data);
    lines->data = NULL;
}

static void drop(struct lines *lines, size_t len)
{
    lines->start += len;
    lines->scanned = 0;
    if (lines->start == lines->end)
        lines->start = lines->end = 0;
}

/* The end of a line that is being skipped: it was reported when it became too long. */
static bool skip(struct lines *lines)
{
    size_t len = lines->end - lines->start;
    const char *newline = len > 0 ? memchr(lines->data + lines->start, '\n', len) : NULL;
    lines->skipping = !newline;
    drop(lines, newline ? (size_t)(newline - lines->data) + 1 - lines->start : len);
    return newline != NULL;
}

enum line_kind lines_next(struct lines *lines, struct slice *ret_line)
{
    if (lines->skipping && !skip(lines))
        return LINE_NONE;
    const char *line = lines->data + lines->start;
    size_t len = lines->end - lines->start;
    const char *newline = len > lines->scanned ? memchr(line + lines->scanned, '\n', len - lines->scanned) : NULL;
    if (newline || (lines->ended && len > 0)) {
        *ret_line = (struct slice){ line, newline ? (size_t)(newline - line) : len };
        lines->start += ret_line->len + (newline ? 1 : 0);
        lines->scanned = 0;
        return ret_line->len > lines->line_bytes_max ? LINE_TOO_LONG : LINE_WHOLE;
    }
    lines->scanned = len;
    if (len <= lines->line_bytes_max)
        return LINE_NONE;
    lines->skipping = true;
    drop(lines, len);
    return LINE_TOO_LONG;
}

bool lines_ready(const struct lines *lines)
{
    struct pollfd wanted = { .fd = lines->descriptor, .events = POLLIN };
    return poll(&wanted, 1, 0) > 0;
}

/* Makes room behind what is there: moves it to the front, or doubles the memory up to a line and a bit. */
static bool make_room(struct lines *lines)
{
    size_t len = lines->end - lines->start;
    if (lines->start > 0) {
        memmove(lines->data, lines->data + lines->start, len);
        lines->start = 0;
        lines->end = len;
    }
    if (lines->end < lines->capacity)
        return true;
    assert(lines->capacity <= lines->line_bytes_max); /* else the line was too long and is gone */
    char *data = realloc(lines->data, lines->capacity * 2);
    if (!data)
        return false;
    lines->data = data;
    lines->capacity *= 2;
    return true;
}

bool lines_fill(struct lines *lines)
{
    if (!make_room(lines)) {
        errno = ENOMEM;
        return false;
    }
    struct pollfd wanted = { .fd = lines->descriptor, .events = POLLIN };
    ssize_t got;
    while ((got = read(lines->descriptor, lines->data + lines->end, lines->capacity - lines->end)) < 0) {
        if (errno != EINTR && errno != EAGAIN)
            return false;
        if (errno == EAGAIN) /* somebody made the descriptor non-blocking */
            poll(&wanted, 1, -1);
    }
    lines->end += (size_t)got;
    lines->ended = got == 0;
    return true;
}
