/*
 * The dead letters: exported line by line, whatever their number; and counted by what they have in common.
 *
 * For the summary all of them are looked at, some at a time, so that other calls are answered in between.
 * The groups are bounded: what is not among the first GROUPS_MAX is counted as `others`.
 */
#include "api/call/counts.h"
#include "api/call/pieces.h"
#include "api/jobs/causes.h"
#include "api/jobs/jobs.h"
#include "api/jobs/letters.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/map.h"
#include "core/errors/fingerprint.h"
#include "engine/dead/dead_entry.h"

#include <stdlib.h>
#include <string.h>

enum {
    JOBS_A_PIECE = 100, /* a quarter of a millisecond */
    GROUPS_MAX = 1000,
    HOURS = 24,            /* that a trend goes back */
    TENANTS_MAX = 1 << 14, /* distinguished, over all groups */
    TENANT_SLOTS = TENANTS_MAX * 2,
    EXPORT_JOBS_AT_ONCE = 16, /* with their payloads in memory */
};

struct dead_group {
    struct slice key;
    struct slice sample, code; /* of a fingerprint: the masked text, and its code; else empty */
    int64_t count, tenants;
    instant oldest_at, newest_at;
    int64_t by_hour[HOURS]; /* that died in each of the last, the newest last */
};

struct summary {
    const char *by; /* a row of `keys` */
    struct job_walk walk;
    struct map groups; /* key -> struct dead_group, all in the call's memory */
    int64_t counted, others;
    uint64_t *tenants; /* hashes of group and tenant, by open addressing; 0: a free slot */
    size_t tenant_count;
    instant now;
};

static bool is_by_fingerprint(const struct summary *summary)
{
    return strcmp(summary->by, "fingerprint") == 0;
}

/* `print` has room for the key, where that is made. */
static struct slice key_of(const struct call *call, const struct summary *summary, const struct job *job,
                           char print[FINGERPRINT_BYTES + 1])
{
    if (strcmp(summary->by, "tenant") == 0)
        return job->tenant;
    if (strcmp(summary->by, "destination") == 0)
        return job->destination;
    if (strcmp(summary->by, "code") == 0)
        return job->last_code.len > 0 ? job->last_code : job->dead_code;
    causes_find(call->api->dead.causes, job->last_code, job->last_error, print);
    return (struct slice){ print, FINGERPRINT_BYTES };
}

/* NULL: it is one of the others, or there is no memory to tell it apart. */
static struct dead_group *group_of(struct call *call, struct summary *summary, struct slice key)
{
    struct dead_group *group = map_get(&summary->groups, key);
    if (group || summary->groups.count == GROUPS_MAX)
        return group;
    group = arena_alloc(&call->memory, sizeof *group);
    if (!group)
        return NULL;
    group->key = arena_copy(&call->memory, key);
    return group->key.data && map_put(&summary->groups, group->key, group) == STATUS_OK ? group : NULL;
}

/* Whether the group had none of this tenant so far; one that is too many to be distinguished is not counted. */
static bool tenant_is_new(struct summary *summary, const struct dead_group *group, struct slice tenant)
{
    uint64_t hash = hash_slice((uintptr_t)group, summary->groups.seed, tenant) | 1; /* 0 is a free slot */
    if (summary->tenant_count == TENANTS_MAX)
        return false;
    size_t at = hash / 2 % TENANT_SLOTS;
    while (summary->tenants[at] != 0 && summary->tenants[at] != hash)
        at = (at + 1) % TENANT_SLOTS;
    if (summary->tenants[at] == hash)
        return false;
    summary->tenants[at] = hash;
    summary->tenant_count++;
    return true;
}

/* Of a cause, what its first letter says. */
static void begin_group(struct call *call, const struct summary *summary, struct dead_group *group, const struct job *job)
{
    struct fingerprint print;
    group->oldest_at = group->newest_at = job->dead_at;
    group->sample = group->code = SLICE("");
    if (!is_by_fingerprint(summary))
        return;
    fingerprint_make(SLICE(""), job->last_code, job->last_error, &print);
    group->sample = arena_copy(&call->memory, slice_from(print.sample));
    group->code = arena_copy(&call->memory, slice_from(print.code));
}

static void count_job(struct call *call, struct summary *summary, const struct job *job)
{
    char print[FINGERPRINT_BYTES + 1];
    struct dead_group *group = group_of(call, summary, key_of(call, summary, job, print));
    summary->counted++;
    if (!group) {
        summary->others++;
        return;
    }
    if (group->count++ == 0)
        begin_group(call, summary, group, job);
    if (job->dead_at > group->newest_at)
        group->newest_at = job->dead_at;
    if (job->dead_at < group->oldest_at)
        group->oldest_at = job->dead_at;
    int64_t hours = (summary->now - job->dead_at) / HOUR_MS;
    if (hours >= 0 && hours < HOURS)
        group->by_hour[HOURS - 1 - hours]++;
    group->tenants += tenant_is_new(summary, group, job->tenant);
}

static int most_first(const void *a, const void *b)
{
    const struct dead_group *left = *(const struct dead_group *const *)a, *right = *(const struct dead_group *const *)b;
    if (left->count != right->count)
        return left->count < right->count ? 1 : -1;
    int order = memcmp(left->key.data, right->key.data, left->key.len < right->key.len ? left->key.len : right->key.len);
    return order != 0 ? order : (left->key.len > right->key.len) - (left->key.len < right->key.len);
}

static void write_group(struct json_writer *json, const struct summary *summary, const struct dead_group *group)
{
    json_object_begin(json);
    json_member_string(json, summary->by, group->key);
    json_member_int(json, "count", group->count);
    json_member_int(json, "tenants", group->tenants);
    json_member_instant(json, "oldest_at", group->oldest_at);
    json_member_instant(json, "newest_at", group->newest_at);
    json_member_array(json, "by_hour");
    for (size_t i = 0; i < HOURS; i++)
        json_put_int(json, group->by_hour[i]);
    json_array_end(json);
    if (group->code.data)
        json_member_given(json, "code", group->code);
    if (group->sample.data)
        json_member_given(json, "sample", group->sample);
    json_object_end(json);
}

static void answer(struct call *call)
{
    struct summary *summary = call->context;
    size_t count = 0, cursor = 0;
    const struct dead_group **sorted = arena_alloc_array(&call->memory, summary->groups.count + 1, sizeof *sorted);
    if (!sorted) {
        call_no_memory(call);
        return;
    }
    for (struct map_entry *entry; (entry = map_next(&summary->groups, &cursor));)
        sorted[count++] = entry->value;
    qsort(sorted, count, sizeof *sorted, most_first);
    struct json_writer *json = call_answer(call);
    json_member_text(json, "by", summary->by);
    json_member_array(json, "groups");
    for (size_t i = 0; i < count; i++)
        write_group(json, summary, sorted[i]);
    json_array_end(json);
    json_member_int(json, "dead", summary->counted);
    json_member_int(json, "others", summary->others);
    if (summary->tenant_count == TENANTS_MAX)
        json_member_bool(json, "tenants_or_more", true);
    call_answer_send(call, 200);
}

static enum status count_piece(struct call *call, struct store_reader *reader, struct error *err)
{
    struct summary *summary = call->context;
    struct arena memory = { 0 };
    struct job *jobs;
    size_t count;
    enum status status =
        walk_page(reader, &summary->walk, JOBS_A_PIECE, false, &memory, &jobs, &count, err);
    for (size_t i = 0; status == STATUS_OK && i < count; i++)
        count_job(call, summary, &jobs[i]);
    arena_release(&memory);
    if (status != STATUS_OK)
        return status;
    call->reading.more = !summary->walk.over;
    return STATUS_OK;
}

static void forget_summary(struct call *call)
{
    struct summary *summary = call->context;
    map_release(&summary->groups);
}

static void read_summary(struct call *call)
{
    call_read(call, count_piece, answer);
}

void handle_dead_summary(struct call *call)
{
    static const char *const keys[] = { "code", "tenant", "destination", "fingerprint" };
    struct slice by = call_query(call, "by");
    struct summary *summary = call_context(call, sizeof *summary);
    if (!summary)
        return;
    *summary = (struct summary){ .now = api_now(call->api),
                                 .tenants = call_alloc(call, TENANT_SLOTS * sizeof *summary->tenants) };
    if (!summary->tenants)
        return;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (slice_equal(by.len > 0 ? by : SLICE("code"), slice_from(keys[i])))
            summary->by = keys[i];
    if (!summary->by) {
        call_problem(call, 422, "invalid_member", "by must be code, tenant, destination or fingerprint");
        return;
    }
    if (is_by_fingerprint(summary) && !call->api->dead.causes)
        call->api->dead.causes = causes_new(call->api->settings.seed); /* without it every text is masked */
    if (!query_filter(call, &summary->walk))
        return;
    summary->walk.filter.state = STATE_DEAD;
    summary->walk.filter.brief = true;
    summary->walk.filter.before_seq = 0;
    map_init(&summary->groups, call->api->settings.seed);
    call->forget = forget_summary;
    destination_check(call, read_summary);
}

/* ---- the export ---- */

/* Where it is, and the jobs of the piece that was read. */
struct export {
    struct job_walk walk;
    bool is_read;
    struct arena memory;
    struct job *jobs;
    size_t count;
};

static enum status read_export(struct call *call, struct store_reader *reader, struct error *err)
{
    struct export *export = call->context;
    return walk_page(reader, &export->walk, EXPORT_JOBS_AT_ONCE, true, &export->memory, &export->jobs, &export->count, err);
}

static void forget_export(struct call *call)
{
    struct export *export = call->context;
    arena_release(&export->memory);
}

static enum piece export_next(struct call *call, struct buffer *out)
{
    struct export *export = call->context;
    export->is_read = !export->is_read;
    if (export->is_read)
        return PIECE_READ;
    if (call->reading.status != STATUS_OK) {
        log_event(LOG_ERROR, "export_failed", FIELD_CSTR("error", call->reading.apart.error.text));
        return PIECE_FAILED;
    }
    for (size_t i = 0; i < export->count; i++)
        dead_entry_write(out, &export->jobs[i]);
    arena_release(&export->memory);
    return !export->walk.over ? PIECE_MORE : PIECE_LAST;
}

static void begin_export(struct call *call)
{
    call_stream(call, "application/x-ndjson", read_export, export_next);
}

void handle_dead_export(struct call *call)
{
    struct export *export = call_context(call, sizeof *export);
    if (!export || !query_filter(call, &export->walk))
        return;
    export->walk.filter.state = STATE_DEAD;
    call->forget = forget_export;
    destination_check(call, begin_export);
}
