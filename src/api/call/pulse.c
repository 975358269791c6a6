#include "api/call/pulse.h"

#include "api/call/shared.h"

#include <event2/event.h>

enum { PULSE_EVERY_MS = 1000 };

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

static void on_pulse_due(evutil_socket_t fd, short what, void *context)
{
    struct api *api = context;
    (void)fd;
    (void)what;
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
