#include "sim/chart.h"

#include "base/units.h"

#include <math.h>
#include <stdio.h>

/* In the chart's own units; the text is readable from a phone's width on. */
enum { WIDTH = 480, HEIGHT = 230, LEFT = 48, RIGHT = 12, TOP = 12, BOTTOM = 30, POINTS_MAX = 480, TICKS_Y = 4, TICKS_X = 6 };

static const double plot_width = WIDTH - LEFT - RIGHT;
static const double plot_height = HEIGHT - TOP - BOTTOM;

/* How the data lie in the plot. */
struct frame {
    size_t points; /* drawn: each the largest of `merge` values, so that no peak is lost */
    size_t merge;
    double top; /* the value at the upper edge */
    int64_t span_ms;
};

static double point(const struct chart_curve *curve, const struct frame *frame, size_t index)
{
    int64_t most = 0;
    for (size_t i = index * frame->merge; i < (index + 1) * frame->merge && i < curve->count; i++)
        most = curve->values[i] > most ? curve->values[i] : most;
    return (double)most * curve->scale;
}

/* A short number, its quarters too, that is at least `value`. */
static double nice(double value)
{
    static const double steps[] = { 1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10 };
    double power = pow(10, floor(log10(value)));
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (steps[i] * power >= value * 0.999999)
            return steps[i] * power;
    return 10 * power;
}

/* Without its top. */
static struct frame frame_of(const struct chart *chart)
{
    struct frame frame = { .merge = 1 };
    size_t count = 1;
    for (size_t i = 0; i < chart->curve_count; i++)
        count = chart->curves[i].count > count ? chart->curves[i].count : count;
    while ((count + frame.merge - 1) / frame.merge > POINTS_MAX)
        frame.merge++;
    frame.points = (count + frame.merge - 1) / frame.merge;
    frame.span_ms = (int64_t)(frame.points * frame.merge) * chart->step_ms;
    return frame;
}

double chart_most(const struct chart *chart)
{
    struct frame frame = frame_of(chart);
    double top = 0;
    for (size_t x = 0; x < frame.points; x++) {
        double sum = 0;
        for (size_t i = 0; i < chart->curve_count; i++) {
            double value = point(&chart->curves[i], &frame, x);
            sum = chart->stacked ? sum + value : value > sum ? value : sum;
        }
        top = sum > top ? sum : top;
    }
    return top;
}

static double x_at(const struct frame *frame, double ms)
{
    double share = ms / (double)frame->span_ms;
    return LEFT + plot_width * (share > 1 ? 1 : share);
}

static double y_at(const struct frame *frame, double value)
{
    return TOP + plot_height * (1 - value / frame->top);
}

/* "1500000" as "1.5M". */
static void short_number(double value, char ret_text[16])
{
    const char *unit = value >= 1e6 ? "M" : value >= 1e3 ? "k" : "";
    double scaled = value >= 1e6 ? value / 1e6 : value >= 1e3 ? value / 1e3 : value;
    snprintf(ret_text, 16, "%.3g%s", scaled, unit);
}

static void append_axes(const struct frame *frame, struct buffer *out)
{
    static const int64_t steps[] = {
        SECOND_MS,      5 * SECOND_MS,  10 * SECOND_MS, 30 * SECOND_MS, MINUTE_MS,   2 * MINUTE_MS, 5 * MINUTE_MS,
        10 * MINUTE_MS, 30 * MINUTE_MS, HOUR_MS,        2 * HOUR_MS,    4 * HOUR_MS, 6 * HOUR_MS,   12 * HOUR_MS,
        DAY_MS,         2 * (int64_t)DAY_MS,            7 * (int64_t)DAY_MS,
    };
    size_t which = 0;
    int64_t step = steps[0];
    while (frame->span_ms / step > TICKS_X)
        step = which + 1 < sizeof steps / sizeof *steps ? steps[++which] : step * 2;
    for (int i = 0; i <= TICKS_Y; i++) {
        double value = frame->top * i / TICKS_Y, y = y_at(frame, value);
        char text[16];
        short_number(value, text);
        buffer_printf(out, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>", LEFT, y, WIDTH - RIGHT);
        buffer_printf(out, "<text x=\"%d\" y=\"%.1f\" class=\"end\">%s</text>", LEFT - 5, y + 4, text);
    }
    for (int64_t at = 0; at <= frame->span_ms; at += step) {
        char text[UNITS_TEXT_BYTES];
        duration_format(at, text);
        buffer_printf(out, "<text x=\"%.1f\" y=\"%d\" class=\"mid\">%s</text>", x_at(frame, (double)at), HEIGHT - 10,
                      at == 0 ? "0" : text);
    }
}

static void append_outages(const struct chart *chart, const struct frame *frame, struct buffer *out)
{
    for (size_t i = 0; i < chart->outage_count; i++) {
        double from = x_at(frame, (double)chart->outages[i].from_ms), to = x_at(frame, (double)chart->outages[i].to_ms);
        buffer_printf(out,
                      "<rect class=\"outage\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%.1f\"><title>outage</title></rect>"
                      "<text x=\"%.1f\" y=\"%d\" class=\"small\">outage</text>",
                      from, TOP, to - from, plot_height, from + 3, TOP + 11);
    }
}

static void append_line(const struct chart_curve *curve, const struct frame *frame, double middle_ms, struct buffer *out)
{
    buffer_printf(out, "<path class=\"line %s\" d=\"", curve->css);
    for (size_t x = 0; x < frame->points && x * frame->merge < curve->count; x++)
        buffer_printf(out, "%c%.1f %.1f", x == 0 ? 'M' : 'L', x_at(frame, ((double)x + 0.5) * middle_ms),
                      y_at(frame, point(curve, frame, x)));
    buffer_printf(out, "\"/>");
}

/* The area between what lies below it and its own value on top. */
static void append_area(const struct chart *chart, size_t which, const struct frame *frame, double middle_ms,
                        struct buffer *out)
{
    double base[POINTS_MAX] = { 0 };
    const struct chart_curve *curve = &chart->curves[which];
    for (size_t i = 0; i < which; i++)
        for (size_t x = 0; x < frame->points; x++)
            base[x] += point(&chart->curves[i], frame, x);
    buffer_printf(out, "<path class=\"area %s\" d=\"", curve->css);
    for (size_t x = 0; x < frame->points; x++)
        buffer_printf(out, "%c%.1f %.1f", x == 0 ? 'M' : 'L', x_at(frame, ((double)x + 0.5) * middle_ms),
                      y_at(frame, base[x] + point(curve, frame, x)));
    for (size_t x = frame->points; x-- > 0;)
        buffer_printf(out, "L%.1f %.1f", x_at(frame, ((double)x + 0.5) * middle_ms), y_at(frame, base[x]));
    buffer_printf(out, "Z\"/>");
}

static void append_legend(const struct chart *chart, struct buffer *out)
{
    buffer_append_text(out, "<p class=\"legend\">");
    for (size_t i = 0; i < chart->curve_count; i++) {
        buffer_printf(out, "<span class=\"key %s\"></span>", chart->curves[i].css);
        buffer_append_html(out, slice_from(chart->curves[i].name));
        buffer_append_byte(out, ' ');
    }
    buffer_append_text(out, "</p>");
}

static void append_open(const char *title, struct buffer *out)
{
    buffer_append_text(out, "<figure><figcaption>");
    buffer_append_html(out, slice_from(title));
    buffer_printf(out, "</figcaption><svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", WIDTH, HEIGHT);
    buffer_append_html(out, slice_from(title));
    buffer_append_text(out, "\">");
}

void chart_append(const struct chart *chart, struct buffer *out)
{
    struct frame frame = frame_of(chart);
    double most = chart_most(chart);
    most = most > chart->top ? most : chart->top;
    frame.top = most > 0 ? nice(most) : 1;
    double middle_ms = (double)((int64_t)frame.merge * chart->step_ms);
    append_open(chart->title, out);
    append_outages(chart, &frame, out);
    append_axes(&frame, out);
    for (size_t i = 0; i < chart->curve_count; i++) {
        if (chart->stacked)
            append_area(chart, i, &frame, middle_ms, out);
        else
            append_line(&chart->curves[i], &frame, middle_ms, out);
    }
    buffer_append_text(out, "</svg>");
    append_legend(chart, out);
    buffer_append_text(out, "</figure>\n");
}

void chart_bars_append(const char *title, const char *css, const struct chart_bar *bars, size_t count, struct buffer *out)
{
    int64_t most = 1;
    for (size_t i = 0; i < count; i++)
        most = bars[i].value > most ? bars[i].value : most;
    double width = plot_width / (double)count;
    append_open(title, out);
    for (size_t i = 0; i < count; i++) {
        double height = (plot_height - 14) * (double)bars[i].value / (double)most;
        double x = LEFT + width * (double)i, y = TOP + plot_height - height;
        char text[16];
        short_number((double)bars[i].value, text);
        buffer_printf(out, "<rect class=\"bar %s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>", css, x + 2, y,
                      width - 4, height);
        if (bars[i].value > 0)
            buffer_printf(out, "<text x=\"%.1f\" y=\"%.1f\" class=\"mid small\">%s</text>", x + width / 2, y - 3, text);
        buffer_printf(out, "<text x=\"%.1f\" y=\"%d\" class=\"mid small\">%s</text>", x + width / 2, HEIGHT - 14,
                      bars[i].label);
    }
    buffer_append_text(out, "</svg></figure>\n");
}
