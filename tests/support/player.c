#include "support/player.h"

#include "base/log.h"
#include "base/instant.h"
#include "support/check.h"

#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_VIOLATED = 3, STEPS_KEPT = 80, OUTPUT_BYTES_MAX = 65536, SAME_WORLDS = 3 };

struct step {
    int64_t mono;
    const char *what;
    int64_t a, b;
};

struct options {
    uint64_t from;
    int64_t worlds, seconds, faults; /* the first that is set says when to stop */
    int sabotage;
    bool verbose, self_test;
    const char *figures;
};

static const struct player_game *game;
static const char *program;
static struct options options;

/* The world that is played. */
static struct player_settings played;
static bool is_playing;
static struct step steps[STEPS_KEPT];
static size_t step_count;

static void print_step(const struct step *step)
{
    printf("# %4" PRId64 "d %02" PRId64 ":%02" PRId64 ":%06.3f  %s %" PRId64 " %" PRId64 "\n", step->mono / DAY_MS,
           step->mono / HOUR_MS % 24, step->mono / MINUTE_MS % 60, (double)(step->mono % MINUTE_MS) / SECOND_MS, step->what,
           step->a, step->b);
}

void player_note(int64_t mono, const char *what, int64_t a, int64_t b)
{
    struct step *step = &steps[step_count++ % STEPS_KEPT];
    *step = (struct step){ mono, what, a, b };
    if (played.verbose)
        print_step(step);
}

void player_violated(const char *promise, const char *format, va_list arguments)
{
    printf("# the last steps of world %" PRIu64 "\n", played.seed);
    for (size_t i = step_count > STEPS_KEPT ? step_count - STEPS_KEPT : 0; i < step_count; i++)
        print_step(&steps[i % STEPS_KEPT]);
    printf("# world %" PRIu64 ", %s: ", played.seed, promise);
    vprintf(format, arguments);
    printf("\n# play it again: %s --seed %" PRIu64, program, played.seed);
    if (played.sabotage != 0)
        printf(" --sabotage %s", game->sabotages[played.sabotage].name);
    printf(" --verbose\n");
    fflush(stdout);
    _exit(EXIT_VIOLATED);
}

/* For whoever ends without a word: an assertion, a fault of memory, a sanitizer. */
static void on_fatal_signal(int number)
{
    char text[256];
    int len = is_playing ? snprintf(text, sizeof text, "# signal %d in world %" PRIu64 "; play it again: %s --seed %" PRIu64 " --verbose\n",
                                    number, played.seed, program, played.seed)
                         : 0;
    if (len > 0 && write(STDOUT_FILENO, text, (size_t)len) < 0)
        _exit(EXIT_VIOLATED);
    signal(number, SIG_DFL);
    raise(number);
}

/* A check of the harness itself that failed: cmocka then ends the process, and says nothing. */
static void on_early_exit(void)
{
    if (is_playing)
        printf("# the harness gave up in world %" PRIu64 "; play it again: %s --seed %" PRIu64 " --verbose\n", played.seed, program,
               played.seed);
}

static void catch_signals(void)
{
    static const int fatal[] = { SIGSEGV, SIGBUS, SIGFPE, SIGABRT };
    for (size_t i = 0; i < COUNT_OF(fatal); i++)
        signal(fatal[i], on_fatal_signal);
    atexit(on_early_exit);
}

static uint64_t play(uint64_t seed, int sabotage)
{
    played = (struct player_settings){ .seed = seed, .sabotage = sabotage, .verbose = options.verbose };
    step_count = 0;
    is_playing = true;
    uint64_t print = game->play(&played);
    is_playing = false;
    return print;
}

/* ---- many ---- */

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool is_enough(int64_t worlds, double began)
{
    if (options.worlds > 0)
        return worlds >= options.worlds;
    if (options.faults > 0)
        return game->faults() >= options.faults;
    return seconds_now() - began >= (double)options.seconds;
}

static void play_many(void)
{
    double began = seconds_now();
    for (int64_t i = 0; !is_enough(i, began); i++) {
        play(options.from + (uint64_t)i, options.sabotage);
        if (i % 16 == 0)
            fflush(stdout);
    }
    double seconds = seconds_now() - began;
    game->print_figures(stdout, seconds);
    if (!options.figures)
        return;
    FILE *file = fopen(options.figures, "w");
    assert_non_null(file);
    game->print_figures(file, seconds);
    assert_int_equal(fclose(file), 0);
}

/* ---- whether the checks can fail ---- */

static char output[OUTPUT_BYTES_MAX];

/* Plays broken worlds from that seed on, in a process of its own, which ends with the first that is found; its words are in `output`. */
static bool play_broken(int sabotage, uint64_t from, uint64_t until)
{
    int ends[2], status;
    fflush(stdout);
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        for (uint64_t seed = from; seed < until; seed++)
            play(seed, sabotage);
        _exit(0);
    }
    close(ends[1]);
    FILE *text = fdopen(ends[0], "r");
    assert_non_null(text);
    size_t len = fread(output, 1, sizeof output - 1, text);
    output[len] = '\0';
    fclose(text);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_VIOLATED;
}

/* Whether it is found by one of those that must find it. */
static bool is_found(int sabotage)
{
    uint64_t from = options.from, until = from + (uint64_t)game->broken_worlds_max;
    while (from < until && play_broken(sabotage, from, until)) {
        const char *world = strstr(output, "# world ");
        for (size_t i = 0; i < PLAYER_FINDERS; i++) {
            int promise = game->sabotages[sabotage].found_by[i];
            if (promise != 0 && strstr(output, game->promise_name(promise)))
                return true;
        }
        if (!game->others_may_be_first || !world || sscanf(world, "# world %" SCNu64, &from) != 1)
            break;
        from++;
    }
    printf("# not found:\n%s", output);
    return false;
}

static int self_test(void)
{
    int failed = 0, number = 1;
    bool same = true;
    for (uint64_t seed = options.from; seed < options.from + SAME_WORLDS; seed++)
        same = same && play(seed, 0) == play(seed, 0);
    failed += !same;
    printf("%sok %d - a seed plays the same world again\n", same ? "" : "not ", number);
    for (int i = 1; i < game->sabotage_count; i++) {
        bool found = is_found(i);
        failed += !found;
        printf("%sok %d - %s is found\n", found ? "" : "not ", ++number, game->sabotages[i].name);
    }
    printf("1..%d\n", number);
    return failed > 0;
}

static int sabotage_from_name(const char *name)
{
    for (int i = 0; i < game->sabotage_count; i++)
        if (strcmp(game->sabotages[i].name, name) == 0)
            return i;
    fprintf(stderr, "%s: no sabotage is called %s\n", program, name);
    exit(2);
}

static void parse(int argc, char **argv)
{
    static const struct option names[] = {
        { "seed", required_argument, NULL, 's' },     { "from", required_argument, NULL, 'f' },
        { "faults", required_argument, NULL, 'n' },   { "worlds", required_argument, NULL, 'w' },
        { "seconds", required_argument, NULL, 't' },  { "sabotage", required_argument, NULL, 'b' },
        { "figures", required_argument, NULL, 'o' },  { "self-test", no_argument, NULL, 'x' },
        { "verbose", no_argument, NULL, 'v' },        { NULL, 0, NULL, 0 },
    };
    int option;
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (option) {
        case 's':
            options.worlds = 1; /* that one alone */
            __attribute__((fallthrough));
        case 'f':
            options.from = strtoull(optarg, NULL, 10);
            break;
        case 'w':
            options.worlds = strtoll(optarg, NULL, 10);
            break;
        case 'n':
            options.faults = strtoll(optarg, NULL, 10);
            break;
        case 't':
            options.seconds = strtoll(optarg, NULL, 10);
            break;
        case 'b':
            options.sabotage = sabotage_from_name(optarg);
            break;
        case 'o':
            options.figures = optarg;
            break;
        case 'x':
            options.self_test = true;
            break;
        case 'v':
            options.verbose = true;
            break;
        default:
            fprintf(stderr, "%s [--seed N | --from N] [--worlds N | --faults N | --seconds S] [--sabotage NAME] [--figures FILE]"
                            " [--self-test] [--verbose]\n", program);
            exit(2);
        }
    }
}

int player_main(const struct player_game *of, int argc, char **argv)
{
    game = of;
    program = argv[0];
    options = (struct options){ .from = 1, .seconds = 5 };
    parse(argc, argv);
    log_set_level(LOG_NONE);
    catch_signals();
    if (options.self_test)
        return self_test();
    play_many();
    return 0;
}
