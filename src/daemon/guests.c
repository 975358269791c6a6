#include "daemon/guests.h"

#include "engine/measures.h"
#include "guests/camunda.h"
#include "guests/forward.h"
#include "guests/sources.h"

#include <stdlib.h>
#include <string.h>

struct guests {
    struct guests_settings settings;
    struct camunda *camunda;
    struct forward *forward;
    struct sources *sources;
};

struct guests_next {
    struct config *config;
    struct camunda *camunda;
    struct sources *sources;
};

struct decided_message {
    struct message message; /* first */
    struct engine *engine;
    struct decision decision;
    int64_t took_ns;
    char policy[]; /* of its own: a reload may come between */
};

static void run_decided(struct message *message)
{
    struct decided_message *decided = message_of(message, MESSAGE_DECIDED);
    engine_decided(decided->engine, slice_from(decided->policy), &decided->decision, decided->took_ns);
    free(decided);
}

/* From a guest's thread. A figure that there is no memory for is not worth a failure. */
static void on_decided(void *context, const char *policy, const struct decision *decision, int64_t took_ns)
{
    const struct guests *guests = context;
    size_t len = strlen(policy);
    struct decided_message *decided = calloc(1, sizeof *decided + len + 1);
    if (!decided)
        return;
    *decided = (struct decided_message){ .engine = guests->settings.engine, .decision = *decision, .took_ns = took_ns };
    memcpy(decided->policy, policy, len + 1);
    mailbox_post(guests->settings.mailbox, &decided->message, MESSAGE_DECIDED, run_decided);
}

static instant guests_now(void *context)
{
    const struct guests *guests = context;
    return guests->settings.now(guests->settings.context);
}

static bool guests_steward(void *context)
{
    const struct guests *guests = context;
    return guests->settings.is_steward(guests->settings.context);
}

static enum status start_those_of(struct guests *guests, struct config *config, struct guests_next *next, struct error *err)
{
    const struct camunda_settings camunda = { .config = config, .writer = guests->settings.writer, .now = guests_now,
                                              .on_decided = on_decided, .context = guests };
    const struct sources_settings sources = { .config = config, .store = guests->settings.store,
                                              .writer = guests->settings.writer, .board = guests->settings.board,
                                              .now = guests_now, .context = guests };
    next->config = config_ref(config);
    enum status status = camunda_start(&camunda, &next->camunda, err);
    return status == STATUS_OK ? sources_new(&sources, &next->sources, err) : status;
}

enum status guests_open(const struct guests_settings *settings, struct config *config, struct guests **ret_guests,
                        struct error *err)
{
    struct guests *guests = calloc(1, sizeof *guests);
    struct guests_next next = { 0 };
    if (!guests)
        return error_set(err, STATUS_NO_MEMORY, "no memory for guests");
    guests->settings = *settings;
    enum status status = start_those_of(guests, config, &next, err);
    guests->camunda = next.camunda;
    guests->sources = next.sources;
    config_unref(next.config);
    const struct forward_settings forward = { .config = config, .store = settings->store, .writer = settings->writer,
                                              .now = guests_now, .context = guests,
                                              .is_ours = settings->is_steward ? guests_steward : NULL };
    if (status == STATUS_OK)
        status = forward_start(&forward, &guests->forward, err);
    if (status != STATUS_OK) {
        guests_stop(guests);
        return status;
    }
    sources_begin(guests->sources);
    *ret_guests = guests;
    return STATUS_OK;
}

enum status guests_prepare(struct guests *guests, struct config *config, struct guests_next **ret_next, struct error *err)
{
    struct guests_next *next = calloc(1, sizeof *next);
    if (!next)
        return error_set(err, STATUS_NO_MEMORY, "no memory for guests");
    enum status status = start_those_of(guests, config, next, err);
    if (status == STATUS_OK)
        *ret_next = next;
    else
        guests_forget(guests, next);
    return status;
}

static void next_free(struct guests_next *next)
{
    config_unref(next->config);
    free(next);
}

void guests_take(struct guests *guests, struct guests_next *next)
{
    camunda_follow(next->camunda, guests->camunda);
    guests->camunda = next->camunda;
    sources_begin(next->sources);
    sources_follow(next->sources, guests->sources);
    guests->sources = next->sources;
    forward_reload(guests->forward, next->config);
    next_free(next);
}

void guests_forget(struct guests *guests, struct guests_next *next)
{
    if (!next)
        return;
    if (next->camunda)
        camunda_follow(guests->camunda, next->camunda);
    sources_stop(next->sources); /* they have not begun, so that nothing holds them up */
    next_free(next);
}

void guests_cease(struct guests *guests)
{
    camunda_cease(guests->camunda);
    forward_cease(guests->forward);
    sources_cease(guests->sources);
}

void guests_stop(struct guests *guests)
{
    if (!guests)
        return;
    camunda_stop(guests->camunda);
    forward_stop(guests->forward);
    sources_stop(guests->sources);
    free(guests);
}
