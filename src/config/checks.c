#include "config/checks.h"

#include "base/pattern.h"
#include "base/zone.h"

#include <string.h>

static bool only(struct slice text, const char *besides)
{
    for (size_t i = 0; i < text.len; i++)
        if (!ascii_is_alnum(text.data[i]) && !strchr(besides, text.data[i]))
            return false;
    return text.len > 0;
}

const char *check_name(struct slice text)
{
    if (text.len > DESTINATION_NAME_BYTES_MAX || !only(text, "_-.") || text.data[0] == '.')
        return "must have up to 64 letters, digits, _, - and ., and not start with a .";
    return NULL;
}

const char *check_line(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.data[i] < ' ' || text.data[i] == 0x7f)
            return "must be one line without control characters";
    return NULL;
}

const char *check_method(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] < 'A' || text.data[i] > 'Z')
            return "must be a method in capitals such as POST or PUT";
    return text.len > 16 ? "must be a method such as POST or PUT" : NULL;
}

const char *check_http_url(struct slice text)
{
    bool http = slice_has_prefix(text, SLICE("http://")) || slice_has_prefix(text, SLICE("https://"));
    return http ? NULL : "must start with http:// or https://";
}

const char *check_store(struct slice text)
{
    if (slice_equal(text, SLICE("memory:")) || slice_equal(text, SLICE("memory")))
        return NULL;
    if (slice_has_prefix(text, SLICE("sqlite:")) && text.len > 7)
        return check_line(text);
    if (slice_has_prefix(text, SLICE("postgres://")) || slice_has_prefix(text, SLICE("postgresql://")))
        return check_line(text);
    return "must be sqlite:PATH, postgres://USER@HOST/DATABASE or memory";
}

const char *check_email(struct slice text)
{
    size_t at = slice_find(text, '@');
    bool ok = at > 0 && at + 1 < text.len && slice_find(slice_from_offset(text, at + 1), '@') == text.len - at - 1;
    for (size_t i = 0; i < text.len; i++)
        ok = ok && (unsigned char)text.data[i] > ' ' && text.data[i] != 0x7f && !strchr("<>,;\"", text.data[i]);
    return ok ? NULL : "must be one address such as ops@example.org";
}

const char *check_helo(struct slice text)
{
    return only(text, "-._[]:") && text.len <= 255 ? NULL : "must be a host name such as mail.example.org, or [192.0.2.1]";
}

const char *check_alert(struct slice text)
{
    return alert_word_is_known(text) ? NULL
                                     : "must be all, a severity (critical, warning, info) or the name of an alert such as "
                                       "contingency; docs/alerts.md has them all";
}

static const char *check_pattern(struct slice text)
{
    struct pattern *pattern;
    if (pattern_new(text, &pattern, NULL) != STATUS_OK)
        return "must be a PCRE2 pattern";
    pattern_free(pattern);
    return NULL;
}

const char *check_zone(struct slice text)
{
    struct zone zone;
    return zone_of_offset(text, &zone) || zone_name_is_possible(text)
               ? NULL
               : "must be UTC, an offset like -03:00, or a place like America/Sao_Paulo";
}

const char *check_reason(struct slice text)
{
    return text.len <= REASON_TEMPLATE_BYTES_MAX ? check_line(text) : "is longer than 96 bytes";
}

const char *check_error_code(struct slice text)
{
    static const char *const prefixes[] = { "xpath:", "header:" };
    struct slice json = SLICE("json:");
    struct slice pattern = SLICE("pattern:/");
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (slice_has_prefix(text, slice_from(prefixes[i])) && text.len > strlen(prefixes[i]))
            return check_line(text);
    if (slice_has_prefix(text, json) && text.len > json.len && text.data[json.len] == '/')
        return check_line(text);
    if (slice_has_prefix(text, pattern) && text.len > pattern.len + 1 && text.data[text.len - 1] == '/')
        return check_pattern((struct slice){ text.data + pattern.len, text.len - pattern.len - 1 });
    if (slice_equal(text, SLICE("http.status")) || slice_equal(text, SLICE("smtp.reply")) ||
        slice_equal(text, SLICE("exec.status")))
        return NULL;
    return "must be xpath:..., json:/..., header:Name, pattern:/.../, http.status, smtp.reply or exec.status";
}

static const char *const day_names[] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
enum { DAYS = 7, ALL_DAYS = (1 << DAYS) - 1, DAY_MINUTES = 24 * 60 };

static int day_parse(struct slice text)
{
    for (int i = 0; i < DAYS; i++)
        if (slice_equal_nocase(text, slice_from(day_names[i])))
            return i;
    return -1;
}

/* They are written as "Sun", "Mon-Fri", "Sat-Mon". */
static bool day_range_parse(struct slice text, unsigned *days)
{
    size_t dash = slice_find(text, '-');
    int first = day_parse((struct slice){ text.data, dash });
    int last = dash < text.len ? day_parse(slice_from_offset(text, dash + 1)) : first;
    if (first < 0 || last < 0)
        return false;
    for (int day = first;; day = (day + 1) % DAYS) {
        *days |= 1u << day;
        if (day == last)
            return true;
    }
}

static bool days_parse(struct slice text, unsigned *ret_days)
{
    *ret_days = 0;
    if (slice_equal_nocase(text, SLICE("daily"))) {
        *ret_days = ALL_DAYS;
        return true;
    }
    while (text.len > 0) {
        size_t comma = slice_find(text, ',');
        if (!day_range_parse((struct slice){ text.data, comma }, ret_days) || comma + 1 == text.len)
            return false;
        text = slice_from_offset(text, comma + 1);
    }
    return *ret_days != 0;
}

/* "02:00"; "24:00" is the end of a day. */
static bool minute_parse(struct slice text, int *ret_minute)
{
    int64_t hour, minute;
    if (text.len != 5 || text.data[2] != ':' || !ascii_is_digit(text.data[0]) || !ascii_is_digit(text.data[3]) ||
        !slice_to_int64((struct slice){ text.data, 2 }, &hour) || !slice_to_int64(slice_from_offset(text, 3), &minute))
        return false;
    *ret_minute = (int)(hour * 60 + minute);
    return minute < 60 && *ret_minute <= DAY_MINUTES;
}

bool maintenance_parse(struct slice text, struct maintenance_window *ret_window)
{
    struct slice trimmed = slice_trim(text);
    size_t space = slice_find(trimmed, ' ');
    struct slice times = slice_trim(slice_from_offset(trimmed, space));
    size_t dash = slice_find(times, '-');
    struct maintenance_window window;
    if (!days_parse((struct slice){ trimmed.data, space }, &window.days) ||
        !minute_parse((struct slice){ times.data, dash }, &window.from_minute) ||
        !minute_parse(slice_from_offset(times, dash + 1), &window.to_minute) || window.from_minute == window.to_minute ||
        window.from_minute == DAY_MINUTES)
        return false;
    *ret_window = window;
    return true;
}

const char *check_maintenance(struct slice text)
{
    struct maintenance_window window;
    return maintenance_parse(text, &window) ? NULL
                                            : "must be days and times in UTC such as \"Sun 02:00-04:00\", "
                                              "\"Mon-Fri 22:00-23:30\" or \"daily 02:00-04:00\"";
}

const char *check_secret(struct slice text)
{
    struct slice prefix = SLICE("whsec_");
    struct slice key = slice_from_offset(text, prefix.len);
    while (key.len > 0 && key.data[key.len - 1] == '=')
        key.len--;
    if (!slice_has_prefix(text, prefix) || key.len < 32 || key.len > 88 || !only(key, "+/"))
        return "must be whsec_ and 24 to 64 bytes in Base64";
    return NULL;
}

const char *check_namespace(struct slice text)
{
    return only(text, "-") && text.len <= 32 ? NULL : "must be one word of up to 32 letters, digits and -";
}

const char *check_variable(struct slice text)
{
    if (!only(text, "_") || ascii_is_digit(text.data[0]))
        return "must have only letters, digits and _, and not begin with a digit";
    return slice_has_prefix(text, SLICE("INSIST_")) ? "is one of those that insist sets itself" : NULL;
}

const char *check_region(struct slice text)
{
    return only(text, "-") && text.len <= 32 ? NULL : "must be a region such as sa-east-1";
}

const char *check_short(struct slice text)
{
    return text.len <= 255 ? check_line(text) : "must have at most 255 bytes";
}
