/*
 * pulse.h - a question that is always on its way to the engine and back: its age says whether the engine's thread lives.
 */
#ifndef API_CALL_PULSE_H
#define API_CALL_PULSE_H

#include "base/instant.h"
#include "node/mailbox.h"

struct api;
struct event;

struct pulse {
    struct message message; /* first */
    struct api *api;
    struct event *timer;
    struct error damage; /* of the store, that the engine is to tell people of; STATUS_OK: none */
    bool out;         /* with the engine */
    instant asked_at; /* when it went out */
    instant answer;   /* written by the engine's thread, read when it is back */
    instant ran_at;   /* when the engine last ran, as of the last answer; 0: it has not started */
};

enum { STUCK_AFTER_MS = 30 * 1000 }; /* no progress for this long means not alive */

enum liveness {
    LIVENESS_FINE,
    LIVENESS_WRITER_STUCK,
    LIVENESS_ENGINE_STUCK,
};

/* Whether the threads that the API's own one works with make progress. */
enum liveness api_liveness(const struct api *api);

/* From now on, once a second; each time settings.on_alive is called when all are well. */
enum status pulse_start(struct api *api, struct error *err) MUST_CHECK;

#endif
