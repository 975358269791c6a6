#include "api/http/door.h"

#include "api/http/answer.h"
#include "api/http/connection.h"
#include "base/descriptors.h"
#include "base/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    ACCEPTED_AT_ONCE = 64,
    ACCEPT_PAUSE_MS = 200, /* after a connection could not be taken */
    TELL_EVERY_MS = 10 * 1000,
    BACKLOG = 4096,
    SWEEP_MS = 1000,
    IDLE_MS = 60 * 1000,
    MEMORY_HELD_MS = 5 * 1000, /* an idle client's */
    HEAD_MS = 10 * 1000,       /* from its first byte to its last */
    MOVING_MS = 30 * 1000,     /* a body or an answer, and for each so many bytes a second more: */
    MOVING_BYTES_A_S = 16 * 1024,
    WANTED_MS = 2 * 1000, /* the same, while others want memory and it has more than its share */
    ROOM_MS = 30 * 1000,
    LINGER_MS = 2 * 1000,
};

/* --- who makes room ------------------------------------------------------------------------------------ */

static void link_newest(struct client *client)
{
    struct door *door = &client->server->door;
    client->older = door->newest;
    client->newer = NULL;
    *(door->newest ? &door->newest->newer : &door->oldest) = client;
    door->newest = client;
}

static void unlink_client(struct client *client)
{
    struct door *door = &client->server->door;
    *(client->older ? &client->older->newer : &door->oldest) = client->newer;
    *(client->newer ? &client->newer->older : &door->newest) = client->older;
}

void door_completed(struct client *client)
{
    if (client->server->door.newest == client)
        return;
    unlink_client(client);
    link_newest(client);
}

void door_forget(struct client *client)
{
    unlink_client(client);
    client->server->door.count--;
}

/* It is false where everybody is being answered. */
static bool send_one_away(struct http_server *server)
{
    struct client *client = server->door.oldest;
    while (client && (client->state == CLIENT_CALL || client->busy))
        client = client->newer;
    if (client)
        client_end(client);
    return client != NULL;
}

void door_measure(struct http_server *server)
{
    server->door.count_max = (size_t)descriptors_share(descriptors_limit(), server->config->connections_max).clients;
}

/* --- who is late --------------------------------------------------------------------------------------- */

/* It must not stop, and not crawl: each byte gives it a little more time, so that many are needed. */
static int64_t moving_until(const struct client *client, int64_t grace_ms)
{
    int64_t stopped = client->pace.moved_at_ms + grace_ms;
    int64_t crawled = client->pace.since_ms + grace_ms + (int64_t)(client->pace.moved / MOVING_BYTES_A_S) * 1000;
    return stopped < crawled ? stopped : crawled;
}

static int64_t grace_of(const struct client *client, int64_t usual_ms)
{
    const struct http_server *server = client->server;
    bool much = client->room_bytes > SMALL_ANSWER_BYTES_MAX;
    bool wanted = room_is_wanted(&server->room) || http_ticks_ms(server) < server->wanted_until_ms;
    return much && wanted ? WANTED_MS : usual_ms;
}

static int64_t deadline_of(const struct client *client)
{
    switch (client->state) {
    case CLIENT_HEAD:
        return client->pace.since_ms + (client->in.len > 0 ? HEAD_MS : IDLE_MS);
    case CLIENT_BODY:
        return moving_until(client, grace_of(client, MOVING_MS));
    case CLIENT_ROOM:
        return client->pace.since_ms + ROOM_MS;
    case CLIENT_CALL:
        return client->out.first && !client->follows ? moving_until(client, grace_of(client, MOVING_MS)) : INT64_MAX;
    case CLIENT_ANSWER:
        return moving_until(client, grace_of(client, MOVING_MS));
    default:
        return client->pace.since_ms + LINGER_MS;
    }
}

static void end_late(struct client *client)
{
    if (client->state == CLIENT_ROOM) {
        room_wait_end(&client->server->room, &client->wait);
        rota_remove(&client->server->rota, &client->turn);
        if (client->has_call)
            client->on.overdue(client->on.context);
        else
            client_refuse(client, 503, "busy", "other requests have all the memory of limits.body_budget; try again");
    } else if (client->state == CLIENT_BODY || (client->state == CLIENT_HEAD && client->in.len > 0)) {
        client_refuse(client, 408, "request_timeout", "the request did not come in time; send it at once");
    } else {
        client_end(client);
    }
}

static void on_sweep(UNUSED evutil_socket_t fd, UNUSED short what, void *context)
{
    struct http_server *server = context;
    struct client *next;
    int64_t now_ms = http_ticks_ms(server);
    for (struct client *client = server->door.oldest; client; client = next) {
        next = client->newer;
        if (now_ms >= deadline_of(client))
            end_late(client);
        else if (client->state == CLIENT_HEAD && client->in.len == 0 && now_ms >= client->pace.since_ms + MEMORY_HELD_MS)
            buffer_release(&client->in);
    }
}

/* --- who comes ----------------------------------------------------------------------------------------- */

static struct peer peer_of(const struct sockaddr_storage *address)
{
    struct peer peer = { 0 };
    const struct in6_addr *six = &((const struct sockaddr_in6 *)address)->sin6_addr;
    if (address->ss_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(six)) {
        peer.is_loopback = IN6_IS_ADDR_LOOPBACK(six);
        memcpy(peer.address, six->s6_addr, 8);
        return peer;
    }
    if (address->ss_family == AF_INET6)
        memcpy(peer.address + 12, six->s6_addr + 12, 4);
    else
        memcpy(peer.address + 12, &((const struct sockaddr_in *)address)->sin_addr, 4);
    peer.is_loopback = peer.address[12] == 127;
    return peer;
}

static bool has_too_many(const struct http_server *server, const struct peer *peer)
{
    int64_t count = 0, max = server->config->connections_per_address;
    if (max == 0 || peer->is_loopback)
        return false;
    for (const struct client *client = server->door.oldest; client && count < max; client = client->newer)
        count += memcmp(client->peer.address, peer->address, sizeof peer->address) == 0;
    return count >= max;
}

/* There is no memory for it, or no place: what it has to say is not read. */
static void turn_away(int fd, const char *type, const char *detail)
{
    char text[512], head[512];
    int len = snprintf(text, sizeof text,
                       "{\"type\":\"%s\",\"title\":\"Service Unavailable\",\"status\":503,\"detail\":\"%s\"}", type, detail);
    int head_len = snprintf(head, sizeof head,
                            "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\n" ANSWER_FOR_ALL
                            ANSWER_NOT_CACHED "Retry-After: 1\r\nContent-Length: %d\r\nConnection: close\r\n\r\n", len);
    struct iovec parts[] = { { head, (size_t)head_len }, { text, (size_t)len } };
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
    bool sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) > 0 && shutdown(fd, SHUT_WR) == 0;
    while (sent && recv(fd, text, sizeof text, MSG_DONTWAIT) > 0)
        continue; /* unread bytes would take the answer back */
    close(fd);
}

static void let_in(struct http_server *server, int fd, const struct sockaddr_storage *address)
{
    struct door *door = &server->door;
    struct peer peer = peer_of(address);
    if (has_too_many(server, &peer)) {
        turn_away(fd, "too_many_connections", "limits.connections_per_address are open from there; use fewer at a time");
        return;
    }
    if (door->count >= door->count_max && !send_one_away(server)) {
        turn_away(fd, "too_many_connections",
                  "limits.connections are open, all with requests under way; use fewer at a time");
        return;
    }
    struct client *client = client_new(server, fd, &peer);
    if (!client) {
        turn_away(fd, "no_memory", "no memory for another connection; try again");
        return;
    }
    link_newest(client);
    door->count++;
}

/* Who knocks is still there in a moment; asking at once again would never end. */
static void pause_accepting(struct http_server *server, int number)
{
    const struct timeval pause = { 0, ACCEPT_PAUSE_MS * 1000 };
    int64_t now_ms = http_ticks_ms(server);
    if (server->door.reported_at_ms == 0 || now_ms >= server->door.reported_at_ms + TELL_EVERY_MS) {
        log_event(LOG_ERROR, "accept_failed", FIELD_CSTR("error", strerror(number)),
                  FIELD_CSTR("advice", "raise the limit of open files, or lower limits.connections"));
        server->door.reported_at_ms = now_ms;
    }
    if (event_add(server->door.again, &pause) == 0)
        event_del(server->door.knock);
}

static void on_knock(evutil_socket_t fd, UNUSED short what, void *context)
{
    struct http_server *server = context;
    bool sent_away = false;
    for (int i = 0; i < ACCEPTED_AT_ONCE; i++) {
        struct sockaddr_storage address = { 0 };
        socklen_t len = sizeof address;
        int accepted = accept4(fd, (struct sockaddr *)&address, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (accepted >= 0) {
            let_in(server, accepted, &address);
            continue;
        }
        if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
            return;
        int number = errno;
        if (sent_away || !send_one_away(server)) {
            pause_accepting(server, number);
            return;
        }
        sent_away = true;
    }
}

static void on_again(UNUSED evutil_socket_t fd, UNUSED short what, void *context)
{
    struct http_server *server = context;
    if (server->door.fd >= 0)
        event_add(server->door.knock, NULL);
}

/* --- opening and closing ------------------------------------------------------------------------------- */

/* The number of a socket that listens; -1: errno says why not. */
static int listen_at(const struct addrinfo *address)
{
    const int on = 1;
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    /* Accepted sockets take NODELAY over; without it the end of an answer waits until the client confirms its beginning. */
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0 &&
        bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int number = errno;
    close(fd);
    errno = number;
    return -1;
}

static enum status bind_address(struct http_server *server, struct error *err)
{
    const struct listen_address *address = &server->config->listen;
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
    struct addrinfo *found = NULL;
    char port[16];
    snprintf(port, sizeof port, "%d", address->port);
    int failed = getaddrinfo(address->host, port, &hints, &found);
    if (failed != 0)
        return error_set(err, STATUS_IO, "cannot listen on %s:%s: %s; set `listen:`", address->host, port,
                         gai_strerror(failed));
    server->door.fd = listen_at(found);
    int number = errno;
    freeaddrinfo(found);
    if (server->door.fd < 0)
        return error_set(err, STATUS_IO, "cannot listen on %s:%d: %s; is another insist running? set `listen:` or stop it",
                         address->host, address->port, strerror(number));
    struct sockaddr_storage bound;
    socklen_t len = sizeof bound;
    if (getsockname(server->door.fd, (struct sockaddr *)&bound, &len) == 0)
        server->port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                                       : ((struct sockaddr_in *)&bound)->sin_port);
    return STATUS_OK;
}

enum status door_open(struct http_server *server, struct error *err)
{
    const struct timeval every = { SWEEP_MS / 1000, SWEEP_MS % 1000 * 1000 };
    struct door *door = &server->door;
    enum status status = bind_address(server, err);
    if (status != STATUS_OK)
        return status;
    door_measure(server);
    door->knock = event_new(server->loop, door->fd, EV_READ | EV_PERSIST, on_knock, server);
    door->again = event_new(server->loop, -1, 0, on_again, server);
    door->sweep = event_new(server->loop, -1, EV_PERSIST, on_sweep, server);
    if (!door->knock || !door->again || !door->sweep || event_add(door->knock, NULL) != 0 ||
        event_add(door->sweep, &every) != 0)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the HTTP server");
    return STATUS_OK;
}

void door_shut(struct http_server *server)
{
    struct door *door = &server->door;
    if (door->fd < 0)
        return;
    event_del(door->knock);
    close(door->fd);
    door->fd = -1;
}

void door_release(struct http_server *server)
{
    struct door *door = &server->door;
    struct event *events[] = { door->knock, door->sweep, door->again };
    while (door->oldest)
        client_end(door->oldest);
    if (door->knock)
        door_shut(server);
    else if (door->fd >= 0)
        close(door->fd);
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        if (events[i])
            event_free(events[i]);
}
