/*
 * Error texts without what identifies a person.
 */
#include "core/errors/redact.h"

#include "base/json.h"
#include "support/check.h"

#include <string.h>

static void redact_to(struct buffer *out, struct slice text, size_t len_max)
{
    buffer_init(out, 64 * 1024);
    redact(out, text, len_max);
    check(buffer_status(out) == STATUS_OK, "the buffer failed");
}

static void each_text_is_masked(void **state)
{
    static const struct { const char *text, *masked; } cases[] = {
        { "", "" },
        { "TIMEOUT - after 30s", "TIMEOUT - after 30s" },
        { "HTTP 503: busy", "HTTP 503: busy" },
        { "glosa 1308, lote 42", "glosa 1308, lote 42" },
        { "12345", "12345" },
        { "123456", "<number>" },
        { "CPF 529.982.247-25 not found", "CPF <number> not found" },
        { "CNPJ 12.345.678/0001-95.", "CNPJ <number>." },
        { "CPF52998224725", "CPF<number>" },
        { "RUC 80012345-6", "RUC <number>" },
        { "card 4111-1111-1111-1111!", "card <number>!" },
        { "phone (11) 98765-4321", "phone (11) <number>" },
        { "1.2.3", "1.2.3" },
        { "12--3456789", "12--<number>" },
        { "1234./56789", "1234./56789" }, /* two separators end a number */
        { "-123456-", "-<number>-" },
        { "ends in 12.", "ends in 12." },
        { "user ana.silva@hospital.example.br refused", "user <address> refused" },
        { "<ana+x@b.example>: no such user", "<<address>>: no such user" },
        { "mailto:a_b%c-d@e.example", "mailto:<address>" },
        { "jos\xc3\xa9@hospital.example", "<address>" },
        { "m\xc3\xbcller@b\xc3\xbc" "cher.example ok", "<address> ok" },
        { "529982247@b.example", "<address>" },
        { "42/42x@b.example", "42/42<address>" },
        { "123456/7x@b.example", "<number><address>" },
        { "a@ b", "a@ b" },
        { "@b", "@b" },
        { "a@b@c", "<address>@c" },
        { "a", "a" },
        { "n\xc3\xa3o autorizado", "n\xc3\xa3o autorizado" },
        { "two: a@b.example, c@d.example", "two: <address>, <address>" },
        { "Failed to connect to 127.0.0.1 port 80 after 0 ms", "Failed to connect to 127.0.0.1 port 80 after 0 ms" },
        { "connect to 192.168.100.200:8443 failed", "connect to 192.168.100.200:8443 failed" },
        { "code 28 10.20.30.40, [2001:db8::1]:443", "code 28 10.20.30.40, [2001:db8::1]:443" },
        { "152.198.224.725", "<number>" }, /* a group of no address */
        { "x152.198.224.72 1.152.198.224.72", "x<number> <number>" },
        { "card 4111 1111 1111 1111 was declined", "card <number> was declined" },
        { "amex 3782 822463 10005", "amex <number>" },
        { "phone +595 981 123 456, +55 11 98765-4321", "phone +<number>, +<number>" },
        { "CPF 529 982 247 25.", "CPF <number>." },
        { "took 12 of 34 in 56 ms, 7 8 9 10 11 12 13 14", "took 12 of 34 in 56 ms, 7 8 9 <number>" },
        { "glosa 1308 42", "glosa 1308 42" },
        { "user=ana%40hospital.example&x=1", "user=<address>&x=1" },
        { "100%40 off, %40x", "100%40 off, %40x" },
        { "CNPJ 12.ABC.345/01DE-35 and 12ABC34501DE35", "CNPJ <number> and <number>" },
        { "12ABC34501DE36 ABCDEFGHIJKL12 12.abc.345/01de-35", "12ABC34501DE36 ABCDEFGHIJKL12 12.abc.345/01de-35" },
        { "got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVP-mB92K27_w back", "got <secret> back" },
        { "eyJ.x and heyJ0.a.b", "eyJ.x and heyJ0.a.b" },
        /* secrets: name=value */
        { "login?user=x&password=hunter2&next=/", "login?user=x&password=<secret>&next=/" },
        { "PASSWD=abc; pwd = x", "PASSWD=<secret>; pwd = <secret>" },
        { "db_password='it is long, \\'quoted\\''!", "db_password='<secret>'!" },
        { "api_key=k api-key=k ApiKey=k accessKey=k", "api_key=<secret> api-key=<secret> ApiKey=<secret> accessKey=<secret>" },
        { "client_secret=\xc3\xa9\xc3\xa9 x", "client_secret=<secret> x" },
        { "token=\x80\x80 abc", "token=<secret> abc" },
        { "sessionid=1&session=2", "sessionid=<secret>&session=<secret>" },
        { "cookie=a;b", "cookie=<secret>;b" },
        { "pass=x bypass=1", "pass=<secret> bypass=1" },
        { "token => 'abc'", "token => '<secret>'" },
        { "user@x-token=abc", "<address>=<secret>" },
        { "if token == null, token=null, token=, token", "if token == null, token=null, token=, token" },
        { "tokens=5 token_count=5 key=PRIMARY", "tokens=5 token_count=5 key=PRIMARY" },
        { "token=", "token=" },
        { "token     =x", "token     =x" },
        { "=x", "=x" },
        { "token-=x to-ken=x t", "token-=x to-ken=<secret> t" },
        { "password\t=\thunter2 pwd\n=\nx1", "password\t=\t<secret> pwd\n=\n<secret>" },
        { "clave=x1 Contrase\xc3\xb1" "a=x1 CONTRASE\xc3\x91" "A: x1", "clave=<secret> Contrase\xc3\xb1" "a=<secret> CONTRASE\xc3\x91" "A: <secret>" },
        { "pin=4711 PIN: 4711 otp=12345 spin=4711 cvv:123", "pin=<secret> PIN: <secret> otp=<secret> spin=4711 cvv:<secret>" },
        /* "name":"value" */
        { "{\"password\":[\"a\",\"b]\"],\"x\":1}", "{\"password\":<secret>,\"x\":1}" },
        { "{\"credentials\": {\"user\":\"u\",\"more\":[{}]}, \"y\":2}", "{\"credentials\": <secret>, \"y\":2}" },
        { "\"{\\\"token\\\":[\\\"a]\\\"],\\\"z\\\":1}\"", "\"{\\\"token\\\":<secret>,\\\"z\\\":1}\"" },
        { "token=[never ends", "token=<secret>" },
        { "{\"password\":\"a, b\",\"x\":1}", "{\"password\":\"<secret>\",\"x\":1}" },
        { "{\"token\" : \"a\\\"b\\\\\", \"y\":2}", "{\"token\" : \"<secret>\", \"y\":2}" },
        { "\"{\\\"secret\\\":\\\"a\\\",\\\"z\\\":1}\"", "\"{\\\"secret\\\":\\\"<secret>\\\",\\\"z\\\":1}\"" },
        { "{'senha': 'x'}", "{'senha': '<secret>'}" },
        { "{\"token\":null,\"pin_token\":17}", "{\"token\":null,\"pin_token\":<secret>}" },
        { "{\"token\":\"never ends", "{\"token\":\"<secret>" },
        { "{\"token\":\"\"}", "{\"token\":\"\"}" },
        { "token:\"", "token:\"" },
        { "\\\"token\\\"", "\\\"token\\\"" },
        { "\":x", "\":x" },
        /* headers */
        { "Authorization: Bearer abc.def refused", "Authorization: Bearer <secret> refused" },
        { "authorization: basic dXNlcg== and", "authorization: basic <secret> and" },
        { "Proxy-Authorization: Digest username=\"a\"", "Proxy-Authorization: Digest <secret>\"a\"" },
        { "Authorization: Digest u=a, r=b\r\nX: y", "Authorization: Digest <secret>\r\nX: y" },
        { "Authorization: raw-0", "Authorization: <secret>" },
        { "Authorization: missing", "Authorization: missing" },
        { "Authorization: Bearer", "Authorization: Bearer" },
        { "Cookie: sid=a; other=b\r\nHost: x", "Cookie: <secret>\r\nHost: x" },
        { "Set-Cookie: sid=a; Path=/", "Set-Cookie: <secret>" },
        { "bad cookie: expired", "bad cookie: expired" },
        { "X-Auth-Token: letters, X-Api-Key: abc", "X-Auth-Token: <secret>, X-Api-Key: <secret>" },
        { "X-Api-Key: a1", "X-Api-Key: <secret>" },
        { "invalid token: expired", "invalid token: expired" },
        { "invalid_token: The access token expired", "invalid_token: The access token expired" },
        { "wrong password: no.", "wrong password: no." },
        { "password: n.o", "password: <secret>" },
        { "senha: inv\xc3\xa1lida", "senha: inv\xc3\xa1lida" },
        { "password: abcdefghijklmnop", "password: <secret>" },
        { "token:abc", "token:<secret>" },
        { "WWW: Basic dXNlcjpwYXNz refused", "WWW: Basic <secret> refused" },
        { "<e>Basic dXNlcjpwYXNz</e>", "<e>Basic <secret></e>" },
        { "basic authentication, Basic Authentication failed, basic x1", "basic authentication, Basic Authentication failed, basic x1" },
        { "bearer abcdefghijklmnop, bearer short, the bearer", "bearer <secret>, bearer short, the bearer" },
        /* elements */
        { "<ans:senha>x y</ans:senha>", "<ans:senha><secret></ans:senha>" },
        { "<password type=\"x\">hunter2</password>", "<password type=\"x\"><secret></password>" },
        { "<wsse:Password\n Type='a:b'>h</wsse:Password >", "<wsse:Password\n Type='a:b'><secret></wsse:Password >" },
        { "<senha><![CDATA[a<b]]></senha>", "<senha><![CDATA[<secret>]]></senha>" },
        { "<token><value>a</value></token>", "<token><secret></token>" },
        { "<token/>a</token> <notatokens>a</notatokens>", "<token/>a</token> <notatokens>a</notatokens>" },
        { "<password></password> password>x<", "<password></password> password>x<" },
        { "<token>a</other> <token>b</", "<token>a</other> <token>b</" },
        { "<secret>a</secret>", "<secret>a</secret>" }, /* reads as masked */
        { "password=<secret>, token: <number>, pwd=<b>", "password=<secret>, token: <number>, pwd=<secret>" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buffer out;
        redact_to(&out, slice_from(cases[i].text), 1000);
        check(slice_equal(buffer_slice(&out), slice_from(cases[i].masked)), "\"%s\" became \"%s\"", cases[i].text,
              out.data ? out.data : "");
        buffer_release(&out);
    }
}

static void the_result_is_cut_before_what_does_not_fit(void **state)
{
    static const struct { const char *text; size_t len_max; const char *masked; } cases[] = {
        { "abcdef", 3, "abc" },
        { "abc", 3, "abc" },
        { "abc", 0, "" },
        { "a a@b.example", 10, "a " },
        { "a a@b.example", 11, "a <address>" },
        { "x 123456", 9, "x " },
        { "x 12345 y", 4, "x " }, /* a number is not cut in two */
        { "pwd=x y", 11, "pwd=" },
        { "pwd=x y", 12, "pwd=<secret>" },
        { "a\xc3\xa9", 2, "a" },
        { "a\xe2\x82\xac", 4, "a\xe2\x82\xac" },
        { "\xf0\x9f\x98\x80", 3, "" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buffer out;
        redact_to(&out, slice_from(cases[i].text), cases[i].len_max);
        check(slice_equal(buffer_slice(&out), slice_from(cases[i].masked)), "\"%s\" to %zu became \"%s\"", cases[i].text,
              cases[i].len_max, out.data ? out.data : "");
        buffer_release(&out);
    }
}

/* Many short addresses grow when they are masked: the bound is on the result. */
static void masks_do_not_outgrow_the_bound(void **state)
{
    char text[512];
    struct buffer out;
    (void)state;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = "a@b "[i % 4];
    redact_to(&out, (struct slice){ text, sizeof text }, sizeof text);
    assert_in_range(out.len, sizeof text - 10, sizeof text);
    buffer_release(&out);
}

/* Whatever the bytes, no long number and no address survives, and what was UTF-8 stays so. */
static void nothing_survives_at_random(void **state)
{
    static const char *const pieces[] = { "a", "@", ".", "-", "/", " ", "7", "42", "123456", "x@y", "\xc3\xa9", "<", "Z", "99" };
    (void)state;
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        struct random random = { seed };
        char text[128] = "";
        struct buffer out, again;
        for (size_t i = random_below(&random, 24); i > 0; i--)
            strcat(text, pieces[random_below(&random, sizeof pieces / sizeof *pieces)]);
        size_t len_max = random_below(&random, 80);
        redact_to(&out, slice_from(text), len_max);
        struct slice masked = buffer_slice(&out);
        check(masked.len <= len_max, "seed %llu: %zu bytes of %zu", (unsigned long long)seed, masked.len, len_max);
        size_t digits = 0;
        for (size_t i = 0; i < masked.len; i++) {
            digits = ascii_is_digit(masked.data[i]) ? digits + 1 : 0;
            check(digits < 6, "seed %llu: \"%s\" became \"%s\"", (unsigned long long)seed, text, out.data);
        }
        for (size_t i = 0, len; i < masked.len; i += len) {
            len = utf8_sequence_len(slice_from_offset(masked, i));
            check(len > 0, "seed %llu: a character is cut in two", (unsigned long long)seed);
        }
        redact_to(&again, masked, 1000);
        check(!strstr(again.data ? again.data : "", "x@y"), "seed %llu: \"%s\"", (unsigned long long)seed, again.data);
        buffer_release(&out);
        buffer_release(&again);
    }
}

/* Secrets of any form and beside anything: none is left, and masking again changes nothing. */
static void masking_twice_is_masking_once(void **state)
{
    static const char *const pieces[] = {
        "token", "password", "x-api-key", "Cookie", "authorization", "bearer", " ", " ", "=", ":", ": ", "\"", "'", "\\",
        "<", ">", "</", "abc", "hunter2x", "@", "\n", ";", ",", "null", "<secret>", "<number>", "\xc3\xa9", "\x80", "Digest", "1234567",
        "=>", "abcdefghijklmnopq", "secret", "pin", "\t", "[", "]", "{", "basic", "dXNlcjpwYXNz", "<![CDATA[", "]]>", "<token a='b'>",
        "</token>", "127.0.0.1", "4111 1111", "12.ABC.345/01DE-35", "eyJa.b.c", "%40", "clave",
    };
    (void)state;
    for (uint64_t seed = 1; seed <= 20000; seed++) {
        struct random random = { seed };
        char text[512] = "";
        struct buffer out, again;
        for (size_t i = random_below(&random, 16); i > 0; i--)
            strcat(text, pieces[random_below(&random, sizeof pieces / sizeof *pieces)]);
        redact_to(&out, slice_from(text), random_below(&random, 100));
        redact_to(&again, buffer_slice(&out), 1000);
        check(slice_equal(buffer_slice(&out), buffer_slice(&again)), "seed %llu: \"%s\" became \"%s\", then \"%s\"",
              (unsigned long long)seed, text, out.data, again.data);
        check(!strstr(out.data ? out.data : "", "password=hunter2x"), "seed %llu: %s", (unsigned long long)seed, text);
        buffer_release(&out);
        buffer_release(&again);
    }
}

static void bytes_that_are_not_text_are_taken(void **state)
{
    static const char bytes[] = "\x80\x80\x80\x80\x80\x80 ok \xff";
    struct buffer out;
    (void)state;
    redact_to(&out, (struct slice){ bytes, sizeof bytes - 1 }, 100);
    assert_int_equal(out.len, sizeof bytes - 1);
    buffer_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_text_is_masked),
        cmocka_unit_test(the_result_is_cut_before_what_does_not_fit),
        cmocka_unit_test(masks_do_not_outgrow_the_bound),
        cmocka_unit_test(nothing_survives_at_random),
        cmocka_unit_test(masking_twice_is_masking_once),
        cmocka_unit_test(bytes_that_are_not_text_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
