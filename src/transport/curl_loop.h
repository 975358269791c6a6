/*
 * curl_loop.h - libcurl's transfers on an event loop.
 *
 * Add handles to `multi`, with CURLOPT_PRIVATE set. What `done` is told of is still in `multi`: it removes it.
 */
#ifndef TRANSPORT_CURL_LOOP_H
#define TRANSPORT_CURL_LOOP_H

#include <curl/curl.h>
#include <event2/event.h>
#include <stdbool.h>

struct curl_loop {
    struct event_base *base;
    CURLM *multi;
    struct event *timer;
    void (*done)(void *private_data, CURLcode result);
};

/* False: no memory; release it all the same. It must not move while it is used. */
bool curl_loop_init(struct curl_loop *loop, struct event_base *base, void (*done)(void *private_data, CURLcode result));
/* Without a handle in it. */
void curl_loop_release(struct curl_loop *loop);

#endif
