/*
 * What is kept for as long as the trail goes after that: notes whose names begin with a time.
 */
#include "base/log.h"
#include "engine/loop.h"
#include "engine/saved/trim.h"

enum {
    TRIM_EVERY_MS = HOUR_MS,
    TRIM_NOTES_MAX = 100,             /* looked at each time */
    TRIM_NOTES_AGAIN_MS = MINUTE_MS,  /* when there may be more than that */
};

bool saved_forget(struct engine *engine, struct slice space, struct slice name)
{
    struct store_op *op = outgoing_add(engine, NULL, NULL);
    if (!op)
        return false;
    op->kind = OP_SAVE;
    op->save = (struct op_save){ .space = space, .name = arena_copy(outgoing_memory(engine), name), .value = SLICE("") };
    if (op->save.name.data)
        return true;
    outgoing_drop_last(engine);
    return false;
}

void saved_trim(struct engine *engine, struct slice space, instant *trim_at,
               bool (*forget)(struct engine *, struct slice name))
{
    instant now = engine_now(engine);
    int64_t keep_ms = engine->config->retention_audit_ms;
    char stamp[INSTANT_STAMP_BYTES + 1];
    struct arena memory = { 0 };
    struct error error;
    struct saved *old = NULL;
    size_t count = 0;
    if (keep_ms <= 0 || now < *trim_at || engine_must_wait(engine))
        return;
    instant_stamp(now - keep_ms, stamp);
    if (engine->reader->ops->reader_saved_list(engine->reader, space, slice_from(stamp), TRIM_NOTES_MAX, &memory, &old,
                                              &count, &error) != STATUS_OK)
        log_event(LOG_ERROR, "trim_failed", FIELD_TEXT("space", space), FIELD_CSTR("error", error.text));
    *trim_at = instant_add(now, count == TRIM_NOTES_MAX ? TRIM_NOTES_AGAIN_MS : TRIM_EVERY_MS);
    for (size_t i = 0; i < count && forget(engine, old[i].name); i++)
        ; /* what no longer fits the batch goes next time */
    arena_release(&memory);
}
