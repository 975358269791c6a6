/*
 * flaky.h - an HTTP receiver on loopback that misbehaves as it is asked to, to try insist with.
 *
 * What becomes of a request is drawn from a hash of the seed and the request's number: the
 * same requests in the same order meet the same fates.
 */
#ifndef CLI_PLAY_FLAKY_H
#define CLI_PLAY_FLAKY_H

#include "base/slice.h"
#include "base/status.h"

struct event_base;
struct flaky;

enum flaky_fate {
    FLAKY_ANSWERED, /* with its own status */
    FLAKY_FAILED,   /* with the status of failures, by --fail */
    FLAKY_OUTAGE,   /* likewise, within the outage */
    FLAKY_LIMITED,  /* likewise, because too many were under way */
    FLAKY_HUNG,     /* never answered */
    FLAKY_RESET,    /* the connection was reset */
    FLAKY_GONE,     /* the sender left before the answer */
    FLAKY_FATES
};

struct flaky_settings {
    int64_t port;        /* 0: any */
    int64_t status;      /* of an answer */
    int64_t fail_status; /* of a failure */
    double fail_rate, hang_rate, reset_rate;
    int64_t latency_ms, jitter_ms;          /* before an answer or a failure; the jitter is 0 up to this more */
    int64_t outage_from_ms, outage_until_ms; /* since the first request; equal: none */
    int64_t retry_after_s;                  /* with each failure; negative: none */
    int64_t limit;                          /* requests at once; 0: any number */
    int64_t seed;
    struct slice body;
};

/* A request and what became of it. The slices are valid during the call. */
struct flaky_event {
    uint64_t number; /* from 1 */
    int64_t at_ms;   /* since the start */
    const char *method;
    struct slice path, key, attempt; /* the last two from Idempotency-Key and Insist-Attempt; may be empty */
    struct slice headers, body;
    enum flaky_fate fate;
    int status;      /* 0: no answer */
    int64_t took_ms;
};

const char *flaky_fate_name(enum flaky_fate fate);

/* Serves on the loop from now on. `seen` is called once a request, when its fate has come. */
enum status flaky_new(struct event_base *loop, const struct flaky_settings *settings,
                      void (*seen)(void *context, const struct flaky_event *event), void *context, struct flaky **ret_flaky,
                      struct error *err) MUST_CHECK;
void flaky_free(struct flaky *flaky);

int flaky_port(const struct flaky *flaky);

#endif
