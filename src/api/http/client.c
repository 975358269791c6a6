#include "api/http/client.h"

#include "api/http/answer.h"
#include "api/http/connection.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    FIRST_READ_BYTES = 4 * 1024,
    READ_BYTES = 64 * 1024,
    BODY_READ_BYTES = 256 * 1024,
    REFUSAL_BYTES_MAX = 64 * 1024,
    SAVED_BYTES_MAX = 32 * 1024, /* of memory for the next request */
};

static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";

static void listen_to(struct client *client, bool listens)
{
    if (client->deaf == !listens)
        return;
    client->deaf = !listens;
    if (listens)
        event_add(client->reading, NULL);
    else
        event_del(client->reading);
}

static void enter(struct client *client, enum client_state state)
{
    client->state = state;
    client->pace.since_ms = client->pace.moved_at_ms = http_ticks_ms(client->server);
    client->pace.moved = 0;
}

/* --- memory for all ----------------------------------------------------------------------------------- */

static struct client *client_of_wait(struct room_wait *wait)
{
    return (struct client *)(void *)((char *)wait - offsetof(struct client, wait));
}

void client_hold_room(struct client *client, size_t bytes)
{
    struct http_server *server = client->server;
    size_t had = client->room_bytes;
    client->room_bytes = bytes;
    if (bytes > had)
        room_take_anyway(&server->room, client->room_part, bytes - had);
    if (bytes >= had)
        return;
    room_give(&server->room, client->room_part, had - bytes);
    for (struct room_wait *wait; (wait = room_next(&server->room));) {
        struct client *next = client_of_wait(wait);
        next->room_part = wait->part;
        next->room_bytes = wait->bytes;
        rota_add(&server->rota, &next->turn);
    }
}

/* True: it is there. Else the client waits for it. */
static bool take_room(struct client *client, enum room_part part, size_t bytes)
{
    client_hold_room(client, 0);
    client->room_part = part;
    if (room_take(&client->server->room, part, bytes)) {
        client->room_bytes = bytes;
        return true;
    }
    client->wait.part = part;
    client->wait.bytes = bytes;
    room_wait_begin(&client->server->room, &client->wait);
    enter(client, CLIENT_ROOM);
    return false;
}

bool client_take_room(struct client *client, enum room_part part, size_t bytes, void (*admitted)(void *context),
                      void (*overdue)(void *context))
{
    client->on.admitted = admitted;
    client->on.overdue = overdue;
    client->has_call = true;
    return take_room(client, part, bytes);
}

bool client_try_room(struct client *client, enum room_part part, size_t bytes)
{
    client_hold_room(client, 0);
    client->room_part = part;
    if (room_take(&client->server->room, part, bytes))
        client->room_bytes = bytes;
    else
        client->server->wanted_until_ms = http_ticks_ms(client->server) + WANTED_AGAIN_MS;
    return client->room_bytes == bytes;
}

void client_give_room(struct client *client)
{
    client_hold_room(client, 0);
}

/* --- the end ------------------------------------------------------------------------------------------ */

static void client_free(struct client *client)
{
    if (client->reading)
        event_free(client->reading);
    if (client->writing)
        event_free(client->writing);
    buffer_release(&client->in);
    client_out_release(client);
    free(client);
}

void client_end(struct client *client)
{
    if (client->is_dead)
        return;
    client->is_dead = true;
    event_del(client->reading);
    event_del(client->writing);
    rota_remove(&client->server->rota, &client->turn);
    room_wait_end(&client->server->room, &client->wait);
    client_hold_room(client, 0);
    door_forget(client);
    close(client->fd);
    client->fd = -1;
    if (client->on.gone)
        client->on.gone(client->on.context);
    if (!client->busy)
        client_free(client);
}

/*
 * A socket that is closed with bytes unread takes back what was sent: the client would not learn why. So it is shown that
 * nothing more comes, and what it sends until it has noticed is thrown away.
 */
static void say_goodbye(struct client *client)
{
    char byte;
    bool unread = client->is_refused || recv(client->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
    if (!unread || shutdown(client->fd, SHUT_WR) != 0) {
        client_end(client);
        return;
    }
    buffer_release(&client->in);
    enter(client, CLIENT_LINGER);
    listen_to(client, true);
}

void client_finish(struct client *client)
{
    struct buffer *in = &client->in;
    client_hold_room(client, 0);
    if (!client->is_refused)
        door_completed(client);
    if (client->closes) {
        say_goodbye(client);
        return;
    }
    size_t left = in->len > client->request.consumed ? in->len - client->request.consumed : 0;
    if (in->capacity > SAVED_BYTES_MAX) {
        struct buffer smaller;
        buffer_init(&smaller, in->limit);
        buffer_append(&smaller, (struct slice){ left > 0 ? in->data + client->request.consumed : "", left });
        buffer_release(in);
        *in = smaller;
    } else {
        memmove(in->data, in->data + client->request.consumed, left);
        in->len = left;
    }
    client->request.consumed = client->request.searched = 0;
    enter(client, CLIENT_HEAD);
    listen_to(client, left == 0); /* its end may be there, too, but what it has sent before counts */
    if (left > 0) /* others first */
        rota_add(&client->server->rota, &client->turn);
}

void client_answered(struct client *client)
{
    client->on.gone = NULL;
    client->on.drained = NULL;
    client->follows = false;
    enter(client, CLIENT_ANSWER);
    if (!client->out.first)
        client_finish(client);
}

void client_close_after(struct client *client)
{
    client->closes = true;
}

bool client_closes(const struct client *client)
{
    return client->closes;
}

void client_watch(struct client *client, void (*gone)(void *context), void (*drained)(void *context), void *context)
{
    client->on.gone = gone;
    client->on.drained = drained;
    client->on.context = context;
}

void client_follows(struct client *client)
{
    client->follows = true;
}

bool client_has_left(const struct client *client)
{
    char byte;
    return recv(client->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

struct buffer client_take_input(struct client *client)
{
    struct buffer taken = client->in;
    buffer_init(&client->in, taken.limit);
    return taken;
}

void client_refuse(struct client *client, int status, const char *type, const char *detail)
{
    struct buffer head = buffer_up_to(REFUSAL_BYTES_MAX), body = buffer_up_to(REFUSAL_BYTES_MAX);
    problem_write(&body, status, type, (struct text_place){ 0 }, detail);
    struct answer_form form = { .status = status, .content_type = "application/problem+json", .closes = true,
                                .length = (int64_t)body.len, .headers = SLICE("") };
    if (status == 401)
        form.headers = SLICE("WWW-Authenticate: Bearer\r\n");
    else if (status == 503)
        form.headers = SLICE("Retry-After: 1\r\n");
    answer_head_write(client->server, &form, &head);
    client->server->service.refused(client->server->service.context, status);
    client->closes = client->is_refused = true;
    listen_to(client, false);
    client_send(client, buffer_slice(&head), &body, SLICE(""));
    buffer_release(&head);
    client_answered(client);
}

/* --- a request ---------------------------------------------------------------------------------------- */

/* The slices of an earlier reading are of no use once the buffer has grown. */
static const struct http_head *read_head_again(struct client *client)
{
    const char *problem;
    size_t searched = 0;
    struct http_head *head = &client->server->head;
    enum http_verdict verdict = http_head_read(buffer_slice(&client->in), &searched, head, &problem);
    assert(verdict == HTTP_HEAD_GOOD);
    (void)verdict;
    return head;
}

static void dispatch(struct client *client, const struct http_head *head, size_t body_len)
{
    struct slice body = { client->in.data + client->request.head_bytes, body_len };
    client->closes = !head->keep_alive;
    client->server->rota.others_had_work = true;
    enter(client, CLIENT_CALL);
    client->server->service.request(client->server->service.context, client, head, body);
}

static void begin_body(struct client *client)
{
    enter(client, CLIENT_BODY);
    if (client->request.wants_continue)
        client_send(client, slice_from(go_on), NULL, SLICE(""));
    client->request.wants_continue = false;
    listen_to(client, true);
}

/* A body that is not small: whether this caller may send it, and whether there is room. False: not now, or never. */
static bool may_be_long(struct client *client, const struct http_head *head)
{
    struct body_verdict verdict = { 0 };
    int64_t length = head->chunked ? -1 : head->length;
    const struct http_service *service = &client->server->service;
    if (!service->takes_body(service->context, head, length, &verdict)) {
        client_refuse(client, verdict.status, verdict.type, verdict.detail);
        return false;
    }
    client->request.body_max = verdict.max;
    client->has_call = false;
    size_t bytes = length >= 0 ? (size_t)length : verdict.max;
    if (!take_room(client, ROOM_LARGE, bytes)) {
        listen_to(client, false);
        return false;
    }
    if (length >= 0 && !buffer_reserve(&client->in, (size_t)length + client->request.head_bytes - client->in.len)) {
        client_refuse(client, 503, "no_memory", "no memory for the request; try again");
        return false;
    }
    return true;
}

/* False: wait for more, or it is over. */
static bool read_chunks(struct client *client, const struct http_head *head)
{
    struct client_request *request = &client->request;
    for (;;) {
        switch (http_chunks_read(&request->chunks, client->in.data, client->in.len, &request->chunks_from,
                                 &request->chunks_to, request->head_bytes + request->body_max)) {
        case HTTP_CHUNKS_DONE:
            return true;
        case HTTP_CHUNKS_BAD:
            client_refuse(client, 400, "bad_request", "the chunks of the body cannot be read");
            return false;
        case HTTP_CHUNKS_TOO_LONG:
            if (client->request.body_max > SMALL_BODY_BYTES_MAX) {
                client_refuse(client, 413, "body_too_large", "the body is longer than this call takes; send less at once");
                return false;
            }
            if (!may_be_long(client, head ? head : read_head_again(client)))
                return false;
            continue;
        default:
            client->in.len = client->request.chunks_to; /* all of it is read */
            client->request.chunks_from = client->request.chunks_to;
            return false;
        }
    }
}

/* `head` NULL: it was read in an earlier turn. */
static void step_body(struct client *client, const struct http_head *head)
{
    size_t len = client->request.chunked ? 0 : (size_t)client->request.length;
    if (client->request.chunked) {
        if (!read_chunks(client, head))
            return;
        len = client->request.chunks_to - client->request.head_bytes;
        client->request.consumed = client->request.chunks_from;
    } else if (client->in.len - client->request.head_bytes < len) {
        return;
    } else {
        client->request.consumed = client->request.head_bytes + len;
    }
    dispatch(client, head ? head : read_head_again(client), len);
}

static void refuse_head(struct client *client, enum http_verdict verdict, const char *problem)
{
    if (verdict == HTTP_HEAD_UNKNOWN_METHOD)
        client_refuse(client, 501, "method_not_implemented", problem);
    else if (verdict == HTTP_HEAD_UNKNOWN_EXPECT)
        client_refuse(client, 417, "expectation_failed", problem);
    else
        client_refuse(client, 400, "bad_request", problem);
}

static void step_head(struct client *client)
{
    const char *problem;
    struct http_head *head = &client->server->head;
    enum http_verdict verdict = http_head_read(buffer_slice(&client->in), &client->request.searched, head, &problem);
    if (verdict == HTTP_HEAD_MORE) {
        listen_to(client, true);
        return;
    }
    if (verdict != HTTP_HEAD_GOOD) {
        refuse_head(client, verdict, problem);
        return;
    }
    client->request.head_bytes = head->bytes;
    client->request.length = head->length;
    client->request.chunked = head->chunked;
    client->request.chunks = (struct http_chunks){ 0 };
    client->request.chunks_from = client->request.chunks_to = head->bytes;
    client->request.body_max = SMALL_BODY_BYTES_MAX;
    client->request.wants_continue =
        head->expects_continue && (head->chunked || head->length > 0) && client->in.len == head->bytes;
    client->has_call = false;
    if (head->length > SMALL_BODY_BYTES_MAX && !may_be_long(client, head))
        return;
    if (!head->chunked && client->in.len - head->bytes >= (size_t)head->length) {
        step_body(client, head);
        return;
    }
    begin_body(client);
    step_body(client, NULL);
}

static void process(struct client *client)
{
    client->busy = true;
    if (client->state == CLIENT_HEAD && client->in.len > 0)
        step_head(client);
    else if (client->state == CLIENT_BODY)
        step_body(client, NULL);
    client->busy = false;
    if (client->is_dead)
        client_free(client);
}

/* Its turn has come: for the request behind the one before, or for the memory that it waited for. */
static void on_turn(struct rota_entry *entry)
{
    struct client *client = (struct client *)(void *)((char *)entry - offsetof(struct client, turn));
    if (client->state != CLIENT_ROOM) {
        process(client);
        return;
    }
    if (client->has_call) {
        enter(client, CLIENT_CALL);
        client->on.admitted(client->on.context);
        return;
    }
    begin_body(client);
    process(client);
}

/* --- what comes in ------------------------------------------------------------------------------------ */

static size_t wanted_bytes(const struct client *client)
{
    if (client->state == CLIENT_HEAD)
        return client->in.len == 0 ? FIRST_READ_BYTES : HTTP_HEAD_BYTES_MAX;
    if (client->request.chunked)
        return READ_BYTES;
    size_t left = client->request.head_bytes + (size_t)client->request.length - client->in.len;
    return left < BODY_READ_BYTES ? left : BODY_READ_BYTES;
}

static void throw_away(struct client *client)
{
    char bytes[16 * 1024];
    ssize_t got = recv(client->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        client_end(client);
}

static void on_readable(evutil_socket_t fd, UNUSED short what, void *context)
{
    struct client *client = context;
    if (client->state == CLIENT_LINGER) {
        throw_away(client);
        return;
    }
    if (client->state != CLIENT_HEAD && client->state != CLIENT_BODY) {
        if (client->follows && client_has_left(client))
            client_end(client);
        else
            listen_to(client, false); /* until it is answered */
        return;
    }
    size_t wanted = wanted_bytes(client);
    char *to = buffer_reserve(&client->in, wanted);
    ssize_t got = to ? recv(fd, to, wanted, MSG_DONTWAIT) : -1;
    if (got <= 0) {
        if (!to || got == 0 || (errno != EAGAIN && errno != EINTR))
            client_end(client);
        return;
    }
    if (client->state == CLIENT_HEAD && client->in.len == 0)
        client->pace.since_ms = http_ticks_ms(client->server); /* of the head; no byte behind this one makes it later */
    client->pace.moved += (size_t)got;
    if (client->state == CLIENT_BODY)
        client->pace.moved_at_ms = http_ticks_ms(client->server);
    buffer_commit(&client->in, (size_t)got);
    process(client);
}

struct client *client_new(struct http_server *server, int fd, const struct peer *peer)
{
    struct client *client = calloc(1, sizeof *client);
    if (!client)
        return NULL;
    client->server = server;
    client->fd = fd;
    client->peer = *peer;
    client->turn.run = on_turn;
    buffer_init(&client->in, HTTP_HEAD_BYTES_MAX * 2 + BATCH_BODY_BYTES_MAX + READ_BYTES);
    enter(client, CLIENT_HEAD);
    client->reading = event_new(server->loop, fd, EV_READ | EV_PERSIST, on_readable, client);
    client->writing = event_new(server->loop, fd, EV_WRITE | EV_PERSIST, client_on_writable, client);
    if (client->reading && client->writing && event_add(client->reading, NULL) == 0)
        return client;
    client_free(client);
    return NULL;
}
