#include "base/instant.h"

#include "base/zone.h"

#include <assert.h>

/* Days since 1970-01-01 of a date in the proleptic Gregorian calendar, counting years from March. */
static int64_t days_from_date(int year, int month, int day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t year_of_era = y - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

static void date_from_days(int64_t days, struct civil *civil)
{
    int64_t z = days + 719468;
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    int64_t day_of_era = z - era * 146097;
    int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t shifted_month = (5 * day_of_year + 2) / 153;
    civil->day = (int)(day_of_year - (153 * shifted_month + 2) / 5 + 1);
    civil->month = (int)(shifted_month < 10 ? shifted_month + 3 : shifted_month - 9);
    civil->year = (int)(year_of_era + era * 400 + (civil->month <= 2 ? 1 : 0));
}

instant instant_earlier(instant a, instant b)
{
    if (a == INSTANT_NONE || b == INSTANT_NONE)
        return a == INSTANT_NONE ? b : a;
    return a < b ? a : b;
}

void instant_hasten(instant *next, instant at, instant now)
{
    if (at > now)
        *next = instant_earlier(*next, at);
}

struct civil instant_civil(instant at)
{
    if (at > INSTANT_MAX)
        at = INSTANT_MAX;
    if (at < INSTANT_MIN)
        at = INSTANT_MIN;
    int64_t days = (at >= 0 ? at : at - (DAY_MS - 1)) / DAY_MS;
    int64_t rest = at - days * DAY_MS;
    struct civil civil = {
        .hour = (int)(rest / HOUR_MS),
        .minute = (int)(rest / MINUTE_MS % 60),
        .second = (int)(rest / SECOND_MS % 60),
        .millisecond = (int)(rest % SECOND_MS),
    };
    date_from_days(days, &civil);
    return civil;
}

instant instant_from_civil(const struct civil *civil)
{
    int64_t days = days_from_date(civil->year, civil->month, civil->day);
    return days * DAY_MS + (int64_t)civil->hour * HOUR_MS + (int64_t)civil->minute * MINUTE_MS +
           (int64_t)civil->second * SECOND_MS + civil->millisecond;
}

static char *put_digits(char *out, int value, int width)
{
    for (int i = width - 1; i >= 0; i--, value /= 10)
        out[i] = (char)('0' + value % 10);
    return out + width;
}

void instant_format(instant at, char ret_text[INSTANT_TEXT_BYTES])
{
    struct civil civil = instant_civil(at);
    const struct { int value, width; char end; } fields[] = {
        { civil.year, 4, '-' },   { civil.month, 2, '-' },  { civil.day, 2, 'T' },         { civil.hour, 2, ':' },
        { civil.minute, 2, ':' }, { civil.second, 2, '.' }, { civil.millisecond, 3, 'Z' },
    };
    char *out = ret_text;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        out = put_digits(out, fields[i].value, fields[i].width);
        *out++ = fields[i].end;
    }
    *out = '\0';
    assert(out - ret_text == INSTANT_TEXT_BYTES - 1);
}

/* Reads `width` digits and then one of `ends` (NULL: nothing), advancing `text`. */
static bool take_field(struct slice *text, size_t width, const char *ends, int *ret_value)
{
    int value = 0;
    if (text->len < width + (ends ? 1 : 0))
        return false;
    for (size_t i = 0; i < width; i++) {
        if (!ascii_is_digit(text->data[i]))
            return false;
        value = value * 10 + (text->data[i] - '0');
    }
    bool ended = !ends;
    for (; !ended && *ends; ends++)
        ended = text->data[width] == *ends;
    *text = slice_from_offset(*text, width + (ends ? 1 : 0));
    *ret_value = value;
    return ended;
}

/* ".234567": milliseconds, the rest is cut off. */
static bool take_fraction(struct slice *text, int *ret_ms)
{
    int weight = 100;
    size_t i = 1;
    *ret_ms = 0;
    if (text->len == 0 || (text->data[0] != '.' && text->data[0] != ','))
        return true;
    for (; i < text->len && ascii_is_digit(text->data[i]); i++, weight /= 10)
        *ret_ms += (text->data[i] - '0') * weight;
    *text = slice_from_offset(*text, i);
    return i > 1;
}

static bool take_zone(struct slice text, int64_t *ret_offset_ms)
{
    int hours, minutes;
    if (text.len == 1 && ascii_lower(text.data[0]) == 'z') {
        *ret_offset_ms = 0;
        return true;
    }
    if (text.len == 0 || (text.data[0] != '+' && text.data[0] != '-'))
        return false;
    int sign = text.data[0] == '-' ? -1 : 1;
    text = slice_from_offset(text, 1);
    bool colon = slice_find(text, ':') < text.len;
    if (!take_field(&text, 2, colon ? ":" : NULL, &hours) || !take_field(&text, 2, NULL, &minutes) || text.len > 0)
        return false;
    if (hours > 23 || minutes > 59)
        return false;
    *ret_offset_ms = sign * ((int64_t)hours * HOUR_MS + (int64_t)minutes * MINUTE_MS);
    return true;
}

static int days_in_month(int year, int month)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month == 2 && leap ? 29 : days[month - 1];
}

static bool civil_is_valid(const struct civil *c)
{
    return c->year >= 1 && c->month >= 1 && c->month <= 12 && c->day >= 1 && c->day <= days_in_month(c->year, c->month) &&
           c->hour <= 23 && c->minute <= 59 && c->second <= 60; /* 60: a leap second, taken as the next one */
}

bool instant_zone_parse(struct slice text, int64_t *ret_offset_ms)
{
    bool utc = slice_equal_nocase(text, SLICE("UTC"));
    return take_zone(utc ? SLICE("Z") : text, ret_offset_ms);
}

static bool take_date(struct slice *rest, struct civil *c)
{
    return take_field(rest, 4, "-", &c->year) && take_field(rest, 2, "-", &c->month) &&
           take_field(rest, 2, "Tt ", &c->day) && take_field(rest, 2, ":", &c->hour);
}

enum status instant_parse_in(struct slice text, const struct zone *zone, instant *ret_at, struct error *err)
{
    struct civil c = { 0 };
    struct slice rest = text;
    int64_t offset_ms;
    /* Java writes a whole minute without its seconds. */
    bool minutes = zone && take_date(&rest, &c) && take_field(&rest, 2, NULL, &c.minute) && rest.len == 0;
    if (!minutes)
        rest = text;
    /* The last digit of the seconds has no fixed end: a fraction or the zone follows. */
    bool shaped = minutes || (take_date(&rest, &c) && take_field(&rest, 2, ":", &c.minute) &&
                              take_field(&rest, 2, NULL, &c.second) && take_fraction(&rest, &c.millisecond));
    if (!shaped || !civil_is_valid(&c))
        return error_set(err, STATUS_INVALID, "\"%.*s\" is not a time; write it like 2025-01-12T10:40:00Z",
                         (int)(text.len < 64 ? text.len : 64), text.data);
    if (rest.len == 0 && zone)
        offset_ms = zone_offset_ms(zone, instant_from_civil(&c));
    else if (!take_zone(rest, &offset_ms))
        return error_set(err, STATUS_INVALID, "time \"%.*s\" has no zone; end it with Z or an offset like -03:00",
                         (int)(text.len < 64 ? text.len : 64), text.data);
    instant at = instant_from_civil(&c) - offset_ms;
    if (at < INSTANT_MIN || at > INSTANT_MAX)
        return error_set(err, STATUS_INVALID, "time \"%.*s\" is outside the years 1 to 9999 in UTC",
                         (int)(text.len < 64 ? text.len : 64), text.data);
    *ret_at = at;
    return STATUS_OK;
}

enum status instant_parse(struct slice text, instant *ret_at, struct error *err)
{
    return instant_parse_in(text, NULL, ret_at, err);
}

instant instant_add(instant at, int64_t delay_ms)
{
    assert(delay_ms >= 0);
    return at >= INSTANT_MAX - delay_ms ? INSTANT_MAX : at + delay_ms;
}

void instant_stamp(instant at, char ret_stamp[INSTANT_STAMP_BYTES + 1])
{
    char text[INSTANT_TEXT_BYTES];
    size_t len = 0;
    instant_format(at, text);
    for (const char *c = text; *c; c++)
        if (*c != '-' && *c != ':')
            ret_stamp[len++] = *c;
    assert(len == INSTANT_STAMP_BYTES);
    ret_stamp[len] = '\0';
}
