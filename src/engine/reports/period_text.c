#include "engine/reports/period.h"

#include <assert.h>
#include <inttypes.h>

enum { NAME_COLUMNS = 34 };

/* A text in so many columns; letters beyond ASCII are several bytes. */
static void padded(struct buffer *out, const char *text, int columns)
{
    assert(columns > 0);
    int width = 0;
    for (const char *c = text; *c; c++)
        width += (*c & 0xC0) != 0x80;
    buffer_append_text(out, text);
    for (; width < columns; width++)
        buffer_append_byte(out, ' ');
}

static void append_kpis(const struct daybook *book, const char *indent, struct buffer *out)
{
    for (const struct kpi *kpi = kpis; kpi < kpis + KPI_COUNT; kpi++) {
        double value = kpi->value(book);
        buffer_printf(out, "%s%s  ", indent, kpi->rule);
        padded(out, kpi->name, NAME_COLUMNS);
        if (value < 0)
            buffer_append_text(out, "       -");
        else
            buffer_printf(out, "%8.2f", value);
        buffer_printf(out, " %-3s  %s %g %s  %s\n", kpi->unit, kpi_sign(kpi), kpi->target, kpi->unit,
                      value < 0 ? "nothing to judge" : kpi_met(kpi, value) ? "met" : "NOT MET");
    }
}

static void append_counts(const struct daybook *book, struct buffer *out)
{
    buffer_printf(out,
                  "%" PRId64 " jobs ended: %" PRId64 " delivered, %" PRId64 " with a permanent error, %" PRId64
                  " with all retries used, %" PRId64 " dead otherwise; %" PRId64 " had been retried\n",
                  daybook_ended(book), book->ends[DAYBOOK_DELIVERED], book->ends[DAYBOOK_PERMANENT],
                  book->ends[DAYBOOK_EXHAUSTED], book->ends[DAYBOOK_OTHER_DEAD], daybook_retried(book));
}

/* A line end in an answer is not to look like a line of the report. */
static void one_line(struct buffer *out, struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        buffer_append_byte(out, (unsigned char)text.data[i] < ' ' ? ' ' : text.data[i]);
}

static void append_list(const char *heading, const struct period_list *list, struct buffer *out)
{
    assert(list->count <= PERIOD_LETTERS_MAX);
    buffer_printf(out, "\n%s\n", heading);
    if (list->count == 0)
        buffer_append_text(out, "  none\n");
    for (size_t i = 0; i < list->count; i++) {
        const struct period_letter *letter = &list->items[i];
        char at[INSTANT_TEXT_BYTES];
        instant_format(letter->dead_at, at);
        buffer_printf(out, "  %s  ", at);
        one_line(out, letter->destination);
        buffer_append_text(out, "  ");
        if (letter->tenant.len > 0) {
            one_line(out, letter->tenant);
            buffer_append_byte(out, '/');
        }
        one_line(out, letter->id);
        buffer_printf(out, "  after %" PRId64 " attempts  ", letter->attempts);
        one_line(out, letter->code);
        buffer_append_text(out, "  ");
        one_line(out, letter->error);
        buffer_append_byte(out, '\n');
    }
    if (list->more > 0)
        buffer_printf(out, "  and %" PRId64 " more\n", list->more);
}

static void append_tries(const struct daybook *book, struct buffer *out)
{
    buffer_append_text(out, "\nAttempts by their number (S1-064)\n");
    for (int i = 0; i <= DAYBOOK_TRIES; i++)
        if (book->sent[i] > 0)
            buffer_printf(out, "  %s%d: %" PRId64 " sent, %" PRId64 " delivered (%.1f %%)\n",
                          i == DAYBOOK_TRIES ? "from " : "", i + 1, book->sent[i], book->taken[i],
                          100.0 * (double)book->taken[i] / (double)book->sent[i]);
}

static void append_codes(const struct daybook *book, struct buffer *out)
{
    buffer_append_text(out, "\nDead letters by code (S0-097)\n");
    for (size_t i = 0; i < book->code_count; i++)
        buffer_printf(out, "  %s: %" PRId64 " permanent, %" PRId64 " retries used, %" PRId64 " otherwise\n",
                      book->codes[i].code, book->codes[i].ends[DAYBOOK_PERMANENT], book->codes[i].ends[DAYBOOK_EXHAUSTED],
                      book->codes[i].ends[DAYBOOK_OTHER_DEAD]);
    if (book->code_count == 0)
        buffer_append_text(out, "  none\n");
}

void period_text(const struct period *period, struct buffer *out)
{
    assert(period->date_count > 0);
    char title[PERIOD_TITLE_BYTES];
    period_title(period, title);
    buffer_printf(out, "%s%s\n\n", title, period->unfinished ? " (not over yet)" : "");
    append_counts(&period->total, out);
    buffer_append_byte(out, '\n');
    append_kpis(&period->total, "", out);
    append_tries(&period->total, out);
    append_codes(&period->total, out);
    append_list("Permanent errors (S0-096, S1-062)", &period->permanent, out);
    append_list("Retries used up (S0-097, S1-063)", &period->exhausted, out);
    if (period->letters_cut)
        buffer_printf(out, "  the lists are of the newest %d dead letters\n", PERIOD_LOOKED_AT_MAX);
    for (size_t i = 0; i < period->destination_count; i++) {
        buffer_append_byte(out, '\n');
        one_line(out, period->destinations[i].name);
        buffer_append_text(out, ": ");
        append_counts(&period->destinations[i].book, out);
        append_kpis(&period->destinations[i].book, "  ", out);
    }
}
