/*
 * Handing work to another thread.
 */
#include "node/mailbox.h"

#include "support/check.h"

#include <event2/event.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { POSTERS = 4, LETTERS_EACH = 5000 };

struct letter {
    struct message message; /* first */
    int poster, number;
    struct box_owner *owner;
};

struct box_owner {
    struct mailbox *mailbox;
    struct event_base *loop; /* left when all is there; may be NULL */
    int next[POSTERS];       /* the number expected of each poster */
    int received;
    int expected;
};

static void on_letter(struct message *message)
{
    struct letter *letter = message_of(message, MESSAGE_TEST);
    struct box_owner *owner = letter->owner;
    check(letter->number == owner->next[letter->poster], "poster %d: %d after %d", letter->poster, letter->number,
          owner->next[letter->poster] - 1);
    owner->next[letter->poster]++;
    owner->received++;
    if (owner->loop && owner->received == owner->expected)
        event_base_loopbreak(owner->loop);
    free(letter);
}

static void post(struct box_owner *owner, int poster, int number)
{
    struct letter *letter = calloc(1, sizeof *letter);
    assert_non_null(letter);
    *letter = (struct letter){ .poster = poster, .number = number, .owner = owner };
    mailbox_post(owner->mailbox, &letter->message, MESSAGE_TEST, on_letter);
}

static void owner_begin(struct box_owner *owner, int expected)
{
    struct error error;
    *owner = (struct box_owner){ .expected = expected };
    assert_int_equal(mailbox_new(&owner->mailbox, &error), STATUS_OK);
}

static void messages_run_in_order_and_once(void **state)
{
    struct box_owner owner;
    (void)state;
    owner_begin(&owner, 3);
    assert_false(mailbox_drain(owner.mailbox));
    for (int i = 0; i < 3; i++)
        post(&owner, 0, i);
    assert_int_equal(owner.received, 0); /* only the owner runs them */
    assert_true(mailbox_drain(owner.mailbox));
    assert_int_equal(owner.received, 3);
    assert_false(mailbox_drain(owner.mailbox));
    mailbox_free(owner.mailbox);
    mailbox_free(NULL);
}

static void a_wait_ends_at_once_when_something_is_there(void **state)
{
    struct box_owner owner;
    (void)state;
    owner_begin(&owner, 1);
    mailbox_wait(owner.mailbox, 0); /* nothing: the time passes */
    post(&owner, 0, 0);
    mailbox_wait(owner.mailbox, -1); /* would hang */
    mailbox_wait(owner.mailbox, -1); /* waiting takes nothing */
    assert_true(mailbox_drain(owner.mailbox));
    mailbox_free(owner.mailbox);
}

static void who_waits_can_be_woken_without_a_message(void **state)
{
    struct box_owner owner;
    (void)state;
    owner_begin(&owner, 1);
    mailbox_wake(owner.mailbox);
    mailbox_wait(owner.mailbox, -1); /* would hang */
    assert_false(mailbox_drain(owner.mailbox));
    mailbox_free(owner.mailbox);
}

struct echo {
    struct message message; /* first */
    struct mailbox *mailbox;
    int left;
};

static void on_echo(struct message *message)
{
    struct echo *echo = message_of(message, MESSAGE_TEST);
    if (--echo->left > 0)
        mailbox_post(echo->mailbox, &echo->message, MESSAGE_TEST, on_echo);
}

static void a_message_may_post_itself_again(void **state)
{
    struct error error;
    struct echo echo = { .left = 3 };
    (void)state;
    assert_int_equal(mailbox_new(&echo.mailbox, &error), STATUS_OK);
    mailbox_post(echo.mailbox, &echo.message, MESSAGE_TEST, on_echo);
    assert_true(mailbox_drain(echo.mailbox));
    assert_int_equal(echo.left, 2); /* what is posted while draining comes with the next drain */
    mailbox_wait(echo.mailbox, -1);
    assert_true(mailbox_drain(echo.mailbox));
    assert_true(mailbox_drain(echo.mailbox));
    assert_false(mailbox_drain(echo.mailbox));
    assert_int_equal(echo.left, 0);
    mailbox_free(echo.mailbox);
}

struct poster {
    struct box_owner *owner;
    int who;
};

static void *post_all(void *context)
{
    const struct poster *poster = context;
    for (int i = 0; i < LETTERS_EACH; i++)
        post(poster->owner, poster->who, i);
    return NULL;
}

static void posters_begin(struct box_owner *owner, pthread_t *threads, struct poster *posters)
{
    for (int i = 0; i < POSTERS; i++) {
        posters[i] = (struct poster){ owner, i };
        assert_int_equal(pthread_create(&threads[i], NULL, post_all, &posters[i]), 0);
    }
}

static void many_posters_one_sleeper(void **state)
{
    struct box_owner owner;
    pthread_t threads[POSTERS];
    struct poster posters[POSTERS];
    (void)state;
    owner_begin(&owner, POSTERS * LETTERS_EACH);
    posters_begin(&owner, threads, posters);
    while (owner.received < owner.expected) {
        mailbox_wait(owner.mailbox, -1);
        mailbox_drain(owner.mailbox);
    }
    for (int i = 0; i < POSTERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(owner.received, POSTERS * LETTERS_EACH);
    assert_false(mailbox_drain(owner.mailbox));
    mailbox_free(owner.mailbox);
}

static void a_loop_drains_it_by_itself(void **state)
{
    struct box_owner owner;
    struct error error;
    pthread_t threads[POSTERS];
    struct poster posters[POSTERS];
    (void)state;
    owner_begin(&owner, POSTERS * LETTERS_EACH);
    owner.loop = event_base_new();
    assert_non_null(owner.loop);
    posters_begin(&owner, threads, posters); /* some are there before the loop knows of it */
    assert_int_equal(mailbox_attach(owner.mailbox, owner.loop, &error), STATUS_OK);
    event_base_dispatch(owner.loop);
    for (int i = 0; i < POSTERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(owner.received, owner.expected);
    mailbox_free(owner.mailbox);
    event_base_free(owner.loop);
}

/* In a process of its own: the receiver ends it. */
static void another_kind_is_not_taken(void **state)
{
    (void)state;
    for (int wrong = 0; wrong < 2; wrong++) {
        struct echo echo = { .left = 1 };
        struct error error;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            if (mailbox_new(&echo.mailbox, &error) != STATUS_OK || !freopen("/dev/null", "w", stderr))
                _exit(1);
            signal(SIGABRT, SIG_DFL);
            mailbox_post(echo.mailbox, &echo.message, wrong ? MESSAGE_BATCH : MESSAGE_TEST, on_echo);
            mailbox_drain(echo.mailbox);
            _exit(0);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(wrong ? WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT : WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_run_in_order_and_once),
        cmocka_unit_test(a_wait_ends_at_once_when_something_is_there),
        cmocka_unit_test(who_waits_can_be_woken_without_a_message),
        cmocka_unit_test(a_message_may_post_itself_again),
        cmocka_unit_test(another_kind_is_not_taken),
        cmocka_unit_test(many_posters_one_sleeper),
        cmocka_unit_test(a_loop_drains_it_by_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
