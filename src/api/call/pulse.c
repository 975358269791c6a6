#include "api/call/pulse.h"

#include "api/call/shared.h"
#include "base/clock.h"

#include <event2/event.h>

enum { PULSE_EVERY_MS = 1000 };

/* What the clock jumped over did not pass. */
static int64_t elapsed(instant since, instant now)
{
    return now - since - clock_stepped_ms(2 * STUCK_AFTER_MS);
}

static bool writer_is_stuck(const struct api *api, instant now)
{
    struct writer_figures figures = writer_figures(api->settings.writer);
    return figures.busy && elapsed(figures.progressed_at, now) > STUCK_AFTER_MS;
}

/* The pulse comes back about once a second, and so does the engine's own turn. */
static bool engine_is_stuck(const struct api *api, instant now)
{
    if (api->pulse.ran_at != 0)
        return elapsed(api->pulse.ran_at, now) > STUCK_AFTER_MS;
    return api->pulse.out && elapsed(api->pulse.asked_at, now) > STUCK_AFTER_MS;
}

enum liveness api_liveness(const struct api *api)
{
    instant now = api_now(api);
    if (writer_is_stuck(api, now))
        return LIVENESS_WRITER_STUCK;
    return engine_is_stuck(api, now) ? LIVENESS_ENGINE_STUCK : LIVENESS_FINE;
}

static void on_pulse_back(struct message *message)
{
    struct pulse *pulse = message_of(message, MESSAGE_PULSE);
    pulse->out = false;
    pulse->ran_at = pulse->answer;
    api_may_end(pulse->api);
}

static void on_pulse_there(struct message *message)
{
    struct pulse *pulse = message_of(message, MESSAGE_PULSE);
    pulse->answer = engine_figures(pulse->api->settings.engine).ran_at;
    if (pulse->damage.status != STATUS_OK)
        engine_store_damaged(pulse->api->settings.engine, &pulse->damage);
    mailbox_post(pulse->api->mailbox, &pulse->message, MESSAGE_PULSE, on_pulse_back);
}

static void on_pulse_due(UNUSED evutil_socket_t fd, UNUSED short what, void *context)
{
    struct api *api = context;
    if (api->settings.on_alive && api_liveness(api) == LIVENESS_FINE)
        api->settings.on_alive(api->settings.context);
    (void)api_disk_is_low(api); /* for the log, also where nobody asks to enqueue */
    if (api->pulse.out || api->stopping)
        return;
    api->pulse.out = true;
    api->pulse.damage = api->damage.error;
    api->damage.error.status = STATUS_OK;
    api->pulse.asked_at = api_now(api);
    mailbox_post(api->settings.engine_mailbox, &api->pulse.message, MESSAGE_PULSE, on_pulse_there);
}

enum status pulse_start(struct api *api, struct error *err)
{
    const struct timeval every = { PULSE_EVERY_MS / 1000, PULSE_EVERY_MS % 1000 * 1000 };
    api->pulse.api = api;
    api->pulse.timer = event_new(api->http.loop, -1, EV_PERSIST, on_pulse_due, api);
    if (!api->pulse.timer || event_add(api->pulse.timer, &every) != 0)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a timer");
    event_active(api->pulse.timer, EV_TIMEOUT, 1);
    return STATUS_OK;
}
