/*
 * transport.h - how a job reaches its destination: the contract of every transport.
 *
 * A transport sends without blocking and calls back once a send, from the same thread. It
 * says what it saw; what that means is core's to decide. It never repeats a send by itself.
 */
#ifndef TRANSPORT_TRANSPORT_H
#define TRANSPORT_TRANSPORT_H

#include "config/config.h"
#include "store/store.h"

/* What came back from a question about a job (STEP_VERIFY, STEP_POLL). */
enum query_answer {
    QUERY_UNCLEAR,   /* no answer, or one that no list names */
    QUERY_DELIVERED, /* it is there, and good */
    QUERY_ABSENT,    /* it never arrived */
    QUERY_PENDING,   /* not judged yet */
    QUERY_REJECTED,  /* judged, and refused */
};

enum { REFERENCE_BYTES_MAX = 255 }; /* of an answer */

/* What a send saw. The slices are valid during the callback only. */
struct answer {
    bool attempted;       /* false: nothing left this machine for a reason of our own (no descriptors, shutdown) */
    enum outcome outcome; /* what is certain: delivered (one of `success`), in doubt (the request went out, at least in
                             part, and no answer came), blocked (our own configuration); else NONE: the rules judge */
    bool unconfirmed;       /* it looks like success, but lacks what makes it one (`delivered_when`), or was not searched */
    struct slice code;      /* namespaced: "http:503", "curl:28", "tiss:1308"; empty: none */
    struct slice text;      /* for people and the text rules; never blank unless delivered */
    struct slice reference; /* what the destination calls the job, where it accepted it; may be empty */
    struct slice left_out;  /* names of the job's headers that it may not set, and went without; mostly empty */
    int64_t retry_after_ms; /* negative: it did not say */
    bool slow_all;          /* the wish is about the whole destination (429, 503) */
    int64_t duration_ms;
    enum query_answer query; /* for STEP_VERIFY and STEP_POLL */
};

/* One send under way. The caller owns it and keeps everything it points to until `done`. */
struct send {
    const struct destination_config *destination;
    const struct job *job;
    bool use_fallback; /* to the destination's fallback url */
    void (*done)(struct send *send, const struct answer *answer);
    void *context;    /* the caller's */
    void *transport;  /* the transport's own, while under way */
    struct send *next; /* likewise */
};

struct transport;

struct transport_ops {
    const char *name;
    /* Always ends in exactly one call of send->done, never from inside start. */
    void (*start)(struct transport *transport, struct send *send);
    /*
     * Gives up a send that is under way, that is, whose done was not called yet: done is called with attempted or
     * in_doubt as far as it had come, before this returns. A send that is over must not be given: it may be freed.
     */
    void (*abort)(struct transport *transport, struct send *send);
    /* The configuration has changed: a destination at the same address in memory may be another one. */
    void (*forget)(struct transport *transport);
    void (*free)(struct transport *transport); /* nothing is under way any more */
};

struct transport {
    const struct transport_ops *ops;
};

#endif
