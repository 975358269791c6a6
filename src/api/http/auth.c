#include "api/http/auth.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <yaml.h>

enum { TOKENS_MAX = 10000 };

struct tokens {
    struct arena memory;
    struct token *items;
    size_t count;
};

/* `admin` includes all others, `operate` includes `read` and `work`. */
static const struct { const char *name; unsigned scope, scopes; } scopes[] = {
    { "enqueue", SCOPE_ENQUEUE, SCOPE_ENQUEUE },
    { "read", SCOPE_READ, SCOPE_READ },
    { "work", SCOPE_WORK, SCOPE_WORK },
    { "operate", SCOPE_OPERATE, SCOPE_OPERATE | SCOPE_READ | SCOPE_WORK },
    { "admin", SCOPE_ADMIN, SCOPE_ADMIN | SCOPE_OPERATE | SCOPE_READ | SCOPE_ENQUEUE | SCOPE_WORK },
};

const char *scope_name(unsigned scope)
{
    for (size_t i = 0; i < sizeof scopes / sizeof *scopes; i++)
        if (scopes[i].scope == scope)
            return scopes[i].name;
    return "";
}

/* It is false where that is no scope's name. */
static bool scope_from_name(struct slice name, unsigned *ret_scopes)
{
    for (size_t i = 0; i < sizeof scopes / sizeof *scopes; i++)
        if (slice_equal(name, slice_from(scopes[i].name))) {
            *ret_scopes |= scopes[i].scopes;
            return true;
        }
    return false;
}

static enum status fail_at(const char *path, const yaml_node_t *node, struct error *err, const char *what)
{
    return error_set(err, STATUS_INVALID, "%s:%zu:%zu: %s", path, node->start_mark.line + 1, node->start_mark.column + 1,
                     what);
}

static struct slice scalar(const yaml_node_t *node)
{
    if (node->type != YAML_SCALAR_NODE)
        return (struct slice){ NULL, 0 };
    return (struct slice){ (const char *)node->data.scalar.value, node->data.scalar.length };
}

static bool parse_hash(struct slice text, unsigned char hash[32])
{
    if (text.len != 64)
        return false;
    for (size_t i = 0; i < 32; i++) {
        unsigned value;
        char pair[3] = { text.data[2 * i], text.data[2 * i + 1], '\0' };
        if (strspn(pair, "0123456789abcdefABCDEF") != 2 || sscanf(pair, "%2x", &value) != 1)
            return false;
        hash[i] = (unsigned char)value;
    }
    return true;
}

struct token_source {
    const char *path;
    yaml_document_t *document;
    struct tokens *tokens;
};

static enum status set_scopes(const struct token_source *source, const yaml_node_t *list, struct token *token,
                              struct error *err)
{
    if (list->type != YAML_SEQUENCE_NODE)
        return fail_at(source->path, list, err, "scopes must be a list of enqueue, read, work, operate, admin");
    for (yaml_node_item_t *item = list->data.sequence.items.start; item < list->data.sequence.items.top; item++) {
        const yaml_node_t *node = yaml_document_get_node(source->document, *item);
        if (!scope_from_name(scalar(node), &token->scopes))
            return fail_at(source->path, node, err, "a scope is one of enqueue, read, work, operate, admin");
    }
    return STATUS_OK;
}

static enum status set_member(const struct token_source *source, struct slice name, const yaml_node_t *value,
                              struct token *token, struct error *err)
{
    if (slice_equal(name, SLICE("scopes")))
        return set_scopes(source, value, token, err);
    struct slice text = scalar(value);
    if (slice_equal(name, SLICE("name")) && text.len > 0)
        token->name = arena_copy_text(&source->tokens->memory, text);
    else if (slice_equal(name, SLICE("tenant")) && text.len > 0) /* an empty one would mean all in the store's filters */
        token->tenant = arena_copy_text(&source->tokens->memory, text);
    else if (slice_equal(name, SLICE("priority_max")))
        return priority_from_name(text, &token->priority_max)
                   ? STATUS_OK
                   : fail_at(source->path, value, err, "priority_max is one of critical, high, normal");
    else if (!slice_equal(name, SLICE("sha256")))
        return fail_at(source->path, value, err, "a token has name, sha256, scopes, tenant and priority_max");
    else if (!parse_hash(text, token->hash))
        return fail_at(source->path, value, err, "sha256 must be the 64 hexadecimal digits of the token's hash");
    return STATUS_OK;
}

static enum status parse_token(const struct token_source *source, const yaml_node_t *node, struct token *token,
                               struct error *err)
{
    if (node->type != YAML_MAPPING_NODE)
        return fail_at(source->path, node, err, "a token is a mapping of name, sha256, scopes, tenant and priority_max");
    bool hashed = false;
    for (yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; pair++) {
        struct slice name = scalar(yaml_document_get_node(source->document, pair->key));
        hashed = hashed || slice_equal(name, SLICE("sha256"));
        enum status status = set_member(source, name, yaml_document_get_node(source->document, pair->value), token, err);
        if (status != STATUS_OK)
            return status;
    }
    if (!token->name || !hashed || token->scopes == 0)
        return fail_at(source->path, node, err, "a token needs name, sha256 and scopes");
    return STATUS_OK;
}

static enum status parse_tokens(const struct token_source *source, struct error *err)
{
    const yaml_node_t *root = yaml_document_get_root_node(source->document);
    if (!root || root->type != YAML_MAPPING_NODE || root->data.mapping.pairs.top - root->data.mapping.pairs.start != 1)
        return error_set(err, STATUS_INVALID, "%s: its first line is tokens: and the lines of insist token stand below",
                         source->path);
    yaml_node_pair_t *pair = root->data.mapping.pairs.start;
    const yaml_node_t *list = yaml_document_get_node(source->document, pair->value);
    if (!slice_equal(scalar(yaml_document_get_node(source->document, pair->key)), SLICE("tokens")) ||
        list->type != YAML_SEQUENCE_NODE)
        return fail_at(source->path, root, err, "its first line is tokens: and the lines of insist token stand below");
    size_t count = (size_t)(list->data.sequence.items.top - list->data.sequence.items.start);
    if (count > TOKENS_MAX)
        return fail_at(source->path, list, err, "too many tokens");
    source->tokens->items = arena_alloc_array(&source->tokens->memory, count, sizeof *source->tokens->items);
    if (!source->tokens->items)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the tokens");
    for (size_t i = 0; i < count; i++) {
        const yaml_node_t *node = yaml_document_get_node(source->document, list->data.sequence.items.start[i]);
        enum status status = parse_token(source, node, &source->tokens->items[source->tokens->count++], err);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static enum status open_private(const char *path, FILE **ret_file, struct error *err)
{
    struct stat facts;
    FILE *file = fopen(path, "re");
    if (!file)
        return error_set(err, STATUS_IO, "%s: %s", path, strerror(errno));
    if (fstat(fileno(file), &facts) == 0 && (facts.st_mode & S_IWOTH)) {
        fclose(file);
        return error_set(err, STATUS_INVALID, "%s: may be written by everybody; run: chmod o-w %s", path, path);
    }
    *ret_file = file;
    return STATUS_OK;
}

enum status tokens_load(const char *path, struct tokens **ret_tokens, struct error *err)
{
    FILE *file = NULL;
    yaml_parser_t parser;
    yaml_document_t document;
    enum status status = open_private(path, &file, err);
    if (status != STATUS_OK)
        return status;
    struct tokens *tokens = calloc(1, sizeof *tokens);
    if (!tokens || !yaml_parser_initialize(&parser)) {
        free(tokens);
        fclose(file);
        return error_set(err, STATUS_NO_MEMORY, "no memory for the tokens");
    }
    arena_init(&tokens->memory, 16 << 20);
    yaml_parser_set_input_file(&parser, file);
    if (yaml_parser_load(&parser, &document)) {
        struct token_source source = { path, &document, tokens };
        status = parse_tokens(&source, err);
        yaml_document_delete(&document);
    } else {
        status = error_set(err, STATUS_INVALID, "%s:%zu:%zu: %s", path, parser.problem_mark.line + 1,
                           parser.problem_mark.column + 1, parser.problem ? parser.problem : "cannot be read");
    }
    yaml_parser_delete(&parser);
    fclose(file);
    if (status != STATUS_OK) {
        tokens_free(tokens);
        return status;
    }
    *ret_tokens = tokens;
    return STATUS_OK;
}

void tokens_free(struct tokens *tokens)
{
    if (!tokens)
        return;
    arena_release(&tokens->memory);
    free(tokens);
}

/* NULL: no such token. Takes the same time wherever it differs. */
static const struct token *tokens_find(const struct tokens *tokens, struct slice secret)
{
    unsigned char hash[32];
    const struct token *found = NULL;
    unsigned int len;
    if (!EVP_Digest(secret.data, secret.len, hash, &len, EVP_sha256(), NULL))
        return NULL;
    for (size_t i = 0; i < tokens->count; i++)
        if (CRYPTO_memcmp(tokens->items[i].hash, hash, sizeof hash) == 0)
            found = &tokens->items[i];
    return found;
}

const struct token *tokens_find_bearer(const struct tokens *tokens, struct slice header)
{
    struct slice bearer = SLICE("Bearer ");
    if (header.len <= bearer.len || !slice_equal_nocase((struct slice){ header.data, bearer.len }, bearer))
        return NULL;
    return tokens_find(tokens, slice_trim(slice_from_offset(header, bearer.len)));
}
