/*
 * pull.h - pull workers, who lease jobs and say themselves what became of them.
 */
#ifndef ENGINE_PULL_H
#define ENGINE_PULL_H

#include "core/outage/gate.h"
#include "node/writer.h"
#include "transport/transport.h"

struct engine;
struct policy;

/*
 * Pull workers. A request is answered once by `done`, perhaps at once: with jobs when there are some,
 * empty at `wait_until`. The caller owns the request; the jobs live until lease_release.
 */
struct lease_request {
    struct slice destination, worker;
    size_t max;
    int64_t lease_ms;
    instant wait_until;
    void (*done)(struct lease_request *request, enum status status, const struct job *jobs, size_t count);
    void *context;
    struct lease_request *next; /* the engine's, as all below */
    struct engine *engine;
    struct batch *batch; /* holds the jobs */
    struct gate_pass pass; /* of all that is claimed for it */
    int64_t bytes;         /* of its payloads, or as many as they may be: counted until lease_release */
};
void engine_lease(struct engine *engine, struct lease_request *request);
/* From any thread, while the engine is there. */
void lease_release(struct lease_request *request);

/*
 * How leases end. Each is to be reported once, so that the destination's gate learns from it; of a lease that it does not
 * know (from before a restart) nothing is learnt.
 */
/* The store has recorded that it is done. */
void engine_acked(struct engine *engine, int64_t seq, int64_t token);
/* It was given back unused, or will be. */
void engine_lease_returned(struct engine *engine, int64_t seq, int64_t token);
/*
 * It failed. Decides as for a send of its own and fills `op` for the store; how long it took is added to the answer. Nothing
 * has happened yet: when the store has taken it, and only then, engine_nacked heeds what it means for the destination.
 * *ret_policy lives until the next call of the engine. STATUS_NOT_FOUND: the destination is not configured;
 * STATUS_NO_MEMORY.
 */
struct settlement;
struct lease_nack {
    struct job *job; /* with its lease's token; it becomes a send: whatever was asked of the worker, it has tried */
    struct answer answer;
    bool exhausted; /* the engine's: its last try failed, and no look */
};
enum status engine_nack(struct engine *engine, struct lease_nack *nack, struct arena *memory, struct store_op *op,
                        struct settlement *ret_settlement, const struct policy **ret_policy) MUST_CHECK;
void engine_nacked(struct engine *engine, const struct lease_nack *nack, const struct store_op *op,
                   const struct settlement *settlement);

#endif
