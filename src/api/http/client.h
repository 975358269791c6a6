/*
 * client.h - one connection: it reads a request, has it answered, and reads the next.
 *
 * The next request is looked at when the answer to the one before is written, so answers keep their order and nobody
 * can pile up work. Whatever is no request as http_head.h has it is refused, and that is the connection's end.
 */
#ifndef API_HTTP_CLIENT_H
#define API_HTTP_CLIENT_H

#include "api/http/room.h"
#include "base/buffer.h"

struct client;

/*
 * Sends, or keeps until the client takes it: `head`, which is copied, then `body`, whose memory is taken and which may be
 * NULL, then `tail`, which is copied. The client may be gone afterwards, which `gone` has reported.
 */
void client_send(struct client *client, struct slice head, struct buffer *body, struct slice tail);
/* All of the answer was sent: the next request may come. The client may be gone afterwards. */
void client_answered(struct client *client);
/* The connection ends with this answer. */
void client_close_after(struct client *client);
bool client_closes(const struct client *client);
/* At once, without an answer; `gone` is called. */
void client_end(struct client *client);

/*
 * `gone` is called when the connection is closed, by whomever, `drained` when everything that was sent is taken by the
 * client; NULL: nobody hears of it. Replaces those before.
 */
void client_watch(struct client *client, void (*gone)(void *context), void (*drained)(void *context), void *context);
/* The memory that was taken for the answer is not needed. */
void client_give_room(struct client *client);
/*
 * Until it is answered: it goes when it closes its side, which is heard of at once, and who makes an answer without an end
 * sees to it that it is read.
 */
void client_follows(struct client *client);
/* Not everything that was sent is taken. */
bool client_has_unsent(const struct client *client);
/* Whether the other side has closed, as far as the system knows. */
bool client_has_left(const struct client *client);
/* What the request's slices point into becomes the caller's. */
struct buffer client_take_input(struct client *client);

/*
 * Takes memory for an answer that is going to be made, given back as the client reads it. True: it is there. Else `admitted`
 * is called when it is, or `overdue` when that takes too long.
 */
bool client_take_room(struct client *client, enum room_part part, size_t bytes, void (*admitted)(void *context),
                      void (*overdue)(void *context));
/* The same without waiting: false, there is none. */
bool client_try_room(struct client *client, enum room_part part, size_t bytes);

#endif
