/*
 * What the engine says about each item: in the log, and in the trail.
 */
#include "base/log.h"
#include "support/check.h"
#include "support/said.h"
#include "support/engine_fixture.h"

#include <jansson.h>

/* By the item's payload. */
static int64_t answers_as_told(struct stage *stage, const struct send *send, struct answer *answer)
{
    (void)stage;
    if (slice_equal(send->job->payload, SLICE("good"))) {
        answer->outcome = OUTCOME_DELIVERED;
    } else if (slice_equal(send->job->payload, SLICE("weird"))) {
        answer->code = SLICE("app:odd");
        answer->text = SLICE("WEIRD: nobody knows");
    } else {
        bool bad = slice_equal(send->job->payload, SLICE("bad"));
        answer->code = bad ? SLICE("http:422") : SLICE("http:503");
        answer->text = bad ? SLICE("HTTP 422: user 12345678901 is unknown") : SLICE("HTTP 503: away");
    }
    return 20;
}

static void add(struct stage *stage, const char *id, const char *correlation_id)
{
    struct store_op op = { .kind = OP_INSERT };
    op.insert = (struct op_insert){ .destination = SLICE("d"), .tenant = SLICE("acme"), .id = slice_from(id),
                                    .priority = PRIORITY_NORMAL, .run_at = stage->now, .deadline = INSTANT_NONE,
                                    .correlation_id = slice_from(correlation_id), .payload = slice_from(id) };
    stage_apply(stage, &op);
}

struct line_case {
    const char *id, *correlation_id, *level, *event, *to, *code, *error;
    int64_t retry_count;
    bool scheduled;
    int64_t attempt;
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
    check_text(c, line, "from", c->attempt > 1 ? "waiting" : "pending");
    check_text(c, line, "to", c->to);
    check_text(c, line, "code", c->code);
    check_text(c, line, "error", c->error);
    check(json_integer_value(json_object_get(line, "retry_count")) == c->retry_count, "%s: retry_count", c->id);
    check(json_is_string(json_object_get(line, "next_at")) == c->scheduled, "%s: next_at", c->id);
    check((json_integer_value(json_object_get(line, "delay_ms")) > 0) == c->scheduled, "%s: delay_ms", c->id);
}

/* S4-032: whose, from which state to which, how often tried, when again, and why in short. */
static void an_item_has_its_line(void **state)
{
    static const struct line_case cases[] = {
        { "good", "c-1", "debug", "job_completed", "completed", "", "", 0, false, 1 },
        { "weird", "c-3", "warn", "retry_scheduled", "waiting", "app:odd", "WEIRD: nobody knows", 1, true, 1 }, /* S1-018 */
        { "down", "c-2", "info", "retry_scheduled", "waiting", "http:503", "HTTP 503: away", 1, true, 1 },
        { "down", "c-2", "info", "retry_scheduled", "waiting", "http:503", "HTTP 503: away", 2, true, 2 },
        { "bad", "", "error", "job_dead", "dead", "http:422", "HTTP 422: user <number> is unknown", 0, false, 1 },
    };
    struct stage stage = { .destination = answers_as_told };
    size_t lines = 0;
    (void)state;
    stage_begin(&stage, "destinations: { d: { preset: provisioning, url: 'http://127.0.0.1:1/', allow_private: true } }\n", began);
    log_set_level(LOG_DEBUG);
    said_begin();
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if (cases[i].attempt == 1)
            add(&stage, cases[i].id, cases[i].correlation_id);
    stage_run_for(&stage, 10 * MINUTE_MS);
    char *rest = said_end();
    log_set_level(LOG_INFO);
    for (char *text; (text = strsep(&rest, "\n")) && *text;) {
        json_t *line = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        const char *id = json_string_value(json_object_get(line, "job"));
        for (size_t i = 0; i < COUNT_OF(cases) && id; i++) {
            if (strcmp(id, cases[i].id) != 0 || json_integer_value(json_object_get(line, "attempt")) != cases[i].attempt)
                continue;
            check_line(&cases[i], line);
            lines++;
        }
        json_decref(line);
    }
    assert_int_equal(lines, COUNT_OF(cases)); /* each once */
    stage_end(&stage);
}

/* Fails with what the claim's payload says. */
static int64_t fails_as_told(struct stage *stage, const struct send *send, struct answer *answer)
{
    static const char *const errors[] = { "TIMEOUT", "WEIRD_FAILURE", "INVALID_PATIENT_DATA" };
    (void)stage;
    for (size_t i = 0; i < COUNT_OF(errors); i++)
        if (slice_equal(send->job->payload, slice_from(errors[i])))
            answer->text = slice_from(errors[i]);
    return 20;
}

struct trail_case {
    const char *claim, *error, *classification, *reason;
    int64_t retry_count, minutes_min, minutes_max; /* no minutes: not retried */
    bool last; /* look at the last event of the claim, else at the first that tells of an attempt */
};

static void check_trail(const struct trail_case *c, const struct event *event)
{
    json_t *data = json_loadb(event->data.data, event->data.len, JSON_REJECT_DUPLICATES, NULL);
    const char *reason = json_string_value(json_object_get(data, "retryReason"));
    const char *next = json_string_value(json_object_get(data, "next_at"));
    int64_t minutes = json_integer_value(json_object_get(data, "backoffMinutes"));
    bool retried = c->minutes_max > 0;
    instant next_at;
    check(event->at >= began && slice_equal(event->job, slice_from(c->claim)), "%s: whose", c->claim);
    check(strcmp(json_string_value(json_object_get(data, "error")), c->error) == 0, "%s: error", c->claim);
    check(strcmp(json_string_value(json_object_get(data, "errorClassification")), c->classification) == 0, "%s: class", c->claim);
    check(reason && strcmp(reason, c->reason) == 0, "%s: reason %s", c->claim, reason ? reason : "none");
    check(json_integer_value(json_object_get(data, "retryCount")) == c->retry_count, "%s: retryCount", c->claim);
    check(json_integer_value(json_object_get(data, "maxRetries")) == 5, "%s: maxRetries", c->claim);
    check(json_is_true(json_object_get(data, "shouldRetry")) == retried, "%s: shouldRetry", c->claim);
    check(minutes >= c->minutes_min && minutes <= c->minutes_max, "%s: %lld minutes", c->claim, (long long)minutes);
    check((next != NULL) == retried, "%s: next_at", c->claim);
    if (retried)
        check(instant_parse(slice_from(next), &next_at, NULL) == STATUS_OK &&
                  next_at - event->at == json_integer_value(json_object_get(data, "backoffMs")), "%s: %s", c->claim, next);
    json_decref(data);
}

/* S1-094: when, whose, what was seen, how it was judged, what comes next and why. */
static void a_decision_is_on_record(void **state)
{
    static const struct trail_case cases[] = {
        { "CLM-1-1", "TIMEOUT", "TRANSIENT", "Transient error, retry 1 of 5", 1, 5, 6, false },
        { "CLM-1-1", "TIMEOUT", "TRANSIENT", "Maximum retries exceeded, 5 allowed", 5, 0, 0, true },
        { "CLM-1-2", "WEIRD_FAILURE", "UNKNOWN", "Unknown error, retry 1 of 5", 1, 5, 6, false },
        { "CLM-1-3", "INVALID_PATIENT_DATA", "PERMANENT", "Permanent error, not retried", 0, 0, 0, true },
    };
    struct stage stage = { .destination = fails_as_told };
    struct arena memory = { 0 };
    struct event *events;
    struct error error;
    size_t count;
    (void)state;
    stage_begin(&stage, "destinations: { d: { preset: tiss, url: 'http://127.0.0.1:1/', allow_private: true } }\n", began);
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if (i == 0 || strcmp(cases[i].claim, cases[i - 1].claim) != 0)
            stage_add(&stage, "d", "t", cases[i].claim, cases[i].error);
    stage_run_for(&stage, 6 * HOUR_MS);
    assert_int_equal(stage.reader->ops->reader_events(stage.reader, 0, 500, &memory, &events, &count, &error), STATUS_OK);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct event *found = NULL;
        for (size_t j = 0; j < count; j++) {
            bool tells = slice_equal(events[j].job, slice_from(cases[i].claim)) &&
                         memmem(events[j].data.data, events[j].data.len, "shouldRetry", strlen("shouldRetry"));
            if (tells && (cases[i].last || !found))
                found = &events[j];
        }
        check(found, "%s: no event", cases[i].claim);
        check_trail(&cases[i], found);
    }
    arena_release(&memory);
    stage_end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(an_item_has_its_line), cmocka_unit_test(a_decision_is_on_record) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
