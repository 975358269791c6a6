/*
 * Who is answered when a change is in the store. Each case is a script; what is expected are the answers so far.
 */
#include "engine/saved/waits.h"
#include "support/check.h"

#include <stdlib.h>

enum { WAITS_MAX = 4 };

struct waiter {
    struct saved_wait wait;
    char answer; /* '-': none, 'k': kept, 'f': failed */
};

static void on_done(struct saved_wait *wait)
{
    struct waiter *waiter = wait->context;
    assert_int_equal(waiter->answer, '-'); /* once */
    waiter->answer = wait->error.status == STATUS_OK ? 'k' : 'f';
}

/*
 * t: a change is told; w: somebody waits; o: a write goes out; 0, 1, 2: one that brings so much is back, well; a, b, c: one
 * that would have brought 0, 1, 2 has failed; + behind one of these: changes are pending; !: all fail.
 */
static void run(const char *script, struct waiter *waiters)
{
    struct saved_waits waits = { 0 };
    size_t count = 0;
    for (const char *at = script; *at; at++) {
        struct error result = { .status = STATUS_OK };
        bool more = at[1] == '+';
        if (*at == 't') {
            saved_waits_changed(&waits);
        } else if (*at == 'o') {
            saved_waits_out(&waits);
        } else if (*at == 'w') {
            struct waiter *waiter = &waiters[count++];
            waiter->wait = (struct saved_wait){ .done = on_done, .context = waiter };
            saved_waits_add(&waits, &waiter->wait, more);
        } else if (*at >= '0' && *at <= '9') {
            saved_waits_back(&waits, (uint64_t)(*at - '0'), &result, more);
        } else if (*at >= 'a' && *at <= 'e') {
            error_set(&result, STATUS_FULL, "full");
            saved_waits_back(&waits, (uint64_t)(*at - 'a'), &result, more);
        } else if (*at == '!') {
            error_set(&result, STATUS_NO_MEMORY, "no memory");
            saved_waits_fail(&waits.first, &result);
        }
    }
    assert_true(count <= WAITS_MAX);
}

static void answers_come_when_it_is_kept(void **state)
{
    static const struct {
        const char *name, *script, *answers;
    } cases[] = {
        { "nothing ever changed", "w", "k" },
        { "not before it goes out", "tw+", "-" },
        { "not before it is back", "tw+o", "-" },
        { "when it is back", "tw+o1", "k" },
        { "it failed", "tw+ob+", "f" },
        { "it failed and is given up", "tw+ob", "f" },
        { "who comes while it is out waits for it", "tow", "-" },
        { "and is answered with it", "tow1", "k" },
        { "who comes after it is answered at once", "to1w", "k" },
        { "a write from before does not bring it", "totw+1+", "-" },
        { "nor does its failure end it", "totw+b+", "-" },
        { "its own does", "totw+1+o2", "k" },
        { "two changes, two writes, one end", "ttw+oo0", "-" },
        { "the second ends it", "ttw+oo02", "k" },
        { "the first fails, the second brings the whole state", "ttw+ooa+2+", "k" },
        { "each its own", "tw+otw+1+", "k-" },
        { "each its own, the second fails", "tw+otw+1+oc+", "kf" },
        { "a later write brings both", "tw+tw+oo02", "kk" },
        { "after a failure again", "tw+ob+w+o1", "fk" },
        { "after a failure that was given up nobody hangs", "tobw", "f" },
        { "nothing left that could bring it", "ttw+oc", "f" },
        { "nothing left although that one was good", "ttoow1", "-" },
        { "and then none", "ttoow10", "f" },
        { "no memory", "tw+tw+!", "ff" },
        { "no memory now, and then again", "tw+!w+o1", "fk" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct waiter waiters[WAITS_MAX];
        for (size_t n = 0; n < WAITS_MAX; n++)
            waiters[n] = (struct waiter){ .answer = '-' };
        run(cases[i].script, waiters);
        for (size_t n = 0; cases[i].answers[n]; n++)
            check(waiters[n].answer == cases[i].answers[n], "%s: %zu is %c, not %c", cases[i].name, n, waiters[n].answer,
                  cases[i].answers[n]);
    }
}

/* Done may free the wait, and give another. */
static void on_done_free(struct saved_wait *wait)
{
    *(int *)wait->context += 1;
    free(wait);
}

static void the_wait_may_end_with_its_answer(void **state)
{
    struct saved_waits waits = { 0 };
    const struct error good = { .status = STATUS_OK };
    int answered = 0;
    (void)state;
    saved_waits_changed(&waits);
    for (int i = 0; i < 3; i++) {
        struct saved_wait *wait = calloc(1, sizeof *wait);
        assert_non_null(wait);
        *wait = (struct saved_wait){ .done = on_done_free, .context = &answered };
        saved_waits_add(&waits, wait, true);
    }
    saved_waits_out(&waits);
    saved_waits_back(&waits, 1, &good, false);
    assert_int_equal(answered, 3);
    assert_null(waits.first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_come_when_it_is_kept),
        cmocka_unit_test(the_wait_may_end_with_its_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
