/*
 * holdings.h - the destinations that this node has, takes and gives away, in the engine's thread.
 *
 * Taking one is an order to the store, then the engine gains it; giving it away is the other way round. Whatever fails is
 * tried again when the next look at the store shows that it must be.
 */
#ifndef DAEMON_HOLDINGS_H
#define DAEMON_HOLDINGS_H

#include "base/slice.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

struct engine;
struct holdings;
struct mailbox;
struct writer;

enum holding_order {
    HOLDING_TAKE,
    HOLDING_GIVE,
    HOLDING_OURS,      /* the store says that it is ours, whatever became of the last order */
    HOLDING_INTRODUCE, /* nobody has ever had it: the others are to hear of it */
};

enum status holdings_new(struct engine *engine, struct writer *writer, struct mailbox *mailbox,
                         struct holdings **ret_holdings, struct error *err) MUST_CHECK;
/* After the engine and the writer. Accepts NULL. */
void holdings_free(struct holdings *holdings);

void holdings_order(struct holdings *holdings, struct slice destination, enum holding_order order);
/* Whether the engine has it, and answers for it; from any thread. */
bool holdings_have(struct holdings *holdings, struct slice destination);
/* How many it took and gave away since the start; likewise. */
void holdings_moved(const struct holdings *holdings, int64_t *ret_taken, int64_t *ret_given);

#endif
