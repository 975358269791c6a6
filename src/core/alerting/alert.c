#include "core/alerting/alert.h"

#include "base/units.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

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
    bool of_the_dead = alert_types[kind].shape == ALERT_COUNT && kind != ALERT_HEADERS_LEFT_OUT;
    return of_the_dead || kind == ALERT_DEAD_LETTERS || kind == ALERT_STORE_DAMAGED;
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

/* ---- what is read ---- */

/* Empties the buckets that time has passed over; all of them when it went back. */
static void share_move(struct share_window *window, instant now)
{
    assert(window->window_ms >= SHARE_BUCKETS);
    int64_t head = now / (window->window_ms / SHARE_BUCKETS);
    int64_t passed = head - window->head;
    if (passed < 0 || passed > SHARE_BUCKETS)
        passed = SHARE_BUCKETS;
    for (int64_t i = 0; i < passed; i++)
        memset(&window->buckets[(head - i) % SHARE_BUCKETS], 0, sizeof *window->buckets);
    window->head = head;
}

struct share_window share_none(void)
{
    return (struct share_window){ .since = INSTANT_NONE };
}

void share_add(struct share_window *window, int64_t window_ms, int64_t ended, int64_t dead, instant now)
{
    assert(now >= 0 && ended >= 0 && dead >= 0 && window_ms >= SHARE_BUCKETS);
    if (window->window_ms != window_ms)
        *window = (struct share_window){ .since = now, .window_ms = window_ms };
    share_move(window, now);
    if (window->since == INSTANT_NONE || window->since > now)
        window->since = now;
    window->buckets[window->head % SHARE_BUCKETS].ended += ended;
    window->buckets[window->head % SHARE_BUCKETS].dead += dead;
}

double share_dead(struct share_window *window, instant now)
{
    assert(window->window_ms >= 0);
    int64_t ended = 0, dead = 0;
    if (window->window_ms == 0)
        return -1;
    share_move(window, now);
    for (int i = 0; i < SHARE_BUCKETS; i++) {
        ended += window->buckets[i].ended;
        dead += window->buckets[i].dead;
    }
    if (ended >= SHARE_LEAST)
        return (double)dead / (double)ended;
    bool whole = window->since != INSTANT_NONE && now - window->since >= window->window_ms;
    return whole ? 0 : -1;
}

void growth_add(struct growth_window *window, int64_t pending, instant now)
{
    assert(window->count <= GROWTH_SAMPLES);
    if (window->count > 0 && window->samples[window->count - 1].at > now)
        window->count = 0; /* the clock was put back */
    if (window->count > 0 && now - window->samples[window->count - 1].at < GROWTH_EVERY_MS)
        return;
    if (window->count == GROWTH_SAMPLES)
        memmove(window->samples, window->samples + 1, --window->count * sizeof *window->samples);
    window->samples[window->count].at = now;
    window->samples[window->count++].pending = pending;
}

double growth_limit(const struct growth_window *window, double times)
{
    assert(window->count <= GROWTH_SAMPLES);
    if (window->count < GROWTH_SAMPLES || times <= 0)
        return 0;
    double then = (double)window->samples[0].pending;
    return then * times > then + GROWTH_LEAST ? then * times : then + GROWTH_LEAST;
}

/* 0.8 at four times what must be free, 0.9 at twice, 1 when it is just that. */
static double disk_share(double free, double least)
{
    assert(free >= 0);
    if (least <= 0)
        return 0;
    if (free < least)
        return STORE_FILL_REFUSES;
    if (free <= 2 * least)
        return 0.9 + 0.1 * (2 * least - free) / least;
    if (free <= 4 * least)
        return 0.8 + 0.1 * (4 * least - free) / (2 * least);
    return 0.8 * 4 * least / free;
}

double store_fill_share(const struct store_fill *fill)
{
    double jobs = fill->pending_max > 0 ? (double)fill->pending / (double)fill->pending_max : 0;
    if (jobs >= 1 && jobs < STORE_FILL_REFUSES)
        jobs = STORE_FILL_REFUSES;
    double disk = fill->disk_free >= 0 ? disk_share((double)fill->disk_free, (double)fill->disk_free_min) : 0;
    return jobs > disk ? jobs : disk;
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
    default:
        append_jobs(out, (int64_t)facts->value, "dead letter", "dead letters");
        buffer_printf(out, "; the limit is %" PRId64, (int64_t)facts->limit);
        break;
    }
}

static void append_state(const struct alert_facts *facts, struct buffer *out)
{
    assert(alert_types[facts->kind].shape == ALERT_STATE);
    switch (facts->kind) {
    case ALERT_CONTINGENCY:
        buffer_append_text(out, "contingency began: jobs are held and lose no tries");
        break;
    case ALERT_DOWN:
        buffer_append_text(out, "down for ");
        append_ms(out, facts->value);
        break;
    case ALERT_BREAKER_OPEN:
        buffer_append_text(out, "the breaker has not been closed for ");
        append_ms(out, facts->value);
        break;
    case ALERT_DEAD_LETTERS:
        buffer_append_text(out, "nobody has acknowledged ");
        append_jobs(out, (int64_t)facts->value, "dead letter", "dead letters");
        break;
    case ALERT_DEAD_FULL:
        buffer_printf(out, "the dead-letter store is full (%" PRId64 "): the destination is held until some are cleared",
                      (int64_t)facts->value);
        break;
    case ALERT_STORE_DAMAGED:
        buffer_append_text(out, "a page of the store cannot be read: insist doctor says what is damaged, a backup mends it");
        break;
    case ALERT_JOB_BLOCKED:
        buffer_append_text(out, "a job is refused each time and is held alone");
        break;
    default:
        buffer_append_text(out, facts->kind == ALERT_BLOCKED && facts->value >= ALERT_SECOND_ADDRESS
                                    ? "its second address is held until a look goes well or somebody resumes it"
                                    : "held until a look goes well or somebody resumes it");
        break;
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
