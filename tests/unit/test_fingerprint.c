/*
 * Which errors are the same: what is masked, and what is not.
 */
#include "core/errors/fingerprint.h"

#include "base/json.h"
#include "core/errors/redact.h"
#include "support/check.h"

#include <stdlib.h>

static struct fingerprint made(struct slice text)
{
    struct fingerprint fingerprint;
    fingerprint_make(SLICE(""), SLICE(""), text, &fingerprint);
    return fingerprint;
}

static void each_text_is_masked(void **state)
{
    static const struct { const char *text, *sample; } cases[] = {
        { "", "" },
        { "  TIMEOUT  ", "timeout" },
        { "Bucket\tis \n warming", "bucket is warming" },
        /* numbers */
        { "waited 30s, 1.5ms and 10 KB", "waited <number>s, <number>ms and <number> kb" },
        { "balance -1,234.50 of 7", "balance <number> of <number>" },
        { "ids 4, 5, 6 and 7", "ids <number> and <number>" },
        { "limit 100/min or 5/7", "limit <number>/min or <number>" },
        { "100% of 3/4", "<number>% of <number>" },
        { "worker12 on sha256", "worker<number> on sha<number>" },
        { "CPF 529.982.247-25", "cpf <number>" },
        /* codes stay */
        { "HTTP 418: no", "http 418: no" },
        { "SQL error code=1205, lock 1205", "sql error code=1205, lock <number>" },
        { "ORA-00060: deadlock", "ora-00060: deadlock" },
        { "{\"statusCode\":418,\"count\":418}", "{\"statuscode\":418,\"count\":<number>}" },
        { "SQLSTATE[40001]", "sqlstate[<number>]" },
        { "error 1234567", "error <number>" },
        { "agora 17 pessoas", "agora <number> pessoas" },
        /* ids */
        { "claim CLM-5030-1 refused", "claim clm-<number> refused" },
        { "req-8f3a-22 and req_77", "req-<id> and req_<number>" },
        { "trace 4bf92f3577b34da6a3ce929d0e0e4736", "trace <id>" },
        { "at 0x7ffe12ab", "at <id>" },
        { "job 01ARZ3NDEKTSV4RRFFQ69G5FAV", "job <id>" },
        { "id 123e4567-e89b-12d3-a456-426614174000.", "id <id>." },
        { "12-ab", "<id>" },
        { "NullPointerException in java.lang", "nullpointerexception in java.lang" },
        { "INVALID_PATIENT_DATA", "invalid_patient_data" },
        /* addresses */
        { "from 10.0.0.7:8443 to 192.168.1.0/24", "from <ip> to <ip>" },
        { "host [2001:db8::1]:443 and ::1", "host <ip> and <ip>" },
        { "fe80:0:0:0:1:2:3:4 is down", "<ip> is down" },
        { "2001:db8:0:0:1:2:3:4: refused", "<ip>: refused" },
        { "std::bad_alloc", "std::bad_alloc" },
        { "version 1.2.3.4.5", "version <number>" },
        { "1.2.3.4x 1.2.3.4:99999x 1.2.3.4:x", "<number>x <ip>:<number>x <ip>:x" },
        { "[::1 [::1]x 1:2:3:4:5:6:7:8:9 ab::cdq", "[<ip>x <number> ab::cdq" },
        { "ends in http://a.example/\x01", "ends in <url><bytes>" },
        { "user ana.silva@hospital.example.br unknown", "user <address> unknown" },
        { "POST https://a.example:8443/x/7?k=v#f, then http://b.example.", "post <url>, then <url>." },
        { "db7.example.com:5432", "db<number>.example.com:<number>" },
        /* times */
        { "at 2025-01-12T10:40:00.123Z", "at <time>" },
        { "at 2025-01-12 10:40:00+03:00;", "at <time>;" },
        { "since 12/01/2025 10:40", "since <time>" },
        { "on Sun, 12 Jan 2025 10:40:00 GMT", "on <time>" },
        { "12-Jan-2025", "<time>" },
        { "at 10:40:00", "at <time>" },
        { "until 2025/1/2", "until <time>" },
        { "2025-01-12q", "<id>" },
        { "at 2025-01-12T10:40:00,5 UTC and 10:40:00 -0300", "at <time> and <time>" },
        { "at 10:40:00+0300, 10:40 +03:0, 10:40 Zulu", "at <time> <number>, <time> zulu" },
        { "at 10:40:7 and 10:40:00.x", "at <time>:<number> and <time>.x" },
        { "1/2/x 1/2/12345 2025-1-x 12 Jan x 12 Jane 2025 5 Januar", "<number>/x <number> <id> <number> jan x <number> jane <number> januar" },
        { "Mon,12 Tue, now 12.Jan.2025", "mon,<number> tue, now <number>.jan.<number>" },
        /* quotations, paths */
        { "customer \"ACME Ltd\" not found", "customer <text> not found" },
        { "no field 'total' in `invoice`", "no field <text> in <text>" },
        { "can't, won't", "can't, won't" },
        { "{\"error\":\"bucket 7 warming\",\"id\": \"r-1\"}", "{\"error\":\"bucket <number> warming\",\"id\": \"r-<number>\"}" },
        { "['a','b']", "[<text>]" },
        { "cannot open /var/lib/x/7.db: denied", "cannot open <path>: denied" },
        { "in C:\\Users\\ana\\x.txt", "in <path>" },
        { "and/or 5 km/h", "and/or <number> km/h" },
        { "<p>no</p>", "<p>no</p>" },
        /* secrets */
        { "login?password=hunter2&x=1", "login?password=<secret>&x=<number>" },
        { "Authorization: Bearer abcdefghijklmnopqrstuvwx", "authorization: bearer <secret>" },
        { "{\"api_key\": \"sesame\"}", "{\"api_key\": <secret>}" },
        { "token expired", "token expired" },
        { "bearer short", "bearer short" },
        { "bearer=abcdefghijklmnopqrstuvwx", "bearer=abcdefghijklmnopqrstuvwx" },
        { "{'senha' : 'x'} : \"y\" \"z\"", "{'senha' : <secret>} : <text>" },
        { "invalid token: expired", "invalid token: expired" },
        { "{\"Cookie\": \"sid=abc; x=y\"}", "{\"cookie\": \"<secret>\"}" },
        { "Authorization: Bearer short", "authorization: bearer <secret>" },
        { "<senha>sesame</senha>", "<senha><secret></senha>" },
        /* any language, any bytes */
        { "Serviço indisponível às 10:40", "serviço indisponível às <time>" },
        { "\xff\xfe""123456789", "<bytes><number>" },
        { "a\x01\x02" "b", "a<bytes>b" },
        { "line\xe2\x80\xa8" "break", "line<bytes>break" },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fingerprint fingerprint = made(slice_from(cases[i].text));
        check(strcmp(fingerprint.sample, cases[i].sample) == 0, "%s: %s", cases[i].text, fingerprint.sample);
    }
}

static void what_differs_in_ids_only_is_the_same(void **state)
{
    static const struct { const char *one, *other; bool same; } cases[] = {
        { "bucket 17 of 10.0.0.1 warming since 10:40", "bucket 4 of 10.9.0.1:80 warming since 23:59:59", true },
        { "request 8f3a not taken", "request 91bb not taken", true },
        { "ids 1, 2", "ids 1, 2, 3, 4", true },
        { "Bucket  Warming", "bucket warming", true },
        { "bucket warming", "bucket cooling", false },
        { "error code 1205", "error code 1213", false },
        { "HTTP 418: x", "HTTP 419: x", false },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fingerprint one = made(slice_from(cases[i].one)), other = made(slice_from(cases[i].other));
        check((strcmp(one.text, other.text) == 0) == cases[i].same, "%s / %s", cases[i].one, cases[i].other);
        check(strlen(one.text) == FINGERPRINT_BYTES, "%s", one.text);
    }
}

static void the_code_is_kept_beside(void **state)
{
    static const struct { const char *space, *code, *text, *saved; } cases[] = {
        { "", "http:503", "busy 503", "http:503" },
        { "", "", "HTTP 503: busy", "http:503" },
        { "smtp", "", "421 4.7.0 Try again", "smtp:421" },
        { "", "", "busy", "" },
        { "", "APP:E 1\xff", "busy", "app:e?1?" },
    };
    (void)state;
    struct fingerprint with, without;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        fingerprint_make(slice_from(cases[i].space), slice_from(cases[i].code), slice_from(cases[i].text), &with);
        check(strcmp(with.code, cases[i].saved) == 0, "%s: %s", cases[i].text, with.code);
    }
    char longest[300];
    memset(longest, 'c', sizeof longest);
    fingerprint_make(SLICE(""), (struct slice){ longest, sizeof longest }, SLICE("busy"), &with);
    assert_int_equal(strlen(with.code), CODE_BYTES_MAX - 1);
    fingerprint_make(SLICE(""), SLICE("http:503"), SLICE("busy"), &with);
    fingerprint_make(SLICE(""), SLICE("http:502"), SLICE("busy"), &without);
    assert_string_not_equal(with.text, without.text);
}

/* They are kept on disk: the same for ever. */
static void fingerprints_do_not_change(void **state)
{
    (void)state;
    struct fingerprint fingerprint;
    fingerprint_make(SLICE(""), SLICE("http:418"), SLICE("HTTP 418: bucket 7 is warming up"), &fingerprint);
    assert_string_equal(fingerprint.sample, "http 418: bucket <number> is warming up");
    assert_string_equal(fingerprint.text, "bbe095fcdd2cc0f7");
}

static void irregular_space_is_told(void **state)
{
    static const struct { const char *text; bool spaced; } cases[] = {
        { "a b", false }, { "a  b", true }, { "a\nb", true }, { "  a b \n", false },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        check(made(slice_from(cases[i].text)).spaced == cases[i].spaced, "%s", cases[i].text);
}

static bool has_long_number(const char *sample)
{
    struct buffer masked;
    buffer_init(&masked, 4096);
    redact(&masked, slice_from(sample), 4096);
    bool differs = !slice_equal(buffer_slice(&masked), slice_from(sample));
    buffer_release(&masked);
    return differs;
}

static void any_bytes_are_bounded(void **state)
{
    enum { LARGE = 1 << 20 };
    static const char letters[] = "aB1 -_.,:/@\"'\\<>[]{}=\x01\xc3\xa9\xff\n0x9f";
    char *text = malloc(LARGE);
    struct random random = { 11 };
    (void)state;
    assert_non_null(text);
    for (size_t round = 0; round < 300; round++) {
        size_t len = round == 0 ? LARGE : random_below(&random, 600);
        for (size_t i = 0; i < len; i++)
            text[i] = round % 3 == 0 ? (char)random_next(&random) : letters[random_below(&random, sizeof letters)];
        struct fingerprint one = made((struct slice){ text, len });
        check(strlen(one.sample) <= FINGERPRINT_SAMPLE_BYTES_MAX, "round %zu", round);
        check(utf8_is_valid(slice_from(one.sample)), "round %zu: %s", round, one.sample);
        check(!has_long_number(one.sample), "round %zu: %s", round, one.sample);
        check(!strpbrk(one.sample, "\n\t\x01\x7f"), "round %zu: %s", round, one.sample);
    }
    memset(text, 'x', LARGE);
    assert_int_equal(strlen(made((struct slice){ text, LARGE }).sample), FINGERPRINT_SAMPLE_BYTES_MAX);
    for (size_t i = 0; i < LARGE; i++)
        text[i] = i % 2 ? ' ' : 'a';
    assert_int_equal(strlen(made((struct slice){ text, LARGE }).sample), FINGERPRINT_SAMPLE_BYTES_MAX - 1);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_text_is_masked),
        cmocka_unit_test(what_differs_in_ids_only_is_the_same),
        cmocka_unit_test(the_code_is_kept_beside),
        cmocka_unit_test(fingerprints_do_not_change),
        cmocka_unit_test(irregular_space_is_told),
        cmocka_unit_test(any_bytes_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
