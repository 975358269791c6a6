/*
 * Health checks: who is to be asked how it is, and what the answer changes.
 */
#include "base/log.h"
#include "engine/loop.h"
#include "engine/outage/modes.h"

#include <assert.h>

static void on_probed(struct probe *probe, const struct health_answer *answer)
{
    struct dest *dest = probe->context;
    struct engine *engine = dest->check.engine;
    const struct health_config *health = &probe->destination->health;
    const struct health_expectation expectation = {
        .kind = health->kind,
        .timeout_ms = health->timeout_ms,
        .status = health->expect_status,
        .services = health->expect_services.items,
        .service_count = health->expect_services.count,
    };
    struct health_verdict verdict = health_judge(&expectation, answer);
    assert(engine);
    dest->check.engine = NULL;
    if (verdict.reason != HEALTH_WELL)
        incident_check_failed(dest, health_reason_name(verdict.reason));
    if (!engine->stopping) {
        struct gate_news news = gate_health(&dest->gate, verdict.reason == HEALTH_WELL, engine_now(engine));
        if (news.health != HEALTH_SAME)
            log_event(news.health == HEALTH_WENT_DOWN ? LOG_WARN : LOG_INFO, "destination_health",
                      FIELD_CSTR("destination", dest->name),
                      FIELD_CSTR("health", news.health == HEALTH_WENT_DOWN ? "down" : "up"),
                      FIELD_CSTR("reason", health_reason_name(verdict.reason)),
                      FIELD_CSTR("service", verdict.service ? verdict.service : ""), FIELD_INT("status", answer->status));
        dest_tell(dest, &news);
        /* That it is there says nothing about our credentials; but what could not be sent may be sent now. */
        if (news.health == HEALTH_CAME_UP && dest->gate.block.saved.unsent)
            block_hasten(&dest->gate.block, engine_now(engine));
    }
    config_unref(dest->check.config);
    engine_wake(engine);
}

void probes_start(struct engine *engine)
{
    instant now = engine_now(engine);
    for (struct dest *dest = engine->dests.first; dest; dest = dest->next) {
        if (!dest->config || dest->own.stage != OWN_WHOLE || dest->check.engine || !gate_health_due(&dest->gate, now))
            continue;
        gate_health_begin(&dest->gate, now);
        dest->check.engine = engine;
        dest->check.config = config_ref(engine->config);
        dest->check.probe = (struct probe){ .destination = dest->config, .done = on_probed, .context = dest };
        engine->ports.probe(engine->ports.context, &dest->check.probe);
    }
}
