/*
 * wire.h - a connection to a server, and bytes over it, which never blocks.
 *
 * libcurl makes it: name, address, socket, TLS. What is said on it is the caller's.
 */
#ifndef TRANSPORT_BROKER_WIRE_H
#define TRANSPORT_BROKER_WIRE_H

#include "base/buffer.h"
#include "config/config.h"
#include "transport/curl_loop.h"

/* What happens on it. Each may close the wire, but not release it. */
enum { WIRE_PIECE_BYTES = 16 * 1024 }; /* one record of TLS */

struct wire_events {
    void (*opened)(void *context);
    void (*received)(void *context, struct slice bytes);
    void (*lost)(void *context, CURLcode result); /* it is closed */
};

struct wire {
    struct curl_loop *loop;
    const struct wire_events *events;
    void *context;
    CURL *curl; /* NULL: closed */
    bool connected;
    struct event *readable, *writable;
    struct buffer out;     /* to be sent; the first `gone` of it are, or are in `piece` */
    size_t gone;
    struct {
        char bytes[WIRE_PIECE_BYTES];
        size_t len, gone;
    } piece; /* that is being sent */
    uint64_t given, sent;  /* bytes since it was opened */
    char curl_error[CURL_ERROR_SIZE];
    bool guarded;                         /* private addresses are not meant */
    bool private_address, starved, unset; /* why there is no connection */
};

/* What one wire may hold that its server does not take. */
enum { WIRE_BYTES_MAX = 64 << 20 };

/* False: no memory; release it all the same. It must not move. `done` of the loop must be wire_connected. */
bool wire_init(struct wire *wire, struct curl_loop *loop, const struct wire_events *events, void *context);
void wire_release(struct wire *wire);

/* To `url`, of which host and port are taken: https:// is TLS from the start. What cannot be opened is lost, later. */
void wire_open(struct wire *wire, const struct destination_config *destination, const char *url);
void wire_connected(void *wire, CURLcode result);
/* Nothing is called back. */
void wire_close(struct wire *wire);

/* Behind what was given before; false: there is too much already. It goes out at the loop's next turn. */
bool wire_give(struct wire *wire, struct slice bytes);

#endif
