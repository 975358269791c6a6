/*
 * schedule.h - reports that are sent: each once, when its time has come.
 *
 * Which one was sent last is saved with the job that sends it, so neither a crash nor another node sends it again, and one
 * whose time came while nothing ran is sent late. What was due before a report was first wanted is not.
 */
#ifndef ENGINE_REPORTS_SCHEDULE_H
#define ENGINE_REPORTS_SCHEDULE_H

#include "base/instant.h"

#define SPACE_REPORT_SENT SLICE("report_sent") /* by day/NAME/at or week/NAME/at: when it was due */

struct engine;
struct report_config;
struct schedule;

/* The last time at or before `now` at which it was due. */
instant report_due(const struct report_config *report, instant now);

/* Sends what is due, one at a time. *schedule is made when it is first needed; without memory it is tried again. */
void reports_send(struct engine *engine, struct schedule **schedule);
void schedule_free(struct schedule *schedule); /* accepts NULL */

#endif
