/*
 * pins.h - which destinations are pinned to a node.
 *
 * All nodes must place destinations alike, while their configurations may differ for a while: so what counts is in the
 * store, and whoever owns the steward's office puts there what its own configuration says.
 */
#ifndef DAEMON_PINS_H
#define DAEMON_PINS_H

#include "config/config.h"
#include "node/writer.h"

/* All zero: none are known. */
struct pins {
    char *text; /* as the store has them; NULL: nothing */
    void *names; /* of nodes, by destination */
};

enum status pins_read(struct pins *pins, struct store_reader *reader, struct error *err) MUST_CHECK;
void pins_release(struct pins *pins);
/* Where it is pinned to; empty: to none. Until the next read. */
struct slice pins_of(const struct pins *pins, struct slice destination);
/* An order for the store if it has other pins than the configuration; NULL: it has these, or there is no memory. */
struct batch *pins_change(const struct pins *pins, const struct config *config);

#endif
