/*
 * loop.h - the engine as its own files see it.
 */
#ifndef ENGINE_LOOP_H
#define ENGINE_LOOP_H

#include "base/map.h"
#include "engine/attempt/ahead.h"
#include "engine/attempt/attempt.h"
#include "engine/attempt/leases.h"
#include "engine/attempt/recover.h"
#include "engine/destination.h"
#include "engine/engine.h"
#include "engine/erasures/erasures.h"
#include "engine/errors/learn.h"
#include "engine/orders.h"
#include "engine/outgoing.h"
#include "engine/pull.h"
#include "engine/questions.h"
#include "engine/queues/lane.h"
#include "engine/redrives/redrives.h"
#include "engine/status.h"
#include <stdatomic.h>

struct alert_book;
struct decided;
struct incident_note;
struct letter;
struct mailbox;
struct schedule;

/* Where the reading of all lanes for alerts stands. */
struct lanes_walk {
    struct question question; /* first: for a page of them */
    struct lane *lanes;       /* the answer, */
    size_t count;
    instant at;      /* the next page */
    int64_t after;   /* lane */
    int64_t pending; /* of the whole store, so far */
};

struct engine_alerts {
    struct alert_book *book; /* NULL: none are raised */
    instant at;
    struct saved_trim trim;
    struct lanes_walk walk;
    int64_t pending_max; /* of the store, which was opened with it */
    int64_t expired_unreported; /* jobs that expired, which no alert has reported yet */
    struct source_board *sources; /* NULL: there are none */
    int64_t rejected, refused;    /* entries of sources and commands to Redis, that were reported */
    struct error damage;    /* of the store, which no alert has reported yet; STATUS_OK: none */
    struct nodes_news nodes; /* `missing` is reported once, as damage is */
    bool nodes_known;
};

struct engine {
    struct engine_ports ports;
    struct mailbox *mailbox;
    struct config *config;
    uint64_t seed;
    struct store_reader *reader;
    struct { struct dest *first; struct map by_name; } dests;
    bool started, stopping;
    bool shared; /* others use the store too: its destinations are those that it gained */
    struct handover office; /* of the steward: what is of no destination */
    struct {
        struct map held; /* what pull workers hold: leased.c */
        struct leases_look look;
        atomic_int_least64_t bytes; /* payloads of answers to them that are being made, limits.body_budget at most */
    } leases;
    struct {
        struct decided *decided; /* of policies that are no destinations */
        int64_t expired; /* jobs that died while they waited */
        int64_t dead_expired; /* dead letters that were deleted, since their time was over */
    } measured;
    struct engine_figures figures;
    struct lanes lanes;
    struct attempts attempts;
    struct { /* operations for the writer */
        struct outgoing *filling, *flying;
        uint64_t number;    /* of the one that is filled */
        size_t batches;     /* with the writer; `flying` are few of them at once */
        double commit_ms;   /* how long they take of late */
        int64_t put_back;   /* how often the clock was: nobody knows for how long a claim of before is out */
        instant not_before; /* the last one failed: no claim or settlement earlier; INSTANT_NONE: it did not */
        instant full_until; /* one found the store full: that is believed for so long; INSTANT_NONE: none did */
    } out;
    struct questions questions;
    struct ahead ahead;
    struct recovery recovery;
    struct incidents incidents;
    struct { struct letter *first, *last; size_t count; } letters;      /* likewise: they tell of single dead letters */
    struct engine_alerts alerts;
    struct learned errors;
    struct schedule *schedule; /* of reports; NULL: none was due yet */
    struct { struct redrives redrives; struct erasures erasures; }; /* the steward's */
};

instant engine_now(const struct engine *engine);
/* The store refused just now: wait before trying again. */
bool engine_must_wait(const struct engine *engine);
/* The store had no room for what was to be written just now: nothing can be claimed. */
bool engine_store_is_full(const struct engine *engine);
/* It has the work that is one for all nodes. */
bool engine_is_steward(const struct engine *engine);
/* engine_run is to be called soon. */
void engine_wake(struct engine *engine);

#endif
