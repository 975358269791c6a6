/*
 * turns.c - how long it takes to say whose turn it is and whether it may be sent now.
 *
 *     build/bench/turns PATTERN LANES COUNT     nanoseconds a dispatch, the median of several rounds of COUNT dispatches
 *
 * One dispatch is what the engine's loop does for one job: ask the gate, ask for the front, take one.
 */
#include "core/fairness/rate.h"
#include "core/fairness/turns.h"
#include "core/outage/gate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 15 };

static const instant start = INT64_C(1736678400000);

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

/* How the lanes come and go. */
enum pattern {
    BACKLOG, /* all always have work: the ring */
    SPARSE,  /* each has one job and then leaves, another comes in its place */
    LIMITED, /* a rate of its own parks a lane after each job */
    PATTERNS
};
static const char *const pattern_names[PATTERNS] = { "backlog", "sparse", "limited" };

struct world {
    struct turns turns;
    struct gate gate;
    struct turn *lanes;
    struct rate_limiter *limiters;
    size_t count, next;
    instant now;
};

static void dispatch(struct world *world, enum pattern pattern, int64_t *sum)
{
    struct gate_answer gate = gate_ask(&world->gate, world->now);
    int64_t max;
    struct turn *front = turns_front(&world->turns, &max);
    if (gate.room == 0 || !front)
        exit(1);
    turns_took(&world->turns, 1, world->now);
    *sum += front - world->lanes;
    if (pattern == SPARSE) {
        turns_remove(&world->turns, front);
        world->next = (world->next + 7919) % world->count;
        turns_add(&world->turns, &world->lanes[world->next]);
        turns_add(&world->turns, front);
    } else if (pattern == LIMITED) {
        struct rate_limiter *limiter = &world->limiters[front - world->lanes];
        rate_take(limiter, world->now, 1);
        turns_park(&world->turns, front, rate_ask(limiter, world->now, 1).at);
        turns_unpark_due(&world->turns, ++world->now);
    }
}

static double round_ns(struct world *world, enum pattern pattern, int count, int64_t *sum)
{
    int64_t before = now_ns();
    for (int i = 0; i < count; i++)
        dispatch(world, pattern, sum);
    return (double)(now_ns() - before) / count;
}

static int measure(enum pattern pattern, size_t lanes, int count)
{
    struct world world = { .gate = { .concurrency = 100, .closed_until = INSTANT_NONE }, .count = lanes, .now = start };
    double rounds[ROUNDS];
    int64_t sum = 0;
    turns_init(&world.turns, &(struct turns_settings){ .round_robin = true, .batch = 3, .base_priority = 5 });
    world.lanes = calloc(lanes, sizeof *world.lanes);
    world.limiters = calloc(lanes, sizeof *world.limiters);
    if (!world.lanes || !world.limiters || turns_reserve(&world.turns, lanes) != STATUS_OK)
        return 1;
    for (size_t i = 0; i < lanes; i++) {
        turn_init(&world.lanes[i], 1);
        /* A job takes a millisecond here: half of the lanes are parked at any time. */
        rate_init(&world.limiters[i], (struct rate){ 2 * HOUR_MS / (int64_t)(lanes + 1) + 1, HOUR_MS }, 1, INSTANT_NONE);
        turns_add(&world.turns, &world.lanes[i]);
    }
    for (int i = 0; i < ROUNDS; i++)
        rounds[i] = round_ns(&world, pattern, count, &sum);
    qsort(rounds, ROUNDS, sizeof *rounds, compare);
    printf("{\"ns\":%.1f,\"sum\":%" PRId64 "}\n", rounds[ROUNDS / 2], sum);
    turns_release(&world.turns);
    free(world.limiters);
    free(world.lanes);
    return 0;
}

int main(int argc, char **argv)
{
    enum pattern pattern = 0;
    while (argc == 4 && pattern < PATTERNS && strcmp(argv[1], pattern_names[pattern]) != 0)
        pattern++;
    if (argc != 4 || pattern == PATTERNS || atol(argv[2]) < 1 || atoi(argv[3]) < 1) {
        fprintf(stderr, "usage: %s backlog|sparse|limited LANES COUNT\n", argv[0]);
        return 2;
    }
    return measure(pattern, (size_t)atol(argv[2]), atoi(argv[3]));
}
