/*
 * source.h - one source: its thread, from an entry in the stream to a job in the store and the acknowledgement.
 */
#ifndef GUESTS_SOURCE_H
#define GUESTS_SOURCE_H

#include "guests/sources.h"

struct source;

/* `settings` and `config` live as long as it does. */
enum status source_new(const struct sources_settings *settings, const struct source_config *config,
                       struct source **ret_source, struct error *err) MUST_CHECK;
/* Once the board has its name. */
void source_begin(struct source *source);
/* Reads no more, and waits for nobody. */
void source_cease(struct source *source);
bool source_has_ended(const struct source *source);
/* Waits for its thread, and releases it. */
void source_stop(struct source *source);

#endif
