/*
 * client.h - the connections of clients, and what libevent's server does not tell of them.
 *
 * libevent 2.1 shows a request when all of its body is there, does not say how many connections are open, and answers
 * what is no request by a page of its own. So each connection's bytes are looked at on their way in and out: how
 * long a body may be is settled when its headers are in, and a page becomes a problem document.
 */
#ifndef API_CLIENT_H
#define API_CLIENT_H

#include <stdbool.h>

struct api;
struct client;
struct evhttp_connection;

/* Watches all connections from now on; before the server listens. */
void clients_watch(struct api *api);
/* After the server is freed. */
void clients_release(struct api *api);

/* Of a connection that is open. NULL: there was no memory for it. */
struct client *client_of(const struct api *api, struct evhttp_connection *connection);
/* limits.connections were open when this one came, and still are. */
bool client_is_too_many(const struct client *client);
/* `gone` is called when the connection is closed, by whomever; NULL: nobody is. Replaces the one before. */
void client_watch(struct client *client, void (*gone)(void *context), void *context);
/* A request is complete: what follows on the connection is the next. */
void client_request_read(struct client *client);
/* What is written from here on is an answer of ours, or again libevent's. */
void client_answer_begins(struct client *client);
void client_answer_ends(struct client *client);

#endif
