/*
 * decisions.h - the library's JSON decisions for the API.
 *
 * Apart from the handlers because a transport's answer and a question's answer have the same name.
 */
#ifndef API_DECISIONS_H
#define API_DECISIONS_H

#include "base/buffer.h"
#include "config/config.h"
#include "core/decide.h"

struct decisions;

/* For questions about the destinations of `config` and the presets; NULL: no memory. */
struct decisions *decisions_new(struct config *config);
void decisions_free(struct decisions *decisions);

/* Answers a question. False: it was invalid, and `out` says why. */
bool decisions_answer(struct decisions *decisions, struct slice question, instant now, struct buffer *out);

/* A decision that was made already, in the same form. */
void decisions_write(const struct policy *policy, struct slice error, const struct decision *decision, struct buffer *out);

#endif
