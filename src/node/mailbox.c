#include "node/mailbox.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct mailbox {
    pthread_mutex_t lock;
    struct message *first;
    struct message **last; /* where the next one is linked */
    int wake_fd;
    struct event *wake_event;
};

enum status mailbox_new(struct mailbox **ret_mailbox, struct error *err)
{
    struct mailbox *mailbox = calloc(1, sizeof *mailbox);
    if (!mailbox)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a mailbox");
    mailbox->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (mailbox->wake_fd < 0) {
        enum status status = error_set(err, STATUS_IO, "eventfd: %s", strerror(errno));
        free(mailbox);
        return status;
    }
    pthread_mutex_init(&mailbox->lock, NULL);
    mailbox->last = &mailbox->first;
    *ret_mailbox = mailbox;
    return STATUS_OK;
}

void mailbox_free(struct mailbox *mailbox)
{
    if (!mailbox)
        return;
    if (mailbox->wake_event)
        event_free(mailbox->wake_event);
    close(mailbox->wake_fd);
    pthread_mutex_destroy(&mailbox->lock);
    free(mailbox);
}

void *message_of(struct message *message, enum message_kind kind)
{
    assert(message->kind == kind);
    return message;
}

void mailbox_wake(struct mailbox *mailbox)
{
    uint64_t one = 1;
    ssize_t written = write(mailbox->wake_fd, &one, sizeof one);
    assert(written == sizeof one || errno == EAGAIN); /* EAGAIN: the counter is full, so it is awake */
    (void)written;
}

void mailbox_post(struct mailbox *mailbox, struct message *message, enum message_kind kind,
                  void (*run)(struct message *message))
{
    assert(run && kind != MESSAGE_NONE);
    message->run = run;
    message->kind = kind;
    message->next = NULL;
    pthread_mutex_lock(&mailbox->lock);
    bool was_empty = !mailbox->first;
    *mailbox->last = message;
    mailbox->last = &message->next;
    if (was_empty) /* under the lock: the owner may free the mailbox once it has seen the message */
        mailbox_wake(mailbox);
    pthread_mutex_unlock(&mailbox->lock);
}

bool mailbox_drain(struct mailbox *mailbox)
{
    uint64_t count;
    ssize_t got = read(mailbox->wake_fd, &count, sizeof count); /* before taking: a later post wakes again */
    (void)got;
    pthread_mutex_lock(&mailbox->lock);
    struct message *message = mailbox->first;
    mailbox->first = NULL;
    mailbox->last = &mailbox->first;
    pthread_mutex_unlock(&mailbox->lock);

    bool any = message != NULL;
    while (message) {
        struct message *next = message->next; /* run may free it or post it elsewhere */
        assert(message->run && message->kind != MESSAGE_NONE);
        message->run(message);
        message = next;
    }
    return any;
}

void mailbox_wait(struct mailbox *mailbox, int timeout_ms)
{
    struct pollfd waited = { .fd = mailbox->wake_fd, .events = POLLIN };
    poll(&waited, 1, timeout_ms); /* an interruption by a signal only wakes early */
}

#ifdef THREAD_SANITIZER
/*
 * libevent takes a socket that was closed out of epoll by its number, which another thread's new socket may have by then:
 * the kernel finds nothing to take out, but the sanitizer sees two threads at one descriptor.
 */
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race:epoll_ctl\n";
}
#endif

struct event_base *loop_new(void)
{
    struct event_config *config = event_config_new();
    if (!config)
        return NULL;
    /* Only one thread uses it, and changes of interest go to the kernel once a turn, not one by one. */
    event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
    event_config_set_flag(config, EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST);
    struct event_base *loop = event_base_new_with_config(config);
    event_config_free(config);
    return loop;
}

static void on_wake(UNUSED evutil_socket_t fd, UNUSED short what, void *context)
{
    mailbox_drain(context);
}

enum status mailbox_attach(struct mailbox *mailbox, struct event_base *loop, struct error *err)
{
    mailbox->wake_event = event_new(loop, mailbox->wake_fd, EV_READ | EV_PERSIST, on_wake, mailbox);
    if (!mailbox->wake_event || event_add(mailbox->wake_event, NULL) != 0)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a mailbox's event");
    return STATUS_OK;
}
