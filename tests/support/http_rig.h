/*
 * http_rig.h - the HTTP transport on a loop of its own, and what its sends saw.
 */
#ifndef TESTS_HTTP_RIG_H
#define TESTS_HTTP_RIG_H

#include "transport/http/http.h"

#include <event2/event.h>

enum { RIG_TEXT_BYTES = 16 * 1024 };

struct rig {
    struct event_base *loop;
    struct transport *transport;
    struct config *config;
    instant now; /* what the transport is told: 2025-01-12T10:40:00Z at first */
};

/* One send, and the answer as it was in the callback. */
struct rig_send {
    struct send send;
    struct job job;
    struct answer answer; /* its slices point into the texts below */
    int times;            /* how often it was answered */
    char code[256], text[RIG_TEXT_BYTES], reference[256], left_out[512];
};

void rig_open(struct rig *rig);
/* Those that its transport has, for another. */
struct http_settings rig_settings(struct rig *rig);
void rig_close(struct rig *rig);

/* Reads "destinations: { d: { TEXT } }", TEXT printf-like, in place of the configuration before. */
const struct destination_config *rig_configure(struct rig *rig, const char *format, ...) PRINTF_LIKE(2, 3);

/* A job "j-1" of tenant "acme" with a small payload, first attempt; change it before rig_start. */
void rig_prepare(struct rig *rig, struct rig_send *send);
void rig_start(struct rig *rig, struct rig_send *send);
/* Both, with another id and payload. */
void rig_begin(struct rig *rig, struct rig_send *send, const char *id, const char *payload);
/* Until it is answered; fails the test after a minute. */
void rig_wait(struct rig *rig, struct rig_send *send);
/* All three. */
void rig_send(struct rig *rig, struct rig_send *send);
/* Lets the loop work for that long, and for some turns at least. */
void rig_run(struct rig *rig, int ms);

/* How many descriptors the process has open. */
size_t rig_descriptors(void);

#endif
