#include "transport/http/searcher.h"

#include "base/clock.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct searcher {
    pthread_t thread;
    bool started;
    pthread_mutex_t lock;
    pthread_cond_t work, rest; /* something came; something ended */
    struct search *owners;     /* the first of each, in the order of their turns */
    struct search *done;       /* run, and not reported yet */
    struct search **done_end;
    bool stopping;
    int64_t wait_ms_max;
    int wake_fd;
    struct event *wake_event;
};

/* ---- the queue, under the lock ---- */

static void append_owner(struct searcher *searcher, struct search *first)
{
    struct search **link = &searcher->owners;
    while (*link)
        link = &(*link)->other;
    first->other = NULL;
    *link = first;
}

static void append(struct searcher *searcher, struct search *search)
{
    struct search *first = searcher->owners;
    while (first && first->owner != search->owner)
        first = first->other;
    search->next = NULL;
    search->last = search;
    if (first) {
        first->last->next = search;
        first->last = search;
    } else {
        append_owner(searcher, search);
    }
}

/* Of the owner whose turn it is; its next one comes after everybody else's. NULL: there is none. */
static struct search *take(struct searcher *searcher)
{
    struct search *search = searcher->owners;
    if (!search)
        return NULL;
    searcher->owners = search->other;
    if (search->next) {
        search->next->last = search->last;
        append_owner(searcher, search->next);
    }
    return search;
}

/* Its owner keeps the turn. */
static void remove_queued(struct searcher *searcher, struct search *search)
{
    struct search **link = &searcher->owners;
    while ((*link)->owner != search->owner)
        link = &(*link)->other;
    struct search *first = *link, *before = NULL;
    for (struct search *at = first; at != search; at = at->next)
        before = at;
    if (before) {
        before->next = search->next;
        if (first->last == search)
            first->last = before;
    } else if (search->next) {
        search->next->last = search->last;
        search->next->other = search->other;
        *link = search->next;
    } else {
        *link = search->other;
    }
}

/* ---- the thread ---- */

static void *work(void *context)
{
    struct searcher *searcher = context;
    pthread_mutex_lock(&searcher->lock);
    while (!searcher->stopping) {
        struct search *search = take(searcher);
        if (!search) {
            pthread_cond_wait(&searcher->work, &searcher->lock);
            continue;
        }
        search->queued = false;
        search->running = true;
        search->late = clock_ticks_ms() - search->since_ms > searcher->wait_ms_max;
        pthread_mutex_unlock(&searcher->lock);
        if (!search->late)
            search->run(search);
        pthread_mutex_lock(&searcher->lock);
        search->running = false;
        search->next = NULL;
        *searcher->done_end = search;
        searcher->done_end = &search->next;
        pthread_cond_signal(&searcher->rest);
        uint64_t one = 1;
        ssize_t written = write(searcher->wake_fd, &one, sizeof one);
        assert(written == sizeof one || errno == EAGAIN); /* EAGAIN: the counter is full, so the loop is awake */
        (void)written;
    }
    pthread_mutex_unlock(&searcher->lock);
    return NULL;
}

/* Under the lock. */
static void forget_done(struct searcher *searcher, struct search **link)
{
    struct search *search = *link;
    *link = search->next;
    if (searcher->done_end == &search->next)
        searcher->done_end = link;
}

static void on_done(evutil_socket_t fd, UNUSED short what, void *context)
{
    struct searcher *searcher = context;
    struct search *search;
    uint64_t count;
    ssize_t got = read(fd, &count, sizeof count); /* before taking: what ends later wakes again */
    (void)got;
    do { /* one by one: each may take another back */
        pthread_mutex_lock(&searcher->lock);
        search = searcher->done;
        if (search)
            forget_done(searcher, &searcher->done);
        pthread_mutex_unlock(&searcher->lock);
        if (search)
            search->done(search); /* may free it, and give new work */
    } while (search);
}

/* ---- from the loop's thread ---- */

void searcher_give(struct searcher *searcher, struct search *search)
{
    assert(search->run && search->done);
    search->since_ms = clock_ticks_ms();
    search->late = search->running = false;
    search->queued = true;
    pthread_mutex_lock(&searcher->lock);
    append(searcher, search);
    pthread_cond_signal(&searcher->work);
    pthread_mutex_unlock(&searcher->lock);
}

void searcher_take_back(struct searcher *searcher, struct search *search)
{
    pthread_mutex_lock(&searcher->lock);
    while (search->running)
        pthread_cond_wait(&searcher->rest, &searcher->lock);
    if (search->queued) {
        remove_queued(searcher, search);
        search->queued = false;
        search->late = true;
    } else {
        struct search **link = &searcher->done;
        while (*link && *link != search)
            link = &(*link)->next;
        assert(*link); /* one that was reported is over */
        forget_done(searcher, link);
    }
    pthread_mutex_unlock(&searcher->lock);
}

/* Signals are the other threads'. */
static bool thread_start(struct searcher *searcher)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    searcher->started = pthread_create(&searcher->thread, NULL, work, searcher) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return searcher->started;
}

enum status searcher_new(struct event_base *loop, int64_t wait_ms_max, struct searcher **ret_searcher, struct error *err)
{
    struct searcher *searcher = calloc(1, sizeof *searcher);
    if (!searcher)
        return error_set(err, STATUS_NO_MEMORY, "no memory for searching answers");
    pthread_mutex_init(&searcher->lock, NULL);
    pthread_cond_init(&searcher->work, NULL);
    pthread_cond_init(&searcher->rest, NULL);
    searcher->wait_ms_max = wait_ms_max;
    searcher->done_end = &searcher->done;
    searcher->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (searcher->wake_fd >= 0)
        searcher->wake_event = event_new(loop, searcher->wake_fd, EV_READ | EV_PERSIST, on_done, searcher);
    if (!searcher->wake_event || event_add(searcher->wake_event, NULL) != 0 || !thread_start(searcher)) {
        searcher_free(searcher);
        return error_set(err, STATUS_NO_MEMORY, "no thread or descriptor for searching answers");
    }
    *ret_searcher = searcher;
    return STATUS_OK;
}

void searcher_free(struct searcher *searcher)
{
    if (!searcher)
        return;
    pthread_mutex_lock(&searcher->lock);
    assert(!searcher->owners && !searcher->done);
    searcher->stopping = true;
    pthread_cond_signal(&searcher->work);
    pthread_mutex_unlock(&searcher->lock);
    if (searcher->started)
        pthread_join(searcher->thread, NULL);
    if (searcher->wake_event)
        event_free(searcher->wake_event);
    if (searcher->wake_fd >= 0)
        close(searcher->wake_fd);
    pthread_cond_destroy(&searcher->work);
    pthread_cond_destroy(&searcher->rest);
    pthread_mutex_destroy(&searcher->lock);
    free(searcher);
}
