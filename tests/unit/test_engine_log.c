/*
 * What the engine's log says about each item.
 */
#include "base/log.h"
#include "support/check.h"
#include "support/said.h"
#include "support/world.h"

#include <jansson.h>

static const instant began = INT64_C(1736678400000); /* 2025-01-12T10:40:00Z */

/* By the item's payload. */
static int64_t answers_as_told(struct world *world, const struct send *send, struct answer *answer)
{
    (void)world;
    if (slice_equal(send->job->payload, SLICE("good"))) {
        answer->outcome = OUTCOME_DELIVERED;
    } else {
        bool bad = slice_equal(send->job->payload, SLICE("bad"));
        answer->code = bad ? SLICE("http:422") : SLICE("http:503");
        answer->text = bad ? SLICE("HTTP 422: user 12345678901 is unknown") : SLICE("HTTP 503: away");
    }
    return 20;
}

static void add(struct world *world, const char *id, const char *correlation_id)
{
    struct store_op op = { .kind = OP_INSERT };
    op.insert = (struct op_insert){ .destination = SLICE("d"), .tenant = SLICE("acme"), .id = slice_from(id),
                                    .priority = PRIORITY_NORMAL, .run_at = world->now, .deadline = INSTANT_NONE,
                                    .correlation_id = slice_from(correlation_id), .payload = slice_from(id) };
    world_apply(world, &op);
}

struct line_case {
    const char *id, *correlation_id, *level, *event, *to, *code, *error;
    int64_t retry_count;
    bool scheduled;
};

static void check_text(const struct line_case *c, const json_t *line, const char *name, const char *expected)
{
    const char *text = json_string_value(json_object_get(line, name));
    check(text && strcmp(text, expected) == 0, "%s: %s is %s", c->id, name, text ? text : "not there");
}

static void check_line(const struct line_case *c, const json_t *line)
{
    check_text(c, line, "level", c->level);
    check_text(c, line, "event", c->event);
    check_text(c, line, "tenant", "acme");
    check_text(c, line, "destination", "d");
    check_text(c, line, "correlation_id", c->correlation_id);
    check_text(c, line, "from", "running");
    check_text(c, line, "to", c->to);
    check_text(c, line, "code", c->code);
    check_text(c, line, "error", c->error);
    check(json_integer_value(json_object_get(line, "attempt")) == 1, "%s: attempt", c->id);
    check(json_integer_value(json_object_get(line, "retry_count")) == c->retry_count, "%s: retry_count", c->id);
    check(json_is_string(json_object_get(line, "next_at")) == c->scheduled, "%s: next_at", c->id);
    check((json_integer_value(json_object_get(line, "delay_ms")) > 0) == c->scheduled, "%s: delay_ms", c->id);
}

/* S4-032: whose, from which state to which, how often tried, when again, and why in short. */
static void an_item_has_its_line(void **state)
{
    static const struct line_case cases[] = {
        { "good", "c-1", "debug", "job_completed", "completed", "", "", 0, false },
        { "down", "c-2", "info", "retry_scheduled", "waiting", "http:503", "HTTP 503: away", 1, true },
        { "bad", "", "error", "job_dead", "dead", "http:422", "HTTP 422: user <number> is unknown", 0, false },
    };
    struct world world = { .destination = answers_as_told };
    size_t lines = 0;
    (void)state;
    world_begin(&world, "destinations: { d: { preset: provisioning, url: 'http://127.0.0.1:1/', allow_private: true } }\n", began);
    log_set_level(LOG_DEBUG);
    said_begin();
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        add(&world, cases[i].id, cases[i].correlation_id);
    world_run_for(&world, 10 * SECOND_MS);
    char *rest = said_end();
    log_set_level(LOG_INFO);
    for (char *text; (text = strsep(&rest, "\n")) && *text;) {
        json_t *line = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        const char *id = json_string_value(json_object_get(line, "job"));
        for (size_t i = 0; i < COUNT_OF(cases) && id; i++) {
            if (strcmp(id, cases[i].id) != 0)
                continue;
            check_line(&cases[i], line);
            lines++;
        }
        json_decref(line);
    }
    assert_int_equal(lines, COUNT_OF(cases)); /* each once */
    world_end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(an_item_has_its_line) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
