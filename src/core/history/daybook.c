#include "core/history/daybook.h"

#include <assert.h>
#include <jansson.h>
#include <string.h>

/* ---- counting ---- */

static int64_t *ends_of_code(struct daybook *daybook, struct slice code)
{
    if (code.len == 0 || code.len >= DAYBOOK_CODE_BYTES || !utf8_is_valid(code) || memchr(code.data, '\0', code.len))
        return daybook->other_codes;
    for (size_t i = 0; i < daybook->code_count; i++)
        if (slice_equal(slice_from(daybook->codes[i].code), code))
            return daybook->codes[i].ends;
    if (daybook->code_count == DAYBOOK_CODES)
        return daybook->other_codes;
    struct daybook_code *made = &daybook->codes[daybook->code_count++];
    *made = (struct daybook_code){ .ends = { 0 } };
    memcpy(made->code, code.data, code.len);
    return made->ends;
}

/* 0 to 3 ms each for itself, then four classes to each power of two. */
static size_t class_of(int64_t ms)
{
    int shift = 0;
    uint64_t left = ms > 0 ? (uint64_t)ms : 0;
    for (; left >= 8; shift++)
        left >>= 1;
    size_t class = left < 4 ? (size_t)left : 4 * (size_t)shift + (size_t)left;
    return class < DAYBOOK_TIMES ? class : DAYBOOK_TIMES - 1;
}

void daybook_job(struct daybook *daybook, enum daybook_end end, int64_t tries, int64_t took_ms, struct slice code)
{
    assert(end < DAYBOOK_ENDS);
    daybook->ends[end]++;
    daybook->tries += tries;
    if (tries > 1)
        daybook->retried[end]++;
    if (end != DAYBOOK_DELIVERED) {
        ends_of_code(daybook, code)[end]++;
    } else if (tries > 1) {
        size_t class = class_of(took_ms);
        daybook->times[class]++;
        daybook->time_sums[class] += took_ms > 0 ? took_ms : 0;
    }
}

static void add_all(int64_t *sum, const int64_t *more, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sum[i] += more[i];
}

void daybook_add(struct daybook *sum, const struct daybook *more)
{
    add_all(sum->ends, more->ends, DAYBOOK_ENDS);
    add_all(sum->retried, more->retried, DAYBOOK_ENDS);
    add_all(sum->sent, more->sent, DAYBOOK_TRIES + 1);
    add_all(sum->taken, more->taken, DAYBOOK_TRIES + 1);
    add_all(sum->times, more->times, DAYBOOK_TIMES);
    add_all(sum->time_sums, more->time_sums, DAYBOOK_TIMES);
    add_all(sum->other_codes, more->other_codes, DAYBOOK_ENDS);
    sum->tries += more->tries;
    for (size_t i = 0; i < more->code_count; i++)
        add_all(ends_of_code(sum, slice_from(more->codes[i].code)), more->codes[i].ends, DAYBOOK_ENDS);
}

/* ---- asking ---- */

static int64_t total(const int64_t *counts, size_t count)
{
    int64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += counts[i];
    return sum;
}

int64_t daybook_ended(const struct daybook *daybook)
{
    return total(daybook->ends, DAYBOOK_ENDS);
}

int64_t daybook_retried(const struct daybook *daybook)
{
    return total(daybook->retried, DAYBOOK_ENDS);
}

double daybook_time_mean(const struct daybook *daybook)
{
    int64_t count = total(daybook->times, DAYBOOK_TIMES);
    return count == 0 ? -1 : (double)total(daybook->time_sums, DAYBOOK_TIMES) / (double)count;
}

/* The one at that place, counted from 0, as the mean of its class. */
static double time_at(const struct daybook *daybook, int64_t place)
{
    size_t i = 0;
    for (int64_t below = daybook->times[0]; below <= place && i + 1 < DAYBOOK_TIMES; below += daybook->times[++i])
        ;
    return daybook->times[i] > 0 ? (double)daybook->time_sums[i] / (double)daybook->times[i] : -1;
}

/* Of an even number the mean of the two in the middle, as one does by hand. */
double daybook_time_median(const struct daybook *daybook)
{
    int64_t count = total(daybook->times, DAYBOOK_TIMES);
    return count == 0 ? -1 : (time_at(daybook, (count - 1) / 2) + time_at(daybook, count / 2)) / 2;
}

/* ---- as text ---- */

static void write_counts(struct json_writer *json, const char *name, const int64_t *counts, size_t count)
{
    while (count > 0 && counts[count - 1] == 0)
        count--;
    json_member_array(json, name);
    for (size_t i = 0; i < count; i++)
        json_put_int(json, counts[i]);
    json_array_end(json);
}

static void write_times(struct json_writer *json, const struct daybook *daybook)
{
    json_member_array(json, "times");
    for (int i = 0; i < DAYBOOK_TIMES; i++) {
        if (daybook->times[i] == 0)
            continue;
        json_array_begin(json);
        json_put_int(json, i);
        json_put_int(json, daybook->times[i]);
        json_put_int(json, daybook->time_sums[i]);
        json_array_end(json);
    }
    json_array_end(json);
}

static void write_codes(struct json_writer *json, const struct daybook *daybook)
{
    json_member_array(json, "codes");
    for (size_t i = 0; i < daybook->code_count; i++) {
        json_object_begin(json);
        json_member_text(json, "code", daybook->codes[i].code);
        write_counts(json, "ends", daybook->codes[i].ends, DAYBOOK_ENDS);
        json_object_end(json);
    }
    json_array_end(json);
}

void daybook_write(struct json_writer *json, const struct daybook *daybook, const char date[DAYBOOK_DATE_BYTES + 1])
{
    json_object_begin(json);
    json_member_text(json, "date", date);
    write_counts(json, "ends", daybook->ends, DAYBOOK_ENDS);
    write_counts(json, "retried", daybook->retried, DAYBOOK_ENDS);
    json_member_int(json, "tries", daybook->tries);
    write_counts(json, "sent", daybook->sent, DAYBOOK_TRIES + 1);
    write_counts(json, "taken", daybook->taken, DAYBOOK_TRIES + 1);
    write_times(json, daybook);
    write_codes(json, daybook);
    write_counts(json, "other_codes", daybook->other_codes, DAYBOOK_ENDS);
    json_object_end(json);
}

static int64_t count_of(const json_t *value)
{
    int64_t count = json_integer_value(value);
    return count > 0 ? count : 0;
}

static void read_counts(const json_t *array, int64_t *counts, size_t count)
{
    for (size_t i = 0; i < count && i < json_array_size(array); i++)
        counts[i] = count_of(json_array_get(array, i));
}

static void read_times(const json_t *array, struct daybook *daybook)
{
    for (size_t i = 0; i < json_array_size(array) && i < DAYBOOK_TIMES; i++) {
        const json_t *time = json_array_get(array, i);
        int64_t class = count_of(json_array_get(time, 0));
        if (class >= DAYBOOK_TIMES)
            continue;
        daybook->times[class] = count_of(json_array_get(time, 1));
        daybook->time_sums[class] = count_of(json_array_get(time, 2));
    }
}

static void read_codes(const json_t *array, struct daybook *daybook)
{
    for (size_t i = 0; i < json_array_size(array) && i < DAYBOOK_CODES; i++) {
        const json_t *code = json_array_get(array, i), *text = json_object_get(code, "code");
        struct slice name = { json_string_value(text), json_string_length(text) };
        read_counts(json_object_get(code, "ends"), ends_of_code(daybook, name), DAYBOOK_ENDS);
    }
}

void daybook_read(struct slice text, struct daybook *ret_daybook, char ret_date[DAYBOOK_DATE_BYTES + 1])
{
    json_t *root = json_loadb(text.data ? text.data : "", text.len, 0, NULL);
    const json_t *date = json_object_get(root, "date");
    *ret_daybook = (struct daybook){ 0 };
    memset(ret_date, 0, DAYBOOK_DATE_BYTES + 1);
    if (json_string_length(date) == DAYBOOK_DATE_BYTES)
        memcpy(ret_date, json_string_value(date), DAYBOOK_DATE_BYTES);
    read_counts(json_object_get(root, "other_codes"), ret_daybook->other_codes, DAYBOOK_ENDS);
    read_counts(json_object_get(root, "ends"), ret_daybook->ends, DAYBOOK_ENDS);
    read_counts(json_object_get(root, "retried"), ret_daybook->retried, DAYBOOK_ENDS);
    read_counts(json_object_get(root, "sent"), ret_daybook->sent, DAYBOOK_TRIES + 1);
    read_counts(json_object_get(root, "taken"), ret_daybook->taken, DAYBOOK_TRIES + 1);
    ret_daybook->tries = count_of(json_object_get(root, "tries"));
    read_times(json_object_get(root, "times"), ret_daybook);
    read_codes(json_object_get(root, "codes"), ret_daybook);
    json_decref(root);
}
