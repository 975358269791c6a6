/*
 * letters.h - which dead letters a command means, and what it does with them by the thousand.
 */
#ifndef CLI_OPERATE_LETTERS_H
#define CLI_OPERATE_LETTERS_H

#include "cli/options.h"
#include "cli/talk/client.h"

/* What was typed. */
struct letters {
    const char *destination, *tenant, *code, *dead_code, *fingerprint, *since, *until, *text;
    const char *rate, *patch, *archive;
    struct slice patch_text; /* the JSON that `patch` is or names; empty: none */
    int64_t canary, limit;
    double abort_at;
    bool all, dry_run, yes, wait;
};

/* The options that say which letters; the same names everywhere, with --id as often as wanted. */
#define LETTERS_FILTER(letters) \
    { "destination", 'd', .value = &(letters).destination }, { "tenant", 't', .value = &(letters).tenant }, \
        { "code", '\0', .value = &(letters).code }, { "dead-code", '\0', .value = &(letters).dead_code }, \
        { "fingerprint", '\0', .value = &(letters).fingerprint }, { "since", '\0', .value = &(letters).since }, \
        { "until", '\0', .value = &(letters).until }, { "text", '\0', .value = &(letters).text }, \
        { "id", '\0', .repeated = true }

/* Whether nothing was said about which. */
bool letters_are_all(const struct cli *cli, const struct letters *letters);
/* As parameters of a request. */
void letters_query(struct url *url, const struct cli *cli, const struct letters *letters);

int letters_redrive(const struct cli *cli, const struct letters *letters);
int letters_purge(const struct cli *cli, const struct letters *letters);
/* Cancel or undo, as `verb` says. */
int letters_order(const struct cli *cli, const char *id, const char *verb, bool wait);

#endif
