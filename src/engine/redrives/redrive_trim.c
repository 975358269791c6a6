/*
 * What redrives leave behind goes in time: records and counts with the trail, payloads as they were before while somebody
 * may want them back. All their names begin with the redrive's id, and that with a time.
 */
#include "engine/loop.h"

#include <assert.h>

enum {
    COPIES_AT_ONCE = 16, /* payloads that are in memory for it */
    COPIES_AGAIN_MS = 100,
};

/* What has not ended stays. */
static bool forget(struct engine *engine, struct slice space, struct slice name)
{
    assert(name.len > 0);
    size_t end = slice_find(name, 'Z'); /* of its stamp, which has a point, too */
    while (end < name.len && name.data[end] != '.')
        end++;
    return redrive_find(engine, (struct slice){ name.data, end }) || saved_forget(engine, space, name);
}

void redrives_trim(struct engine *engine)
{
    struct redrives *redrives = &engine->redrives;
    assert(engine->config->retention_undo_ms >= 0);
    const struct trim_rule payloads = { .space = SPACE_REDRIVE_PAYLOAD, .keep_ms = engine->config->retention_undo_ms,
                                        .at_once = COPIES_AT_ONCE, .again_ms = COPIES_AGAIN_MS, .forget = forget };
    saved_trim(engine, &redrives->trim_records, SPACE_REDRIVE, forget);
    saved_trim(engine, &redrives->trim_counts, SPACE_TALLY, forget);
    saved_trim_by(engine, &redrives->trim_payloads, &payloads);
}
