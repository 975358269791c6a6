/* Dead letters that go to another destination when their time is over. */
#include "config/loading.h"

enum { EXPORTS_IN_A_ROW_MAX = 8 };

static struct place place_at(const struct settings *settings, struct config_place at)
{
    return (struct place){ settings->file, at.line, at.column };
}

static struct destination_config *target_of(const struct destination_config *from, const struct map *by_name)
{
    return from->dead.export ? map_get(by_name, slice_from(from->dead.export)) : NULL;
}

/* A letter that goes from one to the next has to arrive somewhere. */
static void way_check(struct settings *settings, const struct destination_config *from, const struct map *by_name)
{
    const struct place place = place_at(settings, from->at.dead_export);
    const struct destination_config *at = target_of(from, by_name);
    int steps = 1;
    while (at && at != from && steps < EXPORTS_IN_A_ROW_MAX) {
        at = target_of(at, by_name);
        steps++;
    }
    if (at == from && steps == 1)
        problem_add(settings->problems, place, "dead.export of \"%s\" is itself: its dead letters would have no end",
                    from->name);
    else if (at == from)
        problem_add(settings->problems, place, "dead.export of \"%s\" leads back to it, over %d destinations: dead letters"
                    " would have no end", from->name, steps);
    else if (at && at->dead.export)
        problem_add(settings->problems, place, "dead.export of \"%s\" leads over more than %d destinations", from->name,
                    EXPORTS_IN_A_ROW_MAX);
}

/* What it cannot deliver must not be lost a second time. */
static void last_check(struct settings *settings, const struct destination_config *from, struct destination_config *to)
{
    if (to->dead.export)
        return;
    bool given = to->at.dead_ttl.line != to->at.self.line || to->at.dead_ttl.column != to->at.self.column;
    if (to->dead.ttl_ms > 0 && given)
        problem_add(settings->problems, place_at(settings, to->at.dead_ttl),
                    "\"%s\" gets the dead letters of \"%s\", and would throw those away that it cannot deliver: leave ttl"
                    " out here, set it to 0s, or give it an export too", to->name, from->name);
    to->dead.ttl_ms = 0;
}

static void export_check(struct settings *settings, const struct destination_config *from, const struct map *by_name)
{
    const struct place place = place_at(settings, from->at.dead_export);
    struct destination_config *to = target_of(from, by_name);
    if (!to || to->internal)
        problem_add(settings->problems, place, "dead.export of \"%s\" is \"%s\", which is no destination", from->name,
                    from->dead.export);
    else if (transport_is_mail(to->transport))
        problem_add(settings->problems, place, "dead.export of \"%s\" is \"%s\", which sends mail: a dead letter is no"
                    " message; export to http, exec, redis, amqp or pull", from->name, to->name);
    else
        last_check(settings, from, to);
    way_check(settings, from, by_name);
    if (from->dead.ttl_ms == 0)
        loading_warn(settings->context, place,
                     "dead.export waits for the end of dead.ttl, which is 0s: nothing is exported");
}

void exports_finish(struct settings *settings, const struct map *by_name)
{
    const struct config *config = settings->root;
    for (size_t i = 0; i < config->destination_count; i++)
        if (config->destinations[i].name && config->destinations[i].dead.export)
            export_check(settings, &config->destinations[i], by_name);
}
