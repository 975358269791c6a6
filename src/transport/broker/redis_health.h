/*
 * redis_health.h - whether a Redis keeps what it was given: its settings and how full it is, as the e-mail document asks.
 */
#ifndef TRANSPORT_BROKER_REDIS_HEALTH_H
#define TRANSPORT_BROKER_REDIS_HEALTH_H

#include "base/buffer.h"
#include "transport/broker/redis_client.h"

enum redis_risk {
    REDIS_MAY_EVICT,      /* maxmemory-policy is not noeviction */
    REDIS_KEEPS_NO_LOG,   /* appendonly no */
    REDIS_SYNCS_SELDOM,   /* appendfsync no */
    REDIS_HAS_NO_LIMIT,   /* maxmemory 0: nothing says how full it is */
    REDIS_LOG_FAILS,      /* its last write, or its last rewriting */
    REDIS_PLAIN_LOG,      /* aof-use-rdb-preamble no: slow to load */
    REDIS_LOG_GROWS,      /* it is rewritten seldom or never */
    REDIS_HIDES_SETTINGS, /* CONFIG GET is refused: some of these are not known */
    REDIS_RISK_COUNT
};

/* Entries may be lost, and nobody hears of it. */
enum { REDIS_RISKS_LOSS = 1 << REDIS_MAY_EVICT | 1 << REDIS_KEEPS_NO_LOG | 1 << REDIS_SYNCS_SELDOM | 1 << REDIS_LOG_FAILS };

struct redis_health {
    int64_t used_bytes, limit_bytes; /* of memory; limit 0: none */
    int64_t refused; /* connections, and commands for want of memory, since its start */
    unsigned risks;  /* bits */
};

/* What is wrong and what to do. */
const char *redis_risk_text(enum redis_risk risk);
/* The share of its memory that is used; 0: it has no limit. */
double redis_health_share(const struct redis_health *health);

/* Asks it. The client is open. */
enum status redis_health_ask(struct redis_client *client, int64_t timeout_ms, struct redis_health *ret_health,
                             struct error *err) MUST_CHECK;
/* The judgement alone: of the text of INFO, and of names and values of settings; NULL: not known. */
void redis_health_judge(struct slice info, const char *const *settings, size_t count, struct redis_health *ret_health);

#endif
