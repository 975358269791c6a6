/*
 * destination.h - a destination while it is being put together: preset first, then the file.
 *
 * A draft can be copied as a value: its lists and places are never changed in place, so that
 * a preset is read once however many destinations start from it.
 */
#ifndef CONFIG_DESTINATION_H
#define CONFIG_DESTINATION_H

#include "base/map.h"
#include "config/settings.h"

enum { TIER_COUNT = TIER_FALLBACK + 1 };

struct destination_draft {
    struct destination_config config;
    const char *extends;
    int transport;   /* as written; TRANSPORT_UNSAID: the url says it */
    int health_kind; /* as written; HEALTH_NONE: the url says it */
    bool health_given;
    int64_t attempts_max; /* 0: not given; becomes retries_max */
    const char *code_namespace;
    struct rule_list rules[TIER_COUNT][OUTCOME_COUNT];
    const struct placed *placed;
    const struct node *tenants; /* as written; NULL: none */
};

enum { TRANSPORT_UNSAID = -1 };

extern const struct section destination_section;
extern const struct section tenant_section;

/* Compiled classifiers by their rules: destinations with the same rules share one. */
struct classifier_pool {
    struct map by_rules;
    struct arena *scratch;
    size_t rule_bytes; /* of all different ones */
    /* The classifier becomes the pool owner's, whatever happens after. */
    enum status (*keep_classifier)(void *owner, struct classifier *classifier);
    enum status (*keep_pattern)(void *owner, struct pattern *pattern);
    void *owner;
};

enum { POOL_RULE_BYTES_MAX = 4 << 20 };

/* The preset that knows what errors of its transport mean; NULL: none does, or the transport is not known yet. */
const char *destination_rules_preset(const struct destination_draft *draft);

/* SETTING_SPECIAL of `tenants`, which waits for the rest of its destination. */
void tenants_note(struct settings *settings, const struct node *node, void *field);
/* Makes each tenant's own of a destination that is finished. */
void tenants_finish(struct settings *settings, struct destination_draft *draft);
/* What of an account must fit together, for a destination and for each of its tenants. `place` stands for it in problems. */
void account_check(struct settings *settings, struct destination_draft *draft, struct place place);

/*
 * The last step: derives, compiles and checks what needs several values. `real` is false for a
 * preset by itself, which need not be complete. `place` stands for the destination in problems.
 */
void destination_finish(struct settings *settings, struct destination_draft *draft, bool real, struct place place,
                        struct classifier_pool *pool);

/* An offset, or a place in the system's tz database, whose rules are put into `memory`. */
enum status zone_load(const char *name, struct arena *memory, struct zone *ret_zone, struct error *err) MUST_CHECK;

#endif
