/*
 * Clients, receivers, and what goes wrong.
 */
#include "nodes.h"

#include "support/configs.h"
#include "support/store_faulty.h"

#include <stdio.h>

enum { USUAL_MS_MAX = 800, STOPPED_MS_MAX = 20 * SECOND_MS, CUT_MS_MAX = 30 * SECOND_MS };

/* ---- what is configured ---- */

static size_t between(struct cluster *cluster, size_t low, size_t high)
{
    return low + below(cluster, high - low + 1);
}

static size_t draw_dest(struct cluster *cluster, char *text, size_t size, const char *name)
{
    static const char *const doubts[] = { "in_doubt: resend", "in_doubt: park",
                                          "in_doubt: verify, verify: { url: 'https://x.example/{id}', after: 1s, every: 2s, times: 3 }" };
    size_t len = (size_t)snprintf(text, size, "  %s: { url: 'https://x.example/', timeout: %zus, %s, concurrency: { max: %zu, adaptive: false }, "
                                  "retry: { max_retries: %zu, base: %zus, factor: 2, cap: 30s, jitter: 0.2 }, breaker: { enabled: false }",
                                  name, between(cluster, 1, 30), doubts[below(cluster, 3)], between(cluster, 1, 6), between(cluster, 0, 4),
                                  between(cluster, 1, 5));
    if (once_in(cluster, 2))
        len += (size_t)snprintf(text + len, size - len, ", rate: { total: %zu/%s, burst: %zu }", between(cluster, 2, 30),
                                once_in(cluster, 2) ? "s" : "m", between(cluster, 1, 8));
    return len + (size_t)snprintf(text + len, size - len, " }\n");
}

void cluster_draw(struct cluster *cluster)
{
    char yaml[4096];
    size_t len = (size_t)snprintf(yaml, sizeof yaml, "destinations:\n");
    cluster->lasts_ms = (int64_t)between(cluster, 2, 15) * MINUTE_MS;
    cluster->disturb_ms = (int64_t)between(cluster, 1, 20) * SECOND_MS;
    cluster->lag_ms = once_in(cluster, 4) ? (int64_t)between(cluster, 100, 1500) : (int64_t)between(cluster, 0, 50);
    cluster->jobs_max = (int)between(cluster, 30, JOBS_MAX);
    for (int dest = 0; dest < DESTS; dest++) {
        len += draw_dest(cluster, yaml + len, sizeof yaml - len, shard_names[dest + 1]);
        cluster->receivers[dest].badness = below(cluster, 4) * 15;
    }
    if (cluster->verbose)
        printf("# %s", yaml);
    cluster->config = config_from((struct slice){ yaml, len }, "nodes.yaml");
}

/* ---- clients ---- */

/* A client asks who answers. NULL: nobody does. */
static struct node *node_reached(struct cluster *cluster)
{
    size_t first = below(cluster, NODES);
    for (size_t i = 0; i < NODES; i++) {
        struct node *node = &cluster->nodes[(first + i) % NODES];
        if (node->alive && !node->leaving && node->stopped_until <= cluster->mono && !node->in_doubt)
            return node;
    }
    return NULL;
}

static void insert(struct cluster *cluster, struct node *node)
{
    struct arena memory = { 0 };
    int number = cluster->job_count++;
    struct shadow *shadow = &cluster->jobs[number];
    char id[16], tenant[8];
    *shadow = (struct shadow){ .dest = (int)below(cluster, DESTS) };
    snprintf(id, sizeof id, "J-%d", number);
    snprintf(tenant, sizeof tenant, "t%zu", below(cluster, TENANTS));
    struct store_op op = {
        .kind = OP_INSERT,
        .insert = { .destination = slice_from(shard_names[shadow->dest + 1]), .tenant = slice_from(tenant), .id = slice_from(id),
                    .priority = PRIORITY_NORMAL, .rank = rank_of(PRIORITY_NORMAL, node_now(node), HOUR_MS),
                    .run_at = once_in(cluster, 6) ? node_now(node) + (int64_t)below(cluster, 20 * SECOND_MS) : INSTANT_NONE,
                    .deadline = INSTANT_NONE, .payload = SLICE("x") },
    };
    shadow->acknowledged = node_insert(node, &op, &memory) && op.status == STATUS_OK;
    if (shadow->acknowledged)
        note(cluster, "accepted", number, shadow->dest);
    arena_release(&memory);
}

void arrival_fire(struct cluster *cluster, struct timer *timer)
{
    size_t count = once_in(cluster, 6) ? between(cluster, 2, 20) : 1;
    struct node *node;
    for (size_t i = 0; i < count && cluster->job_count < cluster->jobs_max && (node = node_reached(cluster)); i++)
        insert(cluster, node);
    if (cluster->job_count < cluster->jobs_max)
        timer_set(cluster, timer, cluster->mono + 1 + (int64_t)below(cluster, (size_t)(2 * cluster->lasts_ms / cluster->jobs_max) * count));
}

/* ---- receivers ---- */

int64_t receive(struct cluster *cluster, struct flight *flight)
{
    struct receiver *receiver = &cluster->receivers[flight->dest];
    struct answer *answer = &flight->answer;
    int64_t timeout = flight->send->destination->timeout_ms;
    bool bad = !cluster->healthy && (cluster->mono < receiver->down_until || below(cluster, 100) < receiver->badness);
    answer->code = SLICE("http:200");
    answer->text = SLICE("fine");
    answer->outcome = OUTCOME_DELIVERED;
    answer->query = QUERY_DELIVERED;
    if (!bad && !cluster->healthy && once_in(cluster, 10))
        return 1 + (int64_t)below(cluster, (size_t)timeout - 1);
    if (!bad)
        return 1 + (int64_t)below(cluster, (size_t)(USUAL_MS_MAX < timeout ? USUAL_MS_MAX : timeout - 1));
    injected(cluster, FAULT_ANSWER);
    answer->query = QUERY_UNCLEAR;
    if (once_in(cluster, 2)) {
        answer->code = SLICE("http:503");
        answer->text = SLICE("SERVICE_UNAVAILABLE");
        answer->outcome = OUTCOME_TRANSIENT;
        return 1 + (int64_t)below(cluster, 50);
    }
    answer->code = SLICE("curl:28");
    answer->text = SLICE("TIMEOUT: no answer");
    answer->outcome = OUTCOME_IN_DOUBT;
    return timeout;
}

/* ---- what goes wrong ---- */

static void cut(struct node *node, int64_t ms)
{
    struct cluster *cluster = node->cluster;
    if (!node->alive || node->cut_until > cluster->mono)
        return;
    note(cluster, "is cut off for ms", node - cluster->nodes, ms);
    node->cut_until = cluster->mono + ms;
    if (!node->in_doubt)
        store_faulty_away(node->store, once_in(cluster, 2) ? AWAY_BEFORE : AWAY_AFTER);
    else
        store_faulty_away(node->store, AWAY_BEFORE);
    timer_set(cluster, &node->heal, node->cut_until);
}

static void disturb_node(struct cluster *cluster, size_t what)
{
    struct node *node = &cluster->nodes[below(cluster, NODES)];
    int64_t ms = (int64_t)below(cluster, once_in(cluster, 2) ? 5 * SECOND_MS : STOPPED_MS_MAX);
    if (!node->alive)
        return;
    if (what < 20) {
        injected(cluster, FAULT_CRASH);
        node_crash(node);
        timer_set(cluster, &node->restart, cluster->mono + (int64_t)below(cluster, 15 * SECOND_MS));
    } else if (what < 50) {
        injected(cluster, FAULT_STOPPED);
        note(cluster, "is stopped for ms", node - cluster->nodes, ms);
        node->stopped_until = cluster->mono + ms;
    } else if (what < 75) {
        injected(cluster, FAULT_CUT);
        cut(node, (int64_t)below(cluster, CUT_MS_MAX));
    } else if (what < 85) {
        injected(cluster, FAULT_CLOCK);
        node->offset = (int64_t)below(cluster, 2 * CLOCK_OFF_MS + 1) - CLOCK_OFF_MS;
    } else if (!node->leaving && node->stopped_until <= cluster->mono) {
        injected(cluster, FAULT_HANDOVER);
        node_leave(node);
        timer_set(cluster, &node->restart, cluster->mono + (int64_t)below(cluster, 90 * SECOND_MS));
    }
}

void disturbance_fire(struct cluster *cluster, struct timer *timer)
{
    size_t what = below(cluster, 120);
    timer_set(cluster, timer, cluster->mono + 1 + (int64_t)below(cluster, (size_t)(2 * cluster->disturb_ms)));
    if (what < 100) {
        disturb_node(cluster, what);
    } else if (what < 105) {
        injected(cluster, FAULT_STORE);
        int64_t ms = (int64_t)below(cluster, MINUTE_MS);
        for (int i = 0; i < NODES; i++)
            cut(&cluster->nodes[i], ms);
    } else {
        struct receiver *receiver = &cluster->receivers[below(cluster, DESTS)];
        receiver->down_until = cluster->mono + (int64_t)below(cluster, 30 * SECOND_MS);
    }
}
