#include "api/jobs/letters.h"

#include "api/call/body.h"
#include "api/call/query.h"

enum { GROUPS_MAX = 1000 };

static const char *const filter_names[] = { "destination", "code", "dead_code", "fingerprint", "since", "until", "text" };

/* "a,b,c": a list that is not paged. */
static bool query_ids(struct call *call, struct slice text, struct job_walk *walk)
{
    size_t count = 1;
    for (size_t i = 0; i < text.len; i++)
        count += text.data[i] == ',';
    struct slice *ids = call_alloc(call, count * sizeof *ids);
    if (!ids)
        return false;
    walk->ids = ids;
    for (struct slice rest = text; rest.len > 0;) {
        size_t end = slice_find(rest, ',');
        if (end > 0)
            ids[walk->id_count++] = (struct slice){ rest.data, end };
        rest = slice_from_offset(rest, end < rest.len ? end + 1 : end);
    }
    if (walk->id_count > 0 && walk->id_count <= FILTER_IDS_MAX)
        return true;
    return call_problem(call, 422, "invalid_ids", "ids must be 1 to %d ids with commas between them", FILTER_IDS_MAX);
}

bool query_filter(struct call *call, struct job_walk *ret_walk)
{
    struct job_walk walk = { .id = 0 };
    struct slice state = call_query(call, "state"), ids = call_query(call, "ids");
    struct error error;
    if (!call_tenant(call, call_query(call, "tenant"), &walk.filter.tenant))
        return false;
    for (size_t i = 0; i < sizeof filter_names / sizeof *filter_names; i++)
        if (filter_set(&walk, filter_names[i], call_query(call, filter_names[i]), &error) != STATUS_OK)
            return call_problem(call, 422, "invalid_filter", "%s", error.text);
    if (state.len > 0) {
        walk.filter.state = job_state_from_name(state);
        if (walk.filter.state == STATE_NONE)
            return call_problem(call, 422, "invalid_state",
                                "state must be pending, running, waiting, completed, dead or cancelled");
    }
    if ((ids.len > 0 && !query_ids(call, ids, &walk)) || !call_cursor(call, "cursor", &walk.filter.before_seq))
        return false;
    walk.filter.id = call_query(call, "id");
    *ret_walk = walk;
    return true;
}

bool body_filter(struct call *call, struct job_walk *ret_walk)
{
    const json_t *filter = body_member(call, "filter"), *all = body_member(call, "all");
    struct job_walk walk = { .filter.state = STATE_DEAD };
    struct error error;
    if (filter && filter_read(filter, &call->memory, &walk, &error) != STATUS_OK)
        return call_problem(call, 422, "invalid_filter", "%s", error.text);
    if (all && !json_is_boolean(all))
        return call_problem(call, 422, "invalid_member", "all must be true or false");
    if (filter_is_empty(&walk) && !json_is_true(all))
        return call_problem(call, 422, "filter_needed",
                            "without a filter this means every dead letter; say so with \"all\": true, or give a filter");
    if (!call_tenant(call, walk.filter.tenant, &walk.filter.tenant))
        return false;
    *ret_walk = walk;
    return true;
}

/* ---- counts ---- */

void letter_counts_init(struct letter_counts *counts, uint64_t seed)
{
    *counts = (struct letter_counts){ .oldest = INSTANT_NONE, .newest = INSTANT_NONE };
    map_init(&counts->by_code, seed);
    map_init(&counts->by_tenant, seed);
}

void letter_counts_release(struct letter_counts *counts)
{
    map_release(&counts->by_code);
    map_release(&counts->by_tenant);
}

static void group_add(struct call *call, struct map *groups, struct slice key, int64_t *others)
{
    int64_t *count = map_get(groups, key);
    if (!count && groups->count < GROUPS_MAX) {
        struct slice copy = arena_copy(&call->memory, key);
        count = copy.data ? arena_alloc(&call->memory, sizeof *count) : NULL;
        if (count) {
            *count = 0;
            if (map_put(groups, copy, count) != STATUS_OK)
                count = NULL;
        }
    }
    ++*(count ? count : others);
}

void letter_counts_add(struct call *call, struct letter_counts *counts, const struct job *job)
{
    counts->matched++;
    counts->oldest = counts->oldest == INSTANT_NONE || job->dead_at < counts->oldest ? job->dead_at : counts->oldest;
    counts->newest = job->dead_at > counts->newest ? job->dead_at : counts->newest;
    group_add(call, &counts->by_code, job->last_code.len > 0 ? job->last_code : job->dead_code, &counts->code_others);
    group_add(call, &counts->by_tenant, job->tenant, &counts->tenant_others);
}

static void groups_write(struct json_writer *json, const char *name, struct map *groups)
{
    size_t cursor = 0;
    json_member_object(json, name);
    for (struct map_entry *entry; (entry = map_next(groups, &cursor));) {
        json_name_any(json, entry->key);
        json_put_int(json, *(const int64_t *)entry->value);
    }
    json_object_end(json);
}

void letter_counts_write(struct json_writer *json, struct letter_counts *counts)
{
    json_member_int(json, "matched", counts->matched);
    groups_write(json, "by_code", &counts->by_code);
    groups_write(json, "by_tenant", &counts->by_tenant);
    if (counts->code_others + counts->tenant_others > 0) {
        json_member_int(json, "code_others", counts->code_others);
        json_member_int(json, "tenant_others", counts->tenant_others);
    }
    json_member_instant(json, "oldest", counts->oldest);
    json_member_instant(json, "newest", counts->newest);
}
