/*
 * forward.h - calls that go on to another node: a thread that speaks HTTP with the others.
 *
 * A node that hangs, lies or floods holds up nobody but those who ask it, and those not for long, also when it is taken for
 * alive: orders have room beside waiting workers, what answers take of the memory has a limit, small ones wait for no large
 * one, and a silent connection ends after some seconds.
 */
#ifndef DAEMON_FORWARD_H
#define DAEMON_FORWARD_H

#include "api/api.h"

struct forwarder;

struct forwarder_settings {
    size_t calls_max; /* under way at once, each with a connection; those that wait for work get three quarters of them */
    size_t answers_bytes_max; /* of answers that are not complete; one that is longer has the large ones wait for it */
    size_t answer_bytes_max;  /* of one; who sends more is not heard to the end */
    int64_t begin_ms_max; /* until an answer begins, beside what the caller waits for work */
    int64_t stall_ms_max; /* that an answer may stand still once it began; one that only drips is no better */
    /* From the forwarder's thread: whether the node's session goes on, as far as this one knows. */
    bool (*lives)(void *context, int64_t session);
    void *context;
};

/* All but who lives, and by which context. */
struct forwarder_settings forwarder_settings_of(const struct config *config, size_t calls_max);
enum status forwarder_new(const struct forwarder_settings *settings, struct forwarder **ret_forwarder,
                          struct error *err) MUST_CHECK;
/* Answers everything that is under way, as not reached, and takes no more. Accepts NULL. */
void forwarder_stop(struct forwarder *forwarder);
void forwarder_free(struct forwarder *forwarder);
/* From any thread. */
void forwarder_send(struct forwarder *forwarder, struct forward *forward);
/* Nobody waits for it any more; `done` is still called. Before that, from the thread in which it will be. */
void forwarder_abandon(struct forwarder *forwarder, struct forward *forward);

#endif
