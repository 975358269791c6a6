#include "support/store_faulty.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { HELD_WAIT_S = 60 };

struct fault {
    int64_t count; /* calls so far */
    int64_t at;    /* the call that fails; 0: none */
    bool for_good;
    enum status status;
};

struct faulty_store {
    struct store store; /* first */
    struct store *inner;
    pthread_mutex_t mutex; /* of the faults: readers are used from other threads */
    struct fault faults[FAULTY_CALLS];
    pthread_cond_t changed; /* of what follows */
    bool held, held_notes_only;
    int waiting; /* calls of apply that are held */
    bool reads_held;
    int reads_waiting;
    enum faulty_away away;
    bool in_doubt, doubt_applied;
};

struct faulty_reader {
    struct store_reader reader; /* first */
    struct faulty_store *store;
    struct store_reader *inner;
};

static const struct store_ops faulty_ops;

static struct faulty_store *store_of(struct store *base)
{
    assert(base->ops == &faulty_ops);
    return (struct faulty_store *)(void *)base;
}

static struct faulty_reader *reader_of(struct store_reader *base)
{
    assert(base->ops == &faulty_ops);
    return (struct faulty_reader *)(void *)base;
}

/* Counts the call. STATUS_OK: hand it on. */
static enum status fault_next(struct faulty_store *store, enum faulty_call call, struct error *err)
{
    static const char *const names[FAULTY_CALLS] = { "apply", "sync", "read" };
    pthread_mutex_lock(&store->mutex);
    store->reads_waiting += call == FAULTY_READ;
    pthread_cond_broadcast(&store->changed);
    while (call == FAULTY_READ && store->reads_held)
        pthread_cond_wait(&store->changed, &store->mutex);
    store->reads_waiting -= call == FAULTY_READ;
    struct fault *fault = &store->faults[call];
    int64_t count = ++fault->count;
    bool away = store->away != AWAY_NOT && call != FAULTY_APPLY; /* which sees to it itself */
    bool fails = away || (fault->at > 0 && (count == fault->at || (fault->for_good && count > fault->at)));
    enum status status = away ? STATUS_AWAY : fails ? fault->status : STATUS_OK;
    pthread_mutex_unlock(&store->mutex);
    return fails ? error_set(err, status, "%s number %lld was told to fail", names[call], (long long)count) : STATUS_OK;
}

static void faulty_close(struct store *base)
{
    if (!base)
        return;
    struct faulty_store *store = store_of(base);
    store->inner->ops->close(store->inner);
    pthread_cond_destroy(&store->changed);
    pthread_mutex_destroy(&store->mutex);
    free(store);
}

static bool has_note(const struct store_op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (ops[i].kind == OP_SAVE)
            return true;
    return false;
}

static void wait_while_held(struct faulty_store *store, bool note)
{
    pthread_mutex_lock(&store->mutex);
    store->waiting++;
    pthread_cond_broadcast(&store->changed);
    while (store->held && (note || !store->held_notes_only))
        pthread_cond_wait(&store->changed, &store->mutex);
    store->waiting--;
    pthread_mutex_unlock(&store->mutex);
}

static enum status faulty_apply(struct store *base, instant now, struct store_op *ops, size_t count, struct arena *memory,
                                struct error *err)
{
    struct faulty_store *store = store_of(base);
    wait_while_held(store, has_note(ops, count));
    enum status status = fault_next(store, FAULTY_APPLY, err);
    pthread_mutex_lock(&store->mutex);
    assert(!store->in_doubt);
    enum faulty_away away = status == STATUS_OK ? store->away : AWAY_NOT;
    store->in_doubt = away != AWAY_NOT;
    pthread_mutex_unlock(&store->mutex);
    if (status == STATUS_OK && away != AWAY_BEFORE)
        status = store->inner->ops->apply(store->inner, now, ops, count, memory, err);
    if (away == AWAY_NOT)
        return status;
    pthread_mutex_lock(&store->mutex);
    store->doubt_applied = away == AWAY_AFTER && status == STATUS_OK;
    pthread_mutex_unlock(&store->mutex);
    return error_set(err, STATUS_AWAY, "the test's network is gone");
}

static enum status faulty_outcome(struct store *base, bool *ret_applied, struct error *err)
{
    struct faulty_store *store = store_of(base);
    pthread_mutex_lock(&store->mutex);
    bool away = store->away != AWAY_NOT;
    assert(store->in_doubt);
    store->in_doubt = away;
    *ret_applied = store->doubt_applied;
    pthread_mutex_unlock(&store->mutex);
    return away ? error_set(err, STATUS_AWAY, "the test's network is gone") : STATUS_OK;
}

static enum status faulty_begin(struct store *base, instant now, struct error *err)
{
    struct faulty_store *store = store_of(base);
    enum status status = store->inner->ops->begin(store->inner, now, err);
    base->session = store->inner->session;
    return status;
}

static enum status faulty_end(struct store *base, instant now, struct error *err)
{
    struct store *inner = store_of(base)->inner;
    return inner->ops->end(inner, now, err);
}

static enum status faulty_beat(struct store *base, uint64_t config, struct error *err)
{
    struct store *inner = store_of(base)->inner;
    return inner->ops->beat(inner, config, err);
}

static enum status faulty_fence(struct store *base, int64_t session, int64_t beat, instant now, struct error *err)
{
    struct store *inner = store_of(base)->inner;
    return inner->ops->fence(inner, session, beat, now, err);
}

static enum status faulty_sync(struct store *base, struct error *err)
{
    struct faulty_store *store = store_of(base);
    enum status status = fault_next(store, FAULTY_SYNC, err);
    return status == STATUS_OK ? store->inner->ops->sync(store->inner, err) : status;
}

static enum status faulty_reader(struct store *base, struct store_reader **ret_reader, struct error *err)
{
    struct faulty_store *store = store_of(base);
    enum status status = fault_next(store, FAULTY_READ, err);
    if (status != STATUS_OK)
        return status;
    struct faulty_reader *reader = malloc(sizeof *reader);
    if (!reader)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a reader");
    *reader = (struct faulty_reader){ .reader = { &faulty_ops }, .store = store };
    status = store->inner->ops->reader(store->inner, &reader->inner, err);
    if (status != STATUS_OK) {
        free(reader);
        return status;
    }
    *ret_reader = &reader->reader;
    return STATUS_OK;
}

static void faulty_reader_close(struct store_reader *base)
{
    if (!base)
        return;
    struct faulty_reader *reader = reader_of(base);
    reader->inner->ops->reader_close(reader->inner);
    free(reader);
}

static enum status faulty_reader_job(struct store_reader *base, struct slice tenant, struct slice id, bool with_payload,
                                     struct arena *memory, struct job *ret_job, struct error *err)
{
    struct faulty_reader *reader = reader_of(base);
    enum status status = fault_next(reader->store, FAULTY_READ, err);
    if (status != STATUS_OK)
        return status;
    return reader->inner->ops->reader_job(reader->inner, tenant, id, with_payload, memory, ret_job, err);
}

static enum status faulty_reader_job_seq(struct store_reader *base, int64_t seq, bool with_payload, struct arena *memory,
                                         struct job *ret_job, struct error *err)
{
    struct faulty_reader *reader = reader_of(base);
    enum status status = fault_next(reader->store, FAULTY_READ, err);
    if (status != STATUS_OK)
        return status;
    return reader->inner->ops->reader_job_seq(reader->inner, seq, with_payload, memory, ret_job, err);
}

static enum status faulty_reader_jobs(struct store_reader *base, const struct job_filter *filter, size_t max,
                                      bool with_payload, struct arena *memory, struct job **ret_jobs, size_t *ret_count,
                                      int64_t *ret_next_seq, struct error *err)
{
    struct faulty_reader *reader = reader_of(base);
    enum status status = fault_next(reader->store, FAULTY_READ, err);
    if (status != STATUS_OK)
        return status;
    return reader->inner->ops->reader_jobs(reader->inner, filter, max, with_payload, memory, ret_jobs, ret_count,
                                           ret_next_seq, err);
}

static enum status faulty_reader_events(struct store_reader *base, int64_t after, size_t max, struct arena *memory,
                                        struct event **ret_events, size_t *ret_count, struct error *err)
{
    struct faulty_reader *reader = reader_of(base);
    enum status status = fault_next(reader->store, FAULTY_READ, err);
    if (status != STATUS_OK)
        return status;
    return reader->inner->ops->reader_events(reader->inner, after, max, memory, ret_events, ret_count, err);
}

static enum status faulty_reader_history(struct store_reader *base, struct slice tenant, struct slice id, size_t max,
                                         struct arena *memory, struct event **ret_events, size_t *ret_count,
                                         struct error *err)
{
    struct faulty_reader *reader = reader_of(base);
    enum status status = fault_next(reader->store, FAULTY_READ, err);
    if (status != STATUS_OK)
        return status;
    return reader->inner->ops->reader_history(reader->inner, tenant, id, max, memory, ret_events, ret_count, err);
}

static enum status faulty_reader_lane(struct store_reader *base, struct slice destination, struct slice tenant,
                                      struct arena *memory, struct lane *ret_lane, struct error *err)
{
    struct faulty_reader *reader = reader_of(base);
    enum status status = fault_next(reader->store, FAULTY_READ, err);
    if (status != STATUS_OK)
        return status;
    return reader->inner->ops->reader_lane(reader->inner, destination, tenant, memory, ret_lane, err);
}

static enum status faulty_reader_totals(struct store_reader *base, size_t largest_max, struct arena *memory,
                                        struct destination_total **ret_totals, size_t *ret_count, struct error *err)
{
    struct faulty_reader *reader = reader_of(base);
    enum status status = fault_next(reader->store, FAULTY_READ, err);
    if (status != STATUS_OK)
        return status;
    return reader->inner->ops->reader_totals(reader->inner, largest_max, memory, ret_totals, ret_count, err);
}

static enum status faulty_reader_lanes(struct store_reader *base, int64_t after, size_t max, struct arena *memory,
                                       struct lane **ret_lanes, size_t *ret_count, struct error *err)
{
    struct faulty_reader *reader = reader_of(base);
    enum status status = fault_next(reader->store, FAULTY_READ, err);
    if (status != STATUS_OK)
        return status;
    return reader->inner->ops->reader_lanes(reader->inner, after, max, memory, ret_lanes, ret_count, err);
}

static enum status faulty_reader_ahead(struct store_reader *base, int64_t lane, int64_t rank, int64_t seq, size_t max,
                                       size_t *ret_count, struct error *err)
{
    struct faulty_reader *reader = reader_of(base);
    enum status status = fault_next(reader->store, FAULTY_READ, err);
    if (status != STATUS_OK)
        return status;
    return reader->inner->ops->reader_ahead(reader->inner, lane, rank, seq, max, ret_count, err);
}

static enum status faulty_reader_saved(struct store_reader *base, struct slice space, struct slice name,
                                      struct arena *memory, struct slice *ret_value, struct error *err)
{
    struct faulty_reader *reader = reader_of(base);
    enum status status = fault_next(reader->store, FAULTY_READ, err);
    if (status != STATUS_OK)
        return status;
    return reader->inner->ops->reader_saved(reader->inner, space, name, memory, ret_value, err);
}

static enum status faulty_reader_saved_list(struct store_reader *base, struct slice space, struct slice before, size_t max,
                                           struct arena *memory, struct saved **ret_saved, size_t *ret_count,
                                           struct error *err)
{
    struct faulty_reader *reader = reader_of(base);
    enum status status = fault_next(reader->store, FAULTY_READ, err);
    if (status != STATUS_OK)
        return status;
    return reader->inner->ops->reader_saved_list(reader->inner, space, before, max, memory, ret_saved, ret_count, err);
}

static enum status faulty_reader_sessions(struct store_reader *base, struct arena *memory, struct session **ret_sessions,
                                          size_t *ret_count, struct error *err)
{
    struct faulty_reader *reader = reader_of(base);
    enum status status = fault_next(reader->store, FAULTY_READ, err);
    if (status != STATUS_OK)
        return status;
    return reader->inner->ops->reader_sessions(reader->inner, memory, ret_sessions, ret_count, err);
}

static enum status faulty_reader_shards(struct store_reader *base, struct arena *memory, struct shard **ret_shards,
                                        size_t *ret_count, struct error *err)
{
    struct faulty_reader *reader = reader_of(base);
    enum status status = fault_next(reader->store, FAULTY_READ, err);
    if (status != STATUS_OK)
        return status;
    return reader->inner->ops->reader_shards(reader->inner, memory, ret_shards, ret_count, err);
}

static const struct store_ops faulty_ops = {
    .name = "faulty",
    .writers_max = 1,
    .close = faulty_close,
    .apply = faulty_apply,
    .outcome = faulty_outcome,
    .begin = faulty_begin,
    .end = faulty_end,
    .beat = faulty_beat,
    .fence = faulty_fence,
    .sync = faulty_sync,
    .reader = faulty_reader,
    .reader_close = faulty_reader_close,
    .reader_job = faulty_reader_job,
    .reader_job_seq = faulty_reader_job_seq,
    .reader_jobs = faulty_reader_jobs,
    .reader_events = faulty_reader_events,
    .reader_history = faulty_reader_history,
    .reader_lanes = faulty_reader_lanes,
    .reader_lane = faulty_reader_lane,
    .reader_totals = faulty_reader_totals,
    .reader_ahead = faulty_reader_ahead,
    .reader_saved = faulty_reader_saved,
    .reader_saved_list = faulty_reader_saved_list,
    .reader_sessions = faulty_reader_sessions,
    .reader_shards = faulty_reader_shards,
};

enum status store_faulty_wrap(struct store *inner, struct store **ret_store, struct error *err)
{
    struct faulty_store *store = calloc(1, sizeof *store);
    if (!store || pthread_mutex_init(&store->mutex, NULL) != 0 || pthread_cond_init(&store->changed, NULL) != 0) {
        free(store);
        return error_set(err, STATUS_NO_MEMORY, "no memory for a store");
    }
    store->store = (struct store){ .ops = &faulty_ops, .seed = inner->seed, .session = inner->session };
    store->inner = inner;
    *ret_store = &store->store;
    return STATUS_OK;
}

void store_faulty_set(struct store *base, enum faulty_call call, int64_t n, bool for_good, enum status status)
{
    struct faulty_store *store = store_of(base);
    assert(call < FAULTY_CALLS && n >= 0 && status != STATUS_OK);
    pthread_mutex_lock(&store->mutex);
    struct fault *fault = &store->faults[call];
    fault->at = n > 0 ? fault->count + n : 0;
    fault->for_good = for_good;
    fault->status = status;
    pthread_mutex_unlock(&store->mutex);
}

void store_faulty_away(struct store *base, enum faulty_away away)
{
    struct faulty_store *store = store_of(base);
    pthread_mutex_lock(&store->mutex);
    store->away = away;
    pthread_mutex_unlock(&store->mutex);
}

bool store_faulty_lost_answer(struct store *base)
{
    struct faulty_store *store = store_of(base);
    pthread_mutex_lock(&store->mutex);
    bool lost = store->in_doubt && store->doubt_applied;
    pthread_mutex_unlock(&store->mutex);
    return lost;
}

void store_faulty_hold(struct store *base, bool held)
{
    struct faulty_store *store = store_of(base);
    pthread_mutex_lock(&store->mutex);
    store->held = held;
    store->held_notes_only = false;
    pthread_cond_broadcast(&store->changed);
    pthread_mutex_unlock(&store->mutex);
}

void store_faulty_hold_notes(struct store *base)
{
    struct faulty_store *store = store_of(base);
    pthread_mutex_lock(&store->mutex);
    store->held = store->held_notes_only = true;
    pthread_mutex_unlock(&store->mutex);
}

static bool await_held(struct faulty_store *store, const bool *held, const int *waiting)
{
    struct timespec end;
    int failed = 0;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += HELD_WAIT_S;
    pthread_mutex_lock(&store->mutex);
    while (failed == 0 && !(*held && *waiting > 0))
        failed = pthread_cond_timedwait(&store->changed, &store->mutex, &end);
    pthread_mutex_unlock(&store->mutex);
    return failed == 0;
}

bool store_faulty_await_held(struct store *base)
{
    struct faulty_store *store = store_of(base);
    return await_held(store, &store->held, &store->waiting);
}

void store_faulty_hold_reads(struct store *base, bool held)
{
    struct faulty_store *store = store_of(base);
    pthread_mutex_lock(&store->mutex);
    store->reads_held = held;
    pthread_cond_broadcast(&store->changed);
    pthread_mutex_unlock(&store->mutex);
}

bool store_faulty_await_held_read(struct store *base)
{
    struct faulty_store *store = store_of(base);
    return await_held(store, &store->reads_held, &store->reads_waiting);
}

int64_t store_faulty_count(struct store *base, enum faulty_call call)
{
    struct faulty_store *store = store_of(base);
    assert(call < FAULTY_CALLS);
    pthread_mutex_lock(&store->mutex);
    int64_t count = store->faults[call].count;
    pthread_mutex_unlock(&store->mutex);
    return count;
}
