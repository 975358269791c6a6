#include "engine/alerts/letters.h"

#include "base/log.h"
#include "engine/alerts/notify.h"
#include "engine/loop.h"
#include "engine/settlement.h"

#include <assert.h>
#include <stdlib.h>

struct letter {
    struct arena memory; /* of the operation's texts */
    struct store_op op;
    struct letter *next;
};

static void letter_free(struct letter *letter)
{
    arena_release(&letter->memory);
    free(letter);
}

static void append(struct engine *engine, struct letter *letter)
{
    assert((engine->letters.first == NULL) == (engine->letters.count == 0));
    engine->letters.count++;
    struct letter **last = &engine->letters.first;
    if (engine->letters.first)
        last = &engine->letters.last->next;
    letter->next = NULL;
    *last = letter;
    engine->letters.last = letter;
}

static void tell(struct engine *engine, const struct notify_config *notify, const struct dead_letter *dead)
{
    assert(notify->each);
    struct letter *letter = calloc(1, sizeof *letter);
    enum status status = STATUS_NO_MEMORY;
    if (letter) {
        letter->op.kind = OP_INSERT;
        status = letter_job(engine->config, notify, dead, engine_now(engine), &letter->memory, &letter->op.insert);
    }
    if (status == STATUS_OK) {
        append(engine, letter);
        return;
    }
    log_event(LOG_ERROR, "notify_refused", FIELD_TEXT("job", dead->job->id), FIELD_CSTR("status", status_name(status)));
    if (letter)
        letter_free(letter);
}

static void tell_all(struct engine *engine, const struct dest *dest, const struct dead_letter *dead)
{
    if (!engine->alerts.book || !dest->config || dest->config->internal || slice_equal(dead->job->tenant, NOTIFY_TENANT))
        return;
    for (size_t i = 0; i < engine->config->notify_count; i++)
        if (letter_wants(&engine->config->notify[i], dead))
            tell(engine, &engine->config->notify[i], dead);
}

void letters_job_dead(struct engine *engine, const struct dest *dest, const struct job *job, const struct op_settle *settle,
                      const struct settlement *settlement)
{
    assert(settlement->dead == (settle->event == EVENT_GIVE_UP || settle->event == EVENT_EXPIRE));
    const struct dead_letter dead = { .job = job, .destination = slice_from(dest->name), .dead_code = settle->dead_code,
                                      .code = settle->code, .error = settle->error, .rule = settlement->decision.rule };
    if (settlement->dead)
        tell_all(engine, dest, &dead);
}

void letters_job_expired(struct engine *engine, const struct job *job)
{
    const struct dest *dest = dest_find(engine, job->destination);
    const struct dead_letter dead = { .job = job, .destination = job->destination, .dead_code = job->dead_code,
                                      .code = job->last_code, .error = job->last_error, .rule = SLICE("") };
    if (dest)
        tell_all(engine, dest, &dead);
}

bool letters_wanted(const struct engine *engine)
{
    bool wanted = false;
    for (size_t i = 0; i < engine->config->notify_count && !wanted; i++)
        wanted = engine->config->notify[i].each;
    return wanted;
}

static void letter_written(const struct op_result *result)
{
    struct engine *engine = result->engine;
    struct letter *letter = result->context;
    assert(result->op->kind == OP_INSERT && letter->op.kind == OP_INSERT);
    enum status batch_status = result->batch->status, op_status = result->op->status;
    if (batch_status != STATUS_OK && !engine->stopping) { /* with its job's settlement it is tried again */
        append(engine, letter);
        return;
    }
    if (batch_status != STATUS_OK || op_status != STATUS_OK)
        log_event(LOG_ERROR, "notify_refused", FIELD_TEXT("job", letter->op.insert.id),
                  FIELD_CSTR("status", status_name(batch_status != STATUS_OK ? batch_status : op_status)));
    letter_free(letter);
}

void letters_write(struct engine *engine)
{
    while (engine->letters.first && !engine_must_wait(engine)) {
        struct letter *letter = engine->letters.first;
        struct store_op *op = outgoing_add(engine, letter_written, letter);
        if (!op)
            return;
        *op = letter->op;
        assert(engine->letters.count > 0);
        engine->letters.first = letter->next;
        engine->letters.count--;
    }
}

void letters_free(struct engine *engine)
{
    while (engine->letters.first) {
        struct letter *next = engine->letters.first->next;
        letter_free(engine->letters.first);
        engine->letters.first = next;
    }
}
