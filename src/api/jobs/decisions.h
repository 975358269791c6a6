/*
 * decisions.h - the library's JSON decisions for the API.
 *
 * Apart from the handlers because a transport's answer and a question's answer have the same name.
 */
#ifndef API_JOBS_DECISIONS_H
#define API_JOBS_DECISIONS_H

#include "base/buffer.h"
#include "config/config.h"
#include "core/decision/decide.h"

struct decisions;

/* For questions about the destinations of `config` and the presets; NULL: no memory. */
struct decisions *decisions_new(struct config *config);
void decisions_free(struct decisions *decisions);

/* What a question is answered with beside its own members, and what is to be recorded of the answer. */
struct decided {
    void *context; /* of retry_count */
    int64_t (*retry_count)(void *context, struct slice tenant, struct slice id); /* negative: not known */
    struct slice by; /* who asks */
    struct buffer *event; /* gets the event's data; left empty when nothing is to be recorded */
    int64_t began_ns;     /* of the clock's ticks; set by decisions_answer */
    /* Results, of a question that was answered. */
    const char *policy; /* lives as long as the decisions */
    struct decision decision;
};

/* Answers a question. False: it was invalid, and `out` says why. */
bool decisions_answer(struct decisions *decisions, struct slice question, instant now, struct decided *decided,
                      struct buffer *out);

#endif
