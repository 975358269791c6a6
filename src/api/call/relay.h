/*
 * relay.h - a call that another node answers: it goes there as it came, and its answer comes back as it is.
 *
 * What is no answer of an insist that knows the caller becomes a 503, which says what is wrong with that node.
 *
 * Who called was looked at here. With node.token the other node takes this one's word for it; without, the caller's own
 * token goes along.
 */
#ifndef API_CALL_RELAY_H
#define API_CALL_RELAY_H

#include "api/call/call.h"

/* That a call came by this way: it goes no further. */
#define RELAYED_HEADER "Insist-Relayed"

struct owner_place;

void relay(struct call *call, const struct owner_place *place);
/* The client has gone: the other node hears of it, and leases nothing for nobody. */
void relay_abandon(struct call *call);
/* Whether the header Authorization has the nodes' own token. */
bool relay_is_from_node(const struct api *api, struct slice authorization);
bool relay_is_one(const struct call *call);
/*
 * Whether the call was passed on by a node that has the token; who it is from is then set. False with *ret_bad: it claims
 * so, and does not say for whom.
 */
bool relay_identify(struct call *call, bool *ret_bad);

#endif
