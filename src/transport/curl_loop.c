#include "transport/curl_loop.h"

#include "base/clock.h"
#include "base/hash.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    REMIND_MS = 250,
    LATE_MS = 100,           /* a timer this late was paused */
    GRACE_MS = 1000,         /* for what lies in the sockets to be read */
    REST_LOOK_MS = 1050,     /* libcurl looks for ended connections once a second at most */
    REST_MS_MIN = 2000,      /* a shorter rest is a pause in work */
    REST_MS_MAX = 60 * 1000,
    REST_PER_ADDRESS_MAX = 8,
    REST_MAX = 128,
};

static void sweep_end(struct curl_loop *loop);

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
        if (private_data == loop)
            sweep_end(loop);
        else
            loop->done(private_data, result);
    }
}

/* --- sockets ----------------------------------------------------------------------------------- */

struct curl_watch {
    struct event *event; /* NULL: none yet */
    short wanted;        /* what the event is registered for; 0: it is not */
    bool saved;           /* of a connection that was made: it is closed by curl_loop_close, and not without it */
    bool idle;           /* libcurl has no use for it at present */
    int64_t idle_since_ms;
    uint64_t address;    /* of the other side */
};

static void look_at_rest(struct curl_loop *loop, int ms)
{
    event_add(loop->rest, &(struct timeval){ .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 });
}

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

static void rest_begin(struct curl_loop *loop, struct curl_watch *watch)
{
    watch->idle = true;
    watch->idle_since_ms = clock_ticks_ms();
    if (!event_pending(loop->rest, EV_TIMEOUT, NULL))
        look_at_rest(loop, REST_LOOK_MS);
}

/*
 * Of a name with several addresses libcurl gives up a silent one when half of the time to connect has passed. 7.88 closes
 * its socket then and waits to be called before it tries the next, but has nothing left that would call it: so every
 * handle gets a turn soon after a socket went that was never connected.
 */
static void on_reminder(UNUSED evutil_socket_t fd, UNUSED short what, void *context)
{
    struct curl_loop *loop = context;
    int running;
    CURL_IGNORE_DEPRECATION(curl_multi_socket_all(loop->multi, &running);) /* no other call runs a handle without a socket */
    collect(loop);
}

static void remind_later(struct curl_loop *loop)
{
    if (!event_pending(loop->reminder, EV_TIMEOUT, NULL))
        event_add(loop->reminder, &(struct timeval){ .tv_usec = REMIND_MS * 1000 });
}

/* --- pauses -------------------------------------------------------------------------------------- */

static void on_caught_up(UNUSED evutil_socket_t fd, UNUSED short what, void *context)
{
    struct curl_loop *loop = context;
    loop->grace(loop, false);
    on_reminder(-1, 0, loop); /* whose time ran out meanwhile has no timer of its own any more */
}

/* Before libcurl hears of anything. */
static void notice_pause(struct curl_loop *loop)
{
    bool late = loop->due_ms >= 0 && clock_ticks_ms() - loop->due_ms > LATE_MS;
    if (!late || !loop->grace || event_pending(loop->catch_up, EV_TIMEOUT, NULL))
        return;
    loop->grace(loop, true);
    event_add(loop->catch_up, &(struct timeval){ .tv_sec = GRACE_MS / 1000, .tv_usec = GRACE_MS % 1000 * 1000 });
}

static void on_socket_ready(evutil_socket_t fd, short what, void *context)
{
    struct curl_loop *loop = context;
    struct curl_watch *watch = &loop->watches[fd];
    int flags = (what & EV_READ ? CURL_CSELECT_IN : 0) | (what & EV_WRITE ? CURL_CSELECT_OUT : 0);
    int running;
    if (watch->idle) { /* closed by the other side, most likely */
        event_del(watch->event);
        watch->wanted = 0;
        look_at_rest(loop, 0);
        return;
    }
    notice_pause(loop);
    curl_multi_socket_action(loop->multi, fd, flags, &running);
    collect(loop);
}

static int on_multi_socket(UNUSED CURL *curl, curl_socket_t fd, int what, void *context, UNUSED void *socket_context)
{
    struct curl_loop *loop = context;
    struct curl_watch *watch = watch_at(loop, fd);
    if (!watch)
        return -1;
    watch->idle = what == CURL_POLL_REMOVE;
    if (watch->idle && watch->saved) {
        rest_begin(loop, watch);
        return 0;
    }
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
 * afterwards, or not at all if the next socket has got the same one by then. So such a socket is never pooled; and what is
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
    if (!(watch = watch_at(loop, fd)))
        return;
    char *ip = NULL;
    long port = 0;
    curl_easy_getinfo(curl, CURLINFO_PRIMARY_IP, &ip);
    curl_easy_getinfo(curl, CURLINFO_PRIMARY_PORT, &port);
    watch->saved = true;
    if (watch->wanted == 0) /* the farewell came before anybody knew that it would be pooled */
        rest_begin(loop, watch);
    watch->address = hash_slice((uint64_t)port, 0, slice_from(ip));
}

int curl_loop_close(void *loop, curl_socket_t fd)
{
    struct curl_loop *closing = loop;
    if ((size_t)fd < closing->watch_count)
        watch_drop(&closing->watches[fd]);
    return close(fd);
}

/* --- rest --------------------------------------------------------------------------------------- */

/* A connection at rest, as one look finds it. */
struct resting {
    uint64_t address;
    int64_t since_ms;
    int fd;
};

/* By address, the latest first. */
static int resting_compare(const void *a, const void *b)
{
    const struct resting *left = a, *right = b;
    if (left->address != right->address)
        return left->address < right->address ? -1 : 1;
    return (left->since_ms < right->since_ms) - (left->since_ms > right->since_ms);
}

static size_t count_resting(const struct curl_loop *loop)
{
    size_t count = 0;
    for (size_t i = 0; i < loop->watch_count; i++)
        count += loop->watches[i].idle && loop->watches[i].saved;
    return count;
}

static bool has_ended(int fd)
{
    struct pollfd asked = { .fd = fd, .events = POLLRDHUP };
    return poll(&asked, 1, 0) > 0;
}

/*
 * Ends what has rested for too long or is too much, and tells how many have ended. libcurl has no call that closes one: it
 * takes a connection that is shut down for one that the other side has closed.
 */
static size_t rest_end(struct resting *resting, size_t count, int64_t now_ms)
{
    size_t ended = 0, saved = 0, of_address = 0;
    if (count > 0)
        qsort(resting, count, sizeof *resting, resting_compare);
    for (size_t i = 0; i < count; i++) {
        int64_t rested_ms = now_ms - resting[i].since_ms;
        of_address = i > 0 && resting[i - 1].address == resting[i].address ? of_address + 1 : 1;
        bool spare = rested_ms >= REST_MS_MIN && (of_address > REST_PER_ADDRESS_MAX || saved >= REST_MAX);
        if (spare || rested_ms >= REST_MS_MAX)
            shutdown(resting[i].fd, SHUT_RDWR);
        else
            saved++;
        ended += has_ended(resting[i].fd);
    }
    return ended;
}

static curl_socket_t open_nothing(UNUSED void *context, UNUSED curlsocktype purpose, UNUSED struct curl_sockaddr *address)
{
    return CURL_SOCKET_BAD;
}

static void sweep_end(struct curl_loop *loop)
{
    curl_multi_remove_handle(loop->multi, loop->sweeper);
    loop->sweeping = false;
}

/* libcurl closes all ended connections when it begins a transfer: this one goes nowhere. */
static void sweep(struct curl_loop *loop)
{
    if (loop->sweeping || (!loop->sweeper && !(loop->sweeper = curl_easy_init())))
        return;
    curl_easy_setopt(loop->sweeper, CURLOPT_URL, "http://127.0.0.1:1/");
    curl_easy_setopt(loop->sweeper, CURLOPT_PROXY, "");
    curl_easy_setopt(loop->sweeper, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(loop->sweeper, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(loop->sweeper, CURLOPT_OPENSOCKETFUNCTION, open_nothing);
    curl_easy_setopt(loop->sweeper, CURLOPT_PRIVATE, loop);
    loop->sweeping = curl_multi_add_handle(loop->multi, loop->sweeper) == CURLM_OK;
}

static void on_rest(UNUSED evutil_socket_t fd, UNUSED short what, void *context)
{
    struct curl_loop *loop = context;
    size_t count = count_resting(loop), filled = 0;
    struct resting *resting = count > 0 ? calloc(count, sizeof *resting) : NULL;
    for (size_t i = 0; resting && i < loop->watch_count; i++) {
        const struct curl_watch *watch = &loop->watches[i];
        if (watch->idle && watch->saved)
            resting[filled++] = (struct resting){ watch->address, watch->idle_since_ms, (int)i };
    }
    if (rest_end(resting, filled, clock_ticks_ms()) > 0)
        sweep(loop);
    free(resting);
    if (count > 0)
        look_at_rest(loop, REST_LOOK_MS);
}

/* --- time --------------------------------------------------------------------------------------- */

static void on_timer(UNUSED evutil_socket_t fd, UNUSED short what, void *context)
{
    struct curl_loop *loop = context;
    int running;
    notice_pause(loop);
    curl_multi_socket_action(loop->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    collect(loop);
}

static int on_multi_timer(UNUSED CURLM *multi, long timeout_ms, void *context)
{
    struct curl_loop *loop = context;
    loop->due_ms = timeout_ms < 0 ? -1 : clock_ticks_ms() + timeout_ms;
    if (timeout_ms < 0) {
        event_del(loop->timer);
        return 0;
    }
    struct timeval wait = { .tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000 };
    return event_add(loop->timer, &wait) == 0 ? 0 : -1;
}

bool curl_loop_init(struct curl_loop *loop, struct event_base *base, void (*done)(void *private_data, CURLcode result))
{
    *loop = (struct curl_loop){ .base = base, .multi = curl_multi_init(), .done = done, .due_ms = -1 };
    loop->timer = event_new(base, -1, 0, on_timer, loop);
    loop->reminder = event_new(base, -1, 0, on_reminder, loop);
    loop->rest = event_new(base, -1, 0, on_rest, loop);
    loop->catch_up = event_new(base, -1, 0, on_caught_up, loop);
    if (!loop->multi || !loop->timer || !loop->reminder || !loop->rest || !loop->catch_up)
        return false;
    curl_multi_setopt(loop->multi, CURLMOPT_SOCKETFUNCTION, on_multi_socket);
    curl_multi_setopt(loop->multi, CURLMOPT_SOCKETDATA, loop);
    curl_multi_setopt(loop->multi, CURLMOPT_TIMERFUNCTION, on_multi_timer);
    curl_multi_setopt(loop->multi, CURLMOPT_TIMERDATA, loop);
    return true;
}

void curl_loop_release(struct curl_loop *loop)
{
    if (loop->sweeping)
        sweep_end(loop);
    curl_easy_cleanup(loop->sweeper);
    if (loop->multi)
        curl_multi_cleanup(loop->multi); /* closes the sockets */
    for (size_t i = 0; i < loop->watch_count; i++)
        watch_drop(&loop->watches[i]);
    free(loop->watches);
    if (loop->timer)
        event_free(loop->timer);
    if (loop->reminder)
        event_free(loop->reminder);
    if (loop->rest)
        event_free(loop->rest);
    if (loop->catch_up)
        event_free(loop->catch_up);
}
