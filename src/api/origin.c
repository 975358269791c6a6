#include "api/origin.h"

#include "api/api_private.h"
#include "config/problems.h"

/* A name may be written with a dot behind it. */
static struct slice without_dot(struct slice name)
{
    if (name.len > 1 && name.data[name.len - 1] == '.')
        name.len--;
    return name;
}

static bool is_ours(const struct config *config, struct slice host)
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
    return false;
}

bool host_is_ours(struct call *call)
{
    if (is_ours(call->api->config, call->head.host))
        return true;
    client_close_after(call->client);
    call_problem(call, 421, "unknown_host",
                 "Host \"%s\" is not known here; call 127.0.0.1 or localhost, or add the name to `hosts:`",
                 quote(call->head.host).text);
    return false;
}

/*
 * Browsers say where a request is from; same-site may still be another's, on another port. Pages without facts may be
 * linked to from anywhere.
 */
static bool is_cross_site(const struct call *call)
{
    struct slice site = call_header(call, SLICE("Sec-Fetch-Site"));
    bool navigates = slice_equal(call_header(call, SLICE("Sec-Fetch-Mode")), SLICE("navigate"));
    if (site.len == 0 || slice_equal(site, SLICE("same-origin")) || slice_equal(site, SLICE("none")))
        return false;
    return !(navigates && call->route->scope == SCOPE_NONE);
}

static bool is_foreign_origin(const struct call *call)
{
    struct slice origin = call_header(call, SLICE("Origin")), scheme_end = SLICE("://");
    size_t authority = slice_search(origin, scheme_end) + scheme_end.len;
    return origin.len > 0 &&
           (authority > origin.len || !slice_equal_nocase(slice_from_offset(origin, authority), call->head.host));
}

bool page_is_ours(struct call *call)
{
    if (!is_cross_site(call) && !is_foreign_origin(call))
        return true;
    call_problem(call, 403, "forbidden_origin",
                 "web pages of other hosts may not call; use 127.0.0.1 or localhost, or set auth.tokens_file");
    return false;
}
