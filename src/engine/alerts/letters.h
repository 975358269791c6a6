/*
 * letters.h - dead letters that somebody wants to hear of one by one (`each` of notify).
 *
 * The message is a job. It is put into the batch that settles the dead one, so that both are there or none; where that
 * batch is full it comes with the next. Of one that expires while it waits the store tells afterwards: its message comes
 * with the batch after, and if the process does not live that long the alert `dead_letters` tells of the job.
 */
#ifndef ENGINE_ALERTS_LETTERS_H
#define ENGINE_ALERTS_LETTERS_H

#include "engine/engine.h"

struct letter;
struct dest;
struct op_settle;
struct settlement;

/* A job died: makes what is to be sent. `settle` is what is written of it. */
void letters_job_dead(struct engine *engine, const struct dest *dest, const struct job *job, const struct op_settle *settle,
                      const struct settlement *settlement);
/* A job expired while it waited; this is how it stands now. */
void letters_job_expired(struct engine *engine, const struct job *job);
/* Whether anybody wants to hear of single jobs. */
bool letters_wanted(const struct engine *engine);
/* Puts what is to be sent into the batch being filled. */
void letters_write(struct engine *engine);
void letters_free(struct engine *engine);

#endif
