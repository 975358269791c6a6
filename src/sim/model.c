#include "sim/model.h"

#include "base/hash.h"

#include <assert.h>
#include <math.h>

enum { REFUSED_AFTER_MS = 1 }; /* a connection that is refused is refused at once */

void model_start(struct model *model, const struct model_settings *settings)
{
    *model = (struct model){ .settings = *settings, .second = -1 };
    rate_init(&model->limiter, settings->limit, 0, INSTANT_NONE);
}

/* NULL when there is none at that time. */
static const struct model_outage *model_outage_at(const struct model_settings *settings, int64_t at_ms)
{
    for (size_t i = 0; i < settings->outage_count; i++)
        if (at_ms >= settings->outages[i].from_ms && at_ms < settings->outages[i].to_ms)
            return &settings->outages[i];
    return NULL;
}

static void count_request(struct model *model, int64_t at_ms)
{
    int64_t second = at_ms / SECOND_MS;
    if (second != model->second) {
        model->second = second;
        model->second_count = 0;
    }
    model->second_count++;
    model->at_once++;
    struct model_figures *figures = &model->figures;
    figures->requests++;
    if (model->second_count > figures->peak_second)
        figures->peak_second = model->second_count;
    if (model->at_once > figures->peak_at_once)
        figures->peak_at_once = model->at_once;
}

static double share(const struct model *model, enum draw_purpose purpose, const struct model_request *request)
{
    return draw_share((struct draw){ model->settings.seed, purpose, request->job, request->attempt });
}

/* Beyond its capacity everything takes longer, and more and more of the work is in vain. */
static bool collapses(const struct model *model, const struct model_request *request)
{
    int64_t capacity = model->settings.capacity;
    if (capacity == 0 || model->at_once <= capacity)
        return false;
    return share(model, DRAW_COLLAPSE, request) > (double)capacity / (double)model->at_once;
}

static int64_t latency(const struct model *model, const struct model_request *request)
{
    const struct model_settings *settings = &model->settings;
    struct draw draw = { settings->seed, DRAW_LATENCY, request->job, request->attempt };
    double ms = (double)settings->latency_ms * exp(settings->spread * draw_normal(draw));
    if (settings->capacity > 0 && model->at_once > settings->capacity)
        ms *= (double)model->at_once / (double)settings->capacity;
    double most = (double)settings->timeout_ms;
    return ms < 1 ? 1 : ms > most ? settings->timeout_ms : (int64_t)ms;
}

static enum model_answer drawn_answer(const struct model *model, const struct model_request *request)
{
    const struct model_settings *settings = &model->settings;
    const struct {
        double share;
        enum model_answer answer;
    } mix[] = {
        { settings->transient, MODEL_TRANSIENT },
        { settings->throttled, MODEL_THROTTLED },
        { settings->lost, MODEL_LOST },
        { settings->blocked, MODEL_BLOCKED },
    };
    /* A job that is wrong stays wrong, however often it is sent; all else is drawn anew each time. */
    if (draw_share((struct draw){ settings->seed, DRAW_WRONG, request->job, 0 }) < settings->permanent)
        return MODEL_PERMANENT;
    double rest = share(model, DRAW_OUTCOME, request);
    for (size_t i = 0; i < sizeof mix / sizeof *mix; i++) {
        if (rest < mix[i].share)
            return mix[i].answer;
        rest -= mix[i].share;
    }
    return MODEL_OK;
}

static struct model_reply reply_in_outage(const struct model *model, enum model_failure failure, int64_t usual_ms)
{
    static const enum model_answer answers[MODEL_FAILURE_COUNT] = {
        [MODEL_REFUSE] = MODEL_REFUSED, [MODEL_TIME_OUT] = MODEL_TIMED_OUT, [MODEL_UNAVAILABLE] = MODEL_UNAVAILABLE_NOW,
        [MODEL_BLOCK] = MODEL_BLOCKED,
    };
    int64_t takes = failure == MODEL_REFUSE     ? REFUSED_AFTER_MS
                    : failure == MODEL_TIME_OUT ? model->settings.timeout_ms
                                                : usual_ms;
    return (struct model_reply){ .answer = answers[failure], .takes_ms = takes, .retry_after_ms = -1 };
}

/* What it answers to a request that is not too fast and not in an outage. */
static struct model_reply reply_usual(const struct model *model, const struct model_request *request, int64_t takes_ms)
{
    struct model_reply reply = { .takes_ms = takes_ms, .retry_after_ms = -1 };
    if (takes_ms >= model->settings.timeout_ms)
        reply.answer = MODEL_TIMED_OUT;
    else if (collapses(model, request))
        reply.answer = MODEL_UNAVAILABLE_NOW;
    else
        reply.answer = request->question ? MODEL_OK : drawn_answer(model, request);
    if (reply.answer == MODEL_THROTTLED)
        reply.retry_after_ms = SECOND_MS;
    if (reply.answer == MODEL_LOST)
        reply.takes_ms = model->settings.timeout_ms;
    reply.accepted = !request->question && (reply.answer == MODEL_OK || reply.answer == MODEL_LOST);
    return reply;
}

/* Whole seconds, as Retry-After has them. */
static int64_t ask_to_wait(instant at, int64_t now_ms)
{
    int64_t wait = (at - now_ms + SECOND_MS - 1) / SECOND_MS * SECOND_MS;
    return wait < SECOND_MS ? SECOND_MS : wait;
}

struct model_reply model_begin(struct model *model, const struct model_request *request)
{
    assert(request->at_ms >= 0);
    count_request(model, request->at_ms);
    const struct model_outage *outage = model_outage_at(&model->settings, request->at_ms);
    int64_t takes = latency(model, request);
    struct model_reply reply;
    struct rate_answer room = { .room = 1 };
    if (!outage && model->settings.limit.count > 0)
        room = rate_ask(&model->limiter, request->at_ms, 1);
    if (outage) {
        model->figures.during_outages++;
        reply = reply_in_outage(model, outage->failure, takes);
    } else if (room.room < 1) {
        reply = (struct model_reply){ .answer = MODEL_THROTTLED, .takes_ms = takes,
                                      .retry_after_ms = ask_to_wait(room.at, request->at_ms) };
    } else {
        if (model->settings.limit.count > 0)
            rate_take(&model->limiter, request->at_ms, 1);
        reply = reply_usual(model, request, takes);
    }
    model->figures.answers[reply.answer]++;
    model->figures.accepted += reply.accepted && !request->had_before;
    model->figures.duplicates += reply.accepted && request->had_before;
    return reply;
}

struct model_reply model_check(struct model *model, int64_t at_ms)
{
    const struct model_outage *outage = model_outage_at(&model->settings, at_ms);
    struct model_reply reply = { .answer = MODEL_OK, .takes_ms = model->settings.latency_ms, .retry_after_ms = -1 };
    model->figures.health_checks++;
    /* It is well and knows its callers not: that the credentials are refused shows in the sends only. */
    if (outage && outage->failure != MODEL_BLOCK && model->settings.health == MODEL_HEALTH_TRUE)
        reply = reply_in_outage(model, outage->failure, reply.takes_ms);
    return reply;
}

void model_done(struct model *model)
{
    assert(model->at_once > 0);
    model->at_once--;
}

const char *model_answer_name(enum model_answer answer)
{
    static const char *const names[MODEL_ANSWER_COUNT] = {
        [MODEL_OK] = "ok",           [MODEL_TRANSIENT] = "transient", [MODEL_PERMANENT] = "permanent",
        [MODEL_THROTTLED] = "throttled", [MODEL_LOST] = "lost",       [MODEL_REFUSED] = "refused",
        [MODEL_TIMED_OUT] = "timeout",   [MODEL_UNAVAILABLE_NOW] = "unavailable", [MODEL_BLOCKED] = "blocked",
    };
    return names[answer];
}

static const char *const failure_names[MODEL_FAILURE_COUNT] = {
    [MODEL_REFUSE] = "refuse", [MODEL_TIME_OUT] = "timeout", [MODEL_UNAVAILABLE] = "503", [MODEL_BLOCK] = "blocked",
};

const char *model_failure_name(enum model_failure failure)
{
    return failure_names[failure];
}

bool model_failure_from_name(struct slice name, enum model_failure *ret_failure)
{
    size_t i = slice_index(name, failure_names, MODEL_FAILURE_COUNT);
    if (i < MODEL_FAILURE_COUNT)
        *ret_failure = (enum model_failure)i;
    return i < MODEL_FAILURE_COUNT;
}

bool model_health_from_name(struct slice name, enum model_health *ret_health)
{
    static const char *const names[MODEL_HEALTH_COUNT] = {
        [MODEL_HEALTH_TRUE] = "true", [MODEL_HEALTH_LYING] = "lying", [MODEL_HEALTH_NONE] = "none",
    };
    size_t i = slice_index(name, names, MODEL_HEALTH_COUNT);
    if (i < MODEL_HEALTH_COUNT)
        *ret_health = (enum model_health)i;
    return i < MODEL_HEALTH_COUNT;
}

/* ---- load ---- */

static double load_share(const struct load_settings *load, enum draw_purpose purpose, int64_t number)
{
    return draw_share((struct draw){ load->seed, purpose, number, 0 });
}

static int64_t tenant_of(const struct load_settings *load, int64_t number)
{
    double drawn = load_share(load, DRAW_TENANT, number);
    if (load->big_share <= 0 || load->tenants == 1)
        return (int64_t)(drawn * (double)load->tenants);
    if (drawn < load->big_share)
        return 0;
    int64_t other = (int64_t)((drawn - load->big_share) / (1 - load->big_share) * (double)(load->tenants - 1));
    return 1 + (other < load->tenants - 1 ? other : load->tenants - 2);
}

struct arrival load_arrival(const struct load_settings *load, int64_t number)
{
    assert(number >= 0 && number < load->jobs && load->tenants > 0);
    double slot_ms = (double)load->for_ms / (double)load->jobs;
    double at = ((double)number + load_share(load, DRAW_ARRIVAL, number)) * slot_ms;
    double urgency = load_share(load, DRAW_PRIORITY, number);
    return (struct arrival){
        .at_ms = at < (double)load->for_ms ? (int64_t)at : load->for_ms - 1,
        .tenant = tenant_of(load, number),
        .priority = urgency < load->critical                ? PRIORITY_CRITICAL
                    : urgency < load->critical + load->high ? PRIORITY_HIGH
                                                            : PRIORITY_NORMAL,
    };
}

/* ---- draws ---- */

double draw_share(struct draw draw)
{
    const int64_t names[2] = { draw.of, draw.turn };
    uint64_t bits = hash_slice(draw.seed, (uint64_t)draw.purpose, (struct slice){ (const char *)names, sizeof names });
    return (double)(bits >> 11) / (double)(UINT64_C(1) << 53);
}

double draw_normal(struct draw draw)
{
    assert(draw.purpose == DRAW_LATENCY);
    double radius = draw_share(draw);
    draw.purpose = DRAW_LATENCY_ANGLE;
    double angle = draw_share(draw);
    return sqrt(-2 * log(1 - radius)) * cos(2 * acos(-1) * angle);
}
