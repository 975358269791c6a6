/*
 * Limits of rate over a restart, and how long tenants were asked to wait.
 *
 * A limiter is one instant, until when what was sent is paid for. It is written down in the transaction of the claims that
 * moved it, once it has moved by a second or more: a crash forgets less than a second's worth of each limit. A limit of
 * up to sixty a minute, so every one by the hour, moves that far with each send and forgets nothing, however often
 * the process dies. And since in the long run a limiter moves no faster than the clock, this is about one note a
 * second of each busy limit. A stop in order writes down the rest.
 *
 * What a destination asked of one tenant is written down when it is said: it is a time, too.
 *
 * A note stays when its time is over and the next one takes its place: there are no more than two of each lane.
 */
#include "base/log.h"
#include "engine/loop.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    RATE_FORGET_MS = 1000,
    NOTE_NAME_BYTES_MAX = 512,
};

#define NAME_OF_DESTINATION "destination/"
#define NAME_OF_LANE "lane/"
#define NAME_OF_ASKED "asked/"

/* What a crash now would let through a second time. */
static int64_t unsaved_ms(const struct rate_limiter *limiter, instant saved, instant now)
{
    instant paid_until = rate_save(limiter);
    if (limiter->rate.count == 0 || paid_until == INSTANT_NONE || paid_until <= now)
        return 0;
    return paid_until - (saved != INSTANT_NONE && saved > now ? saved : now);
}

/* False: no memory. */
static bool note_fill(struct store_op *op, struct slice name, instant paid_until, struct arena *memory)
{
    assert(name.len > 0 && paid_until != INSTANT_NONE);
    char text[INSTANT_TEXT_BYTES], value[INSTANT_TEXT_BYTES + 2];
    instant_format(paid_until, text);
    snprintf(value, sizeof value, "\"%s\"", text);
    op->kind = OP_SAVE;
    op->save = (struct op_save){ .space = SPACE_RATE, .name = arena_copy(memory, name),
                                 .value = arena_copy(memory, slice_from(value)) };
    return op->save.name.data && op->save.value.data;
}

static struct slice dest_note_name(const struct dest *dest, char name[NOTE_NAME_BYTES_MAX])
{
    snprintf(name, NOTE_NAME_BYTES_MAX, NAME_OF_DESTINATION "%s", dest->name);
    return slice_from(name);
}

static struct slice lane_note_name(const struct lane_state *lane, char name[NOTE_NAME_BYTES_MAX])
{
    snprintf(name, NOTE_NAME_BYTES_MAX, NAME_OF_LANE "%" PRId64, lane->id);
    return slice_from(name);
}

/* ---- writing ---- */

static void note_written(const struct op_result *result)
{
    assert(result->op->kind == OP_SAVE);
    instant *saved = result->context;
    if (!result->applied && !result->engine->stopping) /* a stop does not wait for a store that refuses */
        *saved = INSTANT_NONE;
}

/* Into the batch that is being filled. False: it has no room, or there is no memory. */
static bool note_out(struct engine *engine, struct dest *dest, struct slice name, instant until, instant *saved)
{
    struct store_op *op = outgoing_add(engine, note_written, saved);
    if (!op)
        return false;
    if (!note_fill(op, name, until, outgoing_memory(engine))) {
        outgoing_drop_last(engine);
        return false;
    }
    dest_is_out(engine, dest);
    *saved = until;
    return true;
}

bool lane_asked(const struct lane_state *lane, instant now)
{
    return lane->asked.until > now && lane->asked.at <= now;
}

static bool keep_asked(struct engine *engine, struct lane_state *lane, int64_t forget_ms, instant now)
{
    char name[NOTE_NAME_BYTES_MAX];
    instant until = lane_asked(lane, now) ? lane->asked.until : now;
    instant known = lane->asked.saved > now ? lane->asked.saved : now;
    if ((until > known ? until - known : known - until) < forget_ms)
        return true;
    snprintf(name, sizeof name, NAME_OF_ASKED "%" PRId64, lane->id);
    return note_out(engine, lane->dest, slice_from(name), until, &lane->asked.saved);
}

void asked_keep(struct engine *engine, struct lane_state *lane)
{
    (void)!keep_asked(engine, lane, RATE_FORGET_MS, engine_now(engine)); /* without memory: again in a second */
}

static bool save_dest(struct engine *engine, struct dest *dest, int64_t forget_ms, instant now)
{
    char name[NOTE_NAME_BYTES_MAX];
    return unsaved_ms(&dest->rate.limiter, dest->rate.saved, now) < forget_ms ||
           note_out(engine, dest, dest_note_name(dest, name), rate_save(&dest->rate.limiter), &dest->rate.saved);
}

static bool save_lane(struct engine *engine, struct lane_state *lane, int64_t forget_ms, instant now)
{
    char name[NOTE_NAME_BYTES_MAX];
    return unsaved_ms(&lane->rate.limiter, lane->rate.saved, now) < forget_ms ||
           note_out(engine, lane->dest, lane_note_name(lane, name), rate_save(&lane->rate.limiter), &lane->rate.saved);
}

void rates_claimed(struct engine *engine, struct lane_state *lane, instant now)
{
    /* Without memory the next claim tries again: the notes' time has not moved. */
    (void)!save_dest(engine, lane->dest, RATE_FORGET_MS, now);
    (void)!save_lane(engine, lane, RATE_FORGET_MS, now);
}

bool rates_pay(struct engine *engine, struct lane_state *lane, instant now)
{
    struct rate_limiter *own = &lane->rate.limiter, *all = &lane->dest->rate.limiter;
    if (rate_ask(own, now, 1).room == 0 || rate_ask(all, now, 1).room == 0)
        return false;
    rate_take(own, now, 1);
    rate_take(all, now, 1);
    rates_claimed(engine, lane, now);
    return true;
}

static bool note_in(struct batch *batch, struct slice name, const struct rate_limiter *limiter, instant *saved)
{
    assert(batch->count > 0);
    if (!note_fill(&batch->ops[batch->count], name, rate_save(limiter), &batch->memory))
        return false;
    batch->count++;
    *saved = rate_save(limiter);
    return true;
}

void rates_leased(struct batch *batch, struct lane_state *lane, instant now)
{
    assert(batch->count > 0 && batch->ops[batch->count - 1].kind == OP_CLAIM);
    char name[NOTE_NAME_BYTES_MAX];
    struct dest *dest = lane->dest;
    if (unsaved_ms(&dest->rate.limiter, dest->rate.saved, now) >= RATE_FORGET_MS)
        (void)!note_in(batch, dest_note_name(dest, name), &dest->rate.limiter, &dest->rate.saved);
    if (unsaved_ms(&lane->rate.limiter, lane->rate.saved, now) >= RATE_FORGET_MS)
        (void)!note_in(batch, lane_note_name(lane, name), &lane->rate.limiter, &lane->rate.saved);
}

bool rates_save(struct engine *engine, struct dest *dest)
{
    instant now = engine_now(engine);
    if (engine_must_wait(engine) || !save_dest(engine, dest, 1, now))
        return false;
    for (struct lane_state *lane = dest->queue.first; lane; lane = lane->next)
        if (!save_lane(engine, lane, 1, now) || !keep_asked(engine, lane, 1, now))
            return false;
    return true;
}

/* ---- reading ---- */

/* INSTANT_NONE: it is none. */
static instant value_of(const struct saved *note)
{
    struct slice value = note->value;
    struct slice text = value.len > 2 ? (struct slice){ value.data + 1, value.len - 2 } : SLICE(""); /* without quotes */
    instant until;
    return instant_parse(text, &until, NULL) == STATUS_OK ? until : INSTANT_NONE;
}

static void restore(struct rate_limiter *limiter, instant *saved, instant paid_until)
{
    if (paid_until == INSTANT_NONE)
        return;
    rate_init(limiter, limiter->rate, limiter->burst, paid_until);
    *saved = paid_until;
}

static void restore_asked(struct engine *engine, struct lane_state *lane, instant until)
{
    if (until <= engine_now(engine))
        return;
    lane->asked.at = engine_now(engine);
    lane->asked.until = lane->asked.saved = until;
    if (until > lane->dest->holds.asked_until) {
        lane->dest->holds.asked_until = until;
        lane->dest->holds.asked_lane = lane->id;
    }
}

static bool has_number(struct slice name, struct slice prefix, int64_t *ret_number)
{
    return slice_has_prefix(name, prefix) && slice_to_int64(slice_from_offset(name, prefix.len), ret_number);
}

struct rate_note rate_note_parse(struct slice name)
{
    struct rate_note note = { .destination = { NULL, 0 } };
    if (slice_has_prefix(name, SLICE(NAME_OF_DESTINATION)))
        note.destination = slice_from_offset(name, sizeof NAME_OF_DESTINATION - 1);
    else if (!has_number(name, SLICE(NAME_OF_LANE), &note.lane))
        note.asked = has_number(name, SLICE(NAME_OF_ASKED), &note.lane);
    assert(!note.destination.data || note.lane == 0);
    return note;
}

/* Of a lane that is not known. */
struct unplaced_rate {
    int64_t lane; /* first: it is the key */
    instant paid_until, asked_until; /* INSTANT_NONE: nothing */
};

/* Without memory the limit is forgotten, which is said. */
static void set_aside(struct engine *engine, const struct rate_note *note, instant until)
{
    assert(note->lane > 0 && !lane_find(engine, note->lane));
    struct map *unplaced = &engine->lanes.unplaced;
    struct unplaced_rate *rate = map_get(unplaced, map_key(&note->lane));
    if (until == INSTANT_NONE || until <= engine_now(engine))
        return;
    if (!rate) {
        rate = malloc(sizeof *rate);
        if (rate)
            *rate = (struct unplaced_rate){ note->lane, INSTANT_NONE, INSTANT_NONE };
        if (!rate || map_put(unplaced, map_key(&rate->lane), rate) != STATUS_OK) {
            free(rate);
            log_event(LOG_ERROR, "rate_forgotten", FIELD_INT("lane", note->lane), FIELD_CSTR("reason", "no memory"));
            return;
        }
    }
    *(note->asked ? &rate->asked_until : &rate->paid_until) = until;
}

void rates_place(struct engine *engine, struct lane_state *lane)
{
    struct unplaced_rate *rate = map_remove(&engine->lanes.unplaced, map_key(&lane->id));
    if (!rate)
        return;
    assert(rate->lane == lane->id);
    restore(&lane->rate.limiter, &lane->rate.saved, rate->paid_until);
    if (rate->asked_until != INSTANT_NONE)
        restore_asked(engine, lane, rate->asked_until);
    free(rate);
}

void rate_restore(struct engine *engine, const struct saved *saved)
{
    const struct rate_note note = rate_note_parse(saved->name);
    struct dest *dest = note.destination.data ? dest_find(engine, note.destination) : NULL;
    struct lane_state *lane = note.lane > 0 ? lane_find(engine, note.lane) : NULL;
    if (dest)
        restore(&dest->rate.limiter, &dest->rate.saved, value_of(saved));
    else if (lane && note.asked)
        restore_asked(engine, lane, value_of(saved));
    else if (lane)
        restore(&lane->rate.limiter, &lane->rate.saved, value_of(saved));
    else if (note.lane > 0)
        set_aside(engine, &note, value_of(saved));
}
