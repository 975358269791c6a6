#include "engine/dead/dead_exports.h"

#include "base/array.h"
#include "base/log.h"
#include "engine/dead/dead_entry.h"
#include "engine/loop.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PAGE_BYTES_MAX = 1 << 20,         /* lines that are written together, but always one */
    LINE_BYTES_MAX = 400 * 1000 * 1000, /* a store takes no larger payload */
};

#define EXPORT_ID_PREFIX "export-"

/* One that was read. */
struct exported_letter {
    struct job job;
    struct op_insert insert;
    struct slice data; /* of its last event */
    bool too_long;     /* no store would take its line */
};

bool dead_export_is(const struct job *job)
{
    return slice_has_prefix(job->id, SLICE(EXPORT_ID_PREFIX));
}

/* ---- those that wait ---- */

void dead_exports_release(struct dest *dest)
{
    free(dest->exports.waiting);
    free(dest->exports.page.to);
    arena_release(&dest->exports.lines);
}

static bool is_wanted(const struct dest *dest)
{
    return dest->config && dest->config->dead.export && dest->own.stage == OWN_WHOLE;
}

size_t dead_exports_room(const struct dest *dest)
{
    assert(dest->exports.count <= DEAD_EXPORTS_WAITING_MAX);
    return is_wanted(dest) ? DEAD_EXPORTS_WAITING_MAX - dest->exports.count : 0;
}

/* What finds no memory is named again. */
void dead_exports_add(struct dest *dest, const struct due_letter *letter)
{
    struct dead_exports *exports = &dest->exports;
    assert(letter->seq > 0 && exports->count < DEAD_EXPORTS_WAITING_MAX);
    if (exports->first > 0 && exports->first + exports->count == exports->capacity) {
        memmove(exports->waiting, exports->waiting + exports->first, exports->count * sizeof *exports->waiting);
        exports->first = 0;
    }
    struct due_letter *waiting = array_grow(exports->waiting, exports->count, &exports->capacity, sizeof *waiting);
    if (!waiting)
        return;
    exports->waiting = waiting;
    exports->waiting[exports->first + exports->count++] = *letter;
}

static void forget_first(struct dead_exports *exports, size_t count)
{
    assert(count <= exports->count);
    exports->first += count;
    exports->count -= count;
    if (exports->count > 0)
        return;
    free(exports->waiting);
    exports->waiting = NULL;
    exports->first = exports->capacity = 0;
}

/* Those of a lane; 0: all. What is full for one of them is full for the others. */
static void forget_lane(struct dead_exports *exports, int64_t lane)
{
    size_t left = 0;
    struct due_letter *waiting = exports->waiting + exports->first;
    assert(exports->first + exports->count <= exports->capacity);
    for (size_t i = 0; i < exports->count; i++)
        if (lane != 0 && waiting[i].lane != lane)
            waiting[left++] = waiting[i];
    exports->count = left;
    forget_first(exports, 0);
}

bool dead_exports_out(const struct dest *dest)
{
    return dest->exports.out > 0 || dest->exports.page.question.out;
}

bool dead_exports_any_out(const struct engine *engine)
{
    const struct dest *dest = engine->dests.first;
    while (dest && !dead_exports_out(dest))
        dest = dest->next;
    return dest != NULL;
}

/* ---- what was refused ---- */

/* Each round anew: who was refused is named again by its end. */
static void note_refused(struct dest *dest, enum status status, bool tenant_full, instant now)
{
    struct dead_exports *exports = &dest->exports;
    const char *full = tenant_full ? "its tenant has as many jobs waiting as it may" : "the queue is full";
    const char *why = status == STATUS_FULL       ? full
                      : status == STATUS_LIMIT    ? "its line is too long to be stored"
                      : status == STATUS_CONFLICT ? "there is another job of that name"
                                                  : status_name(status);
    assert(status != STATUS_OK && exports->page.to);
    if (now >= instant_add(exports->refused.since, DEAD_EXPORTS_WANTED_MS) || now < exports->refused.since) {
        exports->refused.since = now;
        exports->refused.count = 0;
    }
    exports->refused.count++;
    exports->refused.at = now;
    exports->refused_now++;
    dest->measures.export_refused++;
    dest->alerts.due = true;
    snprintf(exports->refused.reason, sizeof exports->refused.reason, "to %s: %s", exports->page.to, why);
}

/* Two rounds without a refusal: whatever was refused has gone, or is no dead letter any more. */
int64_t dead_exports_refused(const struct dest *dest, instant now)
{
    const struct dead_exports *exports = &dest->exports;
    assert(exports->refused.count >= 0);
    bool over = exports->refused.count == 0 || !dest->config || !dest->config->dead.export || dest->dead.count == 0 ||
                now >= instant_add(exports->refused.at, 2 * DEAD_EXPORTS_WANTED_MS) || now < exports->refused.since;
    return over ? 0 : exports->refused.count;
}

/* ---- their end ---- */

static void page_done(struct dest *dest)
{
    struct dead_exports *exports = &dest->exports;
    assert(exports->out == 0 && exports->page.to);
    arena_release(&exports->lines);
    exports->lines = (struct arena){ 0 };
    if (exports->exported > 0 || exports->refused_now > 0)
        log_event(exports->refused_now > 0 ? LOG_WARN : LOG_INFO, "dead_letters_exported",
                  FIELD_CSTR("destination", dest->name), FIELD_CSTR("to", exports->page.to),
                  FIELD_INT("letters", exports->exported), FIELD_INT("refused", exports->refused_now),
                  FIELD_CSTR("reason", exports->refused_now > 0 ? exports->refused.reason : ""));
    exports->exported = exports->refused_now = 0;
}

/* One that is no such dead letter any more needs nothing: somebody has sent it again, purged or erased it. */
static void letter_exported(const struct op_result *result)
{
    struct dest *dest = result->context;
    const struct op_job *op = &result->op->job;
    assert(result->op->kind == OP_PURGE && dest->exports.out > 0);
    dest->exports.out--;
    if (result->applied) {
        dest->exports.exported++;
        dest->measures.exported++;
    } else if (result->batch->status == STATUS_OK && op->ret_was_dead) {
        enum status status = result->op->status;
        note_refused(dest, status, op->export->ret_tenant_full, engine_now(result->engine));
        if (status == STATUS_FULL)
            forget_lane(&dest->exports, op->export->ret_tenant_full ? op->ret_lane : 0);
    }
    if (dest->exports.out == 0)
        page_done(dest);
}

/* False: the batch has no room. */
static bool letter_submit(struct engine *engine, struct dest *dest, struct exported_letter *letter)
{
    if (letter->too_long) {
        note_refused(dest, STATUS_LIMIT, false, engine_now(engine));
        return true;
    }
    assert(letter->job.state == STATE_DEAD && letter->insert.payload.len > 0);
    struct store_op *op = outgoing_add(engine, letter_exported, dest);
    if (!op)
        return false;
    op->kind = OP_PURGE;
    op->data = letter->data;
    op->job = (struct op_job){ .tenant = letter->job.tenant,
                               .id = letter->job.id,
                               .seq = letter->job.seq,
                               .dead_at = letter->job.dead_at,
                               .export = &letter->insert };
    dest->exports.out++;
    return true;
}

/* What was configured when they were read may not be now. */
static void letters_read(struct question *question)
{
    struct export_page *page = (struct export_page *)question;
    struct dest *dest = page->dest;
    struct engine *engine = question->engine;
    struct dead_exports *exports = &dest->exports;
    assert(&exports->page == page && exports->out == 0 && page->looked_at <= exports->count);
    if (question->read.status != STATUS_OK) {
        log_event(LOG_ERROR, "dead_export_failed", FIELD_CSTR("destination", dest->name),
                  FIELD_CSTR("error", question->read.error.text));
        alerts_store_failed(engine, &question->read.error);
        forget_lane(exports, 0);
        return;
    }
    if (page->erasing) {
        forget_lane(exports, 0);
        return;
    }
    if (engine->stopping || engine_must_wait(engine) || !is_wanted(dest) || strcmp(dest->config->dead.export, page->to) != 0)
        return;
    exports->lines = *question->memory; /* until all are written */
    *question->memory = (struct arena){ 0 };
    size_t done = 0;
    while (done < page->count && letter_submit(engine, dest, &page->letters[done]))
        done++;
    size_t left = page->count - done; /* of those that are there; they are read again */
    forget_first(exports, left == 0 ? page->looked_at : done);
    if (exports->out == 0)
        page_done(dest);
}

/* ---- reading them, in the reader's thread ---- */

static enum status line_write(const struct export_page *page, struct arena *memory, struct exported_letter *letter)
{
    struct job *job = &letter->job;
    assert(job->state == STATE_DEAD && page->to);
    char id[64], data[256];
    struct buffer line = buffer_up_to(LINE_BYTES_MAX);
    job->expires_at = page->ttl_ms > 0 ? instant_add(job->dead_at, page->ttl_ms) : INSTANT_NONE; /* it was put off */
    dead_entry_write(&line, job);
    letter->too_long = buffer_status(&line) == STATUS_LIMIT;
    enum status status = letter->too_long ? STATUS_OK : buffer_status(&line);
    snprintf(id, sizeof id, EXPORT_ID_PREFIX "%" PRId64, job->seq);
    snprintf(data, sizeof data, "{\"exported_to\":\"%s\",\"job\":\"%s\"}", page->to, id); /* both are plain words */
    letter->data = arena_copy(memory, slice_from(data));
    letter->insert = (struct op_insert){
        .destination = arena_copy(memory, slice_from(page->to)),
        .tenant = job->tenant,
        .id = arena_copy(memory, slice_from(id)),
        .priority = PRIORITY_NORMAL,
        .rank = rank_of(PRIORITY_NORMAL, page->now, page->aging_ms),
        .run_at = page->now,
        .deadline = INSTANT_NONE, /* it has expired once */
        .content_type = SLICE("application/json"),
        .headers = SLICE(""),
        .correlation_id = job->correlation_id.len > 0 ? job->correlation_id : job->id,
        .metadata = SLICE(""),
        .key = SLICE(""),
        .callback = SLICE(""),
        .payload = arena_copy(memory, letter->too_long ? SLICE("") : buffer_slice(&line)),
    };
    buffer_release(&line);
    const struct op_insert *insert = &letter->insert;
    bool copied = letter->data.data && insert->destination.data && insert->id.data && insert->payload.data;
    return status == STATUS_OK && !copied ? STATUS_NO_MEMORY : status;
}

/* One that is not there any more is passed over: its place is the next one's. */
static enum status letter_read(const struct export_page *page, struct store_reader *reader, struct arena *memory,
                               const struct due_letter *due, struct exported_letter *ret_letter, bool *ret_there,
                               struct error *err)
{
    assert(due->seq > 0 && due->dead_at != INSTANT_NONE);
    enum status status = reader->ops->reader_job_seq(reader, due->seq, true, memory, &ret_letter->job, err);
    *ret_there = status == STATUS_OK && ret_letter->job.state == STATE_DEAD && ret_letter->job.dead_at == due->dead_at;
    if (status == STATUS_NOT_FOUND || (status == STATUS_OK && !*ret_there))
        return STATUS_OK;
    if (status == STATUS_OK)
        status = line_write(page, memory, ret_letter);
    return status == STATUS_NO_MEMORY ? error_set(err, status, "no memory for a dead letter's line") : status;
}

static enum status read_letters(struct store_read *read, struct store_reader *reader, struct error *err)
{
    struct export_page *page = (struct export_page *)read;
    struct saved *active;
    assert(page->wanted_count > 0 && page->wanted_count <= DEAD_EXPORTS_AT_ONCE);
    size_t bytes = 0, erasures;
    page->count = page->looked_at = 0;
    enum status status = reader->ops->reader_saved_list(reader, SPACE_ERASURE_ACTIVE, SLICE(""), 1, &read->memory, &active,
                                                        &erasures, err);
    page->erasing = status == STATUS_OK && erasures > 0;
    if (status != STATUS_OK || page->erasing)
        return status;
    page->letters = arena_alloc_array(&read->memory, page->wanted_count, sizeof *page->letters);
    if (!page->letters)
        return error_set(err, STATUS_NO_MEMORY, "no memory for dead letters");
    while (status == STATUS_OK && page->looked_at < page->wanted_count && bytes < PAGE_BYTES_MAX) {
        bool there = false;
        status = letter_read(page, reader, &read->memory, &page->wanted[page->looked_at++], &page->letters[page->count],
                             &there, err);
        if (there && status == STATUS_OK)
            bytes += page->letters[page->count++].insert.payload.len;
    }
    return status;
}

/* ---- whose turn it is ---- */

static struct dest *dest_next_in_turn(const struct engine *engine)
{
    struct dest *first = NULL;
    for (struct dest *dest = engine->dests.first; dest; dest = dest->next)
        if (dest->exports.count > 0 && (!first || dest->exports.turn < first->exports.turn))
            first = dest;
    return first && !dead_exports_any_out(engine) ? first : NULL;
}

void dead_exports_run(struct engine *engine)
{
    struct dest *dest = engine_must_wait(engine) ? NULL : dest_next_in_turn(engine);
    if (!dest)
        return;
    if (!is_wanted(dest)) { /* any more */
        forget_lane(&dest->exports, 0);
        return;
    }
    struct export_page *page = &dest->exports.page;
    const struct destination_config *to = config_destination(engine->config, slice_from(dest->config->dead.export));
    dest->exports.turn = ++engine->recovery.export_turn;
    free(page->to);
    page->to = strdup(dest->config->dead.export);
    if (!page->to)
        return; /* in a moment */
    page->dest = dest;
    page->ttl_ms = dest->config->dead.ttl_ms;
    page->aging_ms = to ? to->aging_ms : 0;
    page->now = engine_now(engine);
    page->wanted_count = dest->exports.count < DEAD_EXPORTS_AT_ONCE ? dest->exports.count : DEAD_EXPORTS_AT_ONCE;
    memcpy(page->wanted, dest->exports.waiting + dest->exports.first, page->wanted_count * sizeof *page->wanted);
    question_ask(engine, &page->question, read_letters, letters_read);
}
