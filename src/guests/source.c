#include "guests/source.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/map.h"
#include "core/errors/redact.h"
#include "guests/source_stream.h"
#include "store/inspect.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_MS = 1000,       /* for new entries, in one question */
    AGAIN_FIRST_MS = 100,  /* after a failure; then twice as long, */
    AGAIN_MAX_MS = 5000,   /* up to that, and a part of it more or less */
    LOOK_EVERY_MS = 10000, /* how Redis is, and how much waits in it */
    CLAIM_EVERY_MAX_MS = 30 * 1000,
    DISK_EVERY_MS = 1000,
    TENANTS_HELD_BYTES_MAX = 16 << 20, /* names of tenants that have their share of what may wait */
    HEALTH_MS = 5000,
    BEGIN_LOOK_MS = 1000,
    STORE_SLOW_MS = 1000, /* for an answer of the store; what takes longer is shown */
};

/* Tenants whose entries are held: others go on, and none of theirs overtakes another. */
struct held_tenants {
    struct map names;
    struct arena memory;
};

struct source {
    const struct sources_settings *settings;
    const struct source_config *config;
    struct stream stream;
    struct mailbox *mailbox; /* where the writer answers */
    bool answered;           /* it has */
    struct source_figures figures;
    struct source_counts more; /* that the board does not have yet */
    pthread_t thread;
    bool started;
    _Atomic bool begun, ended;
    int64_t batch;    /* entries at once: fewer while they are too long together */
    int64_t again_ms; /* the next wait after a failure */
    /* Acknowledgements that Redis has not confirmed: ids with a zero behind each. They outlive the connection. */
    struct buffer owed;
    size_t owed_count;
    struct { /* through what is pending, from its beginning */
        bool on;
        char cursor[STREAM_ID_BYTES];
        int64_t at_ms;  /* the next one */
        int64_t held;   /* what this one could not store, so far */
    } pass;
    bool resumes; /* the pass, behind its place, with a new connection */
    bool unread;  /* the next there alone is too long for an answer */
    bool full; /* the store takes nothing: no new entries are read until a pass goes through */
    struct held_tenants held, held_next; /* of the last pass, and of this one */
    struct { int64_t look_ms, claim_ms, disk_ms; } next; /* of each */
    bool disk_low;
    struct { bool away, waiting, aside; } reported;
};

static instant now_of(const struct source *source)
{
    const struct sources_settings *settings = source->settings;
    return settings->now(settings->context);
}

static bool is_stopped(const struct source *source)
{
    return redis_client_stopped(source->stream.client);
}

/* ---- how it stands ---- */

static void publish(struct source *source)
{
    struct source_board *board = source->settings->board;
    source_board_count(board, source->config->name, &source->more);
    source->more = (struct source_counts){ 0 };
    if (!is_stopped(source)) /* the next one of its name may write already */
        source_board_set(board, &source->figures);
}

static void state_set(struct source *source, enum source_state state, const char *reason)
{
    struct source_figures *figures = &source->figures;
    if (figures->state != state)
        figures->since = now_of(source);
    figures->state = state;
    struct buffer masked = buffer_up_to(SOURCE_TEXT_BYTES - 1);
    redact(&masked, slice_from(reason), SOURCE_TEXT_BYTES - 1);
    snprintf(figures->reason, sizeof figures->reason, "%.*s", SLICE_ARG(buffer_slice(&masked)));
    buffer_release(&masked);
    publish(source);
}

/* Half of it to one and a half times it, so that many do not come at once to a server that is back. */
static int64_t spread(const struct source *source, int64_t ms)
{
    int64_t ticks = clock_ticks_ns();
    uint64_t random = hash_slice((uint64_t)(uintptr_t)source, 0, (struct slice){ (const char *)&ticks, sizeof ticks });
    return ms / 2 + (int64_t)(random % (uint64_t)(ms + 1));
}

static int64_t again_after(struct source *source)
{
    int64_t ms = spread(source, source->again_ms);
    source->again_ms = source->again_ms < AGAIN_MAX_MS / 2 ? source->again_ms * 2 : AGAIN_MAX_MS;
    return ms;
}

/* What was read stays pending; all of it is tried again, later each time. */
static void hold_back(struct source *source, const char *reason)
{
    if (!source->reported.waiting)
        log_event(LOG_WARN, "source_waits", FIELD_CSTR("source", source->config->name), FIELD_CSTR("reason", reason));
    source->reported.waiting = true;
    source->full = true;
    source->pass.on = false;
    source->pass.at_ms = clock_ticks_ms() + again_after(source);
    state_set(source, SOURCE_WAITING, reason);
}

static void goes_on(struct source *source)
{
    if (source->reported.waiting)
        log_event(LOG_INFO, "source_goes_on", FIELD_CSTR("source", source->config->name));
    source->reported.waiting = source->full = false;
    source->again_ms = AGAIN_FIRST_MS;
    state_set(source, SOURCE_READING, "");
}

/* ---- tenants that have their share ---- */

static void held_clear(struct held_tenants *held)
{
    map_release(&held->names);
    arena_release(&held->memory);
    map_init(&held->names, 0);
    arena_init(&held->memory, TENANTS_HELD_BYTES_MAX);
}

/* A new entry may not overtake one of its tenant's that the pass has not come to yet. */
static bool is_held(const struct source *source, bool fresh, struct slice tenant)
{
    return map_get(&source->held_next.names, tenant) || (fresh && map_get(&source->held.names, tenant));
}

/* False: there are too many of them to know. */
static bool held_add(struct source *source, struct slice tenant)
{
    struct held_tenants *held = &source->held_next;
    if (map_get(&held->names, tenant))
        return true;
    struct slice name = arena_copy(&held->memory, tenant);
    return name.data && map_put(&held->names, name, held) == STATUS_OK;
}

/* ---- storing ---- */

static void on_answered(struct batch *batch)
{
    struct source *source = batch->context;
    source->answered = true;
}

static void submit(struct source *source, struct batch *batch)
{
    batch->reply_to = source->mailbox;
    batch->done = on_answered;
    batch->context = source;
    source->answered = false;
    bool waits = false;
    writer_submit(source->settings->writer, batch);
    while (!source->answered) { /* the writer answers everything that it was given */
        mailbox_wait(source->mailbox, STORE_SLOW_MS);
        mailbox_drain(source->mailbox);
        if (!source->answered && !waits) {
            waits = true;
            state_set(source, SOURCE_WAITING, "the store does not answer");
        }
    }
    if (waits && batch->status == STATUS_OK && !source->full)
        state_set(source, SOURCE_READING, "");
}

/* As of the API: a disk that is nearly full takes no new jobs. */
static bool disk_is_low(struct source *source)
{
    const struct sources_settings *settings = source->settings;
    int64_t now = clock_ticks_ms();
    if (now >= source->next.disk_ms) {
        int64_t free_bytes = store_free_bytes(settings->store);
        source->disk_low = free_bytes >= 0 && free_bytes < settings->config->disk_free_bytes;
        source->next.disk_ms = now + DISK_EVERY_MS;
    }
    return source->disk_low;
}

/* One page on its way: what became of each entry. */
struct handling {
    const struct stream_page *page;
    struct batch *batch;
    size_t *entries;   /* of each operation, in the page; SIZE_MAX: of none */
    bool fresh;        /* it was not pending before */
    size_t done;       /* entries that nothing more is to be done about */
    size_t rejections; /* reported so far */
    bool blocked;      /* nothing more of this page can be stored now */
    const char *reason;
};

static void owe(struct source *source, struct handling *handling, struct slice id)
{
    buffer_append(&source->owed, id);
    buffer_append_byte(&source->owed, '\0');
    source->owed_count++;
    handling->done++;
}

/* It stays pending. A new one that comes while a pass is on is met by that pass, and counted there. */
static void hold(struct source *source, const struct handling *handling)
{
    source->pass.held += !handling->fresh || !source->pass.on;
}

static void note_rejected(struct source *source, struct handling *handling, const struct stream_entry *entry,
                          const struct problem *problem)
{
    struct source_figures *figures = &source->figures;
    source->more.rejected++;
    handling->done++;
    snprintf(figures->rejected_entry, sizeof figures->rejected_entry, "%.*s", SLICE_ARG(entry->id));
    snprintf(figures->rejected_reason, sizeof figures->rejected_reason, "%.*s", SOURCE_TEXT_BYTES - 1, problem->detail);
    if (handling->rejections++ == 0) /* of many one is enough: the stream has them all */
        log_event(LOG_WARN, "source_entry_rejected", FIELD_CSTR("source", source->config->name),
                  FIELD_TEXT("entry", entry->id), FIELD_CSTR("type", problem->type), FIELD_CSTR("detail", problem->detail),
                  FIELD_CSTR("moved_to", source->stream.rejected));
}

/* False: the connection is lost. An entry that Redis does not let go now stays pending. */
static bool reject(struct source *source, struct handling *handling, const struct stream_entry *entry,
                   const struct problem *problem, struct error *err)
{
    enum status status = stream_reject(&source->stream, entry, problem, err);
    if (status == STATUS_OK)
        note_rejected(source, handling, entry, problem);
    else if (status == STATUS_FULL)
        hold(source, handling);
    if (status == STATUS_FULL && !source->reported.aside)
        log_event(LOG_WARN, "source_cannot_set_aside", FIELD_CSTR("source", source->config->name),
                  FIELD_TEXT("entry", entry->id), FIELD_CSTR("reason", err->text),
                  FIELD_CSTR("advice", "it stays pending, and is tried again"));
    source->reported.aside = status == STATUS_FULL || (source->reported.aside && status != STATUS_OK);
    return status == STATUS_OK || status == STATUS_FULL;
}

static void callback_note(struct handling *handling)
{
    struct batch *batch = handling->batch;
    handling->entries[batch->count] = SIZE_MAX;
    batch_save(batch, SPACE_FORWARD, SLICE("callbacks"), SLICE("{}"));
}

/* Reads one entry into the batch. False: the connection is lost. */
static bool take_entry(struct source *source, struct handling *handling, size_t index, struct error *err)
{
    const struct stream_entry *entry = &handling->page->items[index];
    const struct source_config *config = source->config;
    struct batch *batch = handling->batch;
    struct problem problem;
    struct op_insert insert;
    const struct job_reader reader = { .config = source->settings->config,
                                       .tenant_bound = config->tenant ? slice_from(config->tenant)
                                                                      : (struct slice){ NULL, 0 },
                                       .priority_max = PRIORITY_CRITICAL,
                                       .now = now_of(source),
                                       .memory = &batch->memory };
    if (entry->gone) {
        if (source->more.gone++ == 0)
            log_event(LOG_WARN, "source_entry_gone", FIELD_CSTR("source", config->name), FIELD_TEXT("entry", entry->id),
                      FIELD_CSTR("advice", "it was deleted or trimmed before it was read; trim the stream less"));
        owe(source, handling, entry->id);
        return true;
    }
    if (!source_entry_read(config, &reader, entry, &insert, &problem)) {
        if (problem.status != 503)
            return reject(source, handling, entry, &problem, err);
        handling->blocked = true;
        handling->reason = "there is no memory for its jobs";
        return true;
    }
    if (is_held(source, handling->fresh, insert.tenant)) {
        hold(source, handling);
        return true;
    }
    if (insert.callback.len > 0)
        callback_note(handling);
    handling->entries[batch->count] = index;
    batch->ops[batch->count++] = (struct store_op){ .kind = OP_INSERT, .insert = insert };
    return true;
}

/* What the store did with one. False: the connection is lost. */
static bool settle_entry(struct source *source, struct handling *handling, const struct store_op *op, size_t index,
                         struct error *err)
{
    const struct stream_entry *entry = &handling->page->items[index];
    struct source_figures *figures = &source->figures;
    struct problem problem;
    switch (op->status) {
    case STATUS_OK:
        *(op->insert.ret_existed ? &source->more.duplicates : &source->more.accepted) += 1;
        figures->last_at = now_of(source);
        owe(source, handling, entry->id);
        return true;
    case STATUS_CONFLICT:
        problem_set(&problem, 409, "id_conflict", "there is a job \"%.*s\" with another body already",
                    SLICE_ARG(op->insert.id));
        return reject(source, handling, entry, &problem, err);
    case STATUS_FULL:
        hold(source, handling);
        if (op->insert.ret_tenant_full && held_add(source, op->insert.tenant))
            return true;
        handling->blocked = true;
        handling->reason = "as many jobs wait as limits.pending allows";
        return true;
    default:
        problem_set(&problem, 422, "refused", "the store refused the job: %s", status_name(op->status));
        return reject(source, handling, entry, &problem, err);
    }
}

static bool pay_owed(struct source *source, struct error *err)
{
    if (source->owed_count == 0)
        return true;
    enum status status = stream_ack(&source->stream, buffer_slice(&source->owed), source->owed_count, err);
    if (status != STATUS_OK)
        return false;
    buffer_clear(&source->owed);
    source->owed_count = 0;
    return true;
}

/* False: the connection is lost; what is stored is owed, all else is read again. */
static bool store_page(struct source *source, struct handling *handling, struct error *err)
{
    struct batch *batch = handling->batch;
    bool alive = true;
    for (size_t i = 0; alive && !handling->blocked && i < handling->page->count; i++)
        alive = take_entry(source, handling, i, err);
    if (!alive)
        return false;
    if (batch->count > 0) {
        submit(source, batch);
        if (batch->status != STATUS_OK) {
            handling->blocked = true;
            handling->reason = batch->status == STATUS_AWAY ? "the store is away" : "the store took nothing";
        }
        for (size_t i = 0; alive && batch->status == STATUS_OK && i < batch->count; i++)
            if (handling->entries[i] != SIZE_MAX)
                alive = settle_entry(source, handling, &batch->ops[i], handling->entries[i], err);
    }
    return pay_owed(source, err) && alive;
}

static bool handle(struct source *source, const struct stream_page *page, bool fresh, struct error *err)
{
    struct handling handling = { .page = page, .fresh = fresh, .batch = batch_new(page->count * 2, SIZE_MAX / 4) };
    handling.entries = calloc(page->count * 2, sizeof *handling.entries);
    bool alive = true;
    if (!handling.batch || !handling.entries) {
        handling.blocked = true;
        handling.reason = "there is no memory for its jobs";
    } else if (disk_is_low(source)) {
        handling.blocked = true;
        handling.reason = "the disk has less than limits.disk_free";
    } else {
        alive = store_page(source, &handling, err);
    }
    if (alive && handling.blocked) {
        source->figures.held = (int64_t)(page->count - handling.done);
        hold_back(source, handling.reason);
    }
    batch_free(handling.batch);
    free(handling.entries);
    publish(source);
    return alive;
}

/* ---- reading ---- */

static void pass_begin(struct source *source)
{
    source->pass.on = true;
    source->pass.held = 0;
    snprintf(source->pass.cursor, sizeof source->pass.cursor, "0-0");
    held_clear(&source->held_next);
}

/* All that is pending was tried. */
static void pass_end(struct source *source)
{
    struct held_tenants before = source->held;
    source->pass.on = false;
    source->held = source->held_next;
    source->held_next = before;
    held_clear(&source->held_next);
    source->figures.held = source->pass.held;
    if (source->full || source->pass.held == 0)
        goes_on(source);
    if (source->pass.held > 0)
        source->pass.at_ms = clock_ticks_ms() + again_after(source);
    publish(source);
}

/* An entry that no answer can hold is named among the rejected, and stays where it is. */
static bool reject_unread(struct source *source, struct error *err)
{
    char id[STREAM_ID_BYTES];
    struct handling handling = { 0 };
    struct problem problem;
    if (stream_pending(&source->stream, source->pass.cursor, id, err) != STATUS_OK)
        return false;
    if (!id[0])
        return true;
    problem_set(&problem, 422, "payload_too_large", "the entry is longer than %d bytes; it is still in %s",
                REDIS_ANSWER_BYTES_MAX, source->config->stream);
    return reject(source, &handling, &(struct stream_entry){ .id = slice_from(id) }, &problem, err);
}

/* Too much for one answer: fewer after a new connection; one alone is known by the place of the pass. */
static void read_less(struct source *source, bool fresh)
{
    source->resumes = !fresh;
    source->unread = !fresh && source->batch == 1;
    source->batch = source->batch > 1 ? source->batch / 2 : 1;
}

static bool read_page(struct source *source, bool fresh, int64_t block_ms, struct stream_page *ret_page, struct error *err)
{
    enum status status =
        stream_read(&source->stream, fresh ? NULL : source->pass.cursor, source->batch, block_ms, ret_page, err);
    if (status == STATUS_LIMIT)
        read_less(source, fresh);
    if (status != STATUS_OK)
        return false;
    if (source->batch < source->config->batch)
        source->batch++;
    return ret_page->count == 0 || handle(source, ret_page, fresh, err);
}

/* The next of what is pending. False: the connection is lost. */
static bool read_pending(struct source *source, struct error *err)
{
    struct stream_page page = { 0 };
    bool alive = read_page(source, false, 0, &page, err);
    if (alive && source->pass.on && page.count == 0)
        pass_end(source);
    else if (alive && source->pass.on)
        snprintf(source->pass.cursor, sizeof source->pass.cursor, "%.*s", SLICE_ARG(page.items[page.count - 1].id));
    stream_page_release(&page);
    return alive;
}

/* Likewise, of what is new. */
static bool read_fresh(struct source *source, int64_t block_ms, struct error *err)
{
    struct stream_page page = { 0 };
    bool alive = read_page(source, true, block_ms, &page, err);
    if (alive && page.count > 0 && source->pass.held > 0 && !source->full && !source->pass.on) {
        source->figures.held = source->pass.held;
        if (source->pass.at_ms <= clock_ticks_ms())
            source->pass.at_ms = clock_ticks_ms() + again_after(source);
        publish(source);
    }
    stream_page_release(&page);
    return alive;
}

static bool look(struct source *source, struct error *err)
{
    struct redis_health health;
    struct source_figures *figures = &source->figures;
    enum status status = redis_health_ask(source->stream.client, HEALTH_MS, &health, err);
    source->next.look_ms = clock_ticks_ms() + LOOK_EVERY_MS;
    if (status == STATUS_INVALID) /* it may not be asked, and is read all the same */
        return true;
    if (status != STATUS_OK)
        return false;
    if (!figures->checked || health.refused < figures->refused_before)
        figures->refused_before = health.refused;
    if (health.risks & REDIS_RISKS_LOSS && (!figures->checked || figures->redis.risks != health.risks))
        for (int risk = 0; risk < REDIS_RISK_COUNT; risk++)
            if (health.risks & REDIS_RISKS_LOSS & 1u << risk)
                log_event(LOG_WARN, "redis_unsafe", FIELD_CSTR("source", source->config->name),
                          FIELD_CSTR("reason", redis_risk_text((enum redis_risk)risk)));
    figures->redis = health;
    figures->checked = true;
    status = stream_lag(&source->stream, &figures->lag, err);
    publish(source);
    return status == STATUS_OK || status == STATUS_INVALID;
}

static bool claim(struct source *source, struct error *err)
{
    int64_t every = source->config->claim_after_ms / 2, claimed, gone;
    if (stream_claim(&source->stream, &claimed, &gone, err) != STATUS_OK)
        return false;
    source->next.claim_ms = clock_ticks_ms() + spread(source, every < CLAIM_EVERY_MAX_MS ? every : CLAIM_EVERY_MAX_MS);
    source->more.claimed += claimed;
    source->more.gone += gone;
    if (claimed > 0)
        log_event(LOG_INFO, "source_claimed", FIELD_CSTR("source", source->config->name), FIELD_INT("entries", claimed));
    if (claimed > 0 || gone > 0)
        publish(source);
    if (claimed > 0 && !source->full)
        pass_begin(source);
    return true;
}

/* One turn. False: the connection is lost, and `err` says why. */
static bool turn(struct source *source, struct error *err)
{
    int64_t now = clock_ticks_ms();
    bool alive = (now < source->next.look_ms || look(source, err)) && (now < source->next.claim_ms || claim(source, err));
    if (!alive)
        return false;
    bool again = !source->pass.on && (source->full || source->pass.held > 0);
    if (again && now >= source->pass.at_ms)
        pass_begin(source);
    if (source->full && !source->pass.on) {
        redis_client_sleep(source->stream.client, source->pass.at_ms - now);
        return true;
    }
    if (source->pass.on) /* what is new goes on beside a long list of what is pending */
        return read_pending(source, err) && (source->full || !source->pass.on || read_fresh(source, 0, err));
    int64_t block_ms = again && source->pass.at_ms - now < BLOCK_MS ? source->pass.at_ms - now : BLOCK_MS;
    return read_fresh(source, block_ms > 0 ? block_ms : 1, err);
}

/* From a new connection until it is lost. */
static void connection(struct source *source)
{
    struct error err = { .status = STATUS_OK };
    bool alive = stream_open(&source->stream, &err) == STATUS_OK && pay_owed(source, &err);
    if (alive) {
        if (source->reported.away)
            log_event(LOG_INFO, "source_back", FIELD_CSTR("source", source->config->name));
        source->reported.away = false;
        if (!source->resumes)
            pass_begin(source); /* what an earlier connection or process has read */
        if (source->unread)
            alive = reject_unread(source, &err);
        source->resumes = source->unread = source->unread && !alive;
        if (alive && !source->full)
            goes_on(source);
    }
    while (alive && !is_stopped(source))
        alive = turn(source, &err);
    redis_client_close(source->stream.client);
    if (is_stopped(source) || err.status == STATUS_LIMIT)
        return;
    if (!source->reported.away)
        log_event(LOG_WARN, "source_away", FIELD_CSTR("source", source->config->name), FIELD_CSTR("reason", err.text));
    source->reported.away = true;
    state_set(source, SOURCE_AWAY, err.text);
    redis_client_sleep(source->stream.client, again_after(source));
}

static void *work(void *context)
{
    struct source *source = context;
    while (!source->begun && !is_stopped(source))
        redis_client_rest(source->stream.client, BEGIN_LOOK_MS);
    while (!is_stopped(source))
        connection(source);
    source->ended = true;
    return NULL;
}

/* ---- start and end ---- */

static char *rejected_name(const struct source_config *config)
{
    char *name = NULL;
    if (config->rejected)
        return strdup(config->rejected);
    return asprintf(&name, "%s:rejected", config->stream) < 0 ? NULL : name;
}

static enum status source_make(struct source *source, struct error *err)
{
    const struct sources_settings *settings = source->settings;
    const struct source_config *config = source->config;
    source->stream = (struct stream){ .config = config,
                                      .consumer = settings->config->node.name ? settings->config->node.name : config->name,
                                      .rejected = rejected_name(config) };
    source->batch = config->batch;
    source->again_ms = AGAIN_FIRST_MS;
    buffer_init(&source->owed, SIZE_MAX / 4);
    held_clear(&source->held);
    held_clear(&source->held_next);
    enum status status = source->stream.rejected ? redis_client_new(&source->stream.client, err)
                                                 : error_set(err, STATUS_NO_MEMORY, "no memory for a source");
    if (status == STATUS_OK)
        status = mailbox_new(&source->mailbox, err);
    if (status == STATUS_OK && pthread_create(&source->thread, NULL, work, source) != 0)
        status = error_set(err, STATUS_NO_MEMORY, "cannot start a thread for source %s", config->name);
    source->started = status == STATUS_OK;
    return status;
}

enum status source_new(const struct sources_settings *settings, const struct source_config *config,
                       struct source **ret_source, struct error *err)
{
    struct source *source = calloc(1, sizeof *source);
    if (!source)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a source");
    source->settings = settings;
    source->config = config;
    enum status status = source_make(source, err);
    if (status == STATUS_OK)
        *ret_source = source;
    else
        source_stop(source);
    return status;
}

void source_begin(struct source *source)
{
    bool there = source_board_get(source->settings->board, source->config->name, &source->figures);
    assert(there && !source->begun);
    (void)there;
    source->begun = true;
    redis_client_wake(source->stream.client);
}

void source_cease(struct source *source)
{
    if (source->stream.client)
        redis_client_stop(source->stream.client);
}

bool source_has_ended(const struct source *source)
{
    return source->ended;
}

void source_stop(struct source *source)
{
    source_cease(source);
    if (source->started)
        pthread_join(source->thread, NULL);
    redis_client_free(source->stream.client);
    mailbox_free(source->mailbox);
    free(source->stream.rejected);
    buffer_release(&source->owed);
    map_release(&source->held.names);
    map_release(&source->held_next.names);
    arena_release(&source->held.memory);
    arena_release(&source->held_next.memory);
    free(source);
}
