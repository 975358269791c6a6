/*
 * What must hold, whoever sends.
 */
#include "nodes.h"

#include "core/fairness/rate.h"

#include <inttypes.h>

int64_t check_events_now(struct cluster *cluster)
{
    check_applied(cluster);
    return cluster->event_number;
}

/* ---- every job ends once ---- */

static bool is_open(enum job_state state)
{
    return state == STATE_PENDING || state == STATE_RUNNING || state == STATE_WAITING;
}

static enum job_event cause_of(enum event_type type)
{
    static const struct { enum event_type type; enum job_event event; } causes[] = {
        { EVENT_TYPE_CLAIMED, EVENT_CLAIM },   { EVENT_TYPE_COMPLETED, EVENT_DELIVER }, { EVENT_TYPE_RETRY_SCHEDULED, EVENT_RETRY },
        { EVENT_TYPE_RELEASED, EVENT_RELEASE }, { EVENT_TYPE_DEAD, EVENT_GIVE_UP },     { EVENT_TYPE_EXPIRED, EVENT_EXPIRE },
    };
    for (size_t i = 0; i < COUNT_OF(causes); i++)
        if (causes[i].type == type)
            return causes[i].event;
    return EVENT_COUNT;
}

static void check_job_event(struct cluster *cluster, const struct event *event)
{
    struct shadow *shadow = &cluster->jobs[job_of(event->job)];
    enum job_event cause = cause_of(event->type);
    enum job_state after = event->type == EVENT_TYPE_ACCEPTED && shadow->state == STATE_NONE ? STATE_PENDING
                           : cause != EVENT_COUNT                                            ? job_state_after(shadow->state, cause)
                                                                                             : shadow->state;
    if (after == STATE_NONE || after != event->state || event->previous != shadow->last_event)
        violated(cluster, PROMISE_ENDS_ONCE, "%.*s was %s, then came %s and it is %s", SLICE_ARG(event->job), job_state_name(shadow->state),
                 event_type_name(event->type), job_state_name(event->state));
    shadow->ends += is_open(shadow->state) && !is_open(after);
    cluster->open += is_open(after) - is_open(shadow->state);
    shadow->state = after;
    shadow->last_event = event->number;
}

static void check_event(struct cluster *cluster, const struct event *event)
{
    struct event again = *event;
    event_chain(cluster->event_hash, &again);
    if (event->number != cluster->event_number + 1 || memcmp(again.hash, event->hash, sizeof again.hash) != 0)
        violated(cluster, PROMISE_ENDS_ONCE, "the chain of events breaks at %" PRId64, event->number);
    cluster->event_number = event->number;
    memcpy(cluster->event_hash, event->hash, sizeof cluster->event_hash);
    cluster->figures->events++;
    if (event->job.len > 0)
        check_job_event(cluster, event);
}

void check_applied(struct cluster *cluster)
{
    size_t count;
    do {
        struct arena memory = { 0 };
        struct event *events;
        struct error error;
        assert_int_equal(cluster->eye->ops->reader_events(cluster->eye, cluster->event_number, EVENTS_PAGE, &memory, &events, &count, &error),
                         STATUS_OK);
        for (size_t i = 0; i < count; i++)
            check_event(cluster, &events[i]);
        arena_release(&memory);
    } while (count == EVENTS_PAGE);
}

void check_refused(struct cluster *cluster, int64_t events_before)
{
    if (check_events_now(cluster) != events_before)
        violated(cluster, PROMISE_FENCED, "a session that has ended wrote %" PRId64 " events", cluster->event_number - events_before);
}

void check_ended(struct cluster *cluster)
{
    for (int i = 0; i < cluster->job_count; i++) {
        const struct shadow *shadow = &cluster->jobs[i];
        if (shadow->acknowledged && shadow->ends != 1)
            violated(cluster, PROMISE_ENDS_ONCE, "job %d of %s was acknowledged, is %s and has ended %d times", i, shard_names[shadow->dest + 1],
                     job_state_name(shadow->state), shadow->ends);
    }
}

/* ---- owners ---- */

void check_one_owner(struct node *node, int shard)
{
    struct cluster *cluster = node->cluster;
    for (int i = 0; i < NODES; i++)
        if (&cluster->nodes[i] != node && node_may_send(&cluster->nodes[i], shard) && node_may_send(node, shard))
            violated(cluster, PROMISE_ONE_OWNER, "nodes %s and %s both may send for \"%s\"", node->name, cluster->nodes[i].name, shard_names[shard]);
}

/* The store's word, when a node sends. */
static void check_owns(struct node *node, int shard)
{
    struct cluster *cluster = node->cluster;
    struct arena memory = { 0 };
    struct shard *shards;
    struct error error;
    size_t count;
    int64_t owner = 0;
    assert_int_equal(cluster->eye->ops->reader_shards(cluster->eye, &memory, &shards, &count, &error), STATUS_OK);
    for (size_t i = 0; i < count; i++)
        if (slice_equal(shards[i].destination, slice_from(shard_names[shard])))
            owner = shards[i].session;
    arena_release(&memory);
    if (owner != node->ownership.session)
        violated(cluster, PROMISE_ONE_OWNER, "node %s, session %" PRId64 ", sends for %s, which is session %" PRId64 "'s", node->name,
                 node->ownership.session, shard_names[shard], owner);
}

void check_owned(struct cluster *cluster, bool seen[SHARDS])
{
    for (int shard = 0; shard < SHARDS; shard++)
        for (int i = 0; i < NODES; i++)
            seen[shard] = seen[shard] || node_may_send(&cluster->nodes[i], shard);
}

void check_all_owned(struct cluster *cluster, const bool seen[SHARDS], const char *when)
{
    for (int shard = 0; shard < SHARDS; shard++)
        if (!seen[shard])
            violated(cluster, PROMISE_RECOVERY, "\"%s\" has no owner %s", shard_names[shard], when);
}

void check_shared_out(struct cluster *cluster)
{
    for (int i = 0; i < NODES; i++) {
        int owned = 0;
        for (int shard = 0; shard < SHARDS; shard++)
            owned += node_may_send(&cluster->nodes[i], shard);
        if (owned > (SHARDS + NODES - 1) / NODES)
            violated(cluster, PROMISE_RECOVERY, "node %s owns %d of %d a minute after the faults", cluster->nodes[i].name, owned, SHARDS);
    }
}

/* ---- sends ---- */

static void check_concurrency(struct cluster *cluster, int dest, const struct destination_config *config)
{
    int64_t at_once = 0;
    for (int i = 0; i < JOBS_MAX; i++)
        at_once += cluster->jobs[i].dest == dest && cluster->jobs[i].wire_until > cluster->mono;
    if (at_once >= config->concurrency)
        violated(cluster, PROMISE_LIMITS, "%s has %" PRId64 " on the wire, and one more is sent; %" PRId64 " are allowed", shard_names[dest + 1],
                 at_once, (int64_t)config->concurrency);
}

/* What is sent later than it was decided may meet what was decided later: as much more as the rate brings in that time. */
static void check_rate(struct cluster *cluster, int dest, const struct destination_config *config, int64_t late_ms)
{
    struct receiver *receiver = &cluster->receivers[dest];
    struct rate rate = config->rate_total;
    int64_t burst = config->rate_burst > 0 ? config->rate_burst : rate_burst(rate, config->concurrency);
    double now = (double)cluster->mono;
    if (rate.count == 0)
        return;
    double each = (double)rate.per_ms / (double)rate.count;
    if (receiver->paid_mono <= now) {
        receiver->paid_mono = now;
        receiver->late_ms = 0;
    }
    receiver->paid_mono += each;
    receiver->late_ms = late_ms > receiver->late_ms ? late_ms : receiver->late_ms;
    if (receiver->paid_mono - now > each * (double)burst + (double)receiver->late_ms + 1e-6 * each)
        violated(cluster, PROMISE_LIMITS, "%s: %g in a bucket of %" PRId64 ", %" PRId64 " per %" PRId64 " ms are allowed", shard_names[dest + 1],
                 (receiver->paid_mono - now) / each, burst, rate.count, rate.per_ms);
}

void check_send(struct node *node, const struct flight *flight)
{
    struct cluster *cluster = node->cluster;
    const struct job *job = flight->send->job;
    struct shadow *shadow = &cluster->jobs[job_of(job->id)];
    cluster->figures->sends++;
    check_one_owner(node, flight->dest + 1);
    check_owns(node, flight->dest + 1);
    if (shadow->wire_until > cluster->mono)
        violated(cluster, PROMISE_ONE_SEND, "%.*s is sent by %s, and may be on the wire for %" PRId64 " ms more", SLICE_ARG(job->id), node->name,
                 shadow->wire_until - cluster->mono);
    if (shadow->state != STATE_RUNNING)
        violated(cluster, PROMISE_ONE_SEND, "%.*s is sent and is %s", SLICE_ARG(job->id), job_state_name(shadow->state));
    check_concurrency(cluster, flight->dest, flight->send->destination);
    check_rate(cluster, flight->dest, flight->send->destination, 2 * cluster->lag_ms + CLAIM_LATE_MS);
}
