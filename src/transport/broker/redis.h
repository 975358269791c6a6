/*
 * redis.h - jobs into a stream of Redis: an XADD each.
 */
#ifndef TRANSPORT_BROKER_REDIS_H
#define TRANSPORT_BROKER_REDIS_H

#include "transport/transport.h"

struct event_base;

enum status redis_transport_new(struct event_base *loop, size_t connections_max, struct transport **ret_transport,
                                struct error *err) MUST_CHECK;

#endif
