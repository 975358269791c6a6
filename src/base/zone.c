#include "base/zone.h"

enum {
    HEADER_BYTES = 44,
    TYPE_BYTES = 6,
    TYPES_MAX = 256,
    OFFSET_S_MAX = 26 * 3600, /* as RFC 9636 has it, rounded up */
    HOUR_S = 3600,
    DAY_S = 24 * HOUR_S,
    RULE_HOURS_MAX = 167,
};

static const int64_t CHANGE_AT_MAX = INT64_C(1) << 60; /* some files begin with the Big Bang */

bool zone_of_offset(struct slice text, struct zone *ret_zone)
{
    int64_t offset_ms;
    if (!instant_zone_parse(text, &offset_ms))
        return false;
    *ret_zone = (struct zone){ .offset = offset_ms / 1000, .standard = offset_ms / 1000, .summer = offset_ms / 1000 };
    return true;
}

bool zone_name_is_possible(struct slice name)
{
    bool possible = name.len > 0 && name.len <= ZONE_NAME_BYTES_MAX;
    for (size_t i = 0; i < name.len && possible; i++) {
        char c = name.data[i];
        bool letter = (ascii_lower(c) >= 'a' && ascii_lower(c) <= 'z') || ascii_is_digit(c);
        bool first = i == 0 || name.data[i - 1] == '/';
        possible = letter || (!first && (c == '_' || c == '-' || c == '+' || c == '/'));
    }
    return possible && name.data[name.len - 1] != '/';
}

/* ---- the rule at the file's end: "CET-1CEST,M3.5.0,M10.5.0/3" ---- */

static bool take(struct slice *text, char c)
{
    if (text->len == 0 || text->data[0] != c)
        return false;
    *text = slice_from_offset(*text, 1);
    return true;
}

static bool take_number(struct slice *text, int max, int *ret_number)
{
    int number = 0;
    size_t i = 0;
    for (; i < text->len && i < 4 && ascii_is_digit(text->data[i]); i++)
        number = 10 * number + (text->data[i] - '0');
    *text = slice_from_offset(*text, i);
    *ret_number = number;
    return i > 0 && number <= max;
}

static bool take_name(struct slice *text)
{
    size_t len = 0;
    if (take(text, '<')) {
        len = slice_find(*text, '>');
        if (len >= text->len)
            return false;
        *text = slice_from_offset(*text, len + 1);
        return len > 0;
    }
    while (len < text->len && ascii_lower(text->data[len]) >= 'a' && ascii_lower(text->data[len]) <= 'z')
        len++;
    *text = slice_from_offset(*text, len);
    return len >= 3;
}

/* [+-]h[:m[:s]], in seconds. */
static bool take_time(struct slice *text, int64_t *ret_seconds)
{
    bool back = take(text, '-');
    int hours, minutes = 0, seconds = 0;
    if (!back)
        (void)take(text, '+');
    if (!take_number(text, RULE_HOURS_MAX, &hours) || (take(text, ':') && !take_number(text, 59, &minutes)) ||
        (take(text, ':') && !take_number(text, 59, &seconds)))
        return false;
    *ret_seconds = (int64_t)hours * HOUR_S + minutes * 60 + seconds;
    if (back)
        *ret_seconds = -*ret_seconds;
    return true;
}

static bool take_day(struct slice *text, struct zone_day *day)
{
    bool good;
    *day = (struct zone_day){ .time = 2 * HOUR_S };
    if (!take(text, ','))
        return false;
    if (take(text, 'M')) {
        good = take_number(text, 12, &day->month) && day->month >= 1 && take(text, '.') &&
               take_number(text, 5, &day->week) && day->week >= 1 && take(text, '.') && take_number(text, 6, &day->day);
    } else {
        bool julian = take(text, 'J');
        day->kind = julian ? ZONE_DAY_WITHOUT_LEAP : ZONE_DAY_OF_YEAR;
        good = take_number(text, 365, &day->day) && day->day >= julian;
    }
    return good && (!take(text, '/') || take_time(text, &day->time));
}

/* Signs are the other way round: 3 is three hours behind. An empty rule says nothing: the last change stands. */
static bool rule_read(struct slice text, struct zone *zone)
{
    int64_t west;
    if (text.len == 0)
        return true;
    if (!take_name(&text) || !take_time(&text, &west))
        return false;
    zone->standard = zone->summer = -west;
    if (text.len == 0)
        return true;
    if (!take_name(&text))
        return false;
    zone->summer = zone->standard + HOUR_S;
    if (text.len > 0 && text.data[0] != ',') {
        if (!take_time(&text, &west))
            return false;
        zone->summer = -west;
    }
    return take_day(&text, &zone->begins) && take_day(&text, &zone->ends) && text.len == 0;
}

/* ---- the file ---- */

struct counts {
    uint32_t utc, std, leaps, times, types, chars;
};

static uint64_t number_at(const char *data, int bytes)
{
    uint64_t number = 0;
    for (int i = 0; i < bytes; i++)
        number = number << 8 | (unsigned char)data[i];
    return number;
}

static bool header_take(struct slice *file, struct counts *counts)
{
    if (file->len < HEADER_BYTES || !slice_has_prefix(*file, SLICE("TZif")) || file->data[4] < '2')
        return false;
    uint32_t *const fields[] = { &counts->utc,   &counts->std,   &counts->leaps,
                                 &counts->times, &counts->types, &counts->chars };
    for (int i = 0; i < 6; i++)
        *fields[i] = (uint32_t)number_at(file->data + 20 + 4 * i, 4);
    *file = slice_from_offset(*file, HEADER_BYTES);
    return counts->times <= ZONE_CHANGES_MAX && counts->types >= 1 && counts->types <= TYPES_MAX && counts->leaps <= 1000 &&
           counts->chars <= 4096 && counts->std <= TYPES_MAX && counts->utc <= TYPES_MAX;
}

static size_t block_bytes(const struct counts *counts, size_t time_bytes)
{
    return counts->times * (time_bytes + 1) + counts->types * TYPE_BYTES + counts->chars + counts->leaps * (time_bytes + 4) +
           counts->std + counts->utc;
}

/* False: it names a type that is not there, or one that there cannot be. */
static bool offset_of(const char *types, const struct counts *counts, unsigned char type, int64_t *ret_offset)
{
    if (type >= counts->types)
        return false;
    *ret_offset = (int32_t)(uint32_t)number_at(types + (size_t)type * TYPE_BYTES, 4);
    return *ret_offset >= -OFFSET_S_MAX && *ret_offset <= OFFSET_S_MAX;
}

static bool changes_read(const char *block, const struct counts *counts, struct zone *zone)
{
    const char *kinds = block + (size_t)counts->times * 8, *types = kinds + counts->times;
    int64_t offset;
    if (!offset_of(types, counts, 0, &offset))
        return false;
    zone->offset = offset;
    for (uint32_t i = 0; i < counts->times; i++) {
        struct zone_change *change = &zone->changes[i];
        change->at = (int64_t)number_at(block + (size_t)i * 8, 8);
        change->before = offset;
        if (!offset_of(types, counts, (unsigned char)kinds[i], &offset) || (i > 0 && change->at <= change[-1].at) ||
            change->at < -CHANGE_AT_MAX || change->at > CHANGE_AT_MAX)
            return false;
        change->after = offset;
    }
    zone->count = counts->times;
    zone->standard = zone->summer = offset;
    return true;
}

enum status zone_read(struct slice file, struct arena *memory, struct zone *ret_zone, struct error *err)
{
    static const char wrong[] = "it is no file of the tz database";
    struct counts counts;
    struct zone zone = { 0 };
    if (!header_take(&file, &counts) || file.len < block_bytes(&counts, 4)) /* for who knows 32 bits only */
        return error_set(err, STATUS_INVALID, "%s", wrong);
    file = slice_from_offset(file, block_bytes(&counts, 4));
    if (!header_take(&file, &counts) || file.len < block_bytes(&counts, 8))
        return error_set(err, STATUS_INVALID, "%s", wrong);
    zone.changes = arena_alloc_array(memory, (size_t)counts.times + 1, sizeof *zone.changes);
    if (!zone.changes)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a zone");
    struct slice rule = slice_from_offset(file, block_bytes(&counts, 8));
    bool ends = take(&rule, '\n') && slice_find(rule, '\n') < rule.len;
    if (!changes_read(file.data, &counts, &zone) || !ends)
        return error_set(err, STATUS_INVALID, "%s", wrong);
    if (!rule_read((struct slice){ rule.data, slice_find(rule, '\n') }, &zone))
        return error_set(err, STATUS_INVALID, "%s", wrong);
    *ret_zone = zone;
    return STATUS_OK;
}

/* ---- what the clock shows ---- */

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t day_start(int year, int month, int day)
{
    return instant_from_civil(&(struct civil){ .year = year, .month = month, .day = day }) / 1000;
}

/* When it is that day's time in a year, by the wall clock. */
static int64_t day_in(const struct zone_day *day, int year)
{
    int64_t first = day_start(year, 1, 1);
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    if (day->kind == ZONE_DAY_OF_YEAR)
        return first + (int64_t)day->day * DAY_S + day->time;
    if (day->kind == ZONE_DAY_WITHOUT_LEAP)
        return first + (int64_t)(day->day - 1 + (leap && day->day >= 60)) * DAY_S + day->time;
    int64_t month = day_start(year, day->month, 1);
    int64_t next = day->month < 12 ? day_start(year, day->month + 1, 1) : month + 31 * (int64_t)DAY_S;
    int weekday = (int)(((month / DAY_S) % 7 + 7 + 4) % 7); /* 1970-01-01 was a Thursday */
    int64_t at = month + (int64_t)((day->day - weekday + 7) % 7 + 7 * (day->week - 1)) * DAY_S;
    return (at >= next ? at - 7 * (int64_t)DAY_S : at) + day->time;
}

/* A clock that is put on or back changes, for who reads it, when it shows the later of the two. */
static int64_t rule_offset(const struct zone *zone, int64_t local)
{
    if (zone->standard == zone->summer)
        return zone->standard;
    int year = instant_civil(local * 1000).year;
    int64_t begins = day_in(&zone->begins, year) + larger(0, zone->summer - zone->standard);
    int64_t ends = day_in(&zone->ends, year) + larger(0, zone->standard - zone->summer);
    bool summer = begins < ends ? local >= begins && local < ends : local >= begins || local < ends;
    return summer ? zone->summer : zone->standard;
}

int64_t zone_offset_ms(const struct zone *zone, int64_t local_ms)
{
    int64_t local = local_ms / 1000 - (local_ms % 1000 < 0);
    size_t i = zone->count;
    while (i > 0 && zone->changes[i - 1].at + larger(zone->changes[i - 1].before, zone->changes[i - 1].after) > local)
        i--;
    if (i == zone->count)
        return rule_offset(zone, local) * 1000;
    return (i > 0 ? zone->changes[i - 1].after : zone->offset) * 1000;
}
