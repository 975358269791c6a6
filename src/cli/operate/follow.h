/*
 * follow.h - reading the daemon's stream of events.
 */
#ifndef CLI_OPERATE_FOLLOW_H
#define CLI_OPERATE_FOLLOW_H

#include "cli/talk/client.h"

struct follow {
    struct client *client;
    const char *job, *tenant; /* NULL: of all */
    int64_t after;            /* where it begins, then the last event seen; negative: with what is new */
    /* Takes the events of one piece, an array; false: no more are wanted. */
    bool (*take)(void *context, const json_t *events);
    void *context;
};

/*
 * Goes on until `take` has enough, which is EXIT_DONE; comes again by itself where the daemon asks for that. *ret_refused:
 * it has no room for another that follows, nothing was said, and the events must be asked for. Else EXIT_FAILED after a
 * message.
 */
int follow_events(struct follow *follow, bool *ret_refused);

#endif
