/*
 * sources.h - makes the entries of Redis streams to jobs, each to one.
 *
 * A thread a source reads as a consumer of a group, stores, and acknowledges what is stored. The job's id follows from the
 * entry, so what is read twice, after a crash of either side, is stored once. What cannot be stored now stays pending in
 * the group and is read again; nothing is read beyond it while the store takes nothing. What can be no job is moved to a
 * stream of its own, and what comes behind it goes on.
 */
#ifndef GUESTS_SOURCES_H
#define GUESTS_SOURCES_H

#include "config/config.h"
#include "node/source_board.h"
#include "node/writer.h"

struct sources_settings {
    struct config *config; /* a reference is taken */
    struct store *store;
    struct writer *writer;
    struct source_board *board;
    instant (*now)(void *context); /* from any thread */
    void *context;
};

struct sources;

/* A thread for each source of the configuration. They do nothing before sources_begin, which cannot fail. */
enum status sources_new(const struct sources_settings *settings, struct sources **ret_sources,
                        struct error *err) MUST_CHECK;
void sources_begin(struct sources *sources);
/* Reads no more, and waits for nobody. Accepts NULL. */
void sources_cease(struct sources *sources);
/* `previous` is not wanted any more: it ceases, and is released with `sources` at the latest. It is not waited for. */
void sources_follow(struct sources *sources, struct sources *previous);
/* The writer must still run. Accepts NULL. */
void sources_stop(struct sources *sources);

#endif
