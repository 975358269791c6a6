/*
 * The thread that reads the store for who must not wait: everything is answered, in the thread of who asked, and a long one
 * holds up nobody.
 */
#include "node/reads.h"
#include "store/memory/memory.h"
#include "support/check.h"

#include <pthread.h>
#include <semaphore.h>

enum { READS = 200, PIECES = 1000 };

struct asked {
    struct store_read read; /* first */
    pthread_t of;
    int *order, *count;
    int number;
    int pieces;
    sem_t *all_asked; /* the first piece waits until the others stand behind it */
};

static enum status read_lanes(struct store_read *read, struct store_reader *reader, struct error *err)
{
    struct asked *asked = (struct asked *)read;
    struct lane *lanes;
    size_t count;
    assert_false(pthread_equal(pthread_self(), asked->of));
    if (asked->all_asked && read->pieces == 0)
        assert_int_equal(sem_wait(asked->all_asked), 0);
    read->more = (int)read->pieces + 1 < asked->pieces;
    return reader->ops->reader_lanes(reader, 0, 10, &read->memory, &lanes, &count, err);
}

static void note(struct store_read *read)
{
    struct asked *asked = (struct asked *)read;
    assert_true(pthread_equal(pthread_self(), asked->of));
    assert_int_equal(read->status, STATUS_OK);
    assert_int_equal(read->pieces, asked->pieces);
    arena_release(&read->memory);
    asked->order[(*asked->count)++] = asked->number;
}

static void all_are_answered(void **state)
{
    struct store_settings settings = { .sync_always = true };
    struct store *store;
    struct reads *reads;
    struct mailbox *mailbox;
    struct error error;
    static struct asked asked[READS];
    static int order[READS];
    int count = 0;
    sem_t all_asked;
    (void)state;
    assert_int_equal(sem_init(&all_asked, 0, 0), 0);
    assert_int_equal(store_memory_open(SLICE(""), &settings, &store, &error), STATUS_OK);
    assert_int_equal(mailbox_new(&mailbox, &error), STATUS_OK);
    assert_int_equal(reads_new(store, &reads, &error), STATUS_OK);
    for (int i = 0; i < READS; i++) {
        asked[i] = (struct asked){ .read = { .run = read_lanes, .done = note, .reply_to = mailbox }, .of = pthread_self(),
                                   .order = order, .count = &count, .number = i, .pieces = i == 0 ? PIECES : 1,
                                   .all_asked = i == 0 ? &all_asked : NULL };
        reads_submit(reads, &asked[i].read);
    }
    assert_int_equal(sem_post(&all_asked), 0);
    for (int i = 0; i < 100 && count < READS / 2; i++) {
        mailbox_wait(mailbox, 600);
        mailbox_drain(mailbox);
    }
    reads_free(reads); /* answers the rest */
    mailbox_drain(mailbox);
    assert_int_equal(count, READS);
    assert_int_equal(order[0], 1); /* the long one came first, and is last */
    assert_int_equal(order[READS - 1], 0);
    mailbox_free(mailbox);
    sem_destroy(&all_asked);
    store->ops->close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(all_are_answered) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
