/*
 * tiers.h - tenants in tiers: what gives many of them one weight.
 */
#ifndef CONFIG_TIERS_H
#define CONFIG_TIERS_H

#include "base/map.h"
#include "config/settings.h"

/* SETTING_SPECIAL: { gold: [acme, globex] } into config->tiers. */
void tiers_apply(struct settings *settings, const struct node *node, void *field);

/*
 * What needs the whole file: fills `by_tenant` with each tenant's tier. A tenant of two tiers is a problem, and a tier whose
 * weight no destination knows, which is a word mistyped.
 */
void tiers_finish(struct settings *settings, const struct node *root, struct map *by_tenant);

#endif
