/*
 * address.h - which network addresses are private.
 */
#ifndef TRANSPORT_ADDRESS_H
#define TRANSPORT_ADDRESS_H

#include <stdbool.h>

struct sockaddr;

/*
 * Loopback, private, link-local, shared, multicast, unspecified and documentation ranges of IPv4 and IPv6,
 * also an IPv4 address written inside an IPv6 one. What is neither IPv4 nor IPv6 counts as private.
 */
bool address_is_private(const struct sockaddr *address);
/* The same for "10.0.0.1" or "fe80::1"; what cannot be read counts as private. */
bool address_text_is_private(const char *text);

#endif
