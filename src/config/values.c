#include "config/settings.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PORT_MAX = 65535, TEXT_BYTES_MAX = 64 * 1024 };

static const struct {
    const char *name;
    const char *looks; /* after "write" or "must be" */
} kinds[SETTING_KIND_COUNT] = {
    [SETTING_BOOL] = { "boolean", "true or false" },
    [SETTING_COUNT] = { "whole number", "a whole number such as 5" },
    [SETTING_REAL] = { "number", "a number such as 0.5" },
    [SETTING_DURATION] = { "duration", "a duration such as 250ms, 30s, 5m, 2h or 7d" },
    [SETTING_SIZE] = { "size", "a size such as 64KB or 1MB" },
    [SETTING_RATE] = { "rate", "a rate such as 20/s, 100/m or 1000/h" },
    [SETTING_TEXT] = { "text", "text" },
    [SETTING_PATH] = { "path", "the path of a file" },
    [SETTING_URL] = { "URL", "a URL such as https://host/path" },
    [SETTING_ENUM] = { "word", "one of" },
    [SETTING_ADDRESS] = { "address", "an address such as 127.0.0.1:7878 or [::1]:7878" },
    [SETTING_TEXT_LIST] = { "list of texts", "a list such as [a, b]" },
    [SETTING_COUNT_LIST] = { "list of whole numbers", "a list of whole numbers such as [5, 10, 25]" },
    [SETTING_RULES] = { "list of rules", "a list of rules such as [TIMEOUT, \"http:503\"]" },
    [SETTING_HEADERS] = { "names and texts", "names and texts such as { Name: value }" },
    [SETTING_WEIGHTS] = { "names and whole numbers", "names and whole numbers such as { gold: 4 }" },
    [SETTING_WORDS] = { "states and words", "states and words such as { pending: PENDING }" },
    [SETTING_SECTION] = { "section", "settings such as { name: value }" },
    [SETTING_ITEMS] = { "section", "settings such as { name: value }" },
    [SETTING_SPECIAL] = { "section", "settings such as { name: value }" },
};

const char *kind_name(enum setting_kind kind)
{
    return kinds[kind].name;
}

void kind_describe(const struct setting *row, struct buffer *out)
{
    buffer_append_text(out, kinds[row->kind].looks);
    if (row->kind != SETTING_ENUM)
        return;
    for (const struct choice *choice = row->choices; choice->name; choice++)
        buffer_printf(out, "%s %s", choice == row->choices ? "" : choice[1].name ? "," : " or", choice->name);
}

/* `timeout is "abc"`, or without the value where it must not be shown. */
static void why_start(struct value_problem *why, const struct setting *row, struct slice text, bool show)
{
    if (show && !row->secret && row->kind != SETTING_URL)
        snprintf(why->text, sizeof why->text, "%s is \"%s\"; ", row->name, quote(text).text);
    else
        snprintf(why->text, sizeof why->text, "%s has a value that does not fit; ", row->name);
}

static void why_append(struct value_problem *why, const char *format, ...) PRINTF_LIKE(2, 3);
static void why_append(struct value_problem *why, const char *format, ...)
{
    size_t len = strlen(why->text);
    va_list args;
    va_start(args, format);
    vsnprintf(why->text + len, sizeof why->text - len, format, args);
    va_end(args);
}

static bool not_of_kind(struct value_problem *why, const struct setting *row, struct slice text, bool show)
{
    struct buffer looks;
    buffer_init(&looks, sizeof why->text);
    kind_describe(row, &looks);
    why_start(why, row, text, show);
    why_append(why, "write %.*s", SLICE_ARG(buffer_slice(&looks)));
    buffer_release(&looks);
    return false;
}

static bool out_of_range(struct value_problem *why, const struct setting *row, struct slice text, bool show)
{
    why_start(why, row, text, show);
    if (row->min && row->max)
        why_append(why, "allowed is %s to %s", row->min, row->max);
    else if (row->min)
        why_append(why, "allowed is %s or more", row->min);
    else
        why_append(why, "allowed is up to %s", row->max);
    if (row->fallback)
        why_append(why, ", for example %s", row->fallback);
    return false;
}

/* A number of the row's kind as an int64_t: counts, milliseconds, bytes. */
static bool whole_parse(enum setting_kind kind, struct slice text, int64_t *ret_value)
{
    if (kind == SETTING_DURATION)
        return duration_parse(text, ret_value, NULL) == STATUS_OK;
    if (kind == SETTING_SIZE)
        return size_parse(text, ret_value, NULL) == STATUS_OK;
    return slice_to_int64(text, ret_value);
}

static bool whole_read(const struct setting *row, struct slice text, bool show, void *field, struct value_problem *why)
{
    int64_t value, bound;
    if (!whole_parse(row->kind, text, &value))
        return not_of_kind(why, row, text, show);
    if ((row->min && whole_parse(row->kind, slice_from(row->min), &bound) && value < bound) ||
        (row->max && whole_parse(row->kind, slice_from(row->max), &bound) && value > bound))
        return out_of_range(why, row, text, show);
    memcpy(field, &value, sizeof value);
    return true;
}

static bool real_read(const struct setting *row, struct slice text, bool show, void *field, struct value_problem *why)
{
    double value, bound;
    if (!slice_to_double(text, &value))
        return not_of_kind(why, row, text, show);
    if ((row->min && slice_to_double(slice_from(row->min), &bound) && value < bound) ||
        (row->max && slice_to_double(slice_from(row->max), &bound) && value > bound))
        return out_of_range(why, row, text, show);
    memcpy(field, &value, sizeof value);
    return true;
}

static bool enum_read(const struct setting *row, struct slice text, bool show, void *field, struct value_problem *why)
{
    for (const struct choice *choice = row->choices; choice->name; choice++)
        if (slice_equal(text, slice_from(choice->name))) {
            memcpy(field, &choice->value, sizeof choice->value);
            return true;
        }
    return not_of_kind(why, row, text, show);
}

static bool host_is_loopback(const char *host)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    if (inet_pton(AF_INET6, host, &v6) == 1)
        return IN6_IS_ADDR_LOOPBACK(&v6);
    return slice_equal_nocase(slice_from(host), SLICE("localhost"));
}

static bool host_is_plausible(struct slice host, bool bracketed)
{
    for (size_t i = 0; i < host.len; i++)
        if (!ascii_is_alnum(host.data[i]) && host.data[i] != '.' && host.data[i] != '-' && host.data[i] != '_' &&
            !(bracketed && (host.data[i] == ':' || host.data[i] == '%')))
            return false;
    return host.len > 0 && host.len < 254;
}

static bool address_read(struct settings *settings, const struct setting *row, struct slice text, bool show, void *field,
                         struct value_problem *why)
{
    size_t colon = text.len;
    while (colon > 0 && text.data[colon - 1] != ':')
        colon--;
    struct slice host = { text.data, colon > 0 ? colon - 1 : 0 };
    bool bracketed = host.len > 2 && host.data[0] == '[' && host.data[host.len - 1] == ']';
    if (bracketed)
        host = (struct slice){ host.data + 1, host.len - 2 };
    int64_t port;
    struct slice digits = slice_from_offset(text, colon);
    if (!host_is_plausible(host, bracketed) || digits.len == 0 || !ascii_is_digit(digits.data[0]) ||
        !slice_to_int64(digits, &port) || port > PORT_MAX)
        return not_of_kind(why, row, text, show);
    struct listen_address *address = field;
    address->host = settings_copy(settings, host);
    address->port = (int)port;
    address->loopback = host_is_loopback(address->host);
    return true;
}

/* A scheme, "://" and something behind it; no white space or control characters. */
static bool url_is_plausible(struct slice url)
{
    size_t separator = slice_search(url, SLICE("://"));
    if (separator == 0 || separator + 3 >= url.len || url.data[separator + 3] == '/')
        return false;
    for (size_t i = 0; i < separator; i++)
        if (!ascii_is_alnum(url.data[i]) && url.data[i] != '+' && url.data[i] != '-' && url.data[i] != '.')
            return false;
    for (size_t i = 0; i < url.len; i++)
        if ((unsigned char)url.data[i] <= ' ' || url.data[i] == 0x7f)
            return false;
    return true;
}

/* A port is a number that there can be; without one there is nothing wrong. */
static bool url_port_is_possible(struct slice url)
{
    size_t start = slice_search(url, SLICE("://")) + 3, end = start, colon = 0;
    while (end < url.len && !strchr("/?#", url.data[end]))
        end++;
    for (size_t i = start; i < end; i++)
        colon = url.data[i] == ':' ? i : strchr("@]", url.data[i]) ? 0 : colon; /* of a password, of IPv6 */
    struct slice digits = { url.data + colon + 1, end - colon - 1 };
    int64_t port = 1;
    for (size_t i = 0; colon > 0 && i < digits.len; i++)
        if (!ascii_is_digit(digits.data[i]))
            return digits.data[i] == '{'; /* to be filled in at the send */
    return colon == 0 || digits.len == 0 || (slice_to_int64(digits, &port) && port > 0 && port <= PORT_MAX);
}

static const char *path_resolve(struct settings *settings, struct slice path)
{
    char *joined;
    if (path.data[0] == '/' || settings->folder.len == 0)
        return settings_copy(settings, path);
    joined = settings_alloc(settings, settings->folder.len + path.len + 1, 1);
    if (!joined)
        return "";
    memcpy(joined, settings->folder.data, settings->folder.len);
    memcpy(joined + settings->folder.len, path.data, path.len);
    return joined;
}

static bool text_read(struct settings *settings, const struct setting *row, struct slice text, bool show, void *field,
                      struct value_problem *why)
{
    const char *value = row->fallback; /* empty text takes back what was given */
    if (text.len == 0 && row->filled) {
        snprintf(why->text, sizeof why->text, "%s is empty; write a text, or remove the line", row->name);
        return false;
    }
    if (text.len > TEXT_BYTES_MAX) {
        snprintf(why->text, sizeof why->text, "%s has %zu bytes; the limit is %d", row->name, text.len, TEXT_BYTES_MAX);
        return false;
    }
    if (text.len > 0 && row->kind == SETTING_URL && !url_is_plausible(text))
        return not_of_kind(why, row, text, show);
    if (text.len > 0 && row->kind == SETTING_URL && !url_port_is_possible(text)) {
        why_start(why, row, text, show);
        why_append(why, "its port must be a number from 1 to %d", PORT_MAX);
        return false;
    }
    const char *wrong = text.len > 0 && row->check ? row->check(text) : NULL;
    if (wrong) {
        why_start(why, row, text, show);
        why_append(why, "it %s", wrong);
        return false;
    }
    if (text.len > 0)
        value = row->kind == SETTING_PATH ? path_resolve(settings, text) : settings_copy(settings, text);
    memcpy(field, &value, sizeof value);
    return true;
}

bool value_read(struct settings *settings, const struct setting *row, struct slice text, bool show, void *field,
                struct value_problem *ret_why)
{
    switch (row->kind) {
    case SETTING_BOOL:
        if (!slice_equal(text, SLICE("true")) && !slice_equal(text, SLICE("false")))
            return not_of_kind(ret_why, row, text, show);
        *(bool *)field = text.len == 4;
        return true;
    case SETTING_COUNT:
    case SETTING_DURATION:
    case SETTING_SIZE:
        return whole_read(row, text, show, field, ret_why);
    case SETTING_REAL:
        return real_read(row, text, show, field, ret_why);
    case SETTING_RATE:
        return rate_parse(text, field, NULL) == STATUS_OK || not_of_kind(ret_why, row, text, show);
    case SETTING_ENUM:
        return enum_read(row, text, show, field, ret_why);
    case SETTING_ADDRESS:
        return address_read(settings, row, text, show, field, ret_why);
    case SETTING_TEXT:
    case SETTING_PATH:
    case SETTING_URL:
        return text_read(settings, row, text, show, field, ret_why);
    default: /* a list or a section is not one value */
        assert(row->kind < SETTING_TEXT_LIST);
        return false;
    }
}
