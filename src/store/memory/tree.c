#include "store/memory/tree.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

/* The last step of splitmix64: it spreads neighbouring numbers over all 64 bits. */
static uint64_t weight(const struct tree_node *node)
{
    uint64_t x = (uint64_t)node->tie + 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static bool less(const struct tree_node *node, int64_t key, int64_t tie)
{
    return node->key != key ? node->key < key : node->tie < tie;
}

/* Hangs what is smaller than (key, tie) under *left and the rest under *right. */
static void split(struct tree_node *node, int64_t key, int64_t tie, struct tree_node **left, struct tree_node **right)
{
    while (node) {
        if (less(node, key, tie)) {
            *left = node;
            left = &node->right;
            node = node->right;
        } else {
            *right = node;
            right = &node->left;
            node = node->left;
        }
    }
    *left = NULL;
    *right = NULL;
}

void tree_add(struct tree *tree, struct tree_node *node, int64_t key, int64_t tie)
{
    node->key = key;
    node->tie = tie;
    struct tree_node **slot = &tree->root;
    while (*slot && weight(*slot) > weight(node)) {
        assert((*slot)->key != key || (*slot)->tie != tie);
        slot = less(*slot, key, tie) ? &(*slot)->right : &(*slot)->left;
    }
    split(*slot, key, tie, &node->left, &node->right);
    *slot = node;
}

void tree_remove(struct tree *tree, struct tree_node *node)
{
    struct tree_node **slot = &tree->root;
    while (*slot != node) {
        assert(*slot);
        slot = less(*slot, node->key, node->tie) ? &(*slot)->right : &(*slot)->left;
    }
    struct tree_node *left = node->left;
    struct tree_node *right = node->right;
    while (left && right) {
        if (weight(left) > weight(right)) {
            *slot = left;
            slot = &left->right;
            left = left->right;
        } else {
            *slot = right;
            slot = &right->left;
            right = right->left;
        }
    }
    *slot = left ? left : right;
    node->left = NULL;
    node->right = NULL;
}

struct tree_node *tree_find(const struct tree *tree, int64_t key, int64_t tie)
{
    struct tree_node *node = tree->root;
    while (node && (node->key != key || node->tie != tie))
        node = less(node, key, tie) ? node->right : node->left;
    return node;
}

struct tree_node *tree_first(const struct tree *tree)
{
    struct tree_node *node = tree->root;
    while (node && node->left)
        node = node->left;
    return node;
}

struct tree_node *tree_after(const struct tree *tree, int64_t key, int64_t tie)
{
    struct tree_node *found = NULL;
    for (struct tree_node *node = tree->root; node;) {
        bool greater = !less(node, key, tie) && (node->key != key || node->tie != tie);
        if (greater)
            found = node;
        node = greater ? node->left : node->right;
    }
    return found;
}

struct tree_node *tree_before(const struct tree *tree, int64_t key, int64_t tie)
{
    struct tree_node *found = NULL;
    for (struct tree_node *node = tree->root; node;) {
        bool smaller = less(node, key, tie);
        if (smaller)
            found = node;
        node = smaller ? node->right : node->left;
    }
    return found;
}
