/*
 * server.h - what the connections share, and what a server is built around: who answers.
 */
#ifndef API_HTTP_SERVER_H
#define API_HTTP_SERVER_H

#include "api/http/door.h"
#include "api/http/head.h"
#include "api/http/room.h"
#include "api/http/rota.h"
#include "config/config.h"

#include <time.h>

struct client;

enum {
    SMALL_BODY_BYTES_MAX = 64 * 1024, /* of most calls, and of who has no token where one is needed */
    BATCH_BODY_BYTES_MAX = 64 << 20,
    SMALL_ANSWER_BYTES_MAX = 1 << 20, /* of most lists */
    RETRY_AFTER_S = 1,
    WANTED_AGAIN_MS = 10 * 1000, /* for so long is room wanted by whoever was refused */
};

/* What to answer instead of reading a body that is not small; else how long it may be. */
struct body_verdict {
    size_t max;
    int status;
    const char *type;
    char detail[256];
};

/* Who answers; called with `context` in the loop's thread. */
struct http_service {
    void *context;
    /* A request is complete; `head` and `body` are in the client's memory until it is answered. */
    void (*request)(void *context, struct client *client, const struct http_head *head, struct slice body);
    /* Whether a body that is not small is read at all, of `length` bytes; -1: not known. Else what to answer instead. */
    bool (*takes_body)(void *context, const struct http_head *head, int64_t length, struct body_verdict *ret_verdict);
    /* A client was refused before there was a request. */
    void (*refused)(void *context, int status);
    /* A clock that never goes back, for the deadlines of connections. */
    int64_t (*ticks_ms)(void *context);
};

struct http_server {
    struct http_service service;
    const struct config *config; /* of whoever answers, which replaces it at a reload */
    struct event_base *loop;
    struct door door;
    struct rota rota;
    struct room room;
    int64_t wanted_until_ms; /* somebody for whom there was no room was sent away, and will come again */
    struct http_head head; /* of the request that is being looked at */
    time_t date_s;         /* the second that `date` tells */
    char date[40];
    int port; /* that was bound */
};

static inline int64_t http_ticks_ms(const struct http_server *server)
{
    return server->service.ticks_ms(server->service.context);
}

#endif
