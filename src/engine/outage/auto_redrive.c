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
    return dest->config && dest->own.stage == OWN_WHOLE && dest->config->dead.redrive_after_ms > 0 &&
           dest->config->dead.redrive_times > 0;
}

/* The one whose look is due longest. A look is never further off than between two passes, whatever the clock did. */
static struct dest *dest_due(struct engine *engine, instant now)
{
    struct dest *first = NULL;
    for (struct dest *dest = engine->dests.first; dest; dest = dest->next) {
        if (!wants_redrives(dest) || dest->redrive.out > 0 || dest->redrive.page.question.out)
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
    assert(wants_redrives(look->dest));
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
    assert(before_seq >= 0);
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

static enum status read_page(struct store_read *read, struct store_reader *reader, struct error *err)
{
    struct redrive_page *page = (struct redrive_page *)read;
    const struct job_filter filter = { .state = STATE_DEAD, .destination = slice_from(page->dest->name),
                                       .code = SLICE("MAX_RETRIES_EXCEEDED"), .before_seq = page->before_seq };
    return reader->ops->reader_jobs(reader, &filter, REDRIVE_LOOK_MAX, false, &read->memory, &page->jobs, &page->count,
                                    &page->next_seq, err);
}

/* What may be sent back now; false: nothing, and *ret_look says nothing. */
static bool look_begin(struct dest *dest, instant now, struct look *ret_look, bool *ret_trial)
{
    if (!wants_redrives(dest) || !gate_is_well(&dest->gate, now) || dest->dead.count == 0) {
        dest->redrive.look_at = instant_add(now, REDRIVE_HELD_MS);
        return false;
    }
    *ret_trial = gate_signs(&dest->gate) > 0; /* the last answers were bad, but nothing is held: one goes first */
    struct rate_answer allowed = rate_ask(&dest->redrive.rate, now, *ret_trial ? 1 : REDRIVE_LOOK_MAX);
    if (allowed.room == 0) {
        dest->redrive.look_at = rate_ask(&dest->redrive.rate, now, 1).at;
        return false;
    }
    assert(allowed.room > 0 && allowed.room <= REDRIVE_LOOK_MAX);
    *ret_look = (struct look){ .dest = dest, .now = now, .room = allowed.room, .next_due = INSTANT_NONE };
    return true;
}

/* What was well when the store was asked may not be now. */
static void page_read(struct question *question)
{
    struct redrive_page *page = (struct redrive_page *)question;
    struct engine *engine = question->engine;
    assert(&page->dest->redrive.page == page);
    instant now = engine_now(engine);
    struct look look;
    bool trial;
    if (question->read.status != STATUS_OK) {
        page->dest->redrive.look_at = instant_add(now, REDRIVE_HELD_MS);
        log_event(LOG_ERROR, "auto_redrive_failed", FIELD_CSTR("destination", page->dest->name),
                  FIELD_CSTR("error", question->read.error.text));
        alerts_store_failed(engine, &question->read.error);
        return;
    }
    if (engine->stopping || engine_must_wait(engine) || !look_begin(page->dest, now, &look, &trial))
        return;
    for (size_t i = 0; i < page->count; i++) {
        if (!is_due(engine, &look, &page->jobs[i]) || redrive(engine, &look, &page->jobs[i]))
            continue;
        page->next_seq = page->jobs[i].seq + 1; /* this one is the next */
        break;
    }
    look_again(&look, page->next_seq, trial);
    if (look.redriven > 0)
        log_event(LOG_INFO, "auto_redrive", FIELD_CSTR("destination", page->dest->name), FIELD_INT("jobs", look.redriven));
}

/* One destination a time, and not while the writer is behind. */
void auto_redrive(struct engine *engine)
{
    instant now = engine_now(engine);
    struct look look;
    bool trial, soon = now < engine->recovery.redrive_at && engine->recovery.redrive_at <= instant_add(now, REDRIVE_LOOK_MS);
    if (soon || engine->recovery.recovering || engine_must_wait(engine))
        return;
    struct dest *dest = dest_due(engine, now);
    if (!dest)
        return;
    engine->recovery.redrive_at = instant_add(now, REDRIVE_LOOK_MS);
    if (!look_begin(dest, now, &look, &trial))
        return;
    dest->redrive.page.dest = dest;
    dest->redrive.page.before_seq = dest->redrive.before_seq;
    assert(dest->redrive.out == 0);
    question_ask(engine, &dest->redrive.page.question, read_page, page_read);
}

instant auto_redrive_next(const struct engine *engine, instant now)
{
    instant next = INSTANT_NONE;
    for (const struct dest *dest = engine->dests.first; dest; dest = dest->next)
        if (wants_redrives(dest) && !dest->redrive.page.question.out)
            next = instant_earlier(next, dest->redrive.look_at);
    return next != INSTANT_NONE && next <= now ? engine->recovery.redrive_at : next;
}
