#include "sim/backlog.h"

#include "base/array.h"
#include "base/buffer.h"
#include "base/map.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { NAMES_SHOWN_MAX = 5, NAMES_BYTES_MAX = 400, ID_BYTES = 32 };

/* ---- Which destination ---- */

/* What the lanes count for one destination. */
struct found {
    char *name;
    int64_t jobs;
};

struct choice {
    struct arena memory;
    struct map by_name; /* -> struct found */
    struct found **list; /* in the order in which they were met */
    size_t count, capacity;
};

static enum status choice_add(void *context, const struct lane *lane)
{
    struct choice *choice = context;
    struct found *found = map_get(&choice->by_name, lane->destination);
    if (!found) {
        struct found **list = array_grow(choice->list, choice->count, &choice->capacity, sizeof(struct found *));
        if (!list)
            return STATUS_NO_MEMORY;
        choice->list = list;
        found = arena_alloc(&choice->memory, sizeof *found);
        char *name = found ? arena_copy_text(&choice->memory, lane->destination) : NULL;
        if (!name || map_put(&choice->by_name, slice_from(name), found) != STATUS_OK)
            return STATUS_NO_MEMORY;
        found->name = name;
        choice->list[choice->count++] = found;
    }
    found->jobs += lane->counts.pending + lane->counts.running + lane->counts.waiting;
    return STATUS_OK;
}

static enum status tell_what_there_is(const struct choice *choice, struct slice wanted, struct error *err)
{
    struct buffer names = buffer_up_to(NAMES_BYTES_MAX);
    size_t shown = 0, with_jobs = 0;
    for (size_t i = 0; i < choice->count; i++) {
        if (choice->list[i]->jobs == 0)
            continue;
        with_jobs++;
        if (shown < NAMES_SHOWN_MAX)
            buffer_printf(&names, "%s%s (%" PRId64 ")", shown++ > 0 ? ", " : "", choice->list[i]->name,
                          choice->list[i]->jobs);
    }
    const char *text = buffer_status(&names) == STATUS_OK && names.len > 0 ? names.data : "several";
    enum status status =
        with_jobs == 0 ? error_set(err, STATUS_NOT_FOUND, "the store has no unfinished jobs")
                       : error_set(err, STATUS_NOT_FOUND, "the store has no unfinished jobs of \"%.*s\", but of %s%s",
                                   SLICE_ARG(wanted), text, with_jobs > shown ? " and others" : "");
    buffer_release(&names);
    return status;
}

/* The wanted one, or the only one with jobs; the rest is counted. */
static enum status choose(const struct choice *choice, struct slice wanted, struct backlog *backlog, struct error *err)
{
    const struct found *chosen = map_get(&choice->by_name, wanted);
    int64_t all = 0, with_jobs = 0;
    const struct found *some = NULL;
    for (size_t i = 0; i < choice->count; i++) {
        all += choice->list[i]->jobs;
        if (choice->list[i]->jobs > 0) {
            some = choice->list[i];
            with_jobs++;
        }
    }
    if ((!chosen || chosen->jobs == 0) && with_jobs == 1)
        chosen = some;
    if (!chosen || chosen->jobs == 0)
        return tell_what_there_is(choice, wanted, err);
    backlog->destination = arena_copy_text(&backlog->memory, slice_from(chosen->name));
    if (!backlog->destination)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the backlog");
    backlog->other_jobs = all - chosen->jobs;
    backlog->other_destinations = with_jobs - 1;
    return STATUS_OK;
}

/* ---- Its jobs ---- */

/* While the jobs are read: newest first, so of too many the newest are overwritten by older ones. */
struct reading {
    struct backlog *backlog;
    struct map tenants; /* name -> index + 1, as a pointer */
    size_t tenants_capacity, jobs_capacity, max;
    int64_t seen;
};

static enum status tenant_index(struct reading *reading, struct slice name, int32_t *ret_index)
{
    struct backlog *backlog = reading->backlog;
    uintptr_t known = (uintptr_t)map_get(&reading->tenants, name);
    if (known == 0) {
        char **tenants =
            array_grow(backlog->tenants, backlog->tenant_count, &reading->tenants_capacity, sizeof(char *));
        if (!tenants)
            return STATUS_NO_MEMORY;
        backlog->tenants = tenants;
        char *copy = arena_copy_text(&backlog->memory, name);
        known = backlog->tenant_count + 1;
        if (!copy || map_put(&reading->tenants, slice_from(copy), (void *)known) != STATUS_OK)
            return STATUS_NO_MEMORY;
        backlog->tenants[backlog->tenant_count++] = copy;
    }
    *ret_index = (int32_t)(known - 1);
    return STATUS_OK;
}

static struct backlog_job *place_for_next(struct reading *reading)
{
    struct backlog *backlog = reading->backlog;
    size_t at = (size_t)(reading->seen++ % (int64_t)reading->max);
    if (at < backlog->count)
        return &backlog->jobs[at];
    struct backlog_job *jobs = array_grow(backlog->jobs, at, &reading->jobs_capacity, sizeof *jobs);
    if (!jobs)
        return NULL;
    backlog->jobs = jobs;
    backlog->count++;
    return &backlog->jobs[at];
}

static enum status take(struct reading *reading, const struct job *job)
{
    int32_t tenant;
    if (job->state != STATE_PENDING && job->state != STATE_WAITING && job->state != STATE_RUNNING)
        return STATUS_OK;
    if (tenant_index(reading, job->tenant, &tenant) != STATUS_OK)
        return STATUS_NO_MEMORY;
    struct backlog_job *place = place_for_next(reading);
    if (!place)
        return STATUS_NO_MEMORY;
    *place = (struct backlog_job){
        .created_at = job->created_at,
        .first_at = job->first_at,
        .run_at = job->run_at,
        .deadline = job->deadline,
        .updated_at = job->updated_at,
        .rank = job->rank,
        .attempts = job->attempts,
        .retry_count = job->retry_count,
        .step_count = job->step_count,
        .tenant = tenant,
        .priority = (unsigned char)job->priority,
        .step = (unsigned char)job->step,
        .last_class = (unsigned char)job->last_class,
        .state = (unsigned char)job->state,
        .doubted = job->doubted,
    };
    return STATUS_OK;
}

static enum status read_jobs(struct store_reader *reader, struct reading *reading, struct error *err)
{
    struct job_filter filter = { .destination = slice_from(reading->backlog->destination) };
    do {
        struct arena memory = { 0 };
        struct job *jobs;
        size_t count;
        enum status status = reader->ops->reader_jobs(reader, &filter, STORE_PAGE_MAX, false, &memory, &jobs, &count,
                                                      &filter.before_seq, err);
        for (size_t i = 0; status == STATUS_OK && i < count; i++)
            if (take(reading, &jobs[i]) != STATUS_OK)
                status = error_set(err, STATUS_NO_MEMORY, "no memory for %zu jobs", reading->backlog->count);
        arena_release(&memory);
        if (status != STATUS_OK)
            return status;
    } while (filter.before_seq > 0);
    return STATUS_OK;
}

/* The ring's newest is at its end once it went round. Afterwards the oldest is first. */
static enum status put_in_order(struct reading *reading)
{
    struct backlog *backlog = reading->backlog;
    size_t count = backlog->count, newest = (size_t)(reading->seen % (int64_t)reading->max) % (count > 0 ? count : 1);
    struct backlog_job *ordered = malloc((count + 1) * sizeof *ordered);
    if (!ordered)
        return STATUS_NO_MEMORY;
    if (backlog->count < reading->max)
        newest = 0;
    for (size_t i = 0; i < count; i++)
        ordered[count - 1 - i] = backlog->jobs[(newest + i) % count];
    free(backlog->jobs);
    backlog->jobs = ordered;
    backlog->left_out = reading->seen - (int64_t)count;
    return STATUS_OK;
}

struct tenant_rank {
    int64_t jobs;
    size_t index;
};

static int compare_ranks(const void *left, const void *right)
{
    const struct tenant_rank *a = left, *b = right;
    if (a->jobs != b->jobs)
        return a->jobs < b->jobs ? 1 : -1;
    return (a->index > b->index) - (a->index < b->index);
}

static void count_states(struct backlog *backlog)
{
    for (size_t i = 0; i < backlog->count; i++) {
        const struct backlog_job *job = &backlog->jobs[i];
        int64_t *count = job->state == STATE_PENDING   ? &backlog->pending
                         : job->state == STATE_RUNNING ? &backlog->running
                                                       : &backlog->waiting;
        *count += 1;
    }
}

/* The biggest first; who has no job among those taken is left out. */
static enum status rank_tenants(struct backlog *backlog)
{
    size_t count = backlog->tenant_count, saved = 0;
    struct tenant_rank *ranks = calloc(count + 1, sizeof *ranks);
    int32_t *place = calloc(count + 1, sizeof *place);
    char **names = calloc(count + 1, sizeof *names);
    enum status status = ranks && place && names ? STATUS_OK : STATUS_NO_MEMORY;
    if (status == STATUS_OK) {
        for (size_t i = 0; i < count; i++)
            ranks[i].index = i;
        for (size_t i = 0; i < backlog->count; i++)
            ranks[backlog->jobs[i].tenant].jobs++;
        qsort(ranks, count, sizeof *ranks, compare_ranks);
        for (; saved < count && ranks[saved].jobs > 0; saved++) {
            names[saved] = backlog->tenants[ranks[saved].index];
            place[ranks[saved].index] = (int32_t)saved;
        }
        for (size_t i = 0; i < backlog->count; i++)
            backlog->jobs[i].tenant = place[backlog->jobs[i].tenant];
        free(backlog->tenants);
        backlog->tenants = names;
        backlog->tenant_count = saved;
        names = NULL;
    }
    free(names);
    free(ranks);
    free(place);
    return status;
}

static enum status read_state(struct store_reader *reader, struct backlog *backlog, struct error *err)
{
    struct slice state;
    enum status status =
        reader->ops->reader_saved(reader, SPACE_DESTINATION, slice_from(backlog->destination), &backlog->memory, &state,
                                  err);
    if (status == STATUS_NOT_FOUND)
        return STATUS_OK;
    if (status != STATUS_OK)
        return status;
    backlog->state = arena_copy_text(&backlog->memory, state);
    return backlog->state ? STATUS_OK : error_set(err, STATUS_NO_MEMORY, "no memory for the backlog");
}

static enum status read_chosen(struct store_reader *reader, size_t max, struct backlog *backlog, struct error *err)
{
    struct reading reading = { .backlog = backlog, .max = max };
    map_init(&reading.tenants, 0);
    enum status status = read_jobs(reader, &reading, err);
    if (status == STATUS_OK && (put_in_order(&reading) != STATUS_OK || rank_tenants(backlog) != STATUS_OK))
        status = error_set(err, STATUS_NO_MEMORY, "no memory for %zu jobs", backlog->count);
    map_release(&reading.tenants);
    if (status == STATUS_OK)
        count_states(backlog);
    return status == STATUS_OK ? read_state(reader, backlog, err) : status;
}

enum status backlog_read(struct store_reader *reader, struct slice wanted, size_t max, struct backlog *ret_backlog,
                         struct error *err)
{
    struct backlog backlog = { 0 };
    struct choice choice = { 0 };
    map_init(&choice.by_name, 0);
    enum status status = store_each_lane(reader, choice_add, &choice, err);
    if (status == STATUS_OK)
        status = choose(&choice, wanted, &backlog, err);
    if (status == STATUS_OK)
        status = read_chosen(reader, max, &backlog, err);
    map_release(&choice.by_name);
    free(choice.list);
    arena_release(&choice.memory);
    if (status == STATUS_OK)
        *ret_backlog = backlog;
    else
        backlog_release(&backlog);
    return status;
}

void backlog_release(struct backlog *backlog)
{
    free(backlog->jobs);
    free(backlog->tenants);
    arena_release(&backlog->memory);
    *backlog = (struct backlog){ 0 };
}

bool backlog_tried(const struct backlog_job *job)
{
    return job->attempts > 0 || job->retry_count > 0 || job->step != STEP_SEND || job->doubted;
}

/* ---- Into another store ---- */

static enum status apply_one(struct store *store, instant now, struct store_op *op, struct arena *memory, struct error *err)
{
    return store->ops->apply(store, now, op, 1, memory, err);
}

/*
 * A store takes new jobs only, so one that was tried goes through a claim and a settlement, each at the time at which
 * it happened. The lowest rank makes sure that the claim finds this one.
 */
static enum status make_tried(struct store *store, const struct backlog_job *job, const struct op_insert *inserted,
                              instant now, struct arena *memory, struct error *err)
{
    instant first_at = job->first_at != INSTANT_NONE ? job->first_at : job->created_at;
    struct store_op claim = {
        .kind = OP_CLAIM,
        .claim = { .lane = inserted->ret_lane, .max = 1, .lease_until = now, .owner = SLICE("backlog") },
    };
    enum status status = apply_one(store, first_at, &claim, memory, err);
    if (status != STATUS_OK)
        return status;
    if (claim.status != STATUS_OK || claim.claim.ret_count != 1 || claim.claim.ret_jobs[0].seq != inserted->ret_seq)
        return error_set(err, STATUS_UNSUPPORTED, "the store did not give a job back");
    struct store_op settle = {
        .kind = OP_SETTLE,
        .settle = {
            .seq = inserted->ret_seq,
            .token = claim.claim.ret_jobs[0].lease_token,
            .event = EVENT_RETRY,
            .step = (enum job_step)job->step,
            .run_at = job->state == STATE_RUNNING ? now : job->run_at,
            .rank = job->rank,
            .retry_count = job->retry_count,
            .step_count = job->step_count,
            .doubted = job->doubted,
            .outcome = (enum outcome)job->last_class,
            .error = SLICE("taken from a store"),
        },
    };
    status = apply_one(store, job->updated_at, &settle, memory, err);
    return status == STATUS_OK && settle.status != STATUS_OK
               ? error_set(err, settle.status, "the store did not take a job that was tried before")
               : status;
}

static enum status restore_one(const struct backlog *backlog, size_t number, struct store *store, const char *destination,
                               instant now, int64_t *ret_seq, struct error *err)
{
    const struct backlog_job *job = &backlog->jobs[number];
    bool tried = backlog_tried(job);
    char id[ID_BYTES];
    snprintf(id, sizeof id, "BACKLOG-%zu", number + 1);
    struct store_op insert = {
        .kind = OP_INSERT,
        .insert = {
            .destination = slice_from(destination),
            .tenant = slice_from(backlog->tenants[job->tenant]),
            .id = slice_from(id),
            .priority = (enum priority)job->priority,
            .rank = tried ? INT64_MIN : job->rank,
            .run_at = tried ? INSTANT_NONE : job->run_at,
            .deadline = job->deadline,
        },
    };
    struct arena memory = { 0 };
    enum status status = apply_one(store, job->created_at, &insert, &memory, err);
    *ret_seq = status == STATUS_OK && insert.status == STATUS_OK ? insert.insert.ret_seq : 0;
    if (status == STATUS_OK && insert.status != STATUS_OK && insert.status != STATUS_FULL)
        status = error_set(err, insert.status, "the store did not take a job");
    if (tried && *ret_seq > 0)
        status = make_tried(store, job, &insert.insert, now, &memory, err);
    arena_release(&memory);
    return status;
}

enum status backlog_restore(const struct backlog *backlog, struct store *store, const char *destination, instant now,
                            int64_t *ret_seqs, struct error *err)
{
    enum status status = STATUS_OK;
    if (backlog->state) {
        struct store_op op = { .kind = OP_DESTINATION,
                               .save = { .name = slice_from(destination), .value = slice_from(backlog->state) } };
        struct arena memory = { 0 };
        status = apply_one(store, now, &op, &memory, err);
        arena_release(&memory);
    }
    for (size_t i = 0; i < backlog->count && status == STATUS_OK; i++)
        status = restore_one(backlog, i, store, destination, now, &ret_seqs[i], err);
    return status;
}
