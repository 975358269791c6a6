/*
 * Invariant 4, of answers that refuse us: one job never holds the others, and one tenant holds none beside it. All of a
 * destination's first or second address is held only when a second tenant is refused there with nothing good of anybody between,
 * or, where there is only one tenant, a second job of it with nothing good of that tenant between; and never for credentials that
 * each tenant has of its own. A job that is refused again is no news.
 *
 * The daemon's own jobs, that tell of alerts, are a tenant's like any other, but for one thing: that they are let in says
 * nothing of the jobs of an only tenant.
 */
#include "world.h"

#include "core/outage/block.h"
#include "engine/loop.h"

enum { JOBS_NEEDED = 2, TENANTS_NEEDED = 2 };

static bool holds(const struct world *world, int dest, int second)
{
    const struct dest *known = dest_find(world->engine, slice_from(dest_names[dest]));
    return known && block_holds(second ? &known->fallback.block : &known->gate.block);
}

static void forget_rows(struct block_view *view)
{
    memset(view->rows, 0, sizeof view->rows);
    view->tenants = 0;
    view->alone = false;
}

/* Nobody else ever had a job there; the daemon's own do not count. */
static bool is_only(const struct world *world, int dest, int tenant)
{
    int64_t tenants = dest_tenants(world, dest);
    return tenants == 0 || (tenants == 1 && tenant != TENANT_NOTIFY);
}

void refused_answered(struct world *world, const struct flight *flight, enum outcome outcome)
{
    const struct job *job = flight->send->job;
    int tenant = flight->shadow->tenant, number = (int)(flight->shadow - world->jobs), second = flight->send->use_fallback;
    struct block_view *view = &world->dests[flight->shadow->dest].blocks[second];
    if (!flight->answer.attempted || job->step != STEP_SEND)
        return;
    if (block_is_over(outcome, flight->answer.code)) {
        view->tenants = 0;
        view->rows[tenant].jobs = 0;
        if (second)
            forget_rows(view);
    }
    bool again = job->last_class == OUTCOME_BLOCKED && job->step_count > 0;
    struct block_row *row = &view->rows[tenant];
    bool newcomer = view->blocked && !second && row->jobs == 0; /* while all are held, whoever is refused is none any more */
    if (outcome != OUTCOME_BLOCKED || (again && !newcomer))
        return;
    row->jobs += row->jobs == 0 || row->job != number;
    row->job = number;
    view->tenants |= 1U << tenant;
    view->last = tenant;
    view->alone = view->alone || (second && is_only(world, flight->shadow->dest, tenant)); /* the count goes on when others come */
}

void check_refused(struct world *world, int dest)
{
    const struct destination_config *config = world_dest(world, dest);
    for (int second = 0; second < 2; second++) {
        struct block_view *view = &world->dests[dest].blocks[second];
        bool held = holds(world, dest, second), begins = held && !view->blocked && config && config->transport != TRANSPORT_PULL;
        bool alone = view->alone || is_only(world, dest, view->last);
        bool tenants = __builtin_popcount(view->tenants) >= TENANTS_NEEDED;
        if (begins && config->blocked == BLOCKED_TENANT)
            violated(world, INVARIANT_ATTEMPTS, "%s is held, where each tenant has credentials of its own", dest_names[dest]);
        if (begins && !tenants && !(alone && view->rows[view->last].jobs >= JOBS_NEEDED))
            violated(world, INVARIANT_ATTEMPTS, "%s%s is held for %d refused jobs of t%d%s", dest_names[dest],
                     second ? "'s second address" : "", view->rows[view->last].jobs, view->last, alone ? "" : ", which is not alone");
        view->blocked = held;
    }
}

/* What it was refused before is forgotten, by an operator's word or because the process is another. */
void refused_forget(struct world *world, int dest)
{
    for (int second = 0; second < 2; second++) {
        struct block_view *view = &world->dests[dest].blocks[second];
        forget_rows(view);
        view->blocked = holds(world, dest, second); /* an end of it that was not saved before a crash is found again */
    }
}
