#include "api/jobs/why.h"

#include "api/jobs/job_json.h"
#include "api/operate/incident_view.h"
#include "engine/status.h"

#include <inttypes.h>
#include <string.h>

enum { SENTENCE_BYTES_MAX = 8 * 1024 };

/* What is known, and the two sentences that are made of it. */
struct why {
    const struct job *job;
    const struct destination_status *status;
    const struct why_place *place; /* NULL: it is in no queue */
    struct why_place own_place;    /* that, as far as it holds for a tenant that is held */
    const struct lane_hold *lane; /* NULL: not held for itself */
    const struct destination_config *destination;
    int64_t retries_max;
    const char *held_by; /* NULL: nothing holds it */
    bool held_by_tenant; /* it is the tenant's own limit */
    bool asked_tenant;   /* it is about the tenant that the destination asked for a pause */
    instant since, until;
    struct buffer reason, next;
};

static void append_time(struct buffer *out, instant at)
{
    char text[INSTANT_TEXT_BYTES];
    instant_format(at, text);
    buffer_append_text(out, text);
}

static void append_last_error(struct buffer *out, const struct job *job)
{
    if (job->last_error.len == 0 && job->last_code.len == 0)
        return;
    buffer_append_text(out, ": ");
    buffer_append(out, job->last_code);
    if (job->last_error.len > 0 && job->last_code.len > 0)
        buffer_append_text(out, ", ");
    buffer_append(out, job->last_error);
}

/* While the first address is in contingency the holds are the second one's. */
static void append_destination(struct why *why)
{
    struct slice name = why->job->destination;
    if (why->status->fallback)
        buffer_printf(&why->reason, "destination %.*s is in contingency, and its second address", SLICE_ARG(name));
    else
        buffer_printf(&why->reason, "destination %.*s", SLICE_ARG(name));
}

/* As one word for a shell, whatever it has in it. */
static void append_quoted(struct buffer *out, struct slice text)
{
    buffer_append_byte(out, '\'');
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] == '\'')
            buffer_append_text(out, "'\\'");
        buffer_append_byte(out, text.data[i]);
    }
    buffer_append_byte(out, '\'');
}

/* The order that ends it, of the command `dest`; or what is left to somebody who may not give it. */
static void append_order(struct why *why, const char *order, const char *option, bool of_tenant)
{
    const struct job *job = why->job;
    if (why->status->confined) {
        buffer_append_text(&why->next, "; that takes a token that acts for all tenants, so ask an operator. If the job is "
                                       "not to wait: insist cancel ");
        append_quoted(&why->next, job->id);
        return;
    }
    buffer_printf(&why->next, ": insist dest %s %.*s%s", order, SLICE_ARG(job->destination), option);
    if (of_tenant) {
        buffer_append_text(&why->next, " --tenant ");
        append_quoted(&why->next, job->tenant);
    }
}

/* The second address would stand in, but for refused answers. */
static void say_second_held(struct why *why)
{
    if (!why->status->second.held || !why->status->second.wanted)
        return;
    buffer_append_text(&why->reason, "; its second address is held");
    if (why->status->second.reason && *why->status->second.reason)
        buffer_printf(&why->reason, " (%s)", why->status->second.reason);
    else
        buffer_append_text(&why->reason, " because it refuses jobs, or nothing can be sent to it");
    buffer_append_text(&why->next, "; one job is sent to look at the second address");
    if (why->status->second.look_at != INSTANT_NONE) {
        buffer_append_text(&why->next, " at ");
        append_time(&why->next, why->status->second.look_at);
    }
    buffer_append_text(&why->next, ", and a good answer opens it. When it is mended somebody can open it");
    append_order(why, "resume", "", false);
}

/* As "in contingency because an operator held it: they called". */
static void append_mode(struct why *why, const char *mode, const char *note)
{
    bool back = strcmp(mode, "recovering") == 0;
    buffer_append_text(&why->reason, back ? "coming back from contingency" : "in contingency");
    if (why->status->cause)
        buffer_printf(&why->reason, " because %s",
                      cause_words(cause_from_name(slice_from(why->status->cause)), mode_from_name(slice_from(mode))));
    if (note && *note)
        buffer_printf(&why->reason, ": %s", note);
}

static bool is_ordered(const struct destination_status *status, const char *mode)
{
    return status->cause && strcmp(status->cause, "operator") == 0 && strcmp(mode, "contingency") == 0;
}

static void say_paused(struct why *why)
{
    const struct destination_status *status = why->status;
    buffer_printf(&why->reason, "destination %.*s is paused", SLICE_ARG(why->job->destination));
    if (status->pause_reason && *status->pause_reason)
        buffer_printf(&why->reason, " (%s)", status->pause_reason);
    buffer_append_text(&why->next, "it goes on when somebody resumes the destination");
    append_order(why, "resume", "", false);
    if (!status->mode_behind)
        return;
    buffer_append_text(&why->reason, ", and besides ");
    append_mode(why, status->mode_behind, status->behind_reason);
    if (is_ordered(status, status->mode_behind) && !status->confined) {
        buffer_append_text(&why->next, "; and ends the contingency");
        append_order(why, "contingency", " --leave", false);
    }
}

/* Holds that end by themselves, and how. */
static void say_held_by_gate(struct why *why)
{
    static const struct {
        const char *held_by, *reason, *next;
    } sentences[] = {
        { "maintenance", "is away, as it said it would be", "it is sent when the window is over and the destination is back" },
        { "breaker", "is left alone because too many sends failed", "it is sent when a few others have gone well" },
        { "rate", "has had as many sends as its rate allows", "it is sent when the rate allows it" },
        { "cycle", "has had as many sends as this cycle allows", "it is sent in a cycle to come" },
    };
    struct slice name = why->job->destination;
    for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++) {
        if (strcmp(why->held_by, sentences[i].held_by) != 0)
            continue;
        append_destination(why);
        buffer_printf(&why->reason, " %s", sentences[i].reason);
        buffer_append_text(&why->next, sentences[i].next);
        say_second_held(why);
        return;
    }
    bool operator = is_ordered(why->status, why->status->mode);
    bool back = strcmp(why->status->mode, "recovering") == 0;
    buffer_printf(&why->reason, "destination %.*s is ", SLICE_ARG(name));
    append_mode(why, why->status->mode, why->status->pause_reason);
    if (operator)
        buffer_append_text(&why->next, "it goes on when somebody ends it");
    if (operator)
        append_order(why, "contingency", " --leave", false);
    else
        buffer_append_text(&why->next, back ? "it is sent when the step before it has gone well"
                                            : "it is sent when the destination is back, or to see whether it is");
    if (!back && !operator && why->status->look_at != INSTANT_NONE) {
        buffer_append_text(&why->next, "; the next look is at ");
        append_time(&why->next, why->status->look_at);
    }
    say_second_held(why);
}

/* As ": 12 jobs of its tenant are before it, 3 tenants share the destination". */
static void append_place(struct buffer *out, const struct why *why)
{
    if (!why->place || !why->place->queue.known)
        return;
    size_t ahead = why->place->ahead, tenants = why->place->queue.tenants;
    if (ahead == 0)
        buffer_append_text(out, "; it is the next of its tenant");
    else
        buffer_printf(out, "; %zu%s of its tenant's jobs %s before it", ahead, ahead == WHY_AHEAD_MAX ? " or more" : "",
                      ahead == 1 ? "is" : "are");
    if (tenants > 1)
        buffer_printf(out, ", %zu tenants take turns", tenants);
}

static void append_expected(struct buffer *out, const struct why *why, const char *before)
{
    if (!why->place || why->place->queue.at == INSTANT_NONE || why->place->ahead == WHY_AHEAD_MAX)
        return;
    buffer_append_text(out, before);
    append_time(out, why->place->queue.at);
}

/* What ends it, after what looks; then what to do. */
static void say_block_ends(struct why *why, const char *who, instant look_at, bool of_tenant)
{
    buffer_printf(&why->next, "%s is sent to look", who);
    if (look_at != INSTANT_NONE) {
        buffer_append_text(&why->next, " at ");
        append_time(&why->next, look_at);
    }
    buffer_append_text(&why->next, ", then ever less often, an hour apart at most; a good answer ends it. When it is mended "
                                   "somebody can resume it");
    append_order(why, "resume", "", of_tenant);
}

static void say_tenant_blocked(struct why *why)
{
    buffer_printf(&why->reason, "tenant %.*s is held at destination %.*s because its jobs are refused",
                  SLICE_ARG(why->job->tenant), SLICE_ARG(why->job->destination));
    if (why->lane->reason && *why->lane->reason)
        buffer_printf(&why->reason, " (%s)", why->lane->reason);
    say_block_ends(why, "one of the tenant's jobs", why->lane->look_at, true);
}

static void say_destination_blocked(struct why *why)
{
    buffer_printf(&why->reason, "destination %.*s is held", SLICE_ARG(why->job->destination));
    if (why->status->pause_reason && *why->status->pause_reason)
        buffer_printf(&why->reason, " (%s)", why->status->pause_reason);
    else
        buffer_append_text(&why->reason, " because it refuses jobs, or nothing can be sent to it");
    say_block_ends(why, "one job", why->status->look_at, false);
    say_second_held(why);
}

static void say_job_blocked(struct why *why)
{
    const struct job *job = why->job;
    buffer_printf(&why->reason, "it was refused, %" PRId64 " %s in a row, the last time at ", job->step_count,
                  job->step_count == 1 ? "time" : "times");
    append_time(&why->reason, job->updated_at);
    append_last_error(&why->reason, job);
    buffer_append_text(&why->next, "it is sent again at ");
    append_time(&why->next, job->run_at);
    buffer_append_text(&why->next, ", then after twice as long each time, an hour at most; no retry is spent. When it is"
                                   " mended: insist retry ");
    append_quoted(&why->next, job->id);
    buffer_append_text(&why->next, "; if it never will be: insist cancel ");
    append_quoted(&why->next, job->id);
}

static void say_tenant_held(struct why *why)
{
    struct slice name = why->job->destination, tenant = why->job->tenant;
    buffer_printf(&why->reason, "tenant %.*s is paused at destination %.*s", SLICE_ARG(tenant), SLICE_ARG(name));
    if (why->lane->reason && *why->lane->reason)
        buffer_printf(&why->reason, " (%s)", why->lane->reason);
    buffer_append_text(&why->next, "it goes on when somebody resumes the tenant");
    append_order(why, "resume", "", true);
}

static void say_all_under_way(struct why *why)
{
    const struct destination_status *status = why->status;
    int64_t limit = status->limit.now > 0 ? status->limit.now : status->concurrency;
    if (limit == 0) /* not for the eyes of who asks */
        buffer_printf(&why->reason, "as many sends as destination %.*s allows at once are under way",
                      SLICE_ARG(why->job->destination));
    else
        buffer_printf(&why->reason, "all %" PRId64 " sends that destination %.*s allows now are under way", limit,
                      SLICE_ARG(why->job->destination));
    if (limit < status->concurrency) {
        char words[LIMIT_WORDS_BYTES];
        limit_words(&status->limit, words);
        buffer_printf(&why->reason, " (%s)", words);
    }
    buffer_append_text(&why->next, "it is sent when one of them has ended and its turn comes");
}

static void say_share_used(struct why *why)
{
    const struct queue_place *place = &why->place->queue;
    buffer_append_text(&why->reason, "its share of the slots");
    if (place->slots > 0) /* else they are not for the eyes of who asks */
        buffer_printf(&why->reason, " (%" PRId64 " of %" PRId64 ")", place->share, place->slots);
    buffer_append_text(&why->reason, " is in use");
    buffer_append_text(&why->next, "it is sent when one of its tenant's sends has ended, or others need less");
}

static void say_held(struct why *why)
{
    struct slice name = why->job->destination;
    struct buffer *reason = &why->reason;
    if (why->held_by_tenant) {
        buffer_append_text(reason, "its tenant has had as many sends as rate.per_tenant allows");
        append_place(reason, why);
        buffer_append_text(&why->next, "it is sent when the rate allows it");
        append_expected(&why->next, why, ", at about ");
    } else if (strcmp(why->held_by, HELD_BY_TENANT) == 0) {
        say_tenant_held(why);
    } else if (strcmp(why->held_by, HELD_BY_TENANT_BLOCK) == 0) {
        say_tenant_blocked(why);
    } else if (strcmp(why->held_by, HELD_BY_KEY) == 0) {
        buffer_printf(&why->reason, "another job of its key \"%.*s\" goes first", SLICE_ARG(why->job->key));
        buffer_append_text(&why->next, "it goes when that has ended");
    } else if (strcmp(why->held_by, HELD_BY_JOB_BLOCK) == 0) {
        say_job_blocked(why);
    } else if (strcmp(why->held_by, gate_hold_name(HOLD_BLOCKED)) == 0) {
        say_destination_blocked(why);
    } else if (strcmp(why->held_by, "paused") == 0) {
        say_paused(why);
    } else if (strcmp(why->held_by, "throttle") == 0) {
        append_destination(why);
        buffer_append_text(reason, " asked for a pause");
        if (why->asked_tenant)
            buffer_printf(reason, " of tenant %.*s", SLICE_ARG(why->job->tenant));
        if (why->until != INSTANT_NONE) {
            buffer_append_text(reason, " until ");
            append_time(reason, why->until);
        }
        buffer_append_text(&why->next, "it is sent when the pause is over");
    } else if (strcmp(why->held_by, "concurrency") == 0) {
        say_all_under_way(why);
    } else if (strcmp(why->held_by, HELD_BY_TENANT_DEAD) == 0) {
        buffer_printf(reason, "its tenant has as many dead letters at destination %.*s as dead.max_per_tenant allows",
                      SLICE_ARG(name));
        buffer_append_text(&why->next, "it goes on when some of them have been sent again or removed");
    } else if (strcmp(why->held_by, HELD_BY_SHARE) == 0) {
        say_share_used(why);
    } else if (strcmp(why->held_by, "unconfigured") == 0) {
        buffer_printf(reason, "destination %.*s is not in the configuration", SLICE_ARG(name));
        buffer_append_text(&why->next, "it waits until the destination is configured again; cancel it if that will not be");
    } else if (strcmp(why->held_by, "dead_full") == 0) {
        buffer_printf(reason, "destination %.*s has as many dead letters as dead.max allows", SLICE_ARG(name));
        buffer_append_text(&why->next, "it goes on when some of them have been sent again or removed");
    } else if (strcmp(why->held_by, "store_full") == 0) {
        buffer_append_text(reason, "nothing can be written to the store, whose disk is full, and no send begins that is not "
                                   "written there");
        buffer_append_text(&why->next, "it goes on by itself when there is room: free some space; insist doctor says where");
    } else {
        say_held_by_gate(why);
    }
}

static bool is_pulled(const struct why *why)
{
    return why->destination && why->destination->transport == TRANSPORT_PULL;
}

static void say_ready(struct why *why)
{
    buffer_append_text(&why->reason, "it is due and waits for its turn");
    append_place(&why->reason, why);
    if (is_pulled(why)) {
        buffer_append_text(&why->next, "a worker gets it when its turn comes and one asks for work");
        return;
    }
    buffer_append_text(&why->next, "it is sent when its turn comes");
    append_expected(&why->next, why, ", at about ");
    if (why->status && why->status->concurrency > 0)
        buffer_printf(&why->next, "; %" PRId64 " of %" PRId64 " sends are under way", why->status->under_way,
                      why->status->concurrency);
}

/* Its wait may be the destination's wish, which is longer than the policy's own. */
static void say_asked(struct why *why)
{
    const struct destination_status *status = why->status;
    if (!status || !status->held_by || strcmp(status->held_by, gate_hold_name(HOLD_THROTTLE)) != 0 ||
        status->held_until == INSTANT_NONE || why->job->last_class != OUTCOME_THROTTLED)
        return;
    buffer_append_text(&why->reason, "; ");
    append_destination(why);
    buffer_append_text(&why->reason, " asked for a pause until ");
    append_time(&why->reason, status->held_until);
}

static void say_later(struct why *why)
{
    const struct job *job = why->job;
    if (job->state == STATE_PENDING) {
        buffer_append_text(&why->reason, "its run_at has not come");
    } else if (job->step == STEP_VERIFY) {
        buffer_append_text(&why->reason, "it is not known whether an attempt arrived");
        append_last_error(&why->reason, job);
    } else if (job->step == STEP_POLL) {
        buffer_append_text(&why->reason, "the destination accepted it and has not judged it yet");
    } else {
        buffer_printf(&why->reason, "attempt %" PRId64 " failed", job->attempts);
        append_last_error(&why->reason, job);
        say_asked(why);
    }
    buffer_append_text(&why->next, job->step == STEP_VERIFY ? "the destination is asked whether it arrived, at "
                                   : job->step == STEP_POLL ? "the destination is asked again, at "
                                                            : "it is sent at ");
    append_time(&why->next, job->run_at);
    if (job->state == STATE_WAITING && job->step == STEP_SEND)
        buffer_printf(&why->next, ", %" PRId64 " of %" PRId64 " retries spent", job->retry_count, why->retries_max);
}

static void say_running(struct why *why)
{
    buffer_printf(&why->reason, "attempt %" PRId64 " is under way", why->job->attempts);
    buffer_append_text(&why->next, "its answer decides; without one the lease ends at ");
    append_time(&why->next, why->job->lease_until);
}

static void say_dead(struct why *why)
{
    buffer_append(&why->reason, why->job->dead_code);
    append_last_error(&why->reason, why->job);
    const struct dead_config *dead = why->destination ? &why->destination->dead : NULL;
    if (dead && dead->redrive_after_ms > 0 && why->job->redrives_auto < dead->redrive_times &&
        slice_equal(why->job->dead_code, SLICE("MAX_RETRIES_EXCEEDED"))) {
        buffer_append_text(&why->next, "it is sent again by itself while the destination is well, not before ");
        append_time(&why->next, instant_add(why->job->dead_at, dead->redrive_after_ms));
    } else {
        buffer_append_text(&why->next, "nothing, until somebody sends it again with retry");
    }
    if (why->job->expires_at != INSTANT_NONE) {
        buffer_append_text(&why->next, "; it is removed at ");
        append_time(&why->next, why->job->expires_at);
        if (dead && dead->export)
            buffer_printf(&why->next, ", once it is a job of %s", dead->export);
    }
}

static void say(struct why *why, instant now)
{
    const struct job *job = why->job;
    switch (job->state) {
    case STATE_PENDING:
    case STATE_WAITING:
        if (why->held_by && !why->held_by_tenant) {
            say_held(why);
            append_place(&why->reason, why);
            append_expected(&why->next, why, "; at about ");
        } else if (why->held_by)
            say_held(why);
        else if (job->run_at > now)
            say_later(why);
        else
            say_ready(why);
        break;
    case STATE_RUNNING:
        say_running(why);
        break;
    case STATE_DEAD:
        say_dead(why);
        break;
    default:
        buffer_append_text(&why->reason, job->state == STATE_COMPLETED ? "the destination has it" : "it was cancelled");
        buffer_append_text(&why->next, "nothing");
        break;
    }
}

/* Whether it ends only when somebody acts, so that nothing else about the job matters until then. */
static bool needs_somebody(const struct destination_status *status)
{
    static const char *const holds[] = { "paused", "blocked", "unconfigured", "dead_full", "store_full" };
    for (size_t i = 0; i < sizeof holds / sizeof *holds; i++)
        if (strcmp(status->held_by, holds[i]) == 0)
            return true;
    return strcmp(status->held_by, "contingency") == 0 && status->cause && strcmp(status->cause, "operator") == 0;
}

/* One that a job whose time has not come need not heed. */
static bool is_short(const char *held_by)
{
    static const char *const short_holds[] = { "concurrency", "throttle", "rate", "cycle" };
    for (size_t i = 0; i < sizeof short_holds / sizeof *short_holds; i++)
        if (strcmp(held_by, short_holds[i]) == 0)
            return true;
    return false;
}

static bool was_refused(const struct job *job, instant now)
{
    return job->state == STATE_WAITING && job->step == STEP_SEND && job->last_class == OUTCOME_BLOCKED &&
           job->step_count > 0 && job->run_at > now;
}

const char *why_held_by(const struct job *job, const struct destination_status *status, const struct lane_hold *lane,
                        instant now)
{
    const char *held_by = status ? status->held_by : NULL;
    if (job->behind && !(held_by && needs_somebody(status)))
        return HELD_BY_KEY;
    if (lane && !(held_by && needs_somebody(status)))
        return lane->blocked ? HELD_BY_TENANT_BLOCK : HELD_BY_TENANT;
    return was_refused(job, now) && (!held_by || is_short(held_by)) ? HELD_BY_JOB_BLOCK : held_by;
}

/* The tenant's own limit holds it, and for longer than the destination's. */
static bool is_held_by_own_rate(const struct why *why)
{
    const struct destination_status *status = why->status;
    instant own = why->place ? why->place->queue.tenant_until : INSTANT_NONE;
    if (own == INSTANT_NONE)
        return false;
    return !status->held_by || (is_short(status->held_by) && status->held_until != INSTANT_NONE && own > status->held_until);
}

/* The destination wants nothing of its tenant, and nothing else holds it for longer. */
static bool is_held_by_wish(const struct why *why)
{
    const struct destination_status *status = why->status;
    instant asked = why->place ? why->place->queue.asked_until : INSTANT_NONE;
    if (asked == INSTANT_NONE)
        return false;
    return !status->held_by || (is_short(status->held_by) && asked > status->held_until);
}

/* It is due, and nothing of the destination's holds it for longer than a slot becomes free. */
static bool is_held_by_share(const struct why *why)
{
    const char *held_by = why->status->held_by;
    return why->place && why->place->queue.share_used && !is_pulled(why) &&
           (!held_by || strcmp(held_by, gate_hold_name(HOLD_CONCURRENCY)) == 0);
}

static void hold_by(struct why *why, const char *held_by, instant since, instant until)
{
    why->held_by = held_by;
    if (since != INSTANT_NONE && since > why->since)
        why->since = since;
    why->until = until;
}

/*
 * A hold of the destination's that is short counts only for a job that could go otherwise: one whose time has not come
 * waits for that.
 */
static void find_hold(struct why *why, instant now)
{
    const struct job *job = why->job;
    const struct destination_status *status = why->status;
    bool waits = job->state == STATE_PENDING || job->state == STATE_WAITING;
    why->since = job->updated_at;
    why->until = waits && job->run_at > now ? job->run_at : INSTANT_NONE;
    if (!waits || !status)
        return;
    const char *held_by = why_held_by(job, status, why->lane, now);
    bool by_lane = held_by && (strcmp(held_by, HELD_BY_TENANT) == 0 || strcmp(held_by, HELD_BY_TENANT_BLOCK) == 0);
    if (held_by && strcmp(held_by, HELD_BY_KEY) == 0) {
        hold_by(why, held_by, INSTANT_NONE, INSTANT_NONE);
        why->place = NULL; /* it is in no queue until the other has ended */
    } else if (held_by && strcmp(held_by, HELD_BY_JOB_BLOCK) == 0) {
        hold_by(why, held_by, INSTANT_NONE, job->run_at);
        why->place = NULL; /* it is in no queue until then */
    } else if (by_lane) {
        hold_by(why, held_by, why->lane->since, INSTANT_NONE);
        if (why->place) {
            why->own_place = *why->place;
            why->own_place.queue.at = INSTANT_NONE; /* nobody knows when it is resumed */
            why->place = &why->own_place;
        }
    } else if (why->place && why->place->queue.dead_full && !(held_by && needs_somebody(status))) {
        hold_by(why, HELD_BY_TENANT_DEAD, INSTANT_NONE, INSTANT_NONE);
    } else if (job->run_at <= now && is_held_by_wish(why)) {
        why->asked_tenant = true;
        hold_by(why, gate_hold_name(HOLD_THROTTLE), INSTANT_NONE, why->place->queue.asked_until);
    } else if (job->run_at <= now && is_held_by_own_rate(why)) {
        why->held_by_tenant = true;
        hold_by(why, gate_hold_name(HOLD_RATE), INSTANT_NONE, why->place->queue.tenant_until);
    } else if (job->run_at <= now && is_held_by_share(why)) {
        hold_by(why, HELD_BY_SHARE, INSTANT_NONE, INSTANT_NONE);
    } else if (held_by && (job->run_at <= now || !is_short(held_by))) {
        hold_by(why, held_by, status->held_since, status->held_until);
    }
}

/* Where it stands; what is not known is null. */
static void write_queue(struct json_writer *json, const struct why_place *place)
{
    const struct queue_place *queue = &place->queue;
    bool all_counted = place->ahead < WHY_AHEAD_MAX;
    json_member_object(json, "queue");
    json_member_int(json, "ahead", (int64_t)place->ahead);
    json_member_bool(json, "ahead_or_more", !all_counted);
    json_member_int(json, "before", queue->before);
    json_member_int(json, "tenants", (int64_t)queue->tenants);
    if (queue->limit)
        json_member_text(json, "limited_by", queue->limit);
    if (queue->at != INSTANT_NONE && all_counted)
        json_member_instant(json, "expected_at", queue->at);
    else
        json_member_raw(json, "expected_at", SLICE("null"));
    json_object_end(json);
}

/* When it is looked whether what holds it is over; INSTANT_NONE: not by time. */
static instant next_look_at(const struct why *why)
{
    if (!why->held_by || !why->status)
        return INSTANT_NONE;
    if (strcmp(why->held_by, HELD_BY_TENANT_BLOCK) == 0)
        return why->lane->look_at;
    bool looked_at = strcmp(why->held_by, gate_hold_name(HOLD_CONTINGENCY)) == 0 ||
                     strcmp(why->held_by, gate_hold_name(HOLD_BLOCKED)) == 0;
    return looked_at ? why->status->look_at : INSTANT_NONE;
}

void why_write(struct buffer *out, const struct job *job, const struct destination_config *destination,
               const struct destination_status *status, const struct lane_hold *lane, const struct why_place *place,
               instant now)
{
    struct why why = { .job = job, .status = status && status->known ? status : NULL, .place = place, .lane = lane,
                       .destination = destination,
                       .retries_max = destination ? destination->policy.retry.retries_max : 0 };
    buffer_init(&why.reason, SENTENCE_BYTES_MAX);
    buffer_init(&why.next, SENTENCE_BYTES_MAX);
    find_hold(&why, now);
    say(&why, now);

    struct json_writer json = json_begin(out);
    json_member_string(&json, "id", job->id);
    json_member_string(&json, "tenant", job->tenant);
    json_member_string(&json, "destination", job->destination);
    json_member_text(&json, "state", job_state_name(job->state));
    if (why.held_by)
        json_member_text(&json, "held_by", why.held_by);
    json_member_instant(&json, "since", why.since);
    json_member_instant(&json, "until", why.until);
    json_member_instant(&json, "next_look_at", next_look_at(&why));
    if (job->state == STATE_PENDING || job->state == STATE_WAITING)
        json_member_instant(&json, "next_at", job->run_at);
    if (why.place && why.place->queue.known)
        write_queue(&json, why.place);
    json_member_int(&json, "attempt_count", job->attempts);
    json_member_int(&json, "retry_count", job->retry_count);
    if (destination)
        json_member_int(&json, "max_retries", why.retries_max);
    json_member_given(&json, "last_code", job->last_code);
    json_member_given(&json, "last_error", job->last_error);
    json_member_given(&json, "dead_code", job->dead_code);
    json_member_string(&json, "reason", buffer_slice(&why.reason));
    json_member_string(&json, "next", buffer_slice(&why.next));
    json_object_end(&json);
    buffer_release(&why.reason);
    buffer_release(&why.next);
}
