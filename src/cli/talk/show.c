#include "cli/talk/show.h"

#include "base/json.h"
#include "base/units.h"
#include "core/decision/job.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { VALUE_BYTES_MAX = 1 << 20, NAME_BYTES_MAX = 256, FACTS_DEPTH_MAX = 8 };

const char *member_text(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

int64_t member_int(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static void append_time(struct slice text, struct buffer *out)
{
    instant at;
    if (instant_parse(text, &at, NULL) != STATUS_OK) {
        plain_append(text, out);
        return;
    }
    struct civil civil = instant_civil(at);
    buffer_printf(out, "%04d-%02d-%02d %02d:%02d:%02dZ", civil.year, civil.month, civil.day, civil.hour, civil.minute,
                  civil.second);
}

static void append_string(const json_t *value, enum show_as as, struct buffer *out)
{
    struct slice text = { json_string_value(value), json_string_length(value) };
    if (as == SHOW_TIME)
        append_time(text, out);
    else
        plain_append(text, out);
}

static void append_dump(const json_t *value, struct buffer *out)
{
    size_t len = json_dumpb(value, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY);
    char *room = buffer_reserve(out, len);
    if (room) {
        json_dumpb(value, room, len, JSON_COMPACT | JSON_ENCODE_ANY);
        buffer_commit(out, len);
    }
}

static void append_list(const json_t *values, struct buffer *out)
{
    size_t i;
    const json_t *value;
    json_array_foreach(values, i, value) {
        buffer_append_text(out, i > 0 ? ", " : "");
        show_value(value, SHOW_TEXT, out);
    }
}

void show_value(const json_t *value, enum show_as as, struct buffer *out)
{
    char text[UNITS_TEXT_BYTES];
    if (!value || json_is_null(value))
        return;
    if (json_is_string(value)) {
        append_string(value, as, out);
    } else if (json_is_integer(value) && (as == SHOW_MS || as == SHOW_SPAN)) {
        int64_t ms = json_integer_value(value);
        duration_format(as == SHOW_SPAN && ms >= 10 * SECOND_MS ? ms - ms % SECOND_MS : ms, text);
        buffer_append_text(out, text);
    } else if (json_is_integer(value)) {
        buffer_append_int64(out, json_integer_value(value));
    } else if (json_is_real(value)) {
        buffer_printf(out, "%.6g", json_real_value(value));
    } else if (json_is_boolean(value)) {
        buffer_append_text(out, json_is_true(value) ? "yes" : "no");
    } else if (as == SHOW_LIST) {
        append_list(value, out);
    } else {
        append_dump(value, out);
    }
}

static const json_t *find_path(const json_t *object, struct slice path)
{
    while (object && path.len > 0) {
        char name[NAME_BYTES_MAX];
        size_t dot = slice_find(path, '.');
        snprintf(name, sizeof name, "%.*s", (int)dot, path.data);
        object = json_object_get(object, name);
        path = slice_from_offset(path, dot < path.len ? dot + 1 : dot);
    }
    return object && !json_is_null(object) ? object : NULL;
}

/* The value that a `struct shown` names, or NULL. */
static const json_t *find_member(const json_t *object, const char *names)
{
    const json_t *found = NULL;
    struct slice rest = slice_from(names);
    while (!found && rest.len > 0) {
        struct slice path = { rest.data, slice_find(rest, '|') };
        found = find_path(object, path);
        rest = slice_from_offset(rest, path.len < rest.len ? path.len + 1 : path.len);
    }
    return found;
}

/* ---- Tables ---- */

void show_table_init(struct table *table, struct table_column columns[TABLE_COLUMNS_MAX], const struct shown *shown,
                     size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool right = shown[i].as == SHOW_NUMBER || shown[i].as == SHOW_MS || shown[i].as == SHOW_SPAN;
        bool brief = shown[i].as == SHOW_BRIEF || shown[i].as == SHOW_LIST;
        columns[i] = (struct table_column){ shown[i].title, right ? TABLE_RIGHT : brief ? TABLE_BRIEF : TABLE_LEFT };
    }
    table_init(table, columns, count);
}

static enum table_color color_of(const json_t *value)
{
    const char *text = json_string_value(value);
    switch (job_state_from_name(slice_from(text))) {
    case STATE_COMPLETED:
        return TABLE_GREEN;
    case STATE_WAITING:
        return TABLE_YELLOW;
    case STATE_DEAD:
        return TABLE_RED;
    default:
        break;
    }
    if (text && strcmp(text, "normal") == 0)
        return TABLE_GREEN;
    return text && strcmp(text, "paused") == 0 ? TABLE_RED : TABLE_PLAIN;
}

void show_row(struct table *table, const json_t *object, const struct shown *shown, size_t count)
{
    struct buffer cell = buffer_up_to(VALUE_BYTES_MAX);
    for (size_t i = 0; i < count; i++) {
        const json_t *value = find_member(object, shown[i].name);
        buffer_clear(&cell);
        show_value(value, shown[i].as, &cell);
        if (buffer_status(&cell) != STATUS_OK)
            table->cells.failure = buffer_status(&cell);
        table_cell_colored(table, buffer_slice(&cell), shown[i].as == SHOW_STATE ? color_of(value) : TABLE_PLAIN);
    }
    buffer_release(&cell);
}

void show_table(const struct cli *cli, const json_t *array, const struct shown *shown, size_t count, struct buffer *out)
{
    struct table_column columns[TABLE_COLUMNS_MAX];
    struct table table;
    show_table_init(&table, columns, shown, count);
    for (size_t i = 0; i < json_array_size(array); i++)
        show_row(&table, json_array_get(array, i), shown, count);
    table_append(&table, cli, out);
    table_release(&table);
}

/* ---- Facts ---- */

/* Two columns without titles: the name and its value. */
static void facts_begin(struct table *table)
{
    static const struct table_column columns[] = { { "", TABLE_LEFT }, { "", TABLE_LEFT } };
    table_init(table, columns, 2);
    table->titled = true;
    table->facts = true;
}

static void fact_add(struct table *table, const char *title, const json_t *value, enum show_as as)
{
    struct buffer text = buffer_up_to(VALUE_BYTES_MAX);
    show_value(value, as, &text);
    if (text.len > 0) {
        table_cell_text(table, title);
        table_cell_colored(table, buffer_slice(&text), as == SHOW_STATE ? color_of(value) : TABLE_PLAIN);
    }
    buffer_release(&text);
}

void show_facts(const struct cli *cli, const json_t *object, const struct shown *shown, size_t count, struct buffer *out)
{
    struct table table;
    facts_begin(&table);
    for (size_t i = 0; i < count; i++)
        fact_add(&table, shown[i].title, find_member(object, shown[i].name), shown[i].as);
    table_append(&table, cli, out);
    table_release(&table);
}

static bool is_shown(const char *name, const struct shown *shown, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, shown[i].name) == 0)
            return true;
    return false;
}

/* By its name: members that hold a time end in _at, durations in _ms. */
static enum show_as guess(const char *name)
{
    struct slice text = slice_from(name);
    if (slice_has_suffix(text, SLICE("_ms")))
        return SHOW_MS;
    return slice_has_suffix(text, SLICE("_at")) || slice_has_suffix(text, SLICE("_until")) ? SHOW_TIME : SHOW_TEXT;
}

static void others_add(struct table *table, const char *prefix, json_t *object, int depth, const struct shown *shown,
                       size_t count)
{
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value)
    {
        char title[NAME_BYTES_MAX];
        if (depth == 0 && is_shown(name, shown, count))
            continue;
        snprintf(title, sizeof title, "%s%s%s", prefix, *prefix ? "." : "", name);
        if (json_is_object(value) && depth < FACTS_DEPTH_MAX)
            others_add(table, title, value, depth + 1, NULL, 0);
        else
            fact_add(table, title, value, guess(name));
    }
}

void show_others(const struct cli *cli, json_t *object, const struct shown *shown, size_t count, struct buffer *out)
{
    struct table table;
    facts_begin(&table);
    others_add(&table, "", object, 0, shown, count);
    table_append(&table, cli, out);
    table_release(&table);
}

void show_lines(struct slice text, const char *indent, struct buffer *out)
{
    while (text.len > 0) {
        size_t end = slice_find(text, '\n');
        buffer_append_text(out, indent);
        plain_append((struct slice){ text.data, end }, out);
        buffer_append_byte(out, '\n');
        text = slice_from_offset(text, end < text.len ? end + 1 : end);
    }
}
