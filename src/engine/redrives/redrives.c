#include "engine/redrives/redrives.h"

#include "base/json_patch.h"
#include "base/log.h"
#include "engine/loop.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    LETTERS_A_STEP = 150,  /* some 3 ms of the writer: so long others wait for it */
    PAYLOADS_A_STEP = 16,  /* with their payloads in memory, twice */
    LOOK_MS = 250,         /* between looks at what became of a canary */
    ABORT_AFTER = 10,      /* letters must have ended before a share of them says anything */
    BEHIND_MS = 10 * 60 * 1000,
    OPS_BESIDE = 4, /* of a step: the record, its place among the active, an event */
    STEP_BYTES_MAX = 256 << 20,
};

/* How far it has come; a step that fails goes back to where it began. */
struct place {
    size_t id;
    int64_t before_seq;
    bool over;
    int64_t patch_failed;
    struct job_walk undo;
};

struct redrive {
    struct question question; /* first */
    struct redrive *next;
    struct redrive_record record;
    struct job_walk undo;
    struct rate_limiter rate;
    instant look_at;
    int64_t counts[REDRIVE_COUNTS];
    bool unsaved;     /* the record has changed since the last step */
    const char *note; /* what the trail is to say about that; NULL: nothing */
    struct slice note_by;
    bool over;        /* nothing is left to do but to save that */
    struct place before; /* the step that is out */
    struct saved_wait *waiting, *waiting_out;
    /* What the question asks for, and its answer, which is held until the step before it is written. */
    size_t want;
    int64_t payload_bytes_max;
    struct job_walk walk;
    struct job *jobs;
    struct slice *payloads; /* with a patch: as they are to be, or were; .data NULL: it cannot be done */
    size_t count;
    bool has_page;
    bool reread; /* what was asked for, or is there, is not the next page any more */
    struct arena page; /* the answer's memory */
};

static struct place place_of(const struct redrive *redrive)
{
    const struct job_walk *walk = &redrive->record.walk;
    return (struct place){ walk->id, walk->filter.before_seq, walk->over, redrive->record.patch_failed, redrive->undo };
}

static void place_restore(struct redrive *redrive, const struct place *place)
{
    struct job_walk *walk = &redrive->record.walk;
    walk->id = place->id;
    walk->filter.before_seq = place->before_seq;
    walk->over = place->over;
    redrive->record.patch_failed = place->patch_failed;
    redrive->undo = place->undo;
}

static void page_drop(struct redrive *redrive)
{
    assert(!redrive->question.out);
    arena_release(&redrive->page);
    redrive->has_page = false;
    redrive->count = 0;
}

static void redrive_free(struct redrive *redrive)
{
    assert(!redrive->waiting && !redrive->waiting_out && !redrive->question.out);
    page_drop(redrive);
    redrive_record_release(&redrive->record);
    free(redrive);
}

static void wait_add(struct redrive *redrive, struct saved_wait *wait)
{
    wait->next = redrive->waiting;
    redrive->waiting = wait;
}

static void append(struct engine *engine, struct redrive *redrive)
{
    struct redrive **last = &engine->redrives.first;
    while (*last)
        last = &(*last)->next;
    *last = redrive;
    engine->redrives.count++;
}

static struct redrive *add(struct engine *engine, struct redrive_record *record)
{
    struct redrive *redrive = calloc(1, sizeof *redrive);
    if (!redrive) {
        redrive_record_release(record);
        return NULL;
    }
    redrive->record = *record;
    redrive->undo.filter.redrive = slice_from(redrive->record.id);
    if (record->rate.count > 0)
        rate_init(&redrive->rate, record->rate, rate_burst(record->rate, 1), INSTANT_NONE);
    append(engine, redrive);
    return redrive;
}

struct redrive *redrive_find(const struct engine *engine, struct slice id)
{
    struct redrive *redrive = engine->redrives.first;
    while (redrive && !slice_equal(slice_from(redrive->record.id), id))
        redrive = redrive->next;
    return redrive;
}

static void take_out(struct engine *engine, struct redrive *redrive)
{
    struct redrive **link = &engine->redrives.first;
    while (*link != redrive)
        link = &(*link)->next;
    *link = redrive->next;
    assert(engine->redrives.count > 0);
    engine->redrives.count--;
    redrive->next = NULL;
}

static bool is_ended(enum redrive_state state)
{
    return state != REDRIVE_CANARY && state != REDRIVE_RUNNING;
}

static void end(struct engine *engine, struct redrive *redrive, enum redrive_state state)
{
    static const char *const notes[REDRIVE_STATES] = {
        [REDRIVE_DONE] = "redrive_done",         [REDRIVE_CANCELLED] = "redrive_cancelled",
        [REDRIVE_ABORTED] = "redrive_aborted",   [REDRIVE_UNDONE_ALL] = "redrive_undone",
    };
    assert(notes[state]);
    redrive->record.state = state;
    redrive->record.undoing = false;
    redrive->record.ended_at = engine_now(engine);
    redrive->note = notes[state];
    redrive->unsaved = redrive->over = true;
    log_event(LOG_INFO, notes[state], FIELD_CSTR("redrive", redrive->record.id),
              FIELD_INT("redriven", redrive->counts[REDRIVE_SENT_BACK]));
}

/* ---- the writer's part of a step ---- */

static bool note_add(struct batch *batch, struct redrive *redrive)
{
    struct buffer data = buffer_up_to(EVENT_DATA_BYTES_MAX);
    struct json_writer json = json_begin(&data);
    json_member_text(&json, "note", redrive->note);
    json_member_text(&json, "redrive", redrive->record.id);
    json_member_string(&json, "by", redrive->note_by.data ? redrive->note_by : redrive->record.by);
    json_member_int(&json, "matched", redrive->record.matched);
    json_object_end(&json);
    struct slice text = buffer_into(&data, &batch->memory);
    if (text.data)
        batch->ops[batch->count++] = (struct store_op){ .kind = OP_NOTE, .data = text };
    return text.data != NULL;
}

/* The record as it is after the step. */
static bool record_add(struct batch *batch, struct redrive *redrive)
{
    struct buffer text = buffer_up_to(REDRIVE_RECORD_BYTES_MAX);
    redrive_record_write(&text, &redrive->record);
    struct slice value = buffer_into(&text, &batch->memory);
    struct slice id = arena_copy(&batch->memory, slice_from(redrive->record.id));
    if (!value.data || !id.data)
        return false;
    batch_save(batch, SPACE_REDRIVE, id, value);
    batch_save(batch, SPACE_REDRIVE_ACTIVE, id, redrive->over ? SLICE("") : SLICE("1"));
    return !redrive->note || note_add(batch, redrive);
}

static void step_done(struct batch *batch)
{
    struct redrive *redrive = batch->context;
    struct engine *engine = redrive->question.engine;
    assert(engine->redrives.count > 0);
    struct error error = batch->error;
    bool applied = batch->status == STATUS_OK;
    error.status = batch->status;
    assert(engine->redrives.out == batch);
    engine->redrives.out = NULL;
    saved_waits_fail(&redrive->waiting_out, &error);
    if (!applied) {
        place_restore(redrive, &redrive->before);
        redrive->reread = redrive->question.out || redrive->has_page;
        redrive->unsaved = true;
        redrive->look_at = instant_add(engine_now(engine), AGAIN_MS);
        log_event(LOG_ERROR, "redrive_step_failed", FIELD_CSTR("redrive", redrive->record.id),
                  FIELD_CSTR("error", batch->error.text));
    } else if (!redrive->unsaved) {
        redrive->note = NULL;
    }
    batch_free(batch);
    take_out(engine, redrive);
    if (applied && redrive->over && !redrive->unsaved)
        redrive_free(redrive);
    else
        append(engine, redrive); /* behind the others */
    engine_wake(engine);
}

static struct batch *step_new(struct redrive *redrive, size_t letters)
{
    struct batch *batch = batch_new(letters * 2 + OPS_BESIDE, STEP_BYTES_MAX);
    redrive->before = place_of(redrive);
    return batch;
}

/* False: no memory, and nothing has happened. */
static bool step_submit(struct engine *engine, struct redrive *redrive, struct batch *batch)
{
    assert(!engine->redrives.out);
    if (!batch || !record_add(batch, redrive)) {
        batch_free(batch);
        place_restore(redrive, &redrive->before);
        redrive->look_at = instant_add(engine_now(engine), AGAIN_MS);
        return false;
    }
    redrive->unsaved = false;
    redrive->waiting_out = redrive->waiting;
    redrive->waiting = NULL;
    redrive->question.engine = engine;
    batch->context = redrive;
    batch->done = step_done;
    batch->reply_to = engine->mailbox;
    engine->redrives.out = batch;
    engine->ports.submit(engine->ports.context, batch);
    return true;
}

/* ---- letters ---- */

static struct slice letter_data(struct batch *batch, const struct redrive *redrive)
{
    struct buffer data = buffer_up_to(EVENT_DATA_BYTES_MAX);
    struct json_writer json = json_begin(&data);
    json_member_string(&json, "by", redrive->record.by);
    json_member_text(&json, "redrive", redrive->record.id);
    if (redrive->record.patch)
        json_member_bool(&json, "corrected", true);
    json_object_end(&json);
    return buffer_into(&data, &batch->memory);
}

/*
 * A canary goes as new work does. The rest goes behind all that comes for one aging interval, or BEHIND_MS: however many
 * they are, new work of the same tenant does not wait for them.
 */
static int64_t rank_for(const struct engine *engine, const struct redrive *redrive, const struct job *job, instant now)
{
    const struct destination_config *destination = config_destination(engine->config, job->destination);
    int64_t aging_ms = destination ? destination->aging_ms : 0;
    int64_t behind_ms = aging_ms > BEHIND_MS ? aging_ms : BEHIND_MS;
    int64_t rank = rank_of(job->priority, now, aging_ms);
    return redrive->record.state == REDRIVE_CANARY ? rank : rank + behind_ms;
}

/* "ID.SEQ", with which the names of one redrive lie together. */
static struct slice payload_name(struct arena *memory, const struct redrive *redrive, int64_t seq)
{
    char name[REDRIVE_ID_BYTES + 24];
    snprintf(name, sizeof name, "%s.%lld", redrive->record.id, (long long)seq);
    return arena_copy(memory, slice_from(name));
}

static bool letter_add(struct engine *engine, struct redrive *redrive, struct batch *batch, size_t i, struct slice data)
{
    assert(i < redrive->count);
    const struct job *job = &redrive->jobs[i];
    bool back = redrive->record.undoing, corrected = redrive->payloads && redrive->payloads[i].data;
    struct slice redrive_id = arena_copy(&batch->memory, slice_from(redrive->record.id));
    struct slice tenant = arena_copy(&batch->memory, job->tenant), id = arena_copy(&batch->memory, job->id);
    struct slice payload = corrected ? arena_copy(&batch->memory, redrive->payloads[i]) : SLICE("");
    if (!redrive_id.data || !tenant.data || !id.data || !payload.data)
        return false;
    struct store_op *op = &batch->ops[batch->count++];
    op->kind = back ? OP_UNDO : OP_REDRIVE;
    op->data = data;
    op->job = (struct op_job){ .tenant = tenant, .id = id, .seq = job->seq, .redrive = redrive_id,
                               .dead_at = back ? 0 : job->dead_at,
                               .rank = back ? 0 : rank_for(engine, redrive, job, engine_now(engine)),
                               .payload_given = corrected, .payload = payload, .forget_at = INSTANT_NONE };
    if (!corrected)
        return true;
    struct slice name = payload_name(&batch->memory, redrive, job->seq);
    struct slice was = back ? SLICE("") : arena_copy(&batch->memory, job->payload);
    if (!name.data || !was.data)
        return false;
    batch_save(batch, SPACE_REDRIVE_PAYLOAD, name, was);
    return true;
}

/* The page that was read as one step; its end is the walk's new place. */
static void letters_send(struct engine *engine, struct redrive *redrive)
{
    assert(!engine->redrives.out);
    struct batch *batch = step_new(redrive, redrive->count);
    struct slice data = batch ? letter_data(batch, redrive) : SLICE("");
    bool whole = batch && data.data, undoing = redrive->record.undoing;
    size_t sent = 0;
    for (size_t i = 0; i < redrive->count && whole; i++) {
        if (redrive->record.patch && !undoing && !redrive->payloads[i].data) {
            redrive->record.patch_failed++;
            continue;
        }
        whole = letter_add(engine, redrive, batch, i, data);
        sent++;
    }
    if (whole && !undoing) {
        redrive->record.walk.id = redrive->walk.id;
        redrive->record.walk.filter.before_seq = redrive->walk.filter.before_seq;
        redrive->record.walk.over = redrive->walk.over;
        if (redrive->record.rate.count > 0 && sent > 0)
            rate_take(&redrive->rate, engine_now(engine), (int64_t)sent);
    }
    if (!whole) {
        batch_free(batch);
        batch = NULL;
    }
    if (undoing)
        redrive->undo = redrive->walk;
    (void)step_submit(engine, redrive, batch); /* if not, it is where it was before */
}

/* ---- reading ---- */

/* In the reader's thread: what a payload is to be, or was. */
static enum status payloads_read(struct redrive *redrive, struct store_reader *reader, struct error *err)
{
    struct arena *memory = &redrive->question.read.memory;
    redrive->payloads = arena_alloc_array(memory, redrive->count + 1, sizeof *redrive->payloads);
    if (!redrive->payloads)
        return error_set(err, STATUS_NO_MEMORY, "no memory for payloads");
    for (size_t i = 0; i < redrive->count; i++) {
        struct slice *payload = &redrive->payloads[i];
        *payload = (struct slice){ NULL, 0 };
        if (!redrive->record.undoing) {
            json_patch_text(redrive->record.patch, redrive->jobs[i].payload, (size_t)redrive->payload_bytes_max, memory,
                            payload);
            continue;
        }
        struct slice name = payload_name(memory, redrive, redrive->jobs[i].seq);
        enum status status =
            name.data ? reader->ops->reader_saved(reader, SPACE_REDRIVE_PAYLOAD, name, memory, payload, err)
                      : error_set(err, STATUS_NO_MEMORY, "no memory for payloads");
        if (status != STATUS_OK && status != STATUS_NOT_FOUND)
            return status;
    }
    return STATUS_OK;
}

static enum status read_step(struct store_read *read, struct store_reader *reader, struct error *err)
{
    struct redrive *redrive = (struct redrive *)read;
    redrive->count = 0;
    redrive->payloads = NULL;
    enum status status = tally_read(reader, slice_from(redrive->record.id), redrive->counts, err);
    if (status != STATUS_OK || redrive->want == 0 || redrive->walk.over)
        return status;
    bool patched = redrive->record.patch != NULL;
    status = walk_page(reader, &redrive->walk, redrive->want, patched, &read->memory, &redrive->jobs, &redrive->count, err);
    return status == STATUS_OK && patched ? payloads_read(redrive, reader, err) : status;
}

/* Of a canary all have been sent: whether the rest may follow. */
static void canary_judge(struct engine *engine, struct redrive *redrive)
{
    assert(redrive->record.state == REDRIVE_CANARY && !redrive->record.undoing);
    if (redrive_ended(redrive->counts) < redrive->counts[REDRIVE_SENT_BACK]) {
        redrive->look_at = instant_add(engine_now(engine), LOOK_MS);
    } else if (redrive_died_too_much(&redrive->record, redrive->counts)) {
        end(engine, redrive, REDRIVE_ABORTED);
    } else {
        redrive->record.state = REDRIVE_RUNNING;
        redrive->unsaved = true;
    }
}

/*
 * Whether the next page can be read while this one is written: nothing is to be judged or waited for between the two, and no
 * payloads are held in memory meanwhile.
 */
static bool may_read_ahead(const struct redrive *redrive)
{
    const struct redrive_record *record = &redrive->record;
    if (record->patch || redrive->unsaved)
        return false;
    return record->undoing || (record->state == REDRIVE_RUNNING && record->limit == 0 && record->rate.count == 0 &&
                               !record->abort_given);
}

static void page_ask(struct engine *engine, struct redrive *redrive, size_t want);

static void page_send(struct engine *engine, struct redrive *redrive)
{
    letters_send(engine, redrive);
    page_drop(redrive);
    if (engine->redrives.out && may_read_ahead(redrive))
        page_ask(engine, redrive, LETTERS_A_STEP);
}

/* A page on which nobody is meant: nothing of it need be written. */
static void page_pass(struct redrive *redrive)
{
    assert(redrive->count == 0 && !redrive->walk.over);
    if (redrive->record.undoing) {
        redrive->undo = redrive->walk;
    } else {
        redrive->record.walk.id = redrive->walk.id;
        redrive->record.walk.filter.before_seq = redrive->walk.filter.before_seq;
    }
    page_drop(redrive);
}

/* By the counts that were read with the page: whether it goes on. Else it has ended, waits, or asks anew. */
static bool goes_on(struct engine *engine, struct redrive *redrive)
{
    const struct redrive_record *record = &redrive->record;
    int64_t left = redrive_left(&redrive->record, redrive->counts);
    assert(redrive->has_page && !redrive->over);
    if (record->undoing) {
        if (redrive->count == 0 && redrive->walk.over)
            end(engine, redrive, REDRIVE_UNDONE_ALL);
        return !redrive->over;
    }
    if (record->state == REDRIVE_CANARY && (left == 0 || record->walk.over))
        canary_judge(engine, redrive);
    else if (record->state == REDRIVE_RUNNING && record->abort_given && redrive_ended(redrive->counts) >= ABORT_AFTER &&
             redrive_died_too_much(&redrive->record, redrive->counts))
        end(engine, redrive, REDRIVE_ABORTED);
    else if (left == 0 || record->walk.over)
        end(engine, redrive, REDRIVE_DONE);
    else
        return (int64_t)redrive->count <= left;
    return false;
}

/* No step is under way: the page's turn has come. */
static void page_take(struct engine *engine, struct redrive *redrive)
{
    const struct redrive_record *record = &redrive->record;
    assert(redrive->has_page && !engine->redrives.out);
    bool was_undo = redrive->walk.filter.redrive.len > 0;
    bool is_wanted = engine_is_steward(engine) && !redrive->over && !redrive->reread && was_undo == record->undoing &&
                     (record->undoing || !is_ended(record->state));
    redrive->reread = false;
    if (!is_wanted || !goes_on(engine, redrive))
        page_drop(redrive);
    else if (redrive->count == 0 && !redrive->walk.over)
        page_pass(redrive);
    else
        page_send(engine, redrive);
}

static void page_read(struct question *question)
{
    struct redrive *redrive = (struct redrive *)question;
    struct engine *engine = question->engine;
    if (question->read.status != STATUS_OK) {
        redrive->look_at = instant_add(engine_now(engine), AGAIN_MS);
        log_event(LOG_ERROR, "redrive_read_failed", FIELD_CSTR("redrive", redrive->record.id),
                  FIELD_CSTR("error", question->read.error.text));
        return;
    }
    redrive->page = *question->memory;
    *question->memory = (struct arena){ 0 };
    redrive->has_page = true;
    if (!engine->redrives.out)
        page_take(engine, redrive);
}

static void page_ask(struct engine *engine, struct redrive *redrive, size_t want)
{
    assert(!redrive->has_page);
    redrive->want = want;
    redrive->walk = redrive->record.undoing ? redrive->undo : redrive->record.walk;
    redrive->payload_bytes_max = engine->config->payload_bytes_max;
    question_ask(engine, &redrive->question, read_step, page_read);
}

/* How many letters may be read for the next step; 0: none, and look_at says when to look again. */
static size_t step_size(struct redrive *redrive, instant now)
{
    const struct redrive_record *record = &redrive->record;
    int64_t most = record->patch ? PAYLOADS_A_STEP : LETTERS_A_STEP;
    if (record->undoing)
        return (size_t)most;
    int64_t left = redrive_left(&redrive->record, redrive->counts);
    most = left < most ? left : most;
    if (record->rate.count == 0 || most == 0)
        return (size_t)most;
    struct rate_answer allowed = rate_ask(&redrive->rate, now, most);
    if (allowed.room == 0)
        redrive->look_at = rate_ask(&redrive->rate, now, 1).at;
    assert(allowed.room <= most);
    return (size_t)allowed.room;
}

/* The payloads of one redrive are in memory at a time. */
static bool must_wait_for_payloads(const struct engine *engine, const struct redrive *redrive)
{
    bool held = false;
    for (const struct redrive *other = engine->redrives.first; other && redrive->record.patch; other = other->next)
        held = held || (other != redrive && other->record.patch && (other->question.out || other->has_page));
    return held;
}

static bool may_step(const struct engine *engine, const struct redrive *redrive)
{
    return !redrive->question.out && (redrive->has_page || redrive->unsaved || !must_wait_for_payloads(engine, redrive));
}

static void step(struct engine *engine, struct redrive *redrive)
{
    instant now = engine_now(engine);
    if (redrive->look_at > instant_add(now, MINUTE_MS))
        redrive->look_at = now; /* the clock was put back */
    if (redrive->look_at > now || !may_step(engine, redrive))
        return;
    if (redrive->unsaved) {
        step_submit(engine, redrive, step_new(redrive, 0));
    } else if (redrive->has_page) {
        page_take(engine, redrive);
    } else {
        size_t want = step_size(redrive, now);
        if (redrive->look_at <= now)
            page_ask(engine, redrive, want);
    }
}

/* ---- loading ---- */

static enum status read_active(struct store_read *read, struct store_reader *reader, struct error *err)
{
    struct redrives *redrives = (struct redrives *)read;
    enum status status = reader->ops->reader_saved_list(reader, SPACE_REDRIVE_ACTIVE, SLICE(""), REDRIVES_ACTIVE_MAX,
                                                        &read->memory, &redrives->active, &redrives->active_count, err);
    if (status != STATUS_OK)
        return status;
    redrives->values = arena_alloc_array(&read->memory, redrives->active_count + 1, sizeof *redrives->values);
    if (!redrives->values)
        return error_set(err, STATUS_NO_MEMORY, "no memory for redrives");
    for (size_t i = 0; i < redrives->active_count && status == STATUS_OK; i++)
        status = reader->ops->reader_saved(reader, SPACE_REDRIVE, redrives->active[i].name, &read->memory,
                                           &redrives->values[i], err);
    return status;
}

static void active_read(struct question *question)
{
    struct engine *engine = question->engine;
    struct redrives *redrives = &engine->redrives;
    struct redrive_record record;
    struct error error = question->read.error;
    if (question->read.status != STATUS_OK) {
        redrives->load_at = instant_add(engine_now(engine), AGAIN_MS);
        log_event(LOG_ERROR, "redrives_not_loaded", FIELD_CSTR("error", error.text));
        return;
    }
    redrives->loaded = true;
    for (size_t i = redrives->active_count; i-- > 0;) {
        if (redrive_find(engine, redrives->active[i].name))
            continue;
        if (redrive_record_read(redrives->values[i], &record, &error) != STATUS_OK || !add(engine, &record))
            log_event(LOG_ERROR, "redrive_not_loaded", FIELD_TEXT("redrive", redrives->active[i].name),
                      FIELD_CSTR("error", error.text));
    }
}

/* Another is the steward now, or will be: what is not under way is forgotten here. */
static void forget_all(struct engine *engine)
{
    struct error error;
    error_set(&error, STATUS_CONFLICT, "this node is not the steward any more");
    for (struct redrive *redrive = engine->redrives.first, *next; redrive; redrive = next) {
        next = redrive->next;
        saved_waits_fail(&redrive->waiting, &error);
        bool is_out = engine->redrives.out && engine->redrives.out->context == redrive;
        if (redrive->question.out || is_out)
            continue;
        take_out(engine, redrive);
        redrive_free(redrive);
    }
    engine->redrives.loaded = false;
}

void redrives_run(struct engine *engine)
{
    struct redrives *redrives = &engine->redrives;
    if (!engine_is_steward(engine)) {
        forget_all(engine);
        return;
    }
    if (engine_must_wait(engine))
        return;
    if (!redrives->loaded && !redrives->load.out && redrives->load_at <= engine_now(engine))
        question_ask(engine, &redrives->load, read_active, active_read);
    if (redrives->loaded)
        redrives_trim(engine);
    for (struct redrive *redrive = redrives->first, *next; redrive && !redrives->out; redrive = next) {
        next = redrive->next;
        step(engine, redrive);
    }
}

instant redrives_next(const struct engine *engine)
{
    instant next = INSTANT_NONE;
    if (!engine_is_steward(engine))
        return next;
    if (!engine->redrives.loaded)
        next = engine->redrives.load_at;
    if (engine->redrives.out)
        return next; /* it wakes when it is back */
    for (const struct redrive *redrive = engine->redrives.first; redrive; redrive = redrive->next)
        if (may_step(engine, redrive))
            next = instant_earlier(next, redrive->look_at);
    return next;
}

size_t redrives_under_way(const struct engine *engine)
{
    return engine->redrives.out != NULL;
}

void redrives_release(struct engine *engine)
{
    assert(!engine->redrives.out);
    engine->stopping = true;
    forget_all(engine);
}

/* ---- orders ---- */

static enum status room_check(const struct engine *engine, struct slice tenant, struct error *err)
{
    size_t own = 0;
    for (const struct redrive *redrive = engine->redrives.first; redrive; redrive = redrive->next)
        own += slice_equal(redrive->record.walk.filter.tenant, tenant);
    bool crowded = tenant.len > 0 && own >= REDRIVES_TENANT_MAX;
    if (!crowded && engine->redrives.count < REDRIVES_ACTIVE_MAX)
        return STATUS_OK;
    return error_set(err, STATUS_LIMIT, "%d redrives%s are under way, which is the limit; wait for one, or cancel it",
                     crowded ? REDRIVES_TENANT_MAX : REDRIVES_ACTIVE_MAX, crowded ? " of this tenant" : "");
}

enum status engine_redrive_begin(struct engine *engine, struct redrive_record *record, struct saved_wait *wait,
                                 struct error *err)
{
    assert(record->state == (record->canary > 0 ? REDRIVE_CANARY : REDRIVE_RUNNING));
    enum status status = STATUS_OK;
    if (!engine_is_steward(engine) || !engine->redrives.loaded)
        status = error_set(err, STATUS_CONFLICT, "this node does not run redrives at the moment; try again");
    else
        status = room_check(engine, record->walk.filter.tenant, err);
    if (status != STATUS_OK) {
        redrive_record_release(record);
        return status;
    }
    char stamp[INSTANT_STAMP_BYTES + 1];
    record->started_at = engine_now(engine);
    record->ended_at = INSTANT_NONE;
    instant_stamp(record->started_at, stamp);
    struct redrives *redrives = &engine->redrives;
    redrives->begun = redrives->begun_at == record->started_at ? redrives->begun + 1 : 1;
    redrives->begun_at = record->started_at;
    do {
        char number[16] = "";
        if (redrives->begun > 1)
            snprintf(number, sizeof number, "-%d", redrives->begun);
        snprintf(record->id, sizeof record->id, "%s%s", stamp, number);
    } while (redrive_find(engine, slice_from(record->id)) && ++redrives->begun > 1); /* where the clock was put back */
    if (record->walk.filter.until == 0 || record->walk.filter.until > record->started_at)
        record->walk.filter.until = record->started_at; /* what dies again is not its business, nor what dies later */
    struct redrive *redrive = add(engine, record);
    if (!redrive)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a redrive");
    redrive->note = "redrive_started";
    redrive->unsaved = true;
    wait_add(redrive, wait);
    engine_wake(engine);
    return STATUS_OK;
}

static enum status cancel(struct engine *engine, struct redrive *redrive, struct error *err)
{
    if (!redrive || is_ended(redrive->record.state) || redrive->record.undoing)
        return error_set(err, STATUS_CONFLICT, "the redrive has ended; what it has sent back can be undone");
    end(engine, redrive, REDRIVE_CANCELLED);
    return STATUS_OK;
}

/* Whether its letters could be as they were: of those that were corrected the payloads must be there. */
static enum status undo_check(const struct engine *engine, const struct redrive_record *record, struct error *err)
{
    char text[UNITS_TEXT_BYTES];
    int64_t keep_ms = engine->config->retention_undo_ms;
    if (!record->patch || keep_ms == 0 || engine_now(engine) < instant_add(record->started_at, keep_ms))
        return STATUS_OK;
    duration_format(keep_ms, text);
    return error_set(err, STATUS_CONFLICT, "it cannot be undone any more: it corrected payloads, and what they were is "
                     "retained for %s (retention.undo)", text);
}

enum status engine_redrive_order(struct engine *engine, enum redrive_order order, struct slice saved, struct slice by,
                                 struct saved_wait *wait, struct error *err)
{
    struct redrive_record record;
    if (!engine_is_steward(engine) || !engine->redrives.loaded)
        return error_set(err, STATUS_CONFLICT, "this node does not run redrives at the moment; try again");
    enum status status = redrive_record_read(saved, &record, err);
    if (status != STATUS_OK)
        return status;
    struct redrive *redrive = redrive_find(engine, slice_from(record.id));
    if (order == REDRIVE_CANCEL || redrive) {
        redrive_record_release(&record);
        status = order == REDRIVE_CANCEL ? cancel(engine, redrive, err) : STATUS_OK;
    } else if ((status = undo_check(engine, &record, err)) != STATUS_OK) {
        redrive_record_release(&record);
    } else {
        redrive = add(engine, &record);
        status = redrive ? STATUS_OK : error_set(err, STATUS_NO_MEMORY, "no memory for a redrive");
    }
    if (status != STATUS_OK)
        return status;
    redrive->note_by = arena_copy(&redrive->record.memory, by);
    if (order == REDRIVE_UNDO && !redrive->record.undoing) {
        redrive->record.undoing = true;
        redrive->over = false;
        redrive->note = "redrive_undo";
    }
    wait_add(redrive, wait);
    redrive->unsaved = true;
    redrive->look_at = 0; /* whoever ordered it does not wait for the rate */
    engine_wake(engine);
    return STATUS_OK;
}
