#include "cli/offline/doctor.h"

#include "transport/broker/redis_health.h"

#include <curl/curl.h>

enum { TIMEOUT_MS = 5000 };

/* The limits are those of the alerts. */
static void tell_memory(struct doctor *doctor, const char *name, const struct redis_health *health)
{
    double share = redis_health_share(health);
    long long used = (long long)(health->used_bytes >> 20), limit = (long long)(health->limit_bytes >> 20);
    if (share > 0.9)
        doctor_tell(doctor, FINDING_FAIL, "redis", "%s: it uses %lld of %lld MB; raise maxmemory or make room now", name,
                    used, limit);
    else if (share > 0.8)
        doctor_tell(doctor, FINDING_WARN, "redis", "%s: it uses %lld of %lld MB; trim its streams, review retention", name,
                    used, limit);
    if (health->refused > 0)
        doctor_tell(doctor, FINDING_WARN, "redis",
                    "%s: it has refused %lld connections or commands since its start, for want of clients or memory; raise "
                    "maxclients or maxmemory",
                    name, (long long)health->refused);
}

static void tell_health(struct doctor *doctor, const char *name, const struct redis_health *health)
{
    for (int risk = 0; risk < REDIS_RISK_COUNT; risk++)
        if (health->risks & 1u << risk)
            doctor_tell(doctor, REDIS_RISKS_LOSS & 1u << risk ? FINDING_FAIL : FINDING_WARN, "redis", "%s: %s", name,
                        redis_risk_text((enum redis_risk)risk));
    tell_memory(doctor, name, health);
    if (health->risks == 0)
        doctor_tell(doctor, FINDING_OK, "redis", "%s: it keeps what it is given: append-only file, no eviction", name);
}

static void check_redis(struct doctor *doctor, struct redis_client *client, const char *name,
                        const struct redis_place *place)
{
    struct redis_health health;
    struct error err;
    enum status status = redis_client_open(client, place, TIMEOUT_MS, &err);
    if (status == STATUS_OK)
        status = redis_health_ask(client, TIMEOUT_MS, &health, &err);
    redis_client_close(client);
    if (status == STATUS_OK)
        tell_health(doctor, name, &health);
    else
        doctor_tell(doctor, FINDING_FAIL, "redis", "%s: %s; look at its url and its login, and whether it runs", name,
                    err.text);
}

static void check_all(struct doctor *doctor, struct redis_client *client, bool network)
{
    const struct config *config = doctor->config;
    for (size_t i = 0; i < config->source_count; i++) {
        const struct source_config *source = &config->sources[i];
        check_redis(doctor, client, source->name, &(struct redis_place){ .url = source->redis, .username = source->username,
                                                                        .password = source->password, .tls = source->tls });
    }
    for (size_t i = 0; network && i < config->destination_count; i++) {
        const struct destination_config *to = &config->destinations[i];
        if (to->transport == TRANSPORT_REDIS && to->url)
            check_redis(doctor, client, to->name, &(struct redis_place){ .url = to->url, .username = to->username,
                                                                        .password = to->password, .proxy = to->proxy,
                                                                        .tls = to->tls });
    }
}

void doctor_redis(struct doctor *doctor, bool network)
{
    struct redis_client *client = NULL;
    struct error err;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0 || redis_client_new(&client, &err) != STATUS_OK) {
        doctor_tell(doctor, FINDING_FAIL, "redis", "no memory for a connection");
        return;
    }
    check_all(doctor, client, network);
    redis_client_free(client);
    curl_global_cleanup();
}
