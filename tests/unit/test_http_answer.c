/* Where a code is in an answer, and what is not one. */
#include "transport/http/answer.h"

#include "support/check.h"

#define X500 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static const struct {
    const char *name, *places[3], *headers, *body, *code;
} codes[] = {
    { "no place", { NULL }, "", "1", "http:500" },
    { "status first", { "http.status", "json:/a" }, "", "{\"a\":\"1\"}", "http:500" },
    { "XML", { "xpath://code" }, "", "<a><code> 7 </code></a>", "app:7" },
    { "XML, the first of several", { "xpath://code" }, "", "<a><code>1</code><code>2</code></a>", "app:1" },
    { "XML, an attribute", { "xpath:/a/@code" }, "", "<a code='E1'/>", "app:E1" },
    { "XML, a string function", { "xpath:string(//code)" }, "", "<a><code>9</code></a>", "app:9" },
    { "XML, a number", { "xpath:count(//b)" }, "", "<a><b/><b/></a>", "app:2" },
    { "XML, CDATA", { "xpath://code" }, "", "<a><code><![CDATA[5]]></code></a>", "app:5" },
    { "XML, not there", { "xpath://code" }, "", "<a/>", "http:500" },
    { "XML, empty, then another place", { "xpath://code", "xpath://b" }, "", "<a><code/><b>8</b></a>", "app:8" },
    { "XML, text and no code", { "xpath://code" }, "", "<a><code>it went wrong</code></a>", "http:500" },
    { "XML, too long", { "xpath://code" }, "", "<a><code>" X500 "</code></a>", "http:500" },
    { "XML, broken", { "xpath://code" }, "", "<a><code>7</code>", "http:500" },
    { "XML, entities of its own", { "xpath://code" }, "", "<!DOCTYPE a [<!ENTITY e '7'>]><a><code>&e;</code></a>", "http:500" },
    { "XML, a file", { "xpath://code" }, "", "<!DOCTYPE a [<!ENTITY e SYSTEM 'file:///etc/hostname'>]><a><code>&e;</code></a>", "http:500" },
    { "XML, a wrong expression", { "xpath://[", "xpath://b" }, "", "<a><b>1</b></a>", "app:1" },
    { "XML, an unknown prefix", { "xpath://x:b" }, "", "<a><b>1</b></a>", "http:500" },
    { "JSON", { "json:/error/code" }, "", "{\"error\":{\"code\":\"E1\"}}", "app:E1" },
    { "JSON, a number", { "json:/code" }, "", "{\"code\":-17}", "app:-17" },
    { "JSON, an element", { "json:/errors/1/code" }, "", "{\"errors\":[{},{\"code\":3}]}", "app:3" },
    { "JSON, beyond the array", { "json:/errors/1" }, "", "{\"errors\":[\"1\"]}", "http:500" },
    { "JSON, before the array", { "json:/errors/-1" }, "", "{\"errors\":[\"1\"]}", "http:500" },
    { "JSON, escapes", { "json:/a~1b/~0" }, "", "{\"a/b\":{\"~\":\"1\"}}", "app:1" },
    { "JSON, an empty name", { "json://a" }, "", "{\"\":{\"a\":\"1\"}}", "app:1" },
    { "JSON, an object", { "json:/a" }, "", "{\"a\":{}}", "http:500" },
    { "JSON, null", { "json:/a" }, "", "{\"a\":null}", "http:500" },
    { "JSON, not an object", { "json:/a" }, "", "[1]", "http:500" },
    { "JSON, cut off", { "json:/a" }, "", "{\"a\":\"1\"", "http:500" },
    { "JSON, none at all", { "json:/a" }, "", "", "http:500" },
    { "JSON, a control character", { "json:/a" }, "", "{\"a\":\"1\\u00012\"}", "http:500" },
    { "JSON, a NUL", { "json:/a" }, "", "{\"a\":\"1\\u0000\"}", "http:500" },
    { "a header, whatever its case", { "header:X-Code" }, "HTTP/1.1 500 x\r\nA: b\r\nx-code: E9 \r\n", "", "app:E9" },
    { "the first header", { "header:a" }, "a: 1\r\na: 2\r\n", "", "app:1" },
    { "no such header", { "header:X-Code" }, "X-Code-2: 1\r\nX: X-Code: 2\r\n", "", "http:500" },
    { "an empty header", { "header:X-Code" }, "X-Code:\r\n", "", "http:500" },
    { "a pattern with a group", { "pattern:/code=(\\w+)/" }, "", "x code=AB y", "app:AB" },
    { "a pattern without", { "pattern:/E\\d+/" }, "", "x E17 y", "app:E17" },
    { "a pattern that is not there", { "pattern:/E\\d+/" }, "", "x", "http:500" },
    { "first that is found", { "xpath://code", "json:/code", "pattern:/\\d+/" }, "", "{\"code\":\"J\"}", "app:J" },
    { "another transport's place", { "smtp.reply", "json:/a" }, "", "{\"a\":1}", "app:1" },
};

static void test_codes(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        const char *items[3] = { codes[i].places[0], codes[i].places[1], codes[i].places[2] };
        struct text_list places = { items, 0 };
        while (places.count < 3 && items[places.count])
            places.count++;
        struct http_response response = { .status = 500, .headers = slice_from(codes[i].headers), .body = slice_from(codes[i].body) };
        struct buffer code;
        buffer_init(&code, 256);
        http_code_find(&places, &response, SLICE(""), &code);
        check(buffer_status(&code) == STATUS_OK && strcmp(code.data, codes[i].code) == 0, "%s: %s", codes[i].name, code.data);
        buffer_release(&code);
    }
}

/* A pattern looks at the first 64 KB; whoever comes after it in the list may look further. */
static void test_a_pattern_in_vain(void **state)
{
    static const struct { const char *name, *place, *head, *tail, *code; } rows[] = {
        { "JSON", "json:/code", "{\"filler\":\"", "\",\"code\":\"J\"}", "app:J" },
        { "XML", "xpath://code", "<a><filler>", "</filler><code>X</code></a>", "app:X" },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *items[] = { "pattern:/E\\d+/", rows[i].place };
        struct text_list places = { items, 2 };
        struct http_reading reading = { .xml = NULL };
        struct buffer body, code;
        buffer_init(&body, 1 << 20);
        buffer_init(&code, 256);
        buffer_append_text(&body, rows[i].head);
        while (body.len < 100 * 1000)
            buffer_append_text(&body, "filler ");
        buffer_append_text(&body, rows[i].tail);
        struct http_response response = { .status = 200, .headers = SLICE(""), .body = buffer_slice(&body), .reading = &reading };
        http_code_find(&places, &response, SLICE(""), &code);
        check(strcmp(code.data, rows[i].code) == 0, "%s: %s", rows[i].name, code.data);
        check(reading.refused, "%s: the pattern was sought to the end", rows[i].name);
        http_reading_release(&reading);
        buffer_release(&body);
        buffer_release(&code);
    }
}

/* A few lines that unfold to a billion: found out at once, and no code. */
static void test_entities(void **state)
{
    (void)state;
    struct buffer body, code;
    const char *items[] = { "xpath://code", "xpath:string(/)" };
    struct text_list places = { items, 2 };
    buffer_init(&body, 1 << 16);
    buffer_init(&code, 256);
    buffer_append_text(&body, "<?xml version=\"1.0\"?><!DOCTYPE a [<!ENTITY e0 \"1\">");
    for (int i = 1; i < 10; i++) {
        buffer_printf(&body, "<!ENTITY e%d \"", i);
        for (int k = 0; k < 10; k++)
            buffer_printf(&body, "&e%d;", i - 1);
        buffer_append_text(&body, "\">");
    }
    buffer_append_text(&body, "]><a><code>&e9;</code></a>");
    struct http_response response = { .status = 200, .headers = SLICE(""), .body = buffer_slice(&body) };
    http_code_find(&places, &response, SLICE("x"), &code);
    assert_string_equal(code.data, "http:200");
    buffer_release(&body);
    buffer_release(&code);
}

static void test_rules(void **state)
{
    (void)state;
    static const struct {
        const char *rules[2], *code;
        bool is;
    } cases[] = {
        { { "2xx" }, "http:204", true },        { { "2XX" }, "http:204", true },          { { "2xx" }, "http:304", false },
        { { "2xx" }, "app:210", false },        { { "http:2xx" }, "app:210", false },     { { "app:2xx" }, "app:210", true },
        { { "404" }, "http:404", true },        { { "404", "410" }, "http:410", true },   { { "0260" }, "sifen:0260", true },
        { { "sifen:0260" }, "sifen:0260", true }, { { "sifen:0260" }, "app:0260", false }, { { NULL }, "http:200", false },
        { { "tiss:protocoloRecebimento" }, "tiss:protocoloRecebimento", true },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *items[2] = { cases[i].rules[0], cases[i].rules[1] };
        struct text_list rules = { items, (size_t)(items[0] != NULL) + (size_t)(items[1] != NULL) };
        check(http_code_is(&rules, slice_from(cases[i].code)) == cases[i].is, "%s of row %zu", cases[i].code, i);
    }
}

static void test_reference_limits(void **state)
{
    (void)state;
    char longest[REFERENCE_BYTES_MAX + 32];
    const char *items[] = { "xpath://a" };
    struct text_list places = { items, 1 };
    for (size_t len = REFERENCE_BYTES_MAX - 1; len <= REFERENCE_BYTES_MAX + 1; len++) {
        struct buffer reference;
        memset(longest, '7', sizeof longest);
        memcpy(longest, "<a>", 3);
        memcpy(longest + 3 + len, "</a>", 4);
        struct http_response response = { .status = 200, .headers = SLICE(""), .body = { longest, len + 7 } };
        buffer_init(&reference, REFERENCE_BYTES_MAX);
        http_reference_find(&places, &response, &reference);
        check(buffer_status(&reference) == STATUS_OK && reference.len == (len <= REFERENCE_BYTES_MAX ? len : 0), "%zu: %zu", len, reference.len);
        buffer_release(&reference);
    }
}

static const struct {
    const char *name, *place, *said; /* NULL: it is good */
} places[] = {
    { "the status", "http.status", NULL },
    { "JSON", "json:/a", NULL },
    { "a header", "header:X-Code", NULL },
    { "an element", "xpath://code", NULL },
    { "by its local name", "xpath://*[local-name()='Fault']/@code", NULL },
    { "a function", "xpath:string(//code)", NULL },
    { "a number of nothing", "xpath:number(//code) div 0", NULL },
    { "no expression", "xpath://[", "no XPath" },
    { "half an expression", "xpath://a[1", "no XPath" },
    { "an unknown prefix", "xpath://soap:Fault", "local-name()" },
    { "an unknown prefix further down", "xpath://a/b/soap:Fault", "local-name()" },
    { "an unknown function", "xpath:code(//a)", "no XPath" },
    { "an unknown variable", "xpath://a[$b]|$c", "no XPath" },
    { "too long", "xpath:/" X500 X500 X500 X500 X500 X500 X500 X500 X500 X500 X500, "longer than 1023 bytes" },
};

/* What can find nothing in any answer would let a failure inside a 200 pass for success. */
static void test_places(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        struct error err = { STATUS_OK, "" };
        enum status status = http_place_check(slice_from(places[i].place), &err);
        check((status == STATUS_OK) == !places[i].said, "%s: %s", places[i].name, err.text);
        check(!places[i].said || strstr(err.text, places[i].said), "%s: %s", places[i].name, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codes),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_entities),
        cmocka_unit_test(test_a_pattern_in_vain), cmocka_unit_test(test_rules), cmocka_unit_test(test_reference_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
