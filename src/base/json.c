#include "base/json.h"

#include <assert.h>
#include <string.h>

static const uint64_t each = 0x0101010101010101, top_bits = 0x8080808080808080;

struct json_writer json_writer(struct buffer *out)
{
    return (struct json_writer){ .out = out };
}

static void separate(struct json_writer *json)
{
    if (json->comma)
        buffer_append_byte(json->out, ',');
    json->comma = true;
}

static void open_bracket(struct json_writer *json, char bracket)
{
    separate(json);
    buffer_append_byte(json->out, bracket);
    json->comma = false;
}

static void close_bracket(struct json_writer *json, char bracket)
{
    buffer_append_byte(json->out, bracket);
    json->comma = true;
}

void json_object_begin(struct json_writer *json)
{
    open_bracket(json, '{');
}

void json_object_end(struct json_writer *json)
{
    close_bracket(json, '}');
}

void json_array_begin(struct json_writer *json)
{
    open_bracket(json, '[');
}

void json_array_end(struct json_writer *json)
{
    close_bracket(json, ']');
}

void json_name(struct json_writer *json, const char *name)
{
    separate(json);
    buffer_append_byte(json->out, '"');
    buffer_append_text(json->out, name);
    buffer_append(json->out, SLICE("\":"));
    json->comma = false; /* the value follows without one */
}

size_t utf8_sequence_len(struct slice text)
{
    if (text.len == 0)
        return 0;
    const unsigned char *b = (const unsigned char *)text.data;
    size_t len = b[0] < 0x80                   ? 1
                 : b[0] >= 0xc2 && b[0] < 0xe0 ? 2
                 : (b[0] & 0xf0) == 0xe0       ? 3
                 : b[0] >= 0xf0 && b[0] < 0xf5 ? 4
                                               : 0;
    if (len == 0 || len > text.len)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((b[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (b[0] == 0xe0 && b[1] < 0xa0) || (b[0] == 0xf0 && b[1] < 0x90);
    bool surrogate = b[0] == 0xed && b[1] >= 0xa0;
    bool beyond = b[0] == 0xf4 && b[1] >= 0x90;
    return overlong || surrogate || beyond ? 0 : len;
}

static uint64_t eight_bytes(const char *at)
{
    uint64_t bytes;
    memcpy(&bytes, at, sizeof bytes);
    return bytes;
}

bool utf8_is_valid(struct slice text)
{
    for (size_t i = 0, len; i < text.len; i += len) {
        if (i + sizeof each <= text.len && !(eight_bytes(text.data + i) & top_bits))
            len = sizeof each; /* most text is ASCII */
        else if ((len = utf8_sequence_len(slice_from_offset(text, i))) == 0)
            return false;
    }
    return true;
}

struct slice utf8_cut(struct slice text, size_t len_max)
{
    if (text.len <= len_max)
        return text;
    size_t len = len_max;
    for (int back = 0; back < 3 && len > 0 && ((unsigned char)text.data[len] & 0xc0) == 0x80; back++)
        len--;
    bool broken = ((unsigned char)text.data[len] & 0xc0) == 0x80; /* no text: cut it anywhere */
    return (struct slice){ text.data, broken ? len_max : len };
}

uint32_t utf8_unseen(struct slice text)
{
    static const struct { uint32_t first, last; } unseen[] = {
        { 0x80, 0x9f },     { 0x61c, 0x61c },   { 0x180e, 0x180e }, { 0x200b, 0x200c }, { 0x200e, 0x200f },
        { 0x2028, 0x202e }, { 0x2060, 0x206f }, { 0xfeff, 0xfeff }, { 0xfff9, 0xfffb }, { 0xe0000, 0xe007f },
    };
    size_t len = utf8_sequence_len(text);
    if (len < 2)
        return 0;
    uint32_t code = (unsigned char)text.data[0] & (0x7fU >> len);
    for (size_t i = 1; i < len; i++)
        code = code << 6 | ((unsigned char)text.data[i] & 0x3f);
    for (size_t i = 0; i < sizeof unseen / sizeof *unseen; i++)
        if (code >= unseen[i].first && code <= unseen[i].last)
            return code;
    return 0;
}

/* As JSON has it: two units where it is beyond the first plane. */
static void append_unseen(struct buffer *out, uint32_t code)
{
    if (code > 0xffff)
        buffer_printf(out, "\\u%04x\\u%04x", (unsigned)(0xd7c0 + (code >> 10)), (unsigned)(0xdc00 | (code & 0x3ff)));
    else
        buffer_printf(out, "\\u%04x", (unsigned)code);
}

static void append_escaped(struct buffer *out, char c)
{
    static const char escapes[] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r', ['"'] = '"', ['\\'] = '\\',
    };
    unsigned char code = (unsigned char)c;
    if (code < sizeof escapes && escapes[code]) {
        char pair[2] = { '\\', escapes[code] };
        buffer_append(out, (struct slice){ pair, 2 });
    } else {
        buffer_printf(out, "\\u%04x", code);
    }
}

static bool is_plain(char c)
{
    unsigned char code = (unsigned char)c;
    return code >= 0x20 && code < 0x7f && c != '"' && c != '\\';
}

/*
 * Looks at eight at once, since texts are mostly plain: a byte's upper bit is set in `odd` when it is above 0x7e, below
 * 0x20, a quote or a backslash. A borrow or a carry can only reach the byte after such a one.
 */
size_t json_plain_len(struct slice text)
{
    size_t i = 0;
    for (; i + sizeof each <= text.len; i += sizeof each) {
        uint64_t bytes = eight_bytes(text.data + i);
        uint64_t odd = bytes | (bytes + each) | (bytes - each * 0x20) | ((bytes ^ each * '"') - each) |
                       ((bytes ^ each * '\\') - each);
        if (odd & top_bits)
            break;
    }
    return i;
}

void json_put_string(struct json_writer *json, struct slice value)
{
    separate(json);
    buffer_append_byte(json->out, '"');
    for (size_t i = 0; i < value.len;) {
        size_t run = i + json_plain_len(slice_from_offset(value, i));
        while (run < value.len && is_plain(value.data[run]))
            run++;
        if (run > i)
            buffer_append(json->out, (struct slice){ value.data + i, run - i });
        i = run;
        if (i == value.len)
            break;
        size_t len = utf8_sequence_len(slice_from_offset(value, i));
        uint32_t unseen = utf8_unseen(slice_from_offset(value, i));
        if (unseen)
            append_unseen(json->out, unseen);
        else if (len > 1)
            buffer_append(json->out, (struct slice){ value.data + i, len });
        else if (len == 1)
            append_escaped(json->out, value.data[i]);
        else
            buffer_append(json->out, SLICE("\xef\xbf\xbd"));
        i += len > 0 ? len : 1;
    }
    buffer_append_byte(json->out, '"');
}

void json_name_any(struct json_writer *json, struct slice name)
{
    json_put_string(json, name);
    buffer_append_byte(json->out, ':');
    json->comma = false; /* the value follows without one */
}

void json_put_base64(struct json_writer *json, struct slice bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *in = (const unsigned char *)bytes.data;
    separate(json);
    buffer_append_byte(json->out, '"');
    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t len = bytes.len - i < 3 ? bytes.len - i : 3;
        unsigned bits = (unsigned)in[i] << 16 | (len > 1 ? (unsigned)in[i + 1] << 8 : 0) | (len > 2 ? in[i + 2] : 0);
        char four[4] = { digits[bits >> 18], digits[bits >> 12 & 63], len > 1 ? digits[bits >> 6 & 63] : '=',
                         len > 2 ? digits[bits & 63] : '=' };
        buffer_append(json->out, (struct slice){ four, sizeof four });
    }
    buffer_append_byte(json->out, '"');
}

void json_put_int(struct json_writer *json, int64_t value)
{
    separate(json);
    buffer_append_int64(json->out, value);
}

void json_put_real(struct json_writer *json, double value)
{
    assert(value - value == 0); /* JSON has no infinity and no NaN */
    separate(json);
    buffer_printf(json->out, "%.15g", value);
}

void json_put_null(struct json_writer *json)
{
    separate(json);
    buffer_append(json->out, SLICE("null"));
}

static void json_put_instant(struct json_writer *json, instant value)
{
    char text[INSTANT_TEXT_BYTES];
    instant_format(value, text);
    separate(json);
    buffer_append_byte(json->out, '"');
    buffer_append(json->out, (struct slice){ text, INSTANT_TEXT_BYTES - 1 });
    buffer_append_byte(json->out, '"');
}

void json_put_raw(struct json_writer *json, struct slice value)
{
    separate(json);
    buffer_append(json->out, value);
}

void json_member_bytes(struct json_writer *json, const char *name, const char *name_base64, struct slice bytes)
{
    if (utf8_is_valid(bytes)) {
        json_member_string(json, name, bytes);
        return;
    }
    json_name(json, name_base64);
    json_put_base64(json, bytes);
}

void json_member_object(struct json_writer *json, const char *name)
{
    json_name(json, name);
    json_object_begin(json);
}

void json_member_array(struct json_writer *json, const char *name)
{
    json_name(json, name);
    json_array_begin(json);
}

void json_member_string(struct json_writer *json, const char *name, struct slice value)
{
    json_name(json, name);
    json_put_string(json, value);
}

void json_member_text(struct json_writer *json, const char *name, const char *value)
{
    json_member_string(json, name, slice_from(value));
}

void json_member_given(struct json_writer *json, const char *name, struct slice value)
{
    if (value.len > 0)
        json_member_string(json, name, value);
}

void json_member_or_null(struct json_writer *json, const char *name, struct slice value)
{
    json_name(json, name);
    if (value.len > 0)
        json_put_string(json, value);
    else
        json_put_null(json);
}

void json_member_int(struct json_writer *json, const char *name, int64_t value)
{
    json_name(json, name);
    json_put_int(json, value);
}

void json_member_real(struct json_writer *json, const char *name, double value)
{
    json_name(json, name);
    json_put_real(json, value);
}

void json_member_raw(struct json_writer *json, const char *name, struct slice value)
{
    if (value.len == 0)
        return;
    json_name(json, name);
    json_put_raw(json, value);
}

void json_member_bool(struct json_writer *json, const char *name, bool value)
{
    json_name(json, name);
    json_put_raw(json, value ? SLICE("true") : SLICE("false"));
}

void json_member_instant(struct json_writer *json, const char *name, instant value)
{
    if (value == INSTANT_NONE)
        return;
    json_name(json, name);
    json_put_instant(json, value);
}
