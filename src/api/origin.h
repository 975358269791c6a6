/*
 * origin.h - by which name we are called, and from which page.
 *
 * A page that somebody opens in a browser can call what listens on their machine, by a name of its own that it lets point
 * there, or across sites. Neither is taken.
 */
#ifndef API_ORIGIN_H
#define API_ORIGIN_H

#include "api/call.h"

/* localhost, an address, or one of `hosts`. False: answered with 421 already, and the connection ends. */
bool host_is_ours(struct call *call);

/* Where no token is asked for, not a page of others. False: answered with 403 already. */
bool page_is_ours(struct call *call);

#endif
