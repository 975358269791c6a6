/*
 * The engine and errors.h: what is counted when, and keeping it in the store.
 */
#include "base/log.h"
#include "engine/loop.h"

#include <assert.h>

/* Whether the job's last failure was one that no rule knows; a hold and a question leave other classes behind. */
static bool last_was_unknown(const struct policy *policy, const struct job *job)
{
    return job->last_class == policy->unknown && job->last_error.len > 0 &&
           classify(policy->classifier, (struct evidence){ job->last_code, job->last_error }).outcome == OUTCOME_NONE;
}

static void learn_delivered(struct engine *engine, const struct policy *policy, const struct job *job)
{
    struct fingerprint fingerprint;
    if (!last_was_unknown(policy, job))
        return;
    fingerprint_make(classifier_namespace(policy->classifier), job->last_code, job->last_error, &fingerprint);
    errors_recovered(engine->errors.counted, job->destination, &fingerprint);
}

static void learn_failed(struct engine *engine, const struct policy *policy, const struct job *job,
                         const struct op_settle *settle, const struct settlement *settlement)
{
    assert(!settlement->decision.known);
    struct fingerprint fingerprint;
    fingerprint_make(classifier_namespace(policy->classifier), settle->code, settle->error, &fingerprint);
    errors_seen(engine->errors.counted, job->destination, &fingerprint, engine_now(engine));
    /* With `unknown: permanent` it dies untried: that is no evidence. */
    if (settlement->dead && settlement->decision.verdict != VERDICT_PERMANENT && job->attempts > 1)
        errors_gave_up(engine->errors.counted, job->destination, &fingerprint);
}

void engine_learn(struct engine *engine, const struct job *job, const struct op_settle *settle,
                  const struct settlement *settlement)
{
    bool delivered = settlement->decision.verdict == VERDICT_COMPLETE;
    if (delivered ? job->attempts < 2 : settlement->decision.known) /* after a redrive the failures before it do not count */
        return;
    const struct dest *dest = dest_find(engine, job->destination);
    if (!dest || !dest->config)
        return;
    if (delivered)
        learn_delivered(engine, &dest->config->policy, job);
    else
        learn_failed(engine, &dest->config->policy, job, settle, settlement);
}

/* ---- for people ---- */

static void report(const struct engine *engine, const struct known_error *error, struct error_report *ret_report)
{
    struct slice name = slice_from(error->name);
    assert(name.len > FINGERPRINT_BYTES + 1);
    name.len -= FINGERPRINT_BYTES + 1;
    const struct dest *dest = dest_find(engine, name);
    struct classification found = { .outcome = OUTCOME_NONE };
    /* What a rule needs of the text is in the sample, unless it is about what was masked. */
    if (dest && dest->config)
        found = classify(dest->config->policy.classifier,
                         (struct evidence){ slice_from(error->fingerprint.code), slice_from(error->fingerprint.sample) });
    *ret_report = (struct error_report){ .destination = name,
                                         .fingerprint = error->fingerprint,
                                         .learning = error->learning,
                                         .first_at = error->first_at,
                                         .last_at = error->last_at,
                                         .known_as = found.outcome,
                                         .rule = found.rule };
}

enum status engine_errors(const struct engine *engine, struct slice destination, size_t max, struct arena *memory,
                          struct error_report **ret_reports, size_t *ret_count)
{
    const struct known_error **list;
    size_t count;
    if (errors_list(engine->errors.counted, destination, max, memory, &list, &count) != STATUS_OK)
        return STATUS_NO_MEMORY;
    struct error_report *reports = arena_alloc_array(memory, count + 1, sizeof *reports);
    for (size_t i = 0; i < count && reports; i++) {
        report(engine, list[i], &reports[i]);
        reports[i].destination = arena_copy(memory, reports[i].destination);
        reports[i].rule = arena_copy(memory, reports[i].rule);
        if (!reports[i].destination.data || !reports[i].rule.data)
            return STATUS_NO_MEMORY;
    }
    if (!reports)
        return STATUS_NO_MEMORY;
    *ret_reports = reports;
    *ret_count = count;
    return STATUS_OK;
}

size_t engine_forget_error(struct engine *engine, struct slice destination, struct slice fingerprint)
{
    size_t count = errors_forget(engine->errors.counted, destination, fingerprint);
    if (count == 0) /* somebody asks again, because it could not be written */
        count = errors_forgotten(engine->errors.counted, destination, fingerprint);
    if (count > 0)
        saved_waits_changed(&engine->errors.forgets);
    return count;
}

void engine_await_forgotten(struct engine *engine, struct saved_wait *wait)
{
    bool is_written = !engine->errors.out && errors_to_remove(engine->errors.counted) == 0; /* the store never had it */
    if (is_written)
        engine->errors.forgets.saved = engine->errors.forgets.changes;
    saved_waits_add(&engine->errors.forgets, wait, !is_written);
    engine->errors.at = engine_now(engine);
    engine_wake(engine);
}

/* ---- in the store ---- */

/* The errors that a batch writes, in the order of its operations. */
struct keeping {
    struct engine *engine;
    struct known_error *errors[ERRORS_BATCH_MAX];
    size_t count;
    uint64_t forgets; /* all up to this one are done by it; 0: some follow */
};

/* One that was forgotten while it was being written is to be taken out only now. */
static void tell_forgotten(struct engine *engine, const struct keeping *keeping, const struct error *result)
{
    bool more = errors_to_remove(engine->errors.counted) > 0;
    bool ends_all = result->status != STATUS_OK || !more; /* nobody is to wait for another try */
    saved_waits_back(&engine->errors.forgets, ends_all ? engine->errors.forgets.changes : keeping->forgets, result, more);
    if (engine->errors.forgets.first)
        engine->errors.at = engine_now(engine);
}

static void on_saved(struct batch *batch)
{
    struct keeping *keeping = batch->context;
    struct engine *engine = keeping->engine;
    assert(engine->errors.out && engine->out.batches > 0 && batch->count <= keeping->count);
    engine->out.batches--;
    engine->errors.out = false;
    struct error result = batch->error;
    result.status = batch->status;
    for (size_t i = 0; i < keeping->count; i++) {
        bool written = batch->status == STATUS_OK && i < batch->count && batch->ops[i].status == STATUS_OK;
        errors_written(engine->errors.counted, keeping->errors[i], written, engine->stopping);
        if (!written && result.status == STATUS_OK)
            error_set(&result, STATUS_NO_MEMORY, "not all of them could be written");
    }
    tell_forgotten(engine, keeping, &result);
    if (batch->status != STATUS_OK)
        log_event(LOG_WARN, "errors_not_kept", FIELD_CSTR("status", status_name(batch->status)),
                  FIELD_CSTR("error", batch->error.text), FIELD_INT("errors", (int64_t)keeping->count));
    batch_free(batch);
    engine_wake(engine);
}

/* Without memory for its texts the rest of the batch comes back unwritten. */
static void fill_batch(struct keeping *keeping, struct batch *batch)
{
    assert(batch->count == 0 && keeping->count <= ERRORS_BATCH_MAX);
    for (size_t i = 0; i < keeping->count; i++) {
        const struct known_error *error = keeping->errors[i];
        struct slice name = arena_copy(&batch->memory, slice_from(error->name));
        struct slice value = error->table ? errors_value(error, &batch->memory) : SLICE("");
        if (!name.data || !value.data)
            return;
        batch_save(batch, SPACE_ERRORS, name, value);
    }
}

void errors_save(struct engine *engine)
{
    instant now = engine_now(engine);
    if (engine->errors.out || errors_unwritten(engine->errors.counted) == 0 || (!engine->stopping &&
                                                                                now < engine->errors.at))
        return;
    engine->errors.at = instant_add(now, ERRORS_SAVE_EVERY_MS);
    size_t unwritten = errors_unwritten(engine->errors.counted);
    struct batch *batch = batch_new(unwritten < ERRORS_BATCH_MAX ? unwritten : ERRORS_BATCH_MAX, SIZE_MAX / 2);
    struct keeping *keeping = batch ? arena_alloc(&batch->memory, sizeof *keeping) : NULL;
    if (!keeping) {
        struct error error;
        error_set(&error, STATUS_NO_MEMORY, "no memory for the batch");
        saved_waits_fail(&engine->errors.forgets.first, &error);
        batch_free(batch);
        return; /* asked again when it is due again */
    }
    keeping->engine = engine;
    keeping->count = errors_take(engine->errors.counted, keeping->errors, ERRORS_BATCH_MAX);
    keeping->forgets = errors_to_remove(engine->errors.counted) == 0 ? engine->errors.forgets.changes : 0;
    saved_waits_out(&engine->errors.forgets);
    fill_batch(keeping, batch);
    assert(keeping->count > 0);
    batch->context = keeping;
    batch->done = on_saved;
    batch->reply_to = engine->mailbox;
    engine->errors.out = true;
    engine->out.batches++;
    if (batch->count == 0) {
        batch->status = error_set(&batch->error, STATUS_NO_MEMORY, "no memory for the batch");
        on_saved(batch);
        return;
    }
    engine->ports.submit(engine->ports.context, batch);
}
