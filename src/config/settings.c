#include "config/settings.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { LIST_ITEMS_MAX = 4096, PAIRS_MAX = 256 };

/* Reads ramp and ramp_count of a contingency, or any such two. */
struct count_list {
    int64_t *items;
    size_t count;
};
static_assert(offsetof(struct contingency_config, ramp_count) ==
                  offsetof(struct contingency_config, ramp) + offsetof(struct count_list, count),
              "a list of numbers is a pointer and a count");

struct place settings_place(const struct settings *settings, const struct node *node)
{
    return (struct place){ settings->file, node->line, node->column };
}

struct place settings_place_under(const struct settings *settings, const struct node *root, struct slice name)
{
    const struct node *node = node_child(root, name);
    return node ? settings_place(settings, node) : (struct place){ settings->file, 0, 0 };
}

static struct place key_place(const struct settings *settings, const struct node *node)
{
    return (struct place){ settings->file, node->key_line, node->key_column };
}

struct place settings_place_of(const struct settings *settings, const void *field, struct place otherwise)
{
    size_t offset = (size_t)((const char *)field - (const char *)settings->root);
    for (const struct placed *placed = settings->placed ? *settings->placed : NULL; placed; placed = placed->next)
        if (placed->offset == offset)
            return strcmp(placed->place.file, settings->file) == 0 ? placed->place : otherwise;
    return otherwise;
}

bool settings_private(const struct settings *settings, const void *field)
{
    size_t offset = (size_t)((const char *)field - (const char *)settings->root);
    for (const struct placed *placed = settings->placed ? *settings->placed : NULL; placed; placed = placed->next)
        if (placed->offset == offset)
            return placed->private;
    return false;
}

static void *alloc_in(struct settings *settings, struct arena *arena, size_t count, size_t size)
{
    void *memory = arena_alloc_array(arena, count, size);
    if (!memory)
        settings->failed = true;
    return memory;
}

void *settings_alloc(struct settings *settings, size_t count, size_t size)
{
    return alloc_in(settings, settings->memory, count, size);
}

const char *settings_copy(struct settings *settings, struct slice text)
{
    const char *copy = arena_copy_text(settings->memory, text);
    if (!copy)
        settings->failed = true;
    return copy ? copy : "";
}

bool settings_over(const struct settings *settings)
{
    return settings->failed || settings->problems->count > PROBLEMS_MAX;
}

static void place_keep(struct settings *settings, const struct node *node, const void *field)
{
    if (!settings->placed)
        return;
    struct placed *placed = alloc_in(settings, settings->scratch, 1, sizeof *placed);
    if (!placed)
        return;
    *placed = (struct placed){ .offset = (size_t)((const char *)field - (const char *)settings->root),
                               .place = settings_place(settings, node),
                               .private = node->private,
                               .next = *settings->placed };
    *settings->placed = placed;
}

static bool kind_is_list(enum setting_kind kind)
{
    return kind == SETTING_TEXT_LIST || kind == SETTING_COUNT_LIST || kind == SETTING_RULES;
}

static enum node_kind kind_shape(enum setting_kind kind)
{
    if (kind_is_list(kind))
        return NODE_SEQUENCE;
    bool mapping = kind == SETTING_HEADERS || kind == SETTING_WEIGHTS || kind == SETTING_WORDS || kind == SETTING_SECTION;
    return mapping ? NODE_MAPPING : NODE_SCALAR;
}

/* `name` must be (how the kind looks), not (what is there). */
static void shape_problem(struct settings *settings, const struct setting *row, const struct node *node)
{
    struct buffer looks = buffer_up_to(QUOTED_BYTES_MAX * 4);
    kind_describe(row, &looks);
    problem_add(settings->problems, settings_place(settings, node), "%s must be %.*s, not %s", row->name,
                SLICE_ARG(buffer_slice(&looks)), node_kind_name(node));
    buffer_release(&looks);
}

/* The text of one item of a list or of a map's value; false when there is a problem. */
static bool item_text(struct settings *settings, const struct setting *row, const struct node *node, struct slice *ret_text)
{
    struct place place = settings_place(settings, node);
    if (node->broken)
        return false;
    if (node->kind != NODE_SCALAR)
        problem_add(settings->problems, place, "an item of %s must be text, not %s", row->name, node_kind_name(node));
    else if (node_is_null(node))
        problem_add(settings->problems, place, "an item of %s has no value; put it in quotes if the word is meant",
                    row->name);
    else if (node->value.len == 0)
        problem_add(settings->problems, place, "an item of %s is empty", row->name);
    else {
        const char *wrong = row->check ? row->check(node->value) : NULL;
        if (!wrong) {
            *ret_text = node->value;
            return true;
        }
        if (node->private || row->secret)
            problem_add(settings->problems, place, "an item of %s %s", row->name, wrong);
        else
            problem_add(settings->problems, place, "an item of %s is \"%s\"; it %s", row->name, quote(node->value).text,
                        wrong);
    }
    return false;
}

/* Room for `more` behind the first `count` items of `size` bytes, which are copied; NULL when there are too many. */
static void *list_grow(struct settings *settings, struct arena *arena, const struct setting *row, const struct node *node,
                       const void *items, size_t count, size_t size)
{
    size_t limit = node->kind == NODE_MAPPING ? PAIRS_MAX : LIST_ITEMS_MAX;
    if (count + node->count > limit) {
        problem_add(settings->problems, settings_place(settings, node), "%s has %zu items; the limit is %zu", row->name,
                    count + node->count, limit);
        return NULL;
    }
    void *grown = alloc_in(settings, arena, count + node->count + 1, size);
    if (grown && count > 0)
        memcpy(grown, items, count * size);
    return grown;
}

static void text_list_apply(struct settings *settings, const struct setting *row, const struct node *node, bool append,
                            struct text_list *list)
{
    struct text_list grown = { NULL, append ? list->count : 0 };
    struct slice text;
    grown.items = list_grow(settings, settings->memory, row, node, list->items, grown.count, sizeof *grown.items);
    if (!grown.items)
        return;
    for (const struct node *item = node->first; item; item = item->next)
        if (item_text(settings, row, item, &text))
            grown.items[grown.count++] = settings_copy(settings, text);
    *list = grown;
}

static void rules_apply(struct settings *settings, const struct setting *row, const struct node *node, bool append,
                        struct rule_list *list)
{
    struct rule_list grown = { NULL, append ? list->count : 0 };
    struct slice text;
    grown.items = list_grow(settings, settings->scratch, row, node, list->items, grown.count, sizeof *grown.items);
    if (!grown.items)
        return;
    for (const struct node *item = node->first; item; item = item->next)
        if (item_text(settings, row, item, &text)) /* the text is the document's, which lives as long */
            grown.items[grown.count++] = (struct rule_item){ text, settings_place(settings, item) };
    *list = grown;
}

static void count_list_apply(struct settings *settings, const struct setting *row, const struct node *node, bool append,
                             struct count_list *list)
{
    struct setting number = *row;
    struct count_list grown = { NULL, append ? list->count : 0 };
    struct value_problem why;
    struct slice text;
    number.kind = SETTING_COUNT;
    number.fallback = NULL; /* it is a list's */
    grown.items = list_grow(settings, settings->memory, row, node, list->items, grown.count, sizeof *grown.items);
    if (!grown.items)
        return;
    for (const struct node *item = node->first; item; item = item->next) {
        if (!item_text(settings, row, item, &text))
            continue;
        if (value_read(settings, &number, text, !item->private, &grown.items[grown.count], &why))
            grown.count++;
        else
            problem_add(settings->problems, settings_place(settings, item), "an item of %s", why.text);
    }
    *list = grown;
}

static const char *header_name_wrong(struct slice name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!ascii_is_alnum(name.data[i]) && !strchr("!#$%&'*+-.^_`|~", name.data[i]))
            return "must have only letters, digits and -";
    return name.len == 0 ? "must not be empty" : NULL;
}

/* A line break in a header would be a header of its own. */
static bool header_value_ok(struct slice value)
{
    return slice_find(value, '\r') == value.len && slice_find(value, '\n') == value.len;
}

/* Checks one pair; the value of a header may be empty. */
static bool pair_check(struct settings *settings, const struct setting *row, const struct node *node)
{
    struct place place = settings_place(settings, node);
    struct value_problem why;
    if (node->broken)
        return false;
    if (node->kind != NODE_SCALAR || node_is_null(node)) {
        problem_add(settings->problems, place, "\"%s\" in %s must have a value", quote(node->key).text, row->name);
        return false;
    }
    if (row->kind == SETTING_HEADERS) {
        const char *wrong = header_name_wrong(node->key);
        if (wrong)
            problem_add(settings->problems, key_place(settings, node), "the name \"%s\" in %s %s", quote(node->key).text,
                        row->name, wrong);
        else if (!header_value_ok(node->value))
            problem_add(settings->problems, place, "the value of \"%s\" in %s has a line break", quote(node->key).text,
                        row->name);
        else
            return true;
        return false;
    }
    struct setting number = *row;
    int64_t value;
    number.kind = SETTING_COUNT;
    struct quoted name = quote(node->key);
    number.name = name.text;
    if (value_read(settings, &number, node->value, !node->private, &value, &why))
        return true;
    problem_add(settings->problems, place, "in %s %s", row->name, why.text);
    return false;
}

/* What was there stays; equal names are replaced. */
static void pairs_apply(struct settings *settings, const struct setting *row, const struct node *node,
                        struct pair_list *list)
{
    struct pair_list grown = { NULL, list->count };
    grown.items = list_grow(settings, settings->memory, row, node, list->items, list->count, sizeof *grown.items);
    if (!grown.items)
        return;
    for (const struct node *item = node->first; item; item = item->next) {
        if (!pair_check(settings, row, item))
            continue;
        size_t at = 0;
        while (at < grown.count &&
               !(row->kind == SETTING_HEADERS ? slice_equal_nocase(slice_from(grown.items[at].name), item->key)
                                              : slice_equal(slice_from(grown.items[at].name), item->key)))
            at++;
        if (at == grown.count)
            grown.count++;
        grown.items[at].name = settings_copy(settings, item->key);
        grown.items[at].value = settings_copy(settings, item->value);
    }
    *list = grown;
}

static void words_apply(struct settings *settings, const struct setting *row, const struct node *node, const char **words)
{
    struct slice text;
    for (const struct node *item = node->first; item; item = item->next) {
        enum job_state state = job_state_from_name(item->key);
        if (state == STATE_NONE)
            problem_add(settings->problems, key_place(settings, item),
                        "\"%s\" in %s is no state; they are pending, running, waiting, completed, dead and cancelled",
                        quote(item->key).text, row->name);
        else if (item_text(settings, row, item, &text))
            words[state] = settings_copy(settings, text);
    }
}

static void scalar_apply(struct settings *settings, const struct setting *row, const struct node *node, void *field)
{
    struct value_problem why;
    struct buffer looks = buffer_up_to(QUOTED_BYTES_MAX * 4);
    if (!node_is_null(node)) {
        if (!value_read(settings, row, node->value, !node->private, field, &why))
            problem_add(settings->problems, settings_place(settings, node), "%s", why.text);
        return;
    }
    kind_describe(row, &looks);
    problem_add(settings->problems, settings_place(settings, node), "%s has no value; write %.*s, or remove the line",
                row->name, SLICE_ARG(buffer_slice(&looks)));
    buffer_release(&looks);
}

static const struct setting *row_find(const struct section *section, struct slice name)
{
    for (size_t i = 0; i < section->count; i++)
        if (slice_equal(name, slice_from(section->rows[i].name)))
            return &section->rows[i];
    return NULL;
}

/* `concurrency: 10` is `concurrency: { max: 10 }`; what is wrong with it is reported by the name that was written. */
static void alone_apply(struct settings *settings, const struct setting *row, const struct node *node, void *base)
{
    struct setting alone = *row_find(row->section, slice_from(row->section->alone));
    void *field = (char *)base + alone.offset;
    alone.name = row->name;
    place_keep(settings, node, field);
    scalar_apply(settings, &alone, node, field);
}

static const char *item_name(const char *item)
{
    const char *name;
    memcpy(&name, item, sizeof name);
    return name;
}

/* The item behind `count` others, as one of them; it may not have a name that one of them has. */
static void item_apply(struct settings *settings, const struct section *section, const struct node *node, char *items,
                       size_t count)
{
    struct settings own = *settings;
    struct place place = settings_place(settings, node);
    char *item = items + count * section->item.size;
    if (node->kind != NODE_MAPPING) {
        problem_add(settings->problems, place, "an item of %s must be settings such as { %s }, not %s", section->name,
                    section->item.example, node_kind_name(node));
        return;
    }
    own.placed = NULL;
    settings_default(&own, section, item);
    settings_apply(&own, section, node, item);
    section->item.check(&own, item, place);
    const char *name = section->item.named ? item_name(item) : NULL;
    const char *other = items;
    while (name && other < item && (!item_name(other) || strcmp(item_name(other), name) != 0))
        other += section->item.size;
    if (name && other < item)
        problem_add(settings->problems, place, "two items of %s are called \"%s\"", section->name, name);
    settings->failed = settings->failed || own.failed;
}

static void items_apply(struct settings *settings, const struct setting *row, const struct node *node, char *base)
{
    const struct section *section = row->section;
    size_t count = 0;
    char *items = NULL;
    if (node->kind != NODE_SEQUENCE && !node_is_null(node))
        problem_add(settings->problems, settings_place(settings, node), "%s must be a list such as [{ %s }], not %s",
                    section->name, section->item.example, node_kind_name(node));
    else if (node->count > section->item.max)
        problem_add(settings->problems, settings_place(settings, node), "%s has %zu items; the limit is %zu", section->name,
                    node->count, section->item.max);
    else
        items = settings_alloc(settings, node->count + 1, section->item.size);
    for (const struct node *child = node->first; child && items && !settings_over(settings); child = child->next)
        item_apply(settings, section, child, items, count++);
    memcpy(base + row->offset, &items, sizeof items);
    memcpy(base + row->count_at, &count, sizeof count);
}

static void row_apply(struct settings *settings, const struct setting *row, const struct node *node, bool append, void *base)
{
    void *field = (char *)base + row->offset;
    enum node_kind shape = kind_shape(row->kind);
    if (node->broken)
        return;
    if (row->kind != SETTING_SECTION)
        place_keep(settings, node, field);
    if (row->kind == SETTING_SPECIAL) {
        row->special(settings, node, field);
        return;
    }
    if (row->kind == SETTING_ITEMS) {
        items_apply(settings, row, node, base);
        return;
    }
    if (row->kind == SETTING_SECTION && row->section->alone && node->kind == NODE_SCALAR) {
        alone_apply(settings, row, node, field);
        return;
    }
    if (shape == NODE_SEQUENCE && node_is_null(node)) {
        problem_add(settings->problems, settings_place(settings, node),
                    "%s has no items; write [] for an empty list, or remove the line", row->name);
        return;
    }
    if (node->kind != shape && !(shape == NODE_MAPPING && node_is_null(node))) {
        shape_problem(settings, row, node);
        return;
    }
    switch (row->kind) {
    case SETTING_TEXT_LIST:
        text_list_apply(settings, row, node, append, field);
        break;
    case SETTING_COUNT_LIST:
        count_list_apply(settings, row, node, append, field);
        break;
    case SETTING_RULES:
        rules_apply(settings, row, node, append, field);
        break;
    case SETTING_HEADERS:
    case SETTING_WEIGHTS:
        pairs_apply(settings, row, node, field);
        break;
    case SETTING_WORDS:
        words_apply(settings, row, node, field);
        break;
    case SETTING_SECTION:
        settings_apply(settings, row->section, node, field);
        break;
    default:
        scalar_apply(settings, row, node, field);
        break;
    }
}

static void unknown_problem(struct settings *settings, const struct section *section, const struct node *node)
{
    struct nearest nearest = { .wanted = node->key };
    char where[QUOTED_BYTES_MAX * 2 + 8] = "";
    for (size_t i = 0; i < section->count; i++)
        nearest_offer(&nearest, section->rows[i].name);
    if (section->name[0] || settings->subject)
        snprintf(where, sizeof where, " in %s", section->name[0] ? section->name : settings->subject);
    if (nearest.name)
        problem_add(settings->problems, key_place(settings, node), "unknown setting \"%s\"%s; did you mean \"%s\"?",
                    quote(node->key).text, where, nearest.name);
    else
        problem_add(settings->problems, key_place(settings, node), "unknown setting \"%s\"%s", quote(node->key).text, where);
}

/* A key with a "+" at its end: only a list can be added to, and not beside the list itself. */
static bool append_check(struct settings *settings, const struct setting *row, const struct node *mapping,
                         const struct node *node)
{
    if (!kind_is_list(row->kind))
        problem_add(settings->problems, key_place(settings, node), "\"%s\": only lists take a +; write %s",
                    quote(node->key).text, row->name);
    else if (node_child(mapping, slice_from(row->name)))
        problem_add(settings->problems, key_place(settings, node), "%s is there beside %s+; write one of them", row->name,
                    row->name);
    else
        return true;
    return false;
}

void settings_apply(struct settings *settings, const struct section *section, const struct node *mapping, void *base)
{
    if (section->given) {
        *section->given(base) = true;
        place_keep(settings, mapping, section->given(base));
    }
    for (const struct node *node = mapping->first; node && !settings_over(settings); node = node->next) {
        bool append = slice_has_suffix(node->key, SLICE("+"));
        struct slice name = { node->key.data, node->key.len - (append ? 1 : 0) };
        const struct setting *row = row_find(section, name);
        if (!row)
            unknown_problem(settings, section, node);
        else if (!append || append_check(settings, row, mapping, node))
            row_apply(settings, row, node, append, base);
    }
    if (section->after && !settings->failed)
        section->after(settings, mapping, base);
}

/* A default list is written as "a, b". */
static void list_default(struct settings *settings, const struct setting *row, void *field)
{
    struct node sequence = { .kind = NODE_SEQUENCE };
    struct node items[8];
    struct slice rest = slice_from(row->fallback);
    while (rest.len > 0) {
        size_t comma = slice_find(rest, ',');
        struct slice text = slice_trim((struct slice){ rest.data, comma });
        assert(sequence.count < sizeof items / sizeof *items);
        items[sequence.count] = (struct node){ .kind = NODE_SCALAR, .value = text };
        if (sequence.count > 0)
            items[sequence.count - 1].next = &items[sequence.count];
        sequence.count++;
        rest = slice_from_offset(rest, comma + 1);
    }
    sequence.first = sequence.count > 0 ? items : NULL;
    if (row->kind == SETTING_TEXT_LIST)
        text_list_apply(settings, row, &sequence, false, field);
    else
        count_list_apply(settings, row, &sequence, false, field);
}

void settings_default(struct settings *settings, const struct section *section, void *base)
{
    for (size_t i = 0; i < section->count; i++) {
        const struct setting *row = &section->rows[i];
        void *field = (char *)base + row->offset;
        struct value_problem why;
        if (row->kind == SETTING_SECTION)
            settings_default(settings, row->section, field);
        else if (!row->fallback || row->kind == SETTING_SPECIAL)
            continue;
        else if (kind_is_list(row->kind))
            list_default(settings, row, field);
        else {
            bool reads = value_read(settings, row, slice_from(row->fallback), true, field, &why);
            assert(reads); /* a default in the tables is a value of its kind */
            (void)reads;
        }
    }
}
