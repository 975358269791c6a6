/*
 * Fingerprints that are remembered are those that would be made anew.
 */
#include "api/jobs/causes.h"

#include "support/check.h"

#include <stdio.h>
#include <string.h>

enum { TEXTS = 200000 }; /* more than there are places */

static void text_of(int number, char *ret_text, size_t size)
{
    snprintf(ret_text, size, number % 3 ? "Patient %d is unknown" : "HTTP %d", number);
}

static void is_as_made(struct causes *causes, int number)
{
    char text[64], found[FINGERPRINT_BYTES + 1];
    struct slice code = number % 2 ? SLICE("http:422") : SLICE("");
    struct fingerprint print;
    text_of(number, text, sizeof text);
    causes_find(causes, code, slice_from(text), found);
    fingerprint_make(SLICE(""), code, slice_from(text), &print);
    check(strcmp(found, print.text) == 0, "\"%s\": %s, not %s", text, found, print.text);
}

static void what_is_remembered_is_what_is_made(void **state)
{
    (void)state;
    struct causes *causes = causes_new(17);
    check(causes != NULL, "no memory");
    for (int number = 0; number < 1000; number++) {
        is_as_made(causes, number);
        is_as_made(causes, number);
        is_as_made(causes, number / 2);
    }
    causes_free(causes);
}

static void more_texts_than_places_are_told_apart(void **state)
{
    (void)state;
    struct causes *causes = causes_new(17);
    char text[64], found[FINGERPRINT_BYTES + 1];
    check(causes != NULL, "no memory");
    for (int number = 0; number < TEXTS; number++) {
        text_of(number, text, sizeof text);
        causes_find(causes, SLICE(""), slice_from(text), found);
    }
    for (int number = 0; number < TEXTS; number += 101)
        is_as_made(causes, number);
    causes_free(causes);
}

static void without_memory_each_is_made(void **state)
{
    (void)state;
    is_as_made(NULL, 1);
    is_as_made(NULL, 2);
    causes_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_remembered_is_what_is_made),
        cmocka_unit_test(more_texts_than_places_are_told_apart),
        cmocka_unit_test(without_memory_each_is_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
