/*
 * The report after a contingency: read as a whole, and what must not get into it.
 */
#include "api/operate/incident_report.h"
#include "api/operate/markdown.h"
#include "support/check.h"

#include <stdio.h>

static const instant began = INT64_C(1736678400000); /* 2025-01-12T10:40:00Z */

/* An outage of an hour that relapsed once. */
static struct incident_view over(void)
{
    struct incident_view view = {
        .id = SLICE("20250112T104130.000Z-claims"),
        .record = {
            .destination = SLICE("claims"), .mode = MODE_NORMAL, .reason = SLICE(""), .health_reason = SLICE("refused"),
            .incident = {
                .first_sign_at = began, .entered_at = began + 90 * 1000, .recovering_at = began + 60 * MINUTE_MS,
                .restored_at = began + 76 * MINUTE_MS + 2000, .cause = CAUSE_HEALTH,
                .signs = { [CRITERION_SERVICE] = 12, [CRITERION_TIMEOUT] = 3 }, .checks_failed = 100, .relapses = 1,
                .held_max = 1500, .unspent = 7,
                .curve = { { began + 90 * 1000, 0 }, { began + 50 * MINUTE_MS, 5 }, { began + 51 * MINUTE_MS, 0 },
                           { began + 60 * MINUTE_MS, 5 }, { began + 60 * MINUTE_MS + 1000, 100 },
                           { began + 60 * MINUTE_MS + 2000, 5 }, { began + 60 * MINUTE_MS + 3000, 100 },
                           { began + 60 * MINUTE_MS + 4000, 100 } },
                .curve_count = 8,
            },
            .held_first = 90, .held = 2, .first = { true, 100, 1000, 4 },
            .changes = { { began + 90 * 1000, MODE_CONTINGENCY, CAUSE_HEALTH, CRITERION_NONE },
                         { began + 50 * MINUTE_MS, MODE_RECOVERING, CAUSE_CHECKED, CRITERION_NONE },
                         { began + 51 * MINUTE_MS, MODE_CONTINGENCY, CAUSE_RELAPSE, CRITERION_TIMEOUT },
                         { began + 60 * MINUTE_MS, MODE_RECOVERING, CAUSE_OPERATOR, CRITERION_NONE },
                         { began + 76 * MINUTE_MS + 2000, MODE_NORMAL, CAUSE_STABLE, CRITERION_NONE } },
            .change_count = 5,
        },
        .stock = { true, 2, 2498, 5 },
        .lessons = SLICE("Watch *their* page\n- <b>daily</b>"),
        .lessons_by = SLICE("ops_anna"),
        .lessons_at = began + 100 * MINUTE_MS,
        .now = began + 200 * MINUTE_MS,
    };
    return view;
}

static const char expected[] =
    "# Incident at claims, 2025-01-12 10:41:30Z\n"
    "\n"
    "claims went into contingency at 2025-01-12 10:41:30Z and was fully restored at 2025-01-12 11:56:02Z, 1h16m2s after the "
    "first sign. It began because its health checks failed several times in a row. On the way back it failed again 1 time. It "
    "held up to 1500 jobs; 1498 jobs were delivered in its course and 2 jobs were still pending at its end. 7 sends failed "
    "without costing a job one of its tries.\n"
    "\n"
    "Incident `20250112T104130.000Z-claims`, restored.\n"
    "\n"
    "## Timeline\n"
    "\n"
    "| time (UTC) | after | what happened |\n"
    "|---|---:|---|\n"
    "| 2025-01-12 10:40:00Z | 0s | First sign |\n"
    "| 2025-01-12 10:41:30Z | 1m30s | Contingency, jobs are held: its health checks failed several times in a row |\n"
    "| 2025-01-12 11:30:00Z | 50m | On the way back: a check went well; jobs go again, 5 at a time |\n"
    "| 2025-01-12 11:31:00Z | 51m | Held again: it failed again on the way back (no answer in time) |\n"
    "| 2025-01-12 11:40:00Z | 1h | On the way back: an operator let it go on; jobs go again, 5 at a time |\n"
    "| 2025-01-12 11:40:01Z | 1h1s | Next step: 100 at a time |\n"
    "| 2025-01-12 11:40:02Z | 1h2s | A step back: 5 at a time |\n"
    "| 2025-01-12 11:40:03Z | 1h3s | Next step: 100 at a time |\n"
    "| 2025-01-12 11:40:04Z | 1h4s | The last step is done: 100 at a time, until it has been well for long enough |\n"
    "| 2025-01-12 11:56:02Z | 1h16m2s | Fully restored: it was well for long enough |\n"
    "\n"
    "## What was seen\n"
    "\n"
    "Cause: its health checks failed several times in a row.\n"
    "\n"
    "| sign | times |\n"
    "|---|---:|\n"
    "| sends that failed: no answer in time | 3 |\n"
    "| sends that failed: server errors | 12 |\n"
    "| health checks that failed, at last: an answer that means no | 100 |\n"
    "| jobs sent to see whether it is back | 0 |\n"
    "| relapses on the way back | 1 |\n"
    "\n"
    "## Effect on jobs\n"
    "\n"
    "| jobs | when it began | most | at its end |\n"
    "|---|---:|---:|---:|\n"
    "| held although due | 90 | 1500 | 2 |\n"
    "| pending, in all | 100 |  | 2 |\n"
    "| dead letters | 4 |  | 5 |\n"
    "\n"
    "- Processed in the course of the incident: 1498; pending at its end: 2\n"
    "- Tries not spent: 7. So many sends failed without costing a job one of its tries.\n"
    "- Held at most: 1500; the alert is set at 100 pending jobs\n"
    "\n"
    "## The way back\n"
    "\n"
    "How many jobs could be under way at once, step by step:\n"
    "\n"
    "```text\n"
    "2025-01-12 10:41:30Z  held\n"
    "2025-01-12 11:30:00Z  ## 5\n"
    "2025-01-12 11:31:00Z  held\n"
    "2025-01-12 11:40:00Z  ## 5\n"
    "2025-01-12 11:40:01Z  ######################################## 100\n"
    "2025-01-12 11:40:02Z  ## 5\n"
    "2025-01-12 11:40:03Z  ######################################## 100\n"
    "2025-01-12 11:40:04Z  ######################################## 100\n"
    "2025-01-12 11:56:02Z  restored: no limit\n"
    "```\n"
    "\n"
    "## Times\n"
    "\n"
    "| what | took | aim, as configured now |\n"
    "|---|---:|---|\n"
    "| first sign to contingency | 1m30s | 3 checks, 30s apart |\n"
    "| contingency to the last way back | 58m30s | the alert on waiting jobs is set at 15m |\n"
    "| way back to full restore | 16m2s | at least 15m without a failure |\n"
    "| **recovery: first sign to full restore** | **1h16m2s** | |\n"
    "\n"
    "## Lessons learned\n"
    "\n"
    "> Watch \\*their\\* page  \n"
    "> \\- &lt;b&gt;daily&lt;/b&gt;\n"
    "\n"
    "Written by ops\\_anna at 2025-01-12 12:20:00Z.\n";

static const char *report_of(const struct incident_view *view, struct buffer *out)
{
    buffer_init(out, 1 << 20);
    incident_report(out, view);
    assert_int_equal(buffer_status(out), STATUS_OK);
    return out->data;
}

/* S3-094, S3-095 */
static void a_report_as_a_whole(void **state)
{
    const struct destination_config config = {
        .alerts = { .pending = 100, .age_ms = 15 * MINUTE_MS },
        .health = { .kind = HEALTH_JSON, .failures = 3, .every_ms = 30 * 1000 },
        .contingency = { .stable_ms = 15 * MINUTE_MS },
    };
    struct incident_view view = over();
    struct buffer out;
    (void)state;
    view.config = &config;
    assert_string_equal(report_of(&view, &out), expected);
    buffer_release(&out);
}

static void while_it_lasts(void **state)
{
    struct incident_view view = over();
    struct buffer out;
    (void)state;
    view.record.mode = MODE_CONTINGENCY;
    view.record.incident.restored_at = view.record.incident.recovering_at = INSTANT_NONE;
    view.record.incident.relapses = 0;
    view.record.incident.curve_count = view.record.change_count = 1;
    view.lessons = SLICE("");
    const char *text = report_of(&view, &out);
    assert_non_null(strstr(text, "claims has been in contingency since 2025-01-12 10:41:30Z. It is 3h20m since the first sign."));
    assert_non_null(strstr(text, "1498 jobs have been delivered so far and 2 jobs are pending."));
    assert_non_null(strstr(text, "This report is as of 2025-01-12 14:00:00Z; the incident is not over."));
    assert_non_null(strstr(text, "| contingency until now | 3h18m30s |"));
    assert_non_null(strstr(text, "| **first sign until now** | **3h20m** |"));
    assert_non_null(strstr(text, "None are written down yet. To do so: `insist incidents note 20250112T104130.000Z-claims TEXT`"));
    assert_null(strstr(text, "estored"));
    buffer_release(&out);
}

/* What is not known is left out rather than made up. */
static void what_is_not_known(void **state)
{
    struct incident_view view = over();
    struct buffer out;
    (void)state;
    view.stock.known = false;
    view.record.first.known = false;
    view.record.incident.curve[1].level = INT64_MAX; /* no ramp is configured */
    view.record.changes_left_out = 40;
    const char *text = report_of(&view, &out);
    assert_non_null(strstr(text, "| pending, in all |  |  |  |\n"));
    assert_null(strstr(text, "Processed"));
    assert_null(strstr(text, "9223372036854775807"));
    assert_non_null(strstr(text, "11:30:00Z  no limit\n"));
    assert_non_null(strstr(text, "jobs go again, as many as may go |"));
    assert_non_null(strstr(text, "40 changes in the middle are left out."));
    buffer_release(&out);
}

static void one_tenant_sees_no_figures(void **state)
{
    struct incident_view view = over();
    struct buffer out;
    (void)state;
    view.confined = true;
    view.record.reason = SLICE("they called");
    const char *text = report_of(&view, &out);
    assert_non_null(strstr(text, "> they called\n"));
    static const char *const hidden[] = { "1500", "1498", "Effect", "Lessons", "sends that failed" };
    for (size_t i = 0; i < COUNT_OF(hidden); i++)
        check(!strstr(text, hidden[i]), "%s", hidden[i]);
    buffer_release(&out);
}

static void a_clock_that_was_put_back(void **state)
{
    struct incident_view view = over();
    struct buffer out;
    (void)state;
    view.record.incident.restored_at = began - 1;
    assert_non_null(strstr(report_of(&view, &out), "**0s**"));
    buffer_release(&out);
}

static void numbers_agree_with_their_nouns(void **state)
{
    static const struct { int64_t held, processed, pending, unspent; bool over; const char *text; } cases[] = {
        { 0, 0, 0, 0, true, " It held no job; no job was delivered in its course and no job was still pending at its end." },
        { 1, 1, 1, 1, true, " It held up to 1 job; 1 job was delivered in its course and 1 job was still pending at its end. 1 send "
                            "failed without costing a job one of its tries." },
        { 2, 0, 1, 0, false, " It held up to 2 jobs; no job has been delivered so far and 1 job is pending." },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct incident_view view = over();
        struct buffer out;
        view.record.mode = cases[i].over ? MODE_NORMAL : MODE_RECOVERING;
        view.record.incident.held_max = cases[i].held;
        view.record.incident.unspent = cases[i].unspent;
        view.stock = (struct incident_stock){ true, cases[i].pending, 1000 + cases[i].processed, 0 };
        buffer_init(&out, 1 << 20);
        incident_summary(&out, &view);
        check(slice_has_suffix(buffer_slice(&out), slice_from(cases[i].text)), "%s", out.data);
        buffer_release(&out);
    }
}

/* ---- escaping ---- */

static void text_from_elsewhere_is_only_text(void **state)
{
    static const struct { const char *text, *shown; } cases[] = {
        { "plain words, 1.5 and a-b", "plain words, 1.5 and a-b" },
        { "<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;" },
        { "&amp; *b* _i_ `c` [l](u) ![i](u) |", "&amp;amp; \\*b\\* \\_i\\_ \\`c\\` \\[l\\](u) \\!\\[i\\](u) \\|" },
        { "# title", "\\# title" },
        { "- item", "\\- item" },
        { "12. item", "12\\. item" },
        { "3) item", "3\\) item" },
        { "===", "\\===" },
        { "see https://x.example, www.x.example, a@x.example", "see https\\://x.example, www\\.x.example, a\\@x.example" },
        { "a\nb\tc\x1b[2J", "a b c?\\[2J" },
        { "back\\slash ~~s~~ $m$", "back\\\\slash \\~\\~s\\~\\~ \\$m\\$" },
        { "caf\xc3\xa9 \xff", "caf\xc3\xa9 \xef\xbf\xbd" },
        { "\xe2\x80\xae" "txt.exe \xc2\x9b", "&lt;U+202E&gt;txt.exe &lt;U+009B&gt;" },
        { "", "" },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct buffer out;
        buffer_init(&out, 4096);
        buffer_append_text(&out, "");
        markdown_append(&out, slice_from(cases[i].text));
        check(slice_equal(buffer_slice(&out), slice_from(cases[i].shown)), "%s: %s", cases[i].text, out.data);
        buffer_release(&out);
    }
}

static void quotations_keep_their_lines(void **state)
{
    struct buffer out;
    (void)state;
    buffer_init(&out, 4096);
    markdown_quote(&out, SLICE("\n one\r\n\n> two\n"));
    assert_string_equal(out.data, "> one  \n>   \n> &gt; two\n");
    buffer_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_report_as_a_whole),
        cmocka_unit_test(while_it_lasts),
        cmocka_unit_test(what_is_not_known),
        cmocka_unit_test(one_tenant_sees_no_figures),
        cmocka_unit_test(a_clock_that_was_put_back),
        cmocka_unit_test(numbers_agree_with_their_nouns),
        cmocka_unit_test(text_from_elsewhere_is_only_text),
        cmocka_unit_test(quotations_keep_their_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
