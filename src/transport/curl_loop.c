#include "transport/curl_loop.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REMIND_MS = 250 };

static void collect(struct curl_loop *loop)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(loop->multi, &left))) {
        void *private_data = NULL;
        if (message->msg != CURLMSG_DONE)
            continue;
        CURLcode result = message->data.result; /* the message goes with its handle */
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&private_data);
        loop->done(private_data, result);
    }
}

/* --- sockets ----------------------------------------------------------------------------------- */

struct curl_watch {
    struct event *event; /* NULL: none yet */
    short wanted;        /* what the event is registered for; 0: it is not */
    bool kept;           /* of a connection that was made: it is closed by curl_loop_close, and not without it */
    bool idle;           /* libcurl has no use for it at present */
};

/* NULL: no memory. */
static struct curl_watch *watch_at(struct curl_loop *loop, curl_socket_t fd)
{
    size_t needed = (size_t)fd + 1;
    if (needed > loop->watch_count) {
        size_t count = needed < 2 * loop->watch_count ? 2 * loop->watch_count : needed;
        struct curl_watch *grown = realloc(loop->watches, count * sizeof *grown);
        if (!grown)
            return NULL;
        memset(grown + loop->watch_count, 0, (count - loop->watch_count) * sizeof *grown);
        loop->watches = grown;
        loop->watch_count = count;
    }
    return &loop->watches[fd];
}

static void watch_drop(struct curl_watch *watch)
{
    if (watch->event)
        event_free(watch->event);
    *watch = (struct curl_watch){ .event = NULL };
}

/*
 * Of a name with several addresses libcurl gives up a silent one when half of the time to connect has passed. 7.88 closes
 * its socket then and waits to be called before it tries the next, but has nothing left that would call it: so every
 * handle gets a turn soon after a socket went that was never connected.
 */
static void on_reminder(evutil_socket_t fd, short what, void *context)
{
    struct curl_loop *loop = context;
    int running;
    (void)fd;
    (void)what;
    CURL_IGNORE_DEPRECATION(curl_multi_socket_all(loop->multi, &running);) /* no other call runs a handle without a socket */
    collect(loop);
}

static void remind_later(struct curl_loop *loop)
{
    if (!event_pending(loop->reminder, EV_TIMEOUT, NULL))
        event_add(loop->reminder, &(struct timeval){ .tv_usec = REMIND_MS * 1000 });
}

static void on_socket_ready(evutil_socket_t fd, short what, void *context)
{
    struct curl_loop *loop = context;
    struct curl_watch *watch = &loop->watches[fd];
    int flags = (what & EV_READ ? CURL_CSELECT_IN : 0) | (what & EV_WRITE ? CURL_CSELECT_OUT : 0);
    int running;
    if (watch->idle) { /* closed by the other side, most likely; libcurl looks before it uses the socket again */
        event_del(watch->event);
        watch->wanted = 0;
        return;
    }
    curl_multi_socket_action(loop->multi, fd, flags, &running);
    collect(loop);
}

static int on_multi_socket(CURL *curl, curl_socket_t fd, int what, void *context, void *socket_context)
{
    struct curl_loop *loop = context;
    struct curl_watch *watch = watch_at(loop, fd);
    (void)curl;
    (void)socket_context;
    if (!watch)
        return -1;
    watch->idle = what == CURL_POLL_REMOVE;
    if (watch->idle && watch->kept)
        return 0;
    if (watch->idle) {
        if (watch->wanted & EV_WRITE)
            remind_later(loop);
        watch_drop(watch);
        return 0;
    }
    short wanted = (short)((what & CURL_POLL_IN ? EV_READ : 0) | (what & CURL_POLL_OUT ? EV_WRITE : 0) | EV_PERSIST);
    if (watch->wanted == wanted)
        return 0;
    if (!watch->event && !(watch->event = event_new(loop->base, fd, wanted, on_socket_ready, loop)))
        return -1;
    if (watch->wanted != 0)
        event_del(watch->event);
    watch->wanted = 0;
    event_assign(watch->event, loop->base, fd, wanted, on_socket_ready, loop);
    if (event_add(watch->event, NULL) != 0)
        return -1;
    watch->wanted = wanted;
    return 0;
}

/*
 * Before a connection is made libcurl (7.88) closes its socket without a word and says farewell to the number only
 * afterwards, or not at all if the next socket has got the same one by then. So such a socket is never kept; and what is
 * still registered for a number that is new again goes for the new socket: the kernel forgot it with the old one.
 */
curl_socket_t curl_loop_open(struct curl_loop *loop, const struct curl_sockaddr *address)
{
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    struct curl_watch *watch = fd >= 0 && (size_t)fd < loop->watch_count ? &loop->watches[fd] : NULL;
    if (watch && watch->wanted != 0) {
        event_del(watch->event);
        if (event_add(watch->event, NULL) != 0)
            watch->wanted = 0;
    }
    return fd;
}

void curl_loop_keep(struct curl_loop *loop, CURL *curl)
{
    curl_socket_t fd = CURL_SOCKET_BAD;
    struct curl_watch *watch;
    if (curl_easy_getinfo(curl, CURLINFO_ACTIVESOCKET, &fd) != CURLE_OK || fd == CURL_SOCKET_BAD)
        return;
    if ((watch = watch_at(loop, fd)))
        watch->kept = true;
}

int curl_loop_close(void *loop, curl_socket_t fd)
{
    struct curl_loop *closing = loop;
    if ((size_t)fd < closing->watch_count)
        watch_drop(&closing->watches[fd]);
    return close(fd);
}

/* --- time --------------------------------------------------------------------------------------- */

static void on_timer(evutil_socket_t fd, short what, void *context)
{
    struct curl_loop *loop = context;
    int running;
    (void)fd;
    (void)what;
    curl_multi_socket_action(loop->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    collect(loop);
}

static int on_multi_timer(CURLM *multi, long timeout_ms, void *context)
{
    struct curl_loop *loop = context;
    (void)multi;
    if (timeout_ms < 0) {
        event_del(loop->timer);
        return 0;
    }
    struct timeval wait = { .tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000 };
    return event_add(loop->timer, &wait) == 0 ? 0 : -1;
}

bool curl_loop_init(struct curl_loop *loop, struct event_base *base, void (*done)(void *private_data, CURLcode result))
{
    *loop = (struct curl_loop){ .base = base, .multi = curl_multi_init(), .done = done };
    loop->timer = event_new(base, -1, 0, on_timer, loop);
    loop->reminder = event_new(base, -1, 0, on_reminder, loop);
    if (!loop->multi || !loop->timer || !loop->reminder)
        return false;
    curl_multi_setopt(loop->multi, CURLMOPT_SOCKETFUNCTION, on_multi_socket);
    curl_multi_setopt(loop->multi, CURLMOPT_SOCKETDATA, loop);
    curl_multi_setopt(loop->multi, CURLMOPT_TIMERFUNCTION, on_multi_timer);
    curl_multi_setopt(loop->multi, CURLMOPT_TIMERDATA, loop);
    return true;
}

void curl_loop_release(struct curl_loop *loop)
{
    if (loop->multi)
        curl_multi_cleanup(loop->multi); /* closes the sockets */
    for (size_t i = 0; i < loop->watch_count; i++)
        watch_drop(&loop->watches[i]);
    free(loop->watches);
    if (loop->timer)
        event_free(loop->timer);
    if (loop->reminder)
        event_free(loop->reminder);
}
