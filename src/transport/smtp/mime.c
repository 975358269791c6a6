#include "transport/smtp/mime.h"

#include "base/json.h"

#include <openssl/evp.h>
#include <string.h>

enum {
    FOLD_COLUMNS = 76,
    LINE_COLUMNS_MAX = 998,
    WORD_BYTES = 45,         /* of an encoded word: 60 digits, 72 columns in all */
    PLAIN_WORD_MAX = 900,    /* a longer one could not be folded */
    BASE64_LINE_BYTES = 57,  /* 76 digits */
    BASE64_LINE_DIGITS = 76,
    QUOTED_COLUMNS = 75,     /* and the = of a soft break */
};

#define CRLF SLICE("\r\n")

/* --- headers ----------------------------------------------------------------------------------- */

/* ASCII that stands for itself in a header and can be folded. */
static bool is_plain(struct slice value)
{
    size_t word = 0;
    for (size_t i = 0; i < value.len; i++) {
        if ((unsigned char)value.data[i] < ' ' || (unsigned char)value.data[i] > 0x7e)
            return false;
        word = value.data[i] == ' ' && i > 0 && value.data[i - 1] != ' ' ? 0 : word + 1;
        if (word > PLAIN_WORD_MAX)
            return false;
    }
    return slice_search(value, SLICE("=?")) == value.len && slice_equal(value, slice_trim(value));
}

/* Breaks only where one space stands between two words, so that unfolding gives the same text. */
static void append_folded(struct buffer *out, struct slice value, size_t column)
{
    while (value.len > 0) {
        size_t end = 1;
        while (end < value.len && value.data[end] != ' ')
            end++;
        bool before_word = value.data[0] == ' ' && end > 1;
        if (before_word && column + end > FOLD_COLUMNS) {
            buffer_append(out, CRLF);
            column = 0;
        }
        buffer_append(out, (struct slice){ value.data, end });
        column += end;
        value = slice_from_offset(value, end);
    }
}

static void append_base64(struct buffer *out, struct slice bytes)
{
    unsigned char digits[BASE64_LINE_DIGITS + 1];
    while (bytes.len > 0) {
        size_t len = bytes.len < BASE64_LINE_BYTES ? bytes.len : BASE64_LINE_BYTES;
        int written = EVP_EncodeBlock(digits, (const unsigned char *)bytes.data, (int)len);
        buffer_append(out, (struct slice){ (const char *)digits, (size_t)written });
        bytes = slice_from_offset(bytes, len);
        if (bytes.len > 0)
            buffer_append(out, CRLF);
    }
}

/* No character is split between two words. */
static void append_encoded(struct buffer *out, struct slice value)
{
    while (value.len > 0) {
        size_t len = 0;
        while (len < value.len) {
            size_t one = utf8_sequence_len(slice_from_offset(value, len));
            if (one == 0)
                one = 1;
            if (len + one > WORD_BYTES)
                break;
            len += one;
        }
        buffer_append(out, SLICE("=?UTF-8?B?"));
        append_base64(out, (struct slice){ value.data, len });
        buffer_append(out, SLICE("?="));
        value = slice_from_offset(value, len);
        if (value.len > 0)
            buffer_append(out, SLICE("\r\n "));
    }
}

void mime_header(struct buffer *out, const char *name, struct slice value)
{
    buffer_append_text(out, name);
    buffer_append(out, SLICE(": "));
    if (is_plain(value))
        append_folded(out, value, strlen(name) + 2);
    else
        append_encoded(out, value);
    buffer_append(out, CRLF);
}

/* Words that need no quotes beside each other. */
static bool is_phrase(struct slice name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!ascii_is_alnum(name.data[i]) && !strchr(" !#$%&'*+-/=?^_`{|}~", name.data[i]))
            return false;
    return is_plain(name);
}

static void append_address(struct buffer *out, const struct smtp_address *address)
{
    if (address->name.len == 0) {
        buffer_append(out, address->address);
        return;
    }
    if (is_phrase(address->name))
        buffer_append(out, address->name);
    else if (is_plain(address->name))
        buffer_printf(out, "\"%.*s\"", SLICE_ARG(address->name)); /* has neither quotes nor backslashes */
    else
        append_encoded(out, address->name);
    buffer_printf(out, " <%.*s>", SLICE_ARG(address->address));
}

void mime_addresses(struct buffer *out, const char *name, const struct smtp_address *addresses, size_t count)
{
    buffer_append_text(out, name);
    buffer_append(out, SLICE(": "));
    for (size_t i = 0; i < count; i++) {
        append_address(out, &addresses[i]);
        if (i + 1 < count)
            buffer_append(out, SLICE(",\r\n "));
    }
    buffer_append(out, CRLF);
}

void mime_filename(struct buffer *out, struct slice name)
{
    buffer_append(out, SLICE(";\r\n filename"));
    if (is_plain(name) && slice_find(name, '"') == name.len && slice_find(name, '\\') == name.len) {
        buffer_printf(out, "=\"%.*s\"", SLICE_ARG(name));
        return;
    }
    buffer_append(out, SLICE("*=UTF-8''"));
    for (size_t i = 0; i < name.len; i++) {
        if (ascii_is_alnum(name.data[i]) || name.data[i] == '.' || name.data[i] == '-' || name.data[i] == '_')
            buffer_append_byte(out, name.data[i]);
        else
            buffer_printf(out, "%%%02X", (unsigned char)name.data[i]);
    }
}

/* --- bodies ------------------------------------------------------------------------------------ */

/* The first line of a text, without its end, and what is behind it. CR LF, CR and LF end a line. */
static struct slice line_take(struct slice *text)
{
    size_t len = 0;
    while (len < text->len && text->data[len] != '\r' && text->data[len] != '\n')
        len++;
    struct slice line = { text->data, len };
    if (len < text->len)
        len += text->data[len] == '\r' && len + 1 < text->len && text->data[len + 1] == '\n' ? 2 : 1;
    *text = slice_from_offset(*text, len);
    return line;
}

/* "=_" begins each boundary and can stand in no encoded part; what is sent as it is must not look like one. */
static bool is_plain_body(struct slice text)
{
    while (text.len > 0) {
        struct slice line = line_take(&text);
        if (line.len > LINE_COLUMNS_MAX || slice_has_prefix(line, SLICE("--=_")))
            return false;
        for (size_t i = 0; i < line.len; i++)
            if (((unsigned char)line.data[i] < ' ' && line.data[i] != '\t') || (unsigned char)line.data[i] > 0x7e)
                return false;
    }
    return true;
}

static void append_quoted_line(struct buffer *out, struct slice line)
{
    size_t column = 0;
    for (size_t i = 0; i < line.len; i++) {
        unsigned char byte = (unsigned char)line.data[i];
        bool blank_end = (byte == ' ' || byte == '\t') && i + 1 == line.len;
        bool plain = ((byte > ' ' && byte <= 0x7e && byte != '=') || byte == ' ' || byte == '\t') && !blank_end;
        size_t width = plain ? 1 : 3;
        if (column + width > QUOTED_COLUMNS) {
            buffer_append(out, SLICE("=\r\n"));
            column = 0;
        }
        if (plain)
            buffer_append_byte(out, (char)byte);
        else
            buffer_printf(out, "=%02X", byte);
        column += width;
    }
    buffer_append(out, CRLF);
}

void mime_text_part(struct buffer *out, const char *type, struct slice text)
{
    bool plain = is_plain_body(text);
    buffer_printf(out, "Content-Type: %s; charset=%s\r\nContent-Transfer-Encoding: %s\r\n\r\n", type,
                  plain ? "us-ascii" : "utf-8", plain ? "7bit" : "quoted-printable");
    while (text.len > 0) {
        struct slice line = line_take(&text);
        if (!plain) {
            append_quoted_line(out, line);
            continue;
        }
        buffer_append(out, line);
        buffer_append(out, CRLF);
    }
}

void mime_base64(struct buffer *out, struct slice bytes)
{
    append_base64(out, bytes);
    buffer_append(out, CRLF);
}

bool mime_base64_is_valid(struct slice digits)
{
    size_t count = 0, padding = 0;
    for (size_t i = 0; i < digits.len; i++) {
        char c = digits.data[i];
        if (c == '\r' || c == '\n' || c == ' ')
            continue;
        if (c == '=')
            padding++;
        else if (padding > 0 || (!ascii_is_alnum(c) && c != '+' && c != '/'))
            return false;
        count++;
    }
    return count % 4 == 0 && padding <= 2;
}

void mime_base64_rewrap(struct buffer *out, struct slice digits)
{
    size_t column = 0;
    for (size_t i = 0; i < digits.len; i++) {
        if (digits.data[i] == '\r' || digits.data[i] == '\n' || digits.data[i] == ' ')
            continue;
        if (column == BASE64_LINE_DIGITS) {
            buffer_append(out, CRLF);
            column = 0;
        }
        buffer_append_byte(out, digits.data[i]);
        column++;
    }
    buffer_append(out, CRLF);
}

enum status mime_wire(struct slice message, struct buffer *out, struct error *err)
{
    if (slice_find(message, '\0') < message.len)
        return error_set(err, STATUS_INVALID, "a message cannot hold a NUL");
    for (size_t number = 1; message.len > 0; number++) {
        struct slice line = line_take(&message);
        if (line.len > LINE_COLUMNS_MAX)
            return error_set(err, STATUS_INVALID, "line %zu of the message has %zu bytes; a mail server takes up to %d",
                             number, line.len, LINE_COLUMNS_MAX);
        if (line.len > 0 && line.data[0] == '.')
            buffer_append_byte(out, '.');
        buffer_append(out, line);
        buffer_append(out, CRLF);
    }
    buffer_append(out, SLICE(".\r\n"));
    enum status status = buffer_status(out);
    return status == STATUS_OK ? STATUS_OK : error_set(err, status, "the message is too long, or there is no memory for it");
}
