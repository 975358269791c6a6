/*
 * A page that needs nothing else: no script, no font, no picture from anywhere.
 */
#include "engine/reports/period.h"

#include <assert.h>
#include <inttypes.h>

enum { BAR_WIDTH = 420, BAR_HEIGHT = 18, BARS_MAX = 40 };

static void append_head(const struct period *period, struct buffer *out)
{
    char title[PERIOD_TITLE_BYTES];
    period_title(period, title);
    buffer_append_text(out, "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
                            "<meta name=\"viewport\" content=\"width=device-width\">\n<title>");
    buffer_append_html(out, slice_from(title));
    buffer_append_text(out,
                       "</title>\n<style>body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;"
                       "color:#1a1a1a;background:#fff}table{border-collapse:collapse;width:100%;margin:1rem 0}th,td{text-align:left;"
                       "padding:.3rem .6rem;border-bottom:1px solid #ddd;vertical-align:top}td.n{text-align:right;"
                       "font-variant-numeric:tabular-nums}td.n,td:first-child{white-space:nowrap}"
                       ".met{color:#116329}.missed{color:#b42318;font-weight:600}.soft{color:#555}"
                       "text{font:12px system-ui,sans-serif}</style>\n<h1>");
    buffer_append_html(out, slice_from(title));
    buffer_printf(out, "</h1>\n%s", period->unfinished ? "<p class=\"soft\">It is not over yet.</p>\n" : "");
}

static void append_kpis(const struct daybook *book, struct buffer *out)
{
    buffer_append_text(out, "<table>\n<tr><th>Rule<th>KPI<th>Value<th>Target<th>\n");
    for (const struct kpi *kpi = kpis; kpi < kpis + KPI_COUNT; kpi++) {
        double value = kpi->value(book);
        buffer_printf(out, "<tr><td>%s<td>%s<br><span class=\"soft\">%s</span><td class=\"n\">", kpi->rule, kpi->name,
                      kpi->means);
        if (value < 0)
            buffer_append_text(out, "–");
        else
            buffer_printf(out, "%.2f %s", value, kpi->unit);
        buffer_append_text(out, "<td class=\"n\">");
        buffer_append_html(out, slice_from(kpi_sign(kpi)));
        buffer_printf(out, " %g %s<td class=\"%s\">%s\n", kpi->target, kpi->unit,
                      value < 0 ? "soft" : kpi_met(kpi, value) ? "met" : "missed",
                      value < 0 ? "nothing to judge" : kpi_met(kpi, value) ? "met" : "not met");
    }
    buffer_append_text(out, "</table>\n");
}

/* ---- charts ---- */

struct bar {
    struct slice name;
    const struct daybook *book;
};

static void append_bar(const struct bar *bar, size_t i, int64_t largest, struct buffer *out)
{
    assert(largest > 0 && i < BARS_MAX);
    static const char *const colours[DAYBOOK_ENDS] = { "#3b82c4", "#b42318", "#d97706", "#777" };
    int64_t before = 0, y = (int64_t)i * BAR_HEIGHT;
    buffer_printf(out, "<text x=\"0\" y=\"%" PRId64 "\">", y + 13);
    buffer_append_html(out, utf8_cut(bar->name, 28));
    buffer_append_text(out, "</text>");
    for (int end = 0; end < DAYBOOK_ENDS; end++) {
        int64_t width = bar->book->ends[end] * BAR_WIDTH / largest;
        if (bar->book->ends[end] == 0)
            continue;
        width = width > 0 ? width : 1;
        buffer_printf(out, "<rect x=\"%" PRId64 "\" y=\"%" PRId64 "\" width=\"%" PRId64 "\" height=\"%d\" fill=\"%s\"/>",
                      200 + before, y + 2, width, BAR_HEIGHT - 4, colours[end]);
        before += width;
    }
    buffer_printf(out, "<text x=\"%" PRId64 "\" y=\"%" PRId64 "\">%" PRId64 "</text>\n", 206 + before, y + 13,
                  daybook_ended(bar->book));
}

static void append_bars(const char *heading, const struct bar *bars, size_t count, struct buffer *out)
{
    assert(count > 0 && count <= BARS_MAX);
    int64_t largest = 1;
    for (size_t i = 0; i < count; i++)
        largest = daybook_ended(bars[i].book) > largest ? daybook_ended(bars[i].book) : largest;
    buffer_printf(out, "<h2>%s</h2>\n<p class=\"soft\">Blue: delivered, red: permanent errors, orange: retries used up, "
                       "grey: dead otherwise.</p>\n<svg width=\"720\" height=\"%d\" role=\"img\" aria-label=\"%s\">\n",
                  heading, (int)count * BAR_HEIGHT + 4, heading);
    for (size_t i = 0; i < count; i++)
        append_bar(&bars[i], i, largest, out);
    buffer_append_text(out, "</svg>\n");
}

static void append_charts(const struct period *period, struct buffer *out)
{
    struct bar bars[BARS_MAX];
    size_t count = 0;
    for (; period->weekly && count < period->date_count; count++)
        bars[count] = (struct bar){ slice_from(period->dates[count]), &period->days[count] };
    if (count > 0)
        append_bars("Jobs that ended, by day", bars, count, out);
    for (count = 0; count < period->destination_count && count < BARS_MAX; count++)
        bars[count] = (struct bar){ period->destinations[count].name, &period->destinations[count].book };
    if (count > 0)
        append_bars("Jobs that ended, by destination", bars, count, out);
}

/* ---- lists ---- */

static void append_list(const char *heading, const struct period_list *list, struct buffer *out)
{
    assert(list->count <= PERIOD_LETTERS_MAX);
    buffer_printf(out, "<h2>%s</h2>\n", heading);
    if (list->count == 0) {
        buffer_append_text(out, "<p>None.</p>\n");
        return;
    }
    buffer_append_text(out, "<table>\n<tr><th>Died<th>Destination<th>Job<th>Attempts<th>Code<th>Error\n");
    for (size_t i = 0; i < list->count; i++) {
        const struct period_letter *letter = &list->items[i];
        char at[INSTANT_TEXT_BYTES];
        const struct slice cells[] = { letter->code, letter->error };
        instant_format(letter->dead_at, at);
        buffer_printf(out, "<tr><td>%s<td>", at);
        buffer_append_html(out, letter->destination);
        buffer_append_text(out, "<td>");
        buffer_append_html(out, letter->tenant);
        buffer_append_text(out, letter->tenant.len > 0 ? "/" : "");
        buffer_append_html(out, letter->id);
        buffer_printf(out, "<td class=\"n\">%" PRId64, letter->attempts);
        for (size_t cell = 0; cell < sizeof cells / sizeof *cells; cell++) {
            buffer_append_text(out, "<td>");
            buffer_append_html(out, cells[cell]);
        }
        buffer_append_byte(out, '\n');
    }
    buffer_printf(out, "</table>\n");
    if (list->more > 0)
        buffer_printf(out, "<p>And %" PRId64 " more.</p>\n", list->more);
}

static void append_tries(const struct daybook *book, struct buffer *out)
{
    buffer_append_text(out, "<h2>Attempts by their number (S1-064)</h2>\n<table>\n<tr><th>Attempt<th>Sent<th>Delivered\n");
    for (int i = 0; i <= DAYBOOK_TRIES; i++)
        if (book->sent[i] > 0)
            buffer_printf(out, "<tr><td>%d%s<td class=\"n\">%" PRId64 "<td class=\"n\">%" PRId64 "\n", i + 1,
                          i == DAYBOOK_TRIES ? " and later" : "", book->sent[i], book->taken[i]);
    buffer_append_text(out, "</table>\n");
}

void period_html(const struct period *period, struct buffer *out)
{
    append_head(period, out);
    append_kpis(&period->total, out);
    append_charts(period, out);
    append_tries(&period->total, out);
    append_list("Permanent errors (S0-096, S1-062)", &period->permanent, out);
    append_list("Retries used up (S0-097, S1-063)", &period->exhausted, out);
    for (size_t i = 0; i < period->destination_count && i < BARS_MAX; i++) {
        buffer_append_text(out, "<h2>");
        buffer_append_html(out, period->destinations[i].name);
        buffer_append_text(out, "</h2>\n");
        append_kpis(&period->destinations[i].book, out);
    }
    buffer_append_text(out, "</html>\n");
}
