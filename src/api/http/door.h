/*
 * door.h - where clients come in: how many, for how long, and who must go.
 *
 * When it is full, the one that has been longest without completing a request makes room: an idle one, one that sends its
 * head byte by byte, one that does not read its answer; never one whose request is being answered. Deadlines are looked
 * at once a second for all.
 */
#ifndef API_HTTP_DOOR_H
#define API_HTTP_DOOR_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct http_server;
struct client;
struct event;

struct door {
    int fd; /* -1: closed */
    struct event *knock, *sweep, *again; /* `again`: after accepting failed */
    struct client *oldest, *newest;
    size_t count;
    size_t count_max; /* limits.connections, or what the process's open files allow */
    int64_t reported_at_ms;
};

/* Binds the address and listens; the text of a failure says what to do. */
enum status door_open(struct http_server *server, struct error *err) MUST_CHECK;
/* To be called after limits have changed. */
void door_measure(struct http_server *server);
/* Takes no more; those who are in stay. */
void door_shut(struct http_server *server);
/* Closes all. Accepts one that was never opened. */
void door_release(struct http_server *server);

#endif
