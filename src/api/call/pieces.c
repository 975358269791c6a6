/*
 * Answers in pieces: one is made when the client has taken the one before, and each in its turn on the rota.
 */
#include "api/call/pieces.h"

#include "api/call/shared.h"
#include "api/http/answer.h"
#include "api/http/client.h"

#include <stdio.h>

struct stream {
    struct rota_entry turn; /* first */
    struct call *call;
    call_reader *read;
    piece_maker *next;
    bool waiting; /* for call_stream_wake */
    bool reading; /* it is the store's turn: nothing is freed until that is through */
    struct stream *next_stream, **link; /* of all */
};

static void stream_free(struct stream *stream)
{
    rota_remove(&stream->call->api->http.rota, &stream->turn);
    *stream->link = stream->next_stream;
    if (stream->next_stream)
        stream->next_stream->link = stream->link;
    call_free(stream->call); /* the stream is in its memory */
}

static void stream_end(struct stream *stream, bool complete)
{
    struct client *client = stream->call->client;
    client_watch(client, NULL, NULL, NULL);
    if (complete) {
        client_send(client, stream->call->head.old ? SLICE("") : SLICE("0\r\n\r\n"), NULL, SLICE(""));
        client_answered(client);
    } else {
        client_end(client);
    }
    stream_free(stream);
}

static void stream_send(struct stream *stream, struct buffer *piece)
{
    char size[24];
    bool raw = stream->call->head.old;
    int len = raw ? 0 : snprintf(size, sizeof size, "%zx\r\n", piece->len);
    client_send(stream->call->client, (struct slice){ size, (size_t)len }, piece, raw ? SLICE("") : SLICE("\r\n"));
}

static void stream_make(struct stream *stream);

static void on_read(struct call *call)
{
    struct stream *stream = call->pieces.stream;
    stream->reading = false;
    if (call->client)
        stream_make(stream);
    else
        stream_free(stream);
}

/* The next piece, and what follows from it. */
static void stream_make(struct stream *stream)
{
    struct call *call = stream->call;
    struct buffer piece = call_buffer();
    enum piece made = call->api->stopping ? PIECE_FAILED : stream->next(call, &piece);
    if (made == PIECE_READ) {
        stream->reading = true;
        call_read(call, stream->read, on_read);
        return;
    }
    if (buffer_status(&piece) != STATUS_OK)
        made = PIECE_FAILED;
    if (made != PIECE_FAILED && piece.len > 0)
        stream_send(stream, &piece);
    buffer_release(&piece);
    if (made == PIECE_LAST || made == PIECE_FAILED)
        stream_end(stream, made == PIECE_LAST);
    else if (client_has_unsent(call->client))
        return;
    else if (made == PIECE_MORE)
        rota_add(&call->api->http.rota, &stream->turn);
    else
        stream->waiting = true;
}

static void stream_go_on(struct stream *stream)
{
    rota_remove(&stream->call->api->http.rota, &stream->turn);
    if (stream->reading || client_has_unsent(stream->call->client))
        return; /* goes on when it is read, or taken */
    stream->waiting = false;
    stream_make(stream);
}

static void on_room(void *context)
{
    stream_go_on(context);
}

static void on_no_room(void *context)
{
    stream_end(context, false);
}

static void on_turn(struct rota_entry *entry)
{
    struct stream *stream = (struct stream *)entry;
    struct client *client = stream->call->client;
    /* A piece is counted when it is made; before that there must be room at all. */
    if (stream->call->pieces.small || client_has_unsent(client) ||
        client_take_room(client, ROOM_LARGE, 1, on_room, on_no_room))
        stream_go_on(stream);
}

static void on_drained(void *context)
{
    struct stream *stream = context;
    rota_add(&stream->call->api->http.rota, &stream->turn);
}

static void on_gone(void *context)
{
    struct stream *stream = context;
    call_client_left(stream->call);
    if (!stream->reading)
        stream_free(stream);
}

void call_stream(struct call *call, const char *content_type, call_reader *read, piece_maker *next)
{
    struct api *api = call->api;
    struct buffer nothing = call_buffer(), head = call_buffer();
    struct stream *stream = arena_alloc(&call->memory, sizeof *stream);
    if (!stream) {
        call_no_memory(call);
        return;
    }
    if (!call->client || call->head.method == HTTP_HEAD) {
        call_send(call, 200, content_type, &nothing);
        return;
    }
    *stream = (struct stream){ .turn.run = on_turn, .call = call, .read = read, .next = next,
                               .next_stream = api->streams.first, .link = &api->streams.first };
    if (stream->next_stream)
        stream->next_stream->link = &stream->next_stream;
    api->streams.first = stream;
    call->pieces.stream = stream;
    call_measured(call, 200);
    if (call->head.old)
        client_close_after(call->client); /* it has no other way to see the end */
    call_begin_answer(call, 200, content_type, call->head.old ? ANSWER_TO_THE_END : ANSWER_IN_CHUNKS, &head);
    client_give_room(call->client); /* each piece is counted for itself */
    client_watch(call->client, on_gone, on_drained, stream);
    if (call->pieces.small)
        client_follows(call->client);
    client_send(call->client, buffer_slice(&head), NULL, SLICE(""));
    buffer_release(&head);
    rota_add(&api->http.rota, &stream->turn);
}

void call_stream_wake(struct call *call)
{
    if (call->pieces.stream->waiting)
        rota_add(&call->api->http.rota, &call->pieces.stream->turn);
}

void call_stream_hurry(struct call *call)
{
    stream_go_on(call->pieces.stream);
}

void call_stream_cut(struct call *call, struct buffer *last)
{
    struct stream *stream = call->pieces.stream;
    bool sent = buffer_status(last) == STATUS_OK && last->len > 0;
    if (sent)
        stream_send(stream, last);
    buffer_release(last);
    stream_end(stream, sent);
}

bool call_stream_is_writing(const struct call *call)
{
    return client_has_unsent(call->client);
}

size_t call_streams_visit(struct api *api, piece_maker *next, void (*visit)(struct call *call, void *context), void *context)
{
    size_t count = 0;
    struct stream *following;
    for (struct stream *stream = api->streams.first; stream; stream = following) {
        following = stream->next_stream;
        if (stream->next != next || !stream->call->client) /* who is gone goes when it is read */
            continue;
        count++;
        if (visit)
            visit(stream->call, context);
    }
    return count;
}

void call_streams_end(struct api *api)
{
    struct stream *next;
    for (struct stream *stream = api->streams.first; stream; stream = next) {
        next = stream->next_stream;
        if (!stream->reading) /* else it sees by itself that the daemon stops */
            stream_end(stream, false);
    }
}
