/*
 * pieces.h - an answer of any length: one piece of it is held in memory.
 */
#ifndef API_CALL_PIECES_H
#define API_CALL_PIECES_H

#include "api/call/call.h"

/*
 * `next` appends the next piece, and is called again when the client has taken it. The client may go in between; the call
 * then ends. After a failure the connection is closed without the end that HTTP has for such answers: the client can tell
 * that something is missing.
 * PIECE_WAIT: there is no more now; `next` is called again after call_stream_wake. PIECE_READ, with nothing appended: the
 * store is read first, by call_read's door; what it fails with, perhaps without `read`, is for `next` to tell: it is in
 * call->reading, its text in call->reading.apart.error.
 */
enum piece { PIECE_MORE, PIECE_WAIT, PIECE_READ, PIECE_LAST, PIECE_FAILED };
typedef enum piece piece_maker(struct call *call, struct buffer *out);
void call_stream(struct call *call, const char *content_type, call_reader *read, piece_maker *next);
/* Does nothing unless it waits. The call may be gone afterwards. */
void call_stream_wake(struct call *call);
/* The same, at once: before others, and though it is busy. The call may be gone afterwards. */
void call_stream_hurry(struct call *call);
/* The client does not take what was sent: `last` is put behind it, and that was the answer. The call is gone. */
void call_stream_cut(struct call *call, struct buffer *last);
/* Calls `visit` with each answer under way whose pieces `next` makes; it may wake or cut that one. Returns how many. */
size_t call_streams_visit(struct api *api, piece_maker *next, void (*visit)(struct call *call, void *context),
                          void *context);
/* Whether a piece is on its way, which the client has not taken. */
bool call_stream_is_writing(const struct call *call);
/* Ends those that wait, for a client to read or for a wake-up, as after a failure: the daemon stops. */
void call_streams_end(struct api *api);

#endif
