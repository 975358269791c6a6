#include "core/ownership/ownership.h"

#include <assert.h>

static_assert(OWNERSHIP_TRUST_MS + OWNERSHIP_BEAT_MS < OWNERSHIP_DEAD_MS, "who is dead to others has stopped well before");

struct actions {
    struct ownership_action *items;
    size_t count, max;
};

static void act(struct actions *actions, struct ownership_action action)
{
    if (actions->count < actions->max)
        actions->items[actions->count++] = action;
}

void ownership_init(struct ownership *ownership, int64_t session)
{
    assert(session > 0);
    *ownership = (struct ownership){ .session = session, .trusted_until = INT64_MIN, .settled_at = INT64_MIN };
}

void ownership_beaten(struct ownership *ownership, int64_t sent_at)
{
    assert(ownership->session > 0);
    int64_t until = sent_at + OWNERSHIP_TRUST_MS;
    if (until > ownership->trusted_until) /* answers may come in another order than beats were sent */
        ownership->trusted_until = until;
}

bool ownership_trusted(const struct ownership *ownership, int64_t now)
{
    return now < ownership->trusted_until;
}

void ownership_away(struct ownership *ownership)
{
    ownership->watched_count = 0;
}

/* ---- looking ---- */

static const struct node_seen *seen_session(const struct cluster_seen *seen, int64_t session)
{
    for (size_t i = 0; i < seen->node_count; i++)
        if (seen->nodes[i].session == session)
            return &seen->nodes[i];
    return NULL;
}

static struct session_watched *watched(struct ownership *ownership, int64_t session)
{
    for (size_t i = 0; i < ownership->watched_count; i++)
        if (ownership->watched[i].session == session)
            return &ownership->watched[i];
    return NULL;
}

static bool forget_ended(struct ownership *ownership, const struct cluster_seen *seen)
{
    size_t left = 0;
    for (size_t i = 0; i < ownership->watched_count; i++)
        if (seen_session(seen, ownership->watched[i].session))
            ownership->watched[left++] = ownership->watched[i];
    bool ended = left < ownership->watched_count;
    ownership->watched_count = left;
    return ended;
}

/* Whether others run than at the last look; the first look finds all of them new. */
static bool watch(struct ownership *ownership, const struct cluster_seen *seen, int64_t now)
{
    bool changed = forget_ended(ownership, seen) || ownership->settled_at == INT64_MIN;
    for (size_t i = 0; i < seen->node_count && i < NODES_MAX; i++) {
        const struct node_seen *node = &seen->nodes[i];
        struct session_watched *known = node->session != 0 ? watched(ownership, node->session) : NULL;
        if (node->session == 0 || node->session == ownership->session || (known && known->beat == node->beat))
            continue;
        if (!known) {
            assert(ownership->watched_count < NODES_MAX);
            known = &ownership->watched[ownership->watched_count++];
            changed = true;
        }
        *known = (struct session_watched){ .session = node->session, .beat = node->beat, .since = now };
    }
    return changed;
}

static void fence_dead(const struct ownership *ownership, int64_t now, struct actions *actions)
{
    for (size_t i = 0; i < ownership->watched_count; i++) {
        const struct session_watched *other = &ownership->watched[i];
        if (now - other->since >= OWNERSHIP_DEAD_MS)
            act(actions, (struct ownership_action){ .act = OWNERSHIP_FENCE, .session = other->session,
                                                    .beat = other->beat });
    }
}

static bool is_given(const struct ownership *ownership, const struct shard_seen *shard)
{
    return ownership->gives && shard_key(shard->name) == ownership->giving;
}

/* What was on its way has left. */
static void look_for_given(struct ownership *ownership, const struct cluster_seen *seen)
{
    bool still = false;
    for (size_t i = 0; i < seen->shard_count && ownership->gives; i++)
        still = still || (is_given(ownership, &seen->shards[i]) && seen->shards[i].session == ownership->session);
    ownership->gives = still;
}

/* Takes what is free and ours. Of what we have and others should, gives one away at a time, once it is quiet. */
static void move_shards(struct ownership *ownership, const struct cluster_seen *seen, int64_t now, const int64_t *placement,
                        struct actions *actions)
{
    bool quiet = now - ownership->settled_at >= OWNERSHIP_DEAD_MS;
    look_for_given(ownership, seen);
    for (size_t i = 0; i < seen->shard_count; i++) {
        const struct shard_seen *shard = &seen->shards[i];
        bool ours = placement[i] == ownership->session;
        if (shard->session == 0 && ours)
            act(actions, (struct ownership_action){ .act = OWNERSHIP_TAKE, .shard = shard->name });
        if (shard->session != ownership->session)
            continue;
        if (!ours && quiet && !ownership->gives) {
            ownership->gives = true;
            ownership->giving = shard_key(shard->name);
        }
        if (is_given(ownership, shard))
            act(actions, (struct ownership_action){ .act = OWNERSHIP_GIVE, .shard = shard->name });
    }
}

size_t ownership_look(struct ownership *ownership, const struct cluster_seen *seen, int64_t now, int64_t *placement,
                      struct ownership_action *ret_actions, size_t max)
{
    assert(ownership->session > 0);
    struct actions actions = { .items = ret_actions, .max = max };
    if (!seen_session(seen, ownership->session)) {
        ownership->trusted_until = INT64_MIN;
        act(&actions, (struct ownership_action){ .act = OWNERSHIP_ENDED, .session = ownership->session });
        return actions.count;
    }
    if (watch(ownership, seen, now))
        ownership->settled_at = now;
    fence_dead(ownership, now, &actions);
    placement_of(seen, placement);
    if (ownership_trusted(ownership, now))
        move_shards(ownership, seen, now, placement, &actions);
    return actions.count;
}

instant ownership_ripe_at(instant ended_at, bool in_order, int64_t timeout_ms)
{
    assert(timeout_ms >= 0);
    return in_order ? ended_at : instant_add(ended_at, timeout_ms + OWNERSHIP_MARGIN_MS);
}
