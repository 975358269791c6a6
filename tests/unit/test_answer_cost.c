/* What an answer can cost whoever searches it: a megabyte of every unkind form, in processor time. */
#include "transport/http/answer.h"

#include "support/check.h"

#include <stdlib.h>
#include <time.h>

enum {
    ANSWER_BYTES = 1000 * 1000,
    COST_MS_MAX = 10000, /* most take milliseconds, a few some dozens; sanitizers many times that; without limits it was minutes */
};

static double spent_ms(void)
{
    struct timespec spent;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
    return (double)spent.tv_sec * 1e3 + (double)spent.tv_nsec / 1e6;
}

/* `head`, then `piece` for as long as it fits, with the number of the piece for each %, then `tail`. */
static void fill(struct buffer *out, const char *head, const char *piece, const char *tail)
{
    buffer_init(out, 2 * ANSWER_BYTES);
    buffer_append_text(out, head);
    for (int64_t i = 0; out->len + strlen(tail) + 64 < ANSWER_BYTES; i++)
        for (const char *at = piece; *at; at++)
            if (*at == '%')
                buffer_append_int64(out, i);
            else
                buffer_append_byte(out, *at);
    buffer_append_text(out, tail);
    assert_int_equal(buffer_status(out), STATUS_OK);
}

#define CODE "xpath://*[local-name()='dCodRes']"

static const struct answer_form {
    const char *name, *head, *piece, *tail, *place;
    const char *refused; /* NULL: it is searched */
} forms[] = {
    { "attributes", "<r ", "a%='' ", "/>", CODE, "256 attributes" },
    { "attributes with line feeds", "<r\n", "a%\n=\n''\n", "/>", CODE, "256 attributes" },
    { "attributes inside a section that breaks off", "<r><![CDATA[\x01<r ", "a%='' ", "/>]]></r>", CODE, NULL },
    { "attributes inside an instruction that is none", "<r><?; <r ", "a%='' ", "/>?></r>", CODE, NULL },
    { "attributes inside a broken character", "<r><![CDATA[\xef\xbf\xbf<r ", "a%='' ", "/>]]></r>", CODE, NULL },
    { "attributes in UTF-7", "<?xml version='1.0' encoding='UTF-7'?>+ADw-r ", "a%='' ", "/>", CODE, "encoding" },
    { "attributes in ISO-2022-JP", "<?xml version='1.0' encoding='ISO-2022-JP'?><r ", "a%='' ", "/>", CODE, "encoding" },
    { "the same attribute", "<r ", "a='' ", "/>", CODE, "256 attributes" },
    { "attributes in a tag without an end", "<r ", "a%='' ", "", CODE, "256 attributes" },
    { "many with 200 attributes", "<r>", "<e a='' b='' c='' d='' e='' f='' g='' h='' i='' j='' k='' l='' m='' n='' o=''/>", "</r>", CODE, "50000" },
    { "namespaces", "<r ", "xmlns:n%='u%' ", "/>", CODE, "128 namespaces" },
    { "namespaces of nested elements", "", "<a xmlns:n%='u%'>", "", CODE, "128 namespaces" },
    { "nesting", "", "<a>", "", CODE, "200 deep" },
    { "nesting with text", "", "<abcdefghijklmnopqrstuvwxyz>x", "", CODE, "200 deep" },
    { "elements", "<r>", "<a/>", "</r>", CODE, "50000" },
    { "fewer elements", "<r>", "<dCodRes>a%</dCodRes> ", "</r>", "xpath://dCodRes", NULL },
    { "elements, sought from each other", "<r>", "<dCodRes>a%</dCodRes> ", "</r>", "xpath://*[following::dCodRes]/preceding::*", "steps" },
    { "fewer elements, united", "<r>", "<dCodRes>a%</dCodRes> ", "</r>", "xpath://dCodRes|//*", "5000 elements" },
    { "fewer elements, backwards", "<r>", "<a b='%'></a> this one has much more text", "</r>", "xpath://a[last()]/preceding-sibling::a/@b", NULL },
    { "texts, backwards", "<r>", "<a b='%'></a> this one has much more text", "</r>", "xpath://a[last()]/preceding-sibling::text()", NULL },
    { "comments, backwards", "<r>", "<!-- comment number % of these -->", "<a/></r>", "xpath://a/preceding-sibling::comment()", "1000 comments" },
    { "texts between comments, backwards", "<r>", "<!-- comment -->% text text ", "<a/></r>", "xpath://a/preceding-sibling::text()", "1000 comments" },
    { "everything, backwards", "<r>", "% text <e f='g'>x</e> text and text and text and text and text, <b/>", "<a/></r>", "xpath://a/preceding::node()", NULL },
    { "everything, united", "<r>", "% text <e f='g'>x</e> text and text and text and text <b/>", "<a/></r>", "xpath://e | //text() | //@f", "5000 elements" },
    { "instructions, backwards", "<r>", "<?p comment?>% text text", "<a/></r>", "xpath://processing-instruction()|//text()", "1000 comments" },
    { "all with all", "<r>", "<e f='g%'>x%</e> text and more text", "</r>", "xpath://e/@f = //e", NULL },
    { "fewer elements, by position", "<r>", "<a b='%'></a> this one has much more text", "</r>", "xpath://a[position()=last()]/@b", NULL },
    { "sections", "<r><dCodRes>", "<![CDATA[ab]]>", "</dCodRes></r>", CODE, "50000" },
    { "longer sections", "<r><dCodRes>", "<![CDATA[abcdefghijklmn]]>", "</dCodRes></r>", CODE, NULL },
    { "characters by number", "<r><dCodRes>", "&#65;", "</dCodRes></r>", CODE, NULL },
    { "characters by number in an attribute", "<r a='", "&#65;", "'/>", "xpath:/r/@a", NULL },
    { "comments", "<r>", "a<!---->", "</r>", CODE, "1000 comments" },
    { "entities", "<!DOCTYPE a [", "<!ENTITY e% '&e0;&e0;'>", "]><a>&e0;</a>", CODE, NULL },
    { "a name", "<", "abcdefgh", "/>", CODE, NULL },
    { "signs", "", "<", "", CODE, NULL },
    { "ampersands", "<r>", "&", "</r>", CODE, NULL },
    { "JSON, nesting", "", "[", "", "json:/a", NULL },
    { "JSON, nested objects", "", "{\"a\":", "", "json:/a/a/a", NULL },
    { "JSON, names", "{", "\"a%\":1,", "\"code\":\"E1\"}", "json:/code", NULL },
    { "JSON, the same name", "{", "\"a\":1,", "\"code\":\"E1\"}", "json:/code", NULL },
    { "JSON, a number", "{\"a\":", "9", "}", "json:/a", NULL },
    { "JSON, a fraction", "{\"a\":0.", "9", "}", "json:/a", NULL },
    { "JSON, an exponent", "{\"a\":1e-", "9", "}", "json:/a", NULL },
    { "JSON, small values", "[", "0,", "0]", "json:/0", NULL },
    { "JSON, escapes", "{\"a\":\"", "\\u0041", "\"}", "json:/a", NULL },
    { "a pattern that tries everything", "", "a", "!", "pattern:/(a+)+b/", NULL },
    { "a pattern from each place", "", "x=", "!", "pattern:/[xw].*[xw].*[xw].*[yz](\\d+)/", "steps" },
    { "a pattern that steps back from each place", "", "x1", "!", "pattern:/(\\w*\\d)*[yz]/", "steps" },
};

static void a_megabyte_of_each_is_bounded(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        const char *items[] = { forms[i].place };
        struct text_list places = { items, 1 };
        struct http_reading reading = { .xml = NULL };
        struct buffer body, code;
        fill(&body, forms[i].head, forms[i].piece, forms[i].tail);
        buffer_init(&code, 256);
        struct http_response response = { .status = 200, .headers = SLICE(""), .body = buffer_slice(&body), .reading = &reading };
        double before = spent_ms();
        http_code_find(&places, &response, SLICE("x"), &code);
        double took = spent_ms() - before;
        if (getenv("VERBOSE"))
            print_message("%8.1f ms %s: %s %s\n", took, forms[i].name, code.data, reading.refused ? reading.refused : "");
        check(took < COST_MS_MAX, "%s: %.0f ms", forms[i].name, took);
        check(!forms[i].refused == !reading.refused, "%s: %s", forms[i].name, reading.refused ? reading.refused : "was searched");
        check(!forms[i].refused || strstr(reading.refused, forms[i].refused), "%s: %s", forms[i].name, reading.refused);
        http_reading_release(&reading);
        buffer_release(&body);
        buffer_release(&code);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_megabyte_of_each_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
