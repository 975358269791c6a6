/*
 * worlds - plays worlds, each from its seed, and holds them to the invariants. support/player.h has its options.
 */
#include "world.h"

#include "base/log.h"
#include "engine/alerts/notify.h"
#include "engine/orders.h"
#include "engine/status.h"
#include "support/player.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
    FINALE_STEP_MS = 10 * MINUTE_MS,
    FINALE_LATE_MS = 30 * SECOND_MS,
    FINALE_STEPS_MAX = 6 * 24 * 60, /* two months: the longest policy gives up after days */
    SELF_TEST_WORLDS_MAX = 300,
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
        [FEATURE_UNHEARD] = "acknowledged unheard",
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

static const char *invariant_name(int invariant)
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

static const struct player_sabotage sabotages[SABOTAGE_COUNT] = {
    [SABOTAGE_NONE] = { "none", { 0 } },
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

void note(struct world *world, const char *what, int64_t a, int64_t b)
{
    player_note(world->mono, what, a, b);
}

void injected(struct world *world, enum fault fault)
{
    world->figures->faults[fault]++;
}

void violated(const struct world *world, enum invariant invariant, const char *format, ...)
{
    char promise[128];
    va_list arguments;
    world_remove_folder(world);
    snprintf(promise, sizeof promise, "invariant %s", invariant_name((int)invariant));
    va_start(arguments, format);
    player_violated(promise, format, arguments);
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
        for (int lane = 1; lane <= LANES_MAX; lane++) /* those that the store has forgotten, with their last job */
            if (world->lanes[lane].dest == dest && engine_lane_hold(world->engine, lane).held)
                assert_int_equal(engine_resume_tenant(world->engine, lane, &error), STATUS_OK);
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

static struct figures figures;

static uint64_t play(const struct player_settings *settings)
{
    struct world *world = calloc(1, sizeof *world);
    uint64_t print;
    assert_non_null(world);
    world->seed = settings->seed;
    world->sabotage = (enum sabotage)settings->sabotage;
    world->verbose = settings->verbose;
    world->figures = &figures;
    world_play(world);
    memcpy(&print, world->event_hash, sizeof print);
    free(world);
    return print;
}

static int64_t faults_injected(void)
{
    int64_t faults = 0;
    for (int i = 0; i < FAULT_COUNT; i++)
        faults += figures.faults[i];
    return faults;
}

/* Rates are by the minute of one core: how much of it this process had. */
static void print_figures(FILE *out, double seconds)
{
    double busy = (double)clock() / CLOCKS_PER_SEC;
    int64_t faults = faults_injected();
    double years = (double)figures.simulated_ms / (365.0 * DAY_MS);
    fprintf(out, "# %" PRId64 " worlds in %.1f s, %.1f s of a core: %.2f years, %.2f a minute of a core\n", figures.worlds, seconds, busy,
           years, years * 60 / busy);
    fprintf(out, "# %" PRId64 " jobs, %" PRId64 " sends, %" PRId64 " events, %" PRId64 " steps\n", figures.jobs, figures.sends,
           figures.events, figures.steps);
    fprintf(out, "# ended: %" PRId64 " completed, %" PRId64 " dead, %" PRId64 " cancelled\n", figures.ended[STATE_COMPLETED],
           figures.ended[STATE_DEAD], figures.ended[STATE_CANCELLED]);
    fprintf(out, "# %" PRId64 " faults, %.0f a minute of a core:", faults, (double)faults * 60 / busy);
    for (int i = 0; i < FAULT_COUNT; i++)
        fprintf(out, "%s %" PRId64 " %s", i > 0 ? "," : "", figures.faults[i], fault_name((enum fault)i));
    fprintf(out, "\n# seen:");
    for (int i = 0; i < FEATURE_COUNT; i++)
        fprintf(out, "%s %" PRId64 " %s", i > 0 ? "," : "", figures.features[i], feature_name((enum feature)i));
    fprintf(out, "\n");
}

int main(int argc, char **argv)
{
    return player_main(&(struct player_game){ .play = play,
                                              .faults = faults_injected,
                                              .print_figures = print_figures,
                                              .promise_name = invariant_name,
                                              .sabotages = sabotages,
                                              .sabotage_count = SABOTAGE_COUNT,
                                              .broken_worlds_max = SELF_TEST_WORLDS_MAX,
                                              .others_may_be_first = true }, argc, argv);
}
