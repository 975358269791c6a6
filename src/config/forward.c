/* What leaves the house by itself: events as jobs, and the news of a job's end. */
#include "config/loading.h"

#include "base/hash.h"
#include "config/checks.h"

#include <inttypes.h>
#include <stdio.h>

#define EVENT(member) offsetof(struct event_config, member)
#define CALLBACKS(member) offsetof(struct config, callbacks.member)

/* ---- events ---- */

static const char *check_event(struct slice text)
{
    for (size_t i = 0; event_words[i]; i++)
        if (slice_equal(text, slice_from(event_words[i])))
            return NULL;
    return "must be all, attempt, or the type of an event, as completed, retry_scheduled or dead";
}

const char *const event_words[] = {
    "all",      "attempt",   "accepted",    "claimed",  "completed",      "retry_scheduled", "released", "dead", "expired",
    "cancelled", "prioritized", "redriven", "lease_extended", "dead_expired", "purged", "undone", "erased", NULL,
};

static const struct choice formats[] = { { "cloudevents", EVENT_FORMAT_CLOUDEVENTS },
                                         { "documents", EVENT_FORMAT_DOCUMENTS },
                                         { NULL, 0 } };

static const struct setting where_rows[] = {
    { "code", SETTING_TEXT_LIST, EVENT(where_code), "",
      .meaning = "Only those of attempts whose answer had one of these codes, as `tiss:1001`, `tiss:*` or `http:5xx`.",
      .check = check_line },
    { "dead_code", SETTING_TEXT_LIST, EVENT(where_dead_code), "",
      .meaning = "Only those of jobs that died so, as `PERMANENT_ERROR`.", .check = check_line },
};
static const struct section where_section = { .name = "events.where", SECTION_ROWS(where_rows) };

static const struct setting event_rows[] = {
    { "name", SETTING_TEXT, EVENT(name), .meaning = "What it is called. Two entries may not have the same.",
      .check = check_name },
    { "to", SETTING_TEXT, EVENT(to),
      .meaning = "The destination whose jobs the events are. Of its own jobs there are none: that would have no end.",
      .check = check_name },
    { "on", SETTING_TEXT_LIST, EVENT(on), "all",
      .meaning = "Which events: their types, `attempt` for the end of every attempt, or `all` that jobs have.",
      .check = check_event },
    { "where", SETTING_SECTION, 0, .meaning = "Which of these.", .section = &where_section },
    { "format", SETTING_ENUM, EVENT(format), "cloudevents",
      .meaning = "`cloudevents`: CloudEvents 1.0 as JSON. `documents`: the records and log lines of the source documents, "
                 "such as `SubmissionRetryScheduledEvent`.",
      .choices = formats },
};

static void event_check(struct settings *settings, const void *item, struct place place)
{
    const struct event_config *event = item;
    if (!event->name || !event->to)
        problem_add(settings->problems, place, "an item of events needs name and to");
}

const struct section events_section = {
    .name = "events",
    SECTION_ROWS(event_rows),
    .meaning =
        "A list: each item makes events of jobs to jobs of a destination: stored, retried, none lost. Those of one job go one\n"
        "after the other, in order. See [events.md](events.md).\n"
        "\n"
        "```yaml\n"
        "events:\n"
        "  - { name: audit, to: audit-queue, on: [attempt, retry_scheduled, dead, completed] }\n"
        "  - { name: billing, to: billing-hook, on: [dead], where: { code: [\"tiss:*\"], dead_code: [PERMANENT_ERROR] } }\n"
        "```",
    .item = { "name: audit, to: audit-queue", sizeof(struct event_config), EVENTS_MAX, true, event_check },
};

/* ---- callbacks ---- */

static const struct setting sign_rows[] = {
    { "secrets", SETTING_TEXT_LIST, CALLBACKS(sign.secrets), .meaning = "As of a destination.", .check = check_secret,
      .secret = true },
};
static const struct section sign_section = { .name = "callbacks.sign", SECTION_ROWS(sign_rows) };

static const struct setting callbacks_rows[] = {
    { "allow", SETTING_TEXT_LIST, CALLBACKS(allow), "",
      .meaning = "The urls that a job may name in `callback`. Each is a destination of its own.", .check = check_http_url },
    { "sign", SETTING_SECTION, 0, .meaning = "Signing these requests: needed where `allow` names a url.", .section = &sign_section },
    { "allow_private", SETTING_BOOL, CALLBACKS(allow_private), "false",
      .meaning = "Let them connect to loopback and private addresses." },
};
const struct section callbacks_section = { .name = "callbacks", SECTION_ROWS(callbacks_rows) };

/* The same for a url for ever: jobs of it may be in the store. */
static void callback_name(struct slice url, char ret_name[DESTINATION_NAME_BYTES_MAX + 1])
{
    snprintf(ret_name, DESTINATION_NAME_BYTES_MAX + 1, CALLBACK_PREFIX "%016" PRIx64, hash_slice(0, 0, url));
}

const struct destination_config *config_callback(const struct config *config, struct slice url)
{
    char name[DESTINATION_NAME_BYTES_MAX + 1];
    for (size_t i = 0; i < config->callbacks.allow.count; i++)
        if (slice_equal(slice_from(config->callbacks.allow.items[i]), url)) {
            callback_name(url, name);
            return config_destination(config, slice_from(name));
        }
    return NULL;
}

static void callbacks_make(struct settings *settings, struct map *by_name)
{
    struct config *config = settings->root;
    const struct place place = settings_place_of(settings, &config->callbacks, (struct place){ settings->file, 0, 0 });
    if (config->callbacks.allow.count > 0 && config->callbacks.sign.secrets.count == 0)
        problem_add(settings->problems, place,
                    "callbacks: who may be called must be able to tell these requests from others; give"
                    " callbacks.sign.secrets");
    for (size_t i = 0; i < config->callbacks.allow.count && config->internal; i++) {
        char name[DESTINATION_NAME_BYTES_MAX + 1];
        struct destination_config *made = &config->internal[config->internal_count];
        callback_name(slice_from(config->callbacks.allow.items[i]), name);
        if (map_get(by_name, slice_from(name)))
            continue; /* it is there twice */
        internal_finish(settings,
                        &(struct internal_destination){ .name = name,
                                                        .description = "tells of the end of jobs",
                                                        .url = config->callbacks.allow.items[i],
                                                        .sign = config->callbacks.sign,
                                                        .allow_private = config->callbacks.allow_private },
                        place, made);
        if (!made->name)
            return;
        config->internal_count++;
        if (map_put(by_name, slice_from(made->name), made) != STATUS_OK)
            settings->failed = true;
    }
}

static void destination_check(struct settings *settings, const struct node *root, struct slice list, const char *name,
                              const char *destination, const struct map *by_name)
{
    struct place place = settings_place_under(settings, root, list);
    const struct destination_config *found = destination ? map_get(by_name, slice_from(destination)) : NULL;
    if (destination && (!found || found->internal))
        problem_add(settings->problems, place, "%.*s: %s goes to \"%s\", which is no destination", SLICE_ARG(list),
                    name ? name : "?", destination);
}

void forward_finish(struct settings *settings, const struct node *root, struct map *by_name)
{
    const struct config *config = settings->root;
    for (size_t i = 0; i < config->event_count; i++)
        destination_check(settings, root, SLICE("events"), config->events[i].name, config->events[i].to, by_name);
    for (size_t i = 0; i < config->source_count; i++)
        destination_check(settings, root, SLICE("sources"), config->sources[i].name, config->sources[i].destination,
                          by_name);
    callbacks_make(settings, by_name);
}
