/*
 * curl_loop.h - libcurl's transfers on an event loop.
 *
 * Add handles to `multi`, with CURLOPT_PRIVATE set. What `done` is called with is still in `multi`: it removes it.
 *
 * libcurl says farewell to a socket after each answer and greets it again with the next request. Those of which
 * curl_loop_keep was given stay registered in between, which saves the kernel most of a request's changes.
 *
 * A connection at rest costs a descriptor that somebody else may need. One that the other side has closed is closed at once.
 * After two seconds of rest no more than a few are pooled for each address and in all, after a minute none.
 */
#ifndef TRANSPORT_CURL_LOOP_H
#define TRANSPORT_CURL_LOOP_H

#include <curl/curl.h>
#include <event2/event.h>
#include <stdbool.h>

struct curl_watch; /* of one socket */

struct curl_loop {
    struct event_base *base;
    CURLM *multi;
    struct event *timer;
    struct event *reminder; /* to look at handles whose sockets were never connected */
    struct event *rest;     /* to look at connections at rest, while there are any */
    CURL *sweeper;          /* makes libcurl let go of connections that have ended */
    bool sweeping;
    struct curl_watch *watches; /* by descriptor */
    size_t watch_count;
    void (*done)(void *private_data, CURLcode result);
    /*
     * May be NULL. After a pause of the process, or of the loop, answers lie in the sockets that libcurl would not read: it
     * looks at the time first. When a grace begins, this takes the time limits off all handles; when it ends, it
     * puts them back, and what is late then has no answer.
     */
    void (*grace)(struct curl_loop *loop, bool begins);
    int64_t due_ms;      /* the timer is due at; negative: it is not set */
    struct event *catch_up; /* the grace ends */
};

/* False: no memory; release it all the same. It must not move while it is used. */
bool curl_loop_init(struct curl_loop *loop, struct event_base *base, void (*done)(void *private_data, CURLcode result));
/* Without a handle in it. */
void curl_loop_release(struct curl_loop *loop);

/* A new socket, for CURLOPT_OPENSOCKETFUNCTION. Negative: errno says why. */
curl_socket_t curl_loop_open(struct curl_loop *loop, const struct curl_sockaddr *address);
/* CURLOPT_CLOSESOCKETFUNCTION of every handle that is given to curl_loop_keep; the loop is its data. */
int curl_loop_close(void *loop, curl_socket_t fd);

/* From `done`, before the handle is removed: its connection, if libcurl has put it by for the next request, stays. */
void curl_loop_keep(struct curl_loop *loop, CURL *curl);

#endif
