/*
 * headers.h - which headers a job and a destination may set.
 *
 * Who may add a job must not be able to speak for the destination: with credentials of its own that are refused, or as
 * somebody else to the receiver.
 */
#ifndef TRANSPORT_HTTP_HEADERS_H
#define TRANSPORT_HTTP_HEADERS_H

#include "config/config.h"

enum { HEADER_BYTES_MAX = 16 * 1024 };

enum header_rule {
    HEADER_FREE,    /* a job may set it */
    HEADER_GUARDED, /* only where `allow_headers` names it: Authorization, Cookie, Proxy-..., HTTP2-Settings, and what the
                       destination itself sets under a name of credentials */
    HEADER_OURS,    /* it frames the request, names the site, or tells jobs apart: nobody else sets it */
};

/* Of a job's header. */
enum header_rule http_header_rule(const struct destination_config *destination, struct slice name);

/* A name is a token; a value stays on its line and has no control characters but the tab. */
bool http_header_is_safe(struct slice name, struct slice value);

/* Of the destination's own headers, and of those that it allows. STATUS_UNSUPPORTED: one cannot be set. */
enum status http_headers_check(const struct destination_config *destination, struct error *err) MUST_CHECK;

#endif
