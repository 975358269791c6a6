/*
 * connection.h - the connection itself, which client.c, client_out.c and door.c share.
 */
#ifndef API_HTTP_CONNECTION_H
#define API_HTTP_CONNECTION_H

#include "api/http/chunks.h"
#include "api/http/client.h"
#include "api/http/server.h"

#include <event2/event.h>

enum client_state {
    CLIENT_HEAD,   /* it is idle, or its head is not complete */
    CLIENT_BODY,   /* nor its body */
    CLIENT_ROOM,   /* it waits for memory, for its body or its answer */
    CLIENT_CALL,   /* its request is being answered */
    CLIENT_ANSWER, /* the answer is made, and not read yet */
    CLIENT_LINGER, /* it was refused: what it still sends is thrown away, so that it can read why */
};

/* Who it is, as far as limits.connections_per_address goes. */
struct peer {
    bool is_loopback;
    unsigned char address[16]; /* of IPv6 the network alone: one customer has 2^64 addresses */
};

struct out_piece {
    struct out_piece *next;
    char *data;
    size_t len, sent;
};

/* The request that is being read. */
struct client_request {
    size_t searched;   /* of the head */
    size_t head_bytes; /* in CLIENT_BODY */
    size_t consumed;   /* of `in`, by the request that is answered */
    int64_t length;
    bool chunked;
    bool wants_continue; /* it does not send its body until it is asked to */
    struct http_chunks chunks;
    size_t chunks_from, chunks_to; /* where the next is read and where its content goes */
    size_t body_max;
};

/* How fast the client is. */
struct client_pace {
    int64_t since_ms; /* the state, or the piece that is written, began */
    size_t moved;     /* bytes since then */
    int64_t moved_at_ms; /* the last of them */
};

/* Who hears what becomes of it. */
struct client_watcher {
    void (*gone)(void *context), (*drained)(void *context);
    void (*admitted)(void *context), (*overdue)(void *context);
    void *context;
};

struct client {
    struct http_server *server;
    int fd;
    enum client_state state;
    struct event *reading, *writing;
    struct client *older, *newer; /* by when each last completed a request, or came */
    struct peer peer;
    struct buffer in;
    struct client_request request;
    struct {
        struct out_piece *first, **last;
        size_t bytes;
    } out;
    struct client_pace pace;
    struct rota_entry turn;
    struct room_wait wait;
    enum room_part room_part;
    size_t room_bytes; /* taken */
    struct client_watcher on;
    bool has_call;  /* waits in CLIENT_ROOM for its answer, not for its body */
    bool follows;   /* an answer without an end, or late: it goes when it closes its side, and is looked after elsewhere */
    bool deaf;      /* it is not read from */
    bool busy;      /* its request is being looked at: not to be freed */
    bool is_dead;   /* to be freed when it is not busy */
    bool closes;    /* with this answer */
    bool is_refused; /* closes with what it sends still unread */
};

/* ---- client.c ---- */
struct client *client_new(struct http_server *server, int fd, const struct peer *peer);
/* Answers with a problem and ends the connection. */
void client_refuse(struct client *client, int status, const char *type, const char *detail);
/* The answer is with the system. */
void client_finish(struct client *client);
/* How much of the memory for all it has from now on. */
void client_hold_room(struct client *client, size_t bytes);

/* ---- client_out.c ---- */
void client_on_writable(evutil_socket_t fd, short what, void *context);
void client_out_release(struct client *client);

/* door.c: it is the newest to have completed a request. */
void door_completed(struct client *client);
void door_forget(struct client *client);

#endif
