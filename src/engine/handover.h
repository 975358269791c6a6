/*
 * handover.h - destinations that the engine gains and loses while it runs.
 *
 * One that is gained is loaded from the store (restore.h) and sent to after that. One that is lost is claimed from no more;
 * its sends end, what is known of it is written, and then it is forgotten here. A start gains all there are, a stop loses
 * all.
 */
#ifndef ENGINE_HANDOVER_H
#define ENGINE_HANDOVER_H

#include "base/instant.h"
#include "base/status.h"
#include "engine/attempt/recover.h"

#include <stdbool.h>

struct config;
struct dest;
struct engine;
struct restored;
struct saved_wait;

enum own_stage {
    OWN_UNREAD, /* what the store has of it was not read yet: it is treated as if it were not configured */
    OWN_WHOLE,
    OWN_LOSING, /* nothing new is begun */
};

/* Of a destination. */
struct handover {
    enum own_stage stage;
    struct restored *loading; /* what is being read, and then put in; NULL: nothing is */
    instant load_at;          /* not before, since the last time failed */
    struct saved_wait *wait;  /* who is to hear that it is gained, or lost; NULL: nobody */
    bool drained; /* of one that is lost: its sends have ended, and how it stands is being written */
    struct left_behind left; /* by those who had it before */
    uint64_t batch; /* all that it has on its way is in the batch of that number, or before */
};

/* Reads what the store has of everything, and waits for it. */
enum status handover_start(struct engine *engine, struct error *err) MUST_CHECK;
/* Every configured destination is known with or without jobs; one that comes anew is loaded. STATUS_NO_MEMORY. */
enum status handover_configure(struct engine *engine, const struct config *config, struct error *err) MUST_CHECK;
/* The engine stops: nobody waits for those that are being put in. */
void handover_stop(struct engine *engine);
/* Goes on with those that are being gained and lost. */
void handover_run(struct engine *engine);
/* When it has something to do although nothing happens. */
instant handover_next(const struct engine *engine);
/* Something of it is in the batch being filled: it is not forgotten before that is back. */
void dest_is_out(const struct engine *engine, struct dest *dest);
/* Claims from it no more. */
void dest_lose(struct engine *engine, struct dest *dest);
void handover_release(struct engine *engine);

#endif
