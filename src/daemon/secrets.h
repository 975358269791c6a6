/*
 * secrets.h - noticing that a secret's file has changed.
 */
#ifndef DAEMON_SECRETS_H
#define DAEMON_SECRETS_H

#include "config/config.h"

struct event_base;
struct secrets;

/* `changed` is called from the loop, some time after a file of the configuration's references is another. */
enum status secrets_new(struct event_base *loop, void (*changed)(void *context), void *context, struct secrets **ret_secrets,
                        struct error *err) MUST_CHECK;
/* Accepts NULL. */
void secrets_free(struct secrets *secrets);

/* From now on those of this configuration. STATUS_IO: some folder cannot be watched; the others are. */
enum status secrets_watch(struct secrets *secrets, const struct config *config, struct error *err) MUST_CHECK;

#endif
