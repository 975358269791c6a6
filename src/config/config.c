#include "config/config.h"

#include "config/checks.h"
#include "config/expand.h"
#include "config/loading.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARNING_BYTES_MAX = 512 };

static_assert((int)CONFIG_BYTES_MAX == (int)DOCUMENT_BYTES_MAX, "a configuration is one document");

/* What was compiled, to be freed with the configuration. */
struct handle {
    struct classifier *classifier;
    struct pattern *pattern;
    struct handle *next;
};

struct loaded {
    struct config config; /* first: users hold a pointer to it */
    atomic_size_t references;
    struct arena memory;
    struct map by_name;
    struct map tier_by_tenant;
    struct handle *handles;
};

static struct loaded *loaded_of(struct config *config)
{
    return (struct loaded *)config;
}

static void loaded_free(struct loaded *loaded)
{
    if (!loaded)
        return;
    for (struct handle *handle = loaded->handles; handle; handle = handle->next) {
        classifier_free(handle->classifier);
        pattern_free(handle->pattern);
    }
    map_release(&loaded->by_name);
    map_release(&loaded->tier_by_tenant);
    arena_release(&loaded->memory);
    free(loaded);
}

struct config *config_ref(struct config *config)
{
    atomic_fetch_add_explicit(&loaded_of(config)->references, 1, memory_order_relaxed);
    return config;
}

void config_unref(struct config *config)
{
    if (config && atomic_fetch_sub_explicit(&loaded_of(config)->references, 1, memory_order_acq_rel) == 1)
        loaded_free(loaded_of(config));
}

const struct destination_config *config_destination(const struct config *config, struct slice name)
{
    return map_get(&((const struct loaded *)config)->by_name, name);
}

size_t config_destination_total(const struct config *config)
{
    return config->destination_count + config->internal_count;
}

const struct destination_config *config_destination_at(const struct config *config, size_t index)
{
    assert(index < config_destination_total(config));
    return index < config->destination_count ? &config->destinations[index]
                                             : &config->internal[index - config->destination_count];
}

static bool weight_find(const struct pair_list *weights, struct slice name, int64_t *ret_weight)
{
    for (size_t i = 0; i < weights->count; i++)
        if (slice_equal(slice_from(weights->items[i].name), name))
            return slice_to_int64(slice_from(weights->items[i].value), ret_weight);
    return false;
}

int64_t config_weight(const struct config *config, const struct destination_config *destination, struct slice tenant)
{
    const struct pair_list *weights = &destination->fairness.weights;
    const struct tier_config *tier = map_get(&((const struct loaded *)config)->tier_by_tenant, tenant);
    int64_t weight;
    if (weight_find(weights, tenant, &weight) || (tier && weight_find(weights, slice_from(tier->name), &weight)))
        return weight;
    return 1;
}

static enum status keep(struct loaded *loaded, struct handle saved)
{
    struct handle *handle = arena_alloc(&loaded->memory, sizeof *handle);
    if (!handle) {
        classifier_free(saved.classifier);
        pattern_free(saved.pattern);
        return STATUS_NO_MEMORY;
    }
    *handle = saved;
    handle->next = loaded->handles;
    loaded->handles = handle;
    return STATUS_OK;
}

static enum status keep_classifier(void *owner, struct classifier *classifier)
{
    return keep(owner, (struct handle){ .classifier = classifier });
}

static enum status keep_pattern(void *owner, struct pattern *pattern)
{
    return keep(owner, (struct handle){ .pattern = pattern });
}

struct settings loading_settings(struct loading *loading, const char *file, struct slice folder, void *root)
{
    return (struct settings){ .memory = loading->memory,
                              .scratch = &loading->scratch,
                              .problems = &loading->problems,
                              .file = file,
                              .folder = folder,
                              .root = root,
                              .context = loading };
}

static struct loaded *loaded_new(void)
{
    struct loaded *loaded = calloc(1, sizeof *loaded);
    if (!loaded)
        return NULL;
    atomic_init(&loaded->references, 1);
    arena_init(&loaded->memory, CONFIG_MEMORY_MAX);
    map_init(&loaded->by_name, (uint64_t)(uintptr_t)loaded);
    map_init(&loaded->tier_by_tenant, (uint64_t)(uintptr_t)loaded);
    return loaded;
}

static void loading_init(struct loading *loading, struct loaded *loaded, struct buffer *problems)
{
    *loading =
        (struct loading){ .memory = &loaded->memory,
                          .problems = { .out = problems },
                          .config = &loaded->config,
                          .pool = { .keep_classifier = keep_classifier, .keep_pattern = keep_pattern, .owner = loaded } };
    arena_init(&loading->scratch, SCRATCH_MEMORY_MAX);
    loading->pool.scratch = &loading->scratch;
    map_init(&loading->pool.by_rules, (uint64_t)(uintptr_t)loading);
    map_init(&loading->presets, (uint64_t)(uintptr_t)loading);

    struct settings settings = loading_settings(loading, "", SLICE(""), &loading->defaults);
    settings_default(&settings, &destination_section, &loading->defaults);
    loading->defaults.transport = TRANSPORT_UNSAID;
    loading->failed = settings.failed;
}

static void loading_release(struct loading *loading)
{
    map_release(&loading->pool.by_rules);
    map_release(&loading->presets);
    arena_release(&loading->scratch);
}

/* A text that outlives the reading, or NULL when memory is out. */
static const char *warning_text(struct loading *loading, struct place place, const char *text)
{
    struct buffer line = buffer_up_to(WARNING_BYTES_MAX);
    struct problems one = { .out = &line, .secrets = loading->problems.secrets };
    problem_add(&one, place, "%s", text);
    const char *copy = arena_copy_text(loading->memory, slice_trim(buffer_slice(&line)));
    buffer_release(&line);
    return copy;
}

void loading_warn(struct loading *loading, struct place place, const char *text)
{
    struct text_list *warnings = &loading->config->warnings;
    if (warnings->count == PROBLEMS_MAX)
        return;
    if (!warnings->items)
        warnings->items = arena_alloc_array(loading->memory, PROBLEMS_MAX, sizeof *warnings->items);
    const char *line = warning_text(loading, place, text);
    if (!warnings->items || !line)
        loading->failed = true;
    else
        warnings->items[warnings->count++] = line;
}

static size_t rules_in(const struct destination_draft *draft)
{
    size_t rules = 0;
    for (int tier = 0; tier < TIER_COUNT; tier++)
        for (int outcome = 0; outcome < OUTCOME_COUNT; outcome++)
            rules += draft->rules[tier][outcome].count;
    return rules;
}

/* Without a rule every refusal would be tried again: what the preset of its transport says holds then. */
static void rules_default(struct loading *loading, struct destination_draft *draft, struct place place)
{
    const char *name = destination_rules_preset(draft);
    if (rules_in(draft) > 0 || !name)
        return;
    const struct destination_draft *preset = preset_draft(loading, slice_from(name), SLICE(""), place);
    if (!preset)
        return;
    memcpy(draft->rules, preset->rules, sizeof draft->rules);
    if (slice_from(draft->code_namespace).len == 0)
        draft->code_namespace = preset->code_namespace;
}

static void smtp_warn(struct settings *settings, const struct destination_draft *draft, struct place place)
{
    const struct destination_config *config = &draft->config;
    const enum starttls *starttls = &config->smtp.starttls;
    bool may_be_clear = *starttls == STARTTLS_NONE || *starttls == STARTTLS_OPPORTUNISTIC;
    if (config->transport != TRANSPORT_SMTP)
        return;
    if (may_be_clear && config->password && config->url && slice_has_prefix(slice_from(config->url), SLICE("smtp://")))
        loading_warn(settings->context, settings_place_of(settings, starttls, place),
                     "without smtp.starttls: required the password may go over the network for anybody to read");
}

static void destination_warn(struct settings *settings, const struct destination_draft *draft, struct place place)
{
    struct loading *loading = settings->context;
    bool accepts = false;
    for (int tier = 0; tier < TIER_COUNT; tier++)
        accepts = accepts || draft->rules[tier][OUTCOME_ACCEPTED].count > 0;
    if (accepts && !draft->config.poll.url)
        loading_warn(loading, place, "some answers are accepted and judged later, but poll has no url: nobody asks how");
    if (!draft->config.tls.verify)
        loading_warn(loading, settings_place_of(settings, &draft->config.tls.verify, place),
                     "tls.verify is off: anybody in between can read and change what is sent");
    smtp_warn(settings, draft, place);
}

/* The first thing to apply: the preset, or the defaults. */
static bool destination_start(struct settings *settings, const struct node *node, struct destination_draft *draft)
{
    struct loading *loading = settings->context;
    const struct node *preset = node_child(node, SLICE("preset"));
    const struct node *extends = node_child(node, SLICE("extends"));
    *draft = loading->defaults;
    if (extends)
        problem_add(settings->problems, settings_place(settings, extends),
                    "a destination starts from a preset with preset, not extends");
    if (!preset || preset->kind != NODE_SCALAR || preset->broken || preset->value.len == 0)
        return true;
    const struct destination_draft *base =
        preset_draft(loading, preset->value, settings->folder, settings_place(settings, preset));
    if (!base)
        return false;
    *draft = *base;
    return true;
}

static void destination_apply(struct settings *settings, const struct node *node, struct destination_config *ret_config)
{
    struct loading *loading = settings->context;
    struct place place = { settings->file, node->key_line, node->key_column };
    struct destination_draft draft;
    char subject[DESTINATION_NAME_BYTES_MAX + 32];
    const char *wrong = check_name(node->key);
    if (wrong) {
        problem_add(settings->problems, place, "the destination's name \"%s\" %s", quote(node->key).text, wrong);
        return;
    }
    if (slice_has_prefix(node->key, SLICE(NOTIFY_PREFIX)))
        problem_add(settings->problems, place,
                    "names that begin with " NOTIFY_PREFIX " are those of notify; choose another");
    if (node->kind != NODE_MAPPING && !node_is_null(node)) {
        problem_add(settings->problems, settings_place(settings, node),
                    "destination \"%s\" must be settings such as { url: ... }, not %s", node->key.data,
                    node_kind_name(node));
        return;
    }
    bool started = destination_start(settings, node, &draft);
    snprintf(subject, sizeof subject, "destination \"%s\"", node->key.data);
    struct settings own = loading_settings(loading, settings->file, settings->folder, &draft);
    own.subject = subject;
    own.placed = &draft.placed;
    draft.config.name = settings_copy(&own, node->key);
    settings_apply(&own, &destination_section, node, &draft);
    if (started) { /* without its preset it would miss what the preset gives */
        rules_default(loading, &draft, place);
        destination_finish(&own, &draft, true, place, &loading->pool);
        tenants_finish(&own, &draft);
        destination_warn(&own, &draft, place);
    }
    settings->failed = settings->failed || own.failed;
    *ret_config = draft.config;
}

void destinations_apply(struct settings *settings, const struct node *node, UNUSED void *field)
{
    struct loading *loading = settings->context;
    struct config *config = settings->root;
    if (node->kind != NODE_MAPPING && !node_is_null(node)) {
        problem_add(settings->problems, settings_place(settings, node),
                    "destinations must be names and settings such as { claims: { url: ... } }, not %s",
                    node_kind_name(node));
        return;
    }
    if (node->count > DESTINATIONS_MAX) {
        problem_add(settings->problems, settings_place(settings, node), "there are %zu destinations; the limit is %d",
                    node->count, DESTINATIONS_MAX);
        return;
    }
    config->destination_count = 0; /* a key that is there twice is a problem, but the second is read too */
    config->destinations = settings_alloc(settings, node->count + 1, sizeof *config->destinations);
    if (!config->destinations)
        return;
    for (const struct node *child = node->first; child && !settings_over(settings) && !loading->failed; child = child->next)
        destination_apply(settings, child, &config->destinations[config->destination_count++]);
}

static bool is_any_address(const char *host)
{
    return strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0 || strcmp(host, "[::]") == 0;
}

/* Does what needs the whole file. */
static void file_finish(struct settings *settings, const struct node *root)
{
    struct config *config = settings->root;
    struct loaded *loaded = loaded_of(config);
    struct place whole = { settings->file, 0, 0 };
    tiers_finish(settings, root, &loaded->tier_by_tenant);
    for (size_t i = 0; i < config->destination_count; i++)
        if (config->destinations[i].name &&
            map_put(&loaded->by_name, slice_from(config->destinations[i].name), &config->destinations[i]) != STATUS_OK)
            settings->failed = true;
    for (size_t i = 0; i < config->destination_count && !config->node.name; i++)
        if (config->destinations[i].node)
            problem_add(settings->problems, whole, "destination \"%s\" is for node \"%s\", and this daemon is none: name it"
                        " (node.name), or leave that out", config->destinations[i].name, config->destinations[i].node);
    if (config->node.name && !config->node.url && is_any_address(config->listen.host))
        problem_add(settings->problems, settings_place_of(settings, &config->listen, whole),
                    "other nodes cannot call %s: node.url says where they reach this one, as http://10.0.0.1:%d",
                    config->listen.host, config->listen.port);
    if (strcmp(config->store, "memory") == 0)
        config->store = "memory:"; /* a colon at the end needs quotes in YAML, so it may be left out */
    if (!config->listen.loopback && !config->tokens_file)
        problem_add(settings->problems, settings_place_of(settings, &config->listen, whole),
                    "listening beyond loopback needs auth.tokens_file; or listen on 127.0.0.1");
    exports_finish(settings, &loaded->by_name);
    camunda_finish(settings, root, &loaded->by_name);
    struct place store = settings_place_of(settings, &config->store, whole);
    struct place tokens = settings_place_of(settings, &config->tokens_file, whole);
    config->store_at = (struct config_place){ store.line, store.column };
    config->tokens_file_at = (struct config_place){ tokens.line, tokens.column };
    notify_finish(settings, root, &loaded->by_name);
    reports_finish(settings, root);
    forward_finish(settings, root, &loaded->by_name);
}

/* What is about the one node is not in it. */
static uint64_t digest_of(const struct node *root)
{
    static const char *const own[] = { "listen", "store", "hosts", "node", NULL }, *const self[] = { "name", "url", NULL };
    const struct node *node = node_child(root, SLICE("node"));
    return node_digest(root, own) ^ (node ? node_digest(node, self) : 0);
}

static enum status loading_parse(struct loading *loading, struct slice text, const char *name)
{
    struct node *root;
    struct slice folder = path_folder(name);
    const struct placed *placed = NULL;
    enum status status = document_parse(text, name, &loading->scratch, &loading->problems, &root);
    if (status == STATUS_OK)
        status = document_expand(root, name, folder, &loading->scratch, loading->memory, &loading->problems);
    if (status != STATUS_OK)
        return status;
    struct settings settings = loading_settings(loading, name, folder, loading->config);
    settings_default(&settings, &file_section, loading->config);
    settings.placed = &placed;
    loading->config->path = settings_copy(&settings, slice_from(name));
    settings_apply(&settings, &file_section, root, loading->config);
    file_finish(&settings, root);
    loading->config->digest = digest_of(root);
    loading->failed = loading->failed || settings.failed;
    return STATUS_OK;
}

/* Says why nothing is returned, or returns it. `status` is what went wrong so far. */
static enum status loading_end(struct loading *loading, struct loaded *loaded, enum status status, const char *name,
                               struct config **ret_config)
{
    if (loading->failed)
        status = STATUS_NO_MEMORY;
    else if (status == STATUS_OK && loading->problems.count > 0)
        status = STATUS_INVALID;
    if (status == STATUS_NO_MEMORY)
        problem_add(&loading->problems, (struct place){ .file = name },
                    "reading it needs more memory than there is, or than %d MB", CONFIG_MEMORY_MAX >> 20);
    loading_release(loading);
    loaded->config.secrets = loading->problems.secrets;
    loaded->config.secret_files = loading->problems.files;
    if (status == STATUS_OK)
        *ret_config = &loaded->config;
    else
        loaded_free(loaded);
    return status;
}

enum status config_parse(struct slice text, const char *name, struct config **ret_config, struct buffer *problems)
{
    struct loading loading;
    struct loaded *loaded = loaded_new();
    if (!loaded)
        return STATUS_NO_MEMORY;
    loading_init(&loading, loaded, problems);
    enum status status = loading_parse(&loading, text, name);
    return loading_end(&loading, loaded, status, name, ret_config);
}

/* Nothing but blanks and comments. A file that an editor or a copy has just begun to write looks like that. */
static bool content_is_empty(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] == '#')
            while (i < text.len && text.data[i] != '\n')
                i++;
        else if (!strchr(" \t\r\n-.", text.data[i]))
            return false;
    }
    return true;
}

enum status config_load(const char *path, struct config **ret_config, struct buffer *problems)
{
    struct problems list = { .out = problems };
    struct buffer content;
    struct error err;
    enum status status = file_read(path, CONFIG_BYTES_MAX, false, &content, &err);
    if (status != STATUS_OK) {
        problem_add(&list, (struct place){ .file = path }, "cannot be read: %s", err.text);
        return status;
    }
    if (content_is_empty(buffer_slice(&content))) {
        problem_add(&list, (struct place){ .file = path },
                    "is empty; write the settings into it (docs/configuration.md), or name no file to use the "
                    "built-in defaults");
        status = STATUS_INVALID;
    } else {
        status = config_parse(buffer_slice(&content), path, ret_config, problems);
    }
    buffer_release(&content);
    return status;
}

void config_hide(const struct config *config, const char *text, struct buffer *out)
{
    secrets_hide(config->secrets, slice_from(text), out);
}

/* Where the password of postgres://user:password@host/ or ?password=... begins; *ret_len 0: there is none. */
static size_t password_find(struct slice address, size_t *ret_len)
{
    size_t from = slice_search(address, SLICE("://"));
    size_t parameter = slice_search(address, SLICE("password="));
    *ret_len = 0;
    if (parameter < address.len) {
        parameter += sizeof "password=" - 1;
        *ret_len = slice_find(slice_from_offset(address, parameter), '&');
        return parameter;
    }
    if (from == address.len)
        return 0;
    from += 3;
    struct slice authority = slice_from_offset(address, from);
    authority.len = slice_find(authority, '/');
    size_t at = slice_find(authority, '@'), colon = slice_find(authority, ':');
    if (at < authority.len && colon < at)
        *ret_len = at - colon - 1;
    return from + colon + 1;
}

void config_store_show(const struct config *config, struct buffer *out)
{
    struct slice address = slice_from(config->store);
    size_t len, start = password_find(address, &len);
    struct buffer shown = buffer_up_to(1 << 16);
    buffer_append(&shown, (struct slice){ address.data, len > 0 ? start : address.len });
    if (len > 0) {
        buffer_append_text(&shown, "***");
        buffer_append(&shown, slice_from_offset(address, start + len));
    }
    if (buffer_status(&shown) == STATUS_OK)
        config_hide(config, shown.data ? shown.data : "", out);
    buffer_release(&shown);
}

enum status config_default(struct config **ret_config)
{
    struct buffer problems = buffer_up_to(WARNING_BYTES_MAX);
    struct config *config;
    enum status status = config_parse(SLICE(""), "defaults", &config, &problems);
    buffer_release(&problems);
    if (status != STATUS_OK)
        return status;
    config->path = NULL;
    *ret_config = config;
    return STATUS_OK;
}

/* The one destination of a configuration that is a preset by itself. */
static enum status preset_finish(struct loading *loading, struct loaded *loaded, struct slice name)
{
    struct config *config = &loaded->config;
    struct settings file = loading_settings(loading, "preset", SLICE(""), config);
    struct place place = { "preset", 0, 0 };
    struct slice text;
    struct error err;
    struct destination_draft draft;
    enum status status = preset_text(name, &text, &err);
    if (status != STATUS_OK) {
        problem_add(&loading->problems, place, "%s", err.text);
        return status;
    }
    const struct destination_draft *base = preset_draft(loading, name, SLICE(""), place);
    if (!base)
        return STATUS_INVALID;
    draft = *base;
    settings_default(&file, &file_section, config);
    config->destinations = settings_alloc(&file, 1, sizeof *config->destinations);
    struct settings own = loading_settings(loading, "preset", SLICE(""), &draft);
    own.placed = &draft.placed;
    own.subject = "the preset";
    draft.config.name = settings_copy(&own, name);
    draft.config.preset = draft.config.name;
    destination_finish(&own, &draft, false, place, &loading->pool);
    if (file.failed || own.failed)
        return STATUS_NO_MEMORY;
    config->destinations[0] = draft.config;
    config->destination_count = 1;
    return map_put(&loaded->by_name, slice_from(draft.config.name), &config->destinations[0]);
}

enum status config_preset(struct slice name, struct config **ret_config, struct buffer *problems)
{
    struct loading loading;
    struct loaded *loaded = loaded_new();
    if (!loaded)
        return STATUS_NO_MEMORY;
    loading_init(&loading, loaded, problems);
    enum status status = preset_finish(&loading, loaded, name);
    return loading_end(&loading, loaded, status, "preset", ret_config);
}
