/*
 * auth.h - who may call: bearer tokens, stored only as hashes.
 *
 * The tokens file is YAML:
 *     tokens:
 *       - { name: billing, sha256: 5e88..., scopes: [enqueue, read], tenant: acme }
 * `insist token NAME` makes one. A token with a tenant sees and changes that tenant's jobs only.
 */
#ifndef API_HTTP_AUTH_H
#define API_HTTP_AUTH_H

#include "base/arena.h"
#include "base/slice.h"
#include "base/status.h"
#include "core/decision/job.h"

enum scope {
    SCOPE_NONE = 0, /* open to all: health, metrics of no secret */
    SCOPE_ENQUEUE = 1,
    SCOPE_READ = 2,
    SCOPE_OPERATE = 4,
    SCOPE_ADMIN = 8,
    SCOPE_WORK = 16, /* leases, and nothing else */
};

struct tokens;

struct token {
    const char *name;
    unsigned char hash[32];
    unsigned scopes;
    const char *tenant; /* NULL: all */
    enum priority priority_max; /* the most urgent that it may give */
};

/* "enqueue" and so on, as in a tokens file. */
const char *scope_name(unsigned scope);

enum status tokens_load(const char *path, struct tokens **ret_tokens, struct error *err) MUST_CHECK;
void tokens_free(struct tokens *tokens);
/* By the value of a header: "Bearer SECRET". */
const struct token *tokens_find_bearer(const struct tokens *tokens, struct slice header);

#endif
