/*
 * nodes - plays worlds with three nodes, each from its seed, and holds them to what must hold. support/player.h has its options.
 */
#include "nodes.h"

#include "support/player.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { OWNED_MS = 10 * SECOND_MS, FINALE_STEPS_MAX = 600, SELF_TEST_WORLDS_MAX = 200 };

const char *const shard_names[SHARDS] = { "", "d1", "d2", "d3", "d4", "d5" };

const char *fault_name(enum fault fault)
{
    static const char *const names[FAULT_COUNT] = {
        [FAULT_CRASH] = "deaths",       [FAULT_STOPPED] = "stopped",   [FAULT_CUT] = "cut off", [FAULT_CLOCK] = "clocks",
        [FAULT_HANDOVER] = "handovers", [FAULT_STORE] = "store away",  [FAULT_BEAT] = "beats lost",
        [FAULT_BELL] = "late bells",    [FAULT_ANSWER] = "bad answers",
    };
    return names[fault];
}

static const char *promise_name(int promise)
{
    static const char *const names[PROMISE_COUNT] = {
        [PROMISE_ONE_OWNER] = "two never both may send for a destination",
        [PROMISE_LIMITS] = "rate and concurrency hold, whoever sends",
        [PROMISE_FENCED] = "a batch of a session that has ended leaves nothing",
        [PROMISE_ONE_SEND] = "a second send begins when the first cannot last any more",
        [PROMISE_RECOVERY] = "ten seconds after the faults everything has one owner",
        [PROMISE_ENDS_ONCE] = "what was acknowledged ends once",
    };
    return names[promise];
}

static const struct player_sabotage sabotages[SABOTAGE_COUNT] = {
    [SABOTAGE_NONE] = { "none", { 0 } },
    [SABOTAGE_NO_TRUST] = { "no-trust", { PROMISE_ONE_OWNER } },
    [SABOTAGE_FENCE_SKIPPED] = { "fence-skipped", { PROMISE_FENCED } },
    [SABOTAGE_EARLY_ORPHANS] = { "early-orphans", { PROMISE_ONE_SEND, PROMISE_LIMITS } },
    [SABOTAGE_DEAD_EARLY] = { "dead-early", { PROMISE_ONE_OWNER } },
    [SABOTAGE_LOST_RATES] = { "lost-rates", { PROMISE_LIMITS } },
};

int dest_of(struct slice name)
{
    for (int i = 1; i < SHARDS; i++)
        if (slice_equal(name, slice_from(shard_names[i])))
            return i - 1;
    fail();
    return -1;
}

int job_of(struct slice id)
{
    int number = id.len > 2 ? atoi(id.data + 2) : -1;
    assert_true(number >= 0 && number < JOBS_MAX);
    return number;
}

void note(struct cluster *cluster, const char *what, int64_t a, int64_t b)
{
    player_note(cluster->mono, what, a, b);
}

void injected(struct cluster *cluster, enum fault fault)
{
    cluster->figures->faults[fault]++;
}

void violated(const struct cluster *cluster, enum promise promise, const char *format, ...)
{
    va_list arguments;
    (void)cluster;
    va_start(arguments, format);
    player_violated(promise_name((int)promise), format, arguments);
}

/* ---- one world ---- */

static void finale(struct cluster *cluster)
{
    timer_clear(cluster, &cluster->disturbance);
    timer_clear(cluster, &cluster->arrival);
    for (int i = 0; i < NODES; i++) /* the faults last until all go on */
        cluster_run_until(cluster, cluster->nodes[i].stopped_until);
    cluster->healthy = true;
    note(cluster, "the faults end", cluster->open, 0);
    for (int i = 0; i < NODES; i++) {
        struct node *node = &cluster->nodes[i];
        timer_clear(cluster, &node->heal);
        timer_clear(cluster, &node->restart);
        node_heal(node);
        node->stopped_until = 0;
        if (node->leaving)
            node_crash(node);
        node_start(node);
    }
    bool soon[SHARDS] = { false }, then[SHARDS] = { false };
    for (int64_t until = cluster->mono + OWNED_MS; cluster->mono < until; check_owned(cluster, soon)) /* they move on after that */
        cluster_run_until(cluster, cluster->mono + 100);
    check_all_owned(cluster, soon, "ten seconds after the faults");
    cluster_run_until(cluster, cluster->mono + MINUTE_MS);
    check_owned(cluster, then);
    check_all_owned(cluster, then, "a minute after the faults");
    check_shared_out(cluster);
    for (int i = 0; i < FINALE_STEPS_MAX && cluster->open > 0; i++)
        cluster_run_until(cluster, cluster->mono + 10 * SECOND_MS);
    check_ended(cluster);
}

static struct figures figures;

static uint64_t play(const struct player_settings *settings)
{
    struct cluster *cluster = calloc(1, sizeof *cluster);
    uint64_t print;
    assert_non_null(cluster);
    *cluster = (struct cluster){ .seed = settings->seed, .random.state = settings->seed, .sabotage = (enum sabotage)settings->sabotage,
                                 .verbose = settings->verbose, .figures = &figures, .arrival.fire = arrival_fire,
                                 .disturbance.fire = disturbance_fire };
    cluster_draw(cluster);
    cluster_start(cluster);
    for (int i = 0; i < NODES; i++)
        timer_set(cluster, &cluster->nodes[i].restart, (int64_t)below(cluster, 10 * SECOND_MS));
    timer_set(cluster, &cluster->arrival, 0);
    timer_set(cluster, &cluster->disturbance, (int64_t)below(cluster, (size_t)cluster->disturb_ms));
    cluster_run_until(cluster, cluster->lasts_ms);
    finale(cluster);
    figures.worlds++;
    figures.jobs += cluster->job_count;
    cluster_stop(cluster);
    memcpy(&print, cluster->event_hash, sizeof print);
    free(cluster);
    return print;
}

static int64_t faults_injected(void)
{
    int64_t faults = 0;
    for (int i = 0; i < FAULT_COUNT; i++)
        faults += figures.faults[i];
    return faults;
}

static void print_figures(FILE *out, double seconds)
{
    fprintf(out, "# %" PRId64 " worlds in %.1f s, %" PRId64 " jobs, %" PRId64 " sends, %" PRId64 " events, %" PRId64 " taken, %" PRId64 " given away\n",
           figures.worlds, seconds, figures.jobs, figures.sends, figures.events, figures.takeovers, figures.given);
    fprintf(out, "# %" PRId64 " faults:", faults_injected());
    for (int i = 0; i < FAULT_COUNT; i++)
        fprintf(out, "%s %" PRId64 " %s", i > 0 ? "," : "", figures.faults[i], fault_name((enum fault)i));
    fprintf(out, "\n");
}

int main(int argc, char **argv)
{
    return player_main(&(struct player_game){ .play = play,
                                              .faults = faults_injected,
                                              .print_figures = print_figures,
                                              .promise_name = promise_name,
                                              .sabotages = sabotages,
                                              .sabotage_count = SABOTAGE_COUNT,
                                              .broken_worlds_max = SELF_TEST_WORLDS_MAX }, argc, argv);
}
