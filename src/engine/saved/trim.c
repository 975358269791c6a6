/*
 * What is retained for a time, mostly as long as the trail, goes after that: notes whose names begin with a time.
 */
#include "base/log.h"
#include "engine/loop.h"
#include "engine/saved/trim.h"

#include <assert.h>

enum {
    TRIM_EVERY_MS = HOUR_MS,
    TRIM_NOTES_MAX = 100,             /* looked at each time */
    TRIM_NOTES_AGAIN_MS = MINUTE_MS,  /* when there may be more than that */
};

bool saved_forget(struct engine *engine, struct slice space, struct slice name)
{
    return outgoing_save(engine, NULL, NULL, space, name, SLICE(""));
}

static enum status read_old(struct store_read *read, struct store_reader *reader, struct error *err)
{
    struct saved_trim *trim = (struct saved_trim *)read;
    assert(trim->forget && trim->space.len > 0);
    return reader->ops->reader_saved_list(reader, trim->space, slice_from(trim->before), trim->at_once, &read->memory,
                                          &trim->old, &trim->count, err);
}

static void old_read(struct question *question)
{
    struct saved_trim *trim = (struct saved_trim *)question;
    struct engine *engine = question->engine;
    bool failed = question->read.status != STATUS_OK;
    size_t count = failed ? 0 : trim->count;
    assert(count <= trim->at_once);
    if (failed)
        log_event(LOG_ERROR, "trim_failed", FIELD_TEXT("space", trim->space),
                  FIELD_CSTR("error", question->read.error.text));
    if (count == trim->at_once) {
        trim->at = instant_add(engine_now(engine), trim->again_ms);
        engine->ports.wake_at(engine->ports.context, trim->at);
    }
    for (size_t i = 0; i < count && !engine->stopping && trim->forget(engine, trim->space, trim->old[i].name); i++)
        ; /* what no longer fits the batch goes next time */
}

void saved_trim_by(struct engine *engine, struct saved_trim *trim, const struct trim_rule *rule)
{
    instant now = engine_now(engine);
    if (rule->keep_ms <= 0 || now < trim->at || trim->question.out || engine_must_wait(engine))
        return;
    trim->at = instant_add(now, TRIM_EVERY_MS);
    trim->space = rule->space;
    trim->forget = rule->forget;
    trim->at_once = rule->at_once;
    trim->again_ms = rule->again_ms;
    instant_stamp(now - rule->keep_ms, trim->before);
    question_ask(engine, &trim->question, read_old, old_read);
}

void saved_trim(struct engine *engine, struct saved_trim *trim, struct slice space,
                bool (*forget)(struct engine *engine, struct slice space, struct slice name))
{
    saved_trim_by(engine, trim, &(struct trim_rule){ .space = space, .keep_ms = engine->config->retention_audit_ms,
                                                     .at_once = TRIM_NOTES_MAX, .again_ms = TRIM_NOTES_AGAIN_MS,
                                                     .forget = forget });
}
