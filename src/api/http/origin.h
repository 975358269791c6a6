/*
 * origin.h - by which name we are called, and from which page.
 *
 * A page that somebody opens in a browser can call what listens on their machine, by a name of its own that it lets point
 * there, or across sites. Neither is taken.
 */
#ifndef API_HTTP_ORIGIN_H
#define API_HTTP_ORIGIN_H

#include "api/http/head.h"
#include "config/config.h"

/* Whether it is localhost, an address, or one of `hosts`. */
bool host_is_ours(const struct config *config, struct slice host);

/* Not a page of others; `is_open`: what is asked for has no facts, so it may be linked to from anywhere. */
bool page_is_ours(const struct http_head *head, bool is_open);

#endif
