#include "api/rota.h"

#include "api/api_private.h"
#include "base/log.h"

#include <event2/event.h>

enum {
    TURN_NS = 500 * 1000, /* pieces are done for so long before the sockets are looked at */
    YIELD_US = 1000,      /* and none for so long when requests have come meanwhile */
};

static void come_again(struct rota *rota)
{
    const struct timeval at_once = { 0, 0 }, soon = { 0, YIELD_US };
    bool added = event_add(rota->turn, rota->others_had_work ? &soon : &at_once) == 0;
    if (!added) /* no memory: then without a look at the sockets */
        event_active(rota->turn, EV_TIMEOUT, 1);
    rota->others_had_work = false;
}

static void on_turn(evutil_socket_t fd, short what, void *context)
{
    struct api *api = context;
    struct rota *rota = &api->rota;
    int64_t until_ns = clock_ticks_ns() + TURN_NS;
    (void)fd;
    (void)what;
    for (struct rota_entry *entry; (entry = rota->first) && clock_ticks_ns() < until_ns;) {
        rota_remove(api, entry);
        entry->run(entry);
    }
    if (rota->first)
        come_again(rota);
}

enum status rota_init(struct api *api, struct error *err)
{
    api->rota.last = &api->rota.first;
    api->rota.turn = event_new(api->loop, -1, 0, on_turn, api);
    return api->rota.turn ? STATUS_OK : error_set(err, STATUS_NO_MEMORY, "no memory for a timer");
}

void rota_release(struct api *api)
{
    if (api->rota.turn)
        event_free(api->rota.turn);
}

void rota_add(struct api *api, struct rota_entry *entry)
{
    struct rota *rota = &api->rota;
    if (entry->link)
        return;
    bool was_empty = !rota->first;
    entry->next = NULL;
    entry->link = rota->last;
    *rota->last = entry;
    rota->last = &entry->next;
    if (was_empty && !event_pending(rota->turn, EV_TIMEOUT, NULL))
        come_again(rota);
}

void rota_remove(struct api *api, struct rota_entry *entry)
{
    if (!entry->link)
        return;
    *entry->link = entry->next;
    if (entry->next)
        entry->next->link = entry->link;
    else
        api->rota.last = entry->link;
    entry->link = NULL;
}
