/*
 * chunks.h - a body in chunks, read as strictly as a head: sizes in hexadecimal digits alone, lines that end in
 * CR LF, no extensions, no trailers. Nothing of ours uses those, and readers of HTTP differ about them. Pure.
 */
#ifndef API_HTTP_CHUNKS_H
#define API_HTTP_CHUNKS_H

#include "base/slice.h"

/* It begins as all zeros. */
struct http_chunks {
    unsigned state;
    unsigned digits;
    uint64_t left; /* of the chunk */
    bool is_last;
};

enum http_chunks_verdict { HTTP_CHUNKS_MORE, HTTP_CHUNKS_DONE, HTTP_CHUNKS_BAD, HTTP_CHUNKS_TOO_LONG };

/*
 * Reads on from bytes[*from], of `len`, and moves what the chunks contain to bytes[*to], which is never behind *from.
 * Both are advanced; `to_max` is how far *to may get.
 */
enum http_chunks_verdict http_chunks_read(struct http_chunks *chunks, char *bytes, size_t len, size_t *from, size_t *to,
                                          size_t to_max);

#endif
