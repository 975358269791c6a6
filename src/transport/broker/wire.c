#include "transport/broker/wire.h"

#include "transport/address.h"
#include "transport/curl_send.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <string.h>
#include <sys/socket.h>

enum { RECEIVE_BYTES = 16 * 1024, TURNS_MAX = 16, KEEPALIVE_S = 30 };

static curl_socket_t on_open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct wire *wire = context;
    if (purpose == CURLSOCKTYPE_IPCXN && wire->guarded && address_is_private(&address->addr)) {
        wire->private_address = true;
        return CURL_SOCKET_BAD;
    }
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
        wire->starved = true;
    return fd;
}

void wire_close(struct wire *wire)
{
    event_del(wire->readable);
    event_del(wire->writable);
    if (wire->curl) {
        curl_multi_remove_handle(wire->loop->multi, wire->curl);
        curl_easy_cleanup(wire->curl);
    }
    wire->curl = NULL;
    wire->connected = false;
    buffer_release(&wire->out);
    wire->gone = wire->piece.len = wire->piece.gone = 0;
}

static void lose(struct wire *wire, CURLcode result)
{
    wire_close(wire);
    wire->events->lost(wire->context, result);
}

/* ---- Bytes. ---- */

/*
 * TLS wants a write that found no room repeated from the same place in memory, and may have sent a part of it. So a piece is
 * copied out, of one record at most: half a record is nothing to the other side, and what was not sent did not arrive.
 */
static CURLcode flush(struct wire *wire)
{
    for (;;) {
        size_t left = wire->out.len - wire->gone, sent = 0;
        if (wire->piece.gone == wire->piece.len) {
            if (left == 0)
                break;
            wire->piece.gone = 0;
            wire->piece.len = left < sizeof wire->piece.bytes ? left : sizeof wire->piece.bytes;
            memcpy(wire->piece.bytes, wire->out.data + wire->gone, wire->piece.len);
            wire->gone += wire->piece.len;
        }
        CURLcode result = curl_easy_send(wire->curl, wire->piece.bytes + wire->piece.gone,
                                         wire->piece.len - wire->piece.gone, &sent);
        if (result != CURLE_OK)
            return result;
        wire->piece.gone += sent;
        wire->sent += sent;
    }
    buffer_clear(&wire->out);
    wire->gone = 0;
    return CURLE_OK;
}

static void on_writable(UNUSED evutil_socket_t fd, UNUSED short what, void *context)
{
    struct wire *wire = context;
    if (!wire->connected)
        return; /* what was given before goes out when there is a connection */
    CURLcode result = flush(wire);
    if (result == CURLE_AGAIN)
        event_add(wire->writable, NULL);
    else if (result != CURLE_OK)
        lose(wire, result);
}

/* Some at a time: other connections have their turn. TLS may hold more than the socket shows, so it is asked again. */
static void on_readable(UNUSED evutil_socket_t fd, UNUSED short what, void *context)
{
    struct wire *wire = context;
    for (int i = 0; wire->connected; i++) {
        char bytes[RECEIVE_BYTES];
        size_t len = 0;
        if (i == TURNS_MAX) {
            event_active(wire->readable, EV_READ, 0);
            return;
        }
        CURLcode result = curl_easy_recv(wire->curl, bytes, sizeof bytes, &len);
        if (result == CURLE_AGAIN)
            return;
        if (result == CURLE_OK && len == 0)
            result = CURLE_GOT_NOTHING;
        if (result != CURLE_OK) {
            lose(wire, result);
            return;
        }
        wire->events->received(wire->context, (struct slice){ bytes, len });
    }
}

bool wire_give(struct wire *wire, struct slice bytes)
{
    assert(wire->curl);
    if (wire->gone > wire->out.len / 2) { /* under load it may never be empty */
        memmove(wire->out.data, wire->out.data + wire->gone, wire->out.len - wire->gone);
        wire->out.len -= wire->gone;
        wire->gone = 0;
    }
    if (bytes.len > WIRE_BYTES_MAX - wire->out.len)
        return false;
    buffer_append(&wire->out, bytes);
    if (buffer_status(&wire->out) != STATUS_OK)
        return false;
    wire->given += bytes.len;
    if (wire->connected)
        event_active(wire->writable, EV_WRITE, 0);
    return true;
}

/* ---- Opening. ---- */

static void on_unopened(UNUSED evutil_socket_t fd, UNUSED short what, void *context)
{
    struct wire *wire = context;
    wire->unset = true;
    lose(wire, CURLE_OUT_OF_MEMORY);
}

static void set_options(struct wire *wire, const struct destination_config *destination, const char *url)
{
    CURL *curl = wire->curl;
    curl_set_text(curl, CURLOPT_URL, url, &wire->unset);
    curl_set_text(curl, CURLOPT_PROTOCOLS_STR, "http,https", &wire->unset);
    curl_easy_setopt(curl, CURLOPT_CONNECT_ONLY, 1L);
    curl_easy_setopt(curl, CURLOPT_SSL_ENABLE_ALPN, 0L); /* it is not HTTP that is spoken */
    curl_easy_setopt(curl, CURLOPT_HTTPPROXYTUNNEL, 1L);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_S);
    curl_easy_setopt(curl, CURLOPT_PRIVATE, wire);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, wire->curl_error);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, wire);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)destination->connect_timeout_ms);
    curl_set_way(curl, destination, &wire->unset);
}

void wire_open(struct wire *wire, const struct destination_config *destination, const char *url)
{
    assert(!wire->curl);
    wire->curl_error[0] = '\0';
    wire->starved = wire->unset = wire->private_address = false;
    wire->guarded = !destination->allow_private && !destination->proxy;
    wire->given = wire->sent = 0;
    wire->curl = curl_easy_init();
    if (wire->curl)
        set_options(wire, destination, url);
    if (wire->curl && !wire->unset && curl_multi_add_handle(wire->loop->multi, wire->curl) == CURLM_OK)
        return;
    event_assign(wire->writable, wire->loop->base, -1, 0, on_unopened, wire);
    event_active(wire->writable, EV_TIMEOUT, 0);
}

void wire_connected(void *context, CURLcode result)
{
    struct wire *wire = context;
    curl_socket_t fd = CURL_SOCKET_BAD;
    if (result == CURLE_OK)
        result = curl_easy_getinfo(wire->curl, CURLINFO_ACTIVESOCKET, &fd);
    if (result == CURLE_OK && fd == CURL_SOCKET_BAD)
        result = CURLE_GOT_NOTHING;
    if (result != CURLE_OK) {
        lose(wire, result);
        return;
    }
    wire->connected = true;
    event_assign(wire->readable, wire->loop->base, fd, EV_READ | EV_PERSIST, on_readable, wire);
    event_assign(wire->writable, wire->loop->base, fd, EV_WRITE, on_writable, wire);
    event_add(wire->readable, NULL);
    event_active(wire->writable, EV_WRITE, 0);
    wire->events->opened(wire->context);
}

bool wire_init(struct wire *wire, struct curl_loop *loop, const struct wire_events *events, void *context)
{
    *wire = (struct wire){ .loop = loop, .events = events, .context = context };
    buffer_init(&wire->out, WIRE_BYTES_MAX);
    wire->readable = event_new(loop->base, -1, EV_READ | EV_PERSIST, on_readable, wire);
    wire->writable = event_new(loop->base, -1, EV_WRITE, on_writable, wire);
    return wire->readable && wire->writable;
}

void wire_release(struct wire *wire)
{
    if (wire->readable && wire->writable)
        wire_close(wire);
    if (wire->readable)
        event_free(wire->readable);
    if (wire->writable)
        event_free(wire->writable);
    buffer_release(&wire->out);
}
