/*
 * mailbox.h - handing work to another thread.
 *
 * Any thread posts; the owner takes everything that has arrived at once and runs it in
 * order. A sleeping owner is woken once for however many messages.
 */
#ifndef NODE_MAILBOX_H
#define NODE_MAILBOX_H

#include "base/status.h"

#include <stdbool.h>

struct event_base;

/* What a message is part of. Not small numbers: memory that was never one is not taken for one either. */
enum message_kind {
    MESSAGE_NONE,
    MESSAGE_BATCH = 0x6d736701, /* struct batch, to the writer */
    MESSAGE_REPLY,              /* the same on its way back */
    MESSAGE_NOTICE,             /* struct notice, to the engine */
    MESSAGE_READ,               /* struct store_read, to the thread that reads */
    MESSAGE_READ_DONE,          /* the same on its way back */
    MESSAGE_STOP,               /* to the writer, or to the thread that reads */
    MESSAGE_FAILURE,            /* of the store, to the daemon */
    MESSAGE_CALL,               /* struct call, to the engine's thread */
    MESSAGE_ANSWER,             /* the same on its way back */
    MESSAGE_PULSE,              /* from the API to the engine's thread and back */
    MESSAGE_ORDER,              /* struct api_order, to the API's thread */
    MESSAGE_NODES,              /* what became of destinations, to the engine's thread */
    MESSAGE_FORWARD,            /* struct forward, back from the owner of a destination */
    MESSAGE_DECIDED,            /* a decision of a guest, to the engine's thread */
    MESSAGE_TEST,               /* of a test */
};

/* The first member of whatever is handed over; the poster does not touch it any more. */
struct message {
    struct message *next;
    void (*run)(struct message *message);
    enum message_kind kind;
};

/* What it is part of, which is asserted to be of that kind. */
void *message_of(struct message *message, enum message_kind kind);

struct mailbox;

enum status mailbox_new(struct mailbox **ret_mailbox, struct error *err) MUST_CHECK;
/* Messages that are still inside are not run: stop the posters first, then drain. */
void mailbox_free(struct mailbox *mailbox);

/* Never blocks for longer than the list's lock, never fails. */
void mailbox_post(struct mailbox *mailbox, struct message *message, enum message_kind kind,
                  void (*run)(struct message *message));

/* Runs what has arrived; returns whether there was anything. */
bool mailbox_drain(struct mailbox *mailbox);
/* Sleeps until something arrives, it is woken or `timeout_ms` has passed (negative: for ever). */
void mailbox_wait(struct mailbox *mailbox, int timeout_ms);
/* Wakes its owner, who has no message and looks about. */
void mailbox_wake(struct mailbox *mailbox);

/* A loop for one thread and many sockets; NULL when there is no memory. */
struct event_base *loop_new(void);

/* From now on the loop drains the mailbox by itself. */
enum status mailbox_attach(struct mailbox *mailbox, struct event_base *loop, struct error *err) MUST_CHECK;

#endif
