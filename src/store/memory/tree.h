/*
 * tree.h - an ordered set of nodes that live inside other structures.
 *
 * A treap: the smallest (key, tie) is first, and no two nodes have the same pair. Nothing here
 * allocates, so putting a node back where it was cannot fail. The shape follows from `tie` alone,
 * so equal calls walk equal paths.
 */
#ifndef STORE_MEMORY_TREE_H
#define STORE_MEMORY_TREE_H

#include <stdint.h>

struct tree_node {
    struct tree_node *left, *right;
    int64_t key;
    int64_t tie;
};

struct tree {
    struct tree_node *root;
};

void tree_add(struct tree *tree, struct tree_node *node, int64_t key, int64_t tie);
/* The node must be in this tree. */
void tree_remove(struct tree *tree, struct tree_node *node);

/* It is NULL when there is none. */
struct tree_node *tree_find(const struct tree *tree, int64_t key, int64_t tie);
struct tree_node *tree_first(const struct tree *tree);
struct tree_node *tree_after(const struct tree *tree, int64_t key, int64_t tie);
struct tree_node *tree_before(const struct tree *tree, int64_t key, int64_t tie);

#endif
