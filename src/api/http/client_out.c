/*
 * What goes out: written at once as far as the system takes it, the rest when the client has read.
 */
#include "api/http/connection.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

enum {
    WRITE_BYTES_MAX = 256 * 1024, /* at once; others have their turn in between */
    PIECES_AT_ONCE = 8,
};

static size_t total_of(const struct slice *parts, size_t count)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += parts[i].len;
    return total;
}

/* How much the system took. -1: the connection is broken. */
static ssize_t send_parts(const struct client *client, const struct slice *parts, size_t count)
{
    struct iovec vector[PIECES_AT_ONCE];
    size_t used = 0, left = WRITE_BYTES_MAX;
    for (size_t i = 0; i < count && left > 0; i++) {
        size_t len = parts[i].len < left ? parts[i].len : left;
        vector[used] = (struct iovec){ (void *)(uintptr_t)parts[i].data, len };
        used += len > 0;
        left -= len;
    }
    struct msghdr message = { .msg_iov = vector, .msg_iovlen = used };
    ssize_t sent = sendmsg(client->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOBUFS) ? 0 : sent;
}

/* `memory` is taken. False: there is none. */
static bool keep(struct client *client, char *memory, size_t len, size_t sent)
{
    struct out_piece *piece = memory ? malloc(sizeof *piece) : NULL;
    if (!piece) {
        free(memory);
        return false;
    }
    *piece = (struct out_piece){ .data = memory, .len = len, .sent = sent };
    if (!client->out.first)
        client->out.last = &client->out.first;
    *client->out.last = piece;
    client->out.last = &piece->next;
    client->out.bytes += len - sent;
    return true;
}

static bool keep_copy(struct client *client, struct slice text, size_t sent)
{
    if (sent >= text.len)
        return true;
    char *copy = malloc(text.len - sent);
    if (copy)
        memcpy(copy, text.data + sent, text.len - sent);
    return keep(client, copy, text.len - sent, 0);
}

/* What of a part was sent, of `*sent` bytes in all, which is lowered by it. */
static size_t share_of(size_t len, size_t *sent)
{
    size_t share = *sent < len ? *sent : len;
    *sent -= share;
    return share;
}

static void keep_rest(struct client *client, struct slice head, struct buffer *body, struct slice tail, size_t sent)
{
    bool saved = keep_copy(client, head, share_of(head.len, &sent));
    if (saved && body && body->len > 0) {
        size_t len = body->len, share = share_of(len, &sent);
        if (share < len)
            saved = keep(client, buffer_take(body), len, share);
    }
    saved = saved && keep_copy(client, tail, sent);
    if (!saved)
        shutdown(client->fd, SHUT_RDWR); /* the next write fails, and that is the end */
    if (client->room_bytes == 0) /* nobody has asked for it before */
        client->room_part = client->out.bytes > SMALL_ANSWER_BYTES_MAX ? ROOM_LARGE : ROOM_SMALL;
    client_hold_room(client, client->out.bytes);
    event_add(client->writing, NULL);
}

void client_send(struct client *client, struct slice head, struct buffer *body, struct slice tail)
{
    struct slice parts[] = { head, body ? buffer_slice(body) : SLICE(""), tail };
    size_t total = total_of(parts, 3);
    ssize_t sent = client->out.first ? 0 : send_parts(client, parts, 3);
    if (!client->out.first) {
        client->pace.since_ms = client->pace.moved_at_ms = http_ticks_ms(client->server);
        client->pace.moved = 0;
    }
    if (sent < 0 || (size_t)sent < total)
        keep_rest(client, head, body, tail, sent < 0 ? 0 : (size_t)sent);
    if (body)
        buffer_release(body);
}

static void drop_sent(struct client *client, size_t sent)
{
    client->out.bytes -= sent;
    client->pace.moved += sent;
    while (client->out.first && sent >= client->out.first->len - client->out.first->sent) {
        struct out_piece *piece = client->out.first;
        sent -= piece->len - piece->sent;
        client->out.first = piece->next;
        free(piece->data);
        free(piece);
    }
    if (client->out.first)
        client->out.first->sent += sent;
}

void client_on_writable(UNUSED evutil_socket_t fd, UNUSED short what, void *context)
{
    struct client *client = context;
    struct slice parts[PIECES_AT_ONCE];
    size_t count = 0;
    for (struct out_piece *piece = client->out.first; piece && count < PIECES_AT_ONCE; piece = piece->next)
        parts[count++] = (struct slice){ piece->data + piece->sent, piece->len - piece->sent };
    ssize_t sent = send_parts(client, parts, count);
    if (sent < 0) {
        client_end(client);
        return;
    }
    drop_sent(client, (size_t)sent);
    if (sent > 0)
        client->pace.moved_at_ms = http_ticks_ms(client->server);
    client_hold_room(client, client->out.bytes);
    if (client->out.first)
        return;
    event_del(client->writing);
    if (client->on.drained)
        client->on.drained(client->on.context);
    else if (client->state == CLIENT_ANSWER)
        client_finish(client);
}

bool client_has_unsent(const struct client *client)
{
    return client->out.first != NULL;
}

void client_out_release(struct client *client)
{
    while (client->out.first) {
        struct out_piece *piece = client->out.first;
        client->out.first = piece->next;
        free(piece->data);
        free(piece);
    }
}
