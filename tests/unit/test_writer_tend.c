/* What the writer makes of a store that could not do what it does by itself. */
#include "node/writer.h"

#include "support/check.h"

#include <pthread.h>
#include <stdatomic.h>

enum { TENDED = 3 };

struct tended {
    struct store store; /* first */
    enum status status;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int count;
    atomic_int failures;
};

static enum status tend(struct store *store, instant now, struct error *err)
{
    struct tended *tended = (struct tended *)store;
    (void)now;
    pthread_mutex_lock(&tended->lock);
    tended->count++;
    pthread_cond_broadcast(&tended->changed);
    pthread_mutex_unlock(&tended->lock);
    return tended->status == STATUS_OK ? STATUS_OK : error_set(err, tended->status, "the test's store fails");
}

static enum status outcome(struct store *store, bool *ret_applied, struct error *err)
{
    (void)store;
    (void)ret_applied;
    return error_set(err, STATUS_AWAY, "nobody asks");
}

static void on_failure(void *context, const struct error *error)
{
    struct tended *tended = context;
    check(error->text[0], "a failure without a sentence");
    pthread_mutex_lock(&tended->lock);
    atomic_fetch_add(&tended->failures, 1);
    pthread_cond_broadcast(&tended->changed);
    pthread_mutex_unlock(&tended->lock);
}

static instant now(void *context)
{
    (void)context;
    return 1000000;
}

/* A lock, a full disk, no memory: it is tried again. Only what makes the store useless ends the daemon. */
static void what_could_not_be_tended_is_tended_later(void **state)
{
    static const struct store_ops ops = { .name = "tended", .writers_max = 1, .tend = tend, .outcome = outcome };
    static const struct {
        enum status status;
        bool ends;
    } rows[] = {
        { STATUS_OK, false },        { STATUS_BUSY, false }, { STATUS_FULL, false },   { STATUS_NO_MEMORY, false },
        { STATUS_AWAY, false },      { STATUS_IO, true },    { STATUS_CORRUPT, true }, { STATUS_FENCED, true },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct tended tended = { .store = { .ops = &ops, .tend_soon = true }, .status = rows[i].status };
        struct writer_settings settings = { .store = &tended.store, .sync_always = true, .now = now,
                                            .on_failure = on_failure, .context = &tended };
        struct writer *writer;
        struct error err = { 0 };
        pthread_mutex_init(&tended.lock, NULL);
        pthread_cond_init(&tended.changed, NULL);
        assert_int_equal(writer_new(&settings, &writer, &err), STATUS_OK);
        pthread_mutex_lock(&tended.lock);
        while (tended.count < TENDED && atomic_load(&tended.failures) == 0)
            pthread_cond_wait(&tended.changed, &tended.lock);
        pthread_mutex_unlock(&tended.lock);
        writer_free(writer);
        check(atomic_load(&tended.failures) == rows[i].ends, "%s", status_name(rows[i].status));
        pthread_cond_destroy(&tended.changed);
        pthread_mutex_destroy(&tended.lock);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_could_not_be_tended_is_tended_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
