/*
 * head.h - the head of a request, read as RFC 9112 has it and in no other way.
 *
 * A proxy before us and we must agree on where each request ends, or what one client sends is taken for another's. So
 * whatever could be read in two ways is refused: there is one form of everything. Pure: bytes in, a verdict out.
 */
#ifndef API_HTTP_HEAD_H
#define API_HTTP_HEAD_H

#include "base/slice.h"

enum {
    HTTP_HEAD_BYTES_MAX = 16 * 1024,
    HTTP_HEADERS_MAX = 64,
};

enum http_method {
    HTTP_GET,
    HTTP_HEAD,
    HTTP_POST,
    HTTP_PATCH,
    HTTP_PUT,
    HTTP_DELETE,
    HTTP_OPTIONS,
    HTTP_METHOD_COUNT
};

struct http_header {
    struct slice name, value; /* the value without the blanks around it */
};

/* All slices borrow the bytes that were read. */
struct http_head {
    enum http_method method;
    struct slice path;  /* from / on, as it was sent */
    struct slice query; /* behind ?; .data NULL: there is none */
    struct slice host;  /* as sent; empty: HTTP/1.0 without one */
    bool old;           /* HTTP/1.0 */
    bool keep_alive;
    bool chunked;
    bool expects_continue;
    int64_t length; /* of the body, where it is not chunked; 0: there is none */
    struct http_header headers[HTTP_HEADERS_MAX];
    size_t header_count;
    size_t bytes; /* of the whole head, the empty line included */
};

enum http_verdict {
    HTTP_HEAD_MORE, /* it is not complete, and right so far */
    HTTP_HEAD_GOOD,
    HTTP_HEAD_BAD,             /* 400 */
    HTTP_HEAD_UNKNOWN_METHOD,  /* 501 */
    HTTP_HEAD_UNKNOWN_EXPECT,  /* 417 */
};

/*
 * `searched` is how many of the bytes were looked at for the end before, so that a head that comes byte by byte is not
 * searched anew each time; it is updated. With any verdict but MORE and GOOD, *ret_problem says what is wrong.
 */
enum http_verdict http_head_read(struct slice bytes, size_t *searched, struct http_head *ret_head, const char **ret_problem);

/* The value of a header; .data NULL: it is not there. */
struct slice http_head_find(const struct http_head *head, struct slice name);

const char *http_method_name(enum http_method method);

/*
 * Host, as a name or an address without the port. `ret_is_address`: 127.0.0.1 or [::1] as opposed to a name. False: it is
 * neither.
 */
bool http_host_split(struct slice host, struct slice *ret_name, bool *ret_is_address);

#endif
