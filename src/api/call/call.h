/*
 * call.h - one HTTP request and its one answer.
 *
 * A handler answers at once or later, when the writer or the engine has replied; the client
 * may be gone by then, which the answering functions take care of. Every answer ends the call.
 */
#ifndef API_CALL_CALL_H
#define API_CALL_CALL_H

#include "api/call/views.h"
#include "api/http/auth.h"
#include "api/http/head.h"
#include "api/http/rota.h"
#include "base/buffer.h"
#include "base/json.h"
#include "base/text_place.h"
#include "engine/engine.h"
#include "node/reads.h"

#include <jansson.h>

struct api;
struct call;
struct client;

enum { CALL_PARAMETERS_MAX = 2, CALL_OPS_MAX = 2000 };

#define BODY_OF_PAYLOAD SIZE_MAX

/* One row a route: the server, /openapi.json's test and the authorisation read this table. */
struct route {
    const char *method;
    const char *pattern; /* {name} stands for one segment */
    unsigned scope;      /* enum scope; SCOPE_NONE: open */
    void (*handle)(struct call *call);
    const char *const *query; /* names of its parameters behind ?, ended by NULL; NULL: none */
    const char *const *members; /* that its body, an object, may have, likewise; NULL: the handler reads the body itself */
    size_t body_bytes_max; /* BODY_OF_PAYLOAD: as limits.payload has it; 0: a small one */
    const char *shared; /* why it is not for a token that acts for one tenant; NULL: it is */
};

struct call_parameter {
    const char *name;
    struct slice value; /* decoded */
};

/*
 * Reads the store, and touches nothing but the reader and what is the call's own. Sets call->reading.more after a piece
 * of some milliseconds to be called again in its turn.
 */
typedef enum status call_reader(struct call *call, struct store_reader *reader, struct error *err);

struct call_reading {
    struct rota_entry turn;
    call_reader *read;
    void (*done)(struct call *call);
    bool more;
    bool anyway;        /* `done` is called of a store that is away, too */
    enum status status; /* STATUS_OK, or STATUS_NOT_FOUND as `read` said; else STATUS_AWAY. Of a stream: any */
    struct config *config; /* as it is when the reading begins; `read` asks the API for nothing */
    struct store_read apart; /* where a thread waits for the store; its error is what `read` said */
    int64_t asked_ns;
};

struct call {
    struct message message; /* for the way to the engine's thread and back */
    struct api *api;
    struct client *client; /* NULL: it is gone */
    struct buffer request; /* what head and body point into, once the client is gone */
    struct {
        struct buffer headers;
        bool cached; /* they say for how long */
        int retry_after_s; /* of a 429 or 503; 0: as usual */
        struct buffer body;
        struct json_writer json; /* into it: see call_answer */
    } answer;
    const struct route *route;
    struct arena memory;
    struct slice parameters[CALL_PARAMETERS_MAX]; /* what stood for {id} and {name}, decoded */
    struct {
        struct call_parameter *items;
        size_t count;
    } query;
    struct slice body;
    json_t *object; /* the same, read; NULL: the route names no members */
    struct slice tenant_bound; /* .data NULL: the token is not confined to a tenant */
    unsigned scopes;
    enum priority priority_max; /* the most urgent that the token may give */
    struct slice who; /* the token's name; "loopback": no tokens are needed */
    struct batch *batch; /* freed with the call */
    void *context;       /* the handler's, in `memory` */
    void (*forget)(struct call *call); /* releases what `context` has outside of `memory`; NULL: nothing */
    struct call_reading reading;
    struct {
        struct stream *stream; /* the answer in pieces that is under way */
        bool small;            /* of some 64 KB: they are made whatever memory others have */
    } pieces;
    struct views views; /* what the engine said */
    struct {
        bool (*run)(struct call *call, struct engine *engine); /* in the engine's thread: see ask.h */
        void (*then)(struct call *call);                       /* in the API's */
        int64_t wait_s;          /* for work, as the client allows; 0: it does not wait */
        struct forward *relayed; /* it is on its way to another node; NULL: it is not */
    } asked;
    int64_t began_ns;                                      /* clock_ticks_ns of its beginning */
    struct http_head head; /* last: of its headers only so many are written as there are */
};

/* A value of the query string; empty: absent. Lives as long as the call. */
struct slice call_query(const struct call *call, const char *name);
/* A header of the request; empty: absent. */
struct slice call_header(const struct call *call, struct slice name);
/* For the answer that is to come. */
void call_add_header(struct call *call, const char *name, const char *value);
/* The tenant that the call may act for: `asked`, or the token's own. False: answered with 403 already. */
bool call_tenant(struct call *call, struct slice asked, struct slice *ret_tenant);

/* Begins an answer, one JSON object, that its writer fills; it goes with the call if it is not sent. */
struct json_writer *call_answer(struct call *call);
/* Ends the object and sends it. */
void call_answer_send(struct call *call, int status);
/* Sends a JSON body; `body` is released. */
void call_json(struct call *call, int status, struct buffer *body);
/* Sends any body; `body` is released. */
void call_send(struct call *call, int status, const char *content_type, struct buffer *body);
/*
 * An answer of type application/problem+json: `type` is a stable word, the text says what to do. 429 and 503 carry
 * Retry-After. False, as from all that answer with a problem, so that `return call_problem(...)` says: answered already.
 */
bool call_problem(struct call *call, int status, const char *type, const char *format, ...) PRINTF_LIKE(4, 5);
/* The same about a place in the request's body, given as `line` and `column` where it is known. */
bool call_problem_at(struct call *call, int status, const char *type, struct text_place place, const char *detail);
bool call_no_memory(struct call *call);
/* Zeroed memory that lasts as long as the call; NULL: there is none, and that is answered. */
void *call_alloc(struct call *call, size_t size);
/* The same as the call's context. */
void *call_context(struct call *call, size_t size);
/* The problem that a failed store gives. */
void call_store_problem(struct call *call, enum status status, const struct error *err);

/*
 * The one door to the store for what a call reads: `read`, then `done` in the API's thread; a failure but
 * STATUS_NOT_FOUND is answered. A store on this machine is read at once, so `done` may have run when this returns; one
 * across a network is read by a thread of its own, which may wait for it while all other calls go on.
 */
void call_read(struct call *call, call_reader *read, void (*done)(struct call *call));
/* For who has something to say without the store: `done` also runs with call->reading.status STATUS_AWAY. */
void call_read_anyway(struct call *call, call_reader *read, void (*done)(struct call *call));
/* Submits call->batch; `then` runs in the API's thread when it is durable. */
void call_submit(struct call *call, void (*then)(struct call *call));

/* Whether the client has closed its connection, as far as the system knows. */
bool call_client_gone(const struct call *call);
/* The connection is being closed: the call goes on without a client. */
void call_client_left(struct call *call);
/* Ends the call without an answer: nobody is there any more. */
void call_drop(struct call *call);

/* Writes the beginning of an answer: its head. */
void call_begin_answer(struct call *call, int status, const char *content_type, int64_t length, struct buffer *out);
/* Counts the call; a `status` of 0 says that nobody was there to be answered. */
void call_measured(const struct call *call, int status);
void call_free(struct call *call);

/* Gives a buffer for an answer. */
struct buffer call_buffer(void);

#endif
