/*
 * receiver.h - an HTTP server for tests that does as it is told: answers, or misbehaves at any stage.
 *
 * It listens on loopback in threads of its own, one a connection, so that a test drives only
 * its own loop. It keeps what it was sent. It also stands in for a proxy.
 */
#ifndef TESTS_RECEIVER_H
#define TESTS_RECEIVER_H

#include "base/buffer.h"

#include <stdbool.h>

/* How far a request is read before its reply's fate. */
enum receiver_stage {
    STAGE_READ,     /* all of it */
    STAGE_HEADERS,  /* its headers */
    STAGE_ACCEPTED, /* nothing */
};

enum receiver_fate {
    FATE_ANSWER,
    FATE_CLOSE, /* without an answer */
    FATE_RESET, /* likewise, and with a RST */
    FATE_HANG,  /* no answer, the connection stays until the other side or the receiver ends it */
};

enum receiver_form {
    FORM_LENGTH,     /* with Content-Length */
    FORM_CHUNKED,
    FORM_HTTP_1_0,   /* no length: the body ends with the connection */
    FORM_CONTINUE,   /* 100 Continue first */
    FORM_HALF,       /* Content-Length is more than comes, then the connection ends */
    FORM_HALF_RESET, /* likewise, with a RST */
    FORM_SLOW,       /* a byte at a time, 20 ms apart */
    FORM_ENDLESS,    /* the body, over and over */
    FORM_RAW,        /* the body is all that is written, then the connection ends */
};

/* What happens to one request. All zero: 200 without a body. */
struct receiver_reply {
    int status;          /* 0: 200 */
    const char *headers; /* whole lines with CR LF, or NULL */
    const char *body;    /* NULL: none */
    enum receiver_form form;
    enum receiver_stage stage;
    enum receiver_fate fate;
    int delay_ms; /* before the fate */
    bool close;   /* the connection, after the answer */
    bool vanish;  /* likewise, but without having said so */
};

struct receiver_settings {
    const char *cert, *key;   /* TLS with these files; NULL: none */
    const char *client_ca;    /* asks for a client's certificate, issued by these */
    int tls_version_max;      /* TLS1_2_VERSION...; 0: any */
    int connect_status;       /* what a CONNECT is answered with; 0: 200, and it is done */
    bool deaf;                /* never accepts: its queue is full from the start */
};

/* A request as it came. The slices belong to whoever asked: see receiver_last. */
struct receiver_request {
    struct buffer method, path, headers, body;
};

struct receiver;

/* Listens on 127.0.0.1 at a port of the system's choice. NULL `settings` are all zero. Fails the test where it cannot. */
struct receiver *receiver_new(const struct receiver_settings *settings);
/* Ends every connection and waits for its threads; accepts NULL. */
void receiver_free(struct receiver *receiver);

int receiver_port(const struct receiver *receiver);
/* From the next request on: one reply each, the last again and again. The replies are borrowed. */
void receiver_script(struct receiver *receiver, const struct receiver_reply *replies, size_t count);

/* So far; a request counts when its headers are there. */
size_t receiver_requests(struct receiver *receiver);
size_t receiver_connections(struct receiver *receiver);
size_t receiver_concurrent_most(struct receiver *receiver); /* requests at the same time, at most */
/* Waits up to a minute for that many; the last: connections that have ended. */
bool receiver_await_requests(struct receiver *receiver, size_t count);
bool receiver_await_connections(struct receiver *receiver, size_t count);
bool receiver_await_ended(struct receiver *receiver, size_t count);

/* A copy of the latest request, or of the one `back` before it (up to 31); false: there is none. */
bool receiver_last(struct receiver *receiver, size_t back, struct receiver_request *ret_request);
void receiver_request_release(struct receiver_request *request);

#endif
