/*
 * broker.h - jobs to a server that takes many on one connection, and answers each: what Redis and AMQP have in common.
 *
 * A destination has one connection, which stays open. Jobs go out in the order in which they are started, without waiting
 * for the answers of those before. A protocol says how a connection begins, how a job is written and what answers are.
 */
#ifndef TRANSPORT_BROKER_BROKER_H
#define TRANSPORT_BROKER_BROKER_H

#include "transport/broker/url.h"
#include "transport/broker/wire.h"
#include "transport/transport.h"

struct event_base;
struct broker_link;

/* One send. */
struct broker_entry {
    struct send *send; /* NULL: it was answered, and only its place in the line of answers is left */
    struct broker_link *link;
    uint64_t from; /* where its bytes begin on the wire */
    uint64_t number; /* of those written on its connection, from 1 */
    bool returned;   /* the protocol's: a word about it came before its answer */
    struct buffer why; /* the protocol's */
    struct event *deadline;
    int64_t started_ns;
    struct error failure; /* of what failed before it began */
    struct broker_entry *next;
};

struct broker_queue {
    struct broker_entry *first, *last;
};

/* One connection. */
struct broker_link {
    struct broker *broker;
    const struct destination_config *destination;
    bool fallback;
    uint64_t generation;
    struct wire wire;
    struct broker_url url;
    bool ready;   /* jobs may be written */
    bool leaving; /* it takes no more jobs, and goes when the last is answered */
    struct broker_queue waiting;  /* until it is ready */
    struct broker_queue written;  /* in the order on the wire */
    uint64_t numbers;             /* the last that was given */
    int64_t used_ms; /* when it last had something to do */
    void *state;     /* the protocol's, zeroed at first */
    struct broker_link *next;
};

struct broker_protocol {
    const char *name;
    struct broker_scheme scheme;
    size_t state_bytes;
    void (*begin)(struct broker_link *link); /* the connection stands; ends in broker_ready or broker_refuse */
    void (*received)(struct broker_link *link, struct slice bytes);
    /* The job into the buffer. STATUS_INVALID, STATUS_LIMIT: it cannot be. STATUS_BUSY: not now; `err` says why. */
    enum status (*write)(struct broker_link *link, struct broker_entry *entry, struct buffer *out, struct error *err);
    void (*tick)(struct broker_link *link, int64_t now_ms); /* twice a second; may be NULL */
    void (*release)(struct broker_link *link);
};

enum status broker_new(struct event_base *loop, const struct broker_protocol *protocol, size_t connections_max,
                       struct transport **ret_transport, struct error *err) MUST_CHECK;

/* ---- For a protocol. ---- */

void broker_ready(struct broker_link *link);
/* Bytes of its own; when they cannot be given the connection is lost. */
void broker_give(struct broker_link *link, struct slice bytes);

/* The first written that has no answer yet; NULL: there is none, and what came answers nothing. */
struct broker_entry *broker_first(struct broker_link *link);
/* The entry is answered and no longer in the line. OUTCOME_NONE: the rules judge. `reference` may be empty. */
void broker_answer(struct broker_link *link, struct broker_entry *entry, enum outcome outcome, struct slice code,
                   struct slice text, struct slice reference);
/*
 * The server will not have this connection, or no longer: those that wait are answered with the code, those that are written
 * too if `certain` that they did not arrive, else they are in doubt. It is closed.
 */
void broker_refuse(struct broker_link *link, bool certain, struct slice code, struct slice text);
/* The next job gets a new connection. */
void broker_leave(struct broker_link *link);

#endif
