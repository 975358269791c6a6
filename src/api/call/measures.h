/*
 * measures.h - what the API counts of its own work, for GET /metrics. The API's thread alone calls this.
 *
 * In fixed memory but for a few numbers a destination that was ever enqueued to, which must be configured for that.
 */
#ifndef API_CALL_MEASURES_H
#define API_CALL_MEASURES_H

#include "base/histogram.h"
#include "base/map.h"
#include "store/store.h"

struct route;

/* What a request is for: routes are distinguished no further. */
enum request_class {
    REQUEST_ENQUEUE,
    REQUEST_READ,
    REQUEST_OPERATE,
    REQUEST_LEASE, /* pull workers; they may wait for jobs */
    REQUEST_OPEN,  /* health, the description, the page */
    REQUEST_NONE,  /* no route has that address and method */
    REQUEST_CLASS_COUNT
};

/* Why a job was not taken. */
enum refusal {
    REFUSED_QUEUE_FULL,   /* limits.pending */
    REFUSED_DISK_FULL,    /* limits.disk_free */
    REFUSED_STORE_FAILED, /* the store could not write it */
    REFUSED_ID_CONFLICT,
    REFUSED_STOPPING,
    REFUSED_OTHER,
    REFUSAL_COUNT
};

enum { REQUEST_STATUSES_MAX = 17 }; /* 0: all others; the last: the client had gone */

/* What was added for one destination. */
struct insert_measure {
    int64_t accepted, duplicates;
};

struct request_measures {
    int64_t counts[REQUEST_CLASS_COUNT][REQUEST_STATUSES_MAX];
    struct histogram durations[REQUEST_CLASS_COUNT]; /* ns */
    int64_t refused[REFUSAL_COUNT];
    struct map inserts; /* destination -> struct insert_measure */
};

extern const struct histogram_bounds measured_request;

void request_measures_init(struct request_measures *measures, uint64_t seed);
void request_measures_release(struct request_measures *measures);

/* A `status` of 0 says that the client had gone. */
void request_measured(struct request_measures *measures, const struct route *route, int status, int64_t took_ns);
/* What the store made of an insert. */
void insert_measured(struct request_measures *measures, const struct store_op *op);
struct insert_measure inserts_of(const struct request_measures *measures, struct slice destination);

const char *request_class_name(enum request_class request_class);
const char *refusal_name(enum refusal refusal);
/* The label of a column of counts. */
const char *request_status_name(size_t index);

#endif
