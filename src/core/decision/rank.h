/*
 * rank.h - the order of jobs inside one lane: one number, fixed when the job is stored, the smaller first.
 *
 * A rank is a time: the job goes before critical work that arrives later than that. Class, age and
 * deadline are all in it, so nothing is sorted anew while a job waits.
 */
#ifndef CORE_DECISION_RANK_H
#define CORE_DECISION_RANK_H

#include "base/instant.h"
#include "core/decision/job.h"

/* `since` plus one aging interval a class: old normal work overtakes new critical work in the end. */
int64_t rank_of(enum priority priority, instant since, int64_t aging_ms);

/*
 * The same for a job with a deadline of its own: `lead_ms` before it the job goes before all work that arrives from then
 * on, and one aging interval earlier before all of high priority. The lead is at most half of the job's life, so that a
 * short deadline does not by itself overtake critical work that is there already: `since` <= result <= rank. INSTANT_NONE:
 * as it is.
 */
int64_t rank_heed_deadline(int64_t rank, instant since, instant deadline, int64_t lead_ms);

#endif
