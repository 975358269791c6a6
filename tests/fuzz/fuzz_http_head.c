/*
 * Any bytes as requests: read at once and byte by byte they are the same. What is taken has one Host, one framing, and no
 * byte that another reader could take for the end of a line.
 */
#include "api/http/chunks.h"
#include "api/http/head.h"

#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t count_of(const struct http_head *head, struct slice name)
{
    size_t count = 0;
    for (size_t i = 0; i < head->header_count; i++)
        count += slice_equal_nocase(head->headers[i].name, name);
    return count;
}

static void check_head(struct slice bytes, const struct http_head *head)
{
    struct slice text = { bytes.data, head->bytes };
    assert(head->bytes <= bytes.len && head->bytes <= HTTP_HEAD_BYTES_MAX + 2);
    assert(slice_has_suffix(text, SLICE("\r\n\r\n")));
    for (size_t i = 0; i < text.len; i++) {
        assert(text.data[i] != '\0');
        assert((text.data[i] == '\n') == (i > 0 && text.data[i - 1] == '\r'));
    }
    assert(count_of(head, SLICE("Host")) == 1 || (head->old && head->host.len == 0));
    assert(count_of(head, SLICE("Content-Length")) + count_of(head, SLICE("Transfer-Encoding")) <= 1);
    assert(head->length >= 0 && (head->length == 0 || count_of(head, SLICE("Content-Length")) == 1));
    assert(head->chunked == (count_of(head, SLICE("Transfer-Encoding")) == 1));
    if (head->method != HTTP_POST && head->method != HTTP_PATCH && head->method != HTTP_PUT)
        assert(head->length == 0 && !head->chunked);
    assert(head->path.len > 0 && head->path.data[0] == '/');
}

static void check_chunks(struct slice text)
{
    struct http_chunks at_once = { 0 }, slowly = { 0 };
    size_t from = 0, to = 0, from_slowly = 0, to_slowly = 0;
    enum http_chunks_verdict verdict = HTTP_CHUNKS_MORE;
    char *bytes = malloc(text.len + 1), *again = malloc(text.len + 1);
    assert(bytes && again);
    memcpy(bytes, text.data, text.len);
    memcpy(again, text.data, text.len);
    enum http_chunks_verdict wanted = http_chunks_read(&at_once, bytes, text.len, &from, &to, 1000);
    for (size_t len = 1; len <= text.len && verdict == HTTP_CHUNKS_MORE; len++)
        verdict = http_chunks_read(&slowly, again, len, &from_slowly, &to_slowly, 1000);
    assert(verdict == wanted && to == to_slowly && from == from_slowly && to <= from && memcmp(bytes, again, to) == 0);
    free(bytes);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct http_head head, slow_head;
    const char *problem, *slow_problem;
    struct slice bytes = { (const char *)data, size };
    size_t searched = 0, slow_searched = 0;
    enum http_verdict slow = HTTP_HEAD_MORE, verdict = http_head_read(bytes, &searched, &head, &problem);
    for (size_t len = 1; len <= size && slow == HTTP_HEAD_MORE; len++)
        slow = http_head_read((struct slice){ bytes.data, len }, &slow_searched, &slow_head, &slow_problem);
    assert((verdict == HTTP_HEAD_GOOD) == (slow == HTTP_HEAD_GOOD));
    if (verdict == HTTP_HEAD_GOOD) {
        assert(head.bytes == slow_head.bytes && head.length == slow_head.length && head.chunked == slow_head.chunked);
        check_head(bytes, &head);
    }
    if (size < 4096)
        check_chunks(bytes);
    if (verdict == HTTP_HEAD_GOOD && head.chunked && size - head.bytes < 4096)
        check_chunks(slice_from_offset(bytes, head.bytes));
    return 0;
}
