/*
 * rota.h - long work of the API's thread, done in short pieces that take turns.
 *
 * Between two pieces the loop looks at its sockets and its mail, so however much there is to do, a request waits for
 * one piece at most. A timer of libevent's that is due at once would not do: those run before the sockets are polled again.
 */
#ifndef API_HTTP_ROTA_H
#define API_HTTP_ROTA_H

#include "base/status.h"

#include <stdbool.h>

struct event;
struct event_base;

struct rota_entry {
    struct rota_entry *next, **link; /* link NULL: not on the rota */
    void (*run)(struct rota_entry *entry);
};

struct rota {
    struct event *turn;
    struct rota_entry *first, **last;
    bool others_had_work; /* a request has come since the last piece */
};

enum status rota_init(struct rota *rota, struct event_base *loop, struct error *err) MUST_CHECK;
void rota_release(struct rota *rota);

/* `run` is called once, when its turn has come; it takes itself on again for more. Does nothing where it is on already. */
void rota_add(struct rota *rota, struct rota_entry *entry);
/* Does nothing where it is not on. */
void rota_remove(struct rota *rota, struct rota_entry *entry);

#endif
