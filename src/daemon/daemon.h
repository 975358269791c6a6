/*
 * daemon.h - the process: store, writer, engine, transports and API wired together.
 *
 * The calling thread becomes the engine's; the writer and the API have threads of their own.
 */
#ifndef DAEMON_DAEMON_H
#define DAEMON_DAEMON_H

#include "config/config.h"
#include "store/store.h"

struct daemon_settings {
    struct config *config;
    const char *config_path; /* read again on SIGHUP; NULL: there is none */
    const struct store_backend *const *backends;
    bool init; /* makes a store, and the folders to it, where there is none */
    /* Called once when the API answers, with its port; may be NULL. */
    void (*on_ready)(void *context, int port);
    void *context;
};

/*
 * What keeps a valid configuration from working: addresses that nothing may be sent to, certificates, keys and tokens that
 * are not there or are not that, a store of a kind that there is not. One line each; returns how many.
 */
size_t daemon_problems(const struct config *config, const struct store_backend *const *backends, struct buffer *out);
/* Whether there are none; `err` has the first. */
enum status daemon_check(const struct config *config, const struct store_backend *const *backends,
                         struct error *err) MUST_CHECK;
/*
 * The same before it is run. What is wrong with a tenant's own account is logged and no reason not to: that tenant is held
 * when it has jobs, and the others' are sent, and their secrets read again.
 */
enum status daemon_check_to_run(const struct config *config, const struct store_backend *const *backends,
                                struct error *err) MUST_CHECK;

/* main blocks SIGHUP, which ends a process without a handler; daemon_run lets it through when there is one. */
void daemon_let_reload(void);

/*
 * Runs until SIGTERM or SIGINT, then drains. STATUS_OK: everything was stopped in order. Else `err` says why: it
 * could not start, or the store failed, in which case the next start recovers.
 */
enum status daemon_run(const struct daemon_settings *settings, struct error *err) MUST_CHECK;

#endif
