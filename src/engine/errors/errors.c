#include "engine/errors/errors.h"

#include "base/array.h"
#include "base/json.h"
#include "base/map.h"
#include "engine/saved/json.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { VALUE_BYTES_MAX = 4096 };

/* The errors of one destination, in no order. */
struct error_table {
    char *destination;
    struct known_error **items;
    size_t count, capacity;
    struct error_table *next;
};

struct errors {
    struct map tables; /* by destination */
    struct error_table *first;
    struct map by_name;
    size_t count;
    size_t changed;           /* of those in the tables */
    struct known_error *gone; /* of the store, not of the tables any more */
    size_t gone_count;
};

enum status errors_new(uint64_t seed, struct errors **ret_errors)
{
    struct errors *errors = calloc(1, sizeof *errors);
    if (!errors)
        return STATUS_NO_MEMORY;
    map_init(&errors->tables, seed);
    map_init(&errors->by_name, seed);
    *ret_errors = errors;
    return STATUS_OK;
}

static void error_free(struct known_error *error)
{
    if (!error)
        return;
    assert(!error->out);
    free(error->name);
    free(error);
}

void errors_free(struct errors *errors)
{
    if (!errors)
        return;
    for (struct error_table *table = errors->first, *next; table; table = next) {
        next = table->next;
        for (size_t i = 0; i < table->count; i++)
            error_free(table->items[i]);
        free(table->items);
        free(table->destination);
        free(table);
    }
    for (struct known_error *error = errors->gone, *next; error; error = next) {
        next = error->next_gone;
        error_free(error);
    }
    map_release(&errors->tables);
    map_release(&errors->by_name);
    free(errors);
}

/* ---- in and out of the tables ---- */

static void set_changed(struct errors *errors, struct known_error *error, bool changed)
{
    errors->changed += changed && !error->changed;
    errors->changed -= !changed && error->changed;
    error->changed = changed;
    assert(errors->changed <= errors->count);
}

static void add_gone(struct errors *errors, struct known_error *error)
{
    assert(!error->table && error->stored && !error->out && !error->changed);
    error->next_gone = errors->gone;
    errors->gone = error;
    errors->gone_count++;
}

/* What the store has must be taken out of it; one that is being written comes back first. */
static void drop(struct errors *errors, struct error_table *table, size_t index)
{
    struct known_error *error = table->items[index];
    assert(index < table->count && error->table == table && errors->count > 0);
    set_changed(errors, error, false);
    map_remove(&errors->by_name, slice_from(error->name));
    table->items[index] = table->items[--table->count];
    errors->count--;
    error->table = NULL;
    if (error->out)
        return;
    if (error->stored)
        add_gone(errors, error);
    else
        error_free(error);
}

static void drop_oldest(struct errors *errors, struct error_table *table)
{
    assert(table->count > 0);
    size_t oldest = 0;
    for (size_t i = 1; i < table->count; i++)
        if (table->items[i]->last_at < table->items[oldest]->last_at)
            oldest = i;
    drop(errors, table, oldest);
}

/* Room for one more of this destination's. */
static void make_room(struct errors *errors, struct error_table *table)
{
    if (table->count >= ERRORS_DESTINATION_MAX)
        drop_oldest(errors, table);
    if (errors->count < ERRORS_MAX)
        return;
    struct error_table *largest = errors->first;
    for (struct error_table *other = errors->first; other; other = other->next)
        if (other->count > largest->count)
            largest = other;
    drop_oldest(errors, largest);
    assert(errors->count < ERRORS_MAX);
}

static struct error_table *table_get(struct errors *errors, struct slice destination)
{
    struct error_table *table = map_get(&errors->tables, destination);
    if (table)
        return table;
    table = calloc(1, sizeof *table);
    if (!table)
        return NULL;
    table->destination = strndup(destination.data, destination.len);
    if (!table->destination || map_put(&errors->tables, slice_from(table->destination), table) != STATUS_OK) {
        free(table->destination);
        free(table);
        return NULL;
    }
    table->next = errors->first;
    errors->first = table;
    return table;
}

static bool table_reserve(struct error_table *table)
{
    assert(table->count <= table->capacity);
    struct known_error **items = array_grow(table->items, table->count, &table->capacity, sizeof *items);
    if (items)
        table->items = items;
    return items != NULL;
}

/* Takes over `name`; NULL: no memory. */
static struct known_error *add(struct errors *errors, struct slice destination, char *name)
{
    struct error_table *table = table_get(errors, destination);
    struct known_error *error = calloc(1, sizeof *error);
    if (!name || !table || !error || !table_reserve(table)) {
        free(name);
        free(error);
        return NULL;
    }
    error->name = name;
    make_room(errors, table);
    if (map_put(&errors->by_name, slice_from(name), error) != STATUS_OK) {
        error_free(error);
        return NULL;
    }
    assert(table->count < table->capacity);
    error->table = table;
    table->items[table->count++] = error;
    errors->count++;
    return error;
}

static char *name_of(struct slice destination, const char *fingerprint)
{
    char *name = malloc(destination.len + 1 + FINGERPRINT_BYTES + 1);
    if (!name)
        return NULL;
    memcpy(name, destination.data, destination.len);
    name[destination.len] = '/';
    memcpy(name + destination.len + 1, fingerprint, FINGERPRINT_BYTES + 1);
    return name;
}

static struct known_error *find(const struct errors *errors, struct slice destination, const char *fingerprint)
{
    char *name = name_of(destination, fingerprint);
    struct known_error *error = name ? map_get(&errors->by_name, slice_from(name)) : NULL;
    free(name);
    return error;
}

/* ---- counting ---- */

void errors_seen(struct errors *errors, struct slice destination, const struct fingerprint *fingerprint, instant now)
{
    struct known_error *error = find(errors, destination, fingerprint->text);
    if (!error) {
        error = add(errors, destination, name_of(destination, fingerprint->text));
        if (!error)
            return;
        error->fingerprint = *fingerprint;
        error->first_at = now;
    }
    error->fingerprint.spaced = error->fingerprint.spaced || fingerprint->spaced;
    error->learning.seen++;
    error->last_at = now;
    assert(error->table);
    set_changed(errors, error, true);
}

void errors_recovered(struct errors *errors, struct slice destination, const struct fingerprint *fingerprint)
{
    struct known_error *error = find(errors, destination, fingerprint->text);
    if (!error)
        return;
    error->learning.recovered++;
    set_changed(errors, error, true);
}

void errors_gave_up(struct errors *errors, struct slice destination, const struct fingerprint *fingerprint)
{
    struct known_error *error = find(errors, destination, fingerprint->text);
    if (!error)
        return;
    error->learning.gave_up++;
    set_changed(errors, error, true);
}

size_t errors_forget(struct errors *errors, struct slice destination, struct slice fingerprint)
{
    size_t forgotten = 0;
    for (struct error_table *table = errors->first; table; table = table->next) {
        if (destination.len > 0 && !slice_equal(destination, slice_from(table->destination)))
            continue;
        for (size_t i = table->count; i > 0; i--) {
            if (!slice_equal(fingerprint, slice_from(table->items[i - 1]->fingerprint.text)))
                continue;
            drop(errors, table, i - 1);
            forgotten++;
        }
    }
    return forgotten;
}

size_t errors_forgotten(const struct errors *errors, struct slice destination, struct slice fingerprint)
{
    size_t count = 0;
    for (const struct known_error *error = errors->gone; error; error = error->next_gone) {
        assert(!error->table && error->stored);
        struct slice where = { error->name, strlen(error->name) - FINGERPRINT_BYTES - 1 };
        if (slice_equal(fingerprint, slice_from(error->fingerprint.text)) &&
            (destination.len == 0 || slice_equal(destination, where)))
            count++;
    }
    return count;
}

/* ---- reading ---- */

static int most_seen_first(const void *left, const void *right)
{
    const struct known_error *a = *(const struct known_error *const *)left, *b = *(const struct known_error *const *)right;
    if (a->learning.seen != b->learning.seen)
        return a->learning.seen > b->learning.seen ? -1 : 1;
    return strcmp(a->name, b->name);
}

enum status errors_list(const struct errors *errors, struct slice destination, size_t max, struct arena *memory,
                        const struct known_error ***ret_list, size_t *ret_count)
{
    const struct known_error **list = arena_alloc_array(memory, errors->count + 1, sizeof *list);
    size_t count = 0;
    if (!list)
        return STATUS_NO_MEMORY;
    for (const struct error_table *table = errors->first; table; table = table->next)
        for (size_t i = 0; i < table->count; i++)
            if (destination.len == 0 || slice_equal(destination, slice_from(table->destination)))
                list[count++] = table->items[i];
    assert(count <= errors->count);
    qsort(list, count, sizeof *list, most_seen_first);
    *ret_list = list;
    *ret_count = count < max ? count : max;
    return STATUS_OK;
}

/* ---- writing ---- */

size_t errors_unwritten(const struct errors *errors)
{
    assert(errors->changed <= errors->count);
    return errors->changed + errors->gone_count;
}

size_t errors_to_remove(const struct errors *errors)
{
    return errors->gone_count;
}

size_t errors_take(struct errors *errors, struct known_error **ret_taken, size_t max)
{
    size_t count = 0;
    while (errors->gone && count < max) {
        struct known_error *error = errors->gone;
        assert(!error->table && errors->gone_count > 0);
        errors->gone = error->next_gone;
        errors->gone_count--;
        error->out = error->removing = true;
        ret_taken[count++] = error;
    }
    for (struct error_table *table = errors->first; table && count < max && errors->changed > 0; table = table->next) {
        for (size_t i = 0; i < table->count && count < max; i++) {
            struct known_error *error = table->items[i];
            if (!error->changed || error->out)
                continue;
            set_changed(errors, error, false);
            error->out = true;
            ret_taken[count++] = error;
        }
    }
    assert(count <= max);
    return count;
}

void errors_written(struct errors *errors, struct known_error *error, bool written, bool give_up)
{
    assert(error->out);
    bool removed = error->removing && written;
    error->out = error->removing = false;
    error->stored = !removed && (error->stored || written);
    if (error->table) {
        if (!written && !give_up)
            set_changed(errors, error, true);
    } else if (error->stored && !give_up) {
        add_gone(errors, error); /* also one that was dropped on its way */
    } else {
        error_free(error);
    }
}

struct slice errors_value(const struct known_error *error, struct arena *memory)
{
    struct buffer value = buffer_up_to(VALUE_BYTES_MAX);
    struct json_writer json = json_begin(&value);
    json_member_text(&json, "code", error->fingerprint.code);
    json_member_text(&json, "sample", error->fingerprint.sample);
    json_member_bool(&json, "spaced", error->fingerprint.spaced);
    json_member_int(&json, "seen", error->learning.seen);
    json_member_int(&json, "recovered", error->learning.recovered);
    json_member_int(&json, "gave_up", error->learning.gave_up);
    json_member_instant(&json, "first_at", error->first_at);
    json_member_instant(&json, "last_at", error->last_at);
    json_object_end(&json);
    return buffer_into(&value, memory);
}

static bool read_text(const json_t *root, const char *name, size_t size, char *ret_text)
{
    struct slice text = saved_text(root, name);
    if (!json_is_string(json_object_get(root, name)) || text.len >= size)
        return false;
    memcpy(ret_text, text.data, text.len + 1);
    return true;
}

static bool read_count(const json_t *root, const char *name, int64_t *ret_count)
{
    *ret_count = json_integer_value(json_object_get(root, name));
    return *ret_count >= 0;
}

static bool read_value(const json_t *root, struct known_error *error)
{
    error->fingerprint.spaced = json_is_true(json_object_get(root, "spaced"));
    error->first_at = saved_instant(root, "first_at");
    error->last_at = saved_instant(root, "last_at");
    return error->first_at != INSTANT_NONE && error->last_at != INSTANT_NONE &&
           read_text(root, "code", sizeof error->fingerprint.code, error->fingerprint.code) &&
           read_text(root, "sample", sizeof error->fingerprint.sample, error->fingerprint.sample) &&
           read_count(root, "seen", &error->learning.seen) && read_count(root, "recovered", &error->learning.recovered) &&
           read_count(root, "gave_up", &error->learning.gave_up);
}

void errors_restore(struct errors *errors, struct slice name, struct slice value)
{
    if (name.len < 1 + FINGERPRINT_BYTES + 1 || name.data[name.len - FINGERPRINT_BYTES - 1] != '/')
        return;
    struct slice destination = { name.data, name.len - FINGERPRINT_BYTES - 1 };
    struct known_error read = { 0 };
    json_t *root = json_loadb(value.data, value.len, 0, NULL);
    bool is_read = read_value(root, &read);
    json_decref(root);
    memcpy(read.fingerprint.text, name.data + destination.len + 1, FINGERPRINT_BYTES);
    if (!is_read || find(errors, destination, read.fingerprint.text))
        return;
    struct known_error *error = add(errors, destination, name_of(destination, read.fingerprint.text));
    if (!error)
        return;
    error->fingerprint = read.fingerprint;
    error->learning = read.learning;
    error->first_at = read.first_at;
    error->last_at = read.last_at;
    error->stored = true;
}

bool errors_all_written(const struct errors *errors, struct slice destination)
{
    const struct error_table *table = map_get(&errors->tables, destination);
    for (size_t i = 0; table && i < table->count; i++)
        if (table->items[i]->changed || table->items[i]->out)
            return false;
    return true;
}

void errors_leave(struct errors *errors, struct slice destination)
{
    struct error_table *table = map_get(&errors->tables, destination);
    assert(errors_all_written(errors, destination));
    while (table && table->count > 0) {
        table->items[0]->stored = false; /* by us: so it is not taken out of it */
        drop(errors, table, 0);
    }
}
