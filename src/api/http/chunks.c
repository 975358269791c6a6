#include "api/http/chunks.h"

enum { SIZE_DIGITS_MAX = 8 };
enum { IN_SIZE, SIZE_LF, IN_DATA, DATA_CR, DATA_LF, LAST_CR, LAST_LF };

/* One byte that is not of the data. False: it must not be there. */
static bool take_byte(struct http_chunks *chunks, char byte)
{
    switch (chunks->state) {
    case IN_SIZE:
        if (byte == '\r' && chunks->digits > 0) {
            chunks->state = SIZE_LF;
            return true;
        }
        if (ascii_hex_value(byte) < 0 || chunks->digits == SIZE_DIGITS_MAX)
            return false;
        chunks->left = chunks->left * 16 + (uint64_t)ascii_hex_value(byte);
        chunks->digits++;
        return true;
    case SIZE_LF:
        chunks->state = chunks->left > 0 ? IN_DATA : LAST_CR;
        return byte == '\n';
    case DATA_CR:
        chunks->state = DATA_LF;
        return byte == '\r';
    case DATA_LF:
        chunks->state = IN_SIZE;
        chunks->digits = 0;
        return byte == '\n';
    case LAST_CR:
        chunks->state = LAST_LF;
        return byte == '\r';
    default:
        chunks->is_last = true;
        return byte == '\n';
    }
}

enum http_chunks_verdict http_chunks_read(struct http_chunks *chunks, char *bytes, size_t len, size_t *from, size_t *to,
                                          size_t to_max)
{
    while (*from < len) {
        if (chunks->state != IN_DATA) {
            if (!take_byte(chunks, bytes[(*from)++]))
                return HTTP_CHUNKS_BAD;
            if (chunks->is_last)
                return HTTP_CHUNKS_DONE;
            continue;
        }
        size_t there = len - *from < chunks->left ? len - *from : (size_t)chunks->left;
        if (chunks->left > to_max - *to)
            return HTTP_CHUNKS_TOO_LONG;
        memmove(bytes + *to, bytes + *from, there);
        *from += there;
        *to += there;
        chunks->left -= there;
        if (chunks->left == 0)
            chunks->state = DATA_CR;
    }
    return HTTP_CHUNKS_MORE;
}
