#include "transport/broker/redis_health.h"

#include <assert.h>
#include <hiredis/hiredis.h>
#include <string.h>

enum {
    REWRITE_PERCENTAGE_MAX = 100,      /* the document's: rewritten when it has doubled, */
    REWRITE_MIN_BYTES_MAX = 64 << 20, /* from so many bytes on */
    SETTINGS_MAX = 128,
};

const char *redis_risk_text(enum redis_risk risk)
{
    static const char *const texts[REDIS_RISK_COUNT] = {
        [REDIS_MAY_EVICT] = "it may evict what it has when memory is full, and says nothing; set maxmemory-policy noeviction",
        [REDIS_KEEPS_NO_LOG] = "a crash loses all since its last snapshot; set appendonly yes",
        [REDIS_SYNCS_SELDOM] = "a crash of the machine loses what the system had not written; set appendfsync everysec",
        [REDIS_HAS_NO_LIMIT] = "it has no limit of memory, so nothing tells when it fills; set maxmemory, such as 512mb",
        [REDIS_LOG_FAILS] = "its append-only file could not be written; look at its disk and its log",
        [REDIS_PLAIN_LOG] = "its append-only file is slow to load; set aof-use-rdb-preamble yes",
        [REDIS_LOG_GROWS] = "its append-only file is seldom rewritten; set auto-aof-rewrite-percentage 100 and "
                            "auto-aof-rewrite-min-size 64mb",
        [REDIS_HIDES_SETTINGS] = "it does not show its settings; allow CONFIG GET, or look at appendfsync and "
                                 "aof-use-rdb-preamble yourself",
    };
    assert(risk < REDIS_RISK_COUNT);
    return texts[risk];
}

double redis_health_share(const struct redis_health *health)
{
    return health->limit_bytes > 0 ? (double)health->used_bytes / (double)health->limit_bytes : 0;
}

/* The text behind "name:" at the start of a line; empty: it is not there. */
static struct slice info_of(struct slice info, const char *name)
{
    size_t len = strlen(name);
    while (info.len > 0) {
        size_t end = slice_find(info, '\n');
        struct slice line = slice_trim((struct slice){ info.data, end });
        if (line.len > len && memcmp(line.data, name, len) == 0 && line.data[len] == ':')
            return slice_from_offset(line, len + 1);
        info = slice_from_offset(info, end < info.len ? end + 1 : end);
    }
    return SLICE("");
}

static int64_t number_of(struct slice text)
{
    int64_t number = 0;
    for (size_t i = 0; i < text.len && text.data[i] >= '0' && text.data[i] <= '9' && number < INT64_MAX / 20; i++)
        number = number * 10 + (text.data[i] - '0');
    return number;
}

/* The line is "errorstat_OOM:count=12". */
static int64_t out_of_memory(struct slice info)
{
    struct slice text = info_of(info, "errorstat_OOM");
    return slice_has_prefix(text, SLICE("count=")) ? number_of(slice_from_offset(text, 6)) : 0;
}

/* NULL: not known. */
static const char *setting_of(const char *const *settings, size_t count, const char *name)
{
    for (size_t i = 0; i + 1 < count; i += 2)
        if (strcmp(settings[i], name) == 0)
            return settings[i + 1];
    return NULL;
}

static bool setting_is(const char *value, const char *wanted)
{
    return value && strcmp(value, wanted) == 0;
}

void redis_health_judge(struct slice info, const char *const *settings, size_t count, struct redis_health *ret_health)
{
    const char *sync = setting_of(settings, count, "appendfsync"),
               *preamble = setting_of(settings, count, "aof-use-rdb-preamble"),
               *percentage = setting_of(settings, count, "auto-aof-rewrite-percentage"),
               *size = setting_of(settings, count, "auto-aof-rewrite-min-size");
    struct slice policy = info_of(info, "maxmemory_policy");
    bool logs = slice_equal(info_of(info, "aof_enabled"), SLICE("1"));
    bool fails = slice_equal(info_of(info, "aof_last_write_status"), SLICE("err")) ||
                 slice_equal(info_of(info, "aof_last_bgrewrite_status"), SLICE("err"));
    int64_t grown = percentage ? atoll(percentage) : REWRITE_PERCENTAGE_MAX;
    bool found[REDIS_RISK_COUNT] = {
        [REDIS_MAY_EVICT] = policy.len > 0 && !slice_equal(policy, SLICE("noeviction")),
        [REDIS_KEEPS_NO_LOG] = !logs,
        [REDIS_SYNCS_SELDOM] = logs && setting_is(sync, "no"),
        [REDIS_LOG_FAILS] = logs && fails,
        [REDIS_PLAIN_LOG] = logs && setting_is(preamble, "no"),
        [REDIS_LOG_GROWS] = logs && (grown == 0 || grown > REWRITE_PERCENTAGE_MAX ||
                                     (size && atoll(size) > REWRITE_MIN_BYTES_MAX)),
        [REDIS_HIDES_SETTINGS] = !sync,
    };
    *ret_health = (struct redis_health){
        .used_bytes = number_of(info_of(info, "used_memory")),
        .limit_bytes = number_of(info_of(info, "maxmemory")),
        .refused = number_of(info_of(info, "rejected_connections")) + out_of_memory(info),
    };
    found[REDIS_HAS_NO_LIMIT] = ret_health->limit_bytes == 0;
    for (int risk = 0; risk < REDIS_RISK_COUNT; risk++)
        ret_health->risks |= found[risk] ? 1u << risk : 0;
}

enum status redis_health_ask(struct redis_client *client, int64_t timeout_ms, struct redis_health *ret_health,
                             struct error *err)
{
    static const char *const info[] = { "INFO", "all", NULL };
    /* One pattern: that several may be given is younger than what is asked for. */
    static const char *const config[] = { "CONFIG", "GET", "a*", NULL };
    struct redisReply *said = NULL, *set = NULL;
    const char *settings[SETTINGS_MAX * 2];
    size_t count = 0;
    enum status status = redis_client_ask(client, info, timeout_ms, &said, err);
    if (status != STATUS_OK)
        return status;
    status = redis_client_ask(client, config, timeout_ms, &set, err);
    if (status == STATUS_INVALID)
        status = STATUS_OK; /* it hides them */
    for (size_t i = 0; set && i < set->elements && count < SETTINGS_MAX * 2; i++)
        settings[count++] = set->element[i]->str ? set->element[i]->str : "";
    if (status == STATUS_OK)
        redis_health_judge((struct slice){ said->str ? said->str : "", said->str ? said->len : 0 }, settings, count,
                           ret_health);
    freeReplyObject(said);
    freeReplyObject(set);
    return status;
}
