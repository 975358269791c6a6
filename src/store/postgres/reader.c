/*
 * Each call is one statement, and so one snapshot. A reader whose connection has broken makes another, once a call: who
 * reads while the server restarts may find that it is away, and who reads after it does not.
 */
#include "store/postgres/reader.h"

#include "store/filter.h"
#include "store/postgres/work.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { READER_ANSWER_MS_MAX = 12000 }; /* a little more than the server gives a statement */

struct postgres_reader {
    struct store_reader base;
    struct postgres_store *store;
    struct postgres_link link;
    struct postgres_params params;
};

/* One call: who reads, where results go. */
struct reading {
    struct postgres_reader *reader;
    struct arena *memory;
    struct error *err;
};

static struct reading reading_of(struct store_reader *base, struct arena *memory, struct error *err)
{
    assert(base->ops == &postgres_store_ops);
    return (struct reading){ .reader = (struct postgres_reader *)base, .memory = memory, .err = err };
}

static enum status connect(struct postgres_reader *reader, struct error *err)
{
    assert(!reader->link.conn);
    enum status status =
        link_open(&reader->link, reader->store->address, postgres_settings_reader, READER_ANSWER_MS_MAX, err);
    if (status == STATUS_OK)
        status = link_prepare(&reader->link, STATEMENTS_READER_FIRST, STATEMENTS_READER_LAST, err);
    if (status != STATUS_OK)
        link_close(&reader->link);
    return status;
}

enum status postgres_reader_open(struct store *store, struct store_reader **ret_reader, struct error *err)
{
    assert(store->ops == &postgres_store_ops);
    struct postgres_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a reader");
    reader->base.ops = store->ops;
    reader->store = (struct postgres_store *)store;
    enum status status = connect(reader, err);
    if (status != STATUS_OK) {
        postgres_reader_close(&reader->base);
        return status;
    }
    *ret_reader = &reader->base;
    return STATUS_OK;
}

void postgres_reader_close(struct store_reader *base)
{
    struct postgres_reader *reader = (struct postgres_reader *)base;
    if (!reader)
        return;
    link_close(&reader->link);
    params_release(&reader->params);
    free(reader);
}

/* ---- helpers ---- */

static enum status no_memory(const struct reading *reading)
{
    return error_set(reading->err, STATUS_NO_MEMORY, "no memory for what was read");
}

static struct postgres_params *query(const struct reading *reading, enum postgres_statement which)
{
    params_begin(&reading->reader->params, postgres_text(which)->types);
    return &reading->reader->params;
}

static enum status query_once(const struct reading *reading, enum postgres_statement which, PGresult **ret_answer)
{
    assert(reading->reader->link.conn);
    struct postgres_link *link = &reading->reader->link;
    PGresult *answer = NULL;
    enum status status = link_send(link, which, &reading->reader->params, reading->err);
    if (status == STATUS_OK)
        status = link_flush(link, true, reading->err);
    if (status == STATUS_OK)
        status = link_answer(link, &answer, reading->err);
    struct error ignored;
    if (link->conn && link_drain(link, status == STATUS_OK ? reading->err : &ignored) == STATUS_AWAY && status == STATUS_OK)
        status = STATUS_AWAY;
    if (status == STATUS_OK)
        *ret_answer = answer;
    else
        PQclear(answer);
    return status;
}

/* The answer of a query whose parameters are set; to be cleared. */
static enum status query_run(const struct reading *reading, enum postgres_statement which, PGresult **ret_answer)
{
    struct postgres_reader *reader = reading->reader;
    enum status status = reader->link.conn ? query_once(reading, which, ret_answer) : STATUS_AWAY;
    if (status != STATUS_AWAY)
        return status;
    link_close(&reader->link);
    status = connect(reader, reading->err);
    return status == STATUS_OK ? query_once(reading, which, ret_answer) : status;
}

/* ---- jobs ---- */

/* With its lane's names, which stand behind the job's columns; all copied. */
static enum status job_read(const struct reading *reading, const PGresult *answer, int row, struct job *ret_job)
{
    assert(reading->memory);
    struct job job;
    enum status status = job_decode(answer, row, &job, reading->err);
    if (status != STATUS_OK)
        return status;
    job.ready = false;
    job.destination = value_bytes(answer, row, JOB_MORE);
    job.tenant = value_bytes(answer, row, JOB_MORE + 1);
    if (job_texts_copy(&job, reading->memory) != STATUS_OK)
        return no_memory(reading);
    *ret_job = job;
    return STATUS_OK;
}

static enum status job_query(const struct reading *reading, enum postgres_statement which, struct job *ret_job)
{
    PGresult *answer;
    enum status status = query_run(reading, which, &answer);
    if (status != STATUS_OK)
        return status;
    status = PQntuples(answer) > 0 ? job_read(reading, answer, 0, ret_job) : STATUS_NOT_FOUND;
    PQclear(answer);
    return status;
}

static void name_put(struct postgres_params *params, struct slice tenant, struct slice id)
{
    assert(params->count >= 4);
    unsigned char key[KEY_BYTES];
    name_key(tenant, id, key);
    params_bytes(params, 0, (struct slice){ (const char *)key, KEY_BYTES });
    params_int(params, 1, change_id_seq(id));
    params_bytes(params, 2, id);
    params_bytes(params, 3, tenant);
}

enum status postgres_reader_job(struct store_reader *base, struct slice tenant, struct slice id, bool with_payload,
                                struct arena *memory, struct job *ret_job, struct error *err)
{
    struct reading reading = reading_of(base, memory, err);
    struct postgres_params *params = query(&reading, READ_JOB);
    name_put(params, tenant, id);
    params_int(params, 4, with_payload);
    enum status status = job_query(&reading, READ_JOB, ret_job);
    return status == STATUS_NOT_FOUND ? error_set(err, status, "there is no job \"%.*s\"", SLICE_ARG(id)) : status;
}

enum status postgres_reader_job_seq(struct store_reader *base, int64_t seq, bool with_payload, struct arena *memory,
                                    struct job *ret_job, struct error *err)
{
    struct reading reading = reading_of(base, memory, err);
    struct postgres_params *params = query(&reading, READ_JOB_SEQ);
    params_int(params, 0, seq);
    params_int(params, 1, with_payload);
    enum status status = job_query(&reading, READ_JOB_SEQ, ret_job);
    return status == STATUS_NOT_FOUND ? error_set(err, status, "there is no job %lld", (long long)seq) : status;
}

static enum postgres_statement page_of(const struct job_filter *filter)
{
    if (filter->id.len > 0)
        return READ_PAGE_ID;
    if (filter->redrive.len > 0)
        return READ_PAGE_REDRIVEN;
    switch (filter->state) {
    case STATE_DEAD:
        return READ_PAGE_DEAD;
    case STATE_WAITING:
        return READ_PAGE_WAITING;
    case STATE_RUNNING:
        return READ_PAGE_RUNNING;
    default:
        return READ_PAGE;
    }
}

/* Behind the names stand how many rows were looked at and the last of them. One more than fits tells that there is a next
 * page. */
static enum status page_read(const struct reading *reading, const PGresult *answer, size_t max, struct job **ret_jobs,
                             size_t *ret_count, int64_t *ret_next_seq)
{
    assert(max <= STORE_PAGE_MAX);
    int rows = PQntuples(answer);
    size_t count = 0;
    struct job *jobs = arena_alloc_array(reading->memory, (size_t)rows, sizeof *jobs);
    if (!jobs)
        return no_memory(reading);
    int64_t looked_at = rows > 0 ? value_int(answer, 0, JOB_MORE + 2) : 0;
    int64_t last = rows > 0 ? value_int(answer, 0, JOB_MORE + 3) : 0;
    *ret_next_seq = looked_at == PAGE_LOOKED_AT_MAX ? last : 0;
    for (int row = 0; row < rows && !PQgetisnull(answer, row, JOB_SEQ); row++) {
        if (count == max) {
            *ret_next_seq = count > 0 ? jobs[count - 1].seq : value_int(answer, row, JOB_SEQ) + 1;
            break;
        }
        enum status status = job_read(reading, answer, row, &jobs[count++]);
        if (status != STATUS_OK)
            return status;
    }
    *ret_jobs = jobs;
    *ret_count = count;
    return STATUS_OK;
}

/* From and to which key those of an id lie; and the number that it holds if it was made here. */
static void id_put(struct postgres_params *params, struct slice id)
{
    assert(id.len > 0);
    unsigned char from[KEY_BYTES] = { 0 }, to[KEY_BYTES];
    name_key(SLICE(""), id, from);
    memcpy(to, from, KEY_ID_BYTES);
    memset(from + KEY_ID_BYTES, 0, KEY_BYTES - KEY_ID_BYTES);
    memset(to + KEY_ID_BYTES, 0xff, KEY_BYTES - KEY_ID_BYTES);
    params_bytes(params, 7, (struct slice){ (const char *)from, KEY_BYTES });
    params_bytes(params, 8, (struct slice){ (const char *)to, KEY_BYTES });
    params_int(params, 9, change_id_seq(id));
    params_bytes(params, 10, id);
}

enum status postgres_reader_jobs(struct store_reader *base, const struct job_filter *filter, size_t max, bool with_payload,
                                 struct arena *memory, struct job **ret_jobs, size_t *ret_count, int64_t *ret_next_seq,
                                 struct error *err)
{
    struct reading reading = reading_of(base, memory, err);
    enum postgres_statement which = page_of(filter);
    struct postgres_params *params = query(&reading, which);
    PGresult *answer;
    max = store_rows_max(max);
    params_int(params, 0, filter->before_seq > 0 ? filter->before_seq : INT64_MAX);
    params_int(params, 1, (int64_t)filter->state);
    params_bytes(params, 2, filter->destination);
    params_bytes(params, 3, filter->tenant);
    params_bytes(params, 4, filter->code);
    params_int(params, 5, (int64_t)max + 1);
    params_int(params, 6, with_payload);
    if (which == READ_PAGE_ID)
        id_put(params, filter->id);
    enum status status = query_run(&reading, which, &answer);
    if (status != STATUS_OK)
        return status;
    status = page_read(&reading, answer, max, ret_jobs, ret_count, ret_next_seq);
    PQclear(answer);
    if (status != STATUS_OK)
        return status;
    size_t meant = 0;
    for (size_t i = 0; i < *ret_count; i++)
        if (filter_means(filter, &(*ret_jobs)[i]))
            (*ret_jobs)[meant++] = (*ret_jobs)[i];
    *ret_count = meant;
    return STATUS_OK;
}

/* ---- events ---- */

static enum status event_texts(const struct reading *reading, const PGresult *answer, int row, struct event *event)
{
    assert(reading->memory);
    struct slice *const texts[] = { &event->destination, &event->tenant, &event->job, &event->data };
    for (int i = 0; i < (int)(sizeof texts / sizeof *texts); i++)
        if (value_copy(answer, row, 5 + i, reading->memory, texts[i]) != STATUS_OK)
            return no_memory(reading);
    return STATUS_OK;
}

static enum status event_read(const struct reading *reading, const PGresult *answer, int row, struct event *ret_event)
{
    int64_t type = value_int(answer, row, 2), state = value_int(answer, row, 3), form = value_int(answer, row, 11);
    struct slice hash = value_bytes(answer, row, 10), salt = value_bytes(answer, row, 12);
    struct slice digest = value_bytes(answer, row, 13);
    struct event event = {
        .number = value_int(answer, row, 0),
        .at = value_int(answer, row, 1),
        .type = (enum event_type)type,
        .state = (enum job_state)state,
        .attempt = value_int(answer, row, 4),
        .previous = value_int(answer, row, 9),
        .form = (enum event_form)form,
        .erased = digest.len == EVENT_HASH_BYTES,
    };
    bool lengths =
        hash.len == EVENT_HASH_BYTES && (salt.len == 0 || salt.len == EVENT_SALT_BYTES) && (digest.len == 0 || event.erased);
    if (!lengths || type <= EVENT_TYPE_NONE || type >= EVENT_TYPE_COUNT || state < STATE_NONE || state >= STATE_COUNT)
        return error_set(reading->err, STATUS_CORRUPT, "event %lld has impossible values", (long long)event.number);
    memcpy(event.hash, hash.data, EVENT_HASH_BYTES);
    memcpy(event.salt, salt.data, salt.len);
    memcpy(event.digest, digest.data, digest.len);
    enum status status = event_texts(reading, answer, row, &event);
    if (status == STATUS_OK && event.erased && event.data.len + salt.len > 0)
        return error_set(reading->err, STATUS_CORRUPT, "event %lld has data that was erased", (long long)event.number);
    if (status == STATUS_OK)
        *ret_event = event;
    return status;
}

/* The events of an answer, in its order or, `turned`, from the last to the first. */
static enum status events_read(const struct reading *reading, enum postgres_statement which, bool turned,
                               struct event **ret_events, size_t *ret_count)
{
    assert(reading->memory);
    PGresult *answer;
    enum status status = query_run(reading, which, &answer);
    if (status != STATUS_OK)
        return status;
    int rows = PQntuples(answer);
    struct event *events = arena_alloc_array(reading->memory, (size_t)rows, sizeof *events);
    if (!events)
        status = no_memory(reading);
    for (int row = 0; row < rows && status == STATUS_OK; row++)
        status = event_read(reading, answer, row, &events[turned ? rows - 1 - row : row]);
    PQclear(answer);
    if (status != STATUS_OK)
        return status;
    *ret_events = events;
    *ret_count = (size_t)rows;
    return STATUS_OK;
}

enum status postgres_reader_events(struct store_reader *base, int64_t after, size_t max, struct arena *memory,
                                   struct event **ret_events, size_t *ret_count, struct error *err)
{
    struct reading reading = reading_of(base, memory, err);
    struct postgres_params *params = query(&reading, READ_EVENTS);
    params_int(params, 0, after);
    params_int(params, 1, (int64_t)store_rows_max(max));
    return events_read(&reading, READ_EVENTS, false, ret_events, ret_count);
}

enum status postgres_reader_history(struct store_reader *base, struct slice tenant, struct slice id, size_t max,
                                    struct arena *memory, struct event **ret_events, size_t *ret_count, struct error *err)
{
    struct reading reading = reading_of(base, memory, err);
    struct postgres_params *params = query(&reading, READ_HISTORY);
    name_put(params, tenant, id);
    params_int(params, 4, (int64_t)store_rows_max(max));
    return events_read(&reading, READ_HISTORY, true, ret_events, ret_count);
}

/* ---- lanes ---- */

static enum status lane_read(const struct reading *reading, const PGresult *answer, int row, struct lane *ret_lane)
{
    assert(reading->memory);
    struct lane lane = {
        .id = value_int(answer, row, 0),
        .counts = {
            .pending = value_int(answer, row, 3),
            .running = value_int(answer, row, 4),
            .waiting = value_int(answer, row, 5),
            .completed = value_int(answer, row, 6),
            .dead = value_int(answer, row, 7),
            .cancelled = value_int(answer, row, 8),
            .ready = value_int(answer, row, 9),
        },
    };
    if (value_copy(answer, row, 1, reading->memory, &lane.destination) != STATUS_OK ||
        value_copy(answer, row, 2, reading->memory, &lane.tenant) != STATUS_OK)
        return no_memory(reading);
    *ret_lane = lane;
    return STATUS_OK;
}

enum status postgres_reader_lanes(struct store_reader *base, int64_t after, size_t max, struct arena *memory,
                                  struct lane **ret_lanes, size_t *ret_count, struct error *err)
{
    struct reading reading = reading_of(base, memory, err);
    struct postgres_params *params = query(&reading, READ_LANES);
    PGresult *answer;
    params_int(params, 0, after);
    params_int(params, 1, (int64_t)store_rows_max(max));
    enum status status = query_run(&reading, READ_LANES, &answer);
    if (status != STATUS_OK)
        return status;
    int rows = PQntuples(answer);
    struct lane *lanes = arena_alloc_array(memory, (size_t)rows, sizeof *lanes);
    if (!lanes)
        status = no_memory(&reading);
    for (int row = 0; row < rows && status == STATUS_OK; row++)
        status = lane_read(&reading, answer, row, &lanes[row]);
    PQclear(answer);
    if (status != STATUS_OK)
        return status;
    *ret_lanes = lanes;
    *ret_count = (size_t)rows;
    return STATUS_OK;
}

enum status postgres_reader_lane(struct store_reader *base, struct slice destination, struct slice tenant,
                                 struct arena *memory, struct lane *ret_lane, struct error *err)
{
    struct reading reading = reading_of(base, memory, err);
    struct postgres_params *params = query(&reading, READ_LANE);
    PGresult *answer;
    params_bytes(params, 0, destination);
    params_bytes(params, 1, tenant);
    enum status status = query_run(&reading, READ_LANE, &answer);
    if (status != STATUS_OK)
        return status;
    status = PQntuples(answer) > 0 ? lane_read(&reading, answer, 0, ret_lane)
                                   : error_set(err, STATUS_NOT_FOUND, "\"%.*s\" has no tenant \"%.*s\"",
                                               SLICE_ARG(destination), SLICE_ARG(tenant));
    PQclear(answer);
    return status;
}

/* ---- totals, where others write too: the server counts ---- */

static struct destination_total *total_find(struct destination_total *totals, size_t count, struct slice destination)
{
    for (size_t i = 0; i < count; i++)
        if (slice_equal(totals[i].destination, destination))
            return &totals[i];
    return NULL;
}

static enum status totals_rows(const struct reading *reading, const PGresult *answer, struct destination_total **ret_totals)
{
    int rows = PQntuples(answer);
    struct destination_total *totals = arena_alloc_array(reading->memory, (size_t)rows, sizeof *totals);
    if (!totals)
        return no_memory(reading);
    for (int row = 0; row < rows; row++) {
        totals[row].counts = (struct lane_counts){ value_int(answer, row, 1), value_int(answer, row, 2),
                                                   value_int(answer, row, 3), value_int(answer, row, 4),
                                                   value_int(answer, row, 5), value_int(answer, row, 6),
                                                   value_int(answer, row, 7) };
        totals[row].tenants = value_int(answer, row, 8);
        if (value_copy(answer, row, 0, reading->memory, &totals[row].destination) != STATUS_OK)
            return no_memory(reading);
    }
    *ret_totals = totals;
    return STATUS_OK;
}

static enum status largest_rows(const struct reading *reading, const PGresult *answer, struct destination_total *totals,
                                size_t count)
{
    int rows = PQntuples(answer);
    struct lane *lanes = arena_alloc_array(reading->memory, (size_t)rows, sizeof *lanes);
    if (!lanes)
        return no_memory(reading);
    for (int row = 0; row < rows; row++) {
        enum status status = lane_read(reading, answer, row, &lanes[row]);
        if (status != STATUS_OK)
            return status;
        struct destination_total *total = total_find(totals, count, lanes[row].destination);
        if (!total)
            continue; /* it came between the two */
        if (total->largest_count++ == 0)
            total->largest = &lanes[row];
    }
    return STATUS_OK;
}

static enum status totals_ask(const struct reading *reading, size_t largest_max, struct destination_total **ret_totals,
                              size_t *ret_count)
{
    PGresult *answer;
    query(reading, READ_TOTALS);
    enum status status = query_run(reading, READ_TOTALS, &answer);
    if (status != STATUS_OK)
        return status;
    *ret_count = (size_t)PQntuples(answer);
    status = totals_rows(reading, answer, ret_totals);
    PQclear(answer);
    if (status != STATUS_OK || largest_max == 0)
        return status;
    params_int(query(reading, READ_TOTALS_LARGEST), 0, (int64_t)store_rows_max(largest_max));
    status = query_run(reading, READ_TOTALS_LARGEST, &answer);
    if (status != STATUS_OK)
        return status;
    status = largest_rows(reading, answer, *ret_totals, *ret_count);
    PQclear(answer);
    return status;
}

enum status postgres_reader_totals(struct store_reader *base, size_t largest_max, struct arena *memory,
                                   struct destination_total **ret_totals, size_t *ret_count, struct error *err)
{
    struct reading reading = reading_of(base, memory, err);
    if (!reading.reader->store->is_writer)
        return error_set(err, STATUS_UNSUPPORTED, "only the process that writes a store has its totals");
    if (reading.reader->store->shared)
        return totals_ask(&reading, largest_max, ret_totals, ret_count);
    enum status status = totals_read(&reading.reader->store->lanes.totals, largest_max, memory, ret_totals, ret_count);
    return status == STATUS_OK ? status : no_memory(&reading);
}

/* ---- the rest ---- */

enum status postgres_reader_ahead(struct store_reader *base, int64_t lane, int64_t rank, int64_t seq, size_t max,
                                  size_t *ret_count, struct error *err)
{
    struct reading reading = reading_of(base, NULL, err);
    struct postgres_params *params = query(&reading, READ_AHEAD);
    PGresult *answer;
    params_int(params, 0, lane);
    params_int(params, 1, rank);
    params_int(params, 2, seq);
    params_int(params, 3, (int64_t)store_rows_max(max));
    enum status status = query_run(&reading, READ_AHEAD, &answer);
    if (status != STATUS_OK)
        return status;
    *ret_count = (size_t)value_int(answer, 0, 0);
    PQclear(answer);
    return STATUS_OK;
}

enum status postgres_reader_saved(struct store_reader *base, struct slice space, struct slice name, struct arena *memory,
                                  struct slice *ret_value, struct error *err)
{
    struct reading reading = reading_of(base, memory, err);
    struct postgres_params *params = query(&reading, READ_SAVED);
    PGresult *answer;
    params_bytes(params, 0, space);
    params_bytes(params, 1, name);
    enum status status = query_run(&reading, READ_SAVED, &answer);
    if (status != STATUS_OK)
        return status;
    if (PQntuples(answer) == 0)
        status = error_set(err, STATUS_NOT_FOUND, "nothing is kept of %.*s \"%.*s\"", SLICE_ARG(space), SLICE_ARG(name));
    else if (value_copy(answer, 0, 0, memory, ret_value) != STATUS_OK)
        status = no_memory(&reading);
    PQclear(answer);
    return status;
}

enum status postgres_reader_saved_list(struct store_reader *base, struct slice space, struct slice before, size_t max,
                                       struct arena *memory, struct saved **ret_saved, size_t *ret_count, struct error *err)
{
    struct reading reading = reading_of(base, memory, err);
    struct postgres_params *params = query(&reading, READ_SAVED_LIST);
    PGresult *answer;
    params_bytes(params, 0, space);
    params_bytes(params, 1, before);
    params_int(params, 2, (int64_t)store_rows_max(max));
    enum status status = query_run(&reading, READ_SAVED_LIST, &answer);
    if (status != STATUS_OK)
        return status;
    int rows = PQntuples(answer);
    struct saved *saved = arena_alloc_array(memory, (size_t)rows, sizeof *saved);
    if (!saved)
        status = no_memory(&reading);
    for (int row = 0; row < rows && status == STATUS_OK; row++)
        if (value_copy(answer, row, 0, memory, &saved[row].name) != STATUS_OK ||
            value_copy(answer, row, 1, memory, &saved[row].value) != STATUS_OK)
            status = no_memory(&reading);
    PQclear(answer);
    if (status != STATUS_OK)
        return status;
    *ret_saved = saved;
    *ret_count = (size_t)rows;
    return STATUS_OK;
}

/* ---- nodes ---- */

static enum status session_read(const struct reading *reading, const PGresult *answer, int row, struct session *session)
{
    *session = (struct session){ .number = value_int(answer, row, 0),
                                 .beat = value_int(answer, row, 3),
                                 .ended = value_int(answer, row, 4) != 0,
                                 .fenced_at = value_instant(answer, row, 5),
                                 .since = value_int(answer, row, 6) };
    if (value_copy(answer, row, 1, reading->memory, &session->node) != STATUS_OK ||
        value_copy(answer, row, 2, reading->memory, &session->url) != STATUS_OK ||
        value_copy(answer, row, 7, reading->memory, &session->version) != STATUS_OK)
        return no_memory(reading);
    struct slice digest = value_bytes(answer, row, 8); /* sixteen hexadecimal digits */
    for (size_t i = 0; i < digest.len; i++)
        session->config = session->config << 4 | (uint64_t)ascii_hex_value(digest.data[i]);
    return STATUS_OK;
}

enum status postgres_reader_heads(struct store_reader *base, struct arena *memory, struct trail_head **ret_heads,
                                  size_t *ret_count, struct error *err)
{
    struct reading reading = reading_of(base, memory, err);
    PGresult *answer;
    query(&reading, READ_HEADS);
    enum status status = query_run(&reading, READ_HEADS, &answer);
    if (status != STATUS_OK)
        return status;
    int rows = PQntuples(answer);
    struct trail_head *heads = arena_alloc_array(memory, (size_t)rows, sizeof *heads);
    for (int row = 0; heads && row < rows; row++) {
        struct slice hash = value_bytes(answer, row, 1);
        heads[row].number = value_int(answer, row, 0);
        memcpy(heads[row].hash, hash.data, hash.len < EVENT_HASH_BYTES ? hash.len : EVENT_HASH_BYTES);
    }
    PQclear(answer);
    if (!heads)
        return no_memory(&reading);
    *ret_heads = heads;
    *ret_count = (size_t)rows;
    return STATUS_OK;
}

enum status postgres_reader_sessions(struct store_reader *base, struct arena *memory, struct session **ret_sessions,
                                     size_t *ret_count, struct error *err)
{
    struct reading reading = reading_of(base, memory, err);
    PGresult *answer;
    query(&reading, READ_SESSIONS);
    enum status status = query_run(&reading, READ_SESSIONS, &answer);
    if (status != STATUS_OK)
        return status;
    int rows = PQntuples(answer);
    struct session *sessions = arena_alloc_array(memory, (size_t)rows, sizeof *sessions);
    if (!sessions)
        status = no_memory(&reading);
    for (int row = 0; row < rows && status == STATUS_OK; row++)
        status = session_read(&reading, answer, row, &sessions[row]);
    PQclear(answer);
    if (status != STATUS_OK)
        return status;
    *ret_sessions = sessions;
    *ret_count = (size_t)rows;
    return STATUS_OK;
}

enum status postgres_reader_shards(struct store_reader *base, struct arena *memory, struct shard **ret_shards,
                                   size_t *ret_count, struct error *err)
{
    struct reading reading = reading_of(base, memory, err);
    PGresult *answer;
    query(&reading, READ_SHARDS);
    enum status status = query_run(&reading, READ_SHARDS, &answer);
    if (status != STATUS_OK)
        return status;
    int rows = PQntuples(answer);
    struct shard *shards = arena_alloc_array(memory, (size_t)rows, sizeof *shards);
    if (!shards)
        status = no_memory(&reading);
    for (int row = 0; row < rows && status == STATUS_OK; row++) {
        shards[row] = (struct shard){ .session = value_int(answer, row, 1), .epoch = value_int(answer, row, 2) };
        if (value_copy(answer, row, 0, memory, &shards[row].destination) != STATUS_OK)
            status = no_memory(&reading);
    }
    PQclear(answer);
    if (status != STATUS_OK)
        return status;
    *ret_shards = shards;
    *ret_count = (size_t)rows;
    return STATUS_OK;
}
