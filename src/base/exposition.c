#include "base/exposition.h"

#include "base/json.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

const char *metric_type_name(enum metric_type type)
{
    static const char *const names[] = { [METRIC_COUNTER] = "counter", [METRIC_GAUGE] = "gauge",
                                         [METRIC_HISTOGRAM] = "histogram" };
    return names[type];
}

static void append_help(struct buffer *out, const char *help)
{
    for (; *help; help++) {
        if (*help == '\\')
            buffer_append(out, SLICE("\\\\"));
        else if (*help == '\n')
            buffer_append(out, SLICE("\\n"));
        else
            buffer_append_byte(out, *help);
    }
}

void exposition_begin(struct exposition *exposition, struct buffer *out, const struct metric_family *family)
{
    *exposition = (struct exposition){ out, family };
    buffer_append(out, SLICE("# HELP "));
    buffer_append_text(out, family->name);
    buffer_append_byte(out, ' ');
    append_help(out, family->help);
    buffer_append(out, SLICE("\n# TYPE "));
    buffer_append_text(out, family->name);
    buffer_append_byte(out, ' ');
    buffer_append_text(out, metric_type_name(family->type));
    buffer_append_byte(out, '\n');
}

static void append_value(struct buffer *out, struct slice value)
{
    for (size_t i = 0, len; i < value.len; i += len > 0 ? len : 1) {
        len = utf8_sequence_len(slice_from_offset(value, i));
        if (len == 0)
            buffer_append(out, SLICE("\xef\xbf\xbd"));
        else if (value.data[i] == '\\')
            buffer_append(out, SLICE("\\\\"));
        else if (value.data[i] == '"')
            buffer_append(out, SLICE("\\\""));
        else if (value.data[i] == '\n')
            buffer_append(out, SLICE("\\n"));
        else
            buffer_append(out, (struct slice){ value.data + i, len });
    }
}

static void append_label(struct buffer *out, bool first, const char *name, struct slice value)
{
    buffer_append_byte(out, first ? '{' : ',');
    buffer_append_text(out, name);
    buffer_append(out, SLICE("=\""));
    append_value(out, value);
    buffer_append_byte(out, '"');
}

static void append_number(struct buffer *out, double value)
{
    if (isinf(value))
        buffer_append_text(out, value > 0 ? "+Inf" : "-Inf");
    else if (value == floor(value) && fabs(value) < 1e15)
        buffer_append_int64(out, (int64_t)value);
    else
        buffer_printf(out, "%.15g", value);
}

/* `bound` NULL: no label le. */
static void append_sample(const struct exposition *exposition, const char *suffix, const struct metric_label *labels,
                          size_t count, const char *bound, double value)
{
    struct buffer *out = exposition->out;
    buffer_append_text(out, exposition->family->name);
    buffer_append_text(out, suffix);
    for (size_t i = 0; i < count; i++)
        append_label(out, i == 0, labels[i].name, labels[i].value);
    if (bound)
        append_label(out, count == 0, "le", slice_from(bound));
    if (count > 0 || bound)
        buffer_append_byte(out, '}');
    buffer_append_byte(out, ' ');
    append_number(out, value);
    buffer_append_byte(out, '\n');
}

void exposition_sample(const struct exposition *exposition, const struct metric_label *labels, size_t count, double value)
{
    assert(exposition->family->type != METRIC_HISTOGRAM);
    if (!isnan(value))
        append_sample(exposition, "", labels, count, NULL, value);
}

void exposition_histogram(const struct exposition *exposition, const struct metric_label *labels, size_t count,
                          const struct histogram *histogram, const struct exposition_scale *scale)
{
    char bound[32];
    int64_t below = 0, total = histogram_total(histogram);
    assert(exposition->family->type == METRIC_HISTOGRAM);
    for (size_t i = 0; i < scale->bounds->count; i++) {
        below += histogram->counts[i];
        if (scale->bounds->at[i] < scale->from)
            continue;
        snprintf(bound, sizeof bound, "%.15g", (double)scale->bounds->at[i] / scale->divisor);
        append_sample(exposition, "_bucket", labels, count, bound, (double)below);
    }
    append_sample(exposition, "_bucket", labels, count, "+Inf", (double)total);
    append_sample(exposition, "_sum", labels, count, NULL, (double)histogram->sum / scale->divisor);
    append_sample(exposition, "_count", labels, count, NULL, (double)total);
}
