/*
 * decide_batch.h - `insist decide --batch`: one question a line in, one answer a line out.
 */
#ifndef CLI_OFFLINE_DECIDE_BATCH_H
#define CLI_OFFLINE_DECIDE_BATCH_H

#include "lib/decision_json.h"

/*
 * Answers standard input until it ends. `now` INSTANT_NONE: the system's clock, line by line.
 * Answers are written when there are 64 KB of them and whenever the input pauses, so that a
 * program can ask and wait. EXIT_DONE; EXIT_USAGE when a line was invalid; EXIT_FAILED after
 * its message.
 */
int decide_batch(const struct policy *policy, struct policy_set *policies, instant now);

#endif
