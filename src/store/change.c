#include "store/change.h"

#include "base/hash.h"
#include "store/digest.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum status change_insert_check(const struct op_insert *insert)
{
    bool known = insert->priority >= 0 && insert->priority < PRIORITY_COUNT;
    return insert->destination.len > 0 && known ? STATUS_OK : STATUS_INVALID;
}

void change_insert(const struct op_insert *insert, instant now, struct job *ret_job)
{
    assert(change_insert_check(insert) == STATUS_OK);
    *ret_job = (struct job){
        .state = STATE_PENDING,
        .priority = insert->priority,
        .step = STEP_SEND,
        .rank = insert->rank,
        .generation = 1,
        .created_at = now,
        .first_at = INSTANT_NONE,
        .run_at = insert->run_at == INSTANT_NONE ? now : insert->run_at,
        .deadline = insert->deadline,
        .updated_at = now,
        .failed_at = INSTANT_NONE,
        .look_failed_at = INSTANT_NONE,
        .dead_at = INSTANT_NONE,
        .expires_at = INSTANT_NONE,
        .lease_until = INSTANT_NONE,
        .lease_fenced_at = INSTANT_NONE,
        .forget_at = INSTANT_NONE,
        .chain = job_chain(insert->key),
        .behind = insert->ret_behind,
        .ready = insert->run_at <= now && !insert->ret_behind, /* INSTANT_NONE is before everything */
        .last_code = SLICE(""),
        .last_error = SLICE(""),
        .dead_code = SLICE(""),
        .reference = SLICE(""),
        .lease_owner = SLICE(""),
        .redrive = SLICE(""),
    };
}

enum status change_insert_again(struct op_insert *insert, const struct job *job, const unsigned char *digest,
                                struct arena *memory)
{
    assert(job->seq > 0 && job->lane > 0);
    unsigned char again[JOB_DIGEST_BYTES];
    job_digest(insert, again);
    if (memcmp(again, digest, sizeof again) != 0)
        return STATUS_CONFLICT;
    insert->ret_id = arena_copy(memory, job->id);
    insert->ret_seq = job->seq;
    insert->ret_lane = job->lane;
    insert->ret_existed = true;
    insert->ret_behind = false;
    return insert->ret_id.data ? STATUS_OK : STATUS_NO_MEMORY;
}

enum { MADE_ID_SECRET_BITS = 24 };

enum status change_id_make(uint64_t seed, instant now, int64_t seq, struct arena *memory, struct slice *ret_id)
{
    assert(seq > 0);
    uint64_t secret = hash_slice(seed, (uint64_t)seq, SLICE("id")) & ((1u << MADE_ID_SECRET_BITS) - 1);
    char *text = arena_alloc(memory, JOB_ID_MADE_BYTES + 1);
    if (!text)
        return STATUS_NO_MEMORY;
    job_id_make(now, (uint64_t)seq << MADE_ID_SECRET_BITS | secret, text);
    *ret_id = (struct slice){ text, JOB_ID_MADE_BYTES };
    return STATUS_OK;
}

int64_t change_id_seq(struct slice id)
{
    uint64_t number;
    return job_id_number(id, &number) ? (int64_t)(number >> MADE_ID_SECRET_BITS) : 0;
}

/* ---- OP_CLAIM ---- */

enum status change_claim(const struct op_claim *claim, instant now, int64_t token, int64_t session, struct job *job)
{
    assert(token > 0 && job->lease_token == 0 && job->ready);
    if (job_state_after(job->state, EVENT_CLAIM) == STATE_NONE)
        return STATUS_CORRUPT;
    job->claimed_from = job->state;
    job->state = STATE_RUNNING;
    job->ready = false;
    job->updated_at = now;
    job->lease_token = token;
    job->lease_until = claim->lease_until;
    job->lease_owner = claim->owner;
    job->lease_session = claim->owner.len == 0 ? session : 0;
    if (job->first_at == INSTANT_NONE)
        job->first_at = now;
    if (job->step == STEP_SEND) {
        job->attempts++;
        job->attempts_total++;
    }
    return STATUS_OK;
}

/* ---- OP_SETTLE, OP_EXTEND ---- */

/* It is EVENT_TYPE_NONE where no job is settled so. */
static enum event_type settle_event_type(enum job_event event)
{
    switch (event) {
    case EVENT_DELIVER:
        return EVENT_TYPE_COMPLETED;
    case EVENT_RETRY:
        return EVENT_TYPE_RETRY_SCHEDULED;
    case EVENT_RELEASE:
        return EVENT_TYPE_RELEASED;
    case EVENT_GIVE_UP:
        return EVENT_TYPE_DEAD;
    case EVENT_EXPIRE:
        return EVENT_TYPE_EXPIRED;
    default:
        return EVENT_TYPE_NONE;
    }
}

/* What is stored of an error's text: so much, and no UTF-8 sequence in part. */
static struct slice error_text_cut(struct slice text)
{
    if (text.len <= ERROR_TEXT_STORED_BYTES_MAX)
        return text;
    size_t len = ERROR_TEXT_STORED_BYTES_MAX;
    while (len > ERROR_TEXT_STORED_BYTES_MAX - 4 && ((unsigned char)text.data[len] & 0xc0) == 0x80)
        len--;
    return (struct slice){ text.data, len };
}

static instant dead_expires_at(instant now, int64_t ttl_ms)
{
    assert(ttl_ms >= 0);
    return ttl_ms > 0 ? instant_add(now, ttl_ms) : INSTANT_NONE;
}

/* A job given back untried has no outcome; what the last real attempt said stays. */
static void outcome_keep(struct job *job, const struct op_settle *settle)
{
    assert(job->state == STATE_RUNNING);
    bool happened = settle->outcome != OUTCOME_NONE;
    if (happened) {
        job->last_class = settle->outcome;
        job->last_code = settle->code;
    }
    if (happened || settle->error.len > 0)
        job->last_error = error_text_cut(settle->error);
    if (settle->reference.len > 0)
        job->reference = settle->reference;
    if (settle->failed_at != 0 && job->failed_at == INSTANT_NONE)
        job->failed_at = settle->failed_at;
    if (settle->look_failed_at != 0)
        job->look_failed_at = settle->look_failed_at;
}

static void die(struct job *job, instant now, instant expires_at, struct slice code)
{
    assert(job->state == STATE_DEAD && job->last_error.len > 0);
    job->dead_at = now;
    job->expires_at = expires_at;
    job->dead_code = code;
    job->redrive = SLICE("");
}

static void settle_to(struct job *job, const struct op_settle *settle, enum job_state state, instant now)
{
    outcome_keep(job, settle);
    if (settle->attempt_undone && job->step == STEP_SEND && job->attempts > 0) {
        job->attempts--;
        job->attempts_total--;
    }
    job->state = state;
    job->updated_at = now;
    job->retry_count = settle->retry_count;
    job->step_count = settle->step_count;
    job->doubted = settle->doubted;
    job->claimed_from = STATE_NONE;
    job->lease_token = 0;
    job->lease_until = INSTANT_NONE;
    job->lease_owner = SLICE("");
    job->lease_session = 0;
    if (state == STATE_WAITING) {
        job->step = settle->step;
        job->run_at = settle->run_at;
        job->rank = settle->rank;
        job->ready = settle->run_at <= now;
    } else if (state == STATE_DEAD) {
        bool unnamed = settle->event == EVENT_EXPIRE && settle->dead_code.len == 0;
        die(job, now, dead_expires_at(now, settle->dead_ttl_ms), unnamed ? SLICE("EXPIRED") : settle->dead_code);
    } else {
        assert(state == STATE_COMPLETED);
        job->forget_at = settle->forget_at;
        job->redrive = SLICE("");
    }
}

/* Invariant 3: only the holder of the lease. */
static bool is_leased(const struct job *job, int64_t token)
{
    return job && job->state == STATE_RUNNING && job->lease_token == token;
}

static enum status settle_apply(struct op_settle *settle, instant now, struct job *job, struct change *change)
{
    assert(!job || job->seq == settle->seq);
    change->event = settle_event_type(settle->event);
    if (change->event == EVENT_TYPE_NONE || settle->outcome < OUTCOME_NONE || settle->outcome >= OUTCOME_COUNT ||
        settle->step < STEP_SEND || settle->step > STEP_POLL)
        return STATUS_INVALID;
    if (!is_leased(job, settle->token))
        return STATUS_CONFLICT;
    enum job_state state = job_state_after(job->state, settle->event);
    if (state == STATE_NONE || (state == STATE_DEAD && settle->error.len == 0))
        return STATUS_INVALID;
    settle_to(job, settle, state, now);
    settle->ret_lane = job->lane;
    return STATUS_OK;
}

static enum status extend_apply(const struct op_extend *extend, instant now, struct job *job, struct change *change)
{
    assert(!job || job->seq == extend->seq);
    if (!is_leased(job, extend->token))
        return STATUS_CONFLICT;
    job->lease_until = extend->lease_until;
    job->updated_at = now;
    change->event = EVENT_TYPE_LEASE_EXTENDED;
    return STATUS_OK;
}

/* ---- OP_CANCEL, OP_PRIORITIZE, OP_REDRIVE, OP_UNDO, OP_PURGE, OP_ERASE ---- */

/*
 * What a dead letter was stands in job->redrive while a redrive has it: the redrive's id, numbers, and last the code that it
 * died with. Nothing else of it changes before it is tried. STATUS_LIMIT: its code is longer than any of ours.
 */
enum { BEFORE_NUMBERS = 15, REDRIVE_ID_BYTES_MAX = 64 };

static enum status before_write(struct slice redrive, const struct job *job, char text[CHANGE_TEXT_BYTES])
{
    assert(job->state == STATE_DEAD && redrive.len > 0 && slice_find(redrive, ' ') == redrive.len);
    const int64_t numbers[BEFORE_NUMBERS] = {
        job->generation, job->attempts,  job->retry_count,    job->step_count, job->step,       job->doubted,  job->first_at,
        job->failed_at,  job->look_failed_at, job->dead_at,   job->expires_at, job->deadline, job->run_at,   job->rank,
        job->updated_at,
    };
    size_t len = 0;
    if (redrive.len > REDRIVE_ID_BYTES_MAX ||
        job->dead_code.len > CHANGE_TEXT_BYTES - REDRIVE_ID_BYTES_MAX - 24 * BEFORE_NUMBERS)
        return STATUS_LIMIT;
    len += (size_t)snprintf(text, CHANGE_TEXT_BYTES, "%.*s", SLICE_ARG(redrive));
    for (size_t i = 0; i < BEFORE_NUMBERS; i++)
        len += (size_t)snprintf(text + len, CHANGE_TEXT_BYTES - len, " %lld", (long long)numbers[i]);
    snprintf(text + len, CHANGE_TEXT_BYTES - len, " %.*s", SLICE_ARG(job->dead_code));
    return STATUS_OK;
}

/* False: it is not what before_write wrote. The code points into `text`. */
static bool before_read(struct slice text, int64_t numbers[BEFORE_NUMBERS], struct slice *ret_dead_code)
{
    for (size_t i = 0; i < BEFORE_NUMBERS; i++) {
        size_t space = slice_find(text, ' ');
        if (space == text.len)
            return false;
        text = slice_from_offset(text, space + 1);
        if (!slice_to_int64((struct slice){ text.data, slice_find(text, ' ') }, &numbers[i]))
            return false;
    }
    size_t space = slice_find(text, ' ');
    if (space == text.len)
        return false;
    *ret_dead_code = slice_from_offset(text, space + 1);
    return numbers[4] >= STEP_SEND && numbers[4] <= STEP_POLL;
}

struct slice redrive_id(const struct job *job)
{
    return (struct slice){ job->redrive.data, slice_find(job->redrive, ' ') };
}

/* STATUS_CORRUPT is no invariant of ours: the text was read from a disk. */
static enum status undo(struct job *job, struct change *change)
{
    int64_t before[BEFORE_NUMBERS];
    struct slice code;
    assert(job->attempts == 0 && job->lease_token == 0);
    if (job->redrive.len >= sizeof change->text || !before_read(job->redrive, before, &code))
        return STATUS_CORRUPT;
    memcpy(change->text, code.len ? code.data : "", code.len); /* the job's own text goes away with this change */
    job->behind = false;
    job->state = job_state_after(job->state, EVENT_UNDO);
    job->generation = before[0];
    job->attempts = before[1];
    job->retry_count = before[2];
    job->step_count = before[3];
    job->step = (enum job_step)before[4];
    job->doubted = before[5] != 0;
    job->first_at = before[6];
    job->failed_at = before[7];
    job->look_failed_at = before[8];
    job->dead_at = before[9];
    job->expires_at = before[10];
    job->deadline = before[11];
    job->run_at = before[12];
    job->rank = before[13];
    job->updated_at = before[14];
    job->dead_code = (struct slice){ change->text, code.len };
    job->redrive = SLICE("");
    job->ready = false;
    change->event = EVENT_TYPE_UNDONE;
    return STATUS_OK;
}

enum redrive_count change_counted(const struct job *before, const struct job *after)
{
    bool was = before && before->redrive.len > 0, is = after && after->redrive.len > 0;
    if (was == is)
        return REDRIVE_COUNT_NONE; /* a job of a redrive is of no other before its end */
    if (is)
        return REDRIVE_SENT_BACK;
    if (!after || after->state == STATE_CANCELLED)
        return REDRIVE_GONE;
    if (after->state == STATE_COMPLETED)
        return REDRIVE_DELIVERED;
    assert(after->state == STATE_DEAD);
    return after->generation < before->generation ? REDRIVE_UNDONE : REDRIVE_DEAD_AGAIN;
}

/* A dead letter starts over. Its last error stays to be read; a deadline that has passed would kill it again at once. */
static void start_over(struct job *job, instant now)
{
    assert(job->state == STATE_DEAD || job->state == STATE_COMPLETED);
    job->generation++;
    job->attempts = 0;
    job->retry_count = 0;
    job->step_count = 0;
    job->step = STEP_SEND;
    job->doubted = false;
    job->first_at = INSTANT_NONE;
    job->failed_at = INSTANT_NONE;
    job->look_failed_at = INSTANT_NONE;
    job->dead_at = INSTANT_NONE;
    job->expires_at = INSTANT_NONE;
    job->dead_code = SLICE("");
    if (job->deadline <= now)
        job->deadline = INSTANT_NONE;
}

/* A waiting job is only hurried: what it has spent stays spent, and what may have arrived is not sent a second time. */
static enum status redrive(struct job *job, const struct op_job *op, instant now, struct change *change)
{
    assert(job->lease_token == 0);
    if (op->redrive.len > 0) {
        enum status status = before_write(op->redrive, job, change->text);
        if (status != STATUS_OK)
            return status;
        job->redrive = slice_from(change->text);
    }
    if (job->state == STATE_DEAD || job->state == STATE_COMPLETED)
        start_over(job, now);
    job->state = STATE_PENDING;
    job->forget_at = INSTANT_NONE;
    job->run_at = now;
    job->rank = op->rank;
    job->redrives_auto += op->automatic ? 1 : 0;
    job->behind = op->ret_behind;
    job->ready = !op->ret_behind;
    return STATUS_OK;
}

static bool is_allowed(const struct store_op *op, const struct job *job)
{
    enum job_state state = job->state;
    if (op->job.dead_at != 0 && (state != STATE_DEAD || job->dead_at != op->job.dead_at))
        return false;
    switch (op->kind) {
    case OP_UNDO:
        return job_state_after(state, EVENT_UNDO) != STATE_NONE && job->attempts == 0 && op->job.redrive.len > 0 &&
               slice_equal(redrive_id(job), op->job.redrive);
    case OP_CANCEL:
        return job_state_after(state, EVENT_CANCEL) != STATE_NONE;
    case OP_REDRIVE:
        return op->job.automatic || op->job.redrive.len > 0 ? state == STATE_DEAD
                                 : job_state_after(state, op->job.resend ? EVENT_RESEND : EVENT_REDRIVE) != STATE_NONE;
    case OP_PURGE:
        return state == STATE_DEAD;
    case OP_ERASE:
        return state != STATE_RUNNING;
    default:
        assert(op->kind == OP_PRIORITIZE);
        return state == STATE_PENDING || state == STATE_WAITING || state == STATE_RUNNING;
    }
}

static enum status named_change(const struct store_op *op, instant now, struct job *job, struct change *change)
{
    if (op->kind == OP_UNDO)
        return undo(job, change);
    if (op->kind == OP_REDRIVE) {
        change->event = EVENT_TYPE_REDRIVEN;
        enum status status = redrive(job, &op->job, now, change);
        job->updated_at = now;
        return status;
    }
    job->updated_at = now;
    if (op->kind == OP_CANCEL) {
        change->event = EVENT_TYPE_CANCELLED;
        job->state = job_state_after(job->state, EVENT_CANCEL);
        job->ready = job->behind = false;
        job->forget_at = op->job.forget_at;
        job->redrive = SLICE("");
    } else {
        change->event = EVENT_TYPE_PRIORITIZED;
        job->priority = op->job.priority;
        job->rank = op->job.rank;
    }
    return STATUS_OK;
}

static enum status named_apply(struct store_op *op, instant now, struct job *job, struct change *change)
{
    assert(op->kind == OP_CANCEL || op->kind == OP_PRIORITIZE || op->kind == OP_REDRIVE || op->kind == OP_PURGE ||
           op->kind == OP_UNDO || op->kind == OP_ERASE);
    if (op->kind == OP_PRIORITIZE && (op->job.priority < 0 || op->job.priority >= PRIORITY_COUNT))
        return STATUS_INVALID;
    if (!job)
        return STATUS_NOT_FOUND;
    op->job.ret_seq = job->seq;
    op->job.ret_lane = job->lane;
    op->job.ret_state = job->state;
    if (!is_allowed(op, job))
        return STATUS_CONFLICT;
    op->job.ret_was_dead = job->state == STATE_DEAD;
    if (op->kind == OP_PURGE || op->kind == OP_ERASE) {
        change->event = op->kind == OP_ERASE ? EVENT_TYPE_ERASED
                        : op->job.export     ? EVENT_TYPE_DEAD_EXPIRED
                                             : EVENT_TYPE_PURGED;
        change->deleted = true;
        job->ready = job->behind = false;
        job->state = STATE_CANCELLED; /* for the next of its key */
        return STATUS_OK;
    }
    enum status status = named_change(op, now, job, change);
    if (status != STATUS_OK)
        return status;
    op->job.ret_state = job->state;
    return STATUS_OK;
}

enum status change_apply(struct store_op *op, instant now, struct job *job, struct change *ret_change)
{
    ret_change->event = EVENT_TYPE_NONE;
    ret_change->deleted = false;
    if (op->kind == OP_SETTLE)
        return settle_apply(&op->settle, now, job, ret_change);
    if (op->kind == OP_EXTEND)
        return extend_apply(&op->extend, now, job, ret_change);
    return named_apply(op, now, job, ret_change);
}

/* ---- OP_PROMOTE ---- */

/* When a dead letter that OP_PROMOTE makes of a destination's job goes away; INSTANT_NONE: not by itself. */
static instant promote_expires_at(const struct op_promote *promote, struct slice destination, instant now)
{
    int64_t ttl_ms = promote->dead_ttl_ms;
    for (size_t i = 0; i < promote->dead_ttl_count; i++)
        if (slice_equal(promote->dead_ttls[i].destination, destination))
            ttl_ms = promote->dead_ttls[i].ms;
    return dead_expires_at(now, ttl_ms);
}

static void expire(const struct op_promote *promote, instant now, struct job *job, struct change *change)
{
    assert(job->deadline != INSTANT_NONE && job->deadline <= now);
    char at[INSTANT_TEXT_BYTES];
    if (job->last_error.len == 0) {
        instant_format(job->deadline, at);
        snprintf(change->text, sizeof change->text, "not delivered by its deadline %s", at);
        job->last_error = slice_from(change->text);
    }
    job->state = job_state_after(job->state, EVENT_EXPIRE);
    job->ready = job->behind = false;
    job->updated_at = now;
    die(job, now, promote_expires_at(promote, job->destination, now), SLICE("EXPIRED"));
}

void change_due_begin(struct op_promote *promote)
{
    promote->ret_ready = NULL;
    promote->ret_expired_jobs = NULL;
    promote->ret_ready_count = promote->ret_due_count = 0;
    promote->ret_promoted = promote->ret_expired = promote->ret_put_off = 0;
    promote->ret_dead_deleted = promote->ret_forgotten = 0;
    promote->ret_next_at = INSTANT_NONE;
    for (size_t i = 0; i < promote->export_count; i++)
        promote->exports[i].ret_count = 0;
}

/* Whether a dead letter is to be exported before it goes. If so, its time is a later one. */
static bool put_off(struct op_promote *promote, instant now, struct job *job)
{
    size_t i = 0;
    while (i < promote->export_count && !slice_equal(promote->exports[i].destination, job->destination))
        i++;
    if (i == promote->export_count)
        return false;
    bool wanted = promote->exports[i].ret_count < promote->exports[i].room;
    if (wanted) {
        promote->due[promote->ret_due_count++] =
            (struct due_letter){ .export = i, .lane = job->lane, .seq = job->seq, .dead_at = job->dead_at };
        promote->exports[i].ret_count++;
    }
    assert(promote->wanted_ms > 0 && promote->unwanted_ms > 0); /* else it would be due at once, for ever */
    job->expires_at = instant_add(now, wanted ? promote->wanted_ms : promote->unwanted_ms);
    promote->ret_put_off++;
    return true;
}

void change_due(struct op_promote *promote, instant now, struct job *job, struct change *ret_change)
{
    assert(job_due(job) != INSTANT_NONE && job_due(job) <= now);
    ret_change->event = EVENT_TYPE_NONE;
    ret_change->deleted = false;
    ret_change->ready = ret_change->dead = 0;
    if (job->state == STATE_DEAD && put_off(promote, now, job))
        return;
    if (job->state == STATE_DEAD) {
        promote->ret_dead_deleted++;
        ret_change->event = EVENT_TYPE_DEAD_EXPIRED;
        ret_change->deleted = true;
        ret_change->dead = -1;
    } else if (job->state == STATE_COMPLETED || job->state == STATE_CANCELLED) {
        promote->ret_forgotten++;
        ret_change->deleted = true;
    } else if (job->deadline != INSTANT_NONE && job->deadline <= now) {
        promote->ret_expired++;
        ret_change->event = EVENT_TYPE_EXPIRED;
        ret_change->dead = 1;
        expire(promote, now, job, ret_change);
    } else {
        assert(!job->ready);
        promote->ret_promoted++;
        job->ready = true;
        ret_change->ready = 1;
    }
}

/* ---- Jobs of one key ---- */

bool job_is_chained(const struct job *job)
{
    assert(!job->behind || (job->chain != 0 && job->state == STATE_PENDING && !job->ready));
    return job->chain != 0 &&
           (job->state == STATE_PENDING || job->state == STATE_RUNNING || job->state == STATE_WAITING);
}

enum chain_news change_chain(const struct job *before, const struct job *after)
{
    if (!before || !job_is_chained(before) || (after && job_is_chained(after)))
        return CHAIN_SAME;
    assert(after); /* only what has ended is deleted */
    return before->behind ? CHAIN_GAP : CHAIN_NEXT;
}

void change_next(enum chain_news news, enum job_state ended, instant now, struct job *next, struct released *ret_released)
{
    assert(news != CHAIN_SAME && next->behind);
    next->gap = next->gap || ended != STATE_COMPLETED;
    if (news == CHAIN_GAP)
        return;
    next->behind = false;
    next->ready = next->run_at <= now;
    ret_released->ready = next->ready;
    ret_released->at = job_due(next) != INSTANT_NONE ? job_due(next) : 0;
}

/* ---- Places, counters, events ---- */

instant job_due(const struct job *job)
{
    switch (job->state) {
    case STATE_PENDING:
    case STATE_WAITING:
        return job->ready || job->behind ? job->deadline : instant_earlier(job->run_at, job->deadline);
    case STATE_DEAD:
        return job->expires_at;
    case STATE_COMPLETED:
    case STATE_CANCELLED:
        return job->forget_at;
    default:
        return INSTANT_NONE;
    }
}

static int64_t *counter_of(struct lane_counts *counts, enum job_state state)
{
    switch (state) {
    case STATE_PENDING:
        return &counts->pending;
    case STATE_RUNNING:
        return &counts->running;
    case STATE_WAITING:
        return &counts->waiting;
    case STATE_COMPLETED:
        return &counts->completed;
    case STATE_DEAD:
        return &counts->dead;
    default:
        assert(state == STATE_CANCELLED);
        return &counts->cancelled;
    }
}

bool lane_counts_possible(const struct lane_counts *counts)
{
    return counts->pending >= 0 && counts->running >= 0 && counts->waiting >= 0 && counts->completed >= 0 &&
           counts->dead >= 0 && counts->cancelled >= 0 && counts->ready >= 0 &&
           counts->ready <= counts->pending + counts->waiting;
}

void lane_counts_shift(struct lane_counts *counts, const struct job *before, const struct job *after)
{
    enum job_state was = before ? before->state : STATE_NONE, is = after ? after->state : STATE_NONE;
    if (was != is && was != STATE_NONE && was != STATE_COMPLETED && was != STATE_CANCELLED) /* those count for ever */
        --*counter_of(counts, was);
    if (was != is && is != STATE_NONE)
        ++*counter_of(counts, is);
    counts->ready += (after && after->ready) - (before && before->ready);
}

void lane_counts_change(struct lane_counts *counts, const struct job *before, const struct job *after)
{
    lane_counts_shift(counts, before, after);
    assert(lane_counts_possible(counts));
}

struct event change_event(enum event_type type, const struct job *job, struct slice data)
{
    assert(type > EVENT_TYPE_NONE && type < EVENT_TYPE_COUNT);
    return (struct event){ .type = type, .state = job->state, .attempt = job->attempts, .destination = job->destination,
                           .tenant = job->tenant, .job = job->id, .data = data, .previous = job->last_event };
}
