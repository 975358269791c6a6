/*
 * document.h - a YAML text as a tree that remembers where everything stands.
 *
 * Scalars stay text: what they mean is the settings' business. One document of mappings,
 * sequences and scalars; anchors, aliases and tags are refused, and size, depth and the
 * number of nodes are bounded, so that no text of a few bytes becomes a tree of millions.
 */
#ifndef CONFIG_DOCUMENT_H
#define CONFIG_DOCUMENT_H

#include "base/arena.h"
#include "config/problems.h"

enum {
    DOCUMENT_BYTES_MAX = 4 << 20,
    DOCUMENT_DEPTH_MAX = 24,
    DOCUMENT_NODES_MAX = 500000,
};

enum node_kind {
    NODE_SCALAR,
    NODE_SEQUENCE,
    NODE_MAPPING,
};

struct node {
    enum node_kind kind;
    bool plain;   /* a scalar without quotes */
    bool private; /* filled in from a reference: not for messages */
    bool broken;  /* a reference that could not be filled in: reported already */
    uint32_t line, column;
    struct slice key; /* of a mapping's value; terminated */
    uint32_t key_line, key_column;
    struct slice value; /* of a scalar; terminated, without NUL inside */
    struct node *first; /* children in order */
    struct node *next;  /* sibling */
    size_t count;       /* children */
};

/*
 * The tree is in the arena; an empty text is an empty mapping. STATUS_INVALID and STATUS_LIMIT have a problem
 * to read. A repeated key is a problem too, but does not keep the rest from being looked at.
 */
enum status document_parse(struct slice text, const char *file, struct arena *arena, struct problems *problems,
                           struct node **ret_root) MUST_CHECK;

/* A plain scalar that says "nothing": empty, ~ or null. */
bool node_is_null(const struct node *node);
/* "text", "a list", "a mapping": for messages. */
const char *node_kind_name(const struct node *node);
/* The child of a mapping, or NULL. */
const struct node *node_child(const struct node *mapping, struct slice key);
/* The same for trees that say the same, in whatever order. `without`: names that do not count; NULL ends. */
uint64_t node_digest(const struct node *node, const char *const *without);

#endif
