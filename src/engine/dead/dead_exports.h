/*
 * dead_exports.h - dead letters whose time is over become jobs of the destination that `dead.export` names.
 *
 * OP_PROMOTE puts such letters off and names them. Here they wait, by destination, as numbers; some at a time are read and
 * written as lines by the reader's thread, and go to the store with the jobs that they become, each in one operation: the
 * letter is deleted if and only if its job is there. What the store refuses stays a dead letter, which OP_PROMOTE names
 * again. So nothing of it is saved, and a crash at any point costs time and no letter.
 *
 * One destination's letters go at a time, the one's first that had its turn longest ago. While a person is erased none goes:
 * what a letter becomes is a newer job than those that the erasure goes over.
 */
#ifndef ENGINE_DEAD_DEAD_EXPORTS_H
#define ENGINE_DEAD_DEAD_EXPORTS_H

#include "engine/questions.h"

struct dest;
struct engine;
struct job;

enum {
    DEAD_EXPORTS_WAITING_MAX = 10000,           /* letters of one destination */
    DEAD_EXPORTS_AT_ONCE = 64,                  /* letters that are read together, */
    DEAD_EXPORTS_WANTED_MS = 10 * 60 * 1000,    /* one that was named and is still there is named again after this, */
    DEAD_EXPORTS_UNWANTED_MS = 60 * 1000,       /* and one for which there was no room after this */
    DEAD_EXPORTS_REASON_BYTES = 160,
};

/* Those of a destination. */
struct dead_exports {
    struct due_letter *waiting; /* NULL: none */
    size_t first, count, capacity;
    uint64_t turn; /* of all destinations: when it had its last */
    size_t out;    /* letters on their way to the store */
    struct export_page {
        struct question question; /* first */
        struct dest *dest;
        struct due_letter wanted[DEAD_EXPORTS_AT_ONCE];
        size_t wanted_count;
        int64_t ttl_ms, aging_ms; /* of the letters, and of the jobs that they become */
        char *to;                 /* the destination of these */
        instant now;
        struct exported_letter *letters; /* the answer: the first of them, as far as they are there, */
        size_t count, looked_at;         /* of so many that were looked for */
        bool erasing;                    /* somebody is being erased: nothing was looked for */
    } page;
    struct arena lines; /* of what is on its way */
    int64_t exported, refused_now; /* of that */
    struct {
        int64_t count; /* letters, since */
        instant since, at; /* the last was then */
        char reason[DEAD_EXPORTS_REASON_BYTES];
    } refused;
};

void dead_exports_release(struct dest *dest);
/* How many more letters of it can wait here. */
size_t dead_exports_room(const struct dest *dest);
/* One whose time is over. */
void dead_exports_add(struct dest *dest, const struct due_letter *letter);
void dead_exports_run(struct engine *engine);
/* Whether something of it is under way; of any. */
bool dead_exports_out(const struct dest *dest);
bool dead_exports_any_out(const struct engine *engine);
/* Whether a job was a dead letter, as its id says. */
bool dead_export_is(const struct job *job);
/* How many letters were refused of late and are still there, as far as is known. */
int64_t dead_exports_refused(const struct dest *dest, instant now);

#endif
