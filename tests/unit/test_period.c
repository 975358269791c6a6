/*
 * Reports: each KPI of a scripted day is the one that is computed by hand here, over restarts, days and destinations.
 */
#include "config/config.h"
#include "engine/reports/period.h"
#include "engine/reports/schedule.h"
#include "support/check.h"
#include "support/stage.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const instant began = INT64_C(1736676000000); /* Sunday, 2025-01-12T10:00Z */

/* "ok", "after N": delivered by the attempt after so many that failed; "400": a permanent error; "never": 503 each time. */
static int64_t answers(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct slice payload = send->job->payload;
    (void)stage;
    int failures = slice_has_prefix(payload, SLICE("after ")) ? payload.data[6] - '0' : 0;
    if (slice_equal(payload, SLICE("400"))) {
        answer->code = SLICE("http:400");
        answer->text = SLICE("no <such> patient, CPF 111.444.777-35");
    } else if (slice_equal(payload, SLICE("never")) || send->job->attempts <= failures) {
        answer->code = SLICE("http:503");
        answer->text = SLICE("down");
    } else {
        answer->outcome = OUTCOME_DELIVERED;
    }
    return 0;
}

static void begin(struct stage *stage)
{
    stage_begin(stage,
                "destinations:\n"
                "  d: { url: 'http://127.0.0.1:1/', allow_private: true, concurrency: 10, breaker: { min_calls: 100000 },\n"
                "       retry: { max_retries: 2, base: 30m, factor: 1, floor: 30m, cap: 30m, jitter: 0 },\n"
                "       errors: { permanent: ['http:400'], transient: ['http:503'] } }\n"
                "  e: { url: 'http://127.0.0.1:1/', allow_private: true, errors: { permanent: ['http:400'] } }\n",
                began);
}

static void add(struct stage *stage, const char *destination, const char *payload, int count)
{
    for (int i = 0; i < count; i++)
        stage_add(stage, destination, "t", NULL, payload);
}

static struct period *read_period(struct stage *stage, bool weekly, instant at, struct arena *memory)
{
    struct period *period = arena_alloc(memory, sizeof *period);
    struct error err;
    assert_non_null(period);
    period_begin(period, stage->config, weekly, at, stage->now);
    for (bool more = true; more;)
        assert_int_equal(period_read(period, stage->reader, memory, &more, &err), STATUS_OK);
    return period;
}

static void assert_kpi(const struct daybook *book, const char *rule, double expected, bool met)
{
    for (const struct kpi *kpi = kpis; kpi < kpis + KPI_COUNT; kpi++) {
        if (strcmp(kpi->rule, rule) != 0)
            continue;
        double value = kpi->value(book);
        check(fabs(value - expected) < 0.001, "%s is %g, by hand %g", rule, value, expected);
        if (expected >= 0)
            check(kpi_met(kpi, value) == met, "%s: %g is said to be %s", rule, value, met ? "missed" : "met");
        return;
    }
    fail_msg("there is no %s", rule);
}

/*
 * Ten jobs end: six by their first attempt, one by its second after half an hour, one by its third after an hour, one with a
 * permanent error, one with all three attempts used. Three of them had been retried; attempts: 6 + 2 + 3 + 1 + 3 = 15.
 */
static void play(struct stage *stage)
{
    add(stage, "d", "ok", 6);
    add(stage, "d", "after 1", 1);
    add(stage, "d", "after 2", 1);
    add(stage, "d", "400", 1);
    add(stage, "d", "never", 1);
}

static void each_kpi_is_as_by_hand(void **state)
{
    struct stage stage = { .destination = answers };
    struct arena memory = { 0 };
    (void)state;
    begin(&stage);
    play(&stage);
    stage_run_for(&stage, 2 * HOUR_MS);
    struct period *period = read_period(&stage, false, began, &memory);
    assert_true(period->unfinished);
    const struct daybook *book = &period->total;
    assert_int_equal(daybook_ended(book), 10);
    assert_kpi(book, "S0-081", 100.0 * 2 / 3, false); /* >= 85 */
    assert_kpi(book, "S1-051", 100.0 * 2 / 3, false); /* >= 80 */
    assert_kpi(book, "S0-082", 1.5, false);           /* <= 1.2 */
    assert_kpi(book, "S0-083", 100.0 * 1 / 3, false); /* <= 3 */
    assert_kpi(book, "S0-084", 45, true);             /* of 30 and 60 minutes, <= 60 */
    assert_kpi(book, "S1-052", 45, true);             /* <= 120 */
    assert_kpi(book, "S1-053", 10, false);            /* < 10 */
    assert_kpi(book, "S1-054", 10, false);            /* < 5 */
    assert_int_equal(book->sent[0], 10); /* S1-064: what each attempt was good for */
    assert_int_equal(book->taken[0], 6);
    assert_int_equal(book->sent[1], 3);
    assert_int_equal(book->taken[1], 1);
    assert_int_equal(book->sent[2], 2);
    assert_int_equal(book->taken[2], 1);
    assert_int_equal(period->permanent.count, 1);
    assert_true(slice_equal(period->permanent.items[0].code, SLICE("http:400")));
    assert_int_equal(period->exhausted.count, 1);
    assert_int_equal(period->exhausted.items[0].attempts, 3);
    /* Seventeen more that need one retry: 19 of 20 are good, the median and the mean are lower than half an hour each. */
    add(&stage, "d", "after 1", 17);
    stage_run_for(&stage, HOUR_MS);
    book = &read_period(&stage, false, began, &memory)->total;
    assert_kpi(book, "S0-081", 95, true);
    assert_kpi(book, "S1-051", 95, true);
    assert_kpi(book, "S0-083", 5, false);
    assert_kpi(book, "S0-084", 30, true);
    assert_kpi(book, "S1-052", (18 * 30 + 60) / 19.0, true);
    assert_kpi(book, "S1-054", 100.0 / 27, true);
    arena_release(&memory);
    stage_end(&stage);
}

/* What happens on a day is on its report alone, whatever restarts; the week has all of its days; destinations are apart. */
static void days_are_apart_and_outlive_restarts(void **state)
{
    struct stage stage = { .destination = answers };
    struct arena memory = { 0 };
    (void)state;
    begin(&stage);
    play(&stage);
    stage_run_for(&stage, 2 * HOUR_MS);
    stage_restart(&stage);
    add(&stage, "d", "ok", 5);
    add(&stage, "e", "ok", 2);
    stage_run_for(&stage, 10 * SECOND_MS);
    stage_restart(&stage);
    stage_run_for(&stage, 2 * MINUTE_MS);
    stage_crash(&stage);
    struct period *sunday = read_period(&stage, false, began, &memory);
    assert_int_equal(daybook_ended(&sunday->total), 17);
    assert_int_equal(sunday->destination_count, 2);
    assert_true(slice_equal(sunday->destinations[1].name, SLICE("e")));
    assert_int_equal(daybook_ended(&sunday->destinations[1].book), 2);
    stage_run_until(&stage, began + DAY_MS);
    add(&stage, "d", "400", 3);
    stage_run_until(&stage, began + DAY_MS + 5 * MINUTE_MS);
    sunday = read_period(&stage, false, began, &memory);
    assert_int_equal(daybook_ended(&sunday->total), 17); /* not twice: it is by its date, and was the last */
    assert_false(sunday->unfinished);
    struct period *monday = read_period(&stage, false, began + DAY_MS, &memory);
    assert_int_equal(daybook_ended(&monday->total), 3);
    assert_int_equal(monday->permanent.count, 3);
    assert_kpi(&monday->total, "S0-081", -1, false); /* nothing was retried: nothing to judge */
    assert_int_equal(daybook_ended(&read_period(&stage, true, began, &memory)->total), 17); /* the week ends on Sunday */
    assert_int_equal(daybook_ended(&read_period(&stage, true, began + 3 * DAY_MS, &memory)->total), 3);
    stage_run_until(&stage, began + 2 * DAY_MS);
    add(&stage, "e", "ok", 1);
    stage_run_for(&stage, 5 * MINUTE_MS);
    struct period *week = read_period(&stage, true, stage.now, &memory);
    assert_int_equal(daybook_ended(&week->total), 4);
    assert_int_equal(daybook_ended(&week->days[0]), 3);
    assert_int_equal(daybook_ended(&week->days[1]), 1);
    arena_release(&memory);
    stage_end(&stage);
}

/* S0-096, S1-062, S1-063, S0-097: who looks at them each day and each week finds them there. */
static void a_report_is_text_and_a_page(void **state)
{
    struct stage stage = { .destination = answers };
    struct arena memory = { 0 };
    struct buffer text, page;
    (void)state;
    begin(&stage);
    play(&stage);
    stage_run_for(&stage, 2 * HOUR_MS);
    struct period *period = read_period(&stage, true, began, &memory);
    buffer_init(&text, PERIOD_BYTES_MAX);
    buffer_init(&page, PERIOD_BYTES_MAX);
    period_text(period, &text);
    period_html(period, &page);
    buffer_append_byte(&text, '\0');
    buffer_append_byte(&page, '\0');
    static const char *const said[] = { "Weekly report, 2025-01-06 to 2025-01-12 (not over yet)", "10 jobs ended: 8 delivered",
                                        "S0-082  Tentativas Médias                     1.50      <= 1.2   NOT MET",
                                        "S0-084  Tempo até Sucesso                    45.00 min  <= 60 min  met",
                                        "http:400: 1 permanent", "no <such> patient", "after 3 attempts" };
    static const char *const shown[] = { "<title>Weekly report", "<svg", "no &lt;such&gt; patient", "S1-053", "not met" };
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        check(strstr(text.data, said[i]) != NULL, "%s is not in\n%s", said[i], text.data);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        check(strstr(page.data, shown[i]) != NULL, "%s is not in the page", shown[i]);
    check(!strstr(page.data, "<such>"), "an answer is markup");
    check(!strstr(page.data, "111.444") && !strstr(text.data, "111.444"), "a person's number leaves the house");
    buffer_release(&text);
    buffer_release(&page);
    arena_release(&memory);
    stage_end(&stage);
}

/* The median is exact where the values are apart, of an even number the mean of the two in the middle. */
static void the_median_is_the_middle(void **state)
{
    static const int64_t minutes[] = { 600, 1, 90, 7, 30 };
    struct daybook book = { 0 }, copy;
    char date[DAYBOOK_DATE_BYTES + 1];
    struct buffer text;
    (void)state;
    assert_true(daybook_time_median(&book) < 0);
    for (size_t i = 0; i < 5; i++)
        daybook_job(&book, DAYBOOK_DELIVERED, 2, minutes[i] * MINUTE_MS, SLICE(""));
    assert_true(fabs(daybook_time_median(&book) - 30.0 * MINUTE_MS) < 1);
    daybook_job(&book, DAYBOOK_DELIVERED, 2, 0, SLICE(""));
    assert_true(fabs(daybook_time_median(&book) - 18.5 * MINUTE_MS) < 1);
    daybook_job(&book, DAYBOOK_DELIVERED, 1, 999 * MINUTE_MS, SLICE("")); /* its first attempt */
    assert_true(fabs(daybook_time_mean(&book) - 728.0 * MINUTE_MS / 6) < 1);
    for (int i = 0; i < 30; i++) {
        char code[8];
        snprintf(code, sizeof code, "c%d", i);
        daybook_job(&book, DAYBOOK_PERMANENT, 1, 0, slice_from(code));
    }
    daybook_job(&book, DAYBOOK_OTHER_DEAD, 1, INT64_MAX, SLICE("\xff"));
    assert_int_equal(book.code_count, DAYBOOK_CODES);
    assert_int_equal(book.other_codes[DAYBOOK_PERMANENT], 10);
    buffer_init(&text, 1 << 20);
    struct json_writer json = json_writer(&text);
    daybook_write(&json, &book, "20250112");
    daybook_read(buffer_slice(&text), &copy, date);
    assert_string_equal(date, "20250112");
    assert_memory_equal(&book.times, &copy.times, sizeof book.times);
    assert_memory_equal(&book.codes, &copy.codes, sizeof book.codes);
    assert_memory_equal(&book.ends, &copy.ends, sizeof book.ends);
    assert_int_equal(copy.tries, book.tries);
    daybook_read(SLICE("{\"ends\":[-5,\"x\"],\"times\":[[500,1,1]],\"date\":7}"), &copy, date);
    assert_int_equal(daybook_ended(&copy), 0);
    assert_string_equal(date, "");
    daybook_read(SLICE("no json"), &copy, date);
    assert_int_equal(daybook_ended(&copy), 0);
    buffer_release(&text);
}

/* ---- sent by a schedule ---- */

struct sent {
    int count;
    char last[200];
    char title[64];
};

static int64_t takes_reports(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct sent *sent = stage->context;
    if (!slice_equal(send->job->destination, SLICE("notify.ops")))
        return answers(stage, send, answer);
    json_t *message = json_loadb(send->job->payload.data, send->job->payload.len, 0, NULL);
    const json_t *data = json_object_get(message, "data");
    sent->count++;
    snprintf(sent->last, sizeof sent->last, "%s", json_string_value(json_object_get(message, "type")));
    snprintf(sent->title, sizeof sent->title, "%s", json_string_value(json_object_get(data, "title")));
    assert_int_equal(json_array_size(json_object_get(data, "kpis")), KPI_COUNT);
    json_decref(message);
    answer->outcome = OUTCOME_DELIVERED;
    return 0;
}

static const char scheduled[] =
    "notify: [{ name: ops, webhook: 'http://127.0.0.1:1/', allow_private: true, on: [critical] }]\n"
    "reports: [{ every: day, at: \"07:00\", zone: \"-03:00\", to: ops }, { every: week, at: \"08:00\", to: ops }]\n"
    "destinations: { d: { url: 'http://127.0.0.1:1/', allow_private: true } }\n";

/* Each once, at its time, over restarts and crashes; late when nothing ran; none of before it was wanted. */
static void reports_are_sent_once(void **state)
{
    struct sent sent = { 0 };
    struct stage stage = { .destination = takes_reports, .context = &sent };
    (void)state;
    stage_begin(&stage, scheduled, began); /* Sunday, 10:00 UTC: 07:00 there */
    add(&stage, "d", "ok", 3);
    stage_run_until(&stage, began + 21 * HOUR_MS);
    assert_int_equal(sent.count, 0);
    stage_run_until(&stage, began + 22 * HOUR_MS + MINUTE_MS); /* Monday, 08:01 UTC */
    assert_int_equal(sent.count, 1);
    assert_string_equal(sent.last, "report.week");
    assert_string_equal(sent.title, "Weekly report, 2025-01-06 to 2025-01-12");
    stage_restart(&stage);
    stage_run_until(&stage, began + 24 * HOUR_MS - MINUTE_MS);
    assert_int_equal(sent.count, 1);
    stage_run_until(&stage, began + 24 * HOUR_MS + MINUTE_MS); /* 10:01 UTC */
    assert_int_equal(sent.count, 2);
    assert_string_equal(sent.last, "report.day");
    assert_string_equal(sent.title, "Daily report, 2025-01-12");
    stage_crash(&stage);
    stage_run_for(&stage, HOUR_MS);
    assert_int_equal(sent.count, 2);
    stage.now = began + 51 * HOUR_MS; /* it was down on Tuesday at ten */
    stage_crash(&stage);
    stage_run_for(&stage, MINUTE_MS);
    assert_int_equal(sent.count, 3);
    assert_string_equal(sent.title, "Daily report, 2025-01-13");
    stage_run_for(&stage, HOUR_MS);
    assert_int_equal(sent.count, 3);
    stage_end(&stage);
}

/* A store that is away while it is made does not send it twice, nor not at all. */
static void a_store_that_is_away_delays_a_report(void **state)
{
    struct sent sent = { 0 };
    struct stage stage = { .destination = takes_reports, .context = &sent };
    (void)state;
    stage_begin(&stage, scheduled, began);
    stage_run_until(&stage, began + 22 * HOUR_MS - MINUTE_MS);
    stage.fail_applies = true;
    stage_run_until(&stage, began + 22 * HOUR_MS + MINUTE_MS);
    assert_int_equal(sent.count, 0);
    stage.fail_applies = false;
    stage_run_for(&stage, 2 * MINUTE_MS);
    assert_int_equal(sent.count, 1);
    stage_end(&stage);
}

/* What the store refused, at the end of a minute or of the day, is written when it takes it. */
static void a_full_store_takes_nothing_from_a_day(void **state)
{
    static const instant midnight = began + 14 * HOUR_MS;
    static const instant refused_from[] = { began, midnight - 30 * SECOND_MS };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(refused_from); i++) {
        struct stage stage = { .destination = answers };
        struct arena memory = { 0 };
        begin(&stage);
        add(&stage, "d", "ok", 5);
        stage_run_for(&stage, 10 * SECOND_MS);
        stage_run_until(&stage, refused_from[i]);
        stage.fail_applies = true;
        stage_run_for(&stage, 3 * MINUTE_MS);
        stage.fail_applies = false;
        stage_run_for(&stage, 5 * MINUTE_MS);
        if (refused_from[i] == began)
            stage_crash(&stage); /* before anything else is to be written */
        stage_run_until(&stage, midnight + HOUR_MS);
        add(&stage, "d", "ok", 2);
        stage_run_for(&stage, 5 * MINUTE_MS);
        int64_t ended = daybook_ended(&read_period(&stage, false, began, &memory)->total);
        check(ended == 5, "refused from %d s on: %d ended", (int)((refused_from[i] - began) / SECOND_MS), (int)ended);
        ended = daybook_ended(&read_period(&stage, false, began + DAY_MS, &memory)->total);
        check(ended == 2, "and %d on the next day", (int)ended);
        arena_release(&memory);
        stage_end(&stage);
    }
}

/* C-20, S0-113: the trail goes when its time is over; how errors were classified, day by day, stays. */
static void days_outlive_the_trail(void **state)
{
    struct stage stage = { .destination = answers };
    struct arena memory = { 0 };
    struct event *events;
    struct error err;
    size_t count;
    (void)state;
    stage_begin(&stage,
                "retention: { completed: 1h, audit: 1d }\n"
                "destinations: { d: { url: 'http://127.0.0.1:1/', allow_private: true, dead: { ttl: 1h },\n"
                "                     errors: { permanent: ['http:400'] } } }\n",
                began);
    add(&stage, "d", "ok", 2);
    add(&stage, "d", "400", 1);
    stage_run_for(&stage, 3 * DAY_MS);
    assert_int_equal(stage.reader->ops->reader_events(stage.reader, 0, 100, &memory, &events, &count, &err), STATUS_OK);
    for (size_t i = 0; i < count; i++)
        assert_true(events[i].at > began + DAY_MS);
    stage.now = began + INT64_C(50) * 365 * DAY_MS; /* nor does any other time end it */
    stage_run_for(&stage, 3 * HOUR_MS);
    struct period *period = read_period(&stage, false, began, &memory);
    assert_int_equal(daybook_ended(&period->total), 3);
    assert_int_equal(period->permanent.count, 0); /* the letter itself is gone */
    assert_string_equal(period->total.codes[0].code, "http:400");
    assert_int_equal(period->total.codes[0].ends[DAYBOOK_PERMANENT], 1);
    arena_release(&memory);
    stage_end(&stage);
}

static void a_report_is_due_at_its_time(void **state)
{
    struct report_config report = { .at_minute = 7 * 60 };
    (void)state;
    assert_true(zone_of_offset(SLICE("-03:00"), &report.zone_rules));
    instant seven = began; /* 10:00 UTC */
    assert_int_equal(report_due(&report, seven), seven);
    assert_int_equal(report_due(&report, seven - 1), seven - DAY_MS);
    assert_int_equal(report_due(&report, seven + 23 * HOUR_MS), seven);
    report.weekly = true; /* Sunday is the end of a week */
    assert_int_equal(report_due(&report, seven), seven - 6 * DAY_MS);
    assert_int_equal(report_due(&report, seven + DAY_MS), seven + DAY_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kpi_is_as_by_hand),
        cmocka_unit_test(days_are_apart_and_outlive_restarts),
        cmocka_unit_test(a_report_is_text_and_a_page),
        cmocka_unit_test(the_median_is_the_middle),
        cmocka_unit_test(reports_are_sent_once),
        cmocka_unit_test(a_store_that_is_away_delays_a_report),
        cmocka_unit_test(a_report_is_due_at_its_time),
        cmocka_unit_test(a_full_store_takes_nothing_from_a_day),
        cmocka_unit_test(days_outlive_the_trail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
