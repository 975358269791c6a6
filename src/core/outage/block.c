#include "core/outage/block.h"

#include <assert.h>

void block_init(struct block *block)
{
    *block = (struct block){ .saved = { .since = INSTANT_NONE, .look_at = INSTANT_NONE, .needed = BLOCK_NEEDED } };
}

bool block_holds(const struct block *block)
{
    return block->saved.held;
}

bool block_looks(const struct block *block, instant now)
{
    return block_holds(block) &&
           (block->saved.look_at <= now || block->saved.look_at > instant_add(now, BLOCK_LOOK_MAX_MS));
}

void block_looked(struct block *block, instant now)
{
    assert(block_holds(block));
    block->saved.look_at = instant_add(now, BLOCK_LOOK_MS);
}

void block_hasten(struct block *block, instant now)
{
    if (block_holds(block))
        block->saved.look_at = now;
}

void block_newcomer(struct block *destination, const struct block *tenant, instant now)
{
    bool may_know = block_holds(destination) && !destination->saved.unsent && tenant->in_a_row == 0 && !block_holds(tenant);
    instant soon = instant_add(now, BLOCK_LOOK_MS);
    if (may_know && destination->saved.look_at > soon)
        destination->saved.look_at = soon;
}

static int64_t interval_ms(int64_t held_ms)
{
    assert(held_ms >= 0);
    if (held_ms < BLOCK_LOOK_MS)
        return BLOCK_LOOK_MS;
    return held_ms < BLOCK_LOOK_MAX_MS ? held_ms : BLOCK_LOOK_MAX_MS;
}

static void hold(struct block *block, bool unsent, instant now)
{
    block->saved.held = true;
    block->saved.since = now;
    block->saved.look_at = instant_add(now, BLOCK_LOOK_MS);
    block->saved.confirmed = false;
    block->saved.unsent = unsent;
}

/* What was under way when it began says nothing new, and does not put off the first look. */
static void refused_again(struct block *block, bool unsent, instant now)
{
    assert(block_holds(block));
    int64_t held_ms = now > block->saved.since ? now - block->saved.since : 0;
    if (held_ms < BLOCK_LOOK_MS)
        return;
    block->saved.confirmed = true;
    block->saved.unsent = unsent;
    block->saved.look_at = instant_add(now, interval_ms(held_ms));
}

static void count(struct block *block, int64_t who)
{
    assert(who > 0);
    block->in_a_row += block->last != who;
    block->last = who;
}

enum block_scope block_refused(struct block *destination, struct block *tenant, const struct block_refusal *refusal,
                               instant now)
{
    assert(destination != tenant && refusal->job > 0);
    if (block_holds(destination)) {
        if (tenant->in_a_row == 0)
            count(tenant, refusal->job); /* it is no newcomer any more */
        refused_again(destination, refusal->unsent, now);
        return BLOCK_JOB;
    }
    if (refusal->unsent && !refusal->account) {
        hold(destination, true, now);
        return BLOCK_DESTINATION;
    }
    if (block_holds(tenant)) {
        refused_again(tenant, refusal->unsent, now);
        return BLOCK_JOB;
    }
    if (refusal->unsent) {
        hold(tenant, true, now);
        return BLOCK_TENANT;
    }
    if (refusal->again)
        return BLOCK_JOB;
    bool was_well = tenant->in_a_row == 0;
    bool only = refusal->only_tenant && !refusal->own;
    count(tenant, refusal->job);
    if (was_well && !refusal->own)
        count(destination, refusal->tenant);
    bool more_jobs = tenant->in_a_row >= (only ? destination : tenant)->saved.needed;
    bool more_tenants = was_well && destination->in_a_row >= destination->saved.needed;
    if (more_tenants || (only && more_jobs)) {
        hold(destination, false, now);
        return BLOCK_DESTINATION;
    }
    if (!more_jobs)
        return BLOCK_JOB;
    hold(tenant, false, now);
    return BLOCK_TENANT;
}

bool block_second_refused(struct block *second, const struct block_refusal *refusal, instant now)
{
    assert(second->saved.needed > 0 && refusal->job > 0);
    if (block_holds(second)) {
        refused_again(second, refusal->unsent, now);
        return false;
    }
    if (refusal->account)
        return false; /* which says nothing of the others */
    if (!refusal->unsent) {
        if (refusal->again || refusal->own)
            return false;
        count(second, refusal->only_tenant ? refusal->job : refusal->tenant);
        if (second->in_a_row < second->saved.needed)
            return false;
    }
    hold(second, refusal->unsent, now);
    return true;
}

bool block_went_well(struct block *block)
{
    assert(block->saved.needed > 0);
    bool held = block_holds(block);
    block->last = block->in_a_row = 0;
    if (held && !block->saved.unsent) {
        int64_t more = block->saved.needed < BLOCK_NEEDED_MAX ? 2 * block->saved.needed : BLOCK_NEEDED_MAX;
        block->saved.needed = block->saved.confirmed ? BLOCK_NEEDED : more;
    }
    block_ends(block);
    return held;
}

void block_ends(struct block *block)
{
    block->saved.held = block->saved.confirmed = block->saved.unsent = false;
    block->saved.since = block->saved.look_at = INSTANT_NONE;
}

void block_restore(struct block *block, const struct block_saved *saved)
{
    block_init(block);
    block->saved = *saved;
    if (saved->needed < BLOCK_NEEDED || saved->needed > BLOCK_NEEDED_MAX)
        block->saved.needed = BLOCK_NEEDED;
}

int64_t block_job_ms(int64_t times)
{
    int64_t wait = BLOCK_LOOK_MS;
    assert(times > 0);
    while (--times > 0 && wait < BLOCK_LOOK_MAX_MS)
        wait *= 2;
    return wait < BLOCK_LOOK_MAX_MS ? wait : BLOCK_LOOK_MAX_MS;
}

bool block_is_unsent(struct slice code)
{
    static const char *const logins[] = { "smtp:530", "smtp:534", "smtp:535", "smtp:538" }; /* no message was offered yet */
    bool login = false;
    for (size_t i = 0; i < sizeof logins / sizeof *logins; i++)
        login = login || slice_equal(code, slice_from(logins[i]));
    return login || slice_has_prefix(code, SLICE("curl:")) || slice_has_prefix(code, SLICE("insist:")) ||
           slice_has_prefix(code, SLICE("oauth2:")); /* no token, so that nothing was sent */
}

bool block_is_over(enum outcome outcome, struct slice code)
{
    switch (outcome) {
    case OUTCOME_DELIVERED:
    case OUTCOME_ACCEPTED:
        return true;
    case OUTCOME_DUPLICATE:
    case OUTCOME_PERMANENT:
    case OUTCOME_PARTIAL:
        return !block_is_unsent(code);
    default:
        return false;
    }
}
