/*
 * engine_fixture.h - what tests of the engine on a stage have in common: one destination "d", and what is told of it.
 */
#ifndef SUPPORT_ENGINE_FIXTURE_H
#define SUPPORT_ENGINE_FIXTURE_H

#include "engine/status.h"
#include "support/stage.h"

#include <jansson.h>

/* 2025-01-12T10:40:00Z, a Sunday. */
static const instant began = INT64_C(1736678400000);

/* How "d" stands. */
struct destination_status status_of(const struct stage *stage);
/* Jobs for "d" of two tenants in turns, A and B. */
void add_jobs(struct stage *stage, int count);
size_t sends_under_way(const struct stage *stage);

/* A destination that takes everything, in 20 ms. */
int64_t delivers(struct stage *stage, const struct send *send, struct answer *answer);

/* Every event of the trail, the oldest first. */
void events_each(struct stage *stage, void (*see)(void *context, const struct event *event), void *context);
/* How many events of destinations have this text. */
int told_text(struct stage *stage, const char *text);
/* How many tell of this change; the last of them as an object, to be unreferenced, when asked for. */
int reported(struct stage *stage, const char *change, json_t **ret_last);

#endif
