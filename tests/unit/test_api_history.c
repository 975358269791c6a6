/*
 * GET /v1/destinations/{name}/history: series of equal length, null where nothing is known, and what is refused.
 */
#include "engine/history.h"
#include "support/api_fixture.h"
#include "support/check.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int setup(void **state)
{
    *state = api_fixture_new(&(struct api_fixture_settings){
        .config = "destinations:\n"
                  "  web: { transport: http, url: 'http://127.0.0.1:1/', allow_private: true, errors: { permanent: ['400'] } }\n"
                  "  web.0: { transport: http, url: 'http://127.0.0.1:1/', allow_private: true }\n"
                  "  web0: { transport: http, url: 'http://127.0.0.1:1/', allow_private: true }\n" });
    return 0;
}

static int teardown(void **state)
{
    api_fixture_free(*state);
    return 0;
}

static int64_t sum(const json_t *series)
{
    int64_t sum = 0;
    size_t i;
    json_t *value;
    json_array_foreach(series, i, value)
        sum += json_integer_value(value);
    return sum;
}

/* Until so many were delivered, as the history has it. */
static struct reply await_delivered(struct api_fixture *fixture, const char *path, int64_t count)
{
    for (int i = 0; i < 600; i++) {
        struct reply reply = http_do(fixture, "GET", path, NULL);
        assert_int_equal(reply.status, 200);
        if (sum(reply_at(&reply, "series.delivered")) == count)
            return reply;
        reply_release(&reply);
        api_fixture_advance(fixture, 10 * SECOND_MS); /* the engine needs to see the minute end */
        poll(NULL, 0, 10);
    }
    fail_msg("%s never had %lld", path, (long long)count);
    abort();
}

static void series_are_of_one_length(void **state)
{
    static const char *const names[] = { "delivered", "failed.permanent", "pending", "oldest_s", "latency_p50_ms",
                                         "latency_p95_ms", "latency_p99_ms", "in_flight", "limit", "mode" };
    struct api_fixture *fixture = *state;
    char path[64];
    put_job(fixture, "web", "t", "a", "good");
    put_job(fixture, "web", "t", "b", "bad");
    put_job(fixture, "web0", "t", "c", "good");
    await_state(fixture, "/v1/jobs/a?tenant=t", "completed");
    await_state(fixture, "/v1/jobs/b?tenant=t", "dead");
    struct reply reply = await_delivered(fixture, "/v1/destinations/web/history", 1);
    assert_int_equal(reply_int(&reply, "step"), 60);
    size_t length = json_array_size(reply_at(&reply, "series.delivered")), nulls = 0;
    assert_in_range(length, 60, 61);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "series.%s", names[i]);
        assert_int_equal(json_array_size(reply_at(&reply, path)), length);
    }
    for (size_t i = 0; i < length; i++) {
        bool none = json_is_null(json_array_get(reply_at(&reply, "series.mode"), i));
        assert_int_equal(none, json_is_null(json_array_get(reply_at(&reply, "series.delivered"), i)));
        nulls += none;
    }
    assert_true(nulls > 50); /* the hour before the test, and idle minutes */
    assert_int_equal(sum(reply_at(&reply, "series.failed.permanent")), 1);
    assert_null(reply_at(&reply, "series.failed.transient"));
    reply_release(&reply);
    reply = await_delivered(fixture, "/v1/destinations/web/history?step=3600", 1);
    assert_in_range(json_array_size(reply_at(&reply, "series.delivered")), 24, 25);
    reply_release(&reply);
    reply = http_do(fixture, "GET", "/v1/destinations/web.0/history", NULL); /* a name that sorts between */
    assert_int_equal(reply.status, 200);
    assert_int_equal(sum(reply_at(&reply, "series.delivered")), 0);
    reply_release(&reply);
}

static void save_page(struct api_fixture *fixture, const char *name, const struct history_scale *scale, instant at, int64_t count)
{
    const struct history_point point = { .delivered = count, .p50_ms = -1, .p95_ms = -1, .p99_ms = -1, .mode = HISTORY_NORMAL };
    struct store *store = api_fixture_store(fixture);
    struct history_page page;
    struct arena memory = { 0 };
    struct error err;
    history_page_clear(&page);
    assert_true(history_page_put(scale, &page, at, &point));
    struct store_op op = { .kind = OP_SAVE,
                           .save = { .space = SPACE_HISTORY, .name = slice_from(name), .value = history_page_text(&page) } };
    assert_int_equal(store->ops->apply(store, at, &op, 1, &memory, &err), STATUS_OK);
    arena_release(&memory);
}

/* Full pages are found by their destination's name alone, and by the time asked for. */
static void full_pages_are_read(void **state)
{
    struct api_fixture *fixture = *state;
    const instant day = INT64_C(1736640000000); /* 2025-01-12 */
    api_fixture_stop_engine(fixture);
    save_page(fixture, "web/m05", &history_minutes, day + 5 * HOUR_MS, 5);
    save_page(fixture, "web/m06", &history_minutes, day + 6 * HOUR_MS, 6);
    save_page(fixture, "web.0/m06", &history_minutes, day + 6 * HOUR_MS, 100);
    save_page(fixture, "web0/m06", &history_minutes, day + 6 * HOUR_MS, 1000);
    save_page(fixture, "web/h00", &history_hours, day + 6 * HOUR_MS, 60);
    struct reply reply = http_do(fixture, "GET", "/v1/destinations/web/history?from=2025-01-12T05:00:00Z&to=2025-01-12T06:01:00Z", NULL);
    assert_int_equal(reply.status, 200);
    assert_int_equal(json_array_size(reply_at(&reply, "series.delivered")), 61);
    assert_int_equal(reply_int(&reply, "series.delivered.0"), 5);
    assert_int_equal(reply_int(&reply, "series.delivered.60"), 6);
    assert_true(json_is_null(reply_at(&reply, "series.latency_p50_ms.0")));
    assert_string_equal(reply_text(&reply, "series.mode.0"), "normal");
    assert_string_equal(reply_text(&reply, "from"), "2025-01-12T05:00:00.000Z");
    reply_release(&reply);
    reply = http_do(fixture, "GET", "/v1/destinations/web/history?from=2025-01-12T06:30:00Z&to=2025-01-12T06:31:00Z&step=3600", NULL);
    assert_int_equal(json_array_size(reply_at(&reply, "series.delivered")), 1);
    assert_int_equal(reply_int(&reply, "series.delivered.0"), 60);
    reply_release(&reply);
}

static void nonsense_is_refused(void **state)
{
    static const struct { const char *path; int status; const char *detail; } cases[] = {
        { "/v1/destinations/none/history", 404, "no destination" },
        { "/v1/destinations/web/history?step=61", 422, "60 (minutes" },
        { "/v1/destinations/web/history?from=yesterday", 422, "a time like" },
        { "/v1/destinations/web/history?from=2025-01-12T06:00:00Z&to=2025-01-12T05:00:00Z", 422, "before" },
        { "/v1/destinations/web/history?from=2025-01-01T06:00:00Z&to=2025-01-12T05:00:00Z", 422, "3000 steps" },
        { "/v1/destinations/web/history?until=1", 422, "from" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct reply reply = http_do(*state, "GET", cases[i].path, NULL);
        check(reply.status == cases[i].status && strstr(reply_text(&reply, "detail"), cases[i].detail), "%s: %d %s",
              cases[i].path, reply.status, reply.body);
        reply_release(&reply);
    }
}

/* The report of today has what ended, in three forms; and what is no date or form is refused. */
static void reports_are_answered(void **state)
{
    struct api_fixture *fixture = *state;
    static const struct { const char *path; int status; const char *has; } cases[] = {
        { "/v1/reports/daily", 200, "\"rule\":\"S0-081\"" },
        { "/v1/reports/daily?date=2025-01-12", 200, "\"title\":\"Daily report, 2025-01-12\"" },
        { "/v1/reports/daily?date=2025-01-12&format=text", 200, "Tentativas Médias" },
        { "/v1/reports/weekly?week=2025-W01&format=html", 200, "<title>Weekly report, 2024-12-30 to 2025-01-05" },
        { "/v1/reports/weekly?week=2025-01-12", 200, "Weekly report, 2025-01-06 to 2025-01-12" },
        { "/v1/reports/weekly?week=2025-W54", 422, "2025-W02" },
        { "/v1/reports/daily?date=yesterday", 422, "a date like" },
        { "/v1/reports/daily?date=2025-02-31", 422, "a date like" },
        { "/v1/reports/daily?format=pdf", 422, "json, text or html" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct reply reply = http_do(fixture, "GET", cases[i].path, NULL);
        check(reply.status == cases[i].status && strstr(reply.body, cases[i].has), "%s: %d %s", cases[i].path, reply.status,
              reply.body);
        reply_release(&reply);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(series_are_of_one_length, setup, teardown),
        cmocka_unit_test_setup_teardown(full_pages_are_read, setup, teardown),
        cmocka_unit_test_setup_teardown(reports_are_answered, setup, teardown),
        cmocka_unit_test_setup_teardown(nonsense_is_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
