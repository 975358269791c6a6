/*
 * forward.h - calls that go on to another node: a thread that speaks HTTP with the others.
 */
#ifndef DAEMON_FORWARD_H
#define DAEMON_FORWARD_H

#include "api/api.h"

struct forwarder;

/* `calls_max`: under way at once, each with a connection; those that wait for work get three quarters of them. */
enum status forwarder_new(size_t calls_max, struct forwarder **ret_forwarder, struct error *err) MUST_CHECK;
/* Answers everything that is under way, as not reached, and takes no more. Accepts NULL. */
void forwarder_stop(struct forwarder *forwarder);
void forwarder_free(struct forwarder *forwarder);
/* From any thread. */
void forwarder_send(struct forwarder *forwarder, struct forward *forward);
/* Nobody waits for it any more; `done` is still called. Before that, from the thread in which it will be. */
void forwarder_abandon(struct forwarder *forwarder, struct forward *forward);

#endif
