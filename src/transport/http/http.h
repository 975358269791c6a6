/*
 * http.h - jobs over HTTP and HTTPS, SOAP among them: libcurl's multi interface on libevent.
 */
#ifndef TRANSPORT_HTTP_HTTP_H
#define TRANSPORT_HTTP_HTTP_H

#include "transport/transport.h"

struct event_base;

struct http_settings {
    instant (*now)(void *context); /* for HTTP-dates in Retry-After and signatures */
    void *context;
    long connections_max; /* in all, those at rest included; a send beyond is answered as not attempted */
};

/*
 * Works on the given loop and is used by its thread only. The process must ignore SIGPIPE: a server that closes while
 * TLS is written would end it.
 */
enum status http_transport_new(struct event_base *loop, const struct http_settings *settings,
                               struct transport **ret_transport, struct error *err) MUST_CHECK;

#endif
