/*
 * source_board.h - how the sources stand: written by their threads, read by the engine for alerts and by the API.
 */
#ifndef NODE_SOURCE_BOARD_H
#define NODE_SOURCE_BOARD_H

#include "base/instant.h"
#include "config/config.h"
#include "transport/broker/redis_health.h"

enum source_state {
    SOURCE_STARTING, /* nothing is known yet */
    SOURCE_READING,
    SOURCE_WAITING,  /* it reads, and what was read cannot be stored now */
    SOURCE_AWAY,     /* the server cannot be reached, or refuses */
    SOURCE_STATE_COUNT
};
const char *source_state_name(enum source_state state);

enum { SOURCE_TEXT_BYTES = 256, SOURCE_ENTRY_BYTES = 64 };

/* Entries, since the start of the process, over reloads. */
struct source_counts {
    int64_t accepted;   /* that became jobs */
    int64_t duplicates; /* of which there was a job already */
    int64_t rejected;   /* that can be none, set aside */
    int64_t gone;       /* that somebody deleted or trimmed before they were read */
    int64_t claimed;    /* taken over from another consumer */
};

/* One source. */
struct source_figures {
    char name[SOURCE_TEXT_BYTES];
    char destination[SOURCE_TEXT_BYTES];
    enum source_state state;
    instant since;                /* of the state */
    char reason[SOURCE_TEXT_BYTES]; /* of waiting and of being away: what is wrong */
    struct source_counts counts;
    int64_t held;       /* read, not stored yet: in the group's list of what is pending */
    int64_t lag;        /* not read yet; negative: not known */
    instant last_at;    /* an entry became a job; INSTANT_NONE: never */
    char rejected_entry[SOURCE_ENTRY_BYTES], rejected_reason[SOURCE_TEXT_BYTES]; /* the last; empty: none */
    bool checked;               /* `redis` says something */
    struct redis_health redis;
    int64_t refused_before; /* of redis.refused, when it was first looked at */
};

struct source_board;

struct source_board *source_board_new(void); /* NULL: no memory */
void source_board_free(struct source_board *board); /* accepts NULL */

/* Those of other names are forgotten, those that are new begin. */
void source_board_name(struct source_board *board, const struct config *config, instant now);
/* False: it is not there any more. */
bool source_board_get(struct source_board *board, const char *name, struct source_figures *ret_figures);
/* All but its counts, which only grow. */
void source_board_set(struct source_board *board, const struct source_figures *figures);
/* So many more; from one that was left behind by a reload, too. */
void source_board_count(struct source_board *board, const char *name, const struct source_counts *more);
/* All of them, in order of the configuration; at most SOURCES_MAX. Accepts NULL: none. */
size_t source_board_copy(struct source_board *board, struct source_figures *ret_figures);

/* Why a source stands as it does and what to do, in sentences. */
void source_why(const struct source_figures *figures, instant now, struct buffer *out);

#endif
