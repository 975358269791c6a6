/*
 * amqp.h - jobs as messages of AMQP 0-9-1 (RabbitMQ), each confirmed by the broker.
 */
#ifndef TRANSPORT_BROKER_AMQP_H
#define TRANSPORT_BROKER_AMQP_H

#include "transport/transport.h"

struct event_base;

enum status amqp_transport_new(struct event_base *loop, size_t connections_max, struct transport **ret_transport,
                               struct error *err) MUST_CHECK;

#endif
