#include "config/problems.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PROBLEM_BYTES_MAX = 768, NAME_BYTES_MAX = 48 };

void problem_add(struct problems *problems, struct place place, const char *format, ...)
{
    problems->count++;
    if (!problems->out || problems->count > PROBLEMS_MAX + 1)
        return;
    if (problems->count == PROBLEMS_MAX + 1) {
        buffer_printf(problems->out, "%s: there are more problems; the first %d are above\n", place.file, PROBLEMS_MAX);
        return;
    }
    char text[PROBLEM_BYTES_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (place.line > 0)
        buffer_printf(problems->out, "%s:%zu:%zu: %s\n", place.file, place.line, place.column, text);
    else
        buffer_printf(problems->out, "%s: %s\n", place.file, text);
}

struct quoted quote(struct slice text)
{
    struct quoted quoted;
    size_t len = text.len < QUOTED_BYTES_MAX ? text.len : QUOTED_BYTES_MAX;
    /* Not in the middle of a character. */
    while (len < text.len && len > 0 && ((unsigned char)text.data[len] & 0xc0) == 0x80)
        len--;
    for (size_t i = 0; i < len; i++)
        quoted.text[i] = (unsigned char)text.data[i] < ' ' || text.data[i] == 0x7f ? '?' : text.data[i];
    quoted.text[len] = '\0';
    if (len < text.len)
        strcpy(quoted.text + len, "...");
    return quoted;
}

static size_t min(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Optimal string alignment; names longer than NAME_BYTES_MAX are near nothing. */
static size_t edit_distance(struct slice a, struct slice b)
{
    size_t rows[3][NAME_BYTES_MAX + 1];
    size_t *before = rows[0], *above = rows[1], *row = rows[2];
    if (a.len > NAME_BYTES_MAX || b.len > NAME_BYTES_MAX)
        return NAME_BYTES_MAX;
    memset(rows, 0, sizeof rows);
    for (size_t j = 0; j <= b.len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        size_t *oldest = before;
        before = above;
        above = row;
        row = oldest;
        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            bool same = ascii_lower(a.data[i - 1]) == ascii_lower(b.data[j - 1]);
            row[j] = min(min(above[j], row[j - 1]) + 1, above[j - 1] + (same ? 0 : 1));
            if (i > 1 && j > 1 && a.data[i - 1] == b.data[j - 2] && a.data[i - 2] == b.data[j - 1])
                row[j] = min(row[j], before[j - 2] + 1);
        }
    }
    return row[b.len];
}

void nearest_offer(struct nearest *nearest, const char *name)
{
    size_t distance = edit_distance(nearest->wanted, slice_from(name));
    size_t allowed = 1 + strlen(name) / 5; /* a longer name may have more wrong with it */
    if (distance <= allowed && distance < strlen(name) && (!nearest->name || distance < nearest->distance)) {
        nearest->name = name;
        nearest->distance = distance;
    }
}
