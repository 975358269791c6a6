#include "transport/smtp/reply.h"

#include <assert.h>

void smtp_reader_init(struct smtp_reader *reader, size_t limit)
{
    reader->limit = limit;
    buffer_init(&reader->text, SMTP_TEXT_BYTES_MAX);
    smtp_reader_clear(reader);
}

void smtp_reader_release(struct smtp_reader *reader)
{
    buffer_release(&reader->text);
}

void smtp_reader_clear(struct smtp_reader *reader)
{
    buffer_clear(&reader->text);
    reader->code = 0;
    reader->bytes = reader->line_len = 0;
    reader->whole = false;
    reader->enhanced_len = 0;
}

/* "5.7.1" at the start of a text: three numbers; empty: none. */
static struct slice enhanced_of(struct slice text)
{
    size_t len = 0, numbers = 0;
    while (len < text.len && numbers < 3) {
        size_t digits = 0;
        while (len + digits < text.len && ascii_is_digit(text.data[len + digits]))
            digits++;
        if (digits == 0 || digits > 3)
            return SLICE("");
        len += digits;
        numbers++;
        if (numbers < 3 && (len == text.len || text.data[len++] != '.'))
            return SLICE("");
    }
    bool ends = len == text.len || text.data[len] == ' ';
    return numbers == 3 && ends ? (struct slice){ text.data, len } : SLICE("");
}

static void text_append(struct smtp_reader *reader, struct slice line)
{
    struct buffer *text = &reader->text;
    size_t code_len = enhanced_of(line).len;
    size_t start = text->len;
    if (start > 0 && code_len > 0 && slice_equal((struct slice){ text->data, reader->enhanced_len },
                                                 (struct slice){ line.data, code_len }))
        line = slice_trim(slice_from_offset(line, code_len));
    if (line.len == 0 || start + 1 >= text->limit)
        return;
    if (start > 0)
        buffer_append_byte(text, ' ');
    else
        reader->enhanced_len = code_len;
    size_t room = text->limit - text->len;
    buffer_append(text, (struct slice){ line.data, line.len < room ? line.len : room });
    for (size_t i = start; i < text->len; i++)
        if ((unsigned char)text->data[i] < ' ' || text->data[i] == 0x7f)
            text->data[i] = ' ';
}

static enum smtp_read line_take(struct smtp_reader *reader)
{
    struct slice line = { reader->line, reader->line_len };
    int64_t code;
    reader->line_len = 0;
    if (line.len > 0 && line.data[line.len - 1] == '\r')
        line.len--;
    bool number = line.len >= 3 && ascii_is_digit(line.data[0]) && slice_to_int64((struct slice){ line.data, 3 }, &code);
    bool marked = line.len == 3 || (line.len > 3 && (line.data[3] == ' ' || line.data[3] == '-'));
    bool another = reader->code != 0 && number && code != reader->code; /* which of the two would count? */
    if (!number || !marked || code < 200 || code > 599 || another)
        return SMTP_READ_BROKEN;
    reader->code = (int)code;
    text_append(reader, slice_trim(slice_from_offset(line, 4)));
    reader->whole = line.len == 3 || line.data[3] == ' ';
    return reader->whole ? SMTP_READ_REPLY : SMTP_READ_MORE;
}

enum smtp_read smtp_reader_take(struct smtp_reader *reader, struct slice *bytes)
{
    assert(reader->limit > 0);
    if (reader->whole)
        smtp_reader_clear(reader);
    while (bytes->len > 0) {
        char byte = bytes->data[0];
        *bytes = slice_from_offset(*bytes, 1);
        if (++reader->bytes > reader->limit)
            return SMTP_READ_BROKEN;
        if (byte != '\n') {
            if (reader->line_len < sizeof reader->line)
                reader->line[reader->line_len++] = byte;
            continue;
        }
        enum smtp_read read = line_take(reader);
        if (read != SMTP_READ_MORE)
            return read;
    }
    return SMTP_READ_MORE;
}

struct slice smtp_capability(struct slice line)
{
    if (!slice_has_prefix(line, SLICE("250")) || line.len < 5)
        return SLICE("");
    struct slice rest = slice_trim(slice_from_offset(line, 4));
    return (struct slice){ rest.data, slice_find(rest, ' ') };
}
