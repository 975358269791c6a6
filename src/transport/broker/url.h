/*
 * url.h - of redis://user:password@host:port/path what is needed to connect and to log in.
 */
#ifndef TRANSPORT_BROKER_URL_H
#define TRANSPORT_BROKER_URL_H

#include "base/status.h"

#include <stdbool.h>

struct broker_url {
    char *connect; /* http:// or https:// and where to, for libcurl */
    char *username, *password, *path; /* decoded; NULL: it has none */
};

struct broker_scheme {
    const char *tls_scheme; /* "rediss://" */
    int port, tls_port;
};

/* `username` and `password` are taken where the url has none; may be NULL. False: it is no url, or memory is out. */
bool broker_url_read(const struct broker_scheme *scheme, const char *text, const char *username, const char *password,
                     struct broker_url *ret_url) MUST_CHECK;
void broker_url_release(struct broker_url *url); /* one that was not read, too */

#endif
