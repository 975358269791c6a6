/*
 * That alerts are told once: whatever begins, grows or ends is one transaction with its event, its record and one job for each
 * entry of notify that wants it, whatever crashes, fails or is reloaded in between; and once nothing is wrong any more, none
 * says that something is.
 */
#include "world.h"

#include "engine/alerts/alert_record.h"
#include "engine/alerts/notify.h"
#include "engine/status.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

enum { KEPT_MAX = 1000, BATCH_WAITS_MS = 100 };

struct alert_view {
    char id[ALERT_ID_BYTES];
    enum alert_kind kind;
    int dest; /* -1: of the daemon */
    char tenant[TENANT_BYTES];
    bool stands;
    struct alert_view *next;
};

/* One step as its event tells it. */
struct news {
    json_t *root;
    const char *step; /* raised, grown, cleared */
    const char *id, *destination, *tenant;
    enum alert_kind kind;
};

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

/* False: it tells of something else. */
static bool news_read(const struct store_op *op, struct news *ret_news)
{
    if (op->kind != OP_NOTE)
        return false;
    json_t *root = json_loadb(op->data.data, op->data.len, 0, NULL);
    const char *note = text_of(root, "note");
    const json_t *alert = json_object_get(root, "alert");
    if (strncmp(note, "alert_", 6) != 0) {
        json_decref(root);
        return false;
    }
    *ret_news = (struct news){ .root = root, .step = note + 6, .id = text_of(alert, "id"),
                               .destination = text_of(alert, "destination"), .tenant = text_of(alert, "tenant"),
                               .kind = alert_kind_from_name(slice_from(text_of(alert, "alert"))) };
    return true;
}

static bool has(const struct text_list *list, const char *text)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i], text) == 0)
            return true;
    return false;
}

/* The configuration's own words, read apart from the program. */
static bool is_wanted(const struct notify_config *entry, const struct news *news)
{
    const struct alert_type *type = &alert_types[news->kind];
    if (entry->destinations.count > 0 && !has(&entry->destinations, news->destination))
        return false;
    if (entry->tenants.count > 0 && !(type->of_tenant && has(&entry->tenants, news->tenant)))
        return false;
    return has(&entry->on, "all") || has(&entry->on, type->name) || has(&entry->on, alert_severity_name(type->severity));
}

static bool tells(const struct store_op *op)
{
    return op->kind == OP_INSERT && slice_equal(op->insert.tenant, NOTIFY_TENANT);
}

/* Whether it is the job that tells this entry: by its id, ID.STEP.NAME, or ID.STEP-COUNT.NAME of one that has grown. */
static bool is_told(const struct store_op *op, const struct notify_config *entry, const struct news *news)
{
    char begin[ID_BYTES], end[ID_BYTES];
    struct slice id = op->insert.id;
    snprintf(begin, sizeof begin, "%s.%s", news->id, news->step);
    snprintf(end, sizeof end, ".%s", entry->name);
    return tells(op) && slice_has_prefix(id, slice_from(begin)) && id.len >= strlen(begin) + strlen(end) &&
           memcmp(id.data + id.len - strlen(end), end, strlen(end)) == 0 &&
           slice_equal(op->insert.destination, slice_from(entry->destination));
}

/* Whether those are told, and only those, who want it by that configuration. */
static bool scale_of(const struct config *config, const struct batch *batch, const struct news *news, size_t jobs)
{
    size_t all = 0;
    for (size_t i = 0; i < config->notify_count; i++) {
        size_t reported = 0;
        for (size_t j = 0; j < batch->count; j++)
            reported += is_told(&batch->ops[j], &config->notify[i], news);
        if (reported != is_wanted(&config->notify[i], news))
            return false;
        all += reported;
    }
    return all == jobs;
}

static size_t jobs_of(const struct batch *batch, const struct news *news)
{
    size_t jobs = 0;
    for (size_t i = 0; i < batch->count; i++)
        jobs += tells(&batch->ops[i]) && slice_equal(batch->ops[i].insert.correlation_id, slice_from(news->id));
    return jobs;
}

/* What waits for its place in a slow store was written by the configuration before. */
static bool is_told_once(const struct world *world, const struct batch *batch, const struct news *news, size_t jobs)
{
    bool changed = world->mono - world->changed_mono <= 8 * world->store_lag_ms + BATCH_WAITS_MS;
    for (int i = 0; i < CONFIGS; i++)
        if ((i == world->config || changed) && scale_of(world->configs[i], batch, news, jobs))
            return true;
    return false;
}

void alerts_submitted(struct world *world, const struct batch *batch)
{
    size_t jobs = 0, reported = 0;
    for (size_t i = 0; i < batch->count; i++) {
        struct news news;
        jobs += tells(&batch->ops[i]);
        if (!news_read(&batch->ops[i], &news))
            continue;
        size_t of_it = jobs_of(batch, &news);
        if (!is_told_once(world, batch, &news, of_it))
            violated(world, INVARIANT_ALERTS, "%s.%s is told by %zu jobs, not one to each who wants it", news.id, news.step, of_it);
        reported += of_it;
        json_decref(news.root);
    }
    if (jobs != reported)
        violated(world, INVARIANT_ALERTS, "%zu jobs tell of alerts, %zu of news", jobs, reported);
}

/* They are known by the time that their events are read; where the transaction fails they never were, and may be later. */
void alerts_before_apply(struct world *world, const struct store_op *op)
{
    if (!tells(op) || map_get(&world->notes, op->insert.id))
        return;
    struct shadow *shadow = world_expect(world, dest_number(op->insert.destination), TENANT_NOTIFY);
    assert_true(op->insert.id.len < sizeof shadow->id);
    snprintf(shadow->id, sizeof shadow->id, "%.*s", SLICE_ARG(op->insert.id));
    shadow->deadline = INSTANT_NONE;
    assert_int_equal(map_put(&world->notes, slice_from(shadow->id), shadow), STATUS_OK);
}

static void check_note(struct world *world, const struct store_op *op)
{
    struct shadow *shadow = world_job(world, op->insert.id);
    if (op->status != STATUS_OK || op->insert.ret_existed || shadow->acknowledged)
        violated(world, INVARIANT_ALERTS, "%.*s is told again", SLICE_ARG(op->insert.id));
    shadow->acknowledged = true;
    note(world, "told", shadow - world->jobs, op->insert.ret_lane);
    seen(world, FEATURE_NOTE);
}

static struct alert_view *find(const struct world *world, const char *id)
{
    struct alert_view *view = world->alerts;
    while (view && strcmp(view->id, id) != 0)
        view = view->next;
    return view;
}

static void check_raised(struct world *world, const struct news *news)
{
    int dest = *news->destination ? dest_number(slice_from(news->destination)) : -1;
    if (dest >= CLIENT_DESTS)
        violated(world, INVARIANT_ALERTS, "%s is of one that is told of alerts", news->id);
    if (find(world, news->id))
        violated(world, INVARIANT_ALERTS, "%s is raised, and was before", news->id);
    for (const struct alert_view *view = world->alerts; view; view = view->next)
        if (view->stands && view->kind == news->kind && view->dest == dest && strcmp(view->tenant, news->tenant) == 0)
            violated(world, INVARIANT_ALERTS, "%s is raised, and %s stands", news->id, view->id);
    struct alert_view *view = calloc(1, sizeof *view);
    assert_non_null(view);
    assert_true(strlen(news->id) < sizeof view->id && strlen(news->tenant) < sizeof view->tenant);
    *view = (struct alert_view){ .kind = news->kind, .dest = dest, .stands = true, .next = world->alerts };
    snprintf(view->id, sizeof view->id, "%s", news->id);
    snprintf(view->tenant, sizeof view->tenant, "%s", news->tenant);
    world->alerts = view;
    seen(world, FEATURE_RAISED);
}

static void check_step(struct world *world, const struct news *news)
{
    struct alert_view *view = find(world, news->id);
    bool cleared = strcmp(news->step, "cleared") == 0;
    note(world, news->kind == ALERT_KIND_COUNT ? "?" : alert_types[news->kind].name,
         *news->destination ? dest_number(slice_from(news->destination)) : -1, cleared);
    if (news->kind == ALERT_KIND_COUNT)
        violated(world, INVARIANT_ALERTS, "%s is of a kind that nobody knows", news->id);
    if (strcmp(news->step, "raised") == 0) {
        check_raised(world, news);
        return;
    }
    if (!view || !view->stands)
        violated(world, INVARIANT_ALERTS, "%s is %s, and does not stand", news->id, news->step);
    view->stands = !cleared;
    seen(world, cleared ? FEATURE_CLEARED : FEATURE_GROWN);
}

void alerts_applied(struct world *world, const struct store_op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct news news;
        if (tells(&ops[i]))
            check_note(world, &ops[i]);
        if (!news_read(&ops[i], &news))
            continue;
        check_step(world, &news);
        json_decref(news.root);
    }
}

void check_alerts_kept(struct world *world)
{
    struct arena memory = { 0 };
    struct saved *saved;
    size_t count, current = 0;
    struct error error;
    assert_int_equal(world->eye->ops->reader_saved_list(world->eye, SPACE_ALERT, SLICE(""), KEPT_MAX, &memory, &saved, &count, &error),
                     STATUS_OK);
    for (const struct alert_view *view = world->alerts; view; view = view->next)
        current += view->stands;
    for (size_t i = 0; i < count; i++) {
        char id[ALERT_ID_BYTES];
        snprintf(id, sizeof id, "%.*s", SLICE_ARG(saved[i].name));
        const struct alert_view *view = find(world, id);
        if (!view || !view->stands)
            violated(world, INVARIANT_ALERTS, "%s is kept, and does not stand", id);
    }
    if (count != current)
        violated(world, INVARIANT_ALERTS, "%zu alerts stand, %zu are kept", current, count);
    arena_release(&memory);
}

/* At a destination, or with -1 at any. */
static bool has_dead_letters(const struct world *world, int dest)
{
    for (int i = 0; i < world->job_count; i++) {
        const struct shadow *shadow = &world->jobs[i];
        if (shadow->state == STATE_DEAD && !shadow->gone && (dest < 0 || shadow->dest == dest))
            return true;
    }
    return false;
}

/* Whether it may still stand now. Those by counts of jobs that are not over, such as dead letters, may. */
static bool may_stand(const struct world *world, const struct alert_view *view)
{
    struct destination_status status = { 0 };
    if (view->dest >= 0)
        status = engine_destination(world->engine, slice_from(dest_names[view->dest]));
    switch (view->kind) {
    case ALERT_CONTINGENCY:
    case ALERT_DOWN:
        return strcmp(status.mode, "normal") != 0;
    case ALERT_BREAKER_OPEN:
        return strcmp(status.breaker, "closed") != 0;
    case ALERT_DEAD:
    case ALERT_DEAD_RATE:
    case ALERT_DEAD_PER_TENANT:
        return true;
    case ALERT_DEAD_LETTERS: /* until somebody acknowledges it, or none is left */
    case ALERT_MAX_RETRIES_EXCEEDED:
    case ALERT_PERMANENT_ERROR:
    case ALERT_IN_DOUBT:
    case ALERT_PARTIAL:
    case ALERT_EXPIRED:
        return has_dead_letters(world, view->dest);
    case ALERT_STORE_DAMAGED: /* likewise; reads that fail are all that it is about */
        return world->reads_failed;
    default:
        return false;
    }
}

void check_alerts_over(struct world *world)
{
    for (const struct alert_view *view = world->alerts; view; view = view->next)
        if (view->stands && !may_stand(world, view))
            violated(world, INVARIANT_ALERTS, "%s stands, and nothing of the kind is so", view->id);
    for (int dest = 0; dest < CLIENT_DESTS; dest++) {
        struct destination_status status = engine_destination(world->engine, slice_from(dest_names[dest]));
        bool reported = false;
        for (const struct alert_view *view = world->alerts; view; view = view->next)
            reported = reported || (view->stands && view->kind == ALERT_CONTINGENCY && view->dest == dest);
        if (status.known && strcmp(status.mode, "contingency") == 0 && !reported)
            violated(world, INVARIANT_ALERTS, "%s is in contingency, and nobody was told", dest_names[dest]);
    }
}

void alerts_release(struct world *world)
{
    while (world->alerts) {
        struct alert_view *next = world->alerts->next;
        free(world->alerts);
        world->alerts = next;
    }
}
