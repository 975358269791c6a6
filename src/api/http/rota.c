#include "api/http/rota.h"

#include "base/log.h"

#include <event2/event.h>

enum {
    TURN_NS = 250 * 1000, /* pieces are done for so long before the sockets are looked at */
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

static void on_turn(UNUSED evutil_socket_t fd, UNUSED short what, void *context)
{
    struct rota *rota = context;
    int64_t until_ns = clock_ticks_ns() + TURN_NS;
    for (struct rota_entry *entry; (entry = rota->first) && clock_ticks_ns() < until_ns;) {
        rota_remove(rota, entry);
        entry->run(entry);
    }
    if (rota->first)
        come_again(rota);
}

enum status rota_init(struct rota *rota, struct event_base *loop, struct error *err)
{
    rota->last = &rota->first;
    rota->turn = event_new(loop, -1, 0, on_turn, rota);
    return rota->turn ? STATUS_OK : error_set(err, STATUS_NO_MEMORY, "no memory for a timer");
}

void rota_release(struct rota *rota)
{
    if (rota->turn)
        event_free(rota->turn);
}

void rota_add(struct rota *rota, struct rota_entry *entry)
{
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

void rota_remove(struct rota *rota, struct rota_entry *entry)
{
    if (!entry->link)
        return;
    *entry->link = entry->next;
    if (entry->next)
        entry->next->link = entry->link;
    else
        rota->last = entry->link;
    entry->link = NULL;
}
