/* Work on answers: in turns, away from the loop, and never waiting without bound. */
#include "transport/http/searcher.h"

#include "support/check.h"

#include <event2/event.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static struct event_base *loop;
static struct searcher *searcher;
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER; /* whoever runs waits for it */
static char order[64];                                   /* as they ran */

struct piece {
    struct search search;
    char name;
    int run, done;
};

static void run(struct search *search)
{
    struct piece *piece = (struct piece *)search;
    pthread_mutex_lock(&held);
    piece->run++;
    strncat(order, &piece->name, 1);
    pthread_mutex_unlock(&held);
}

static void done(struct search *search)
{
    ((struct piece *)search)->done++;
}

static void open_searcher(int64_t wait_ms_max)
{
    struct error err;
    loop = event_base_new();
    order[0] = '\0';
    check(searcher_new(loop, wait_ms_max, &searcher, &err) == STATUS_OK, "%s", err.text);
}

static void close_searcher(void)
{
    searcher_free(searcher);
    event_base_free(loop);
}

static void give(struct piece *piece, char name, const void *owner)
{
    *piece = (struct piece){ .search = { .owner = owner, .run = run, .done = done }, .name = name };
    searcher_give(searcher, &piece->search);
}

static void wait_for(const struct piece *piece)
{
    while (piece->done == 0)
        event_base_loop(loop, EVLOOP_ONCE);
    check(piece->done == 1, "%c was told of %d times", piece->name, piece->done);
}

/* Ten of one are there before the first of another: it waits for one of them, not for ten. */
static void owners_take_turns(void **state)
{
    struct piece flood[10], other, third;
    (void)state;
    open_searcher(INT64_MAX);
    pthread_mutex_lock(&held);
    for (size_t i = 0; i < COUNT_OF(flood); i++)
        give(&flood[i], (char)('a' + i), flood);
    give(&other, 'X', &other);
    give(&third, 'Y', &third);
    pthread_mutex_unlock(&held);
    for (size_t i = 0; i < COUNT_OF(flood); i++)
        wait_for(&flood[i]);
    wait_for(&other);
    wait_for(&third);
    check(strchr(order, 'X') <= order + 2 && strchr(order, 'Y') <= order + 3, "%s", order);
    check(strspn(order, "aXYbcdefghij") == 12 && strchr(order, 'a') < strchr(order, 'b') &&
              strchr(order, 'b') < strchr(order, 'c') && strchr(order, 'i') < strchr(order, 'j'),
          "%s", order);
    close_searcher();
}

static void what_waits_too_long_is_not_run(void **state)
{
    struct piece piece;
    (void)state;
    open_searcher(-1); /* less than any wait */
    give(&piece, 'a', &piece);
    wait_for(&piece);
    assert_int_equal(piece.run, 0);
    assert_true(piece.search.late);
    close_searcher();
}

/* The first, one between and the last of a queue, one that runs, one that has run. */
static void work_is_taken_back(void **state)
{
    struct piece pieces[6], other;
    (void)state;
    open_searcher(INT64_MAX);
    pthread_mutex_lock(&held);
    for (size_t i = 0; i < COUNT_OF(pieces); i++)
        give(&pieces[i], (char)('a' + i), pieces);
    give(&other, 'X', &other);
    static const size_t taken[] = { 5, 3, 4 };
    for (size_t i = 0; i < COUNT_OF(taken); i++) {
        searcher_take_back(searcher, &pieces[taken[i]].search);
        assert_true(pieces[taken[i]].search.late);
    }
    pthread_mutex_unlock(&held);
    searcher_take_back(searcher, &pieces[0].search); /* runs, or has run, or was never begun */
    assert_int_equal(pieces[0].run, !pieces[0].search.late);
    wait_for(&pieces[1]);
    wait_for(&pieces[2]);
    wait_for(&other);
    for (size_t i = 3; i < 6; i++)
        assert_int_equal(pieces[i].run + pieces[i].done, 0);
    assert_int_equal(pieces[0].done, 0);
    close_searcher();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(owners_take_turns),
        cmocka_unit_test(what_waits_too_long_is_not_run),
        cmocka_unit_test(work_is_taken_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
