#include "support/receiver.h"

#include "support/check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    KEPT_REQUESTS = 32,
    HEADERS_MAX = 256 * 1024,
    BODY_MAX = 64 << 20,
    FILLERS = 4,
    STACK_BYTES = 512 * 1024,
    SMALL_WINDOW_BYTES = 4096, /* so that a large body cannot hide in the kernel's buffers */
    SLOW_MS = 20,
    AWAIT_MS = 60000,
};

struct connection {
    struct receiver *receiver;
    pthread_t thread;
    int fd;
    SSL *ssl;
    struct buffer in; /* read and not yet used */
    bool finished;
    struct connection *next;
};

struct receiver {
    struct receiver_settings settings;
    int listener, port;
    int fillers[FILLERS];
    SSL_CTX *tls;
    pthread_t acceptor;
    pthread_mutex_t lock; /* over all below */
    bool stopping;
    struct connection *connections;
    const struct receiver_reply *replies;
    size_t reply_count, reply_next;
    size_t request_count, connection_count, under_way, under_way_most, ended_count;
    struct receiver_request kept[KEPT_REQUESTS];
};

static void sleep_ms(int ms)
{
    struct timespec wait = { ms / 1000, ms % 1000 * 1000000L };
    nanosleep(&wait, NULL);
}

/* --- reading and writing ----------------------------------------------------------------------- */

static bool line_write(struct connection *connection, struct slice bytes)
{
    while (bytes.len > 0) {
        ssize_t written = connection->ssl ? SSL_write(connection->ssl, bytes.data, (int)bytes.len)
                                          : send(connection->fd, bytes.data, bytes.len, MSG_NOSIGNAL);
        if (written <= 0)
            return false;
        bytes = slice_from_offset(bytes, (size_t)written);
    }
    return true;
}

/* More bytes into `in`; false at the end. */
static bool line_read(struct connection *connection)
{
    char bytes[16384];
    ssize_t len = connection->ssl ? SSL_read(connection->ssl, bytes, sizeof bytes) : recv(connection->fd, bytes, sizeof bytes, 0);
    if (len <= 0)
        return false;
    buffer_append(&connection->in, (struct slice){ bytes, (size_t)len });
    return buffer_status(&connection->in) == STATUS_OK;
}

static void consume(struct connection *connection, size_t len)
{
    memmove(connection->in.data, connection->in.data + len, connection->in.len - len);
    connection->in.len -= len;
}

static void line_hang(struct connection *connection)
{
    char bytes[256];
    struct pollfd wait = { .fd = connection->fd, .events = POLLRDHUP };
    while (poll(&wait, 1, -1) < 0 && errno == EINTR) {
    }
    while (recv(connection->fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
    }
}

static void reset_on_close(struct connection *connection)
{
    struct linger now = { .l_onoff = 1 };
    setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

/* --- requests ---------------------------------------------------------------------------------- */

static bool read_headers(struct connection *connection, struct receiver_request *request)
{
    for (;;) {
        struct slice in = buffer_slice(&connection->in);
        size_t end = slice_search(in, SLICE("\r\n\r\n"));
        if (end < in.len) {
            size_t line = slice_search(in, SLICE("\r\n"));
            struct slice first = { in.data, line };
            size_t space = slice_find(first, ' ');
            struct slice rest = slice_from_offset(first, space + 1);
            buffer_append(&request->method, (struct slice){ first.data, space });
            buffer_append(&request->path, (struct slice){ rest.data, slice_find(rest, ' ') });
            buffer_append(&request->headers, (struct slice){ in.data + line + 2, end - line });
            consume(connection, end + 4);
            return true;
        }
        if (!line_read(connection))
            return false;
    }
}

static struct slice header_of(struct slice headers, struct slice name)
{
    while (headers.len > 0) {
        size_t end = slice_find(headers, '\n');
        struct slice line = { headers.data, end };
        size_t colon = slice_find(line, ':');
        if (slice_equal_nocase((struct slice){ line.data, colon }, name))
            return slice_trim(slice_from_offset(line, colon + 1));
        headers = slice_from_offset(headers, end + 1);
    }
    return SLICE("");
}

static bool read_body(struct connection *connection, struct receiver_request *request)
{
    int64_t len = 0;
    struct slice said = header_of(buffer_slice(&request->headers), SLICE("Content-Length"));
    if (said.len > 0 && (!slice_to_int64(said, &len) || len < 0))
        return false;
    while (connection->in.len < (size_t)len)
        if (!line_read(connection))
            return false;
    buffer_append(&request->body, (struct slice){ connection->in.data, (size_t)len });
    if (len > 0)
        consume(connection, (size_t)len);
    return true;
}

static void request_init(struct receiver_request *request)
{
    buffer_init(&request->method, HEADERS_MAX);
    buffer_init(&request->path, HEADERS_MAX);
    buffer_init(&request->headers, HEADERS_MAX);
    buffer_init(&request->body, BODY_MAX);
}

void receiver_request_release(struct receiver_request *request)
{
    buffer_release(&request->method);
    buffer_release(&request->path);
    buffer_release(&request->headers);
    buffer_release(&request->body);
}

static void request_copy(const struct receiver_request *from, struct receiver_request *to)
{
    request_init(to);
    buffer_append(&to->method, buffer_slice(&from->method));
    buffer_append(&to->path, buffer_slice(&from->path));
    buffer_append(&to->headers, buffer_slice(&from->headers));
    buffer_append(&to->body, buffer_slice(&from->body));
}

static struct receiver_reply next_reply(struct receiver *receiver)
{
    static const struct receiver_reply ok;
    pthread_mutex_lock(&receiver->lock);
    struct receiver_reply reply = receiver->reply_count > 0 ? receiver->replies[receiver->reply_next] : ok;
    if (receiver->reply_next + 1 < receiver->reply_count)
        receiver->reply_next++;
    pthread_mutex_unlock(&receiver->lock);
    return reply;
}

/* Its number, from 0. */
static size_t request_begun(struct receiver *receiver)
{
    pthread_mutex_lock(&receiver->lock);
    size_t number = receiver->request_count++;
    receiver->under_way++;
    if (receiver->under_way > receiver->under_way_most)
        receiver->under_way_most = receiver->under_way;
    pthread_mutex_unlock(&receiver->lock);
    return number;
}

/* Kept before it is answered: whoever has the answer finds the request. */
static void request_keep(struct receiver *receiver, const struct receiver_request *request, size_t number)
{
    pthread_mutex_lock(&receiver->lock);
    struct receiver_request *place = &receiver->kept[number % KEPT_REQUESTS];
    receiver_request_release(place);
    request_copy(request, place);
    pthread_mutex_unlock(&receiver->lock);
}

static void request_ended(struct receiver *receiver)
{
    pthread_mutex_lock(&receiver->lock);
    receiver->under_way--;
    pthread_mutex_unlock(&receiver->lock);
}

/* --- answers ----------------------------------------------------------------------------------- */

static bool has_body(const struct receiver_request *request, int status)
{
    return !(request && slice_equal(buffer_slice(&request->method), SLICE("HEAD"))) && status != 204 && status != 304;
}

static void append_head(struct buffer *out, const struct receiver_reply *reply, int status, bool with_body)
{
    size_t len = reply->body ? strlen(reply->body) : 0;
    if (reply->form == FORM_CONTINUE)
        buffer_append_text(out, "HTTP/1.1 100 Continue\r\n\r\n");
    buffer_printf(out, "HTTP/1.%d %d Scripted\r\n%s", reply->form == FORM_HTTP_1_0 ? 0 : 1, status, reply->headers ? reply->headers : "");
    if (reply->form == FORM_HALF || reply->form == FORM_HALF_RESET)
        len += 100;
    if (reply->form == FORM_CHUNKED || reply->form == FORM_ENDLESS)
        buffer_append_text(out, "Transfer-Encoding: chunked\r\n");
    else if (reply->form != FORM_HTTP_1_0 && with_body)
        buffer_printf(out, "Content-Length: %zu\r\n", len);
    if (reply->close)
        buffer_append_text(out, "Connection: close\r\n");
    buffer_append_text(out, "\r\n");
}

static bool write_slowly(struct connection *connection, const char *body)
{
    for (; *body; body++) {
        if (!line_write(connection, (struct slice){ body, 1 }))
            return false;
        sleep_ms(SLOW_MS);
    }
    return true;
}

static void write_endlessly(struct connection *connection, const char *body)
{
    struct buffer chunk;
    buffer_init(&chunk, HEADERS_MAX);
    buffer_printf(&chunk, "%zx\r\n%s\r\n", strlen(body), body);
    while (line_write(connection, buffer_slice(&chunk))) {
    }
    buffer_release(&chunk);
}

/* True: the connection can take another request. */
static bool answer(struct connection *connection, const struct receiver_request *request, const struct receiver_reply *reply)
{
    struct buffer out;
    int status = reply->status ? reply->status : 200;
    bool with_body = has_body(request, status);
    const char *body = reply->body && with_body ? reply->body : "";
    if (reply->form == FORM_RAW) {
        line_write(connection, slice_from(body));
        return false;
    }
    buffer_init(&out, BODY_MAX);
    append_head(&out, reply, status, with_body);
    if (reply->form == FORM_CHUNKED && *body)
        buffer_printf(&out, "%zx\r\n%s\r\n0\r\n\r\n", strlen(body), body);
    else if (reply->form == FORM_CHUNKED)
        buffer_append_text(&out, "0\r\n\r\n");
    else if (reply->form != FORM_SLOW && reply->form != FORM_ENDLESS)
        buffer_append_text(&out, body);
    bool more = line_write(connection, buffer_slice(&out));
    buffer_release(&out);
    if (more && reply->form == FORM_SLOW)
        more = write_slowly(connection, body);
    if (more && reply->form == FORM_ENDLESS)
        write_endlessly(connection, body);
    if (reply->form == FORM_HALF_RESET) {
        sleep_ms(SLOW_MS); /* so that the half arrives before the reset throws it away */
        reset_on_close(connection);
    }
    return more && (reply->form == FORM_LENGTH || reply->form == FORM_CHUNKED || reply->form == FORM_CONTINUE || reply->form == FORM_SLOW) &&
           !reply->close && !reply->vanish;
}

static bool meet_fate(struct connection *connection, const struct receiver_request *request, const struct receiver_reply *reply)
{
    if (reply->delay_ms > 0)
        sleep_ms(reply->delay_ms);
    switch (reply->fate) {
    case FATE_ANSWER:
        return answer(connection, request, reply);
    case FATE_RESET:
        reset_on_close(connection);
        return false;
    case FATE_HANG:
        line_hang(connection);
        return false;
    case FATE_CLOSE:
        break;
    }
    return false;
}

/* --- standing in for a proxy ------------------------------------------------------------------- */

static int connect_to(struct slice authority)
{
    int64_t port;
    struct slice text = slice_from_offset(authority, slice_find(authority, ':') + 1);
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || !slice_to_int64(text, &port))
        return fd;
    address.sin_port = htons((uint16_t)port);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

static void relay(int one, int other)
{
    struct pollfd ends[2] = { { .fd = one, .events = POLLIN }, { .fd = other, .events = POLLIN } };
    for (;;) {
        if (poll(ends, 2, -1) < 0 && errno != EINTR)
            return;
        for (int i = 0; i < 2; i++) {
            char bytes[16384];
            if (!ends[i].revents)
                continue;
            ssize_t len = recv(ends[i].fd, bytes, sizeof bytes, 0);
            if (len <= 0 || send(ends[1 - i].fd, bytes, (size_t)len, MSG_NOSIGNAL) != len)
                return;
        }
    }
}

static void serve_connect(struct connection *connection, const struct receiver_request *request)
{
    struct buffer out;
    int status = connection->receiver->settings.connect_status;
    int upstream = status == 0 ? connect_to(buffer_slice(&request->path)) : -1;
    buffer_init(&out, HEADERS_MAX);
    buffer_printf(&out, "HTTP/1.1 %d Scripted\r\n%s\r\n", status == 0 ? (upstream >= 0 ? 200 : 502) : status,
                  upstream >= 0 ? "" : "Content-Length: 0\r\n");
    line_write(connection, buffer_slice(&out));
    buffer_release(&out);
    if (upstream >= 0) {
        relay(connection->fd, upstream);
        close(upstream);
    }
}

/* --- connections ------------------------------------------------------------------------------- */

/* True: the connection can take another request. */
static bool serve_one(struct connection *connection)
{
    struct receiver *receiver = connection->receiver;
    struct receiver_request request;
    bool again = false;
    request_init(&request);
    if (read_headers(connection, &request)) {
        struct receiver_reply reply = next_reply(receiver);
        size_t number = request_begun(receiver);
        bool whole = reply.stage == STAGE_HEADERS || read_body(connection, &request);
        request_keep(receiver, &request, number);
        if (slice_equal(buffer_slice(&request.method), SLICE("CONNECT")))
            serve_connect(connection, &request);
        else if (whole)
            again = meet_fate(connection, &request, &reply);
        request_ended(receiver);
    }
    receiver_request_release(&request);
    return again;
}

static bool begin_tls(struct connection *connection)
{
    if (!connection->receiver->tls)
        return true;
    connection->ssl = SSL_new(connection->receiver->tls);
    return connection->ssl && SSL_set_fd(connection->ssl, connection->fd) == 1 && SSL_accept(connection->ssl) == 1;
}

static void *serve(void *context)
{
    struct connection *connection = context;
    struct receiver *receiver = connection->receiver;
    pthread_mutex_lock(&receiver->lock);
    struct receiver_reply first = receiver->reply_count > 0 ? receiver->replies[receiver->reply_next] : (struct receiver_reply){ 0 };
    pthread_mutex_unlock(&receiver->lock);
    if (first.stage == STAGE_ACCEPTED) {
        first = next_reply(receiver);
        meet_fate(connection, NULL, &first);
    } else if (begin_tls(connection)) {
        while (serve_one(connection)) {
        }
    } else {
        shutdown(connection->fd, SHUT_WR); /* the alert must arrive before anything is thrown away */
        line_hang(connection);
    }
    if (connection->ssl && SSL_is_init_finished(connection->ssl))
        SSL_shutdown(connection->ssl);
    SSL_free(connection->ssl);
    ERR_clear_error();
    buffer_release(&connection->in);
    pthread_mutex_lock(&receiver->lock);
    close(connection->fd);
    connection->fd = -1;
    connection->finished = true;
    receiver->ended_count++;
    pthread_mutex_unlock(&receiver->lock);
    return NULL;
}

static void connection_begin(struct receiver *receiver, int fd)
{
    pthread_attr_t attributes;
    struct connection *connection = calloc(1, sizeof *connection);
    assert_non_null(connection);
    connection->receiver = receiver;
    connection->fd = fd;
    buffer_init(&connection->in, BODY_MAX + HEADERS_MAX);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_mutex_lock(&receiver->lock);
    receiver->connection_count++;
    connection->next = receiver->connections;
    receiver->connections = connection;
    int failed = pthread_create(&connection->thread, &attributes, serve, connection);
    pthread_mutex_unlock(&receiver->lock);
    pthread_attr_destroy(&attributes);
    if (failed)
        abort(); /* a test cannot go on without its threads */
}

/* Threads of connections that have ended. */
static void reap(struct receiver *receiver, bool all)
{
    struct connection *ended = NULL;
    pthread_mutex_lock(&receiver->lock);
    for (struct connection **link = &receiver->connections; *link;) {
        struct connection *connection = *link;
        if (!all && !connection->finished) {
            link = &connection->next;
            continue;
        }
        *link = connection->next;
        if (connection->fd >= 0)
            shutdown(connection->fd, SHUT_RDWR);
        connection->next = ended;
        ended = connection;
    }
    pthread_mutex_unlock(&receiver->lock);
    while (ended) {
        struct connection *next = ended->next;
        pthread_join(ended->thread, NULL);
        free(ended);
        ended = next;
    }
}

static void *accept_all(void *context)
{
    struct receiver *receiver = context;
    for (;;) {
        int fd = accept4(receiver->listener, NULL, NULL, SOCK_CLOEXEC);
        pthread_mutex_lock(&receiver->lock);
        bool stopping = receiver->stopping;
        pthread_mutex_unlock(&receiver->lock);
        if (fd >= 0 && !stopping)
            connection_begin(receiver, fd);
        else if (fd >= 0)
            close(fd);
        if (stopping)
            return NULL;
        reap(receiver, false);
    }
}

/* --- the receiver ------------------------------------------------------------------------------ */

static SSL_CTX *tls_new(const struct receiver_settings *settings)
{
    if (!settings->cert)
        return NULL;
    SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
    assert_non_null(tls);
    assert_int_equal(SSL_CTX_use_certificate_chain_file(tls, settings->cert), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey_file(tls, settings->key, SSL_FILETYPE_PEM), 1);
    if (settings->tls_version_max) {
        SSL_CTX_set_security_level(tls, 0); /* so that it can be as old as it is told */
        SSL_CTX_set_min_proto_version(tls, TLS1_VERSION);
        SSL_CTX_set_max_proto_version(tls, settings->tls_version_max);
    }
    if (settings->client_ca) {
        assert_int_equal(SSL_CTX_load_verify_locations(tls, settings->client_ca, NULL), 1);
        SSL_CTX_set_verify(tls, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    }
    return tls;
}

static void fill_queue(struct receiver *receiver, const struct sockaddr_in *address)
{
    for (int i = 0; i < FILLERS; i++) {
        receiver->fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        assert_true(receiver->fillers[i] >= 0);
        if (connect(receiver->fillers[i], (const struct sockaddr *)address, sizeof *address) != 0)
            assert_int_equal(errno, EINPROGRESS);
    }
}

struct receiver *receiver_new(const struct receiver_settings *settings)
{
    static const struct receiver_settings plain;
    struct receiver *receiver = calloc(1, sizeof *receiver);
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof address;
    int window = SMALL_WINDOW_BYTES;
    assert_non_null(receiver);
    receiver->settings = settings ? *settings : plain;
    receiver->tls = tls_new(&receiver->settings);
    receiver->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(receiver->listener >= 0);
    setsockopt(receiver->listener, SOL_SOCKET, SO_RCVBUF, &window, sizeof window);
    assert_int_equal(bind(receiver->listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(receiver->listener, receiver->settings.deaf ? 0 : SOMAXCONN), 0);
    assert_int_equal(getsockname(receiver->listener, (struct sockaddr *)&address, &len), 0);
    receiver->port = ntohs(address.sin_port);
    pthread_mutex_init(&receiver->lock, NULL);
    for (size_t i = 0; i < KEPT_REQUESTS; i++)
        request_init(&receiver->kept[i]);
    if (receiver->settings.deaf)
        fill_queue(receiver, &address);
    else
        assert_int_equal(pthread_create(&receiver->acceptor, NULL, accept_all, receiver), 0);
    return receiver;
}

void receiver_free(struct receiver *receiver)
{
    if (!receiver)
        return;
    pthread_mutex_lock(&receiver->lock);
    receiver->stopping = true;
    pthread_mutex_unlock(&receiver->lock);
    shutdown(receiver->listener, SHUT_RDWR);
    if (!receiver->settings.deaf)
        pthread_join(receiver->acceptor, NULL);
    close(receiver->listener);
    for (int i = 0; receiver->settings.deaf && i < FILLERS; i++)
        close(receiver->fillers[i]);
    reap(receiver, true);
    SSL_CTX_free(receiver->tls);
    for (size_t i = 0; i < KEPT_REQUESTS; i++)
        receiver_request_release(&receiver->kept[i]);
    pthread_mutex_destroy(&receiver->lock);
    free(receiver);
}

int receiver_port(const struct receiver *receiver)
{
    return receiver->port;
}

void receiver_script(struct receiver *receiver, const struct receiver_reply *replies, size_t count)
{
    pthread_mutex_lock(&receiver->lock);
    receiver->replies = replies;
    receiver->reply_count = count;
    receiver->reply_next = 0;
    pthread_mutex_unlock(&receiver->lock);
}

static size_t locked(struct receiver *receiver, const size_t *value)
{
    pthread_mutex_lock(&receiver->lock);
    size_t copy = *value;
    pthread_mutex_unlock(&receiver->lock);
    return copy;
}

size_t receiver_requests(struct receiver *receiver)
{
    return locked(receiver, &receiver->request_count);
}

size_t receiver_connections(struct receiver *receiver)
{
    return locked(receiver, &receiver->connection_count);
}

size_t receiver_concurrent_most(struct receiver *receiver)
{
    return locked(receiver, &receiver->under_way_most);
}

static bool await(struct receiver *receiver, const size_t *value, size_t wanted)
{
    for (int waited = 0; waited < AWAIT_MS; waited++) {
        if (locked(receiver, value) >= wanted)
            return true;
        sleep_ms(1);
    }
    return false;
}

bool receiver_await_requests(struct receiver *receiver, size_t count)
{
    return await(receiver, &receiver->request_count, count);
}

bool receiver_await_connections(struct receiver *receiver, size_t count)
{
    return await(receiver, &receiver->connection_count, count);
}

bool receiver_await_ended(struct receiver *receiver, size_t count)
{
    return await(receiver, &receiver->ended_count, count);
}

bool receiver_last(struct receiver *receiver, size_t back, struct receiver_request *ret_request)
{
    pthread_mutex_lock(&receiver->lock);
    bool there = back < receiver->request_count && back < KEPT_REQUESTS;
    if (there)
        request_copy(&receiver->kept[(receiver->request_count - 1 - back) % KEPT_REQUESTS], ret_request);
    pthread_mutex_unlock(&receiver->lock);
    return there;
}
