/*
 * nodes - plays worlds with three nodes, each from its seed, and holds them to what must hold.
 *
 *   nodes --seconds 60             as many as fit
 *   nodes --faults 100000          until so many faults were injected
 *   nodes --seed 4711 --verbose    one alone, told step by step
 *   nodes --self-test              breaks things on purpose: the rules must be able to fail
 */
#include "nodes.h"

#include "base/log.h"

#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_VIOLATED = 3, OWNED_MS = 10 * SECOND_MS, FINALE_STEPS_MAX = 600, SELF_TEST_WORLDS_MAX = 200, OUTPUT_BYTES_MAX = 65536 };

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

const char *promise_name(enum promise promise)
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

static const struct {
    const char *name;
    enum promise promises[2]; /* one of which must find it */
} sabotages[SABOTAGE_COUNT] = {
    [SABOTAGE_NONE] = { "none", { PROMISE_NONE } },
    [SABOTAGE_NO_TRUST] = { "no-trust", { PROMISE_ONE_OWNER } },
    [SABOTAGE_FENCE_SKIPPED] = { "fence-skipped", { PROMISE_FENCED } },
    [SABOTAGE_EARLY_ORPHANS] = { "early-orphans", { PROMISE_ONE_SEND, PROMISE_LIMITS } },
    [SABOTAGE_DEAD_EARLY] = { "dead-early", { PROMISE_ONE_OWNER } },
    [SABOTAGE_LOST_RATES] = { "lost-rates", { PROMISE_LIMITS } },
};

const char *sabotage_name(enum sabotage sabotage)
{
    return sabotages[sabotage].name;
}

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

static void print_step(const struct step *step)
{
    printf("# %02" PRId64 ":%06.3f  %s %" PRId64 " %" PRId64 "\n", step->mono / MINUTE_MS, (double)(step->mono % MINUTE_MS) / SECOND_MS,
           step->what, step->a, step->b);
}

void note(struct cluster *cluster, const char *what, int64_t a, int64_t b)
{
    struct step *step = &cluster->steps[cluster->step_count++ % STEPS_KEPT];
    *step = (struct step){ cluster->mono, what, a, b };
    if (cluster->verbose)
        print_step(step);
}

void injected(struct cluster *cluster, enum fault fault)
{
    cluster->figures->faults[fault]++;
}

void violated(const struct cluster *cluster, enum promise promise, const char *format, ...)
{
    va_list arguments;
    for (size_t i = cluster->step_count > STEPS_KEPT ? cluster->step_count - STEPS_KEPT : 0; i < cluster->step_count; i++)
        print_step(&cluster->steps[i % STEPS_KEPT]);
    printf("# world %" PRIu64 ", %s: ", cluster->seed, promise_name(promise));
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n# play it again: %s --seed %" PRIu64, cluster->replay, cluster->seed);
    if (cluster->sabotage != SABOTAGE_NONE)
        printf(" --sabotage %s", sabotage_name(cluster->sabotage));
    printf(" --verbose\n");
    fflush(stdout);
    _exit(EXIT_VIOLATED);
}

/* ---- one world ---- */

static const struct cluster *playing; /* for whoever ends without a word */

static void on_fatal_signal(int number)
{
    char text[256];
    int len = playing ? snprintf(text, sizeof text, "# signal %d; play it again: %s --seed %" PRIu64 " --verbose\n", number, playing->replay,
                                 playing->seed)
                      : 0;
    if (len > 0 && write(STDOUT_FILENO, text, (size_t)len) < 0)
        _exit(EXIT_VIOLATED);
    signal(number, SIG_DFL);
    raise(number);
}

static void on_early_exit(void)
{
    if (playing)
        printf("# the harness gave up; play it again: %s --seed %" PRIu64 " --verbose\n", playing->replay, playing->seed);
}

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

/* The hash of its last event: equal only if everything went the same way. */
static uint64_t play(uint64_t seed, enum sabotage sabotage, bool verbose, const char *program, struct figures *figures)
{
    struct cluster *cluster = calloc(1, sizeof *cluster);
    uint64_t print;
    assert_non_null(cluster);
    *cluster = (struct cluster){ .seed = seed, .random.state = seed, .sabotage = sabotage, .verbose = verbose, .replay = program,
                                 .figures = figures, .arrival.fire = arrival_fire, .disturbance.fire = disturbance_fire };
    playing = cluster;
    cluster_draw(cluster);
    cluster_start(cluster);
    for (int i = 0; i < NODES; i++)
        timer_set(cluster, &cluster->nodes[i].restart, (int64_t)below(cluster, 10 * SECOND_MS));
    timer_set(cluster, &cluster->arrival, 0);
    timer_set(cluster, &cluster->disturbance, (int64_t)below(cluster, (size_t)cluster->disturb_ms));
    cluster_run_until(cluster, cluster->lasts_ms);
    finale(cluster);
    figures->worlds++;
    figures->jobs += cluster->job_count;
    cluster_stop(cluster);
    playing = NULL;
    memcpy(&print, cluster->event_hash, sizeof print);
    free(cluster);
    return print;
}

/* ---- many ---- */

static int64_t faults_of(const struct figures *figures)
{
    int64_t faults = 0;
    for (int i = 0; i < FAULT_COUNT; i++)
        faults += figures->faults[i];
    return faults;
}

static void print_figures(const struct figures *figures)
{
    printf("# %" PRId64 " worlds, %" PRId64 " jobs, %" PRId64 " sends, %" PRId64 " events, %" PRId64 " taken, %" PRId64 " given away\n",
           figures->worlds, figures->jobs, figures->sends, figures->events, figures->takeovers, figures->given);
    printf("# %" PRId64 " faults:", faults_of(figures));
    for (int i = 0; i < FAULT_COUNT; i++)
        printf("%s %" PRId64 " %s", i > 0 ? "," : "", figures->faults[i], fault_name((enum fault)i));
    printf("\n");
}

struct options {
    uint64_t from;
    int64_t worlds, seconds, faults;
    enum sabotage sabotage;
    bool verbose, self_test;
    const char *program;
};

static bool is_enough(const struct options *options, const struct figures *figures, time_t began)
{
    if (options->worlds > 0)
        return figures->worlds >= options->worlds;
    if (options->faults > 0)
        return faults_of(figures) >= options->faults;
    return time(NULL) - began >= options->seconds;
}

static bool is_found(const struct options *options, enum sabotage sabotage)
{
    static char output[OUTPUT_BYTES_MAX];
    struct figures figures = { 0 };
    int ends[2], status;
    fflush(stdout);
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        for (uint64_t i = 0; i < SELF_TEST_WORLDS_MAX; i++)
            play(options->from + i, sabotage, false, options->program, &figures);
        _exit(0);
    }
    close(ends[1]);
    FILE *text = fdopen(ends[0], "r");
    size_t len = fread(output, 1, sizeof output - 1, text);
    output[len] = '\0';
    fclose(text);
    waitpid(child, &status, 0);
    for (size_t i = 0; i < COUNT_OF(sabotages[sabotage].promises); i++)
        if (sabotages[sabotage].promises[i] != PROMISE_NONE && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_VIOLATED &&
            strstr(output, promise_name(sabotages[sabotage].promises[i])))
            return true;
    printf("# not found:\n%s", output);
    return false;
}

static int self_test(const struct options *options)
{
    struct figures figures = { 0 };
    int failed = 0, number = 1;
    bool same = play(options->from, SABOTAGE_NONE, false, options->program, &figures) ==
                play(options->from, SABOTAGE_NONE, false, options->program, &figures);
    failed += !same;
    printf("%sok %d - a seed plays the same world again\n", same ? "" : "not ", number);
    for (int i = SABOTAGE_NONE + 1; i < SABOTAGE_COUNT; i++) {
        bool found = is_found(options, (enum sabotage)i);
        failed += !found;
        printf("%sok %d - %s is found\n", found ? "" : "not ", ++number, sabotage_name((enum sabotage)i));
    }
    printf("1..%d\n", number);
    return failed > 0;
}

static void parse(int argc, char **argv, struct options *options)
{
    static const struct option names[] = {
        { "seed", required_argument, NULL, 's' },     { "from", required_argument, NULL, 'f' },    { "faults", required_argument, NULL, 'n' },
        { "worlds", required_argument, NULL, 'w' },   { "seconds", required_argument, NULL, 't' }, { "sabotage", required_argument, NULL, 'b' },
        { "self-test", no_argument, NULL, 'x' },      { "verbose", no_argument, NULL, 'v' },       { NULL, 0, NULL, 0 },
    };
    int option;
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (option) {
        case 's':
            options->worlds = 1;
            __attribute__((fallthrough));
        case 'f':
            options->from = strtoull(optarg, NULL, 10);
            break;
        case 'w':
            options->worlds = strtoll(optarg, NULL, 10);
            break;
        case 'n':
            options->faults = strtoll(optarg, NULL, 10);
            break;
        case 't':
            options->seconds = strtoll(optarg, NULL, 10);
            break;
        case 'b':
            for (int i = 0; i < SABOTAGE_COUNT; i++)
                if (strcmp(sabotages[i].name, optarg) == 0)
                    options->sabotage = (enum sabotage)i;
            break;
        case 'x':
            options->self_test = true;
            break;
        case 'v':
            options->verbose = true;
            break;
        default:
            fprintf(stderr, "nodes [--seed N | --from N] [--worlds N | --faults N | --seconds S] [--self-test] [--verbose]\n");
            exit(2);
        }
    }
}

int main(int argc, char **argv)
{
    static const int fatal[] = { SIGSEGV, SIGBUS, SIGFPE, SIGABRT };
    struct options options = { .from = 1, .seconds = 5, .program = argv[0] };
    struct figures figures = { 0 };
    parse(argc, argv, &options);
    log_set_level(LOG_NONE);
    for (size_t i = 0; i < COUNT_OF(fatal); i++)
        signal(fatal[i], on_fatal_signal);
    atexit(on_early_exit);
    if (options.self_test)
        return self_test(&options);
    time_t began = time(NULL);
    for (uint64_t i = 0; !is_enough(&options, &figures, began); i++)
        play(options.from + i, options.sabotage, options.verbose, options.program, &figures);
    print_figures(&figures);
    return 0;
}
