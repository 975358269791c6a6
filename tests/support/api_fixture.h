/*
 * api_fixture.h - a whole daemon in the test's process: memory store, writer, engine and API on a free port.
 *
 * The engine's thread sends by a transport of the test's own, which looks at the payload:
 * "fail..." gives http:503, "bad..." http:400, "hang..." never ends until the fixture stops,
 * anything else is delivered. The clock is the system's plus an offset that tests move.
 */
#ifndef TESTS_API_FIXTURE_H
#define TESTS_API_FIXTURE_H

#include "api/api.h"

#include <jansson.h>

struct api_fixture;

struct api_fixture_settings {
    const char *config;  /* YAML; NULL: the usual one, see api_fixture.c */
    const char *tokens;  /* content of a tokens file; NULL: none is needed */
    int64_t pending_max; /* 0: no limit */
    bool engine_held;    /* the engine is not started until api_fixture_start_engine */
    enum owner (*owner)(void *ignored, struct slice destination, struct owner_place *ret_place); /* as of api.h */
    void (*forward)(void *ignored, struct forward *forward), (*abandon)(void *ignored, struct forward *forward); /* likewise */
    bool faulty;         /* the store fails when it is told to: see api_fixture_store and store_faulty.h */
};

struct api_fixture *api_fixture_new(const struct api_fixture_settings *settings);
void api_fixture_free(struct api_fixture *fixture);
/* As api_fixture_free does it, but now: it takes no order after its end. */
void api_fixture_stop_api(struct api_fixture *fixture);

int api_fixture_port(const struct api_fixture *fixture);
struct api *api_fixture_api(struct api_fixture *fixture);
struct store *api_fixture_store(struct api_fixture *fixture);
/* The engine stops, as it does at the beginning of the end. */
void api_fixture_stop_engine(struct api_fixture *fixture);
void api_fixture_start_engine(struct api_fixture *fixture);
/* Moves the clock of everything, and wakes the engine. */
void api_fixture_advance(struct api_fixture *fixture, int64_t ms);
/* Moves the clock only. */
void api_fixture_skip(struct api_fixture *fixture, int64_t ms);
/* Somebody sets the clock back; what never goes back goes on. */
void api_fixture_set_back(struct api_fixture *fixture, int64_t ms);
/* While stalled the engine's thread does nothing. */
void api_fixture_stall(struct api_fixture *fixture, bool stalled);

/* How often the API has said so far that all threads make progress. */
int api_fixture_alive(const struct api_fixture *fixture);

/* One answer. */
struct reply {
    int status;
    char *headers; /* as they came, with line ends */
    char *body;
    size_t len;
    json_t *json; /* NULL: the body is no JSON */
};

struct request {
    const char *method, *path, *body;
    size_t body_len; /* 0: strlen(body) */
    const char *content_type; /* NULL: application/json */
    const char *token;        /* NULL: none */
};

/* Sends one request on a connection of its own. To be released. */
struct reply http_ask(const struct api_fixture *fixture, const struct request *request);
/* The same in short. */
struct reply http_do(const struct api_fixture *fixture, const char *method, const char *path, const char *body);
/* Enqueues; `payload` is the inside of a JSON string. Fails the test unless it is new. */
void put_job(const struct api_fixture *fixture, const char *destination, const char *tenant, const char *id,
             const char *payload);
void reply_release(struct reply *reply);
/* The value of a header, or NULL; to be freed. */
char *reply_header(const struct reply *reply, const char *name);
/* A text member of the answer at a path like "jobs.0.id"; "" when it is not there. */
const char *reply_text(const struct reply *reply, const char *path);
int64_t reply_int(const struct reply *reply, const char *path);
json_t *reply_at(const struct reply *reply, const char *path);

/* A raw connection; bytes as they are. */
int raw_connect(const struct api_fixture *fixture);
void raw_send(int fd, const char *bytes, size_t len);
/* Reads until the other side closes, `until` has been seen (NULL: do not look), or a minute has passed. */
char *raw_read(int fd, const char *until);

/* Ask until the job is in that state, the member has that text or that number, or the status is that; fail after a minute. */
void await_state(const struct api_fixture *fixture, const char *path, const char *state);
void await_text(const struct api_fixture *fixture, const char *path, const char *member, const char *text);
void await_number(const struct api_fixture *fixture, const char *path, const char *member, int64_t number);
void await_status(const struct api_fixture *fixture, const char *path, int status);

#endif
