#include "config/problems.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PROBLEM_BYTES_MAX = 768, NAME_BYTES_MAX = 48 };

/* How much of the text's beginning the secret is, as it is or as it is quoted; 0: it is not that. */
static size_t secret_len(const struct secret *secret, struct slice text)
{
    if (slice_has_prefix(text, secret->value))
        return secret->value.len;
    if (text.data[0] != secret->value.data[0] && text.data[0] != '?')
        return 0;
    struct quoted quoted = quote(secret->value);
    struct slice cut = slice_from(quoted.text);
    return slice_has_prefix(text, cut) ? cut.len : 0;
}

/* A part of a longer word is that word's: the whole value that it may stand in is a secret by itself. */
static bool cuts_word(struct slice text, size_t at)
{
    return at > 0 && at < text.len && ascii_is_alnum(text.data[at - 1]) && ascii_is_alnum(text.data[at]);
}

void secrets_hide(const struct secret *secrets, struct slice whole, struct buffer *out)
{
    for (struct slice text = whole; text.len > 0;) {
        const struct secret *longest = NULL;
        size_t len = 0, at = whole.len - text.len;
        for (const struct secret *secret = secrets; secret; secret = secret->next) {
            size_t found = secret_len(secret, text);
            if (found > len && !cuts_word(whole, at) && !cuts_word(whole, at + found)) {
                longest = secret;
                len = found;
            }
        }
        if (longest)
            buffer_append(out, longest->shown);
        else
            buffer_append_byte(out, text.data[0]);
        text = slice_from_offset(text, longest ? len : 1);
    }
}

/* A file's name is a secret only as a whole, as that of a preset may be: a part of it may be any word. */
static struct slice file_shown(const struct secret *secrets, struct slice file)
{
    for (const struct secret *secret = secrets; secret; secret = secret->next) {
        bool here = slice_has_prefix(secret->value, SLICE("./"));
        struct slice name = slice_from_offset(secret->value, here ? 2 : 0);
        if (slice_has_suffix(file, name) && (file.len == name.len || file.data[file.len - name.len - 1] == '/'))
            return secret->shown;
    }
    return file;
}

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
    buffer_append(problems->out, file_shown(problems->secrets, slice_from(place.file)));
    if (place.line > 0)
        buffer_printf(problems->out, ":%zu:%zu", place.line, place.column);
    buffer_append_text(problems->out, ": ");
    secrets_hide(problems->secrets, slice_from(text), problems->out);
    buffer_append_byte(problems->out, '\n');
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
