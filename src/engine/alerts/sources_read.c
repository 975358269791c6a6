#include "engine/alerts/sources_read.h"

#include "engine/alerts/alert_book.h"
#include "engine/loop.h"
#include "node/source_board.h"

#include <assert.h>

enum { SOURCE_AWAY_MS = MINUTE_MS }; /* a restart is no alert */

/* The reason's text is in `out`, of which one or several sources add theirs. */
static void append_reason(struct buffer *out, const struct source_figures *source, const char *text)
{
    if (out->len > 0)
        buffer_append_text(out, "; ");
    buffer_printf(out, "%s: %s", source->name, text);
}

static bool read_one(struct engine *engine, enum alert_kind kind, const struct alert_reading *reading,
                     const struct buffer *reason)
{
    assert(kind < ALERT_KIND_COUNT && reading->limit > 0);
    const struct alert_subject subject = { .kind = kind, .tenant = SLICE(""), .reason = buffer_slice(reason) };
    return alert_read(engine, &subject, reading);
}

static void read_away(struct engine *engine, const struct source_figures *sources, size_t count)
{
    instant now = engine_now(engine);
    int64_t longest = 0;
    struct buffer reason = buffer_up_to(ALERT_REASON_BYTES_MAX);
    for (size_t i = 0; i < count; i++) {
        int64_t away_ms = sources[i].state == SOURCE_AWAY && now > sources[i].since ? now - sources[i].since : 0;
        longest = away_ms > longest ? away_ms : longest;
        if (away_ms >= SOURCE_AWAY_MS)
            append_reason(&reason, &sources[i], sources[i].reason);
    }
    const struct alert_reading reading = { .watched = count > 0, .value = longest < SOURCE_AWAY_MS ? 0 : (double)longest,
                                           .limit = SOURCE_AWAY_MS };
    read_one(engine, ALERT_SOURCE_AWAY, &reading, &reason);
    buffer_release(&reason);
}

/* S2-077, S2-078: from the highest down, as of the store. */
static void read_memory(struct engine *engine, const struct source_figures *sources, size_t count)
{
    static const struct {
        enum alert_kind kind;
        double limit;
    } levels[] = { { ALERT_REDIS_NEARLY_FULL, 0.9 }, { ALERT_REDIS_FILLING, 0.8 } };
    double most = 0;
    bool higher = false;
    struct buffer reason = buffer_up_to(ALERT_REASON_BYTES_MAX);
    for (size_t i = 0; i < count; i++) {
        double share = redis_health_share(&sources[i].redis);
        most = share > most ? share : most;
        if (share > levels[1].limit)
            append_reason(&reason, &sources[i], "trim its streams, review retention, or raise maxmemory");
    }
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        const struct alert_reading reading = { .watched = count > 0, .excused = higher, .value = most,
                                               .limit = levels[i].limit };
        read_one(engine, levels[i].kind, &reading, &reason);
        higher |= (engine->alerts.book->active & UINT64_C(1) << levels[i].kind) != 0;
    }
    buffer_release(&reason);
}

static void read_settings(struct engine *engine, const struct source_figures *sources, size_t count)
{
    unsigned risks = 0;
    struct buffer reason = buffer_up_to(ALERT_REASON_BYTES_MAX);
    for (size_t i = 0; i < count; i++)
        for (int risk = 0; risk < REDIS_RISK_COUNT; risk++)
            if (sources[i].redis.risks & REDIS_RISKS_LOSS & 1u << risk) {
                append_reason(&reason, &sources[i], redis_risk_text((enum redis_risk)risk));
                risks |= 1u << risk;
            }
    read_one(engine, ALERT_REDIS_UNSAFE,
             &(struct alert_reading){ .watched = count > 0, .value = risks != 0, .limit = 1 }, &reason);
    buffer_release(&reason);
}

/* How many came since the last time. A source that is gone, or a Redis that began anew, makes it less. */
static void read_came(struct engine *engine, enum alert_kind kind, int64_t now, int64_t *before, size_t count,
                      const struct buffer *reason)
{
    const struct alert_reading reading = { .watched = count > 0, .value = now > *before ? (double)(now - *before) : 0,
                                           .limit = ALERTS_QUIET_MS };
    if (read_one(engine, kind, &reading, reason))
        *before = now;
}

static void read_counts(struct engine *engine, const struct source_figures *sources, size_t count)
{
    int64_t rejected = 0, refused = 0;
    struct buffer last = buffer_up_to(ALERT_REASON_BYTES_MAX);
    struct buffer full = buffer_up_to(ALERT_REASON_BYTES_MAX);
    for (size_t i = 0; i < count; i++) {
        int64_t more = sources[i].redis.refused - sources[i].refused_before;
        rejected += sources[i].counts.rejected;
        refused += more > 0 ? more : 0;
        if (sources[i].counts.rejected > 0)
            append_reason(&last, &sources[i], sources[i].rejected_reason);
        if (more > 0)
            append_reason(&full, &sources[i], "raise its memory, or make room");
    }
    read_came(engine, ALERT_SOURCE_REJECTED, rejected, &engine->alerts.rejected, count, &last);
    read_came(engine, ALERT_REDIS_REFUSING, refused, &engine->alerts.refused, count, &full);
    buffer_release(&last);
    buffer_release(&full);
}

void sources_read(struct engine *engine)
{
    struct source_figures sources[SOURCES_MAX];
    if (!engine->alerts.sources)
        return;
    size_t count = source_board_copy(engine->alerts.sources, sources);
    bool known = true; /* what stood before a start stands until Redis was asked */
    for (size_t i = 0; i < count; i++)
        known = known && sources[i].checked;
    read_away(engine, sources, count);
    read_counts(engine, sources, count);
    if (!known)
        return;
    read_memory(engine, sources, count);
    read_settings(engine, sources, count);
}
