/*
 * Any bytes as an answer: its headers up to an empty line, then its body. The code is one short word with a namespace,
 * the same the second time; a wish to wait is within bounds.
 */
#include "transport/http/answer.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *items[] = {
    "xpath://*[local-name()='dCodRes']", "xpath:string(//*[@code][1]/@code)", "json:/error/code", "json:/0/a~1b", "header:X-Code",
    "pattern:/code=(\\w+)/",
};

static void check_word(struct slice word, size_t bytes_max)
{
    assert(word.len <= bytes_max);
    for (size_t i = 0; i < word.len; i++)
        assert((unsigned char)word.data[i] > ' ' && word.data[i] != 0x7f);
}

static void check_code(const struct text_list *places, const struct http_response *response)
{
    struct buffer first, second;
    buffer_init(&first, CODE_BYTES_MAX);
    buffer_init(&second, CODE_BYTES_MAX);
    http_code_find(places, response, SLICE("sifen"), &first);
    http_code_find(places, response, SLICE("sifen"), &second);
    assert(buffer_status(&first) == STATUS_OK && slice_equal(buffer_slice(&first), buffer_slice(&second)));
    struct slice code = buffer_slice(&first);
    assert(slice_equal(code, SLICE("http:200")) || slice_has_prefix(code, SLICE("sifen:")));
    check_word(code, CODE_BYTES_MAX);
    buffer_release(&first);
    buffer_release(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice all = { (const char *)data, size };
    size_t end = slice_search(all, SLICE("\n\n"));
    struct http_response response = { .status = 200, .headers = { all.data, end }, .body = slice_from_offset(all, end < all.len ? end + 2 : end) };
    struct buffer reference;
    for (size_t i = 0; i < sizeof items / sizeof *items; i++) {
        struct text_list one = { &items[i], 1 };
        check_code(&one, &response);
    }
    struct text_list places = { items, sizeof items / sizeof *items };
    check_code(&places, &response);

    buffer_init(&reference, REFERENCE_BYTES_MAX);
    http_reference_find(&places, &response, &reference);
    assert(buffer_status(&reference) == STATUS_OK);
    check_word(buffer_slice(&reference), REFERENCE_BYTES_MAX);
    buffer_release(&reference);

    struct slice wish = http_header(response.headers, SLICE("Retry-After"));
    assert(slice_equal(wish, slice_trim(wish)));
    int64_t wait_ms = http_retry_after_ms(wish, 1736678400000);
    assert(wait_ms >= -1 && wait_ms <= INSTANT_MAX);
    wait_ms = http_retry_after_ms(response.body, 1736678400000);
    assert(wait_ms >= -1 && wait_ms <= INSTANT_MAX);
    return 0;
}
