/*
 * Dead letters that are sent back to work by themselves, after a while.
 *
 * Only those that used up their retries: what is refused for its own sake stays refused, what has expired is late for
 * ever, what was taken in part needs a person, and what is in doubt may have arrived - a redrive begins with a send, so
 * even where the destination could be asked it would come too late.
 *
 * They are found by reading the destination's dead letters page by page, newest first, one page a look and one look a
 * second over all destinations; a pass that found nothing more is begun again after a while. So a dead letter goes back
 * up to REDRIVE_PASS_MAX_MS and the length of a pass later than it could, and the work a second is bounded however many
 * there are.
 */
#include "base/log.h"
#include "engine/loop.h"

#include <assert.h>

enum {
    REDRIVE_LOOK_MS = 1000,
    REDRIVE_LOOK_MAX = 100,               /* dead letters read by one look */
    REDRIVE_PASS_MAX_MS = 10 * 60 * 1000, /* from the end of a pass to the next, at most */
    REDRIVE_TRIAL_MS = 60 * 1000,         /* after one that looks whether the destination is well */
    REDRIVE_HELD_MS = 10 * 1000,          /* how often a destination that is not well is asked again */
};

static bool wants_redrives(const struct dest *dest)
{
    return dest->config && dest->config->dead.redrive_after_ms > 0 && dest->config->dead.redrive_times > 0;
}

/* The one whose look is due longest. A look is never further off than between two passes, whatever the clock did. */
static struct dest *dest_due(struct engine *engine, instant now)
{
    struct dest *first = NULL;
    for (struct dest *dest = engine->dests; dest; dest = dest->next) {
        if (!wants_redrives(dest) || dest->redrive.out > 0)
            continue;
        if (dest->redrive.look_at > instant_add(now, REDRIVE_PASS_MAX_MS))
            dest->redrive.look_at = now;
        if (dest->redrive.look_at <= now && (!first || dest->redrive.look_at < first->redrive.look_at))
            first = dest;
    }
    return first;
}

/* What one look does. */
struct look {
    struct dest *dest;
    instant now;
    int64_t room;
    int64_t redriven;
    instant next_due; /* the earliest of those whose time has not come; INSTANT_NONE: none */
};

/* Whether it is to go now; else look->next_due may be earlier. */
static bool is_due(const struct engine *engine, struct look *look, const struct job *job)
{
    const struct dead_config *dead = &look->dest->config->dead;
    const struct lane_state *lane = lane_find(engine, job->lane);
    if (lane && lane->hold.held)
        return false;
    if (!slice_equal(job->dead_code, SLICE("MAX_RETRIES_EXCEEDED")) || job->redrives_auto >= dead->redrive_times ||
        job->dead_at == INSTANT_NONE)
        return false;
    instant due = instant_add(job->dead_at, dead->redrive_after_ms);
    if (due <= look->now)
        return true;
    look->next_due = instant_earlier(look->next_due, due);
    return false;
}

static void redriven(const struct op_result *result)
{
    struct dest *dest = result->context;
    assert(dest->redrive.out > 0);
    dest->redrive.out--;
}

/* False: not now. */
static bool redrive(struct engine *engine, struct look *look, const struct job *job)
{
    struct dest *dest = look->dest;
    struct store_op *op = look->room > 0 ? outgoing_add(engine, redriven, dest) : NULL;
    if (!op)
        return false;
    struct arena *memory = outgoing_memory(engine);
    op->kind = OP_REDRIVE;
    op->data = SLICE("{\"automatic\":true}");
    op->job = (struct op_job){ .tenant = arena_copy(memory, job->tenant), .id = arena_copy(memory, job->id),
                               .rank = rank_of(job->priority, look->now, dest->config->aging_ms), .automatic = true,
                               .forget_at = INSTANT_NONE };
    if (!op->job.tenant.data || !op->job.id.data) {
        outgoing_drop_last(engine);
        return false;
    }
    rate_take(&dest->redrive.rate, look->now, 1);
    dest->redrive.out++;
    look->room--;
    look->redriven++;
    return true;
}

/* Where the next look goes on, and when. */
static void look_again(struct look *look, int64_t before_seq, bool trial)
{
    struct auto_redrive *state = &look->dest->redrive;
    instant now = look->now, at = instant_add(now, REDRIVE_LOOK_MS);
    state->next_due = instant_earlier(state->next_due, look->next_due);
    state->before_seq = before_seq;
    if (before_seq == 0) { /* the pass is over */
        instant least = at, most = instant_add(now, REDRIVE_PASS_MAX_MS);
        at = state->next_due == INSTANT_NONE || state->next_due > most ? most : state->next_due;
        at = at < least ? least : at;
        state->next_due = INSTANT_NONE;
    }
    if (trial && look->redriven > 0 && at < instant_add(now, REDRIVE_TRIAL_MS))
        at = instant_add(now, REDRIVE_TRIAL_MS); /* its answer says whether more may follow */
    state->look_at = at;
}

static enum status look_at_page(struct engine *engine, struct look *look, bool trial, struct error *err)
{
    struct arena memory = { 0 };
    struct job *jobs;
    size_t count;
    int64_t next_seq;
    const struct job_filter filter = { .state = STATE_DEAD, .destination = slice_from(look->dest->name),
                                       .code = SLICE("MAX_RETRIES_EXCEEDED"), .before_seq = look->dest->redrive.before_seq };
    enum status status = engine->reader->ops->reader_jobs(engine->reader, &filter, REDRIVE_LOOK_MAX, false, &memory, &jobs,
                                                          &count, &next_seq, err);
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        if (!is_due(engine, look, &jobs[i]) || redrive(engine, look, &jobs[i]))
            continue;
        next_seq = jobs[i].seq + 1; /* this one is the next */
        break;
    }
    arena_release(&memory);
    if (status == STATUS_OK)
        look_again(look, next_seq, trial);
    return status;
}

/* One destination a time, and not while the writer is behind. */
void auto_redrive(struct engine *engine)
{
    instant now = engine_now(engine);
    struct error error;
    bool soon = now < engine->redrive_at && engine->redrive_at <= instant_add(now, REDRIVE_LOOK_MS);
    if (soon || engine->recovery.recovering || engine_must_wait(engine))
        return;
    struct dest *dest = dest_due(engine, now);
    if (!dest)
        return;
    engine->redrive_at = instant_add(now, REDRIVE_LOOK_MS);
    if (!gate_is_well(&dest->gate, now) || dest->dead.count == 0) {
        dest->redrive.look_at = instant_add(now, REDRIVE_HELD_MS);
        return;
    }
    bool trial = gate_signs(&dest->gate) > 0; /* the last answers were bad, but nothing is held: one goes first */
    struct rate_answer allowed = rate_ask(&dest->redrive.rate, now, trial ? 1 : REDRIVE_LOOK_MAX);
    if (allowed.room == 0) {
        dest->redrive.look_at = rate_ask(&dest->redrive.rate, now, 1).at;
        return;
    }
    struct look look = { .dest = dest, .now = now, .room = allowed.room, .next_due = INSTANT_NONE };
    if (look_at_page(engine, &look, trial, &error) != STATUS_OK) {
        dest->redrive.look_at = instant_add(now, REDRIVE_HELD_MS);
        log_event(LOG_ERROR, "auto_redrive_failed", FIELD_CSTR("destination", dest->name), FIELD_CSTR("error", error.text));
        alerts_store_failed(engine, &error);
    } else if (look.redriven > 0) {
        log_event(LOG_INFO, "auto_redrive", FIELD_CSTR("destination", dest->name), FIELD_INT("jobs", look.redriven));
    }
}

instant auto_redrive_next(const struct engine *engine, instant now)
{
    instant next = INSTANT_NONE;
    for (const struct dest *dest = engine->dests; dest; dest = dest->next)
        if (wants_redrives(dest))
            next = instant_earlier(next, dest->redrive.look_at);
    return next != INSTANT_NONE && next <= now ? engine->redrive_at : next;
}
