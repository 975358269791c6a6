#include "core/alerting/alert.h"

#include "base/units.h"

#include <assert.h>
#include <inttypes.h>

const struct alert_type alert_types[ALERT_KIND_COUNT] = {
    [ALERT_CONTINGENCY] = { "contingency", SEVERITY_CRITICAL, ALERT_STATE, MEASURE_NONE, false, "contingency" },
    [ALERT_DOWN] = { "down", SEVERITY_CRITICAL, ALERT_STATE, MEASURE_MS, false, "the long outage" },
    [ALERT_BREAKER_OPEN] = { "breaker_open", SEVERITY_WARNING, ALERT_STATE, MEASURE_MS, false, "the open breaker" },
    [ALERT_BLOCKED] = { "blocked", SEVERITY_CRITICAL, ALERT_STATE, MEASURE_NONE, false, "the block" },
    [ALERT_PENDING] = { "pending", SEVERITY_CRITICAL, ALERT_LEVEL, MEASURE_JOBS, false, "the long queue" },
    [ALERT_GROWTH] = { "growth", SEVERITY_WARNING, ALERT_LEVEL, MEASURE_JOBS, false, "the growth of the queue" },
    [ALERT_AGE] = { "age", SEVERITY_WARNING, ALERT_LEVEL, MEASURE_MS, false, "the long wait" },
    [ALERT_DEAD] = { "dead", SEVERITY_WARNING, ALERT_LEVEL, MEASURE_JOBS, false, "the pile of dead letters" },
    [ALERT_DEAD_LETTERS] = { "dead_letters", SEVERITY_WARNING, ALERT_STATE, MEASURE_JOBS, false,
                             "the wait of dead letters" },
    [ALERT_DEAD_RATE] = { "dead_rate", SEVERITY_WARNING, ALERT_LEVEL, MEASURE_SHARE, false,
                          "the high share of dead letters" },
    [ALERT_DEAD_FULL] = { "dead_full", SEVERITY_CRITICAL, ALERT_STATE, MEASURE_JOBS, false, "the full dead-letter store" },
    [ALERT_DEAD_EXPORT] = { "dead_export", SEVERITY_WARNING, ALERT_STATE, MEASURE_JOBS, false,
                            "the wait of dead letters for their export" },
    [ALERT_MAX_RETRIES_EXCEEDED] = { "max_retries_exceeded", SEVERITY_CRITICAL, ALERT_COUNT, MEASURE_JOBS, false,
                                     "the run of jobs that used up their retries" },
    [ALERT_PERMANENT_ERROR] = { "permanent_error", SEVERITY_CRITICAL, ALERT_COUNT, MEASURE_JOBS, false,
                                "the run of permanent errors" },
    [ALERT_IN_DOUBT] = { "in_doubt", SEVERITY_CRITICAL, ALERT_COUNT, MEASURE_JOBS, false, "the run of jobs in doubt" },
    [ALERT_PARTIAL] = { "partial", SEVERITY_WARNING, ALERT_COUNT, MEASURE_JOBS, false, "the run of jobs taken in part" },
    [ALERT_HEADERS_LEFT_OUT] = { "headers_left_out", SEVERITY_WARNING, ALERT_COUNT, MEASURE_JOBS, false,
                                 "the run of jobs that went without a header of theirs" },
    [ALERT_JOB_BLOCKED] = { "job_blocked", SEVERITY_WARNING, ALERT_STATE, MEASURE_NONE, false, "the hold of refused jobs" },
    [ALERT_TENANT_BLOCKED] = { "tenant_blocked", SEVERITY_CRITICAL, ALERT_STATE, MEASURE_NONE, true, "the tenant's block" },
    [ALERT_DEAD_PER_TENANT] = { "dead_per_tenant", SEVERITY_WARNING, ALERT_LEVEL, MEASURE_JOBS, true,
                                "the tenant's pile of dead letters" },
    [ALERT_EXPIRED] = { "expired", SEVERITY_CRITICAL, ALERT_COUNT, MEASURE_JOBS, false, "the run of expired jobs" },
    [ALERT_STORE_FILLING] = { "store_filling", SEVERITY_WARNING, ALERT_LEVEL, MEASURE_SHARE, false,
                              "the filling of the store" },
    [ALERT_STORE_NEARLY_FULL] = { "store_nearly_full", SEVERITY_CRITICAL, ALERT_LEVEL, MEASURE_SHARE, false,
                                  "the nearly full store" },
    [ALERT_STORE_REFUSING] = { "store_refusing", SEVERITY_CRITICAL, ALERT_LEVEL, MEASURE_SHARE, false, "the full store" },
    [ALERT_STORE_DAMAGED] = { "store_damaged", SEVERITY_CRITICAL, ALERT_STATE, MEASURE_NONE, false,
                              "the damage of the store" },
    [ALERT_SOURCE_AWAY] = { "source_away", SEVERITY_CRITICAL, ALERT_STATE, MEASURE_MS, false, "the silence of a source" },
    [ALERT_SOURCE_REJECTED] = { "source_rejected", SEVERITY_WARNING, ALERT_COUNT, MEASURE_JOBS, false,
                                "the run of entries that could not become jobs" },
    [ALERT_REDIS_FILLING] = { "redis_filling", SEVERITY_WARNING, ALERT_LEVEL, MEASURE_SHARE, false, "the filling of Redis" },
    [ALERT_REDIS_NEARLY_FULL] = { "redis_nearly_full", SEVERITY_CRITICAL, ALERT_LEVEL, MEASURE_SHARE, false,
                                  "the nearly full Redis" },
    [ALERT_REDIS_REFUSING] = { "redis_refusing", SEVERITY_CRITICAL, ALERT_COUNT, MEASURE_JOBS, false,
                               "the run of refusals by Redis" },
    [ALERT_REDIS_UNSAFE] = { "redis_unsafe", SEVERITY_WARNING, ALERT_STATE, MEASURE_NONE, false,
                             "the unsafe setting of Redis" },
    [ALERT_NODE_GONE] = { "node_gone", SEVERITY_CRITICAL, ALERT_STATE, MEASURE_NONE, false, "the absence of a node" },
    [ALERT_NODES_DIFFER] = { "nodes_differ", SEVERITY_WARNING, ALERT_STATE, MEASURE_MS, false,
                             "the difference of configurations" },
    [ALERT_HEAD_MISSING] = { "head_missing", SEVERITY_CRITICAL, ALERT_STATE, MEASURE_NONE, false,
                             "the loss of a chain's end" },
};

const char *alert_severity_name(enum alert_severity severity)
{
    assert(severity <= SEVERITY_CRITICAL);
    static const char *const names[] = { [SEVERITY_INFO] = "info", [SEVERITY_WARNING] = "warning",
                                         [SEVERITY_CRITICAL] = "critical" };
    return names[severity];
}

enum alert_kind alert_kind_from_name(struct slice name)
{
    int kind = 0;
    while (kind < ALERT_KIND_COUNT && !slice_equal(name, slice_from(alert_types[kind].name)))
        kind++;
    return (enum alert_kind)kind;
}

enum alert_kind alert_kind_of_dead(struct slice dead_code)
{
    static const struct {
        const char *dead_code;
        enum alert_kind kind;
    } kinds[] = {
        { "MAX_RETRIES_EXCEEDED", ALERT_MAX_RETRIES_EXCEEDED },
        { "PERMANENT_ERROR", ALERT_PERMANENT_ERROR },
        { "IN_DOUBT", ALERT_IN_DOUBT },
        { "PARTIAL", ALERT_PARTIAL },
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (slice_equal(dead_code, slice_from(kinds[i].dead_code)))
            return kinds[i].kind;
    return ALERT_KIND_COUNT;
}

bool alert_ends_by_hand(enum alert_kind kind)
{
    assert(kind < ALERT_KIND_COUNT);
    bool lost = alert_types[kind].shape == ALERT_COUNT && kind != ALERT_HEADERS_LEFT_OUT && kind != ALERT_REDIS_REFUSING;
    return lost || kind == ALERT_DEAD_LETTERS || kind == ALERT_STORE_DAMAGED || kind == ALERT_HEAD_MISSING;
}

bool alert_matches(enum alert_kind kind, struct slice word)
{
    assert(kind < ALERT_KIND_COUNT);
    return slice_equal(word, SLICE("all")) || slice_equal(word, slice_from(alert_types[kind].name)) ||
           slice_equal(word, slice_from(alert_severity_name(alert_types[kind].severity)));
}

bool alert_word_is_known(struct slice word)
{
    bool known = slice_equal(word, slice_from(alert_severity_name(SEVERITY_INFO)));
    for (int kind = 0; kind < ALERT_KIND_COUNT && !known; kind++)
        known = alert_matches((enum alert_kind)kind, word);
    return known;
}

/* ---- judging ---- */

struct alert_state alert_state_none(void)
{
    return (struct alert_state){ .raised_at = INSTANT_NONE, .low_since = INSTANT_NONE, .last_at = INSTANT_NONE,
                                    .reported_at = INSTANT_NONE };
}

static enum alert_step raise_it(struct alert_state *state, instant now)
{
    assert(!state->stands);
    state->stands = true;
    state->raised_at = state->reported_at = now;
    state->low_since = INSTANT_NONE;
    state->reported = state->count;
    return ALERT_RAISED;
}

static enum alert_step clear_it(struct alert_state *state)
{
    assert(state->stands);
    state->stands = false;
    return ALERT_CLEARED;
}

/* Whether `ms` have passed; a time to come, after a clock was put back, becomes now. */
static bool has_passed(instant *since, int64_t ms, instant now)
{
    assert(ms >= 0);
    if (*since > now)
        *since = now;
    return instant_add(*since, ms) <= now;
}

static enum alert_step judge_state(const struct alert_reading *reading, struct alert_state *state, instant now)
{
    bool over = reading->value <= 0;
    if (state->stands)
        return over ? clear_it(state) : ALERT_SAME;
    return !over && !reading->excused && reading->value >= reading->limit ? raise_it(state, now) : ALERT_SAME;
}

static enum alert_step judge_level(const struct alert_reading *reading, struct alert_state *state, instant now)
{
    if (!state->stands)
        return !reading->excused && reading->limit > 0 && reading->value > reading->limit ? raise_it(state, now)
                                                                                           : ALERT_SAME;
    if (reading->value >= 0.9 * reading->limit)
        state->low_since = INSTANT_NONE;
    else if (state->low_since == INSTANT_NONE)
        state->low_since = now;
    else if (has_passed(&state->low_since, ALERT_CLEAR_MS, now))
        return clear_it(state);
    return ALERT_SAME;
}

static enum alert_step judge_count(enum alert_kind kind, const struct alert_reading *reading,
                                   struct alert_state *state, instant now)
{
    assert(alert_types[kind].shape == ALERT_COUNT);
    bool came = reading->value > 0;
    bool again = came && state->stands && has_passed(&state->last_at, (int64_t)reading->limit, now);
    if (came) {
        state->count += (int64_t)reading->value;
        state->last_at = now;
    }
    if (!state->stands)
        return came ? raise_it(state, now) : ALERT_SAME;
    bool tenfold = state->count / ALERT_GROWN_TIMES >= state->reported;
    if (again || (tenfold && has_passed(&state->reported_at, ALERT_GROWN_MS, now))) {
        state->reported = state->count;
        state->reported_at = now;
        return ALERT_GROWN;
    }
    bool by_hand = alert_ends_by_hand(kind);
    bool over = !came && (reading->gone || !by_hand) &&
                has_passed(&state->last_at, by_hand ? ALERT_CLEAR_MS : (int64_t)reading->limit, now);
    return over ? clear_it(state) : ALERT_SAME;
}

enum alert_step alert_judge(enum alert_kind kind, const struct alert_reading *reading, struct alert_state *state,
                            instant now)
{
    assert(kind < ALERT_KIND_COUNT);
    if (!reading->watched)
        return state->stands ? clear_it(state) : ALERT_SAME;
    switch (alert_types[kind].shape) {
    case ALERT_STATE:
        return judge_state(reading, state, now);
    case ALERT_LEVEL:
        return judge_level(reading, state, now);
    default:
        return judge_count(kind, reading, state, now);
    }
}

/* ---- in words ---- */

static void append_ms(struct buffer *out, double ms)
{
    char text[UNITS_TEXT_BYTES];
    int64_t whole = (int64_t)ms;
    duration_format(whole >= MINUTE_MS ? whole / SECOND_MS * SECOND_MS : whole, text);
    buffer_append_text(out, text);
}

static void append_jobs(struct buffer *out, int64_t count, const char *one, const char *many)
{
    buffer_printf(out, "%" PRId64 " %s", count, count == 1 ? one : many);
}

static void append_where(const struct alert_facts *facts, struct buffer *out)
{
    if (facts->destination.len > 0)
        buffer_printf(out, "%.*s: ", SLICE_ARG(facts->destination));
    if (facts->tenant.len > 0)
        buffer_printf(out, "tenant %.*s: ", SLICE_ARG(facts->tenant));
}

static void append_level(const struct alert_facts *facts, struct buffer *out)
{
    assert(alert_types[facts->kind].shape == ALERT_LEVEL);
    switch (facts->kind) {
    case ALERT_PENDING:
        append_jobs(out, (int64_t)facts->value, "job is not done", "jobs are not done");
        buffer_printf(out, "; the limit is %" PRId64, (int64_t)facts->limit);
        break;
    case ALERT_GROWTH:
        append_jobs(out, (int64_t)facts->value, "job is not done", "jobs are not done");
        buffer_printf(out, ", many more than ten minutes ago; the limit is %" PRId64, (int64_t)facts->limit);
        break;
    case ALERT_AGE:
        buffer_append_text(out, "jobs that are not done are ");
        append_ms(out, facts->value);
        buffer_append_text(out, " old on average; the limit is ");
        append_ms(out, facts->limit);
        break;
    case ALERT_DEAD_RATE:
        buffer_printf(out, "%.1f%% of the jobs that ended of late are dead; the limit is %.1f%%",
                      100 * facts->value, 100 * facts->limit);
        break;
    case ALERT_STORE_FILLING:
    case ALERT_STORE_NEARLY_FULL:
        buffer_printf(out, "the store is %d%% full", facts->value < 1 ? (int)(100 * facts->value) : 100);
        break;
    case ALERT_STORE_REFUSING:
        buffer_append_text(out, "the store is full: new jobs are refused");
        break;
    case ALERT_REDIS_FILLING:
    case ALERT_REDIS_NEARLY_FULL:
        buffer_printf(out, "Redis uses %d%% of its memory", (int)(100 * facts->value));
        break;
    default:
        append_jobs(out, (int64_t)facts->value, "dead letter", "dead letters");
        buffer_printf(out, "; the limit is %" PRId64, (int64_t)facts->limit);
        break;
    }
}

static void append_state(const struct alert_facts *facts, struct buffer *out)
{
    assert(alert_types[facts->kind].shape == ALERT_STATE);
    static const char *const texts[ALERT_KIND_COUNT] = {
        [ALERT_CONTINGENCY] = "contingency began: jobs are held and lose no tries",
        [ALERT_DOWN] = "down for ",
        [ALERT_BREAKER_OPEN] = "the breaker has not been closed for ",
        [ALERT_STORE_DAMAGED] = "a page of the store cannot be read: insist doctor says what is damaged, a backup mends it",
        [ALERT_SOURCE_AWAY] = "nothing was read from a source for ",
        [ALERT_REDIS_UNSAFE] = "Redis may lose what it was given",
        [ALERT_NODE_GONE] = "a node was taken for dead and has not come back; others have what it had",
        [ALERT_NODES_DIFFER] = "nodes have had different configurations for ",
        [ALERT_HEAD_MISSING] = "the end of a chain of events is gone: insist audit verify says what is missing",
        [ALERT_JOB_BLOCKED] = "a job is refused each time and is held alone",
        [ALERT_BLOCKED] = "held until a look goes well or somebody resumes it",
        [ALERT_TENANT_BLOCKED] = "held until a look goes well or somebody resumes it",
    };
    int64_t count = (int64_t)facts->value;
    if (facts->kind == ALERT_DEAD_LETTERS) {
        buffer_append_text(out, "nobody has acknowledged ");
        append_jobs(out, count, "dead letter", "dead letters");
    } else if (facts->kind == ALERT_DEAD_FULL) {
        buffer_printf(out, "the dead-letter store is full (%" PRId64 "): the destination is held until some are cleared",
                      count);
    } else if (facts->kind == ALERT_DEAD_EXPORT) {
        append_jobs(out, count, "dead letter", "dead letters");
        buffer_append_text(out, " could not be exported when their time was over: they stay");
    } else {
        if (facts->kind == ALERT_BLOCKED && facts->value >= ALERT_SECOND_ADDRESS)
            buffer_append_text(out, "its second address is ");
        assert(texts[facts->kind]);
        buffer_append_text(out, texts[facts->kind]);
        if (alert_types[facts->kind].measure == MEASURE_MS)
            append_ms(out, facts->value);
    }
}

static void append_count(const struct alert_facts *facts, struct buffer *out)
{
    assert(alert_types[facts->kind].shape == ALERT_COUNT);
    static const char *const ends[ALERT_KIND_COUNT][2] = {
        [ALERT_MAX_RETRIES_EXCEEDED] = { "job used up its retries", "jobs used up their retries" },
        [ALERT_PERMANENT_ERROR] = { "job met a permanent error", "jobs met a permanent error" },
        [ALERT_IN_DOUBT] = { "job is in doubt and needs a person", "jobs are in doubt and need a person" },
        [ALERT_PARTIAL] = { "job was taken in part", "jobs were taken in part" },
        [ALERT_HEADERS_LEFT_OUT] = { "job went without a header that it may not set",
                                     "jobs went without a header that they may not set" },
        [ALERT_SOURCE_REJECTED] = { "entry of a source could not become a job", "entries of sources could not become jobs" },
        [ALERT_REDIS_REFUSING] = { "connection or command was refused by Redis", "connections or commands were refused by Redis" },
        [ALERT_EXPIRED] = { "job was too old before it was done", "jobs were too old before they were done" },
    };
    assert(ends[facts->kind][0]);
    append_jobs(out, facts->count, ends[facts->kind][0], ends[facts->kind][1]);
}

void alert_summary(const struct alert_facts *facts, struct buffer *out)
{
    assert(facts->kind < ALERT_KIND_COUNT);
    enum alert_shape shape = alert_types[facts->kind].shape;
    append_where(facts, out);
    if (facts->step == ALERT_CLEARED) {
        buffer_printf(out, "%s is %s after ", alert_types[facts->kind].title, facts->acked ? "acknowledged" : "over");
        append_ms(out, (double)facts->lasted_ms);
        if (facts->acked_by.len > 0)
            buffer_printf(out, " by %.*s", SLICE_ARG(facts->acked_by));
        if (shape == ALERT_COUNT) {
            buffer_append_text(out, "; ");
            append_count(facts, out);
        }
    } else if (shape == ALERT_COUNT) {
        append_count(facts, out);
    } else if (shape == ALERT_LEVEL) {
        append_level(facts, out);
    } else {
        append_state(facts, out);
    }
    bool was_figures = shape == ALERT_LEVEL && facts->step == ALERT_CLEARED; /* of when it was raised */
    if (facts->reason.len > 0 && !was_figures)
        buffer_printf(out, " (%.*s)", SLICE_ARG(facts->reason));
}
