/*
 * health.h - is the destination well: what an answer to a health check means, and when to check.
 *
 * One evaluator for every form: the SIFEN document's {status, services{}}, Spring's actuator
 * {status, components{name:{status}}}, health+json {status, checks{name:[{status}]}}, any 2xx,
 * a WSDL, a connection, an SMTP greeting.
 *
 * Reading JSON is the one thing in core that allocates for a moment; nothing stays.
 */
#ifndef CORE_OUTAGE_HEALTH_H
#define CORE_OUTAGE_HEALTH_H

#include "base/instant.h"

enum health_kind {
    HEALTH_NONE, /* no health check is configured */
    HEALTH_JSON, /* status and services, Spring actuator, health+json */
    HEALTH_HTTP, /* 2xx is enough */
    HEALTH_WSDL, /* 2xx and `definitions` in the body */
    HEALTH_TCP,  /* a connection is enough */
    HEALTH_SMTP, /* a 220 greeting */
};

enum { HEALTH_BODY_BYTES_MAX = 1 << 20 /* of a JSON answer; a longer one is not read */ };

/* What a good answer is. Borrows. */
struct health_expectation {
    enum health_kind kind;
    int64_t timeout_ms;    /* an answer must come sooner */
    const char *status;    /* NULL or one of the well-known good words: any of them is good */
    const char **services; /* must all be well */
    size_t service_count;
};

/* What a check saw. */
struct health_answer {
    bool connected; /* false: no connection, or it broke before the answer */
    int64_t status; /* HTTP status or SMTP reply; 0: none */
    int64_t latency_ms;
    struct slice body;
};

enum health_reason {
    HEALTH_WELL,
    HEALTH_NO_ANSWER,      /* no connection, or none within the limit */
    HEALTH_SLOW,           /* an answer, but too late */
    HEALTH_REFUSED,        /* another HTTP status or SMTP reply than hoped for */
    HEALTH_UNREADABLE,     /* not JSON, or without a status */
    HEALTH_UNWELL,         /* it says so itself */
    HEALTH_SERVICE_UNWELL, /* one of the expected services is not well, or not named */
    HEALTH_NO_DEFINITIONS, /* not a WSDL: perhaps the login page of something in front */
    HEALTH_REASON_COUNT
};

struct health_verdict {
    enum health_reason reason; /* HEALTH_WELL: up */
    const char *service;       /* of HEALTH_SERVICE_UNWELL, from the expectation; else NULL */
};

struct health_verdict health_judge(const struct health_expectation *expectation, const struct health_answer *answer);
const char *health_reason_name(enum health_reason reason); /* "well", "no_answer"... */

/* How the checks have gone. Plain: it may be copied away and back over a restart. */
struct health {
    bool up;          /* one went well, and not so many have failed since as mean down */
    bool down;        /* so many in a row have failed; one that goes well ends it. At the start neither */
    int64_t failures; /* in a row */
    instant next_at;  /* when to check; INSTANT_NONE: at once */
};

enum health_change {
    HEALTH_SAME,
    HEALTH_WENT_DOWN,
    HEALTH_CAME_UP, /* from down, or for the first time since the start */
};

/* `first_at` spreads the first checks of many destinations. */
void health_init(struct health *health, instant first_at);
bool health_due(const struct health *health, int64_t every_ms, instant now);
/* A check has begun: the next is due one interval later, whatever comes of this one. */
void health_begin(struct health *health, int64_t every_ms, instant now);
enum health_change health_note(struct health *health, int64_t failures_max, bool well);
/* When the next is due, seen from `now`: a clock that was set back does not put it off. */
instant health_next(const struct health *health, int64_t every_ms, instant now);

#endif
