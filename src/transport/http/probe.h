/*
 * probe.h - asking destinations how they are: HTTP, a connection, or an SMTP greeting.
 *
 * A probe says what it saw; core/health.h judges it.
 */
#ifndef TRANSPORT_HTTP_PROBE_H
#define TRANSPORT_HTTP_PROBE_H

#include "config/config.h"

struct event_base;

/* One question under way. The caller owns it and keeps everything it points to until `done`. */
struct probe {
    const struct destination_config *destination; /* has a health check */
    void (*done)(struct probe *probe, const struct health_answer *answer); /* the answer is valid during the call only */
    void *context;      /* the caller's */
    struct probe *next; /* the prober's, where there was no memory to ask */
};

struct prober;

/* Works on the given loop and is used by its thread only. The process must ignore SIGPIPE. */
enum status prober_new(struct event_base *loop, struct prober **ret_prober, struct error *err) MUST_CHECK;
/* Nothing is under way any more: see prober_abort. Accepts NULL. */
void prober_free(struct prober *prober);

/* Always ends in exactly one call of probe->done, never from inside. */
void prober_start(struct prober *prober, struct probe *probe);
/* Answers all that are under way, as if there had been no connection, before it returns. */
void prober_abort(struct prober *prober);

#endif
