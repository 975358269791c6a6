/*
 * Histograms, and metrics as text; also that the tests' own reader of that text refuses what is wrong.
 */
#include "base/exposition.h"
#include "support/check.h"
#include "support/prometheus.h"

#include <math.h>

static const struct histogram_bounds bounds = { 3, { 10, 100, 1000 } };

static void values_go_to_their_bucket(void **state)
{
    static const struct { int64_t value; size_t bucket; } cases[] = {
        { 0, 0 }, { 10, 0 }, { 11, 1 }, { 100, 1 }, { 101, 2 }, { 1000, 2 }, { 1001, 3 }, { INT32_MAX, 3 }, { -1, 0 },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct histogram histogram = { 0 };
        histogram_note(&histogram, &bounds, cases[i].value);
        for (size_t k = 0; k <= bounds.count; k++)
            check(histogram.counts[k] == (k == cases[i].bucket), "%lld in bucket %zu", (long long)cases[i].value, k);
        assert_int_equal(histogram.sum, cases[i].value);
        assert_int_equal(histogram_total(&histogram), 1);
    }
}

static void quantiles_are_between_the_bounds(void **state)
{
    static const struct { double share, expected; } cases[] = {
        { 0, 0 }, { 0.25, 5 }, { 0.5, 10 }, { 0.75, 55 }, { 0.95, 91 }, { 1, 100 },
    };
    struct histogram histogram = { 0 };
    (void)state;
    assert_true(histogram_quantile(&histogram, &bounds, 0.95) == 0 && histogram_mean(&histogram) == 0);
    for (int i = 0; i < 50; i++) {
        histogram_note(&histogram, &bounds, 10);
        histogram_note(&histogram, &bounds, 50);
    }
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        check(fabs(histogram_quantile(&histogram, &bounds, cases[i].share) - cases[i].expected) < 0.001, "%g: %g",
              cases[i].share, histogram_quantile(&histogram, &bounds, cases[i].share));
    assert_true(histogram_mean(&histogram) == 30);
    for (int i = 0; i < 1000; i++)
        histogram_note(&histogram, &bounds, 5000);
    assert_true(histogram_quantile(&histogram, &bounds, 0.95) == 1000); /* more is not known */
}

static void samples_are_escaped(void **state)
{
    static const struct { const char *value; double number; const char *expected; } cases[] = {
        { "plain", 1, "a_total{l=\"plain\"} 1\n" },
        { "", 0, "a_total{l=\"\"} 0\n" },
        { "a\"b\\c\nd", 2, "a_total{l=\"a\\\"b\\\\c\\nd\"} 2\n" },
        { "caf\xc3\xa9", 3, "a_total{l=\"caf\xc3\xa9\"} 3\n" },
        { "\xff-\xc3", 4, "a_total{l=\"\xef\xbf\xbd-\xef\xbf\xbd\"} 4\n" },
        { "}, x=\"", 5, "a_total{l=\"}, x=\\\"\"} 5\n" },
        { "x", 0.5, "a_total{l=\"x\"} 0.5\n" },
        { "x", 9007199254740991.0, "a_total{l=\"x\"} 9.00719925474099e+15\n" },
        { "x", 123456789012.0, "a_total{l=\"x\"} 123456789012\n" },
        { "x", INFINITY, "a_total{l=\"x\"} +Inf\n" },
        { "x", NAN, "" },
    };
    static const struct metric_family family = { "a_total", METRIC_COUNTER, "back\\slash and\nline" };
    static const char head[] = "# HELP a_total back\\\\slash and\\nline\n# TYPE a_total counter\n";
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct buffer out;
        struct exposition exposition;
        buffer_init(&out, 1 << 20);
        exposition_begin(&exposition, &out, &family);
        exposition_sample(&exposition, &(struct metric_label){ "l", slice_from(cases[i].value) }, 1, cases[i].number);
        assert_memory_equal(out.data, head, strlen(head));
        assert_string_equal(out.data + strlen(head), cases[i].expected);
        check(!prometheus_problem(out.data), "%s: %s", out.data, prometheus_problem(out.data));
        buffer_release(&out);
    }
}

static void a_histogram_is_cumulative(void **state)
{
    static const struct metric_family family = { "t_seconds", METRIC_HISTOGRAM, "Times." };
    static const struct exposition_scale whole = { &bounds, 1000, 0 }, from_100 = { &bounds, 1000, 100 };
    struct histogram histogram = { .counts = { 2, 3, 0, 1 }, .sum = 5250 };
    struct exposition exposition;
    struct buffer out;
    (void)state;
    buffer_init(&out, 1 << 20);
    exposition_begin(&exposition, &out, &family);
    exposition_histogram(&exposition, NULL, 0, &histogram, &whole);
    exposition_histogram(&exposition, &(struct metric_label){ "d", SLICE("x") }, 1, &histogram, &from_100);
    assert_string_equal(out.data, "# HELP t_seconds Times.\n"
                                  "# TYPE t_seconds histogram\n"
                                  "t_seconds_bucket{le=\"0.01\"} 2\n"
                                  "t_seconds_bucket{le=\"0.1\"} 5\n"
                                  "t_seconds_bucket{le=\"1\"} 5\n"
                                  "t_seconds_bucket{le=\"+Inf\"} 6\n"
                                  "t_seconds_sum 5.25\n"
                                  "t_seconds_count 6\n"
                                  "t_seconds_bucket{d=\"x\",le=\"0.1\"} 5\n"
                                  "t_seconds_bucket{d=\"x\",le=\"1\"} 5\n"
                                  "t_seconds_bucket{d=\"x\",le=\"+Inf\"} 6\n"
                                  "t_seconds_sum{d=\"x\"} 5.25\n"
                                  "t_seconds_count{d=\"x\"} 6\n");
    check(!prometheus_problem(out.data), "%s", prometheus_problem(out.data));
    buffer_release(&out);
}

#define HEAD(type) "# HELP m Text.\n# TYPE m " type "\n"

/* The reader that the other tests rely on says what is wrong. */
static void what_is_wrong_is_found(void **state)
{
    static const struct { const char *text, *problem; } cases[] = {
        { HEAD("gauge") "m 1\n", NULL },
        { HEAD("gauge") "m{a=\"x\",b=\"y\\n\"} -1.5e3\n", NULL },
        { HEAD("gauge"), NULL },
        { "", "line's end" },
        { HEAD("gauge") "m 1", "line's end" },
        { HEAD("gauge") "m 1\nm 2\n", "twice" },
        { HEAD("gauge") "m{a=\"1\"} 1\nm{a=\"1\"} 2\n", "twice" },
        { HEAD("gauge") "n 1\n", "another family" },
        { HEAD("gauge") "m_sum 1\n", "another family" },
        { HEAD("gauge") "m{a=1} 1\n", "name=\"value\"" },
        { HEAD("gauge") "m{1a=\"\"} 1\n", "name=\"value\"" },
        { HEAD("gauge") "m{a=\"\\x\"} 1\n", "unknown escape" },
        { HEAD("gauge") "m{a=\"x} 1\n", "does not end" },
        { HEAD("gauge") "m{a=\"x\" 1\n", "do not end" },
        { HEAD("gauge") "m{a=\"\xff\"} 1\n", "UTF-8" },
        { HEAD("gauge") "m\n", "no value" },
        { HEAD("gauge") "m x\n", "no value" },
        { HEAD("gauge") HEAD("gauge"), "family already" },
        { HEAD("gauge") "# TYPE m gauge\n", "second TYPE" },
        { HEAD("gauge") "# HELP n x\n# TYPE n gauge\nm 1\n", "another family" },
        { "# HELP m x\nm 1\n", "before its TYPE" },
        { "# HELP m x\n# TYPE n gauge\n", "another family than HELP" },
        { "# HELP m\n", "needs a name and a text" },
        { HEAD("meter"), "unknown type" },
        { HEAD("counter") "m -1\n", "below zero" },
        { "# hello\n", "comment" },
        { HEAD("histogram") "m_bucket{le=\"1\"} 1\nm_bucket{le=\"+Inf\"} 2\nm_sum 3\nm_count 2\n", NULL },
        { HEAD("histogram") "m_bucket{le=\"1\"} 3\nm_bucket{le=\"+Inf\"} 2\nm_sum 3\nm_count 2\n", "do not grow" },
        { HEAD("histogram") "m_bucket{le=\"2\"} 1\nm_bucket{le=\"1\"} 2\n", "do not grow" },
        { HEAD("histogram") "m_bucket{le=\"1\"} 1\nm_sum 3\nm_count 1\n", "no bucket +Inf" },
        { HEAD("histogram") "m_bucket{le=\"+Inf\"} 2\nm_sum 3\nm_count 3\n", "+Inf is 2, the count 3" },
        { HEAD("histogram") "m_bucket{le=\"+Inf\"} 2\nm_count 2\n", "no sum" },
        { HEAD("histogram") "m_bucket{le=\"+Inf\"} 2\nm_sum 2\n", "has no count" },
        { HEAD("histogram") "m_bucket{le=\"+Inf\"} 2\nm_bucket{a=\"b\",le=\"+Inf\"} 2\n", "has no count" },
        { HEAD("histogram") "m_bucket 2\n", "without le" },
        { HEAD("histogram") "m_count 2\n", "without buckets" },
        { HEAD("histogram") "m_bucket{le=\"+Inf\"} 2\nm_x 2\n", "has no _x" },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *found = prometheus_problem(cases[i].text);
        if (!cases[i].problem)
            check(!found, "%s: %s", cases[i].text, found);
        else
            check(found && strstr(found, cases[i].problem), "%s: %s", cases[i].text, found ? found : "nothing");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_go_to_their_bucket), cmocka_unit_test(quantiles_are_between_the_bounds),
        cmocka_unit_test(samples_are_escaped),       cmocka_unit_test(a_histogram_is_cumulative),
        cmocka_unit_test(what_is_wrong_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
