#include "config/loading.h"

static void tier_apply(struct settings *settings, const struct node *node, struct tier_config *tier)
{
    if (node->broken)
        return;
    if (node->kind != NODE_SEQUENCE) {
        problem_add(settings->problems, settings_place(settings, node),
                    "tier \"%s\" must be a list of tenants such as [acme, globex], not %s", quote(node->key).text,
                    node_kind_name(node));
        return;
    }
    tier->name = settings_copy(settings, node->key);
    tier->tenants.items = settings_alloc(settings, node->count + 1, sizeof *tier->tenants.items);
    for (const struct node *item = node->first; item && tier->tenants.items; item = item->next) {
        if (item->broken)
            continue;
        if (item->kind != NODE_SCALAR || node_is_null(item) || item->value.len == 0)
            problem_add(settings->problems, settings_place(settings, item), "an item of tier \"%s\" must be a tenant's name",
                        quote(node->key).text);
        else
            tier->tenants.items[tier->tenants.count++] = settings_copy(settings, item->value);
    }
}

void tiers_apply(struct settings *settings, const struct node *node, UNUSED void *field)
{
    struct config *config = settings->root;
    if (node->kind != NODE_MAPPING) {
        if (!node_is_null(node))
            problem_add(settings->problems, settings_place(settings, node),
                        "tiers must be names and lists of tenants such as { gold: [acme, globex] }, not %s",
                        node_kind_name(node));
        return;
    }
    config->tier_count = 0;
    config->tiers = settings_alloc(settings, node->count + 1, sizeof *config->tiers);
    for (const struct node *child = node->first; child && config->tiers && !settings_over(settings); child = child->next)
        tier_apply(settings, child, &config->tiers[config->tier_count++]);
}

static bool is_weighed(const struct config *config, struct slice tier)
{
    for (size_t i = 0; i < config->destination_count; i++) {
        const struct pair_list *weights = &config->destinations[i].fairness.weights;
        for (size_t j = 0; j < weights->count; j++)
            if (slice_equal(slice_from(weights->items[j].name), tier))
                return true;
    }
    return false;
}

static void weight_check(struct settings *settings, const struct config *config, const struct node *node)
{
    struct nearest nearest = { .wanted = node->key };
    struct place place = { settings->file, node->key_line, node->key_column };
    if (is_weighed(config, node->key))
        return;
    for (size_t i = 0; i < config->destination_count; i++)
        for (size_t j = 0; j < config->destinations[i].fairness.weights.count; j++)
            nearest_offer(&nearest, config->destinations[i].fairness.weights.items[j].name);
    if (nearest.name)
        problem_add(settings->problems, place, "no destination's fairness.weights has tier \"%s\"; did you mean \"%s\"?",
                    quote(node->key).text, nearest.name);
    else
        problem_add(settings->problems, place,
                    "no destination's fairness.weights has tier \"%s\"; give it a weight there, or remove it",
                    quote(node->key).text);
}

/* The tenants of one tier, which was made of `node`. */
static void tenants_take(struct settings *settings, struct tier_config *tier, const struct node *node, struct map *by_tenant)
{
    for (const struct node *item = node->first; item; item = item->next) {
        if (item->kind != NODE_SCALAR || item->broken)
            continue;
        const struct tier_config *other = map_get(by_tenant, item->value);
        if (other)
            problem_add(settings->problems, settings_place(settings, item), "tenant \"%s\" is in tier \"%s\" already",
                        quote(item->value).text, quote(slice_from(other->name)).text);
    }
    for (size_t i = 0; i < tier->tenants.count; i++)
        if (map_put(by_tenant, slice_from(tier->tenants.items[i]), tier) != STATUS_OK)
            settings->failed = true;
}

void tiers_finish(struct settings *settings, const struct node *root, struct map *by_tenant)
{
    struct config *config = settings->root;
    const struct node *node = node_child(root, SLICE("tiers"));
    size_t at = 0;
    if (!node || node->kind != NODE_MAPPING)
        return;
    for (const struct node *child = node->first; child && at < config->tier_count; child = child->next) {
        struct tier_config *tier = &config->tiers[at++];
        if (!tier->name)
            continue;
        weight_check(settings, config, child);
        tenants_take(settings, tier, child, by_tenant);
    }
}
