#include "api/jobs/outlook.h"

#include "api/call/ask.h"
#include "api/call/shared.h"
#include "engine/status.h"

#include <inttypes.h>

/* In the thread that reads. A job of normal priority that its deadline did not hurry goes behind all of its tenant's. */
static bool goes_last(const struct call *call, const struct outlook *outlook)
{
    const struct destination_config *destination = config_destination(call->reading.config, outlook->destination);
    instant lately = api_now(call->api) - MINUTE_MS; /* it was ranked a moment ago */
    return destination && outlook->rank >= rank_of(PRIORITY_NORMAL, lately, destination->aging_ms);
}

bool outlook_of(const struct call *call, const struct op_insert *inserted, struct outlook *ret_outlook)
{
    const struct destination_config *destination = config_destination(call->api->config, inserted->destination);
    if (inserted->ret_existed || inserted->deadline == INSTANT_NONE || !destination ||
        (destination->rate_total.count == 0 && destination->rate_per_tenant.count == 0 && destination->cycle_every_ms == 0))
        return false;
    *ret_outlook = (struct outlook){
        .destination = inserted->destination,
        .lane = inserted->ret_lane,
        .rank = inserted->rank,
        .seq = inserted->ret_seq,
        .deadline = inserted->deadline,
    };
    return true;
}

struct outlook_question {
    void *context; /* the handler's own */
    struct outlook *outlooks;
    size_t count;
    void (*then)(struct call *call);
};

static bool ask_places(struct call *call, struct engine *engine)
{
    const struct outlook_question *question = call->context;
    for (size_t i = 0; i < question->count; i++) {
        struct outlook *outlook = &question->outlooks[i];
        outlook->place = engine_place(engine, outlook->lane, outlook->ahead, INSTANT_NONE);
    }
    return true;
}

static void asked(struct call *call)
{
    const struct outlook_question *question = call->context;
    call->context = question->context;
    question->then(call);
}

/* The job is durable: not to know how it will fare is no failure of taking it. */
static enum status read_ahead(struct call *call, struct store_reader *reader, struct error *err)
{
    struct outlook_question *question = call->context;
    size_t count = question->count, known = 0;
    for (; known < count; known++) {
        struct outlook *outlook = &question->outlooks[known];
        size_t ahead;
        if (reader->ops->reader_ahead(reader, outlook->lane, outlook->rank, outlook->seq, STORE_PAGE_MAX, &ahead, err) !=
            STATUS_OK)
            break;
        outlook->ahead = ahead == STORE_PAGE_MAX && goes_last(call, outlook) ? -1 : (int64_t)ahead;
    }
    question->count = known;
    return STATUS_OK;
}

static void ask_engine(struct call *call)
{
    const struct outlook_question *question = call->context;
    if (question->count > 0)
        ask_here(call, ask_places, asked);
    else
        asked(call);
}

void outlooks_ask(struct call *call, struct outlook *outlooks, size_t count, void (*then)(struct call *call))
{
    struct outlook_question *question = arena_alloc(&call->memory, sizeof *question);
    if (!question) {
        then(call);
        return;
    }
    *question = (struct outlook_question){ call->context, outlooks, count, then };
    call->context = question;
    call_read(call, read_ahead, ask_engine);
}

static bool is_late(const struct outlook *outlook, instant now)
{
    return outlook->place.known && instant_add(now, outlook->place.allowed_ms) > outlook->deadline;
}

/* Says by how much it is late. */
static int64_t late_ms(const struct outlook *outlook, instant now)
{
    return instant_add(now, outlook->place.allowed_ms) - outlook->deadline;
}

static void append_sentence(struct buffer *out, const struct outlook *outlook)
{
    char rate[UNITS_TEXT_BYTES], takes[UNITS_TEXT_BYTES], deadline[INSTANT_TEXT_BYTES];
    const struct queue_place *place = &outlook->place;
    int64_t unit = place->allowed_ms >= HOUR_MS ? MINUTE_MS : SECOND_MS;
    rate_format(place->rate, rate);
    duration_format(place->allowed_ms / unit * unit, takes);
    instant_format(outlook->deadline, deadline);
    buffer_printf(out, "destination %.*s has %" PRId64 " jobs to send before it, which takes %s at its %s of %s; ",
                  SLICE_ARG(outlook->destination), place->before, takes, place->limit, rate);
    buffer_printf(out, "its deadline is %s: as it stands, it will expire", deadline);
}

bool outlooks_warning(const struct outlook *outlooks, size_t count, instant now, struct buffer *out)
{
    const struct outlook *worst = NULL;
    size_t late = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_late(&outlooks[i], now))
            continue;
        late++;
        if (!worst || late_ms(&outlooks[i], now) > late_ms(worst, now))
            worst = &outlooks[i];
    }
    if (!worst)
        return false;
    append_sentence(out, worst);
    if (late > 1)
        buffer_printf(out, "; jobs of %zu more tenants likewise", late - 1);
    return true;
}
