#include "guests/sources.h"

#include "guests/source.h"

#include <stdlib.h>

struct sources {
    struct sources_settings settings;
    struct source *items[SOURCES_MAX];
    size_t count;
    struct sources *previous; /* of another configuration, asked to stop; NULL: none, or it has ended */
};

enum status sources_new(const struct sources_settings *settings, struct sources **ret_sources, struct error *err)
{
    const struct config *config = settings->config;
    struct sources *sources = calloc(1, sizeof *sources);
    enum status status = STATUS_OK;
    *ret_sources = NULL;
    if (!sources)
        return error_set(err, STATUS_NO_MEMORY, "no memory for sources");
    sources->settings = *settings;
    config_ref(sources->settings.config);
    for (size_t i = 0; status == STATUS_OK && i < config->source_count; i++) {
        status = source_new(&sources->settings, &config->sources[i], &sources->items[i], err);
        sources->count += status == STATUS_OK;
    }
    if (status == STATUS_OK)
        *ret_sources = sources;
    else
        sources_stop(sources);
    return status;
}

void sources_begin(struct sources *sources)
{
    const struct sources_settings *settings = &sources->settings;
    source_board_name(settings->board, settings->config, settings->now(settings->context));
    for (size_t i = 0; i < sources->count; i++)
        source_begin(sources->items[i]);
}

void sources_cease(struct sources *sources)
{
    for (size_t i = 0; sources && i < sources->count; i++)
        source_cease(sources->items[i]);
}

static bool has_ended(const struct sources *sources)
{
    for (size_t i = 0; i < sources->count; i++)
        if (!source_has_ended(sources->items[i]))
            return false;
    return !sources->previous || has_ended(sources->previous);
}

void sources_follow(struct sources *sources, struct sources *previous)
{
    sources_cease(previous);
    if (has_ended(previous)) {
        sources_stop(previous);
        return;
    }
    struct sources *last = previous;
    while (last->previous)
        last = last->previous;
    last->previous = sources->previous;
    sources->previous = previous;
}

void sources_stop(struct sources *sources)
{
    if (!sources)
        return;
    sources_cease(sources);
    for (size_t i = 0; i < sources->count; i++)
        source_stop(sources->items[i]);
    sources_stop(sources->previous);
    config_unref(sources->settings.config);
    free(sources);
}
