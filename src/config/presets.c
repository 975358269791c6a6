#include "base/embedded.h"
#include "config/expand.h"
#include "config/loading.h"

#include <string.h>

enum { PATH_BYTES_MAX = 4096 };

struct preset_entry {
    struct destination_draft draft;
    bool reading; /* its parents are being read: asking for it now is a circle */
    bool broken;  /* its problems are reported */
};

/* Where the text of a preset comes from. */
struct preset_source {
    const char *file; /* for messages */
    struct slice folder;
    struct slice text;
    struct buffer content; /* of a file */
};

const char *preset_name(size_t index)
{
    for (size_t i = 0; i <= index; i++)
        if (!embedded_presets[i].name)
            return NULL;
    return embedded_presets[index].stem;
}

enum status preset_text(struct slice name, struct slice *ret_text, struct error *err)
{
    struct nearest nearest = { .wanted = name };
    for (const struct embedded_file *file = embedded_presets; file->name; file++) {
        if (slice_equal(name, slice_from(file->stem))) {
            *ret_text = (struct slice){ file->data, file->len };
            return STATUS_OK;
        }
        nearest_offer(&nearest, file->stem);
    }
    if (nearest.name)
        return error_set(err, STATUS_NOT_FOUND, "there is no preset \"%s\"; did you mean \"%s\"?", quote(name).text,
                         nearest.name);
    return error_set(err, STATUS_NOT_FOUND, "there is no preset \"%s\"; \"insist presets\" lists them", quote(name).text);
}

static bool is_path(struct slice name)
{
    return slice_find(name, '/') < name.len || slice_has_suffix(name, SLICE(".yaml")) ||
           slice_has_suffix(name, SLICE(".yml"));
}

/* What the preset is known by: a built-in's name as it is, a file by its path. */
static const char *preset_key(struct loading *loading, struct slice name, struct slice folder)
{
    char path[PATH_BYTES_MAX];
    if (!is_path(name) || name.data[0] == '/')
        folder = SLICE("");
    /* The same file by the same key, but "./http" in no folder must not become the built-in http. */
    while (slice_has_prefix(name, SLICE("./")) && (folder.len > 0 || is_path(slice_from_offset(name, 2))))
        name = slice_from_offset(name, 2);
    if (folder.len + name.len >= sizeof path)
        return NULL;
    memcpy(path, folder.data, folder.len);
    memcpy(path + folder.len, name.data, name.len);
    return arena_copy_text(&loading->scratch, (struct slice){ path, folder.len + name.len });
}

/* False when there is a problem, which is reported. */
static bool source_open(struct loading *loading, const char *key, struct slice name, struct place place,
                        struct preset_source *source)
{
    struct error err;
    buffer_init(&source->content, 0);
    if (is_path(slice_from(key))) {
        source->file = key;
        source->folder = path_folder(key);
        if (file_read(key, DOCUMENT_BYTES_MAX, true, &source->content, &err) != STATUS_OK) {
            problem_add(&loading->problems, place, "the preset file \"%s\" cannot be read: %s", quote(name).text,
                        err.text);
            return false;
        }
        source->text = buffer_slice(&source->content);
        return true;
    }
    struct buffer file = buffer_up_to(PATH_BYTES_MAX + 32);
    buffer_printf(&file, "presets/%s.yaml", key);
    source->folder = SLICE("");
    source->file = arena_copy_text(&loading->scratch, buffer_slice(&file));
    buffer_release(&file);
    if (!source->file) {
        loading->failed = true;
        return false;
    }
    if (preset_text(slice_from(key), &source->text, &err) == STATUS_OK)
        return true;
    problem_add(&loading->problems, place, "%s", err.text);
    return false;
}

static const struct destination_draft *preset_read(struct loading *loading, struct slice name, struct slice folder,
                                                   struct place place, int depth);

/* Applies a preset's own mapping onto what it extends. */
static bool preset_apply(struct loading *loading, const struct preset_source *source, const struct node *root, int depth,
                         struct destination_draft *draft)
{
    struct settings settings = loading_settings(loading, source->file, source->folder, draft);
    const struct node *extends = node_child(root, SLICE("extends"));
    const struct node *preset = node_child(root, SLICE("preset"));
    *draft = loading->defaults;
    if (extends && extends->kind == NODE_SCALAR && !extends->broken && extends->value.len > 0) {
        const struct destination_draft *parent =
            preset_read(loading, extends->value, source->folder, settings_place(&settings, extends), depth + 1);
        if (!parent)
            return false;
        *draft = *parent;
    }
    settings.placed = &draft->placed;
    if (preset)
        problem_add(&loading->problems, settings_place(&settings, preset),
                    "a preset starts from another with extends, not preset");
    settings_apply(&settings, &destination_section, root, draft);
    draft->config.preset = NULL;
    loading->failed = loading->failed || settings.failed;
    return !loading->failed;
}

static bool preset_load(struct loading *loading, const char *key, struct slice name, struct place place, int depth,
                        struct destination_draft *draft)
{
    struct preset_source source;
    struct node *root;
    size_t before = loading->problems.count;
    bool ok = source_open(loading, key, name, place, &source);
    if (ok) {
        enum status status = document_parse(source.text, source.file, &loading->scratch, &loading->problems, &root);
        if (status == STATUS_OK)
            status = document_expand(root, source.file, source.folder, &loading->scratch, loading->memory,
                                     &loading->problems);
        if (status == STATUS_NO_MEMORY)
            loading->failed = true;
        ok = status == STATUS_OK && preset_apply(loading, &source, root, depth, draft);
    }
    buffer_release(&source.content);
    return ok && loading->problems.count == before;
}

static const struct destination_draft *preset_read(struct loading *loading, struct slice name, struct slice folder,
                                                   struct place place, int depth)
{
    const char *key = preset_key(loading, name, folder);
    struct preset_entry *entry = key ? map_get(&loading->presets, slice_from(key)) : NULL;
    if (entry && entry->reading)
        problem_add(&loading->problems, place, "the preset \"%s\" extends itself", quote(name).text);
    else if (entry && entry->broken)
        problem_add(&loading->problems, place, "the preset \"%s\" has problems", quote(name).text);
    else if (depth > EXTENDS_DEPTH_MAX)
        problem_add(&loading->problems, place, "presets extend each other more than %d deep", EXTENDS_DEPTH_MAX);
    else if (entry)
        return &entry->draft;
    if (entry || depth > EXTENDS_DEPTH_MAX)
        return NULL;

    entry = key ? arena_alloc(&loading->scratch, sizeof *entry) : NULL;
    if (!entry || map_put(&loading->presets, slice_from(key), entry) != STATUS_OK) {
        loading->failed = true;
        return NULL;
    }
    entry->reading = true;
    entry->broken = !preset_load(loading, key, name, place, depth, &entry->draft);
    entry->reading = false;
    return entry->broken ? NULL : &entry->draft;
}

const struct destination_draft *preset_draft(struct loading *loading, struct slice name, struct slice folder,
                                             struct place place)
{
    return preset_read(loading, name, folder, place, 0);
}
