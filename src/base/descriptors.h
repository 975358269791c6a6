/*
 * descriptors.h - how the process's open files are shared out.
 *
 * Clients' connections and sends' connections each have a part of their own, so that neither can take the last
 * descriptor from the other, and some are reserved for the store, the log and what libraries open.
 */
#ifndef BASE_DESCRIPTORS_H
#define BASE_DESCRIPTORS_H

#include <stdint.h>

enum { DESCRIPTORS_RESERVED = 64 };

struct descriptors {
    int64_t clients; /* connections that others make to us, at most as many as were wanted */
    int64_t sends;   /* connections that we make, idle ones included */
};

/* Of `limit` open files. Neither part is ever 0. */
struct descriptors descriptors_share(int64_t limit, int64_t clients_wanted);

/* The limit of this process; INT64_MAX: there is none. */
int64_t descriptors_limit(void);

#endif
