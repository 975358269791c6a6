/*
 * smtp.h - jobs as e-mail over SMTP: libcurl's connections on libevent.
 */
#ifndef TRANSPORT_SMTP_SMTP_H
#define TRANSPORT_SMTP_SMTP_H

#include "transport/transport.h"

struct event_base;

/*
 * Works on the given loop and is used by its thread only. The process must ignore SIGPIPE. No more than
 * `connections_max` are open at once: those at rest make room, and a send beyond is answered as not attempted.
 */
enum status smtp_transport_new(struct event_base *loop, long connections_max, struct transport **ret_transport,
                               struct error *err) MUST_CHECK;

#endif
