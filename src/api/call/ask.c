#include "api/call/ask.h"

#include "api/call/relay.h"
#include "api/call/shared.h"

enum { OWNER_RETRY_AFTER_S = 2 }; /* by then another node has taken over what a dead one had, or soon will */

static void on_returned(struct message *message)
{
    struct call *call = message_of(message, MESSAGE_ANSWER);
    call->asked.then(call);
}

void ask_return(struct call *call)
{
    mailbox_post(call->api->mailbox, &call->message, MESSAGE_ANSWER, on_returned);
}

static void on_engine(struct message *message)
{
    struct call *call = message_of(message, MESSAGE_CALL);
    if (call->asked.run(call, call->api->settings.engine))
        ask_return(call);
}

void ask_here(struct call *call, ask_run *run, void (*then)(struct call *call))
{
    call->asked.run = run;
    call->asked.then = then;
    mailbox_post(call->api->settings.engine_mailbox, &call->message, MESSAGE_CALL, on_engine);
}

bool ask_is_here(const struct call *call, struct slice destination)
{
    const struct api_settings *settings = &call->api->settings;
    struct owner_place place;
    return !settings->owner || settings->owner(settings->context, destination, &place) == OWNER_HERE;
}

void ask_later(struct call *call, struct slice destination)
{
    call->answer.retry_after_s = OWNER_RETRY_AFTER_S;
    call_problem(call, 503, "owner_unknown",
                 "no node owns destination \"%.*s\" at the moment; nothing was changed, try again", SLICE_ARG(destination));
}

void ask(struct call *call, struct slice destination, ask_run *run, void (*then)(struct call *call))
{
    const struct api_settings *settings = &call->api->settings;
    struct owner_place place;
    enum owner owner = settings->owner ? settings->owner(settings->context, destination, &place) : OWNER_HERE;
    if (owner == OWNER_HERE) {
        ask_here(call, run, then);
    } else if (owner == OWNER_ELSEWHERE && settings->forward && !relay_is_one(call)) {
        relay(call, &place);
    } else if (owner == OWNER_ELSEWHERE && relay_is_one(call)) {
        call->answer.retry_after_s = OWNER_RETRY_AFTER_S;
        call_problem(call, 503, "owner_unknown",
                     "destination \"%.*s\" has just changed its owner, or the node.url of node \"%s\" leads to another node; "
                     "nothing was changed, try again", SLICE_ARG(destination), place.node);
    } else {
        ask_later(call, destination);
    }
}

static void on_saved(struct saved_wait *wait)
{
    ask_return(wait->context);
}

struct saved_wait ask_saved(struct call *call)
{
    return (struct saved_wait){ .done = on_saved, .context = call };
}
