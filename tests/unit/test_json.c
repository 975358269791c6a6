#include "base/json.h"
#include "support/check.h"

#include <jansson.h>

static void strings(void **state)
{
    (void)state;
    static const struct { const char *name; struct slice text; const char *json; } rows[] = {
        { "empty", { NULL, 0 }, "\"\"" },
        { "plain", { "abc", 3 }, "\"abc\"" },
        { "quotes", { "\"\\/", 3 }, "\"\\\"\\\\/\"" },
        { "controls", { "\b\t\n\f\r\x01\x1f\x7f", 8 }, "\"\\b\\t\\n\\f\\r\\u0001\\u001f\\u007f\"" },
        { "NUL", { "a\0b", 3 }, "\"a\\u0000b\"" },
        { "two bytes", { "operaci\xc3\xb3n", 10 }, "\"operaci\xc3\xb3n\"" },
        { "stored twice encoded", { "\xc3\x83\xc2\xb3", 4 }, "\"\xc3\x83\xc2\xb3\"" },
        { "three and four bytes", { "\xe2\x82\xac\xf0\x9f\x98\x80", 7 }, "\"\xe2\x82\xac\xf0\x9f\x98\x80\"" },
        { "latin-1", { "\xf3n", 2 }, "\"\xef\xbf\xbdn\"" },
        { "cut off", { "a\xe2\x82", 3 }, "\"a\xef\xbf\xbd\xef\xbf\xbd\"" },
        { "overlong", { "\xc0\x80\xe0\x80\x80", 5 }, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
        { "surrogate", { "\xed\xa0\x80", 3 }, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
        { "beyond", { "\xf4\x90\x80\x80", 4 }, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
        { "stray", { "\x80\xff", 2 }, "\"\xef\xbf\xbd\xef\xbf\xbd\"" },
        { "C1", { "\xc2\x9b" "2J\xc2\x80\xc2\xa0", 8 }, "\"\\u009b2J\\u0080\xc2\xa0\"" },
        { "directions", { "a\xe2\x80\xae" "b\xe2\x81\xa6\xd8\x9c", 10 }, "\"a\\u202eb\\u2066\\u061c\"" },
        { "lines", { "\xe2\x80\xa8\xe2\x80\xa9", 6 }, "\"\\u2028\\u2029\"" },
        { "tags", { "\xf3\xa0\x81\x81", 4 }, "\"\\udb40\\udc41\"" },
        { "joined", { "\xe2\x80\x8d", 3 }, "\"\xe2\x80\x8d\"" }, /* families of emoji */
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct buffer out;
        buffer_init(&out, 1000);
        struct json_writer json = json_writer(&out);
        json_put_string(&json, rows[i].text);
        check(strcmp(out.data, rows[i].json) == 0, "%s: %s", rows[i].name, out.data);
        buffer_release(&out);
    }
}

/* Eight bytes are looked at together: no byte may hide among plain ones, wherever it stands. */
static void each_byte_at_each_place(void **state)
{
    (void)state;
    enum { LEN = 20 };
    for (int byte = 0; byte < 256; byte++) {
        struct buffer alone, among;
        char one = (char)byte;
        buffer_init(&alone, 100);
        struct json_writer json = json_writer(&alone);
        json_put_string(&json, (struct slice){ &one, 1 });
        for (size_t place = 0; place < LEN; place++) {
            char text[LEN + 1] = "abcdefghijklmnopqrst", expected[100];
            text[place] = one;
            buffer_init(&among, 100);
            json = json_writer(&among);
            json_put_string(&json, (struct slice){ text, LEN });
            snprintf(expected, sizeof expected, "\"%.*s%.*s%s\"", (int)place, text, (int)alone.len - 2, alone.data + 1,
                     text + place + 1);
            check(strcmp(among.data, expected) == 0, "byte %d at %zu: %s", byte, place, among.data);
            check(utf8_is_valid((struct slice){ text, LEN }) == (byte < 0x80), "byte %d at %zu", byte, place);
            buffer_release(&among);
        }
        buffer_release(&alone);
    }
}

static void sequence_lengths(void **state)
{
    (void)state;
    static const struct { struct slice text; size_t len; } rows[] = {
        { { "", 0 }, 0 },
        { { "a", 1 }, 1 },
        { { "\0", 1 }, 1 },
        { { "\x7f", 1 }, 1 },
        { { "\x80", 1 }, 0 },
        { { "\xc1\xbf", 2 }, 0 },
        { { "\xc2\x80", 2 }, 2 },
        { { "\xdf\xbf", 2 }, 2 },
        { { "\xc2", 1 }, 0 },
        { { "\xc2\x41", 2 }, 0 },
        { { "\xe0\x9f\xbf", 3 }, 0 },
        { { "\xe0\xa0\x80", 3 }, 3 },
        { { "\xed\x9f\xbf", 3 }, 3 },
        { { "\xed\xa0\x80", 3 }, 0 },
        { { "\xee\x80\x80", 3 }, 3 },
        { { "\xef\xbf\xbf", 3 }, 3 },
        { { "\xef\xbf\x41", 3 }, 0 },
        { { "\xf0\x8f\xbf\xbf", 4 }, 0 },
        { { "\xf0\x90\x80\x80", 4 }, 4 },
        { { "\xf4\x8f\xbf\xbf", 4 }, 4 },
        { { "\xf4\x90\x80\x80", 4 }, 0 },
        { { "\xf5\x80\x80\x80", 4 }, 0 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        check(utf8_sequence_len(rows[i].text) == rows[i].len, "row %zu", i);
}

static void nesting_puts_commas_where_they_belong(void **state)
{
    (void)state;
    struct buffer out;
    buffer_init(&out, 1000);
    struct json_writer json = json_writer(&out);
    json_object_begin(&json);
    json_name(&json, "empty");
    json_object_begin(&json);
    json_object_end(&json);
    json_name(&json, "list");
    json_array_begin(&json);
    json_put_int(&json, INT64_MIN);
    json_array_begin(&json);
    json_array_end(&json);
    json_object_begin(&json);
    json_member_bool(&json, "yes", true);
    json_member_bool(&json, "no", false);
    json_object_end(&json);
    json_put_null(&json);
    json_put_real(&json, 0.25);
    json_put_real(&json, 1e300);
    json_put_raw(&json, SLICE("[1]"));
    json_array_end(&json);
    json_member_text(&json, "text", "a");
    json_member_text(&json, "no text", NULL);
    json_member_string(&json, "slice", SLICE("b"));
    json_member_int(&json, "n", 7);
    json_member_instant(&json, "never", INSTANT_NONE);
    json_member_instant(&json, "at", 1736679101234);
    json_object_end(&json);
    assert_int_equal(buffer_status(&out), STATUS_OK);
    assert_string_equal(out.data, "{\"empty\":{},\"list\":[-9223372036854775808,[],{\"yes\":true,\"no\":false},null,0.25,1e+300,"
                                  "[1]],\"text\":\"a\",\"no text\":\"\",\"slice\":\"b\",\"n\":7,"
                                  "\"at\":\"2025-01-12T10:51:41.234Z\"}");
    buffer_release(&out);
}

/* Whatever bytes come in, a strict reader takes what is written and finds valid texts as they were. */
static void any_bytes_make_valid_json(void **state)
{
    (void)state;
    struct random random = { 11 };
    for (int round = 0; round < 5000; round++) {
        char bytes[64];
        size_t len = random_below(&random, sizeof bytes);
        for (size_t i = 0; i < len; i++)
            bytes[i] = (char)(random_below(&random, 3) ? random_next(&random) : 0xc0 + random_below(&random, 64));
        struct slice text = { bytes, len };
        bool valid = true;
        for (size_t i = 0, step; i < len; i += step) {
            step = utf8_sequence_len(slice_from_offset(text, i));
            valid = valid && step > 0;
            step = step > 0 ? step : 1;
        }
        struct buffer out;
        buffer_init(&out, 1000);
        struct json_writer json = json_writer(&out);
        json_array_begin(&json);
        json_put_string(&json, text);
        json_array_end(&json);
        json_t *read = json_loadb(out.data, out.len, JSON_ALLOW_NUL, NULL);
        check(read != NULL, "round %d: %s", round, out.data);
        struct slice back = { json_string_value(json_array_get(read, 0)), json_string_length(json_array_get(read, 0)) };
        check(!valid || slice_equal(back, text), "round %d", round);
        json_decref(read);
        buffer_release(&out);
    }
}

static void a_full_buffer_shows_in_its_status(void **state)
{
    (void)state;
    struct buffer out;
    buffer_init(&out, 10);
    struct json_writer json = json_writer(&out);
    json_member_text(&json, "name", "a longer value");
    assert_int_equal(buffer_status(&out), STATUS_LIMIT);
    buffer_release(&out);
}

/* RFC 4648's own examples, and bytes that are no text. */
static void base64_and_utf8(void **state)
{
    static const struct { struct slice bytes; const char *text; bool utf8; } rows[] = {
        { { "", 0 }, "\"\"", true },
        { { "f", 1 }, "\"Zg==\"", true },
        { { "fo", 2 }, "\"Zm8=\"", true },
        { { "foobar", 6 }, "\"Zm9vYmFy\"", true },
        { { "\xff\xfe\x00", 3 }, "\"//4A\"", false },
        { { "\xc3\xb3", 2 }, "\"w7M=\"", true },
        { { "a\xc3", 2 }, "\"YcM=\"", false },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct buffer out;
        buffer_init(&out, 64);
        struct json_writer json = json_writer(&out);
        json_put_base64(&json, rows[i].bytes);
        assert_string_equal(out.data, rows[i].text);
        assert_int_equal(utf8_is_valid(rows[i].bytes), rows[i].utf8);
        buffer_release(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(base64_and_utf8),
        cmocka_unit_test(strings),
        cmocka_unit_test(each_byte_at_each_place),
        cmocka_unit_test(sequence_lengths),
        cmocka_unit_test(nesting_puts_commas_where_they_belong),
        cmocka_unit_test(any_bytes_make_valid_json),
        cmocka_unit_test(a_full_buffer_shows_in_its_status),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
