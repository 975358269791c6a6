#include "guests/forward.h"

#include "base/json.h"
#include "base/log.h"
#include "core/decision/job.h"
#include "guests/forward_event.h"
#include "store/trail_place.h"

#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    PAGE_EVENTS = 200,          /* at once */
    LOOK_EVERY_MS = 100,        /* at the trail, when nothing was new */
    IDLE_EVERY_MS = 1000,       /* whether a job has a callback, while nobody has */
    AGAIN_MS = 1000,            /* after a store that failed, or is full */
    PAYLOAD_BYTES_MAX = 128 * 1024,
    PLACE_VALUE_BYTES = PLACE_BYTES + 32,
};

struct forward {
    struct forward_settings settings;
    struct config *config, *next; /* `next` is the one to come, under the mutex */
    pthread_mutex_t mutex;
    struct mailbox *mailbox;
    struct store_reader *reader;
    struct trail_place after; /* everything up to it is forwarded */
    bool unsaved;   /* not all of that is saved */
    bool ours;      /* not another node's */
    bool active;    /* something is to be forwarded */
    bool callbacks; /* some job has one */
    bool answered;  /* by the writer */
    pthread_t thread;
    bool started;
    _Atomic bool stopped;
};

/* ---- the store ---- */

static void on_answered(struct batch *batch)
{
    struct forward *forward = batch->context;
    forward->answered = true;
}

/* False: it was not written. */
static bool submit(struct forward *forward, struct batch *batch)
{
    batch->reply_to = forward->mailbox;
    batch->done = on_answered;
    batch->context = forward;
    forward->answered = false;
    writer_submit(forward->settings.writer, batch);
    while (!forward->answered) { /* the writer answers everything that it was given */
        mailbox_wait(forward->mailbox, -1);
        mailbox_drain(forward->mailbox);
    }
    return batch->status == STATUS_OK;
}

static void rest(struct forward *forward, int64_t ms)
{
    if (!forward->stopped)
        mailbox_wait(forward->mailbox, (int)ms);
    mailbox_drain(forward->mailbox);
}

static bool place_save(struct forward *forward)
{
    char place[PLACE_BYTES], value[PLACE_VALUE_BYTES];
    struct batch *batch = batch_new(1, SIZE_MAX / 4);
    if (!batch)
        return false;
    trail_place_format(&forward->after, place);
    snprintf(value, sizeof value, "{\"after\":\"%s\"}", place);
    batch_save(batch, SPACE_FORWARD, SLICE("place"), slice_from(value));
    bool saved = submit(forward, batch);
    forward->unsaved = forward->unsaved && !saved;
    batch_free(batch);
    return saved;
}

/* Older programs saved a number. */
static struct trail_place place_of(struct slice value)
{
    struct trail_place place = { 0 };
    json_t *read = json_loadb(value.data, value.len, 0, NULL);
    const json_t *after = json_object_get(read, "after");
    if (json_is_integer(after) && json_integer_value(after) > 0)
        trail_place_advance(&place, json_integer_value(after));
    else if (json_is_string(after) && !trail_place_parse(slice_from(json_string_value(after)), &place))
        place = (struct trail_place){ 0 };
    json_decref(read);
    return place;
}

/* *ret_place may be NULL. */
static enum status saved_read(const struct forward *forward, struct slice name, struct trail_place *ret_place,
                              bool *ret_there, struct error *err)
{
    struct arena memory = { 0 };
    struct slice value;
    enum status status =
        forward->reader->ops->reader_saved(forward->reader, SPACE_FORWARD, name, &memory, &value, err);
    *ret_there = status == STATUS_OK;
    if (status == STATUS_OK && ret_place)
        *ret_place = place_of(value);
    arena_release(&memory);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status newest_find(const struct forward *forward, struct trail_place *ret_place, struct error *err)
{
    return trail_place_end(forward->reader, trail_place_last(&forward->after, 0), ret_place, err);
}

/* ---- jobs ---- */

/* What every job that is made here has. False: no memory. */
static bool insert_make(const struct forward *forward, const struct destination_config *destination,
                        const struct event *event, const char *id, const struct buffer *payload, struct arena *memory,
                        struct op_insert *ret_insert)
{
    instant now = forward->settings.now(forward->settings.context);
    *ret_insert = (struct op_insert){
        .destination = arena_copy(memory, slice_from(destination->name)),
        .tenant = arena_copy(memory, event->tenant),
        .id = arena_copy(memory, slice_from(id)),
        .priority = PRIORITY_NORMAL,
        .rank = rank_of(PRIORITY_NORMAL, now, destination->aging_ms),
        .run_at = now,
        .deadline = INSTANT_NONE,
        .payload = buffer_status(payload) == STATUS_OK ? arena_copy(memory, buffer_slice(payload))
                                                       : (struct slice){ NULL, 0 },
        .headers = SLICE(""),
        .metadata = SLICE(""),
        .correlation_id = SLICE(""),
        .callback = SLICE(""),
        .key = arena_copy(memory, event->job),
    };
    return ret_insert->destination.data && ret_insert->tenant.data && ret_insert->id.data && ret_insert->payload.data &&
           ret_insert->key.data;
}

static bool event_job(const struct forward *forward, const struct event_config *entry, const struct forward_event *read,
                      const struct job *job, struct batch *batch)
{
    const struct destination_config *to = config_destination(forward->config, slice_from(entry->to));
    char id[JOB_ID_BYTES_MAX + 1];
    struct buffer payload = buffer_up_to(PAYLOAD_BYTES_MAX);
    if (!to)
        return true;
    forward_event_write(&payload, entry->format, read, job);
    snprintf(id, sizeof id, "event-%" PRId64 ".%s", read->event->number, entry->name);
    struct store_op *op = &batch->ops[batch->count];
    op->kind = OP_INSERT;
    bool made = insert_make(forward, to, read->event, id, &payload, &batch->memory, &op->insert);
    op->insert.content_type = forward_content_type(entry->format);
    batch->count += made;
    buffer_release(&payload);
    return made;
}

/* Where it goes; NULL: that destination is not there any more, and nobody can be notified. */
static const struct destination_config *callback_to(const struct forward *forward, const struct job *job)
{
    json_t *callback = json_loadb(job->callback.data, job->callback.len, 0, NULL);
    const char *name = json_string_value(json_object_get(callback, "destination"));
    const struct destination_config *to = name ? config_destination(forward->config, slice_from(name)) : NULL;
    if (!to)
        log_event(LOG_WARN, "callback_lost", FIELD_TEXT("job", job->id), FIELD_CSTR("destination", name ? name : "?"),
                  FIELD_CSTR("reason", "there is no such destination any more"));
    json_decref(callback);
    return to;
}

static bool callback_job(const struct forward *forward, const struct forward_event *read, const struct job *job,
                         struct batch *batch)
{
    const struct destination_config *to = callback_to(forward, job);
    char id[JOB_ID_BYTES_MAX + 1];
    struct buffer payload = buffer_up_to(PAYLOAD_BYTES_MAX);
    if (!to)
        return true;
    forward_callback_write(&payload, read, job);
    snprintf(id, sizeof id, "callback-%" PRId64, read->event->number);
    struct store_op *op = &batch->ops[batch->count];
    op->kind = OP_INSERT;
    bool made = insert_make(forward, to, read->event, id, &payload, &batch->memory, &op->insert);
    op->insert.content_type = SLICE("application/json");
    batch->count += made;
    buffer_release(&payload);
    return made;
}

/* The jobs of one event; STATUS_NO_MEMORY, or what the store says. */
static enum status event_tell(struct forward *forward, const struct event *event, struct arena *memory, struct batch *batch,
                              struct error *err)
{
    struct forward_event read;
    struct job job;
    bool ends = forward_event_ends(event->type), there = false, made = true;
    if (event->job.len == 0)
        return STATUS_OK;
    enum status status = forward_event_read(event, memory, &read);
    if (status == STATUS_OK && ends && (forward->callbacks || forward->config->event_count > 0)) {
        status = forward->reader->ops->reader_job(forward->reader, event->tenant, event->job, false, memory, &job, err);
        there = status == STATUS_OK;
        status = status == STATUS_NOT_FOUND ? STATUS_OK : status;
    }
    for (size_t i = 0; status == STATUS_OK && made && i < forward->config->event_count; i++)
        if (forward_event_wanted(forward->config, &forward->config->events[i], &read))
            made = event_job(forward, &forward->config->events[i], &read, there ? &job : NULL, batch);
    if (status == STATUS_OK && made && ends && there && job.callback.len > 0)
        made = callback_job(forward, &read, &job, batch);
    return status == STATUS_OK && !made ? STATUS_NO_MEMORY : status;
}

/*
 * Another's job has the id, or this one's, said otherwise before a crash: whoever may add jobs could keep events from going
 * out, so it goes by an id that nobody can know. False: no memory.
 */
static bool id_change(const struct forward *forward, struct batch *batch, struct op_insert *insert)
{
    char id[JOB_ID_BYTES_MAX + 1];
    snprintf(id, sizeof id, "%.*s-%" PRId64, SLICE_ARG(insert->id), forward->settings.now(forward->settings.context));
    struct slice copy = arena_copy(&batch->memory, slice_from(id));
    if (copy.data)
        insert->id = copy;
    return copy.data != NULL;
}

/* Those that were refused stay, to be given again. A tenant's share does not hold up others. True: there is no room. */
static bool keep_refused(const struct forward *forward, struct batch *batch)
{
    size_t left = 0;
    bool full = false;
    for (size_t i = 0; i < batch->count; i++) {
        struct store_op *op = &batch->ops[i];
        if (op->status == STATUS_FULL) {
            op->insert.beyond_limit = op->insert.ret_tenant_full;
            full = full || !op->insert.beyond_limit;
            batch->ops[left++] = *op;
        } else if (op->status == STATUS_CONFLICT) {
            full = !id_change(forward, batch, &op->insert) || full;
            batch->ops[left++] = *op;
        } else if (op->status != STATUS_OK) {
            log_event(LOG_ERROR, "event_lost", FIELD_TEXT("job", op->insert.id),
                      FIELD_CSTR("error", status_name(op->status)));
        }
    }
    batch->count = left;
    return full;
}

/* Until all are stored; false: it was stopped before. */
static bool jobs_store(struct forward *forward, struct batch *batch)
{
    while (batch->count > 0 && !forward->stopped) {
        bool waits = !submit(forward, batch) || keep_refused(forward, batch);
        if (waits)
            rest(forward, AGAIN_MS);
    }
    return batch->count == 0;
}

/* ---- the trail ---- */

/* A page of it; false: nothing was new, or it must be read again later. */
static bool page_tell(struct forward *forward, struct error *err)
{
    struct arena memory = { 0 };
    struct event *events;
    size_t count = 0, each = forward->config->event_count + 1;
    enum status status =
        trail_place_read(forward->reader, &forward->after, PAGE_EVENTS, &memory, &events, &count, err);
    struct batch *batch = status == STATUS_OK && count > 0 ? batch_new(count * each, SIZE_MAX / 4) : NULL;
    for (size_t i = 0; batch && status == STATUS_OK && i < count; i++)
        status = event_tell(forward, &events[i], &memory, batch, err);
    bool stored = batch && status == STATUS_OK && jobs_store(forward, batch);
    for (size_t i = 0; i < count && stored; i++)
        trail_place_advance(&forward->after, events[i].number);
    forward->unsaved = forward->unsaved || stored;
    if (status != STATUS_OK)
        log_event(LOG_WARN, "events_wait", FIELD_CSTR("reason", status_name(status)));
    batch_free(batch);
    arena_release(&memory);
    return stored;
}

static void config_take(struct forward *forward)
{
    pthread_mutex_lock(&forward->mutex);
    if (forward->next) {
        config_unref(forward->config);
        forward->config = forward->next;
        forward->next = NULL;
    }
    pthread_mutex_unlock(&forward->mutex);
}

/*
 * While nothing is to be forwarded, the place goes along with the trail. It is read before it is asked whether a job has a
 * callback: so the first that has one is behind it.
 */
static void idle(struct forward *forward, struct error *err)
{
    struct trail_place newest;
    enum status status = newest_find(forward, &newest, err);
    if (status == STATUS_OK)
        status = saved_read(forward, SLICE("callbacks"), NULL, &forward->callbacks, err);
    forward->active = status == STATUS_OK && (forward->callbacks || forward->config->event_count > 0);
    if (status == STATUS_OK && !forward->active)
        forward->after = newest;
    if (forward->active && !place_save(forward))
        forward->active = false; /* again in a moment */
    if (!forward->active)
        rest(forward, IDLE_EVERY_MS);
}

static void look_for_callbacks(struct forward *forward, struct error *err)
{
    bool there = false;
    if (!forward->callbacks && saved_read(forward, SLICE("callbacks"), NULL, &there, err) == STATUS_OK)
        forward->callbacks = there;
}

/* From where an earlier one stopped; else from the newest, or from the first if a job may have a callback already. */
static enum status place_find(struct forward *forward, struct error *err)
{
    bool there = false;
    forward->after = (struct trail_place){ 0 };
    enum status status = saved_read(forward, SLICE("place"), &forward->after, &there, err);
    if (status == STATUS_OK)
        status = saved_read(forward, SLICE("callbacks"), NULL, &forward->callbacks, err);
    forward->unsaved = !there;
    forward->active = there && (forward->callbacks || forward->config->event_count > 0);
    if (status == STATUS_OK && !forward->active && !forward->callbacks)
        status = newest_find(forward, &forward->after, err);
    if (status == STATUS_OK && !there && forward->config->event_count > 0)
        forward->active = place_save(forward); /* else a crash before it is saved would begin anew, at a later one */
    return status;
}

/* Of nodes that share a store one forwards: who takes it over goes on where the other stopped. */
static bool is_ours(struct forward *forward, struct error *err)
{
    const struct forward_settings *settings = &forward->settings;
    bool ours = !settings->is_ours || settings->is_ours(settings->context);
    if (ours && !forward->ours && place_find(forward, err) != STATUS_OK) {
        log_event(LOG_WARN, "events_wait", FIELD_CSTR("reason", err->text));
        ours = false;
    }
    forward->ours = ours;
    return ours;
}

static void *work(void *context)
{
    struct forward *forward = context;
    while (!forward->stopped) {
        struct error err;
        config_take(forward);
        if (!is_ours(forward, &err)) {
            rest(forward, IDLE_EVERY_MS);
            continue;
        }
        if (!forward->active) {
            idle(forward, &err);
            continue;
        }
        look_for_callbacks(forward, &err);
        bool more = page_tell(forward, &err);
        if (forward->unsaved)
            (void)place_save(forward); /* else it is read once more after a crash, and stored once */
        if (!more)
            rest(forward, LOOK_EVERY_MS);
    }
    return NULL;
}

/* ---- start and end ---- */

enum status forward_start(const struct forward_settings *settings, struct forward **ret_forward, struct error *err)
{
    struct forward *forward = calloc(1, sizeof *forward);
    *ret_forward = NULL;
    if (!forward)
        return error_set(err, STATUS_NO_MEMORY, "no memory to follow the trail");
    forward->settings = *settings;
    forward->config = config_ref(settings->config);
    pthread_mutex_init(&forward->mutex, NULL);
    enum status status = mailbox_new(&forward->mailbox, err);
    if (status == STATUS_OK)
        status = settings->store->ops->reader(settings->store, &forward->reader, err);
    if (status == STATUS_OK && !settings->is_ours) {
        status = place_find(forward, err);
        forward->ours = status == STATUS_OK;
    }
    if (status == STATUS_OK && pthread_create(&forward->thread, NULL, work, forward) != 0)
        status = error_set(err, STATUS_NO_MEMORY, "cannot start a thread that follows the trail");
    forward->started = status == STATUS_OK;
    if (status == STATUS_OK)
        *ret_forward = forward;
    else
        forward_stop(forward);
    return status;
}

void forward_reload(struct forward *forward, struct config *config)
{
    if (!forward)
        return;
    pthread_mutex_lock(&forward->mutex);
    config_unref(forward->next);
    forward->next = config_ref(config);
    pthread_mutex_unlock(&forward->mutex);
}

void forward_cease(struct forward *forward)
{
    if (!forward)
        return;
    forward->stopped = true;
    if (forward->mailbox)
        mailbox_wake(forward->mailbox);
}

void forward_stop(struct forward *forward)
{
    if (!forward)
        return;
    forward_cease(forward);
    if (forward->started)
        pthread_join(forward->thread, NULL);
    if (forward->reader)
        forward->reader->ops->reader_close(forward->reader);
    mailbox_free(forward->mailbox);
    pthread_mutex_destroy(&forward->mutex);
    config_unref(forward->config);
    config_unref(forward->next);
    free(forward);
}
