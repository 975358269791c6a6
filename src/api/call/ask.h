/*
 * ask.h - questions and orders to the engine: the one way from a call to it.
 *
 * A destination has one owner, whose engine alone knows how it stands and takes orders for it. Here every owner is this
 * process; with more than one node a call about another's destination goes on to that node from here.
 */
#ifndef API_CALL_ASK_H
#define API_CALL_ASK_H

#include "api/call/call.h"

/*
 * In the engine's thread, while the call's memory is nobody else's. Whether that was the answer; false: it comes later, by
 * ask_return.
 */
typedef bool ask_run(struct call *call, struct engine *engine);

/* What only the owner of the destination can answer; `then` runs in the API's thread. Owner unknown: answered with 503. */
void ask(struct call *call, struct slice destination, ask_run *run, void (*then)(struct call *call));
/*
 * What this process knows, of destinations that it owns; of others nothing is known. Also to tell the engine what the store
 * has taken already: that must not fail any more, and another owner hears of it from the store.
 */
void ask_here(struct call *call, ask_run *run, void (*then)(struct call *call));
/* Brings the call back to the API's thread; it may be called in any thread. */
void ask_return(struct call *call);
/* Answers 503: the destination is configured, and nobody has it at the moment. */
void ask_later(struct call *call, struct slice destination);
/* Whether this process owns it. */
bool ask_is_here(const struct call *call, struct slice destination);

/* For an order that is answered when it is in the store: the wait returns to the call. */
struct saved_wait ask_saved(struct call *call);

#endif
