/*
 * refusals.h - a destination that refuses some: for tests of what is held then, and what goes again.
 */
#ifndef SUPPORT_REFUSALS_H
#define SUPPORT_REFUSALS_H

#include "support/engine_fixture.h"

/* Who is refused, and until when. */
struct door {
    const char *jobs, *tenants; /* the first letters of their names; NULL: none */
    bool all;
    int one_in;    /* of jobs by their number; 0: none */
    bool unsent;   /* the certificate is the reason */
    instant until; /* 0: always */
    int refused;
    instant refused_at[64];
};

/* The stage's destination; its context is the door. */
int64_t guards(struct stage *stage, const struct send *send, struct answer *answer);
/* So many jobs for the destination "d", which are called by the letter and a number. */
void add_lettered(struct stage *stage, const char *tenant, char letter, int count);
void resume_d(struct stage *stage);

#endif
