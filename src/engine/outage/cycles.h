/*
 * cycles.h - what each run of a destination with cycles selected, and what came of it.
 */
#ifndef ENGINE_OUTAGE_CYCLES_H
#define ENGINE_OUTAGE_CYCLES_H

#include "core/outage/cycle.h"
#include "core/outage/gate.h"
#include <jansson.h>

struct dest;
struct job;
struct settlement;

/* Jobs were claimed through one of its gates. */
void dest_cycle_selected(struct dest *dest, const struct gate *gate, struct gate_pass pass, const struct job *jobs,
                         size_t count, instant now);
/* One of them was answered; NULL: it never left. */
void dest_cycle_answered(struct dest *dest, const struct gate *gate, struct gate_pass pass,
                         const struct settlement *settlement, instant now);
/* Time has passed: tells of the runs that are over. */
void dest_cycle_tick(struct dest *dest, instant now);
/* What is saved of the last run: the member "cycle". */
void cycle_read(const json_t *root, struct cycle_figures *figures);

#endif
