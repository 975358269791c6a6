/*
 * sources_read.h - what is read of sources and of their Redis, for alerts of the daemon.
 */
#ifndef ENGINE_ALERTS_SOURCES_READ_H
#define ENGINE_ALERTS_SOURCES_READ_H

struct engine;

void sources_read(struct engine *engine);

#endif
