#include "core/outage/health.h"

#include <assert.h>
#include <jansson.h>

/* The words of the three formats that mean well; `warn` is well with a remark. */
static bool is_good_word(struct slice word)
{
    static const struct slice words[] = { { "up", 2 }, { "pass", 4 }, { "ok", 2 }, { "warn", 4 } };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (slice_equal_nocase(word, words[i]))
            return true;
    return false;
}

static bool word_is_well(const json_t *value, const char *expected)
{
    if (!json_is_string(value))
        return false;
    struct slice word = { json_string_value(value), json_string_length(value) };
    if (!expected || is_good_word(slice_from(expected)))
        return is_good_word(word);
    return slice_equal_nocase(word, slice_from(expected));
}

/* "UP", {"status":"UP"} or [{"status":"pass"}, ...]. */
static bool member_is_well(const json_t *member, const char *expected)
{
    if (json_is_object(member))
        return word_is_well(json_object_get(member, "status"), expected);
    if (!json_is_array(member))
        return word_is_well(member, expected);
    for (size_t i = 0; i < json_array_size(member); i++)
        if (!word_is_well(json_object_get(json_array_get(member, i), "status"), expected))
            return false;
    return json_array_size(member) > 0;
}

static bool service_is_well(const json_t *root, const char *service, const char *expected)
{
    static const char *const groups[] = { "services", "components", "checks" };
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        const json_t *member = json_object_get(json_object_get(root, groups[i]), service);
        if (member)
            return member_is_well(member, expected);
    }
    return false;
}

static struct health_verdict judge_tree(const struct health_expectation *expectation, const json_t *root)
{
    const json_t *status = json_object_get(root, "status");
    if (!json_is_string(status))
        return (struct health_verdict){ HEALTH_UNREADABLE, NULL };
    if (!word_is_well(status, expectation->status))
        return (struct health_verdict){ HEALTH_UNWELL, NULL };
    for (size_t i = 0; i < expectation->service_count; i++)
        if (!service_is_well(root, expectation->services[i], expectation->status))
            return (struct health_verdict){ HEALTH_SERVICE_UNWELL, expectation->services[i] };
    return (struct health_verdict){ HEALTH_WELL, NULL };
}

static struct health_verdict judge_json(const struct health_expectation *expectation, struct slice body)
{
    if (body.len == 0 || body.len > HEALTH_BODY_BYTES_MAX)
        return (struct health_verdict){ HEALTH_UNREADABLE, NULL };
    json_t *root = json_loadb(body.data, body.len, 0, NULL);
    struct health_verdict verdict = judge_tree(expectation, root);
    json_decref(root);
    return verdict;
}

static bool status_is_good(const struct health_expectation *expectation, int64_t status)
{
    switch (expectation->kind) {
    case HEALTH_JSON:
    case HEALTH_HTTP:
    case HEALTH_WSDL:
        return status >= 200 && status <= 299;
    case HEALTH_SMTP:
        return status == 220;
    case HEALTH_TCP:
    case HEALTH_NONE:
        break;
    }
    return true;
}

struct health_verdict health_judge(const struct health_expectation *expectation, const struct health_answer *answer)
{
    assert(answer->latency_ms >= 0);
    if (!answer->connected)
        return (struct health_verdict){ HEALTH_NO_ANSWER, NULL };
    if (expectation->timeout_ms > 0 && answer->latency_ms >= expectation->timeout_ms)
        return (struct health_verdict){ HEALTH_SLOW, NULL };
    if (!status_is_good(expectation, answer->status))
        return (struct health_verdict){ HEALTH_REFUSED, NULL };
    if (expectation->kind == HEALTH_JSON)
        return judge_json(expectation, answer->body);
    if (expectation->kind == HEALTH_WSDL && slice_search(answer->body, SLICE("definitions")) == answer->body.len)
        return (struct health_verdict){ HEALTH_NO_DEFINITIONS, NULL };
    return (struct health_verdict){ HEALTH_WELL, NULL };
}

const char *health_reason_name(enum health_reason reason)
{
    static const char *const names[HEALTH_REASON_COUNT] = {
        [HEALTH_WELL] = "well",
        [HEALTH_NO_ANSWER] = "no_answer",
        [HEALTH_SLOW] = "slow",
        [HEALTH_REFUSED] = "refused",
        [HEALTH_UNREADABLE] = "unreadable",
        [HEALTH_UNWELL] = "unwell",
        [HEALTH_SERVICE_UNWELL] = "service_unwell",
        [HEALTH_NO_DEFINITIONS] = "no_definitions",
    };
    assert(reason < HEALTH_REASON_COUNT);
    return names[reason];
}

void health_init(struct health *health, instant first_at)
{
    *health = (struct health){ .next_at = first_at };
}

instant health_next(const struct health *health, int64_t every_ms, instant now)
{
    assert(every_ms > 0);
    instant latest = instant_add(now, every_ms);
    if (health->next_at == INSTANT_NONE)
        return now;
    return health->next_at < latest ? health->next_at : latest;
}

bool health_due(const struct health *health, int64_t every_ms, instant now)
{
    assert(every_ms > 0);
    return health->next_at <= now || health->next_at > instant_add(now, every_ms);
}

void health_begin(struct health *health, int64_t every_ms, instant now)
{
    assert(every_ms > 0);
    health->next_at = instant_add(now, every_ms);
}

enum health_change health_note(struct health *health, int64_t failures_max, bool well)
{
    bool was_up = health->up, was_down = health->down;
    assert(failures_max > 0);
    if (well) {
        health->failures = 0;
        health->up = true;
        health->down = false;
        return was_up ? HEALTH_SAME : HEALTH_CAME_UP;
    }
    if (health->failures < failures_max)
        health->failures++;
    if (health->failures < failures_max || was_down)
        return HEALTH_SAME;
    health->up = false;
    health->down = true;
    return HEALTH_WENT_DOWN;
}
