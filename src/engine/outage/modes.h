/*
 * modes.h - how destinations stand: gates, breakers, contingency, and what becomes of what these say.
 */
#ifndef ENGINE_OUTAGE_MODES_H
#define ENGINE_OUTAGE_MODES_H

#include "core/outage/gate.h"
#include "core/fairness/rate.h"
#include "engine/engine.h"
#include "engine/settlement.h"
#include "engine/status.h"

struct attempt;
struct dest;

/* How the gate of a destination is set; NULL: one that is not configured. */
struct gate_rules gate_rules_of(const struct engine *engine, const struct destination_config *config);
/* Those of its second address. */
struct gate_rules fallback_rules_of(const struct destination_config *config);
/* How the limit of concurrency stands, for people. */
struct limit_status limit_status(const struct concurrency *concurrency);
/* Whether the second address is to stand in now, because the first is in contingency; and whether it takes jobs, too. */
bool dest_diverts(const struct dest *dest);
bool dest_uses_fallback(const struct dest *dest);
/* One of its gates' answer, and the rate's; `rate` is the destination's own, or a copy where nothing may change. */
struct gate_answer dest_ask(const struct gate *gate, struct rate_limiter *rate, instant now);
/* Time has passed: modes and breakers change by themselves. */
void dests_tick(struct engine *engine);
/* Tells what has changed, once: a line in the log and an event. */
void dest_tell(struct dest *dest, const struct gate_news *news);
/* An attempt was answered, and this is what came of it. True: its last try failed, but it is to be held. */
bool dest_note(struct attempt *attempt, const struct gate_result *result, const struct settlement *settlement, instant now);
/* Whether others were served since it was last asked to wait. NULL: through no gate. */
bool job_waits_alone(const struct gate *gate, const struct job *job);
/* What its gate hears of a job whose last try failed. */
struct contingency_end job_end(const struct job *job, struct slice code, const struct settlement *settlement, instant now);
/* The outage that an attempt was to look at, in `memory` where it is not the destination's own; NULL: none. */
const struct outage *attempt_outage(const struct attempt *attempt, struct outage *memory);
/* The factor of its waits now; 0: by that configuration, which a job was sent under, they do not adapt. */
double dest_backoff_factor(const struct dest *dest, const struct destination_config *config, instant now);
/* A job was answered, as it was claimed: notes how retries fare. */
void dest_note_retry(struct dest *dest, const struct job *job, const struct settlement *settlement, instant now);
/* When something is to do for it although nothing happens; INSTANT_NONE: never. */
instant dest_next(const struct dest *dest, instant now);

#endif
