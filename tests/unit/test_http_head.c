#include "support/check.h"

#include "api/http/chunks.h"
#include "api/http/head.h"

#include <stdlib.h>

#define FIRST "POST /v1/jobs?a=b HTTP/1.1\r\n"
#define HOST "Host: localhost\r\n"

static enum http_verdict read_text(const char *text, size_t len, struct http_head *head)
{
    const char *problem = NULL;
    size_t searched = 0;
    enum http_verdict verdict = http_head_read((struct slice){ text, len }, &searched, head, &problem);
    check((verdict == HTTP_HEAD_MORE || verdict == HTTP_HEAD_GOOD) == !problem || verdict == HTTP_HEAD_GOOD, "%s", text);
    return verdict;
}

static void a_head_is_read(void **state)
{
    static const char text[] = FIRST "Host: localhost:7878\r\nX-Empty:\r\nX-Blank: \t a b\t \r\ncontent-length: 12\r\n"
                                     "Expect: 100-Continue\r\n\r\nbody";
    struct http_head head;
    (void)state;
    assert_int_equal(read_text(text, sizeof text - 1, &head), HTTP_HEAD_GOOD);
    assert_int_equal(head.method, HTTP_POST);
    assert_true(slice_equal(head.path, SLICE("/v1/jobs")) && slice_equal(head.query, SLICE("a=b")));
    assert_true(slice_equal(head.host, SLICE("localhost:7878")));
    assert_true(head.keep_alive && head.expects_continue && !head.chunked && !head.old);
    assert_int_equal(head.length, 12);
    assert_int_equal(head.bytes, sizeof text - 1 - 4);
    assert_int_equal(head.header_count, 5);
    assert_true(slice_equal(http_head_find(&head, SLICE("x-blank")), SLICE("a b")));
    struct slice empty = http_head_find(&head, SLICE("X-EMPTY"));
    assert_true(empty.data && empty.len == 0);
    assert_null(http_head_find(&head, SLICE("X-None")).data);
}

/* However it is cut, it is the same, and not complete before its last byte. */
static void a_head_comes_in_any_pieces(void **state)
{
    static const char text[] = "\r\nGET / HTTP/1.1\r\nHost: localhost\r\nConnection: close, x\r\n\r\n";
    struct http_head head;
    const char *problem;
    size_t searched = 0;
    (void)state;
    for (size_t len = 0; len < sizeof text - 1; len++)
        check(http_head_read((struct slice){ text, len }, &searched, &head, &problem) == HTTP_HEAD_MORE, "%zu bytes", len);
    assert_int_equal(http_head_read((struct slice){ text, sizeof text - 1 }, &searched, &head, &problem), HTTP_HEAD_GOOD);
    assert_int_equal(head.bytes, sizeof text - 1);
    assert_false(head.keep_alive);
}

static const struct {
    const char *name, *text;
    size_t len; /* 0: up to its NUL */
    enum http_verdict verdict;
} rows[] = {
    { "chunked", FIRST HOST "Transfer-Encoding: Chunked\r\n\r\n", 0, HTTP_HEAD_GOOD },
    { "a length with zeros before", FIRST HOST "Content-Length: 0002\r\n\r\n", 0, HTTP_HEAD_GOOD },
    { "GET with a length of none", "GET / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", 0, HTTP_HEAD_GOOD },
    { "HTTP/1.0 without Host", "GET / HTTP/1.0\r\n\r\n", 0, HTTP_HEAD_GOOD },
    { "an absolute address", "GET http://localhost/x HTTP/1.1\r\n" HOST "\r\n", 0, HTTP_HEAD_GOOD },
    { "bytes over 127 in a value", "GET / HTTP/1.1\r\n" HOST "X: \xc3\xa9\r\n\r\n", 0, HTTP_HEAD_GOOD },
    { "an absolute address of another", "GET http://evil/x HTTP/1.1\r\n" HOST "\r\n", 0, HTTP_HEAD_BAD },
    { "HTTP/1.0 with chunks", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 0, HTTP_HEAD_BAD },
    { "no Host", "GET / HTTP/1.1\r\n\r\n", 0, HTTP_HEAD_BAD },
    { "two Hosts", "GET / HTTP/1.1\r\n" HOST HOST "\r\n", 0, HTTP_HEAD_BAD },
    { "both framings", FIRST HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 0, HTTP_HEAD_BAD },
    { "a length twice", FIRST HOST "Content-Length: 1\r\ncontent-length: 1\r\n\r\n", 0, HTTP_HEAD_BAD },
    { "a sign", FIRST HOST "Content-Length: +1\r\n\r\n", 0, HTTP_HEAD_BAD },
    { "a length of 16 digits", FIRST HOST "Content-Length: 1234567890123456\r\n\r\n", 0, HTTP_HEAD_BAD },
    { "an empty length", FIRST HOST "Content-Length:\r\n\r\n", 0, HTTP_HEAD_BAD },
    { "identity", FIRST HOST "Transfer-Encoding: identity\r\n\r\n", 0, HTTP_HEAD_BAD },
    { "an empty coding", FIRST HOST "Transfer-Encoding:\r\n\r\n", 0, HTTP_HEAD_BAD },
    { "vertical tab", FIRST HOST "Transfer-Encoding: \vchunked\r\n\r\n", 0, HTTP_HEAD_BAD },
    { "HEAD with a body", "HEAD / HTTP/1.1\r\n" HOST "Content-Length: 7\r\n\r\n", 0, HTTP_HEAD_BAD },
    { "GET with chunks", "GET / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n", 0, HTTP_HEAD_BAD },
    { "a bare LF", "GET / HTTP/1.1\n" HOST "\r\n", 0, HTTP_HEAD_BAD },
    { "a bare LF, at once", "GET / HTTP/1.1\n", 0, HTTP_HEAD_BAD },
    { "a bare CR", "GET / HTTP/1.1\r\nX: a\rb\r\n" HOST "\r\n", 0, HTTP_HEAD_BAD },
    { "NUL", "GET / HTTP/1.1\r\nX: a\0b\r\nHost: localhost\r\n\r\n", 46, HTTP_HEAD_BAD },
    { "a folded line", "GET / HTTP/1.1\r\n" HOST "X: a\r\n b\r\n\r\n", 0, HTTP_HEAD_BAD },
    { "a blank before the colon", "GET / HTTP/1.1\r\n" HOST "X : a\r\n\r\n", 0, HTTP_HEAD_BAD },
    { "no name", "GET / HTTP/1.1\r\n" HOST ": a\r\n\r\n", 0, HTTP_HEAD_BAD },
    { "two empty lines before", "\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n", 0, HTTP_HEAD_BAD },
    { "another version", "GET / HTTP/1.2\r\n" HOST "\r\n", 0, HTTP_HEAD_BAD },
    { "a version of one letter more", "GET / HTTP/1.1 \r\n" HOST "\r\n", 0, HTTP_HEAD_BAD },
    { "no version", "GET /\r\n" HOST "\r\n", 0, HTTP_HEAD_BAD },
    { "no path", "GET HTTP/1.1\r\n" HOST "\r\n", 0, HTTP_HEAD_BAD },
    { "a path in UTF-8", "GET /\xc3\xa9 HTTP/1.1\r\n" HOST "\r\n", 0, HTTP_HEAD_BAD },
    { "no method that we know", "BREW / HTTP/1.1\r\n" HOST "\r\n", 0, HTTP_HEAD_UNKNOWN_METHOD },
    { "a method in small letters", "get / HTTP/1.1\r\n" HOST "\r\n", 0, HTTP_HEAD_UNKNOWN_METHOD },
    { "another expectation", FIRST HOST "Expect: tea\r\n\r\n", 0, HTTP_HEAD_UNKNOWN_EXPECT },
};

static void there_is_one_way_to_write_it(void **state)
{
    struct http_head head;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        size_t len = rows[i].len ? rows[i].len : strlen(rows[i].text);
        enum http_verdict verdict = read_text(rows[i].text, len, &head);
        check(verdict == rows[i].verdict, "%s: %d", rows[i].name, (int)verdict);
    }
}

static void a_head_has_an_end(void **state)
{
    struct http_head head;
    const char *problem;
    size_t searched = 0;
    char *text = malloc(HTTP_HEAD_BYTES_MAX + 1);
    (void)state;
    assert_non_null(text);
    memset(text, 'x', HTTP_HEAD_BYTES_MAX + 1);
    struct slice nearly = { text, HTTP_HEAD_BYTES_MAX - 1 }, all = { text, HTTP_HEAD_BYTES_MAX };
    assert_int_equal(http_head_read(nearly, &searched, &head, &problem), HTTP_HEAD_MORE);
    assert_int_equal(http_head_read(all, &searched, &head, &problem), HTTP_HEAD_BAD);
    free(text);
}

static const struct {
    const char *host, *name;
    bool good, is_address;
} hosts[] = {
    { "localhost", "localhost", true, false },   { "localhost:7878", "localhost", true, false },
    { "127.0.0.1:80", "127.0.0.1", true, true }, { "[::1]:80", "::1", true, true },
    { "[fe80::1]", "fe80::1", true, true },      { "a-b_c.example", "a-b_c.example", true, false },
    { "[evil.example]", "", false, false },      { "[::1", "", false, false },
    { "::1", "", false, false },                 { "", "", false, false },
    { ":80", "", false, false },                 { "localhost:", "", false, false },
    { "localhost:123456", "", false, false },    { "a@localhost", "", false, false },
    { "local/host", "", false, false },          { "[::1]80", "", false, false },
    { "1.2.3.4.5", "1.2.3.4.5", true, false },   { "0x7f.1", "0x7f.1", true, false },
};

static void a_host_is_a_name_or_an_address(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(hosts); i++) {
        struct slice name = SLICE("");
        bool is_address = false;
        bool good = http_host_split(slice_from(hosts[i].host), &name, &is_address);
        check(good == hosts[i].good, "%s", hosts[i].host);
        check(!good || (slice_equal(name, slice_from(hosts[i].name)) && is_address == hosts[i].is_address), "%s: %.*s",
              hosts[i].host, SLICE_ARG(name));
    }
}

/* --- chunks -------------------------------------------------------------------------------------------------- */

static const struct {
    const char *text, *body; /* NULL: it is wrong */
    size_t left;             /* behind it */
} chunk_rows[] = {
    { "0\r\n\r\n", "", 0 },
    { "2\r\n{}\r\n0\r\n\r\nGET", "{}", 3 },
    { "1\r\n{\r\nA\r\n0123456789\r\n00000000\r\n\r\n", "{0123456789", 0 },
    { "2;a\r\n{}\r\n0\r\n\r\n", NULL, 0 },
    { "0x2\r\n{}\r\n0\r\n\r\n", NULL, 0 },
    { "2\n{}\r\n0\r\n\r\n", NULL, 0 },
    { "2\r\n{}0\r\n\r\n", NULL, 0 },
    { "2\r\n{}\n0\r\n\r\n", NULL, 0 },
    { "\r\n", NULL, 0 },
    { " 2\r\n", NULL, 0 },
    { "000000002\r\n{}", NULL, 0 },
    { "0\r\nX: y\r\n\r\n", NULL, 0 },
    { "0\r\n\n", NULL, 0 },
};

/* In pieces of every size the result is the same. */
static void chunks_are_joined(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(chunk_rows); i++)
        for (size_t step = 1; step <= strlen(chunk_rows[i].text); step++) {
            struct http_chunks chunks = { 0 };
            char *bytes = strdup(chunk_rows[i].text);
            size_t len = strlen(bytes), from = 0, to = 0;
            enum http_chunks_verdict verdict = HTTP_CHUNKS_MORE;
            for (size_t there = step; verdict == HTTP_CHUNKS_MORE && from < len; there += step)
                verdict = http_chunks_read(&chunks, bytes, there < len ? there : len, &from, &to, 100);
            if (chunk_rows[i].body) {
                check(verdict == HTTP_CHUNKS_DONE && len - from == chunk_rows[i].left, "%s: %d", chunk_rows[i].text, verdict);
                check(slice_equal((struct slice){ bytes, to }, slice_from(chunk_rows[i].body)), "%s", chunk_rows[i].text);
            } else {
                check(verdict == HTTP_CHUNKS_BAD, "%s by %zu: %d", chunk_rows[i].text, step, verdict);
            }
            free(bytes);
        }
}

static void chunks_have_a_limit(void **state)
{
    char bytes[] = "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    struct http_chunks chunks = { 0 };
    size_t from = 0, to = 0;
    (void)state;
    assert_int_equal(http_chunks_read(&chunks, bytes, sizeof bytes - 1, &from, &to, 4), HTTP_CHUNKS_TOO_LONG);
    assert_int_equal(to, 3);
    assert_int_equal(http_chunks_read(&chunks, bytes, sizeof bytes - 1, &from, &to, 5), HTTP_CHUNKS_DONE);
    assert_memory_equal(bytes, "abcde", 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_is_read),
        cmocka_unit_test(a_head_comes_in_any_pieces),
        cmocka_unit_test(there_is_one_way_to_write_it),
        cmocka_unit_test(a_head_has_an_end),
        cmocka_unit_test(a_host_is_a_name_or_an_address),
        cmocka_unit_test(chunks_are_joined),
        cmocka_unit_test(chunks_have_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
