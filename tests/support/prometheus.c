#include "support/prometheus.h"

#include "base/json.h"
#include "support/check.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { NAME_MAX_BYTES = 128, FAMILIES_MAX = 512, SERIES_MAX = 100000, LABELS_MAX_BYTES = 4096 };

struct reading {
    size_t line;
    char names[FAMILIES_MAX][NAME_MAX_BYTES]; /* whose HELP was read, the last one is the present */
    size_t family_count;
    char type[16]; /* of the present one; empty: TYPE is still to come */
    char *series[SERIES_MAX];
    size_t series_count;
    /* the histogram under way */
    char labels[LABELS_MAX_BYTES];
    double bound, below;
    bool bucket_seen, inf_seen, sum_seen;
};

static char problem[512];

__attribute__((format(printf, 2, 3))) static bool wrong(const struct reading *reading, const char *format, ...)
{
    va_list args;
    int len = snprintf(problem, sizeof problem, "line %zu: ", reading->line);
    va_start(args, format);
    vsnprintf(problem + len, sizeof problem - (size_t)len, format, args);
    va_end(args);
    return false;
}

static size_t name_len(const char *text, bool label)
{
    size_t len = 0;
    while (isalnum((unsigned char)text[len]) || text[len] == '_' || (!label && text[len] == ':'))
        len++;
    return isdigit((unsigned char)text[0]) ? 0 : len;
}

static const char *present(const struct reading *reading)
{
    return reading->family_count > 0 ? reading->names[reading->family_count - 1] : "";
}

static bool read_help(struct reading *reading, const char *text)
{
    size_t len = name_len(text, false);
    if (len == 0 || len >= NAME_MAX_BYTES || text[len] != ' ' || text[len + 1] == '\0')
        return wrong(reading, "HELP needs a name and a text");
    for (size_t i = 0; i < reading->family_count; i++)
        if (strncmp(reading->names[i], text, len) == 0 && reading->names[i][len] == '\0')
            return wrong(reading, "%.*s is a family already", (int)len, text);
    check(reading->family_count < FAMILIES_MAX, "too many families");
    snprintf(reading->names[reading->family_count++], NAME_MAX_BYTES, "%.*s", (int)len, text);
    reading->type[0] = '\0';
    return true;
}

static bool read_type(struct reading *reading, const char *text)
{
    size_t len = name_len(text, false);
    const char *type = text[len] == ' ' ? text + len + 1 : "";
    if (strlen(present(reading)) != len || strncmp(text, present(reading), len) != 0)
        return wrong(reading, "TYPE is of another family than HELP");
    if (reading->type[0])
        return wrong(reading, "a second TYPE");
    if (strcmp(type, "counter") != 0 && strcmp(type, "gauge") != 0 && strcmp(type, "histogram") != 0)
        return wrong(reading, "unknown type \"%s\"", type);
    snprintf(reading->type, sizeof reading->type, "%s", type);
    return true;
}

/* Reads {a="b",...}; le goes to *bound, the others as they are to `others`. Returns what follows, or NULL. */
static const char *read_labels(const struct reading *reading, const char *text, char others[LABELS_MAX_BYTES], double *bound)
{
    size_t at = 0;
    *bound = NAN;
    others[0] = '\0';
    if (*text != '{')
        return text;
    do {
        const char *name = ++text;
        size_t len = name_len(name, true);
        if (len == 0 || name[len] != '=' || name[len + 1] != '"')
            return wrong(reading, "a label needs name=\"value\""), NULL;
        const char *value = name + len + 2;
        for (text = value; *text && *text != '"'; text++)
            if (*text == '\\' && !strchr("\\\"n", *++text))
                return wrong(reading, "unknown escape \\%c", *text), NULL;
        if (*text != '"')
            return wrong(reading, "a label's value does not end"), NULL;
        if (len == 2 && strncmp(name, "le", 2) == 0)
            *bound = strtod(value, NULL);
        else
            at += (size_t)snprintf(others + at, LABELS_MAX_BYTES - at, "%.*s,", (int)(text + 1 - name), name);
        check(at < LABELS_MAX_BYTES, "too many labels");
        text++;
    } while (*text == ',');
    if (*text != '}')
        return wrong(reading, "labels do not end"), NULL;
    return text + 1;
}

static bool end_histogram(struct reading *reading)
{
    if (reading->bucket_seen)
        return wrong(reading, "the histogram before has no count");
    return true;
}

static bool read_bucket(struct reading *reading, const char *labels, double bound, double value)
{
    bool first = !reading->bucket_seen;
    if (isnan(bound))
        return wrong(reading, "a bucket without le");
    if (!first && strcmp(labels, reading->labels) != 0)
        return end_histogram(reading);
    if (!first && (bound <= reading->bound || value < reading->below || reading->inf_seen))
        return wrong(reading, "buckets do not grow");
    snprintf(reading->labels, sizeof reading->labels, "%s", labels);
    reading->bound = bound;
    reading->below = value;
    reading->bucket_seen = true;
    reading->inf_seen = isinf(bound);
    return true;
}

static bool read_histogram(struct reading *reading, const char *suffix, const char *labels, double bound, double value)
{
    if (strcmp(suffix, "_bucket") == 0)
        return read_bucket(reading, labels, bound, value);
    if (!reading->bucket_seen || strcmp(labels, reading->labels) != 0)
        return wrong(reading, "%s without buckets", suffix);
    if (!reading->inf_seen)
        return wrong(reading, "no bucket +Inf");
    if (strcmp(suffix, "_sum") == 0) {
        reading->sum_seen = true;
        return true;
    }
    if (strcmp(suffix, "_count") != 0)
        return wrong(reading, "a histogram has no %s", suffix);
    if (value != reading->below)
        return wrong(reading, "+Inf is %g, the count %g", reading->below, value);
    if (!reading->sum_seen)
        return wrong(reading, "no sum");
    reading->bucket_seen = reading->inf_seen = reading->sum_seen = false;
    return true;
}

static bool read_sample(struct reading *reading, const char *text)
{
    char suffix[NAME_MAX_BYTES], labels[LABELS_MAX_BYTES], *end;
    size_t len = name_len(text, false), family = strlen(present(reading));
    double bound;
    if (len < family || strncmp(text, present(reading), family) != 0 || family == 0)
        return wrong(reading, "a sample of another family than %s", present(reading));
    if (!reading->type[0])
        return wrong(reading, "a sample before its TYPE");
    snprintf(suffix, sizeof suffix, "%.*s", (int)(len - family), text + family);
    const char *rest = read_labels(reading, text + len, labels, &bound);
    if (!rest)
        return false;
    double value = *rest == ' ' ? strtod(rest + 1, &end) : NAN;
    if (*rest != ' ' || end == rest + 1 || *end != '\0')
        return wrong(reading, "no value");
    for (size_t i = 0; i < reading->series_count; i++)
        if (strncmp(reading->series[i], text, (size_t)(rest - text)) == 0 && reading->series[i][rest - text] == '\0')
            return wrong(reading, "the series occurs twice");
    check(reading->series_count < SERIES_MAX, "too many series");
    reading->series[reading->series_count++] = strndup(text, (size_t)(rest - text));
    if (strcmp(reading->type, "histogram") == 0)
        return read_histogram(reading, suffix, labels, bound, value);
    if (suffix[0])
        return wrong(reading, "a sample of another family than %s", present(reading));
    if (strcmp(reading->type, "counter") == 0 && !(value >= 0))
        return wrong(reading, "a counter below zero");
    return true;
}

static bool read_line(struct reading *reading, const char *line)
{
    if (!utf8_is_valid(slice_from(line)))
        return wrong(reading, "not UTF-8");
    if (strncmp(line, "# HELP ", 7) == 0)
        return end_histogram(reading) && read_help(reading, line + 7);
    if (strncmp(line, "# TYPE ", 7) == 0)
        return read_type(reading, line + 7);
    if (line[0] == '#')
        return wrong(reading, "a comment");
    return read_sample(reading, line);
}

const char *prometheus_problem(const char *text)
{
    struct reading *reading = calloc(1, sizeof *reading);
    char *copy = strdup(text), *rest = copy;
    bool right = true;
    assert_true(reading && copy);
    reading->line = 1;
    if (*text == '\0' || text[strlen(text) - 1] != '\n')
        right = wrong(reading, "the text does not end with a line's end");
    for (char *line; right && (line = strsep(&rest, "\n")) && rest; reading->line++)
        right = read_line(reading, line);
    right = right && end_histogram(reading);
    for (size_t i = 0; i < reading->series_count; i++)
        free(reading->series[i]);
    free(copy);
    free(reading);
    return right ? NULL : problem;
}

bool prometheus_value(const char *text, const char *series, double *ret_value)
{
    size_t len = strlen(series);
    for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        if (strncmp(line, series, len) != 0 || line[len] != ' ')
            continue;
        *ret_value = strtod(line + len, NULL);
        return true;
    }
    return false;
}

size_t prometheus_count(const char *text, const char *beginning)
{
    size_t count = 0;
    for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        count += strncmp(line, beginning, strlen(beginning)) == 0;
    return count;
}
