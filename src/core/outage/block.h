/*
 * block.h - answers that refuse us (credentials, certificate, account): who is held for them, and when it is looked again.
 *
 * A refused job is held. The answers to others say how far it goes: when the tenant's next new job is refused too, with
 * nothing good of that tenant between, the tenant is held; when a tenant that was well is refused next, with nothing good
 * of anybody between, the destination is, and so it is for the jobs of an only tenant. What never left this machine (TLS,
 * a private address) holds the destination at once, since no job is to blame; or the tenant, where it has an account of its
 * own there, with another certificate, login or address than the others.
 *
 * A held tenant or destination is looked at with one job after a minute; after a look that is refused the next comes after
 * as long as it has been held by then, which doubles the wait, up to an hour: accounts get locked. A good answer ends it.
 * A job that is refused again is no news and decides nothing, nor does a tenant's that is not well yet: so nobody holds
 * the others by being refused again and again. A hold that proves wrong before a look has confirmed it asks for twice as
 * many refusals the next time: many jobs that are refused for their own sake do not stop the good ones between them.
 */
#ifndef CORE_OUTAGE_BLOCK_H
#define CORE_OUTAGE_BLOCK_H

#include "base/instant.h"
#include "base/slice.h"
#include "core/decision/outcome.h"

enum {
    BLOCK_LOOK_MS = 60 * 1000,            /* the first look */
    BLOCK_LOOK_MAX_MS = 60 * 60 * 1000,   /* the longest interval */
    BLOCK_NEEDED = 2,                     /* refusals in a row, each of another one */
    BLOCK_NEEDED_MAX = 64,
};

/* What outlives a restart; of a destination or of a tenant there. */
struct block_saved {
    bool held;
    instant since, look_at; /* of that; else INSTANT_NONE */
    bool confirmed;         /* a look was refused */
    bool unsent;            /* no request left */
    int64_t needed;         /* held or not */
};

struct block {
    struct block_saved saved;
    int64_t last, in_a_row; /* who was refused last, and how many one after the other with it, with nothing good since */
};

struct block_refusal {
    int64_t job, tenant;
    bool again;       /* the job was refused the last time too */
    bool unsent;      /* block_is_unsent */
    bool only_tenant; /* nobody else ever had a job there */
    bool own;         /* each tenant has credentials of its own: the destination is never held for them */
    bool account;     /* this one's are configured, and so is all of the way there */
};

/* What is held from now on that was not before. */
enum block_scope {
    BLOCK_JOB, /* nothing more */
    BLOCK_TENANT,
    BLOCK_DESTINATION,
};

void block_init(struct block *block);
bool block_holds(const struct block *block);
/* Whether a look may go. A clock that was put back does not make the wait longer. */
bool block_looks(const struct block *block, instant now);
/* One goes; should it say nothing, the next follows after a minute. */
void block_looked(struct block *block, instant now);
/* Somebody came who may know more. */
void block_hasten(struct block *block, instant now);
/* A tenant has work: one that was not refused while the destination is held waits for a look for a minute at most. */
void block_newcomer(struct block *destination, const struct block *tenant, instant now);

/* An answer refused us. */
enum block_scope block_refused(struct block *destination, struct block *tenant, const struct block_refusal *refusal,
                               instant now);
/* The second address did, which holds no tenants: whether it is held from now on. */
bool block_second_refused(struct block *second, const struct block_refusal *refusal, instant now);
/* An answer came that nobody gives to whom it refuses. True: it was held. */
bool block_went_well(struct block *block);
/* What it was held for is held otherwise, or is over; what is known of whom stays. */
void block_ends(struct block *block);
void block_restore(struct block *block, const struct block_saved *saved);

/* How long a job waits that was refused so many times in a row. */
int64_t block_job_ms(int64_t times);
/* By the code of a refusal: whether it is about what happened before a request left. */
bool block_is_unsent(struct slice code);
/* Whether an answer shows that we are let in. */
bool block_is_over(enum outcome outcome, struct slice code);

#endif
