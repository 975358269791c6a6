/*
 * loading.h - one run of reading a configuration: what is shared until it is done.
 */
#ifndef CONFIG_LOADING_H
#define CONFIG_LOADING_H

#include "config/destination.h"

enum {
    CONFIG_MEMORY_MAX = 256 << 20,
    SCRATCH_MEMORY_MAX = 512 << 20,
    EXTENDS_DEPTH_MAX = 4,
};

struct loading {
    struct arena *memory; /* the configuration's own */
    struct arena scratch;
    struct problems problems;
    struct classifier_pool pool;
    struct map presets;                /* key: built-in name or path; value: struct preset_entry */
    struct destination_draft defaults; /* what a destination without a preset starts from */
    struct config *config;
    bool failed; /* memory is out */
};

/* Settings for one file and one thing, with all that the run shares. */
struct settings loading_settings(struct loading *loading, const char *file, struct slice folder, void *root);

/*
 * The draft of a preset, read once. `name` is a built-in's name or a path from `folder`; `place` is where
 * it is asked for. NULL: there is a problem, or memory is out.
 */
const struct destination_draft *preset_draft(struct loading *loading, struct slice name, struct slice folder,
                                             struct place place);

/* These are the rows of the file itself. */
extern const struct section file_section;
/* Reads the SETTING_SPECIAL of `destinations`. */
void destinations_apply(struct settings *settings, const struct node *node, void *field);
/* Warns of what is allowed, but probably not meant. */
void loading_warn(struct loading *loading, struct place place, const char *text);

/* ---- tiers of tenants: what gives many of them one weight ---- */

/* SETTING_SPECIAL: { gold: [acme, globex] } into config->tiers. */
void tiers_apply(struct settings *settings, const struct node *node, void *field);

/*
 * What needs the whole file: fills `by_tenant` with each tenant's tier. A tenant of two tiers is a problem, and a tier whose
 * weight no destination knows, which is a word mistyped.
 */
void tiers_finish(struct settings *settings, const struct node *root, struct map *by_tenant);

/*
 * Where dead letters go when their time is over, once all destinations are in `by_name`: whether that is there, can take
 * them and has an end. Those that get some retain their own until purged.
 */
void exports_finish(struct settings *settings, const struct map *by_name);

/* ---- Camundas that ask for decisions ---- */

extern const struct section camunda_section;

/* What needs the whole file: whether the policies are there. */
void camunda_finish(struct settings *settings, const struct node *root, const struct map *by_name);

/* ---- streams whose entries become jobs ---- */

extern const struct section sources_section;

/* ---- events and callbacks that go out ---- */

extern const struct section events_section, callbacks_section;

/* What needs the whole file, after notify_finish: whether destinations are there, and one for each url of callbacks. */
void forward_finish(struct settings *settings, const struct node *root, struct map *by_name);

/* A destination that nobody has written, of a url that something else names. */
struct internal_destination {
    const char *name, *description, *url;
    struct pair_list headers;
    struct sign_config sign;
    bool allow_private;
};
void internal_finish(struct settings *settings, const struct internal_destination *of, struct place place,
                     struct destination_config *ret_config);

/* ---- who hears of alerts: the entries, and the destinations that webhooks become ---- */

extern const struct section notify_section, reports_section;

/* Once notify is read, whom each goes to. */
void reports_finish(struct settings *settings, const struct node *root);

/*
 * What needs the whole file, after all destinations are in `by_name`: whether those that entries go through can do it, and
 * a destination of its own for each webhook, which is put there too.
 */
void notify_finish(struct settings *settings, const struct node *root, struct map *by_name);

#endif
