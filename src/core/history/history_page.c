#include "core/history/history_page.h"

#include <assert.h>
#include <string.h>

const struct history_scale history_minutes = { 'm', MINUTE_MS, HOUR_MS, 48 };
const struct history_scale history_hours = { 'h', HOUR_MS, DAY_MS, 90 };

enum {
    DIGITS = 92,     /* printable, without quotes and backslash */
    SMALL = 256,     /* steps from one power of two to the next */
    NUMBER_MAX_SHIFT = DIGITS * DIGITS / SMALL - 2,
    TIMES_OF_TWO = 5, /* steps of a time from one power of two to the next */
    FIXED_BYTES = 15, /* of a point, before its failures */
    FAILURE_BYTES = 3,
};

static_assert((int)FIXED_BYTES + 1 + FAILURE_BYTES == (int)HISTORY_POINT_BYTES_MIN, "a point with its failures together");
static_assert((int)OUTCOME_COUNT < (int)DIGITS && (int)HISTORY_SLOTS_MAX < (int)DIGITS, "one digit each");

static const char *const mode_names[HISTORY_MODE_COUNT] = {
    [HISTORY_NORMAL] = "normal", [HISTORY_PAUSED] = "paused", [HISTORY_RECOVERING] = "recovering",
    [HISTORY_CONTINGENCY] = "contingency", [HISTORY_BREAKER] = "breaker", [HISTORY_MAINTENANCE] = "maintenance",
};
/* An hour is shown by its worst minute. */
static const int mode_ranks[HISTORY_MODE_COUNT] = {
    [HISTORY_NORMAL] = 1, [HISTORY_MAINTENANCE] = 2, [HISTORY_BREAKER] = 3,
    [HISTORY_PAUSED] = 4, [HISTORY_RECOVERING] = 5,  [HISTORY_CONTINGENCY] = 6,
};

const char *history_mode_name(enum history_mode mode)
{
    assert(mode < HISTORY_MODE_COUNT);
    return mode_names[mode];
}

enum history_mode history_mode_from_name(const char *name)
{
    for (enum history_mode mode = HISTORY_NORMAL; mode < HISTORY_MODE_COUNT; mode++)
        if (name && strcmp(mode_names[mode], name) == 0)
            return mode;
    return HISTORY_MODE_UNKNOWN;
}

/* ---- digits ---- */

static char digit(int64_t value)
{
    assert(value >= 0 && value < DIGITS);
    char c = (char)('!' + value);
    if (c >= '"')
        c++;
    return c >= '\\' ? (char)(c + 1) : c;
}

/* Negative: it is none. */
static int digit_value(char c)
{
    if (c < '!' || c > '~' || c == '"' || c == '\\')
        return -1;
    return c - '!' - (c > '"') - (c > '\\');
}

struct writing {
    char *text;
    size_t len;
};

static void put(struct writing *out, int64_t value)
{
    out->text[out->len++] = digit(value);
}

/* Two digits: as it is below 512, then the eight highest bits below the first, and how far they were moved. */
static void put_number(struct writing *out, int64_t value)
{
    int shift = 0;
    uint64_t left = value > 0 ? (uint64_t)value : 0;
    for (; left >= 2 * SMALL && shift < NUMBER_MAX_SHIFT; shift++)
        left >>= 1;
    if (left >= 2 * SMALL)
        left = 2 * SMALL - 1; /* more than anybody counts in an hour */
    int64_t code = shift * SMALL + (int64_t)left;
    put(out, code / DIGITS);
    put(out, code % DIGITS);
}

/* One digit: 0 is unknown, then five steps to each power of two from 1 ms on. In 1/1024. */
static const int64_t steps_1024[TIMES_OF_TWO] = { 1024, 1176, 1351, 1552, 1783 };

static int64_t time_of(int code)
{
    return code == 0 ? -1 : ((steps_1024[(code - 1) % TIMES_OF_TWO] << ((code - 1) / TIMES_OF_TWO)) + 512) / 1024;
}

static void put_time(struct writing *out, int64_t ms)
{
    int code = 1;
    while (code < DIGITS - 1 && time_of(code + 1) <= ms)
        code++;
    put(out, ms < 0 ? 0 : code);
}

struct reading {
    struct slice rest;
    bool failed;
};

static int take(struct reading *in)
{
    int value = in->rest.len > 0 ? digit_value(in->rest.data[0]) : -1;
    if (value < 0) {
        in->failed = true;
        return 0;
    }
    in->rest.data++;
    in->rest.len--;
    return value;
}

static int64_t take_number(struct reading *in)
{
    int64_t high = take(in), code = high * DIGITS + take(in);
    return code < 2 * SMALL ? code : (code % SMALL + SMALL) << (code / SMALL - 1);
}

static int64_t take_time(struct reading *in)
{
    return time_of(take(in));
}

/* ---- points ---- */

static int64_t failures_of(const struct history_point *point)
{
    int64_t failures = 0;
    for (int i = 0; i < OUTCOME_COUNT; i++)
        failures += point->failed[i];
    return failures;
}

int64_t history_point_sent(const struct history_point *point)
{
    int64_t failures = failures_of(point);
    return point->delivered > INT64_MAX - failures ? INT64_MAX : point->delivered + failures;
}

static int kinds_of(const struct history_point *point)
{
    int kinds = 0;
    for (int i = 0; i < OUTCOME_COUNT; i++)
        kinds += point->failed[i] > 0;
    return kinds;
}

static void write_failures(struct writing *out, const struct history_point *point, bool together)
{
    int kinds = kinds_of(point);
    if (together && kinds > 1) {
        put(out, 1);
        put(out, HISTORY_OTHER);
        put_number(out, failures_of(point));
        return;
    }
    put(out, kinds);
    for (int i = 0; i < OUTCOME_COUNT; i++) {
        if (point->failed[i] <= 0)
            continue;
        put(out, i);
        put_number(out, point->failed[i]);
    }
}

static void write_point(struct writing *out, int slot, const struct history_point *point, bool together)
{
    size_t begin = out->len;
    put(out, slot);
    put_number(out, point->delivered);
    put_number(out, point->pending);
    put_number(out, point->oldest_s);
    put_time(out, point->p50_ms);
    put_time(out, point->p95_ms);
    put_time(out, point->p99_ms);
    put_number(out, point->in_flight);
    put_number(out, point->limit);
    put(out, point->mode);
    assert(out->len - begin == FIXED_BYTES);
    write_failures(out, point, together);
}

static void read_point(struct reading *in, int *ret_slot, struct history_point *ret_point)
{
    struct history_point point = { 0 };
    *ret_slot = take(in);
    point.delivered = take_number(in);
    point.pending = take_number(in);
    point.oldest_s = take_number(in);
    point.p50_ms = take_time(in);
    point.p95_ms = take_time(in);
    point.p99_ms = take_time(in);
    point.in_flight = take_number(in);
    point.limit = take_number(in);
    int mode = take(in);
    point.mode = mode < HISTORY_MODE_COUNT ? (enum history_mode)mode : HISTORY_MODE_UNKNOWN;
    for (int kinds = take(in); kinds > 0 && !in->failed; kinds--) {
        int kind = take(in);
        point.failed[kind < OUTCOME_COUNT ? kind : HISTORY_OTHER] += take_number(in);
    }
    *ret_point = point;
}

static int64_t higher(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

void history_point_add(struct history_point *sum, const struct history_point *more)
{
    sum->delivered += more->delivered;
    for (int i = 0; i < OUTCOME_COUNT; i++)
        sum->failed[i] += more->failed[i];
    sum->pending = higher(sum->pending, more->pending);
    sum->oldest_s = higher(sum->oldest_s, more->oldest_s);
    sum->p50_ms = higher(sum->p50_ms, more->p50_ms);
    sum->p95_ms = higher(sum->p95_ms, more->p95_ms);
    sum->p99_ms = higher(sum->p99_ms, more->p99_ms);
    sum->in_flight = higher(sum->in_flight, more->in_flight);
    sum->limit = more->limit;
    sum->mode = more->mode;
}

/* ---- pages ---- */

static int slots_of(const struct history_scale *scale)
{
    return (int)(scale->page_ms / scale->step_ms);
}

/* The mark, the page's number, a colon. */
static size_t write_head(const struct history_scale *scale, int64_t number, char text[HISTORY_HEAD_BYTES_MAX])
{
    char digits[HISTORY_HEAD_BYTES_MAX];
    size_t count = 0, len = 0;
    for (; number > 0 && count < HISTORY_HEAD_BYTES_MAX - 2; number /= 10)
        digits[count++] = (char)('0' + number % 10);
    text[len++] = scale->mark;
    while (count > 0)
        text[len++] = digits[--count];
    text[len++] = ':';
    return len;
}

/* 0: it is no page of that scale. */
static int64_t read_head(const struct history_scale *scale, struct slice *text)
{
    int64_t number = 0;
    size_t i = 1;
    if (text->len == 0 || text->data[0] != scale->mark)
        return 0;
    for (; i < text->len && i < HISTORY_HEAD_BYTES_MAX - 1 && text->data[i] >= '0' && text->data[i] <= '9'; i++)
        number = 10 * number + (text->data[i] - '0');
    if (i >= text->len || text->data[i] != ':')
        return 0;
    *text = (struct slice){ text->data + i + 1, text->len - i - 1 };
    return number;
}

void history_page_clear(struct history_page *page)
{
    page->number = 0;
    page->last = -1;
    page->last_at = page->len = 0;
}

struct slice history_page_text(const struct history_page *page)
{
    return (struct slice){ page->text, page->len };
}

void history_page_read(const struct history_scale *scale, struct slice text, struct history_page *ret_page)
{
    struct slice rest = text;
    history_page_clear(ret_page);
    int64_t number = text.len <= sizeof ret_page->text ? read_head(scale, &rest) : 0;
    struct reading in = { .rest = rest };
    int last = -1;
    size_t last_at = 0;
    while (number > 0 && in.rest.len > 0) {
        struct history_point point;
        int slot;
        size_t at = text.len - in.rest.len;
        read_point(&in, &slot, &point);
        if (in.failed || slot <= last || slot >= slots_of(scale))
            return; /* it is none: a new one begins */
        last = slot;
        last_at = at;
    }
    if (number == 0)
        return;
    ret_page->number = number;
    ret_page->last = last;
    ret_page->last_at = last_at;
    ret_page->len = text.len;
    memcpy(ret_page->text, text.data, text.len);
}

bool history_page_put(const struct history_scale *scale, struct history_page *page, instant at,
                      const struct history_point *point)
{
    int64_t number = at / scale->page_ms;
    int slot = (int)(at % scale->page_ms / scale->step_ms), slots = slots_of(scale);
    assert(at > 0 && slots <= HISTORY_SLOTS_MAX);
    if (page->number == 0) {
        page->number = number;
        page->last_at = page->len = write_head(scale, number, page->text);
    }
    if (page->number != number || slot < page->last)
        return false;
    if (slot == page->last)
        page->len = page->last_at;
    /* What is left for this one when all that may follow have their least. */
    size_t left = HISTORY_HEAD_BYTES_MAX + (size_t)(slot + 1) * HISTORY_POINT_BYTES_MIN - page->len;
    size_t wanted = FIXED_BYTES + 1 + (size_t)kinds_of(point) * FAILURE_BYTES;
    struct writing out = { page->text, page->len };
    write_point(&out, slot, point, wanted > left);
    page->last = slot;
    page->last_at = page->len;
    page->len = out.len;
    assert(page->len <= HISTORY_HEAD_BYTES_MAX + (size_t)(slot + 1) * HISTORY_POINT_BYTES_MIN);
    return true;
}

bool history_page_last(const struct history_scale *scale, const struct history_page *page, instant at,
                       struct history_point *ret_point)
{
    struct reading in = { .rest = { page->text + page->last_at, page->len - page->last_at } };
    int slot;
    if (page->number == 0 || page->last < 0 || at / scale->page_ms != page->number ||
        at % scale->page_ms / scale->step_ms != page->last)
        return false;
    read_point(&in, &slot, ret_point);
    assert(!in.failed && slot == page->last);
    return true;
}

void history_page_each(const struct history_scale *scale, struct slice text,
                       void (*visit)(void *context, instant at, const struct history_point *point), void *context)
{
    struct slice rest = text;
    int64_t number = read_head(scale, &rest);
    struct reading in = { .rest = rest };
    for (int last = -1; number > 0 && in.rest.len > 0;) {
        struct history_point point;
        int slot;
        read_point(&in, &slot, &point);
        if (in.failed || slot <= last || slot >= slots_of(scale))
            return;
        last = slot;
        visit(context, number * scale->page_ms + slot * scale->step_ms, &point);
    }
}

/* ---- a page as one point ---- */

enum { TIMES_MAX = 3 * HISTORY_SLOTS_MAX };

/* How many took about so long: of each point's sends those that are nearest to a percentile as that. */
struct timed {
    int64_t ms, weight;
};
struct summing {
    struct history_point sum;
    bool any;
    struct timed times[TIMES_MAX];
    size_t count;
    int64_t weight;
};

static void sum_time(struct summing *summing, int64_t ms, int64_t weight)
{
    size_t i = summing->count;
    assert(i < TIMES_MAX);
    for (; i > 0 && summing->times[i - 1].ms > ms; i--)
        summing->times[i] = summing->times[i - 1];
    summing->times[i] = (struct timed){ ms, weight };
    summing->count++;
    summing->weight += weight;
}

static void sum_point(void *context, instant at, const struct history_point *point)
{
    struct summing *summing = context;
    enum history_mode worst =
        mode_ranks[point->mode] > mode_ranks[summing->sum.mode] ? point->mode : summing->sum.mode;
    int64_t sent = history_point_sent(point);
    (void)at;
    history_point_add(&summing->sum, point);
    summing->sum.mode = worst;
    summing->any = true;
    if (sent == 0 || point->p50_ms < 0)
        return;
    sum_time(summing, point->p50_ms, 72 * sent);
    sum_time(summing, point->p95_ms, 25 * sent);
    sum_time(summing, point->p99_ms, 3 * sent);
}

static int64_t time_at(const struct summing *summing, int64_t percent)
{
    int64_t below = 0;
    for (size_t i = 0; i < summing->count; i++) {
        below += summing->times[i].weight;
        if (100 * below >= percent * summing->weight)
            return summing->times[i].ms;
    }
    return -1;
}

bool history_page_sum(const struct history_scale *scale, struct slice text, struct history_point *ret_sum)
{
    struct summing summing = { 0 };
    history_page_each(scale, text, sum_point, &summing);
    if (!summing.any)
        return false;
    summing.sum.p50_ms = time_at(&summing, 50);
    summing.sum.p95_ms = time_at(&summing, 95);
    summing.sum.p99_ms = time_at(&summing, 99);
    *ret_sum = summing.sum;
    return true;
}
