#include "engine/reports/period.h"

#include <assert.h>
#include <math.h>

static const char *const end_names[DAYBOOK_ENDS] = {
    [DAYBOOK_DELIVERED] = "delivered", [DAYBOOK_PERMANENT] = "permanent_error",
    [DAYBOOK_EXHAUSTED] = "max_retries_exceeded", [DAYBOOK_OTHER_DEAD] = "other_dead",
};

static void write_kpis(struct json_writer *json, const struct daybook *book)
{
    json_member_array(json, "kpis");
    for (const struct kpi *kpi = kpis; kpi < kpis + KPI_COUNT; kpi++) {
        double value = kpi->value(book);
        json_object_begin(json);
        json_member_text(json, "rule", kpi->rule);
        json_member_text(json, "name", kpi->name);
        json_member_text(json, "means", kpi->means);
        json_member_text(json, "every", kpi->weekly ? "week" : "day");
        json_member_text(json, "unit", kpi->unit);
        json_member_text(json, "bound", kpi_sign(kpi));
        json_member_real(json, "target", kpi->target);
        if (value < 0) {
            json_member_raw(json, "value", SLICE("null"));
            json_member_raw(json, "met", SLICE("null"));
        } else {
            json_member_real(json, "value", round(value * 10000) / 10000);
            json_member_bool(json, "met", kpi_met(kpi, value));
        }
        json_object_end(json);
    }
    json_array_end(json);
}

static void write_counts(struct json_writer *json, const struct daybook *book)
{
    json_member_int(json, "ended", daybook_ended(book));
    for (int i = 0; i < DAYBOOK_ENDS; i++)
        json_member_int(json, end_names[i], book->ends[i]);
    json_member_int(json, "retried", daybook_retried(book));
    json_member_int(json, "attempts", book->tries);
}

static void write_code(struct json_writer *json, const char *code, const int64_t ends[DAYBOOK_ENDS])
{
    json_object_begin(json);
    json_member_text(json, "code", code);
    for (int i = DAYBOOK_PERMANENT; i < DAYBOOK_ENDS; i++)
        json_member_int(json, end_names[i], ends[i]);
    json_object_end(json);
}

static void write_codes(struct json_writer *json, const struct daybook *book)
{
    int64_t others = 0;
    json_member_array(json, "codes");
    for (size_t i = 0; i < book->code_count; i++)
        write_code(json, book->codes[i].code, book->codes[i].ends);
    for (int i = 0; i < DAYBOOK_ENDS; i++)
        others += book->other_codes[i];
    if (others > 0)
        write_code(json, "other", book->other_codes);
    json_array_end(json);
}

/* S1-064: what retries are good for, by the number of the attempt. */
static void write_tries(struct json_writer *json, const struct daybook *book)
{
    json_member_array(json, "attempts_by_number");
    for (int i = 0; i <= DAYBOOK_TRIES; i++) {
        if (book->sent[i] == 0)
            continue;
        json_object_begin(json);
        json_member_int(json, "attempt", i + 1);
        json_member_int(json, "sent", book->sent[i]);
        json_member_int(json, "delivered", book->taken[i]);
        json_object_end(json);
    }
    json_array_end(json);
}

static void write_list(struct json_writer *json, const char *name, const char *rules, const struct period_list *list)
{
    assert(list->count <= PERIOD_LETTERS_MAX);
    json_member_object(json, name);
    json_member_text(json, "rules", rules);
    json_member_int(json, "more", list->more);
    json_member_array(json, "jobs");
    for (size_t i = 0; i < list->count; i++) {
        const struct period_letter *letter = &list->items[i];
        json_object_begin(json);
        json_member_string(json, "destination", letter->destination);
        json_member_string(json, "tenant", letter->tenant);
        json_member_string(json, "id", letter->id);
        json_member_string(json, "code", letter->code);
        json_member_string(json, "error", letter->error);
        json_member_int(json, "attempts", letter->attempts);
        json_member_instant(json, "dead_at", letter->dead_at);
        json_object_end(json);
    }
    json_array_end(json);
    json_object_end(json);
}

static void write_days(struct json_writer *json, const struct period *period)
{
    assert(period->date_count <= PERIOD_DAYS_MAX);
    json_member_array(json, "days");
    for (size_t i = 0; i < period->date_count; i++) {
        json_object_begin(json);
        json_member_text(json, "date", period->dates[i]);
        write_counts(json, &period->days[i]);
        json_object_end(json);
    }
    json_array_end(json);
}

void period_json(const struct period *period, struct json_writer *json)
{
    char title[PERIOD_TITLE_BYTES];
    period_title(period, title);
    json_object_begin(json);
    json_member_text(json, "title", title);
    json_member_text(json, "every", period->weekly ? "week" : "day");
    json_member_instant(json, "from", period->from);
    json_member_instant(json, "to", period->to);
    json_member_bool(json, "unfinished", period->unfinished);
    write_counts(json, &period->total);
    write_kpis(json, &period->total);
    write_tries(json, &period->total);
    write_codes(json, &period->total);
    write_days(json, period);
    write_list(json, "permanent_errors", "S0-096 S1-062", &period->permanent);
    write_list(json, "exhausted_jobs", "S0-097 S1-063", &period->exhausted);
    json_member_bool(json, "lists_cut", period->letters_cut);
    json_member_array(json, "destinations");
    for (size_t i = 0; i < period->destination_count; i++) {
        json_object_begin(json);
        json_member_string(json, "destination", period->destinations[i].name);
        write_counts(json, &period->destinations[i].book);
        write_kpis(json, &period->destinations[i].book);
        write_codes(json, &period->destinations[i].book);
        json_object_end(json);
    }
    json_array_end(json);
    json_object_end(json);
}
