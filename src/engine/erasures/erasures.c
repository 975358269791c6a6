#include "engine/erasures/erasures.h"

#include "base/array.h"
#include "base/log.h"
#include "engine/loop.h"
#include "store/subject.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    JOBS_A_PIECE = 16, /* with their payloads in memory */
    PIECES_A_STEP = 50, /* that found nothing; then what was passed is saved */
    COPIES_A_PIECE = 16,
    AGAIN_PASS_MS = 1000, /* some were being sent */
    OPS_BESIDE = 4,       /* of a step: the record, its place among the active, what it replaces, an event */
    STEP_BYTES_MAX = 64 << 20,
};

/* A job that tells of the person, and the events that have data about it. */
struct match {
    struct slice tenant, id;
    int64_t seq;
    int64_t *numbers;
    size_t count, capacity;
};

struct erasure {
    struct question question; /* first */
    struct erasure *next;
    struct erasure_record record;
    struct subject subject;
    instant look_at;
    bool busy;        /* in this pass, one was being sent */
    bool unsaved;     /* nothing is to be read before the record is in the store */
    const char *note; /* what the trail is to say about that; NULL: nothing */
    struct saved_wait *waiting, *waiting_out;
    struct erasure_record before; /* the step that is out; without texts */
    /* The answer: what is to go, and how far that brings it. */
    struct match *matches;
    struct saved *copies;
    struct match events;
    size_t count;
    int64_t names;
    int64_t place;
    char name[ERASURE_PLACE_BYTES];
    bool over; /* this phase */
};

static void erasure_free(struct erasure *erasure)
{
    assert(!erasure->waiting && !erasure->waiting_out && !erasure->question.out);
    erasure_record_release(&erasure->record);
    free(erasure);
}

static void append(struct erasures *erasures, struct erasure *erasure)
{
    struct erasure **last = &erasures->first;
    while (*last)
        last = &(*last)->next;
    erasure->next = NULL;
    *last = erasure;
}

/* NULL: no memory, or a subject that is none; the record is gone then. */
static struct erasure *add(struct engine *engine, struct erasure_record *record, struct error *err)
{
    struct erasure *erasure = calloc(1, sizeof *erasure);
    enum status status = erasure ? subject_init(&erasure->subject, record->subject, err)
                                 : error_set(err, STATUS_NO_MEMORY, "no memory for an erasure");
    if (status != STATUS_OK) {
        free(erasure);
        erasure_record_release(record);
        return NULL;
    }
    erasure->record = *record;
    erasure->busy = record->phase != ERASE_JOBS || record->place != 0; /* who had begun it may have met some that ran */
    append(&engine->erasures, erasure);
    engine->erasures.count++;
    return erasure;
}

static const struct erasure *find(const struct engine *engine, struct slice id)
{
    assert(id.len > 0);
    const struct erasure *erasure = engine->erasures.first;
    while (erasure && !slice_equal(slice_from(erasure->record.id), id))
        erasure = erasure->next;
    return erasure;
}

/* ---- the writer's part of a step ---- */

static struct slice data_make(struct batch *batch, const struct erasure *erasure, const char *note)
{
    assert(erasure->record.id[0]);
    struct buffer data = buffer_up_to(EVENT_DATA_BYTES_MAX);
    struct json_writer json = json_begin(&data);
    if (note)
        json_member_text(&json, "note", note);
    json_member_text(&json, "erasure", erasure->record.id);
    json_member_string(&json, "by", erasure->record.by);
    if (note && erasure->record.done) {
        json_member_int(&json, "jobs", erasure->record.jobs);
        json_member_int(&json, "events", erasure->record.events);
        json_member_int(&json, "copies", erasure->record.copies);
    }
    json_object_end(&json);
    return buffer_into(&data, &batch->memory);
}

static bool record_add(struct batch *batch, const struct erasure *erasure)
{
    assert(erasure->record.done == (erasure->record.subject.len == 0)); /* no longer than it is needed */
    struct buffer text = buffer_up_to(ERASURE_RECORD_BYTES_MAX);
    erasure_record_write(&text, &erasure->record);
    struct slice value = buffer_into(&text, &batch->memory);
    struct slice id = arena_copy(&batch->memory, slice_from(erasure->record.id));
    struct slice data = erasure->note ? data_make(batch, erasure, erasure->note) : SLICE("{}");
    if (!value.data || !id.data || !data.data)
        return false;
    if (erasure->record.done) /* the subject's name is in the record that this replaces */
        batch->ops[batch->count++] = (struct store_op){ .kind = OP_ERASE_EVENTS };
    batch_save(batch, SPACE_ERASURE, id, value);
    batch_save(batch, SPACE_ERASURE_ACTIVE, id, erasure->record.done ? SLICE("") : SLICE("1"));
    if (erasure->note)
        batch->ops[batch->count++] = (struct store_op){ .kind = OP_NOTE, .data = data };
    return true;
}

/* What the step took out is counted when it is there: the next one saves it. */
static void count_ops(struct erasure *erasure, const struct batch *batch)
{
    assert(batch->status == STATUS_OK);
    for (size_t i = 0; i < batch->count; i++) {
        const struct store_op *op = &batch->ops[i];
        if (op->kind == OP_ERASE && op->status == STATUS_CONFLICT) {
            erasure->busy = true;
        } else if (op->status == STATUS_OK && op->kind == OP_ERASE) {
            erasure->record.jobs++;
        } else if (op->status == STATUS_OK && op->kind == OP_ERASE_EVENTS) {
            erasure->record.events += (int64_t)op->erase.ret_erased;
            erasure->record.events_left += (int64_t)op->erase.ret_left;
        }
    }
}

/* The first has had its turn: it goes, or the others have theirs before it comes again. */
static void turn_over(struct erasures *erasures, bool done)
{
    struct erasure *erasure = erasures->first;
    assert(erasures->count > 0);
    erasures->first = erasure->next;
    if (!done) {
        append(erasures, erasure);
        return;
    }
    erasures->count--;
    erasure_free(erasure);
}

static void step_done(struct batch *batch)
{
    struct erasure *erasure = batch->context;
    struct engine *engine = erasure->question.engine;
    struct error error = batch->error;
    bool applied = batch->status == STATUS_OK;
    error.status = batch->status;
    assert(engine->erasures.out == batch);
    engine->erasures.out = NULL;
    saved_waits_fail(&erasure->waiting_out, &error);
    if (applied) {
        count_ops(erasure, batch);
        erasure->note = NULL;
    } else {
        erasure->record.phase = erasure->before.phase;
        erasure->record.place = erasure->before.place;
        memcpy(erasure->record.name, erasure->before.name, sizeof erasure->before.name);
        erasure->record.copies = erasure->before.copies;
        erasure->record.names_left = erasure->before.names_left;
        erasure->unsaved = erasure->unsaved || erasure->record.done || erasure->note != NULL;
        erasure->busy = true; /* whether it was is not known any more: another pass is no harm */
        erasure->look_at = instant_add(engine_now(engine), AGAIN_MS);
        log_event(LOG_ERROR, "erasure_step_failed", FIELD_CSTR("erasure", erasure->record.id),
                  FIELD_CSTR("error", batch->error.text));
    }
    batch_free(batch);
    turn_over(&engine->erasures, applied && erasure->record.done);
    engine_wake(engine);
}

/* `batch` NULL: there was no memory for it, and nothing has happened. */
static void step_submit(struct engine *engine, struct erasure *erasure, struct batch *batch)
{
    assert(!engine->erasures.out && engine->erasures.first == erasure);
    if (!batch || !record_add(batch, erasure)) {
        batch_free(batch);
        erasure->look_at = instant_add(engine_now(engine), AGAIN_MS);
        return;
    }
    erasure->unsaved = false;
    erasure->waiting_out = erasure->waiting;
    erasure->waiting = NULL;
    erasure->question.engine = engine;
    batch->context = erasure;
    batch->done = step_done;
    batch->reply_to = engine->mailbox;
    engine->erasures.out = batch;
    engine->ports.submit(engine->ports.context, batch);
}

static bool events_add(struct batch *batch, const int64_t *numbers, size_t count)
{
    assert(count == 0 || numbers);
    for (size_t at = 0; at < count; at += ERASE_EVENTS_MAX) {
        size_t more = count - at < ERASE_EVENTS_MAX ? count - at : ERASE_EVENTS_MAX;
        int64_t *copy = arena_alloc_array(&batch->memory, more, sizeof *copy);
        if (!copy)
            return false;
        memcpy(copy, numbers + at, more * sizeof *copy);
        batch->ops[batch->count++] =
            (struct store_op){ .kind = OP_ERASE_EVENTS, .erase = { .numbers = copy, .count = more } };
    }
    return true;
}

static bool match_add(struct batch *batch, const struct match *match, struct slice data)
{
    assert(match->seq > 0 && match->id.len > 0);
    struct store_op *op = &batch->ops[batch->count++];
    op->kind = OP_ERASE;
    op->data = data;
    op->job = (struct op_job){ .tenant = arena_copy(&batch->memory, match->tenant),
                               .id = arena_copy(&batch->memory, match->id),
                               .seq = match->seq };
    return op->job.tenant.data && op->job.id.data && events_add(batch, match->numbers, match->count);
}

/* Operations for what was read; NULL: no memory. */
static struct batch *batch_make(const struct erasure *erasure)
{
    assert(!erasure->matches || !erasure->copies);
    size_t ops = OPS_BESIDE + erasure->count * 2 + erasure->events.count / ERASE_EVENTS_MAX + 1;
    for (size_t i = 0; erasure->matches && i < erasure->count; i++)
        ops += erasure->matches[i].count / ERASE_EVENTS_MAX + 1;
    struct batch *batch = batch_new(ops, STEP_BYTES_MAX);
    struct slice data = batch ? data_make(batch, erasure, NULL) : (struct slice){ NULL, 0 };
    bool whole = data.data != NULL;
    for (size_t i = 0; i < erasure->count && whole; i++) {
        if (erasure->matches) {
            whole = match_add(batch, &erasure->matches[i], data);
            continue;
        }
        struct slice name = arena_copy(&batch->memory, erasure->copies[i].name);
        whole = name.data != NULL;
        if (whole)
            batch_save(batch, SPACE_REDRIVE_PAYLOAD, name, SLICE(""));
    }
    if (whole && events_add(batch, erasure->events.numbers, erasure->events.count))
        return batch;
    batch_free(batch);
    return NULL;
}

/* ---- reading ---- */

static bool number_add(struct arena *memory, struct match *match, int64_t number)
{
    assert(number > 0 && match->count <= match->capacity);
    int64_t *numbers = array_grow_in(memory, match->numbers, match->count, &match->capacity, sizeof *numbers);
    if (!numbers)
        return false;
    match->numbers = numbers;
    match->numbers[match->count++] = number;
    return true;
}

/* All of the job's events, whatever they say: their words came from the person's job. */
static enum status history_read(struct arena *memory, struct store_reader *reader, struct match *match, struct error *err)
{
    assert(match->id.len > 0 && match->count == 0);
    struct event *events;
    size_t count;
    struct arena scratch = { 0 };
    enum status status = reader->ops->reader_history(reader, match->tenant, match->id, STORE_PAGE_MAX, &scratch, &events,
                                                     &count, err);
    bool whole = true;
    while (status == STATUS_OK && count > 0 && whole) {
        int64_t previous = count == STORE_PAGE_MAX || count == 1 ? events[0].previous : 0;
        for (size_t i = 0; i < count && whole; i++)
            whole = events[i].data.len == 0 || number_add(memory, match, events[i].number);
        count = 0;
        arena_release(&scratch);
        if (previous > 0 && whole) /* beyond a page, one by one */
            status = reader->ops->reader_events(reader, previous - 1, 1, &scratch, &events, &count, err);
        if (count > 0 && events[0].number != previous)
            count = 0; /* trimmed */
    }
    arena_release(&scratch);
    return whole ? status : error_set(err, STATUS_NO_MEMORY, "no memory for an erasure");
}

static enum status jobs_read(struct erasure *erasure, struct store_reader *reader, struct error *err)
{
    assert(erasure->count == 0);
    struct arena *memory = &erasure->question.read.memory, scratch = { 0 };
    const struct job_filter filter = { .tenant = erasure->record.tenant, .before_seq = erasure->place };
    struct job *jobs;
    size_t count = 0;
    int64_t next = 0;
    enum status status =
        reader->ops->reader_jobs(reader, &filter, JOBS_A_PIECE, true, &scratch, &jobs, &count, &next, err);
    erasure->matches = status == STATUS_OK ? arena_alloc_array(memory, JOBS_A_PIECE, sizeof *erasure->matches) : NULL;
    if (status == STATUS_OK && !erasure->matches)
        status = error_set(err, STATUS_NO_MEMORY, "no memory for an erasure");
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        bool is_later = jobs[i].created_at > erasure->record.started_at && !dead_export_is(&jobs[i]);
        if (is_later || !subject_in_job(&erasure->subject, &jobs[i]))
            continue;
        struct match *match = &erasure->matches[erasure->count++];
        *match = (struct match){ .tenant = arena_copy(memory, jobs[i].tenant), .id = arena_copy(memory, jobs[i].id),
                                 .seq = jobs[i].seq };
        status = match->tenant.data && match->id.data ? history_read(memory, reader, match, err)
                                                      : error_set(err, STATUS_NO_MEMORY, "no memory for an erasure");
    }
    arena_release(&scratch);
    erasure->place = next;
    erasure->over = next == 0;
    return status;
}

/* Whether the job of a copy "ID.SEQ" is still there, and of whom it is. */
static enum status copy_is_used(struct store_reader *reader, struct slice name, const struct erasure *erasure,
                                bool *ret_used, bool *ret_meant, struct error *err)
{
    assert(name.len > 0);
    struct arena scratch = { 0 };
    struct job job;
    int64_t seq = 0;
    size_t dot = name.len;
    while (dot > 0 && name.data[dot - 1] != '.')
        dot--;
    enum status status = STATUS_NOT_FOUND;
    if (slice_to_int64(slice_from_offset(name, dot), &seq))
        status = reader->ops->reader_job_seq(reader, seq, false, &scratch, &job, err);
    *ret_used = status == STATUS_OK;
    *ret_meant = status == STATUS_OK && (erasure->record.tenant.len == 0 || slice_equal(job.tenant, erasure->record.tenant));
    arena_release(&scratch);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* A copy whose job is gone is of no use to anybody. */
static enum status copies_read(struct erasure *erasure, struct store_reader *reader, struct error *err)
{
    struct arena *memory = &erasure->question.read.memory;
    struct saved *copies;
    size_t count;
    enum status status = reader->ops->reader_saved_list(reader, SPACE_REDRIVE_PAYLOAD, slice_from(erasure->name),
                                                        COPIES_A_PIECE, memory, &copies, &count, err);
    erasure->copies = copies;
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        bool used = false, meant = false;
        status = copy_is_used(reader, copies[i].name, erasure, &used, &meant, err);
        if (status == STATUS_OK && (!used || (meant && subject_in(&erasure->subject, copies[i].value))))
            copies[erasure->count++].name = copies[i].name;
        if (i + 1 == count)
            snprintf(erasure->name, sizeof erasure->name, "%.*s", SLICE_ARG(copies[i].name));
    }
    erasure->over = status == STATUS_OK && count < COPIES_A_PIECE;
    return status;
}

/* Events of after the pass began are of no job that it has seen. */
static enum status events_read(struct erasure *erasure, struct store_reader *reader, struct error *err)
{
    struct arena scratch = { 0 };
    struct event *events;
    size_t count = 0;
    enum status status = reader->ops->reader_events(reader, erasure->place, STORE_PAGE_MAX, &scratch, &events, &count, err);
    erasure->over = count == 0;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        const struct event *event = &events[i];
        erasure->place = event->number;
        if (event->at > erasure->record.pass_at) { /* on to the next chain */
            erasure->place = ((event->number >> EVENT_CHAIN_SHIFT) + 1) << EVENT_CHAIN_SHIFT;
            break;
        }
        bool meant = erasure->record.tenant.len == 0 || slice_equal(event->tenant, erasure->record.tenant);
        if (!meant)
            continue;
        erasure->names += subject_in_names(&erasure->subject, event);
        if (subject_in(&erasure->subject, event->data) &&
            !number_add(&erasure->question.read.memory, &erasure->events, event->number))
            status = error_set(err, STATUS_NO_MEMORY, "no memory for an erasure");
    }
    arena_release(&scratch);
    return status;
}

/* A piece; those that find nothing follow each other, each in its turn. */
static enum status read_step(struct store_read *read, struct store_reader *reader, struct error *err)
{
    static enum status (*const phases[ERASURE_PHASES])(struct erasure *, struct store_reader *, struct error *) = {
        [ERASE_JOBS] = jobs_read,
        [ERASE_COPIES] = copies_read,
        [ERASE_EVENTS] = events_read,
    };
    struct erasure *erasure = (struct erasure *)read;
    assert(erasure->record.phase < ERASURE_PHASES);
    if (read->pieces == 0) { /* also when a store that was away is asked again */
        erasure->place = erasure->record.place;
        memcpy(erasure->name, erasure->record.name, sizeof erasure->name);
        erasure->names = 0;
    }
    erasure->matches = NULL;
    erasure->copies = NULL;
    erasure->events = (struct match){ .count = 0 };
    erasure->count = 0;
    enum status status = phases[erasure->record.phase](erasure, reader, err);
    read->more = status == STATUS_OK && erasure->count + erasure->events.count == 0 && !erasure->over &&
                 read->pieces < PIECES_A_STEP;
    return status;
}

/* ---- a step ---- */

/* What was learnt about errors has their texts, and is in memory. */
static void rules_forget(struct engine *engine, struct erasure *erasure)
{
    struct arena memory = { 0 };
    const struct known_error **list;
    struct errors *errors = engine->errors.counted;
    size_t count = 0, meant = 0;
    if (erasure->record.tenant.len > 0 || !errors)
        return; /* they are of all tenants */
    if (errors_list(errors, SLICE(""), ERRORS_MAX, &memory, &list, &count) != STATUS_OK)
        count = 0;
    struct slice *texts = arena_alloc_array(&memory, count + 1, sizeof *texts);
    for (size_t i = 0; i < count && texts; i++) /* one that goes may take others of the list with it */
        if (subject_in(&erasure->subject, slice_from(list[i]->fingerprint.sample)))
            texts[meant++] = arena_copy(&memory, slice_from(list[i]->fingerprint.text));
    for (size_t i = 0; i < meant; i++)
        if (texts[i].data)
            erasure->record.rules += (int64_t)errors_forget(errors, SLICE(""), texts[i]);
    arena_release(&memory);
}

/* The phase is over: another begins, or another pass, or it is done. */
static void phase_end(struct engine *engine, struct erasure *erasure)
{
    assert(!erasure->record.done && erasure->record.phase < ERASURE_PHASES);
    struct erasure_record *record = &erasure->record;
    record->place = 0;
    record->name[0] = '\0';
    if (record->phase + 1 < ERASURE_PHASES) {
        record->phase++;
        return;
    }
    record->phase = ERASE_JOBS;
    if (erasure->busy) {
        erasure->busy = false;
        record->names_left = 0;
        erasure->look_at = instant_add(engine_now(engine), AGAIN_PASS_MS);
        record->pass_at = erasure->look_at;
        return;
    }
    rules_forget(engine, erasure);
    record->done = true;
    record->subject = SLICE("");
    record->ended_at = engine_now(engine);
    erasure->note = "erasure_done";
    log_event(LOG_INFO, "erasure_done", FIELD_CSTR("erasure", record->id), FIELD_INT("jobs", record->jobs),
              FIELD_INT("events", record->events));
}

static void step_answered(struct question *question)
{
    struct erasure *erasure = (struct erasure *)question;
    struct engine *engine = question->engine;
    struct erasure_record *record = &erasure->record;
    if (question->read.status != STATUS_OK) {
        erasure->look_at = instant_add(engine_now(engine), AGAIN_MS);
        log_event(LOG_ERROR, "erasure_read_failed", FIELD_CSTR("erasure", record->id),
                  FIELD_CSTR("error", question->read.error.text));
        return;
    }
    if (!engine_is_steward(engine))
        return;
    struct batch *batch = batch_make(erasure);
    erasure->before = *record;
    if (!batch) {
        erasure->look_at = instant_add(engine_now(engine), AGAIN_MS);
        return;
    }
    record->place = erasure->place;
    memcpy(record->name, erasure->name, sizeof record->name);
    record->names_left += erasure->names;
    record->copies += erasure->copies ? (int64_t)erasure->count : 0;
    bool found = erasure->count + erasure->events.count > 0;
    if (erasure->over && (!found || record->phase + 1 < ERASURE_PHASES))
        phase_end(engine, erasure); /* what a last page found is counted before the end */
    step_submit(engine, erasure, batch);
}

static void step(struct engine *engine, struct erasure *erasure)
{
    assert(engine->erasures.first == erasure && !engine->erasures.out);
    if (erasure->unsaved || erasure->record.done) {
        erasure->before = erasure->record;
        step_submit(engine, erasure, batch_new(OPS_BESIDE, STEP_BYTES_MAX));
    } else if (!dead_exports_any_out(engine)) { /* what these become is behind the place where a pass begins */
        question_ask(engine, &erasure->question, read_step, step_answered);
    }
}

/* One at a time, a step each: one that waits for who is being sent, or has much to look at, holds up no other. */
static void take_turn(struct engine *engine)
{
    struct erasures *erasures = &engine->erasures;
    instant now = engine_now(engine);
    if (!erasures->first || erasures->out || erasures->first->question.out)
        return;
    struct erasure **link = &erasures->first;
    /* Who should look more than a minute from now looks at once: the clock was put back. */
    while (*link && (*link)->look_at > now && (*link)->look_at <= instant_add(now, MINUTE_MS))
        link = &(*link)->next;
    struct erasure *erasure = *link;
    if (!erasure)
        return;
    *link = erasure->next;
    erasure->next = erasures->first;
    erasures->first = erasure;
    step(engine, erasure);
}

/* ---- loading ---- */

static enum status read_active(struct store_read *read, struct store_reader *reader, struct error *err)
{
    struct erasures *erasures = (struct erasures *)read;
    enum status status = reader->ops->reader_saved_list(reader, SPACE_ERASURE_ACTIVE, SLICE(""), ERASURES_MAX, &read->memory,
                                                        &erasures->active, &erasures->active_count, err);
    if (status != STATUS_OK)
        return status;
    erasures->values = arena_alloc_array(&read->memory, erasures->active_count + 1, sizeof *erasures->values);
    if (!erasures->values)
        return error_set(err, STATUS_NO_MEMORY, "no memory for erasures");
    for (size_t i = 0; i < erasures->active_count && status == STATUS_OK; i++)
        status = reader->ops->reader_saved(reader, SPACE_ERASURE, erasures->active[i].name, &read->memory,
                                           &erasures->values[i], err);
    return status;
}

static void active_read(struct question *question)
{
    struct engine *engine = question->engine;
    struct erasures *erasures = &engine->erasures;
    struct erasure_record record;
    struct error error = question->read.error;
    if (question->read.status != STATUS_OK) {
        erasures->load_at = instant_add(engine_now(engine), AGAIN_MS);
        log_event(LOG_ERROR, "erasures_not_loaded", FIELD_CSTR("error", error.text));
        return;
    }
    erasures->loaded = true;
    for (size_t i = erasures->active_count; i-- > 0;) {
        if (find(engine, erasures->active[i].name))
            continue;
        if (erasure_record_read(erasures->values[i], &record, &error) != STATUS_OK || !add(engine, &record, &error))
            log_event(LOG_ERROR, "erasure_not_loaded", FIELD_TEXT("erasure", erasures->active[i].name),
                      FIELD_CSTR("error", error.text));
    }
    engine_wake(engine);
}

/* Another is the steward now, or will be: what is not under way is forgotten here. */
static void forget_all(struct engine *engine)
{
    struct erasures *erasures = &engine->erasures;
    struct error error;
    error_set(&error, STATUS_CONFLICT, "this node is not the steward any more");
    struct erasure **link = &erasures->first;
    while (*link) {
        struct erasure *erasure = *link;
        bool is_out = erasures->out && erasures->out->context == erasure;
        saved_waits_fail(&erasure->waiting, &error);
        if (erasure->question.out || is_out) {
            link = &erasure->next;
            continue;
        }
        *link = erasure->next;
        erasures->count--;
        erasure_free(erasure);
    }
    erasures->loaded = false;
}

static bool forget_old(struct engine *engine, struct slice space, struct slice name)
{
    return find(engine, name) || saved_forget(engine, space, name);
}

void erasures_run(struct engine *engine)
{
    struct erasures *erasures = &engine->erasures;
    if (!engine_is_steward(engine)) {
        forget_all(engine);
        return;
    }
    if (engine_must_wait(engine))
        return;
    if (!erasures->loaded && !erasures->load.out && erasures->load_at <= engine_now(engine))
        question_ask(engine, &erasures->load, read_active, active_read);
    saved_trim(engine, &erasures->trim, SPACE_ERASURE, forget_old);
    take_turn(engine);
}

instant erasures_next(const struct engine *engine)
{
    const struct erasures *erasures = &engine->erasures;
    if (!engine_is_steward(engine))
        return INSTANT_NONE;
    if (!erasures->loaded && !erasures->load.out)
        return erasures->load_at;
    instant next = INSTANT_NONE;
    bool waits = !erasures->first || erasures->out || erasures->first->question.out;
    for (const struct erasure *erasure = erasures->first; erasure && !waits; erasure = erasure->next)
        next = instant_earlier(next, erasure->look_at);
    return next;
}

size_t erasures_under_way(const struct engine *engine)
{
    return engine->erasures.out != NULL;
}

void erasures_release(struct engine *engine)
{
    assert(!engine->erasures.out);
    engine->stopping = true;
    forget_all(engine);
}

/* ---- orders ---- */

static void id_make(struct engine *engine, struct erasure_record *record)
{
    assert(record->id[0] == '\0' && record->started_at != INSTANT_NONE);
    struct erasures *erasures = &engine->erasures;
    char stamp[INSTANT_STAMP_BYTES + 1], number[16] = "";
    instant_stamp(record->started_at, stamp);
    erasures->begun = erasures->begun_at == record->started_at ? erasures->begun + 1 : 1;
    erasures->begun_at = record->started_at;
    do {
        if (erasures->begun > 1)
            snprintf(number, sizeof number, "-%d", erasures->begun);
        snprintf(record->id, sizeof record->id, "%s%s", stamp, number);
    } while (find(engine, slice_from(record->id)) && ++erasures->begun > 1); /* where the clock was put back */
}

static enum status room_check(const struct engine *engine, struct slice tenant, struct error *err)
{
    size_t own = 0;
    for (const struct erasure *erasure = engine->erasures.first; erasure; erasure = erasure->next)
        own += slice_equal(erasure->record.tenant, tenant);
    bool crowded = tenant.len > 0 && own >= ERASURES_TENANT_MAX;
    if (!crowded && engine->erasures.count < ERASURES_MAX)
        return STATUS_OK;
    return error_set(err, STATUS_LIMIT, "%d erasures%s wait already, which is the limit; wait for one",
                     crowded ? ERASURES_TENANT_MAX : ERASURES_MAX, crowded ? " of this tenant" : "");
}

enum status engine_erasure_begin(struct engine *engine, struct erasure_record *record, struct saved_wait *wait,
                                 struct error *err)
{
    enum status status = STATUS_OK;
    assert(record->subject.len > 0 && !record->done);
    if (!engine_is_steward(engine) || !engine->erasures.loaded)
        status = error_set(err, STATUS_CONFLICT, "this node does not run erasures at the moment; try again");
    else
        status = room_check(engine, record->tenant, err);
    if (status != STATUS_OK) {
        erasure_record_release(record);
        return status;
    }
    record->started_at = record->pass_at = engine_now(engine);
    record->ended_at = INSTANT_NONE;
    id_make(engine, record);
    struct erasure *erasure = add(engine, record, err);
    if (!erasure)
        return STATUS_INVALID;
    erasure->note = "erasure_started";
    erasure->unsaved = true;
    erasure->busy = engine->shared; /* another node may be exporting a dead letter just now: a second pass finds that */
    wait->next = NULL;
    erasure->waiting = wait;
    engine_wake(engine);
    return STATUS_OK;
}
