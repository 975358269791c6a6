/*
 * worlds - plays worlds, each from its seed, and holds them to the invariants.
 *
 *   worlds --seconds 60             as many as fit
 *   worlds --worlds 1000 --from 1   so many, from that seed on
 *   worlds --faults 1000000         until so many faults were injected
 *   worlds --seed 4711 --verbose    one alone, told step by step
 *   worlds --seconds 60 --figures FILE   and what was measured goes there, too
 *   worlds --self-test              breaks things on purpose: the invariants must be able to fail
 */
#include "world.h"

#include "base/log.h"
#include "engine/alerts/notify.h"
#include "engine/orders.h"
#include "engine/status.h"

#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    EXIT_VIOLATED = 3,
    FINALE_STEP_MS = 10 * MINUTE_MS,
    FINALE_LATE_MS = 30 * SECOND_MS,
    FINALE_STEPS_MAX = 6 * 24 * 60, /* two months: the longest policy gives up after days */
    SELF_TEST_WORLDS_MAX = 300,
    OUTPUT_BYTES_MAX = 65536,
    ALERTS_OVER_MS = 70 * MINUTE_MS, /* longer than a quiet time or the hold of a refused job: what was an alert is none */
};

const char *const dest_names[DESTS] = { "a", "b", "c", "d", "notify.ops", "notify.all" };

const char *fault_name(enum fault fault)
{
    static const char *const names[FAULT_COUNT] = {
        [FAULT_CRASH] = "crashes",
        [FAULT_STORE] = "store errors",
        [FAULT_STORE_BROKEN] = "broken stores",
        [FAULT_STORE_READ] = "read errors",
        [FAULT_STORE_AWAY] = "store away",
        [FAULT_CLOCK_FORWARD] = "clock forward",
        [FAULT_CLOCK_BACK] = "clock back",
        [FAULT_ERROR] = "errors answered",
        [FAULT_SLOW] = "slow answers",
        [FAULT_LOST] = "answers lost",
        [FAULT_LIE] = "lies",
        [FAULT_ABSURD] = "absurd wishes",
        [FAULT_OUTAGE] = "hits on outages",
        [FAULT_OVERLOAD] = "overloads",
        [FAULT_REFUSED] = "refused",
        [FAULT_UNSENT] = "never left",
        [FAULT_HEALTH] = "false health",
        [FAULT_WORKER] = "bad workers",
        [FAULT_RELOAD] = "reloads",
        [FAULT_OPERATOR] = "operators",
    };
    return names[fault];
}

const char *feature_name(enum feature feature)
{
    static const char *const names[FEATURE_COUNT] = {
        [FEATURE_ADAPTIVE] = "adaptive waits",
        [FEATURE_FALLBACK] = "to the fallback",
        [FEATURE_LOOK] = "looks",
        [FEATURE_RAMP] = "on a ramp",
        [FEATURE_REDRIVE] = "automatic redrives",
        [FEATURE_CYCLE] = "in cycles",
        [FEATURE_RATE] = "within a rate",
        [FEATURE_TENANT_RATE] = "within a tenant's rate",
        [FEATURE_LEASE] = "leases",
        [FEATURE_EXTENDED] = "prolonged",
        [FEATURE_RETURNED] = "given back",
        [FEATURE_TENANT_HOLD] = "past held tenants",
        [FEATURE_BLOCK_LOOK] = "looks where we are refused",
        [FEATURE_UNSENT] = "claims outdated",
        [FEATURE_TURN] = "turns waited for",
        [FEATURE_ABOVE_SHARE] = "above a share",
        [FEATURE_AHEAD] = "claimed ahead",
        [FEATURE_BY_CLASS] = "by class",
        [FEATURE_BY_TURN] = "before more urgent work",
        [FEATURE_LIMIT] = "below a lower limit",
        [FEATURE_OPENED] = "breakers opened",
        [FEATURE_RECALLED] = "lanes recalled",
        [FEATURE_RAISED] = "alerts raised",
        [FEATURE_GROWN] = "grown",
        [FEATURE_CLEARED] = "cleared",
        [FEATURE_NOTE] = "told",
    };
    return names[feature];
}

const char *invariant_name(enum invariant invariant)
{
    static const char *const names[INVARIANT_COUNT] = {
        [INVARIANT_DURABLE] = "1, an acknowledged job is never lost",
        [INVARIANT_STATE] = "2, one state, and every change an event",
        [INVARIANT_LEASE] = "3, only under a lease, and one at a time",
        [INVARIANT_ATTEMPTS] = "4, no more attempts than the policy allows, none while held",
        [INVARIANT_SILENCE] = "5, nothing is dropped silently",
        [INVARIANT_MEMORY] = "6, memory is bounded",
        [INVARIANT_TURNS] = "7, every tenant gets its turn",
        [INVARIANT_RAMP] = "8, after an outage at most the ramp",
        [INVARIANT_SECRETS] = "9, no payload and no secret is told",
        [INVARIANT_LIMITS] = "10, limits hold",
        [INVARIANT_PROGRESS] = "everything ends when the faults do",
        [INVARIANT_ALERTS] = "an alert is told once to each who wants it",
    };
    return names[invariant];
}

static const struct {
    const char *name;
    enum invariant invariants[4]; /* one of which must find it */
} sabotages[SABOTAGE_COUNT] = {
    [SABOTAGE_NONE] = { "none", { INVARIANT_NONE } },
    [SABOTAGE_LOST_INSERT] = { "lost-insert", { INVARIANT_DURABLE } },
    [SABOTAGE_LOST_SETTLE] = { "lost-settle", { INVARIANT_STATE } },
    [SABOTAGE_DOUBLE_SEND] = { "double-send", { INVARIANT_LEASE } },
    [SABOTAGE_STALE_SETTLE] = { "stale-settle", { INVARIANT_LEASE } },
    [SABOTAGE_SPEND_HELD] = { "spend-held", { INVARIANT_ATTEMPTS } },
    [SABOTAGE_RETRY_REFUSED] = { "retry-refused", { INVARIANT_ATTEMPTS } },
    [SABOTAGE_EARLY_RETRY] = { "early-retry", { INVARIANT_ATTEMPTS } },
    [SABOTAGE_NAMELESS_DEAD] = { "nameless-dead", { INVARIANT_SILENCE } },
    [SABOTAGE_HOARD] = { "hoard", { INVARIANT_MEMORY } },
    [SABOTAGE_UNFAIR] = { "unfair", { INVARIANT_TURNS } },
    [SABOTAGE_NO_RAMP] = { "no-ramp", { INVARIANT_RAMP } },
    [SABOTAGE_TALKATIVE] = { "talkative", { INVARIANT_SECRETS } },
    [SABOTAGE_NO_LIMIT] = { "no-limit", { INVARIANT_LIMITS } },
    [SABOTAGE_NO_ANSWER] = { "no-answer", { INVARIANT_PROGRESS } },
    [SABOTAGE_NO_WAKE] = { "no-wake", { INVARIANT_PROGRESS } },
    [SABOTAGE_SECOND_ADDRESS] = { "second-address", { INVARIANT_ATTEMPTS } },
    [SABOTAGE_REDRIVE_OFTEN] = { "redrive-often", { INVARIANT_ATTEMPTS } },
    [SABOTAGE_NO_RATE] = { "no-rate", { INVARIANT_LIMITS } },
    [SABOTAGE_UNTOLD] = { "untold", { INVARIANT_ALERTS } },
    [SABOTAGE_LANE_LOST] = { "lane-lost", { INVARIANT_DURABLE } },
    [SABOTAGE_NO_ADAPTING] = { "no-adapting", { INVARIANT_LIMITS } },
    [SABOTAGE_ALERT_LOST] = { "alert-lost", { INVARIANT_ALERTS } },
    [SABOTAGE_NO_SHARES] = { "no-shares", { INVARIANT_TURNS } },
    [SABOTAGE_ONE_HOLDS_ALL] = { "one-holds-all", { INVARIANT_ATTEMPTS } },
    [SABOTAGE_FREE_AGAIN] = { "free-again", { INVARIANT_ATTEMPTS, INVARIANT_RAMP } },
    [SABOTAGE_FAILED_FIRST] = { "failed-first", { INVARIANT_RAMP, INVARIANT_ATTEMPTS } },
    [SABOTAGE_EAGER_BREAKER] = { "eager-breaker", { INVARIANT_LIMITS } },
    [SABOTAGE_READ_LOST] = { "read-lost", { INVARIANT_PROGRESS, INVARIANT_DURABLE, INVARIANT_ALERTS } },
    [SABOTAGE_SHORT_LEASE] = { "short-lease", { INVARIANT_LEASE } },
    [SABOTAGE_DOUBT_FORGOTTEN] = { "doubt-forgotten", { INVARIANT_ATTEMPTS, INVARIANT_LEASE, INVARIANT_ALERTS } },
};

const char *sabotage_name(enum sabotage sabotage)
{
    return sabotages[sabotage].name;
}

int dest_number(struct slice name)
{
    int number = 0;
    while (number < DESTS && !slice_equal(name, slice_from(dest_names[number])))
        number++;
    assert_true(number < DESTS);
    return number;
}

void tenant_name(int tenant, char ret_name[TENANT_BYTES])
{
    if (tenant == TENANT_NOTIFY)
        snprintf(ret_name, TENANT_BYTES, "%.*s", SLICE_ARG(NOTIFY_TENANT));
    else
        snprintf(ret_name, TENANT_BYTES, "t%d", tenant);
}

const struct destination_config *world_dest(const struct world *world, int dest)
{
    return world->rules[world->config][dest].config;
}

void world_configure(struct world *world, int config)
{
    world->config = config;
    world->periods[world->period_count++ % PERIODS_KEPT] = (struct period){ config, world->mono };
}

const struct destination_config *world_dest_at(const struct world *world, int dest, int64_t mono)
{
    size_t i = world->period_count;
    while (i > 1 && i + PERIODS_KEPT > world->period_count + 1 && world->periods[(i - 1) % PERIODS_KEPT].since_mono > mono)
        i--;
    return world->rules[world->periods[(i - 1) % PERIODS_KEPT].config][dest].config;
}

struct shadow *world_job(struct world *world, struct slice id)
{
    struct shadow *note = map_get(&world->notes, id);
    if (note)
        return note;
    int number = id.len > 6 && memcmp(id.data, "CLM-W-", 6) == 0 ? atoi(id.data + 6) : -1;
    if (number < 0 || number >= world->job_count)
        violated(world, INVARIANT_DURABLE, "%.*s never was", SLICE_ARG(id));
    return &world->jobs[number];
}

static void print_step(const struct step *step)
{
    printf("# %4" PRId64 "d %02" PRId64 ":%02" PRId64 ":%06.3f  %s %" PRId64 " %" PRId64 "\n", step->mono / DAY_MS,
           step->mono / HOUR_MS % 24, step->mono / MINUTE_MS % 60, (double)(step->mono % MINUTE_MS) / SECOND_MS, step->what,
           step->a, step->b);
}

void note(struct world *world, const char *what, int64_t a, int64_t b)
{
    struct step *step = &world->steps[world->step_count++ % STEPS_KEPT];
    *step = (struct step){ world->mono, what, a, b };
    if (world->verbose)
        print_step(step);
}

void injected(struct world *world, enum fault fault)
{
    world->figures->faults[fault]++;
}

void violated(const struct world *world, enum invariant invariant, const char *format, ...)
{
    va_list arguments;
    world_remove_folder(world);
    printf("# the last steps of world %" PRIu64 "\n", world->seed);
    for (size_t i = world->step_count > STEPS_KEPT ? world->step_count - STEPS_KEPT : 0; i < world->step_count; i++)
        print_step(&world->steps[i % STEPS_KEPT]);
    printf("# world %" PRIu64 ", invariant %s: ", world->seed, invariant_name(invariant));
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n# play it again: %s --seed %" PRIu64, world->replay, world->seed);
    if (world->sabotage != SABOTAGE_NONE)
        printf(" --sabotage %s", sabotage_name(world->sabotage));
    printf(" --verbose\n");
    fflush(stdout);
    _exit(EXIT_VIOLATED);
}

/* What is being played, for whoever ends without a word: an assertion, a fault of memory, a sanitizer. */
static const struct world *playing;

static void on_fatal_signal(int number)
{
    char text[256];
    int len = playing ? snprintf(text, sizeof text, "# signal %d in world %" PRIu64 "; play it again: %s --seed %" PRIu64 " --verbose\n",
                                 number, playing->seed, playing->replay, playing->seed)
                      : 0;
    if (len > 0 && write(STDOUT_FILENO, text, (size_t)len) < 0)
        _exit(EXIT_VIOLATED);
    signal(number, SIG_DFL);
    raise(number);
}

/* A check of the harness itself that failed: cmocka then ends the process, and says nothing. */
static void on_early_exit(void)
{
    if (playing)
        printf("# the harness gave up in world %" PRIu64 "; play it again: %s --seed %" PRIu64 " --verbose\n", playing->seed,
               playing->replay, playing->seed);
}

static void catch_signals(void)
{
    static const int fatal[] = { SIGSEGV, SIGBUS, SIGFPE, SIGABRT };
    for (size_t i = 0; i < COUNT_OF(fatal); i++)
        signal(fatal[i], on_fatal_signal);
    atexit(on_early_exit);
}

/* ---- one world ---- */

static void listen_to_log(struct world *world)
{
    if (!world->listens)
        return;
    fflush(stderr);
    world->log_fd = memfd_create("log", 0);
    world->stderr_fd = dup(STDERR_FILENO);
    assert_true(world->log_fd >= 0 && world->stderr_fd >= 0 && dup2(world->log_fd, STDERR_FILENO) >= 0);
    log_set_level(LOG_DEBUG);
}

static void stop_listening(struct world *world)
{
    if (!world->listens)
        return;
    log_set_level(LOG_NONE);
    fflush(stderr);
    dup2(world->stderr_fd, STDERR_FILENO);
    close(world->stderr_fd);
    check_log(world);
}

/* Somebody looks after everything that waits for a person. */
static void look_after(struct world *world)
{
    for (int dest = 0; dest < DESTS; dest++) {
        struct slice name = slice_from(dest_names[dest]);
        struct error error;
        if (!world_dest(world, dest))
            continue; /* nothing of it is told in this world */
        assert_int_equal(engine_resume(world->engine, name, &error), STATUS_OK);
        refused_forget(world, dest);
        for (int i = 0; i <= TENANT_NOTIFY; i++) {
            char tenant[TENANT_BYTES];
            tenant_name(i, tenant);
            int64_t lane = find_lane(world, name, slice_from(tenant), &error);
            if (lane > 0)
                assert_int_equal(engine_resume_tenant(world->engine, lane, &error), STATUS_OK);
        }
        struct destination_status status = engine_destination(world->engine, name);
        if (strcmp(status.mode, "contingency") == 0 && status.cause && strcmp(status.cause, "operator") == 0)
            assert_int_equal(engine_leave_contingency(world->engine, name, &error), STATUS_OK);
        if ((status.held_by && strcmp(status.held_by, "dead_full") == 0) || dest_has_full_tenant(world, dest))
            purge_dead(world, dest);
    }
    workers_begin(world);
}

static bool at_rest(const struct world *world)
{
    for (int dest = 0; dest < DESTS; dest++)
        if (!dest_rests(world, dest))
            return false;
    return world->open == 0;
}

static void finale(struct world *world)
{
    world->healthy = true;
    timer_clear(world, &world->disturbance);
    timer_clear(world, &world->arrival);
    timer_clear(world, &world->heal);
    heal_fire(world, &world->heal);
    world_reload(world, 0);
    note(world, "the faults end", world->open, 0);
    bool endless = world->sabotage == SABOTAGE_UNFAIR || world->sabotage == SABOTAGE_LANE_LOST;
    int steps = endless ? 0 : FINALE_STEPS_MAX; /* it never ends: who waits is to be seen before */
    int64_t quiet = world->mono + ALERTS_OVER_MS;
    for (int i = 0; i < steps && (!at_rest(world) || world->mono < quiet); i++) {
        if (!at_rest(world))
            quiet = world->mono + ALERTS_OVER_MS;
        look_after(world);
        world_run_until(world, world->mono + FINALE_STEP_MS);
        if (world->late_ms < FINALE_LATE_MS)
            world->late_ms = FINALE_LATE_MS; /* what is left waits for hours */
    }
    if (steps > 0) {
        check_progress(world);
        check_alerts_over(world);
    }
    check_jobs(world);
    check_alerts_kept(world);
}

static void world_play(struct world *world)
{
    world->random.state = world->seed;
    for (int lane = 0; lane <= LANES_MAX; lane++) {
        struct lane_view *view = &world->lanes[lane];
        view->dest = -1;
        view->unknown_mono = view->block_look_mono = view->idle_mono = view->maybe_mono = view->passed_from = -1;
        view->active_at = INSTANT_NONE;
    }
    world_draw(world);
    turns_draw(world);
    world_configure(world, 0);
    listen_to_log(world);
    world_start(world);
    timer_set(world, &world->arrival, 0);
    timer_set(world, &world->disturbance, (int64_t)below(world, (size_t)world->disturb_ms));
    world_run_until(world, world->lasts_ms);
    finale(world);
    struct figures *figures = world->figures;
    figures->worlds++;
    figures->jobs += world->job_count;
    figures->simulated_ms += world->mono;
    for (int i = 0; i < world->job_count; i++)
        figures->ended[world->jobs[i].state]++;
    world_stop(world);
    stop_listening(world);
}

/* ---- many ---- */

struct options {
    uint64_t from;
    int64_t worlds, seconds, faults; /* the first that is set says when to stop */
    enum sabotage sabotage;
    bool alone, verbose, self_test;
    const char *program, *figures;
};

static double seconds_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The hash of its last event: equal only if everything went the same way. */
static uint64_t play(const struct options *options, uint64_t seed, struct figures *figures)
{
    struct world *world = calloc(1, sizeof *world);
    uint64_t print;
    assert_non_null(world);
    world->seed = seed;
    world->sabotage = options->sabotage;
    world->verbose = options->verbose;
    world->replay = options->program;
    world->figures = figures;
    playing = world;
    world_play(world);
    playing = NULL;
    memcpy(&print, world->event_hash, sizeof print);
    free(world);
    return print;
}

static int64_t faults_of(const struct figures *figures)
{
    int64_t faults = 0;
    for (int i = 0; i < FAULT_COUNT; i++)
        faults += figures->faults[i];
    return faults;
}

/* Rates are by the minute of one core: how much of it this process had. */
static void print_figures(FILE *out, const struct figures *figures, double seconds)
{
    double busy = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    int64_t faults = faults_of(figures);
    double years = (double)figures->simulated_ms / (365.0 * DAY_MS);
    fprintf(out, "# %" PRId64 " worlds in %.1f s, %.1f s of a core: %.2f years, %.2f a minute of a core\n", figures->worlds, seconds, busy,
           years, years * 60 / busy);
    fprintf(out, "# %" PRId64 " jobs, %" PRId64 " sends, %" PRId64 " events, %" PRId64 " steps\n", figures->jobs, figures->sends,
           figures->events, figures->steps);
    fprintf(out, "# ended: %" PRId64 " completed, %" PRId64 " dead, %" PRId64 " cancelled\n", figures->ended[STATE_COMPLETED],
           figures->ended[STATE_DEAD], figures->ended[STATE_CANCELLED]);
    fprintf(out, "# %" PRId64 " faults, %.0f a minute of a core:", faults, (double)faults * 60 / busy);
    for (int i = 0; i < FAULT_COUNT; i++)
        fprintf(out, "%s %" PRId64 " %s", i > 0 ? "," : "", figures->faults[i], fault_name((enum fault)i));
    fprintf(out, "\n# seen:");
    for (int i = 0; i < FEATURE_COUNT; i++)
        fprintf(out, "%s %" PRId64 " %s", i > 0 ? "," : "", figures->features[i], feature_name((enum feature)i));
    fprintf(out, "\n");
}

static bool is_enough(const struct options *options, const struct figures *figures, double began)
{
    if (options->worlds > 0)
        return figures->worlds >= options->worlds;
    if (options->faults > 0)
        return faults_of(figures) >= options->faults;
    return seconds_of(CLOCK_MONOTONIC) - began >= (double)options->seconds;
}

static void play_many(const struct options *options)
{
    struct figures figures = { 0 };
    double began = seconds_of(CLOCK_MONOTONIC);
    for (int64_t i = 0; !is_enough(options, &figures, began); i++) {
        play(options, options->from + (uint64_t)i, &figures);
        if (i % 16 == 0)
            fflush(stdout);
    }
    print_figures(stdout, &figures, seconds_of(CLOCK_MONOTONIC) - began);
    FILE *file = options->figures ? fopen(options->figures, "w") : NULL;
    if (file) {
        print_figures(file, &figures, seconds_of(CLOCK_MONOTONIC) - began);
        fclose(file);
    }
}

/* ---- whether the checks can fail ---- */

static char output[OUTPUT_BYTES_MAX];

/* Plays broken worlds from that seed on, in a process of its own, which ends with the first that is found; its words are in `output`. */
static bool play_broken(const struct options *options, enum sabotage sabotage, uint64_t from)
{
    struct figures figures = { 0 };
    struct options broken = *options;
    int ends[2], status;
    broken.sabotage = sabotage;
    fflush(stdout);
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        for (uint64_t seed = from; seed < options->from + SELF_TEST_WORLDS_MAX; seed++)
            play(&broken, seed, &figures);
        _exit(0);
    }
    close(ends[1]);
    FILE *text = fdopen(ends[0], "r");
    size_t len = fread(output, 1, sizeof output - 1, text);
    output[len] = '\0';
    fclose(text);
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_VIOLATED;
}

/*
 * Whether it is found by one of those that must find it. What is broken breaks other things as well, and a world may show these first:
 * then it is the next world's turn.
 */
static bool is_found(const struct options *options, enum sabotage sabotage)
{
    uint64_t from = options->from;
    while (from < options->from + SELF_TEST_WORLDS_MAX && play_broken(options, sabotage, from)) {
        const char *world = strstr(output, "# world ");
        for (size_t i = 0; i < COUNT_OF(sabotages[sabotage].invariants); i++) {
            enum invariant invariant = sabotages[sabotage].invariants[i];
            if (invariant != INVARIANT_NONE && strstr(output, invariant_name(invariant)))
                return true;
        }
        if (!world || sscanf(world, "# world %" SCNu64, &from) != 1)
            break;
        from++;
    }
    printf("# not found:\n%s", output);
    return false;
}

static int self_test(const struct options *options)
{
    struct figures figures = { 0 };
    int failed = 0, number = 1;
    bool same = true;
    for (uint64_t seed = options->from; seed < options->from + 3; seed++)
        same = same && play(options, seed, &figures) == play(options, seed, &figures);
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

static enum sabotage sabotage_from_name(const char *name)
{
    for (int i = 0; i < SABOTAGE_COUNT; i++)
        if (strcmp(sabotages[i].name, name) == 0)
            return (enum sabotage)i;
    fprintf(stderr, "worlds: no sabotage is called %s\n", name);
    exit(2);
}

static void parse(int argc, char **argv, struct options *options)
{
    static const struct option names[] = {
        { "seed", required_argument, NULL, 's' },     { "from", required_argument, NULL, 'f' },
        { "faults", required_argument, NULL, 'n' },
        { "worlds", required_argument, NULL, 'w' },   { "seconds", required_argument, NULL, 't' },
        { "sabotage", required_argument, NULL, 'b' }, { "self-test", no_argument, NULL, 'x' },
        { "figures", required_argument, NULL, 'o' },  { "verbose", no_argument, NULL, 'v' },
        { NULL, 0, NULL, 0 },
    };
    int option;
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (option) {
        case 's':
            options->worlds = 1; /* fall through: that one alone */
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
            options->sabotage = sabotage_from_name(optarg);
            break;
        case 'o':
            options->figures = optarg;
            break;
        case 'x':
            options->self_test = true;
            break;
        case 'v':
            options->verbose = true;
            break;
        default:
            fprintf(stderr, "worlds [--seed N | --from N] [--worlds N | --faults N | --seconds S] [--figures FILE] [--self-test] [--verbose]\n");
            exit(2);
        }
    }
}

int main(int argc, char **argv)
{
    struct options options = { .from = 1, .seconds = 5, .program = argv[0] };
    parse(argc, argv, &options);
    log_set_level(LOG_NONE);
    catch_signals();
    if (options.self_test)
        return self_test(&options);
    play_many(&options);
    return 0;
}
