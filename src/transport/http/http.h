/*
 * http.h - jobs over HTTP and HTTPS, SOAP among them: libcurl's multi interface on libevent.
 */
#ifndef TRANSPORT_HTTP_HTTP_H
#define TRANSPORT_HTTP_HTTP_H

#include "transport/transport.h"

#include <curl/curl.h>

struct event_base;
struct http_request;
struct http_response;

/* What an API of its own has in place of plain HTTP. */
struct http_dialect {
    /* As http_request_make. */
    enum status (*make)(const struct send *send, instant now, struct http_request *ret_request, struct error *err);
    /* Options of a destination besides the usual ones; without memory for one: *unset. */
    void (*prepare)(CURL *curl, const struct destination_config *destination, bool *unset);
    /*
     * The answer's code, never empty, what the destination calls the job, and what is certain; `response->reading` says
     * where success cannot be believed. From another thread, too.
     */
    enum outcome (*read)(const struct http_response *response, const struct destination_config *destination,
                         struct buffer *ret_code, struct buffer *ret_reference);
};

struct http_settings {
    instant (*now)(void *context); /* for HTTP-dates in Retry-After and signatures */
    void *context;
    long connections_max; /* in all, those at rest included; a send beyond is answered as not attempted */
    const struct http_dialect *dialect; /* NULL: none */
};

/*
 * Works on the given loop and is used by its thread only. The process must ignore SIGPIPE: a server that closes while
 * TLS is written would end it.
 */
enum status http_transport_new(struct event_base *loop, const struct http_settings *settings,
                               struct transport **ret_transport, struct error *err) MUST_CHECK;

#endif
