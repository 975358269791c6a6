/*
 * oauth.h - access tokens by OAuth 2.0 client credentials (RFC 6749, 4.4), for transports over libcurl.
 *
 * A token is fetched when the first send needs it, used until shortly before it expires, and fetched again when it was
 * refused. However many sends wait, one fetch is under way for a destination; those who waited hear of a failed one and
 * to nobody else.
 */
#ifndef TRANSPORT_OAUTH_H
#define TRANSPORT_OAUTH_H

#include "transport/curl_send.h"

struct event_base;
struct oauth;
struct oauth_token;

/* Somebody who waits. The caller owns it until `done`, or until oauth_leave. */
struct oauth_wait {
    /* NULL: there is a token. Else why not: outcome, attempted, code and text of an answer. */
    void (*done)(struct oauth_wait *wait, const struct answer *failure);
    struct oauth_token *token;
    struct oauth_wait *next;
};

enum status oauth_new(struct event_base *loop, struct oauth **ret_oauth, struct error *err) MUST_CHECK;
/* Nobody waits any more. Accepts NULL. */
void oauth_free(struct oauth *oauth);

/* The destination's token; NULL: it has none now. `ret_number` tells it from others. Valid until the next call. */
const char *oauth_bearer(struct oauth *oauth, const struct destination_config *destination, uint64_t *ret_number);
/* Fetches one, if nobody does yet. `done` is called later, never from inside. False: no memory, and nobody waits. */
bool oauth_wait(struct oauth *oauth, const struct destination_config *destination, struct oauth_wait *wait);
void oauth_leave(struct oauth_wait *wait);
/* The destination did not accept that token: it is not used again. */
void oauth_refused(struct oauth *oauth, const struct destination_config *destination, uint64_t number);
/* The configuration has changed. */
void oauth_forget(struct oauth *oauth);

#endif
