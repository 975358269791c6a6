#include "transport/curl_loop.h"

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

static void on_socket_ready(evutil_socket_t fd, short what, void *context)
{
    struct curl_loop *loop = context;
    int flags = (what & EV_READ ? CURL_CSELECT_IN : 0) | (what & EV_WRITE ? CURL_CSELECT_OUT : 0);
    int running;
    curl_multi_socket_action(loop->multi, fd, flags, &running);
    collect(loop);
}

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

static int on_multi_socket(CURL *curl, curl_socket_t fd, int what, void *context, void *socket_context)
{
    struct curl_loop *loop = context;
    struct event *event = socket_context;
    (void)curl;
    if (what == CURL_POLL_REMOVE) {
        if (event)
            event_free(event);
        curl_multi_assign(loop->multi, fd, NULL);
        return 0;
    }
    short wanted = (short)((what & CURL_POLL_IN ? EV_READ : 0) | (what & CURL_POLL_OUT ? EV_WRITE : 0) | EV_PERSIST);
    if (!event) {
        event = event_new(loop->base, fd, wanted, on_socket_ready, loop);
        if (!event)
            return -1;
        curl_multi_assign(loop->multi, fd, event);
    } else {
        event_del(event);
        event_assign(event, loop->base, fd, wanted, on_socket_ready, loop);
    }
    return event_add(event, NULL) == 0 ? 0 : -1;
}

bool curl_loop_init(struct curl_loop *loop, struct event_base *base, void (*done)(void *private_data, CURLcode result))
{
    *loop = (struct curl_loop){ .base = base, .multi = curl_multi_init(), .done = done };
    loop->timer = event_new(base, -1, 0, on_timer, loop);
    if (!loop->multi || !loop->timer)
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
        curl_multi_cleanup(loop->multi);
    if (loop->timer)
        event_free(loop->timer);
}
