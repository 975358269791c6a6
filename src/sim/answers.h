/*
 * answers.h - a model's reply in the words of the destination's protocol, so that the policy's own rules judge it.
 */
#ifndef SIM_ANSWERS_H
#define SIM_ANSWERS_H

#include "base/buffer.h"
#include "sim/model.h"
#include "transport/transport.h"

/* `there`: the destination had the job before, for questions about it. Texts are static. */
void answer_make(const struct model_reply *reply, const struct send *send, bool there, struct answer *ret_answer);

/* A reply to a health check, as the destination's check expects it. Its body lives in `body`, which is emptied first. */
void health_answer_make(const struct model_reply *reply, const struct health_config *health, struct buffer *body,
                        struct health_answer *ret_answer);

#endif
