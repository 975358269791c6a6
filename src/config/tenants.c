/*
 * Tenants' own accounts at a destination: its url, headers, login and certificate.
 *
 * Each becomes a destination of its own in memory, with all else as it is, so that no transport has to know of tenants: what
 * it keeps for a destination, as connections and access tokens, is of each tenant.
 */
#include "config/destination.h"
#include "config/problems.h"

#include <stdio.h>
#include <stdlib.h>

enum { TENANTS_MAX = 10000, SUBJECT_BYTES = 512 };

void tenants_note(struct settings *settings, const struct node *node, void *field)
{
    struct destination_draft *draft = settings->root;
    (void)field;
    if (node->kind == NODE_MAPPING || node_is_null(node))
        draft->tenants = node;
    else
        problem_add(settings->problems, settings_place(settings, node),
                    "tenants must be names and settings such as { acme: { url: ... } }, not %s", node_kind_name(node));
}

static void tenant_apply(struct settings *settings, const struct destination_draft *draft, const struct node *node,
                         struct tenant_config *ret_tenant)
{
    struct destination_draft own = *draft;
    struct settings inner = *settings;
    struct place place = { settings->file, node->key_line, node->key_column };
    char subject[SUBJECT_BYTES];
    snprintf(subject, sizeof subject, "tenant \"%s\" of %s", quote(node->key).text, settings->subject);
    own.placed = NULL;
    inner.root = &own;
    inner.placed = &own.placed;
    inner.subject = subject;
    if (node->kind == NODE_MAPPING)
        settings_apply(&inner, &tenant_section, node, &own);
    else
        problem_add(settings->problems, settings_place(settings, node), "%s must be settings such as { url: ... }, not %s",
                    subject, node_kind_name(node));
    account_check(&inner, &own, place);
    struct destination_config *made = settings_alloc(&inner, 1, sizeof *made);
    if (made) {
        *made = own.config;
        *ret_tenant = (struct tenant_config){ settings_copy(&inner, node->key), made };
    }
    settings->failed = settings->failed || inner.failed;
}

static int by_name(const void *one, const void *other)
{
    const struct tenant_config *a = one, *b = other;
    return strcmp(a->tenant, b->tenant);
}

void tenants_finish(struct settings *settings, struct destination_draft *draft)
{
    const struct node *node = draft->tenants;
    struct destination_config *config = &draft->config;
    struct place unwritten = { NULL, 0, 0 };
    if (!node || node->count == 0)
        return;
    if (config->transport == TRANSPORT_PULL || config->transport == TRANSPORT_EXEC) {
        problem_add(settings->problems, settings_place(settings, node),
                    "tenants have no accounts where the transport is pull or exec; remove them");
        return;
    }
    if (node->count > TENANTS_MAX) {
        problem_add(settings->problems, settings_place(settings, node), "there are %zu tenants; the limit is %d",
                    node->count, TENANTS_MAX);
        return;
    }
    /* An account that is refused is that tenant's: others are not held for it. */
    if (!settings_place_of(settings, &config->blocked, unwritten).file)
        config->blocked = BLOCKED_TENANT;
    struct tenant_config *tenants = settings_alloc(settings, node->count, sizeof *tenants);
    size_t count = 0;
    for (const struct node *child = node->first; tenants && child && !settings_over(settings); child = child->next)
        tenant_apply(settings, draft, child, &tenants[count++]);
    if (!tenants || settings_over(settings))
        return;
    qsort(tenants, count, sizeof *tenants, by_name);
    config->tenants = tenants;
    config->tenant_count = count;
}

static int compare_name(const void *wanted, const void *tenant)
{
    return slice_compare(*(const struct slice *)wanted, slice_from(((const struct tenant_config *)tenant)->tenant));
}

const struct destination_config *config_for_tenant(const struct destination_config *destination, struct slice tenant)
{
    const struct tenant_config *found = destination->tenant_count == 0
                                            ? NULL
                                            : bsearch(&tenant, destination->tenants, destination->tenant_count,
                                                      sizeof *destination->tenants, compare_name);
    return found ? found->destination : destination;
}
