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

/* Rows of the file itself. */
extern const struct section file_section;
/* SETTING_SPECIAL of `destinations`. */
void destinations_apply(struct settings *settings, const struct node *node, void *field);
/* Allowed, but probably not meant. */
void loading_warn(struct loading *loading, struct place place, const char *text);

#endif
