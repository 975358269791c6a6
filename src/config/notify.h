/*
 * notify.h - who is told about alerts: the entries, and the destinations that webhooks become.
 */
#ifndef CONFIG_NOTIFY_H
#define CONFIG_NOTIFY_H

#include "config/loading.h"

extern const struct section notify_section;

/* SETTING_SPECIAL: a list into config->notify. */
void notify_apply(struct settings *settings, const struct node *node, void *field);

/*
 * What needs the whole file, after all destinations are in `by_name`: whether those that entries go through can do it, and
 * a destination of its own for each webhook, which is put there too.
 */
void notify_finish(struct settings *settings, const struct node *root, struct map *by_name);

#endif
