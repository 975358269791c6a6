#include "config/expand.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_BYTES_MAX = 255, PATH_BYTES_MAX = 4096 };

struct expansion {
    const char *file;
    struct slice folder;
    struct arena *arena;
    struct arena *secrets_memory;
    struct problems *problems;
    size_t expanded_bytes; /* in all: one small file can be named very often */
    struct buffer text;
};

static enum status read_all(int fd, const char *path, size_t limit, struct buffer *content, struct error *err)
{
    for (;;) {
        size_t room = limit - content->len + 1; /* one more byte tells that there is more */
        char *target = buffer_reserve(content, room < 65536 ? room : 65536);
        if (!target)
            return error_set(err, STATUS_NO_MEMORY, "no memory to read %s", path);
        ssize_t got = read(fd, target, room < 65536 ? room : 65536);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_set(err, STATUS_IO, "%s", strerror(errno));
        if (got == 0)
            return STATUS_OK;
        buffer_commit(content, (size_t)got);
        if (content->len > limit)
            return error_set(err, STATUS_LIMIT, "it has more than %zu bytes", limit);
    }
}

enum status file_read(const char *path, size_t limit, bool regular_only, struct buffer *ret_content, struct error *err)
{
    /* Not blocking: opening a pipe without a writer would wait for ever. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | (regular_only ? O_NONBLOCK : 0));
    if (fd < 0)
        return error_set(err, STATUS_IO, "%s", strerror(errno));
    struct stat info;
    enum status status;
    buffer_init(ret_content, limit + 1);
    if (fstat(fd, &info) != 0)
        status = error_set(err, STATUS_IO, "%s", strerror(errno));
    else if (S_ISDIR(info.st_mode))
        status = error_set(err, STATUS_IO, "it is a folder");
    else if (regular_only && !S_ISREG(info.st_mode))
        status = error_set(err, STATUS_IO, "it is not a regular file");
    else
        status = read_all(fd, path, limit, ret_content, err);
    close(fd);
    if (status != STATUS_OK)
        buffer_release(ret_content);
    return status;
}

struct slice path_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (struct slice){ path, (size_t)(slash - path) + 1 } : SLICE("");
}

/* Memory that is out is found by what comes next. */
static void secret_keep(struct expansion *expansion, struct slice value, struct slice shown)
{
    if (value.len < SECRET_BYTES_MIN)
        return;
    struct secret *secret = arena_alloc(expansion->secrets_memory, sizeof *secret);
    if (!secret)
        return;
    *secret = (struct secret){ .value = arena_copy(expansion->secrets_memory, value),
                               .shown = arena_copy(expansion->secrets_memory, shown),
                               .next = expansion->problems->secrets };
    if (secret->value.data && secret->shown.data)
        expansion->problems->secrets = secret;
}

static bool name_is_ok(struct slice name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!ascii_is_alnum(name.data[i]) && name.data[i] != '_')
            return false;
    return name.len > 0 && name.len <= NAME_BYTES_MAX && !ascii_is_digit(name.data[0]);
}

static void file_keep(struct expansion *expansion, const char *path)
{
    struct secret_file *file = arena_alloc(expansion->secrets_memory, sizeof *file);
    const char *copy = file ? arena_copy_text(expansion->secrets_memory, slice_from(path)) : NULL;
    if (!copy)
        return; /* it is read all the same, but not watched */
    *file = (struct secret_file){ .path = copy, .next = expansion->problems->files };
    expansion->problems->files = file;
}

/* The content of a file without its last line break. False when there is a problem. */
static bool fill_file(struct expansion *expansion, struct slice path, struct place place)
{
    char full[PATH_BYTES_MAX];
    struct buffer content;
    struct error err;
    struct slice folder = path.len > 0 && path.data[0] == '/' ? SLICE("") : expansion->folder;
    if (path.len == 0 || folder.len + path.len >= sizeof full) {
        problem_add(expansion->problems, place, "${file:} needs a path of up to %d bytes", PATH_BYTES_MAX - 1);
        return false;
    }
    memcpy(full, folder.data, folder.len);
    memcpy(full + folder.len, path.data, path.len);
    full[folder.len + path.len] = '\0';
    if (file_read(full, REFERENCE_BYTES_MAX, true, &content, &err) != STATUS_OK) {
        problem_add(expansion->problems, place, "${file:%s} cannot be read: %s", quote(path).text, err.text);
        return false;
    }
    struct slice text = buffer_slice(&content);
    bool clean = slice_find(text, '\0') == text.len;
    if (slice_has_suffix(text, SLICE("\n")))
        text.len -= slice_has_suffix(text, SLICE("\r\n")) ? 2 : 1;
    if (clean) {
        buffer_append(&expansion->text, text);
        file_keep(expansion, full);
    } else
        problem_add(expansion->problems, place, "${file:%s} has a NUL byte", quote(path).text);
    buffer_release(&content);
    return clean;
}

static bool fill_variable(struct expansion *expansion, struct slice name, const struct slice *otherwise, struct place place)
{
    char terminated[NAME_BYTES_MAX + 1];
    memcpy(terminated, name.data, name.len);
    terminated[name.len] = '\0';
    const char *value = getenv(terminated);
    if (otherwise && (!value || value[0] == '\0')) {
        buffer_append(&expansion->text, *otherwise);
        return true;
    }
    if (!value)
        problem_add(expansion->problems, place, "the environment has no %s; set it, or write ${%s:-default}", terminated,
                    terminated);
    else
        buffer_append_text(&expansion->text, value);
    return value != NULL;
}

/* `reference` is what stands between the braces. */
static bool fill_reference(struct expansion *expansion, struct slice reference, struct place place)
{
    if (slice_has_prefix(reference, SLICE("file:")))
        return fill_file(expansion, slice_from_offset(reference, 5), place);
    size_t dash = slice_search(reference, SLICE(":-"));
    struct slice name = { reference.data, dash };
    struct slice otherwise = slice_from_offset(reference, dash + 2);
    if (name_is_ok(name))
        return fill_variable(expansion, name, dash < reference.len ? &otherwise : NULL, place);
    problem_add(expansion->problems, place,
                "\"${%s}\" is no reference; write ${NAME}, ${NAME:-default} or ${file:PATH}, or $${ for a literal ${",
                quote(reference).text);
    return false;
}

/* One value into expansion->text. False when there is a problem. */
static bool expand_text(struct expansion *expansion, struct slice rest, struct place place, bool *ret_private)
{
    while (rest.len > 0) {
        size_t dollar = slice_find(rest, '$');
        buffer_append(&expansion->text, (struct slice){ rest.data, dollar });
        rest = slice_from_offset(rest, dollar);
        if (slice_has_prefix(rest, SLICE("$${"))) {
            buffer_append_text(&expansion->text, "${");
            rest = slice_from_offset(rest, 3);
        } else if (slice_has_prefix(rest, SLICE("${"))) {
            size_t end = slice_find(rest, '}');
            if (end == rest.len) {
                problem_add(expansion->problems, place, "a ${ has no }; write $${ for a literal ${");
                return false;
            }
            *ret_private = true;
            size_t before = expansion->text.len;
            if (!fill_reference(expansion, (struct slice){ rest.data + 2, end - 2 }, place))
                return false;
            secret_keep(expansion, slice_from_offset(buffer_slice(&expansion->text), before),
                        (struct slice){ rest.data, end + 1 });
            rest = slice_from_offset(rest, end + 1);
        } else if (rest.len > 0) {
            buffer_append_byte(&expansion->text, '$');
            rest = slice_from_offset(rest, 1);
        }
    }
    return true;
}

static enum status expand_scalar(struct expansion *expansion, struct node *node)
{
    struct place place = { expansion->file, node->line, node->column };
    if (slice_search(node->value, SLICE("${")) == node->value.len)
        return STATUS_OK;
    buffer_clear(&expansion->text);
    bool filled = expand_text(expansion, node->value, place, &node->private);
    expansion->expanded_bytes += expansion->text.len;
    if (buffer_status(&expansion->text) != STATUS_OK || expansion->expanded_bytes > EXPANDED_BYTES_MAX) {
        problem_add(expansion->problems, place, "what references bring in has more than %d bytes in all",
                    EXPANDED_BYTES_MAX);
        return STATUS_LIMIT;
    }
    if (!filled) {
        node->broken = true;
        return STATUS_OK;
    }
    if (node->private)
        secret_keep(expansion, buffer_slice(&expansion->text), node->value);
    node->value = arena_copy(expansion->arena, buffer_slice(&expansion->text));
    return node->value.data ? STATUS_OK : STATUS_NO_MEMORY;
}

static enum status expand_node(struct expansion *expansion, struct node *node)
{
    if (node->kind == NODE_SCALAR)
        return expand_scalar(expansion, node);
    for (struct node *child = node->first; child; child = child->next) {
        enum status status = expand_node(expansion, child);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

enum status document_expand(struct node *root, const char *file, struct slice folder, struct arena *arena,
                            struct arena *secrets_memory, struct problems *problems)
{
    struct expansion expansion = { .file = file, .folder = folder, .arena = arena, .secrets_memory = secrets_memory,
                                   .problems = problems };
    buffer_init(&expansion.text, EXPANDED_BYTES_MAX);
    enum status status = expand_node(&expansion, root);
    buffer_release(&expansion.text);
    return status;
}
