/*
 * curl_loop.h - libcurl's transfers on an event loop.
 *
 * Add handles to `multi`, with CURLOPT_PRIVATE set. What `done` is told of is still in `multi`: it removes it.
 *
 * libcurl says farewell to a socket after each answer and greets it again with the next request. Those of which
 * curl_loop_keep was told stay registered in between, which saves the kernel most of a request's changes.
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
    struct curl_watch *watches; /* by descriptor */
    size_t watch_count;
    void (*done)(void *private_data, CURLcode result);
};

/* False: no memory; release it all the same. It must not move while it is used. */
bool curl_loop_init(struct curl_loop *loop, struct event_base *base, void (*done)(void *private_data, CURLcode result));
/* Without a handle in it. */
void curl_loop_release(struct curl_loop *loop);

/* A new socket, for CURLOPT_OPENSOCKETFUNCTION. Negative: errno says why. */
curl_socket_t curl_loop_open(struct curl_loop *loop, const struct curl_sockaddr *address);
/* CURLOPT_CLOSESOCKETFUNCTION of every handle that is given to curl_loop_keep; the loop is its data. */
int curl_loop_close(void *loop, curl_socket_t fd);
/* From `done`, before the handle is removed: its connection, if libcurl has put it by for the next request, is kept. */
void curl_loop_keep(struct curl_loop *loop, CURL *curl);

#endif
