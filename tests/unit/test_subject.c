/* A person in texts: found however it is written, and nobody else with it. */
#include "store/subject.h"
#include "support/check.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

static void texts(void **state)
{
    static const struct {
        const char *name, *subject, *text;
        bool found;
    } cases[] = {
        { "as it is", "ana@x.py", "{\"to\":\"ana@x.py\"}", true },
        { "whatever the case", "Ana@X.py", "<ANA@x.PY>", true },
        { "alone", "ana@x.py", "ana@x.py", true },
        { "at the end of a sentence", "ana@x.py", "write to ana@x.py.", true },
        { "in a list", "ana@x.py", "bob@x.py,ana@x.py;", true },
        { "another's address ends like it", "ana@x.py", "mariana@x.py", false },
        { "or has a name before it", "ana@x.py", "maria.ana@x.py", false },
        { "or a tag", "ana@x.py", "m+ana@x.py", false },
        { "another host begins like it", "ana@x.py", "ana@x.python", false },
        { "or goes on", "ana@x.py", "ana@x.py.example", false },
        { "the second one is it", "ana@x.py", "mariana@x.py ana@x.py", true },
        { "a number", "4711", "{\"patient\":4711}", true },
        { "part of a number", "4711", "{\"patient\":94711}", false },
        { "a number with a part behind it", "4711", "4711-2", false },
        { "part of a longer identifier", "4711", "patient-4711", false },
        { "the whole identifier", "patient-4711", "\"patient-4711\"", true },
        { "a name with a space", "José Pérez", "paciente José Pérez, 33", true },
        { "in capitals", "José Pérez", "PACIENTE JOSÉ PÉREZ", true },
        { "escaped in JSON", "José Pérez", "{\"n\":\"Jos\\u00e9 P\\u00C9rez\"}", true },
        { "behind an escape", "ana@x.py", "\"line\\nana@x.py\\tand\"", true },
        { "behind an escaped letter", "ana@x.py", "\"\\u0061ana@x.py\"", false },
        { "a pair of halves", "a\xf0\x9f\x99\x82z", "\"a\\ud83d\\ude42z\"", true },
        { "half a pair is another", "a\xf0\x9f\x99\x82z", "\"a\\ud83dz\"", false },
        { "in a form", "ana@x.py", "to=ana%40x.py&subject=1", true },
        { "in a form, beyond ASCII", "José", "n=Jos%C3%A9&m=1", true },
        { "in XML", "José", "<n>Jos&#233;</n><m>Jos&#xE9;</m>", true },
        { "in Latin-1", "José", "<n>Jos\xe9</n>", true },
        { "capitals in Latin-1", "José", "<n>JOS\xc9</n>", true },
        { "a letter of another alphabet goes on", "ana", "ana\xd0\xb1", false },
        { "a space that does not break ends it", "ana", "ana\xc2\xa0x", true },
        { "cut short", "ana@x.py", "ana@x.p", false },
        { "a lone percent sign", "50%", "of 50% ", true },
        { "an escape that is none", "ana", "\\q ana \\u12", true },
        { "an empty text", "ana", "", false },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct subject subject;
        struct error err;
        assert_int_equal(subject_init(&subject, slice_from(cases[i].subject), &err), STATUS_OK);
        check(subject_in(&subject, slice_from(cases[i].text)) == cases[i].found, "%s", cases[i].name);
    }
}

static void what_means_nobody_is_refused(void **state)
{
    struct subject subject;
    struct error err;
    char longer[SUBJECT_BYTES_MAX + 2];
    (void)state;
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_int_equal(subject_init(&subject, SLICE("an"), &err), STATUS_INVALID);
    assert_int_equal(subject_init(&subject, SLICE("\xc3\xa9\xc3\xa9"), &err), STATUS_INVALID);
    assert_int_equal(subject_init(&subject, SLICE("an\xff" "a"), &err), STATUS_INVALID);
    assert_int_equal(subject_init(&subject, slice_from(longer), &err), STATUS_INVALID);
    longer[SUBJECT_BYTES_MAX] = '\0';
    assert_int_equal(subject_init(&subject, slice_from(longer), &err), STATUS_OK);
    assert_true(subject_in(&subject, slice_from(longer)));
}

static void every_place_of_a_job_is_looked_at(void **state)
{
    struct subject subject;
    struct error err;
    struct job job = { 0 };
    struct slice *const places[] = { &job.payload,   &job.metadata, &job.headers, &job.correlation_id, &job.last_error,
                                     &job.reference, &job.callback, &job.key,     &job.id,             &job.tenant };
    static const char *const names[] = { "payload",   "metadata", "headers", "correlation_id", "error",
                                         "reference", "callback", "key",     "id",             "tenant" };
    (void)state;
    assert_int_equal(subject_init(&subject, SLICE("ana@x.py"), &err), STATUS_OK);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        *places[i] = SLICE("");
    assert_int_equal(subject_in_job(&subject, &job), 0);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        *places[i] = SLICE("[\"ana@x.py\"]");
        assert_string_equal(subject_place_name(subject_in_job(&subject, &job)), names[i]);
        *places[i] = SLICE("");
    }
    assert_null(subject_place_name(0));
    assert_null(subject_place_name(SUBJECT_IN_TENANT << 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),
        cmocka_unit_test(what_means_nobody_is_refused),
        cmocka_unit_test(every_place_of_a_job_is_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
