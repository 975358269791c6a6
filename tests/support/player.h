/*
 * player.h - plays worlds, each from its seed: as many as are wanted, one alone step by step, or such as are broken on purpose.
 *
 *   PROGRAM --seconds 60                  as many as fit
 *   PROGRAM --worlds 1000 --from 1        so many, from that seed on
 *   PROGRAM --faults 1000000              until so many faults were injected
 *   PROGRAM --seed 4711 --verbose         one alone, told step by step
 *   PROGRAM --seconds 60 --figures FILE   and what was measured goes there, too
 *   PROGRAM --self-test                   breaks things on purpose: the checks must be able to fail
 */
#ifndef SUPPORT_PLAYER_H
#define SUPPORT_PLAYER_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { PLAYER_FINDERS = 4 };

struct player_settings {
    uint64_t seed;
    int sabotage; /* 0: nothing is broken */
    bool verbose;
};

/* What can be broken, and the numbers of the promises that find it; one of them must. */
struct player_sabotage {
    const char *name;
    int found_by[PLAYER_FINDERS]; /* 0: none */
};

struct player_game {
    /* Plays one world to its end. The hash of its last event: equal only if everything went the same way. */
    uint64_t (*play)(const struct player_settings *settings);
    int64_t (*faults)(void); /* injected so far */
    void (*print_figures)(FILE *out, double seconds);
    const char *(*promise_name)(int promise);
    const struct player_sabotage *sabotages; /* the first is none */
    int sabotage_count;
    int broken_worlds_max;    /* that are played until what is broken is found */
    bool others_may_be_first; /* what is broken breaks other things as well: then it is the next world's turn */
};

int player_main(const struct player_game *game, int argc, char **argv);

/* What happens in the world that is played: the last steps are told when a check fails. `what` lasts. */
void player_note(int64_t mono, const char *what, int64_t a, int64_t b);

/* Prints the last steps, what was violated and how to see it again; ends the process. */
_Noreturn void player_violated(const char *promise, const char *format, va_list arguments);

#endif
