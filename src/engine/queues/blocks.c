/*
 * Refused answers: what core/outage/block.h decides, carried out.
 *
 * A refused job is held by its own time to run, which the store keeps. A held tenant is one of the held lanes, a held
 * destination is held by its gate; both are saved with the destination's state. When such a hold ends by a good answer or
 * by an operator, the jobs that were refused go again at once: they are looked up in the store, a page at a time.
 */
#include "base/log.h"
#include "core/errors/redact.h"
#include "engine/alerts/notify.h"
#include "engine/loop.h"
#include "engine/outage/fallback.h"

#include <assert.h>

enum {
    REASON_BYTES_MAX = 2 * HOLD_REASON_BYTES_MAX, /* before it is cut */
    ALONE_MARGIN_MS = 2 * 60 * 1000,              /* for a job that comes late to its next try */
    RELEASE_PAGE = 64,                            /* jobs looked at together */
};

/* "job 17 of tenant acme was refused: http:403, HTTP 403 ..." It goes to the log, to the trail and to people. */
static void append_reason(struct buffer *out, const struct job *job, const struct answer *answer, bool unsent, bool first)
{
    struct buffer text = buffer_up_to(HOLD_REASON_BYTES_MAX);
    redact(&text, answer->text, HOLD_REASON_BYTES_MAX);
    if (unsent)
        buffer_printf(out, "nothing can be sent%s, as seen with ", first ? "" : " to the second address");
    buffer_printf(out, "job %.*s", SLICE_ARG(job->id));
    if (job->tenant.len > 0)
        buffer_printf(out, " of tenant %.*s", SLICE_ARG(job->tenant));
    buffer_append_text(out, unsent ? ": " : first ? " was refused: " : " was refused at the second address: ");
    if (answer->code.len > 0)
        buffer_printf(out, "%.*s, ", SLICE_ARG(answer->code));
    buffer_append(out, buffer_slice(&text));
    buffer_release(&text);
}

static void log_block(const char *event, const struct dest *dest, const struct job *job, const struct answer *answer,
                      const struct block *block, const char *reason)
{
    log_event(LOG_ERROR, event, FIELD_CSTR("destination", dest->name), FIELD_TEXT("tenant", job->tenant),
              FIELD_TEXT("job", job->id), FIELD_TEXT("code", answer->code), FIELD_CSTR("reason", reason ? reason : ""),
              FIELD_INSTANT("look_at", block->saved.look_at));
}

/* ---- what is held ---- */

static void end_lane(struct lane_state *lane)
{
    lane_hold_end(lane);
    lane_unpark(lane);
}

/* What holds all of it holds its tenants too, and any of them may look. */
static void end_lanes(struct dest *dest)
{
    for (struct lane_state *lane = dest->holds.first, *next; lane; lane = next) {
        next = lane->hold.next;
        assert(lane->hold.held && lane->dest == dest);
        if (!block_holds(&lane->block))
            continue;
        block_ends(&lane->block);
        end_lane(lane);
    }
}

static void hold_dest(struct dest *dest, const struct job *job, const struct answer *answer, struct slice reason,
                      instant now)
{
    assert(block_holds(&dest->gate.block));
    end_lanes(dest);
    hold_reason_set(&dest->block.reason, reason);
    bool only = dest->queue.tenants <= 1 && !slice_equal(job->tenant, NOTIFY_TENANT);
    dest->block.lane = only ? job->lane : 0;
    dest_changed(dest, (struct dest_change){ .change = "blocked", .at = now });
    log_block("destination_blocked", dest, job, answer, &dest->gate.block, dest->block.reason);
}

/* Where no more tenants can be written down as held, this one's jobs are held each by itself: nobody else is to wait. */
static void hold_tenant(struct lane_state *lane, const struct job *job, const struct answer *answer, struct slice reason,
                        instant now)
{
    assert(block_holds(&lane->block));
    struct dest *dest = lane->dest;
    if (dest->holds.count == HELD_LANES_MAX) {
        block_ends(&lane->block);
        return;
    }
    lane_hold_begin(lane, reason, now);
    dest_changed(dest, (struct dest_change){ .change = "tenant_blocked", .lane = lane, .at = now });
    log_block("tenant_blocked", dest, job, answer, &lane->block, lane->hold.reason);
}

/* It was refused a second time at least, and no other one is: somebody is to know for as long as that goes on. */
static void note_alone(struct dest *dest, const struct job *job, struct slice reason, instant now)
{
    instant until = instant_add(now, block_job_ms(job->step_count + 1) + ALONE_MARGIN_MS);
    if (dest->block.alone_until == INSTANT_NONE || until > dest->block.alone_until)
        dest->block.alone_until = until;
    hold_reason_set(&dest->block.alone_reason, reason);
    dest->saved.looked = true; /* it outlives a restart */
    dest->alerts.due = true;
}

static bool was_refused(const struct job *job)
{
    return job->step == STEP_SEND && job->last_class == OUTCOME_BLOCKED && job->step_count > 0;
}

/* What tells of alerts is no tenant, and where one has work is not alone. */
static bool is_only_tenant(const struct dest *dest, const struct job *job)
{
    assert(dest->queue.tenants >= 0);
    return dest->queue.tenants == 0 || (dest->queue.tenants == 1 && !slice_equal(job->tenant, NOTIFY_TENANT));
}

static struct block_refusal refusal_of(const struct dest *dest, const struct job *job, bool unsent)
{
    assert(dest->config);
    return (struct block_refusal){ .job = job->seq, .tenant = job->lane, .again = was_refused(job), .unsent = unsent,
                                   .only_tenant = is_only_tenant(dest, job),
                                   .own = dest->config->blocked == BLOCKED_TENANT,
                                   .account = config_for_tenant(dest->config, job->tenant) != dest->config };
}

void dest_refused(struct engine *engine, struct dest *dest, const struct job *job, const struct answer *answer, bool unsent)
{
    instant now = engine_now(engine);
    struct lane_state *lane = lane_of_job(engine, job);
    if (!lane || !dest->config || lane_held_by_hand(lane))
        return; /* the job is held */
    const struct block_refusal refusal = refusal_of(dest, job, unsent);
    assert(lane->dest == dest);
    bool held = block_holds(&dest->gate.block) || block_holds(&lane->block);
    enum block_scope scope = block_refused(&dest->gate.block, &lane->block, &refusal, now);
    dest->saved.looked = dest->saved.looked || held; /* when to look next is to outlive a crash */
    struct buffer reason = buffer_up_to(REASON_BYTES_MAX);
    append_reason(&reason, job, answer, unsent, true);
    if (scope == BLOCK_DESTINATION)
        hold_dest(dest, job, answer, buffer_slice(&reason), now);
    else if (scope == BLOCK_TENANT)
        hold_tenant(lane, job, answer, buffer_slice(&reason), now);
    else if (refusal.again && !held && !slice_equal(job->tenant, NOTIFY_TENANT))
        note_alone(dest, job, buffer_slice(&reason), now);
    buffer_release(&reason);
    engine_wake(engine);
}

void fallback_refused(struct engine *engine, struct dest *dest, const struct job *job, const struct answer *answer,
                      bool unsent)
{
    struct buffer reason;
    if (!dest->config)
        return;
    const struct block_refusal refusal = refusal_of(dest, job, unsent);
    dest->saved.looked = dest->saved.looked || block_holds(&dest->fallback.block);
    if (block_second_refused(&dest->fallback.block, &refusal, engine_now(engine))) {
        buffer_init(&reason, REASON_BYTES_MAX);
        append_reason(&reason, job, answer, unsent, false);
        fallback_held(dest, buffer_slice(&reason), refusal.only_tenant ? job->lane : 0, engine_now(engine));
        buffer_release(&reason);
    }
    engine_wake(engine);
}

/* ---- what ends it ---- */

/* Of one lane, or of all: 0. */
static void release_begin(struct engine *engine, struct dest *dest, int64_t lane)
{
    assert(lane >= 0);
    struct block_release *release = &dest->block.release;
    release->lane = release->on && release->lane != lane ? 0 : lane;
    release->on = true;
    release->before_seq = 0;
    release->page.anew = release->page.question.out;
    engine_wake(engine);
}

void dest_let_in(struct engine *engine, struct dest *dest, struct lane_state *lane)
{
    assert(!lane || lane->dest == dest);
    instant now = engine_now(engine);
    if (block_went_well(&dest->gate.block)) {
        hold_reason_set(&dest->block.reason, SLICE(""));
        dest->block.lane = 0;
        dest_changed(dest, (struct dest_change){ .change = "unblocked", .at = now });
        log_event(LOG_INFO, "destination_unblocked", FIELD_CSTR("destination", dest->name));
        release_begin(engine, dest, 0);
    }
    if (lane && block_went_well(&lane->block)) {
        end_lane(lane);
        dest_changed(dest, (struct dest_change){ .change = "tenant_unblocked", .lane = lane, .at = now });
        log_event(LOG_INFO, "tenant_unblocked", FIELD_CSTR("destination", dest->name), FIELD_CSTR("tenant", lane->tenant));
        release_begin(engine, dest, lane->id);
    }
}

void fallback_let_in(struct engine *engine, struct dest *dest)
{
    if (!block_went_well(&dest->fallback.block))
        return;
    fallback_ended(dest, "fallback_unblocked", engine_now(engine));
    release_begin(engine, dest, 0);
}

bool blocks_resume(struct engine *engine, struct dest *dest)
{
    bool held = block_holds(&dest->gate.block);
    size_t lanes = dest->holds.count;
    end_lanes(dest);
    block_init(&dest->gate.block);
    for (struct lane_state *lane = dest->queue.first; lane; lane = lane->next)
        block_init(&lane->block);
    hold_reason_set(&dest->block.reason, SLICE(""));
    dest->block.lane = 0;
    dest->block.alone_until = INSTANT_NONE;
    dest->alerts.due = true;
    release_begin(engine, dest, 0);
    assert(!block_holds(&dest->gate.block) && dest->holds.count <= lanes);
    return held || dest->holds.count < lanes;
}

void lane_block_resume(struct engine *engine, struct lane_state *lane)
{
    block_init(&lane->block);
    release_begin(engine, lane->dest, lane->id);
}

void blocks_hasten(struct engine *engine)
{
    instant now = engine_now(engine);
    for (struct dest *dest = engine->dests.first; dest; dest = dest->next) {
        block_hasten(&dest->gate.block, now);
        block_hasten(&dest->fallback.block, now);
        for (struct lane_state *lane = dest->holds.first; lane; lane = lane->hold.next) {
            assert(lane->hold.held && lane->dest == dest);
            block_hasten(&lane->block, now); /* none is parked: they were configured anew */
        }
    }
}

/* ---- jobs that go again ---- */

static bool is_held_job(const struct job *job, const struct block_release *release, instant now)
{
    return was_refused(job) && job->run_at > now &&
           (release->lane == 0 || release->lane == job->lane);
}

/* False: not now. */
static bool release_job(struct engine *engine, const struct job *job)
{
    struct store_op *op = outgoing_add(engine, NULL, NULL);
    if (!op)
        return false;
    struct arena *memory = outgoing_memory(engine);
    op->kind = OP_REDRIVE;
    op->data = SLICE("{\"unblocked\":true}");
    op->job = (struct op_job){ .tenant = arena_copy(memory, job->tenant), .id = arena_copy(memory, job->id),
                               .rank = job->rank, .forget_at = INSTANT_NONE };
    if (op->job.tenant.data && op->job.id.data)
        return true;
    outgoing_drop_last(engine);
    return false;
}

static enum status read_page(struct store_read *read, struct store_reader *reader, struct error *err)
{
    struct release_page *page = (struct release_page *)read;
    const struct job_filter filter = { .state = STATE_WAITING, .destination = slice_from(page->dest->name),
                                       .before_seq = page->before_seq };
    return reader->ops->reader_jobs(reader, &filter, RELEASE_PAGE, false, &read->memory, &page->jobs, &page->count,
                                    &page->next_seq, err);
}

/* What fails is left to the jobs' own times, an hour at most. */
static void page_read(struct question *question)
{
    struct release_page *page = (struct release_page *)question;
    struct engine *engine = question->engine;
    struct block_release *release = &page->dest->block.release;
    assert(&release->page == page);
    enum status status = question->read.status;
    if (status != STATUS_OK)
        log_event(LOG_ERROR, "release_failed", FIELD_CSTR("destination", page->dest->name),
                  FIELD_CSTR("error", question->read.error.text));
    for (size_t i = 0; status == STATUS_OK && i < page->count && !engine->stopping; i++)
        if (is_held_job(&page->jobs[i], release, engine_now(engine)) && !release_job(engine, &page->jobs[i])) {
            page->next_seq = page->jobs[i].seq + 1; /* this one is the next */
            break;
        }
    if (page->anew)
        return; /* from the newest on */
    release->before_seq = status == STATUS_OK ? page->next_seq : 0;
    release->on = status == STATUS_OK && page->next_seq > 0;
    if (release->on)
        engine_wake(engine);
}

/* A page each time. */
void blocks_release(struct engine *engine)
{
    if (engine->recovery.recovering || engine_must_wait(engine))
        return;
    for (struct dest *dest = engine->dests.first; dest; dest = dest->next) {
        struct block_release *release = &dest->block.release;
        bool may = dest->own.stage == OWN_WHOLE && !release->page.question.out && outgoing_has_room(engine, RELEASE_PAGE);
        if (!release->on || !may)
            continue;
        release->page.dest = dest;
        release->page.before_seq = release->before_seq;
        release->page.anew = false;
        question_ask(engine, &release->page.question, read_page, page_read);
    }
}
