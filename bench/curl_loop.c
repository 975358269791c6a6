/*
 * curl_loop.c - the bare loop: posts with libcurl on libevent and nothing else.
 *
 *   curl_loop URL JOBS CONCURRENCY
 *
 * No queue, no store, no decision: what a sender on these two libraries can reach at most on this machine. Prints one
 * JSON object.
 */
#include "common.h"

#include <curl/curl.h>
#include <event2/event.h>

enum { PAYLOAD_BYTES = 512, CONCURRENCY_MAX = 1024 };

struct loop {
    struct event_base *base;
    struct event *timer;
    CURLM *multi;
    struct curl_slist *headers;
    const char *url;
    long jobs, started, done, failed;
    char payload[PAYLOAD_BYTES];
};

static size_t body_discard(char *data, size_t size, size_t count, void *arg)
{
    (void)data;
    (void)arg;
    return size * count;
}

static void easy_set_up(struct loop *loop, CURL *easy)
{
    curl_easy_setopt(easy, CURLOPT_URL, loop->url);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, loop->payload);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)PAYLOAD_BYTES);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, loop->headers);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, body_discard);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 30000L);
}

/* Sends again on the handle, or ends it when all were sent. */
static void easy_next(struct loop *loop, CURL *easy)
{
    if (loop->started == loop->jobs) {
        curl_easy_cleanup(easy);
        return;
    }
    loop->started++;
    if (curl_multi_add_handle(loop->multi, easy) != CURLM_OK)
        die("curl_multi_add_handle failed");
}

static void finished_collect(struct loop *loop)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(loop->multi, &left))) {
        if (message->msg != CURLMSG_DONE)
            continue;
        CURL *easy = message->easy_handle;
        long status = 0;
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
        if (message->data.result == CURLE_OK && status == 200)
            loop->done++;
        else
            loop->failed++;
        curl_multi_remove_handle(loop->multi, easy);
        easy_next(loop, easy);
    }
    if (loop->done + loop->failed == loop->jobs)
        event_base_loopbreak(loop->base);
}

static void on_socket(evutil_socket_t fd, short what, void *arg)
{
    struct loop *loop = arg;
    int running, action = (what & EV_READ ? CURL_CSELECT_IN : 0) | (what & EV_WRITE ? CURL_CSELECT_OUT : 0);
    curl_multi_socket_action(loop->multi, fd, action, &running);
    finished_collect(loop);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct loop *loop = arg;
    int running;
    (void)fd;
    (void)what;
    curl_multi_socket_action(loop->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    finished_collect(loop);
}

static int timer_wanted(CURLM *multi, long wait_ms, void *arg)
{
    struct loop *loop = arg;
    (void)multi;
    if (wait_ms < 0)
        return evtimer_del(loop->timer);
    struct timeval wait = { .tv_sec = wait_ms / 1000, .tv_usec = wait_ms % 1000 * 1000 };
    return evtimer_add(loop->timer, &wait);
}

static int socket_wanted(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg)
{
    struct loop *loop = arg;
    struct event *event = socket_arg;
    (void)easy;
    if (event) {
        event_free(event);
        curl_multi_assign(loop->multi, fd, NULL);
    }
    if (what == CURL_POLL_REMOVE)
        return 0;
    short wanted = (short)(EV_PERSIST | (what & CURL_POLL_IN ? EV_READ : 0) | (what & CURL_POLL_OUT ? EV_WRITE : 0));
    event = event_new(loop->base, fd, wanted, on_socket, loop);
    if (!event || event_add(event, NULL) != 0)
        die("no event for a socket");
    curl_multi_assign(loop->multi, fd, event);
    return 0;
}

static void loop_init(struct loop *loop)
{
    memset(loop->payload, 'x', sizeof loop->payload);
    curl_global_init(CURL_GLOBAL_ALL);
    loop->base = event_base_new();
    loop->multi = curl_multi_init();
    loop->headers = curl_slist_append(NULL, "Content-Type: application/json");
    if (!loop->base || !loop->multi || !loop->headers)
        die("out of memory");
    loop->timer = evtimer_new(loop->base, on_timer, loop);
    if (!loop->timer)
        die("out of memory");
    curl_multi_setopt(loop->multi, CURLMOPT_SOCKETFUNCTION, socket_wanted);
    curl_multi_setopt(loop->multi, CURLMOPT_SOCKETDATA, loop);
    curl_multi_setopt(loop->multi, CURLMOPT_TIMERFUNCTION, timer_wanted);
    curl_multi_setopt(loop->multi, CURLMOPT_TIMERDATA, loop);
}

static void loop_release(struct loop *loop)
{
    curl_multi_cleanup(loop->multi);
    curl_slist_free_all(loop->headers);
    event_free(loop->timer);
    event_base_free(loop->base);
    curl_global_cleanup();
}

int main(int argc, char **argv)
{
    if (argc != 4)
        die("usage: curl_loop URL JOBS CONCURRENCY");
    struct loop loop = { .url = argv[1], .jobs = option_number("jobs", argv[2], 1, 100000000) };
    long concurrency = option_number("concurrency", argv[3], 1, CONCURRENCY_MAX);
    loop_init(&loop);
    curl_multi_setopt(loop.multi, CURLMOPT_MAXCONNECTS, concurrency);
    int64_t begin = clock_us();
    for (long i = 0; i < concurrency && i < loop.jobs; i++) {
        CURL *easy = curl_easy_init();
        if (!easy)
            die("out of memory");
        easy_set_up(&loop, easy);
        easy_next(&loop, easy);
    }
    if (event_base_dispatch(loop.base) < 0)
        die("the event loop failed");
    double seconds = (double)(clock_us() - begin) / 1e6;
    printf("{\"jobs\":%ld,\"errors\":%ld,\"seconds\":%.6f,\"per_second\":%.1f}\n", loop.done, loop.failed, seconds,
           (double)loop.done / seconds);
    loop_release(&loop);
    return loop.failed != 0;
}
