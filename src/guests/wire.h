/*
 * wire.h - some requests at once, in a thread that waits for them and can be asked to stop.
 */
#ifndef GUESTS_WIRE_H
#define GUESTS_WIRE_H

#include "base/buffer.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { WIRE_ANSWER_BYTES_MAX = 16 << 20, WIRE_HEAD_BYTES_MAX = 4096, WIRE_AT_ONCE_MAX = 64 };

/* Who asks; texts live as long as the wire. Without username and token nothing is said. */
struct wire_settings {
    const char *username, *password, *token;
};

/* One POST of JSON. The caller inits `body` and releases both buffers. */
struct exchange {
    const char *url;
    struct buffer body;
    bool head_only; /* of the answer no more than WIRE_HEAD_BYTES_MAX is wanted, however much comes */
    /* The results. */
    long status; /* 0: there was no answer, and `failure` says why */
    struct buffer answer;
    char failure[256];
};

struct wire;

enum status wire_new(const struct wire_settings *settings, struct wire **ret_wire, struct error *err) MUST_CHECK;
void wire_free(struct wire *wire); /* accepts NULL */

/* Returns when all have ended, each after `timeout_ms` at the latest, or wire_stop was called. */
void wire_run(struct wire *wire, struct exchange *exchanges, size_t count, int64_t timeout_ms);
/* Sleeps; false: it was asked to stop. */
bool wire_sleep(struct wire *wire, int64_t ms);

/* From any thread: what is under way ends, and everything after it at once. */
void wire_stop(struct wire *wire);
bool wire_stopped(const struct wire *wire);

#endif
