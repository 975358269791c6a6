#include "api/http/origin.h"

/* A name may be written with a dot behind it. */
static struct slice without_dot(struct slice name)
{
    if (name.len > 1 && name.data[name.len - 1] == '.')
        name.len--;
    return name;
}

/* Where other nodes call this one: whoever says so has the name right. */
static bool is_node_url(const struct config *config, struct slice name)
{
    struct slice url = slice_from(config->node.url ? config->node.url : ""), scheme_end = SLICE("://"), own;
    size_t authority = slice_search(url, scheme_end) + scheme_end.len;
    bool is_address;
    if (authority > url.len)
        return false;
    url = slice_from_offset(url, authority);
    url.len = slice_search(url, SLICE("/"));
    return http_host_split(url, &own, &is_address) && slice_equal_nocase(without_dot(name), without_dot(own));
}

bool host_is_ours(const struct config *config, struct slice host)
{
    struct slice name;
    bool is_address;
    if (host.len == 0 || !http_host_split(host, &name, &is_address))
        return host.len == 0; /* HTTP/1.0, which no browser speaks */
    if (is_address || slice_equal_nocase(without_dot(name), SLICE("localhost")))
        return true;
    for (size_t i = 0; i < config->hosts.count; i++)
        if (slice_equal_nocase(without_dot(name), slice_from(config->hosts.items[i])))
            return true;
    return is_node_url(config, name);
}

/*
 * Browsers say where a request is from; same-site may still be another's, on another port. Pages without facts may be
 * linked to from anywhere.
 */
static bool is_cross_site(const struct http_head *head, bool is_open)
{
    struct slice site = http_head_find(head, SLICE("Sec-Fetch-Site"));
    bool navigates = slice_equal(http_head_find(head, SLICE("Sec-Fetch-Mode")), SLICE("navigate"));
    if (site.len == 0 || slice_equal(site, SLICE("same-origin")) || slice_equal(site, SLICE("none")))
        return false;
    return !(navigates && is_open);
}

static bool is_foreign_origin(const struct http_head *head)
{
    struct slice origin = http_head_find(head, SLICE("Origin")), scheme_end = SLICE("://");
    size_t authority = slice_search(origin, scheme_end) + scheme_end.len;
    return origin.len > 0 &&
           (authority > origin.len || !slice_equal_nocase(slice_from_offset(origin, authority), head->host));
}

bool page_is_ours(const struct http_head *head, bool is_open)
{
    return !is_cross_site(head, is_open) && !is_foreign_origin(head);
}
