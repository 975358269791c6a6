#include "engine/measures.h"

#include "base/log.h"
#include "core/decision/backoff.h"
#include "engine/alerts/alert_book.h"
#include "engine/loop.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    CODE_IDLE_MS = HOUR_MS,   /* a code that did not occur for so long makes room for another */
    ACTIVITY_STEP = 16,       /* what a served job counts for; halved each minute */
    ACTIVITY_HALF_MS = MINUTE_MS,
    SPREAD_WHOLE = 1000,
};

const struct histogram_bounds measured_duration = {
    17, { 1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 120000, 300000 }
};
const struct histogram_bounds measured_delivery = {
    18, { 5, 10, 25, 50, 100, 250, 500, 1000, 5000, 15000, 60000, 300000, 900000, 3600000, 7200000, 14400000,
          86400000, 604800000 }
};
/* Those from half a minute on are round in minutes too. */
const struct histogram_bounds measured_wait = {
    16, { 500, 1000, 2000, 5000, 10000, 30000, 60000, 120000, 300000, 360000, 600000, 1200000, 2400000, 4800000, 9600000,
          14400000 }
};
const struct histogram_bounds measured_spread = { 10, { 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000 } };
const struct histogram_bounds measured_analysis = {
    15, { 1000, 2000, 5000, 10000, 25000, 50000, 100000, 250000, 500000, 1000000, 10000000, 100000000, 1000000000,
          2000000000, 5000000000 }
};

/* ---- codes ---- */

/* The code's own counts, or those of all others: too many, too long, or not text. */
static struct code_measure *code_of(struct measures *measures, struct slice code, instant now)
{
    struct code_measure *oldest = NULL;
    if (code.len == 0 || code.len >= MEASURED_CODE_BYTES_MAX || slice_equal(code, SLICE("other")) || !utf8_is_valid(code) ||
        memchr(code.data, '\0', code.len))
        return &measures->codes.other;
    for (size_t i = 0; i < measures->codes.count; i++) {
        struct code_measure *known = &measures->codes.items[i];
        if (strncmp(known->code, code.data, code.len) == 0 && known->code[code.len] == '\0')
            return known;
        if (!oldest || known->used_at < oldest->used_at)
            oldest = known;
    }
    assert(measures->codes.count <= MEASURED_CODES_MAX);
    if (measures->codes.count < MEASURED_CODES_MAX)
        oldest = &measures->codes.items[measures->codes.count++];
    else if (now - oldest->used_at < CODE_IDLE_MS)
        return &measures->codes.other;
    *oldest = (struct code_measure){ .used_at = now };
    memcpy(oldest->code, code.data, code.len);
    return oldest;
}

static void note_code(struct measures *measures, struct slice code, bool dead, instant now)
{
    struct code_measure *measure = code_of(measures, code, now);
    measure->failed++;
    measure->dead += dead;
    measure->used_at = now;
    assert(measure->dead <= measure->failed);
}

/* ---- tenants ---- */

static uint64_t activity_at(const struct lane_state *lane, instant now)
{
    int64_t halvings = now > lane->active_at ? (now - lane->active_at) / ACTIVITY_HALF_MS : 0;
    return halvings < 64 ? lane->activity >> halvings : 0;
}

static void note_activity(struct lane_state *lane, instant now)
{
    uint64_t activity = activity_at(lane, now) + ACTIVITY_STEP;
    int64_t halvings = now > lane->active_at ? (now - lane->active_at) / ACTIVITY_HALF_MS : 0;
    lane->active_at = lane->activity == 0 ? now : lane->active_at + halvings * ACTIVITY_HALF_MS;
    lane->activity = activity;
    assert(lane->activity >= ACTIVITY_STEP);
}

/* A place for a busy tenant: a free one, or that of one which is less than half as busy. NULL: it is one of the others. */
static struct tenant_measure *tenant_place(struct measures *measures, const struct lane_state *lane, instant now)
{
    struct tenant_measure *least = NULL;
    uint64_t least_activity = 0;
    if (measures->tenants.count < MEASURED_TENANTS_MAX)
        return &measures->tenants.items[measures->tenants.count++];
    for (size_t i = 0; i < measures->tenants.count; i++) {
        uint64_t activity = activity_at(measures->tenants.items[i].lane, now);
        if (!least || activity < least_activity) {
            least = &measures->tenants.items[i];
            least_activity = activity;
        }
    }
    assert(least && least->lane->measure == least);
    if (activity_at(lane, now) <= 2 * least_activity)
        return NULL;
    least->lane->measure = NULL;
    return least;
}

static struct tenant_measure *tenant_of(struct measures *measures, struct lane_state *lane, instant now)
{
    if (strcmp(lane->tenant, "other") == 0)
        return &measures->tenants.other;
    note_activity(lane, now);
    assert(!lane->measure || lane->measure->lane == lane);
    if (lane->measure)
        return lane->measure;
    lane->measure = tenant_place(measures, lane, now);
    if (!lane->measure)
        return &measures->tenants.other;
    *lane->measure = (struct tenant_measure){ .lane = lane };
    return lane->measure;
}

/* ---- answers ---- */

void measures_claimed(struct dest *dest, const struct job *jobs, size_t count, instant now)
{
    for (size_t i = 0; i < count; i++) {
        instant could_go = jobs[i].run_at != INSTANT_NONE && jobs[i].run_at > jobs[i].created_at ? jobs[i].run_at
                                                                                                  : jobs[i].created_at;
        if (jobs[i].attempts != 1 || jobs[i].generation != 1 || jobs[i].step != STEP_SEND)
            continue;
        histogram_note(&dest->measures.times.queued, &measured_delivery, now > could_go ? now - could_go : 0);
        dest->measures.head_at = could_go;
    }
}

static enum measured_label label_of(const struct decision *decision)
{
    const char *label = outcome_label(decision->outcome, decision->known);
    return label[0] == 'T' ? LABEL_TRANSIENT : label[0] == 'P' ? LABEL_PERMANENT : LABEL_UNKNOWN;
}

/* Where in its spread a wait was drawn, unless something else than the policy's own growth made it. */
static void note_spread(struct dest *dest, const struct job *job, const struct settlement *settlement)
{
    if (!dest->config)
        return;
    const struct retry_policy *policy = &dest->config->policy.retry;
    int64_t retry = settlement->decision.retry_count, delay_ms = settlement->decision.delay_ms;
    if (retry < 1)
        return;
    dest->measures.capped += backoff_nominal_ms(policy, retry, job->priority) >= policy->cap_ms;
    struct backoff_range range = backoff_range(policy, retry, job->priority);
    assert(range.high_ms >= range.low_ms);
    if (range.high_ms > range.low_ms && delay_ms >= range.low_ms && delay_ms <= range.high_ms)
        histogram_note(&dest->measures.times.spread, &measured_spread,
                       (delay_ms - range.low_ms) * SPREAD_WHOLE / (range.high_ms - range.low_ms));
}

static void note_attempt(struct measures *measures, const struct job *job, int64_t duration_ms,
                         const struct settlement *settlement, bool taken, instant now)
{
    assert(settlement->decision.outcome < OUTCOME_COUNT);
    int64_t number = job->attempts < 1 ? 1 : job->attempts;
    struct attempt_measure *attempt =
        &measures->attempts[number <= MEASURED_ATTEMPTS_MAX ? number - 1 : MEASURED_ATTEMPTS_MAX];
    struct minute_measure *minute = &measures->minute;
    measures->outcomes[settlement->decision.outcome]++;
    attempt->answered++;
    attempt->delivered += taken;
    attempt->retried += settlement->decision.verdict == VERDICT_RETRY;
    histogram_note(&measures->times.duration, &measured_duration, duration_ms);
    if (minute->sent++ == 0)
        minute->since = now;
    *(taken ? &minute->succeeded : &minute->failed) += 1;
    histogram_note(&minute->duration, &measured_duration, duration_ms);
    assert(minute->succeeded + minute->failed == minute->sent && attempt->delivered <= attempt->answered);
}

static enum daybook_end daybook_end_of(enum verdict verdict)
{
    if (verdict == VERDICT_PERMANENT)
        return DAYBOOK_PERMANENT;
    return verdict == VERDICT_EXHAUSTED ? DAYBOOK_EXHAUSTED : DAYBOOK_OTHER_DEAD;
}

/* For the day's report. */
static void note_end(struct dest *dest, const struct job *job, struct slice code, const struct settlement *settlement,
                     instant now)
{
    bool delivered = settlement->decision.verdict == VERDICT_COMPLETE;
    assert(!delivered || !settlement->dead);
    if (!delivered && !settlement->dead)
        return;
    enum daybook_end end = delivered ? DAYBOOK_DELIVERED : daybook_end_of(settlement->decision.verdict);
    int64_t took_ms = job->first_at != INSTANT_NONE && now > job->first_at ? now - job->first_at : 0;
    daybook_job(&dest->days.today, end, job->attempts, took_ms, code);
    dest->days.unsaved = true;
}

void measures_answered(struct lane_state *lane, const struct job *job, const struct answer *answer,
                       const struct settlement *settlement, instant now)
{
    assert(settlement->decision.verdict < VERDICT_COUNT);
    struct dest *dest = lane->dest;
    struct measures *measures = &dest->measures;
    const struct decision *decision = &settlement->decision;
    bool taken = decision->verdict == VERDICT_COMPLETE || decision->verdict == VERDICT_POLL;
    if (!answer->attempted && !settlement->dead) {
        measures->unsent++;
        return;
    }
    struct tenant_measure *tenant = tenant_of(measures, lane, now);
    note_end(dest, job, answer->code, settlement, now);
    if (!answer->attempted) {
        tenant->dead++;
        measures->untried_dead[decision->verdict]++;
        note_code(measures, answer->code, true, now);
        return;
    }
    tenant->processed++;
    tenant->dead += settlement->dead;
    measures->verdicts[decision->verdict]++;
    if (job->attempts > 1) {
        measures->retried_delivered += decision->verdict == VERDICT_COMPLETE;
        measures->retried_dead += settlement->dead;
    }
    if (job->step == STEP_SEND)
        daybook_attempt(&dest->days.today, job->attempts, taken);
    if (job->step == STEP_SEND)
        note_attempt(measures, job, answer->duration_ms, settlement, taken, now);
    if (decision->verdict == VERDICT_COMPLETE)
        histogram_note(&measures->times.delivery, &measured_delivery, now > job->created_at ? now - job->created_at : 0);
    if (taken)
        return;
    measures->labels[label_of(decision)]++;
    note_code(measures, answer->code, settlement->dead, now);
    if (decision->verdict == VERDICT_RETRY) {
        histogram_note(&measures->times.wait, &measured_wait, decision->delay_ms);
        note_spread(dest, job, settlement);
    }
}

void measures_recovered(struct lane_state *lane, const struct op_settle *settle, instant now)
{
    static const struct { const char *code; enum verdict verdict; } ends[] = {
        { "MAX_RETRIES_EXCEEDED", VERDICT_EXHAUSTED }, { "EXPIRED", VERDICT_EXPIRED },     { "IN_DOUBT", VERDICT_PARK },
        { "PARTIAL", VERDICT_SPLIT },                  { "PERMANENT_ERROR", VERDICT_PERMANENT },
    };
    struct measures *measures = &lane->dest->measures;
    bool dead = settle->event == EVENT_GIVE_UP || settle->event == EVENT_EXPIRE;
    measures->recovered++;
    note_code(measures, settle->code, dead, now);
    if (!dead)
        return;
    tenant_of(measures, lane, now)->dead++;
    lane->dest->days.unsaved = true;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        if (!slice_equal(settle->dead_code, slice_from(ends[i].code)))
            continue;
        measures->untried_dead[ends[i].verdict]++;
        daybook_job(&lane->dest->days.today, daybook_end_of(ends[i].verdict), settle->retry_count + 1, 0, settle->code);
    }
}

/* ---- questions ---- */

struct decided {
    char *policy;
    struct measures measures;
    struct decided *next;
};

/* NULL: no memory, or there are too many to be reported singly. */
static struct measures *measures_of(struct engine *engine, struct slice policy)
{
    struct dest *dest = dest_find(engine, policy);
    struct decided **link = &engine->measured.decided;
    size_t count = 0;
    if (dest && dest->config)
        return &dest->measures;
    for (; *link; link = &(*link)->next, count++)
        if (slice_equal(slice_from((*link)->policy), policy))
            return &(*link)->measures;
    assert(count <= MEASURED_POLICIES_MAX);
    struct decided *made = count < MEASURED_POLICIES_MAX ? calloc(1, sizeof *made) : NULL;
    if (made)
        made->policy = strndup(policy.data, policy.len);
    if (!made || !made->policy) {
        free(made);
        return NULL;
    }
    *link = made;
    return &made->measures;
}

void engine_decided(struct engine *engine, struct slice policy, const struct decision *decision, int64_t took_ns)
{
    assert(decision->verdict < VERDICT_COUNT);
    struct measures *measures = measures_of(engine, policy);
    if (!measures)
        return;
    measures->decided[decision->verdict]++;
    histogram_note(&measures->times.analysis, &measured_analysis, took_ns);
    if (decision->verdict == VERDICT_COMPLETE || decision->verdict == VERDICT_POLL)
        return;
    measures->labels[label_of(decision)]++;
    if (decision->verdict == VERDICT_RETRY)
        histogram_note(&measures->times.wait, &measured_wait, decision->delay_ms);
}

void decided_free(struct engine *engine)
{
    while (engine->measured.decided) {
        struct decided *next = engine->measured.decided->next;
        free(engine->measured.decided->policy);
        free(engine->measured.decided);
        engine->measured.decided = next;
    }
}

static enum status copy_policies(const struct engine *engine, struct arena *memory, struct engine_measures *ret)
{
    size_t count = 0;
    for (const struct decided *decided = engine->measured.decided; decided; decided = decided->next)
        count++;
    ret->policies = arena_alloc_array(memory, count + 1, sizeof *ret->policies);
    if (!ret->policies)
        return STATUS_NO_MEMORY;
    for (const struct decided *decided = engine->measured.decided; decided; decided = decided->next) {
        struct destination_measures *policy = &ret->policies[ret->policy_count++];
        *policy = (struct destination_measures){ .name = arena_copy(memory, slice_from(decided->policy)),
                                                 .measures = decided->measures };
        if (!policy->name.data)
            return STATUS_NO_MEMORY;
    }
    assert(ret->policy_count == count);
    return STATUS_OK;
}

int64_t measures_ticks(const struct engine *engine)
{
    return engine->ports.ticks_ns ? engine->ports.ticks_ns(engine->ports.context) : 0;
}

void measures_analysed(const struct engine *engine, struct dest *dest, int64_t began)
{
    if (engine->ports.ticks_ns)
        histogram_note(&dest->measures.times.analysis, &measured_analysis, measures_ticks(engine) - began);
}

/* ---- time ---- */

/* S3-092: times and throughput. */
static void tell_minute(const struct dest *dest, const struct minute_measure *minute, instant now)
{
    int64_t ms = now - minute->since;
    assert(ms > 0 && minute->sent > 0);
    log_event(LOG_INFO, "throughput", FIELD_CSTR("destination", dest->name), FIELD_REAL("seconds", (double)ms / SECOND_MS),
              FIELD_INT("sent", minute->sent), FIELD_INT("succeeded", minute->succeeded),
              FIELD_INT("failed", minute->failed),
              FIELD_REAL("per_second", (double)(minute->sent * SECOND_MS * 100 / ms) / 100),
              FIELD_INT("mean_ms", (int64_t)(histogram_mean(&minute->duration) + 0.5)),
              FIELD_INT("p95_ms", (int64_t)(histogram_quantile(&minute->duration, &measured_duration, 0.95) + 0.5)));
}

void measures_tick(struct dest *dest, instant now)
{
    struct measures *measures = &dest->measures;
    struct minute_measure *minute = &measures->minute;
    const struct gate *gate = &dest->gate;
    int64_t passed = measures->looked_at != 0 && now > measures->looked_at ? now - measures->looked_at : 0;
    measures->observed_ms += passed;
    measures->available_ms += measures->available ? passed : 0;
    measures->contingency_ms += measures->contingency ? passed : 0;
    assert(measures->available_ms + measures->contingency_ms <= measures->observed_ms);
    measures->looked_at = now;
    measures->contingency = gate->contingency.saved.mode == MODE_CONTINGENCY;
    measures->available = !measures->contingency && gate->breaker.saved.state != BREAKER_OPEN && !gate->health.down;
    if (dest->queue.ready == 0)
        measures->empty_at = now;
    if (minute->sent > 0 && now < minute->since)
        minute->since = now; /* the clock was put back */
    if (minute->sent == 0 || now < instant_add(minute->since, MINUTE_MS))
        return;
    tell_minute(dest, minute, now);
    *minute = (struct minute_measure){ 0 };
}

/* ---- for others ---- */

static enum status copy_one(const struct engine *engine, const struct dest *dest, struct arena *memory,
                            struct destination_measures *ret)
{
    const struct measures *measures = &dest->measures;
    struct slice name = arena_copy(memory, slice_from(dest->name));
    struct measured_tenant *tenants = arena_alloc_array(memory, measures->tenants.count + 1, sizeof *tenants);
    if (!name.data || !tenants)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < measures->tenants.count; i++) {
        const struct tenant_measure *tenant = &measures->tenants.items[i];
        assert(tenant->lane->dest == dest && tenant->lane->measure == tenant);
        tenants[i] = (struct measured_tenant){ arena_copy(memory, slice_from(tenant->lane->tenant)), tenant->lane->id,
                                               tenant->processed, tenant->dead };
        if (!tenants[i].tenant.data)
            return STATUS_NO_MEMORY;
    }
    *ret = (struct destination_measures){
        .name = name,
        .status = engine_destination(engine, name),
        .measures = *measures,
        .tenants = tenants,
        .checked = dest->rules.first.health_every_ms > 0,
        .up = !dest->gate.health.down,
        .pulled = dest->config && dest->config->transport == TRANSPORT_PULL,
    };
    ret->status.pause_reason = NULL;
    memcpy(ret->alerts, dest->alerts.stand, sizeof ret->alerts);
    for (const struct lease_request *request = dest->workers.first; request; request = request->next)
        ret->workers++;
    return STATUS_OK;
}

enum status engine_measures(const struct engine *engine, struct arena *memory, struct engine_measures *ret_measures)
{
    size_t count = 0;
    for (const struct dest *dest = engine->dests.first; dest; dest = dest->next)
        count++;
    struct destination_measures *items = arena_alloc_array(memory, count + 1, sizeof *items);
    if (!items)
        return STATUS_NO_MEMORY;
    count = 0;
    for (const struct dest *dest = engine->dests.first; dest; dest = dest->next)
        if (copy_one(engine, dest, memory, &items[count++]) != STATUS_OK)
            return STATUS_NO_MEMORY;
    *ret_measures = (struct engine_measures){ .items = items, .count = count, .expired = engine->measured.expired,
                                              .dead_expired = engine->measured.dead_expired };
    if (engine->alerts.book)
        memcpy(ret_measures->alerts, engine->alerts.book->stand, sizeof ret_measures->alerts);
    return copy_policies(engine, memory, ret_measures);
}
