/*
 * What the daemon says on standard error.
 */
#include "base/log.h"

#include "support/check.h"
#include "support/said.h"

#include <jansson.h>
#include <pthread.h>
#include <string.h>

enum { THREADS = 4, LINES_EACH = 200 };

static json_t *line_read(const char *line)
{
    json_error_t error;
    json_t *root = json_loads(line, JSON_REJECT_DUPLICATES, &error);
    check(json_is_object(root), "%s: %s", error.text, line);
    return root;
}

static const char *text_of(const json_t *root, const char *name)
{
    const char *text = json_string_value(json_object_get(root, name));
    check(text, "no text \"%s\"", name);
    return text;
}

static void a_line_has_its_facts(void **state)
{
    (void)state;
    said_begin();
    instant before = clock_now();
    log_event(LOG_WARN, "retry_scheduled", FIELD_CSTR("job", "CLM-\"1\"\n\xff"), FIELD_TEXT("tenant", SLICE("acme inc")),
              FIELD_INT("delay_ms", -5), FIELD_INSTANT("next_at", 1736678400000), FIELD_INSTANT("never", INSTANT_NONE));
    instant after = clock_now();
    char *said = said_end();
    assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1); /* one line */
    json_t *root = line_read(said);
    instant at;
    assert_int_equal(instant_parse(slice_from(text_of(root, "timestamp")), &at, NULL), STATUS_OK);
    assert_true(at >= before && at <= after);
    assert_string_equal(text_of(root, "level"), "warn");
    assert_string_equal(text_of(root, "event"), "retry_scheduled");
    assert_string_equal(text_of(root, "job"), "CLM-\"1\"\n\xef\xbf\xbd");
    assert_string_equal(text_of(root, "tenant"), "acme inc");
    assert_int_equal(json_integer_value(json_object_get(root, "delay_ms")), -5);
    assert_string_equal(text_of(root, "next_at"), "2025-01-12T10:40:00.000Z");
    assert_null(json_object_get(root, "never"));
    assert_int_equal(json_object_size(root), 7);
    json_decref(root);
}

static void the_level_decides_what_is_said(void **state)
{
    static const struct { enum log_level level; const char *said; } cases[] = {
        { LOG_DEBUG, "diwe" }, { LOG_INFO, "iwe" }, { LOG_WARN, "we" }, { LOG_ERROR, "e" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char letters[8] = "";
        said_begin();
        log_set_level(cases[i].level);
        for (int level = LOG_DEBUG; level <= LOG_ERROR; level++)
            log_event((enum log_level)level, "said", FIELD_INT("n", level));
        log_set_level(LOG_INFO);
        char *said = said_end();
        for (char *rest = said, *line; (line = strsep(&rest, "\n")) && *line;) {
            json_t *root = line_read(line);
            strncat(letters, text_of(root, "level"), 1);
            json_decref(root);
        }
        check(strcmp(letters, cases[i].said) == 0, "level %d: %s", cases[i].level, letters);
    }
}

static void level_names_are_read(void **state)
{
    static const struct { const char *name; bool known; enum log_level level; } cases[] = {
        { "debug", true, LOG_DEBUG }, { "INFO", true, LOG_INFO }, { "Warn", true, LOG_WARN },
        { "error", true, LOG_ERROR }, { "warning", false, 0 },    { "", false, 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum log_level level = LOG_ERROR + 1;
        bool known = log_level_from_name(slice_from(cases[i].name), &level);
        check(known == cases[i].known && (!known || level == cases[i].level), "\"%s\"", cases[i].name);
    }
}

/* A line that would be too long says so instead of saying nothing. */
static void a_huge_field_does_not_silence_the_event(void **state)
{
    static char huge[100 * 1024];
    (void)state;
    memset(huge, 'x', sizeof huge);
    said_begin();
    log_event(LOG_ERROR, "big", FIELD_TEXT("text", ((struct slice){ huge, sizeof huge })), FIELD_INT("n", 7));
    char *said = said_end();
    json_t *root = line_read(said);
    assert_string_equal(text_of(root, "event"), "big");
    assert_int_equal(json_integer_value(json_object_get(root, "n")), 7);
    assert_true(strlen(text_of(root, "text")) < 64 * 1024);
    json_decref(root);
}

static void *talk(void *context)
{
    for (int i = 0; i < LINES_EACH; i++)
        log_event(LOG_INFO, "talk", FIELD_INT("who", *(int *)context), FIELD_INT("line", i));
    return NULL;
}

static void threads_do_not_mix_their_lines(void **state)
{
    pthread_t threads[THREADS];
    int who[THREADS];
    int64_t next[THREADS] = { 0 };
    (void)state;
    said_begin();
    for (int i = 0; i < THREADS; i++) {
        who[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, talk, &who[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    char *said = said_end();
    int lines = 0;
    for (char *rest = said, *line; (line = strsep(&rest, "\n")) && *line; lines++) {
        json_t *root = line_read(line);
        int64_t speaker = json_integer_value(json_object_get(root, "who"));
        assert_int_equal(json_integer_value(json_object_get(root, "line")), next[speaker]++);
        json_decref(root);
    }
    assert_int_equal(lines, THREADS * LINES_EACH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_has_its_facts),
        cmocka_unit_test(the_level_decides_what_is_said),
        cmocka_unit_test(level_names_are_read),
        cmocka_unit_test(a_huge_field_does_not_silence_the_event),
        cmocka_unit_test(threads_do_not_mix_their_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
