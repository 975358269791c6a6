#include "config/document.h"

#include "base/hash.h"
#include "base/map.h"

#include <string.h>
#include <yaml.h>

struct reader {
    yaml_parser_t parser;
    struct slice text;
    const char *file;
    struct arena *arena;
    struct problems *problems;
    size_t nodes;
};

static struct place mark_place(const struct reader *reader, yaml_mark_t mark)
{
    return (struct place){ reader->file, mark.line + 1, mark.column + 1 };
}

/* libyaml gives only the offset of bytes that are no text at all. */
static struct place offset_place(const struct reader *reader, size_t offset)
{
    struct place place = { reader->file, 1, 1 };
    for (size_t i = 0; i < offset && i < reader->text.len; i++) {
        unsigned char byte = (unsigned char)reader->text.data[i];
        if (byte == '\n') {
            place.line++;
            place.column = 1;
        } else if ((byte & 0xc0) != 0x80) {
            place.column++;
        }
    }
    return place;
}

static bool is_indented_by_tab(struct slice text, size_t line)
{
    size_t at = 0;
    for (; at < text.len && line > 0; at++)
        line -= text.data[at] == '\n';
    while (at < text.len && text.data[at] == ' ')
        at++;
    return at < text.len && text.data[at] == '\t';
}

/* What libyaml says of "store: memory:" or of a tab helps nobody. */
static const char *problem_hint(const struct reader *reader, const char *problem)
{
    if (strcmp(problem, "mapping values are not allowed in this context") == 0)
        return "; a value with a colon at its end or before a space must be in quotes";
    bool tab = strcmp(problem, "found character that cannot start any token") == 0 &&
               is_indented_by_tab(reader->text, reader->parser.problem_mark.line);
    return tab ? "; it is a tab: indent with spaces" : "";
}

static enum status parser_problem(struct reader *reader)
{
    const yaml_parser_t *parser = &reader->parser;
    const char *problem = parser->problem ? parser->problem : "this is not YAML";
    if (parser->error == YAML_MEMORY_ERROR)
        return STATUS_NO_MEMORY;
    if (parser->error == YAML_READER_ERROR)
        problem_add(reader->problems, offset_place(reader, parser->problem_offset), "%s", problem);
    else if (parser->context)
        problem_add(reader->problems, mark_place(reader, parser->problem_mark), "%s, %s that starts on line %zu%s", problem,
                    parser->context, parser->context_mark.line + 1, problem_hint(reader, problem));
    else
        problem_add(reader->problems, mark_place(reader, parser->problem_mark), "%s%s", problem,
                    problem_hint(reader, problem));
    return STATUS_INVALID;
}

static enum status event_next(struct reader *reader, yaml_event_t *event)
{
    memset(event, 0, sizeof *event);
    return yaml_parser_parse(&reader->parser, event) ? STATUS_OK : parser_problem(reader);
}

static enum status refuse(struct reader *reader, yaml_mark_t mark, enum status status, const char *text)
{
    problem_add(reader->problems, mark_place(reader, mark), "%s", text);
    return status;
}

static enum status node_new(struct reader *reader, const yaml_event_t *event, enum node_kind kind, struct node **ret_node)
{
    if (++reader->nodes > DOCUMENT_NODES_MAX)
        return refuse(reader, event->start_mark, STATUS_LIMIT, "the file has too many values; the limit is 500000");
    struct node *node = arena_alloc(reader->arena, sizeof *node);
    if (!node)
        return STATUS_NO_MEMORY;
    node->kind = kind;
    node->line = (uint32_t)event->start_mark.line + 1;
    node->column = (uint32_t)event->start_mark.column + 1;
    *ret_node = node;
    return STATUS_OK;
}

/* Anchors and tags are the same in all three kinds of event, but libyaml gives each its own struct. */
static const char *event_extras(const yaml_event_t *event)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;
    if (event->type == YAML_SCALAR_EVENT) {
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
    }
    if (anchor)
        return "anchors (&name) are not supported; put shared settings into a preset file";
    return tag ? "tags (!name) are not supported; write the plain value" : NULL;
}

static enum status read_value(struct reader *reader, yaml_event_t *event, int depth, struct node **ret_node);

static enum status scalar_copy(struct reader *reader, const yaml_event_t *event, struct slice *ret_text)
{
    struct slice text = { (const char *)event->data.scalar.value, event->data.scalar.length };
    if (slice_find(text, '\0') < text.len)
        return refuse(reader, event->start_mark, STATUS_INVALID, "the value has a NUL character");
    *ret_text = arena_copy(reader->arena, text);
    return ret_text->data ? STATUS_OK : STATUS_NO_MEMORY;
}

static enum status read_sequence(struct reader *reader, struct node *sequence, int depth)
{
    struct node **link = &sequence->first;
    for (;;) {
        yaml_event_t event;
        enum status status = event_next(reader, &event);
        if (status != STATUS_OK || event.type == YAML_SEQUENCE_END_EVENT) {
            yaml_event_delete(&event);
            return status;
        }
        status = read_value(reader, &event, depth, link);
        yaml_event_delete(&event);
        if (status != STATUS_OK)
            return status;
        link = &(*link)->next;
        sequence->count++;
    }
}

/* Reads "key: value" whose key is `event`. A repeated key is a problem; its value is left out (*ret_node is NULL). */
static enum status read_pair(struct reader *reader, const yaml_event_t *event, int depth, struct map *seen,
                             struct node **ret_node)
{
    struct slice key;
    if (event->type == YAML_ALIAS_EVENT)
        return refuse(reader, event->start_mark, STATUS_INVALID, "aliases (*name) are not supported");
    if (event->type != YAML_SCALAR_EVENT)
        return refuse(reader, event->start_mark, STATUS_INVALID, "a key must be a plain word, not a list or a mapping");
    if (event_extras(event))
        return refuse(reader, event->start_mark, STATUS_INVALID, event_extras(event));
    enum status status = scalar_copy(reader, event, &key);
    if (status != STATUS_OK)
        return status;

    yaml_event_t value;
    struct node *node;
    status = event_next(reader, &value);
    if (status == STATUS_OK)
        status = read_value(reader, &value, depth, &node);
    yaml_event_delete(&value);
    if (status != STATUS_OK)
        return status;
    node->key = key;
    node->key_line = (uint32_t)event->start_mark.line + 1;
    node->key_column = (uint32_t)event->start_mark.column + 1;
    const struct node *other = map_get(seen, key);
    *ret_node = other ? NULL : node;
    if (other)
        problem_add(reader->problems, mark_place(reader, event->start_mark),
                    "\"%s\" is given twice; it stands on line %u too", quote(key).text, other->key_line);
    else if (map_put(seen, key, node) != STATUS_OK)
        return STATUS_NO_MEMORY;
    return STATUS_OK;
}

static enum status read_mapping(struct reader *reader, struct node *mapping, int depth)
{
    enum status status;
    struct node **link = &mapping->first;
    struct map seen;
    map_init(&seen, (uint64_t)(uintptr_t)mapping);
    for (;;) {
        yaml_event_t event;
        status = event_next(reader, &event);
        bool end = event.type == YAML_MAPPING_END_EVENT;
        if (status == STATUS_OK && !end)
            status = read_pair(reader, &event, depth, &seen, link);
        yaml_event_delete(&event);
        if (status != STATUS_OK || end)
            break;
        if (!*link)
            continue;
        link = &(*link)->next;
        mapping->count++;
    }
    map_release(&seen);
    return status;
}

static enum status read_value(struct reader *reader, yaml_event_t *event, int depth, struct node **ret_node)
{
    struct node *node = NULL;
    enum status status;
    if (event->type == YAML_ALIAS_EVENT)
        return refuse(reader, event->start_mark, STATUS_INVALID,
                      "aliases (*name) are not supported; put shared settings into a preset file");
    if (event_extras(event))
        return refuse(reader, event->start_mark, STATUS_INVALID, event_extras(event));
    if (depth >= DOCUMENT_DEPTH_MAX)
        return refuse(reader, event->start_mark, STATUS_LIMIT, "the file is nested too deeply; the limit is 24 levels");

    if (event->type == YAML_SCALAR_EVENT) {
        status = node_new(reader, event, NODE_SCALAR, &node);
        if (status == STATUS_OK)
            status = scalar_copy(reader, event, &node->value);
        if (status == STATUS_OK)
            node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        status = node_new(reader, event, NODE_SEQUENCE, &node);
        if (status == STATUS_OK)
            status = read_sequence(reader, node, depth + 1);
    } else {
        status = node_new(reader, event, NODE_MAPPING, &node);
        if (status == STATUS_OK)
            status = read_mapping(reader, node, depth + 1);
    }
    if (status == STATUS_OK)
        *ret_node = node;
    return status;
}

/* The root, or NULL for a stream without a document. */
static enum status read_stream(struct reader *reader, struct node **ret_root)
{
    struct node *root = NULL;
    for (;;) {
        yaml_event_t event;
        enum status status = event_next(reader, &event);
        yaml_event_type_t type = event.type;
        if (status == STATUS_OK && type == YAML_DOCUMENT_START_EVENT && root)
            status = refuse(reader, event.start_mark, STATUS_INVALID, "a second document starts here; a file has only one");
        else if (status == STATUS_OK && (type == YAML_SCALAR_EVENT || type == YAML_SEQUENCE_START_EVENT ||
                                         type == YAML_MAPPING_START_EVENT || type == YAML_ALIAS_EVENT))
            status = read_value(reader, &event, 0, &root);
        yaml_event_delete(&event);
        if (status != STATUS_OK)
            return status;
        if (type == YAML_STREAM_END_EVENT)
            break;
    }
    *ret_root = root;
    return STATUS_OK;
}

static enum status root_check(struct reader *reader, struct node **root)
{
    if (!*root || node_is_null(*root)) {
        struct node *empty = arena_alloc(reader->arena, sizeof *empty);
        if (!empty)
            return STATUS_NO_MEMORY;
        *empty = (struct node){ .kind = NODE_MAPPING, .line = 1, .column = 1 };
        *root = empty;
        return STATUS_OK;
    }
    if ((*root)->kind == NODE_MAPPING)
        return STATUS_OK;
    problem_add(reader->problems, (struct place){ reader->file, (*root)->line, (*root)->column },
                "the file must be a mapping such as \"name: value\", not %s", node_kind_name(*root));
    return STATUS_INVALID;
}

/* libyaml looks at all earlier %TAG lines at each: a few thousand of them would take it minutes. */
static bool has_tag_directives(struct slice text)
{
    struct slice directive = SLICE("%TAG");
    for (size_t start = 0; start < text.len; start++) {
        if (slice_has_prefix(slice_from_offset(text, start), directive))
            return true;
        start += slice_find(slice_from_offset(text, start), '\n');
    }
    return false;
}

enum status document_parse(struct slice text, const char *file, struct arena *arena, struct problems *problems,
                           struct node **ret_root)
{
    struct reader reader = { .text = text, .file = file, .arena = arena, .problems = problems };
    struct node *root = NULL;
    if (text.len > DOCUMENT_BYTES_MAX) {
        problem_add(problems, (struct place){ .file = file }, "the file has %zu bytes; the limit is %d", text.len,
                    DOCUMENT_BYTES_MAX);
        return STATUS_LIMIT;
    }
    if (has_tag_directives(text)) {
        problem_add(problems, (struct place){ .file = file }, "a line starts with %%TAG; tags are not supported");
        return STATUS_INVALID;
    }
    if (!yaml_parser_initialize(&reader.parser))
        return STATUS_NO_MEMORY;
    yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)(text.data ? text.data : ""), text.len);
    enum status status = read_stream(&reader, &root);
    if (status == STATUS_OK)
        status = root_check(&reader, &root);
    yaml_parser_delete(&reader.parser);
    if (status == STATUS_OK)
        *ret_root = root;
    return status;
}

bool node_is_null(const struct node *node)
{
    return node->kind == NODE_SCALAR && node->plain && !node->private &&
           (node->value.len == 0 || slice_equal(node->value, SLICE("~")) || slice_equal_nocase(node->value, SLICE("null")));
}

const char *node_kind_name(const struct node *node)
{
    static const char *const names[] = { [NODE_SCALAR] = "text", [NODE_SEQUENCE] = "a list", [NODE_MAPPING] = "a mapping" };
    return names[node->kind];
}

const struct node *node_child(const struct node *mapping, struct slice key)
{
    for (const struct node *child = mapping->first; child; child = child->next)
        if (slice_equal(child->key, key))
            return child;
    return NULL;
}

static bool is_among(struct slice name, const char *const *names)
{
    for (size_t i = 0; names && names[i]; i++)
        if (slice_equal(name, slice_from(names[i])))
            return true;
    return false;
}

uint64_t node_digest(const struct node *node, const char *const *without)
{
    uint64_t digest = (uint64_t)node->kind + 1;
    if (node->kind == NODE_SCALAR)
        return hash_slice(digest, node_is_null(node), node->value);
    for (const struct node *child = node->first; child; child = child->next) {
        uint64_t of = is_among(child->key, without) ? 0 : node_digest(child, NULL);
        if (node->kind == NODE_SEQUENCE)
            digest = hash_slice(digest, of, SLICE(""));
        else if (of != 0)
            digest += hash_slice(of, 0, child->key);
    }
    return digest;
}
