#include "engine/reports/period.h"

#include "base/array.h"
#include "core/errors/redact.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { ROWS_AT_ONCE = 200, LETTERS_AT_ONCE = 500, DESTINATIONS_MAX = 10000, LETTER_ERROR_BYTES = 200 };

/* ---- which days ---- */

/* 1970-01-01 was a Thursday. */
static instant monday_of(instant day)
{
    assert(day % DAY_MS == 0);
    return day - (day / DAY_MS + 3) % 7 * DAY_MS;
}

void period_begin(struct period *period, const struct config *config, bool weekly, instant at, instant now)
{
    instant day = at - at % DAY_MS;
    *period = (struct period){ .weekly = weekly, .from = weekly ? monday_of(day) : day };
    period->date_count = weekly ? PERIOD_DAYS_MAX : 1;
    period->to = period->from + (int64_t)period->date_count * DAY_MS;
    period->unfinished = period->to > now;
    for (size_t i = 0; i < period->date_count; i++)
        day_of(config, period->from + (int64_t)i * DAY_MS, period->dates[i]);
    assert(period->date_count > 0 && period->date_count <= PERIOD_DAYS_MAX);
}

void period_title(const struct period *period, char ret_title[PERIOD_TITLE_BYTES])
{
    assert(period->from < period->to);
    struct civil from = instant_civil(period->from), to = instant_civil(period->to - 1);
    if (period->weekly)
        snprintf(ret_title, PERIOD_TITLE_BYTES, "Weekly report, %04d-%02d-%02d to %04d-%02d-%02d", from.year % 10000,
                 from.month, from.day, to.year % 10000, to.month, to.day);
    else
        snprintf(ret_title, PERIOD_TITLE_BYTES, "Daily report, %04d-%02d-%02d", from.year % 10000, from.month, from.day);
}

/* ---- the days ---- */

static enum status no_memory(struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "no memory for the report");
}

/* The place of a name among those that are there. */
static size_t place_of(const struct period *period, struct slice name)
{
    size_t low = 0, high = period->destination_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (slice_compare(period->destinations[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* NULL: no memory, or too many. */
static struct period_destination *destination_of(struct period *period, struct slice name, struct arena *memory)
{
    assert(period->destination_count <= period->destination_capacity);
    size_t i = place_of(period, name);
    if (i < period->destination_count && slice_equal(period->destinations[i].name, name))
        return &period->destinations[i];
    if (period->destination_count == DESTINATIONS_MAX)
        return NULL;
    struct period_destination *larger = array_grow_in(memory, period->destinations, period->destination_count,
                                                      &period->destination_capacity, sizeof *larger);
    if (!larger)
        return NULL;
    period->destinations = larger;
    struct slice copy = arena_copy(memory, name);
    if (!copy.data)
        return NULL;
    memmove(period->destinations + i + 1, period->destinations + i,
            (period->destination_count++ - i) * sizeof *period->destinations);
    period->destinations[i] = (struct period_destination){ .name = copy };
    return &period->destinations[i];
}

/* A day that is over is there twice until the next one begins: by its date, and as the last that was counted. */
static enum status add_day(struct period *period, struct slice name, struct slice value, struct arena *memory,
                           struct error *err)
{
    struct daybook book;
    char date[DAYBOOK_DATE_BYTES + 1];
    size_t day = 0;
    daybook_read(value, &book, date);
    while (day < period->date_count && strcmp(period->dates[day], date) != 0)
        day++;
    if (day == period->date_count)
        return STATUS_OK;
    assert(day < PERIOD_DAYS_MAX);
    struct period_destination *destination = destination_of(period, name, memory);
    if (!destination)
        return no_memory(err);
    if ((destination->days >> day & 1) != 0)
        return STATUS_OK;
    destination->days |= 1U << day;
    daybook_add(&destination->book, &book);
    daybook_add(&period->days[day], &book);
    daybook_add(&period->total, &book);
    return STATUS_OK;
}

/* From the last of the dates backwards. */
static enum status read_days(struct period *period, struct store_reader *reader, struct arena *memory, bool *ret_more,
                             struct error *err)
{
    assert(period->date_count > 0 && period->date_count <= PERIOD_DAYS_MAX);
    char end[DAYBOOK_DATE_BYTES + 2];
    struct saved *rows;
    size_t count = 0;
    snprintf(end, sizeof end, "%s0", period->dates[period->date_count - 1]); /* after all that begin with the date and / */
    if (period->before.len == 0)
        period->before = arena_copy(memory, slice_from(end));
    if (!period->before.data)
        return no_memory(err);
    enum status status =
        reader->ops->reader_saved_list(reader, SPACE_DAY, period->before, ROWS_AT_ONCE, memory, &rows, &count, err);
    *ret_more = status == STATUS_OK && count == ROWS_AT_ONCE;
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        struct slice name = rows[i].name;
        if (name.len <= DAYBOOK_DATE_BYTES + 1 || memcmp(name.data, period->dates[0], DAYBOOK_DATE_BYTES) < 0) {
            *ret_more = false;
            break;
        }
        period->before = name;
        status = add_day(period, slice_from_offset(name, DAYBOOK_DATE_BYTES + 1), rows[i].value, memory, err);
    }
    return status;
}

static enum status read_now(struct period *period, struct store_reader *reader, struct arena *memory, bool *ret_more,
                            struct error *err)
{
    struct saved *rows;
    size_t count = 0;
    enum status status =
        reader->ops->reader_saved_list(reader, SPACE_DAY_NOW, period->before, ROWS_AT_ONCE, memory, &rows, &count, err);
    *ret_more = status == STATUS_OK && count == ROWS_AT_ONCE;
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        period->before = rows[i].name;
        status = add_day(period, rows[i].name, rows[i].value, memory, err);
    }
    return status;
}

/* ---- dead letters ---- */

static enum status add_letter(struct period_list *list, const struct job *job, struct arena *memory, struct error *err)
{
    assert(list->count <= PERIOD_LETTERS_MAX);
    if (list->count == PERIOD_LETTERS_MAX) {
        list->more++;
        return STATUS_OK;
    }
    struct buffer masked = buffer_up_to(4 * LETTER_ERROR_BYTES);
    redact(&masked, job->last_error, LETTER_ERROR_BYTES); /* a report leaves the house */
    struct period_letter letter = {
        .destination = arena_copy(memory, job->destination), .tenant = arena_copy(memory, job->tenant),
        .id = arena_copy(memory, job->id), .code = arena_copy(memory, job->last_code),
        .error = arena_copy(memory, buffer_slice(&masked)), .dead_at = job->dead_at, .attempts = job->attempts,
    };
    buffer_release(&masked);
    if (!letter.destination.data || !letter.tenant.data || !letter.id.data || !letter.code.data || !letter.error.data)
        return no_memory(err);
    list->items[list->count++] = letter;
    return STATUS_OK;
}

static enum status read_letters(struct period *period, struct store_reader *reader, struct arena *memory, bool *ret_more,
                                struct error *err)
{
    assert(period->looked_at < PERIOD_LOOKED_AT_MAX);
    const struct job_filter filter = { .state = STATE_DEAD, .before_seq = period->before_seq };
    struct arena page = { 0 };
    struct job *jobs;
    size_t count = 0;
    enum status status = reader->ops->reader_jobs(reader, &filter, LETTERS_AT_ONCE, false, &page, &jobs, &count,
                                                  &period->before_seq, err);
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        period->looked_at++;
        if (jobs[i].dead_at < period->from || jobs[i].dead_at >= period->to)
            continue;
        if (slice_equal(jobs[i].dead_code, SLICE("PERMANENT_ERROR")))
            status = add_letter(&period->permanent, &jobs[i], memory, err);
        else if (slice_equal(jobs[i].dead_code, SLICE("MAX_RETRIES_EXCEEDED")))
            status = add_letter(&period->exhausted, &jobs[i], memory, err);
    }
    arena_release(&page);
    period->letters_cut = status == STATUS_OK && period->before_seq != 0 && period->looked_at >= PERIOD_LOOKED_AT_MAX;
    *ret_more = status == STATUS_OK && period->before_seq != 0 && !period->letters_cut;
    return status;
}

enum status period_read(struct period *period, struct store_reader *reader, struct arena *memory, bool *ret_more,
                        struct error *err)
{
    static enum status (*const phases[])(struct period *, struct store_reader *, struct arena *, bool *, struct error *) = {
        read_days, read_now, read_letters,
    };
    enum { PHASES = sizeof phases / sizeof *phases };
    bool more = false;
    assert(period->phase < PHASES && period->date_count > 0);
    enum status status = phases[period->phase](period, reader, memory, &more, err);
    if (status == STATUS_OK && !more) {
        period->phase++;
        period->before = SLICE("");
    }
    *ret_more = status == STATUS_OK && period->phase < PHASES;
    return status;
}
